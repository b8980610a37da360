/* Codes and zero points in the layout of MatMulNBits. */
#include "blockwise/blockwise.h"

#include <string.h>

size_t block_packed_codes(const struct block_format *f, int64_t n, int64_t k)
{
	return (size_t)(n * block_count(f, k) * f->block * f->bits / 8);
}

static int64_t zero_bytes(const struct block_format *f, int64_t k) /* of a row */
{
	return (block_count(f, k) * f->bits + 7) / 8;
}

size_t block_packed_zeros(const struct block_format *f, int64_t n, int64_t k)
{
	return (size_t)(n * zero_bytes(f, k));
}

/* n values, low bits first, into bytes that are 0 */
static void pack(const uint8_t *from, int64_t n, int bits, uint8_t *to)
{
	int64_t i;

	if (bits == 8)
		memcpy(to, from, (size_t)n);
	else if (bits == 4) {
		for (i = 0; i < n / 2; i++)
			to[i] = (uint8_t)(from[2 * i] | from[2 * i + 1] << 4);
		if (n % 2)
			to[i] = from[n - 1];
	} else
		for (i = 0; i < n; i++)
			to[i / 4] |= (uint8_t)(from[i] << 2 * (i % 4));
}

static void unpack(const uint8_t *from, int64_t n, int bits, uint8_t *to)
{
	const int per_byte = 8 / bits, mask = (1 << bits) - 1;
	int64_t i;

	for (i = 0; i < n; i++)
		to[i] = (uint8_t)(from[i / per_byte] >> bits * (i % per_byte) & mask);
}

void block_pack_codes(const struct block_weight *q, uint8_t *out)
{
	const struct block_format *f = &q->format;
	const size_t size = block_packed_codes(f, 1, q->k);
	int64_t row;

	memset(out, 0, block_packed_codes(f, q->n, q->k));
	/* blocks are whole bytes, so a row of them is packed like one */
	for (row = 0; row < q->n; row++)
		pack(q->codes + row * q->k, q->k, f->bits, out + (size_t)row * size);
}

void block_pack_zeros(const struct block_weight *q, uint8_t *out)
{
	const struct block_format *f = &q->format;
	const int64_t blocks = block_count(f, q->k), size = zero_bytes(f, q->k);
	int64_t row;

	memset(out, 0, block_packed_zeros(f, q->n, q->k));
	for (row = 0; row < q->n; row++)
		pack(q->zeros + row * blocks, blocks, f->bits, out + row * size);
}

void block_unpack(const uint8_t *codes, const uint8_t *zeros, struct block_weight *out)
{
	const struct block_format *f = &out->format;
	const size_t size = block_packed_codes(f, 1, out->k);
	const int64_t blocks = block_count(f, out->k);
	int64_t row;

	for (row = 0; row < out->n; row++) {
		unpack(codes + (size_t)row * size, out->k, f->bits, out->codes + row * out->k);
		if (zeros)
			unpack(zeros + row * zero_bytes(f, out->k), blocks, f->bits,
			       out->zeros + row * blocks);
	}
	if (!zeros)
		memset(out->zeros, 1 << (f->bits - 1), (size_t)(out->n * blocks));
}
