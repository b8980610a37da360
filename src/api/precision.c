/* What became of each op of a model that is reported: the same list for every command. */
#include <stdlib.h>

#include "api/request.h"
#include "quantize/precision.h"

static void keep_list(struct fettle *f, const struct precisions *p, const struct subject *s)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct op *op = &s->ops.v[i];
		struct fettle_fp32_op out = { .reason = fp32_reasons[p->v[i].reason],
					      .share = s->ops.total_macs > 0 ? op->macs / s->ops.total_macs
									     : 0 };

		if (p->v[i].is != PRECISION_FP32)
			continue;
		out.name = xstrdup(op->name);
		out.type = xstrdup(s->m->nodes.v[i]->op);
		out.why = xstrdup(p->v[i].why);
		VEC_PUSH(&f->fp32_ops, out);
	}
}

enum fettle_status api_precisions(struct fettle *f, const struct request *r, const struct subject *s,
				  const struct qplan *allowed, const struct qplan *plan,
				  const struct model *quantized, struct precisions *out)
{
	struct qplan by_default = QPLAN_INIT;
	struct qplan_defaults d = qplan_defaults(&s->cpu);
	bool *integer = xcalloc(s->ops.n + 1, sizeof(*integer));
	enum fettle_status st = integer_ops(quantized, f->rt, &s->ops, integer, &f->err);

	d.approach = (enum approach)r->c->quantization.approach;
	qplan_default(&by_default, &s->ops, &s->g, &d);
	if (!st) {
		precisions_init(out, &(struct plan_origin){ &by_default, allowed, plan }, &s->ops, integer);
		keep_list(f, out, s);
	}
	qplan_release(&by_default);
	free(integer);
	return st;
}

bool fettle_fp32_op(const struct fettle *f, size_t i, struct fettle_fp32_op *out)
{
	if (i >= f->fp32_ops.n)
		return false;
	api_give(out, &f->fp32_ops.v[i], sizeof(*out));
	return true;
}
