/* Which opset a model's quantization needs. */
#include <string.h>

#include "base/str.h"
#include "ops/rules.h"

static int since(const struct op_rule *r)
{
	return r->modes & MODE_DYNAMIC && r->since < OPSET_DYNAMIC ? OPSET_DYNAMIC : r->since;
}

int opset_needed(const struct model *m)
{
	bool computes = false;
	int need = OPSET_STATIC;
	size_t i;

	for (i = 0; i < m->nodes.n; i++) {
		const struct op_rule *r = op_rule_find(m->nodes.v[i]);

		computes |= r && r->kind == OP_COMPUTE;
		if (r && since(r) > need)
			need = since(r);
	}
	return computes ? need : 0;
}

void opset_losses(const struct model *m, int opset, struct str *out)
{
	struct map seen = MAP_INIT;
	size_t i;

	for (i = 0; i < m->nodes.n; i++) {
		const struct op_rule *r = op_rule_find(m->nodes.v[i]);

		if (!r || r->since <= opset || map_get(&seen, r->type) != MAP_NONE)
			continue;
		map_set(&seen, r->type, 1);
		str_addf(out, "%s%s", out->n ? ", " : "", r->type);
	}
	map_release(&seen);
}
