/* What a rule says of an op's weight, against the definitions of the ops. */
#include "unit/unit.h"

#include "ops/kind.h"
#include "ops/rules.h"

static void rules_say_how_weights_lie(void **state)
{
	static const struct {
		const char *op, *attr;
		enum weight_layout layout;
		bool convolves, turned, input_turned;
		int axis;
	} rows[] = {
		{ "Conv", NULL, LAYOUT_CONV, true, false, false, 0 },
		{ "ConvTranspose", NULL, LAYOUT_DECONV, true, false, false, 1 },
		{ "Gemm", NULL, LAYOUT_MATRIX, false, false, false, 1 },
		{ "Gemm", "transB", LAYOUT_MATRIX, false, true, false, 0 },
		{ "Gemm", "transA", LAYOUT_MATRIX, false, false, true, 1 },
		{ "MatMul", NULL, LAYOUT_MATRIX, false, false, false, -1 },
		{ "LSTM", NULL, LAYOUT_RECURRENT, false, false, false, 1 },
		{ "Add", NULL, LAYOUT_NONE, false, false, false, 0 },
		{ "Sin", NULL, LAYOUT_NONE, false, false, false, -1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = xcalloc(1, sizeof(*m));
		struct node *n = model_new_node(m, rows[i].op, "", "n", 3, 1);

		if (rows[i].attr)
			node_set_int(m, n, rows[i].attr, 1);
		if (op_layout(n) != rows[i].layout || op_convolves(n) != rows[i].convolves ||
		    op_weight_turned(n) != rows[i].turned || op_input_turned(n) != rows[i].input_turned ||
		    op_weight_axis(n) != rows[i].axis)
			fail_msg("%s %s: layout %d, axis %d", rows[i].op, rows[i].attr ? rows[i].attr : "",
				 (int)op_layout(n), op_weight_axis(n));
		assert_int_equal(op_channel_axis(n, 4), i == 5 ? 3 : 1);
		model_free(m);
	}
}

static void ops_are_known_by_type_and_domain(void **state)
{
	static const struct {
		const char *op, *domain;
		enum op_channels channels;
		bool q, dq;
	} rows[] = {
		{ "Relu", "", CHANNELS_KEPT, false, false },
		{ "Relu", "com.example", CHANNELS_LOST, false, false }, /* someone else's: not known */
		{ "MaxPool", "", CHANNELS_KEPT_SECOND, false, false },
		{ "Flatten", "", CHANNELS_RESHAPED, false, false },
		{ "Transpose", "", CHANNELS_TURNED, false, false },
		{ "Sigmoid", "", CHANNELS_LOST, false, false }, /* f(s x) is not s f(x) */
		{ "QuantizeLinear", "", CHANNELS_LOST, true, false },
		{ "QuantizeLinear", DOMAIN_MS, CHANNELS_LOST, true, false }, /* below opset 13 */
		{ "DequantizeLinear", DOMAIN_MS, CHANNELS_LOST, false, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = xcalloc(1, sizeof(*m));
		struct node *n = model_new_node(m, rows[i].op, rows[i].domain, "n", 1, 1);

		if (op_channels(n) != rows[i].channels || is_quantize_linear(n) != rows[i].q ||
		    is_dequantize_linear(n) != rows[i].dq)
			fail_msg("%s of '%s': channels %d", rows[i].op, rows[i].domain, (int)op_channels(n));
		model_free(m);
	}
	assert_false(is_quantize_linear(NULL) || is_dequantize_linear(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rules_say_how_weights_lie),
					    cmocka_unit_test(ops_are_known_by_type_and_domain) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
