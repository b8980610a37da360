/* Property: any text is either a plan, which printed and read again is the same, or an error of one line. */
#include "fuzz.h"

#include "space/plan_json.h"
#include "subject.h"

static const char graph[] =
	"w = 8x4x3x3; b = 8; a = Conv(x, w, b); r = Relu(a); m = MaxPool(r) kernel_shape=2,2;"
	"f = Flatten(m); v = 200x10; y = Gemm(f, v)";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct op_list *ops = &fuzz_subject("x:?x4x8x8", graph)->ops;
	char *text = xstrfmt("%.*s", (int)n, (const char *)data), *printed, *again;
	struct qplan p = QPLAN_INIT, q = QPLAN_INIT;
	struct err err = ERR_INIT;
	int64_t samples = 0;
	enum fettle_status st = qplan_from_json(&p, &samples, text, "p.json", ops,
						&fuzz_subject("x:?x4x8x8", graph)->g, &err);

	check_message(st, &err);
	if (!st) {
		printed = qplan_to_json(&p, ops, samples);
		if (qplan_from_json(&q, &samples, printed, "p.json", ops,
				    &fuzz_subject("x:?x4x8x8", graph)->g, &err))
			abort();
		again = qplan_to_json(&q, ops, samples);
		if (strcmp(printed, again) != 0)
			abort();
		free(printed);
		free(again);
	}
	qplan_release(&p);
	qplan_release(&q);
	free(text);
	return 0;
}
