/*
 * Entropy calibration (S. Migacz, "8-bit inference with TensorRT", GTC 2017): clips |x| at the threshold
 * that loses least information, in the sense of the Kullback-Leibler divergence between the histogram with
 * the clipped values at its end and the same after quantization.
 *
 * There are several bins to a level, or nothing would be lost and the widest range would always win. Zeros
 * are left out: they are exact at any threshold, and after a Relu would drown the rest. A level is as wide
 * as the step of the quantizer that the threshold leads to.
 */
#include "calibrate/range.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum { STRIDE = 8 }; /* bins between candidates */

/* Of |x|; entry k sums over the bins below k, so that any stretch of bins is one subtraction. */
struct sums {
	double mass[OBSERVER_SIDE + 1];
	double nlogn[OBSERVER_SIDE + 1];
	int used[OBSERVER_SIDE + 1]; /* bins that are not empty */
};

static double nlogn(double n)
{
	return n > 0 ? n * log(n) : 0;
}

static void sum_up(const struct observer *o, struct sums *s)
{
	int k;

	s->mass[0] = s->nlogn[0] = 0;
	s->used[0] = 0;
	for (k = 0; k < OBSERVER_SIDE; k++) {
		double n = (double)(o->bins[OBSERVER_SIDE + k] + o->bins[OBSERVER_SIDE - 1 - k]);

		s->mass[k + 1] = s->mass[k] + n;
		s->nlogn[k + 1] = s->nlogn[k] + nlogn(n);
		s->used[k + 1] = s->used[k] + (n > 0);
	}
}

/*
 * The divergence when |x| is clipped after `n` bins and these are merged into `levels` levels. With P
 * the counts (those clipped added to the last bin) and Q a level's count spread over its used bins, it is
 * sum P log(P / Q) of both normalised. If only clipped values are in the last level, Q is given a trace of
 * them there, for P / Q to stay finite.
 */
static double divergence(const struct sums *s, int n, int levels)
{
	static const double trace = 1e-4;
	double total = s->mass[OBSERVER_SIDE], inside = s->mass[n], clipped = total - inside;
	double last = inside - s->mass[n - 1], all = inside, cross = 0, self;
	int l, from = 0;

	for (l = 0; l < levels; l++) {
		int to = (int)((int64_t)(l + 1) * n / levels), used = s->used[to] - s->used[from];
		double q = s->mass[to] - s->mass[from], p = q;

		if (l == levels - 1 && clipped > 0) {
			p += clipped;
			used += last <= 0;
			if (q <= 0) {
				q = trace * inside;
				all += q;
			}
		}
		if (p > 0)
			cross += p * log(q / used);
		from = to;
	}
	self = s->nlogn[n - 1] + nlogn(last + clipped);
	return (self - cross) / total + log(all / total);
}

/* Levels on one side of zero for the range [-n, n] cut to what was seen; min and max are in bins. */
static int levels_for(int n, double min, double max, int steps, enum scheme scheme)
{
	double lo = fmax(fmin(min, 0), -n), hi = fmin(fmax(max, 0), n);

	if (scheme == SCHEME_SYM)
		return steps + 1;
	return (int)rint((steps + 1) * n / fmax(hi - lo, n));
}

static enum fettle_status find(const struct observer *o, const struct range_options *opt, struct range *out,
			       struct err *err)
{
	double width = observer_width(o), min = o->min / width, max = o->max / width, least = INFINITY, t;
	int top = (int)fmin(fmax(-min, max), OBSERVER_SIDE - 1) + 1, n, best = top;
	struct sums *s;

	(void)err;
	*out = (struct range){ o->min, o->max };
	if (o->count == o->zeros)
		return FETTLE_OK;
	s = xmalloc(sizeof(*s));
	sum_up(o, s);
	for (n = top; n > 0; n -= STRIDE) { /* from the widest, which wins ties */
		int levels = levels_for(n, min, max, range_steps(opt), opt->scheme);
		double d;

		if (n < levels || s->mass[n] <= 0)
			break; /* at once with sixteen bits, which lose nothing worth clipping for */
		d = divergence(s, n, levels);
		if (d < least) {
			least = d;
			best = n;
		}
	}
	free(s);
	t = best * width;
	*out = (struct range){ (float)fmax(o->min, -t), (float)fmin(o->max, t) };
	return FETTLE_OK;
}

const struct range_method range_kl = {
	.name = "kl",
	.summary = "the clipping threshold that loses least information (entropy calibration)",
	.aliases = { "entropy", "kl_divergence", "kld" },
	.documented = "Entropy",
	.family = "CalibrationMethod",
	.tried = 2,
	.find = find,
};
