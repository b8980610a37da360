#include "config/options.h"

#include <stdio.h>
#include <string.h>

#include "data/arrays.h"

static size_t size_of(enum field_kind kind)
{
	switch (kind) {
	case FIELD_COUNT:
		return sizeof(size_t);
	case FIELD_SEED:
	case FIELD_WHOLE:
		return sizeof(uint64_t);
	case FIELD_INT:
		return sizeof(int);
	case FIELD_REAL:
		return sizeof(double);
	case FIELD_YES:
		return sizeof(bool);
	case FIELD_TEXTS:
		return sizeof(void *) + sizeof(size_t);
	default:
		return sizeof(void *);
	}
}

/* as the configuration reads it */
static const char *text_of(struct arena *a, const struct option_field *f, const void *value)
{
	switch (f->kind) {
	case FIELD_TEXT:
		return *(const char *const *)value;
	case FIELD_SEED:
		return arena_strfmt(a, "%llu", (unsigned long long)*(const uint64_t *)value);
	case FIELD_WHOLE:
		return *(const int64_t *)value == -1
			       ? f->value
			       : arena_strfmt(a, "%lld", (long long)*(const int64_t *)value);
	case FIELD_REAL:
		return arena_strfmt(a, "%.17g", *(const double *)value);
	case FIELD_COUNT:
		return arena_strfmt(a, "%zu", *(const size_t *)value);
	case FIELD_INT:
		return arena_strfmt(a, "%d", *(const int *)value);
	default:
		return f->value;
	}
}

/* those that were given under other names, and the caller's own list after them */
static void read_settings(struct options *out, const struct options_type *type)
{
	const struct fettle_setting *own = NULL;
	size_t n_own = 0, n = 0, i;

	for (i = 0; i < type->n; i++)
		if (type->fields[i].kind == FIELD_PAIRS) {
			const char *at = (const char *)out->given + type->fields[i].at;

			memcpy(&own, at, sizeof(own));
			memcpy(&n_own, at + sizeof(own), sizeof(n_own));
		}
	out->settings = arena_alloc(&out->arena, (type->n + n_own) * sizeof(*out->settings));
	for (i = 0; i < type->n; i++) {
		const struct option_field *f = &type->fields[i];
		const char *value = (const char *)out->given + f->at;

		if (f->key && memcmp(value, (const char *)type->init + f->at, size_of(f->kind)) != 0)
			out->settings[n++] =
				(struct fettle_setting){ f->key, text_of(&out->arena, f, value), f->name };
	}
	if (n_own)
		memcpy(out->settings + n, own, n_own * sizeof(*own));
	out->o.settings = out->settings;
	out->o.n_settings = n + n_own;
}

/* after the sources, of which they are the simpler kind */
static enum fettle_status read_arrays(struct options *out, const struct options_type *type, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < type->n && !st; i++) {
		const struct option_field *f = &type->fields[i];
		const struct fettle_data *data;
		const struct fettle_data_source **source;

		if (f->kind != FIELD_DATA)
			continue;
		memcpy(&data, (const char *)out->given + f->at, sizeof(data));
		source = (const struct fettle_data_source **)(void *)((char *)&out->o + f->to);
		if (data && *source)
			return fail(
				err, FETTLE_INVALID,
				"cannot read options of %s: both %s and a source are given, need one of them",
				type->name, f->name);
		if (data)
			st = arrays_source(data, source, err);
	}
	return st;
}

enum fettle_status options_read(struct options *out, const struct options_type *type, const void *in,
				struct err *err)
{
	size_t size = 0, i;

	*out = (struct options){ .given = NULL };
	out->given = arena_alloc(&out->arena, type->size);
	memcpy(out->given, type->init, type->size);
	if (in)
		memcpy(&size, in, sizeof(size));
	if (size < sizeof(size) || size > type->size)
		return fail(err, FETTLE_INVALID,
			    "cannot read options of %s: size %zu, need that of the struct's *_INIT in this "
			    "version (%zu) or an older one",
			    type->name, size, type->size);
	memcpy(out->given, in, size);
	for (i = 0; i < type->n; i++) {
		const struct option_field *f = &type->fields[i];

		if (f->to != FIELD_NOWHERE && f->kind != FIELD_DATA)
			memcpy((char *)&out->o + f->to, (const char *)out->given + f->at, size_of(f->kind));
	}
	read_settings(out, type);
	return read_arrays(out, type, err);
}

void options_release(struct options *o)
{
	arena_release(&o->arena);
}
