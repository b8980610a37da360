/* Why a plan's model is no faster than fp32, and what would help. */
#ifndef TUNE_SLOWER_H
#define TUNE_SLOWER_H

#include "tune/lab.h"

/*
 * By profiles of both models: the op types that cost more in the plan than in fp32, what conversions between floats and
 * integers cost, and what is gained. In words, that are `a`'s.
 */
enum fettle_status slower_why(struct lab *l, const struct plan *p, struct arena *a, const char **out,
			      struct err *err);
/* Other conditions under which integers gain more than under these. In words; NULL: none is known. */
const char *slower_help(const struct lab *l, struct arena *a);

#endif
