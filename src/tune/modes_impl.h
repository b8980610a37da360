/* What the files share that find the fastest modes: mode_profile.c, mode_conversions.c, mode_neighbours.c,
 * mode_problem.c, mode_race.c, mode_prices.c and modes.c. */
#ifndef TUNE_MODES_IMPL_H
#define TUNE_MODES_IMPL_H

#include "tune/assign.h"
#include "tune/modes.h"
#include "tune/timing.h"

/* How long it takes to convert a value: a straight line through what profiles have shown, by least squares. */
struct line {
	double n, x, y, xx, xy;
};

void line_add(struct line *l, double x, double y);
double line_at(const struct line *l, double x);

/* What an assignment is predicted to take: its ops, and the conversions between them. */
struct mode_price {
	double ops, converting;
};

/* A plan that was profiled. */
struct profiled {
	struct plan plan;
	struct mode_profile p;
	double ratio; /* its time over that of the user's file, in turns; NAN: not known */
};

/* The fastest plan. */
struct mode_answer {
	double predicted; /* times as fast as the fp32 model; NAN: not known */
	double saves;     /* as lab_saves() */
};

/* How a value is laid out. */
struct mode_layout {
	bool image, few_channels, made_in_blocks, read_in_blocks;
};

struct modes {
	double *seconds[ASSIGN_MODES];         /* per node of the base */
	struct line lines[CONVERSIONS], alone; /* alone: a sum that no convolution does too */
	double factor;            /* what conversions took in the last profile, over what the lines say */
	struct mode_profile fp32; /* of the fp32 model as prepared */
	double original;          /* seconds of the user's file */
	double profiling;         /* seconds that the last profile of a plan has taken */
	bool *blocked;            /* per node: the fp32 model has its output in blocks of channels */
	bool calibrate;           /* plans do not run with made-up ranges */
	bool few_dynamic; /* ops that may be dynamic take next to no time: static ones need not be tried so */
	bool profiles_fp32; /* the profile in progress is of the fp32 model */
	double ratio; /* of the model profiled last: its time over that of the user's file; NAN: not known */
	size_t rows;  /* samples per run */
	/* the problem: which node is which op of it, and what it reads and makes */
	int *place;
	size_t *node, n_ops;
	VEC(struct assign_value) values;
	VEC(size_t) readers;
	VEC(double) elements; /* per value */
	/* per value: convolutions in integers read it or make it; those in floats make it in blocks, or read it so */
	VEC(struct mode_layout) layouts;
	VEC(bool) sums;    /* per value: is_summed() */
	VEC(bool) floats;  /* per value: in integers too, what makes it gives floats if they are wanted */
	VEC(size_t) names; /* per value: its number in the graph */
	VEC(struct assign_pair) pairs;
	/* per value of the graph: it is quantized at run time by a node of its own; by those that read it, as part of what they do */
	bool *apart, *within;
	VEC(struct profiled) seen;
	/* the last answer */
	struct plan fastest;
	struct mode_answer answer;
	bool *slower; /* per node */
	/* what each op of a plan adds to the error, as far as it was ranked */
	struct plan ranked;
	double *errors;
};

/* ---- mode_profile.c ---- */

/* Profiles a model; free() its seconds. *keep takes the session, which lives no longer than the model; NULL: it is closed. */
enum fettle_status mode_profile(struct lab *l, struct model *m, struct mode_profile *out,
				struct session **keep, struct err *err);
/* What conversions take in a plan, beyond those of the fp32 model, which changes layouts too. */
double mode_converting(const struct lab *l, const struct mode_profile *p);
/* A run of the user's model, the fastest of a few. */
enum fettle_status time_original(struct lab *l, double *seconds, struct err *err);

/* ---- mode_conversions.c ---- */

/* Which conversion such a node is, if it is no op's, by what it reads; CONVERSIONS: none. */
int conversion_of(const char *op, const void *shapes);
/* Has a value so few channels, as images have? */
bool has_few_channels(int64_t channels);
/* The lines begin with what conversions take in a model of nothing else. After find_mode_ops(). */
enum fettle_status measure_conversions(struct lab *l, struct err *err);

/* ---- mode_neighbours.c ---- */

/* Does the convolution that makes a value add it to something, too, if both are in floats? Nobody else reads it then. */
bool is_summed(const struct lab *l, size_t value);
/*
 * Nodes without a choice of modes take longer, or less, in a plan than in the fp32 model. What they take more becomes part of the price
 * of the ops in integers that they read from; what they take less is gained by pairs of ops in integers that they are between: a
 * layout of values that suits both suits what is between them.
 */
void charge_neighbours(struct lab *l, const struct plan *p, const struct mode_profile *now);
/*
 * What those that read a value in floats take longer if it is not made in blocks of channels: a Resize does not change the layout, as
 * convolutions do. Taken to be what it takes longer in integers.
 */
double out_of_blocks(const struct lab *l, size_t value);
/* Does the op that makes a value give floats if they are wanted, without a conversion? */
bool makes_floats(const struct lab *l, size_t value);
/* By the profile of a plan, in `apart`: dynamic ops whose input no node of its own has quantized have done it themselves. */
void find_within(struct lab *l, const struct plan *p);

/* ---- modes.c ---- */

struct modes *modes_of(struct lab *l); /* made when first asked for */
bool lab_latency_counts(const struct lab *l);
/* Profiles the fp32 model, unless it was before. */
enum fettle_status profile_fp32(struct lab *l, struct err *err);
/* The profile of a plan; NULL: it has none. */
const struct profiled *seen_of(const struct lab *l, const struct plan *p);
const struct mode_profile *profile_of(const struct lab *l, const struct plan *p);
/* Profiles a plan; what each of its ops took in the mode it has counts from here on, and what conversions took, if it is an assignment. */
enum fettle_status profile_plan(struct lab *l, const struct plan *p, bool assigned, struct err *err);
/*
 * Has a plan failed to run because its ranges are made up, perhaps: of values that cannot be, such as an index that is not there? Then
 * others are calibrated from now on.
 */
bool needs_calibration(struct lab *l, enum fettle_status st);
/* The same of a plan that was profiled before, which no longer counts. */
enum fettle_status profile_again(struct lab *l, const struct plan *p, bool assigned, struct err *err);
/* Profiles the model with all ops static; again, if it was before. */
enum fettle_status profile_static(struct lab *l, const struct plan *from, struct err *err);
/* Profiles the model in fp32, with all ops static, and with all dynamic. */
enum fettle_status measure_modes(struct lab *l, const struct plan *from, struct err *err);

/* ---- mode_race.c ---- */

/* As lab_fastest(), with `out` a copy of `from` at first. */
enum fettle_status race_modes(struct lab *l, const struct plan *from, bool within, struct plan *out,
			      struct mode_answer *answer, struct err *err);

/* ---- mode_slight.c ---- */

/* Seconds that each op costs if it alone is as `from` has it and the rest in fp32. INFINITY: it cannot fall back, or has no time. */
void price_alone(struct lab *l, const struct plan *from, double *seconds);
/* The plan with the small op that has multiply-adds and costs least so: the seconds it is predicted to take. INFINITY: there is none. */
double slight_plan(struct lab *l, const struct plan *from, struct plan *out);

/* ---- mode_prices.c ---- */

/* What the history keeps of scores of all ops. */
bool known_scores(struct lab *l, const char *key, struct op_order *out);
enum fettle_status keep_scores(struct lab *l, const char *key, const struct op_order *o, struct err *err);

/* ---- mode_problem.c ---- */

void find_mode_ops(struct lab *l); /* fills place, node, values and what belongs to them */
bool has_mode_choice(const struct lab *l, size_t node);
/* The option that puts an op in a mode: as `from` has it, if it has it so; NO_OPTION: none. */
unsigned mode_option(const struct lab *l, size_t param, const struct plan *from, bool within,
		     enum assign_mode mode);
/* The share of the multiply-adds that a plan has in integers; and less than which is no success while others are. */
double mode_share(const struct lab *l, const struct plan *p);
double least_share(const struct lab *l, const struct plan *from);
/*
 * The assignment that would be fastest if conversions cost so many times what they seem to; and its price as it seems. `least`:
 * with no more in integers than it takes to be no slight success.
 */
struct mode_wish {
	double dearer;
	bool least;
};
struct mode_price price_plan(struct lab *l, const struct plan *p);
double mode_seconds(struct lab *l, const struct plan *p);   /* the sum of that: for comparing plans */
double mode_predicted(struct lab *l, const struct plan *p); /* seconds of a run */
enum assign_mode mode_in(const struct lab *l, const struct plan *p, size_t param);
struct mode_price solve_modes(struct lab *l, const struct plan *from, bool within, struct mode_wish wish,
			      struct plan *out);
/* Within `from`, the fastest plan if each op's error (by parameter) cost so many seconds per unit. */
void solve_erring(struct lab *l, const struct plan *from, const double *errors, double price,
		  struct plan *out);

#endif
