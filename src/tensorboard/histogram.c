#include "tensorboard/histogram.h"

#include <math.h>

static double bucket_of(const struct histogram *h, double x)
{
	return floor(x / h->width);
}

/* empty, for numbers of min..max */
static void begin(struct histogram *h, double min, double max)
{
	size_t i;

	*h = (struct histogram){ .min = min, .max = max };
	h->width = max > min ? exp2(floor(log2((max - min) / HISTOGRAM_BUCKETS)))
			     : exp2(floor(log2(fmax(fabs(max), 1e-30))) - 6);
	while (bucket_of(h, max) - bucket_of(h, min) >= HISTOGRAM_BUCKETS)
		h->width *= 2;
	h->first = bucket_of(h, min);
	h->n = (size_t)(bucket_of(h, max) - h->first) + 1;
	for (i = 0; i < h->n; i++)
		h->limit[i] = (h->first + (double)i + 1) * h->width;
}

static void add(struct histogram *h, double x, double times)
{
	double at = fmin(fmax(bucket_of(h, x) - h->first, 0), (double)h->n - 1);

	h->count[(size_t)at] += times;
	h->num += times;
	h->sum += x * times;
	h->squares += x * x * times;
}

void histogram_of_floats(struct histogram *h, const float *x, size_t n)
{
	float min = x[0], max = x[0];
	size_t i;

	for (i = 1; i < n; i++) {
		min = fminf(min, x[i]);
		max = fmaxf(max, x[i]);
	}
	begin(h, min, max);
	for (i = 0; i < n; i++)
		add(h, x[i], 1);
}

/* what a number becomes */
struct rounding_to {
	struct qparams q;
	struct qlimits limits;
};

static double rounded(double x, const struct rounding_to *r)
{
	if (!r)
		return x;
	return (double)r->q.scale * (quant_value((float)x, r->q, r->limits) - r->q.zero);
}

/* Each bin counts as its middle. */
static void add_bins(struct histogram *h, const struct observer *o, const struct rounding_to *r)
{
	const double width = observer_width(o);
	size_t i;

	for (i = 0; i < OBSERVER_BINS; i++)
		if (o->bins[i])
			add(h, rounded(((double)i - OBSERVER_SIDE + 0.5) * width, r), (double)o->bins[i]);
	if (o->zeros)
		add(h, rounded(0, r), (double)o->zeros);
}

void histogram_of_seen(struct histogram *h, const struct observer *o)
{
	begin(h, o->min, o->max);
	add_bins(h, o, NULL);
	h->sum = o->sum; /* which the observer knows exactly */
	h->squares = o->squares;
}

void histogram_of_quantized(struct histogram *h, const struct observer *o, struct qparams q, enum dtype t)
{
	const struct rounding_to r = { q, quant_limits(t, SCHEME_ASYM, false) };

	begin(h, rounded(o->min, &r), rounded(o->max, &r));
	add_bins(h, o, &r);
}
