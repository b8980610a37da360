/* Changes the element type. */
#include "data/transform_kind.h"

static void cast_init(struct transform *t)
{
	*TRANSFORM_OWN(enum dtype, t) = DT_F32;
}

static enum fettle_status cast_set(struct transform *t, const char *key, const struct transform_value *value,
				   struct err *err)
{
	enum dtype dtype = value->text ? dtype_parse(value->text) : DT_NONE;

	(void)key; /* there is only one */
	if (!dtype_size(dtype))
		return fail(err, FETTLE_INVALID, "%s, need a numeric type such as float32 or int64",
			    value->text ? value->text : "a number");
	*TRANSFORM_OWN(enum dtype, t) = dtype;
	return FETTLE_OK;
}

static enum fettle_status cast_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	(void)err;
	shape->dtype = *TRANSFORM_READ(enum dtype, t);
	return FETTLE_OK;
}

static enum fettle_status cast_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				     struct err *err)
{
	(void)t;
	(void)err;
	tensor_convert(&dst->t, src);
	return FETTLE_OK;
}

const struct transform_kind transform_cast = {
	.name = "Cast",
	.summary = "changes the type to dtype (float32); to an integer, it cuts towards zero and saturates",
	.keys = { "dtype" },
	.init = cast_init,
	.set = cast_set,
	.shape = cast_shape,
	.apply = cast_apply,
};
