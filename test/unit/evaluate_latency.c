/* Sessions timed against each other: which core the caller is on meanwhile, and afterwards. */
#include "unit/unit.h"

#include <sched.h>

#include "evaluate/evaluate.h"
#include "runtime/probe.h"
#include "unit/build.h"
#include "unit/data_files.h"

struct seen {
	size_t cores; /* the most that the caller could be on while it was timing */
};

static bool look(void *self, size_t done, size_t total)
{
	struct seen *s = self;
	cpu_set_t set;

	(void)done;
	(void)total;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if ((size_t)CPU_COUNT(&set) > s->cores)
		s->cores = (size_t)CPU_COUNT(&set);
	return true;
}

static void the_caller_stays_on_one_core_if_all_are_used(void **state)
{
	static const struct {
		int threads;
		bool bound;
	} rows[] = { { 0, true }, { 1, false } };
	char *dir = temp_tree(), *path = xstrfmt("%s/m.onnx", dir);
	struct runtime *rt = NULL;
	struct err err = ERR_INIT;
	size_t i, k;

	(void)state;
	assert_ok(runtime_new(&rt, &err), err);
	build_model(path, 13, "x:1x64x64", "a = MatMul(x, x); y = Relu(a)", "y");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct session_options so = { .threads = rows[i].threads, .deployed = true };
		struct session *s[2] = { NULL, NULL };
		struct contender v[2];
		struct tensor in = TENSOR_INIT;
		struct latency out[2];
		struct seen seen = { 0 };
		cpu_set_t before, after;

		for (k = 0; k < 2; k++) {
			assert_ok(session_open(&s[k], rt, path, &so, &err), err);
			v[k] = (struct contender){
				.s = &s[k], .n = 1, .inputs = &in, .all_cores = !rows[i].threads
			};
		}
		assert_ok(fake_inputs(s[0], 1, 1, true, &in, &err), err);
		assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
		assert_ok(evaluate_latency(v, 2, &(struct latency_limits){ .seconds = 0.01, .width = 0.02 },
					   look, &seen, out, &err),
			  err);
		assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
		assert_true(CPU_EQUAL(&before, &after));
		assert_int_equal(seen.cores, rows[i].bound ? 1 : CPU_COUNT(&before));
		assert_true(out[1].least > 0 && out[1].least <= out[1].median);
		tensor_free(&in);
		session_free(s[0]);
		session_free(s[1]);
	}
	runtime_free(rt);
	remove_tree(dir);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_caller_stays_on_one_core_if_all_are_used) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
