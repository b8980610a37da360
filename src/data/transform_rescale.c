/* Maps pixel values to the range a model was trained with: by default 0..255 to 0..1. */
#include <string.h>

#include "data/transform_kind.h"

struct rescale {
	double scale, offset;
};

static void rescale_init(struct transform *t)
{
	TRANSFORM_OWN(struct rescale, t)->scale = 1 / 255.0;
}

static enum fettle_status rescale_set(struct transform *t, const char *key,
				      const struct transform_value *value, struct err *err)
{
	struct rescale *own = TRANSFORM_OWN(struct rescale, t);
	enum fettle_status st = transform_numbers(value, 1, 1, err);

	if (st)
		return st;
	*(strcmp(key, "scale") == 0 ? &own->scale : &own->offset) = value->v[0];
	return FETTLE_OK;
}

static enum fettle_status rescale_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	(void)t;
	(void)err;
	shape->dtype = DT_F32;
	return FETTLE_OK;
}

static enum fettle_status rescale_apply(const struct transform *t, const struct tensor *src,
					struct buffer *dst, struct err *err)
{
	const struct rescale *own = TRANSFORM_READ(struct rescale, t);
	size_t n = (size_t)tensor_count(src), i;
	float *to = dst->t.data;

	(void)err;
	for (i = 0; i < n; i++)
		to[i] = (float)(tensor_get(src, i) * own->scale + own->offset);
	return FETTLE_OK;
}

const struct transform_kind transform_rescale = {
	.name = "Rescale",
	.summary = "x * scale (1/255) + offset (0), as floats",
	.keys = { "scale", "offset" },
	.init = rescale_init,
	.set = rescale_set,
	.shape = rescale_shape,
	.apply = rescale_apply,
};

/* x / rescale[0] - rescale[1], of Keras models */
static void keras_init(struct transform *t)
{
	*TRANSFORM_OWN(struct rescale, t) = (struct rescale){ 1 / 127.5, -1 };
}

static enum fettle_status keras_set(struct transform *t, const char *key, const struct transform_value *value,
				    struct err *err)
{
	enum fettle_status st = transform_numbers(value, 2, 2, err);

	(void)key;
	if (!st && value->v[0] == 0)
		st = fail(err, FETTLE_INVALID, "0, need another number to divide by");
	if (!st)
		*TRANSFORM_OWN(struct rescale, t) = (struct rescale){ 1 / value->v[0], -value->v[1] };
	return st;
}

const struct transform_kind transform_keras_rescale = {
	.name = "KerasRescale",
	.summary = "rescale: [127.5, 1]: divided by the first, less the second",
	.keys = { "rescale" },
	.init = keras_init,
	.set = keras_set,
	.shape = rescale_shape,
	.apply = rescale_apply,
};
