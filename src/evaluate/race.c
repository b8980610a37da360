#include "evaluate/race.h"

#include <math.h>
#include <stdlib.h>

#define LOOK_GROWTH 1.5
/* What takes so many times as long as it does on a quiet machine is disturbed. */
#define QUIET 1.1

void race_init(struct race *r, double confidence)
{
	*r = (struct race){
		.error = 1 - confidence,
		.least = { INFINITY, INFINITY },
		.next = RACE_FIRST_LOOK,
		.low = -INFINITY,
		.high = INFINITY,
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

size_t race_n_quiet(const struct race *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->v.n; i++)
		n += r->v.v[i].first <= QUIET * r->least.first && r->v.v[i].second <= QUIET * r->least.second;
	return n;
}

/* What each takes when it is hardly disturbed: a quarter of all take less. The shortest would be a matter of chance. */
static struct race_pair usual(const struct race *r)
{
	const size_t n = r->v.n;
	double *first = xcalloc(n + 1, sizeof(*first)), *second = xcalloc(n + 1, sizeof(*second));
	struct race_pair out;
	size_t i;

	for (i = 0; i < n; i++) {
		first[i] = r->v.v[i].first;
		second[i] = r->v.v[i].second;
	}
	qsort(first, n, sizeof(*first), by_value);
	qsort(second, n, sizeof(*second), by_value);
	out = (struct race_pair){ first[n / 4], second[n / 4] };
	free(first);
	free(second);
	return out;
}

/* Logarithms of first/second. */
struct ratios {
	double *v;
	size_t n;
};

/* Of the pairs that count; with `all`, of all pairs. */
static struct ratios sorted(const struct race *r, bool all)
{
	const struct race_pair is = usual(r);
	struct ratios out = { xcalloc(r->v.n + 1, sizeof(double)), 0 };
	double *disturbed = xcalloc(r->v.n + 1, sizeof(*disturbed)),
	       *sorted = xcalloc(r->v.n + 1, sizeof(*sorted)), most;
	size_t i;

	for (i = 0; i < r->v.n; i++)
		sorted[i] = disturbed[i] = fmax(r->v.v[i].first / is.first, r->v.v[i].second / is.second);
	qsort(sorted, r->v.n, sizeof(*sorted), by_value);
	most = fmax(sorted[r->v.n / 2], QUIET);
	for (i = 0; i < r->v.n; i++)
		if (all || disturbed[i] <= most)
			out.v[out.n++] = log(r->v.v[i].first / r->v.v[i].second);
	qsort(out.v, out.n, sizeof(*out.v), by_value);
	free(disturbed);
	free(sorted);
	return out;
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
	static const double t[RACE_FIRST_LOOK - RACE_FEW] = { 9.925, 5.841, 4.604, 4.032, 3.707, 3.499 };
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

static void bounds_of(const struct ratios *v, double error, double *low, double *high)
{
	const size_t k = rank_of_bounds(v->n, error);

	*low = k ? v->v[k - 1] : -INFINITY;
	*high = k ? v->v[v->n - k] : INFINITY;
}

/*
 * As the look of that number has it: the parts of the error that looks spend sum up to all of it. The narrower of two: of the pairs
 * that count, which it is if the others were disturbed, and of all, if they are alike.
 */
static void bounds(const struct race *r, size_t look, double *low, double *high)
{
	const double part = r->error * 6 / (M_PI * M_PI) / (double)(look * look);
	const struct ratios all = sorted(r, true), quiet = sorted(r, false);
	double quiet_low, quiet_high;

	bounds_of(&all, part, low, high);
	bounds_of(&quiet, part, &quiet_low, &quiet_high);
	if (quiet_high - quiet_low < *high - *low) {
		*low = quiet_low;
		*high = quiet_high;
	}
	if (all.n >= RACE_FEW && all.n < RACE_FIRST_LOOK) {
		const struct ratios *few = quiet.n >= RACE_FEW ? &quiet : &all;

		bounds_of_few(few->v, few->n, low, high);
	}
	free(all.v);
	free(quiet.v);
}

static void look(struct race *r)
{
	r->look++;
	r->next = (size_t)ceil(LOOK_GROWTH * (double)r->next);
	bounds(r, r->look, &r->low, &r->high);
}

void race_add(struct race *r, double first, double second)
{
	VEC_PUSH(&r->v, ((struct race_pair){ first, second }));
	r->least = (struct race_pair){ fmin(r->least.first, first), fmin(r->least.second, second) };
	if (r->v.n == r->next)
		look(r);
}

struct race_ratio race_ratio(const struct race *r)
{
	const struct ratios v = sorted(r, false);
	const double middle = v.n ? (v.v[(v.n - 1) / 2] + v.v[v.n / 2]) / 2 : NAN;
	double low, high;

	bounds(r, r->look + 1, &low, &high); /* one more look */
	/* what the last one saw holds as well, unless it saw a machine that was not quiet */
	if (r->low <= middle && middle <= r->high) {
		low = fmax(low, r->low);
		high = fmin(high, r->high);
	}
	free(v.v);
	return (struct race_ratio){ exp(middle), exp(fmin(low, middle)), exp(fmax(high, middle)) };
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
