/*
 * The tokenizer of GPT-2 and RoBERTa (Radford et al. 2019): text is cut into words, each with the blank before it; a word's bytes are
 * joined pair by pair, in the order of the list of merges, as long as a pair is in that list (Sennrich et al. 2016).
 */
#ifndef DATA_BPE_H
#define DATA_BPE_H

#include "data/wordpiece.h"

struct bpe {
	struct arena arena;
	struct map pieces;           /* to their numbers */
	struct map merges;           /* "LEFT RIGHT" to the place in the list */
	char letter[256][3];         /* the character that stands for a byte in both files, in UTF-8 */
	int64_t unknown, begin, end; /* <unk>, <s>, </s> */
};

/* From vocab.json, {"PIECE": NUMBER, ...}, and merges.txt, a pair in each line. */
enum fettle_status bpe_open(struct bpe *b, const char *vocab, const char *merges, struct err *err);
void bpe_release(struct bpe *b);
/* Appends the pieces of a text. */
void bpe_add(const struct bpe *b, const char *text, size_t n, struct tokens *out);

#endif
