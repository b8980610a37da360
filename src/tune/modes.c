#include "tune/modes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "quantize/precision.h"
#include "runtime/profile.h"
#include "tune/assign.h"

enum {
	RUNS = 20,  /* of a profile, at most */
	ROUNDS = 3, /* assignments that are profiled, at most: each corrects the next */
};
/* Seconds for the runs of a profile: a share of an evaluation, and more than a small model's noise. */
#define PROFILE_SHARE 0.05
#define PROFILE_SECONDS 0.02
/* What it is worth to have all multiply-adds in integers, if that is no faster: a model that is a quarter of the size. */
#define WORTH 0.01

/* How long it takes to convert a value: a straight line through what profiles have shown, by least squares. */
struct line {
	double n, x, y, xx, xy;
};

static void line_add(struct line *l, double x, double y)
{
	l->n += 1;
	l->x += x;
	l->y += y;
	l->xx += x * x;
	l->xy += x * y;
}

static double line_at(const struct line *l, double x)
{
	double spread = l->n * l->xx - l->x * l->x, slope, start;

	if (!(l->n > 0) || !(l->x > 0))
		return 0;
	slope = spread > 1e-9 * l->n * l->xx ? (l->n * l->xy - l->x * l->y) / spread : l->y / l->x;
	start = (l->y - slope * l->x) / l->n;
	if (slope < 0 || start < 0) { /* no such thing: through the origin, then */
		slope = l->xy / l->xx;
		start = 0;
	}
	return start + slope * x;
}

/* What conversions are, as nodes of the runtime. */
enum { TO_INT, TO_FLOAT, AT_RUN_TIME, LAYOUT, CONVERSIONS };

static int conversion_of(const char *op)
{
	static const struct {
		const char *op;
		int is;
	} known[] = {
		{ "QuantizeLinear", TO_INT },
		{ "DequantizeLinear", TO_FLOAT },
		{ "DynamicQuantizeLinear", AT_RUN_TIME },
		{ "Transpose", LAYOUT }, /* those that are no op's: convolutions in integers want channels last, */
		{ "ReorderInput", LAYOUT }, /* in floats they want them in blocks */
		{ "ReorderOutput", LAYOUT }
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].op, op) == 0)
			return known[i].is;
	return CONVERSIONS;
}

/* A plan that was profiled. */
struct profiled {
	struct plan plan;
	double seconds;
};

struct modes {
	double *seconds[ASSIGN_MODES]; /* per node of the base */
	struct line lines[CONVERSIONS];
	double factor;      /* what conversions took, over what the lines say */
	double fp32, other; /* seconds of the fp32 model, and of its nodes that have no choice */
	size_t rows;        /* samples per run */
	/* the problem: which node is which op of it, and what it reads and makes */
	int *place;
	size_t *node, n_ops;
	VEC(struct assign_value) values;
	VEC(size_t) readers;
	VEC(double) elements; /* per value */
	VEC(bool) images;     /* per value: convolutions lay it out as they like */
	VEC(struct profiled) seen;
};

void modes_free(struct modes *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < ASSIGN_MODES; i++)
		free(m->seconds[i]);
	for (i = 0; i < m->seen.n; i++)
		plan_release(&m->seen.v[i].plan);
	free(m->place);
	free(m->node);
	VEC_RELEASE(&m->values);
	VEC_RELEASE(&m->readers);
	VEC_RELEASE(&m->elements);
	VEC_RELEASE(&m->images);
	VEC_RELEASE(&m->seen);
	free(m);
}

/* ---- what profiles say ---- */

struct profile_of {
	const struct lab *l;
	const struct graph_index
		*g;      /* of the model that is run: its values have the names that its nodes have made */
	double *seconds; /* per node of the base */
	double total, converting;
	struct line *lines;
};

/* The convolution that the runtime names after what it was fused with: the sum, the Relu. */
static size_t fused_into(const struct profile_of *p, size_t op, int depth)
{
	const struct graph_index *g = &p->l->s->g;
	const struct node *n = g->m->nodes.v[op];
	size_t k, v, found;

	if (op_convolves(n))
		return op;
	for (k = 0; k < n->n_in && depth; k++) {
		v = graph_value(g, n->in[k]);
		if (v == MAP_NONE || g->producer[v] == NO_NODE)
			continue;
		found = fused_into(p, (size_t)g->producer[v], depth - 1);
		if (found != MAP_NONE && !(p->seconds[found] > 0))
			return found;
	}
	return MAP_NONE;
}

/* The op of the base that a node of the runtime stands for; MAP_NONE: none. */
static size_t op_of(const struct profile_of *p, const char *node, const char *type)
{
	static const char blocked[] = "_nchwc"; /* such a node is named after its output */
	const char *at = node, *end = strstr(node, blocked);
	size_t op, v, fused;
	char *value;

	if (next_mark(&at, &op))
		return op;
	if (!end)
		return MAP_NONE;
	value = xstrfmt("%.*s", (int)(end - node), node);
	v = graph_value(p->g, value);
	at = v == MAP_NONE || p->g->producer[v] == NO_NODE ? "" : p->g->m->nodes.v[p->g->producer[v]]->name;
	free(value);
	if (!next_mark(&at, &op))
		return MAP_NONE;
	fused = strcmp(type, "Conv") == 0 ? fused_into(p, op, 4) : op;
	return fused == MAP_NONE ? op : fused;
}

static void take_node(void *self, const char *node, const char *type, double seconds, const void *shapes)
{
	struct profile_of *p = self;
	size_t op = op_of(p, node, type);
	int conversion = conversion_of(type);

	p->total += seconds;
	if (op != MAP_NONE && conversion != TO_INT && conversion != TO_FLOAT && conversion != AT_RUN_TIME) {
		p->seconds[op] += seconds;
	} else if (conversion != CONVERSIONS) {
		line_add(&p->lines[conversion], profile_elements(shapes), seconds);
		p->converting += seconds;
	}
}

static enum fettle_status profile(struct lab *l, struct model *m, struct profile_of *out, struct err *err)
{
	struct profile_options o = { .session = { .threads = l->o.threads, .level = l->o.level },
				     .batch = 1,
				     .runs = RUNS,
				     .seconds = fmax(PROFILE_SHARE * l->pass_seconds, PROFILE_SECONDS) };
	struct model *marked = marked_model(m, &l->s->ops);
	struct feed_batch b = FEED_BATCH_INIT;
	struct graph_index g;
	enum fettle_status st = l->one ? feed_read(l->one, 0, &b, err) : FETTLE_OK;

	graph_index_init(&g, marked);
	o.inputs = l->one ? b.inputs : NULL;
	l->modes->rows = l->one && b.n ? b.n : 1;
	out->l = l;
	out->g = &g;
	out->seconds = xcalloc(l->s->ops.n + 1, sizeof(*out->seconds));
	out->lines = l->modes->lines;
	if (!st)
		st = profile_model(l->rt, marked, NULL, &o, take_node, out, err);
	feed_batch_release(&b);
	graph_index_release(&g);
	model_free(marked);
	return st;
}

/* ---- the problem ---- */

static bool has_choice(const struct lab *l, size_t node)
{
	const struct op *op = &l->s->ops.v[node];
	size_t i;

	if (!op->rule || op->rule->kind == OP_TABLE) /* a table in integers is for its size */
		return false;
	if (op->rule->kind == OP_MOVE)
		return l->t->base.ops[node].mode == OP_STATIC;
	for (i = 0; i < l->t->space.n_ops; i++)
		if (l->t->node[i] == node)
			return true;
	return false;
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

static double elements_of(const struct lab *l, const char *value, bool *image)
{
	const struct tensor *t = shapes_find(&l->s->shapes, value);

	*image = t && t->rank >= 4;
	return t ? (double)tensor_count(t) : 0;
}

static void add_value(struct lab *l, struct modes *m, size_t v)
{
	const struct graph_index *g = &l->s->g;
	int by = g->producer[v];
	struct assign_value value = { .maker = by == NO_NODE ? ASSIGN_OUTSIDE : m->place[by],
				      .floats_read = g->output[v] };
	size_t i, first = m->readers.n;
	bool image;
	double n = elements_of(l, g->names[v], &image);

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
	VEC_PUSH(&m->images, image);
}

/* Ops with a choice, with the Relu or Clip that the runtime makes part of each; then what goes between them. */
static void find_ops(struct lab *l, struct modes *m)
{
	const struct model *base = l->s->m;
	size_t i;

	m->place = xcalloc(base->nodes.n + 1, sizeof(*m->place));
	m->node = xcalloc(base->nodes.n + 1, sizeof(*m->node));
	for (i = 0; i < base->nodes.n; i++)
		m->place[i] = ASSIGN_OUTSIDE;
	for (i = 0; i < base->nodes.n; i++) {
		const struct node *n = base->nodes.v[i], *act;

		if (!has_choice(l, i))
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

/* the place of a node's parameter in the space; MAP_NONE: it has none */
static size_t param_of(const struct lab *l, size_t node)
{
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (l->t->node[i] == node)
			return i;
	return MAP_NONE;
}

static bool is_mode(enum option_mode o, enum assign_mode m)
{
	return m == ASSIGN_FP32      ? o == OPTION_FP32
	       : m == ASSIGN_DYNAMIC ? o == OPTION_DYNAMIC
				     : o == OPTION_STATIC || o == OPTION_WIDE;
}

/* The option that puts an op in a mode: as `from` has it, if it has it so; NO_OPTION: none. */
static unsigned option_for(const struct lab *l, size_t param, const struct plan *from, bool within,
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
	if (within || (mode == ASSIGN_DYNAMIC && l->s->ops.v[l->t->node[param]].rule->dynamic_slow))
		return NO_OPTION;
	return param_option_in(p, options[mode]);
}

/* the seconds of a node and of the Relu that is part of it */
static double seconds_of(const struct lab *l, const struct modes *m, size_t op, enum assign_mode mode)
{
	double sum = 0;
	size_t i;

	for (i = m->node[op]; i < l->s->m->nodes.n; i++)
		if (m->place[i] == (int)op)
			sum += m->seconds[mode][i];
	return sum;
}

static void price_ops(const struct lab *l, const struct modes *m, const struct plan *from, bool within,
		      double worth, struct assign_op *ops)
{
	size_t i, k;

	for (i = 0; i < m->n_ops; i++) {
		size_t param = param_of(l, m->node[i]);

		for (k = 0; k < ASSIGN_MODES; k++)
			ops[i].seconds[k] =
				param == MAP_NONE
					? (k == ASSIGN_DYNAMIC ? INFINITY
							       : seconds_of(l, m, i, (enum assign_mode)k))
				: option_for(l, param, from, within, (enum assign_mode)k) == NO_OPTION
					? INFINITY
					: seconds_of(l, m, i, (enum assign_mode)k);
		ops[i].seconds[ASSIGN_FP32] +=
			l->s->ops.total_macs > 0 ? worth * l->s->ops.v[m->node[i]].macs / l->s->ops.total_macs
						 : 0;
	}
}

/* A convolution in integers wants another layout than one in floats: out of the one, into the other. */
static void price_values(struct modes *m)
{
	size_t i, at = 0;

	for (i = 0; i < m->values.n; i++) {
		struct assign_value *v = &m->values.v[i];
		double n = m->elements.v[i] * (double)m->rows,
		       layout = m->images.v[i] ? 2 * line_at(&m->lines[LAYOUT], n) : 0;

		v->readers = m->readers.v + at;
		at += v->n_readers;
		v->to_int = m->factor * (line_at(&m->lines[TO_INT], n) + layout);
		v->to_float = m->factor * (line_at(&m->lines[TO_FLOAT], n) + layout);
		if (!(v->to_float > 0))
			v->to_float = v->to_int; /* none was seen */
		v->at_run_time = line_at(&m->lines[AT_RUN_TIME], n);
	}
}

/* ---- rounds ---- */

static bool was_profiled(const struct lab *l, const struct plan *p)
{
	size_t i;

	for (i = 0; i < l->modes->seen.n; i++)
		if (plan_equal(&l->modes->seen.v[i].plan, p, &l->t->space))
			return true;
	return false;
}

/* Profiles a plan; what each of its ops took in the mode it has counts from here on. */
static enum fettle_status profile_plan(struct lab *l, const struct plan *p, double predicted_converting,
				       struct err *err)
{
	struct modes *m = l->modes;
	struct profile_of now = { .total = 0 };
	struct profiled seen = { PLAN_INIT, 0 };
	struct model *model;
	enum fettle_status st = lab_model(l, p, WEIGHTS_ANY, &model, err);
	size_t i;

	if (!st)
		st = profile(l, model, &now, err);
	for (i = 0; i < l->t->space.n_ops && !st; i++) {
		enum option_mode o = l->t->space.v[i].options[p->choice[i]].mode;
		size_t node = l->t->node[i], k;
		enum assign_mode mode = o == OPTION_FP32      ? ASSIGN_FP32
					: o == OPTION_DYNAMIC ? ASSIGN_DYNAMIC
							      : ASSIGN_STATIC;

		for (k = 0; k < l->s->m->nodes.n; k++)
			if (k == node || (m->place[node] >= 0 && m->place[k] == m->place[node]))
				m->seconds[mode][k] = now.seconds[k];
	}
	for (i = 0; i < l->s->m->nodes.n && !st; i++)
		if (m->place[i] >= 0 && param_of(l, m->node[m->place[i]]) == MAP_NONE && now.seconds[i] > 0 &&
		    !m->seen.n)
			m->seconds[ASSIGN_STATIC][i] = now.seconds[i];
	if (!st && predicted_converting > 0)
		m->factor *= sqrt(fmin(fmax(now.converting / predicted_converting, 0.1), 10));
	if (!st) {
		plan_copy(&seen.plan, p);
		seen.seconds = now.total;
		VEC_PUSH(&m->seen, seen);
	}
	free(now.seconds);
	return st;
}

/* all ops in one mode, as far as they can be */
static void all_in(const struct lab *l, const struct plan *from, enum assign_mode mode, struct plan *out)
{
	size_t i;

	plan_copy(out, from);
	for (i = 0; i < l->t->space.n_ops; i++) {
		unsigned o = option_for(l, i, from, false, mode);

		if (o == NO_OPTION && has_choice(l, l->t->node[i]))
			o = l->t->space.v[i].fallback;
		if (o != NO_OPTION)
			out->choice[i] = (uint16_t)o;
	}
}

static enum fettle_status measure_modes(struct lab *l, const struct plan *from, struct err *err)
{
	struct modes *m = l->modes = xcalloc(1, sizeof(*m));
	struct profile_of fp32 = { .total = 0 };
	struct plan p = PLAN_INIT;
	enum fettle_status st;
	size_t i;

	m->factor = 1;
	for (i = 0; i < ASSIGN_MODES; i++)
		m->seconds[i] = xcalloc(l->s->m->nodes.n + 1, sizeof(double));
	find_ops(l, m);
	st = profile(l, l->s->m, &fp32, err);
	m->fp32 = m->other = fp32.total;
	for (i = 0; i < l->s->m->nodes.n && !st; i++) {
		m->seconds[ASSIGN_FP32][i] = m->seconds[ASSIGN_STATIC][i] = fp32.seconds[i];
		if (m->place[i] >= 0)
			m->other -= fp32.seconds[i];
	}
	free(fp32.seconds);
	all_in(l, from, ASSIGN_STATIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space))
		st = profile_plan(l, &p, 0, err);
	all_in(l, from, ASSIGN_DYNAMIC, &p);
	if (!st && plan_n_quantized(&p, &l->t->space) && !was_profiled(l, &p))
		st = profile_plan(l, &p, 0, err);
	plan_release(&p);
	return st;
}

static void apply(const struct lab *l, const struct plan *from, bool within, const enum assign_mode *mode,
		  struct plan *out)
{
	const struct modes *m = l->modes;
	size_t i;

	plan_copy(out, from);
	for (i = 0; i < l->t->space.n_ops; i++) {
		int at = m->place[l->t->node[i]];
		unsigned o = at < 0 ? NO_OPTION : option_for(l, i, from, within, mode[at]);

		if (o != NO_OPTION)
			out->choice[i] = (uint16_t)o;
	}
}

static double share_of(const struct lab *l, const struct plan *p)
{
	return lab_summary(l, p).low_share;
}

/* Plans with less in integers are no success while others are. */
static double least_share(const struct lab *l, const struct plan *from)
{
	return share_of(l, from) < 2 * SLIGHT_SHARE ? 0 : SLIGHT_SHARE;
}

/* The assignment that is predicted to be fastest. If that is next to nothing in integers: the fastest with more. */
static double solve(struct lab *l, const struct plan *from, bool within, struct plan *out)
{
	enum { STEPS = 12 };
	struct modes *m = l->modes;
	struct assign_problem p = { xcalloc(m->n_ops + 1, sizeof(*p.ops)), m->n_ops, m->values.v,
				    m->values.n };
	enum assign_mode *mode = xcalloc(m->n_ops + 1, sizeof(*mode));
	double worth = WORTH * m->fp32, ops = 0, converting;
	size_t i, k;

	price_values(m);
	for (k = 0; k < STEPS; k++, worth *= 2) {
		price_ops(l, m, from, within, worth, (struct assign_op *)p.ops);
		assign_best(&p, mode);
		apply(l, from, within, mode, out);
		if (share_of(l, out) >= least_share(l, from))
			break;
	}
	for (i = 0; i < m->n_ops; i++)
		ops += p.ops[i].seconds[mode[i]];
	converting = assign_cost(&p, mode) - ops;
	free((void *)p.ops);
	free(mode);
	return converting;
}

enum fettle_status lab_fastest(void *self, const struct plan *from, bool within, struct plan *out,
			       double *predicted, struct err *err)
{
	struct lab *l = self;
	struct lab_times before = l->times;
	const double *w = l->o.weights, start = clock_now();
	struct plan p = PLAN_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, first, round;
	double least = INFINITY;

	*predicted = NAN;
	plan_copy(out, from);
	if (!(w[LAB_LATENCY] > 0) && (w[LAB_SIZE] > 0 || w[LAB_FOOTPRINT] > 0))
		return FETTLE_OK;
	if (!l->modes)
		st = measure_modes(l, from, err);
	first = within && l->modes ? l->modes->seen.n : 0;
	for (round = 0; round < ROUNDS && !st; round++) {
		double converting = solve(l, from, within, &p);

		if (!plan_n_quantized(&p, &l->t->space) || was_profiled(l, &p))
			break;
		st = profile_plan(l, &p, converting, err);
	}
	for (i = first; i < l->modes->seen.n && !st; i++) {
		const struct profiled *seen = &l->modes->seen.v[i];

		if (share_of(l, &seen->plan) < least_share(l, from))
			continue;
		if (seen->seconds < least) {
			least = seen->seconds;
			plan_copy(out, &seen->plan);
			*predicted = seen->seconds / l->modes->fp32;
		}
	}
	plan_release(&p);
	l->times = before;
	l->times.rank += clock_now() - start;
	return st;
}
