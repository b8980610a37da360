/*
 * The mode of each op (static int8, dynamic int8, fp32) with which a model is fastest, by the runtime's own profiles: with all
 * ops in fp32, all static, all dynamic. They give each op's time in each mode and the price of conversions; the best assignment
 * follows from that (tune/assign.h) and is profiled itself, which corrects what was predicted.
 */
#ifndef TUNE_MODES_H
#define TUNE_MODES_H

#include "tune/lab.h"

struct modes;
void modes_free(struct modes *m);

/*
 * The fastest plan with the settings and recipes of `from`. `within`: only ops that `from` quantizes may be, in the mode that they
 * have there. *predicted is its latency by profiles, in units of fp32's; NAN when latency does not matter, and then the plan is `from`.
 */
enum fettle_status lab_fastest(void *lab, const struct plan *from, bool within, struct plan *out,
			       double *predicted, struct err *err);

#endif
