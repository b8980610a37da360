/* What a rewrite has to know of the calibration data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"
#include "quantize/rewrite.h"

enum { ROWS = 64 }; /* that alpha auto measures with */

struct wanted {
	VEC(struct channel_axis) v;
};

static void want(struct wanted *l, const char *value, int axis, size_t channels, size_t rows)
{
	size_t i;

	for (i = 0; i < l->v.n; i++)
		if (strcmp(l->v.v[i].value, value) == 0 && l->v.v[i].axis == axis)
			return;
	VEC_PUSH(&l->v, ((struct channel_axis){ value, axis, channels, rows }));
}

/* of classes that might be scaled: what is quantized, read, and before a Relu that might let something pass always */
static void want_classes(const struct rewrite *w, struct wanted *list)
{
	const struct graph_index *g = &w->base->g;
	bool *take = xcalloc(g->n, sizeof(*take));
	size_t i;

	for (i = 0; i < w->c.parts.n; i++) {
		const struct part *p = &w->c.parts.v[i];

		take[p->value] |= p->role == PART_READS || p->role == PART_CLIPS ||
				  (p->role == PART_MAKES && rewrite_can_shift(w, p->value));
	}
	for (i = 0; i < g->n; i++) {
		size_t class = channels_class(&w->c, i);

		if (class != NO_CLASS && !w->c.pinned[class] && (take[i] || w->quantized[i]))
			want(list, g->names[i], w->c.lanes[i].axis, rewrite_length(w, i), 0);
	}
	free(take);
}

/* what smooth() might fold into, beyond what matrix ops read: ranges of that are wanted afterwards */
static void want_folds(const struct rewrite *w, struct wanted *list)
{
	const struct graph_index *g = &w->base->g;
	bool *read = xcalloc(g->n, sizeof(*read));
	size_t i;

	for (i = 0; i < list->v.n; i++)
		read[graph_value(g, list->v.v[i].value)] = true;
	for (i = 0; i < g->n; i++) {
		const size_t class = channels_class(&w->c, i);

		if (w->quantized[i] && !read[i] && smooth_can_fold(w, class))
			want(list, g->names[i], w->c.lanes[i].axis, rewrite_length(w, i), 0);
	}
	free(read);
}

static void want_inputs(const struct rewrite *w, size_t rows, struct wanted *list)
{
	const struct graph_index *g = &w->base->g;
	struct layout l;
	size_t i;

	for (i = 0; i < g->m->nodes.n; i++) {
		const struct node *n = g->m->nodes.v[i];

		if (!is_matrix_op(g->m, n) || g->constant[graph_value(g, n->in[0])])
			continue;
		l = layout_of(n, &model_init(g->m, n->in[1])->t);
		want(list, n->in[0], -1, layout_inputs(&l), rows);
	}
}

enum fettle_status rewrite_observe(struct rewrite *w, const struct recipes *r, struct runtime *rt,
				   struct feed *feed, const struct calibrate_options *o, struct err *err)
{
	struct wanted list = { { 0 } };
	enum fettle_status st;

	if (r->cle)
		want_classes(w, &list);
	if (r->smooth_quant)
		want_inputs(w, r->smooth_alpha == SMOOTH_AUTO ? ROWS : 0, &list);
	if (r->smooth_quant)
		want_folds(w, &list);
	st = calibrate_extremes(&w->seen, &(struct calibrate_on){ rt, w->base->m, feed }, list.v.v, list.v.n,
				o, err);
	VEC_RELEASE(&list.v);
	return st;
}

/* n positions along an axis, `repeat` of them to a channel */
static enum fettle_status see_spread(struct rewrite *w, size_t value, int axis, size_t n, size_t repeat,
				     struct spread *out, struct err *err)
{
	const size_t class = channels_class(&w->c, value), channels = n / repeat;
	const double *factor = class == NO_CLASS ? NULL : w->factor[class], *shift = w->shift[value];
	struct channel_extremes x;
	enum fettle_status st;
	size_t i;

	st = channel_extremes_get(w->seen, w->base->g.names[value], axis, n, &x, err);
	if (st)
		return st;
	out->min = xcalloc(channels, sizeof(*out->min));
	out->max = xcalloc(channels, sizeof(*out->max));
	out->power = xcalloc(channels, sizeof(*out->power));
	for (i = 0; i < n; i++) {
		const size_t k = i / repeat;
		const size_t lane = factor || shift ? i / w->c.lanes[value].repeat : 0;
		const double f = factor ? factor[lane] : 1, off = shift ? shift[lane] : 0;

		out->min[k] = fmin(out->min[k], f * x.min[i] - off); /* ranges hold 0 */
		out->max[k] = fmax(out->max[k], f * x.max[i] - off);
		out->power[k] += f * f * x.power[i] / (double)repeat;
	}
	out->count = (double)x.count * (double)repeat;
	out->samples = (double)x.samples;
	return FETTLE_OK;
}

enum fettle_status rewrite_spread(struct rewrite *w, size_t value, struct spread *out, struct err *err)
{
	const struct lane *l = &w->c.lanes[value];

	return see_spread(w, value, l->axis, rewrite_length(w, value), l->repeat, out, err);
}

enum fettle_status rewrite_input_spread(struct rewrite *w, size_t node, size_t repeat, struct spread *out,
					struct err *err)
{
	const struct node *n = w->base->m->nodes.v[node];
	struct layout l = layout_of(n, &model_init(w->base->m, n->in[1])->t);

	return see_spread(w, graph_value(&w->base->g, n->in[0]), -1, layout_inputs(&l), repeat, out, err);
}

enum fettle_status rewrite_rows(struct rewrite *w, size_t node, float **out, size_t *n, struct err *err)
{
	const struct node *op = w->base->m->nodes.v[node];
	const struct layout l = layout_of(op, &model_init(w->base->m, op->in[1])->t);
	const size_t value = graph_value(&w->base->g, op->in[0]), inputs = layout_inputs(&l),
		     class = channels_class(&w->c, value), repeat = w->c.lanes[value].repeat;
	const double *factor = class == NO_CLASS ? NULL : w->factor[class], *shift = w->shift[value];
	struct channel_extremes x;
	enum fettle_status st = channel_extremes_get(w->seen, op->in[0], -1, inputs, &x, err);
	size_t i;

	if (st)
		return st;
	*n = x.n_rows;
	*out = xcalloc(x.n_rows * inputs, sizeof(**out));
	for (i = 0; i < x.n_rows * inputs; i++) {
		const size_t k = factor || shift ? i % inputs / repeat : 0;

		(*out)[i] = (float)(x.rows[i] * (factor ? factor[k] : 1) - (shift ? shift[k] : 0));
	}
	return st;
}

struct range rewrite_range(struct rewrite *w, size_t value, const struct insertion *in)
{
	struct range r = { NAN, NAN };
	struct spread x;
	size_t i, n;

	if (!w->seen)
		return r;
	if (in) {
		n = (size_t)in->scale.dims[0];
		if (see_spread(w, value, -1, n, 1, &x, NULL))
			return r;
	} else {
		n = rewrite_length(w, value);
		if (see_spread(w, value, w->c.lanes[value].axis, n, 1, &x, NULL) &&
		    see_spread(w, value, -1, n, 1, &x, NULL)) /* as matrix ops were observed */
			return r;
	}
	r = (struct range){ 0, 0 };
	for (i = 0; i < n; i++) {
		const double f = in ? ((const float *)in->scale.data)[i] : 1;

		r.min = fminf(r.min, (float)(x.min[i] * f));
		r.max = fmaxf(r.max, (float)(x.max[i] * f));
	}
	spread_release(&x);
	return r;
}

void spread_release(struct spread *s)
{
	free(s->min);
	free(s->max);
	free(s->power);
}
