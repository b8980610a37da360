/* oneDNN's passes over a layer against loops that follow the definition. */
#include "unit/unit.h"

#include "base/rng.h"
#include "finetune/math.h"

static struct rng rng;

static void randomise(float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		x[i] = (float)rng_normal(&rng);
}

/* where the input of the layer at an output's position and place in the patch lies; SIZE_MAX outside */
static size_t input_place(const struct layer *l, size_t unit, const size_t at[LAYER_DIMS], size_t out,
			  size_t place)
{
	size_t k = place / l->ins, where = unit;
	int d;

	for (d = 0; d < LAYER_DIMS; d++) {
		size_t inner = d < 2 ? l->kernel[2] * (d < 1 ? l->kernel[1] : 1) : 1;
		long i = (long)(at[d] * l->stride[d] + k / inner * l->dilation[d]) - (long)l->pad[d];

		k %= inner;
		if (i < 0 || i >= (long)l->in[d])
			return SIZE_MAX;
		where = where * l->in[d] + (size_t)i;
	}
	return where * l->groups * l->ins + place % l->ins + out / l->outs * l->ins;
}

static double input_at(const struct layer *l, const float *x, size_t unit, const size_t at[LAYER_DIMS],
		       size_t out, size_t place)
{
	const size_t i = input_place(l, unit, at, out, place);

	return i == SIZE_MAX ? 0 : (double)x[i];
}

struct sizes {
	const char *why;
	bool is_matrix;
	size_t groups, outs, ins, in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
};

static const struct sizes cases[] = {
	{ "a matrix",
	  true,
	  1,
	  5,
	  7,
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 0, 0, 0 },
	  { 0, 0, 0 } },
	{ "pointwise",
	  false,
	  1,
	  6,
	  4,
	  { 1, 5, 3 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 0, 0, 0 },
	  { 0, 0, 0 } },
	{ "padded 3x3",
	  false,
	  1,
	  6,
	  4,
	  { 1, 8, 8 },
	  { 1, 3, 3 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 0, 1, 1 },
	  { 0, 1, 1 } },
	{ "strides, uneven pads",
	  false,
	  1,
	  16,
	  16,
	  { 1, 9, 7 },
	  { 1, 3, 2 },
	  { 1, 2, 3 },
	  { 1, 1, 1 },
	  { 0, 0, 1 },
	  { 0, 1, 0 } },
	{ "dilated",
	  false,
	  1,
	  3,
	  2,
	  { 1, 9, 9 },
	  { 1, 3, 3 },
	  { 1, 1, 1 },
	  { 1, 2, 1 },
	  { 0, 2, 1 },
	  { 0, 2, 1 } },
	{ "groups",
	  false,
	  3,
	  2,
	  4,
	  { 1, 6, 6 },
	  { 1, 3, 3 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 0, 1, 1 },
	  { 0, 1, 1 } },
	{ "depthwise",
	  false,
	  16,
	  1,
	  1,
	  { 1, 6, 6 },
	  { 1, 3, 3 },
	  { 1, 2, 2 },
	  { 1, 1, 1 },
	  { 0, 1, 1 },
	  { 0, 1, 1 } },
	{ "one dimension",
	  false,
	  1,
	  8,
	  3,
	  { 1, 1, 20 },
	  { 1, 1, 5 },
	  { 1, 1, 2 },
	  { 1, 1, 1 },
	  { 0, 0, 2 },
	  { 0, 0, 2 } },
	{ "three dimensions",
	  false,
	  1,
	  4,
	  3,
	  { 4, 6, 5 },
	  { 2, 3, 2 },
	  { 1, 2, 1 },
	  { 2, 1, 3 },
	  { 1, 0, 2 },
	  { 0, 1, 1 } },
	{ "three dimensions, groups",
	  false,
	  2,
	  3,
	  2,
	  { 3, 4, 5 },
	  { 3, 1, 2 },
	  { 2, 1, 1 },
	  { 1, 1, 1 },
	  { 1, 0, 0 },
	  { 1, 0, 1 } },
	{ "three dimensions, depthwise",
	  false,
	  16,
	  1,
	  1,
	  { 3, 4, 5 },
	  { 3, 3, 3 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 1, 1, 1 },
	  { 1, 1, 1 } },
};

static void check_gradients(const char *why, const struct layer *l, const struct layer_math *m,
			    const double *dw, const double *db)
{
	size_t k;

	for (k = 0; k < layer_weights(l); k++)
		if (fabs(dw[k] - m->dw[k]) > 1e-3)
			fail_msg("%s: gradient %zu is %g, need %g", why, k, (double)m->dw[k], dw[k]);
	for (k = 0; k < layer_outputs(l); k++)
		if (fabs(db[k] - m->db[k]) > 1e-3)
			fail_msg("%s: bias gradient %zu is %g, need %g", why, k, (double)m->db[k], db[k]);
}

/* the same units where they lie, in a pass each: the gradients are those of all */
static void learn_one_by_one(const char *why, const struct layer *l, const struct layer_math *all, size_t n,
			     const double *dw, const double *db)
{
	struct math_units *u = xcalloc(n, sizeof(*u));
	struct layer_math *m = NULL;
	struct err err = ERR_INIT;
	size_t i;

	assert_ok(math_new(&m, l, 1, &err), err);
	for (i = 0; i < n; i++)
		u[i] = (struct math_units){ all->x + i * layer_x_size(l), all->target + i * layer_y_size(l) };
	memcpy(m->w, all->w, layer_weights(l) * sizeof(float));
	memcpy(m->b, all->b, layer_outputs(l) * sizeof(float));
	for (i = 0; i < 2; i++) { /* nothing is left from the first time */
		assert_ok(math_learn(m, u, n, &err), err);
		check_gradients(why, l, m, dw, db);
	}
	math_free(m);
	free(u);
}

static void try_case(const struct sizes *s)
{
	enum { UNITS = 3 };
	struct layer l = { .name = s->why, .is_matrix = s->is_matrix, .groups = s->groups, .outs = s->outs };
	struct layer_math *m = NULL;
	struct math_units all;
	struct err err = ERR_INIT;
	size_t k, u, i, at, o, p, outputs;
	double *dw, *db, *dx;

	l.ins = s->ins;
	l.patch = s->ins * layer_product(s->kernel);
	for (k = 0; k < LAYER_DIMS; k++) {
		l.in[k] = s->in[k];
		l.kernel[k] = s->kernel[k];
		l.stride[k] = s->stride[k];
		l.dilation[k] = s->dilation[k];
		l.pad[k] = s->pad[k];
		l.pad_end[k] = s->pad_end[k];
		l.out[k] = (s->in[k] + s->pad[k] + s->pad_end[k] - (s->kernel[k] - 1) * s->dilation[k] - 1) /
				   s->stride[k] +
			   1;
	}
	outputs = layer_outputs(&l);
	assert_ok(math_new(&m, &l, UNITS, &err), err);
	randomise(m->x, UNITS * layer_x_size(&l));
	randomise(m->target, UNITS * layer_y_size(&l));
	randomise(m->w, layer_weights(&l));
	randomise(m->b, outputs);
	all = (struct math_units){ m->x, m->target };
	dw = xcalloc(layer_weights(&l), sizeof(double));
	db = xcalloc(outputs, sizeof(double));
	dx = xcalloc(UNITS * layer_x_size(&l), sizeof(double));
	assert_ok(math_want_dx(m, &l, &err), err);
	assert_ok(math_residual(m, &all, &err), err);
	assert_ok(math_gradient(m, &err), err);
	assert_ok(math_input_gradient(m, &err), err);
	for (u = 0; u < UNITS; u++)
		for (i = 0; i < layer_positions(&l); i++)
			for (o = 0; o < outputs; o++) {
				const size_t place[] = { i / l.out[2] / l.out[1], i / l.out[2] % l.out[1],
							 i % l.out[2] };
				double r;

				at = (u * layer_positions(&l) + i) * outputs + o;
				r = m->b[o] - m->target[at];
				for (p = 0; p < l.patch; p++)
					r += m->w[o * l.patch + p] * input_at(&l, m->x, u, place, o, p);
				if (fabs(r - m->y[at]) > 1e-4)
					fail_msg("%s: residual %g, need %g", s->why, (double)m->y[at], r);
				db[o] += r;
				for (p = 0; p < l.patch; p++) {
					const size_t x = input_place(&l, u, place, o, p);

					if (x == SIZE_MAX)
						continue;
					dw[o * l.patch + p] += r * m->x[x];
					dx[x] += r * m->w[o * l.patch + p];
				}
			}
	check_gradients(s->why, &l, m, dw, db);
	for (k = 0; k < UNITS * layer_x_size(&l); k++)
		if (fabs(dx[k] - m->dx[k]) > 1e-3)
			fail_msg("%s: input gradient %zu is %g, need %g", s->why, k, (double)m->dx[k], dx[k]);
	assert_true(m->seconds > 0);
	learn_one_by_one(s->why, &l, m, UNITS, dw, db);
	math_free(m);
	free(dw);
	free(db);
	free(dx);
}

static void test_passes(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		try_case(&cases[i]);
}

static void test_maps(void **state)
{
	struct layer l = { .is_matrix = true,
			   .groups = 1,
			   .outs = 3,
			   .ins = 11,
			   .patch = 11,
			   .in = { 1, 1, 1 },
			   .out = { 1, 1, 1 },
			   .kernel = { 1, 1, 1 },
			   .stride = { 1, 1, 1 },
			   .dilation = { 1, 1, 1 } };
	struct layer_math *m = NULL;
	struct err err = ERR_INIT;
	float x[33], y[33];
	size_t i;

	(void)state;
	assert_ok(math_new(&m, &l, 1, &err), err);
	for (i = 0; i < 33; i++)
		x[i] = 0.1f * (float)(i + 1);
	assert_ok(math_map(m, MAP_LOGISTIC, x, y, &err), err);
	for (i = 0; i < 33; i++)
		assert_float_equal(y[i], 1 / (1 + exp(-(double)x[i])), 1e-5);
	assert_ok(math_map(m, MAP_LOG, x, y, &err), err);
	for (i = 0; i < 33; i++)
		assert_float_equal(y[i], log((double)x[i]), 1e-5);
	assert_ok(math_map(m, MAP_EXP, x, x, &err), err); /* in place, too */
	for (i = 0; i < 33; i++)
		assert_float_equal(x[i] / exp(0.1 * (double)(i + 1)), 1, 1e-5);
	math_free(m);
}

static void test_product(void **state)
{
	float a[3 * 5], b[5 * 4], c[3 * 4], at[5 * 3], bt[4 * 5];
	struct err err = ERR_INIT;
	int turned, i, j, k;

	(void)state;
	randomise(a, 15);
	randomise(b, 20);
	for (i = 0; i < 3; i++)
		for (k = 0; k < 5; k++)
			at[k * 3 + i] = a[i * 5 + k];
	for (j = 0; j < 4; j++)
		for (k = 0; k < 5; k++)
			bt[j * 5 + k] = b[k * 4 + j];
	for (turned = 0; turned < 4; turned++) {
		for (i = 0; i < 12; i++)
			c[i] = 1; /* it is added up */
		assert_ok(math_product(&(struct math_factors){ 3, 4, 5, turned & 1 ? at : a,
							       turned & 2 ? bt : b, turned & 1, turned & 2 },
				       c, &err),
			  err);
		for (i = 0; i < 3; i++)
			for (j = 0; j < 4; j++) {
				double want = 1;

				for (k = 0; k < 5; k++)
					want += (double)(a[i * 5 + k] * b[k * 4 + j]);
				assert_float_equal(c[i * 4 + j], want, 1e-5);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_passes), cmocka_unit_test(test_product),
					    cmocka_unit_test(test_maps) };

	rng_seed(&rng, 3);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
