#include "data/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "tensor/tensor.h"

struct array {
	const char *values;
	size_t sample_bytes;
};

struct fettle_data {
	struct fettle_data_source source;
	VEC(struct fettle_field) fields; /* names and dimensions are its own */
	VEC(struct array) arrays;
};

static bool read_row(void *self, size_t sample, size_t field, void *to)
{
	const struct array *a = &((const struct fettle_data *)self)->arrays.v[field];

	memcpy(to, a->values + sample * a->sample_bytes, a->sample_bytes);
	return true;
}

struct fettle_data *arrays_new(void)
{
	struct fettle_data *d = xcalloc(1, sizeof(*d));

	d->source = (struct fettle_data_source){
		.size = sizeof(d->source), .name = "arrays", .read = read_row, .self = d
	};
	return d;
}

void arrays_free(struct fettle_data *d)
{
	size_t i;

	if (!d)
		return;
	for (i = 0; i < d->fields.n; i++) {
		free((char *)(uintptr_t)d->fields.v[i].name);
		free((int64_t *)(uintptr_t)d->fields.v[i].dims);
	}
	VEC_RELEASE(&d->fields);
	VEC_RELEASE(&d->arrays);
	free(d);
}

static enum fettle_status check(const struct fettle_data *d, const char *name, enum fettle_dtype dtype,
				const struct tensor *shape, const void *values, struct err *err)
{
	size_t i;

	if (!name || !*name || !values)
		return fail(err, FETTLE_INVALID, "cannot add array '%s': need %s", name ? name : "",
			    values ? "a name" : "its values");
	for (i = 0; i < d->fields.n; i++)
		if (strcmp(d->fields.v[i].name, name) == 0)
			return fail(err, FETTLE_INVALID, "cannot add array '%s': there is one of that name",
				    name);
	if (!dtype_size((enum dtype)dtype))
		return fail(err, FETTLE_INVALID, "cannot add array '%s': type %d, need numbers", name,
			    (int)dtype);
	for (i = 0; i < (size_t)shape->rank; i++)
		if (shape->dims[i] < 1)
			return fail(err, FETTLE_INVALID,
				    "cannot add array '%s': a dimension of %lld, need 1 or more", name,
				    (long long)shape->dims[i]);
	if (tensor_count(shape) < 0)
		return fail(err, FETTLE_INVALID, "cannot add array '%s': it is too large", name);
	if (d->fields.n && (size_t)shape->dims[0] != d->source.samples)
		return fail(err, FETTLE_INVALID,
			    "cannot add array '%s': %lld samples, need %zu as the others", name,
			    (long long)shape->dims[0], d->source.samples);
	return FETTLE_OK;
}

enum fettle_status arrays_add(struct fettle_data *d, const struct fettle_field *a, const void *values,
			      struct err *err)
{
	struct tensor shape = { .dtype = (enum dtype)a->dtype, .rank = a->rank };
	int64_t *own;
	enum fettle_status st;

	if (a->rank < 1 || a->rank > TENSOR_RANK_MAX || !a->dims)
		return fail(err, FETTLE_INVALID,
			    "cannot add array '%s': %d dimensions, need 1 (the samples) to %d",
			    a->name ? a->name : "", a->rank, TENSOR_RANK_MAX);
	memcpy(shape.dims, a->dims, (size_t)a->rank * sizeof(*a->dims));
	st = check(d, a->name, a->dtype, &shape, values, err);
	if (st)
		return st;
	own = xcalloc((size_t)a->rank, sizeof(*own));
	memcpy(own, a->dims + 1, (size_t)(a->rank - 1) * sizeof(*own));
	VEC_PUSH(&d->fields, ((struct fettle_field){ xstrdup(a->name), a->dtype, a->rank - 1, own }));
	VEC_PUSH(&d->arrays, ((struct array){ values, tensor_bytes(&shape) / (size_t)a->dims[0] }));
	d->source.samples = (size_t)a->dims[0];
	d->source.fields = d->fields.v;
	d->source.n_fields = d->fields.n;
	return FETTLE_OK;
}

enum fettle_status arrays_source(const struct fettle_data *d, const struct fettle_data_source **out,
				 struct err *err)
{
	if (!d->fields.n)
		return fail(err, FETTLE_INVALID, "cannot read data from arrays: none was added");
	*out = &d->source;
	return FETTLE_OK;
}

bool source_is_arrays(const struct fettle_data_source *s)
{
	return s->read == read_row;
}
