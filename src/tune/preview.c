#include "tune/preview.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"

enum { CALIB_SAMPLES = 8 };
#define LONG_ENOUGH 0.5 /* seconds: to see what a batch costs once the first has warmed up */

static enum fettle_status time_pass(struct lab *l, struct preview *out, struct err *err)
{
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct feed_batch b = FEED_BATCH_INIT;
	struct session *s = NULL;
	struct tensor *results = NULL;
	double start = clock_now(), timed = 0;
	size_t k, n, seen = 0;
	enum fettle_status st = session_open(&s, l->rt, l->o.model, &so, err);

	if (st)
		goto out;
	out->session = clock_now() - start;
	out->pass = NAN;
	if (has_evaluator(l))
		goto out;
	results = xcalloc(session_n_outputs(s), sizeof(*results));
	n = feed_batches(l->eval);
	for (k = 0; k < n && !st && timed < LONG_ENOUGH; k++) {
		start = clock_now();
		st = feed_read(l->eval, k, &b, err);
		st = st ? st : session_run(s, b.inputs, results, err);
		if (k == 0 && n > 1 && clock_now() - start < LONG_ENOUGH)
			continue; /* warming up */
		timed += clock_now() - start;
		seen += b.valid;
	}
	if (seen)
		out->pass = timed / (double)seen * (double)feed_samples(l->eval);
out:
	feed_batch_release(&b);
	free(results);
	session_free(s);
	return st;
}

/* A plan that cannot be carried out costs a run no more than this trial. */
static enum fettle_status time_first(struct lab *l, struct preview *out, struct err *err)
{
	struct plan first = PLAN_INIT;
	struct qplan plan = QPLAN_INIT;
	struct model *m = NULL;
	struct session *s = NULL;
	double start = clock_now();
	int64_t samples, few;
	struct knowledge k;
	enum fettle_status st;

	plan_init(&first, &l->t->space);
	tuning_qplan(l->t, &first, &plan);
	plan.recipes.finetune.algorithm = FINETUNE_OFF;
	samples = tuning_samples(l->t, &first);
	few = samples && samples < CALIB_SAMPLES ? samples : CALIB_SAMPLES;
	st = lab_learn_plan(l, few, &plan, &k, err);
	out->calibrate = (clock_now() - start) * fmax(1, (double)samples / (double)few);
	start = clock_now();
	st = st ? st : quantize(l->s->z, &k, &plan, &m, err);
	st = st ? st
		: session_new(&s, l->rt, m,
			      &(struct session_options){ .threads = l->o.threads, .level = l->o.level }, err);
	out->make = clock_now() - start;
	session_free(s);
	model_free(m);
	qplan_release(&plan);
	plan_release(&first);
	return st;
}

enum fettle_status preview_times(struct lab *l, struct preview *out, struct err *err)
{
	struct err why = ERR_INIT;
	enum fettle_status st;

	*out = (struct preview){ .prepare = l->times.prepare,
				 .samples = l->calib ? feed_samples(l->calib) : 0 };
	st = time_pass(l, out, err);
	if (!st && time_first(l, out, &why) == FETTLE_STOP)
		st = fail(err, FETTLE_STOP, "interrupted");
	return st;
}
