#include "tune/lab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "quantize/precision.h"
#include "runtime/probe.h"
#include "tune/values.h"

bool lab_stopped(const struct lab *l)
{
	return !lab_go_on((void *)l, 0, 0);
}

bool lab_go_on(void *lab, size_t done, size_t total)
{
	const struct lab *l = lab;

	return clock_now() < l->deadline && (!l->progress || l->progress(l->progress_self, done, total));
}

bool lab_go_on_uncounted(void *lab, size_t done, size_t total)
{
	(void)done;
	(void)total;
	return !lab_stopped(lab);
}

enum fettle_status lab_learn_plan(struct lab *l, int64_t samples, const struct qplan *plan,
				  struct knowledge *out, struct err *err)
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
				  .seconds = &l->times.calibrate };

	if (!l->learner) {
		memcpy(s.averaging, l->o.averaging, sizeof(s.averaging));
		l->learner = learner_new(&s);
	}
	return learn(l->learner, samples, plan, out, err);
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

/* a sample, or what looks like one where there is no data */
static enum fettle_status timing_inputs(struct lab *l, struct feed_batch *b, struct tensor **made_up,
					struct err *err)
{
	if (l->one)
		return feed_read(l->one, 0, b, err);
	*made_up = xcalloc(session_n_inputs(l->fp32), sizeof(**made_up));
	return fake_inputs(l->fp32, 1, 1, true, *made_up, err);
}

enum fettle_status lab_latency(struct lab *l, const struct plan *p, double seconds, struct latency times[2],
			       struct err *err)
{
	struct feed_batch b = FEED_BATCH_INIT;
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct session *pair[2] = { l->fp32, NULL }, *own = NULL;
	struct model *m;
	struct tensor *inputs[2], *made_up = NULL;
	size_t i;
	double start;
	enum fettle_status st;

	if (lab_threads(l) == l->o.threads) {
		st = lab_session(l, p, &pair[1], err);
	} else { /* on as many threads as the user will have */
		st = lab_model(l, p, &m, err);
		if (!st)
			st = session_new(&own, l->rt, m, &so, err);
		pair[1] = own;
	}
	start = clock_now();
	if (!st)
		st = timing_inputs(l, &b, &made_up, err);
	if (!st) {
		inputs[0] = inputs[1] = made_up ? made_up : b.inputs;
		st = evaluate_latency(pair, inputs, 2, seconds, lab_go_on_uncounted, l, times, err);
	}
	for (i = 0; i < 2 && !st; i++)
		times[i].median /= (double)(b.n ? b.n : 1);
	for (i = 0; made_up && i < session_n_inputs(l->fp32); i++)
		tensor_free(&made_up[i]);
	free(made_up);
	feed_batch_release(&b);
	session_free(own);
	l->times.latency += clock_now() - start;
	return st;
}

enum fettle_status lab_size(struct model *m, size_t *bytes, struct err *err)
{
	struct packed packed = PACKED_INIT;
	enum fettle_status st;
	size_t i;

	st = model_pack(m, 1024, &packed, err);
	if (st)
		return st;
	*bytes = packed.n;
	for (i = 0; i < packed.n_weights; i++)
		*bytes += tensor_bytes(&packed.weights[i]->t);
	packed_release(&packed);
	return FETTLE_OK;
}

static enum fettle_status model_footprint(struct lab *l, const struct plan *p, size_t *bytes, struct err *err)
{
	char *path = xstrfmt("%s/footprint.onnx", l->o.workspace);
	struct model *m;
	enum fettle_status st;

	st = lab_model(l, p, &m, err);
	if (!st)
		st = model_save(m, path, err);
	if (!st)
		st = evaluate_footprint(l->o.helper, path, NULL, 1, l->o.threads, bytes, err);
	unlink(path);
	free(path);
	return st;
}

/* a twentieth of an evaluation: enough to be worth something, too little to be felt */
static double latency_budget(const struct lab *l)
{
	return fmin(fmax(0.05 * l->pass_seconds, 0.03), 0.5);
}

/* What a plan's speed and size are known by: it shares them with plans that run the same kernels. */
static void kernels_hash(const struct lab *l, const struct plan *p, char out[FINGERPRINT_LEN])
{
	struct plan alike = PLAN_INIT;

	plan_alike(p, &l->t->space, &alike);
	plan_hash(&alike, &l->t->space, out);
	plan_release(&alike);
}

enum fettle_status lab_share(struct lab *l, const struct plan *p, double *share, struct err *err)
{
	bool *integer = xcalloc(l->s->ops.n + 1, sizeof(*integer));
	char key[FINGERPRINT_LEN];
	size_t known, i;
	struct model *m;
	enum fettle_status st = FETTLE_OK;

	kernels_hash(l, p, key);
	known = map_get(&l->shares, key);
	if (known == MAP_NONE) {
		st = lab_model(l, p, &m, err);
		if (!st)
			st = integer_ops(m, l->rt, &l->s->ops, integer, err);
		for (*share = i = 0; !st && i < l->s->ops.n; i++)
			*share += integer[i] ? l->s->ops.v[i].macs / l->s->ops.total_macs : 0;
		if (!st) {
			map_set(&l->shares, arena_strdup(&l->names, key), l->int8_shares.n);
			VEC_PUSH(&l->int8_shares, *share);
		}
	} else {
		*share = l->int8_shares.v[known];
	}
	free(integer);
	return st;
}

/* in units of the fp32 model's, so that objectives can be added; lower is better */
static double judged(const struct lab *l, enum lab_objective which, double value, double fp32)
{
	return l->o.weights[which] * (l->o.higher[which] ? fp32 / value : value / fp32);
}

static enum fettle_status measure(struct lab *l, struct trial *t, double *value, struct err *err)
{
	const struct plan *p = &t->plan;
	const double *w = l->o.weights;
	bool only_latency = !w[LAB_SIZE] && !w[LAB_FOOTPRINT] && !w[LAB_ACCURACY];
	double plan, sum = 0;
	struct latency times[2];
	size_t bytes = 0;
	struct model *m;
	enum fettle_status st = FETTLE_OK;

	if (only_latency || w[LAB_LATENCY] > 0) {
		st = lab_latency(l, p, latency_budget(l), times, err);
		if (st)
			return st;
		if (!l->baseline_latency)
			l->baseline_latency = times[0].median;
		plan = 1 / times[1].speedup.value; /* in units of fp32 */
		sum += w[LAB_LATENCY] > 0 ? judged(l, LAB_LATENCY, plan, 1) : plan;
		t->latency = plan * l->baseline_latency;
	}
	if (w[LAB_SIZE] > 0) {
		st = lab_model(l, p, &m, err);
		if (!st)
			st = lab_size(m, &bytes, err);
		sum += judged(l, LAB_SIZE, (double)bytes, (double)(l->baseline_size ? l->baseline_size : 1));
	}
	if (!st && w[LAB_FOOTPRINT] > 0) {
		if (!l->baseline_footprint)
			st = evaluate_footprint(l->o.helper, l->o.model, NULL, 1, l->o.threads,
						&l->baseline_footprint, err);
		if (!st)
			st = model_footprint(l, p, &bytes, err);
		if (!st)
			sum += judged(l, LAB_FOOTPRINT, (double)bytes, (double)l->baseline_footprint);
		t->footprint_bytes = st ? 0 : bytes;
	}
	*value = sum;
	return st;
}

/* Once for all plans that run the same kernels. */
static enum fettle_status objective(void *self, struct trial *t, double *value, struct err *err)
{
	struct lab *l = self;
	char key[FINGERPRINT_LEN];
	size_t known;
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	kernels_hash(l, &t->plan, key);
	known = map_get(&l->objectives, key);
	if (known != MAP_NONE) {
		*value = l->measured.v[known];
		if (l->baseline_latency)
			t->latency = l->measured.v[known + 1];
		t->footprint_bytes = (size_t)l->measured.v[known + 2];
	} else {
		st = measure(l, t, value, err);
		if (!st) {
			map_set(&l->objectives, arena_strdup(&l->names, key), l->measured.n);
			VEC_PUSH(&l->measured, *value);
			VEC_PUSH(&l->measured, t->latency);
			VEC_PUSH(&l->measured, (double)t->footprint_bytes);
		}
	}
	t->measure_s += clock_now() - start;
	return st;
}

static double share(void *self, const struct plan *p)
{
	return lab_summary(self, p).low_share;
}

#define IDENTITY_NAME "model of trial %zu" /* what the history keeps it by */

/* every plan that is tried passes here, in the order of the trials, whether it is in the history or not */
static bool known(void *self, const struct plan *p, struct trial *out)
{
	struct lab *l = self;
	struct history_trial t = { .number = 0 };
	char name[64], hash[FINGERPRINT_LEN], *identity = NULL;

	space_remember(&l->t->space, p);
	plan_hash(p, &l->t->space, hash);
	if (!l->history || history_find(l->history, hash, &t, NULL) || !t.number)
		return false;
	out->number = t.number;
	out->score.accuracy = t.accuracy;
	out->score.failed = t.failed;
	out->score.objective = t.objective;
	out->score.early = !t.failed && (isnan(t.accuracy) || t.accuracy_low < t.accuracy_high);
	out->score.low = isnan(t.accuracy) ? -INFINITY : t.accuracy_low; /* not evaluated: anything */
	out->score.high = isnan(t.accuracy) ? INFINITY : t.accuracy_high;
	out->seconds = t.seconds;
	snprintf(name, sizeof(name), IDENTITY_NAME, t.number);
	if (!history_meta(l->history, name, &identity, NULL) && identity)
		out->identity = strtoull(identity, NULL, 16);
	free(identity);
	snprintf(out->why, sizeof(out->why), "%s", t.why);
	history_trial_release(&t);
	return true;
}

char *footprint_key(size_t trial)
{
	return xstrfmt("footprint of trial %zu", trial);
}

static void record_footprint(struct lab *l, const struct trial *t)
{
	char *key = footprint_key(t->number), *bytes = xstrfmt("%zu", t->footprint_bytes);

	if (t->footprint_bytes)
		history_set_meta(l->history, key, bytes, NULL);
	free(key);
	free(bytes);
}

static void record(void *self, const struct trial *t)
{
	struct lab *l = self;
	char finished[32], name[64], identity[32], *text, *stage;

	lab_learn(l, t);
	if (l->history) {
		if (l->learner) /* first: a trial that is in the history can be recovered */
			learner_keep(l->learner, l->history);
		text = plan_text(&t->plan, &l->t->space);
		stage = tuning_text(l->t, &t->plan, t->stage);
		clock_utc(finished);
		/* before the trial: a run that is cut off here tries it again */
		snprintf(name, sizeof(name), IDENTITY_NAME, t->number);
		snprintf(identity, sizeof(identity), "%016" PRIx64, t->identity);
		if (history_set_meta(l->history, name, identity, &l->history_err) ||
		    values_write(l->history, t->number, t->values, metric_n_parts(l->metric),
				 &l->history_err) ||
		    history_add_trial(l->history,
				      &(struct history_trial){
					      .number = t->number,
					      .plan = text,
					      .stage = stage,
					      .failed = t->score.failed,
					      .met = t->score.met,
					      .accuracy = t->score.accuracy,
					      .accuracy_low = t->score.low,
					      .accuracy_high = t->score.high,
					      .loss = t->score.loss,
					      .objective = t->score.objective,
					      .latency = t->latency,
					      .size_bytes = t->size_bytes,
					      .samples = t->samples,
					      .quantize_s = t->quantize_s,
					      .session_s = t->session_s,
					      .evaluate_s = t->evaluate_s,
					      .measure_s = t->measure_s,
					      .seconds = t->seconds,
					      .finished = finished,
					      .why = t->why,
				      },
				      NULL, &l->history_err))
			l->history_failed = true; /* ends the search: what cannot be kept must not be spent */
		record_footprint(l, t);
		free(stage);
		free(text);
	}
	if (l->on_trial)
		l->on_trial(l->on_trial_self, t);
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
	.settle = lab_settle,
	.identify = lab_identify,
	.share = share,
	.objective = objective,
	.rank = lab_rank,
	.estimate = lab_estimate,
	.known = known,
	.record = record,
	.cancelled = cancelled,
	.now = now,
};

void lab_release(struct lab *l)
{
	lab_forget_stands(l);
	session_free(l->fp32);
	map_release(&l->objectives);
	VEC_RELEASE(&l->measured);
	map_release(&l->shares);
	VEC_RELEASE(&l->int8_shares);
	arena_release(&l->names);
	l->fp32 = NULL;
	learner_free(l->learner);
	l->learner = NULL;
}
