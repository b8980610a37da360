/* F1, IoU and the like from counts per class: memory grows with the classes, not with the samples. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "evaluate/metric_impl.h"

enum { F1_MACRO, F1_MICRO, F1_BINARY, IOU /* the last is not a way to average F1 */ };

struct f1 {
	struct f1_counts {
		uint64_t tp, fp, fn;
	} * of;
	size_t classes, tokens;
};

static enum fettle_status f1_parse(struct metric *m, const char *param, struct err *err)
{
	static const char *const averages[] = { "macro", "micro", "binary" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(averages); i++)
		if (strcasecmp(param, averages[i]) == 0) {
			m->param = (long)i;
			if (i != F1_MACRO) /* which plain "f1" means */
				snprintf(m->name, sizeof(m->name), "f1:%s", averages[i]);
			return FETTLE_OK;
		}
	return fail(err, FETTLE_INVALID, "cannot use metric 'f1:%s': need f1:macro, f1:micro or f1:binary",
		    param);
}

static enum fettle_status f1_open(struct metric *m, const struct metric_batch *b, struct metric_classes *c,
				  struct err *err)
{
	struct f1 *s = m->state;
	enum fettle_status st = metric_classes(m, "outputs", &b->outputs[0], b->n_valid, true, c, err);

	if (st)
		return st;
	if (m->param == F1_BINARY && c->classes != 2)
		return fail(
			err, FETTLE_INVALID,
			"cannot compute %s: outputs of %zu classes, need 2; f1:macro or f1:micro take more",
			m->name, c->classes);
	if (s->of && s->classes != c->classes)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: outputs of %zu classes from sample %zu on, %zu before",
			    m->name, c->classes, m->n, s->classes);
	if (!s->of) {
		s->of = xcalloc(c->classes, sizeof(*s->of));
		s->classes = c->classes;
	}
	if (c->tokens > s->tokens)
		s->tokens = c->tokens;
	return metric_labels(m, b, c, err);
}

/* -1, no class, when the scores are NaN */
static int64_t predicted(const struct metric_classes *c, size_t i)
{
	double x;

	if (c->columns > 1)
		return metric_highest(c, i);
	x = tensor_get(c->t, i);
	return x > 0.5 ? 1 : x <= 0.5 ? 0 : -1;
}

static enum fettle_status f1_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct f1 *s = m->state;
	struct metric_classes c;
	enum fettle_status st = f1_open(m, b, &c, err);
	size_t i;

	for (i = 0; !st && i < b->n_valid * c.tokens; i++) {
		int64_t label, answer;

		st = metric_label(m, b, &c, i, &label, err);
		if (st || label == METRIC_IGNORED)
			continue;
		answer = predicted(&c, i);
		if (answer == label) {
			s->of[label].tp++;
			continue;
		}
		s->of[label].fn++;
		if (answer >= 0)
			s->of[answer].fp++;
	}
	return st;
}

static double f1_of(struct f1_counts n)
{
	uint64_t all = 2 * n.tp + n.fp + n.fn;

	return all ? 2 * (double)n.tp / (double)all : 0;
}

static double iou_of(struct f1_counts n)
{
	uint64_t all = n.tp + n.fp + n.fn;

	return all ? (double)n.tp / (double)all : 0;
}

/* Of one class. Both grow with tp and fall with fp and fn. */
static double score_of(const struct metric *m, struct f1_counts n)
{
	return m->param == IOU ? iou_of(n) : f1_of(n);
}

static enum fettle_status no_labels(const struct metric *m, struct err *err)
{
	return fail(err, FETTLE_INVALID, "cannot compute %s: every label is %d, which does not count",
		    m->name, METRIC_IGNORED);
}

static enum fettle_status f1_value(struct metric *m, double *value, struct err *err)
{
	const struct f1 *s = m->state;
	struct f1_counts all = { 0, 0, 0 };
	double sum = 0;
	size_t occur = 0, i;

	for (i = 0; i < s->classes; i++) {
		occur += s->of[i].tp || s->of[i].fp || s->of[i].fn;
		sum += score_of(m, s->of[i]);
		all.tp += s->of[i].tp;
		all.fp += s->of[i].fp;
		all.fn += s->of[i].fn;
	}
	if (!occur)
		return no_labels(m, err);
	*value = m->param == F1_BINARY  ? f1_of(s->of[1])
		 : m->param == F1_MICRO ? f1_of(all)
					: sum / (double)occur;
	return FETTLE_OK;
}

/*
 * A token more that is right adds to one class's tp, one that is wrong to one's fn and to another's fp at most. Every
 * class by itself at its best or worst gives bounds, if not the narrowest.
 */
static void f1_bounds(const struct metric *m, size_t rest, double *low, double *high)
{
	const struct f1 *s = m->state;
	uint64_t more = (uint64_t)rest * s->tokens;
	struct f1_counts all = { 0, 0, 0 };
	double least = 0, most = 0;
	size_t occur = 0, i;

	for (i = 0; i < s->classes; i++) {
		struct f1_counts n = s->of[i], best = n, worst = n;

		all.tp += n.tp;
		all.fp += n.fp;
		all.fn += n.fn;
		if (m->param == F1_BINARY && i != 1)
			continue;
		best.tp += more;
		worst.fn += more;
		occur += n.tp || n.fp || n.fn;
		least += score_of(m, worst);
		most += n.tp || n.fp || n.fn ? score_of(m, best) : 0;
	}
	if (m->param == F1_BINARY) {
		*low = least;
		*high = occur || !more ? most : 1;
	} else if (m->param == F1_MICRO) {
		struct f1_counts best = all, worst = all;

		best.tp += more;
		worst.fn += more;
		worst.fp += more;
		*low = f1_of(worst);
		*high = f1_of(best);
	} else { /* classes that have not occurred yet: all may come, at best right, at worst wrong */
		size_t unseen = s->classes - occur;

		if ((uint64_t)unseen > 2 * more)
			unseen = (size_t)(2 * more);
		*low = s->classes ? least / (double)(occur + unseen) : 0;
		*high = (most + (double)unseen) / (double)(occur + unseen ? occur + unseen : 1);
	}
}

static void f1_margins(const struct metric *m, const struct metric_batch *b, double *margins)
{
	metric_label_margins(m, b, true, 1, margins);
}

static void f1_release(void *state)
{
	free(((struct f1 *)state)->of);
}

const struct metric_type metric_type_f1 = {
	.name = "f1",
	.summary =
		"mean over the classes of the harmonic mean of precision and recall; or f1:micro, f1:binary",
	.needs = METRIC_LABELS,
	.higher_is_better = true,
	.state_size = sizeof(struct f1),
	.default_param = "macro",
	.parse = f1_parse,
	.add = f1_add,
	.value = f1_value,
	.release = f1_release,
	.counts = true,
	.bounds = f1_bounds,
	.margins = f1_margins,
};

const struct metric_type metric_type_miou = {
	.name = "miou",
	.summary = "mean over the classes of intersection over union (segmentation)",
	.needs = METRIC_LABELS,
	.higher_is_better = true,
	.state_size = sizeof(struct f1),
	.param = IOU,
	.add = f1_add,
	.value = f1_value,
	.release = f1_release,
	.counts = true,
	.bounds = f1_bounds,
	.margins = f1_margins,
};

/* The correlation of answers and labels, for any number of classes (Gorodkin 2004); 0 where one of them never varies. */
static enum fettle_status mcc_value(struct metric *m, double *value, struct err *err)
{
	const struct f1 *s = m->state;
	double right = 0, all = 0, said = 0, both = 0, is2 = 0, said2 = 0, spread;
	size_t i;

	for (i = 0; i < s->classes; i++) {
		double is = (double)(s->of[i].tp + s->of[i].fn),
		       answers = (double)(s->of[i].tp + s->of[i].fp);

		right += (double)s->of[i].tp;
		all += is;
		said += answers;
		both += is * answers;
		is2 += is * is;
		said2 += answers * answers;
	}
	if (all == 0)
		return no_labels(m, err);
	said2 += (all - said) * (all - said); /* answers that are NaN are a class that no label has */
	spread = (all * all - is2) * (all * all - said2);
	*value = spread > 0 ? (right * all - both) / sqrt(spread) : 0;
	return FETTLE_OK;
}

const struct metric_type metric_type_mcc = {
	.name = "mcc",
	.alias = "matthews",
	.summary = "Matthews correlation coefficient of answers and labels",
	.needs = METRIC_LABELS,
	.higher_is_better = true,
	.state_size = sizeof(struct f1),
	.add = f1_add,
	.value = mcc_value,
	.release = f1_release,
	.counts = true,
	.margins = f1_margins,
};
