/*
 * Token numbers as text. A vocabulary file has a piece in each line. Pieces say themselves how they are joined: "##ing" continues a word
 * (WordPiece), U+2581 begins one (SentencePiece), "ing_" ends one (Tensor2Tensor); without any of these each piece is a word, unless all
 * of them are single characters.
 */
#ifndef DATA_VOCABULARY_H
#define DATA_VOCABULARY_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct vocabulary;

enum fettle_status vocabulary_open(struct vocabulary **out, const char *path, struct err *err);
void vocabulary_free(struct vocabulary *v); /* NULL does nothing */
/* Appends the text of these; numbers that the vocabulary has not are left out. */
void vocabulary_text(const struct vocabulary *v, const int64_t *ids, size_t n, struct str *out);

#endif
