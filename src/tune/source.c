#include "tune/source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "base/str.h"

/* The model's input shape decides the image format: one channel means greyscale. */
static int image_channels(const struct input_spec *specs, size_t n)
{
	const int64_t *dims = specs[0].dims;
	bool colour, grey;

	if (n != 1 || specs[0].rank != 4)
		return 0;
	colour = dims[1] == 3 || dims[3] == 3;
	grey = dims[1] == 1 || dims[3] == 1;
	return grey && !colour ? 1 : 0;
}

static enum fettle_status open_data(struct dataset **out, struct context *cx, const struct data_ref *d,
				    const struct input_spec *specs, size_t n)
{
	struct dataset_options opt = { .kind = d->kind,
				       .n_params = d->n_params,
				       .transforms = d->transforms,
				       .n_transforms = d->n_transforms,
				       .label_shift = d->label_shift,
				       .objects = d->objects,
				       .squad = d->squad.label_file ? &d->squad : NULL,
				       .vocabulary = d->vocabulary,
				       .channels = n ? image_channels(specs, n) : 0,
				       .n_wanted = n,
				       .begun = d->begun };
	const char **names = xcalloc(n + 1, sizeof(*names));
	struct dataset_param *params = xcalloc(d->n_params + 1, sizeof(*params));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < n; i++)
		names[i] = specs[i].name;
	opt.wanted = names;
	for (i = 0; i < d->n_params; i++)
		params[i] = (struct dataset_param){ d->params[i].key, d->params[i].value };
	opt.params = params;
	if (d->source)
		st = dataset_open_source(out, d->source, &opt, &cx->err);
	else if (d->registered)
		st = registered_dataset_open(d->registered, d->root, d->params, d->n_params, &opt, out,
					     &cx->err);
	else if (!d->root && d->kind && !dataset_needs_path(d->kind))
		st = dataset_open(out, d->kind, &opt, &cx->err);
	else if (!d->root)
		st = fail(&cx->err, FETTLE_INVALID, "cannot read the %s data: no path is given", d->what);
	else
		st = dataset_open(out, d->root, &opt, &cx->err);
	if (!st && (*out)->note)
		context_note(cx, (*out)->note);
	if (!st && (*out)->ignored && d->root) {
		char *text = xstrfmt("%s: no input takes %s, ignored", d->root, (*out)->ignored);

		context_note(cx, text);
		free(text);
	}
	free(params);
	free(names);
	return st;
}

enum fettle_status data_fingerprint(struct context *cx, const struct data_ref *d, char out[FINGERPRINT_LEN])
{
	struct dataset *data = NULL;
	enum fettle_status st;

	out[0] = '\0';
	if (!d->source && !d->registered && (!d->root || access(d->root, F_OK) == 0))
		return d->root ? fingerprint_file(d->root, out, &cx->err) : FETTLE_OK;
	st = open_data(&data, cx, d, NULL, 0);
	if (!st)
		st = dataset_fingerprint(data, out, &cx->err);
	dataset_free(data);
	return st;
}

/* A name that the model does not have means another model. */
static enum fettle_status check_inputs(const struct data_ref *d, const struct input_spec *specs, size_t n,
				       struct err *err)
{
	const char **known = xcalloc(n + 1, sizeof(*known)), *near;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (k = 0; k < n; k++)
		known[k] = specs[k].name;
	for (i = 0; i < d->n_inputs && !st; i++) {
		for (k = 0; k < n && strcmp(known[k], d->inputs[i]) != 0;)
			k++;
		if (k < n)
			continue;
		near = str_nearest(d->inputs[i], known, n);
		st = fail(err, FETTLE_INVALID, "%scannot set model.inputs: the model has no input '%s'%s%s%s",
			  d->inputs_where, d->inputs[i], near ? ", did you mean '" : ", it has ",
			  near ? near
			  : n  ? known[0]
			       : "none",
			  near ? "'?" : "");
	}
	free(known);
	return st;
}

enum fettle_status source_open_specs(struct source *s, struct context *cx, const struct data_ref *d,
				     const struct input_spec *specs, size_t n, const struct feed_options *o)
{
	enum fettle_status st;

	assert(!s->feed);
	st = check_inputs(d, specs, n, &cx->err);
	if (!st && !s->data)
		st = open_data(&s->data, cx, d, specs, n);
	if (!st)
		st = feed_open(&s->feed, s->data, specs, n, o, &cx->err);
	return st;
}

enum fettle_status source_open(struct source *s, struct context *cx, const struct data_ref *d,
			       const struct session *session, const struct feed_options *o)
{
	size_t n = session_n_inputs(session);
	struct input_spec *specs = xcalloc(n + 1, sizeof(*specs));
	enum fettle_status st;

	session_specs(session, specs);
	st = source_open_specs(s, cx, d, specs, n, o);
	free(specs);
	return st;
}

void source_release(struct source *s)
{
	feed_free(s->feed);
	dataset_free(s->data);
	*s = (struct source)SOURCE_INIT;
}
