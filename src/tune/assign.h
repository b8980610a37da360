/*
 * Which op runs in which mode so that a model is fastest, when the time of each op in each mode and the price of
 * conversions are known. A value is converted once, however many read it: to integers where its maker works on floats and
 * a reader on integers, to floats the other way round, and once for all readers that quantize it at run time.
 */
#ifndef TUNE_ASSIGN_H
#define TUNE_ASSIGN_H

#include <stdbool.h>
#include <stddef.h>

/* In this order: assign_best() relies on it. */
enum assign_mode { ASSIGN_DYNAMIC, ASSIGN_FP32, ASSIGN_STATIC, ASSIGN_MODES };

struct assign_op {
	double seconds[ASSIGN_MODES]; /* INFINITY: not on offer; at least one is */
};

enum { ASSIGN_OUTSIDE = -1 };

struct assign_value {
	int maker; /* an op; ASSIGN_OUTSIDE: it comes as floats, from an input or an op that has no choice */
	const size_t *readers;
	size_t n_readers;
	bool floats_read; /* an output, or read by an op that has no choice */
	/* Seconds: to integers, back to floats, and to integers at run time (DynamicQuantizeLinear). */
	double to_int, to_float, at_run_time;
};

/* Two ops that gain so many seconds if both are static, beyond what each does by itself. */
struct assign_pair {
	size_t op[2];
	double gain;    /* not negative */
	size_t through; /* the caller's */
};

struct assign_problem {
	const struct assign_op *ops;
	size_t n_ops;
	const struct assign_value *values;
	size_t n_values;
	const struct assign_pair *pairs;
	size_t n_pairs;
};

/* The seconds of all ops and conversions; INFINITY if an op is in a mode that is not on offer. */
double assign_cost(const struct assign_problem *p, const enum assign_mode *mode);
/* The assignment that costs least, exactly. */
void assign_best(const struct assign_problem *p, enum assign_mode *mode);

#endif
