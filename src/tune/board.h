/*
 * A run as TensorBoard shows it, in WORKSPACE/tensorboard: the folder `baseline` and one for each trial, `trial-0001`. Each has
 * two files: scalars, with what the trial changed (the plug-in hparams), and histograms. Both are written again without harm:
 * scalars are what the history says, histograms what the calibration has seen.
 */
#ifndef TUNE_BOARD_H
#define TUNE_BOARD_H

#include "tune/lab.h"

/* What is measured when a search is over. */
struct board_result {
	size_t best;                      /* trial; 0: none */
	double latency, baseline_latency; /* seconds; NaN: not measured */
	double int8_share;                /* of the best, as the runtime computes it */
};

/* After a trial that the history has. */
enum fettle_status board_trial(struct lab *l, const char *workspace, size_t trial, struct err *err);
/* At the end: what is final now, and what an earlier session left out. */
enum fettle_status board_finish(struct lab *l, const char *workspace, const struct board_result *r,
				struct err *err);

#endif
