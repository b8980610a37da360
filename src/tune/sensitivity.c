#include "tune/sensitivity.h"

#include <math.h>
#include <stdlib.h>

#include "tune/compare.h"
#include "tune/own_errors.h"

/* all in fp32 but one op; or the other way round */
static void single_plan(const struct lab *l, size_t op, bool others, struct qplan *out)
{
	const struct space *space = &l->t->space;
	struct plan p = PLAN_INIT;
	size_t i;

	plan_init(&p, space);
	tuning_qplan(l->t, &p, out);
	for (i = 0; i < space->n_ops; i++)
		if ((i != op) != others)
			out->ops[l->t->node[i]].mode = OP_FP32;
	plan_release(&p);
}

enum { BATCHES = 4 };

/* relative squared errors of the op's output and of the model's, against the fp32 model */
static enum fettle_status measure(struct lab *l, const char *value, const struct qplan *q,
				  const struct reference *ref, double *own, double *model, struct err *err)
{
	size_t n = l->s->m->n_outputs, i;
	const char **names = xcalloc(n + 1, sizeof(*names));
	struct comparison c = { ref, xcalloc(n + 1, sizeof(double)), xcalloc(n + 1, sizeof(double)) };
	struct model *m = NULL;
	struct graph_index g;
	enum fettle_status st;

	st = lab_quantize(l, q, &m, err);
	if (st)
		goto out;
	graph_index_init(&g, m);
	for (i = 0; i < n; i++)
		names[i] = l->s->m->outputs[i].name;
	names[n] = name_in(&g, value);
	graph_index_release(&g);
	st = expose_and_run(l, &(struct exposed){ m, names, n + 1 }, BATCHES, compare_outputs, &c, err);
	*own = c.signal[n] > 0 ? c.noise[n] / c.signal[n] : 0;
	*model = 0;
	for (i = 0; i < n; i++)
		if (lab_output_counts(l, i))
			*model = fmax(*model, c.signal[i] > 0 ? c.noise[i] / c.signal[i] : 0);
out:
	model_free(m);
	free(names);
	free(c.noise);
	free(c.signal);
	return st;
}

static enum fettle_status fp32_outputs(struct lab *l, const char *value, struct reference *ref,
				       struct err *err)
{
	size_t n = l->s->m->n_outputs, i;
	const char **names = xcalloc(n + 1, sizeof(*names));
	enum fettle_status st;

	for (i = 0; i < n; i++)
		names[i] = l->s->m->outputs[i].name;
	names[n] = value;
	st = expose_and_run(l, &(struct exposed){ l->s->m, names, n + 1 }, BATCHES, keep_outputs, ref, err);
	free(names);
	return st;
}

static double decibels(double relative_error)
{
	return relative_error > 1e-20 ? -10 * log10(relative_error) : 200;
}

/* which part of the error of quantizing an op's first input comes from what its range cuts off */
static double clipping_share(struct lab *l, size_t node, const struct op_choice *c)
{
	const struct node *n = l->s->m->nodes.v[node];
	const struct observer *o = learner_observer(
		l->learner, l->s->g.names[rearranged_from(&l->s->g, graph_value(&l->s->g, n->in[0]))]);
	struct range_options ro = { c->act.algorithm, c->act.parameter, c->act.dtype, c->act.scheme };
	struct qparams q;
	struct qlimits lim;
	struct range r;
	double lo, hi, clip = 0, round = 0, width;
	size_t i;

	if (!o || range_compute(o, &ro, &r, NULL))
		return 0;
	q = quant_params(r.min, r.max, c->act.dtype, c->act.scheme, false);
	lim = quant_limits(c->act.dtype, SCHEME_ASYM, false);
	lo = (lim.lo - q.zero) * (double)q.scale;
	hi = (lim.hi - q.zero) * (double)q.scale;
	width = observer_width(o);
	for (i = 0; i < OBSERVER_BINS; i++) {
		double x = ((double)i - OBSERVER_SIDE + 0.5) * width, count = (double)o->bins[i];
		double beyond = x < lo ? lo - x : x > hi ? x - hi : 0;

		if (beyond > 0)
			clip += count * beyond * beyond;
		else
			round += count * (double)q.scale * q.scale / 12;
	}
	return clip + round > 0 ? clip / (clip + round) : 0;
}

static enum fettle_status metric_with(struct lab *l, const struct qplan *q, double *out, struct err *err)
{
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct model *m = NULL;
	struct session *s = NULL;
	struct accuracy a = { 0 };
	enum fettle_status st;

	st = lab_quantize(l, q, &m, err);
	if (!st)
		st = session_new(&s, l->rt, m, &so, err);
	if (!st)
		st = lab_evaluate(l, s, &a, err);
	*out = a.value;
	session_free(s);
	model_free(m);
	return st;
}

/* all are quantized but this one (SIZE_MAX: none) */
static enum fettle_status measure_others(struct lab *l, size_t op, const char *value, struct reference *ref,
					 double *sqnr, struct err *err)
{
	struct qplan q = QPLAN_INIT;
	double own, model = 0;
	enum fettle_status st;

	single_plan(l, op, true, &q);
	st = measure(l, value, &q, ref, &own, &model, err);
	*sqnr = decibels(model);
	qplan_release(&q);
	return st;
}

enum fettle_status sensitivity_of_all(struct lab *l, double *sqnr, struct err *err)
{
	const char *value = l->s->m->outputs[0].name;
	struct reference ref = REFERENCE_INIT;
	enum fettle_status st = fp32_outputs(l, value, &ref, err);

	if (!st)
		st = measure_others(l, SIZE_MAX, value, &ref, sqnr, err);
	reference_release(&ref);
	return st;
}

/* Squared errors as shares, as struct own_errors has them. */
struct errors_of_op {
	double own, model, weights, activations;
};

static bool has_sides(const struct op_rule *rule, const struct op_choice *c)
{
	return rule->weight >= 0 && rule->kind == OP_COMPUTE && c->mode == OP_STATIC;
}

/* by itself, where its errors cannot be found together with those of the others */
static enum fettle_status measure_alone(struct lab *l, size_t op, struct errors_of_op *e, struct err *err)
{
	size_t node = l->t->node[op];
	struct qplan q = QPLAN_INIT;
	double ignored;
	const char *value = l->s->g.names[quantized_output(&l->s->g, l->s->m->nodes.v[node]->out[0])];
	struct reference ref = REFERENCE_INIT;
	enum fettle_status st;

	single_plan(l, op, false, &q);
	st = fp32_outputs(l, value, &ref, err);
	if (!st)
		st = measure(l, value, &q, &ref, &e->own, &e->model, err);
	if (!st && has_sides(l->s->ops.v[node].rule, &q.ops[node])) {
		/* with the other side in 16 bits, only one side's error is left */
		struct op_choice c = q.ops[node];

		q.ops[node].act.dtype = DT_U16;
		q.ops[node].act.scheme = SCHEME_ASYM;
		st = measure(l, value, &q, &ref, &e->weights, &ignored, err);
		q.ops[node] = c;
		q.ops[node].weight.dtype = DT_S16;
		q.ops[node].weight.scheme = SCHEME_SYM;
		q.ops[node].weight.narrow = false;
		if (!st)
			st = measure(l, value, &q, &ref, &e->activations, &ignored, err);
	}
	reference_release(&ref);
	qplan_release(&q);
	return st;
}

static enum fettle_status one_op(struct lab *l, size_t op, const struct errors_of_op *known,
				 struct op_sensitivity *out, struct err *err)
{
	size_t node = l->t->node[op];
	const struct op_rule *rule = l->s->ops.v[node].rule;
	struct errors_of_op e = { 0 };
	struct qplan q = QPLAN_INIT;
	enum fettle_status st = FETTLE_OK;

	*out = (struct op_sensitivity){ .op = op, .metric = NAN, .without_sqnr = NAN };
	single_plan(l, op, false, &q);
	if (known)
		e = *known;
	else
		st = measure_alone(l, op, &e, err);
	if (!st) {
		out->sqnr = decibels(e.own);
		out->model_sqnr = decibels(e.model);
		if (has_sides(rule, &q.ops[node]) && e.weights + e.activations > 0)
			out->weight_share = e.weights / (e.weights + e.activations);
		if (q.ops[node].mode == OP_STATIC && rule->kind != OP_TABLE)
			out->clipping_share = clipping_share(l, node, &q.ops[node]);
	}
	qplan_release(&q);
	return st;
}

static int worst_first(const void *a, const void *b)
{
	double x = ((const struct op_sensitivity *)a)->model_sqnr,
	       y = ((const struct op_sensitivity *)b)->model_sqnr;

	return (x > y) - (x < y);
}

/* The errors of all ops at once; *have: they are known. */
static enum fettle_status find_errors(struct lab *l, const size_t *op, size_t n, struct own_errors *e,
				      bool *have, struct err *err)
{
	struct plan p = PLAN_INIT;
	struct qplan q = QPLAN_INIT;
	enum fettle_status st;

	plan_init(&p, &l->t->space);
	tuning_qplan(l->t, &p, &q);
	st = own_errors_find(e, l, &q, op, n, err);
	*have = !st;
	qplan_release(&q);
	plan_release(&p);
	return st == FETTLE_UNSUPPORTED || st == FETTLE_BACKEND ? FETTLE_OK : st;
}

/* What takes an evaluation or a session per op, of an op that is among the worst. */
static enum fettle_status one_in_detail(struct lab *l, const struct sensitivity_wanted *w,
					struct reference *ref, struct op_sensitivity *row, struct err *err)
{
	struct qplan q = QPLAN_INIT;
	enum fettle_status st = FETTLE_OK;

	single_plan(l, row->op, false, &q);
	if (w->metric && l->metric)
		st = metric_with(l, &q, &row->metric, err);
	if (!st && w->without)
		st = measure_others(l, row->op, l->s->m->outputs[0].name, ref, &row->without_sqnr, err);
	qplan_release(&q);
	return st;
}

static enum fettle_status go_on(const struct lab *l, size_t done, size_t all, struct err *err)
{
	return l->progress && !l->progress(l->progress_self, done, all) ? fail(err, FETTLE_STOP, "stopped")
									: FETTLE_OK;
}

static enum fettle_status in_detail(struct lab *l, const struct sensitivity_wanted *w,
				    struct op_sensitivity *rows, size_t n, struct err *err)
{
	struct reference ref = REFERENCE_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	n = n < SENSITIVITY_WORST ? n : SENSITIVITY_WORST;
	if (w->without)
		st = fp32_outputs(l, l->s->m->outputs[0].name, &ref, err);
	for (i = 0; i < n && !st && (w->metric || w->without); i++) {
		st = one_in_detail(l, w, &ref, &rows[i], err);
		if (!st)
			st = go_on(l, i + 1, n, err);
	}
	reference_release(&ref);
	return st;
}

enum fettle_status sensitivity(struct lab *l, const struct sensitivity_wanted *w, struct op_sensitivity **out,
			       size_t *n, struct err *err)
{
	const struct space *space = &l->t->space;
	struct op_sensitivity *rows = xcalloc(space->n_ops + 1, sizeof(*rows));
	size_t *op = xcalloc(space->n_ops + 1, sizeof(*op)), i;
	struct own_errors e = { .n = 0 };
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	bool have = false;

	*n = 0;
	plan_init(&p, space);
	for (i = 0; i < space->n_ops; i++)
		if (plan_is_quantized(&p, space, i))
			op[(*n)++] = i;
	plan_release(&p);
	if (*n)
		st = find_errors(l, op, *n, &e, &have, err);
	for (i = 0; i < *n && !st; i++) {
		struct errors_of_op known;

		if (have)
			known = (struct errors_of_op){ e.own[i], e.model[i], e.weights[i], e.activations[i] };
		st = one_op(l, op[i], have ? &known : NULL, &rows[i], err);
		if (!st && !have)
			st = go_on(l, i + 1, *n, err);
	}
	qsort(rows, *n, sizeof(*rows), worst_first);
	if (!st)
		st = in_detail(l, w, rows, *n, err);
	own_errors_release(&e);
	free(op);
	if (st) {
		free(rows);
		return st;
	}
	*out = rows;
	return FETTLE_OK;
}
