/*
 * As llama.cpp's k-quants choose scale and minimum: codes for several step sizes around min-max; for each, scale and
 * minimum by weighted least squares, where large weights count more. Here the minimum must be a whole number of
 * steps, so that least squares is solved again for the scale with the zero point rounded, and codes and scale are then
 * fitted in turn.
 */
#include "blockwise/grid.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"

enum { MAX_BLOCK = 256, TURNS = 3, LANES = 16 };

/* of the codes l on a grid, weighted: sums of 1, l, l l, x, x l, and of the squared error */
struct sums {
	float w, l, ll, x, xl, error;
};

/* LANES sums side by side are what the compiler makes vectors of; x is padded by weights of 0 */
static struct sums sums_of(const float *x, const float *weight, int64_t n, struct grid g, int top)
{
	const float inverse = 1 / g.scale, shift = (float)g.zero + 0.5f, most = (float)top + 0.5f;
	float w[LANES] = { 0 }, l[LANES] = { 0 }, ll[LANES] = { 0 }, sx[LANES] = { 0 }, xl[LANES] = { 0 },
	      error[LANES] = { 0 };
	struct sums s = { 0 };
	int64_t i;
	int j;

	for (i = 0; i < n; i += LANES)
		for (j = 0; j < LANES; j++) {
			float code = x[i + j] * inverse + shift, wl, off;

			code = code > 0 ? code : 0;
			code = code < most ? code : most;
			code = (float)(int32_t)code;
			off = (code - (float)g.zero) * g.scale - x[i + j];
			wl = weight[i + j] * code;
			w[j] += weight[i + j];
			l[j] += wl;
			ll[j] += wl * code;
			sx[j] += weight[i + j] * x[i + j];
			xl[j] += wl * x[i + j];
			error[j] += weight[i + j] * off * off;
		}
	for (j = 0; j < LANES; j++) {
		s.w += w[j];
		s.l += l[j];
		s.ll += ll[j];
		s.x += sx[j];
		s.xl += xl[j];
		s.error += error[j];
	}
	return s;
}

static bool usable(float scale)
{
	return fabsf(scale) >= FLT_MIN && fabsf(scale) <= FLT_MAX;
}

/* the zero point by least squares for scale and minimum; then what is nearest to it as an integer */
static int best_zero(const struct sums *s, int top, int otherwise)
{
	const float d = s->w * s->ll - s->l * s->l;
	const float scale = (s->w * s->xl - s->x * s->l) / d, least = (s->ll * s->x - s->l * s->xl) / d;

	if (!(d > 0) || !usable(scale) || !isfinite(least / scale))
		return otherwise;
	return (int)fminf(fmaxf(rintf(-least / scale), 0), (float)top);
}

/* from a grid: its codes, the scale (and zero point) they want, their codes, as long as the error falls */
static float refine(const float *x, const float *weight, int64_t n, const struct block_format *f,
		    struct grid *g)
{
	float least = INFINITY;
	struct grid next = *g;
	int turn;

	for (turn = 0; turn <= TURNS; turn++) {
		const struct sums s = sums_of(x, weight, n, next, grid_top(f));
		float z, ll, xl;

		if (!(s.error < least))
			break;
		least = s.error;
		*g = next;
		if (!f->symmetric)
			next.zero = best_zero(&s, grid_top(f), next.zero);
		z = (float)next.zero;
		ll = s.ll - 2 * z * s.l + z * z * s.w;
		xl = s.xl - z * s.x;
		if (!(ll > 0) || !usable(xl / ll))
			break;
		next.scale = xl / ll;
	}
	return least;
}

static struct grid fit(const float *x, int64_t n, const struct block_format *f, uint8_t *codes)
{
	/* of the range; a symmetric grid may be wider, too */
	static const float parts[] = { 1, 0.95f, 0.9f, 0.85f, 0.8f, 0.7f, 1.07f, 1.14f };
	const size_t n_parts = ARRAY_LEN(parts) - (f->symmetric ? 0 : 2);
	float padded[MAX_BLOCK] = { 0 }, weight[MAX_BLOCK] = { 0 }, least, most, unit, rms = 0,
	      error = INFINITY, e;
	struct grid best, g;
	size_t part;
	int64_t i;

	grid_range(x, n, &least, &most);
	best = grid_of_range(least, most, f);
	/* in units of the range, so that no square is too small or too large for a float */
	unit = fmaxf(-least, most);
	for (i = 0; i < n && unit > FLT_MIN; i++) {
		padded[i] = x[i] / unit;
		rms += padded[i] * padded[i];
	}
	rms = sqrtf(rms / (float)n);
	for (i = 0; i < n; i++)
		weight[i] = rms + fabsf(padded[i]);
	for (part = 0; part < n_parts && unit > FLT_MIN && error > 0; part++) {
		g = grid_of_range(least / unit * parts[part], most / unit * parts[part], f);
		e = refine(padded, weight, n, f, &g);
		if (e < error && usable(g.scale * unit)) {
			error = e;
			best = (struct grid){ g.scale * unit, g.zero };
		}
	}
	grid_codes(best, grid_top(f), x, n, codes);
	return best;
}

const struct block_method block_k_quant = {
	.name = "k_quant",
	.summary = "scale and zero point by least squares in which large weights count more",
	.fit = fit,
};
