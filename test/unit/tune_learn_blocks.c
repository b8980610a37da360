/* All weight-only algorithms, those with awq's variant of the model included, go by one sweep over the calibration samples. */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/data_files.h"

#include "base/file.h"
#include "quantize/variant.h"
#include "tune/learn.h"

enum { SAMPLES = 24, BATCH = 8 };

static bool read_sample(void *self, size_t sample, size_t field, void *to)
{
	struct rng rng;
	size_t i;

	(void)self;
	(void)field;
	rng_seed(&rng, sample);
	for (i = 0; i < 6 * 32; i++)
		((float *)to)[i] = (float)rng_normal(&rng);
	return true;
}

static bool count(void *self, size_t done, size_t total)
{
	(void)done;
	(void)total;
	++*(size_t *)self;
	return true;
}

static void one_sweep_serves_all(void **state)
{
	static const int64_t dims[] = { 6, 32 };
	const struct fettle_field field = { "x", FETTLE_FLOAT32, 2, dims };
	const struct fettle_data_source source = { .size = sizeof(source),
						   .samples = SAMPLES,
						   .fields = &field,
						   .n_fields = 1,
						   .read = read_sample };
	struct input_spec spec = { .name = "x", .dtype = DT_F32, .rank = 3, .dims = { -1, 6, 32 } };
	char *dir = temp_tree(), *path = xstrfmt("%s/m.onnx", dir);
	struct err err = ERR_INIT;
	struct runtime *rt = NULL;
	struct subject *s = NULL;
	struct dataset *set = NULL;
	struct feed *feed = NULL;
	struct learner *l;
	size_t batches = 0;
	int a;

	(void)state;
	build_model(path, 17, "x:?x6x32",
		    "g = 32; be = 32; n = LayerNormalization(x, g, be) axis=-1; w = 32x48; p = MatMul(n, w); "
		    "r = Relu(p); v = 48x32; q = MatMul(r, v); y = Add(q, x)",
		    "y");
	assert_ok(runtime_new(&rt, &err), err);
	assert_ok(subject_open(&s, rt, path, &err), err);
	assert_ok(dataset_open_source(&set, &source, &(struct dataset_options){ 0 }, &err), err);
	assert_ok(feed_open(&feed, set, &spec, 1, &(struct feed_options){ .batch = BATCH }, &err), err);
	l = learner_new(&(struct learn_source){
		.rt = rt, .s = s, .calib = feed, .threads = 1, .progress = count, .self = &batches });
	for (a = 0; a < BLOCK_ALGORITHMS; a++) {
		struct qplan_defaults d = qplan_defaults(&s->cpu);
		struct qplan p = QPLAN_INIT;
		struct knowledge known;
		struct model *q = NULL;

		d.approach = APPROACH_WEIGHT;
		d.blocks.algorithm = (enum block_algorithm)a;
		qplan_default(&p, &s->ops, &s->g, &d);
		assert_ok(learn(l, 0, &p, &known, &err), err);
		assert_ok(quantize(s->z, &known, &p, &q, &err), err);
		if (block_methods[a]->scales_inputs)
			assert_true(*known.variant->text); /* it did fold something */
		model_free(q);
		qplan_release(&p);
	}
	assert_int_equal(batches, SAMPLES / BATCH);
	learner_free(l);
	feed_free(feed);
	dataset_free(set);
	subject_free(s);
	runtime_free(rt);
	remove_tree(dir);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_sweep_serves_all) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
