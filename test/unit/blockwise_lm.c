/* The algorithms on what a real language model's layers read: error of their outputs on text not calibrated on. */
#include "unit/unit.h"

#include <cblas.h>
#include <unistd.h>

#include "data/feed.h"
#include "runtime/session.h"
#include "unit/blockwise_input.h"

static const char *folder(void)
{
	return getenv("FETTLE_MODELS") ? getenv("FETTLE_MODELS") : "../shared/models";
}

/* the MatMuls with constant weights of the first block, some outputs of each */
enum { LAYERS = 7, OUTPUTS = 64, SAMPLES = 128 };
struct layer {
	const char *input;
	int64_t n, k;
	float *w;             /* [n, k] */
	struct input rows[2]; /* calibration's, evaluation's */
};

static size_t find_layers(struct model *m, struct layer *l)
{
	struct err err = ERR_INIT;
	size_t i, found = 0;
	int64_t r, c;

	for (i = 0; i < m->nodes.n && found < LAYERS; i++) {
		const struct node *node = m->nodes.v[i];
		struct init *w = node_is(node, "MatMul") ? model_init(m, node->in[1]) : NULL;

		if (!w || w->t.rank != 2)
			continue;
		assert_ok(model_weight(m, w, &err), err);
		l[found] = (struct layer){ .input = node->in[0], .k = w->t.dims[0], .n = OUTPUTS };
		l[found].w = xcalloc((size_t)(l[found].n * l[found].k), sizeof(float));
		for (r = 0; r < l[found].n; r++)
			for (c = 0; c < l[found].k; c++)
				l[found].w[r * l[found].k + c] =
					((const float *)w->t.data)[c * w->t.dims[1] + r];
		found++;
	}
	return found;
}

static void add_rows(struct input *in, const struct tensor *t, int64_t k, float share)
{
	const int64_t rows = tensor_count(t) / k;
	const float *x = t->data;
	int64_t i;

	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)k, (int)k, (int)rows, share, x, (int)k, x,
		    (int)k, 1, in->gram, (int)k);
	for (i = 0; i < rows * k; i++)
		in->mean_abs[i % k] += fabsf(x[i]) * share;
}

/* what the layers read over the first samples of a file */
static void collect(struct session *s, const char *file, struct layer *l, size_t n, int which)
{
	const struct value *v = session_input(s, 0);
	const struct input_spec spec = { v->name, v->type.dtype, 2, { -1, v->type.dims[1] } };
	char *path = xstrfmt("%s/%s", folder(), file);
	struct feed_batch b = FEED_BATCH_INIT;
	struct tensor out[LAYERS];
	struct dataset *d = NULL;
	struct feed *feed = NULL;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(dataset_open(&d, path, NULL, &err), err);
	assert_ok(
		feed_open(&feed, d, &spec, 1, &(struct feed_options){ .batch = 16, .limit = SAMPLES }, &err),
		err);
	for (i = 0; i < n; i++) {
		struct input *in = &l[i].rows[which];

		in->gram = xcalloc((size_t)(l[i].k * l[i].k), sizeof(float));
		in->mean_abs = xcalloc((size_t)l[i].k, sizeof(float));
		in->seen = (struct block_seen){ .gram = in->gram, .mean_abs = in->mean_abs };
		in->seen.rows = (int64_t)feed_samples(feed) * v->type.dims[1];
	}
	while (!feed_next(feed, &b, &err)) {
		assert_ok(session_run(s, b.inputs, out, &err), err);
		for (i = 0; i < n; i++)
			add_rows(&l[i].rows[which], &out[i], l[i].k, 1 / (float)l[i].rows[which].seen.rows);
	}
	feed_batch_release(&b);
	feed_free(feed);
	dataset_free(d);
	free(path);
}

/* of rtn's, per layer and their mean */
static const struct {
	enum block_algorithm a;
	double most, mean;
} bounds[] = { { BLOCK_GPTQ, 0.7, 0.35 }, { BLOCK_AWQ, 1, 0.9 }, { BLOCK_GRAM, 0.7, 0.3 } };

static void less_error_on_other_text(void **state)
{
	const struct block_format f = { 4, 32, false };
	char *path = xstrfmt("%s/lm.onnx", folder());
	double mean[ARRAY_LEN(bounds)] = { 0 };
	const char *names[LAYERS];
	struct layer l[LAYERS];
	struct session *s = NULL;
	struct err err = ERR_INIT;
	struct runtime *rt = NULL;
	struct model *m = NULL;
	size_t n, i, j;

	(void)state;
	if (access(path, R_OK) != 0) {
		print_message("SKIPPED: %s is not here\n", path);
		free(path);
		skip();
	}
	assert_ok(runtime_new(&rt, &err), err);
	assert_ok(model_load(&m, path, &err), err);
	n = find_layers(m, l);
	assert_int_equal(n, LAYERS);
	for (i = 0; i < n; i++)
		names[i] = l[i].input;
	model_set_outputs(m, names, n);
	assert_ok(session_new(&s, rt, m, &(struct session_options){ .threads = 1, .level = OPT_BASIC }, &err),
		  err);
	collect(s, "lm_calib.npz", l, n, 0);
	collect(s, "lm_eval.npz", l, n, 1);
	for (i = 0; i < n; i++) {
		struct block_weight q = BLOCK_WEIGHT_INIT;
		double rtn, e;

		assert_ok(block_quantize(BLOCK_RTN, l[i].w, l[i].n, l[i].k, NULL, &f, &q, &err), err);
		rtn = output_error(&q, l[i].w, l[i].rows[1].gram);
		block_weight_release(&q);
		for (j = 0; j < ARRAY_LEN(bounds); j++) {
			assert_ok(block_quantize(bounds[j].a, l[i].w, l[i].n, l[i].k, &l[i].rows[0].seen, &f,
						 &q, &err),
				  err);
			e = output_error(&q, l[i].w, l[i].rows[1].gram) / rtn;
			block_weight_release(&q);
			if (e > bounds[j].most)
				fail_msg("%s of layer %zu: error %g of rtn's",
					 block_methods[bounds[j].a]->name, i, e);
			mean[j] += log(e) / (double)n;
		}
		free(l[i].w);
		input_release(&l[i].rows[0]);
		input_release(&l[i].rows[1]);
	}
	for (j = 0; j < ARRAY_LEN(bounds); j++)
		if (exp(mean[j]) > bounds[j].mean)
			fail_msg("%s: mean error %g of rtn's", block_methods[bounds[j].a]->name,
				 exp(mean[j]));
	session_free(s);
	model_free(m);
	runtime_free(rt);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(less_error_on_other_text) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
