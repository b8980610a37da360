#include "quantize/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"

bool is_matrix_op(const struct model *m, const struct node *n)
{
	return is_linear(m, n) && model_init(m, n->in[1])->t.rank == 2;
}

void rewrite_begin(struct rewrite *w, struct subject *base)
{
	const char **values = NULL;
	size_t n = quantizer_values(&base->g, &base->ops, NULL, &values), i;

	memset(w, 0, sizeof(*w));
	w->base = base;
	w->m = model_derive(base->m);
	channels_find(&w->c, base);
	w->factor = xcalloc(w->c.n, sizeof(*w->factor));
	w->shift = xcalloc(base->g.n, sizeof(*w->shift));
	w->quantized = xcalloc(base->g.n, sizeof(*w->quantized));
	for (i = 0; i < n; i++)
		w->quantized[graph_value(&base->g, values[i])] = true;
	free(values);
}

void rewrite_release(struct rewrite *w)
{
	size_t i;

	for (i = 0; i < w->c.n; i++)
		free(w->factor[i]);
	for (i = 0; i < w->base->g.n; i++)
		free(w->shift[i]);
	free(w->factor);
	free(w->shift);
	free(w->quantized);
	channel_means_free(w->seen);
	channels_release(&w->c);
	model_free(w->m);
	map_release(&w->owned);
	VEC_RELEASE(&w->insertions);
	str_release(&w->text);
}

/* the constant as m's own, to be written to; others that read it keep theirs */
static enum fettle_status own(struct rewrite *w, struct node *n, size_t k, struct tensor **out,
			      struct err *err)
{
	struct init *old = model_init(w->m, n->in[k]), *made;
	enum fettle_status st;
	struct tensor t;

	if (map_get(&w->owned, n->in[k]) == MAP_NONE) {
		st = model_weight(w->m, old, err);
		if (st)
			return st;
		t = old->t;
		t.data = arena_try(&w->m->arena, tensor_bytes(&t));
		if (!t.data)
			return fail(err, FETTLE_SYSTEM, "cannot scale weight '%s': not enough memory",
				    old->name);
		memcpy(t.data, old->t.data, tensor_bytes(&t));
		made = model_add_init(w->m, model_fresh(w->m, old->name), &t);
		n->in[k] = made->name;
		map_set(&w->owned, made->name, 1);
	}
	*out = &model_init(w->m, n->in[k])->t;
	return FETTLE_OK;
}

enum fettle_status rewrite_weight(struct rewrite *w, size_t node, const struct tensor **out, struct err *err)
{
	struct init *init = model_init(w->m, w->m->nodes.v[node]->in[1]);
	enum fettle_status st = model_weight(w->m, init, err);

	*out = &init->t;
	return st;
}

/* multiplies (or divides by) one factor per channel all of a constant that has nothing but channels */
static enum fettle_status scale_vector(struct rewrite *w, struct node *n, size_t k, const double *factors,
				       bool divide, struct err *err)
{
	struct tensor *t;
	enum fettle_status st;
	size_t i;

	if (n->n_in <= k || !*n->in[k])
		return FETTLE_OK;
	st = own(w, n, k, &t, err);
	for (i = 0; !st && i < (size_t)tensor_count(t); i++) {
		float *x = (float *)t->data + i;

		*x = (float)(divide ? *x / factors[i] : *x * factors[i]);
	}
	return st;
}

/* a linear op's weight, on the side of its outputs, or (divided) of its inputs */
static enum fettle_status scale_weight(struct rewrite *w, struct node *n, const double *factors,
				       size_t repeat, bool inputs, struct err *err)
{
	struct tensor *t;
	enum fettle_status st = own(w, n, 1, &t, err);
	struct layout l;
	size_t g, a, b, k;
	float *x;

	if (st)
		return st;
	l = layout_of(n, t);
	x = t->data;
	for (g = 0; g < l.groups; g++)
		for (a = 0; a < l.first; a++)
			for (b = 0; b < l.second; b++) {
				bool first = l.inputs_first == inputs;
				size_t at = first ? g * l.first + a : g * l.second + b;
				double f = inputs ? 1 / factors[at / repeat] : factors[at];

				for (k = 0; k < l.inner; k++, x++)
					*x = (float)(*x * f);
			}
	return st;
}

/* a constant that is added along a lane; where it has one element for all channels it gets one for each */
static enum fettle_status scale_added(struct rewrite *w, struct node *n, const struct part *p,
				      const double *factors, struct err *err)
{
	const struct lane *l = &w->c.lanes[p->value];
	const size_t k = strcmp(n->in[0], w->base->g.names[p->value]) == 0,
		     length = rewrite_length(w, p->value);
	const int from_end = shapes_find(&w->base->shapes, w->base->g.names[p->value])->rank - l->axis;
	struct tensor *old, t;
	size_t inner = 1, i, count;
	enum fettle_status st = own(w, n, k, &old, err);
	int d;

	if (st)
		return st;
	t = *old;
	if (t.rank < from_end) {
		memmove(t.dims + from_end - t.rank, t.dims, (size_t)t.rank * sizeof(*t.dims));
		for (d = 0; d < from_end - t.rank; d++)
			t.dims[d] = 1;
		t.rank = from_end;
	}
	for (d = t.rank - from_end + 1; d < t.rank; d++)
		inner *= (size_t)t.dims[d];
	d = t.rank - from_end;
	old->rank = t.rank;
	memcpy(old->dims, t.dims, sizeof(t.dims));
	if (t.dims[d] == 1)
		t.dims[d] = (int64_t)length;
	count = (size_t)tensor_count(&t);
	t.data = arena_try(&w->m->arena, tensor_bytes(&t));
	if (!t.data)
		return fail(err, FETTLE_SYSTEM, "cannot scale constant '%s': not enough memory", n->in[k]);
	for (i = 0; i < count; i++) {
		size_t channel = i / inner % length;
		size_t from = old->dims[d] == 1 ? i / inner / length * inner + i % inner : i;

		((float *)t.data)[i] =
			(float)(((const float *)old->data)[from] * factors[channel / l->repeat]);
	}
	*old = t;
	return FETTLE_OK;
}

static void make_relu(struct node *n)
{
	n->op = "Relu";
	n->n_in = 1;
	node_drop_attr(n, "min");
	node_drop_attr(n, "max");
}

static enum fettle_status scale_part(struct rewrite *w, const struct part *p, const double *factors,
				     struct err *err)
{
	struct node *n = w->m->nodes.v[p->node];
	const bool makes = p->role == PART_MAKES;
	enum fettle_status st;

	if (p->role == PART_CLIPS) {
		make_relu(n);
		return FETTLE_OK;
	}
	if (p->role == PART_ADDS)
		return scale_added(w, n, p, factors, err);
	if (node_is(n, "Mul"))
		return scale_vector(w, n, model_init(w->m, n->in[1]) != NULL, factors, !makes, err);
	if (is_linear(w->m, n)) {
		st = scale_weight(w, n, factors, w->c.lanes[p->value].repeat, !makes, err);
		return st || !makes ? st : scale_vector(w, n, 2, factors, false, err);
	}
	/* a normalisation: gamma and beta; or gamma and, for the same result, the mean */
	st = scale_vector(w, n, 1, factors, !makes, err);
	return st ? st : scale_vector(w, n, makes ? 2 : 3, factors, false, err);
}

static void note(struct rewrite *w, const char *what, const double *x, size_t n, size_t value)
{
	size_t i;

	str_addf(&w->text, "%s %zu", what, n);
	for (i = 0; i < n; i++)
		str_addf(&w->text, " %a", x[i]);
	str_addf(&w->text, " %s\n", w->base->g.names[value]);
}

static const struct part *maker_of(const struct rewrite *w, size_t class)
{
	size_t i;

	for (i = 0; i < w->c.parts.n; i++)
		if (w->c.parts.v[i].class == class && w->c.parts.v[i].role == PART_MAKES)
			return &w->c.parts.v[i];
	return NULL;
}

static void scale_shifts(struct rewrite *w, size_t class, const double *factors)
{
	size_t i, k;

	for (i = 0; i < w->base->g.n; i++)
		for (k = 0; w->shift[i] && channels_class(&w->c, i) == class && k < w->c.size[class]; k++)
			w->shift[i][k] *= factors[k];
}

static void add_to_shift(struct rewrite *w, size_t value, const double *shift, size_t n)
{
	size_t i;

	if (!w->shift[value])
		w->shift[value] = xcalloc(n, sizeof(**w->shift));
	for (i = 0; i < n; i++)
		w->shift[value][i] += shift[i];
}

enum fettle_status rewrite_fold_into_makers(struct rewrite *w, size_t class, const double *factors,
					    struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < w->c.parts.n && !st; i++)
		if (w->c.parts.v[i].class == class && w->c.parts.v[i].role != PART_READS)
			st = scale_part(w, &w->c.parts.v[i], factors, err);
	return st;
}

enum fettle_status rewrite_fold(struct rewrite *w, size_t class, const double *factors, struct err *err)
{
	const size_t n = w->c.size[class];
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < w->c.parts.n && !st; i++)
		if (w->c.parts.v[i].class == class)
			st = scale_part(w, &w->c.parts.v[i], factors, err);
	if (st)
		return st;
	scale_shifts(w, class, factors);
	note(w, "fold", factors, n, maker_of(w, class)->value);
	if (!w->factor[class]) {
		w->factor[class] = xcalloc(n, sizeof(double));
		for (i = 0; i < n; i++)
			w->factor[class][i] = 1;
	}
	for (i = 0; i < n; i++)
		w->factor[class][i] *= factors[i];
	return FETTLE_OK;
}

enum fettle_status rewrite_insert(struct rewrite *w, size_t value, const double *factors, size_t n,
				  struct err *err)
{
	const struct graph_index *g = &w->base->g;
	struct insertion in = { .value = value,
				.scale = { .dtype = DT_F32, .rank = 1, .dims = { (int64_t)n } } };
	enum fettle_status st = FETTLE_OK;
	bool found = false;
	size_t i;

	for (i = 0; i < w->insertions.n; i++)
		if (w->insertions.v[i].value == value)
			return fail(err, FETTLE_INVALID, "cannot smooth value '%s' a second time",
				    g->names[value]);
	in.scale.data = arena_alloc(&w->m->arena, n * sizeof(float));
	for (i = 0; i < n; i++)
		((float *)in.scale.data)[i] = (float)factors[i];
	for (i = g->first[value]; i < g->first[value + 1] && !st; i++) {
		struct node *node = w->m->nodes.v[g->uses[i]];
		struct layout l;

		if (!is_matrix_op(w->m, node) || strcmp(node->in[0], g->names[value]) != 0)
			continue;
		l = layout_of(node, &model_init(w->m, node->in[1])->t);
		if (layout_inputs(&l) != n)
			return fail(err, FETTLE_INVALID, "cannot smooth value '%s': %zu factors, need %zu",
				    g->names[value], n, layout_inputs(&l));
		st = scale_weight(w, node, factors, 1, true, err);
		found = true;
	}
	if (!st && !found)
		st = fail(err, FETTLE_INVALID, "cannot smooth value '%s': no MatMul or Gemm reads it",
			  g->names[value]);
	if (st)
		return st;
	VEC_PUSH(&w->insertions, in);
	note(w, "insert", factors, n, value);
	return st;
}

static bool has_bias(const struct model *m, const struct node *n)
{
	return is_linear(m, n) && n->n_in > 2 && *n->in[2] && model_init(m, n->in[2]) &&
	       model_init(m, n->in[2])->t.dtype == DT_F32;
}

/* where there is padding, an output at the border sees less of its input */
static bool pads(const struct node *n)
{
	const char *automatic = node_str(n, "auto_pad");
	size_t count, i;
	const int64_t *v = node_ints(n, "pads", &count);

	for (i = 0; i < count; i++)
		if (v[i])
			return true;
	return automatic && strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0;
}

bool rewrite_can_shift(const struct rewrite *w, size_t value)
{
	const struct graph_index *g = &w->base->g;
	const struct model *m = w->base->m;
	const struct node *maker = graph_producer(g, g->names[value]),
			  *relu = graph_only_user(g, g->names[value]);
	size_t out, i;

	if (!maker || !has_bias(m, maker) || !relu || !node_is(relu, "Relu"))
		return false;
	out = graph_value(g, relu->out[0]);
	if (g->output[out] || g->first[out] == g->first[out + 1])
		return false;
	for (i = g->first[out]; i < g->first[out + 1]; i++) {
		const struct node *n = m->nodes.v[g->uses[i]];

		if (!has_bias(m, n) || op_layout(n) == LAYOUT_DECONV || pads(n) ||
		    strcmp(n->in[0], relu->out[0]) != 0)
			return false;
	}
	return channels_class(&w->c, value) != NO_CLASS;
}

/* bias_o += sum over input channels i and kernel positions of w_oi shift_i */
static enum fettle_status add_shift(struct rewrite *w, size_t node, const double *shift, struct err *err)
{
	struct node *n = w->m->nodes.v[node];
	const struct tensor *t;
	struct tensor *bias;
	enum fettle_status st = rewrite_weight(w, node, &t, err);
	struct layout l;
	const float *x;
	size_t g, a, b, k;

	if (!st)
		st = own(w, n, 2, &bias, err);
	if (st)
		return st;
	l = layout_of(n, t);
	x = t->data;
	for (g = 0; g < l.groups; g++)
		for (a = 0; a < l.first; a++)
			for (b = 0; b < l.second; b++) {
				size_t i = l.inputs_first ? g * l.first + a : g * l.second + b;
				size_t o = l.inputs_first ? g * l.second + b : g * l.first + a;
				double sum = 0;

				for (k = 0; k < l.inner; k++)
					sum += *x++;
				((float *)bias->data)[o] += (float)(sum * shift[i]);
			}
	return st;
}

enum fettle_status rewrite_shift(struct rewrite *w, size_t value, const double *shift, struct err *err)
{
	const struct graph_index *g = &w->base->g;
	const size_t n = w->c.size[channels_class(&w->c, value)];
	struct tensor *bias;
	enum fettle_status st;
	size_t out, i;

	if (!rewrite_can_shift(w, value))
		return fail(err, FETTLE_INVALID, "cannot absorb bias: value '%s' is not before such a Relu",
			    g->names[value]);
	st = own(w, w->m->nodes.v[g->producer[value]], 2, &bias, err);
	for (i = 0; i < n && !st; i++)
		((float *)bias->data)[i] -= (float)shift[i];
	out = graph_value(g, graph_only_user(g, g->names[value])->out[0]);
	for (i = g->first[out]; i < g->first[out + 1] && !st; i++)
		st = add_shift(w, g->uses[i], shift, err);
	add_to_shift(w, value, shift, n);
	add_to_shift(w, out, shift, n);
	note(w, "shift", shift, n, value);
	return st;
}

void rewrite_end(struct rewrite *w, size_t *node)
{
	const struct graph_index *g = &w->base->g;
	const struct model *base = w->base->m;
	struct node **nodes = xcalloc(base->nodes.n + w->insertions.n, sizeof(struct node *));
	size_t i, k, n = 0;

	for (i = 0; i < base->nodes.n; i++) {
		struct node *now = w->m->nodes.v[i];

		for (k = 0; k < w->insertions.n; k++) {
			struct insertion *in = &w->insertions.v[k];
			const char *name = g->names[in->value];
			struct node *mul;
			size_t u;

			if (!is_matrix_op(w->m, now) || strcmp(now->in[0], name) != 0)
				continue;
			/* the first of its readers: all of them are given what the Mul makes */
			mul = model_new_node(w->m, "Mul", "", arena_strfmt(&w->m->arena, "%s_smooth", name),
					     2, 1);
			mul->in[0] = name;
			mul->in[1] = model_add_init(w->m,
						    model_fresh(w->m, arena_strfmt(&w->m->arena,
										   "%s_smooth_scale", name)),
						    &in->scale)
					     ->name;
			mul->out[0] = model_fresh(w->m, arena_strfmt(&w->m->arena, "%s_smoothed", name));
			nodes[n++] = mul;
			in->made = mul->out[0];
			for (u = g->first[in->value]; u < g->first[in->value + 1]; u++) {
				struct node *reader = w->m->nodes.v[g->uses[u]];

				if (is_matrix_op(w->m, reader) && strcmp(reader->in[0], name) == 0)
					reader->in[0] = mul->out[0];
			}
		}
		node[i] = n;
		nodes[n++] = now;
	}
	model_set_nodes(w->m, nodes, n);
	free(nodes);
}

enum fettle_status rewrite_read(struct rewrite *w, const char *text, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	double *x = NULL;

	while (*text && !st) {
		const size_t kind = strcspn(text, " "), line = strcspn(text, "\n");
		const bool insert = str_starts(text, "insert "), shift = str_starts(text, "shift "),
			   fold = str_starts(text, "fold ");
		const char *end = text + line;
		char *p = (char *)(uintptr_t)text + kind, *name;
		size_t n = strtoull(p, &p, 10), i, value, class;
		bool scalable;

		if (n > line)
			n = line; /* it cannot hold as many */
		x = xcalloc(n + 1, sizeof(*x));
		for (i = 0; i < n && p < end; i++) {
			const char *before = p;

			x[i] = strtod(p, &p);
			if (p == before || !isfinite(x[i]) || (!shift && !(x[i] > 0)))
				break;
		}
		name = p < end ? xstrfmt("%.*s", (int)(end - p - 1), p + 1) : xstrdup("");
		value = graph_value(&w->base->g, name);
		class = value == MAP_NONE ? NO_CLASS : channels_class(&w->c, value);
		scalable = i == n && class != NO_CLASS && w->c.size[class] == n && !w->c.pinned[class];
		if (i == n && value != MAP_NONE && insert)
			st = rewrite_insert(w, value, x, n, err);
		else if (scalable && shift)
			st = rewrite_shift(w, value, x, err);
		else if (scalable && fold)
			st = rewrite_fold(w, class, x, err);
		else
			st = fail(err, FETTLE_INVALID,
				  "cannot rewrite model: value '%s', it has no such channels", name);
		free(name);
		free(x);
		text = end + (*end == '\n');
	}
	return st;
}
