/* The error of every op of a plan when it alone is quantized: of its own output, and of the model's. See own_noise.h. */
#include "tune/own_errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLES_MIN = 8,
	SAMPLES_MAX = 32,
	RUN_COST = 2, /* of a run with noise, in runs of the fp32 model; about */
};

/* As many samples as all ops can be run on in two evaluations, within limits. */
static size_t samples_for(const struct feed *all, size_t n_ops)
{
	const size_t n = 2 * feed_samples(all) / (RUN_COST * (n_ops + 1));

	return n < SAMPLES_MIN ? SAMPLES_MIN : n > SAMPLES_MAX ? SAMPLES_MAX : n;
}

struct noise_taken {
	size_t n, n_values;
	const size_t *at;       /* of each op: the place of its value among the outputs, after the noises */
	double *noise, *signal; /* per op */
	struct noises *keep;    /* NULL: not kept */
};

static double energy(const struct tensor *t)
{
	const size_t n = (size_t)tensor_count(t);
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		double x = tensor_get(t, i);

		sum += x * x;
	}
	return sum;
}

static void take_noise(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out,
		       size_t n)
{
	struct noise_taken *s = self;
	double *values = xcalloc(s->n_values + 1, sizeof(*values));
	size_t i;

	if (s->keep)
		keep_noises(s->keep, batch, b, out, n);
	for (i = s->n; i < n; i++)
		values[i - s->n] = energy(&out[i]);
	for (i = 0; i < s->n; i++) {
		s->noise[i] += energy(&out[i]);
		s->signal[i] += values[s->at[i]];
	}
	free(values);
}

/* The outputs of a noise model, and the values whose noise they are, each once. */
static void expose(struct model *m, const struct graph_index *f, const char *const *value, size_t n,
		   size_t *at, size_t *n_values)
{
	const char **names = xcalloc(2 * n + 1, sizeof(*names));
	size_t i, k;

	*n_values = 0;
	for (i = 0; i < n; i++)
		names[i] = m->outputs[i].name;
	for (i = 0; i < n; i++) {
		const char *name = f->names[quantized_output(f, value[i])];

		for (k = 0; k < *n_values && strcmp(names[n + k], name) != 0; k++)
			;
		at[i] = k;
		names[n + k] = name;
		*n_values += k == *n_values;
	}
	model_set_outputs(m, names, n + *n_values);
	free(names);
}

/* One run for all ops. keep: to be filled with their noise; may be NULL. */
static enum fettle_status run_alone(struct own_errors *e, const struct qplan *q, struct noises *keep,
				    double *relative, struct err *err)
{
	struct lab *l = e->l;
	struct session_options once = { .threads = l->o.threads, .level = OPT_BASIC };
	size_t *at = xcalloc(e->n + 1, sizeof(*at)), i;
	struct noise_taken s = { .n = e->n,
				 .at = at,
				 .noise = xcalloc(e->n + 1, sizeof(double)),
				 .signal = xcalloc(e->n + 1, sizeof(double)),
				 .keep = keep };
	struct model *quantized = NULL, *alone = NULL;
	struct session *session = NULL;
	struct qplan qdq = *q;
	enum fettle_status st;

	qdq.format = FORMAT_QDQ; /* in which every op has its own nodes */
	st = lab_quantize(l, &qdq, &quantized, err);
	if (!st)
		st = noise_model(quantized, e->value, e->n, &alone, err);
	if (!st)
		expose(alone, &l->s->g, e->value, e->n, at, &s.n_values);
	if (!st)
		st = session_new(&session, l->rt, alone, &once, err);
	if (!st)
		st = run_feed(l, session, e->noise.feed, e->noise.batches, take_noise, &s, err);
	for (i = 0; i < e->n && !st; i++)
		relative[i] = s.signal[i] > 0 ? s.noise[i] / s.signal[i] : 0;
	session_free(session);
	model_free(alone);
	model_free(quantized);
	free(s.noise);
	free(s.signal);
	free(at);
	return st;
}

/* ---- what becomes of it in the model ---- */

/* the worst of the outputs that count */
static double worst_output(const struct lab *l, const struct comparison *c)
{
	double worst = 0;
	size_t i;

	for (i = 0; i < c->r->per_batch; i++)
		if (lab_output_counts(l, i))
			worst = fmax(worst, c->signal[i] > 0 ? c->noise[i] / c->signal[i] : 0);
	return worst;
}

static enum fettle_status run_model(struct own_errors *e, struct err *err)
{
	struct lab *l = e->l;
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct reference ref = REFERENCE_INIT;
	struct model *noisy = NULL;
	struct session *s = NULL;
	enum fettle_status st;
	size_t k;

	st = noisy_model(l->s->m, e->value, e->noise.v, e->n, &noisy, err);
	if (!st)
		st = session_new(&s, l->rt, noisy, &so, err);
	if (!st)
		st = noises_run(l, &e->noise, s, e->n, keep_outputs, &ref, err);
	for (k = 0; k < e->n && !st; k++) {
		struct comparison c = { &ref, xcalloc(ref.per_batch + 1, sizeof(double)),
					xcalloc(ref.per_batch + 1, sizeof(double)) };

		st = noises_run(l, &e->noise, s, k, compare_outputs, &c, err);
		e->model[k] = worst_output(l, &c);
		free(c.noise);
		free(c.signal);
	}
	session_free(s);
	model_free(noisy);
	reference_release(&ref);
	return st;
}

/* With one side in 16 bits, only the other's error is left. */
static enum fettle_status run_sides(struct own_errors *e, const struct qplan *q, struct err *err)
{
	struct lab *l = e->l;
	struct qplan sides[2] = { QPLAN_INIT, QPLAN_INIT };
	enum fettle_status st;
	size_t i;

	for (i = 0; i < ARRAY_LEN(sides); i++)
		sides[i] = qplan_copy(q);
	for (i = 0; i < l->s->ops.n; i++) {
		const struct op_rule *rule = l->s->ops.v[i].rule;

		if (!rule || q->ops[i].mode != OP_STATIC || rule->kind == OP_TABLE)
			continue;
		sides[0].ops[i].act.dtype = DT_U16;
		sides[0].ops[i].act.scheme = SCHEME_ASYM;
		if (rule->weight < 0)
			continue;
		sides[1].ops[i].weight.dtype = DT_S16;
		sides[1].ops[i].weight.scheme = SCHEME_SYM;
		sides[1].ops[i].weight.narrow = false;
	}
	st = run_alone(e, &sides[0], NULL, e->weights, err);
	if (!st)
		st = run_alone(e, &sides[1], NULL, e->activations, err);
	for (i = 0; i < ARRAY_LEN(sides); i++)
		qplan_release(&sides[i]);
	return st;
}

enum fettle_status own_errors_find(struct own_errors *e, struct lab *l, const struct qplan *q,
				   const size_t *op, size_t n, struct err *err)
{
	struct feed *all = l->calib ? l->calib : l->eval;
	enum fettle_status st;
	size_t i;

	*e = (struct own_errors){ .l = l,
				  .n = n,
				  .value = xcalloc(n + 1, sizeof(*e->value)),
				  .own = xcalloc(n + 1, sizeof(double)),
				  .model = xcalloc(n + 1, sizeof(double)),
				  .weights = xcalloc(n + 1, sizeof(double)),
				  .activations = xcalloc(n + 1, sizeof(double)) };
	for (i = 0; i < n; i++)
		e->value[i] = l->s->m->nodes.v[l->t->node[op[i]]]->out[0];
	st = noises_begin(&e->noise, all, samples_for(all, n), n, err);
	if (!st)
		st = run_alone(e, q, &e->noise, e->own, err);
	if (!st)
		st = run_model(e, err);
	if (!st)
		st = run_sides(e, q, err);
	if (st)
		own_errors_release(e);
	return st;
}

void own_errors_release(struct own_errors *e)
{
	noises_release(&e->noise);
	free(e->value);
	free(e->own);
	free(e->model);
	free(e->weights);
	free(e->activations);
	*e = (struct own_errors){ .n = 0 };
}
