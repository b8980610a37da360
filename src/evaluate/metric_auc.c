/*
 * Area under the ROC curve, as the Mann-Whitney statistic: the share of (positive, negative) pairs that
 * the scores order rightly, ties counting half.
 *
 * Ranks need all scores, so what is kept is a count of positives and negatives per distinct score, for at
 * most CELLS of them; when there are more, scores lose low bits, one at a time, until they fit. How
 * many they have lost in the end is the least that makes all samples fit, whatever the order they came
 * in, for a part of the samples never needs more. So the value is a function of the set of samples.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evaluate/metric_impl.h"

enum { CELLS = 65536, CELLS_BUFFERED = 2 * CELLS };

struct cell {
	uint64_t key;
	uint64_t pos, neg;
};

struct auc {
	VEC(struct cell) cells; /* unsorted, and keys may repeat, until compact() */
	unsigned lost;          /* low bits of keys */
	bool nan;
};

/* A number that orders as the score does: IEEE bits, the negative ones turned around. */
static uint64_t key_of(double score)
{
	uint64_t u;

	score += 0.0; /* -0 is 0 */
	memcpy(&u, &score, sizeof(u));
	return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

static int by_key(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Adds up neighbours with the same key. */
static void merge(struct auc *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->cells.n; i++) {
		struct cell c = s->cells.v[i];

		if (n && s->cells.v[n - 1].key == c.key) {
			s->cells.v[n - 1].pos += c.pos;
			s->cells.v[n - 1].neg += c.neg;
		} else {
			s->cells.v[n++] = c;
		}
	}
	s->cells.n = n;
}

static void compact(struct auc *s)
{
	size_t i;

	if (!s->cells.n)
		return;
	qsort(s->cells.v, s->cells.n, sizeof(*s->cells.v), by_key);
	merge(s);
	while (s->cells.n > CELLS) { /* ends: 48 bits less leave 16 */
		s->lost++;
		for (i = 0; i < s->cells.n; i++)
			s->cells.v[i].key >>= 1;
		merge(s);
	}
}

static enum fettle_status auc_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct auc *s = m->state;
	struct metric_classes c;
	enum fettle_status st;
	size_t i;

	st = metric_classes(m, "outputs", &b->outputs[0], b->n_valid, true, &c, err);
	if (st)
		return st;
	if (c.classes != 2 || c.t->rank > 2) {
		char shape[128];

		return fail(err, FETTLE_INVALID, "cannot compute %s: outputs %s, need [N], [N,1] or [N,2]",
			    m->name, tensor_shape_text(c.t, shape, sizeof(shape)));
	}
	st = metric_labels(m, b, &c, err);
	if (st)
		return st;
	for (i = 0; i < b->n_valid; i++) {
		double score = c.columns == 1 ? tensor_get(c.t, i)
					      : tensor_get(c.t, 2 * i + 1) - tensor_get(c.t, 2 * i);
		int64_t label;

		st = metric_label(m, b, &c, i, &label, err);
		if (st)
			return st;
		if (s->cells.n == CELLS_BUFFERED)
			compact(s);
		VEC_PUSH(&s->cells, ((struct cell){ key_of(score) >> s->lost, label == 1, label == 0 }));
		s->nan |= isnan(score);
	}
	return FETTLE_OK;
}

static enum fettle_status auc_value(struct metric *m, double *value, struct err *err)
{
	struct auc *s = m->state;
	uint64_t pos = 0, neg = 0, twice = 0; /* pairs in order, counted twice for the sake of ties */
	size_t i;

	compact(s);
	for (i = 0; i < s->cells.n; i++) {
		const struct cell *c = &s->cells.v[i];

		twice += c->pos * (2 * neg + c->neg);
		pos += c->pos;
		neg += c->neg;
	}
	if (!pos || !neg)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: all %zu labels are %d, need both 0 and 1", m->name, m->n,
			    pos ? 1 : 0);
	*value = s->nan ? NAN : (double)twice / (2 * (double)pos * (double)neg);
	return FETTLE_OK;
}

static void auc_release(void *state)
{
	VEC_RELEASE(&((struct auc *)state)->cells);
}

static double auc_chance(const struct metric *m, const struct tensor *output)
{
	(void)m;
	(void)output;
	return 0.5;
}

const struct metric_type metric_type_auc = {
	.name = "auc",
	.summary = "area under the ROC curve of a two-class model",
	.needs = METRIC_LABELS,
	.higher_is_better = true,
	.state_size = sizeof(struct auc),
	.add = auc_add,
	.value = auc_value,
	.chance = auc_chance,
	.release = auc_release,
};
