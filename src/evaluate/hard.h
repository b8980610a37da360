/*
 * Which samples to look at first so that a bad model is found out soon: those that the fp32 model got wrong or nearly,
 * and those that earlier trials got wrong. Which samples these are changes no result, only how soon it is certain.
 */
#ifndef EVALUATE_HARD_H
#define EVALUATE_HARD_H

#include <stddef.h>

struct hard;

/* From the fp32 model's evaluation: scores (NULL or NaN: unknown) and margins (NaN: unknown) of all n samples. */
struct hard *hard_new(size_t n, const double *scores, const double *margins, int higher_is_better);
void hard_free(struct hard *h);

/* What a trial scored; NaN for samples that it did not look at. Counts from the next hard_order() on. */
void hard_learn(struct hard *h, const double *scores);

/* The hardest first; place[n]. */
void hard_order(const struct hard *h, size_t *place);

/* What trials showed, as text for a history, and back; free() it. Text of another size is ignored. */
char *hard_save(const struct hard *h);
void hard_restore(struct hard *h, const char *text);

#endif
