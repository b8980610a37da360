#include "api/request.h"

#include <stdlib.h>

#include "api/effort.h"
#include "base/file.h"
#include "finetune/finetune.h"
#include "quantize/variant.h"

static bool plan_is_static(const struct qplan *p, const struct op_list *ops)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->ops[i].mode == OP_STATIC && ops->v[i].rule->kind != OP_TABLE &&
		    ops->v[i].rule->kind != OP_MOVE)
			return true;
	return false;
}

/* The ranges that a plan of the variant needs: from the base, from the variant, or from each some (see variant_range()). */
static enum fettle_status find_ranges(struct fettle *f, struct subject *base, const struct qplan *mapped,
				      struct feed *feed, const struct calibrate_options *co,
				      struct activations *out)
{
	struct subject *s = out->v->s;
	const char **values = NULL;
	size_t n = quantizer_values(&s->g, &s->ops, mapped, &values), i, k;
	bool own = false, others = false;
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < mapped->n && !(own && others); i++)
		for (k = 0; k < n && mapped->ops[i].mode == OP_STATIC; k++)
			if (variant_needs_own(out->v, values[k], mapped->ops[i].act.algorithm))
				own = true;
			else
				others = true;
	free(values);
	if (own || !others)
		st = subject_calibrate(s, f->rt, feed, co, &out->c, &f->err);
	if (others && !st)
		st = subject_calibrate(base, f->rt, feed, co, &out->base, &f->err);
	return st;
}

/* what a plan needs to know of the data. The base is rewritten where its recipes say so: *v is what it became. */
static enum fettle_status run_calibration(struct fettle *f, const struct request *r, struct subject *base,
					  const struct qplan *plan, struct variant **v, struct source *data,
					  struct activations *out)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	struct calibrate_options co = { .threads = r->threads, .progress = api_progress, .self = f };
	struct feed_options fo = { .batch = r->o.batch ? r->o.batch : CALIB_BATCH,
				   .limit = r->samples ? r->samples
						       : (size_t)r->c->calibration.sampling_size.v[0],
				   .shuffle = r->o.seed || r->c->calibration.dataloader.shuffle,
				   .seed = r->o.seed ? r->o.seed : (uint64_t)r->c->tuning.random_seed };
	struct channel_axis *axes = NULL;
	struct subject *s = base;
	struct qplan mapped = QPLAN_INIT;
	struct session *shape = NULL; /* only to ask what the inputs are */
	enum fettle_status st;
	size_t n;

	st = api_phase(f, "calibrate");
	if (!st)
		st = session_new(&shape, f->rt, s->m, &so, &f->err);
	if (!st)
		st = request_source(data, r, &r->c->calibration.dataloader, "calibration", shape, &fo,
				    &f->err);
	if (!st)
		st = variant_new(v, f->rt, base, plan, data->feed, &co, &f->err);
	if (!st) {
		qplan_averages(plan, co.averaging);
		s = (*v)->s;
		variant_plan(*v, plan, &mapped);
		out->v = *v;
		st = find_ranges(f, base, &mapped, data->feed, &co, out);
	}
	if (!st && (plan->recipes.fast_bias_correction || plan->recipes.weight_correction)) {
		n = quantizer_means(&s->g, &s->ops, NULL, &axes);
		st = calibrate_means(&out->means, f->rt, s->m, axes, n, data->feed, &co, &f->err);
	}
	qplan_release(&mapped);
	free(axes);
	session_free(shape);
	return st;
}

/* what the recipe finetune works with */
static enum fettle_status tuning_source(struct fettle *f, const struct request *r, struct subject *s,
					const struct feed *feed, struct finetune_source *out)
{
	*out = (struct finetune_source){
		.rt = f->rt, .s = s, .feed = feed, .threads = r->threads, .progress = api_progress, .self = f
	};
	if (!r->o.cache)
		return FETTLE_OK;
	if (parse_size(r->o.cache, &out->cache, &f->err))
		return FETTLE_INVALID;
	out->cache = out->cache ? out->cache : 1;
	return FETTLE_OK;
}

/* the model as a user's session will load it: better to find out now than in production */
static enum fettle_status check_loads(struct fettle *f, struct model *m)
{
	struct session_options so = { .threads = 1 };
	struct session *s = NULL;
	enum fettle_status st = session_new(&s, f->rt, m, &so, &f->err);

	session_free(s);
	return st;
}

static void summarise(const struct qplan *p, const struct subject *s, struct fettle_quantized *out)
{
	struct qplan_summary sum = qplan_summarise(p, &s->ops);

	out->ops_int8 = sum.int8;
	out->ops_int16 = sum.int16;
	out->ops_dynamic = sum.dynamic;
	out->ops_fp32 = sum.fp32;
	out->int8_share = sum.int8_share;
}

/* for fettle_finetuned() */
static void keep_report(struct fettle *f, const struct finetune_report *r)
{
	size_t i;

	for (i = 0; i < r->ops.n; i++) {
		const struct finetune_op *op = &r->ops.v[i];
		struct fettle_finetuned out = { xstrdup(op->name), op->left, op->before, op->after,
						op->kept };

		VEC_PUSH(&f->finetuned, out);
	}
}

enum fettle_status fettle_quantize(struct fettle *f, const struct fettle_options *in,
				   struct fettle_quantized *out)
{
	struct request r;
	struct subject *s = NULL;
	struct activations known = { .c = NULL };
	struct finetune_source tune;
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct source data = { NULL, NULL };
	struct variant *v = NULL;
	struct quantizer *z = NULL;
	struct model *q = NULL;
	struct qplan plan = QPLAN_INIT;
	struct range_source ranges;
	bool is_static;
	double t;
	enum fettle_status st;

	*out = (struct fettle_quantized){ 0 };
	st = request_begin(&r, f, in);
	if (!st && (!r.o.model || !r.o.output))
		st = fail(&f->err, FETTLE_INVALID, "cannot quantize: need a model and an output path");
	if (!st && r.c->recipes.include_auto_mp)
		st = fail(&f->err, FETTLE_INVALID,
			  "cannot quantize: auto_mp goes by a target, and only 'fettle tune' and 'fettle "
			  "search' have one");
	if (st)
		goto out;
	t = clock_now();
	st = api_phase(f, "prepare");
	if (!st)
		st = subject_open(&s, f->rt, r.o.model, &f->err);
	if (!st)
		st = request_plan(&r, s, &plan, &f->err);
	if (st)
		goto out;
	out->seconds_prepare = clock_now() - t;
	t = clock_now();
	is_static = plan_is_static(&plan, &s->ops);
	if (is_static || recipes_rewrite(&plan.recipes)) {
		if (!request_has_data(&r, &r.c->calibration.dataloader)) {
			st = fail(&f->err, FETTLE_INVALID,
				  "cannot quantize %s: %s needs calibration data (--calib)%s", r.o.model,
				  is_static ? "static quantization" : "what cle and smooth_quant do",
				  is_static ? ", or choose the dynamic approach" : "");
			goto out;
		}
		st = run_calibration(f, &r, s, &plan, &v, &data, &known);
		if (!st)
			st = tuning_source(f, &r, v->s, data.feed, &tune);
		if (st)
			goto out;
		known.tune = &tune;
		known.report = &report;
		ranges = activations_source(&known);
		out->calib_samples = calibration_samples(known.c ? known.c : known.base);
		out->seconds_calibrate = clock_now() - t;
		t = clock_now();
	}
	st = api_phase(f, "quantize");
	if (st)
		goto out;
	z = v ? variant_quantizer(v, &ranges) : quantizer_new(s->m, &s->g, &s->ops, NULL);
	st = quantize(z, &plan, &q, &f->err);
	out->seconds_quantize = clock_now() - t;
	if (!st)
		st = check_loads(f, q);
	if (!st)
		st = model_save(q, r.o.output, &f->err);
	if (st)
		goto out;
	summarise(&plan, s, out);
	keep_report(f, &report);
	out->size_before = model_file_size(r.o.model);
	out->size_after = model_file_size(r.o.output);
out:
	VEC_RELEASE(&report.ops);
	VEC_RELEASE(&report.blocks);
	model_free(q);
	quantizer_free(z);
	activations_release(&known);
	source_release(&data);
	variant_free(v);
	qplan_release(&plan);
	subject_free(s);
	request_release(&r);
	return st;
}
