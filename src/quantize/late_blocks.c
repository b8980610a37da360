#include "quantize/late_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "ops/rules.h"

enum { BAND_BYTES = 32 << 20 }; /* of floats */

bool late_blocks_can(const struct init *w, const struct block_setting *s)
{
	return init_is_outside(w) && !block_needs_data(s);
}

struct late_blocks *late_blocks_new(const struct model *m, const struct node *n,
				    const struct block_setting *s)
{
	struct late_blocks *l = xcalloc(1, sizeof(*l));

	l->m = m;
	l->w = model_init(m, n->in[1]);
	l->turned = op_weight_turned(n);
	l->how = *s;
	l->out = block_packed_shape(&s->format, l->w->t.dims[l->turned ? 0 : 1],
				    l->w->t.dims[l->turned ? 1 : 0]);
	return l;
}

static void drop(struct late_blocks *l)
{
	free(l->out.scales.data);
	free(l->out.zeros.data);
	l->out.scales.data = l->out.zeros.data = NULL;
}

void late_blocks_free(struct late_blocks *l)
{
	drop(l);
	free(l);
}

/* Outputs from .. from+n-1 as rows. A weight [inputs, outputs] is read row by row of the file, `piece` holding one. */
static enum fettle_status read_band(const struct late_blocks *l, const struct weight_reader *r, int64_t from,
				    int64_t n, float *piece, float *out, struct err *err)
{
	const int64_t k = l->out.inputs, columns = l->out.outputs;
	enum { ROWS = 16 }; /* at a time, so that writing to `out` fills cache lines */
	enum fettle_status st = FETTLE_OK;
	int64_t i, row, c, rows;

	if (l->turned)
		return weight_read(r, (size_t)(from * k) * sizeof(*out), out, (size_t)(n * k) * sizeof(*out),
				   err);
	for (i = 0; i < k && !st; i += ROWS) {
		rows = k - i < ROWS ? k - i : ROWS;
		for (row = 0; row < rows && !st; row++)
			st = weight_read(r, (size_t)((i + row) * columns + from) * sizeof(*out),
					 piece + row * n, (size_t)n * sizeof(*out), err);
		for (c = 0; c < n && !st; c++)
			for (row = 0; row < rows; row++)
				out[c * k + i + row] = piece[row * n + c];
	}
	return st;
}

/* Quantizes a band and writes its codes; its scales and zeros are kept in their places. */
static enum fettle_status write_band(struct late_blocks *l, const float *rows, int64_t from, int64_t n,
				     FILE *f, struct err *err)
{
	const struct block_format *format = &l->how.format;
	const size_t blocks = (size_t)block_count(format, l->out.inputs),
		     bytes = block_packed_codes(format, n, l->out.inputs),
		     zeros = block_packed_zeros(format, 1, l->out.inputs);
	struct block_weight q = BLOCK_WEIGHT_INIT;
	float *scales = (float *)l->out.scales.data + (size_t)from * blocks;
	uint8_t *codes = NULL;
	enum fettle_status st;

	st = block_quantize(l->how.algorithm, rows, n, l->out.inputs, NULL, format, &q, err);
	if (!st)
		st = mem_try(&codes, bytes, 1, "packed weights", err);
	if (!st) {
		block_pack_codes(&q, codes);
		memcpy(scales, q.scales, (size_t)n * blocks * sizeof(*scales));
		if (l->out.zeros.data)
			block_pack_zeros(&q, (uint8_t *)l->out.zeros.data + (size_t)from * zeros);
		fwrite(codes, 1, bytes, f);
	}
	free(codes);
	block_weight_release(&q);
	return st;
}

static enum fettle_status write_codes(void *self, FILE *f, struct err *err)
{
	struct late_blocks *l = self;
	const int64_t k = l->out.inputs, n = l->out.outputs,
		      most = BAND_BYTES / (int64_t)sizeof(float) / k + 1, band = most < n ? most : n;
	struct weight_reader r = { .fd = -1 };
	float *rows = NULL, *piece = NULL;
	enum fettle_status st;
	int64_t at, now;

	drop(l);
	st = tensor_alloc(&l->out.scales, "scales", err);
	if (!st && !l->how.format.symmetric)
		st = tensor_alloc(&l->out.zeros, "zero points", err);
	if (!st)
		st = mem_try(&rows, (size_t)(band * k), sizeof(*rows), "a part of a weight", err);
	if (!st)
		st = mem_try(&piece, (size_t)(16 * band), sizeof(*piece), "a part of a weight", err);
	if (!st)
		st = weight_open(&r, l->m, l->w, err);
	for (at = 0; at < n && !st && !ferror(f); at += now) {
		now = n - at < band ? n - at : band;
		st = read_band(l, &r, at, now, piece, rows, err);
		if (!st)
			st = write_band(l, rows, at, now, f, err);
	}
	weight_close(&r);
	free(rows);
	free(piece);
	return st ? fail_prefix(err, st, "cannot quantize weight '%s'", l->w->name) : FETTLE_OK;
}

static enum fettle_status write_scales(void *self, FILE *f, struct err *err)
{
	struct late_blocks *l = self;

	(void)err;
	fwrite(l->out.scales.data, 1, tensor_bytes(&l->out.scales), f);
	if (l->how.format.symmetric)
		drop(l);
	return FETTLE_OK;
}

static enum fettle_status write_zeros(void *self, FILE *f, struct err *err)
{
	struct late_blocks *l = self;

	(void)err;
	fwrite(l->out.zeros.data, 1, tensor_bytes(&l->out.zeros), f);
	drop(l);
	return FETTLE_OK;
}

struct late late_codes(struct late_blocks *l)
{
	return (struct late){ write_codes, l };
}

struct late late_scales(struct late_blocks *l)
{
	return (struct late){ write_scales, l };
}

struct late late_zeros(struct late_blocks *l)
{
	return (struct late){ write_zeros, l };
}
