/*
 * Recipe cle: the channels of an activation are scaled so that the one scale it is quantized with suits them all
 * (after Nagel et al., "Data-free quantization through weight equalization and bias correction",
 * arXiv:1906.04721, who balance the weights on both sides and repeat until nothing changes).
 *
 * Weights are quantized per output channel nowadays, so what makes a channel can take any factor. What matters is
 * how wide the channel is in the activation, and how much of its reader's weights it takes up. Let A_i be the
 * largest |x| of channel i, as calibrated, and
 *
 *	c_i = max over outputs o of |w_oi| A_i / max over j of |w_oj| A_j
 *
 * its share in what the reader computes. Channel i is scaled to a width of c_i^(1-b): with b = 1 all are equally
 * wide, and the reader's weights spread as the shares do; with b = 0 it is the other way round. Shares do not
 * depend on how channels are scaled at the outset, neither here nor in the next layer, so the result does not
 * either: there is nothing to repeat.
 *
 * With bias absorption: what a channel always has before its Relu (the least that was calibrated, if above 0) is
 * taken out of it and put into the next bias, where the next layer sees no padding.
 */
#include "quantize/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/internal.h"

static const double balance = 0.5;
static const double least_share = 1.0 / 1024; /* a channel that matters less still keeps two bits or so */

/* raises share[] to what each input channel of a linear op has in its outputs, its inputs being this wide */
static void add_shares(const struct layout *l, const float *weights, const double *width, size_t repeat,
		       double *share)
{
	const size_t outputs = layout_outputs(l);
	double *most = xcalloc(outputs, sizeof(*most));
	size_t pass, g, a, b, k;

	for (pass = 0; pass < 2; pass++) {
		const float *x = weights;

		for (g = 0; g < l->groups; g++)
			for (a = 0; a < l->first; a++)
				for (b = 0; b < l->second; b++, x += l->inner) {
					size_t i = l->inputs_first ? g * l->first + a : g * l->second + b;
					size_t o = l->inputs_first ? g * l->second + b : g * l->first + a;
					float largest = 0;
					double part;

					for (k = 0; k < l->inner; k++)
						largest = fmaxf(largest, fabsf(x[k]));
					part = largest * width[i / repeat];
					if (!pass)
						most[o] = fmax(most[o], part);
					else if (most[o] > 0)
						share[i / repeat] = fmax(share[i / repeat], part / most[o]);
				}
	}
	free(most);
}

/* The shares of a class's channels in all that reads them. What is not quantized wants them all as they are. */
static enum fettle_status find_shares(struct rewrite *w, size_t class, double *share, struct err *err)
{
	const size_t n = w->c.size[class];
	double *width = xcalloc(n, sizeof(*width));
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < w->c.parts.n && !st; i++) {
		const struct part *p = &w->c.parts.v[i];
		const struct node *node = w->m->nodes.v[p->node];
		const struct tensor *t;
		struct layout l;

		if (p->class != class || p->role != PART_READS)
			continue;
		if (!is_linear(w->m, node)) {
			for (k = 0; k < n; k++)
				share[k] = 1;
			continue;
		}
		st = rewrite_weight(w, p->node, &t, err);
		if (!st)
			st = rewrite_absmax(w, p->value, width, err);
		if (st)
			break;
		l = layout_of(node, t);
		add_shares(&l, t->data, width, w->c.lanes[p->value].repeat, share);
	}
	free(width);
	return st;
}

/* The width of each channel: the geometric mean over the values of the class that may be quantized. */
static enum fettle_status find_widths(struct rewrite *w, size_t class, double *width, bool *any,
				      struct err *err)
{
	const struct graph_index *g = &w->base->g;
	const size_t n = w->c.size[class];
	double *one = xcalloc(n, sizeof(*one)), *count = xcalloc(n, sizeof(*count));
	enum fettle_status st = FETTLE_OK;
	size_t v, i;

	memset(width, 0, n * sizeof(*width));
	*any = false;
	for (v = 0; v < g->n && !st; v++) {
		if (channels_class(&w->c, v) != class || !w->quantized[v])
			continue;
		st = rewrite_absmax(w, v, one, err);
		*any = true;
		for (i = 0; i < n && !st; i++)
			if (one[i] > 0) {
				width[i] += log(one[i]);
				count[i]++;
			}
	}
	for (i = 0; i < n; i++)
		width[i] = count[i] ? exp(width[i] / count[i]) : 0; /* 0: it never did anything */
	free(one);
	free(count);
	return st;
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
		size_t n, j;
		float *lo, *hi;

		if (p->class != class || p->role != PART_CLIPS)
			continue;
		n = w->c.size[class] * w->c.lanes[p->value].repeat;
		lo = xcalloc(n, sizeof(*lo));
		hi = xcalloc(n, sizeof(*hi));
		st = channel_extremes_get(w->seen, w->base->g.names[p->value], w->c.lanes[p->value].axis, n,
					  lo, hi, err);
		for (j = 0; j < n && !st; j++)
			*out |= hi[j] >= p->bound;
		free(lo);
		free(hi);
	}
	return st;
}

static enum fettle_status equalise_class(struct rewrite *w, size_t class, struct err *err)
{
	const size_t n = w->c.size[class];
	double *width = xcalloc(n, sizeof(*width)), *share = xcalloc(n, sizeof(*share));
	const double b = getenv("CLE_B") ? atof(getenv("CLE_B")) : balance;
	enum fettle_status st;
	bool any, cut;
	size_t i;

	st = reaches_bound(w, class, &cut, err);
	if (st || cut)
		goto out;
	st = find_widths(w, class, width, &any, err);
	if (st || !any)
		goto out;
	st = find_shares(w, class, share, err);
	if (st)
		goto out;
	for (i = 0; i < n; i++)
		width[i] = width[i] > 0 ? pow(fmax(share[i], least_share), 1 - b) / width[i] : 1;
	st = rewrite_fold(w, class, width, err);
out:
	free(width);
	free(share);
	return st;
}

/* the least that each channel of a Relu's input had, where that was above 0 */
static enum fettle_status absorb(struct rewrite *w, size_t value, struct err *err)
{
	const size_t class = channels_class(&w->c, value), n = w->c.size[class];
	float *min = xcalloc(n, sizeof(*min)), *max = xcalloc(n, sizeof(*max));
	double *shift = xcalloc(n, sizeof(*shift));
	enum fettle_status st;
	bool any = false;
	size_t i;

	st = channel_extremes_get(w->seen, w->base->g.names[value], w->c.lanes[value].axis, n, min, max, err);
	for (i = 0; i < n && !st; i++) {
		shift[i] = fmaxf(min[i], 0) * (w->factor[class] ? w->factor[class][i] : 1);
		any |= shift[i] > 0;
	}
	if (!st && any)
		st = rewrite_shift(w, value, shift, err);
	free(min);
	free(max);
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
