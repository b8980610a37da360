/* Which values are quantized, and with which parameters. */
#include "quantize/internal.h"

#include <math.h>
#include <string.h>

size_t quantized_output(const struct graph_index *g, const char *value)
{
	const struct node *act = fused_activation(g, value);

	return graph_value(g, act ? act->out[0] : value);
}

static size_t job_output(const struct job *j, size_t node, size_t k)
{
	return quantized_output(j->g, j->g->m->nodes.v[node]->out[k]);
}

/* does the op pass its input's parameters on to its outputs? */
static bool passes_on(const struct job *j, size_t node)
{
	return job_moves(j, node) && !has_own_range(&j->plan->recipes, j->g->m->nodes.v[node]);
}

static void mark_readers(struct job *j)
{
	const struct model *m = j->g->m;
	size_t i, k;

	for (i = m->nodes.n; i--;) { /* backwards: what is wanted after a move is wanted before it */
		const struct node *n = m->nodes.v[i];
		bool wanted = false;

		if (passes_on(j, i)) {
			for (k = 0; k < n->n_out; k++)
				wanted |= *n->out[k] && j->values[graph_value(j->g, n->out[k])].want;
			for (k = 0; k < n->n_out && wanted; k++) /* Split stays in integers only as a whole */
				j->values[graph_value(j->g, n->out[k])].want = true;
			if (wanted)
				j->values[graph_value(j->g, n->in[0])].want = true;
		}
		if (!job_quantizes(j, i))
			continue;
		for (k = 0; k < n->n_in; k++)
			if (is_activation_input(m, j->z->ops->v[i].rule, n, k)) {
				struct qvalue *v = &j->values[graph_value(j->g, n->in[k])];

				v->direct = v->want = true;
			}
	}
}

static void mark_quantized(struct job *j)
{
	const struct model *m = j->g->m;
	const struct recipes *recipes = &j->plan->recipes;
	size_t i, k;

	for (i = 0; i < m->n_inputs; i++) {
		struct qvalue *v = &j->values[graph_value(j->g, m->inputs[i].name)];

		v->quantized = v->direct;
	}
	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];

		for (k = 0; k < n->n_out; k++) {
			size_t id = graph_value(j->g, n->out[k]);
			struct qvalue *v = &j->values[id];

			if (!*n->out[k] || v->from_int)
				continue; /* decided by the op whose activation this is */
			if (leaves_output(recipes, n)) {
				v->quantized = v->direct; /* for its readers only */
			} else if (job_quantizes(j, i)) {
				size_t out = job_output(j, i, k);
				struct qvalue *o = &j->values[out];

				o->quantized =
					op_needs_output(j->g, j->z->ops->v[i].rule, n->out[k]) || o->want;
				o->from_int = o->quantized;
				v->absorbed = out != id && o->quantized;
			} else if (job_moves(j, i) && j->values[graph_value(j->g, n->in[0])].quantized &&
				   v->want) {
				v->quantized = v->from_int = true;
				if (passes_on(j, i))
					v->root = j->values[graph_value(j->g, n->in[0])].root;
			} else {
				v->quantized = v->direct;
			}
		}
	}
}

static struct qpair *add_pair(struct job *j, size_t value, const struct qsetting *s)
{
	struct qpair **p = &j->values[value].pair;

	for (; *p; p = &(*p)->next)
		if (qsetting_equal(&(*p)->setting, s))
			return *p;
	*p = arena_alloc(j->arena, sizeof(**p));
	(*p)->setting = *s;
	return *p;
}

/* the first pair of that type comes before the others; if there is none, one of this setting */
static void put_first(struct job *j, size_t value, const struct qsetting *s)
{
	struct qpair **first = &j->values[value].pair, **p = first, *chosen;

	while (*p && (*p)->setting.dtype != s->dtype)
		p = &(*p)->next;
	chosen = *p ? *p : add_pair(j, value, s);
	*p = chosen->next;
	chosen->next = *first;
	*first = chosen;
}

/*
 * The first quantized reader's setting rules a value; others with another setting get their own pair. But the
 * runtime's integer ops read and write one type: a reader of another type than the maker's comes after those.
 */
static void choose_settings(struct job *j)
{
	const struct model *m = j->g->m;
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];

		for (k = 0; k < n->n_in && job_quantizes(j, i); k++)
			if (is_activation_input(m, j->z->ops->v[i].rule, n, k)) {
				struct qvalue *v = &j->values[graph_value(j->g, n->in[k])];

				add_pair(j, v->root, &j->plan->ops[i].act);
			}
	}
	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < m->nodes.v[i]->n_out && job_quantizes(j, i); k++) {
			size_t out = job_output(j, i, k);

			if (j->values[out].from_int)
				put_first(j, out, &j->plan->ops[i].act);
		}
}

static enum fettle_status compute_params(struct job *j, size_t value, struct qpair *p, struct err *err)
{
	const struct qsetting *s = &p->setting;
	const char *name = j->g->names[rearranged_from(j->g, value)];
	struct range r;

	if (!j->known->values || !statistics_range(j->known->values, name, s, &r))
		return fail(err, FETTLE_INVALID,
			    "cannot quantize value '%s': its range is not known, calibrate it", name);
	if (!isfinite(r.min) || !isfinite(r.max))
		return fail(err, FETTLE_INVALID,
			    "cannot quantize value '%s': range [%g, %g], need finite numbers",
			    j->g->names[value], (double)r.min, (double)r.max);
	p->q = qsetting_is_pow2(s) ? quant_params_pow2(r.min, r.max, s->dtype, s->scheme, false)
				   : quant_params(r.min, r.max, s->dtype, s->scheme, false);
	return FETTLE_OK;
}

bool absorbs_activation(const struct job *j, size_t value, const struct qpair *p)
{
	const struct node *n = graph_producer(j->g, j->g->names[value]);
	struct qlimits lim = quant_limits(p->setting.dtype, SCHEME_ASYM, false);
	float least = (float)(lim.lo - p->q.zero) * p->q.scale,
	      most = (float)(lim.hi - p->q.zero) * p->q.scale;
	double slack = 1e-6 * (most - least); /* rounding only */
	float lo, hi;

	if (!n || !op_cuts_off(n))
		return true;
	op_cut_bounds(j->z->base, n, &lo, &hi);
	return least >= lo - slack && most <= hi + slack;
}

/*
 * The runtime drops a Relu or Clip before a Q whose integers cannot express what it cuts off. Where they
 * can (symmetric settings), the op in front would not fuse: it gets a Q of its own, which cuts.
 */
static void split_unfusable(struct job *j)
{
	const struct model *m = j->g->m;
	size_t i;

	for (i = 0; i < m->nodes.n; i++) {
		size_t raw, out;
		struct qpair *p, *own;
		struct qlimits lim;
		float lo, hi;

		if (!job_quantizes(j, i) || m->nodes.v[i]->n_out != 1)
			continue;
		raw = graph_value(j->g, m->nodes.v[i]->out[0]);
		out = job_output(j, i, 0);
		p = j->values[j->values[out].root].pair;
		if (!j->values[raw].absorbed || absorbs_activation(j, out, p))
			continue;
		op_cut_bounds(j->z->base, graph_producer(j->g, j->g->names[out]), &lo, &hi);
		lim = quant_limits(p->setting.dtype, SCHEME_ASYM, false);
		lo = fmaxf(lo, (float)(lim.lo - p->q.zero) * p->q.scale);
		hi = fminf(hi, (float)(lim.hi - p->q.zero) * p->q.scale);
		own = add_pair(j, raw,
			       &(struct qsetting){ .dtype = p->setting.dtype, .scheme = SCHEME_ASYM });
		own->q = qsetting_is_pow2(&p->setting)
				 ? quant_params_pow2(lo, hi, p->setting.dtype, SCHEME_ASYM, false)
				 : quant_params(lo, hi, p->setting.dtype, SCHEME_ASYM, false);
		j->values[raw].absorbed = false;
		j->values[raw].quantized = j->values[raw].from_int = true;
		j->values[out].from_int = false; /* now made by a Relu in fp32 */
	}
}

void decide_pairs(struct job *j)
{
	size_t i;

	j->values = arena_alloc(j->arena, j->g->n * sizeof(*j->values));
	for (i = 0; i < j->g->n; i++)
		j->values[i].root = i;
	mark_readers(j);
	mark_quantized(j);
	choose_settings(j);
}

enum fettle_status decide(struct job *j, struct err *err)
{
	struct qpair *p;
	enum fettle_status st;
	size_t i;

	decide_pairs(j);
	for (i = 0; i < j->g->n; i++)
		for (p = j->values[i].pair; p; p = p->next) {
			st = compute_params(j, i, p, err);
			if (st)
				return st;
		}
	if (!j->plan->recipes.own_concat_scale)
		share_concats(j);
	split_unfusable(j);
	return FETTLE_OK;
}
