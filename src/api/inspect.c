#include "api/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* one allocation holds it all but the ops' arrays; the names are the subject's, kept alive with it */
struct inspection {
	struct fettle_inspection pub;
	struct subject *subject;
	struct fettle_op *ops;
	struct fettle_value *in, *out;
};

static struct fettle_value *values(const struct value *v, size_t n)
{
	struct fettle_value *out = xcalloc(n, sizeof(*out));
	size_t i;

	for (i = 0; i < n; i++) {
		out[i].name = v[i].name;
		out[i].dtype = dtype_name(v[i].type.dtype);
		if (v[i].type.rank < 0)
			snprintf(out[i].shape, sizeof(out[i].shape), "unknown");
		else
			tensor_shape_text(&v[i].type, out[i].shape, sizeof(out[i].shape));
	}
	return out;
}

static size_t weight_bytes(const struct model *m)
{
	size_t total = 0, i;

	for (i = 0; i < m->inits.n; i++)
		total += tensor_bytes(&m->inits.v[i]->t);
	return total;
}

static void fill_op(struct fettle_op *o, const struct op *op, const struct node *n, enum op_mode mode)
{
	static const char *const kinds[] = {
		[OP_COMPUTE] = "compute", [OP_ELEMENT] = "element", [OP_MOVE] = "move", [OP_TABLE] = "table"
	};

	*o = (struct fettle_op){
		.name = op->name,
		.type = n->op,
		.why_not = op->why,
		.kind = op->rule ? kinds[op->rule->kind] : NULL,
		.can_static = op->modes & MODE_STATIC,
		.can_dynamic = op->modes & MODE_DYNAMIC,
		.by_default = !op->rule || mode == OP_FP32 ? "fp32"
			      : mode == OP_DYNAMIC         ? "dynamic"
							   : "int8",
		.macs = op->macs,
		.block = op->block,
	};
}

enum fettle_status fettle_inspect(struct fettle *f, const struct fettle_options *in,
				  struct fettle_inspection **out)
{
	struct request r;
	struct inspection *i;
	struct subject *s = NULL;
	struct qplan plan = QPLAN_INIT;
	struct cuts cuts;
	enum fettle_status st;
	size_t k;

	st = request_begin(&r, f, in);
	if (!st && !r.o.model)
		st = fail(&f->err, FETTLE_INVALID, "cannot inspect: need a model");
	if (!st)
		st = api_phase(f, "prepare");
	if (!st)
		st = subject_open(&s, f->rt, r.o.model, &f->err);
	if (!st)
		st = request_plan(&r, s, &plan, &f->err);
	request_release(&r);
	if (st) {
		subject_free(s);
		return st;
	}
	i = xcalloc(1, sizeof(*i));
	i->subject = s;
	i->ops = xcalloc(s->ops.n, sizeof(*i->ops));
	for (k = 0; k < s->ops.n; k++)
		fill_op(&i->ops[k], &s->ops.v[k], s->m->nodes.v[k], plan.ops[k].mode);
	i->in = values(s->m->inputs, s->m->n_inputs);
	i->out = values(s->m->outputs, s->m->n_outputs);
	graph_cuts(&s->g, false, &cuts);
	i->pub = (struct fettle_inspection){
		.n_ops = s->ops.n,
		.n_blocks = s->ops.n_blocks,
		.n_cuts = cuts.n,
		.n_inputs = s->m->n_inputs,
		.n_outputs = s->m->n_outputs,
		.ops = i->ops,
		.inputs = i->in,
		.outputs = i->out,
		.opset = s->m->opset,
		.weight_bytes = weight_bytes(s->m),
		.total_macs = s->ops.total_macs,
		.int8_share = qplan_summarise(&plan, &s->ops).int8_share,
	};
	cuts_release(&cuts);
	qplan_release(&plan);
	*out = &i->pub;
	return FETTLE_OK;
}

void fettle_inspection_free(struct fettle_inspection *pub)
{
	struct inspection *i = (struct inspection *)pub;

	if (!i)
		return;
	subject_free(i->subject);
	free(i->ops);
	free(i->in);
	free(i->out);
	free(i);
}
