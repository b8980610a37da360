/* Names of ops in INC's configurations; the verdicts are those of Python's re.match() for what is no plain name. */
#include "unit/unit.h"

#include "base/mem.h"
#include "space/op_pattern.h"

static void the_verdicts(void **state)
{
	static const struct {
		const char *pattern, *name, *type;
		bool matches;
	} rows[] = {
		{ "conv1", "conv1", "Conv", true },
		{ "conv1", "conv10", "Conv", false }, /* a plain name is all of it */
		{ "layer.0/conv-1", "layer.0/conv-1", "Conv", true },
		{ "layer.0", "layer_0", "Conv", false }, /* points are no pattern by themselves */
		{ "Preprocessor/*", "Preprocessor/map/mul", "Mul", true },
		{ "Preprocessor/*", "x/Preprocessor/mul", "Mul", false }, /* from the beginning */
		{ "Gather_*", "Gather_12", "Gather", true },
		{ "Gather_*", "Gather", "Gather", true },
		{ "[6-9]\\d{2,}", "712", "Conv", true },
		{ "[6-9]\\d{2,}", "71", "Conv", false },
		{ "[6-9][0-9][0-9]$", "7123", "Conv", false },
		{ "[6-9][0-9][0-9]$", "712", "Conv", true },
		{ "Transpose.*?", "Transpose__5", "Transpose", true },
		{ "a+?b", "aaab", "Conv", true },
		{ "(?:conv|fc)\\w+\\.weight", "fc_1.weight", "Gemm", true },
		{ "(?:conv|fc)\\w+\\.weight", "fc_1xweight", "Gemm", false },
		{ "[\\w/]+:0", "a/b_c:0", "Conv", true },
		{ "[^\\d]", "7", "Conv", false },
		{ "\\D+$", "abc", "Conv", true },
		{ "[]x]", "]", "Conv", true },
		{ "conv[1]", "conv[1]", "Conv", true }, /* the very name, whatever it means as a pattern */
		{ "conv[1", "conv[1", "Conv", true },   /* and if it is none */
		{ "conv[1", "conv1", "Conv", false },
		{ "Gemm_174_MatMul", "Gemm_174", "Gemm", true }, /* as INC names it once it is cut */
		{ "Gemm_174_MatMul", "Gemm_174", "Conv", false },
		{ "Gemm_174_MatMul", "Gemm_17", "Gemm", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct op_pattern p;

		op_pattern_init(&p, rows[i].pattern);
		if (op_pattern_matches(&p, rows[i].name, rows[i].type) != rows[i].matches)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].name);
		op_pattern_release(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_verdicts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
