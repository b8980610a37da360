#include "api/fed.h"

#include <stdlib.h>

#include "api/effort.h"
#include "base/file.h"
#include "finetune/finetune.h"
#include "quantize/variant.h"
#include "tune/learn.h"

static bool plan_is_static(const struct qplan *p, const struct op_list *ops)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->ops[i].mode == OP_STATIC && ops->v[i].rule->kind != OP_TABLE &&
		    ops->v[i].rule->kind != OP_MOVE)
			return true;
	return false;
}

/* does any approach find something to quantize, or does the plan? */
static bool has_work(const struct subject *s, const struct qplan *plan)
{
	struct qplan_defaults d = qplan_defaults(&s->cpu);
	struct qplan most = QPLAN_INIT;
	bool found = false;
	size_t i;

	d.approach = APPROACH_AUTO;
	qplan_default(&most, &s->ops, &s->g, &d);
	for (i = 0; i < s->ops.n; i++)
		found |= s->ops.v[i].rule && s->ops.v[i].rule->kind != OP_MOVE &&
			 (most.ops[i].mode != OP_FP32 || plan->ops[i].mode != OP_FP32);
	qplan_release(&most);
	return found;
}

/* the samples to calibrate on */
static enum fettle_status open_calibration(struct fettle *f, const struct request *r, const struct subject *s,
					   struct source *data)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	struct feed_options fo =
		request_calib_options(r, r->o.batch ? r->o.batch : CALIB_BATCH,
				      r->samples ? r->samples : (size_t)r->c->calibration.sampling_size.v[0]);
	struct session *shape = NULL; /* only to ask what the inputs are */
	enum fettle_status st;

	st = session_new(&shape, f->rt, s->m, &so, &f->err);
	if (!st)
		st = request_source(data, r, &r->c->calibration.dataloader, "calibration", shape, &fo,
				    &f->err);
	if (!st)
		st = fed_tell(f, "calibration", data, NULL);
	session_free(shape);
	return st;
}

/* all that the plan needs to know, from the data */
static enum fettle_status open_learner(struct fettle *f, const struct request *r, struct subject *s,
				       const struct qplan *plan, struct feed *calib,
				       struct fettle_quantized *times, struct finetune_report *report,
				       struct learner **out)
{
	struct learn_source source = { .rt = f->rt,
				       .s = s,
				       .calib = calib,
				       .threads = r->threads,
				       .rounding_threads = r->threads,
				       .cache = CACHE_DEFAULT,
				       .progress = api_progress,
				       .self = f,
				       .seconds = &times->seconds_calibrate,
				       .report = report };
	enum fettle_status st = r->o.cache ? parse_size(r->o.cache, &source.cache, &f->err) : FETTLE_OK;

	qplan_averages(plan, source.averaging);
	if (!st)
		*out = learner_new(&source);
	return st;
}

/* As a user's session will load it: better to find out now than in production. */
static enum fettle_status summarise(struct fettle *f, const struct request *r, const struct subject *s,
				    const struct qplan *plan, const struct model *q,
				    struct fettle_quantized *out)
{
	struct precisions p = PRECISIONS_INIT;
	enum fettle_status st = api_precisions(f, r, s, plan, plan, q, &p);

	out->ops_int8 = p.int8;
	out->ops_int16 = p.int16;
	out->ops_dynamic = p.dynamic;
	out->ops_fp32 = p.fp32;
	out->int8_share = p.int8_share;
	precisions_release(&p);
	return st;
}

/* for fettle_finetuned() */
static void keep_report(struct fettle *f, const struct finetune_report *r)
{
	size_t i;

	for (i = 0; i < r->ops.n; i++) {
		const struct finetune_op *op = &r->ops.v[i];
		struct fettle_finetuned out = { .name = xstrdup(op->name),
						.left = op->left,
						.before = op->before,
						.after = op->after,
						.kept = op->kept };

		VEC_PUSH(&f->finetuned, out);
	}
}

enum fettle_status api_quantize(struct fettle *f, const struct fettle_options *in,
				struct fettle_quantized *out)
{
	struct request r;
	struct subject *s = NULL;
	struct learner *learner = NULL;
	struct knowledge known;
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct source data = { NULL, NULL };
	struct model *q = NULL;
	struct qplan plan = QPLAN_INIT;
	bool is_static;
	double t;
	enum fettle_status st;

	*out = (struct fettle_quantized){ 0 };
	st = request_begin(&r, f, in, CONFIG_QUANTIZE);
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
		st = api_subject(f, r.o.model, &s);
	if (!st)
		st = request_plan(&r, s, &plan, &f->err);
	/* any other model without such ops is written as it is, as one is whose opset cannot be raised */
	if (!st && (s->quantized || s->hidden) && !has_work(s, &plan))
		st = api_nothing(f, s, "quantize", r.o.model);
	if (!st)
		api_note_kind(f, s);
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
		st = api_phase(f, plan.recipes.finetune.algorithm == FINETUNE_OFF
					  ? "calibrate"
					  : "calibrate and fine-tune");
		if (!st)
			st = open_calibration(f, &r, s, &data);
		if (st)
			goto out;
		out->calib_samples = feed_samples(data.feed);
	}
	st = open_learner(f, &r, s, &plan, data.feed, out, &report, &learner);
	if (!st)
		st = learn(learner, 0, &plan, &known, &f->err);
	if (!st)
		st = api_phase(f, "quantize");
	if (!st)
		st = quantize(s->z, &known, &plan, &q, &f->err);
	out->seconds_quantize = clock_now() - t - out->seconds_calibrate;
	if (!st)
		st = summarise(f, &r, s, &plan, q, out);
	if (!st)
		st = model_save(q, r.o.output, &f->err);
	if (st)
		goto out;
	out->cpu = f->cpu.name;
	api_saturates_on(f, &plan, &s->ops, out->saturates_on, sizeof(out->saturates_on));
	keep_report(f, &report);
	out->size_before = model_file_size(r.o.model);
	out->size_after = model_file_size(r.o.output);
out:
	VEC_RELEASE(&report.ops);
	VEC_RELEASE(&report.blocks);
	model_free(q);
	learner_free(learner);
	source_release(&data);
	qplan_release(&plan);
	subject_free(s);
	request_release(&r);
	return st;
}
