/*
 * Weight-only algorithms on one model: loss of perplexity against fp32, error of the layers' outputs on other rows than
 * those calibrated on, and CPU time. Weights are replaced by what their codes stand for, so that nothing of the
 * runtime's kernels is in the figures.
 * Usage: blockwise [--errors] MODEL CALIB EVAL [BITS [BLOCK [sym|asym [ALGORITHM...]]]]; with --errors no perplexity
 *        blockwise --speed [K [N [ROWS]]]: MB of fp32 weights per second of CPU time, on correlated inputs of ROWS rows
 */
#include "bench.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "blockwise/blockwise.h"
#include "tune/source.h"

static struct context cx;
#define must(st) bench_must(st, &cx.err)
static bool only_errors;
static char **algorithms; /* only these, up to a NULL; NULL: all */

static bool wanted(const char *algorithm)
{
	char **p;

	for (p = algorithms; p && *p; p++)
		if (strcmp(*p, algorithm) == 0)
			return true;
	return !algorithms;
}

/* What the rows that a value had amount to. */
struct rows {
	const char *value;
	int64_t k, n;
	float *gram, *mean_abs;
};

static void rows_add(struct rows *r, const struct tensor *t)
{
	const int64_t n = tensor_count(t) / r->k;
	const float *x = t->data;
	int64_t i, j;

	cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)r->k, (int)n, 1, x, (int)r->k, 1, r->gram,
		    (int)r->k);
	for (i = 0; i < n; i++)
		for (j = 0; j < r->k; j++)
			r->mean_abs[j] += fabsf(x[i * r->k + j]);
	r->n += n;
}

static void rows_finish(struct rows *r)
{
	int64_t i, j;

	for (i = 0; i < r->k; i++) {
		r->mean_abs[i] /= (float)r->n;
		for (j = i; j < r->k; j++)
			r->gram[j * r->k + i] = r->gram[i * r->k + j] /= (float)r->n;
	}
}

struct layer {
	struct node *node;
	size_t input; /* in rows */
	int64_t n, k;
	float *w; /* [n, k] */
};

struct bench {
	struct model *m;
	struct source source[2]; /* calibration, evaluation */
	VEC(struct layer) layers;
	VEC(struct rows) rows[2]; /* of what was calibrated on; of others */
};

static void open_source(struct source *s, const char *path, struct session *session)
{
	struct data_ref d = { .what = "bench", .root = path };
	struct feed_options o = { .batch = CALIB_BATCH };

	must(source_open(s, &cx, &d, session, &o));
}

static size_t rows_of(struct bench *b, const char *value, int64_t k)
{
	size_t i, which;

	for (i = 0; i < b->rows[0].n; i++)
		if (strcmp(b->rows[0].v[i].value, value) == 0)
			return i;
	for (which = 0; which < 2; which++)
		VEC_PUSH(&b->rows[which], ((struct rows){ .value = value,
							  .k = k,
							  .gram = xcalloc((size_t)(k * k), sizeof(float)),
							  .mean_abs = xcalloc((size_t)k, sizeof(float)) }));
	return i;
}

/* every MatMul with a constant weight */
static void find_layers(struct bench *b)
{
	size_t i;
	int64_t r, c;

	for (i = 0; i < b->m->nodes.n; i++) {
		struct node *node = b->m->nodes.v[i];
		struct init *w = node_is(node, "MatMul") ? model_init(b->m, node->in[1]) : NULL;
		struct layer l = { .node = node };

		if (!w || w->t.rank != 2)
			continue;
		must(model_weight(b->m, w, &cx.err));
		l.k = w->t.dims[0];
		l.n = w->t.dims[1];
		l.w = xmalloc((size_t)(l.n * l.k) * sizeof(float));
		for (r = 0; r < l.n; r++)
			for (c = 0; c < l.k; c++)
				l.w[r * l.k + c] = ((const float *)w->t.data)[c * l.n + r];
		l.input = rows_of(b, node->in[0], l.k);
		VEC_PUSH(&b->layers, l);
	}
}

static void collect(struct bench *b, size_t which)
{
	const size_t n = b->rows[0].n;
	const char **names = xcalloc(n, sizeof(*names));
	struct tensor *out = xcalloc(n, sizeof(*out));
	struct feed_batch batch = FEED_BATCH_INIT;
	struct model *m = model_derive(b->m);
	struct session *s = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		names[i] = b->rows[0].v[i].value;
	model_set_outputs(m, names, n);
	must(session_new(&s, cx.rt, m, &(struct session_options){ .threads = 1, .level = OPT_BASIC },
			 &cx.err));
	feed_rewind(b->source[which].feed);
	while (!feed_next(b->source[which].feed, &batch, &cx.err)) {
		must(session_run(s, batch.inputs, out, &cx.err));
		for (i = 0; i < n; i++)
			rows_add(&b->rows[which].v[i], &out[i]);
	}
	for (i = 0; i < n; i++)
		rows_finish(&b->rows[which].v[i]);
	feed_batch_release(&batch);
	session_free(s);
	model_free(m);
	free(names);
	free(out);
}

static double cross_entropy(const struct tensor *logits, const struct tensor *labels, double *n)
{
	const int64_t words = logits->dims[logits->rank - 1], rows = tensor_count(logits) / words;
	double sum = 0;
	int64_t r, i;

	for (r = 0; r < rows; r++) {
		const float *x = (const float *)logits->data + r * words;
		double most = -INFINITY, total = 0;

		for (i = 0; i < words; i++)
			most = x[i] > most ? x[i] : most;
		for (i = 0; i < words; i++)
			total += (double)expf(x[i] - (float)most);
		sum += most + log(total) - (double)x[((const int64_t *)labels->data)[r]];
	}
	*n += (double)rows;
	return sum;
}

static double perplexity(struct bench *b, struct model *m)
{
	struct feed_batch batch = FEED_BATCH_INIT;
	struct session *s = NULL;
	double sum = 0, n = 0;
	struct tensor out;

	must(session_new(&s, cx.rt, m, &(struct session_options){ .threads = 1 }, &cx.err));
	feed_rewind(b->source[1].feed);
	while (!feed_next(b->source[1].feed, &batch, &cx.err)) {
		must(session_run(s, batch.inputs, &out, &cx.err));
		sum += cross_entropy(&out, &batch.labels, &n);
	}
	feed_batch_release(&batch);
	session_free(s);
	return exp(sum / n);
}

/* mean square of x (q - w)' over rows */
static double output_error(const float *q, const float *w, int64_t n, int64_t k, const float *gram)
{
	float *off = xmalloc((size_t)(n * k) * sizeof(float)), *by = xmalloc((size_t)(n * k) * sizeof(float));
	double sum = 0;
	int64_t i;

	for (i = 0; i < n * k; i++)
		off[i] = q[i] - w[i];
	cblas_ssymm(CblasRowMajor, CblasRight, CblasUpper, (int)n, (int)k, 1, gram, (int)k, off, (int)k, 0,
		    by, (int)k);
	for (i = 0; i < n * k; i++)
		sum += (double)off[i] * by[i];
	free(off);
	free(by);
	return sum / (double)n;
}

struct result {
	double perplexity, seconds;
	double *errors; /* of each layer, on the evaluation's rows */
};

/* what the input of layer i is divided by, for all that read it; NULL: nothing */
static const float *input_scales(struct bench *b, enum block_algorithm a, const struct block_format *f,
				 size_t i, float **all)
{
	const size_t input = b->layers.v[i].input;
	const struct rows *x = &b->rows[0].v[input];
	const struct block_seen seen = { x->gram, x->mean_abs, x->n, NULL };
	VEC(struct block_reader) readers = { NULL, 0, 0 };
	size_t j;

	if (!block_methods[a]->scales_inputs)
		return NULL;
	if (all[input])
		return all[input];
	for (j = 0; j < b->layers.n; j++)
		if (b->layers.v[j].input == input)
			VEC_PUSH(&readers, ((struct block_reader){ b->layers.v[j].w, b->layers.v[j].n }));
	all[input] = xcalloc((size_t)x->k, sizeof(float));
	must(block_input_scales(readers.v, readers.n, x->k, &seen, f, all[input], &cx.err));
	VEC_RELEASE(&readers);
	return all[input];
}

static struct result try(struct bench *b, enum block_algorithm a, const struct block_format *f)
{
	struct result r = { .errors = xcalloc(b->layers.n, sizeof(double)) };
	struct model *m = model_derive(b->m);
	struct block_weight q = BLOCK_WEIGHT_INIT;
	float **scales = xcalloc(b->rows[0].n, sizeof(*scales));
	size_t i;

	for (i = 0; i < b->layers.n; i++) {
		const struct layer *l = &b->layers.v[i];
		const struct rows *x = &b->rows[0].v[l->input];
		struct block_seen seen = { x->gram, x->mean_abs, x->n, NULL };
		const size_t count = (size_t)(l->n * l->k);
		float *back = xmalloc(count * sizeof(float)),
		      *t = arena_alloc(&m->arena, count * sizeof(float));
		const struct init *old = model_init(b->m, l->node->in[1]);
		struct tensor value = old->t;
		double start = cpu_now();
		int64_t row, c;
		size_t k;

		seen.input_scales = input_scales(b, a, f, i, scales);
		must(block_quantize(a, l->w, l->n, l->k, &seen, f, &q, &cx.err));
		r.seconds += cpu_now() - start;
		block_dequantize(&q, back);
		for (k = 0; k < count && seen.input_scales; k++)
			back[k] /= seen.input_scales[k % (size_t)l->k];
		r.errors[i] = output_error(back, l->w, l->n, l->k, b->rows[1].v[l->input].gram);
		for (row = 0; row < l->n; row++)
			for (c = 0; c < l->k; c++)
				t[c * l->n + row] = back[row * l->k + c];
		value.data = t;
		for (k = 0; k < m->nodes.n; k++)
			if (strcmp(m->nodes.v[k]->out[0], l->node->out[0]) == 0)
				m->nodes.v[k]->in[1] =
					model_add_init(m, model_fresh(m, l->node->in[1]), &value)->name;
		block_weight_release(&q);
		free(back);
	}
	for (i = 0; i < b->rows[0].n; i++)
		free(scales[i]);
	free(scales);
	model_sweep(m);
	r.perplexity = only_errors ? NAN : perplexity(b, m);
	model_free(m);
	return r;
}

static void compare(struct bench *b, const struct block_format *f)
{
	const double fp32 = only_errors ? NAN : perplexity(b, b->m);
	struct result rtn = { 0 };
	size_t i;
	int a;

	printf("%d bits, block %d, %s; fp32: perplexity %.4f\n", f->bits, (int)f->block,
	       f->symmetric ? "sym" : "asym", fp32);
	printf("  %-9s %10s %8s %8s %27s %8s\n", "", "perplexity", "loss", "of rtn's",
	       "error of rtn's: mean, worst", "seconds");
	for (a = 0; a < BLOCK_ALGORITHMS; a++) {
		if (a != BLOCK_RTN && !wanted(block_methods[a]->name))
			continue;
		struct result r = try(b, (enum block_algorithm)a, f);
		double logs = 0, worst = 0;

		if (a == BLOCK_RTN)
			rtn = r;
		for (i = 0; i < b->layers.n; i++) {
			logs += log(r.errors[i] / rtn.errors[i]);
			worst = fmax(worst, r.errors[i] / rtn.errors[i]);
		}
		printf("  %-9s %10.4f %8.4f %8.3f %18.3f %8.3f %8.2f\n", block_methods[a]->name, r.perplexity,
		       r.perplexity - fp32, (r.perplexity - fp32) / (rtn.perplexity - fp32),
		       exp(logs / (double)b->layers.n), worst, r.seconds);
		fflush(stdout);
		if (a != BLOCK_RTN)
			free(r.errors);
	}
	free(rtn.errors);
}

static void on_model(int argc, char **argv)
{
	struct block_format f = { argc > 4 ? atoi(argv[4]) : 4, argc > 5 ? atoi(argv[5]) : 32,
				  argc > 6 && strcmp(argv[6], "sym") == 0 };
	struct session *fp32 = NULL;
	struct bench b = { 0 };
	size_t which, i;

	must(runtime_new(&cx.rt, &cx.err));
	must(model_load(&b.m, argv[1], &cx.err));
	must(session_new(&fp32, cx.rt, b.m, &(struct session_options){ .threads = 1 }, &cx.err));
	find_layers(&b);
	for (which = 0; which < 2; which++) {
		open_source(&b.source[which], argv[2 + which], fp32);
		collect(&b, which);
	}
	compare(&b, &f);
	for (which = 0; which < 2; which++) {
		for (i = 0; i < b.rows[which].n; i++) {
			free(b.rows[which].v[i].gram);
			free(b.rows[which].v[i].mean_abs);
		}
		VEC_RELEASE(&b.rows[which]);
		source_release(&b.source[which]);
	}
	for (i = 0; i < b.layers.n; i++)
		free(b.layers.v[i].w);
	VEC_RELEASE(&b.layers);
	session_free(fp32);
	model_free(b.m);
	runtime_free(cx.rt);
}

/* channels that share a few factors, some of them large */
static struct tensor correlated(int64_t rows, int64_t k, const float *mix, int factors, struct rng *r)
{
	struct tensor t = { DT_F32, 2, { rows, k }, xcalloc((size_t)(rows * k), sizeof(float)) };
	float *hidden = xcalloc((size_t)(rows * factors), sizeof(float)), *x = t.data;
	int64_t i;

	for (i = 0; i < rows * factors; i++)
		hidden[i] = (float)rng_normal(r);
	for (i = 0; i < rows * k; i++)
		x[i] = (float)rng_normal(r);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)k, factors, 1, hidden, factors,
		    mix, (int)k, 1, x, (int)k);
	for (i = 0; i < rows * k; i++)
		x[i] *= i % k % 61 == 7 ? 20 : 1;
	free(hidden);
	return t;
}

static void speed(int64_t k, int64_t n, int64_t seen_rows)
{
	enum { FACTORS = 64 };
	const struct block_format f = { 4, 32, false };
	struct rows rows[2];
	float *w = xcalloc((size_t)(n * k), sizeof(float)), *back = xcalloc((size_t)(n * k), sizeof(float)),
	      *mix = xcalloc((size_t)k * FACTORS, sizeof(float));
	double error = 0;
	struct rng r;
	int64_t i;
	int a;

	openblas_set_num_threads(1);
	rng_seed(&r, 1);
	for (i = 0; i < n * k; i++)
		w[i] = (float)(0.02 * rng_normal(&r));
	for (i = 0; i < k * FACTORS; i++)
		mix[i] = (float)(0.3 * rng_normal(&r));
	for (a = 0; a < 2; a++) {
		struct tensor x = correlated(a || !seen_rows ? 2 * k : seen_rows, k, mix, FACTORS, &r);

		rows[a] = (struct rows){ .k = k,
					 .gram = xcalloc((size_t)(k * k), sizeof(float)),
					 .mean_abs = xcalloc((size_t)k, sizeof(float)) };
		rows_add(&rows[a], &x);
		rows_finish(&rows[a]);
		free(x.data);
	}
	printf("4 bits, block 32, asym; %d outputs of %d inputs, one thread\n", (int)n, (int)k);
	for (a = 0; a < BLOCK_ALGORITHMS; a++) {
		if (a != BLOCK_RTN && !wanted(block_methods[a]->name))
			continue;
		const struct block_seen seen = { rows[0].gram, rows[0].mean_abs, rows[0].n, NULL };
		struct block_weight q = BLOCK_WEIGHT_INIT;
		double start = cpu_now(), seconds, e;

		must(block_quantize((enum block_algorithm)a, w, n, k, &seen, &f, &q, &cx.err));
		seconds = cpu_now() - start;
		block_dequantize(&q, back);
		e = output_error(back, w, n, k, rows[1].gram);
		error = a == BLOCK_RTN ? e : error;
		printf("  %-9s %8.1f MB/s, error on other rows %.3f of rtn's\n", block_methods[a]->name,
		       4e-6 * (double)(n * k) / seconds, e / error);
		fflush(stdout);
		block_weight_release(&q);
	}
	for (a = 0; a < 2; a++) {
		free(rows[a].gram);
		free(rows[a].mean_abs);
	}
	free(w);
	free(back);
	free(mix);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--speed") == 0) {
		speed(argc > 2 ? atoi(argv[2]) : 4096, argc > 3 ? atoi(argv[3]) : 1024,
		      argc > 4 ? atoi(argv[4]) : 0);
		return 0;
	}
	only_errors = argc > 1 && strcmp(argv[1], "--errors") == 0;
	argc -= only_errors;
	argv += only_errors;
	if (argc > 7)
		algorithms = argv + 7;
	if (argc > 3)
		on_model(argc, argv);
	else
		return fprintf(stderr, "usage: blockwise [--errors] MODEL CALIB EVAL [BITS [BLOCK [sym|asym "
				       "[ALGORITHM...]]]] | "
				       "--speed [K [N [ROWS]]]\n"),
		       2;
	return 0;
}
