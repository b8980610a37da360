/*
 * The mode of each op (static int8, dynamic int8, fp32) with which a model is fastest, by the runtime's own profiles: with all
 * ops in fp32, all static, all dynamic. They give each op's time in each mode and the price of conversions; the best assignment
 * follows from that (tune/assign.h) and is profiled itself, which corrects what was predicted.
 */
#ifndef TUNE_MODES_H
#define TUNE_MODES_H

#include "tune/lab.h"

/* What conversions are, as nodes of the runtime. Of layouts: channels last and back, in integers, where few of them take several times
 * as long for each element; in blocks and back, in floats. */
enum mode_conversion { TO_INT, TO_FLOAT, AT_RUN_TIME, TO_LAST, FEW_TO_LAST, TO_BLOCKS, CONVERSIONS };

/* What a profile says of a model: seconds of a run without profiling, of each node of the base, of conversions. */
struct mode_profile {
	double total, *seconds, converting[CONVERSIONS];
};

struct modes;
void modes_free(struct modes *m);
/* Was this node left in fp32 because that is faster, conversions counted? */
bool modes_slower(const struct modes *m, size_t node);
/* How many times as fast as the fp32 model such a plan is predicted to be; NAN: nothing is known. */
double modes_predicted(struct lab *l, const struct plan *p);
/* The share of the fp32 model's time that integers save in the fastest plan, were it accurate enough; INFINITY: not known. */
double lab_saves(void *lab);
/*
 * Were profiles disturbed? By what was predicted of a plan (a speed-up) and what it takes (in parts of what fp32 does), and by the seconds
 * that the fp32 model took beside them and takes at least (0: not known).
 */
bool modes_doubtful(double predicted, double objective, double original, double shortest);
/* Of a plan with this objective. Once at most: then modes are measured again when they are needed. */
bool lab_doubts_modes(void *lab, const struct plan *p, double objective);

/*
 * Profiles of the fp32 model as prepared and of a plan, which are the lab's. Where others were profiled but this one was not, that of
 * the fastest of them, with the share of its multiply-adds in integers; NAN: it is the plan's own.
 */
enum fettle_status modes_profiles(struct lab *l, const struct plan *p, struct mode_profile *fp32,
				  struct mode_profile *of_plan, double *share, struct err *err);
/* Which weights plans are timed with: as long as integers have gained little, calibrating may be for nothing. */
enum lab_weights modes_weights(const struct lab *l);
/* Does a plan have next to nothing in integers because they gain nothing? */
bool modes_gain_nothing(const struct lab *l, const struct plan *p);

/* RANK_SECONDS, see strategy/strategy.h. */
enum fettle_status rank_seconds(struct lab *l, const struct plan *p, struct op_order *out, struct err *err);

/* RANK_WORTH, RANK_ALONE and RANK_DYNAMIC; for the former, the errors of each op are kept when they are ranked. */
enum fettle_status rank_by_prices(struct lab *l, const struct plan *p, enum rank by, struct op_order *out,
				  struct err *err);
void modes_keep_errors(struct lab *l, const struct plan *p, const struct op_order *errors);

/*
 * The fastest plan with the settings and recipes of `from`. `within`: only ops that `from` quantizes may be, in the mode that they
 * have there. It is `from` when latency does not matter. The history keeps the answer, so that a run that is resumed goes the
 * same way.
 */
enum fettle_status lab_fastest(void *lab, const struct plan *from, bool within, struct plan *out,
			       struct err *err);

#endif
