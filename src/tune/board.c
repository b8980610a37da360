#include "tune/board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "space/plan_json.h"
#include "tensorboard/events.h"

#define SCALARS "1-scalars" /* TensorBoard reads the files of a folder in the order of their names */
#define HISTOGRAMS "2-histograms"

/* what goes into one file of histograms */
struct drawn {
	struct lab *l;
	struct events e;
	const struct qplan *plan; /* of a trial */
	int64_t samples;
	struct map tags; /* that are in it: a value that is quantized in several ways is drawn in the first */
	struct arena names;
	enum fettle_status st;
	struct err *err;
};

static char *folder_of(const char *workspace, size_t trial)
{
	return trial ? xstrfmt("%s/tensorboard/trial-%04zu", workspace, trial)
		     : xstrfmt("%s/tensorboard/baseline", workspace);
}

/* clock_utc() in seconds since 1970 */
static double seconds_of(const char *utc)
{
	struct tm tm = { 0 };

	return utc && strptime(utc, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (double)timegm(&tm) : 0;
}

static double run_started(const struct lab *l)
{
	return seconds_of(history_run(l->history)->started);
}

/* ---- histograms ---- */

static void draw(struct drawn *d, const char *tag, const struct histogram *h)
{
	if (map_get(&d->tags, tag) != MAP_NONE)
		return;
	map_set(&d->tags, arena_strdup(&d->names, tag), 1);
	events_histogram(&d->e, tag, h);
}

static void draw_value(struct drawn *d, const char *name, const struct histogram *h)
{
	char *tag = xstrfmt("values/%s", name);

	draw(d, tag, h);
	free(tag);
}

/* Named after its op, for recipes give weights other names. A recurrent op has two. */
static void draw_weight(struct drawn *d, const struct op *op, size_t input, const float *x, size_t n)
{
	char *tag = xstrfmt("weights/%s%s", op->name, (int)input == op->rule->weight ? "" : " (recurrent)");
	struct histogram h;

	histogram_of_floats(&h, x, n);
	draw(d, tag, &h);
	free(tag);
}

static void draw_quantized_weight(void *self, const struct op *op, size_t input, const struct qweight *w)
{
	struct drawn *d = self;
	const size_t n = (size_t)tensor_count(&w->q);
	float *x = NULL;

	if (d->st || !n)
		return;
	d->st = mem_try(&x, n, sizeof(*x), op->name, d->err);
	if (d->st)
		return;
	qweight_floats(w, x);
	draw_weight(d, op, input, x, n);
	free(x);
}

static void draw_blocks(void *self, const struct op *op, const struct block_packed *w)
{
	struct drawn *d = self;
	float *x = NULL;

	if (!d->st)
		d->st = block_packed_floats(w, op->name, &x, d->err);
	if (!d->st)
		draw_weight(d, op, (size_t)op->rule->weight, x, (size_t)(w->outputs * w->inputs));
	free(x);
}

static void draw_quantized_value(void *self, const char *value, const char *observed, struct qparams q,
				 enum dtype t)
{
	struct drawn *d = self;
	const struct observer *o = learner_plan_observer(d->l->learner, d->samples, d->plan, observed);
	struct histogram h;

	if (!o || !o->count)
		return; /* such as a value that a recipe has scaled: only its range is known */
	histogram_of_quantized(&h, o, q, t);
	draw_value(d, value, &h);
}

static bool is_weight(const struct op *op, const struct node *n, size_t input)
{
	const int k = (int)input;

	return op->rule && op->rule->weight >= 0 &&
	       (k == op->rule->weight || (op_layout(n) == LAYOUT_RECURRENT && k == op->rule->weight + 1));
}

/* as they are, in the fp32 model */
static void draw_weights(struct drawn *d)
{
	struct model *m = d->l->s->m;
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < m->nodes.v[i]->n_in && !d->st; k++) {
			const struct op *op = &d->l->s->ops.v[i];
			struct init *w =
				is_weight(op, m->nodes.v[i], k) ? model_init(m, m->nodes.v[i]->in[k]) : NULL;

			if (!w || w->t.dtype != DT_F32 || tensor_count(&w->t) <= 0)
				continue;
			d->st = model_weight(m, w, d->err);
			if (!d->st)
				draw_weight(d, op, k, w->t.data, (size_t)tensor_count(&w->t));
		}
}

static void draw_values(struct drawn *d)
{
	const char **values = NULL;
	size_t n = d->l->learner ? quantizer_values(&d->l->s->g, &d->l->s->ops, NULL, &values) : 0, i;

	for (i = 0; i < n; i++) {
		const struct observer *o = learner_observer(d->l->learner, values[i]);
		struct histogram h;

		if (!o || !o->count)
			continue;
		histogram_of_seen(&h, o);
		draw_value(d, values[i], &h);
	}
	free(values);
}

static enum fettle_status end_drawing(struct drawn *d, const char *folder)
{
	if (!d->st)
		d->st = events_write(&d->e, folder, HISTOGRAMS, d->err);
	map_release(&d->tags);
	arena_release(&d->names);
	events_release(&d->e);
	return d->st;
}

static enum fettle_status draw_baseline(struct lab *l, const char *folder, struct err *err)
{
	struct drawn d = { .l = l, .e = EVENTS_INIT, .err = err };

	events_begin(&d.e, 0, run_started(l));
	draw_weights(&d);
	draw_values(&d);
	return end_drawing(&d, folder);
}

static enum fettle_status draw_trial(struct lab *l, const char *folder, const struct history_trial *t,
				     const struct plan *p, struct err *err)
{
	struct qplan q = QPLAN_INIT;
	struct drawn d = { .l = l, .e = EVENTS_INIT, .plan = &q, .err = err };
	const struct quantize_watch watch = { &d, draw_quantized_value, draw_quantized_weight, draw_blocks };
	struct knowledge k;
	enum fettle_status st;

	tuning_qplan(l->t, p, &q);
	d.samples = tuning_samples(l->t, p);
	events_begin(&d.e, t->number, seconds_of(t->finished));
	st = lab_learn_plan(l, d.samples, &q, &k, err);
	if (!st)
		st = quantize_watched(l->s->z, &k, &q, &watch, err);
	d.st = d.st ? d.st : st;
	qplan_release(&q);
	return end_drawing(&d, folder);
}

/* ---- scalars ---- */

static enum fettle_status write_baseline(struct lab *l, const char *folder, double latency, struct err *err)
{
	struct events e = EVENTS_INIT;
	struct history_baseline b = { 0 };
	bool found = false;
	enum fettle_status st = history_baseline(l->history, &b, &found, err);

	if (st || !found)
		return st;
	events_begin(&e, 0, run_started(l));
	events_scalar(&e, "accuracy", b.accuracy);
	events_scalar(&e, "latency_ms", 1e3 * latency);
	events_scalar(&e, "size_bytes", (double)b.size_bytes);
	events_scalar(&e, "int8_share", 0);
	events_param(&e, "stage", "fp32");
	events_session(&e, e.time, true);
	st = events_write(&e, folder, SCALARS, err);
	events_release(&e);
	return st;
}

/* what sets the plan apart from the default one */
static void add_changes(struct events *e, const struct space *s, const struct plan *p)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct param *x = &s->v[i];
		char *words;

		if (p->choice[i] == x->first || !plan_uses(p, s, i))
			continue;
		words = x->names ? option_words(x->names[p->choice[i]]) : xstrfmt("%u", p->choice[i]);
		events_param(e, x->name, words);
		free(words);
	}
}

static enum fettle_status write_trial(struct lab *l, const char *folder, const struct history_trial *t,
				      const struct plan *p, const struct board_result *r, struct err *err)
{
	const bool best = r && r->best == t->number;
	const double finished = seconds_of(t->finished);
	struct events e = EVENTS_INIT;
	enum fettle_status st;

	events_begin(&e, t->number, finished);
	if (t->accuracy_low < t->accuracy_high) { /* the evaluation ended early: only bounds are known */
		events_scalar(&e, "accuracy_low", t->accuracy_low);
		events_scalar(&e, "accuracy_high", t->accuracy_high);
	} else {
		events_scalar(&e, "accuracy", t->accuracy);
	}
	events_scalar(&e, "latency_ms", 1e3 * (best && !isnan(r->latency) ? r->latency : t->latency));
	if (!t->failed) {
		events_scalar(&e, "size_bytes", (double)t->size_bytes);
		events_scalar(&e, "int8_share", best ? r->int8_share : lab_summary(l, p).int8_share);
	}
	events_param(&e, "stage", t->stage);
	add_changes(&e, &l->t->space, p);
	events_session(&e, finished - t->seconds, !t->failed);
	st = events_write(&e, folder, SCALARS, err);
	events_release(&e);
	return st;
}

/* ---- a run ---- */

static bool has_histograms(const char *folder)
{
	char *path = events_path(folder, HISTOGRAMS);
	bool there = access(path, F_OK) == 0;

	free(path);
	return there;
}

static enum fettle_status board_of(struct lab *l, const char *workspace, const struct history_trial *t,
				   const struct board_result *r, struct err *err)
{
	char *folder = folder_of(workspace, t->number);
	struct plan p = PLAN_INIT;
	enum fettle_status st = plan_read(&p, &l->t->space, t->plan, "of the history", err);

	if (!st)
		st = write_trial(l, folder, t, &p, r, err);
	if (!st && !t->failed && !has_histograms(folder))
		st = draw_trial(l, folder, t, &p, err);
	plan_release(&p);
	free(folder);
	return st;
}

static enum fettle_status board_baseline(struct lab *l, const char *workspace, double latency, bool again,
					 struct err *err)
{
	char *folder = folder_of(workspace, 0);
	enum fettle_status st = FETTLE_OK;

	if (again || !has_histograms(folder)) {
		st = write_baseline(l, folder, latency, err);
		if (!st)
			st = draw_baseline(l, folder, err);
	}
	free(folder);
	return st;
}

enum fettle_status board_trial(struct lab *l, const char *workspace, size_t trial, struct err *err)
{
	struct history_trial t = { .number = 0 };
	enum fettle_status st = board_baseline(l, workspace, NAN, false, err);

	if (!st)
		st = history_trial_at(l->history, trial, &t, err);
	if (!st)
		st = board_of(l, workspace, &t, NULL, err);
	history_trial_release(&t);
	return st;
}

enum fettle_status board_finish(struct lab *l, const char *workspace, const struct board_result *r,
				struct err *err)
{
	struct history_trial t = { .number = 0 };
	size_t last = 0;
	enum fettle_status st = board_baseline(l, workspace, r->baseline_latency, true, err);

	while (!st && !(st = history_next(l->history, last, &t, err)) && t.number) {
		st = board_of(l, workspace, &t, r, err);
		last = t.number;
	}
	history_trial_release(&t);
	return st;
}
