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

/*
 * What trials showed, and the order that follows from it, travel between machines: a small number for each sample, in as many
 * bits as there is room for. Of very many samples, only the first ones have one.
 */
enum { HARD_BYTES = 1700 };
struct hard_notes {
	size_t n; /* numbers */
	unsigned char v[HARD_BYTES];
};
size_t hard_notes_bytes(const struct hard *h, const struct hard_notes *n); /* of v that are in use */

/* What a trial scored. `looked` has the places of the n samples that it looked at, in that order. */
void hard_note(const struct hard *h, const double *scores, const size_t *looked, size_t n,
	       struct hard_notes *out);
/* Counts from the next hard_levels() on. */
void hard_learn(struct hard *h, const size_t *looked, const struct hard_notes *notes);

/* How hard the samples are, and their order by that: the hardest first; place[n]. The order depends on the levels and on the
 * fp32 model's evaluation only. */
void hard_levels(const struct hard *h, struct hard_notes *out);
void hard_order(const struct hard *h, const struct hard_notes *levels, size_t *place);

#endif
