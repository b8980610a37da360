#include "quantize/grams.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/blas.h"

struct gram {
	char *value;
	int64_t inputs;
	bool turned;
	size_t output; /* which output of the session has the value */
	float *sum;    /* of x x', the upper half while it is summed */
	float *abs;    /* of |x| */
	struct block_seen seen;
};

struct grams {
	struct gram *v;
	size_t n;
};

void grams_free(struct grams *g)
{
	size_t i;

	for (i = 0; g && i < g->n; i++) {
		free(g->v[i].value);
		free(g->v[i].sum);
		free(g->v[i].abs);
	}
	if (g)
		free(g->v);
	free(g);
}

const struct block_seen *grams_find(const struct grams *g, const struct gram_input *in)
{
	size_t i;

	for (i = 0; g && i < g->n; i++)
		if (g->v[i].turned == in->turned && g->v[i].inputs == in->inputs &&
		    strcmp(g->v[i].value, in->value) == 0)
			return &g->v[i].seen;
	return NULL;
}

static void add_rows(struct gram *g, const float *x, int64_t rows)
{
	const int k = (int)g->inputs;
	int64_t r, i;

	cblas_ssyrk(CblasRowMajor, CblasUpper, g->turned ? CblasNoTrans : CblasTrans, k, (int)rows, 1, x,
		    g->turned ? (int)rows : k, 1, g->sum, k);
	for (r = 0; r < rows; r++)
		for (i = 0; i < k; i++)
			g->abs[i] += fabsf(g->turned ? x[i * rows + r] : x[r * k + i]);
	g->seen.rows += rows;
}

static enum fettle_status add(struct gram *g, const struct tensor *t, size_t n, size_t valid, struct err *err)
{
	const int64_t k = t->rank ? t->dims[g->turned ? 0 : t->rank - 1] : 0;
	int64_t rows, samples;

	if (t->dtype != DT_F32 || k != g->inputs || t->rank < 2 || (g->turned && t->rank != 2))
		return fail(err, FETTLE_INVALID, "cannot observe value '%s': need float32 and %lld inputs",
			    g->value, (long long)g->inputs);
	rows = tensor_count(t) / k;
	samples = t->dims[0];
	/* the samples of a batch come first; what pads it does not count */
	if (!g->turned && n && samples % (int64_t)n == 0)
		rows = rows / (int64_t)n * (int64_t)valid;
	add_rows(g, t->data, rows);
	return FETTLE_OK;
}

static enum fettle_status add_all(void *self, const struct tensor *out, const struct feed_batch *b,
				  struct err *err)
{
	struct grams *g = self;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	blas_single_begin();
	for (i = 0; i < g->n && !st; i++)
		st = add(&g->v[i], &out[g->v[i].output], b->n, b->valid, err);
	blas_single_end();
	return st;
}

/* from sums over the upper half to means of all */
static void finish(struct gram *g)
{
	const float share = g->seen.rows ? 1 / (float)g->seen.rows : 0;
	const int64_t k = g->inputs;
	int64_t i, c;

	for (i = 0; i < k; i++) {
		g->abs[i] *= share;
		for (c = i; c < k; c++)
			g->sum[c * k + i] = g->sum[i * k + c] *= share;
	}
	g->seen.gram = g->sum;
	g->seen.mean_abs = g->abs;
}

static enum fettle_status start(struct gram *g, const struct gram_input *in, struct err *err)
{
	const size_t k = (size_t)in->inputs;
	enum fettle_status st;

	g->value = xstrdup(in->value);
	g->inputs = in->inputs;
	g->turned = in->turned;
	g->abs = xcalloc(k, sizeof(*g->abs));
	st = mem_try(&g->sum, k * k, sizeof(*g->sum), "what a matrix is applied to", err);
	if (!st)
		memset(g->sum, 0, k * k * sizeof(*g->sum));
	return st;
}

enum fettle_status grams_new(struct grams **out, const struct gram_input *want, size_t n, struct err *err)
{
	struct grams *g = xcalloc(1, sizeof(*g));
	enum fettle_status st = FETTLE_OK;
	size_t i;

	g->v = xcalloc(n + 1, sizeof(*g->v));
	for (i = 0; i < n && !st; i++)
		if (!grams_find(g, &want[i]))
			st = start(&g->v[g->n++], &want[i], err);
	if (st)
		grams_free(g);
	else
		*out = g;
	return st;
}

enum fettle_status grams_add(struct grams *g, const char *value, const struct tensor *t, size_t n,
			     size_t valid, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	blas_single_begin();
	for (i = 0; i < g->n && !st; i++)
		if (strcmp(g->v[i].value, value) == 0)
			st = add(&g->v[i], t, n, valid, err);
	blas_single_end();
	return st;
}

void grams_finish(struct grams *g)
{
	size_t i;

	for (i = 0; i < g->n; i++)
		finish(&g->v[i]);
}

enum fettle_status grams_observe(struct grams **out, const struct calibrate_on *on,
				 const struct gram_input *want, size_t n, const struct calibrate_options *o,
				 struct err *err)
{
	const char **values = xcalloc(n, sizeof(*values));
	struct observed s = OBSERVED_INIT;
	struct map place = MAP_INIT;
	struct grams *g = NULL;
	enum fettle_status st = grams_new(&g, want, n, err);
	size_t i, n_values = 0;

	for (i = 0; !st && i < g->n; i++) {
		g->v[i].output = map_get(&place, g->v[i].value);
		if (g->v[i].output == MAP_NONE) {
			map_set(&place, g->v[i].value, n_values);
			g->v[i].output = n_values;
			values[n_values++] = g->v[i].value;
		}
	}
	if (!st)
		st = observed_open(&s, on->rt, on->m, values, n_values, o->threads, err);
	if (!st)
		st = observed_run(&s, on->feed, o, add_all, g, err);
	if (!st)
		grams_finish(g);
	observed_close(&s);
	map_release(&place);
	free(values);
	if (st)
		grams_free(g);
	else
		*out = g;
	return st;
}
