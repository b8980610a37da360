/*
 * Inputs of language models that data need not have, because there is one obvious way to make them:
 *
 *	past..., such as past_key_values.0.key   a past of no tokens, or of zeros where a length is asked for
 *	attention_mask                           ones, for the past as for the tokens
 *	position_ids                             running numbers; where a mask is given, they count what it lets through
 *	token_type_ids                           zeros
 */
#ifndef DATA_MADE_H
#define DATA_MADE_H

#include "data/buffer.h"

/* What a model says of one input. */
struct input_spec {
	const char *name;
	enum dtype dtype;
	int rank;
	int64_t dims[TENSOR_RANK_MAX]; /* -1: any */
};

enum made_rule { MADE_NOT, MADE_PAST, MADE_MASK, MADE_POSITIONS, MADE_TYPES };

/* How an input of that name and shape is made; MADE_NOT: there is no obvious way. */
enum made_rule made_rule_of(const struct input_spec *spec);
const char *made_text(enum made_rule rule); /* "an empty past" */

struct made_size {
	int64_t n, past, tokens; /* rows; tokens before those that are fed; tokens that are fed */
};
/* `mask`: [n, tokens] where the data has one, or NULL. Fails where the model's shape is another. */
enum fettle_status made_fill(struct buffer *out, enum made_rule rule, const struct input_spec *spec,
			     const struct made_size *size, const struct tensor *mask, struct err *err);

/*
 * The next token at each place of tokens [n, T], as labels: int64 [n, T], -100 at the last place and where the mask
 * (same shape, or NULL) is 0 for one of the two.
 */
enum fettle_status made_labels(struct buffer *out, const struct tensor *tokens, const struct tensor *mask,
			       size_t n, struct err *err);
/* -100 where the mask is 0; another shape than the labels' means nothing. */
void made_mask_labels(struct tensor *labels, const struct tensor *mask);

#endif
