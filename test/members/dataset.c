/* As many flat images as its key says; its root is any file. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/kind.h"

enum { SIDE = 28, CLASSES = 10 };

static bool probe(const char *path)
{
	(void)path;
	return false;
}

static enum fettle_status open_flat(struct dataset *d, const struct dataset_options *opt, struct err *err)
{
	const int64_t dims[] = { 1, SIDE, SIDE };
	size_t i;

	for (i = 0; i < opt->n_params; i++)
		d->n = (size_t)atoi(opt->params[i].value);
	if (!d->n)
		return fail(err, FETTLE_INVALID, "cannot read data %s: no samples, need at least one",
			    d->path);
	dataset_add_field(d, "x", FIELD_INPUT, DT_U8, 3, dims);
	dataset_add_field(d, "y", FIELD_LABEL, DT_S64, 0, NULL);
	return FETTLE_OK;
}

static enum fettle_status read_flat(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				    struct err *err)
{
	const int64_t dims[] = { 1, SIDE, SIDE };
	enum fettle_status st =
		buffer_shape(out, field ? DT_S64 : DT_U8, field ? 0 : 3, dims, "a sample", err);

	(void)d;
	if (!st && field)
		*(int64_t *)out->t.data = (int64_t)(i % CLASSES);
	else if (!st)
		memset(out->t.data, (int)(7 * i % 256), SIDE * SIDE);
	return st;
}

static void close_flat(struct dataset *d)
{
	(void)d;
}

static const char *const keys[] = { "samples", NULL };
const struct dataset_kind dataset_flat = {
	.name = "Flat",
	.summary = "flat images",
	.keys = keys,
	.probe = probe,
	.open = open_flat,
	.read = read_flat,
	.close = close_flat,
};
