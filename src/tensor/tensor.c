#include "tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct {
	enum dtype type;
	size_t size;
	const char *name, *alias, *alias2;
} types[] = {
	{ DT_F32, 4, "float32", "fp32", "float" },  { DT_U8, 1, "uint8", "u8", NULL },
	{ DT_S8, 1, "int8", "s8", NULL },           { DT_U16, 2, "uint16", "u16", NULL },
	{ DT_S16, 2, "int16", "s16", NULL },        { DT_S32, 4, "int32", "s32", NULL },
	{ DT_S64, 8, "int64", "s64", NULL },        { DT_STRING, 0, "string", NULL, NULL },
	{ DT_BOOL, 1, "bool", NULL, NULL },         { DT_F16, 2, "float16", "fp16", "half" },
	{ DT_F64, 8, "float64", "fp64", "double" }, { DT_U32, 4, "uint32", "u32", NULL },
	{ DT_U64, 8, "uint64", "u64", NULL },       { DT_BF16, 2, "bfloat16", "bf16", NULL },
};

bool dtype_is_float(enum dtype t)
{
	return t == DT_F16 || t == DT_BF16 || t == DT_F32 || t == DT_F64;
}

size_t dtype_size(enum dtype t)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++)
		if (types[i].type == t)
			return types[i].size;
	return 0;
}

const char *dtype_name(enum dtype t)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++)
		if (types[i].type == t)
			return types[i].name;
	return "unknown type";
}

static bool is_name(const char *s, const char *name)
{
	return name && strcmp(s, name) == 0;
}

enum dtype dtype_parse(const char *s)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++)
		if (is_name(s, types[i].name) || is_name(s, types[i].alias) || is_name(s, types[i].alias2))
			return types[i].type;
	return DT_NONE;
}

int64_t tensor_count(const struct tensor *t)
{
	int64_t n = 1, limit = INT64_MAX / 16;
	int i;

	for (i = 0; i < t->rank; i++) {
		if (t->dims[i] < 0)
			return -1;
		if (!t->dims[i])
			n = 0;
		else if (n > limit / t->dims[i])
			return -1;
		else
			n *= t->dims[i];
	}
	return n;
}

size_t tensor_bytes(const struct tensor *t)
{
	int64_t n = tensor_count(t);

	return n < 0 ? 0 : (size_t)n * dtype_size(t->dtype);
}

void tensor_as_row(struct tensor *t)
{
	int i;

	if (t->rank < 0 || t->rank == TENSOR_RANK_MAX || (t->rank && t->dims[0] == 1))
		return;
	for (i = t->rank++; i > 0; i--)
		t->dims[i] = t->dims[i - 1];
	t->dims[0] = 1;
}

bool tensor_is_open(const struct tensor *t)
{
	int d;

	for (d = 1; d < t->rank; d++)
		if (t->dims[d] < 0)
			return true;
	return false;
}

bool tensor_same_shape(const struct tensor *a, const struct tensor *b)
{
	return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof(a->dims[0]) * (size_t)a->rank) == 0;
}

enum fettle_status tensor_alloc(struct tensor *t, const char *what, struct err *err)
{
	int64_t n = tensor_count(t);
	char shape[128];

	if (n < 0 || !dtype_size(t->dtype))
		return fail(err, FETTLE_INVALID, "cannot allocate %s: shape %s of %s", what,
			    tensor_shape_text(t, shape, sizeof(shape)), dtype_name(t->dtype));
	return mem_try(&t->data, (size_t)n, dtype_size(t->dtype), what, err);
}

void tensor_free(struct tensor *t)
{
	free(t->data);
	t->data = NULL;
}

static float half_to_float(uint16_t h)
{
	int sign = h >> 15, exp = h >> 10 & 31, frac = h & 1023;
	float f;

	if (exp == 31)
		f = frac ? NAN : INFINITY;
	else
		f = exp ? ldexpf((float)(frac | 1024), exp - 25) : ldexpf((float)frac, -24);
	return sign ? -f : f;
}

static uint16_t float_to_half(float f)
{
	uint16_t sign = signbit(f) ? 0x8000 : 0;
	float a = fabsf(f);
	int e;

	if (isnan(f))
		return sign | 0x7e00;
	if (a >= 65520)
		return sign | 0x7c00;
	if (a < 0x1p-14f)
		return (uint16_t)(sign | (int)rintf(ldexpf(a, 24)));
	frexpf(a, &e); /* the sum, not the or: rounding may carry into the exponent */
	return (uint16_t)(sign + ((e + 14) << 10) + (int)rintf(ldexpf(a, 11 - e)) - 1024);
}

static float bf16_to_float(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint16_t float_to_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	if (isnan(f))
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

double tensor_get(const struct tensor *t, size_t i)
{
	const void *p = t->data;

	switch (t->dtype) {
	case DT_F32:
		return ((const float *)p)[i];
	case DT_F64:
		return ((const double *)p)[i];
	case DT_U8:
	case DT_BOOL:
		return ((const uint8_t *)p)[i];
	case DT_S8:
		return ((const int8_t *)p)[i];
	case DT_U16:
		return ((const uint16_t *)p)[i];
	case DT_S16:
		return ((const int16_t *)p)[i];
	case DT_S32:
		return ((const int32_t *)p)[i];
	case DT_U32:
		return ((const uint32_t *)p)[i];
	case DT_S64:
		return (double)((const int64_t *)p)[i];
	case DT_U64:
		return (double)((const uint64_t *)p)[i];
	case DT_F16:
		return half_to_float(((const uint16_t *)p)[i]);
	case DT_BF16:
		return bf16_to_float(((const uint16_t *)p)[i]);
	default:
		return NAN;
	}
}

void tensor_set(struct tensor *t, size_t i, double x)
{
	void *p = t->data;
	/* out of range is undefined in C; saturate, and NaN becomes 0 */
	double r = isnan(x) ? 0 : x;
#define CLAMP(lo, hi) (r < (lo) ? (lo) : r > (hi) ? (hi) : r)

	switch (t->dtype) {
	case DT_F32:
		((float *)p)[i] = (float)x;
		break;
	case DT_F64:
		((double *)p)[i] = x;
		break;
	case DT_BOOL:
		((uint8_t *)p)[i] = r != 0;
		break;
	case DT_U8:
		((uint8_t *)p)[i] = (uint8_t)CLAMP(0, 255);
		break;
	case DT_S8:
		((int8_t *)p)[i] = (int8_t)CLAMP(-128, 127);
		break;
	case DT_U16:
		((uint16_t *)p)[i] = (uint16_t)CLAMP(0, 65535);
		break;
	case DT_S16:
		((int16_t *)p)[i] = (int16_t)CLAMP(-32768, 32767);
		break;
	case DT_S32:
		((int32_t *)p)[i] = (int32_t)CLAMP(INT32_MIN, INT32_MAX);
		break;
	case DT_U32:
		((uint32_t *)p)[i] = (uint32_t)CLAMP(0, UINT32_MAX);
		break;
	case DT_S64: /* the largest double below 2^63 */
		((int64_t *)p)[i] = (int64_t)CLAMP((double)INT64_MIN, 9223372036854774784.0);
		break;
	case DT_U64:
		((uint64_t *)p)[i] = (uint64_t)CLAMP(0, 18446744073709549568.0);
		break;
	case DT_F16:
		((uint16_t *)p)[i] = float_to_half((float)x);
		break;
	case DT_BF16:
		((uint16_t *)p)[i] = float_to_bf16((float)x);
		break;
	default:
		break;
	}
#undef CLAMP
}

void tensor_convert(struct tensor *dst, const struct tensor *src)
{
	size_t n = (size_t)tensor_count(src), i;

	if (dst->dtype == src->dtype) {
		memcpy(dst->data, src->data, n * dtype_size(src->dtype));
		return;
	}
	for (i = 0; i < n; i++)
		tensor_set(dst, i, tensor_get(src, i));
}

char *tensor_shape_text(const struct tensor *t, char *buf, size_t n)
{
	size_t used = 0;
	int i;

	buf[0] = '\0';
	for (i = 0; i < t->rank && used < n; i++)
		used += (size_t)snprintf(buf + used, n - used, "%s%lld", i ? "," : "[",
					 (long long)t->dims[i]);
	if (used < n)
		snprintf(buf + used, n - used, t->rank ? "]" : "[]");
	return buf;
}
