/* Spearman's rank correlation. Ranks need all pairs at once: memory grows with the elements that are compared. */
#include <math.h>
#include <stdlib.h>

#include "evaluate/metric_impl.h"

struct pair {
	double a, b, rank;
};
struct spearman {
	VEC(struct pair) pairs;
};

static void add_rows(struct spearman *s, const struct tensor *a, const struct tensor *b, size_t n_valid)
{
	size_t n = (size_t)tensor_count(a) / (size_t)a->dims[0] * n_valid, i, k, got;
	double va[METRIC_PIECE], vb[METRIC_PIECE];

	for (i = 0; i < n; i += got) {
		got = metric_read(a, i, n - i, va);
		metric_read(b, i, n - i, vb);
		for (k = 0; k < got; k++)
			VEC_PUSH(&s->pairs, ((struct pair){ va[k], vb[k], 0 }));
	}
}

static enum fettle_status spearman_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	enum fettle_status st = metric_check_pairs(m, b, err);
	size_t i;

	if (st)
		return st;
	if (b->target == METRIC_LABELS)
		add_rows(m->state, &b->outputs[0], b->labels, b->n_valid);
	else
		for (i = 0; i < b->n_outputs; i++)
			add_rows(m->state, &b->outputs[i], &b->reference[i], b->n_valid);
	return FETTLE_OK;
}

static int by_a(const void *x, const void *y)
{
	double a = ((const struct pair *)x)->a, b = ((const struct pair *)y)->a;

	return (a > b) - (a < b);
}

/* Replaces each a by its rank, which equal ones share, and swaps a and b. */
static void rank_and_swap(struct pair *v, size_t n)
{
	size_t i, j, k;
	double b;

	qsort(v, n, sizeof(*v), by_a);
	for (i = 0; i < n; i = j) {
		for (j = i; j < n && v[j].a == v[i].a; j++)
			;
		for (k = i; k < j; k++)
			v[k].rank = (double)(i + j - 1) / 2;
	}
	for (i = 0; i < n; i++) {
		b = v[i].b;
		v[i].b = v[i].rank;
		v[i].a = b;
	}
}

static enum fettle_status spearman_value(struct metric *m, double *value, struct err *err)
{
	const struct spearman *s = m->state;
	size_t n = s->pairs.n, i;
	double middle = ((double)n - 1) / 2, aa = 0, bb = 0, ab = 0;
	struct pair *v;

	if (!n)
		return fail(err, FETTLE_INVALID, "cannot compute %s: the outputs have no elements", m->name);
	v = xcalloc(n, sizeof(*v));
	for (i = 0; i < n; i++) {
		v[i] = s->pairs.v[i];
		if (isnan(v[i].a) || isnan(v[i].b)) {
			*value = NAN;
			goto out;
		}
	}
	rank_and_swap(v, n);
	rank_and_swap(v, n);
	for (i = 0; i < n; i++) {
		aa += (v[i].a - middle) * (v[i].a - middle);
		bb += (v[i].b - middle) * (v[i].b - middle);
		ab += (v[i].a - middle) * (v[i].b - middle);
	}
	*value = aa == 0 || bb == 0 ? 0 : fmin(1, fmax(-1, ab / sqrt(aa * bb)));
out:
	free(v);
	return FETTLE_OK;
}

static void spearman_release(void *state)
{
	VEC_RELEASE(&((struct spearman *)state)->pairs);
}

const struct metric_type metric_type_spearman = {
	.name = "spearman",
	.summary = "correlation of the ranks",
	.needs = METRIC_EITHER,
	.higher_is_better = true,
	.state_size = sizeof(struct spearman),
	.add = spearman_add,
	.value = spearman_value,
	.release = spearman_release,
};
