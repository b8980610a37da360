/* Sequences of tokens, as models for speech, OCR and translation give them, and what they are compared with. */
#ifndef EVALUATE_SEQUENCE_H
#define EVALUATE_SEQUENCE_H

#include "base/str.h"
#include "evaluate/metric_impl.h"

/* How a sequence is read off a row; -1: not so. */
struct sequence_rule {
	int64_t blank; /* CTC's: repetitions are one, then blanks go */
	int64_t end;   /* ends a sequence */
	int64_t pad;   /* is left out, as is -100 */
	int64_t space; /* is between words */
};

/* Options "blank=0/end=1/pad=2/space=3" into a rule that starts as `otherwise`; false: *bad is the one that is wrong, free() it. */
bool sequence_options(const char *text, const struct sequence_rule *otherwise, struct sequence_rule *out,
		      char **bad);
extern const char *const sequence_option_names[];

struct sequence {
	VEC(int64_t) ids;
};
/* Of the outputs [N,T,V] (the highest of V) or [N,T], and of labels [N,T]. */
enum fettle_status sequence_check(const struct metric *m, const struct metric_batch *b, struct err *err);
void sequence_of_output(const struct tensor *t, size_t row, const struct sequence_rule *r,
			struct sequence *out);
void sequence_of_label(const struct tensor *t, size_t row, const struct sequence_rule *r,
		       struct sequence *out);

/* Words (each a NUL-terminated text) of a sequence: by the vocabulary, by the space, or else the tokens. */
struct sequence_words {
	struct arena arena;
	VEC(const char *) v;
};
enum word_unit { UNIT_WORDS, UNIT_CHARACTERS, UNIT_BLEU /* lower case, punctuation and symbols apart */ };
void sequence_words(const struct metric *m, const struct sequence_rule *r, const struct sequence *s,
		    enum word_unit unit, struct sequence_words *out);
void sequence_words_release(struct sequence_words *w);
/* Insertions, deletions and substitutions that turn one into the other. */
size_t sequence_edits(const struct sequence_words *a, const struct sequence_words *b);

#endif
