/* ColorJitter: other brightness, contrast, saturation and hue, in a random order, as torchvision does it; for calibration only. */
#include <math.h>
#include <string.h>

#include "data/transform_kind.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, JITTERS };

struct jitter {
	double low[JITTERS], high[JITTERS];
};
TRANSFORM_FITS(struct jitter);
static const char *const names[] = { "brightness", "contrast", "saturation", "hue" };

static void jitter_init(struct transform *t)
{
	struct jitter *own = TRANSFORM_OWN(struct jitter, t);
	int i;

	for (i = 0; i < JITTERS; i++)
		own->low[i] = own->high[i] = i != HUE;
}

/* x: factors from max(0, 1 - x) to 1 + x (hue: -x to x); or both ends */
static enum fettle_status jitter_set(struct transform *t, const char *key,
				     const struct transform_value *value, struct err *err)
{
	struct jitter *own = TRANSFORM_OWN(struct jitter, t);
	enum fettle_status st = transform_numbers(value, 1, 2, err);
	double middle, low, high;
	int i;

	for (i = 0; strcmp(names[i], key) != 0; i++)
		;
	if (st)
		return st;
	middle = i != HUE;
	low = value->n > 1 ? value->v[0] : fmax(i == HUE ? -INFINITY : 0, middle - value->v[0]);
	high = value->n > 1 ? value->v[1] : middle + value->v[0];
	if (low > high || (i == HUE ? low < -0.5 || high > 0.5 : low < 0))
		return fail(err, FETTLE_INVALID, "%g to %g, need %s", low, high,
			    i == HUE ? "two numbers from -0.5 to 0.5" : "factors from 0, the lower first");
	own->low[i] = low;
	own->high[i] = high;
	return FETTLE_OK;
}

static bool jitters(const struct transform *t)
{
	(void)t;
	return true;
}

static enum fettle_status jitter_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	if (shape->dtype != DT_U8 || shape->rank != 3 || (shape->dims[2] != 3 && shape->dims[2] != -1))
		return fail(err, FETTLE_INVALID, "cannot apply %s: need uint8 pixels [height,width,3]",
			    t->kind->name);
	return FETTLE_OK;
}

/* Pillow's luma, rounded as it does */
static double grey(const unsigned char *p)
{
	return (double)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16);
}

static unsigned char pixel(double x)
{
	return (unsigned char)fmin(255, fmax(0, x));
}

static void turn(unsigned char *p, double by)
{
	double r = p[0], g = p[1], b = p[2], most = fmax(r, fmax(g, b)), least = fmin(r, fmin(g, b)),
	       span = most - least, hue, x;
	int sector, k;

	if (span <= 0)
		return;
	hue = most == r ? (g - b) / span : most == g ? 2 + (b - r) / span : 4 + (r - g) / span;
	hue = hue / 6 + by + 1;
	hue = 6 * (hue - floor(hue));
	sector = (int)hue % 6;
	x = hue - floor(hue);
	{
		const double fall = most - span * x, rise = least + span * x,
			     v[6][3] = {
				     { most, rise, least }, { fall, most, least }, { least, most, rise },
				     { least, fall, most }, { rise, least, most }, { most, least, fall }
			     };

		for (k = 0; k < 3; k++)
			p[k] = pixel(v[sector][k] + 0.5);
	}
}

static void change(unsigned char *p, size_t pixels, int what, double factor)
{
	double mean = 0, base;
	size_t i;
	int k;

	for (i = 0; i < pixels && what == CONTRAST; i++)
		mean += grey(p + 3 * i);
	mean = floor(mean / (double)pixels + 0.5);
	for (i = 0; i < pixels; i++, p += 3) {
		base = what == CONTRAST ? mean : what == SATURATION ? grey(p) : 0;
		for (k = 0; k < 3 && what != HUE; k++)
			p[k] = pixel(base + factor * ((double)p[k] - base));
		if (what == HUE)
			turn(p, factor);
	}
}

static enum fettle_status jitter_apply(const struct transform *t, const struct tensor *src,
				       struct buffer *dst, struct err *err)
{
	const struct jitter *own = TRANSFORM_READ(struct jitter, t);
	const size_t pixels = (size_t)(src->dims[0] * src->dims[1]);
	struct rng r = transform_rng(t, src);
	size_t order[JITTERS] = { BRIGHTNESS, CONTRAST, SATURATION, HUE };
	double factor;
	int i;

	(void)err;
	memcpy(dst->t.data, src->data, tensor_bytes(src));
	rng_shuffle(&r, order, JITTERS);
	for (i = 0; i < JITTERS; i++) {
		const size_t what = order[i];

		factor = own->low[what] + (own->high[what] - own->low[what]) * rng_unit(&r);
		if (factor != (what != HUE))
			change(dst->t.data, pixels, (int)what, factor);
	}
	return FETTLE_OK;
}

const struct transform_kind transform_jitter = {
	.name = "ColorJitter",
	.summary = "random brightness, contrast, saturation and hue, each a number or [lowest, highest]; for "
		   "calibration only",
	.random = jitters,
	.keys = { "brightness", "contrast", "saturation", "hue" },
	.init = jitter_init,
	.set = jitter_set,
	.shape = jitter_shape,
	.apply = jitter_apply,
};
