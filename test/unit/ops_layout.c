/* What a rule says of an op's weight, against the definitions of the ops. */
#include "unit/unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rules_say_how_weights_lie) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
