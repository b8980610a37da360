#include "evaluate/race.h"

#include <math.h>
#include <stdlib.h>

#define LOOK_GROWTH 1.5

void race_init(struct race *r, double confidence)
{
	*r = (struct race){
		.error = 1 - confidence, .next = RACE_FIRST_LOOK, .low = -INFINITY, .high = INFINITY
	};
}

void race_release(struct race *r)
{
	VEC_RELEASE(&r->v);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted(const struct race *r)
{
	double *v = xcalloc(r->v.n + 1, sizeof(*v));
	size_t i;

	for (i = 0; i < r->v.n; i++)
		v[i] = r->v.v[i];
	qsort(v, r->v.n, sizeof(*v), by_value);
	return v;
}

/*
 * The median lies between the k-th lowest and the k-th highest of n unless fewer than k fall on one side of it, for which
 * the chance is a sum of binomial coefficients. The largest k for which both chances together are at most `error`.
 */
static size_t rank_of_bounds(size_t n, double error)
{
	double log_term = -(double)n * log(2), sum = 0;
	size_t k;

	for (k = 0; k < n / 2; k++) {
		sum += 2 * exp(log_term);
		if (sum > error)
			break;
		log_term += log((double)(n - k) / (double)(k + 1));
	}
	return k;
}

/* Student's, for 99 % */
static void bounds_of_few(const double *v, size_t n, double *low, double *high)
{
	static const double t[RACE_FIRST_LOOK - RACE_FEW] = { 5.841, 4.604, 4.032, 3.707, 3.499 };
	double mean = 0, squares = 0, half;
	size_t i;

	for (i = 0; i < n; i++)
		mean += v[i] / (double)n;
	for (i = 0; i < n; i++)
		squares += (v[i] - mean) * (v[i] - mean);
	half = t[n - RACE_FEW] * sqrt(squares / (double)(n - 1) / (double)n);
	*low = fmin(mean - half, v[0]);
	*high = fmax(mean + half, v[n - 1]);
}

/* As the look of that number has it: the parts of the error that looks spend sum up to all of it. */
static void bounds(const struct race *r, const double *v, size_t look, double *low, double *high)
{
	double part = r->error * 6 / (M_PI * M_PI) / (double)(look * look);
	size_t k = rank_of_bounds(r->v.n, part);

	*low = k ? v[k - 1] : -INFINITY;
	*high = k ? v[r->v.n - k] : INFINITY;
	if (r->v.n >= RACE_FEW && r->v.n < RACE_FIRST_LOOK)
		bounds_of_few(v, r->v.n, low, high);
}

static void look(struct race *r)
{
	double *v = sorted(r);

	r->look++;
	r->next = (size_t)ceil(LOOK_GROWTH * (double)r->next);
	bounds(r, v, r->look, &r->low, &r->high);
	free(v);
}

void race_add(struct race *r, double first, double second)
{
	VEC_PUSH(&r->v, log(first / second));
	if (r->v.n == r->next)
		look(r);
}

struct race_ratio race_ratio(const struct race *r)
{
	double *v = sorted(r), middle, low, high;
	size_t n = r->v.n;

	middle = !n ? NAN : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	bounds(r, v, r->look + 1, &low, &high); /* one more look; what the last one saw holds as well */
	free(v);
	low = fmax(low, r->low);
	high = fmin(high, r->high);
	return (struct race_ratio){ exp(fmin(fmax(middle, low), high)), exp(low), exp(high) };
}

bool race_decided(const struct race *r, double equal)
{
	double most = log(1 + equal);

	return r->low > 0 || r->high < 0 || (r->low >= -most && r->high <= most);
}

bool race_is_within(const struct race *r, double width)
{
	return !(width > 0) || r->high - r->low <= log(1 + width);
}
