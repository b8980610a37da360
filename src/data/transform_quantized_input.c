/* Pixels as the integers of a model whose input is quantized: times scale, rounded, saturated. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "data/transform_kind.h"

struct quantized {
	bool is_signed, given;
	double scale;
};
TRANSFORM_FITS(struct quantized);

static void quantized_init(struct transform *t)
{
	TRANSFORM_OWN(struct quantized, t)->scale = 1;
}

static enum fettle_status quantized_set(struct transform *t, const char *key,
					const struct transform_value *value, struct err *err)
{
	struct quantized *own = TRANSFORM_OWN(struct quantized, t);
	enum fettle_status st;

	if (strcmp(key, "scale") == 0) {
		st = transform_numbers(value, 1, 1, err);
		if (!st)
			own->scale = value->v[0];
		return st;
	}
	if (!value->text || (strcasecmp(value->text, "int8") != 0 && strcasecmp(value->text, "uint8") != 0))
		return fail(err, FETTLE_INVALID, "%s, need int8 or uint8",
			    value->text ? value->text : "a number");
	own->is_signed = strcasecmp(value->text, "int8") == 0;
	own->given = true;
	return FETTLE_OK;
}

static const char *quantized_lacks(const struct transform *t)
{
	return TRANSFORM_READ(struct quantized, t)->given ? NULL : "no dtype, need int8 or uint8";
}

static enum fettle_status quantized_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	(void)err;
	shape->dtype = TRANSFORM_READ(struct quantized, t)->is_signed ? DT_S8 : DT_U8;
	return FETTLE_OK;
}

static enum fettle_status quantized_apply(const struct transform *t, const struct tensor *src,
					  struct buffer *dst, struct err *err)
{
	const struct quantized *own = TRANSFORM_READ(struct quantized, t);
	const double low = own->is_signed ? -128 : 0;
	size_t n = (size_t)tensor_count(src), i;

	(void)err;
	for (i = 0; i < n; i++)
		tensor_set(&dst->t, i, fmin(low + 255, fmax(low, rint(tensor_get(src, i) * own->scale))));
	return FETTLE_OK;
}

const struct transform_kind transform_quantized_input = {
	.name = "QuantizedInput",
	.summary = "times scale (1), rounded and saturated to dtype: int8 or uint8",
	.keys = { "dtype", "scale" },
	.init = quantized_init,
	.set = quantized_set,
	.lacks = quantized_lacks,
	.shape = quantized_shape,
	.apply = quantized_apply,
};
