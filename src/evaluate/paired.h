/*
 * How much a model loses against another, sample by sample, from a part of the samples in random order: an interval
 * that holds the mean of all differences, at every moment, with the confidence asked for. It may be looked at after
 * every sample and stopped at any time (a confidence sequence for sampling without replacement; Waudby-Smith and
 * Ramdas, arXiv 2006.04347, empirical Bernstein).
 */
#ifndef EVALUATE_PAIRED_H
#define EVALUATE_PAIRED_H

#include <stddef.h>

struct paired {
	double range; /* differences lie within -range .. range */
	double log_term;
	size_t all, n;
	double sum, squares; /* of the scaled differences, and of their distance from what was expected */
	double weights, up, middle; /* sums over what was seen */
	double low, high;           /* the narrowest so far */
};

/* `all` samples in the population; confidence within 0 .. 1. */
void paired_init(struct paired *p, size_t all, double range, double confidence);
void paired_add(struct paired *p, double difference);
void paired_bounds(const struct paired *p, double *low, double *high);

#endif
