#include "quantize/channels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"

static const struct init *float_const(const struct model *m, const struct node *n, size_t k)
{
	const struct init *w = k < n->n_in && *n->in[k] ? model_init(m, n->in[k]) : NULL;

	return w && w->t.dtype == DT_F32 && tensor_count(&w->t) > 0 ? w : NULL;
}

bool is_linear(const struct model *m, const struct node *n)
{
	const struct init *w = float_const(m, n, 1);

	if (!w || w->t.rank < 2 || op_input_turned(n))
		return false;
	return w->t.rank > 2 ? op_convolves(n) : op_layout(n) == LAYOUT_MATRIX;
}

/* is the bias of a linear op absent, or one constant per output? */
static bool has_plain_bias(const struct model *m, const struct node *n, size_t outputs)
{
	const struct init *b = float_const(m, n, 2);

	if (n->n_in < 3 || !*n->in[2])
		return true;
	return b && b->t.rank > 0 && b->t.dims[b->t.rank - 1] == tensor_count(&b->t) &&
	       (size_t)tensor_count(&b->t) == outputs;
}

/* the one axis of a constant that has more than one element, counted from the end; 0 if there is none such */
static int only_axis(const struct tensor *t)
{
	int d, found = 0;

	for (d = 0; d < t->rank; d++)
		if (t->dims[d] > 1) {
			if (found)
				return 0;
			found = t->rank - d;
		}
	return found;
}

size_t channels_root(const struct channels *c, size_t class)
{
	while (c->parent[class] != class)
		class = c->parent[class];
	return class;
}

size_t channels_class(const struct channels *c, size_t value)
{
	size_t class = c->lanes[value].class;

	return class == NO_CLASS ? NO_CLASS : channels_root(c, class);
}

static size_t value_of(const struct channels *c, const char *name)
{
	return *name ? graph_value(&c->s->g, name) : MAP_NONE;
}

static struct lane *lane_of(const struct channels *c, const char *name)
{
	size_t v = value_of(c, name);

	return v != MAP_NONE && c->lanes[v].class != NO_CLASS ? &c->lanes[v] : NULL;
}

static void pin(struct channels *c, const char *name)
{
	const struct lane *l = lane_of(c, name);

	if (l)
		c->pinned[channels_root(c, l->class)] = true;
}

static void pin_inputs(struct channels *c, const struct node *n)
{
	size_t k;

	for (k = 0; k < n->n_in; k++)
		pin(c, n->in[k]);
}

static void merge(struct channels *c, size_t a, size_t b)
{
	a = channels_root(c, a);
	b = channels_root(c, b);
	c->parent[b] = a;
	c->pinned[a] |= c->pinned[b];
}

static void add_part(struct channels *c, enum part_role role, size_t node, const char *value, float bound)
{
	size_t v = graph_value(&c->s->g, value);

	VEC_PUSH(&c->parts, ((struct part){ role, node, v, c->lanes[v].class, bound }));
}

static void new_class(struct channels *c, size_t node, const char *value, int axis, size_t size)
{
	size_t v = graph_value(&c->s->g, value);

	c->parent[c->n] = c->n;
	c->size[c->n] = size;
	c->pinned[c->n] = size < 2; /* one factor for a whole tensor changes nothing */
	c->lanes[v] = (struct lane){ c->n++, axis, 1 };
	add_part(c, PART_MAKES, node, value, 0);
}

static void pass_on(struct channels *c, const char *from, const char *to, int axis, size_t repeat)
{
	size_t v = value_of(c, to);

	if (v != MAP_NONE)
		c->lanes[v] = (struct lane){ lane_of(c, from)->class, axis, repeat };
}

static const struct tensor *shape_of(const struct channels *c, const char *name)
{
	return shapes_find(&c->s->shapes, name);
}

static void visit_linear(struct channels *c, size_t i, const struct node *n)
{
	const struct model *m = c->s->m;
	const struct tensor *w = &model_init(m, n->in[1])->t, *out = shape_of(c, n->out[0]);
	const struct layout layout = layout_of(n, w);
	const struct lane *in = lane_of(c, n->in[0]);

	if (in) {
		const struct tensor *x = shape_of(c, n->in[0]);
		int axis = op_channel_axis(n, x ? x->rank : 0);

		if (in->axis == axis &&
		    c->size[channels_root(c, in->class)] * in->repeat == layout_inputs(&layout))
			add_part(c, PART_READS, i, n->in[0], 0);
		else
			pin(c, n->in[0]);
	}
	if (out && has_plain_bias(m, n, layout_outputs(&layout)))
		new_class(c, i, n->out[0], op_channel_axis(n, out->rank), layout_outputs(&layout));
}

static bool visit_normalisation(struct channels *c, size_t i, const struct node *n)
{
	const struct model *m = c->s->m;
	const struct tensor *out = shape_of(c, n->out[0]);
	const struct init *scale = float_const(m, n, 1), *bias = float_const(m, n, 2);
	size_t k;

	if (node_is(n, "BatchNormalization")) {
		bool plain = n->n_in == 5 && scale;

		for (k = 2; k < 5 && plain; k++)
			plain = float_const(m, n, k) != NULL;
		if (!plain || node_int(n, "training_mode", 0))
			return false;
		if (lane_of(c, n->in[0])) {
			const struct lane *l = lane_of(c, n->in[0]);

			if (l->axis == 1 && l->repeat == 1)
				add_part(c, PART_READS, i, n->in[0], 0);
			else
				pin(c, n->in[0]);
		}
		new_class(c, i, n->out[0], 1, (size_t)tensor_count(&scale->t));
		return true;
	}
	if ((node_is(n, "LayerNormalization") || node_is(n, "RMSNormalization") ||
	     node_is(n, "SimplifiedLayerNormalization")) &&
	    scale && out && (n->n_in < 3 || !*n->in[2] || bias) && scale->t.rank == 1) {
		int64_t axis = node_int(n, "axis", -1);

		pin(c, n->in[0]);
		if (axis == -1 || axis == out->rank - 1)
			new_class(c, i, n->out[0], out->rank - 1, (size_t)tensor_count(&scale->t));
		return true;
	}
	return false;
}

/* A Mul with one constant per channel: a diagonal matrix. One with a scalar passes channels on. */
static bool visit_mul(struct channels *c, size_t i, const struct node *n)
{
	const struct tensor *out = shape_of(c, n->out[0]);
	const struct init *w;
	struct lane *l;
	size_t k;
	int axis;

	for (k = 0; k < 2 && !float_const(c->s->m, n, k); k++)
		;
	if (k == 2 || !out)
		return false;
	w = float_const(c->s->m, n, k);
	l = lane_of(c, n->in[!k]);
	if (tensor_count(&w->t) == 1 && l) {
		if (shape_of(c, n->in[!k])->rank != out->rank)
			return false;
		pass_on(c, n->in[!k], n->out[0], l->axis, l->repeat);
		return true;
	}
	axis = only_axis(&w->t);
	if (!axis || axis > out->rank || tensor_count(&w->t) != out->dims[out->rank - axis])
		return false;
	axis = out->rank - axis;
	if (l && l->axis == axis && l->repeat == 1 && shape_of(c, n->in[!k])->rank == out->rank)
		add_part(c, PART_READS, i, n->in[!k], 0);
	else
		pin(c, n->in[!k]);
	new_class(c, i, n->out[0], axis, (size_t)tensor_count(&w->t));
	return true;
}

/*
 * A Mul of two values, such as the gate of a transformer's block: one of them, with its channels along the last axis, takes the
 * factors, the other none. (Gates of images, with channels along another axis, are left alone.)
 */
static bool visit_gate(struct channels *c, const struct node *n)
{
	const struct tensor *out = shape_of(c, n->out[0]);
	size_t k;

	for (k = 2; k-- > 0 && out;) {
		const struct lane *l = lane_of(c, n->in[k]);
		const struct tensor *in = shape_of(c, n->in[k]);

		if (!l || c->pinned[channels_root(c, l->class)] || !in || in->rank != out->rank ||
		    l->axis != out->rank - 1 || in->dims[l->axis] != out->dims[l->axis] ||
		    strcmp(n->in[0], n->in[1]) == 0)
			continue;
		pin(c, n->in[!k]);
		pass_on(c, n->in[k], n->out[0], l->axis, l->repeat);
		return true;
	}
	return false;
}

/* Add or Sub: of two values with the same channels, or of a value and a constant */
static bool visit_add(struct channels *c, size_t i, const struct node *n)
{
	const struct tensor *out = shape_of(c, n->out[0]);
	struct lane *l[2];
	size_t k, v = 0;

	if (!out)
		return false;
	for (k = 0; k < 2; k++) {
		const struct tensor *in = shape_of(c, n->in[k]);

		l[k] = lane_of(c, n->in[k]);
		if (l[k] && in && in->rank == out->rank && in->dims[l[k]->axis] == out->dims[l[k]->axis])
			v = k;
		else if (l[k] || !float_const(c->s->m, n, k))
			return false;
	}
	if (l[0] && l[1]) {
		if (l[0]->axis != l[1]->axis || l[0]->repeat != l[1]->repeat ||
		    c->size[channels_root(c, l[0]->class)] != c->size[channels_root(c, l[1]->class)])
			return false;
		merge(c, l[0]->class, l[1]->class);
	} else if (l[v]) {
		add_part(c, PART_ADDS, i, n->in[v], 0);
	} else {
		return false;
	}
	pass_on(c, n->in[v], n->out[0], l[v]->axis, l[v]->repeat);
	return true;
}

static bool visit_clip(struct channels *c, size_t i, const struct node *n)
{
	float bound[2] = { node_float(n, "min", -INFINITY), node_float(n, "max", INFINITY) };
	const struct lane *l = lane_of(c, n->in[0]);
	size_t k;

	for (k = 1; k < n->n_in && k < 3; k++) {
		struct init *w = *n->in[k] ? model_init(c->s->m, n->in[k]) : NULL;

		if (!*n->in[k])
			continue;
		if (!w || model_weight(c->s->m, w, NULL) || tensor_count(&w->t) != 1)
			return false;
		bound[k - 1] = (float)tensor_get(&w->t, 0);
	}
	if (bound[0] != 0 || !l)
		return false;
	pass_on(c, n->in[0], n->out[0], l->axis, l->repeat);
	add_part(c, PART_CLIPS, i, n->out[0], bound[1]);
	return true;
}

/* Where the channels are after the dimensions have been cut otherwise; false if they are torn apart. */
static bool reshaped_lane(const struct tensor *in, const struct tensor *out, size_t channels, struct lane *l)
{
	size_t inner = l->repeat, after = 1;
	int d;

	for (d = l->axis + 1; d < in->rank; d++)
		inner *= (size_t)in->dims[d];
	for (d = out->rank; d--;) {
		size_t size = (size_t)out->dims[d];

		if (after <= inner && inner % after == 0 && size == channels * (inner / after)) {
			l->axis = d;
			l->repeat = inner / after;
			return true;
		}
		after *= size;
	}
	return false;
}

static bool visit_move(struct channels *c, const struct node *n)
{
	const struct tensor *in = shape_of(c, n->in[0]), *out = shape_of(c, n->out[0]);
	struct lane l = *lane_of(c, n->in[0]);
	const int64_t *perm;
	size_t count;
	int d;

	if (!in || !out)
		return false;
	if (op_channels(n) == CHANNELS_RESHAPED) {
		if (!reshaped_lane(in, out, c->size[channels_root(c, l.class)], &l))
			return false;
	} else if (op_channels(n) == CHANNELS_TURNED) {
		perm = node_ints(n, "perm", &count);
		for (d = 0; d < in->rank && (perm ? (int)perm[d] : in->rank - 1 - d) != l.axis; d++)
			;
		l.axis = d;
	} else {
		return false;
	}
	pass_on(c, n->in[0], n->out[0], l.axis, l.repeat);
	return true;
}

static bool pads_with_zero(struct model *m, const struct node *n)
{
	struct init *w = n->n_in > 2 && *n->in[2] ? model_init(m, n->in[2]) : NULL;

	if (n->n_in > 2 && *n->in[2])
		return w && !model_weight(m, w, NULL) && tensor_count(&w->t) == 1 &&
		       tensor_get(&w->t, 0) == 0;
	return node_float(n, "value", 0) == 0;
}

/* ops f with f(s x) = s f(x) for each channel and s > 0, which leave channels where they are */
static bool visit_channelwise(struct channels *c, const struct node *n)
{
	const struct tensor *in = shape_of(c, n->in[0]), *out = shape_of(c, n->out[0]);
	const struct lane *l = lane_of(c, n->in[0]);
	const char *mode = node_str(n, "mode");
	bool same = in && out && in->rank == out->rank && in->dims[l->axis] == out->dims[l->axis];

	if (!same || (n->n_out > 1 && *n->out[1]))
		return false;
	if (op_channels(n) != CHANNELS_KEPT && !(op_channels(n) == CHANNELS_KEPT_SECOND && l->axis == 1))
		return false;
	if (node_is(n, "PRelu") && !float_const(c->s->m, n, 1))
		return false; /* its slopes may depend on the sample */
	if (node_is(n, "Pad") && ((mode && strcmp(mode, "constant") != 0) || !pads_with_zero(c->s->m, n)))
		return false; /* what is padded with would have to be scaled too */
	pass_on(c, n->in[0], n->out[0], l->axis, l->repeat);
	return true;
}

static bool has_two_sides(const struct node *n)
{
	return n->n_in == 2 && (node_is(n, "Add") || node_is(n, "Sub") || node_is(n, "Mul"));
}

static void visit(struct channels *c, size_t i)
{
	const struct node *n = c->s->m->nodes.v[i];
	size_t k;

	for (k = 0; k < n->n_captured; k++)
		pin(c, n->captured[k]);
	if (!n->n_in || !n->n_out || !*n->out[0] || node_is(n, "Shape"))
		return;
	for (k = 1; k < n->n_in && !has_two_sides(n); k++)
		pin(c, n->in[k]); /* such as a bias that is computed */
	if (is_linear(c->s->m, n))
		visit_linear(c, i, n);
	else if (visit_normalisation(c, i, n) ||
		 (has_two_sides(n) && node_is(n, "Mul") && (visit_mul(c, i, n) || visit_gate(c, n))) ||
		 (has_two_sides(n) && !node_is(n, "Mul") && visit_add(c, i, n)))
		;
	else if (!lane_of(c, n->in[0]) || !((node_is(n, "Clip") && visit_clip(c, i, n)) || visit_move(c, n) ||
					    visit_channelwise(c, n)))
		pin_inputs(c, n);
}

void channels_find(struct channels *c, struct subject *s)
{
	const struct graph_index *g = &s->g;
	size_t i;

	memset(c, 0, sizeof(*c));
	c->s = s;
	c->lanes = xcalloc(g->n, sizeof(*c->lanes));
	for (i = 0; i < g->n; i++)
		c->lanes[i].class = NO_CLASS;
	c->parent = xcalloc(s->m->nodes.n, sizeof(*c->parent));
	c->size = xcalloc(s->m->nodes.n, sizeof(*c->size));
	c->pinned = xcalloc(s->m->nodes.n, sizeof(*c->pinned));
	for (i = 0; i < s->m->nodes.n; i++)
		visit(c, i);
	for (i = 0; i < g->n; i++)
		if (g->output[i])
			pin(c, g->names[i]);
	for (i = 0; i < c->parts.n; i++)
		c->parts.v[i].class = channels_root(c, c->parts.v[i].class);
}

void channels_release(struct channels *c)
{
	free(c->lanes);
	free(c->parent);
	free(c->size);
	free(c->pinned);
	VEC_RELEASE(&c->parts);
}
