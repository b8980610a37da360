/* The best assignment of modes, against every other one on small graphs. */
#include "tune/assign.h"

#include <math.h>

#include "base/rng.h"
#include "unit.h"

enum { OPS = 7, VALUES = 10, READERS = 3, PAIRS = 3, GRAPHS = 3000 };

struct graph {
	struct assign_op ops[OPS];
	struct assign_value values[VALUES];
	size_t readers[VALUES][READERS];
	struct assign_pair pairs[PAIRS];
	struct assign_problem p;
};

static double some_seconds(struct rng *r)
{
	return rng_below(r, 8) ? 1e-6 * (double)(1 + rng_below(r, 50)) : 0;
}

/* ops that read what earlier ones make, as in a model; some modes are not on offer */
static void make_graph(struct graph *g, struct rng *r)
{
	size_t i, k;

	g->p = (struct assign_problem){ .ops = g->ops,
					.n_ops = 1 + rng_below(r, OPS),
					.values = g->values,
					.n_values = rng_below(r, VALUES + 1),
					.pairs = g->pairs };
	for (i = 0; i < g->p.n_ops; i++) {
		for (k = 0; k < ASSIGN_MODES; k++)
			g->ops[i].seconds[k] = rng_below(r, 4) ? some_seconds(r) : INFINITY;
		g->ops[i].seconds[rng_below(r, ASSIGN_MODES)] = some_seconds(r);
	}
	for (i = 0; i < g->p.n_values; i++) {
		struct assign_value *v = &g->values[i];
		int maker = (int)rng_below(r, g->p.n_ops + 1) - 1;

		*v = (struct assign_value){ .maker = maker,
					    .readers = g->readers[i],
					    .floats_read = !rng_below(r, 3),
					    .to_int = some_seconds(r),
					    .to_float = some_seconds(r),
					    .at_run_time = some_seconds(r) };
		for (k = 0; k < READERS && maker + 1 < (int)g->p.n_ops; k++)
			g->readers[i][v->n_readers++] =
				(size_t)maker + 1 + rng_below(r, g->p.n_ops - (size_t)(maker + 1));
	}
	for (i = rng_below(r, PAIRS + 1); i > 0 && g->p.n_ops > 1; i--) {
		const size_t first = rng_below(r, g->p.n_ops - 1);

		g->pairs[g->p.n_pairs++] =
			(struct assign_pair){ .op = { first,
						      first + 1 + rng_below(r, g->p.n_ops - first - 1) },
					      .gain = some_seconds(r) };
	}
}

static double least_of_all(const struct assign_problem *p)
{
	enum assign_mode mode[OPS];
	double least = INFINITY;
	size_t n = 1, i, k;

	for (i = 0; i < p->n_ops; i++)
		n *= ASSIGN_MODES;
	for (i = 0; i < n; i++) {
		size_t rest = i;

		for (k = 0; k < p->n_ops; k++, rest /= ASSIGN_MODES)
			mode[k] = (enum assign_mode)(rest % ASSIGN_MODES);
		least = fmin(least, assign_cost(p, mode));
	}
	return least;
}

static void test_best_of_all(void **state)
{
	struct rng r;
	enum assign_mode mode[OPS];
	struct graph g;
	size_t i;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < GRAPHS; i++) {
		make_graph(&g, &r);
		assign_best(&g.p, mode);
		if (fabs(assign_cost(&g.p, mode) - least_of_all(&g.p)) > 1e-11)
			fail_msg("graph %zu: %.9g s, the best has %.9g s", i, assign_cost(&g.p, mode),
				 least_of_all(&g.p));
	}
}

/* Ops that leave integers as these become dearer do not come back: so the price at which each leaves sorts them. */
static void test_dearer_ops_leave_for_good(void **state)
{
	struct rng r;
	enum assign_mode mode[2][OPS];
	double error[OPS];
	struct graph g;
	size_t i, k, n, left = 0;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < GRAPHS; i++) {
		make_graph(&g, &r);
		for (k = 0; k < g.p.n_ops; k++) {
			g.ops[k] = (struct assign_op){ { INFINITY, some_seconds(&r), some_seconds(&r) } };
			error[k] = 1e-7 * (1 + rng_unit(&r)); /* no two sets of ops cost the same */
			mode[0][k] = ASSIGN_STATIC;
		}
		for (n = 0; n < 40; n++) {
			for (k = 0; k < g.p.n_ops; k++)
				g.ops[k].seconds[ASSIGN_STATIC] += (double)(n + 1) * error[k];
			assign_best(&g.p, mode[1]);
			for (k = 0; k < g.p.n_ops; k++) {
				if (mode[1][k] == ASSIGN_STATIC && mode[0][k] != ASSIGN_STATIC)
					fail_msg("graph %zu: op %zu comes back at price %zu", i, k, n);
				left += n && mode[1][k] != mode[0][k];
				mode[0][k] = mode[1][k];
			}
		}
	}
	assert_true(left > GRAPHS);
}

/* A slow op between fast ones is worth its conversions only if these cost more than it loses. */
static void test_conversions_decide(void **state)
{
	const struct assign_op ops[] = { { { INFINITY, 10, 4 } },
					 { { INFINITY, 1, 3 } },
					 { { INFINITY, 10, 4 } } };
	const size_t second = 1, third = 2;
	struct assign_value values[] = { { .maker = 0, .readers = &second, .n_readers = 1 },
					 { .maker = 1, .readers = &third, .n_readers = 1 } };
	const struct assign_problem p = { .ops = ops, .n_ops = 3, .values = values, .n_values = 2 };
	enum assign_mode mode[3];

	(void)state;
	values[0].to_float = values[1].to_int = 1.5;
	assign_best(&p, mode);
	assert_int_equal(mode[1], ASSIGN_STATIC);
	values[0].to_float = values[1].to_int = 0.5;
	assign_best(&p, mode);
	assert_int_equal(mode[0], ASSIGN_STATIC);
	assert_int_equal(mode[1], ASSIGN_FP32);
	assert_int_equal(mode[2], ASSIGN_STATIC);
}

/* Three readers share what one alone would not be worth. */
static void test_readers_share(void **state)
{
	const struct assign_op op = { { 4, 5, INFINITY } }, ops[] = { op, op, op };
	const size_t readers[] = { 0, 1, 2 };
	struct assign_value v = {
		.maker = ASSIGN_OUTSIDE, .readers = readers, .n_readers = 1, .at_run_time = 2
	};
	const struct assign_problem p = { .ops = ops, .n_ops = 3, .values = &v, .n_values = 1 };
	enum assign_mode mode[3];

	(void)state;
	assign_best(&p, mode);
	assert_int_equal(mode[0], ASSIGN_FP32);
	v.n_readers = 3;
	assign_best(&p, mode);
	assert_int_equal(mode[0], ASSIGN_DYNAMIC);
	assert_int_equal(mode[2], ASSIGN_DYNAMIC);
}

/* Two ops that are slower in integers are worth it together: neither is without the other. */
static void test_pairs_gain_together(void **state)
{
	const struct assign_op op = { { INFINITY, 5, 6 } }, ops[] = { op, op };
	struct assign_pair pair = { .op = { 0, 1 }, .gain = 3 };
	const struct assign_problem p = { .ops = ops, .n_ops = 2, .pairs = &pair, .n_pairs = 1 };
	enum assign_mode mode[2];

	(void)state;
	assign_best(&p, mode);
	assert_int_equal(mode[0], ASSIGN_STATIC);
	assert_int_equal(mode[1], ASSIGN_STATIC);
	assert_true(fabs(assign_cost(&p, mode) - 9) < 1e-9);
	pair.gain = 1;
	assign_best(&p, mode);
	assert_int_equal(mode[0], ASSIGN_FP32);
	assert_int_equal(mode[1], ASSIGN_FP32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_best_of_all),         cmocka_unit_test(test_dearer_ops_leave_for_good),
		cmocka_unit_test(test_conversions_decide),  cmocka_unit_test(test_readers_share),
		cmocka_unit_test(test_pairs_gain_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
