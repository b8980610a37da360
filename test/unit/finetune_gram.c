/* gram against trying all levels there are, on layers small enough for that. */
#include "unit/unit.h"

#include "base/rng.h"
#include "finetune/method.h"

enum { UNITS = 40, LEAST = -2, MOST = 2 };

/* A layer with its samples in memory: there is nothing to capture. */
struct toy {
	struct layer l;
	struct units units;
	struct capture c;
	struct finetune o;
};

static void toy_init(struct toy *t, size_t groups, size_t outs, size_t ins, bool takes_shift, uint64_t seed)
{
	struct layer *l = &t->l;
	struct rng r;
	size_t i, k, n;

	rng_seed(&r, seed);
	*t = (struct toy){ .o = finetune_defaults(FINETUNE_GRAM) };
	*l = (struct layer){ .name = "toy",
			     .is_matrix = groups == 1,
			     .groups = groups,
			     .outs = outs,
			     .ins = ins,
			     .patch = ins,
			     .in = { 1, 1, 1 },
			     .out = { 1, 1, 1 },
			     .kernel = { 1, 1, 1 },
			     .stride = { 1, 1, 1 },
			     .dilation = { 1, 1, 1 },
			     .takes_shift = takes_shift };
	n = layer_outputs(l);
	l->w = xcalloc(layer_weights(l), sizeof(float));
	l->level = xcalloc(layer_weights(l), sizeof(float));
	l->scale = xcalloc(n, sizeof(float));
	l->least = xcalloc(n, sizeof(float));
	l->most = xcalloc(n, sizeof(float));
	l->shift = xcalloc(n, sizeof(double));
	for (i = 0; i < n; i++) {
		l->scale[i] = 0.2f + 0.1f * (float)rng_unit(&r);
		l->least[i] = LEAST;
		l->most[i] = MOST;
		for (k = 0; k < ins; k++) {
			float *w = &l->w[i * ins + k], *level = &l->level[i * ins + k];

			*w = (float)(rng_unit(&r) - 0.5);
			*level = fminf(fmaxf(rintf(*w / l->scale[i]), LEAST), MOST);
		}
	}
	t->units.n = UNITS;
	t->units.x = xcalloc(UNITS * groups * ins, sizeof(float));
	t->units.y = xcalloc(UNITS * n, sizeof(float));
	for (i = 0; i < UNITS; i++) {
		float common = (float)rng_normal(&r); /* inputs that go together are what makes it hard */

		for (k = 0; k < groups * ins; k++)
			t->units.x[i * groups * ins + k] = 0.5f + common + 0.4f * (float)rng_normal(&r);
		for (k = 0; k < n; k++) {
			const float *x = t->units.x + i * groups * ins + k / outs * ins;
			size_t j;

			for (j = 0; j < ins; j++)
				t->units.y[i * n + k] += l->w[k * ins + j] * x[j];
			t->units.y[i * n + k] += 0.05f * (float)rng_normal(&r); /* errors of earlier ops */
		}
	}
	t->c = (struct capture){ .l = l,
				 .v = &t->units,
				 .split = { .n = 1, .n_train = 1, .samples = UNITS } };
}

static void toy_release(struct toy *t)
{
	free(t->l.w);
	free(t->l.level);
	free(t->l.scale);
	free(t->l.least);
	free(t->l.most);
	free(t->l.shift);
	free(t->units.x);
	free(t->units.y);
}

/* what gram minimises of one output: squared error under the best bias, and the pull to the fp32 weights */
static double objective(const struct toy *t, size_t out, const float *level, double *shift)
{
	const struct layer *l = &t->l;
	const size_t k = l->ins, channels = l->groups * k;
	const float *x = t->units.x + out / l->outs * k;
	double sum = 0, squares = 0, pull = 0, d;
	size_t i, j;

	for (i = 0; i < UNITS; i++) {
		double r = -t->units.y[i * layer_outputs(l) + out];

		for (j = 0; j < k; j++)
			r += (double)l->scale[out] * level[j] * x[i * channels + j];
		sum += r;
		squares += r * r;
	}
	*shift = l->takes_shift ? -sum / UNITS : 0;
	for (j = 0; j < k; j++) {
		double mean = 0, square = 0;

		for (i = 0; i < UNITS; i++) {
			mean += x[i * channels + j] / (double)UNITS;
			square += x[i * channels + j] * (double)x[i * channels + j];
		}
		pull += (square - (l->takes_shift ? UNITS * mean * mean : 0)) / (double)k;
	}
	for (j = 0, d = 0; j < k; j++)
		d += pow((double)l->scale[out] * level[j] - (double)l->w[out * k + j], 2);
	/* one batch leaves nothing to judge damping by, so it is a third */
	return squares - (l->takes_shift ? sum * sum / UNITS : 0) + pull * d / 3;
}

static double brute_force(const struct toy *t, size_t out)
{
	const size_t k = t->l.ins;
	float level[8];
	double best = INFINITY, shift;
	size_t i, code, all = 1;

	for (i = 0; i < k; i++)
		all *= MOST - LEAST + 1;
	for (code = 0; code < all; code++) {
		size_t rest = code;

		for (i = 0; i < k; i++, rest /= MOST - LEAST + 1)
			level[i] = (float)(LEAST + (int)(rest % (MOST - LEAST + 1)));
		best = fmin(best, objective(t, out, level, &shift));
	}
	return best;
}

static void try_toy(size_t groups, size_t outs, size_t ins, bool takes_shift, uint64_t seed)
{
	size_t o, found = 0, n = groups * outs;
	struct err err = ERR_INIT;
	double shift;
	struct toy t;
	struct work w;
	float *nearest;

	toy_init(&t, groups, outs, ins, takes_shift, seed);
	nearest = xcalloc(layer_weights(&t.l), sizeof(float));
	memcpy(nearest, t.l.level, layer_weights(&t.l) * sizeof(float));
	w = (struct work){ .c = &t.c, .l = &t.l, .o = &t.o };
	assert_ok(gram(&w, &err), err);
	for (o = 0; o < n; o++) {
		double best = brute_force(&t, o), got = objective(&t, o, t.l.level + o * ins, &shift);
		double before, ignored;

		before = objective(&t, o, nearest + o * ins, &ignored);
		assert_true(got >= best * (1 - 1e-6));
		assert_true(got <= before * (1 + 1e-6));
		assert_float_equal(t.l.shift[o], shift, 1e-4);
		if (got > 1.1 * best)
			fail_msg("output %zu of %zu x %zu x %zu: %g, the best is %g", o, groups, outs, ins,
				 got, best);
		found += got <= best * (1 + 1e-6);
	}
	if (found * 10 < n * 8) /* descent may end beside the best, but not often */
		fail_msg("the best was found for %zu of %zu outputs only", found, n);
	free(nearest);
	toy_release(&t);
}

static void test_brute_force(void **state)
{
	(void)state;
	try_toy(1, 40, 5, true, 1);
	try_toy(1, 40, 5, false, 2);
	try_toy(1, 20, 6, true, 3);
	try_toy(4, 10, 4, true, 4);
	try_toy(20, 1, 3, false, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_brute_force) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
