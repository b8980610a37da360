/* Timing the models of plans under the conditions they will be deployed in. */
#ifndef TUNE_TIMING_H
#define TUNE_TIMING_H

#include "tune/lab.h"

/*
 * Times a plan's model against another plan's (NULL: the fp32 model), on the batches of that place in l->timed. Of the
 * other plan, model and session are kept until another takes its place.
 */
enum fettle_status lab_time(struct lab *l, const struct plan *p, const struct plan *against, size_t which,
			    const struct latency_limits *limits, struct latency times[2], struct err *err);
/* The same against the fp32 model, with the precision that is reported; of the plan that was timed so last, what was measured then. */
enum fettle_status lab_time_to_report(struct lab *l, const struct plan *p, size_t which,
				      struct latency times[2], struct err *err);
/* Seconds of the shortest run of the fp32 model so far, on the batch that plans are compared on; 0: it was not timed. */
double timing_fp32_run(const struct lab *l);
/*
 * The fp32 model with its graph rewritten, against the one of the file. The sessions of plans go: two of fp32 need enough
 * memory. Unless it was timed before, with such a session that was there already.
 */
enum fettle_status lab_time_rewritten(struct lab *l, struct latency times[2], struct err *err);
enum fettle_status time_rewritten_with(struct lab *l, struct session *s, double *least, struct err *err);
/* Takes the session of the fp32 model as prepared, or NULL: if it was rewritten, and timed to be much faster, others are timed beside it
 * from now on. */
void timing_take_rewritten(struct lab *l, struct session *s);
/* What a run of the session takes, in units of the user's model: in turns with one of fp32, for about so many seconds; for less if that is
 * more than `slower`. NAN: several instances are deployed, which a session is not. */
enum fettle_status time_beside_fp32(struct lab *l, struct session *s, double seconds, double slower,
				    double *ratio, struct err *err);
/* The same of a plan, in units of the fp32 model as rewritten. */
enum fettle_status time_beside_rewritten(struct lab *l, const struct plan *p, double seconds, double *ratio,
					 struct err *err);
bool was_rewritten(const struct lab *l); /* and timed so */
/* How many times as fast the rewritten model was then; 1: it was not timed. */
double rewritten_speedup(const struct lab *l);
/* A session of the plan's model, as it will be deployed: its worker keeps it, if its own would be the same. */
void lab_take_session(struct lab *l, const struct plan *p, struct session *s);
/* A session of the user's model as it will be deployed; the lab's. */
enum fettle_status deployed_fp32(struct lab *l, struct session **out, struct err *err);

#endif
