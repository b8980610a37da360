/* A caller's losses and datasets as the rest of the library sees them. */
#include "api/own.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct fettle_loss *own_loss_find(const struct fettle *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->losses.n; i++)
		if (strcasecmp(f->losses.v[i].name, name) == 0)
			return &f->losses.v[i];
	return NULL;
}

double own_loss(void *self, const struct tensor *outputs, const struct tensor *reference, size_t n_outputs,
		const struct tensor *labels, size_t valid)
{
	const struct fettle_loss *def = self;
	struct fettle_tensor *now = xcalloc(2 * n_outputs, sizeof(*now)), *fp32 = now + n_outputs, label;
	double sum = 0;
	size_t i, k;

	for (i = 0; i < valid; i++) {
		for (k = 0; k < n_outputs; k++) {
			now[k] = own_sample(&outputs[k], i);
			fp32[k] = own_sample(&reference[k], i);
		}
		if (labels)
			label = own_sample(labels, i);
		sum += def->sample(def->self, now, fp32, n_outputs, labels ? &label : NULL);
	}
	free(now);
	return sum;
}

const struct fettle_dataset *own_dataset_find(const struct fettle *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->datasets.n; i++)
		if (strcasecmp(f->datasets.v[i].name, name) == 0)
			return &f->datasets.v[i];
	return NULL;
}

const struct fettle_dataset *own_dataset_named(const struct fettle *f, const char *data, const char **root)
{
	size_t i, n;

	for (i = 0; i < f->datasets.n; i++) {
		n = strlen(f->datasets.v[i].name);
		if (strncasecmp(data, f->datasets.v[i].name, n) == 0 && data[n] == ':') {
			*root = data + n + 1;
			return &f->datasets.v[i];
		}
	}
	return NULL;
}

/* one that is open; lives as long as its dataset */
struct opened {
	const struct fettle_dataset *def;
	struct fettle_data_source source;
};

static void close_opened(void *self)
{
	struct opened *o = self;

	if (o->def->close)
		o->def->close(o->def->self, &o->source);
	free(o);
}

enum fettle_status own_dataset_open(const struct fettle_dataset *def, const struct config_dataset *d,
				    const struct dataset_options *opt, struct dataset **out, struct err *err)
{
	struct fettle_setting *params = xcalloc(d->params.n, sizeof(*params));
	struct opened *o = xcalloc(1, sizeof(*o));
	enum fettle_status st;
	const char *why;
	size_t i;

	o->def = def;
	o->source.size = sizeof(o->source);
	for (i = 0; i < d->params.n; i++)
		params[i] = (struct fettle_setting){ d->params.v[i].key, d->params.v[i].value,
						     d->params.v[i].at.source };
	why = def->open(def->self, d->root, params, d->params.n, &o->source);
	free(params);
	if (why) {
		st = fail(err, FETTLE_INVALID, "cannot read dataset %s %s: %s", def->name,
			  d->root ? d->root : "", why);
		free(o);
		return st;
	}
	if (!o->source.name)
		o->source.name = def->name;
	st = dataset_open_source(out, &o->source, opt, err);
	if (st)
		close_opened(o);
	else
		dataset_on_close(*out, close_opened, o);
	return st;
}
