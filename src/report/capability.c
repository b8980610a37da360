#include "report/capability.h"

#include "base/str.h"
#include "calibrate/range.h"
#include "ops/cpu.h"
#include "ops/rules.h"
#include "runtime/session.h"

static void list_algorithms(struct str *out, bool for_weights)
{
	const char *comma = "";
	size_t k;

	for (k = 0; k < RANGE_ALGORITHMS; k++) {
		const struct range_method *m = range_methods[range_preferred(k)];

		if (for_weights ? !m->for_weights : !m->tried)
			continue;
		str_addf(out, "%s%s", comma, m->name);
		comma = ", ";
	}
	str_addf(out, "] }\n");
}

static void list_types(struct str *out, unsigned mask)
{
	static const char *const names[] = { "uint8", "int8", "uint16", "int16" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (mask & 1u << i)
			str_addf(out, "%s, ", names[i]);
}

char *capability_text(void)
{
	struct cpu cpu = cpu_detect();
	struct str out = STR_INIT;
	size_t i;

	str_addf(&out,
		 "# What ONNX Runtime %s computes in integers on this CPU (%s), in order of preference.\n%s",
		 runtime_version(), cpu.name,
		 cpu.saturates ? "# u8 x s8 products saturate: int8 weights get 7 bits, or uint8 is used.\n"
			       : "");
	str_addf(&out, "quantization:\n  op_type_wise:\n");
	for (i = 0; i < n_op_rules; i++) {
		const struct op_rule *r = &op_rules[i];

		if (r->kind == OP_MOVE)
			continue;
		str_addf(&out, "    %s:%s\n", r->type, r->modes == MODE_DYNAMIC ? " # dynamic only" : "");
		str_addf(&out, "      activation: { dtype: [");
		list_types(&out, r->act_dtypes);
		str_addf(&out, "fp32], scheme: [asym, sym], granularity: [per_tensor], algorithm: [");
		list_algorithms(&out, false);
		if (r->weight < 0)
			continue;
		str_addf(&out, "      weight: { dtype: [");
		list_types(&out, r->weight_dtypes);
		str_addf(&out, "fp32], scheme: [sym, asym], granularity: [per_channel, per_tensor], "
			       "algorithm: [");
		list_algorithms(&out, true);
	}
	return out.s;
}
