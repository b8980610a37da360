/* Adds a number, as float32. */
#include "data/transform_kind.h"

struct dummy {
	double add;
};

static enum fettle_status set(struct transform *t, const char *key, const struct transform_value *value,
			      struct err *err)
{
	enum fettle_status st = transform_numbers(value, 1, 1, err);

	(void)key;
	if (!st)
		TRANSFORM_OWN(struct dummy, t)->add = value->v[0];
	return st;
}

static enum fettle_status shape(const struct transform *t, struct tensor *s, struct err *err)
{
	(void)t;
	(void)err;
	s->dtype = DT_F32;
	return FETTLE_OK;
}

static enum fettle_status apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				struct err *err)
{
	size_t n = (size_t)tensor_count(src), i;

	(void)err;
	for (i = 0; i < n; i++)
		((float *)dst->t.data)[i] =
			(float)(tensor_get(src, i) + TRANSFORM_READ(struct dummy, t)->add);
	return FETTLE_OK;
}

const struct transform_kind transform_dummy = {
	.name = "Dummy",
	.summary = "a dummy",
	.keys = { "add" },
	.set = set,
	.shape = shape,
	.apply = apply,
};
