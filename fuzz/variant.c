/* Property: any text is either what recipes have done to a model, and can be told again, or an error of one line. */
#include "fuzz.h"

#include "quantize/variant.h"
#include "subject.h"

/* classes with every kind of part; values: c, r, l, d, p, f, m, t, y */
static const char graph[] =
	"w = 4x3x3x3; b = 4; c = Conv(x, w, b); r = Relu(c); u = 4x4x1x1; v = 4;"
	"d = Conv(r, u, v); k = 4x1x1; a = Add(d, k); z = 0.0; h = 6.0; l = Clip(a, z, h);"
	"p = GlobalAveragePool(l); f = Flatten(p); n = 4x4; m = MatMul(f, n); s = 4;"
	"t = Mul(m, s); g = 3x4; y = Gemm(t, g) transB=1";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct subject *s = fuzz_subject("x:?x3x8x8", graph);
	char *text = xstrfmt("%.*s", (int)n, (const char *)data);
	struct variant *v = NULL, *again = NULL;
	struct err err = ERR_INIT;
	enum fettle_status st = variant_read(&v, s, text, &err);

	check_message(st, &err);
	if (!st && (variant_read(&again, s, v->text, &err) || strcmp(again->text, v->text) != 0))
		abort();
	variant_free(again);
	variant_free(v);
	free(text);
	return 0;
}
