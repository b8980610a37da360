/*
 * Ops by what quantizing each of them alone does to the model's output. (What the output gains when one op of a quantized model
 * falls back depends more on the sample than on the op: the errors of the others hide it.) What it costs is bounded, whatever the
 * number of ops: some are measured, from the first to the last, and the others are taken to be like their neighbours.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/own_noise.h"
#include "tune/pieces.h"

/* What it takes, in samples of the fp32 model, about: a run with noise, of each sample, most where all ops have some; two sessions. */
#define RUN_COST 1.5
#define RUN_COST_MOST 2
#define FIXED_COST 16
enum { RUNS_MIN = 12 }; /* where there are hardly any samples */

struct impact {
	struct plan whole; /* its ops' effects these are */
	size_t *op, n;
	size_t samples, *measured, n_measured; /* on so many samples: op[measured[i]] */
	double *effect;                        /* of op[k] alone: squared error as a share of the output */
};

void impact_free(struct impact *m)
{
	if (!m)
		return;
	plan_release(&m->whole);
	free(m->op);
	free(m->measured);
	free(m->effect);
	free(m);
}

/* ---- one session for all ops ---- */

struct bed {
	struct lab *l;
	const char **value; /* that each op makes, of those that are measured */
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

static enum fettle_status bed_open(struct bed *b, const struct impact *m, struct err *err)
{
	struct lab *l = b->l;
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct session_options once = { .threads = l->o.threads,
					.level = OPT_NONE }; /* it runs once: not worth more */
	const size_t n = m->n_measured;
	struct model *alone = NULL;
	struct session *s = NULL;
	enum fettle_status st;
	size_t k;

	b->value = xcalloc(n + 1, sizeof(*b->value));
	for (k = 0; k < n; k++)
		b->value[k] = l->s->m->nodes.v[l->t->node[m->op[m->measured[k]]]]->out[0];
	st = noises_begin(&b->noise, scoring_feed(l), m->samples, n, err);
	if (!st)
		st = quantize_whole(b, &m->whole, err);
	if (!st)
		st = noise_model(b->quantized, b->value, n, &alone, err);
	if (!st)
		st = session_new(&s, l->rt, alone, &once, err);
	if (!st)
		st = run_feed(l, s, b->noise.feed, b->noise.batches, keep_noises, &b->noise, err);
	if (!st)
		st = noisy_model(b->quantized->base, b->value, b->noise.v, n, &b->noisy, err);
	session_free(s);
	model_free(alone);
	if (!st)
		st = session_new(&b->session, l->rt, b->noisy, &so, err);
	return st ? st : noises_run(l, &b->noise, b->session, n, keep_outputs, &b->ref, err);
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

/* Samples of each run, at most so many batches, and how many ops are measured on them, in one evaluation of the fp32 model. */
static void choose_ops(struct lab *l, size_t batches, struct impact *m)
{
	struct feed *feed = scoring_feed(l);
	size_t most = (feed_samples(feed) + feed_batches(feed) - 1) / feed_batches(feed) * batches;
	const double all = (double)feed_samples(l->eval ? l->eval : feed);
	size_t samples = (size_t)(all / RUN_COST_MOST / (double)(m->n + 4)), runs, i;

	m->samples = samples < 1 ? 1 : samples > most ? most : samples;
	runs = (size_t)fmax((all - FIXED_COST) / RUN_COST / (double)m->samples, RUNS_MIN);
	m->n_measured = runs < m->n ? runs : m->n;
	m->measured = xcalloc(m->n_measured + 1, sizeof(*m->measured));
	for (i = 0; i < m->n_measured; i++)
		m->measured[i] = m->n_measured > 1 ? i * (m->n - 1) / (m->n_measured - 1) : 0;
}

/* Those not measured, between their neighbours that are, by the logarithm. */
static void interpolate(struct impact *m)
{
	size_t i, k;

	for (i = 0; i + 1 < m->n_measured; i++) {
		const size_t before = m->measured[i], after = m->measured[i + 1];

		for (k = before + 1; k < after; k++) {
			const double share = (double)(k - before) / (double)(after - before);

			m->effect[k] = pow(m->effect[before] + 1e-30, 1 - share) *
				       pow(m->effect[after] + 1e-30, share);
		}
	}
}

static struct impact *impact_new(struct lab *l, const struct plan *whole, size_t batches)
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
	choose_ops(l, batches, m);
	return m;
}

/* ---- a piece is an op that is measured ---- */

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
	size_t batches = (size_t)wire_count(what);

	b->l = l;
	if (!st) {
		m = impact_new(l, &whole, batches);
		st = bed_open(b, m, err);
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

static void take_effect(void *self, size_t piece, struct wire *answer)
{
	struct impact *m = self;

	m->effect[m->measured[piece]] = wire_real(answer);
}

static enum fettle_status find_effects(struct lab *l, const struct plan *whole, size_t batches,
				       struct err *err)
{
	struct impact *m = l->impact = impact_new(l, whole, batches);
	size_t *all = xcalloc(m->n_measured + 1, sizeof(*all)), i;
	struct pieces p;
	enum fettle_status st;

	for (i = 0; i < m->n_measured; i++)
		all[i] = i;
	pieces_begin(&p, l, PIECES_EFFECTS, what_of_plan(l, whole, batches));
	st = pieces_run(&p, all, m->n_measured, take_effect, m, err);
	pieces_end(&p);
	interpolate(m);
	free(all);
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
