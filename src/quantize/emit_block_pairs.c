/*
 * Weight-only ops in the QDQ form: a blocked DequantizeLinear (opset 21) on the weight as [inputs, outputs], before a float MatMul.
 * The runtime makes a MatMulNBits of both when it loads the model, with int8 activations (accuracy level 4) unless the
 * application asks for another.
 */
#include "quantize/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/blocks.h"

enum fettle_status check_block_pairs(const struct model *m, const struct op *op,
				     const struct block_setting *s, struct err *err)
{
	if (m->opset < QDQ_WEIGHTS_OPSET)
		return fail(err, FETTLE_UNSUPPORTED,
			    "op '%s' weight-only in the QDQ form needs opset %d, the model has %d: leave out "
			    "--format qdq",
			    op->name, QDQ_WEIGHTS_OPSET, m->opset);
	if (s->format.bits == 2)
		return fail(err, FETTLE_UNSUPPORTED,
			    "op '%s' weight-only in the QDQ form has 2 bits, need 4 or 8", op->name);
	if (s->level != 4)
		return fail(err, FETTLE_UNSUPPORTED,
			    "op '%s' weight-only in the QDQ form has accuracy_level %d, need 4: it is the "
			    "runtime that decides there",
			    op->name, s->level);
	return FETTLE_OK;
}

/* A constant of 8 bits as it is, of 4 bits two to a byte, the first in the low bits. */
static const char *add_integers(struct job *j, const char *name, const uint8_t *x, int64_t rows,
				int64_t columns, const struct block_format *f)
{
	const size_t n = (size_t)(rows * columns);
	const bool wide = f->bits == 8;
	struct tensor t = { .dtype = f->symmetric ? (wide ? DT_S8 : DT_S4) : (wide ? DT_U8 : DT_U4),
			    .rank = 2,
			    .dims = { rows, columns } };
	/* the signed types have 0 in the middle */
	const uint8_t flip = f->symmetric ? (uint8_t)(1u << (f->bits - 1)) : 0;
	uint8_t *bytes;
	struct init *w;
	size_t i;

	if (map_get(&j->made, name) != MAP_NONE)
		return name;
	bytes = arena_alloc(&j->m->arena, wide ? n : (n + 1) / 2);
	if (wide)
		t.data = bytes;
	for (i = 0; i < n; i++) {
		const uint8_t code = x[i] ^ flip;

		if (wide)
			bytes[i] = code;
		else
			bytes[i / 2] |= (uint8_t)(code << (i % 2 * 4));
	}
	w = model_init(j->m, emit_const(j, name, &t));
	if (!wide) {
		w->opaque = bytes;
		w->n_opaque = (n + 1) / 2;
	}
	return w->name;
}

/* [rows, columns] the other way round */
static void turn_bytes(const uint8_t *x, int64_t rows, int64_t columns, uint8_t *out)
{
	int64_t r, c;

	for (r = 0; r < rows; r++)
		for (c = 0; c < columns; c++)
			out[c * rows + r] = x[r * columns + c];
}

static const char *add_scales(struct job *j, const char *name, const struct block_weight *q, float alpha)
{
	const int64_t blocks = block_count(&q->format, q->k);
	struct tensor t = { .dtype = DT_F32, .rank = 2, .dims = { blocks, q->n } };
	float *to = t.data = arena_alloc(&j->m->arena, tensor_bytes(&t));
	int64_t r, b;

	for (r = 0; r < q->n; r++)
		for (b = 0; b < blocks; b++)
			to[b * q->n + r] = q->scales[r * blocks + b] * alpha;
	return emit_const(j, name, &t);
}

/* Brings back what is in a file. free() the data of each tensor that has a `late`. */
static enum fettle_status fetch(const struct late *late, struct tensor *t, struct err *err)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);
	enum fettle_status st = f ? late->write(late->self, f, err) : FETTLE_OK;

	if (!f || fclose(f) != 0)
		st = fail(err, FETTLE_SYSTEM, "cannot read a quantized weight: no memory");
	if (st)
		free(bytes);
	else
		t->data = bytes;
	return st;
}

static enum fettle_status fetch_spilled(struct block_packed *w, struct err *err)
{
	enum fettle_status st = fetch(&w->spilled[0], &w->codes, err);

	if (!st)
		st = fetch(&w->spilled[1], &w->scales, err);
	if (!st && !w->format.symmetric)
		st = fetch(&w->spilled[2], &w->zeros, err);
	return st;
}

enum fettle_status emit_block_pairs(struct job *j, const char *base, const char *op,
				    const struct block_packed *packed, float alpha, const char **out,
				    struct err *err)
{
	struct arena *a = &j->m->arena;
	struct block_packed here = *packed, *w = &here;
	const int64_t n = w->outputs, k = w->inputs, blocks = block_count(&w->format, k);
	struct block_weight q = BLOCK_WEIGHT_INIT;
	uint8_t *turned = NULL;
	struct node *dq;
	enum fettle_status st = w->spilled ? fetch_spilled(w, err) : FETTLE_OK;

	if (!st)
		st = block_weight_init(&q, &w->format, n, k, err);
	if (!st)
		st = mem_try(&turned, (size_t)(n * k), 1, "a weight's codes, transposed", err);
	if (st)
		goto out;
	block_unpack(w->codes.data, w->zeros.data, &q);
	memcpy(q.scales, w->scales.data, tensor_bytes(&w->scales));
	dq = model_new_node(j->m, "DequantizeLinear", "", arena_strfmt(a, "%s_DQ", op),
			    w->format.symmetric ? 2 : 3, 1);
	turn_bytes(q.codes, n, k, turned);
	dq->in[0] = add_integers(j, arena_strfmt(a, "%s_columns", base), turned, k, n, &w->format);
	dq->in[1] = add_scales(j, arena_strfmt(a, alpha == 1 ? "%s_column_scales" : "%s_%s_scales", base, op),
			       &q, alpha);
	if (!w->format.symmetric) {
		turn_bytes(q.zeros, n, blocks, turned);
		dq->in[2] = add_integers(j, arena_strfmt(a, "%s_column_zeros", base), turned, blocks, n,
					 &w->format);
	}
	node_set_int(j->m, dq, "axis", 0);
	node_set_int(j->m, dq, "block_size", w->format.block);
	*out = dq->out[0] = model_fresh(j->m, dq->name);
	VEC_PUSH(&j->nodes, dq);
	model_need_ir(j->m, 10); /* which has types of 4 bits */
out:
	if (packed->spilled) {
		free(here.codes.data);
		free(here.scales.data);
		free(here.zeros.data);
	}
	free(turned);
	block_weight_release(&q);
	return st;
}
