/*
 * BERT's tokenizer: text is cleaned and cut at blanks, punctuation and Chinese characters, lower-cased without accents where asked for,
 * and each word becomes the longest pieces that the vocabulary has (Wu et al. 2016). Accents are known of Latin letters, and of Cyrillic
 * ones that have them.
 */
#ifndef DATA_WORDPIECE_H
#define DATA_WORDPIECE_H

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

struct wordpiece {
	struct arena arena;
	struct map pieces; /* to their numbers */
	VEC(const char *) texts;
	bool lower;
	int64_t unknown, begin, end, padding; /* [UNK], [CLS], [SEP], [PAD] */
};

struct tokens {
	VEC(int64_t) ids;
};

/* A vocabulary has a piece in each line. */
enum fettle_status wordpiece_open(struct wordpiece *w, const char *path, bool lower, struct err *err);
void wordpiece_release(struct wordpiece *w);
/* Appends the pieces of UTF-8 text; bytes that are not UTF-8 are left out. */
void wordpiece_add(const struct wordpiece *w, const char *text, size_t n, struct tokens *out);
/* Appends the words that are cut into pieces, with blanks between them. */
void wordpiece_words(const struct wordpiece *w, const char *text, size_t n, struct str *out);
const char *wordpiece_text(const struct wordpiece *w, int64_t id); /* of a piece, as the vocabulary has it */

#endif
