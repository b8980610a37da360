/* What the metrics of classifiers share: outputs as class scores, and labels. */
#include <inttypes.h>
#include <math.h>

#include "evaluate/metric_impl.h"

static bool as_classes(const struct tensor *t, bool single, struct metric_classes *c)
{
	int i;

	*c = (struct metric_classes){ .t = t, .lead = t->rank - 1, .tokens = 1, .pixels = t->rank > 3 };
	if (t->rank == 1) {
		c->lead = 1;
		c->columns = 1;
	} else {
		c->columns = (size_t)t->dims[c->pixels ? 1 : t->rank - 1];
	}
	if (t->rank == 3)
		c->tokens = (size_t)t->dims[1];
	for (i = 2; i < t->rank && c->pixels; i++)
		c->tokens *= (size_t)t->dims[i];
	c->classes = c->columns == 1 ? 2 : c->columns;
	if (!c->columns)
		return false;
	return c->columns > 1 || (single && t->rank < 3);
}

/* where the scores of token i begin, and how far apart they are */
static size_t first_score(const struct metric_classes *c, size_t i, size_t *step)
{
	*step = c->pixels ? c->tokens : 1;
	return c->pixels ? i / c->tokens * c->tokens * c->columns + i % c->tokens : i * c->columns;
}

double metric_class_score(const struct metric_classes *c, size_t i, size_t k)
{
	size_t step, at = first_score(c, i, &step);

	return tensor_get(c->t, at + k * step);
}

size_t metric_class_scores(const struct metric_classes *c, size_t i, size_t at, double v[METRIC_PIECE])
{
	size_t step, first = first_score(c, i, &step), n = c->columns - at, k;

	if (step == 1)
		return metric_read(c->t, first + at, n, v);
	n = n < METRIC_PIECE ? n : METRIC_PIECE;
	for (k = 0; k < n; k++)
		v[k] = tensor_get(c->t, first + (at + k) * step);
	return n;
}

enum fettle_status metric_classes(const struct metric *m, const char *what, const struct tensor *t,
				  size_t n_valid, bool single, struct metric_classes *c, struct err *err)
{
	enum fettle_status st = metric_check(m, what, t, n_valid, err);
	char shape[128];

	if (st || as_classes(t, single, c))
		return st;
	tensor_shape_text(t, shape, sizeof(shape));
	if (c->columns == 1 && t->rank < 3)
		return fail(
			err, FETTLE_INVALID,
			"cannot compute %s: %s %s, need at least 2 classes; auc or f1:binary take one score",
			m->name, what, shape);
	return fail(
		err, FETTLE_INVALID,
		"cannot compute %s: %s %s, need [N,C], [N,T,C] for tokens or [N,C,H,W] for pixels, with at "
		"least 2 classes",
		m->name, what, shape);
}

/* The lowest index wins among equals; a NaN never does. */
static void better(double x, size_t index, double *best, int64_t *winner)
{
	if (!(x > *best || (*winner < 0 && x == *best)))
		return;
	*best = x;
	*winner = (int64_t)index;
}

static int64_t highest(const struct tensor *t, size_t at, size_t n)
{
	double v[METRIC_PIECE], best = -INFINITY;
	int64_t winner = -1;
	size_t i, k, got;

	for (i = 0; i < n; i += got) {
		got = metric_read(t, at + i, n - i, v);
		for (k = 0; k < got; k++)
			better(v[k], i + k, &best, &winner);
	}
	return winner;
}

int64_t metric_highest(const struct metric_classes *c, size_t i)
{
	double v[METRIC_PIECE], best = -INFINITY;
	int64_t winner = -1;
	size_t at, k, got;

	for (at = 0; at < c->columns; at += got) {
		got = metric_class_scores(c, i, at, v);
		for (k = 0; k < got; k++)
			better(v[k], at + k, &best, &winner);
	}
	return winner;
}

double metric_margin(const struct metric_classes *c, size_t i, int64_t wanted, size_t k)
{
	double own, best = INFINITY;
	size_t passed = 0, j;

	if (c->columns == 1) /* one score for two classes: above 0.5 is class 1 */
		return wanted == 1 ? tensor_get(c->t, i) - 0.5 : 0.5 - tensor_get(c->t, i);
	own = wanted >= 0 ? metric_class_score(c, i, (size_t)wanted) : NAN;
	if (isnan(own))
		return -INFINITY;
	do { /* down to the next best, and past all that are equal to it */
		double next = -INFINITY;
		size_t equal = 0;

		for (j = 0; j < c->columns; j++) {
			double x = metric_class_score(c, i, j);

			if ((int64_t)j == wanted || !(x < best || (!passed && x == best)) || x < next)
				continue;
			equal = x > next ? 1 : equal + 1;
			next = x;
		}
		best = next;
		passed += equal;
		if (!equal) /* fewer than k others */
			break;
	} while (passed < k);
	return own - best;
}

/* Labels have the dimensions before the columns, then nothing, a 1, or a column per class. */
static bool labels_fit(const struct tensor *labels, const struct metric_classes *c)
{
	int i, skip;

	if (c->pixels) { /* [N,H,W] or [N,1,H,W] */
		skip = labels->rank == c->lead + 1 && labels->dims[1] == 1;
		for (i = 1; i < c->lead && labels->rank == c->lead + skip; i++)
			if (labels->dims[i + skip] != c->t->dims[i + 1])
				return false;
		return labels->rank == c->lead + skip;
	}
	if (labels->rank != c->lead && labels->rank != c->lead + 1)
		return false;
	for (i = 1; i < c->lead; i++)
		if (labels->dims[i] != c->t->dims[i])
			return false;
	return labels->rank == c->lead || labels->dims[c->lead] == 1 ||
	       (uint64_t)labels->dims[c->lead] == c->classes;
}

enum fettle_status metric_labels(const struct metric *m, const struct metric_batch *b,
				 const struct metric_classes *c, struct err *err)
{
	if (!labels_fit(b->labels, c) || (uint64_t)b->labels->dims[0] < b->n_valid)
		return metric_mismatch(m, c->t, "labels", b->labels,
				       c->pixels      ? "[N,H,W] or [N,1,H,W]"
				       : c->lead == 1 ? "[N], [N,1] or [N,classes]"
						      : "[N,T], [N,T,1] or [N,T,classes]",
				       err);
	return metric_check(m, "labels", b->labels, b->n_valid, err);
}

enum fettle_status metric_label(const struct metric *m, const struct metric_batch *b,
				const struct metric_classes *c, size_t i, int64_t *label, struct err *err)
{
	const struct tensor *t = b->labels;
	size_t sample = m->n + i / c->tokens;
	double x;

	if (!c->pixels && t->rank > c->lead && t->dims[c->lead] != 1) {
		*label = highest(t, i * c->classes, c->classes);
		if (*label < 0)
			return fail(err, FETTLE_INVALID,
				    "cannot compute %s: the labels of sample %zu are all NaN", m->name,
				    sample);
		return FETTLE_OK;
	}
	x = tensor_get(t, i);
	if ((x == METRIC_IGNORED && c->t->rank >= 3) ||
	    (c->pixels && x == METRIC_VOID && c->classes <= METRIC_VOID)) {
		*label = METRIC_IGNORED;
		return FETTLE_OK;
	}
	/* the outer ! also catches NaN */
	if (!(x >= 0 && x < (double)c->classes && x == floor(x)))
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: the label of sample %zu is %.17g, need a class number below "
			    "%zu (the number of classes)",
			    m->name, sample, x, c->classes);
	*label = (int64_t)x;
	return FETTLE_OK;
}

void metric_label_margins(const struct metric *m, const struct metric_batch *b, bool single, size_t k,
			  double *margins)
{
	struct metric_classes c;
	struct err ignored = ERR_INIT;
	int64_t label = 0;
	size_t i;

	if (metric_classes(m, "outputs", &b->outputs[0], b->n_valid, single, &c, &ignored) ||
	    metric_labels(m, b, &c, &ignored))
		return;
	for (i = 0; i < b->n_valid * c.tokens; i++)
		if (!metric_label(m, b, &c, i, &label, &ignored) && label != METRIC_IGNORED)
			margins[i / c.tokens] = fmin(margins[i / c.tokens], metric_margin(&c, i, label, k));
}
