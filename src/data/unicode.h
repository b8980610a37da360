/* Characters of texts: UTF-8, and what Unicode says of them, for the blocks that texts use. */
#ifndef DATA_UNICODE_H
#define DATA_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* The next one, p moves past it; 0 at a byte that is not UTF-8. */
uint32_t utf8_next(const unsigned char **p, const unsigned char *end);
void utf8_add(struct str *s, uint32_t c);

bool unicode_is_blank(uint32_t c);
bool unicode_is_dropped(uint32_t c);     /* control and format characters, and what stands for damage */
bool unicode_is_punctuation(uint32_t c); /* categories P* */
bool unicode_is_symbol(uint32_t c);      /* S* */
bool unicode_is_number(uint32_t c);      /* N* */
bool unicode_is_letter(uint32_t c);      /* all that is none of these, nor an accent by itself */
bool unicode_is_chinese(uint32_t c);
uint32_t unicode_lower(uint32_t c); /* Latin, Greek and Cyrillic */
uint32_t unicode_plain(uint32_t c); /* lower case without accents; 0: it was one */

#endif
