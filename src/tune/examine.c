/* Evaluating a trial's model on as many samples as its verdict needs. */
#include "tune/examiner_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tune/forerun.h"
#include "tune/cutcache.h"
#include "tune/worker.h"

static bool certain(void *verdict, double low, double high)
{
	return verdict_certain(verdict, low, high);
}

/* Dynamic ranges are those of a whole batch: which samples are in it changes the result. */
static bool depends_on_batches(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (l->t->space.v[i].options[p->choice[i]].mode == OPTION_DYNAMIC)
			return true;
	return false;
}

/* or at random, where a verdict by confidence is enough */
static bool hardest_first(const struct lab *l, const struct trial *t)
{
	return t->verdict && l->examiner && l->examiner->order->feed && !depends_on_batches(l, &t->plan);
}

/*
 * Those that the fp32 model has wrong come first and cannot be lost. In their own order, some samples say nothing about how many of the
 * rest are wrong.
 */
static size_t samples_to_look_at(const struct lab *l, const struct trial *t, double share)
{
	const struct order *o = l->examiner->order;
	size_t i, wrong = 0;

	if (!o->weights && !hardest_first(l, t))
		return o->n;
	for (i = 0; i < o->n && !o->weights; i++)
		wrong += o->baseline[i] <= metric_type(l->metric)->score_min;
	return wrong + (size_t)ceil(share * (double)(o->n - wrong));
}

/* What the samples that were not looked at are expected to lose, by what the others did. */
static double expected_beyond(const struct order *o, const double *scores)
{
	double lost = 0, seen = 0, rest = 0;
	size_t i;

	for (i = 0; i < o->n; i++) {
		if (isnan(scores[i])) {
			rest += o->weights[i];
			continue;
		}
		seen += o->weights[i];
		lost += fabs(o->baseline[i] - scores[i]);
	}
	return seen > 0 ? lost * rest / seen / (double)o->n : 0;
}

static void begin_evaluation(struct lab *l, struct worker *d, struct evaluation *e)
{
	size_t i;

	if (!d->metric)
		d->metric = metric_twin(l->metric);
	d->recall.l = l;
	*e = (struct evaluation){ .net = network_of(d->session),
				  .feed = l->eval,
				  .metric = d->metric,
				  .progress = worker_may_continue,
				  .self = d };
	if (l->o.has_reference)
		e->reference = recall_network(&d->recall);
	if (!l->examiner)
		return;
	e->place = l->examiner->order->place;
	e->n_scores = l->examiner->order->n;
	d->scores = xrealloc(d->scores, e->n_scores, sizeof(*d->scores));
	for (i = 0; i < e->n_scores; i++)
		d->scores[i] = NAN;
	e->scores = d->scores;
}

/* in thousands of multiply-adds; nodes that have none count as one, for they are not free */
static double node_cost(void *lab, const struct node *n)
{
	const struct lab *l = lab;
	size_t macs = map_get(&l->examiner->node_macs, n->name);

	return 1 + (macs == MAP_NONE ? 0 : (double)macs);
}

uint64_t model_identity(const struct model *m, const struct graph_index *g, const uint64_t *prints)
{
	uint64_t identity = 0;
	size_t i;

	for (i = 0; i < m->n_outputs; i++)
		identity = identity * 31 + prints[graph_value(g, m->outputs[i].name)];
	return identity;
}

static enum fettle_status evaluate_graph(struct lab *l, struct worker *d, const struct graph_index *g,
					 const uint64_t *prints, struct trial *t, struct accuracy *a,
					 struct err *err)
{
	const struct metric_type *type = metric_type(l->metric);
	struct session_options so = lab_trial_options(l);
	struct cut_options co = { l->rt, &so, l->examiner ? l->examiner->order : NULL, node_cost, l };
	struct cut_run *cut = NULL;
	struct forerun_options ao = { .order = co.order, .create = t->ahead };
	struct forerun_pass *ahead = NULL;
	struct verdict v;
	struct paired paired;
	struct evaluation e;
	enum fettle_status st = FETTLE_OK;

	begin_evaluation(l, d, &e);
	if (t->verdict && l->examiner) {
		v = *t->verdict;
		e.certain = certain;
		e.judge = &v;
	}
	if (e.judge && v.look > 0)
		e.least = samples_to_look_at(l, t, v.look);
	if (hardest_first(l, t)) {
		e.feed = l->examiner->order->feed;
		if (!l->examiner->order->hard) {
			paired_init(&paired, e.n_scores, type->score_max - type->score_min, l->o.confidence);
			e.paired = &paired;
			e.baseline = l->examiner->order->baseline;
		}
	}
	/* what trials find in the cache must not depend on what happened to run ahead */
	if (l->examiner && l->examiner->cuts && !t->ahead && !depends_on_batches(l, &t->plan))
		cut_begin(l->examiner->cuts, d->model, g, prints, &co, &cut);
	if (!cut)
		st = worker_session(l, d, &t->session_s, err);
	e.net = cut ? cut_network(cut) : network_of(d->session);
	if (!st && l->forerun) {
		ao.net = e.net;
		ao.feed = e.feed;
		ao.any_batch = !depends_on_batches(l, &t->plan);
		forerun_begin(l->forerun, model_identity(d->model, g, prints), &ao, &ahead);
		e.net = ahead ? forerun_network(ahead) : e.net;
	}
	if (!st)
		st = evaluate_accuracy(&e, a, err);
	t->beyond = !st && l->examiner && l->examiner->order->weights
			    ? expected_beyond(l->examiner->order, d->scores)
			    : 0;
	forerun_end(ahead);
	if (cut)
		t->cut_share = cut_end(cut, &t->session_s) / (double)l->examiner->order->n;
	return st;
}

enum fettle_status examine(struct lab *l, struct worker *d, struct trial *t, struct accuracy *a,
			   struct err *err)
{
	struct graph_index g;
	uint64_t *prints;
	enum fettle_status st;

	graph_index_init(&g, d->model);
	prints = xcalloc(g.n, sizeof(*prints));
	graph_fingerprints(&g, prints);
	st = evaluate_graph(l, d, &g, prints, t, a, err);
	free(prints);
	graph_index_release(&g);
	return st;
}

enum fettle_status lab_evaluate(struct lab *l, struct session *s, struct accuracy *a, struct err *err)
{
	struct evaluation e = { .net = network_of(s),
				.reference = network_of(l->o.has_reference ? l->fp32 : NULL),
				.feed = l->eval,
				.metric = l->metric,
				.progress = lab_go_on,
				.self = l };
	double start = clock_now();
	enum fettle_status st = evaluate_accuracy(&e, a, err);

	l->times.evaluate += clock_now() - start;
	l->samples_evaluated += a->samples;
	return st;
}

/* ---- what was learnt ---- */

/* the places of the samples, as a trial looks at them; free() it */
static size_t *places_in_order(const struct order *o, bool hardest_first_)
{
	size_t *place = xcalloc(o->n, sizeof(*place)), i;

	for (i = 0; i < o->n; i++)
		place[i] = hardest_first_ ? o->place[feed_sample(o->feed, i)] : i;
	return place;
}

static bool teaches(const struct lab *l)
{
	return l->examiner && l->examiner->order->hard && metric_type(l->metric)->is_mean;
}

void examiner_see(const struct lab *l, const struct worker *d, const struct trial *t, struct shown *out)
{
	size_t *looked;

	*out = (struct shown){ .hardest_first = hardest_first(l, t) };
	if (!teaches(l) || !d->scores || t->score.failed || !t->samples)
		return;
	looked = places_in_order(l->examiner->order, out->hardest_first);
	hard_note(l->examiner->order->hard, d->scores, looked, t->samples, &out->notes);
	free(looked);
}

void examiner_keep(struct lab *l, const struct trial *t, const struct shown *s, const double *scores)
{
	struct kept_shown k = { t->number, *s, NULL };
	const size_t n = l->examiner ? l->examiner->order->n : 0;

	if (!l->examiner || t->score.failed || !t->samples)
		return;
	if (scores) {
		k.scores = xcalloc(n, sizeof(*k.scores));
		memcpy(k.scores, scores, n * sizeof(*k.scores));
	}
	VEC_PUSH(&l->examiner->shown, k);
}

void examiner_forget_shown(struct examiner *x)
{
	size_t i;

	for (i = 0; i < x->shown.n; i++)
		free(x->shown.v[i].scores);
	x->shown.n = 0;
}

static void learn_from(struct lab *l, const struct shown *s)
{
	struct order *o = l->examiner->order;
	size_t *looked = places_in_order(o, s->hardest_first);

	hard_learn(o->hard, looked, &s->notes);
	free(looked);
}

/* ---- in the history, so that a run that is resumed learns the same ---- */

#define SHOWN_NAME "what trial %zu showed" /* what the history keeps it by */

static void write_shown(struct lab *l, size_t number, const struct shown *s)
{
	const size_t bytes = examiner_notes_bytes(l->examiner, &s->notes);
	struct str text = STR_INIT;
	char name[64];
	size_t i;

	if (!l->history)
		return;
	snprintf(name, sizeof(name), SHOWN_NAME, number);
	str_addf(&text, "%d %zu ", s->hardest_first, s->notes.n);
	for (i = 0; i < bytes; i++)
		str_addf(&text, "%02x", s->notes.v[i]);
	history_set_meta(l->history, name, text.s, NULL);
	str_release(&text);
}

/* false: it is none, or of other data */
static bool read_shown(const struct lab *l, const char *text, struct shown *out)
{
	int first, at = 0;
	size_t i, bytes;

	*out = (struct shown){ .hardest_first = false };
	if (sscanf(text, "%d %zu %n", &first, &out->notes.n, &at) < 2 || !at ||
	    out->notes.n > l->examiner->order->n)
		return false;
	out->hardest_first = first;
	bytes = examiner_notes_bytes(l->examiner, &out->notes);
	if (bytes > HARD_BYTES || strlen(text + at) != 2 * bytes)
		return false;
	for (i = 0; i < bytes; i++) {
		const char digits[3] = { text[(size_t)at + 2 * i], text[(size_t)at + 2 * i + 1], 0 };

		out->notes.v[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	return true;
}

void examiner_learn_again(struct lab *l, size_t number)
{
	char name[64], *text = NULL;
	struct shown s;

	if (!teaches(l) || !l->history)
		return;
	snprintf(name, sizeof(name), SHOWN_NAME, number);
	if (!history_meta(l->history, name, &text, NULL) && text && read_shown(l, text, &s))
		learn_from(l, &s);
	free(text);
}

void examiner_learn(struct lab *l, const struct trial *t)
{
	struct examiner *x = l->examiner;
	size_t i;

	for (i = 0; x && i < x->shown.n && x->shown.v[i].number != t->number; i++)
		;
	if (!x || i == x->shown.n)
		return;
	if (t->score.met && x->shown.v[i].scores) {
		plan_copy(&x->kept, &t->plan);
		x->kept_scores = xrealloc(x->kept_scores, x->order->n, sizeof(*x->kept_scores));
		memcpy(x->kept_scores, x->shown.v[i].scores, x->order->n * sizeof(*x->kept_scores));
	}
	if (teaches(l)) {
		learn_from(l, &x->shown.v[i].shown);
		write_shown(l, t->number, &x->shown.v[i].shown);
	}
}

/* the samples that the trial did not look at */
static enum fettle_status visit_missing(struct lab *l, struct evaluation *e, struct feed **feed,
					struct err *err)
{
	const struct examiner *x = l->examiner;
	size_t *missing = xcalloc(x->order->n, sizeof(*missing)), i, n = 0;
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < x->order->n; i++) {
		e->scores[i] = x->kept_scores[i];
		if (isnan(e->scores[i]))
			missing[n++] = i;
	}
	if (n) {
		*feed = feed_twin(l->eval);
		st = order_visit(x->order, *feed, missing, n, err);
		e->feed = *feed;
	}
	free(missing);
	return st;
}

enum fettle_status examine_rest(struct lab *l, struct worker *d, const struct plan *p, struct accuracy *a,
				struct err *err)
{
	const struct examiner *x = l->examiner;
	bool part = x && x->kept_scores && plan_equal(&x->kept, p, &l->t->space) &&
		    metric_type(l->metric)->is_mean && !depends_on_batches(l, p);
	struct feed *feed = NULL;
	struct evaluation e;
	enum fettle_status st = FETTLE_OK;

	begin_evaluation(l, d, &e);
	e.progress = NULL; /* short, and not to be broken off */
	if (part)
		st = visit_missing(l, &e, &feed, err);
	if (!st)
		st = evaluate_accuracy(&e, a, err);
	feed_free(feed);
	return st;
}
