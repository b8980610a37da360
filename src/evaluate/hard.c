#include "evaluate/hard.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STEPS = 255 };

struct sample {
	size_t at;
	double first; /* how likely it is wrong, as the fp32 model says: 0 .. 1 */
	double guess; /* the same, updated by what trials showed */
	double fp32;  /* its score there */
	uint8_t seen; /* in so many trials */
	uint16_t
		wrong; /* in steps of 1/STEPS: how much worse it was there than in fp32, as a share of the worst */
};

struct hard {
	struct sample *v;
	size_t n;
	int higher_is_better;
};

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

static int by_guess(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->guess != y->guess)
		return x->guess > y->guess ? -1 : 1;
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
	qsort(h->v, n, sizeof(*h->v), by_place);
	return h;
}

void hard_free(struct hard *h)
{
	if (!h)
		return;
	free(h->v);
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

void hard_learn(struct hard *h, const double *scores)
{
	double worst = 0;
	size_t i;

	for (i = 0; i < h->n; i++)
		if (!isnan(scores[i]))
			worst = fmax(worst, deficit(h, &h->v[i], scores[i]));
	for (i = 0; i < h->n; i++) {
		struct sample *s = &h->v[i];

		if (isnan(scores[i]) || s->seen == UINT8_MAX)
			continue;
		s->seen++;
		if (worst > 0 && isfinite(worst))
			s->wrong = (uint16_t)(s->wrong + lround(STEPS * deficit(h, s, scores[i]) / worst));
	}
}

void hard_order(const struct hard *h, size_t *place)
{
	struct sample *v = xcalloc(h->n, sizeof(*v));
	size_t i;

	memcpy(v, h->v, h->n * sizeof(*v));
	for (i = 0; i < h->n; i++)
		v[i].guess = (v[i].first + v[i].wrong / (double)STEPS) / (1.0 + v[i].seen);
	qsort(v, h->n, sizeof(*v), by_guess);
	for (i = 0; i < h->n; i++)
		place[i] = v[i].at;
	free(v);
}

enum { DIGITS = 6 }; /* hexadecimal ones of a sample */

char *hard_save(const struct hard *h)
{
	char *text = xmalloc(DIGITS * h->n + 1);
	size_t i;

	text[0] = 0;
	for (i = 0; i < h->n; i++)
		snprintf(text + DIGITS * i, DIGITS + 1, "%02x%04x", h->v[i].seen, h->v[i].wrong);
	return text;
}

void hard_restore(struct hard *h, const char *text)
{
	char digits[DIGITS + 1] = "";
	unsigned long x;
	size_t i;

	if (strlen(text) != DIGITS * h->n)
		return;
	for (i = 0; i < h->n; i++) {
		memcpy(digits, text + DIGITS * i, DIGITS);
		x = strtoul(digits, NULL, 16);
		h->v[i].seen = (uint8_t)(x >> 16);
		h->v[i].wrong = (uint16_t)(x & 0xffff);
	}
}
