/* The ops that have a choice of modes and the values between them, with the prices that profiles give. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/modes_impl.h"

/* What it is worth to have all multiply-adds in integers, if that is no faster: a model that is a quarter of the size. */
#define WORTH 0.01
/* To have the least in integers, a few small ops rather than a large one: more than this share of one does not count. */
#define LEAST_PART 0.03
/* The share of the time that an op which sees an image must save: it gains little, and its error goes through all
 * that follows. */
#define IMAGE_WORTH 0.02
/* A plan that differs from one that was profiled in ops with this share of the time is as well known as if it had been profiled itself. */
#define WEIGHT_FLOOR 0.05

bool has_mode_choice(const struct lab *l, size_t node)
{
	const struct op *op = &l->s->ops.v[node];

	if (!op->rule || op->rule->kind == OP_TABLE) /* a table in integers is for its size */
		return false;
	if (op->rule->kind == OP_MOVE)
		return l->t->base.ops[node].mode == OP_STATIC;
	return tuning_param(l->t, node) != MAP_NONE;
}

static bool reads_activation(const struct lab *l, size_t reader, const char *value)
{
	const struct node *n = l->s->m->nodes.v[reader];
	size_t k;

	for (k = 0; k < n->n_in; k++)
		if (strcmp(n->in[k], value) == 0 &&
		    !is_activation_input(l->s->m, l->s->ops.v[reader].rule, n, k))
			return false;
	return true;
}

static double elements_of(const struct lab *l, const char *value)
{
	const struct tensor *t = subject_shape(l->s, value);

	return t ? (double)tensor_count(t) : 0;
}

static bool is_of_images(const struct lab *l, size_t node)
{
	return l->modes->blocked[node] || op_convolves(l->s->m->nodes.v[node]);
}

static struct mode_layout layout_of(const struct lab *l, size_t v)
{
	const struct graph_index *g = &l->s->g;
	const int by = g->producer[v];
	const struct tensor *shape = subject_shape(l->s, g->names[v]);
	struct mode_layout out = { .few_channels =
					   shape && shape->rank > 1 && has_few_channels(shape->dims[1]),
				   .made_in_blocks = by != NO_NODE && l->modes->blocked[by],
				   .image = by != NO_NODE && is_of_images(l, (size_t)by) };
	size_t i;

	for (i = g->first[v]; i < g->first[v + 1]; i++) {
		out.read_in_blocks |= l->modes->blocked[g->uses[i]];
		out.image |= is_of_images(l, g->uses[i]);
	}
	return out;
}

static void add_value(struct lab *l, struct modes *m, size_t v)
{
	const struct graph_index *g = &l->s->g;
	int by = g->producer[v];
	struct assign_value value = { .maker = by == NO_NODE ? ASSIGN_OUTSIDE : m->place[by],
				      .floats_read = g->output[v] };
	size_t i, first = m->readers.n;
	double n = elements_of(l, g->names[v]);

	for (i = g->first[v]; i < g->first[v + 1]; i++) {
		int at = m->place[g->uses[i]];

		if (at == value.maker && at != ASSIGN_OUTSIDE)
			return; /* between an op and the Relu that is part of it */
		if (at == ASSIGN_OUTSIDE || !reads_activation(l, g->uses[i], g->names[v]))
			value.floats_read = true;
		else
			VEC_PUSH(&m->readers, (size_t)at);
	}
	value.n_readers = m->readers.n - first;
	if (!value.n_readers && value.maker == ASSIGN_OUTSIDE)
		return;
	VEC_PUSH(&m->values, value);
	VEC_PUSH(&m->elements, n);
	VEC_PUSH(&m->layouts, layout_of(l, v));
	VEC_PUSH(&m->sums, is_summed(l, v));
	VEC_PUSH(&m->floats, makes_floats(l, v));
	VEC_PUSH(&m->names, v);
}

/* Ops with a choice, with the Relu or Clip that the runtime makes part of each; then what goes between them. */
void find_mode_ops(struct lab *l)
{
	struct modes *m = l->modes;
	const struct model *base = l->s->m;
	size_t i;

	m->place = xcalloc(base->nodes.n + 1, sizeof(*m->place));
	m->node = xcalloc(base->nodes.n + 1, sizeof(*m->node));
	for (i = 0; i < base->nodes.n; i++)
		m->place[i] = ASSIGN_OUTSIDE;
	for (i = 0; i < base->nodes.n; i++) {
		const struct node *n = base->nodes.v[i], *act;

		if (!has_mode_choice(l, i))
			continue;
		m->node[m->n_ops] = i;
		m->place[i] = (int)m->n_ops++;
		act = n->n_out ? fused_activation(&l->s->g, n->out[0]) : NULL;
		if (act && l->s->ops.v[i].rule->kind != OP_MOVE)
			m->place[l->s->g.producer[graph_value(&l->s->g, act->out[0])]] = m->place[i];
	}
	for (i = 0; i < l->s->g.n; i++)
		if (!l->s->g.constant[i])
			add_value(l, m, i);
}

enum assign_mode mode_in(const struct lab *l, const struct plan *p, size_t param)
{
	enum option_mode o = l->t->space.v[param].options[p->choice[param]].mode;

	return o == OPTION_FP32 ? ASSIGN_FP32 : o == OPTION_DYNAMIC ? ASSIGN_DYNAMIC : ASSIGN_STATIC;
}

static bool is_mode(enum option_mode o, enum assign_mode m)
{
	return m == ASSIGN_FP32      ? o == OPTION_FP32
	       : m == ASSIGN_DYNAMIC ? o == OPTION_DYNAMIC
				     : o == OPTION_STATIC || o == OPTION_WIDE;
}

/* The option that puts an op in a mode: as `from` has it, if it has it so; NO_OPTION: none. */
unsigned mode_option(const struct lab *l, size_t param, const struct plan *from, bool within,
		     enum assign_mode mode)
{
	static const enum option_mode options[] = {
		[ASSIGN_DYNAMIC] = OPTION_DYNAMIC, [ASSIGN_STATIC] = OPTION_STATIC
	};
	const struct param *p = &l->t->space.v[param];

	if (is_mode(p->options[from->choice[param]].mode, mode))
		return from->choice[param];
	if (mode == ASSIGN_FP32)
		return p->fallback;
	if (within || (mode == ASSIGN_DYNAMIC &&
		       (l->modes->few_dynamic || l->s->ops.v[l->t->node[param]].rule->dynamic_slow)))
		return NO_OPTION;
	return param_option_in(p, options[mode]);
}

/* What it is worth to have multiply-adds in integers: seconds for all of them; of one op at most this share counts. */
struct worth {
	double all, most;
};

/* A convolution of what the model is given, as images with their few channels. */
static bool sees_image(const struct lab *l, size_t node)
{
	const struct node *n = l->s->m->nodes.v[node];
	const struct init *w = op_convolves(n) && n->n_in > 1 ? model_init(l->s->m, n->in[1]) : NULL;
	const size_t v = w ? graph_value(&l->s->g, n->in[0]) : MAP_NONE;

	return v != MAP_NONE && l->s->g.producer[v] == NO_NODE && w->t.rank > 2 &&
	       has_few_channels(w->t.dims[1]);
}

static double worth_of(const struct lab *l, size_t node, struct worth w)
{
	const struct op_list *ops = &l->s->ops;
	const double share = ops->total_macs > 0 ? ops->v[node].macs / ops->total_macs : 0;

	return w.all * fmin(share, w.most) - (sees_image(l, node) ? IMAGE_WORTH * l->modes->fp32.total : 0);
}

static bool can_be_in(const struct lab *l, size_t node, const struct plan *from, bool within,
		      enum assign_mode mode)
{
	size_t param = tuning_param(l->t, node);

	return param == MAP_NONE ? mode != ASSIGN_DYNAMIC
				 : mode_option(l, param, from, within, mode) != NO_OPTION;
}

/* the seconds of each op, with those of the Relu that is part of it */
static void price_ops(const struct lab *l, const struct modes *m, const struct plan *from, bool within,
		      struct assign_op *ops)
{
	size_t i, k;

	for (i = 0; i < m->n_ops; i++)
		ops[i] = (struct assign_op){ { 0 } };
	for (i = 0; i < l->s->m->nodes.n; i++)
		for (k = 0; k < ASSIGN_MODES && m->place[i] >= 0; k++)
			ops[m->place[i]].seconds[k] += m->seconds[k][i];
	for (i = 0; i < m->n_ops; i++)
		for (k = 0; k < ASSIGN_MODES; k++)
			if (!can_be_in(l, m->node[i], from, within, (enum assign_mode)k))
				ops[i].seconds[k] = INFINITY;
}

/* A convolution in integers wants another layout than one in floats: out of the one, into the other. */
static double layout_price(const struct modes *m, size_t value, bool blocks, double n)
{
	const enum mode_conversion last = m->layouts.v[value].few_channels ? FEW_TO_LAST : TO_LAST;

	return (m->layouts.v[value].image ? line_at(&m->lines[last], n) : 0) +
	       (blocks ? line_at(&m->lines[TO_BLOCKS], n) : 0);
}

static void price_values(struct lab *l, double factor)
{
	struct modes *m = l->modes;
	size_t i, at = 0;

	for (i = 0; i < m->values.n; i++) {
		struct assign_value *v = &m->values.v[i];
		const struct mode_layout *layout = &m->layouts.v[i];
		const double n = m->elements.v[i] * (double)m->rows;

		v->readers = m->readers.v + at;
		at += v->n_readers;
		v->to_int = factor *
			    (line_at(&m->lines[TO_INT], n) + layout_price(m, i, layout->made_in_blocks, n));
		v->to_float = factor * (line_at(&m->lines[TO_FLOAT], n) +
					layout_price(m, i, layout->read_in_blocks, n));
		if (!(v->to_float > 0))
			v->to_float = v->to_int; /* none was seen */
		if (m->sums.v[i])
			v->to_float += line_at(&m->alone, n);
		if (m->floats.v[i])
			v->to_float = 0;
		v->to_float += out_of_blocks(l, m->names.v[i]);
		v->at_run_time = m->within[m->names.v[i]] ? 0 : line_at(&m->lines[AT_RUN_TIME], n);
	}
}

static void apply(const struct lab *l, const struct plan *from, bool within, const enum assign_mode *mode,
		  struct plan *out)
{
	const struct modes *m = l->modes;
	size_t i;

	plan_copy(out, from);
	for (i = 0; i < l->t->space.n_ops; i++) {
		int at = m->place[l->t->node[i]];
		unsigned o = at < 0 ? NO_OPTION : mode_option(l, i, from, within, mode[at]);

		if (o != NO_OPTION)
			out->choice[i] = (uint16_t)o;
	}
}

double mode_share(const struct lab *l, const struct plan *p)
{
	return lab_summary(l, p).low_share;
}

/* Plans with less in integers are no success while others are. */
double least_share(const struct lab *l, const struct plan *from)
{
	return mode_share(l, from) < 2 * SLIGHT_SHARE ? 0 : SLIGHT_SHARE;
}

/* What is assigned, and to what end. */
struct mode_task {
	const struct lab *l;
	const struct plan *from;
	bool within;
	double least;         /* share of the multiply-adds */
	struct assign_op *as; /* prices with what being in integers is worth */
	enum assign_mode *mode;
};

/* The best assignment where being in integers is worth so much; has it enough in integers? */
static bool assign(const struct mode_task *t, const struct assign_problem *p, struct worth worth,
		   struct plan *out)
{
	struct assign_problem with_worth = *p;
	size_t i;

	for (i = 0; i < p->n_ops; i++) {
		t->as[i] = p->ops[i];
		t->as[i].seconds[ASSIGN_FP32] += worth_of(t->l, t->l->modes->node[i], worth);
	}
	with_worth.ops = t->as;
	assign_best(&with_worth, t->mode);
	apply(t->l, t->from, t->within, t->mode, out);
	return mode_share(t->l, out) >= t->least;
}

static struct assign_problem problem_of(const struct modes *m, const struct assign_op *ops)
{
	return (struct assign_problem){ ops, m->n_ops, m->values.v, m->values.n, m->pairs.v, m->pairs.n };
}

static struct mode_price price_of(const struct assign_problem *p, const enum assign_mode *mode)
{
	struct assign_problem apart = *p;
	double ops;

	apart.n_values = 0;
	ops = assign_cost(&apart, mode);
	return (struct mode_price){ ops, assign_cost(p, mode) - ops };
}

struct mode_price price_plan(struct lab *l, const struct plan *plan)
{
	const struct modes *m = l->modes;
	struct assign_op *ops = xcalloc(m->n_ops + 1, sizeof(*ops));
	struct assign_problem p = problem_of(m, ops);
	enum assign_mode *mode = xcalloc(m->n_ops + 1, sizeof(*mode));
	struct mode_price price;
	size_t i, k;

	price_values(l, m->factor);
	price_ops(l, m, plan, true, ops);
	for (i = 0; i < l->t->space.n_ops; i++)
		for (k = 0; k < ASSIGN_MODES && m->place[l->t->node[i]] >= 0; k++)
			if (!is_mode(l->t->space.v[i].options[plan->choice[i]].mode, (enum assign_mode)k))
				ops[m->place[l->t->node[i]]].seconds[k] = INFINITY;
	assign_best(&p, mode); /* of ops that only move data, what suits the others */
	price = price_of(&p, mode);
	free(mode);
	free(ops);
	return price;
}

double mode_seconds(struct lab *l, const struct plan *plan)
{
	const struct mode_price price = price_plan(l, plan);

	return price.ops + price.converting;
}

/* Seconds, in fp32, of the ops that two plans have in the same mode; NULL: all in fp32. */
static double in_common(const struct lab *l, const struct plan *p, const struct plan *q)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (mode_in(l, p, i) == (q ? mode_in(l, q, i) : ASSIGN_FP32))
			sum += l->modes->fp32.seconds[l->t->node[i]];
	return sum;
}

/* How much a profile says about a plan: the less, the more of the time is in ops that have other modes there. */
static double weight_of(double all, double common)
{
	const double other = 1 - common / all + WEIGHT_FLOOR;

	return 1 / (other * other);
}

/*
 * From each plan that was profiled, by the difference of their prices; most of all from those that differ from it in few ops. What the
 * modes of ops do to others, which have no choice, is not in the prices.
 */
double mode_predicted(struct lab *l, const struct plan *p)
{
	const struct modes *m = l->modes;
	const double seconds = mode_seconds(l, p), all = in_common(l, p, p);
	double weight, sum, fp32 = 0;
	size_t i;

	for (i = 0; i < l->s->m->nodes.n; i++)
		fp32 += m->place[i] >= 0 ? m->fp32.seconds[i] : 0;
	/* what has no choice takes some time, however noisy the profile */
	fp32 = fmax(m->fp32.total - fp32, 0) + seconds;
	if (!(all > 0))
		return fp32;
	weight = weight_of(all, in_common(l, p, NULL));
	sum = weight * fp32;
	for (i = 0; i < m->seen.n; i++) {
		const struct profiled *q = &m->seen.v[i];
		const double w = weight_of(all, in_common(l, p, &q->plan));

		weight += w;
		sum += w * (fmax(q->p.total - mode_seconds(l, &q->plan), 0) + seconds);
	}
	return sum / weight;
}

/* If the fastest has next to nothing in integers, being so is made worth more: no more than it takes. For the least, less. */
struct mode_price solve_modes(struct lab *l, const struct plan *from, bool within, struct mode_wish wish,
			      struct plan *out)
{
	enum { DOUBLINGS = 12, HALVINGS = 8 };
	struct modes *m = l->modes;
	struct assign_op *ops = xcalloc(m->n_ops + 1, sizeof(*ops));
	struct assign_problem p = problem_of(m, ops);
	struct mode_task t = { .l = l,
			       .from = from,
			       .within = within,
			       .least = least_share(l, from),
			       .as = xcalloc(m->n_ops + 1, sizeof(*t.as)),
			       .mode = xcalloc(m->n_ops + 1, sizeof(*t.mode)) };
	struct worth worth = { WORTH * m->fp32.total, wish.least ? LEAST_PART : 1 };
	double low = wish.least ? -4 * m->fp32.total : worth.all;
	struct mode_price price;
	size_t k;

	price_values(l, wish.dearer * m->factor);
	price_ops(l, m, from, within, ops);
	for (k = 0; k < DOUBLINGS && !assign(&t, &p, worth, out); k++) {
		low = worth.all;
		worth.all *= 2;
	}
	for (k = 0; k < HALVINGS && low < worth.all; k++) {
		struct worth middle = { (low + worth.all) / 2, worth.most };

		*(assign(&t, &p, middle, out) ? &worth.all : &low) = middle.all;
	}
	if (low < worth.all)
		assign(&t, &p, worth, out);
	price_values(l, m->factor);
	price = price_of(&p, t.mode);
	free(ops);
	free(t.as);
	free(t.mode);
	return price;
}

void solve_erring(struct lab *l, const struct plan *from, const double *errors, double price,
		  struct plan *out)
{
	const struct modes *m = l->modes;
	struct assign_op *ops = xcalloc(m->n_ops + 1, sizeof(*ops));
	const struct assign_problem problem = problem_of(m, ops);
	enum assign_mode *mode = xcalloc(m->n_ops + 1, sizeof(*mode));
	size_t i;

	price_values(l, m->factor);
	price_ops(l, m, from, true, ops);
	for (i = 0; i < l->t->space.n_ops; i++) {
		const int at = m->place[l->t->node[i]];

		if (at < 0)
			continue;
		ops[at].seconds[ASSIGN_STATIC] += price * errors[i];
		ops[at].seconds[ASSIGN_DYNAMIC] += price * errors[i];
	}
	assign_best(&problem, mode);
	apply(l, from, true, mode, out);
	free(mode);
	free(ops);
}
