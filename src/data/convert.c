#include "data/convert.h"

#include <float.h>
#include <math.h>

bool dtype_is_integer(enum dtype t)
{
	switch (t) {
	case DT_U8:
	case DT_S8:
	case DT_U16:
	case DT_S16:
	case DT_S32:
	case DT_S64:
	case DT_BOOL:
	case DT_U32:
	case DT_U64:
		return true;
	default:
		return false;
	}
}

bool convert_allowed(enum dtype from, enum dtype to)
{
	if (from == to)
		return dtype_size(from) > 0;
	if (to == DT_F32)
		return from == DT_F64 || from == DT_U8;
	return (to == DT_S32 || to == DT_S64) && dtype_is_integer(from);
}

static bool to_float(struct tensor *dst, const struct tensor *src, size_t n, size_t *bad)
{
	float *to = dst->data;
	size_t i;

	for (i = 0; i < n; i++) {
		double x = tensor_get(src, i);

		/* what rounds to FLT_MAX still fits, what would become infinite does not */
		to[i] = fabs(x) < (double)FLT_MAX * (1 + 0x1p-25) ? (float)x : INFINITY;
		if (isinf(to[i])) {
			*bad = i;
			return false;
		}
	}
	return true;
}

/* Exact, where going through a double would not be. */
static bool to_integer(struct tensor *dst, const struct tensor *src, size_t n, size_t *bad)
{
	size_t i;

	for (i = 0; i < n; i++) {
		int64_t x;
		bool fits = true;

		if (src->dtype == DT_S64) {
			x = ((const int64_t *)src->data)[i];
		} else if (src->dtype == DT_U64) {
			fits = ((const uint64_t *)src->data)[i] <= INT64_MAX;
			x = (int64_t)((const uint64_t *)src->data)[i];
		} else {
			x = (int64_t)tensor_get(src, i);
		}
		if (!fits || (dst->dtype == DT_S32 && x != (int32_t)x)) {
			*bad = i;
			return false;
		}
		if (dst->dtype == DT_S32)
			((int32_t *)dst->data)[i] = (int32_t)x;
		else
			((int64_t *)dst->data)[i] = x;
	}
	return true;
}

bool convert(struct tensor *dst, const struct tensor *src, size_t *bad)
{
	size_t n = (size_t)tensor_count(src);

	return dst->dtype == DT_F32 ? to_float(dst, src, n, bad) : to_integer(dst, src, n, bad);
}
