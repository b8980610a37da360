/* JSON in one form: members in the order of their names' bytes, no blanks, the shortest numbers that read back exactly. */
#ifndef SPACE_JSON_TEXT_H
#define SPACE_JSON_TEXT_H

#include <jansson.h>

#include "base/str.h"

void json_text(const json_t *j, struct str *out);
void json_text_string(const char *s, struct str *out);

#endif
