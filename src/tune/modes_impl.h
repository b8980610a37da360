/* What the files share that find the fastest modes: mode_profile.c, mode_problem.c and modes.c. */
#ifndef TUNE_MODES_IMPL_H
#define TUNE_MODES_IMPL_H

#include "tune/assign.h"
#include "tune/modes.h"

/* How long it takes to convert a value: a straight line through what profiles have shown, by least squares. */
struct line {
	double n, x, y, xx, xy;
};

double line_at(const struct line *l, double x);

/* What conversions are, as nodes of the runtime. */
enum { TO_INT, TO_FLOAT, AT_RUN_TIME, LAYOUT, CONVERSIONS };

/* A plan that was profiled. */
struct profiled {
	struct plan plan;
	double seconds;
};

struct modes {
	double *seconds[ASSIGN_MODES]; /* per node of the base */
	struct line lines[CONVERSIONS];
	double factor;   /* what conversions took, over what the lines say */
	double fp32;     /* seconds of the fp32 model as prepared, */
	double original; /* and of the user's file, without a profile */
	double overhead; /* that a profile adds to each node */
	size_t rows;     /* samples per run */
	/* the problem: which node is which op of it, and what it reads and makes */
	int *place;
	size_t *node, n_ops;
	VEC(struct assign_value) values;
	VEC(size_t) readers;
	VEC(double) elements; /* per value */
	VEC(bool) images;     /* per value: convolutions lay it out as they like */
	VEC(struct profiled) seen;
	/* the last answer */
	struct plan fastest;
	double predicted;
	bool *slower; /* per node */
};

/* ---- mode_profile.c ---- */

/* What a profile says of a model: the seconds of each node of the base (free() them), of all, of conversions. */
struct mode_profile {
	double *seconds;
	double total, converting;
};
enum fettle_status mode_profile(struct lab *l, struct model *m, struct mode_profile *out, struct err *err);

/* ---- mode_problem.c ---- */

void find_mode_ops(struct lab *l); /* fills place, node, values and what belongs to them */
bool has_mode_choice(const struct lab *l, size_t node);
/* The option that puts an op in a mode: as `from` has it, if it has it so; NO_OPTION: none. */
unsigned mode_option(const struct lab *l, size_t param, const struct plan *from, bool within,
		     enum assign_mode mode);
/* The share of the multiply-adds that a plan has in integers; and less than which is no success while others are. */
double mode_share(const struct lab *l, const struct plan *p);
double least_share(const struct lab *l, const struct plan *from);
/* The assignment that is predicted to be fastest; returns the seconds that go into conversions. */
double solve_modes(struct lab *l, const struct plan *from, bool within, struct plan *out);

#endif
