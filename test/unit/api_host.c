/* What fettle.h promises to the program that calls it: versions, words, and a process that is left as it was. */
#include "unit/unit.h"

#include <cblas.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "fettle.h"
#include "unit/tree.h"

#define MODEL "examples/fashion_plain.onnx"
#define CALIB "examples/fashion_calib.npz"

static void the_number_is_the_version(void **state)
{
	int major, minor, patch;

	(void)state;
	assert_int_equal(sscanf(FETTLE_VERSION, "%d.%d.%d", &major, &minor, &patch), 3);
	assert_int_equal(FETTLE_VERSION_NUMBER, 10000 * major + 100 * minor + patch);
	assert_int_equal(fettle_version_number(), FETTLE_VERSION_NUMBER);
	assert_string_equal(fettle_version(), FETTLE_VERSION);
}

static void every_stop_has_a_word(void **state)
{
	size_t i;

	(void)state;
	assert_null(fettle_stop_word(FETTLE_STOP_NONE));
	for (i = FETTLE_STOP_ACCURACY_MET; i <= FETTLE_STOP_INTERRUPTED; i++)
		assert_non_null(fettle_stop_word((enum fettle_stop)i));
	assert_null(fettle_stop_word((enum fettle_stop)i));
	assert_string_equal(fettle_stop_word(FETTLE_STOP_MAX_TRIALS), "max_trials");
}

struct process {
	void (*handlers[32])(int);
	bool blocked[32];
	char folder[4096], locale[64];
	mode_t mask;
	int blas_threads;
};

static struct process look(void)
{
	struct sigaction action;
	struct process p;
	sigset_t blocked;
	int i;

	memset(&p, 0, sizeof(p));
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (i = 1; i < 32; i++) {
		sigaction(i, NULL, &action);
		p.handlers[i] = action.sa_handler;
		p.blocked[i] = sigismember(&blocked, i);
	}
	assert_non_null(getcwd(p.folder, sizeof(p.folder)));
	snprintf(p.locale, sizeof(p.locale), "%s", setlocale(LC_ALL, NULL));
	p.mask = umask(0);
	umask(p.mask);
	p.blas_threads = openblas_get_num_threads();
	return p;
}

static void the_process_is_left_as_it_was(void **state)
{
	static const char *const recipes[] = { "finetune=gram", "smooth_quant=auto" };
	char *dir = temp_tree(), *out = xstrfmt("%s/q.onnx", dir);
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct process before, after;
	struct fettle *f;

	(void)state;
	openblas_set_num_threads(2); /* which gram and smooth_quant compute with one of */
	before = look();
	f = fettle_new();
	o.model = MODEL;
	o.calib = CALIB;
	o.samples = 16;
	o.output = out;
	o.recipes = recipes;
	o.n_recipes = ARRAY_LEN(recipes);
	if (fettle_quantize(f, &o, &q))
		fail_msg("%s", fettle_message(f));
	fettle_free(f);
	after = look();
	assert_int_equal(after.blas_threads, 2);
	assert_memory_equal(&before, &after, sizeof(before));
	free(out);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_is_the_version),
		cmocka_unit_test(every_stop_has_a_word),
		cmocka_unit_test(the_process_is_left_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
