#include "tune/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tune/forerun.h"
#include "tune/compare.h"
#include "tune/examiner.h"
#include "tune/ledger.h"
#include "tune/modes.h"
#include "tune/ranks.h"
#include "tune/sweep.h"
#include "tune/values.h"
#include "tune/worker.h"

bool lab_stopped(const struct lab *l)
{
	return !lab_go_on((void *)l, 0, 0);
}

bool lab_go_on(void *lab, size_t done, size_t total)
{
	const struct lab *l = lab;

	return clock_now() < l->deadline && (!l->progress || l->progress(l->progress_self, done, total));
}

void lab_phase(struct lab *l, const char *name)
{
	if (l->phase)
		l->phase(l->progress_self, name);
}

bool lab_go_on_uncounted(void *lab, size_t done, size_t total)
{
	(void)done;
	(void)total;
	return !lab_stopped(lab);
}

void lab_count_as_rank(struct lab *l, const struct lab_times *before, double start)
{
	const double calibrated = l->times.calibrate - before->calibrate;

	l->times = *before;
	l->times.calibrate += calibrated;
	l->times.rank += clock_now() - start - calibrated;
}

enum fettle_status lab_open_fp32(struct lab *l, struct err *err)
{
	const struct session_options so = lab_session_options(l);
	const double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	if (!l->fp32)
		st = session_open(&l->fp32, l->rt, l->o.model, &so, err);
	l->times.session += clock_now() - start;
	return st;
}

/* a search may turn to recipes that need the means of channels */
static bool may_correct(const struct space *space)
{
	size_t i;

	for (i = space->n_ops; i < space->n; i++)
		if (space->v[i].corrects && space->v[i].apply != NO_OPTION)
			return true;
	return false;
}

struct learner *lab_learner(struct lab *l)
{
	struct learn_source s = { .rt = l->rt,
				  .s = l->s,
				  .calib = l->calib,
				  .workspace = l->o.workspace,
				  .threads = l->o.threads,
				  .rounding_threads = l->o.rounding_threads,
				  .cache = l->o.cache,
				  .progress = lab_go_on,
				  .self = l,
				  .means = may_correct(&l->t->space),
				  .calibrate = l->ranks && !ranks_rank(l->ranks) ? lab_sweep : NULL,
				  .seconds = &l->times.calibrate };

	if (!l->learner) {
		memcpy(s.averaging, l->o.averaging, sizeof(s.averaging));
		l->learner = learner_new(&s);
	}
	return l->learner;
}

enum fettle_status lab_learn_plan(struct lab *l, int64_t samples, const struct qplan *plan,
				  struct knowledge *out, struct err *err)
{
	return learn(lab_learner(l), samples, plan, out, err);
}

enum fettle_status lab_quantize(struct lab *l, const struct qplan *q, struct model **out, struct err *err)
{
	struct knowledge k;
	struct plan first = PLAN_INIT;
	struct qplan plan = *q;
	enum fettle_status st;

	plan.recipes.finetune.algorithm = FINETUNE_OFF;
	plan_init(&first, &l->t->space);
	st = lab_learn_plan(l, tuning_samples(l->t, &first), &plan, &k, err);
	plan_release(&first);
	return st ? st : quantize(l->s->z, &k, &plan, out, err);
}

static double share(void *self, const struct plan *p)
{
	return lab_summary(self, p).low_share;
}

/* every plan that is tried passes here, in the order of the trials, whether it is in the history or not */
static bool known(void *self, const struct plan *p, struct trial *out)
{
	struct lab *l = self;
	char hash[FINGERPRINT_LEN];

	space_remember(&l->t->space, p);
	plan_hash(p, &l->t->space, hash);
	if (!l->history || !ledger_find(l->history, hash, out))
		return false;
	examiner_learn_again(l, out->number);
	return true;
}

static enum fettle_status write_trial(struct lab *l, const struct trial *t, struct err *err)
{
	char *plan = plan_text(&t->plan, &l->t->space), *text = tuning_text(l->t, &t->plan, t->stage);
	enum fettle_status st;

	if (l->learner) /* first: a trial that is in the history can be recovered */
		learner_keep(l->learner, l->history);
	st = l->ranks || l->o.jobs > 1 ? ran_on_write(l->history, t, err) : FETTLE_OK;
	st = st ? st : ledger_write(l->history, t, plan, text, metric_n_parts(l->metric), err);
	free(text);
	free(plan);
	return st;
}

static void record(void *self, const struct trial *t)
{
	struct lab *l = self;

	examiner_learn(l, t);
	if (l->history && write_trial(l, t, &l->history_err))
		l->history_failed = true; /* ends the search: what cannot be kept must not be spent */
	if (l->on_trial)
		l->on_trial(l->on_trial_self, t);
}

static void completed(void *self, const struct trial *t)
{
	struct lab *l = self;
	enum fettle_status st;

	if (!l->history)
		return;
	st = values_write(l->history, t->number, t->values, metric_n_parts(l->metric), &l->history_err);
	if (!st)
		st = history_complete_trial(l->history, t->number, t->score.met, t->score.accuracy,
					    t->score.loss, &l->history_err);
	l->history_failed |= st != FETTLE_OK;
}

/* of the strategy */
static enum fettle_status note(void *self, const char *name, const char *text, struct err *err)
{
	struct lab *l = self;

	return l->history ? history_set_meta(l->history, name, text, err) : FETTLE_OK;
}

static char *noted(void *self, const char *name)
{
	struct lab *l = self;
	char *text = NULL;

	return l->history && !history_meta(l->history, name, &text, NULL) ? text : NULL;
}

static bool cancelled(void *self)
{
	const struct lab *l = self;

	return l->history_failed || (l->progress && !l->progress(l->progress_self, 0, 0));
}

static double now(void *self)
{
	(void)self;
	return clock_now();
}

const struct search_backend lab_backend = {
	.run = lab_run,
	.run_all = lab_run_all,
	.begin_group = lab_begin_group,
	.identify = lab_identify,
	.share = share,
	.objective = lab_objective,
	.prefer = lab_prefer,
	.rank = lab_rank,
	.estimate = lab_estimate,
	.estimate_all = lab_estimate_all,
	.fastest = lab_fastest,
	.doubts = lab_doubts_modes,
	.saves = lab_saves,
	.known = known,
	.record = record,
	.completed = completed,
	.note = note,
	.noted = noted,
	.cancelled = cancelled,
	.now = now,
};

void lab_release(struct lab *l)
{
	workers_free(l->workers);
	l->workers = NULL;
	forerun_free(l->forerun);
	l->forerun = NULL;
	examiner_free(l->examiner);
	l->examiner = NULL;
	reference_release(&l->scored);
	impact_free(l->impact);
	l->impact = NULL;
	feed_free(l->few);
	l->few = NULL;
	timing_free(l->timing);
	l->timing = NULL;
	session_free(l->fp32);
	meter_free(l->meter);
	l->meter = NULL;
	modes_free(l->modes);
	l->modes = NULL;
	l->fp32 = NULL;
	learner_free(l->learner);
	l->learner = NULL;
}
