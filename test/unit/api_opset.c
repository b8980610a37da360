/* What a caller sees of a model below opset 10: it is raised, or kept with the reason. */
#include "unit/unit.h"

#include <unistd.h>

#include "fettle.h"
#include "unit/build.h"

#define CALIB "examples/fashion_calib.npz"
#define INPUT "x:?x1x28x28"

static char model[] = "/tmp/fettle-test.XXXXXX", output[sizeof(model) + 8];

static int start(void **state)
{
	int fd = mkstemp(model);

	(void)state;
	snprintf(output, sizeof(output), "%s.out", model);
	return fd < 0 ? -1 : close(fd);
}

static int stop(void **state)
{
	(void)state;
	unlink(output);
	return unlink(model);
}

static struct fettle_quantize_options options(void)
{
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;

	o.model = model;
	o.calib = CALIB;
	o.samples = 8;
	o.output = output;
	o.threads = 1;
	return o;
}

/* the first note must begin like this */
static void assert_noted(const struct fettle *f, const char *words)
{
	const char *note = fettle_note(f, 0);

	if (!note || strncmp(note, words, strlen(words)) != 0)
		fail_msg("the first note is '%s', want '%s'", note ? note : "", words);
}

static void assert_written_opset(int opset)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;

	assert_ok(model_load(&m, output, &err), err);
	assert_int_equal(m->opset, opset);
	model_free(m);
}

static void an_old_model_is_raised(void **state)
{
	static const char raised[] = "raised from opset 9 to 12";
	struct fettle_quantize_options o = options();
	struct fettle_inspect_options plain = FETTLE_INSPECT_OPTIONS_INIT;
	struct fettle *f = fettle_new();
	struct fettle_inspection *x = NULL;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;

	(void)state;
	build_model(
		model, 9, INPUT,
		"w = 4x1x3x3; a = Conv(x, w); b = Clip(a) min=0.0 max=6.0; c = MaxPool(b) kernel_shape=2,2; "
		"d = Flatten(c); v = 2500x10; k = 10; y = Gemm(d, v, k)",
		"y");
	plain.model = model;
	assert_int_equal(fettle_inspect(f, &plain, &x), FETTLE_OK);
	assert_noted(f, raised);
	assert_int_equal(x->opset, 12);
	assert_int_equal(x->opset_of_file, 9);
	fettle_inspection_free(x);
	assert_int_equal(fettle_quantize(f, &o, &q), FETTLE_OK);
	assert_noted(f, raised);
	assert_true(q.int8_share == 1);
	assert_written_opset(12);
	fettle_free(f);
}

/* what is left to quantize only moves data; calibrated or not, the model is written as it was */
static void a_model_without_a_conversion_is_kept(void **state)
{
	struct fettle_quantize_options o = options();
	struct fettle *f = fettle_new();
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;

	(void)state;
	build_model(model, 8, INPUT,
		    "a = ImageScaler(x) scale=0.3 bias=0.5,; w = 4x1x3x3; b = Conv(a, w); c = Flatten(b); s "
		    "= [-1,2704]; "
		    "y = Reshape(c, s)",
		    "y");
	if (fettle_quantize(f, &o, &q))
		fail_msg("%s", fettle_message(f));
	assert_noted(f, "kept at opset 8, so that Conv cannot be quantized: ImageScaler");
	assert_int_equal(q.ops_int8, 0);
	assert_written_opset(8);
	fettle_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_model_is_raised),
		cmocka_unit_test(a_model_without_a_conversion_is_kept),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
