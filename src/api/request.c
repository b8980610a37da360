#include "api/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* options that are settings of the configuration too */
static const struct {
	size_t offset;
	const char *key, *origin;
} texts[] = {
#define TEXT(field, key, flag)                                                                               \
	{                                                                                                    \
		offsetof(struct fettle_options, field), key, flag                                            \
	}
	TEXT(calib, "quantization.calibration.dataloader.dataset", "--calib"),
	TEXT(eval, "evaluation.accuracy.dataloader.dataset", "--eval"),
	TEXT(metric, "evaluation.accuracy.metric", "--metric"),
	TEXT(approach, "quantization.approach", "--approach"),
	TEXT(format, "quantization.quant_format", "--format"),
};

/* In any order: a value that only goes with another, such as a loss over 1 with an absolute criterion, is tried
 * again after it. */
static enum fettle_status set_settings(struct request *r, struct err *err)
{
	const struct fettle_setting *s = r->o.settings;
	size_t i, n = r->o.n_settings, left = n, before;
	bool *done = xcalloc(n, sizeof(*done));
	enum fettle_status st;

	do {
		before = left;
		st = FETTLE_OK;
		for (i = 0; i < n; i++) {
			enum fettle_status one;

			if (done[i])
				continue;
			/* the message that is left is the first one's */
			one = config_set(r->c, s[i].key, s[i].value, s[i].origin, st ? NULL : err);
			done[i] = !one;
			left -= !one;
			st = st ? st : one;
		}
	} while (left && left < before);
	free(done);
	return st;
}

static enum fettle_status set_texts(struct request *r, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < ARRAY_LEN(texts) && !st; i++) {
		const char *value = *(const char *const *)((const char *)&r->o + texts[i].offset);

		if (value)
			st = config_set(r->c, texts[i].key, value, texts[i].origin, err);
	}
	return st ? st : set_settings(r, err);
}

enum fettle_status request_begin(struct request *r, struct fettle *f, const struct fettle_options *in)
{
	enum fettle_status st;
	char number[32];
	size_t i;

	memset(r, 0, sizeof(*r));
	st = api_begin(f, in, &r->o);
	if (!st && r->o.config)
		st = config_load(&r->c, r->o.config, &f->err);
	else if (!st)
		r->c = config_new();
	if (!st)
		st = set_texts(r, &f->err);
	if (!st && r->o.calib_samples) {
		snprintf(number, sizeof(number), "%zu", r->o.calib_samples);
		st = config_set(r->c, "quantization.calibration.sampling_size", number, "--samples", &f->err);
	}
	if (!st)
		r->threads = r->o.threads ? r->o.threads : r->c->evaluation.threads;
	for (i = 0; !st && i < r->c->n_notes; i++)
		api_note(f, r->c->notes[i].text);
	return st;
}

void request_release(struct request *r)
{
	config_free(r->c);
	r->c = NULL;
}

bool request_has_data(const struct config_dataloader *d)
{
	return d->dataset.root != NULL;
}

static enum fettle_status check_kind(const struct config_dataset *d, const char *what, struct err *err)
{
	static const char *const kinds[] = { "ImageFolder", "Npz", "TestDataSet" };
	const char *near;
	size_t i;

	for (i = 0; d->kind && i < ARRAY_LEN(kinds); i++)
		if (strcmp(d->kind, kinds[i]) == 0) {
			if (!d->params.n)
				return FETTLE_OK;
			return config_fail(&d->params.v[0].at, FETTLE_INVALID, err,
					   "unknown key '%s' of dataset %s, need only root",
					   d->params.v[0].key, d->kind);
		}
	if (!d->kind)
		return FETTLE_OK;
	near = str_nearest(d->kind, kinds, ARRAY_LEN(kinds));
	return fail(err, FETTLE_UNSUPPORTED,
		    "cannot read the %s data: dataset '%s', need ImageFolder, Npz or TestDataSet%s%s%s", what,
		    d->kind, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* Which images a model takes says the model: those with one channel are grey. */
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

enum fettle_status request_source(struct source *s, const struct config_dataloader *d, const char *what,
				  const struct session *session, const struct feed_options *o,
				  struct err *err)
{
	struct dataset_options opt = { .transforms = d->transforms.v, .n_transforms = d->transforms.n };
	struct input_spec *specs;
	enum fettle_status st;

	st = check_kind(&d->dataset, what, err);
	if (!st && !d->dataset.root)
		st = fail(err, FETTLE_INVALID, "cannot read the %s data: no path is given", what);
	if (st)
		return st;
	specs = xcalloc(session_n_inputs(session) + 1, sizeof(*specs));
	session_specs(session, specs);
	opt.channels = image_channels(specs, session_n_inputs(session));
	st = dataset_open(&s->data, d->dataset.root, &opt, err);
	if (!st)
		st = feed_open(&s->feed, s->data, specs, session_n_inputs(session), o, err);
	free(specs);
	return st;
}

static struct side_mask side(const struct config_side *s)
{
	return (struct side_mask){ s->granularity.mask, s->scheme.mask,
				   s->dtype.mask & ~(unsigned)CONFIG_BF16, s->algorithm.mask };
}

static struct constraint convert(struct arena *a, const struct config_constraint *c,
				 enum constraint_scope scope)
{
	const char *where = c->at.line ? arena_strfmt(a, "%s:%d:%d", c->at.source, c->at.line, c->at.column)
				       : c->at.source;

	return (struct constraint){ scope, c->name, where, { side(&c->weight), side(&c->activation) } };
}

size_t request_constraints(const struct request *r, struct arena *a, struct constraint **out)
{
	const struct config_constraints *lists[] = { &r->c->quantization.op_type_wise,
						     &r->c->quantization.op_wise };
	VEC(struct constraint) v = { 0 };
	size_t i, k;

	VEC_PUSH(&v, convert(a, &r->c->quantization.model_wise, CONSTRAIN_MODEL));
	for (k = 0; k < ARRAY_LEN(lists); k++)
		for (i = 0; i < lists[k]->n; i++)
			VEC_PUSH(&v, convert(a, &lists[k]->v[i], k ? CONSTRAIN_OP : CONSTRAIN_TYPE));
	*out = v.v;
	return v.n;
}

struct recipes request_recipes(const struct request *r)
{
	const struct config *c = r->c;

	return (struct recipes){
		.keep_first = !c->recipes.first_conv_or_matmul,
		.keep_last = !c->recipes.last_conv_or_matmul,
		.keep_ends = !c->recipes.pre_post_process,
		.own_pool_scale = !c->recipes.scale_propagation_max_pooling,
		.own_concat_scale = !c->recipes.scale_propagation_concat,
		/* INC's default turns Gemm into MatMul; ours has an integer kernel, so only when asked for */
		.gemm_to_matmul = config_is_set(c, &c->recipes.gemm_to_matmul) && c->recipes.gemm_to_matmul,
		.dedicated_qdq_pair = c->recipes.dedicated_qdq_pair,
		.qdq_pair_on_weights = c->recipes.add_qdq_pair_to_weight,
		.fast_bias_correction = c->recipes.fast_bias_correction,
		.weight_correction = c->recipes.weight_correction,
		.no_output = c->recipes.optypes_to_exclude_output_quant.v,
		.n_no_output = c->recipes.optypes_to_exclude_output_quant.n,
	};
}
