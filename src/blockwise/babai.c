#include "blockwise/babai.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void babai_init(struct babai *b, const struct block_format *f)
{
	*b = (struct babai){ .format = f };
	b->target = xcalloc(MAX_BLOCK, PANEL * sizeof(float));
	b->q = xcalloc(MAX_BLOCK, PANEL * sizeof(float));
	b->scratch = xcalloc(MAX_BLOCK, PANEL * sizeof(float));
	b->kept = xcalloc(MAX_BLOCK, PANEL * sizeof(float));
}

void babai_release(struct babai *b)
{
	free(b->target);
	free(b->q);
	free(b->scratch);
	free(b->kept);
}

void babai_round(struct babai *b, struct grids *g)
{
	const float top = (float)grid_top(b->format);
	int64_t i, j, r;

	memcpy(b->scratch, b->target, (size_t)b->n * PANEL * sizeof(float));
	memset(g->error, 0, sizeof(g->error));
	for (j = b->n - 1; j >= 0; j--) {
		const float *column = b->r + j, diagonal = column[j * b->ld];
		const float *at = b->scratch + j * PANEL, *target = b->target + j * PANEL;
		float *q = b->q + j * PANEL, off[PANEL];

		for (r = 0; r < PANEL; r++) {
			float code = at[r] * g->inverse[r] + g->zero[r] + 0.5f, left;

			code = code > 0 ? code : 0;
			code = code < top + 0.5f ? code : top + 0.5f;
			q[r] = ((float)(int32_t)code - g->zero[r]) * g->scale[r];
			left = (q[r] - at[r]) * diagonal;
			g->error[r] += left * left;
			off[r] = q[r] - target[r];
		}
		for (i = 0; i < j; i++) {
			const float by = column[i * b->ld] / b->r[i * (b->ld + 1)];
			float *next = b->scratch + i * PANEL;

			for (r = 0; r < PANEL; r++)
				next[r] -= by * off[r];
		}
	}
}

static void find_range(const struct babai *b, float least[PANEL], float most[PANEL])
{
	int64_t i, r;

	memset(least, 0, PANEL * sizeof(float));
	memset(most, 0, PANEL * sizeof(float));
	for (i = 0; i < b->n; i++)
		for (r = 0; r < PANEL; r++) {
			const float x = b->target[i * PANEL + r];

			least[r] = x < least[r] ? x : least[r];
			most[r] = x > most[r] ? x : most[r];
		}
}

void babai_choose(struct babai *b, struct grids *best)
{
	/* the whole range first, so that what lies on its grid keeps it; a symmetric grid may be wider, too */
	static const float parts[] = { 1, 0.95f, 0.9f, 0.85f, 0.8f, 0.75f, 0.7f, 0.6f, 1.05f, 1.14f };
	const size_t n_parts = ARRAY_LEN(parts) - (b->format->symmetric ? 0 : 2);
	float least[PANEL], most[PANEL];
	struct grids g = { .scale = { 0 } };
	size_t part;
	int r;

	find_range(b, least, most);
	for (part = 0; part < n_parts; part++) {
		for (r = 0; r < PANEL; r++)
			grids_set(&g, r,
				  grid_of_range(least[r] * parts[part], most[r] * parts[part], b->format));
		babai_round(b, &g);
		for (r = 0; r < PANEL; r++)
			if (g.error[r] < best->error[r])
				grids_take(best, &g, r);
	}
	babai_round(b, best);
}

/* the row i of R times x, for each output */
static void row_times(const struct babai *b, int64_t i, const float *x, float out[PANEL])
{
	int64_t j, r;

	memset(out, 0, PANEL * sizeof(float));
	for (j = i; j < b->n; j++) {
		const float by = b->r[i * b->ld + j];

		for (r = 0; r < PANEL; r++)
			out[r] += by * x[j * PANEL + r];
	}
}

/*
 * With codes c held and y = R t, v = R (c - z), u = R 1: the error of scale s and zero point z + d is
 * |s (v - d u) - y|^2, least for s = y.(v - d u) / |v - d u|^2.
 */
static void fit_grids(struct babai *b, struct grids *g)
{
	float yv[PANEL] = { 0 }, vv[PANEL] = { 0 }, yu[PANEL] = { 0 }, uv[PANEL] = { 0 }, yy[PANEL] = { 0 },
	      uu = 0;
	const float top = (float)grid_top(b->format);
	const int reach = b->format->symmetric ? 0 : 1;
	int64_t i, j, r;
	int d;

	for (i = 0; i < b->n; i++) {
		float v[PANEL], y[PANEL], u = 0;

		row_times(b, i, b->q, v);
		row_times(b, i, b->target, y);
		for (j = i; j < b->n; j++)
			u += b->r[i * b->ld + j];
		uu += u * u;
		for (r = 0; r < PANEL; r++) {
			v[r] *= g->inverse[r];
			yv[r] += y[r] * v[r];
			vv[r] += v[r] * v[r];
			yu[r] += y[r] * u;
			uv[r] += v[r] * u;
			yy[r] += y[r] * y[r];
		}
	}
	for (r = 0; r < PANEL; r++) {
		float most = 0, scale = 0, zero = g->zero[r];

		for (d = -reach; d <= reach; d++) {
			const float shift = (float)d, along = yv[r] - shift * yu[r],
				    size = vv[r] - 2 * shift * uv[r] + shift * shift * uu;

			/* a scale that goes from sign to sign or to nothing is no fit */
			if (size > 1e-6f * vv[r] && along * along / size > most && g->zero[r] + shift >= 0 &&
			    g->zero[r] + shift <= top) {
				most = along * along / size;
				scale = along / size;
				zero = g->zero[r] + shift;
			}
		}
		if (!(fabsf(scale) >= FLT_MIN && fabsf(scale) <= FLT_MAX))
			continue;
		g->error[r] = yy[r] - most;
		for (i = 0; i < b->n; i++) {
			float *q = b->q + i * PANEL + r;

			*q = (rintf(*q * g->inverse[r] + g->zero[r]) - zero) * scale;
		}
		g->scale[r] = scale;
		g->inverse[r] = 1 / scale;
		g->zero[r] = zero;
	}
}

/* what is better of q, to b->kept */
static void keep_better(struct babai *b, const struct grids *g, struct grids *best)
{
	int64_t i, r;

	for (r = 0; r < PANEL; r++) {
		if (!(g->error[r] < best->error[r]))
			continue;
		grids_take(best, g, r);
		for (i = 0; i < b->n; i++)
			b->kept[i * PANEL + r] = b->q[i * PANEL + r];
	}
}

void babai_refine(struct babai *b, struct grids *best)
{
	const size_t size = (size_t)b->n * PANEL * sizeof(float);
	struct grids g = *best;
	int turn; /* more than three bring next to nothing */

	memcpy(b->kept, b->q, size);
	for (turn = 0; turn < 3; turn++) {
		fit_grids(b, &g);
		keep_better(b, &g, best);
		babai_round(b, &g);
		keep_better(b, &g, best);
	}
	memcpy(b->q, b->kept, size);
}
