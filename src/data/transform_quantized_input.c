/* Pixels as the integers of a model whose input is quantized: times scale, for uint8 plus 128, cut towards zero and saturated. As in INC,
 * nothing is done without a scale. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "data/transform_kind.h"

struct quantized {
	bool is_unsigned;
	double scale; /* 0: not given */
};
TRANSFORM_FITS(struct quantized);

static enum fettle_status quantized_set(struct transform *t, const char *key,
					const struct transform_value *value, struct err *err)
{
	struct quantized *own = TRANSFORM_OWN(struct quantized, t);
	enum fettle_status st;

	if (strcmp(key, "scale") == 0) {
		st = transform_numbers(value, 1, 1, err);
		if (!st && !(value->v[0] > 0))
			st = fail(err, FETTLE_INVALID, "%g, need a positive number", value->v[0]);
		if (!st)
			own->scale = value->v[0];
		return st;
	}
	if (!value->text || (strcasecmp(value->text, "int8") != 0 && strcasecmp(value->text, "uint8") != 0))
		return fail(err, FETTLE_INVALID, "%s, need int8 or uint8",
			    value->text ? value->text : "a number");
	own->is_unsigned = strcasecmp(value->text, "uint8") == 0;
	return FETTLE_OK;
}

static enum fettle_status quantized_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	const struct quantized *own = TRANSFORM_READ(struct quantized, t);

	(void)err;
	if (own->scale > 0)
		shape->dtype = own->is_unsigned ? DT_U8 : DT_S8;
	return FETTLE_OK;
}

static enum fettle_status quantized_apply(const struct transform *t, const struct tensor *src,
					  struct buffer *dst, struct err *err)
{
	const struct quantized *own = TRANSFORM_READ(struct quantized, t);
	const double low = own->is_unsigned ? 0 : -128, shift = own->is_unsigned ? 128 : 0;
	size_t n = (size_t)tensor_count(src), i;

	(void)err;
	for (i = 0; i < n; i++) {
		double x = tensor_get(src, i);

		tensor_set(&dst->t, i,
			   own->scale > 0 ? fmin(low + 255, fmax(low, trunc(x * own->scale + shift))) : x);
	}
	return FETTLE_OK;
}

const struct transform_kind transform_quantized_input = {
	.name = "QuantizedInput",
	.summary = "times scale, for uint8 plus 128, cut towards zero and saturated to dtype: int8 (default) "
		   "or uint8; nothing is done without a scale",
	.keys = { "dtype", "scale" },
	.set = quantized_set,
	.shape = quantized_shape,
	.apply = quantized_apply,
};
