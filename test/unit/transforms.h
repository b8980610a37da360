/* What the tests of transforms share: setting parameters, images, and their pixels beyond the edges. */
#ifndef UNIT_TRANSFORMS_H
#define UNIT_TRANSFORMS_H

#include "unit/unit.h"

#include "base/rng.h"
#include "data/transform.h"

static inline void set(struct transform *t, const char *key, const double *v, size_t n, const char *text)
{
	struct err err = ERR_INIT;

	assert_ok(transform_set(t, key, v, n, text, &err), err);
}
#define SET(t, key, ...)                                                                                     \
	set(t, key, (const double[]){ __VA_ARGS__ }, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), NULL)

static inline struct tensor random_image(struct rng *r, enum dtype dtype, int64_t h, int64_t w, int64_t c)
{
	struct tensor t = { .dtype = dtype, .rank = 3, .dims = { h, w, c } };
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(tensor_alloc(&t, "image", &err), err);
	for (i = 0; i < (size_t)(h * w * c); i++)
		tensor_set(&t, i, (double)rng_below(r, 256));
	return t;
}

/* The nearest one, for places outside. */
static inline double pixel(const struct tensor *t, int64_t y, int64_t x, int64_t c)
{
	int64_t h = t->dims[0], w = t->dims[1];

	y = y < 0 ? 0 : y >= h ? h - 1 : y;
	x = x < 0 ? 0 : x >= w ? w - 1 : x;
	return tensor_get(t, (size_t)((y * w + x) * t->dims[2] + c));
}

#endif
