/* The ops that a written model computes in fp32, and why: the same list in every command. */
#include "cli/cli.h"

#include <string.h>

enum { LISTED = 12 };
static bool same_group(const struct fettle_fp32_op *a, const struct fettle_fp32_op *b)
{
	return strcmp(a->type, b->type) == 0 && strcmp(a->why, b->why) == 0;
}

/* of the ops like the one at `first`: how many, and their share; 0 if such a one came before */
static size_t group(const struct fettle *f, size_t first, double *share)
{
	struct fettle_fp32_op a = FETTLE_FP32_OP_INIT, b = FETTLE_FP32_OP_INIT;
	size_t n = 0, i;

	fettle_fp32_op(f, first, &a);
	*share = 0;
	for (i = 0; fettle_fp32_op(f, i, &b); i++) {
		if (!same_group(&a, &b))
			continue;
		if (i < first)
			return 0;
		*share += b.share;
		n++;
	}
	return n;
}

void show_fp32(const struct fettle *f)
{
	const char *head[] = { "left in fp32", "multiply-adds", "why" };
	struct fettle_fp32_op o = FETTLE_FP32_OP_INIT;
	struct table t;
	double share, all = 0;
	size_t n, i;
	bool each;

	for (n = 0; fettle_fp32_op(f, n, &o); n++)
		all += o.share;
	if (!n)
		return;
	each = n <= LISTED;
	printf("\n%zu op%s left in fp32, %.0f %% of the multiply-adds:\n", n, n == 1 ? "" : "s", 100 * all);
	table_begin(&t, head, 3, 2);
	for (i = 0; fettle_fp32_op(f, i, &o); i++) {
		size_t alike = group(f, i, &share);

		if (!each && !alike)
			continue;
		if (each)
			table_cell(&t, "%s", o.name);
		else
			table_cell(&t, "%zu %s", alike, o.type);
		table_cell(&t, "%.1f %%", 100 * (each ? o.share : share));
		table_cell(&t, "%s", o.why);
	}
	table_print(&t);
}
