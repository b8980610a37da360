#include "unit/unit.h"

#include <math.h>

#include "base/mem.h"
#include "evaluate/hard.h"

enum { N = 6 };

static void order_now(const struct hard *h, size_t *place)
{
	struct hard_notes levels;

	hard_levels(h, &levels);
	hard_order(h, &levels, place);
}

/* a trial that looked at the samples that have a score, in their own order */
static void learn(struct hard *h, const double *scores, size_t n)
{
	size_t *looked = xcalloc(n, sizeof(*looked)), i, seen = 0;
	struct hard_notes notes;

	for (i = 0; i < n; i++)
		if (!isnan(scores[i]))
			looked[seen++] = i;
	hard_note(h, scores, looked, seen, &notes);
	assert_true(hard_notes_bytes(h, &notes) <= HARD_BYTES);
	hard_learn(h, looked, &notes);
	free(looked);
}

static void assert_order(const struct hard *h, const size_t *want, const char *why)
{
	size_t place[N], i;

	order_now(h, place);
	for (i = 0; i < N; i++)
		if (place[i] != want[i])
			fail_msg("%s: sample %zu comes at %zu, want %zu", why, place[i], i, want[i]);
}

static void what_fp32_says(void **state)
{
	static const struct {
		const char *why;
		double scores[N], margins[N];
		bool has_scores, higher;
		size_t want[N];
	} rows[] = {
		{ "wrong ones first, then the closest",
		  { 0 },
		  { 5, -1, 0.5, 3, -2, 0.1 },
		  false,
		  true,
		  { 1, 4, 5, 2, 3, 0 } },
		{ "without margins, the worst scores first",
		  { 0.9, 0.1, 0.5, 0.7, 0.2, 0.3 },
		  { NAN, NAN, NAN, NAN, NAN, NAN },
		  true,
		  true,
		  { 1, 4, 5, 2, 3, 0 } },
		{ "the highest where lower is better",
		  { 0.1, 9, 4, 3, 8, 7 },
		  { NAN, NAN, NAN, NAN, NAN, NAN },
		  true,
		  false,
		  { 1, 4, 5, 2, 3, 0 } },
		{ "equal ones in their own order",
		  { 0 },
		  { 1, 1, 1, 1, 1, 1 },
		  false,
		  true,
		  { 0, 1, 2, 3, 4, 5 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct hard *h = hard_new(N, rows[i].has_scores ? rows[i].scores : NULL, rows[i].margins,
					  rows[i].higher);

		assert_order(h, rows[i].want, rows[i].why);
		hard_free(h);
	}
	hard_free(NULL);
}

/* Trials teach more than fp32; what they did not look at, they say nothing of. */
static void what_trials_teach(void **state)
{
	static const double fp32[N] = { 1, 1, 1, 1, 1, 0 }, margins[N] = { 6, 5, 4, 3, 2, -1 },
			    trial[N] = { 0, 1, 1, NAN, 1, 0 };
	static const size_t
		before[N] = { 5, 4, 3, 2, 1, 0 },
		/* 0 failed; 5 fails as ever; 3 was not looked at and keeps its guess; the others passed */
		once[N] = { 5, 0, 3, 4, 2, 1 };
	struct hard *h = hard_new(N, fp32, margins, true);

	(void)state;
	assert_order(h, before, "by margin");
	learn(h, trial, N);
	assert_order(h, once, "after a trial");
	hard_free(h);
}

/* Where scores are degrees, as a cosine is, how much worse counts. */
static void degrees_count(void **state)
{
	static const double fp32[N] = { 1, 1, 1, 1, 1, 1 }, trial[N] = { 0.99, 0.9, 0.999, 0.5, 0.95, 1 };
	static const size_t want[N] = { 3, 1, 4, 0, 2, 5 };
	struct hard *h = hard_new(N, fp32, NULL, true);

	(void)state;
	learn(h, trial, N);
	learn(h, trial, N);
	learn(h, trial, N);
	assert_order(h, want, "by how much they lost");
	hard_free(h);
}

/* hundreds of trials: counts that are full stay as they are, and the order is still a permutation */
static void counts_do_not_overflow(void **state)
{
	double fp32[N] = { 1, 1, 1, 1, 1, 1 }, trial[N] = { 1, 1, 0, 1, 1, 1 };
	struct hard *h = hard_new(N, fp32, NULL, true);
	size_t place[N], i;
	bool seen[N] = { false };

	(void)state;
	for (i = 0; i < 700; i++)
		learn(h, trial, N);
	order_now(h, place);
	assert_int_equal(place[0], 2);
	for (i = 0; i < N; i++)
		seen[place[i]] = true;
	for (i = 0; i < N; i++)
		assert_true(seen[i]);
	hard_free(h);
}

/* However many samples there are: what one in ten trials got wrong comes first, and the order is a permutation. */
static void many_samples(void **state)
{
	static const size_t sizes[] = { 1, 1700, 1701, 3400, 6800, 13600, 13601, 60000 };
	size_t k, i;

	(void)state;
	for (k = 0; k < ARRAY_LEN(sizes); k++) {
		const size_t n = sizes[k], told = n < 8 * HARD_BYTES ? n : 8 * HARD_BYTES;
		double *fp32 = xcalloc(n, sizeof(*fp32)), *trial = xcalloc(n, sizeof(*trial));
		size_t *place = xcalloc(n, sizeof(*place)), wrong = 0, first = 0;
		bool *seen = xcalloc(n, sizeof(*seen));
		struct hard *h;

		for (i = 0; i < n; i++) {
			fp32[i] = 1;
			trial[i] = i % 10 != 9;
			wrong += i % 10 == 9 && i < told;
		}
		h = hard_new(n, fp32, NULL, true);
		learn(h, trial, n);
		order_now(h, place);
		for (i = 0; i < n; i++) {
			assert_false(seen[place[i]]);
			seen[place[i]] = true;
			first += i < wrong && place[i] % 10 == 9;
		}
		assert_int_equal(first, wrong);
		hard_free(h);
		free(fp32);
		free(trial);
		free(place);
		free(seen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fp32_says), cmocka_unit_test(what_trials_teach),
		cmocka_unit_test(degrees_count),  cmocka_unit_test(counts_do_not_overflow),
		cmocka_unit_test(many_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
