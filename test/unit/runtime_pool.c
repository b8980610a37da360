/* Threads of a session that do not exist: the same bits, no hanging, and really fewer threads. */
#include "unit/unit.h"

#include <dirent.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/session.h"
#include "unit/proto.h"

enum { ROWS = 40, COLUMNS = 1517 }; /* so that no number of threads divides it evenly */

static struct runtime *rt;
static float x[ROWS * COLUMNS];

static int start(void **state)
{
	struct err err = ERR_INIT;
	struct rng r;
	size_t i;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < ROWS * COLUMNS; i++)
		x[i] = 3 * (float)rng_normal(&r);
	return runtime_new(&rt, &err);
}

static int stop(void **state)
{
	(void)state;
	runtime_free(rt);
	return 0;
}

static struct model *softplus(const char *op)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;
	struct build b;

	build_init(&b, 13);
	build_input(&b, "x", DT_F32, DIMS(-1, COLUMNS));
	build_output(&b, "y", DT_F32, DIMS(-1, COLUMNS));
	build_node(&b, op, "x", "y");
	assert_ok(build_decode(&b, &m, NULL, &err), err);
	build_release(&b);
	return m;
}

static size_t n_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* what a session with these options gives; *threads (may be NULL) are those that it has started */
static float *run(const struct session_options *so, size_t *threads)
{
	const size_t before = n_threads();
	struct tensor in = { DT_F32, 2, { ROWS, COLUMNS }, x }, out;
	struct err err = ERR_INIT;
	struct model *m = softplus("Softplus");
	struct session *s = NULL;
	float *y = test_malloc(sizeof(x));
	int i;

	assert_ok(session_new(&s, rt, m, so, &err), err);
	if (threads)
		*threads = n_threads() - before;
	for (i = 0; i < 20; i++)
		assert_ok(session_run(s, &in, &out, &err), err);
	memcpy(y, out.data, sizeof(x));
	session_free(s);
	model_free(m);
	return y;
}

static void same_bits(const float *want, const struct session_options *so, size_t expected)
{
	size_t threads;
	float *y = run(so, &threads);

	assert_int_equal(threads, expected);
	assert_memory_equal(y, want, sizeof(x));
	test_free(y);
}

static void bits_do_not_depend_on_how_many_run(void **state)
{
	static const int numbers[] = { 1, 2, 3, 8 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(numbers); i++) {
		const int n = numbers[i];
		float *want = run(&(struct session_options){ .threads = n }, NULL);

		same_bits(want, &(struct session_options){ .threads = n, .alone = true }, 0);
		runtime_share(rt, n, 1);
		same_bits(want, &(struct session_options){ .threads = 0 }, 0);
		runtime_share(rt, n, 2);
		same_bits(want, &(struct session_options){ .threads = 0 }, n > 1);
		same_bits(want, &(struct session_options){ .alone = true }, 0);
		same_bits(want, &(struct session_options){ .threads = n }, (size_t)n - 1);
		assert_true(runtime_is_shared(rt));
		runtime_share(rt, 0, 0);
		assert_false(runtime_is_shared(rt));
		test_free(want);
	}
}

static void the_runtimes_choice(void **state)
{
	const int n = runtime_threads(rt);
	size_t threads;
	float *want, *deployed;

	(void)state;
	assert_true(n > 0);
	want = run(&(struct session_options){ .threads = 0 }, &threads);
	assert_int_equal(threads, n - 1);
	runtime_share(rt, n + 2, 1);
	deployed = run(&(struct session_options){ .deployed = true }, &threads);
	assert_int_equal(threads, n - 1);
	assert_memory_equal(deployed, want, sizeof(x));
	runtime_share(rt, 0, 0);
	test_free(want);
	test_free(deployed);
}

static void a_session_that_fails_ends(void **state)
{
	struct session_options so = { .threads = 4, .alone = true };
	struct err err = ERR_INIT;
	struct model *m = softplus("NoSuchOp");
	struct session *s = NULL;

	(void)state;
	assert_int_not_equal(session_new(&s, rt, m, &so, &err), FETTLE_OK);
	assert_null(s);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_do_not_depend_on_how_many_run),
		cmocka_unit_test(the_runtimes_choice),
		cmocka_unit_test(a_session_that_fails_ends),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
