#include "finetune/capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "finetune/math.h"

enum { QUANTIZED, FP32 };
static const size_t default_cache = (size_t)1 << 30;

/* nothing but these values, and what they are made from */
static void prune(struct model *m, const char *const *names, size_t n)
{
	struct map need = MAP_INIT;
	struct node **keep = xcalloc(m->nodes.n + n, sizeof(struct node *));
	const char **outputs = xcalloc(n, sizeof(*outputs));
	size_t i, k, at = m->nodes.n;

	for (i = 0; i < n; i++) {
		struct node *copy = model_new_node(m, "Identity", "", "", 1, 1);

		/* an input of the graph may be wanted, which cannot be an output */
		copy->in[0] = names[i];
		outputs[i] = copy->out[0] = model_fresh(m, names[i]);
		keep[at + i] = copy;
		map_set(&need, names[i], 1);
	}
	for (i = m->nodes.n; i--;) { /* topological, so backwards all readers come first */
		struct node *node = m->nodes.v[i];
		bool needed = false;

		for (k = 0; k < node->n_out; k++)
			needed |= *node->out[k] && map_get(&need, node->out[k]) != MAP_NONE;
		if (!needed)
			continue;
		keep[--at] = node;
		for (k = 0; k < node->n_in; k++)
			map_set(&need, node->in[k], 1);
		for (k = 0; k < node->n_captured; k++)
			map_set(&need, node->captured[k], 1);
	}
	model_set_nodes(m, keep + at, m->nodes.n + n - at);
	model_set_outputs(m, outputs, n);
	model_sweep(m);
	free(outputs);
	free(keep);
	map_release(&need);
}

enum fettle_status capture_session(const struct finetune_source *s, struct model *m, const char *const *names,
				   size_t n, struct model **model, struct session **out, struct err *err)
{
	struct session_options so = { .threads = s->threads };

	*model = model_derive(m);
	prune(*model, names, n);
	return session_new(out, s->rt, *model, &so, err);
}

/* units of a tensor, `rows` of its first dimension */
static size_t count_units(const struct layer *l, const struct tensor *t, size_t rows)
{
	int d;

	for (d = 1; l->is_matrix && d < t->rank - 1; d++)
		rows *= (size_t)t->dims[d];
	return t->rank > 1 ? rows : 1;
}

struct arrangement {
	size_t units, channels, places;
	const size_t *to; /* place p goes to to[p] of `room`; NULL: all stay */
	size_t room;
	double x0; /* is taken off, and the rest multiplied */
	float scale;
};

/* [channel][place] to [place][channel], for each unit */
static void arrange(const struct tensor *t, const struct arrangement *a, float *out)
{
	const size_t units = a->units, channels = a->channels, places = a->places, room = a->room;
	const size_t *to = a->to;
	const float x0 = (float)a->x0, scale = a->scale;
	size_t u, c, p, at = 0;

#define LOOP(type)                                                                                           \
	for (u = 0; u < units; u++)                                                                          \
		for (c = 0; c < channels; c++)                                                               \
			for (p = 0; p < places; p++)                                                         \
				out[(u * room + (to ? to[p] : p)) * channels + c] =                          \
					((float)((const type *)t->data)[at++] - x0) * scale;
	if (t->dtype == DT_U8)
		LOOP(uint8_t)
	else if (t->dtype == DT_S8)
		LOOP(int8_t)
	else if (t->dtype == DT_U16)
		LOOP(uint16_t)
	else if (t->dtype == DT_S16)
		LOOP(int16_t)
	else
		LOOP(float)
#undef LOOP
}

static void arrange_outputs(const struct layer *l, const struct tensor *t, size_t units, float *out)
{
	const size_t places = layer_positions(l);

	arrange(t, &(struct arrangement){ units, layer_outputs(l), places, NULL, places, 0, 1 }, out);
}

static void arrange_inputs(const struct layer *l, const struct tensor *t, size_t units, double x0,
			   float scale, float *out)
{
	const size_t room = layer_product(l->in);
	size_t *to, places = layer_inputs(l, &to);

	if (places < room)
		memset(out, 0, units * layer_x_size(l) * sizeof(float));
	arrange(t,
		&(struct arrangement){ units, l->groups * l->ins, places, places < room ? to : NULL, room, x0,
				       scale },
		out);
	free(to);
}

static size_t unit_bytes(const struct capture *c)
{
	return (layer_x_size(c->l) * (c->wants_fp32 ? 2 : 1) + layer_y_size(c->l)) * sizeof(float);
}

static void drop_oldest(struct capture *c)
{
	struct units *u = &c->v[c->order[0]];

	c->bytes -= u->n * unit_bytes(c);
	free(u->x);
	free(u->y);
	free(u->fp32);
	*u = (struct units){ .n = 0 };
	memmove(c->order, c->order + 1, --c->n_order * sizeof(*c->order));
}

size_t capture_budget(const struct finetune_source *s)
{
	return s->cache ? s->cache : default_cache;
}

/* the error of what is added to the output becomes a part of the target */
static void add_aside(const struct capture *c, const struct tensor *q, const struct tensor *f,
		      struct units *u)
{
	const size_t n = u->n * layer_y_size(c->l);
	float *t = xcalloc(n, sizeof(*t));
	size_t i;

	arrange_outputs(c->l, f, u->n, t);
	for (i = 0; i < n; i++)
		u->y[i] += t[i];
	arrange_outputs(c->l, q, u->n, t);
	for (i = 0; i < n; i++)
		u->y[i] -= t[i];
	free(t);
}

/* allocates and fills u from what the sessions gave */
static enum fettle_status take(struct capture *c, struct units *u, const struct tensor *q,
			       const struct tensor *f, size_t rows, struct err *err)
{
	const struct layer *l = c->l;
	const size_t outputs = layer_outputs(l);
	enum fettle_status st;
	size_t i, o, n = count_units(l, &f[0], rows);

	u->n = n;
	st = mem_try(&u->x, n * layer_x_size(l), sizeof(float), "inputs of an op", err);
	if (!st)
		st = mem_try(&u->y, n * layer_y_size(l), sizeof(float), "outputs of an op", err);
	if (!st && c->wants_fp32)
		st = mem_try(&u->fp32, n * layer_x_size(l), sizeof(float), "inputs of an op", err);
	if (st)
		return st;
	arrange_inputs(l, &q[0], n, l->input.zero, l->input.scale, u->x);
	arrange_outputs(l, &f[0], n, u->y);
	if (c->wants_fp32)
		arrange_inputs(l, &f[1], n, 0, 1, u->fp32);
	for (i = 0; i < n * layer_positions(l); i++)
		for (o = 0; o < outputs; o++)
			u->y[i * outputs + o] -= l->bias[o];
	if (c->has_aside)
		add_aside(c, &q[1], &f[1 + c->wants_fp32], u);
	return FETTLE_OK;
}

/* does a later batch look like the first? */
static bool same_shape(const struct layer *l, const struct tensor *x, const struct tensor *y)
{
	int k;

	if (l->is_matrix)
		return true;
	for (k = 0; k < x->rank - 2; k++)
		if ((size_t)(x->dims[x->rank - 1 - k] - 1) * l->spread[2 - k] + 1 != l->in[2 - k] ||
		    (size_t)y->dims[y->rank - 1 - k] != l->out[2 - k])
			return false;
	return true;
}

static enum fettle_status run_batch(struct capture *c, size_t k, struct err *err)
{
	struct tensor q[2], f[3];
	struct units *u = &c->v[k];
	size_t left, valid, rows, bytes;
	enum fettle_status st;

	st = feed_read(c->source->feed, k, &c->raw, err);
	if (!st)
		st = session_run(c->sessions[QUANTIZED], c->raw.inputs, q, err);
	if (!st)
		st = session_run(c->sessions[FP32], c->raw.inputs, f, err);
	if (!st && !c->l->in[0])
		st = layer_shape(c->l, c->node, &q[0], &f[0], err);
	if (!st && !same_shape(c->l, &q[0], &f[0]))
		st = fail(err, FETTLE_INVALID, "cannot fine-tune op '%s': its input's shape varies",
			  c->l->name);
	if (st)
		return st;
	left = c->split.samples - k * c->split.per_batch;
	valid = c->raw.valid < left ? c->raw.valid : left;
	rows = (size_t)f[0].dims[0];
	if (c->raw.n && rows % c->raw.n == 0)
		rows = rows / c->raw.n * valid;
	bytes = count_units(c->l, &f[0], rows) * unit_bytes(c);
	while (c->n_order && c->bytes + bytes > capture_budget(c->source))
		drop_oldest(c);
	st = take(c, u, q, f, rows, err);
	c->bytes += bytes;
	c->order[c->n_order++] = k;
	return st;
}

enum fettle_status capture_get(struct capture *c, size_t k, const struct units **out, struct err *err)
{
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	if (!c->v[k].x)
		st = run_batch(c, k, err);
	c->seconds += clock_now() - start;
	*out = &c->v[k];
	return st;
}

enum fettle_status capture_window(struct capture *c, size_t first, size_t end, size_t *n, struct err *err)
{
	const struct units *u;
	size_t bytes, fit, k;
	enum fettle_status st;

	st = capture_get(c, first, &u, err);
	if (st)
		return st;
	bytes = u->n * unit_bytes(c);
	fit = bytes ? capture_budget(c->source) / bytes : c->split.n;
	fit = fit ? fit : 1;
	while (fit < c->split.n && c->n_order) /* some must go: better others than these */
		drop_oldest(c);
	*n = fit < end - first ? fit : end - first;
	for (k = first; k < first + *n && !st; k++)
		st = capture_get(c, k, &u, err);
	return st;
}

enum fettle_status capture_residuals(struct capture *c, struct layer_math *m, size_t first, size_t end,
				     struct residuals *out, struct err *err)
{
	const struct layer *l = c->l;
	const size_t outputs = layer_outputs(l), xs = layer_x_size(l), ys = layer_y_size(l);
	const struct units *u;
	enum fettle_status st = FETTLE_OK;
	size_t k, at, i, o;

	*out = (struct residuals){ .sum = out->sum };
	memset(out->sum, 0, outputs * sizeof(double));
	for (i = 0; i < layer_weights(l); i++)
		m->w[i] = l->scale[i / l->patch] * l->level[i];
	for (o = 0; o < outputs; o++)
		m->b[o] = (float)l->shift[o];
	for (k = first; k < end; k++) {
		st = capture_get(c, k, &u, err);
		for (at = 0; !st && at < u->n; at += m->n) {
			struct math_units some = { u->x + at * xs, u->y + at * ys };
			size_t n = u->n - at < m->n ? u->n - at : m->n;

			for (i = 0; i < n * ys; i++)
				out->signal += (double)some.target[i] * (double)some.target[i];
			if (n < m->n) {
				memcpy(m->x, some.x, n * xs * sizeof(float));
				memcpy(m->target, some.target, n * ys * sizeof(float));
				some = (struct math_units){ m->x, m->target };
			}
			st = math_residual(m, &some, err);
			for (i = 0; i < n * ys && !st; i += outputs)
				for (o = 0; o < outputs; o++) {
					double r = m->y[i + o];

					out->sum[o] += r;
					out->squares += r * r;
				}
			out->count += (double)(n * layer_positions(l));
		}
		if (st)
			break;
	}
	return st;
}

enum fettle_status capture_split(const struct finetune_source *s, const struct finetune *o,
				 struct feed_batch *raw, struct split *out, struct err *err)
{
	const size_t all = feed_samples(s->feed);
	enum fettle_status st;

	if (!all)
		return fail(err, FETTLE_INVALID, "cannot fine-tune: no calibration samples");
	st = feed_read(s->feed, 0, raw, err);
	if (st)
		return st;
	out->per_batch = raw->n; /* as all have but the last */
	out->samples = o->data_size && o->data_size < all ? o->data_size : all;
	out->n = (out->samples + out->per_batch - 1) / out->per_batch;
	out->n_train = out->held = out->n - (out->n + 7) / 8;
	if (out->n == 1)
		out->n_train = 1; /* and it is all there is to judge by */
	return FETTLE_OK;
}

enum fettle_status capture_open(struct capture *c, const struct finetune_source *s, struct layer *l,
				const struct capture_of *of, struct err *err)
{
	const struct node *node = of->node;
	const struct aside *aside = of->aside;
	const char *names[3] = { node->out[0], node->in[0] },
		   *quantized_names[] = { of->input, aside ? aside->quantized : NULL };
	const struct units *u;
	enum fettle_status st;

	*c = (struct capture){ .source = s, .l = l, .node = node, .wants_fp32 = of->o->drop_ratio < 1 };
	c->has_aside = aside != NULL;
	if (aside)
		names[1 + c->wants_fp32] = aside->fp32;
	st = capture_split(s, of->o, &c->raw, &c->split, err);
	if (st)
		return st;
	c->v = xcalloc(c->split.n, sizeof(*c->v));
	c->order = xcalloc(c->split.n + 1, sizeof(*c->order));
	st = capture_session(s, of->quantized, quantized_names, 1 + c->has_aside, &c->models[QUANTIZED],
			     &c->sessions[QUANTIZED], err);
	if (!st)
		st = capture_session(s, s->s->m, names, (size_t)1 + c->wants_fp32 + c->has_aside,
				     &c->models[FP32], &c->sessions[FP32], err);
	if (!st)
		st = capture_get(c, 0, &u, err);
	if (st)
		capture_close(c);
	return st;
}

void capture_close(struct capture *c)
{
	while (c->n_order)
		drop_oldest(c);
	free(c->v);
	free(c->order);
	feed_batch_release(&c->raw);
	session_free(c->sessions[QUANTIZED]);
	session_free(c->sessions[FP32]);
	model_free(c->models[QUANTIZED]);
	model_free(c->models[FP32]);
	*c = (struct capture){ .bytes = 0 };
}
