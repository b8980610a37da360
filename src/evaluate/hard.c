#include "evaluate/hard.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STEPS = 255 };

struct sample {
	size_t at;
	double first; /* how likely it is wrong, as the fp32 model says: 0 .. 1 */
	double fp32;  /* its score there */
	uint8_t seen; /* in so many trials */
	uint16_t
		wrong; /* in steps of 1/STEPS: how much worse it was there than in fp32, as a share of the worst */
};

struct hard {
	struct sample *v;
	size_t *first; /* places as the fp32 model orders them, the hardest first */
	size_t n;
	int higher_is_better;
};

/* ---- small numbers, packed ---- */

/* bits that a sample gets where there are n: 8, 4, 2 or 1 */
static unsigned bits_for(size_t n)
{
	unsigned bits = 8;

	while (bits > 1 && n * bits > 8 * HARD_BYTES)
		bits /= 2;
	return bits;
}

static size_t most(const struct hard *h)
{
	size_t room = 8 * HARD_BYTES / bits_for(h->n);

	return h->n < room ? h->n : room;
}

static unsigned highest(const struct hard *h)
{
	return (1u << bits_for(h->n)) - 1;
}

static void notes_put(const struct hard *h, struct hard_notes *to, size_t i, unsigned value)
{
	const unsigned bits = bits_for(h->n), shift = (unsigned)(i * bits % 8);

	to->v[i * bits / 8] = (unsigned char)(to->v[i * bits / 8] | value << shift);
}

static unsigned notes_at(const struct hard *h, const struct hard_notes *from, size_t i)
{
	const unsigned bits = bits_for(h->n), shift = (unsigned)(i * bits % 8);

	return i < from->n ? from->v[i * bits / 8] >> shift & highest(h) : 0;
}

size_t hard_notes_bytes(const struct hard *h, const struct hard_notes *n)
{
	return (n->n * bits_for(h->n) + 7) / 8;
}

static int by_margin(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int by_first(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->first != y->first)
		return x->first > y->first ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

struct hard *hard_new(size_t n, const double *scores, const double *margins, int higher_is_better)
{
	struct hard *h = xcalloc(1, sizeof(*h));
	double sign = higher_is_better ? 1 : -1, last = 0;
	size_t i, rank = 0;

	h->n = n;
	h->higher_is_better = higher_is_better;
	h->v = xcalloc(n, sizeof(*h->v));
	for (i = 0; i < n; i++) {
		double margin = margins && !isnan(margins[i]) ? margins[i]
				: scores && !isnan(scores[i]) ? sign * scores[i]
							      : 0;

		h->v[i] = (struct sample){ .at = i, .first = margin, .fp32 = scores ? scores[i] : NAN };
	}
	/* only the order of the margins means something: wrong ones 1, the others by their rank, at most one half */
	qsort(h->v, n, sizeof(*h->v), by_margin);
	for (i = 0; i < n; i++) {
		bool wrong = margins && margins[h->v[i].at] < 0;

		rank = i && h->v[i].first == last ? rank : i; /* equal ones have one rank */
		last = h->v[i].first;
		h->v[i].first = wrong ? 1 : 0.5 * (double)(n - rank) / (double)n;
	}
	qsort(h->v, n, sizeof(*h->v), by_first);
	h->first = xcalloc(n, sizeof(*h->first));
	for (i = 0; i < n; i++)
		h->first[i] = h->v[i].at;
	qsort(h->v, n, sizeof(*h->v), by_place);
	return h;
}

void hard_free(struct hard *h)
{
	if (!h)
		return;
	free(h->v);
	free(h->first);
	free(h);
}

/* How much worse than in fp32; what scores nothing at all is wrong, too. */
static double deficit(const struct hard *h, const struct sample *s, double score)
{
	double d = h->higher_is_better ? s->fp32 - score : score - s->fp32;

	if (h->higher_is_better && score <= 0)
		d = fmax(d, 1);
	return d > 0 ? d : 0;
}

void hard_note(const struct hard *h, const double *scores, const size_t *looked, size_t n,
	       struct hard_notes *out)
{
	double worst = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (!isnan(scores[looked[i]]))
			worst = fmax(worst, deficit(h, &h->v[looked[i]], scores[looked[i]]));
	*out = (struct hard_notes){ .n = n < most(h) ? n : most(h) };
	for (i = 0; i < out->n && worst > 0 && isfinite(worst); i++)
		if (!isnan(scores[looked[i]]))
			notes_put(h, out, i,
				  (unsigned)lround(highest(h) *
						   deficit(h, &h->v[looked[i]], scores[looked[i]]) / worst));
}

void hard_learn(struct hard *h, const size_t *looked, const struct hard_notes *notes)
{
	size_t i;

	for (i = 0; i < notes->n; i++) {
		struct sample *s = &h->v[looked[i]];

		if (s->seen == UINT8_MAX)
			continue;
		s->seen++;
		s->wrong = (uint16_t)(s->wrong + STEPS / highest(h) * notes_at(h, notes, i));
	}
}

/* how likely it is wrong, by all that is known: 0 .. 1 */
static double guess(const struct sample *s)
{
	return (s->first + s->wrong / (double)STEPS) / (1.0 + s->seen);
}

void hard_levels(const struct hard *h, struct hard_notes *out)
{
	size_t i;

	*out = (struct hard_notes){ .n = most(h) };
	for (i = 0; i < out->n; i++)
		notes_put(h, out, i, (unsigned)lround(highest(h) * guess(&h->v[h->first[i]])));
}

void hard_order(const struct hard *h, const struct hard_notes *levels, size_t *place)
{
	size_t i, n = 0;
	unsigned level = highest(h) + 1;

	while (level-- > 0)
		for (i = 0; i < h->n; i++)
			if (notes_at(h, levels, i) == level)
				place[n++] = h->first[i];
}
