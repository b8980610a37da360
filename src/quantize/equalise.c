/*
 * Recipe cle: the channels of an activation are scaled so that the one scale it is quantized with suits them all
 * (after Nagel et al., "Data-free quantization through weight equalization and bias correction",
 * arXiv:1906.04721, who balance the weights on both sides and repeat until nothing changes).
 *
 * Weights are quantized per output channel nowadays, so what makes a channel can take any factor. What reads it
 * gains and loses: with channel i scaled by s_i, the noise of output o from rounding is, in units of what it puts out,
 *
 *	( D^2 sum_i w_oi^2 / s_i^2  +  D_o^2 sum_i E[x_i^2] s_i^2 ) / sum_i w_oi^2 E[x_i^2]
 *
 * where D, the step of the activation, is that of its widest channel after scaling, and D_o, the step of the
 * weights, that of the largest |w_oi| / s_i. Were D and D_o fixed, the best s_i would be the fourth root of a_i / q_i,
 * with a_i the sum over all readers' outputs of w_oi^2 in the same units and q_i = E[x_i^2]. Some channels are cut
 * down from there, to make D smaller; how far, is tried, and the least noise decides, against the model as it is.
 * None of that depends on how channels are scaled at the outset, here or in the next layer: nothing is to be repeated.
 *
 * With bias absorption: what a channel always has before its Relu (the least that was calibrated, if above 0) is
 * taken out of it and put into the next bias, where the next layer sees no padding.
 */
#include "quantize/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"

enum { CUTS = 24 };                  /* of the widest channel, each by 2^(1/4) */
static const double worth_it = 0.95; /* of the noise without */

/* What reads a class, as far as noise goes. */
struct reader {
	struct spread x;        /* of what it reads */
	size_t inputs, outputs; /* channels; each input is one of the class */
	float *largest,
		*energy;  /* [outputs][inputs]: max |w|, sum of w^2 over kernel positions; NULL: no weights */
	double positions; /* of the kernel */
	bool passes;      /* no reader at all, but a sum or mean that the readers get to see */
};
struct readers {
	VEC(struct reader) v;
	double *weight; /* a_i */
	double levels;  /* of weights, on either side of 0 */
};

static void readers_release(struct readers *l)
{
	size_t i;

	for (i = 0; i < l->v.n; i++) {
		spread_release(&l->v.v[i].x);
		free(l->v.v[i].largest);
		free(l->v.v[i].energy);
	}
	VEC_RELEASE(&l->v);
	free(l->weight);
}

/* the weights of a linear op, one entry per pair of channels; inputs that are the same channel fall together */
static void read_weights(struct reader *r, const struct layout *l, const float *x, size_t repeat)
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

/* is it read, in integers, by an op that passes channels on? */
static bool is_summand(const struct rewrite *w, size_t value)
{
	const struct graph_index *g = &w->base->g;
	size_t i;

	for (i = g->first[value]; i < g->first[value + 1]; i++) {
		const struct op *op = &w->base->ops.v[g->uses[i]];

		if (op->rule && op->rule->kind == OP_ELEMENT && op->rule->on && op->offered)
			return true;
	}
	return false;
}

static enum fettle_status find_readers(struct rewrite *w, size_t class, struct readers *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < w->c.parts.n && !st; i++) {
		const struct part *p = &w->c.parts.v[i];
		const struct node *n = w->m->nodes.v[p->node];
		struct reader r = { .inputs = w->c.size[class], .outputs = w->c.size[class] };
		const struct tensor *t;
		struct layout l;

		if (p->class != class || p->role != PART_READS)
			continue;
		st = rewrite_spread(w, p->value, &r.x, err);
		if (!st && is_linear(w->m, n)) {
			st = rewrite_weight(w, p->node, &t, err);
			if (!st) {
				l = layout_of(n, t);
				read_weights(&r, &l, t->data, w->c.lanes[p->value].repeat);
			}
		}
		VEC_PUSH(&out->v, r);
	}
	for (i = 0; i < w->base->g.n && !st; i++) {
		struct reader r = { .inputs = w->c.size[class], .passes = true };

		if (channels_class(&w->c, i) != class || !w->quantized[i] || !is_summand(w, i))
			continue;
		st = rewrite_spread(w, i, &r.x, err);
		VEC_PUSH(&out->v, r);
	}
	return st;
}

/* what output o of a reader puts out: its power, inputs taken to be independent */
static double output_power(const struct reader *r, size_t o)
{
	double sum = 0;
	size_t i;

	if (!r->energy)
		return r->x.power[o];
	for (i = 0; i < r->inputs; i++)
		sum += r->energy[o * r->inputs + i] * r->x.power[i];
	return sum;
}

/*
 * The noise of each channel of what a reader gets, in the channel's own units. Rounding; and what data not seen has
 * beyond the range: of as many values one, by a tail that fell to one sample over the width that was seen.
 */
static void input_noise(const struct reader *r, const double *s, double *out)
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
static double reader_noise(const struct readers *l, const struct reader *r, const double *s)
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
		const double power = output_power(r, o) * (double)r->outputs;
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

static double total_noise(const struct readers *l, const double *s)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < l->v.n; i++)
		sum += reader_noise(l, &l->v.v[i], s);
	return sum;
}

/* fourth root of a_i / q_i; and the width that channel i has */
static void ideal_factors(struct readers *l, size_t n, double *s, double *width)
{
	double *a = xcalloc(n, sizeof(*a)), *q = xcalloc(n, sizeof(*q));
	size_t k, i, o;

	memset(width, 0, n * sizeof(*width));
	for (k = 0; k < l->v.n; k++) {
		const struct reader *r = &l->v.v[k];

		for (o = 0; o < r->outputs; o++) {
			const double power = output_power(r, o) * (double)r->outputs;

			for (i = 0; i < n && power > 0 && r->energy; i++)
				a[i] += r->energy[o * n + i] / power;
			if (!r->energy && power > 0)
				a[o] += 1 / power;
		}
		for (i = 0; i < n; i++) {
			q[i] += r->x.power[i];
			width[i] = fmax(width[i], fmax(r->x.max[i], -r->x.min[i]));
		}
	}
	for (i = 0; i < n; i++)
		s[i] = a[i] > 0 && q[i] > 0 ? pow(a[i] / q[i], 0.25)
					    : 0; /* 0: it never did, or does, anything */
	l->weight = a;
	free(q);
}

/* no channel wider than `limit`; one that does nothing is as wide or as heavy as the others, to be in nobody's way */
static void cut(const double *ideal, const double *width, size_t n, double limit, double *s)
{
	double sum = 0, count = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (ideal[i] > 0) {
			s[i] = fmin(ideal[i], limit / width[i]);
			sum += log(s[i]);
			count++;
		}
	for (i = 0; i < n; i++)
		if (!(ideal[i] > 0))
			s[i] = width[i] > 0 ? limit / width[i] : exp(sum / fmax(count, 1));
}

/* is there a layer or a BatchNorm that makes the channels? (Other normalisations are smooth()'s.) */
static bool has_layer(const struct channels *c, size_t class)
{
	size_t i;

	for (i = 0; i < c->parts.n; i++) {
		const struct node *n = c->s->m->nodes.v[c->parts.v[i].node];

		if (c->parts.v[i].class == class && c->parts.v[i].role == PART_MAKES &&
		    (is_linear(c->s->m, n) || node_is(n, "BatchNormalization")))
			return true;
	}
	return false;
}

static bool has_reader(const struct channels *c, size_t class)
{
	size_t i;

	for (i = 0; i < c->parts.n; i++)
		if (c->parts.v[i].class == class && c->parts.v[i].role == PART_READS)
			return true;
	return false;
}

static bool is_candidate(const struct channels *c, size_t class)
{
	return channels_root(c, class) == class && !c->pinned[class] && has_layer(c, class) &&
	       has_reader(c, class);
}

bool can_equalise(struct subject *s)
{
	struct channels c;
	bool found = false;
	size_t i;

	channels_find(&c, s);
	for (i = 0; i < c.n && !found; i++)
		found = is_candidate(&c, i);
	channels_release(&c);
	return found;
}

/* does any Clip of the class cut something off at its upper bound? */
static enum fettle_status reaches_bound(struct rewrite *w, size_t class, bool *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	*out = false;
	for (i = 0; i < w->c.parts.n && !st; i++) {
		const struct part *p = &w->c.parts.v[i];
		struct spread x;
		size_t k;

		if (p->class != class || p->role != PART_CLIPS)
			continue;
		st = rewrite_spread(w, p->value, &x, err); /* nothing has been scaled yet */
		for (k = 0; k < w->c.size[class] && !st; k++)
			*out |= x.max[k] >= p->bound;
		spread_release(&x);
	}
	return st;
}

static enum fettle_status equalise_class(struct rewrite *w, size_t class, struct err *err)
{
	const size_t n = w->c.size[class];
	double *ideal = xcalloc(n, sizeof(*ideal)), *width = xcalloc(n, sizeof(*width));
	double *s = xcalloc(n, sizeof(*s)), *best = xcalloc(n, sizeof(*best));
	struct readers readers = { .levels = w->base->cpu.saturates ? 63 : 127 };
	double least, widest = 0;
	enum fettle_status st;
	bool reached, found = false;
	size_t i, k;

	st = reaches_bound(w, class, &reached, err);
	if (st || reached)
		goto out;
	st = find_readers(w, class, &readers, err);
	if (st)
		goto out;
	ideal_factors(&readers, n, ideal, width);
	for (i = 0; i < n; i++)
		s[i] = 1;
	least = worth_it * total_noise(&readers, s);
	for (i = 0; i < n; i++)
		widest = fmax(widest, ideal[i] * width[i]);
	for (k = 0; k < CUTS && widest > 0; k++) {
		double noise;

		cut(ideal, width, n, widest * pow(2, -0.25 * (double)k), s);
		noise = total_noise(&readers, s);
		if (noise < least) {
			least = noise;
			memcpy(best, s, n * sizeof(*best));
			found = true;
		}
	}
	if (found)
		st = rewrite_fold(w, class, best, err);
out:
	readers_release(&readers);
	free(ideal);
	free(width);
	free(s);
	free(best);
	return st;
}

/* the least that each channel of a Relu's input had, where that was above 0 */
static enum fettle_status absorb(struct rewrite *w, size_t value, struct err *err)
{
	const size_t class = channels_class(&w->c, value), n = w->c.size[class];
	double *shift = xcalloc(n, sizeof(*shift));
	struct channel_extremes x;
	enum fettle_status st;
	bool any = false;
	size_t i;

	st = channel_extremes_get(w->seen, w->base->g.names[value], w->c.lanes[value].axis, n, &x, err);
	for (i = 0; i < n && !st; i++) {
		shift[i] = fmaxf(x.min[i], 0) * (w->factor[class] ? w->factor[class][i] : 1);
		any |= shift[i] > 0;
	}
	if (!st && any)
		st = rewrite_shift(w, value, shift, err);
	free(shift);
	return st;
}

enum fettle_status equalise(struct rewrite *w, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < w->c.n && !st; i++)
		if (is_candidate(&w->c, i))
			st = equalise_class(w, i, err);
	for (i = 0; i < w->c.parts.n && !st; i++) {
		const struct part *p = &w->c.parts.v[i];

		if (p->role == PART_MAKES && !w->c.pinned[p->class] && rewrite_can_shift(w, p->value))
			st = absorb(w, p->value, err);
	}
	return st;
}
