/* How long a run may take, before it begins. */
#ifndef TUNE_PREVIEW_H
#define TUNE_PREVIEW_H

#include "tune/lab.h"

/* Seconds. */
struct preview {
	double prepare;   /* spent already */
	double session;   /* opening the fp32 model */
	double pass;      /* one evaluation of it; NaN: by a program of the user's, which is not run */
	double calibrate; /* the first calibration */
	double make;      /* a trial's model and its session */
	size_t samples;   /* to calibrate on; 0: no plan needs any */
};

/* Runs the fp32 model on a few batches, calibrates on a few samples, makes the model of the first plan. */
enum fettle_status preview_times(struct lab *l, struct preview *out, struct err *err);

#endif
