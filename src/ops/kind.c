#include "ops/kind.h"

#include <string.h>

#include "base/str.h"

/* beside QLinear...: ops of quantized models, and whether they compute with integers */
static const struct {
	const char *type;
	bool computes;
} quantized_types[] = {
	{ "QuantizeLinear", false },
	{ "DequantizeLinear", false },
	{ "QLinearConv", true },
	{ "QLinearMatMul", true },
	{ "QGemm", true },
	{ "QAttention", true },
	{ "DynamicQuantizeLinear", false },
	{ "MatMulInteger", true },
	{ "ConvInteger", true },
	{ "ConvTransposeInteger", true },
	{ "MatMulIntegerToFloat", true },
	{ "DynamicQuantizeMatMul", true },
	{ "DynamicQuantizeLSTM", true },
	{ "MatMulNBits", false }, /* unpacks its weights and computes in floats, unless told */
	{ "MatMulBnb4", false },
	{ "GatherBlockQuantized", false },
};
/* what a quantizer would be after */
static const char *const compute_types[] = {
	"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"
};

bool is_quantize_linear(const struct node *n)
{
	return n && strcmp(n->op, "QuantizeLinear") == 0;
}

bool is_dequantize_linear(const struct node *n)
{
	return n && strcmp(n->op, "DequantizeLinear") == 0;
}

bool is_quantized(const struct node *n)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(quantized_types); i++)
		if (strcmp(n->op, quantized_types[i].type) == 0)
			return true;
	return str_starts(n->op, "QLinear");
}

bool computes_integers(const struct node *n)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(quantized_types); i++)
		if (strcmp(n->op, quantized_types[i].type) == 0)
			return quantized_types[i].computes || node_int(n, "accuracy_level", 0) == 4;
	return str_starts(n->op, "QLinear");
}

static size_t count_type(const struct model *m, const char *type)
{
	size_t i, n = 0;

	for (i = 0; i < m->nodes.n; i++)
		n += strcmp(m->nodes.v[i]->op, type) == 0;
	return n;
}

static void add_count(struct str *s, size_t n, const char *type)
{
	if (n)
		str_addf(s, "%s%zu %s", s->n ? ", " : "", n, type);
}

const char *kind_quantized(const struct model *m, struct arena *a)
{
	struct str s = STR_INIT;
	const char *text = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(quantized_types); i++)
		add_count(&s, count_type(m, quantized_types[i].type), quantized_types[i].type);
	if (s.n)
		text = arena_strfmt(a, "quantized already (%s)", s.s);
	str_release(&s);
	return text;
}

const char *kind_hidden(const struct model *m, struct arena *a)
{
	const char *text = NULL;
	size_t i, k;

	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];
		struct str s = STR_INIT;

		for (k = 0; k < ARRAY_LEN(compute_types) && node_has_subgraph(n); k++)
			add_count(&s, node_count_inside(n, compute_types[k]), compute_types[k]);
		if (s.n)
			text = arena_strfmt(a, "%s%s%s '%s' holds %s", text ? text : "", text ? "; " : "",
					    n->op, n->name, s.s);
		str_release(&s);
	}
	return text;
}
