/* How far outputs are from numbers they should equal: labels, or the fp32 model's outputs. */
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "evaluate/metric_impl.h"

#define DB_MAX 200.0 /* of identical outputs, which would be infinitely good */

/* All that any of these metrics wants to know, of one sample or of many. */
struct sums {
	double abs, square;  /* of a-b */
	double a, b, b_abs;  /* by themselves; b_abs: |b| */
	double aa, bb, ab;   /* products */
	double b_min, b_max; /* valid when count > 0 */
	uint64_t count;
	size_t batch; /* the most samples that came at once */
};

static void sum_pair(struct sums *s, double a, double b)
{
	double d = a - b;

	s->abs += fabs(d);
	s->square += d * d;
	s->a += a;
	s->b += b;
	s->b_abs += fabs(b);
	s->aa += a * a;
	s->bb += b * b;
	s->ab += a * b;
	s->b_min = b < s->b_min ? b : s->b_min;
	s->b_max = b > s->b_max ? b : s->b_max;
}

static void sum_row(struct sums *s, const struct tensor *a, const struct tensor *b, size_t row, size_t n)
{
	double va[METRIC_PIECE], vb[METRIC_PIECE];
	size_t i, k, got;

	for (i = 0; i < n; i += got) {
		got = metric_read(a, row * n + i, n - i, va);
		metric_read(b, row * n + i, n - i, vb);
		for (k = 0; k < got; k++)
			sum_pair(s, va[k], vb[k]);
	}
	s->count += n;
}

static size_t row_size(const struct tensor *t)
{
	return (size_t)tensor_count(t) / (size_t)t->dims[0];
}

/* All outputs of a sample are one vector; labels are those of outputs[0] alone. */
static struct sums sum_sample(const struct metric_batch *b, size_t row)
{
	struct sums s = { .b_min = INFINITY, .b_max = -INFINITY };
	size_t i;

	if (b->target == METRIC_LABELS) {
		sum_row(&s, &b->outputs[0], b->labels, row, row_size(&b->outputs[0]));
		return s;
	}
	for (i = 0; i < b->n_outputs; i++)
		sum_row(&s, &b->outputs[i], &b->reference[i], row, row_size(&b->outputs[i]));
	return s;
}

enum fettle_status metric_check_pairs(const struct metric *m, const struct metric_batch *b, struct err *err)
{
	bool by_labels = b->target == METRIC_LABELS;
	size_t n = by_labels ? 1 : b->n_outputs, i;

	for (i = 0; i < n; i++) {
		const struct tensor *out = &b->outputs[i], *with = by_labels ? b->labels : &b->reference[i];
		const char *what = by_labels ? "labels" : "reference";
		enum fettle_status st = metric_check(m, "outputs", out, b->n_valid, err);

		if (!st)
			st = metric_check(m, what, with, b->n_valid, err);
		if (!st && !metric_comparable(out, with))
			st = metric_mismatch(m, out, what, with, "the same shape", err);
		if (st)
			return st;
	}
	return FETTLE_OK;
}

static double l1_of(const struct sums *s)
{
	return s->abs;
}

static double l2_of(const struct sums *s)
{
	return sqrt(s->square);
}

static double cosine_of(const struct sums *s)
{
	double c;

	if (isnan(s->ab))
		return NAN;
	if (s->aa == 0 || s->bb == 0)
		return s->aa == s->bb;
	/* a vector with itself gives exactly 1 */
	c = s->ab / (s->aa == s->bb ? s->aa : sqrt(s->aa) * sqrt(s->bb));
	return c > 1 ? 1 : c < -1 ? -1 : c;
}

static enum fettle_status score_all(const struct metric *m, const struct metric_batch *b,
				    double (*of)(const struct sums *), double *scores, struct err *err)
{
	enum fettle_status st = metric_check_pairs(m, b, err);
	size_t i;

	for (i = 0; !st && i < b->n_valid; i++) {
		struct sums s = sum_sample(b, i);

		scores[i] = of(&s);
	}
	return st;
}

/* Of a smaller vector, an error of the same size changes the direction more. */
static void cosine_margins(const struct metric *m, const struct metric_batch *b, double *margins)
{
	const struct tensor *with = b->target == METRIC_LABELS ? b->labels : b->reference;
	double v[METRIC_PIECE];
	size_t n = b->target == METRIC_LABELS ? 1 : b->n_outputs, row, i, k, at, got;

	(void)m;
	for (row = 0; row < b->n_valid; row++)
		for (margins[row] = 0, i = 0; i < n; i++) {
			const size_t size = row_size(&with[i]);

			for (at = 0; at < size; at += got) {
				got = metric_read(&with[i], row * size + at, size - at, v);
				for (k = 0; k < got; k++)
					margins[row] += v[k] * v[k];
			}
		}
}

static enum fettle_status sums_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct sums *all = m->state;
	enum fettle_status st = metric_check_pairs(m, b, err);
	size_t i;

	if (b->n_valid > all->batch)
		all->batch = b->n_valid;
	for (i = 0; !st && i < b->n_valid; i++) {
		struct sums s = sum_sample(b, i);

		all->abs += s.abs;
		all->square += s.square;
		all->a += s.a;
		all->b += s.b;
		all->b_abs += s.b_abs;
		all->aa += s.aa;
		all->bb += s.bb;
		all->ab += s.ab;
		if (!all->count || s.b_min < all->b_min)
			all->b_min = s.b_min;
		if (!all->count || s.b_max > all->b_max)
			all->b_max = s.b_max;
		all->count += s.count;
	}
	return st;
}

static double mse_of(const struct sums *s)
{
	return s->square / (double)s->count;
}

static double mae_of(const struct sums *s)
{
	return s->abs / (double)s->count;
}

static double rmse_of(const struct sums *s)
{
	return sqrt(mse_of(s));
}

static double at_most(double db) /* a NaN stays one */
{
	return db > DB_MAX ? DB_MAX : db;
}

static double sqnr_of(const struct sums *s)
{
	return s->square == 0 ? DB_MAX : at_most(10 * log10(s->bb / s->square));
}

static double psnr_of(const struct sums *s)
{
	if (s->square == 0)
		return DB_MAX;
	return at_most(20 * log10(s->b_max - s->b_min) - 10 * log10(mse_of(s)));
}

/* The sum of squared distances from the mean; 0 when all are the same but for rounding. */
static double spread(double sum, double squares, uint64_t n)
{
	double x = squares - sum * sum / (double)n;

	return x > 1e-14 * squares || isnan(x) ? x : 0;
}

static double r2_of(const struct sums *s)
{
	return s->square == 0 ? 1 : 1 - s->square / spread(s->b, s->bb, s->count);
}

static double pearson_of(const struct sums *s)
{
	double both = spread(s->a, s->aa, s->count) * spread(s->b, s->bb, s->count),
	       r = (s->ab - s->a * s->b / (double)s->count) / sqrt(both);

	return both == 0 ? 0 : r > 1 ? 1 : r < -1 ? -1 : r;
}

static enum fettle_status sums_value(struct metric *m, double (*of)(const struct sums *), double *value,
				     struct err *err)
{
	const struct sums *s = m->state;

	if (!s->count)
		return fail(err, FETTLE_INVALID, "cannot compute %s: the outputs have no elements", m->name);
	*value = of(s);
	return FETTLE_OK;
}

/*
 * What the value would be if the samples to come had no error: the best that it can be. What outputs are compared with is
 * known once all of it was seen (metric_keep_whole()); otherwise samples are of one size when they come several in a batch,
 * which is enough for means of errors.
 */
static double without_more(const struct metric *m, size_t rest, double (*of)(const struct sums *))
{
	const struct sums *whole = m->whole;
	struct sums s = *(const struct sums *)m->state;

	if (whole) {
		s.b = whole->b;
		s.bb = whole->bb;
		s.b_min = whole->b_min;
		s.b_max = whole->b_max;
		s.count = whole->count;
	} else {
		s.count = s.count / m->n * (m->n + rest);
	}
	return of(&s);
}

/* The fp32 model's outputs, computed again in other batches, may differ in their last bits. */
#define REFERENCE_SLACK 1e-6

/* Errors only add up, so a mean of them ends no lower, and what falls with it no higher. */
static void error_bounds(const struct metric *m, size_t rest, double (*of)(const struct sums *), double *low,
			 double *high)
{
	const struct sums *s = m->state;
	const bool up = m->type->higher_is_better;
	double best;

	*high = INFINITY;
	*low = up ? -INFINITY : 0;
	if (!s->count || (!m->whole && (up || s->batch < 2)))
		return;
	best = without_more(m, rest, of);
	if (isnan(best))
		*low = *high = best;
	else if (up)
		*high = isinf(best) ? best : best + REFERENCE_SLACK * fmax(1, fabs(best));
	else
		*low = isinf(best) || !m->whole ? best : best * (1 - REFERENCE_SLACK);
}

#define MEAN_OF_SCORES(id, better_high, min, max, margins_of, about)                                         \
	static enum fettle_status id##_scores(const struct metric *m, const struct metric_batch *b,          \
					      double *scores, struct err *err)                               \
	{                                                                                                    \
		return score_all(m, b, id##_of, scores, err);                                                \
	}                                                                                                    \
	const struct metric_type metric_type_##id = {                                                        \
		.name = #id,                                                                                 \
		.summary = about,                                                                            \
		.needs = METRIC_EITHER,                                                                      \
		.higher_is_better = better_high,                                                             \
		.is_mean = true,                                                                             \
		.score_min = min,                                                                            \
		.score_max = max,                                                                            \
		.scores = id##_scores,                                                                       \
		.margins = margins_of,                                                                       \
	};

/* The value that outputs of zeros would have. */
static double zeros_value(const struct metric *m, double (*of)(const struct sums *))
{
	const struct sums *whole = m->whole,
			  zeros = { .abs = whole->b_abs, .square = whole->bb, .count = whole->count };

	return of(&zeros);
}

/* "mse:labels" or "mse:reference" where both could be compared with */
static enum fettle_status parse_target(struct metric *m, const char *param, struct err *err)
{
	if (!*param)
		return FETTLE_OK;
	if (strcasecmp(param, "labels") != 0 && strcasecmp(param, "reference") != 0)
		return fail(err, FETTLE_INVALID, "cannot use metric '%s:%s': need %s:labels or %s:reference",
			    m->name, param, m->name, m->name);
	m->needs = strcasecmp(param, "labels") == 0 ? METRIC_LABELS : METRIC_REFERENCE;
	snprintf(m->name, sizeof(m->name), "%s:%s", m->type->name,
		 m->needs == METRIC_LABELS ? "labels" : "reference");
	return FETTLE_OK;
}

#define OVER_EVERYTHING(id, better_high, db_max, bounds_of, scale_of, about)                                 \
	static enum fettle_status id##_value(struct metric *m, double *value, struct err *err)               \
	{                                                                                                    \
		return sums_value(m, id##_of, value, err);                                                   \
	}                                                                                                    \
	const struct metric_type metric_type_##id = {                                                        \
		.name = #id,                                                                                 \
		.summary = about,                                                                            \
		.needs = METRIC_EITHER,                                                                      \
		.higher_is_better = better_high,                                                             \
		.decibels_max = db_max,                                                                      \
		.default_param = "",                                                                         \
		.parse = parse_target,                                                                       \
		.state_size = sizeof(struct sums),                                                           \
		.add = sums_add,                                                                             \
		.value = id##_value,                                                                         \
		.has_whole = true,                                                                           \
		.bounds = bounds_of,                                                                         \
		.scale = scale_of,                                                                           \
	};

MEAN_OF_SCORES(l1, false, 0, INFINITY, NULL, "mean over samples of the L1 norm of the error")
MEAN_OF_SCORES(l2, false, 0, INFINITY, NULL, "mean over samples of the L2 norm of the error")
MEAN_OF_SCORES(cosine, true, -1, 1, cosine_margins, "mean over samples of the cosine similarity")
#define ERROR_BOUNDS(id)                                                                                     \
	static void id##_bounds(const struct metric *m, size_t rest, double *low, double *high)              \
	{                                                                                                    \
		error_bounds(m, rest, id##_of, low, high);                                                   \
	}
ERROR_BOUNDS(mse)
ERROR_BOUNDS(mae)
ERROR_BOUNDS(rmse)
ERROR_BOUNDS(r2)
ERROR_BOUNDS(sqnr)
ERROR_BOUNDS(psnr)
#define ERROR_SCALE(id)                                                                                      \
	static double id##_scale(const struct metric *m)                                                     \
	{                                                                                                    \
		return zeros_value(m, id##_of);                                                              \
	}
ERROR_SCALE(mse)
ERROR_SCALE(mae)
ERROR_SCALE(rmse)
OVER_EVERYTHING(mse, false, 0, mse_bounds, mse_scale, "mean squared error")
OVER_EVERYTHING(mae, false, 0, mae_bounds, mae_scale, "mean absolute error")
OVER_EVERYTHING(rmse, false, 0, rmse_bounds, rmse_scale, "root of the mean squared error")
OVER_EVERYTHING(r2, true, 0, r2_bounds, NULL,
		"coefficient of determination: 1 less the error's share of the variance")
OVER_EVERYTHING(pearson, true, 0, NULL, NULL, "linear correlation")
OVER_EVERYTHING(sqnr, true, DB_MAX, sqnr_bounds, NULL, "signal to quantization noise ratio in dB")
OVER_EVERYTHING(psnr, true, DB_MAX, psnr_bounds, NULL, "peak signal to noise ratio in dB")
