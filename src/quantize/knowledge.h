/*
 * What data has taught us for a plan: how its recipes rewrite the model, the ranges and means of values, and how weights
 * are rounded. It is a value, made before the plan is carried out (tune/learn.h makes it, from data or from a history)
 * and only read from then on. quantizer_needs() lists what a plan needs of it.
 */
#ifndef QUANTIZE_KNOWLEDGE_H
#define QUANTIZE_KNOWLEDGE_H

#include "quantize/rounding.h"
#include "space/qplan.h"

struct statistics; /* of the values of one model: ranges by setting, and the means of channels */
struct variant;
struct block_store;

struct knowledge {
	const struct variant *variant;    /* the model as recipes rewrite it; NULL: as it is */
	const struct statistics *values;  /* of that model; NULL: none, which is enough for dynamic plans */
	const struct rounding *rounding;  /* of the recipe finetune, before ops fell back; NULL: nearest */
	const struct block_store *blocks; /* weight-only weights that data made; NULL: none */
};

struct statistics *statistics_new(void);
void statistics_free(struct statistics *s);

void statistics_set_range(struct statistics *s, const char *value, const struct qsetting *setting,
			  struct range r);
/* False: not known. */
bool statistics_range(const struct statistics *s, const char *value, const struct qsetting *setting,
		      struct range *out);

/* The mean of each channel along an axis (-1: the last); copied. */
void statistics_set_means(struct statistics *s, const char *value, int axis, const double *means, size_t n);
/* NULL: not known for so many channels. */
const double *statistics_means(const struct statistics *s, const char *value, int axis, size_t channels);

/* What a range depends on, as text: "u8 asym minmax 0"; free() it. */
char *setting_key(const struct qsetting *s);

#endif
