/*
 * A weight in 2, 4 or 8 bits with a scale (and a zero point) for each block of its inputs: what MatMulNBits,
 * GatherBlockQuantized and blocked DequantizeLinear read. One file per algorithm, listed in blockwise/list.h; all are
 * functions of a matrix and of what calibration saw of its input, with no model and no runtime.
 *
 *	struct block_weight q = BLOCK_WEIGHT_INIT;
 *	st = block_quantize(BLOCK_GPTQ, w, n, k, &seen, &format, &q, err);
 *	block_pack_codes(&q, b);	// block_packed_codes() bytes
 *	block_weight_release(&q);
 */
#ifndef BLOCKWISE_BLOCKWISE_H
#define BLOCKWISE_BLOCKWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct block_format {
	int bits;       /* 2, 4 or 8 */
	int64_t block;  /* inputs that share a scale: 16, 32, 64, 128 or 256 */
	bool symmetric; /* the zero point is 2^(bits - 1) everywhere, and no one needs to write it */
};

/* Rows are outputs. An element is (code - zero) * scale; scales may be negative. */
struct block_weight {
	struct block_format format;
	int64_t n, k;   /* outputs, inputs */
	uint8_t *codes; /* [n, k], one per byte: 0 .. 2^bits - 1 */
	float *scales;  /* [n, block_count()] */
	uint8_t *zeros; /* [n, block_count()]: 0 .. 2^bits - 1 */
};
#define BLOCK_WEIGHT_INIT                                                                                    \
	{                                                                                                    \
		.codes = NULL                                                                                \
	}
void block_weight_release(struct block_weight *q);

/* What calibration saw of the input. A member is NULL where the method does not need it. */
struct block_seen {
	const float *gram;     /* [k, k], symmetric: mean of x x' over the rows */
	const float *mean_abs; /* [k]: mean of |x| */
	int64_t rows;          /* that were seen */
	/*
	 * [k]: the caller sees to it that the input is divided by these, and the result is for that input: codes are those of
	 * the weight times these. What was seen is of the input as it was. NULL: it stays as it was.
	 */
	const float *input_scales;
};

enum block_algorithm {
#define BLOCK(ID, id) BLOCK_##ID,
#include "blockwise/list.h"
#undef BLOCK
	BLOCK_ALGORITHMS
};

enum { BLOCK_NEEDS_GRAM = 1, BLOCK_NEEDS_MEAN_ABS = 2 };

/* What a member of the list is: `fit` where it looks at each block alone (see blockwise/grid.h), else `quantize`. */
struct grid;
struct block_method {
	const char *name, *summary;
	unsigned needs;     /* of block_seen: BLOCK_NEEDS_* */
	bool scales_inputs; /* it is at its best with block_input_scales(), where the input can be divided */
	struct grid (*fit)(const float *x, int64_t n, const struct block_format *f, uint8_t *codes);
	/* `out` is allocated, its format set; the arguments have been checked */
	enum fettle_status (*quantize)(const float *w, const struct block_seen *seen,
				       struct block_weight *out, struct err *err);
};
#define BLOCK(ID, id) extern const struct block_method block_##id;
#include "blockwise/list.h"
#undef BLOCK
extern const struct block_method *const block_methods[BLOCK_ALGORITHMS]; /* by enum block_algorithm */

/* The algorithm of that name, in whatever case. FETTLE_INVALID names the nearest. */
enum fettle_status block_method_parse(const char *name, enum block_algorithm *out, struct err *err);

/* FETTLE_INVALID if there is no such format. */
enum fettle_status block_format_check(const struct block_format *f, struct err *err);

/*
 * The weight w [n, k] by an algorithm; release *out. FETTLE_INVALID where the format is none, w or what was seen is not
 * finite, or something the method needs is missing. The result depends on the arguments alone. `seen` may be NULL where
 * the method needs nothing.
 */
enum fettle_status block_quantize(enum block_algorithm algorithm, const float *w, int64_t n, int64_t k,
				  const struct block_seen *seen, const struct block_format *f,
				  struct block_weight *out, struct err *err);

/*
 * For awq: what to divide an input by, so that all weights that read it lose least. Where that can not be done (folded
 * into what makes the input, or by a Mul), awq does without. FETTLE_INVALID where what was seen is not finite or missing.
 */
struct block_reader {
	const float *w; /* [n, k] */
	int64_t n;
};
enum fettle_status block_input_scales(const struct block_reader *readers, size_t n, int64_t k,
				      const struct block_seen *seen, const struct block_format *f,
				      float *out /* [k] */, struct err *err);

void block_dequantize(const struct block_weight *q, float *out /* [n, k] */);

/*
 * The layout of MatMulNBits: codes [n, block_count(), block * bits / 8], low bits first, what the last block lacks is 0;
 * zero points [n, ceil(block_count() * bits / 8)], each row in bytes of its own.
 */
int64_t block_count(const struct block_format *f, int64_t k); /* blocks in a row */
size_t block_packed_codes(const struct block_format *f, int64_t n, int64_t k);
size_t block_packed_zeros(const struct block_format *f, int64_t n, int64_t k);
void block_pack_codes(const struct block_weight *q, uint8_t *out);
void block_pack_zeros(const struct block_weight *q, uint8_t *out);
/* The other way, into an allocated weight; zeros NULL: as where they are absent. Scales are not touched. */
void block_unpack(const uint8_t *codes, const uint8_t *zeros, struct block_weight *out);
enum fettle_status block_weight_init(struct block_weight *out, const struct block_format *f, int64_t n,
				     int64_t k, struct err *err);

#endif
