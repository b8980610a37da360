/* Making the passes of a layer: shapes, memory, oneDNN's primitives and the reorders around them. */
#include "finetune/math_impl.h"

#include <stdlib.h>
#include <string.h>

/* zeroed memory */
static enum fettle_status buffer(struct math_primitives *p, size_t bytes, void *out, struct err *err)
{
	void *b = NULL;
	enum fettle_status st = mem_try(&b, bytes ? bytes : 1, 1, "layer", err);

	if (st)
		return st;
	memset(b, 0, bytes);
	VEC_PUSH(&p->buffers, b);
	*(void **)out = b;
	return FETTLE_OK;
}

static enum fettle_status memory(struct math_primitives *p, const_memory_desc d, void *data,
				 dnnl_memory_t *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	if (!data)
		st = buffer(p, dnnl_memory_desc_get_size(d), &data, err);
	if (!st)
		st = math_check(dnnl_memory_create(out, d, p->engine, data), "make memory", err);
	if (!st)
		VEC_PUSH(&p->memories, *out);
	return st;
}

static void add_arg(struct step *s, int arg, dnnl_memory_t m)
{
	s->args[s->n++] = (dnnl_exec_arg_t){ arg, m };
}

/* an empty step at the end of the sequence, its primitive made from the descriptor */
static enum fettle_status add_step(struct sequence *s, const_dnnl_primitive_desc_t pd, struct err *err)
{
	return math_check(dnnl_primitive_create(&s->v[s->n++].primitive, pd), "make a primitive", err);
}

static enum fettle_status add_reorder(struct math_primitives *p, struct sequence *s, dnnl_memory_t from,
				      dnnl_memory_t to, const_dnnl_primitive_attr_t attr, struct err *err)
{
	const_memory_desc a, b;
	dnnl_primitive_desc_t pd = NULL;
	enum fettle_status st;

	dnnl_memory_get_memory_desc(from, &a);
	dnnl_memory_get_memory_desc(to, &b);
	st = math_check(dnnl_reorder_primitive_desc_create(&pd, a, p->engine, b, p->engine, attr), "reorder",
			err);
	if (!st)
		st = add_step(s, pd, err);
	if (!st) {
		add_arg(&s->v[s->n - 1], DNNL_ARG_FROM, from);
		add_arg(&s->v[s->n - 1], DNNL_ARG_TO, to);
	}
	dnnl_primitive_desc_destroy(pd);
	return st;
}

/* The layer in oneDNN's terms: dimensions, and strides that say how our buffers lie. */
struct geometry {
	int rank, rank_w; /* of values and of weights */
	dnnl_dims_t x, w, y, b, stride, dilate, pad, pad_end;
	memory_desc plain_x, plain_w, plain_y, plain_b;
	memory_desc
		any_w; /* as oneDNN likes them; values stay plain: channels last is among what it likes best */
};

static void release_geometry(struct geometry *s)
{
	const memory_desc all[] = { s->plain_x, s->plain_w, s->plain_y, s->plain_b, s->any_w };
	size_t i;

	for (i = 0; i < ARRAY_LEN(all); i++)
		if (all[i])
			dnnl_memory_desc_destroy(all[i]);
}

static void channels_last(const dnnl_dims_t dims, int rank, dnnl_dims_t strides)
{
	int64_t step = dims[1];
	int k;

	strides[1] = 1;
	for (k = rank - 1; k > 1; k--) {
		strides[k] = step;
		step *= dims[k];
	}
	strides[0] = step;
}

/* in how many dimensions the layer really is */
static int count_dims(const struct layer *l)
{
	return l->in[0] * l->out[0] * l->kernel[0] > 1 ? 3 : 2;
}

static enum fettle_status describe(const struct layer *l, size_t n, struct geometry *s, struct err *err)
{
	const int64_t outputs = (int64_t)layer_outputs(l), inputs = (int64_t)(l->groups * l->ins);
	dnnl_dims_t sx = { inputs, 1 }, sy = { outputs, 1 }, sw = { (int64_t)l->patch, 1 }, sb = { 1 };
	const dnnl_data_type_t f = dnnl_f32;
	dnnl_status_t st;
	int k, g = l->groups > 1, dims = count_dims(l);

	*s = (struct geometry){ .rank = 2, .rank_w = 2 };
	s->x[0] = s->y[0] = (int64_t)n;
	s->x[1] = inputs;
	s->y[1] = s->b[0] = outputs;
	s->w[0] = outputs;
	s->w[1] = inputs;
	if (!l->is_matrix) {
		s->rank = 2 + dims;
		s->rank_w = 2 + dims + g;
		for (k = 0; k < dims; k++) {
			const int from = LAYER_DIMS - dims + k;

			s->x[2 + k] = (int64_t)l->in[from];
			s->y[2 + k] = (int64_t)l->out[from];
			s->stride[k] = (int64_t)l->stride[from];
			s->dilate[k] = (int64_t)l->dilation[from] - 1;
			s->pad[k] = (int64_t)l->pad[from];
			s->pad_end[k] = (int64_t)l->pad_end[from];
			s->w[g + 2 + k] = (int64_t)l->kernel[from];
		}
		channels_last(s->x, s->rank, sx);
		channels_last(s->y, s->rank, sy);
		s->w[0] = (int64_t)l->groups;
		s->w[g] = (int64_t)l->outs;
		s->w[g + 1] = (int64_t)l->ins;
		channels_last(s->w + g, s->rank, sw + g);
		if (g)
			sw[0] = (int64_t)(l->outs * l->patch);
	}
	st = dnnl_memory_desc_create_with_strides(&s->plain_x, s->rank, s->x, f, sx);
	st = st ? st : dnnl_memory_desc_create_with_strides(&s->plain_y, s->rank, s->y, f, sy);
	st = st ? st : dnnl_memory_desc_create_with_strides(&s->plain_w, s->rank_w, s->w, f, sw);
	st = st ? st : dnnl_memory_desc_create_with_strides(&s->plain_b, 1, s->b, f, sb);
	st = st ? st : dnnl_memory_desc_create_with_tag(&s->any_w, s->rank_w, s->w, f, dnnl_format_tag_any);
	return math_check(st, "describe a layer", err);
}

/* the descriptor of each pass; forward: that of the forward pass */
static dnnl_status_t forward_desc(dnnl_primitive_desc_t *out, const struct math_primitives *p,
				  const struct layer *l, const struct geometry *s,
				  const_dnnl_primitive_attr_t attr)
{
	if (l->is_matrix)
		return dnnl_inner_product_forward_primitive_desc_create(out, p->engine, dnnl_forward_training,
									s->plain_x, s->any_w, s->plain_b,
									s->plain_y, attr);
	return dnnl_convolution_forward_primitive_desc_create(
		out, p->engine, dnnl_forward_training, dnnl_convolution_direct, s->plain_x, s->any_w,
		s->plain_b, s->plain_y, s->stride, s->dilate, s->pad, s->pad_end, attr);
}

static dnnl_status_t backward_desc(dnnl_primitive_desc_t *out, const struct math_primitives *p,
				   const struct layer *l, const struct geometry *s,
				   const_dnnl_primitive_desc_t forward)
{
	if (l->is_matrix)
		return dnnl_inner_product_backward_weights_primitive_desc_create(
			out, p->engine, s->plain_x, s->any_w, s->plain_b, s->plain_y, forward, NULL);
	return dnnl_convolution_backward_weights_primitive_desc_create(
		out, p->engine, dnnl_convolution_direct, s->plain_x, s->any_w, s->plain_b, s->plain_y,
		s->stride, s->dilate, s->pad, s->pad_end, forward, NULL);
}

static dnnl_status_t backward_data_desc(dnnl_primitive_desc_t *out, const struct math_primitives *p,
					const struct layer *l, const struct geometry *s,
					const_dnnl_primitive_desc_t forward)
{
	if (l->is_matrix)
		return dnnl_inner_product_backward_data_primitive_desc_create(
			out, p->engine, s->plain_x, s->any_w, s->plain_y, forward, NULL);
	return dnnl_convolution_backward_data_primitive_desc_create(
		out, p->engine, dnnl_convolution_direct, s->plain_x, s->any_w, s->plain_y, s->stride,
		s->dilate, s->pad, s->pad_end, forward, NULL);
}

/* what the layer's buffers are as memories */
struct plain {
	dnnl_memory_t x, y, target, w, b, dw, db;
};

/* y -= target */
static enum fettle_status add_difference(struct math_primitives *p, const struct geometry *s,
					 const struct plain *m, struct err *err)
{
	dnnl_primitive_desc_t pd = NULL;
	struct step *run = &p->residual.v[p->residual.n];
	enum fettle_status st;

	st = math_check(dnnl_binary_primitive_desc_create(&pd, p->engine, dnnl_binary_sub, s->plain_y,
							  s->plain_y, s->plain_y, NULL),
			"make a layer", err);
	if (!st)
		st = add_step(&p->residual, pd, err);
	add_arg(run, DNNL_ARG_SRC_0, m->y);
	add_arg(run, DNNL_ARG_SRC_1, m->target);
	add_arg(run, DNNL_ARG_DST, m->y);
	dnnl_primitive_desc_destroy(pd);
	return st;
}

/* what is done to results where they are made: the target is taken off, or (NULL) they are added to what is there */
static enum fettle_status make_attr(const_memory_desc target, dnnl_primitive_attr_t *out, struct err *err)
{
	dnnl_post_ops_t post = NULL;
	enum fettle_status st;

	st = math_check(dnnl_primitive_attr_create(out), "make a layer", err);
	if (!st)
		st = math_check(dnnl_post_ops_create(&post), "make a layer", err);
	if (!st)
		st = math_check(target ? dnnl_post_ops_append_binary(post, dnnl_binary_sub, target)
				       : dnnl_post_ops_append_sum(post, 1, 0, dnnl_data_type_undef),
				"make a layer", err);
	if (!st)
		st = math_check(dnnl_primitive_attr_set_post_ops(*out, post), "make a layer", err);
	dnnl_post_ops_destroy(post);
	return st;
}

/*
 * The product, minus the target if *fused. oneDNN (2.6) does that for nothing where it compiles code for the shape; else
 * it takes code that is many times slower than for the product alone.
 */
static enum fettle_status choose_forward(struct math_primitives *p, const struct layer *l,
					 const struct geometry *s, dnnl_primitive_desc_t *out, bool *fused,
					 struct err *err)
{
	dnnl_primitive_attr_t attr = NULL;
	const char *name = "";
	enum fettle_status st;

	st = make_attr(s->plain_y, &attr, err);
	*fused = !st && !forward_desc(out, p, l, s, attr) &&
		 !dnnl_primitive_desc_query(*out, dnnl_query_impl_info_str, 0, &name) &&
		 strncmp(name, "jit", 3) == 0;
	if (!st && !*fused) {
		dnnl_primitive_desc_destroy(*out);
		*out = NULL;
		st = math_check(forward_desc(out, p, l, s, NULL), "make a layer", err);
	}
	dnnl_primitive_attr_destroy(attr);
	return st;
}

/* y = w * x + b - target */
static enum fettle_status make_residual(struct math_primitives *p, const struct layer *l,
					const struct geometry *s, const struct plain *m,
					dnnl_primitive_desc_t *out, struct err *err)
{
	dnnl_memory_t w = NULL;
	struct step *run;
	enum fettle_status st;
	bool fused;

	st = choose_forward(p, l, s, out, &fused, err);
	if (!st)
		st = memory(p, dnnl_primitive_desc_query_md(*out, dnnl_query_weights_md, 0), NULL, &w, err);
	if (!st)
		st = add_reorder(p, &p->residual, m->w, w, NULL, err);
	if (!st)
		st = add_step(&p->residual, *out, err);
	if (st)
		return st;
	run = &p->residual.v[p->residual.n - 1];
	add_arg(run, DNNL_ARG_SRC, m->x);
	add_arg(run, DNNL_ARG_WEIGHTS, w);
	add_arg(run, DNNL_ARG_BIAS, m->b);
	add_arg(run, DNNL_ARG_DST, m->y);
	if (!fused)
		return add_difference(p, s, m, err);
	add_arg(run, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, m->target);
	return FETTLE_OK;
}

static enum fettle_status add_backward(struct sequence *s, const_dnnl_primitive_desc_t pd,
				       const struct plain *m, dnnl_memory_t dw, dnnl_memory_t db,
				       struct err *err)
{
	enum fettle_status st = add_step(s, pd, err);
	struct step *run = &s->v[s->n - 1];

	add_arg(run, DNNL_ARG_SRC, m->x);
	add_arg(run, DNNL_ARG_DIFF_DST, m->y);
	add_arg(run, DNNL_ARG_DIFF_WEIGHTS, dw);
	add_arg(run, DNNL_ARG_DIFF_BIAS, db);
	return st;
}

static enum fettle_status make_gradient(struct math_primitives *p, const struct layer *l,
					const struct geometry *s, const struct plain *m,
					const_dnnl_primitive_desc_t forward, struct err *err)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_attr_t add = NULL;
	dnnl_memory_t dw = NULL, more_dw = NULL, more_db = NULL;
	enum fettle_status st;

	st = math_check(backward_desc(&pd, p, l, s, forward), "make a layer", err);
	if (!st)
		st = memory(p, dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0), NULL, &dw,
			    err);
	if (!st)
		st = memory(p, dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0), NULL,
			    &more_dw, err);
	if (!st)
		st = memory(p, s->plain_b, p->more_db, &more_db, err);
	if (!st)
		st = make_attr(NULL, &add, err);
	if (!st)
		st = add_backward(&p->gradient, pd, m, dw, m->db, err);
	if (!st)
		st = add_reorder(p, &p->gradient, dw, m->dw, NULL, err);
	if (!st)
		st = add_backward(&p->more, pd, m, more_dw, more_db, err);
	if (!st)
		st = add_reorder(p, &p->more, more_dw, dw, add, err);
	dnnl_primitive_attr_destroy(add);
	dnnl_primitive_desc_destroy(pd);
	return st;
}

/* the data of the memories are given with each call */
static enum fettle_status make_maps(struct math_primitives *p, size_t n, struct err *err)
{
	static const dnnl_alg_kind_t kinds[] = { [MAP_LOGISTIC] = dnnl_eltwise_logistic,
						 [MAP_LOG] = dnnl_eltwise_log,
						 [MAP_EXP] = dnnl_eltwise_exp };
	dnnl_dims_t dims = { (int64_t)n };
	memory_desc md = NULL;
	enum fettle_status st;
	size_t i;

	st = math_check(dnnl_memory_desc_create_with_tag(&md, 1, dims, dnnl_f32, dnnl_a), "make a map", err);
	for (i = 0; i < N_MATH_MAPS && !st; i++) {
		struct step *s = &p->maps[i];
		dnnl_primitive_desc_t pd = NULL;
		int k;

		st = math_check(dnnl_eltwise_forward_primitive_desc_create(
					&pd, p->engine, dnnl_forward_inference, kinds[i], md, md, 0, 0, NULL),
				"make a map", err);
		if (!st)
			st = math_check(dnnl_primitive_create(&s->primitive, pd), "make a map", err);
		for (k = 0; k < 2 && !st; k++) {
			dnnl_memory_t mem = NULL;

			st = math_check(dnnl_memory_create(&mem, md, p->engine, DNNL_MEMORY_NONE),
					"make memory", err);
			if (!st)
				VEC_PUSH(&p->memories, mem);
			add_arg(s, k ? DNNL_ARG_DST : DNNL_ARG_SRC, mem);
		}
		dnnl_primitive_desc_destroy(pd);
	}
	dnnl_memory_desc_destroy(md);
	return st;
}

static enum fettle_status make_plain(struct layer_math *m, const struct layer *l, const struct geometry *s,
				     struct plain *out, struct err *err)
{
	const size_t outputs = layer_outputs(l) * sizeof(float), weights = layer_weights(l) * sizeof(float);
	const struct {
		float **buffer;
		size_t bytes;
		const_memory_desc d;
		dnnl_memory_t *memory;
	} all[] = {
		{ &m->x, m->n * layer_x_size(l) * sizeof(float), s->plain_x, &out->x },
		{ &m->y, m->n * layer_y_size(l) * sizeof(float), s->plain_y, &out->y },
		{ &m->target, m->n * layer_y_size(l) * sizeof(float), s->plain_y, &out->target },
		{ &m->w, weights, s->plain_w, &out->w },
		{ &m->dw, weights, s->plain_w, &out->dw },
		{ &m->b, outputs, s->plain_b, &out->b },
		{ &m->db, outputs, s->plain_b, &out->db },
	};
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < ARRAY_LEN(all) && !st; i++) {
		st = buffer(m->p, all[i].bytes, all[i].buffer, err);
		if (!st)
			st = memory(m->p, all[i].d, *all[i].buffer, all[i].memory, err);
	}
	m->p->x = out->x;
	m->p->target = out->target;
	m->p->outputs = layer_outputs(l);
	return st ? st : buffer(m->p, outputs, &m->p->more_db, err);
}

enum fettle_status math_new(struct layer_math **out, const struct layer *l, size_t n, struct err *err)
{
	struct layer_math *m = xcalloc(1, sizeof(*m));
	struct math_primitives *p = m->p = xcalloc(1, sizeof(*p));
	dnnl_primitive_desc_t forward = NULL;
	struct plain plain = { .x = NULL };
	struct geometry s = { .rank = 0 };
	enum fettle_status st;

	m->n = n;
	st = math_check(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "start", err);
	if (!st)
		st = math_check(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags), "start",
				err);
	if (!st)
		st = describe(l, n, &s, err);
	if (!st)
		st = make_plain(m, l, &s, &plain, err);
	if (!st)
		st = make_residual(p, l, &s, &plain, &forward, err);
	if (!st)
		st = make_gradient(p, l, &s, &plain, forward, err);
	if (!st)
		st = make_maps(p, layer_weights(l), err);
	dnnl_primitive_desc_destroy(forward);
	release_geometry(&s);
	if (st)
		math_free(m);
	else
		*out = m;
	return st;
}

static void release_sequence(struct sequence *s)
{
	int i;

	for (i = 0; i < s->n; i++)
		dnnl_primitive_destroy(s->v[i].primitive);
}

void math_free(struct layer_math *m)
{
	struct math_primitives *p = m ? m->p : NULL;
	size_t i;

	if (!m)
		return;
	release_sequence(&p->residual);
	release_sequence(&p->gradient);
	release_sequence(&p->more);
	release_sequence(&p->input_gradient);
	for (i = 0; i < N_MATH_MAPS; i++)
		dnnl_primitive_destroy(p->maps[i].primitive);
	for (i = 0; i < p->memories.n; i++)
		dnnl_memory_destroy(p->memories.v[i]);
	for (i = 0; i < p->buffers.n; i++)
		free(p->buffers.v[i]);
	VEC_RELEASE(&p->memories);
	VEC_RELEASE(&p->buffers);
	dnnl_stream_destroy(p->stream);
	dnnl_engine_destroy(p->engine);
	free(p);
	free(m);
}

/* w in the order that the primitive likes, then the primitive */
static enum fettle_status make_input_gradient(struct layer_math *m, const struct geometry *s,
					      const_dnnl_primitive_desc_t pd, struct err *err)
{
	struct math_primitives *p = m->p;
	dnnl_memory_t plain = NULL, w = NULL, dx = NULL, y = NULL;
	enum fettle_status st;
	struct step *run;

	st = memory(p, s->plain_w, m->w, &plain, err);
	if (!st)
		st = memory(p, s->plain_x, m->dx, &dx, err);
	if (!st)
		st = memory(p, s->plain_y, m->y, &y, err);
	if (!st)
		st = memory(p, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), NULL, &w, err);
	if (!st)
		st = add_reorder(p, &p->input_gradient, plain, w, NULL, err);
	if (!st)
		st = add_step(&p->input_gradient, pd, err);
	if (st)
		return st;
	run = &p->input_gradient.v[p->input_gradient.n - 1];
	add_arg(run, DNNL_ARG_DIFF_DST, y);
	add_arg(run, DNNL_ARG_WEIGHTS, w);
	add_arg(run, DNNL_ARG_DIFF_SRC, dx);
	return FETTLE_OK;
}

enum fettle_status math_want_dx(struct layer_math *m, const struct layer *l, struct err *err)
{
	dnnl_primitive_desc_t forward = NULL, pd = NULL;
	struct geometry s = { .rank = 0 };
	enum fettle_status st;

	st = describe(l, m->n, &s, err);
	if (!st)
		st = buffer(m->p, m->n * layer_x_size(l) * sizeof(float), &m->dx, err);
	if (!st)
		st = math_check(forward_desc(&forward, m->p, l, &s, NULL), "make a layer", err);
	if (!st)
		st = math_check(backward_data_desc(&pd, m->p, l, &s, forward), "make a layer", err);
	if (!st)
		st = make_input_gradient(m, &s, pd, err);
	dnnl_primitive_desc_destroy(pd);
	dnnl_primitive_desc_destroy(forward);
	release_geometry(&s);
	return st;
}
