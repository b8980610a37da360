#include "calibrate/observer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The loops over values are compiled twice and the processor chooses, for the build targets any x86-64.
 * Only AVX2, not FMA: both versions must round alike. A resolver runs before the sanitizers are set up,
 * which they do not survive.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(SANITIZED)
#define CLONED __attribute__((target_clones("avx2", "default")))
#else
#define CLONED
#endif

enum {
	BLOCK = 1024,   /* values that go through all steps while they are in the first cache */
	CHUNK = 128,    /* few enough that the processor places the next while it counts these */
	WAYS = 4,       /* histograms counted into in turn: adding to one bin twice at once would wait */
	GROUP = 8,      /* values per step and lane group in scan() */
	DIRECT = 16384, /* calls with fewer values count straight into the observer, without the ways */
	SLOTS = OBSERVER_BINS + OBSERVER_LANES,
};

struct observer_scratch {
	uint16_t ways[WAYS][SLOTS]; /* 0 between calls */
	size_t fill;                /* no count in the ways is above this */
};

struct observer_scratch *observer_scratch_new(void)
{
	return xcalloc(1, sizeof(struct observer_scratch));
}

void observer_scratch_free(struct observer_scratch *s)
{
	free(s);
}

void observer_init(struct observer *o, const struct observer_options *opt)
{
	memset(o, 0, sizeof(*o));
	o->name = opt->name ? opt->name : "?";
	o->keep_samples = opt->keep_samples;
	o->exponent = OBSERVER_EXPONENT_MIN;
	while (o->n_averages < OBSERVER_AVERAGES && opt->averaging[o->n_averages] > 0) {
		o->average[o->n_averages].constant = opt->averaging[o->n_averages];
		o->n_averages++;
	}
	if (!o->n_averages)
		o->average[o->n_averages++].constant = 0.01;
	if (opt->channels) {
		o->channels = opt->channels;
		o->inner = opt->inner ? opt->inner : 1;
		o->channel_max = xcalloc(o->channels, sizeof(float));
	}
}

void observer_release(struct observer *o)
{
	VEC_RELEASE(&o->kept);
	free(o->channel_max);
	o->channel_max = NULL;
}

double observer_width(const struct observer *o)
{
	return ldexp(1, o->exponent) / OBSERVER_SIDE;
}

/*
 * Extremes, and sums of x / width and its square. Scaled, neither overflows while |x| < R, and scaling by
 * a power of two changes no bits. The lanes are fixed by the position in the sample, so that the
 * sums do not depend on the processor. Four values are added as floats before they go to double.
 */
CLONED static void scan(const float *x, size_t n, float inverse, struct observed_sample *out)
{
	float min[GROUP], max[GROUP];
	double sum[GROUP] = { 0 }, squares[GROUP] = { 0 };
	size_t i, k;

	for (k = 0; k < GROUP; k++)
		min[k] = max[k] = x[0];
	for (i = 0; i + 4 * GROUP <= n; i += 4 * GROUP) {
		for (k = 0; k < GROUP; k++) {
			float a = x[i + k], b = x[i + GROUP + k], c = x[i + 2 * GROUP + k],
			      d = x[i + 3 * GROUP + k];
			float ab = a < b ? a : b, cd = c < d ? c : d, low = ab < cd ? ab : cd;
			float AB = a > b ? a : b, CD = c > d ? c : d, high = AB > CD ? AB : CD;

			min[k] = low < min[k] ? low : min[k];
			max[k] = high > max[k] ? high : max[k];
			a *= inverse;
			b *= inverse;
			c *= inverse;
			d *= inverse;
			sum[k] += (a + b) + (c + d);
			squares[k] += (a * a + b * b) + (c * c + d * d);
		}
	}
	for (k = 0; i < n; i++, k = (k + 1) % GROUP) {
		float v = x[i] * inverse;

		min[k] = x[i] < min[k] ? x[i] : min[k];
		max[k] = x[i] > max[k] ? x[i] : max[k];
		sum[k] += v;
		squares[k] += v * v;
	}
	for (k = 1; k < GROUP; k++) {
		min[0] = min[k] < min[0] ? min[k] : min[0];
		max[0] = max[k] > max[0] ? max[k] : max[0];
		sum[0] += sum[k];
		squares[0] += squares[k];
	}
	*out = (struct observed_sample){ min[0], max[0], sum[0], squares[0] };
}

/*
 * Which bin each value is in. Zeros, which may be many, take turns among the slots after the bins: the
 * arithmetic alone puts them in the first bin above zero, from where they are moved on.
 */
static inline void place(const float *restrict x, size_t n, float inverse, uint32_t *restrict slot)
{
	static const int onward[OBSERVER_LANES] = {
#define BY(k) OBSERVER_SIDE + k
		BY(0), BY(1), BY(2),  BY(3),  BY(4),  BY(5),  BY(6),  BY(7),
		BY(8), BY(9), BY(10), BY(11), BY(12), BY(13), BY(14), BY(15),
#undef BY
	};
	size_t i, k;

	for (i = 0; i < n; i += OBSERVER_LANES)
		for (k = 0; k < OBSERVER_LANES; k++) {
			float v = x[i + k];

			slot[i + k] = (uint32_t)((int)(v * inverse) - (v < 0) + OBSERVER_SIDE +
						 (-(v == 0) & onward[k]));
		}
}

/* What is left of a block after its last chunk, padded so that place() has whole groups. */
static inline void place_rest(const float *x, size_t n, float inverse, uint32_t slot[CHUNK])
{
	float rest[CHUNK];
	size_t whole = (n + OBSERVER_LANES - 1) / OBSERVER_LANES * OBSERVER_LANES;

	memcpy(rest, x, n * sizeof(*x));
	memset(rest + n, 0, (whole - n) * sizeof(*x));
	place(rest, whole, inverse, slot);
}

CLONED static void tally(const float *x, size_t n, float inverse, uint16_t ways[WAYS][SLOTS])
{
	uint32_t slot[CHUNK];
	size_t i, k;

	for (i = 0; i + CHUNK <= n; i += CHUNK) {
		place(x + i, CHUNK, inverse, slot);
		for (k = 0; k < CHUNK; k += WAYS) {
			ways[0][slot[k]]++;
			ways[1][slot[k + 1]]++;
			ways[2][slot[k + 2]]++;
			ways[3][slot[k + 3]]++;
		}
	}
	place_rest(x + i, n - i, inverse, slot);
	for (k = 0; k < n - i; k++)
		ways[k % WAYS][slot[k]]++;
}

/* The same, straight into the observer. */
CLONED static void tally_direct(const float *x, size_t n, float inverse, uint64_t bins[SLOTS])
{
	uint32_t slot[CHUNK];
	size_t i, k;

	for (i = 0; i + CHUNK <= n; i += CHUNK) {
		place(x + i, CHUNK, inverse, slot);
		for (k = 0; k < CHUNK; k++)
			bins[slot[k]]++;
	}
	place_rest(x + i, n - i, inverse, slot);
	for (k = 0; k < n - i; k++)
		bins[slot[k]]++;
}

CLONED static void flush(struct observer *o, struct observer_scratch *s)
{
	size_t i;

	if (!s->fill)
		return;
	for (i = 0; i < SLOTS; i++)
		o->bins[i] += (uint32_t)s->ways[0][i] + s->ways[1][i] + s->ways[2][i] + s->ways[3][i];
	memset(s->ways, 0, sizeof(s->ways));
	s->fill = 0;
}

/* Doubles R until it is 2^exponent: pairs of bins merge, and floor(|x| / 2w) = floor(floor(|x| / w) / 2). */
static void grow(struct observer *o, int exponent)
{
	uint64_t *up = o->bins + OBSERVER_SIDE, *down = up - 1;
	int shift = exponent - o->exponent, k;

	if (shift > 11) /* everything is in the innermost bin then */
		shift = 11;
	for (k = 1; k < OBSERVER_SIDE; k++) {
		uint64_t above = up[k], below = down[-k];

		up[k] = down[-k] = 0;
		up[k >> shift] += above;
		down[-(k >> shift)] += below;
	}
	o->exponent = exponent;
}

static float inverse_width(const struct observer *o)
{
	return ldexpf(OBSERVER_SIDE, -o->exponent);
}

static enum fettle_status check_finite(const struct observer *o, const float *x, size_t n, struct err *err)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return fail(err, FETTLE_INVALID,
				    "cannot calibrate tensor %s: %s, values must be finite", o->name,
				    isnan(x[i]) ? "NaN"
				    : x[i] > 0  ? "Inf"
						: "-Inf");
	return FETTLE_OK;
}

static enum fettle_status add_block(struct observer *o, struct observer_scratch *s, const float *x, size_t n,
				    bool direct, struct observed_sample *sample, struct err *err)
{
	float inverse = inverse_width(o), top;
	struct observed_sample b;
	enum fettle_status st;
	int exponent = 0;

	scan(x, n, inverse, &b);
	if (!isfinite(b.squares)) {
		/* a value is not finite, or so far above R that its square is not */
		st = check_finite(o, x, n, err);
		if (st)
			return st;
	}
	top = fmaxf(-b.min, b.max);
	if (top > 0)
		frexpf(top, &exponent);
	if (top > 0 && exponent > o->exponent) {
		flush(o, s);
		grow(o, exponent);
		inverse = inverse_width(o);
		scan(x, n, inverse, &b);
	}
	if (direct) {
		tally_direct(x, n, inverse, o->bins);
	} else {
		tally(x, n, inverse, s->ways);
		s->fill += (n + WAYS - 1) / WAYS;
		if (s->fill + BLOCK / WAYS > UINT16_MAX)
			flush(o, s);
	}
	sample->min = fminf(sample->min, b.min);
	sample->max = fmaxf(sample->max, b.max);
	sample->sum += b.sum * observer_width(o);
	sample->squares += b.squares * observer_width(o) * observer_width(o);
	return FETTLE_OK;
}

/* |x| of positive floats order as their bits do; integers may be reduced in any order, hence vectorised */
static inline float abs_max(const float *x, size_t n)
{
	int32_t top = 0, bits;
	float out;
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(&bits, &x[i], sizeof(bits));
		bits &= INT32_MAX;
		top = bits > top ? bits : top;
	}
	memcpy(&out, &top, sizeof(out));
	return out;
}

CLONED static void take_channel_runs(float *max, size_t channels, size_t inner, const float *x, size_t n)
{
	size_t i, c = 0;

	for (i = 0; i < n; i += inner) {
		float m = abs_max(x + i, n - i < inner ? n - i : inner);

		max[c] = m > max[c] ? m : max[c];
		c = c + 1 == channels ? 0 : c + 1;
	}
}

CLONED static void take_channel_rows(float *restrict max, size_t channels, const float *restrict x, size_t n)
{
	size_t i, c;

	for (i = 0; i < n; i += channels) {
		size_t width = n - i < channels ? n - i : channels;

		for (c = 0; c < width; c++) {
			float m = fabsf(x[i + c]);

			max[c] = m > max[c] ? m : max[c];
		}
	}
}

static void take_sample(struct observer *o, const struct observed_sample *sample)
{
	unsigned k;

	o->min = o->samples && o->min < sample->min ? o->min : sample->min;
	o->max = o->samples && o->max > sample->max ? o->max : sample->max;
	for (k = 0; k < o->n_averages; k++) {
		double c = o->samples ? o->average[k].constant : 1;

		o->average[k].min += c * (sample->min - o->average[k].min);
		o->average[k].max += c * (sample->max - o->average[k].max);
	}
	o->sum += sample->sum;
	o->squares += sample->squares;
	o->samples++;
	if (o->keep_samples)
		VEC_PUSH(&o->kept, *sample);
}

static enum fettle_status add_sample(struct observer *o, struct observer_scratch *s, const float *x, size_t n,
				     bool direct, struct err *err)
{
	struct observed_sample sample = { INFINITY, -INFINITY, 0, 0 };
	enum fettle_status st;
	size_t i;

	for (i = 0; i < n; i += BLOCK) {
		st = add_block(o, s, x + i, n - i < BLOCK ? n - i : BLOCK, direct, &sample, err);
		if (st)
			return st;
	}
	if (o->channels && o->inner == 1)
		take_channel_rows(o->channel_max, o->channels, x, n);
	else if (o->channels)
		take_channel_runs(o->channel_max, o->channels, o->inner, x, n);

	sample.min += 0.f; /* -0 and 0 are equal, so either could have come out */
	sample.max += 0.f;
	take_sample(o, &sample);
	o->count += n;
	return FETTLE_OK;
}

enum fettle_status observer_add(struct observer *o, struct observer_scratch *s, const float *x,
				size_t samples, size_t per_sample, struct err *err)
{
	bool direct = samples * per_sample < DIRECT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (!per_sample)
		return FETTLE_OK;
	for (i = 0; i < samples && !st; i++)
		st = add_sample(o, s, x + i * per_sample, per_sample, direct, err);
	flush(o, s);
	for (i = OBSERVER_BINS; i < SLOTS; i++) {
		o->zeros += o->bins[i];
		o->bins[i] = 0;
	}
	return st;
}

void observer_join(struct observer *to, const struct observer *more)
{
	const uint64_t *up = more->bins + OBSERVER_SIDE, *down = up - 1;
	size_t i;
	int k, shift;

	for (i = 0; i < more->kept.n; i++)
		take_sample(to, &more->kept.v[i]);
	to->count += more->count;
	to->zeros += more->zeros;
	if (more->exponent > to->exponent)
		grow(to, more->exponent);
	shift = to->exponent - more->exponent < 11 ? to->exponent - more->exponent : 11; /* see grow() */
	for (k = 0; k < OBSERVER_SIDE; k++) {
		to->bins[OBSERVER_SIDE + (k >> shift)] += up[k];
		to->bins[OBSERVER_SIDE - 1 - (k >> shift)] += down[-k];
	}
}
