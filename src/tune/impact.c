/*
 * Ops by what quantizing each of them alone does to the model's output. (What the output gains when one op of a quantized model
 * falls back depends more on the sample than on the op: the errors of the others hide it.) What it costs is bounded, whatever the
 * number of ops: some are measured, the others are taken to be like their neighbours, and of these the worst are measured, too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/own_noise.h"
#include "tune/pieces.h"

enum {
	RUN_COST = 2,  /* of a run with noise, in runs of the fp32 model; about */
	RUNS_MIN = 16, /* where there are hardly any samples */
};

struct impact {
	struct plan whole; /* its ops' effects these are */
	size_t *op, n;
	double *effect; /* of op[k] alone: squared error as a share of the output */
};

void impact_free(struct impact *m)
{
	if (!m)
		return;
	plan_release(&m->whole);
	free(m->op);
	free(m->effect);
	free(m);
}

/* ---- one session for all ops ---- */

struct bed {
	struct lab *l;
	const char **value; /* that each op makes */
	struct noises noise;
	struct model *quantized, *noisy;
	struct session *session;
	struct reference ref;
};

static void bed_release(struct bed *b)
{
	session_free(b->session);
	model_free(b->noisy);
	model_free(b->quantized);
	noises_release(&b->noise);
	free(b->value);
	reference_release(&b->ref);
}

/* In QDQ form every op has its own nodes. */
static enum fettle_status quantize_whole(struct bed *b, const struct plan *p, struct err *err)
{
	struct lab *l = b->l;
	struct knowledge k;
	struct qplan q = QPLAN_INIT;
	enum fettle_status st;

	tuning_qplan(l->t, p, &q);
	q.format = FORMAT_QDQ;
	if (l->t->base.recipes.finetune.algorithm != FINETUNE_OFF) /* see WEIGHTS_NEAREST */
		q.recipes.finetune.algorithm = FINETUNE_OFF;
	st = lab_learn_plan(l, tuning_samples(l->t, p), &q, &k, err);
	if (!st)
		st = quantize(l->s->z, &k, &q, &b->quantized, err);
	qplan_release(&q);
	return st;
}

static enum fettle_status bed_open(struct bed *b, const struct impact *m, size_t samples, struct err *err)
{
	struct lab *l = b->l;
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct session_options once = { .threads = l->o.threads,
					.level = OPT_BASIC }; /* it runs once: not worth more */
	struct model *alone = NULL;
	struct session *s = NULL;
	enum fettle_status st;
	size_t k;

	b->value = xcalloc(m->n, sizeof(*b->value));
	for (k = 0; k < m->n; k++)
		b->value[k] = l->s->m->nodes.v[l->t->node[m->op[k]]]->out[0];
	st = noises_begin(&b->noise, scoring_feed(l), samples, m->n, err);
	if (!st)
		st = quantize_whole(b, &m->whole, err);
	if (!st)
		st = noise_model(b->quantized, b->value, m->n, &alone, err);
	if (!st)
		st = session_new(&s, l->rt, alone, &once, err);
	if (!st)
		st = run_feed(l, s, b->noise.feed, b->noise.batches, keep_noises, &b->noise, err);
	if (!st)
		st = noisy_model(b->quantized->base, b->value, b->noise.v, m->n, &b->noisy, err);
	session_free(s);
	model_free(alone);
	if (!st)
		st = session_new(&b->session, l->rt, b->noisy, &so, err);
	return st ? st : noises_run(l, &b->noise, b->session, m->n, keep_outputs, &b->ref, err);
}

static enum fettle_status measure(struct bed *b, size_t op, double *effect, struct err *err)
{
	struct comparison c = { &b->ref, xcalloc(b->ref.per_batch, sizeof(double)),
				xcalloc(b->ref.per_batch, sizeof(double)) };
	enum fettle_status st = noises_run(b->l, &b->noise, b->session, op, compare_outputs, &c, err);

	*effect = comparison_error(b->l, &c);
	free(c.noise);
	free(c.signal);
	return st;
}

/* ---- which, and how many ---- */

/* Samples of each run, at most so many batches, and how many runs there may be in all, to measure n ops in one evaluation of
 * the fp32 model. */
static size_t budget(struct lab *l, size_t n, size_t batches, size_t *runs)
{
	struct feed *feed = scoring_feed(l);
	size_t most = (feed_samples(feed) + feed_batches(feed) - 1) / feed_batches(feed) * batches;
	size_t all = feed_samples(l->eval ? l->eval : feed) / RUN_COST, samples = all / (n + 4);

	samples = samples < 1 ? 1 : samples > most ? most : samples;
	*runs = all / samples > RUNS_MIN ? all / samples : RUNS_MIN;
	return samples;
}

/* Those not measured, between their neighbours that are, by the logarithm. */
static void interpolate(double *effect, const bool *measured, size_t n)
{
	size_t k, before = n, after;

	for (k = 0; k < n; k++) {
		if (measured[k]) {
			before = k;
			continue;
		}
		for (after = k + 1; after < n && !measured[after]; after++)
			;
		if (before == n || after == n) {
			effect[k] = effect[after < n ? after : before];
		} else {
			double share = (double)(k - before) / (double)(after - before);

			effect[k] =
				pow(effect[before] + 1e-30, 1 - share) * pow(effect[after] + 1e-30, share);
		}
	}
}

static enum fettle_status measure_ops(struct impact *m, struct pieces *p, size_t runs, struct err *err)
{
	bool *measured = xcalloc(m->n + 1, sizeof(*measured));
	size_t *list = xcalloc(m->n + 1, sizeof(*list));
	size_t first = runs < m->n ? runs / 2 : m->n, n, i, k, worst;
	enum fettle_status st;

	for (i = 0; i < first; i++) {
		list[i] = first > 1 ? i * (m->n - 1) / (first - 1) : 0;
		measured[list[i]] = true;
	}
	st = pieces_run(p, list, first, take_score, m->effect, err);
	interpolate(m->effect, measured, m->n);
	for (n = 0, i = first; i < runs && i < m->n; i++) {
		for (worst = m->n, k = 0; k < m->n; k++)
			if (!measured[k] && (worst == m->n || m->effect[k] > m->effect[worst]))
				worst = k;
		list[n++] = worst;
		measured[worst] = true;
	}
	if (!st && n)
		st = pieces_run(p, list, n, take_score, m->effect, err);
	free(measured);
	free(list);
	return st;
}

static struct impact *impact_new(const struct lab *l, const struct plan *whole)
{
	const struct space *space = &l->t->space;
	struct impact *m = xcalloc(1, sizeof(*m));
	size_t i;

	plan_copy(&m->whole, whole);
	m->op = xcalloc(space->n_ops, sizeof(*m->op));
	m->effect = xcalloc(space->n_ops, sizeof(*m->effect));
	for (i = 0; i < space->n_ops; i++)
		if (plan_is_quantized(whole, space, i))
			m->op[m->n++] = i;
	return m;
}

/* ---- a piece is an op ---- */

static void close_bed(void *self)
{
	bed_release(self);
	free(self);
}

static enum fettle_status open_bed(struct lab *l, struct wire *what, void **out, struct err *err)
{
	struct bed *b = xcalloc(1, sizeof(*b));
	struct impact *m = NULL;
	struct plan whole = PLAN_INIT;
	enum fettle_status st = plan_read(&whole, &l->t->space, wire_text(what), "of rank 0", err);
	size_t batches = (size_t)wire_count(what), runs;

	b->l = l;
	if (!st) {
		m = impact_new(l, &whole);
		st = bed_open(b, m, budget(l, m->n, batches, &runs), err);
	}
	plan_release(&whole);
	impact_free(m);
	if (st)
		close_bed(b);
	else
		*out = b;
	return st;
}

static enum fettle_status run_effect(void *self, size_t op, struct str *answer, struct err *err)
{
	double effect = 0;
	enum fettle_status st = measure(self, op, &effect, err);

	wire_put_real(answer, effect);
	return st;
}

const struct piece_work effect_work = { open_bed, run_effect, close_bed };

static enum fettle_status find_effects(struct lab *l, const struct plan *whole, size_t batches,
				       struct err *err)
{
	struct impact *m = l->impact = impact_new(l, whole);
	struct pieces p;
	enum fettle_status st;
	size_t runs;

	budget(l, m->n, batches, &runs);
	pieces_begin(&p, l, PIECES_EFFECTS, what_of_plan(l, whole, batches));
	st = measure_ops(m, &p, runs, err);
	pieces_end(&p);
	if (st) {
		impact_free(m);
		l->impact = NULL;
	}
	return st;
}

void put_back_all(const struct lab *l, struct plan *p)
{
	const struct space *space = &l->t->space;
	const struct plan *root =
		plan_root(p, space); /* whose weights are rounded: no other need be for a ranking */
	size_t i;

	for (i = 0; i < space->n_ops; i++)
		if (!plan_is_quantized(p, space, i) && space->v[i].n_options > 1 &&
		    (!root || plan_is_quantized(root, space, i)))
			p->choice[i] = tuning_back(l->t, p, i);
}

/* Do the effects there are say it all of this plan? Then its ops are quantized as they are there, or not at all. */
static bool covers(const struct impact *m, const struct plan *p, const struct space *space)
{
	size_t i;

	for (i = 0; i < space->n; i++)
		if (p->choice[i] != m->whole.choice[i] &&
		    (i >= space->n_ops || plan_is_quantized(p, space, i)))
			return false;
	return true;
}

enum fettle_status rank_impact(struct lab *l, const struct plan *p, bool back, size_t batches,
			       struct op_order *out, struct err *err)
{
	const struct space *space = &l->t->space;
	struct plan whole = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	plan_copy(&whole, p);
	if (back)
		put_back_all(l, &whole);
	if (!l->impact || !covers(l->impact, &whole, space)) {
		impact_free(l->impact);
		st = find_effects(l, &whole, batches, err);
	}
	for (k = 0; !st && k < l->impact->n; k++) {
		i = l->impact->op[k];
		if (back ? !plan_is_quantized(p, space, i) : plan_can_fall_back(p, space, i))
			op_order_add(out, i, l->impact->effect[k]);
	}
	plan_release(&whole);
	return st;
}
