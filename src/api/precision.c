/* What became of each op of a model that is reported: the same list for every command. */
#include <stdlib.h>

#include "api/request.h"
#include "quantize/precision.h"

void api_keep_precisions(struct fettle *f, const struct precisions *p, const struct subject *s)
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
	enum fettle_status st = precisions_of(out, f->rt, s, (enum approach)r->c->quantization.approach,
					      allowed, plan, quantized, &f->err);

	if (!st)
		api_keep_precisions(f, out, s);
	return st;
}

bool fettle_fp32_op(const struct fettle *f, size_t i, struct fettle_fp32_op *out)
{
	if (i >= f->fp32_ops.n)
		return false;
	api_give(out, &f->fp32_ops.v[i], sizeof(*out));
	return true;
}
