#include "unit/unit.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/spread.h"

enum { TURNS = 1000 };

struct seen {
	atomic_int times[TURNS];
	atomic_int inside[SPREAD_MAX]; /* each thread's turns come one after the other */
	atomic_bool overlap;
};

static void see(void *self, size_t i, size_t thread)
{
	struct seen *s = self;

	if (atomic_fetch_add(&s->inside[thread], 1))
		atomic_store(&s->overlap, true);
	atomic_fetch_add(&s->times[i], 1);
	atomic_fetch_sub(&s->inside[thread], 1);
}

static void every_turn_is_taken_once(void **state)
{
	static const size_t threads[] = { 0, 1, 2, 3, SPREAD_MAX, 100 };
	static const size_t turns[] = { 0, 1, 2, TURNS };
	size_t i, k, n;

	(void)state;
	for (i = 0; i < ARRAY_LEN(threads); i++)
		for (k = 0; k < ARRAY_LEN(turns); k++) {
			struct seen *s = xcalloc(1, sizeof(*s));

			spread(turns[k], threads[i], see, s);
			for (n = 0; n < TURNS; n++)
				assert_int_equal(atomic_load(&s->times[n]), n < turns[k]);
			assert_false(atomic_load(&s->overlap));
			free(s);
		}
	assert_in_range(spread_threads(), 1, SPREAD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_turn_is_taken_once) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
