#include "tune/one_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "finetune/finetune.h"
#include "quantize/by_parts.h"
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
static enum fettle_status open_calibration(struct context *cx, const struct one_plan *o, struct source *data)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE, .unused = true };
	struct session *shape = NULL; /* only to ask what the inputs are */
	const struct model *m = o->s->m;
	struct input_spec *specs = xcalloc(m->n_inputs + 1, sizeof(*specs));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < m->n_inputs; i++) {
		specs[i] = (struct input_spec){ .name = m->inputs[i].name,
						.dtype = m->inputs[i].type.dtype,
						.rank = m->inputs[i].type.rank };
		memcpy(specs[i].dims, m->inputs[i].type.dims, sizeof(specs[i].dims));
	}
	st = o->s->outside ? FETTLE_OK : session_new(&shape, cx->rt, o->s->m, &so, &cx->err);
	if (!st && o->s->outside) /* a session would need the weights */
		st = source_open_specs(data, cx, o->calib, specs, m->n_inputs, &o->feed);
	else if (!st)
		st = source_open(data, cx, o->calib, shape, &o->feed);
	if (!st)
		st = fed_tell(cx, "calibration", data, NULL);
	if (!st)
		subject_see(o->s, cx->rt, data->feed);
	session_free(shape);
	free(specs);
	return st;
}

/* all that the plan needs to know, from the data */
static struct learner *open_learner(struct context *cx, const struct one_plan *o, struct feed *calib,
				    double *seconds, struct finetune_report *report)
{
	struct learn_source source = { .rt = cx->rt,
				       .s = o->s,
				       .calib = calib,
				       .threads = o->threads,
				       .rounding_threads = o->threads,
				       .cache = o->cache,
				       .progress = context_progress,
				       .self = cx,
				       .seconds = seconds,
				       .report = report };

	qplan_averages(o->plan, source.averaging);
	return learner_new(&source);
}

/* The weights of a model that is larger than memory. */
static enum fettle_status learn_by_parts(struct context *cx, const struct one_plan *o,
					 const struct feed *calib, struct block_store *out, double *seconds)
{
	const struct parts p = { .rt = cx->rt,
				 .s = o->s,
				 .plan = o->plan,
				 .feed = calib,
				 .threads = o->threads,
				 .progress = context_progress,
				 .self = cx };
	double start = clock_now();
	enum fettle_status st = blocks_by_parts(out, &p, &cx->err);

	*seconds += clock_now() - start;
	return st;
}

/* As a user's session will load it: better to find out now than in production. */
static enum fettle_status summarise(struct context *cx, const struct one_plan *o, const struct model *q,
				    struct fettle_quantized *out)
{
	struct precisions p = PRECISIONS_INIT;
	enum fettle_status st = context_precisions(cx, o->s, o->approach, o->plan, q, &p);

	out->ops_int8 = p.int8;
	out->ops_int16 = p.int16;
	out->ops_dynamic = p.dynamic;
	out->ops_weight_only = p.weight;
	out->ops_fp32 = p.fp32;
	out->int8_share = p.int8_share;
	out->weight_only_share = p.weight_share;
	precisions_release(&p);
	return st;
}

/* what the recipe finetune did to each op, and in all */
static void keep_report(struct context *cx, const struct finetune_report *r, struct fettle_quantized *q)
{
	size_t i;

	for (i = 0; i < r->ops.n; i++) {
		const struct finetune_op *op = &r->ops.v[i];
		struct fettle_finetuned out = { .name = xstrdup(op->name),
						.left = op->left,
						.before = op->before,
						.after = op->after,
						.kept = op->kept };

		VEC_PUSH(&cx->finetuned, out);
		q->finetune_left += op->left != NULL;
		q->finetune_kept += op->kept;
		if (op->left || op->kept)
			continue;
		q->finetune_before += op->before;
		q->finetune_after += op->after;
		q->finetuned++;
	}
	if (q->finetuned) {
		q->finetune_before /= (double)q->finetuned;
		q->finetune_after /= (double)q->finetuned;
	}
}

/* whether the plan needs calibration data; fails if it does and there is none */
static enum fettle_status check_data(const struct one_plan *o, bool *needed, struct err *err)
{
	const bool is_static = plan_is_static(o->plan, &o->s->ops);
	const char *algorithm = NULL;
	size_t i;

	for (i = 0; i < o->plan->n; i++)
		if (o->plan->ops[i].mode == OP_WEIGHT && block_needs_data(&o->plan->ops[i].blocks))
			algorithm = block_methods[o->plan->ops[i].blocks.algorithm]->name;
	*needed = is_static || algorithm || plan_rewrites(o->plan);
	if (!*needed || o->calib)
		return FETTLE_OK;
	if (algorithm)
		return fail(err, FETTLE_INVALID,
			    "cannot quantize %s: %s needs calibration data (--calib), or choose another "
			    "algorithm, such as rtn",
			    o->model, algorithm);
	return fail(err, FETTLE_INVALID, "cannot quantize %s: %s needs calibration data (--calib)%s",
		    o->model, is_static ? "static quantization" : "what cle and smooth_quant do",
		    is_static ? ", or choose the dynamic approach" : "");
}

enum fettle_status quantize_one(struct context *cx, const struct one_plan *o, struct fettle_quantized *out)
{
	const struct qplan *plan = o->plan;
	struct learner *learner = NULL;
	struct block_store *blocks = NULL;
	struct knowledge known;
	struct finetune_report report = { .ops = { NULL, 0, 0 } };
	struct source data = SOURCE_INIT;
	struct model *q = NULL;
	bool needs_data;
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	assert(plan->n == o->s->ops.n);
	/* any other model without such ops is written as it is, as one is whose opset cannot be raised */
	if ((o->s->quantized || o->s->hidden) && !has_work(o->s, plan))
		return context_nothing(cx, o->s, "quantize", o->model);
	context_note_kind(cx, o->s);
	st = check_data(o, &needs_data, &cx->err);
	if (!st && needs_data) {
		st = context_phase(cx, plan->recipes.finetune.algorithm == FINETUNE_OFF
					       ? "calibrate"
					       : "calibrate and fine-tune");
		if (!st)
			st = open_calibration(cx, o, &data);
		if (!st)
			out->calib_samples = feed_samples(data.feed);
	}
	if (st)
		goto out;
	if (o->s->outside && parts_needed(plan)) {
		blocks = block_store_new();
		known = (struct knowledge){ .blocks = blocks };
		st = learn_by_parts(cx, o, data.feed, blocks, &out->seconds_calibrate);
	} else {
		learner = open_learner(cx, o, data.feed, &out->seconds_calibrate, &report);
		st = learn(learner, 0, plan, &known, &cx->err);
	}
	if (!st)
		st = context_phase(cx, "quantize");
	if (!st)
		st = quantize(o->s->z, &known, plan, &q, &cx->err);
	out->seconds_quantize = clock_now() - start - out->seconds_calibrate;
	if (!st)
		st = summarise(cx, o, q, out);
	if (!st)
		st = model_save(q, o->output, &cx->err);
	if (st)
		goto out;
	out->cpu = cx->cpu.name;
	context_saturates_on(cx, plan, &o->s->ops, out->saturates_on, sizeof(out->saturates_on));
	keep_report(cx, &report, out);
	out->size_before = model_file_size(o->model);
	out->size_after = model_file_size(o->output);
out:
	VEC_RELEASE(&report.ops);
	VEC_RELEASE(&report.blocks);
	model_free(q);
	block_store_free(blocks);
	learner_free(learner);
	source_release(&data);
	return st;
}
