#include "evaluate/hard.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct sample {
	size_t at;
	double first; /* how likely it is wrong, as the fp32 model says: 0 .. 1 */
	double guess; /* the same, updated by what trials showed */
	double fp32;  /* its score there */
	uint8_t seen, wrong;
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
	double sign = higher_is_better ? 1 : -1;
	size_t i;

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

		h->v[i].first = wrong ? 1 : 0.5 * (double)(n - i) / (double)n;
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

/* Wrong is what scored worse than in fp32, or nothing at all. */
void hard_learn(struct hard *h, const double *scores)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		struct sample *s = &h->v[i];
		bool worse =
			h->higher_is_better ? scores[i] < s->fp32 || scores[i] <= 0 : scores[i] > s->fp32;

		if (isnan(scores[i]) || s->seen == UINT8_MAX)
			continue;
		s->seen++;
		s->wrong = (uint8_t)(s->wrong + worse);
	}
}

void hard_order(const struct hard *h, size_t *place)
{
	struct sample *v = xcalloc(h->n, sizeof(*v));
	size_t i;

	memcpy(v, h->v, h->n * sizeof(*v));
	for (i = 0; i < h->n; i++)
		v[i].guess = (v[i].first + v[i].wrong) / (1.0 + v[i].seen);
	qsort(v, h->n, sizeof(*v), by_guess);
	for (i = 0; i < h->n; i++)
		place[i] = v[i].at;
	free(v);
}

/* four hexadecimal digits a sample */
char *hard_save(const struct hard *h)
{
	static const char digit[] = "0123456789abcdef";
	char *text = xmalloc(4 * h->n + 1);
	size_t i;

	for (i = 0; i < h->n; i++) {
		text[4 * i] = digit[h->v[i].seen >> 4];
		text[4 * i + 1] = digit[h->v[i].seen & 15];
		text[4 * i + 2] = digit[h->v[i].wrong >> 4];
		text[4 * i + 3] = digit[h->v[i].wrong & 15];
	}
	text[4 * h->n] = 0;
	return text;
}

static uint8_t byte_of(const char *p)
{
	char both[3] = { p[0], p[1], 0 };

	return (uint8_t)strtoul(both, NULL, 16);
}

void hard_restore(struct hard *h, const char *text)
{
	size_t i;

	if (strlen(text) != 4 * h->n)
		return;
	for (i = 0; i < h->n; i++) {
		h->v[i].seen = byte_of(text + 4 * i);
		h->v[i].wrong = byte_of(text + 4 * i + 2);
	}
}
