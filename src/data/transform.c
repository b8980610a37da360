#include "data/transform.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/resample.h"
#include "data/transform_kind.h"

static const struct transform_kind *const kinds[] = {
#define TRANSFORM(id) &transform_##id,
#include "data/transform_list.h"
#undef TRANSFORM
};

static const int64_t SIZE_MAX_PIXELS = 1 << 15;

static enum fettle_status unknown(const char *name, struct err *err)
{
	const char *names[ARRAY_LEN(kinds)], *near;
	struct str list = STR_INIT;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++)
		names[i] = kinds[i]->name;
	near = str_nearest(name, names, ARRAY_LEN(kinds));
	if (near)
		return fail(err, FETTLE_INVALID, "cannot use transform %s: unknown, did you mean %s?", name,
			    near);
	for (i = 0; i < ARRAY_LEN(kinds); i++)
		str_addf(&list, "%s%s", !i ? "" : i + 1 < ARRAY_LEN(kinds) ? ", " : " or ", names[i]);
	st = fail(err, FETTLE_INVALID, "cannot use transform %s: unknown, need %s", name, list.s);
	str_release(&list);
	return st;
}

enum fettle_status transform_init(struct transform *t, const char *name, struct err *err)
{
	size_t i;

	*t = (struct transform){ .kind = NULL };
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i]->name, name) != 0)
			continue;
		t->kind = kinds[i];
		if (t->kind->init)
			t->kind->init(t);
		return FETTLE_OK;
	}
	return unknown(name, err);
}

const char *transform_name(const struct transform *t)
{
	return t->kind->name;
}

const char *transform_kind_name(size_t i, const char **summary, const char *const **keys)
{
	if (i >= ARRAY_LEN(kinds))
		return NULL;
	*summary = kinds[i]->summary;
	*keys = kinds[i]->keys;
	return kinds[i]->name;
}

enum fettle_status transform_set(struct transform *t, const char *key, const double *values, size_t n,
				 const char *text, struct err *err)
{
	const struct transform_value value = { values, n, text };
	const char *const *keys = t->kind->keys, *near;
	enum fettle_status st;
	size_t n_keys, i;

	if (!keys[0])
		return fail(err, FETTLE_INVALID, "cannot set %s of %s: it takes no keys", key, t->kind->name);
	for (n_keys = 0; n_keys < TRANSFORM_KEYS_MAX && keys[n_keys]; n_keys++)
		;
	for (i = 0; i < n_keys; i++) {
		if (strcmp(keys[i], key) != 0)
			continue;
		st = t->kind->set(t, key, &value, err);
		return st ? fail_prefix(err, st, "cannot set %s of %s", key, t->kind->name) : FETTLE_OK;
	}
	near = str_nearest(key, keys, n_keys);
	return fail(err, FETTLE_INVALID, "cannot set %s of %s: no such key, %s %s%s", key, t->kind->name,
		    near ? "did you mean" : "it takes", near ? near : keys[0], near ? "?" : "");
}

const char *idle_key_why(const struct idle_key *keys, const char *key)
{
	for (; keys && keys->key; keys++)
		if (strcmp(keys->key, key) == 0)
			return keys->why;
	return NULL;
}

const char *transform_idle(const struct transform *t, const char *key)
{
	return idle_key_why(t->kind->idle, key);
}

bool transform_is_random(const struct transform *t)
{
	return t->kind->random && t->kind->random(t);
}

bool transform_moves_boxes(const struct transform *t)
{
	return t->kind->boxes;
}

void transform_box(const struct transform *t, const struct tensor *shape, double box[4])
{
	if (t->kind->boxes)
		t->kind->boxes(t, shape, box);
}

enum fettle_status transform_check(const struct transform *t, struct err *err)
{
	const char *lacks = t->kind->lacks ? t->kind->lacks(t) : NULL;

	if (lacks)
		return fail(err, FETTLE_INVALID, "cannot use transform %s: %s", t->kind->name, lacks);
	return FETTLE_OK;
}

enum fettle_status transform_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	return t->kind->shape(t, shape, err);
}

enum fettle_status transform_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				   struct err *err)
{
	struct tensor shape = *src;
	enum fettle_status st;

	st = transform_shape(t, &shape, err);
	if (st)
		return st;
	st = buffer_shape(dst, shape.dtype, shape.rank, shape.dims, "a transformed sample", err);
	if (st)
		return st;
	return t->kind->apply(t, src, dst, err);
}

enum fettle_status transform_numbers(const struct transform_value *value, size_t min, size_t max,
				     struct err *err)
{
	size_t i;

	if (value->text)
		return fail(err, FETTLE_INVALID, "'%s', need %s", value->text,
			    max > 1 ? "numbers" : "a number");
	if (value->n < min || value->n > max) {
		if (min == max)
			return fail(err, FETTLE_INVALID, "%zu numbers, need %zu", value->n, min);
		return fail(err, FETTLE_INVALID, "%zu numbers, need %zu to %zu", value->n, min, max);
	}
	for (i = 0; i < value->n; i++)
		if (!isfinite(value->v[i]))
			return fail(err, FETTLE_INVALID, "%g, need a finite number", value->v[i]);
	return FETTLE_OK;
}

enum fettle_status image_size_set(struct image_size *size, const struct transform_value *value,
				  struct err *err)
{
	enum fettle_status st = transform_numbers(value, 1, 2, err);
	size_t i;

	if (st)
		return st;
	for (i = 0; i < value->n; i++)
		if (value->v[i] < 1 || value->v[i] > (double)SIZE_MAX_PIXELS ||
		    value->v[i] != floor(value->v[i]))
			return fail(err, FETTLE_INVALID, "%g, need a whole number from 1 to %lld",
				    value->v[i], (long long)SIZE_MAX_PIXELS);
	size->n = (int)value->n;
	size->v[0] = (int64_t)value->v[0];
	size->v[1] = (int64_t)value->v[value->n - 1];
	return FETTLE_OK;
}

enum fettle_status transform_whole(const struct transform_value *value, int64_t min, int64_t max,
				   int64_t *out, struct err *err)
{
	enum fettle_status st = transform_numbers(value, 1, 1, err);

	if (st)
		return st;
	if (value->v[0] < (double)min || value->v[0] > (double)max || value->v[0] != floor(value->v[0]))
		return fail(err, FETTLE_INVALID, "%g, need a whole number from %lld to %lld", value->v[0],
			    (long long)min, (long long)max);
	*out = (int64_t)value->v[0];
	return FETTLE_OK;
}

enum fettle_status transform_bool(const struct transform_value *value, bool *out, struct err *err)
{
	if (value->text && strcasecmp(value->text, "true") == 0)
		*out = true;
	else if (value->text && strcasecmp(value->text, "false") == 0)
		*out = false;
	else
		return fail(err, FETTLE_INVALID, "%s, need true or false",
			    value->text ? value->text : "a number");
	return FETTLE_OK;
}

enum fettle_status shorter_side(const struct transform *t, struct tensor *shape, int64_t side,
				struct err *err)
{
	int64_t h = shape->dims[0], w = shape->dims[1], less = h < w ? h : w;

	if (h < 0 || w < 0) {
		shape->dims[0] = shape->dims[1] = -1;
		return FETTLE_OK;
	}
	shape->dims[0] = h == less ? side : side * h / less;
	shape->dims[1] = w == less ? side : side * w / less;
	if (shape->dims[0] > IMAGE_SIDE_MAX || shape->dims[1] > IMAGE_SIDE_MAX)
		return fail(err, FETTLE_INVALID,
			    "cannot apply %s: %lld x %lld pixels would be %lld x %lld, at most %d a side",
			    t->kind->name, (long long)h, (long long)w, (long long)shape->dims[0],
			    (long long)shape->dims[1], IMAGE_SIDE_MAX);
	return FETTLE_OK;
}

struct rng transform_rng(const struct transform *t, const struct tensor *src)
{
	struct rng r;

	rng_seed(&r, hash_bytes(src->data, tensor_bytes(src), t->seed ^ hash_str(t->kind->name)));
	return r;
}

enum fettle_status transform_need_image(const struct transform *t, const struct tensor *shape,
					struct err *err)
{
	char text[128];

	if (shape->rank == 2 || shape->rank == 3)
		return FETTLE_OK;
	return fail(err, FETTLE_INVALID, "cannot apply %s: shape %s, need [height,width,channels]",
		    t->kind->name, tensor_shape_text(shape, text, sizeof(text)));
}
