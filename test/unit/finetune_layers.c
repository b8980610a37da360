/*
 * Convolutions of every kind as fine-tuning sees them: what a layer computes in our layout is what the runtime computes
 * for the op, in one to three dimensions and transposed; and fine-tuning lowers the error of a whole model of them.
 */
#include "unit/finetune_bed.h"

#include "fettle.h"
#include "finetune/layer.h"
#include "finetune/part.h"

enum { SIDE = 8, LEARNED = 96, OTHERS = 64 };

/* everything in integers, also what is not by default */
static void quantize_all(struct bed *b)
{
	size_t i;

	for (i = 0; i < b->plan.n; i++)
		if (b->s->ops.v[i].rule && b->s->ops.v[i].rule->weight > 0)
			b->plan.ops[i].mode = OP_STATIC;
	bed_learn(b);
}

struct shape {
	const char *why, *graph; /* from x to y, but for the first op: pictures of 3 x 8 x 8 -> 6 x 8 x 8 */
};

static const struct shape shapes[] = {
	{ "one dimension", "s = [0,6,64]; f = Reshape(r, s); w = 5x6x5; y = Conv(f, w) strides=2, pads=2,1" },
	{ "three dimensions, uneven pads", "s = [0,3,2,8,8]; f = Reshape(r, s); w = 4x3x2x3x2; b = 4;"
					   "y = Conv(f, w, b) strides=1,2,3 pads=1,0,1,0,2,0" },
	{ "three dimensions, groups, same padding",
	  "s = [0,4,6,4,4]; f = Reshape(r, s); w = 6x2x3x3x2; y = Conv(f, w) group=2 auto_pad=SAME_LOWER" },
	{ "three dimensions, dilated", "s = [0,4,6,4,4]; f = Reshape(r, s); w = 6x4x3x3x2; y = Conv(f, w) "
				       "dilations=2,1,3 pads=1,1,1,0,1,3" },
	{ "three dimensions, depthwise", "s = [0,6,4,4,4]; f = Reshape(r, s); w = 6x1x3x3x3;"
					 "y = Conv(f, w) group=6 pads=1,1,1,1,1,1" },
	{ "transposed", "w = 6x5x2x2; b = 5; y = ConvTranspose(r, w, b) strides=2,2" },
	{ "transposed, pads, output padding",
	  "w = 6x5x3x4; y = ConvTranspose(r, w) strides=2,3 pads=0,1,2,3 output_padding=1,2" },
	{ "transposed, dilated, groups",
	  "w = 6x4x3x2; b = 8; y = ConvTranspose(r, w, b) group=2 dilations=2,3 pads=1,1,0,2" },
	{ "transposed, depthwise", "w = 6x1x4x4; y = ConvTranspose(r, w) group=6 strides=2,2 pads=1,1,1,1" },
	{ "transposed, same padding",
	  "w = 6x2x3x3; y = ConvTranspose(r, w) strides=2,2 auto_pad=SAME_UPPER" },
	{ "transposed, same padding, low",
	  "w = 6x2x3x4; y = ConvTranspose(r, w) strides=2,1 auto_pad=SAME_LOWER" },
	{ "transposed, one dimension",
	  "s = [0,6,64]; f = Reshape(r, s); w = 6x3x5; y = ConvTranspose(f, w) strides=3, pads=2,0" },
	{ "transposed, three dimensions", "s = [0,3,2,8,8]; f = Reshape(r, s); w = 3x4x2x3x2;"
					  "y = ConvTranspose(f, w) strides=2,1,2 pads=0,1,0,1,1,0" },
};

/* Were the layout wrong, a layer would be off by as much as its output is large. */
static void test_shapes(void **state)
{
	static const enum finetune_algorithm all[] = { FINETUNE_GRAM, FINETUNE_ADAROUND, FINETUNE_ADAQUANT };
	size_t i, a;

	(void)state;
	for (i = 0; i < ARRAY_LEN(shapes); i++) {
		char *graph = xstrfmt("w0 = 6x3x3x3; c = Conv(x, w0) pads=1,1,1,1; r = Relu(c); %s",
				      shapes[i].graph);
		struct bed b;

		bed_open(&b, LEARNED, SIDE, graph);
		quantize_all(&b);
		for (a = 0; a < ARRAY_LEN(all); a++) {
			struct finetune_report report = { .ops = { NULL, 0, 0 } };
			struct finetune o = finetune_defaults(all[a]);
			const struct finetune_op *op;
			/* few weights leave the others little to gain; with wrong gradients they lose a lot */
			const double limit = all[a] == FINETUNE_GRAM ? 1 : 1.1;
			struct rounding *r;

			o.iterations = 300;
			o.batch_size = 16;
			r = tune(&b, &o, &report);
			assert_int_equal(report.ops.n, 2);
			op = &report.ops.v[1];
			if (op->left || op->before > 0.01 || op->before <= 0 ||
			    op->train_after >= limit * op->train_before)
				fail_msg("%s, %s: %s, error %g, learned %g to %g", shapes[i].why,
					 finetune_algorithms[all[a]], op->left ? op->left : "tuned",
					 op->before, op->train_before, op->train_after);
			rounding_free(r);
			VEC_RELEASE(&report.ops);
		}
		bed_close(&b);
		free(graph);
	}
}

/* what the public interface says of the bed's model, the last op of which is left alone */
static void check_public(const struct finetune_report *report)
{
	static const char *const recipes[] = { "finetune=gram" };
	char *model = xstrfmt("%s/m.onnx", dir), *data = xstrfmt("%s/x.npz", dir),
	     *out = xstrfmt("%s/out.onnx", dir);
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;
	struct fettle *f = fettle_new();
	struct fettle_finetuned op = FETTLE_FINETUNED_INIT;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	size_t i;

	o.model = model;
	o.calib = data;
	o.output = out;
	o.quantize = "/Conv.*/";
	o.threads = 1;
	o.recipes = recipes;
	o.n_recipes = 1;
	assert_false(fettle_finetuned(f, 0, &op));
	if (fettle_quantize(f, &o, &q))
		fail_msg("%s", fettle_message(f));
	for (i = 0; i < report->ops.n; i++) {
		assert_true(fettle_finetuned(f, i, &op));
		assert_string_equal(op.name, report->ops.v[i].name);
		assert_string_equal(op.left ? op.left : "",
				    report->ops.v[i].left ? report->ops.v[i].left : "");
		assert_true(op.before == report->ops.v[i].before && op.after == report->ops.v[i].after);
		assert_int_equal(op.kept, report->ops.v[i].kept);
	}
	assert_false(fettle_finetuned(f, i, &op));
	o.n_recipes = 0;
	assert_int_equal(fettle_quantize(f, &o, &q), FETTLE_OK);
	assert_false(fettle_finetuned(f, 0, &op));
	fettle_free(f);
	free(model);
	free(data);
	free(out);
}

/* what cannot be looked at is left alone, and said to be */
static void test_left(void **state)
{
	static const struct shape cases[] = {
		{ "crops its output", "w = 6x5x2x2; y = ConvTranspose(r, w) pads=2,0,0,0" },
		{ "crops its output", "w = 6x5x2x2; y = ConvTranspose(r, w) strides=2,2 output_shape=13,14" },
		{ "reads the same weight",
		  "w = 6x6x3x3; a = Conv(r, w) pads=1,1,1,1; y = Conv(a, w) pads=1,1,1,1" },
	};
	const struct finetune o = finetune_defaults(FINETUNE_GRAM);
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		char *graph = xstrfmt("w0 = 6x3x3x3; c = Conv(x, w0) pads=1,1,1,1; r = Relu(c); %s",
				      cases[i].graph);
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct rounding *r;
		struct bed b;

		bed_open(&b, 16, SIDE, graph);
		quantize_all(&b);
		r = tune(&b, &o, &report);
		assert_null(report.ops.v[0].left);
		for (k = 1; k < report.ops.n; k++) {
			assert_non_null(report.ops.v[k].left);
			assert_non_null(strstr(report.ops.v[k].left, cases[i].why));
		}
		assert_true(report.ops.n > 1);
		check_public(&report);
		rounding_free(r);
		VEC_RELEASE(&report.ops);
		bed_close(&b);
		free(graph);
	}
}

/* the whole model's squared error on samples that nothing was learned from */
static double error_of(struct bed *b, const struct rounding *r, const struct feed *others)
{
	struct finetune_source src = b->source;
	struct model *m = NULL;
	struct part p;
	struct err err = ERR_INIT;
	double e;

	src.feed = others;
	assert_ok(quantize_rounded(&b->source, &b->plan, r, NULL, &m, &err), err);
	assert_ok(part_open(&p, &src,
			    &(struct part_of){ 0, b->s->m->nodes.n, &b->plan.recipes.finetune, false }, m,
			    &err),
		  err);
	assert_ok(part_error(&p, m, &e, &err), err);
	part_close(&p);
	model_free(m);
	return e;
}

/* an encoder, a decoder, and a convolution in space and time */
static void test_model(void **state)
{
	static const enum finetune_algorithm all[] = { FINETUNE_GRAM, FINETUNE_ADAROUND, FINETUNE_ADAQUANT };
	char *path = xstrfmt("%s/m.onnx", dir), *data = make_data(LEARNED + OTHERS, SIDE);
	/* parts are judged by the last eighth of the batches: nothing of the last was learned from */
	struct feed_options every = { .batch = (LEARNED + OTHERS) / 8 };
	struct input_spec spec = { .name = "x", .dtype = DT_F32, .rank = 4, .dims = { -1, 3, SIDE, SIDE } };
	struct err err = ERR_INIT;
	struct feed *others = NULL;
	struct bed b;
	double nearest;
	size_t i;

	(void)state;
	build_model(path, 13, "x:?x3x8x8",
		    "w1 = 8x3x3x3; c1 = Conv(x, w1) strides=2,2 pads=1,1,1,1; r1 = Relu(c1);"
		    "w2 = 8x6x4x4; b2 = 6; c2 = ConvTranspose(r1, w2, b2) strides=2,2 pads=1,1,1,1; r2 = "
		    "Relu(c2);"
		    "s = [0,2,3,8,8]; v = Reshape(r2, s);"
		    "w3 = 4x2x3x3x3; b3 = 4; c3 = Conv(v, w3, b3) pads=1,1,1,1,1,1; r3 = Relu(c3);"
		    "w4 = 4x2x2x2x2; y = ConvTranspose(r3, w4) strides=1,2,2",
		    "y");
	bed_load(&b, path, data, LEARNED);
	quantize_all(&b);
	assert_ok(feed_open(&others, b.set, &spec, 1, &every, &err), err);
	nearest = error_of(&b, NULL, others);
	for (i = 0; i < ARRAY_LEN(all); i++) {
		struct finetune_report report = { .ops = { NULL, 0, 0 } };
		struct finetune o = finetune_defaults(all[i]);
		struct rounding *r;
		double e;

		o.iterations = 500;
		o.batch_size = 16;
		r = tune(&b, &o, &report);
		assert_int_equal(report.ops.n, 4);
		e = error_of(&b, r, others);
		if (!(e < 0.95 * nearest))
			fail_msg("%s: error %g, to the nearest %g", finetune_algorithms[all[i]], e, nearest);
		rounding_free(r);
		VEC_RELEASE(&report.ops);
	}
	feed_free(others);
	bed_close(&b);
	free(path);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
