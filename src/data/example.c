#include "data/example.h"

#include <stdlib.h>
#include <string.h>

enum { OF_EXAMPLE = 1, OF_FEATURES = 1, KEY = 1, VALUE = 2, LIST = 1 }; /* numbers of fields */

/* Calls `each` (may be NULL) with every value, in order; false when the list is damaged. */
static bool walk(const struct feature *f, void (*each)(void *self, size_t i, const struct wire_field *v),
		 void *self, size_t *n)
{
	struct wire w = f->list;
	struct wire_field field;

	*n = 0;
	while (w.p < w.end) {
		if (!wire_next(&w, &field))
			return false;
		if (field.number != LIST)
			continue;
		if (field.type == WIRE_BYTES && f->type != FEATURE_BYTES) { /* packed */
			struct wire packed = field.bytes;

			while (packed.p < packed.end) {
				struct wire_field v = { .number = LIST };

				if (f->type == FEATURE_INTS) {
					v.type = WIRE_VARINT;
					if (!wire_varint(&packed, &v.value))
						return false;
				} else {
					if (packed.end - packed.p < 4)
						return false;
					v.type = WIRE_FIXED32;
					v.bytes = (struct wire){ packed.p, packed.p + 4 };
					packed.p += 4;
				}
				if (each)
					each(self, *n, &v);
				++*n;
			}
			continue;
		}
		if (field.type != (f->type == FEATURE_BYTES  ? WIRE_BYTES
				   : f->type == FEATURE_INTS ? WIRE_VARINT
							     : WIRE_FIXED32))
			return false;
		if (each)
			each(self, *n, &field);
		++*n;
	}
	return true;
}

static bool read_value(struct feature *f, struct wire w)
{
	struct wire_field field;

	while (w.p < w.end) {
		if (!wire_next(&w, &field))
			return false;
		if (field.type != WIRE_BYTES || field.number < FEATURE_BYTES || field.number > FEATURE_INTS)
			continue;
		f->type = (enum feature_type)field.number;
		f->list = field.bytes;
	}
	return walk(f, NULL, NULL, &f->n);
}

static bool read_entry(struct example *e, struct wire w)
{
	struct feature f = { .type = FEATURE_NONE };
	struct wire value = { NULL, NULL };
	struct wire_field field;

	while (w.p < w.end) {
		if (!wire_next(&w, &field))
			return false;
		if (field.type == WIRE_BYTES && field.number == KEY)
			f.name = field.bytes;
		else if (field.type == WIRE_BYTES && field.number == VALUE)
			value = field.bytes;
	}
	if (!read_value(&f, value))
		return false;
	VEC_PUSH(&e->features, f);
	return true;
}

bool example_read(struct example *e, struct bytes record)
{
	struct wire w = { record.p, record.p + record.n }, features;
	struct wire_field field;

	e->features.n = 0;
	while (w.p < w.end) {
		if (!wire_next(&w, &field))
			return false;
		if (field.number != OF_EXAMPLE || field.type != WIRE_BYTES)
			continue;
		features = field.bytes;
		while (features.p < features.end)
			if (!wire_next(&features, &field) ||
			    (field.number == OF_FEATURES && field.type == WIRE_BYTES &&
			     !read_entry(e, field.bytes)))
				return false;
	}
	return true;
}

void example_release(struct example *e)
{
	VEC_RELEASE(&e->features);
}

const struct feature *example_find(const struct example *e, const char *name)
{
	const size_t n = strlen(name);
	size_t i;

	for (i = 0; i < e->features.n; i++) {
		const struct feature *f = &e->features.v[i];

		if ((size_t)(f->name.end - f->name.p) == n && (!n || memcmp(f->name.p, name, n) == 0))
			return f->n ? f : NULL;
	}
	return NULL;
}

struct pick {
	size_t i;
	struct bytes found;
};

static void pick_bytes(void *self, size_t i, const struct wire_field *v)
{
	struct pick *p = self;

	if (i == p->i)
		p->found = (struct bytes){ v->bytes.p, (size_t)(v->bytes.end - v->bytes.p) };
}

struct bytes feature_bytes(const struct feature *f, size_t i)
{
	struct pick p = { i, BYTES_INIT };
	size_t n;

	if (f->type == FEATURE_BYTES)
		walk(f, pick_bytes, &p, &n);
	return p.found;
}

static float float_of(const struct wire_field *v)
{
	const unsigned char *p = v->bytes.p;
	uint32_t bits;
	float x;

	if (v->type == WIRE_VARINT)
		return (float)(int64_t)v->value;
	bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static void put_float(void *self, size_t i, const struct wire_field *v)
{
	((float *)self)[i] = float_of(v);
}

static void put_int(void *self, size_t i, const struct wire_field *v)
{
	((int64_t *)self)[i] = (int64_t)v->value;
}

void feature_floats(const struct feature *f, float *out)
{
	size_t n;

	if (f->type == FEATURE_FLOATS || f->type == FEATURE_INTS)
		walk(f, put_float, out, &n);
}

void feature_ints(const struct feature *f, int64_t *out)
{
	size_t n;

	if (f->type == FEATURE_INTS)
		walk(f, put_int, out, &n);
}
