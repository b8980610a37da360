/* Samples that the program hands over itself. Not in list.h: no path leads here, only dataset_open_source(). */
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/mem.h"
#include "base/why.h"
#include "data/kind.h"

enum { PRINT_SAMPLES = 64 };

static enum fettle_status check_field(const struct dataset *d, const struct fettle_field *f,
				      struct tensor *shape, struct err *err)
{
	int i;

	*shape = (struct tensor){ .dtype = (enum dtype)f->dtype, .rank = f->rank };
	if (!f->name || dataset_field(d, f->name))
		return fail(err, FETTLE_INVALID, "cannot read data %s: a field called '%s', need %s", d->path,
			    f->name ? f->name : "", f->name ? "another name, this is taken" : "a name");
	if (!dtype_size(shape->dtype))
		return fail(err, FETTLE_INVALID, "cannot read data %s: field '%s' has type %d, need numbers",
			    d->path, f->name, (int)f->dtype);
	if (f->rank < 0 || f->rank >= TENSOR_RANK_MAX || (f->rank && !f->dims))
		return fail(err, FETTLE_INVALID, "cannot read data %s: field '%s' has rank %d, need 0 to %d",
			    d->path, f->name, f->rank, TENSOR_RANK_MAX - 1);
	for (i = 0; i < f->rank; i++) {
		shape->dims[i] = f->dims[i];
		if (f->dims[i] < 1)
			return fail(err, FETTLE_INVALID,
				    "cannot read data %s: field '%s' has a dimension of %lld, need 1 or more",
				    d->path, f->name, (long long)f->dims[i]);
	}
	if (tensor_count(shape) < 0)
		return fail(err, FETTLE_INVALID, "cannot read data %s: field '%s' is too large", d->path,
			    f->name);
	return FETTLE_OK;
}

static enum fettle_status callback_open(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const struct fettle_data_source *s = d->state;
	struct tensor shape;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	(void)opt;
	if (!s->samples || !s->n_fields || s->n_fields > DATASET_FIELDS_MAX || !s->fields || !s->read)
		return fail(err, FETTLE_INVALID,
			    "cannot read data %s: %zu samples of %zu fields%s, need samples, 1 to %d fields "
			    "and read()",
			    d->path, s->samples, s->n_fields, s->read ? "" : " and no read()",
			    DATASET_FIELDS_MAX);
	d->n = s->samples;
	for (i = 0; i < s->n_fields && !st; i++) {
		st = check_field(d, &s->fields[i], &shape, err);
		if (!st)
			dataset_add_field(d, s->fields[i].name, FIELD_INPUT, shape.dtype, shape.rank,
					  shape.dims);
	}
	if (!st)
		dataset_find_labels(d);
	return st;
}

static enum fettle_status callback_read(const struct dataset *d, size_t field, size_t i, struct buffer *out,
					struct err *err)
{
	const struct fettle_data_source *s = d->state;
	const struct fettle_field *f = &s->fields[field];
	enum fettle_status st = buffer_shape(out, (enum dtype)f->dtype, f->rank, f->dims, f->name, err);

	why_forget();
	if (!st && !s->read(s->self, i, field, out->t.data))
		st = fail(err, FETTLE_INVALID, "cannot read data %s: read() failed at sample %zu of '%s'%s",
			  d->path, i, f->name, why_text());
	return st;
}

static void callback_close(struct dataset *d)
{
	if (d->closed)
		d->closed(d->closed_self);
	free(d->state);
}

void dataset_on_close(struct dataset *d, void (*call)(void *self), void *self)
{
	d->closed = call;
	d->closed_self = self;
}

const struct dataset_kind dataset_callback = {
	.name = "callback",
	.summary = "what the calling program hands over",
	.open = callback_open,
	.read = callback_read,
	.close = callback_close,
};

/* chained, so that memory does not grow with the samples */
static void mix(char print[2 * FINGERPRINT_LEN], const void *p, size_t n)
{
	fingerprint_bytes(p, n, print + FINGERPRINT_LEN);
	fingerprint_bytes(print, 2 * FINGERPRINT_LEN, print);
}

enum fettle_status dataset_fingerprint(const struct dataset *d, char out[FINGERPRINT_LEN], struct err *err)
{
	size_t some = d->n < PRINT_SAMPLES ? d->n : PRINT_SAMPLES, i, k;
	char print[2 * FINGERPRINT_LEN] = "";
	struct batch b = BATCH_INIT;
	enum fettle_status st = FETTLE_OK;

	mix(print, &d->n, sizeof(d->n));
	for (k = 0; k < d->n_fields; k++)
		mix(print, d->fields[k].name, strlen(d->fields[k].name));
	for (i = 0; i < some && !st; i++) {
		size_t sample = i * (d->n / some);

		st = dataset_read(d, &sample, 1, &b, err);
		for (k = 0; k < d->n_fields && !st; k++)
			mix(print, b.fields[k].t.data, tensor_bytes(&b.fields[k].t));
	}
	memcpy(out, print, FINGERPRINT_LEN);
	batch_release(&b);
	return st;
}
