#include "blockwise/blockwise.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "blockwise/grid.h"

const struct block_method *const block_methods[BLOCK_ALGORITHMS] = {
#define BLOCK(ID, id) &block_##id,
#include "blockwise/list.h"
#undef BLOCK
};

enum fettle_status block_method_parse(const char *name, enum block_algorithm *out, struct err *err)
{
	const char *names[BLOCK_ALGORITHMS], *nearest;
	int i;

	for (i = 0; i < BLOCK_ALGORITHMS; i++) {
		names[i] = block_methods[i]->name;
		if (strcasecmp(name, names[i]) == 0) {
			*out = (enum block_algorithm)i;
			return FETTLE_OK;
		}
	}
	nearest = str_nearest(name, names, BLOCK_ALGORITHMS);
	if (nearest)
		return fail(err, FETTLE_INVALID,
			    "cannot use weight-only algorithm %s: unknown name, did you mean %s", name,
			    nearest);
	return fail(err, FETTLE_INVALID, "cannot use weight-only algorithm %s: unknown name, must be one of"
#define BLOCK(ID, id) " " #id
#include "blockwise/list.h"
#undef BLOCK
		    ,
		    name);
}

enum fettle_status block_format_check(const struct block_format *f, struct err *err)
{
	if (f->bits != 2 && f->bits != 4 && f->bits != 8)
		return fail(err, FETTLE_INVALID,
			    "cannot quantize weights by block: %d bits, must be 2, 4 or 8", f->bits);
	if (f->block < 16 || f->block > 256 || (f->block & (f->block - 1)))
		return fail(
			err, FETTLE_INVALID,
			"cannot quantize weights by block: block size %lld, must be 16, 32, 64, 128 or 256",
			(long long)f->block);
	return FETTLE_OK;
}

int64_t block_count(const struct block_format *f, int64_t k)
{
	return (k + f->block - 1) / f->block;
}

enum fettle_status block_weight_init(struct block_weight *out, const struct block_format *f, int64_t n,
				     int64_t k, struct err *err)
{
	const size_t blocks = (size_t)(n * block_count(f, k));
	struct block_weight q = { .format = *f, .n = n, .k = k };
	enum fettle_status st;

	st = mem_try(&q.codes, (size_t)(n * k), sizeof(*q.codes), "the codes of a weight", err);
	if (!st)
		st = mem_try(&q.scales, blocks, sizeof(*q.scales), "the scales of a weight", err);
	if (!st)
		st = mem_try(&q.zeros, blocks, sizeof(*q.zeros), "the zero points of a weight", err);
	if (st)
		block_weight_release(&q);
	else
		*out = q;
	return st;
}

void block_weight_release(struct block_weight *q)
{
	free(q->codes);
	free(q->scales);
	free(q->zeros);
	*q = (struct block_weight)BLOCK_WEIGHT_INIT;
}

static bool all_finite(const float *x, size_t n)
{
	uint32_t bad = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		uint32_t u;

		memcpy(&u, x + i, sizeof(u));
		bad |= (u & 0x7f800000) == 0x7f800000;
	}
	return !bad;
}

enum fettle_status seen_check(const struct block_method *m, const struct block_seen *seen, int64_t k,
			      struct err *err)
{
	const float *gram = seen ? seen->gram : NULL, *mean_abs = seen ? seen->mean_abs : NULL;

	if (((m->needs & BLOCK_NEEDS_GRAM) && !gram) || ((m->needs & BLOCK_NEEDS_MEAN_ABS) && !mean_abs))
		return fail(err, FETTLE_INVALID,
			    "cannot quantize a weight by %s: its input was not seen, it needs calibration",
			    m->name);
	if (((m->needs & BLOCK_NEEDS_GRAM) && !all_finite(gram, (size_t)(k * k))) ||
	    ((m->needs & BLOCK_NEEDS_MEAN_ABS) && !all_finite(mean_abs, (size_t)k)))
		return fail(err, FETTLE_INVALID,
			    "cannot quantize a weight by %s: its input has values that are not finite",
			    m->name);
	if (seen && seen->input_scales && !all_finite(seen->input_scales, (size_t)k))
		return fail(err, FETTLE_INVALID,
			    "cannot quantize a weight by %s: scales of its input are not finite", m->name);
	return FETTLE_OK;
}

static enum fettle_status quantize(const struct block_method *m, const float *w,
				   const struct block_seen *seen, struct block_weight *out, struct err *err)
{
	if (!m->fit)
		return m->quantize(w, seen, out, err);
	grid_each_block(w, out, m->fit);
	return FETTLE_OK;
}

/* as if the input had been divided by its scales: the weight, and what was seen */
static enum fettle_status scaled(const struct block_method *m, const float *w, const struct block_seen *seen,
				 struct block_weight *out, struct err *err)
{
	const int64_t n = out->n, k = out->k;
	const float *s = seen->input_scales;
	float *weight = NULL, *gram = NULL, *mean_abs = NULL;
	enum fettle_status st;
	int64_t i;

	st = mem_try(&weight, (size_t)(n * k), sizeof(float), "a scaled weight", err);
	if (!st)
		st = mem_try(&mean_abs, (size_t)k, sizeof(float), "the means of an input", err);
	if (!st && seen->gram)
		st = mem_try(&gram, (size_t)(k * k), sizeof(float), "a scaled gram matrix", err);
	if (st)
		goto out;
	for (i = 0; i < n * k; i++)
		weight[i] = w[i] * s[i % k];
	for (i = 0; i < k && seen->mean_abs; i++)
		mean_abs[i] = seen->mean_abs[i] / s[i];
	for (i = 0; i < k * k && seen->gram; i++)
		gram[i] = seen->gram[i] / s[i / k] / s[i % k];
	st = quantize(m, weight,
		      &(struct block_seen){ .gram = gram, .mean_abs = mean_abs, .rows = seen->rows }, out,
		      err);
out:
	free(weight);
	free(mean_abs);
	free(gram);
	return st;
}

enum fettle_status block_quantize(enum block_algorithm algorithm, const float *w, int64_t n, int64_t k,
				  const struct block_seen *seen, const struct block_format *f,
				  struct block_weight *out, struct err *err)
{
	const struct block_method *m = block_methods[algorithm];
	struct block_weight q = BLOCK_WEIGHT_INIT;
	enum fettle_status st;

	st = block_format_check(f, err);
	if (!st && (n < 1 || k < 1))
		st = fail(err, FETTLE_INVALID,
			  "cannot quantize a weight by block: %lld outputs of %lld inputs, must be at least "
			  "one",
			  (long long)n, (long long)k);
	if (!st && !all_finite(w, (size_t)(n * k)))
		st = fail(err, FETTLE_INVALID,
			  "cannot quantize a weight by block: it has values that are not finite");
	if (!st)
		st = seen_check(m, seen, k, err);
	if (!st)
		st = block_weight_init(&q, f, n, k, err);
	if (!st)
		st = seen && seen->input_scales ? scaled(m, w, seen, &q, err) : quantize(m, w, seen, &q, err);
	if (st)
		block_weight_release(&q);
	else
		*out = q;
	return st;
}

void block_dequantize(const struct block_weight *q, float *out)
{
	const int64_t blocks = block_count(&q->format, q->k), block = q->format.block;
	int64_t row, b, i;

	for (row = 0; row < q->n; row++)
		for (b = 0; b < blocks; b++) {
			const int64_t at = row * q->k + b * block, left = q->k - b * block;
			const int64_t n = left < block ? left : block;
			const float scale = q->scales[row * blocks + b];
			const int zero = q->zeros[row * blocks + b];

			for (i = 0; i < n; i++)
				out[at + i] = (float)(q->codes[at + i] - zero) * scale;
		}
}
