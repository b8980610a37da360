/* Ops whose weights alone are quantized: MatMulNBits and GatherBlockQuantized, which unpack them as they read them. */
#include "quantize/internal.h"

#include <stdlib.h>
#include <string.h>

#include "quantize/blocks.h"
#include "quantize/late_blocks.h"

/* What the names of a weight's constants begin with. */
static const char *constant_base(struct job *j, const struct node *old, const struct block_setting *s)
{
	const struct block_format *f = &s->format;

	return arena_strfmt(&j->m->arena, "%s%s_q%d_g%lld_%s_%s", old->in[block_input(old)],
			    block_turned(old) ? "_t" : "", f->bits, (long long)f->block,
			    f->symmetric ? "sym" : "asym", block_methods[s->algorithm]->name);
}

static const char *constant(struct job *j, const struct node *old, const struct block_setting *s,
			    const char *part, const struct tensor *t)
{
	return emit_const(j, arena_strfmt(&j->m->arena, "%s_%s", constant_base(j, old, s), part), t);
}

/* the same, whose bytes are made when the model is saved */
static const char *late_constant(struct job *j, const struct node *old, const struct block_setting *s,
				 const char *part, const struct tensor *t, struct late late)
{
	const char *name = constant(j, old, s, part, t);
	struct init *w = model_init(j->m, name);

	if (!w->late.write && !w->t.data)
		w->late = late;
	return name;
}

/* Codes, scales or zeros of a weight that is made: in memory, or in a file by now. */
enum packed_part { CODES, SCALES, ZEROS };

static const char *packed_constant(struct job *j, const struct node *old, const struct block_setting *s,
				   const struct block_packed *w, enum packed_part part)
{
	static const char *const names[] = { "codes", "scales", "zeros" };
	const struct tensor *const parts[] = { &w->codes, &w->scales, &w->zeros };

	return w->spilled ? late_constant(j, old, s, names[part], parts[part], w->spilled[part])
			  : constant(j, old, s, names[part], parts[part]);
}

static struct node *push(struct job *j, const char *op, const char *domain, const char *name, size_t n_in)
{
	struct node *n = model_new_node(j->m, op, domain, name, n_in, 1);

	n->out[0] = model_fresh(j->m, arena_strfmt(&j->m->arena, "%s_%s", name, op));
	VEC_PUSH(&j->nodes, n);
	return n;
}

/* A Gemm's first input may be turned: MatMulNBits has no attribute for that. */
static const char *emit_input(struct job *j, const struct node *old, const char *name)
{
	const char *input = float_input(j, old->in[0], false);
	struct node *n;

	if (!op_input_turned(old))
		return input;
	n = push(j, "Transpose", "", name, 1); /* of a matrix: without "perm" it is turned */
	n->in[0] = input;
	return n->out[0];
}

/* alpha is part of the scales */
static struct tensor scales_times(struct job *j, const struct tensor *scales, float alpha)
{
	struct tensor out = *scales;
	const size_t n = (size_t)tensor_count(scales);
	float *to = arena_alloc(&j->m->arena, n * sizeof(*to));
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = ((const float *)scales->data)[i] * alpha;
	out.data = to;
	return out;
}

/* + beta * bias, which may be computed */
static struct node *emit_bias(struct job *j, const struct node *old, const char *name, const char *product)
{
	const float beta = node_float(old, "beta", 1);
	const char *bias = float_input(j, old->in[2], false);
	struct node *n;

	if (beta != 1) {
		n = push(j, "Mul", "", name, 2);
		n->in[0] = bias;
		n->in[1] = emit_scalar(j, arena_strfmt(&j->m->arena, "%s_beta", name), DT_F32, beta);
		bias = n->out[0];
	}
	n = push(j, "Add", "", name, 2);
	n->in[0] = product;
	n->in[1] = bias;
	return n;
}

/* what the knowledge has; or, where no data is needed, what is made now */
static enum fettle_status find_blocks(struct job *j, size_t i, const struct block_packed **out,
				      struct err *err)
{
	const struct node *old = j->g->m->nodes.v[i];
	const struct block_setting *s = &j->plan->ops[i].blocks;
	char *key = block_key(old, s);
	enum fettle_status st = FETTLE_OK;

	*out = j->known->blocks ? block_store_find(j->known->blocks, key) : NULL;
	if (!*out)
		*out = block_store_find(j->z->blocks, key);
	if (!*out && block_needs_data(s))
		st = fail(err, FETTLE_INVALID,
			  "cannot apply plan: op '%s' is weight-only by %s, which needs calibration",
			  j->z->ops->v[i].name, block_methods[s->algorithm]->name);
	else if (!*out)
		st = block_store_make(j->z->blocks, j->z->base, old, s, NULL, err);
	if (!st && !*out)
		*out = block_store_find(j->z->blocks, key);
	free(key);
	return st;
}

/* Codes, scales and zeros of a weight that lies in a file, which is read when the model is saved. */
static const struct block_packed *emit_late(struct job *j, struct node *n, const struct node *old,
					    const struct block_setting *s)
{
	struct late_blocks *l = late_blocks_new(j->z->base, old, s);

	VEC_PUSH(&j->z->late, l);
	n->in[1] = late_constant(j, old, s, "codes", &l->out.codes, late_codes(l));
	n->in[2] = late_constant(j, old, s, "scales", &l->out.scales, late_scales(l));
	if (!s->format.symmetric)
		n->in[3] = late_constant(j, old, s, "zeros", &l->out.zeros, late_zeros(l));
	return &l->out;
}

/* Those of a weight that is made by now. */
static void emit_made(struct job *j, struct node *n, const struct node *old, const struct block_setting *s,
		      const struct block_packed *w, float alpha)
{
	n->in[1] = packed_constant(j, old, s, w, CODES);
	if (alpha == 1) {
		n->in[2] = packed_constant(j, old, s, w, SCALES);
	} else {
		struct tensor scales = scales_times(j, &w->scales, alpha);

		n->in[2] = model_add_init(j->m,
					  model_fresh(j->m, arena_strfmt(&j->m->arena, "%s_scales", n->name)),
					  &scales)
				   ->name;
	}
	if (!s->format.symmetric)
		n->in[3] = packed_constant(j, old, s, w, ZEROS);
}

static bool same_format(const struct block_format *a, const struct block_format *b)
{
	return a->bits == b->bits && a->block == b->block && a->symmetric == b->symmetric;
}

/* The op whose weight is the table itself, in the same format; the table's own node if there is none. */
static size_t tied_op(const struct job *j, size_t table)
{
	const struct node *old = j->g->m->nodes.v[table];
	size_t i;

	for (i = 0; i < j->plan->n; i++)
		if (i != table && job_mode(j, i) == OP_WEIGHT && j->z->ops->v[i].rule->kind == OP_COMPUTE &&
		    same_format(&j->plan->ops[i].blocks.format, &j->plan->ops[table].blocks.format) &&
		    block_tied(j->z->base, old, j->g->m->nodes.v[i]))
			return i;
	return table;
}

/* 2^(bits - 1) everywhere, said aloud: what a table without zero points means differs */
static struct tensor middle_zeros(struct job *j, const struct block_packed *w)
{
	static const uint8_t bytes[] = { [2] = 0xaa, [4] = 0x88, [8] = 0x80 };
	struct tensor out = w->zeros;

	out.data = arena_alloc(&j->m->arena, tensor_bytes(&out));
	memset(out.data, bytes[w->format.bits], tensor_bytes(&out));
	return out;
}

/* The codes as rows. Where a MatMulNBits has them too, they are one constant, of which the runtime makes rows when it loads the model. */
static const char *emit_rows(struct job *j, size_t owner, size_t table, const struct block_packed *w)
{
	const struct node *old = j->g->m->nodes.v[owner];
	const char *name = j->z->ops->v[table].name;
	const int64_t size = w->codes.dims[1] * w->codes.dims[2];
	struct tensor rows = w->codes, shape = { .dtype = DT_S64, .rank = 1, .dims = { 2 } };
	int64_t *dims = arena_alloc(&j->m->arena, 2 * sizeof(*dims));
	struct node *n;

	rows.rank = 2;
	rows.dims[1] = size;
	if (owner == table)
		return constant(j, old, &j->plan->ops[owner].blocks, "rows", &rows);
	dims[0] = w->outputs;
	dims[1] = size;
	shape.data = dims;
	n = push(j, "Reshape", "", name, 2);
	n->in[0] = packed_constant(j, old, &j->plan->ops[owner].blocks, w, CODES);
	n->in[1] = emit_const(j, arena_strfmt(&j->m->arena, "%s_shape", name), &shape);
	return n->out[0];
}

static enum fettle_status emit_block_table(struct job *j, size_t i, struct err *err)
{
	const struct node *old = j->g->m->nodes.v[i];
	const size_t owner = tied_op(j, i);
	const struct block_setting *s = &j->plan->ops[owner].blocks;
	const struct block_packed *w = NULL;
	const struct node *by = j->g->m->nodes.v[owner];
	const char *rows;
	struct tensor middle;
	struct node *n;
	enum fettle_status st = find_blocks(j, owner, &w, err);

	if (st)
		return st;
	rows = emit_rows(j, owner, i, w);
	n = push(j, "GatherBlockQuantized", DOMAIN_MS, j->z->ops->v[i].name, 4);
	n->name = j->z->ops->v[i].name;
	n->in[0] = rows;
	n->in[1] = old->in[1];
	n->in[2] = packed_constant(j, by, s, w, SCALES);
	if (s->format.symmetric) {
		middle = middle_zeros(j, w);
		n->in[3] = constant(j, by, s, "zeros", &middle);
	} else {
		n->in[3] = packed_constant(j, by, s, w, ZEROS);
	}
	node_set_int(j->m, n, "gather_axis", 0);
	node_set_int(j->m, n, "quantize_axis", 1);
	node_set_int(j->m, n, "block_size", s->format.block);
	node_set_int(j->m, n, "bits", s->format.bits);
	n->out[0] = old->out[0];
	return FETTLE_OK;
}

static struct node *emit_nbits(struct job *j, const struct node *old, const struct block_setting *s,
			       const char *name, const struct block_packed *w, float alpha)
{
	struct node *n = push(j, "MatMulNBits", DOMAIN_MS, name, s->format.symmetric ? 3 : 4);

	if (!w)
		w = emit_late(j, n, old, s);
	else
		emit_made(j, n, old, s, w, alpha);
	node_set_int(j->m, n, "K", w->inputs);
	node_set_int(j->m, n, "N", w->outputs);
	node_set_int(j->m, n, "bits", s->format.bits);
	node_set_int(j->m, n, "block_size", s->format.block);
	if (s->level)
		node_set_int(j->m, n, "accuracy_level", s->level);
	return n;
}

static enum fettle_status emit_product(struct job *j, size_t i, struct err *err)
{
	const struct node *old = j->g->m->nodes.v[i];
	const struct block_setting *s = &j->plan->ops[i].blocks;
	const char *name = j->z->ops->v[i].name;
	const float alpha = node_is(old, "Gemm") ? node_float(old, "alpha", 1) : 1;
	const bool pairs = j->plan->format == FORMAT_QDQ_WEIGHTS;
	const bool late = alpha == 1 && !pairs && late_blocks_can(model_init(j->z->base, old->in[1]), s);
	const struct block_packed *w = NULL;
	struct node *n, *last;
	const char *input, *weight = NULL;
	enum fettle_status st = late ? FETTLE_OK : find_blocks(j, i, &w, err);

	if (!st && w && w->spilled && alpha != 1)
		st = fail(err, FETTLE_UNSUPPORTED,
			  "cannot quantize op '%s' part by part: alpha is %g, need 1", name, (double)alpha);
	if (!st && pairs)
		st = emit_block_pairs(j, constant_base(j, old, s), name, w, alpha, &weight, err);
	if (st)
		return st;
	input = emit_input(j, old, name);
	n = last = pairs ? push(j, "MatMul", "", name, 2) : emit_nbits(j, old, s, name, w, alpha);
	n->name = name; /* in whose place it is */
	n->in[0] = input;
	if (pairs)
		n->in[1] = weight;
	if (j->watch && w)
		j->watch->blocks(j->watch->self, &j->z->ops->v[i], w);
	if (old->n_in > 2 && *old->in[2])
		last = emit_bias(j, old, name, n->out[0]);
	last->out[0] = old->out[0];
	return FETTLE_OK;
}

enum fettle_status emit_blocks(struct job *j, size_t i, struct err *err)
{
	return j->z->ops->v[i].rule->kind == OP_TABLE ? emit_block_table(j, i, err) : emit_product(j, i, err);
}
