#include "quantize/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"

void noise_init(struct noise *l, const struct subject *s, size_t n)
{
	*l = (struct noise){ .n = n, .levels = s->cpu.saturates ? 63 : 127 };
	l->weight = xcalloc(n, sizeof(*l->weight));
}

void noise_release(struct noise *l)
{
	size_t i;

	for (i = 0; i < l->v.n; i++) {
		spread_release(&l->v.v[i].x);
		free(l->v.v[i].largest);
		free(l->v.v[i].energy);
		free(l->v.v[i].power);
	}
	VEC_RELEASE(&l->v);
	free(l->weight);
}

/* the weights of a linear op, one entry per pair of channels; inputs that are the same channel fall together */
static void read_weights(struct noise_reader *r, const struct layout *l, const float *x, size_t repeat)
{
	size_t g, a, b, k;

	r->outputs = layout_outputs(l);
	r->positions = (double)(l->inner * repeat) * l->share;
	r->largest = xcalloc(r->outputs * r->inputs, sizeof(*r->largest));
	r->energy = xcalloc(r->outputs * r->inputs, sizeof(*r->energy));
	for (g = 0; g < l->groups; g++)
		for (a = 0; a < l->first; a++)
			for (b = 0; b < l->second; b++) {
				size_t i = l->inputs_first ? g * l->first + a : g * l->second + b;
				size_t o = l->inputs_first ? g * l->second + b : g * l->first + a;
				size_t at = o * r->inputs + i / repeat;

				for (k = 0; k < l->inner; k++, x++) {
					r->largest[at] = fmaxf(r->largest[at], fabsf(*x));
					r->energy[at] += *x * *x;
				}
			}
}

/* the power of each output, inputs taken to be independent */
static void find_power(struct noise_reader *r)
{
	size_t i, o;

	r->power = xcalloc(r->outputs, sizeof(*r->power));
	for (o = 0; o < r->outputs; o++) {
		if (!r->energy)
			r->power[o] = r->x.power[o];
		for (i = 0; i < r->inputs && r->energy; i++)
			r->power[o] += r->energy[o * r->inputs + i] * r->x.power[i];
	}
}

/* adds how much noise in each channel counts for */
static void add_weights(struct noise *l, const struct noise_reader *r)
{
	size_t i, o;

	for (o = 0; o < r->outputs; o++) {
		const double power = r->power[o] * (double)r->outputs;

		for (i = 0; i < r->inputs && power > 0 && r->energy; i++)
			l->weight[i] += r->energy[o * r->inputs + i] / power;
		if (!r->energy && power > 0)
			l->weight[o] += 1 / power;
	}
}

enum fettle_status noise_add_op(struct noise *l, struct rewrite *w, size_t node, struct spread x,
				size_t repeat, struct err *err)
{
	const struct node *n = w->m->nodes.v[node];
	struct noise_reader r = { .x = x, .inputs = l->n, .outputs = l->n };
	const struct tensor *t;
	enum fettle_status st = FETTLE_OK;
	struct layout layout;

	if (is_linear(w->m, n)) {
		st = rewrite_weight(w, node, &t, err);
		if (!st) {
			layout = layout_of(n, t);
			read_weights(&r, &layout, t->data, repeat);
		}
	}
	find_power(&r);
	add_weights(l, &r);
	VEC_PUSH(&l->v, r);
	return st;
}

void noise_add_value(struct noise *l, struct spread x)
{
	VEC_PUSH(&l->v, ((struct noise_reader){ .x = x, .inputs = l->n, .passes = true }));
}

/*
 * The noise of each channel of what a reader gets, in the channel's own units. Rounding; and what data not seen has
 * beyond the range: of as many values one, by a tail that fell to one sample over the width that was seen.
 */
static void input_noise(const struct noise_reader *r, const double *s, double *out)
{
	const double tail = log(fmax(r->x.samples, 3));
	double lo = 0, hi = 0, range;
	size_t i;

	for (i = 0; i < r->inputs; i++) {
		lo = fmin(lo, r->x.min[i] * s[i]);
		hi = fmax(hi, r->x.max[i] * s[i]);
	}
	range = fmax(hi, -lo);
	for (i = 0; i < r->inputs; i++) {
		const double width = fmax(r->x.max[i], -r->x.min[i]) * s[i], beyond = width / tail;

		out[i] = (hi - lo) / 255 * ((hi - lo) / 255);
		if (width > 0 && r->x.count > 0)
			out[i] += 24 / r->x.count * beyond * beyond * exp(-(range - width) / beyond);
		out[i] /= s[i] * s[i];
	}
}

/* the noise of a reader under these factors, averaged over its outputs */
static double reader_noise(const struct noise *l, const struct noise_reader *r, const double *s)
{
	double *noise = xcalloc(r->inputs, sizeof(*noise)), x_power = 0, sum = 0;
	size_t i, o;

	input_noise(r, s, noise);
	for (i = 0; i < r->inputs; i++) {
		x_power += r->x.power[i] * s[i] * s[i];
		if (r->passes)
			sum += noise[i] * l->weight[i];
	}
	for (o = 0; o < r->outputs; o++) {
		const double power = r->power[o] * (double)r->outputs;
		double largest = 0, all = 0;

		if (!(power > 0))
			continue;
		for (i = 0; i < r->inputs && r->energy; i++) {
			largest = fmax(largest, r->largest[o * r->inputs + i] / s[i]);
			all += r->energy[o * r->inputs + i] * noise[i];
		}
		if (!r->energy)
			all = noise[o];
		largest /= l->levels;
		sum += (all + largest * largest * x_power * r->positions) / power;
	}
	free(noise);
	return sum;
}

double noise_total(const struct noise *l, const double *s)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < l->v.n; i++)
		sum += reader_noise(l, &l->v.v[i], s);
	return sum;
}

void noise_ideal(const struct noise *l, double *s, double *width)
{
	double *q = xcalloc(l->n, sizeof(*q));
	size_t k, i;

	memset(width, 0, l->n * sizeof(*width));
	for (k = 0; k < l->v.n; k++)
		for (i = 0; i < l->n; i++) {
			const struct spread *x = &l->v.v[k].x;

			q[i] += l->v.v[k].passes ? 0 : x->power[i];
			width[i] = fmax(width[i], fmax(x->max[i], -x->min[i]));
		}
	for (i = 0; i < l->n; i++)
		s[i] = l->weight[i] > 0 && q[i] > 0 ? pow(l->weight[i] / q[i], 0.25) : 0;
	free(q);
}
