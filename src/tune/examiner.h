/*
 * The examiner: on which samples a trial is evaluated, in which order, and when its verdict is certain. It keeps what the fp32
 * model said to each sample, what earlier trials computed up to a cut, and what the last good trial scored. lab_baseline()
 * makes it; where a program evaluates there is none.
 */
#ifndef TUNE_EXAMINER_H
#define TUNE_EXAMINER_H

#include "tune/order.h"

struct examiner;
void examiner_free(struct examiner *x); /* after the workers */
size_t examiner_samples(const struct examiner *x);
/* Is it known what samples are expected to lose, in parts of what others do? */
bool examiner_has_weights(const struct examiner *x);

/* What its outputs are computed from; the same for models that compute the same. */
uint64_t model_identity(const struct model *m, const struct graph_index *g, const uint64_t *prints);

struct worker;
/* Evaluates the worker's model until t's verdict is certain. */
enum fettle_status examine(struct lab *l, struct worker *d, struct trial *t, struct accuracy *a,
			   struct err *err);
/* To the end: what the trial of that plan left out is evaluated now. */
enum fettle_status examine_rest(struct lab *l, struct worker *d, const struct plan *p, struct accuracy *a,
				struct err *err);

/* What a trial showed of the samples it looked at; small enough to be sent. */
struct shown {
	bool hardest_first; /* the order it looked at them in; otherwise their own */
	struct hard_notes notes;
};
void examiner_see(const struct lab *l, const struct worker *d, const struct trial *t, struct shown *out);
/* Keeps that until the trial is learnt from; `scores` of the samples, by place, or NULL. */
void examiner_keep(struct lab *l, const struct trial *t, const struct shown *s, const double *scores);
/* From a trial that is finished, in the order of trials. */
void examiner_learn(struct lab *l, const struct trial *t);
void examiner_learn_again(struct lab *l, size_t number); /* from one that the history has */

/* The order that trials look at samples in: for another machine, and as another machine has it. */
const struct hard_notes *examiner_levels(const struct examiner *x); /* NULL: it never changes */
size_t examiner_notes_bytes(const struct examiner *x, const struct hard_notes *n); /* of n->v, in use */
void examiner_set_levels(struct lab *l, const struct hard_notes *levels);

#endif
