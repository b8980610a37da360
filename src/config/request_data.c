/* Which data a request uses, and how it is read. */
#include "config/request.h"

#include <stdlib.h>

#include "config/read.h"
#include "data/arrays.h"

/* the caller's own data, over what the configuration says; NULL: none */
static const struct fettle_data_source *source_of(const struct request *r, const struct config_dataloader *d)
{
	return d == &r->c->calibration.dataloader  ? r->o.calib_source
	       : d == &r->c->evaluation.dataloader ? r->o.eval_source
						   : NULL;
}

static const struct fettle_dataset *registered_kind(const struct request *r,
						    const struct config_dataloader *d)
{
	return d->dataset.kind ? registered_dataset_find(&r->cx->members, d->dataset.kind) : NULL;
}

bool request_data_is_own(const struct request *r, const struct config_dataloader *d)
{
	const struct fettle_data_source *source = source_of(r, d);

	return (source && !source_is_arrays(source)) || registered_kind(r, d);
}

bool request_has_data(const struct request *r, const struct config_dataloader *d)
{
	return source_of(r, d) || d->dataset.root != NULL || registered_kind(r, d) ||
	       (d->dataset.kind && !dataset_needs_path(d->dataset.kind));
}

/* samples to evaluate: all, unless the options or the configuration say how many */
struct feed_options request_eval_options(const struct request *r)
{
	const struct config_dataloader *d = &r->c->evaluation.dataloader;
	const size_t asked = r->o.batch                            ? r->o.batch
			     : config_is_set(r->c, &d->batch_size) ? (size_t)d->batch_size
								   : 0,
		     batch = asked ? asked : DEFAULT_BATCH;
	size_t iterations = r->c->evaluation.iterations > 0 ? (size_t)r->c->evaluation.iterations : 0;

	return (struct feed_options){ .batch = batch,
				      .bytes = asked ? 0 : DEFAULT_BATCH_BYTES,
				      .limit = r->o.eval_samples ? r->o.eval_samples : iterations * batch,
				      .whole = d->last_batch == LAST_BATCH_DISCARD ? batch : 0,
				      .shuffle = d->shuffle,
				      .seed = (uint64_t)r->c->tuning.random_seed };
}

struct feed_options request_calib_options(const struct request *r, size_t batch, size_t limit)
{
	const struct config_dataloader *d = &r->c->calibration.dataloader;

	return (struct feed_options){ .batch = batch,
				      .limit = limit,
				      .whole =
					      d->last_batch == LAST_BATCH_DISCARD ? (size_t)d->batch_size : 0,
				      .shuffle = r->o.seed || d->shuffle,
				      .seed = r->o.seed ? r->o.seed : (uint64_t)r->c->tuning.random_seed };
}

/* A key that another program needs is no mistake, but it is not passed over in silence. */
static void note_idle(struct config *c, const struct config_param *p, const char *of, const char *why)
{
	if (why)
		add_note(c, &p->at, false, "%s of %s has no effect: %s", p->key, of, why);
}

static enum fettle_status check_dataset(struct request *r, const struct config_dataset *d, const char *what)
{
	struct err *err = &r->cx->err;
	const char *near;
	enum fettle_status st;
	char *known;
	size_t i;

	if (!dataset_is_kind(d->kind)) {
		known = dataset_kinds_text(d->kind, &near);
		st = config_fail(config_origin(r->c, d), FETTLE_UNSUPPORTED, err,
				 "cannot read the %s data: dataset '%s', need %s%s%s%s", what, d->kind, known,
				 near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
		free(known);
		return st;
	}
	for (i = 0; i < d->params.n; i++) {
		const struct config_param *p = &d->params.v[i];

		if (!dataset_takes(d->kind, p->key, &known)) {
			st = config_fail(&p->at, FETTLE_INVALID, err,
					 "unknown key '%s' of dataset %s, need %s", p->key, d->kind, known);
			free(known);
			return st;
		}
		note_idle(r->c, p, d->kind, dataset_idle(d->kind, p->key));
	}
	return FETTLE_OK;
}

static void note_transforms(struct request *r, const struct config_transforms *list)
{
	size_t i, k;

	for (i = 0; i < list->n; i++)
		for (k = 0; k < list->source[i].params.n; k++) {
			const struct config_param *p = &list->source[i].params.v[k];

			note_idle(r->c, p, list->source[i].name, transform_idle(&list->v[i], p->key));
		}
}

enum fettle_status request_check_data(struct request *r)
{
	const struct config_dataloader *const loaders[] = { &r->c->calibration.dataloader,
							    &r->c->evaluation.dataloader };
	static const char *const names[] = { "calibration", "evaluation" };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < ARRAY_LEN(loaders) && !st; i++) {
		if (loaders[i]->dataset.kind && !registered_kind(r, loaders[i]))
			st = check_dataset(r, &loaders[i]->dataset, names[i]);
		if (!st)
			note_transforms(r, &loaders[i]->transforms);
	}
	return st;
}

enum fettle_status request_data(struct request *r, const struct config_dataloader *d, const char *what,
				struct data_ref *out)
{
	const struct config_params *params = &d->dataset.params;
	struct fettle_setting *v = arena_alloc(&r->arena, (params->n + 2) * sizeof(*v));
	char *others = NULL;
	size_t i, n;

	for (i = 0; i < params->n; i++)
		v[i] = (struct fettle_setting){ params->v[i].key,
						!registered_kind(r, d) && params->v[i].text
							? params->v[i].text
							: params->v[i].value,
						params->v[i].at.source };
	n = params->n;
	if (d->label_map && d->dataset.kind && dataset_takes(d->dataset.kind, "label_map", &others))
		v[n++] = (struct fettle_setting){ "label_map", d->label_map, NULL };
	free(others);
	*out = (struct data_ref){
		.what = what,
		.source = source_of(r, d),
		.registered = registered_kind(r, d),
		.kind = d->dataset.kind,
		.root = d->dataset.root,
		.params = v,
		.n_params = n,
		.transforms = d->transforms.v,
		.n_transforms = d->transforms.n,
		.label_shift = d->label_shift,
		.squad = d->squad,
		.vocabulary = d->vocabulary,
		.objects = (size_t)d->objects,
		.inputs = r->c->model.inputs.v,
		.n_inputs = r->c->model.inputs.n,
		.inputs_where = config_where(config_origin(r->c, &r->c->model.inputs), &r->arena),
	};
	return FETTLE_OK;
}
