/*
 * Recipe cle: the channels of an activation are scaled so that the one scale it is quantized with suits them all
 * (after Nagel et al., "Data-free quantization through weight equalization and bias correction",
 * arXiv:1906.04721, who balance the weights on both sides and repeat until nothing changes).
 *
 * Weights are quantized per output channel nowadays, so what makes a channel can take any factor. What reads it
 * gains and loses, as noise.h has it. Were steps fixed, the factors that noise_ideal() gives would be best. Some
 * channels are cut down from there, to make the activation's step smaller; how far, is tried, and the least noise
 * decides, against the model as it is. None of that depends on how channels are scaled at the outset, here or in the
 * next layer: there is nothing to repeat.
 *
 * With bias absorption: what a channel always has before its Relu (a good deal less than the least that was
 * calibrated, if that is above 0) is taken out of it and put into the next bias, where the next layer sees no padding.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"
#include "quantize/noise.h"

enum { CUTS = 24 };                  /* of the widest channel, each by 2^(1/4) */
static const double worth_it = 0.95; /* of the noise without */

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

static enum fettle_status find_noise(struct rewrite *w, size_t class, struct noise *out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	struct spread x;
	size_t i;

	for (i = 0; i < w->c.parts.n && !st; i++) {
		const struct part *p = &w->c.parts.v[i];

		if (p->class != class || p->role != PART_READS)
			continue;
		st = rewrite_spread(w, p->value, &x, err);
		if (!st)
			st = noise_add_op(out, w, p->node, x, w->c.lanes[p->value].repeat, err);
	}
	for (i = 0; i < w->base->g.n && !st; i++) {
		if (channels_class(&w->c, i) != class || !w->quantized[i] || !is_summand(w, i))
			continue;
		st = rewrite_spread(w, i, &x, err);
		if (!st)
			noise_add_value(out, x);
	}
	return st;
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

/* is there a layer or a BatchNorm that makes the channels, or a convolution that reads them? (What is between other
 * normalisations and matrices is smooth()'s.) */
static bool has_layer(const struct channels *c, size_t class)
{
	const struct model *m = c->s->m;
	size_t i;

	for (i = 0; i < c->parts.n; i++) {
		const struct part *p = &c->parts.v[i];
		const struct node *n = m->nodes.v[p->node];

		if (p->class == class &&
		    ((p->role == PART_MAKES && (is_linear(m, n) || node_is(n, "BatchNormalization"))) ||
		     (p->role == PART_READS && is_linear(m, n) && !is_matrix_op(m, n))))
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
		if (st)
			break;
		for (k = 0; k < w->c.size[class]; k++)
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
	struct noise noise;
	double least, widest = 0;
	enum fettle_status st;
	bool reached, found = false;
	size_t i, k;

	noise_init(&noise, w->base, n);
	st = reaches_bound(w, class, &reached, err);
	if (st || reached)
		goto out;
	st = find_noise(w, class, &noise, err);
	if (st)
		goto out;
	noise_ideal(&noise, ideal, width);
	for (i = 0; i < n; i++)
		s[i] = 1;
	least = worth_it * noise_total(&noise, s);
	for (i = 0; i < n; i++)
		widest = fmax(widest, ideal[i] * width[i]);
	for (k = 0; k < CUTS && widest > 0; k++) {
		double now;

		cut(ideal, width, n, widest * pow(2, -0.25 * (double)k), s);
		now = noise_total(&noise, s);
		if (now < least) {
			least = now;
			memcpy(best, s, n * sizeof(*best));
			found = true;
		}
	}
	if (found)
		st = rewrite_fold(w, class, best, err);
out:
	noise_release(&noise);
	free(ideal);
	free(width);
	free(s);
	free(best);
	return st;
}

/* the least that each channel of a Relu's input had, where that was well above 0: other data may have less */
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
		shift[i] = fmax(x.min[i] - 0.5 * (x.max[i] - x.min[i]), 0) *
			   (w->factor[class] ? w->factor[class][i] : 1);
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
