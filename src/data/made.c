#include "data/made.h"

#include <string.h>

enum { IGNORED = -100 }; /* a label that does not count */

static bool is_integer(const struct input_spec *s)
{
	return s->dtype == DT_S64 || s->dtype == DT_S32;
}

/* How many of its dimensions the model leaves open. */
static int n_open(const struct input_spec *s)
{
	int n = 0, i;

	for (i = 0; i < s->rank; i++)
		n += s->dims[i] < 0;
	return n;
}

enum made_rule made_rule_of(const struct input_spec *s)
{
	/* the rows and the length are open; or the length only, where the model fixes the rows */
	if (strncmp(s->name, "past", 4) == 0 && s->rank >= 3 && n_open(s) >= 1 && n_open(s) <= 2)
		return MADE_PAST;
	if (strcmp(s->name, "attention_mask") == 0 && s->rank == 2)
		return MADE_MASK;
	if (strcmp(s->name, "position_ids") == 0 && is_integer(s) && s->rank == 2)
		return MADE_POSITIONS;
	if (strcmp(s->name, "token_type_ids") == 0 && is_integer(s) && s->rank == 2)
		return MADE_TYPES;
	return MADE_NOT;
}

const char *made_text(enum made_rule rule)
{
	static const char *const texts[] = { [MADE_NOT] = "nothing",
					     [MADE_PAST] = "an empty past",
					     [MADE_MASK] = "ones",
					     [MADE_POSITIONS] = "running positions",
					     [MADE_TYPES] = "zeros" };

	return texts[rule];
}

static void shape_of(enum made_rule rule, const struct input_spec *s, const struct made_size *size,
		     int64_t *dims)
{
	int open = n_open(s), i;

	memcpy(dims, s->dims, sizeof(s->dims));
	if (rule == MADE_PAST) {
		for (i = 0; i < s->rank; i++)
			if (s->dims[i] < 0)
				dims[i] = open-- == 2 ? size->n : size->past;
		return;
	}
	dims[0] = size->n;
	dims[1] = size->tokens + (rule == MADE_MASK ? size->past : 0);
}

static void fill_positions(struct tensor *t, int64_t past, const struct tensor *mask)
{
	size_t n = (size_t)t->dims[0], width = (size_t)t->dims[1], i, k;
	double at;

	for (i = 0; i < n; i++)
		for (k = 0, at = (double)past - 1; k < width; k++) {
			at += !mask || tensor_get(mask, i * width + k) != 0;
			tensor_set(t, i * width + k, at > 0 ? at : 0);
		}
}

enum fettle_status made_fill(struct buffer *out, enum made_rule rule, const struct input_spec *spec,
			     const struct made_size *size, const struct tensor *mask, struct err *err)
{
	int64_t dims[TENSOR_RANK_MAX];
	struct tensor want = { .rank = spec->rank };
	enum fettle_status st;
	char have[128], need[128];
	size_t i;
	int d;

	shape_of(rule, spec, size, dims);
	st = buffer_shape(out, spec->dtype, spec->rank, dims, spec->name, err);
	if (st)
		return st;
	memcpy(want.dims, spec->dims, sizeof(want.dims));
	for (d = 0; d < spec->rank; d++)
		if (spec->dims[d] >= 0 && spec->dims[d] != dims[d])
			return fail(
				err, FETTLE_INVALID,
				"cannot make input '%s' (%s), which the data lacks: it would be %s, need %s "
				"(-1 is any)",
				spec->name, made_text(rule), tensor_shape_text(&out->t, have, sizeof(have)),
				tensor_shape_text(&want, need, sizeof(need)));
	if (out->t.data)
		memset(out->t.data, 0, tensor_bytes(&out->t));
	for (i = 0; rule == MADE_MASK && i < (size_t)tensor_count(&out->t); i++)
		tensor_set(&out->t, i, 1);
	if (rule == MADE_POSITIONS)
		fill_positions(&out->t, size->past, mask && tensor_same_shape(mask, &out->t) ? mask : NULL);
	return FETTLE_OK;
}

enum fettle_status made_labels(struct buffer *out, const struct tensor *tokens, const struct tensor *mask,
			       size_t n, struct err *err)
{
	const int64_t dims[2] = { (int64_t)n, tokens->dims[1] };
	size_t width = (size_t)dims[1], i;
	enum fettle_status st = buffer_shape(out, DT_S64, 2, dims, "the labels", err);
	int64_t *labels = out->t.data;

	for (i = 0; i < n * width && !st; i++) {
		bool counts = i % width != width - 1 &&
			      (!mask || (tensor_get(mask, i) != 0 && tensor_get(mask, i + 1) != 0));

		labels[i] = counts ? (int64_t)tensor_get(tokens, i + 1) : IGNORED;
	}
	return st;
}

void made_mask_labels(struct tensor *labels, const struct tensor *mask)
{
	size_t i;

	if (labels->rank < 2 || mask->rank != 2 || labels->dims[1] != mask->dims[1] ||
	    tensor_count(labels) != labels->dims[0] * labels->dims[1])
		return;
	for (i = 0; i < (size_t)tensor_count(labels); i++)
		if (tensor_get(mask, i) == 0)
			tensor_set(labels, i, IGNORED);
}
