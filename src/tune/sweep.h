/* The calibration of the model as it is, over the ranks: batches are pieces of work, and rank 0 tells the others what they come to. */
#ifndef TUNE_SWEEP_H
#define TUNE_SWEEP_H

#include "tune/lab.h"
#include "tune/wire.h"

/* As learn_source.calibrate. */
enum fettle_status lab_sweep(void *lab, int64_t samples, const char *const *values, size_t n,
			     struct calibration **out, struct err *err);
/* On another rank: what rank 0 tells. Nothing else may use the lab's learner meanwhile. */
void lab_learn_sweep(struct lab *l, struct wire *w);

#endif
