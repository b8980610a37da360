#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "evaluate/rows.h"

enum { N = 40, ROW = 6, BATCH_MAX = 5 };

static struct tensor batch_of(int32_t *data, size_t n)
{
	return (struct tensor){ DT_S32, 3, { (int64_t)n, 2, 3 }, data };
}

/* what is put comes back, whatever the batches; and what is not there is known not to be */
static void against_a_plain_array(void **state)
{
	int32_t plain[N][ROW], data[BATCH_MAX * ROW];
	bool have[N] = { false };
	size_t place[BATCH_MAX], order[N], i, j, k, n, fill;
	struct buffer out = { .cap = 0 };
	struct rows r;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 8);
	for (i = 0; i < BATCH_MAX * ROW; i++)
		data[i] = 0;
	assert_true(rows_init(&r, N, &(struct tensor){ DT_S32, 3, { 4, 2, 3 }, data }, 4));
	for (k = 0; k < 300; k++) {
		bool all = true;

		for (i = 0; i < N; i++)
			order[i] = i;
		rng_shuffle(&rng, order, N);
		n = 1 + rng_below(&rng, BATCH_MAX);
		for (i = 0; i < n; i++) {
			place[i] = order[i];
			all &= have[place[i]];
		}
		assert_int_equal(rows_have(&r, place, n), all);
		if (all) {
			fill = n + rng_below(&rng, 3);
			rows_get(&r, place, n, fill, &out);
			assert_int_equal(out.t.dims[0], fill);
			assert_true(out.t.dtype == DT_S32 && out.t.rank == 3 && out.t.dims[1] == 2);
			for (i = 0; i < fill; i++)
				assert_memory_equal((int32_t *)out.t.data + i * ROW,
						    plain[place[i < n ? i : n - 1]], sizeof(plain[0]));
		}
		if (k % 3 == 0) {
			struct tensor t = batch_of(data, n);

			for (i = 0; i < n; i++)
				for (j = 0; j < ROW; j++)
					data[i * ROW + j] = plain[place[i]][j] = (int32_t)rng_next(&rng);
			assert_true(rows_put(&r, &t, place, n));
			for (i = 0; i < n; i++)
				have[place[i]] = true;
		}
	}
	for (i = 0, n = 0; i < N; i++)
		n += have[i];
	assert_int_equal(r.n_have, n);
	rows_release(&r);
	rows_release(&r); /* nothing any more */
	buffer_release(&out);
}

static void what_has_no_rows(void **state)
{
	int32_t data[24] = { 0 };
	size_t place = 0;
	struct rows r = { .n = 0 };

	(void)state;
	/* one for all samples, a number, nothing at all, strings */
	assert_false(rows_init(&r, N, &(struct tensor){ DT_S32, 2, { 1, 6 }, data }, 4));
	assert_false(rows_init(&r, N, &(struct tensor){ DT_S32, 0, { 0 }, data }, 1));
	assert_false(rows_init(&r, N, &(struct tensor){ DT_S32, 2, { 4, 0 }, data }, 4));
	assert_false(rows_init(&r, N, &(struct tensor){ DT_STRING, 1, { 4 }, data }, 4));
	assert_null(r.data);
	/* rows of another shape or type than the first, or fewer than there should be */
	assert_true(rows_init(&r, N, &(struct tensor){ DT_S32, 3, { 4, 2, 3 }, data }, 4));
	assert_false(rows_put(&r, &(struct tensor){ DT_S32, 3, { 1, 3, 2 }, data }, &place, 1));
	assert_false(rows_put(&r, &(struct tensor){ DT_S32, 2, { 1, 6 }, data }, &place, 1));
	assert_false(rows_put(&r, &(struct tensor){ DT_F32, 3, { 1, 2, 3 }, data }, &place, 1));
	assert_false(rows_put(&r, &(struct tensor){ DT_S32, 3, { 0, 2, 3 }, data }, &place, 1));
	assert_false(rows_have(&r, &place, 1));
	assert_int_equal(r.n_have, 0);
	rows_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_a_plain_array),
		cmocka_unit_test(what_has_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
