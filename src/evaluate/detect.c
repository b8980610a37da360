#include "evaluate/detect.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* by class, by image, the best score first */
static int by_class(const void *x, const void *y)
{
	const struct detect_object *a = x, *b = y;

	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

/* A detection with its verdicts: bit k is for the k-th overlap. */
struct verdict {
	double score;
	uint64_t right, ignored;
	size_t n;
};

static int by_score(const void *x, const void *y)
{
	const struct verdict *a = x, *b = y;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

static double overlap(const struct detect_object *found, const struct detect_object *there)
{
	const double *a = found->box, *b = there->box;
	double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]), both,
	       one = (a[2] - a[0]) * (a[3] - a[1]), other = (b[2] - b[0]) * (b[3] - b[1]);

	if (!(h > 0 && w > 0))
		return 0;
	both = h * w;
	return both / (there->crowd ? one : one + other - both);
}

/* One class: the objects and the detections of the images, one after the other. */
struct class
{
	struct detect_object *there, *found;
	size_t n_there, n_found, counted;
	VEC(struct verdict) verdicts;
};

static bool counts(const struct detect_object *o, const struct detect_rule *rule)
{
	return !o->crowd && o->area >= rule->area[0] && o->area <= rule->area[1];
}

/* The object that a detection takes: the one it overlaps most of those that count, else of the others; n: none. */
static size_t best(const struct detect_object *found, const struct detect_object *there, size_t n,
		   const bool *taken, double enough, const struct detect_rule *rule)
{
	double most = fmin(enough, 1 - 1e-10), here;
	size_t chosen = n, i;
	bool ignored;

	for (ignored = false;; ignored = true) {
		for (i = 0; i < n; i++) {
			if (counts(&there[i], rule) == ignored || (taken[i] && !there[i].crowd))
				continue;
			here = overlap(found, &there[i]);
			if (here < most)
				continue;
			most = here;
			chosen = i;
		}
		if (chosen < n || ignored)
			return chosen;
	}
}

static void match_image(struct class *c, const struct detect_object *there, size_t n_there,
			const struct detect_object *found, size_t n_found, const struct detect_rule *rule)
{
	const size_t first = c->verdicts.n;
	bool *taken = xcalloc(n_there + 1, sizeof(*taken));
	size_t i, k, to;

	for (i = 0; i < n_there; i++)
		c->counted += counts(&there[i], rule);
	for (i = 0; i < n_found && i < rule->most; i++)
		VEC_PUSH(&c->verdicts, ((struct verdict){ .score = found[i].score, .n = c->verdicts.n }));
	for (k = 0; k < rule->n_iou; k++) {
		for (i = 0; i < n_there; i++)
			taken[i] = false;
		for (i = 0; first + i < c->verdicts.n; i++) {
			struct verdict *v = &c->verdicts.v[first + i];

			to = best(&found[i], there, n_there, taken, rule->iou[k], rule);
			if (to < n_there)
				taken[to] = true;
			if (to < n_there && counts(&there[to], rule))
				v->right |= UINT64_C(1) << k;
			else if (to < n_there || found[i].area < rule->area[0] ||
				 found[i].area > rule->area[1])
				v->ignored |= UINT64_C(1) << k;
		}
	}
	free(taken);
}

static size_t run_of(const struct detect_object *v, size_t n, size_t image)
{
	size_t i;

	for (i = 0; i < n && v[i].image == image; i++)
		;
	return i;
}

static void match_class(struct class *c, const struct detect_rule *rule)
{
	size_t t = 0, f = 0, nt, nf, image;

	while (t < c->n_there || f < c->n_found) {
		image = SIZE_MAX;
		if (t < c->n_there)
			image = c->there[t].image;
		if (f < c->n_found && c->found[f].image < image)
			image = c->found[f].image;
		nt = run_of(c->there + t, c->n_there - t, image);
		nf = run_of(c->found + f, c->n_found - f, image);
		match_image(c, c->there + t, nt, c->found + f, nf, rule);
		t += nt;
		f += nf;
	}
}

/* The area below the curve: it falls only, so from the right each precision is the best that is still to come. */
static double area(const double *recall, const double *precision, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += (recall[i] - (i ? recall[i - 1] : 0)) * precision[i];
	return sum;
}

/* The mean of the precisions at recalls from 0 to 1; 0 where that recall was never reached. */
static double at_points(const double *recall, const double *precision, size_t n, size_t points)
{
	double sum = 0, step = 1 / (double)(points - 1);
	size_t i = 0, k;

	for (k = 0; k < points; k++) {
		while (i < n && recall[i] < (k + 1 < points ? (double)k * step : 1))
			i++;
		if (i == n)
			break;
		sum += precision[i];
	}
	return sum / (double)points;
}

static double score_class(const struct class *c, size_t k, const struct detect_rule *rule)
{
	double *recall = xcalloc(2 * c->verdicts.n + 1, sizeof(*recall)), *precision = recall + c->verdicts.n,
	       right = 0, wrong = 0, out;
	size_t n = 0, i;

	for (i = 0; i < c->verdicts.n; i++) {
		const struct verdict *v = &c->verdicts.v[i];

		if (v->ignored >> k & 1)
			continue;
		if (v->right >> k & 1)
			right++;
		else
			wrong++;
		recall[n] = right / (double)c->counted;
		precision[n++] = right / (right + wrong);
	}
	for (i = n; i-- > 1;)
		precision[i - 1] = fmax(precision[i - 1], precision[i]);
	out = rule->recall   ? right / (double)c->counted
	      : rule->points ? at_points(recall, precision, n, rule->points)
			     : area(recall, precision, n);
	free(recall);
	return out;
}

static size_t class_of(const struct detect_object *v, size_t n, double class)
{
	size_t i;

	for (i = 0; i < n && v[i].class == class; i++)
		;
	return i;
}

double detect_score(struct detect *d, const struct detect_rule *rule)
{
	size_t t = 0, f = 0, classes = 0, k;
	double sum = 0;

	if (d->there.n)
		qsort(d->there.v, d->there.n, sizeof(*d->there.v), by_class);
	if (d->found.n)
		qsort(d->found.v, d->found.n, sizeof(*d->found.v), by_class);
	while (t < d->there.n) { /* classes that are only detected count for nothing */
		struct class c = { .there = d->there.v + t };
		double class = d->there.v[t].class;

		while (f < d->found.n && d->found.v[f].class < class)
			f++;
		c.found = d->found.v + f;
		c.n_there = class_of(c.there, d->there.n - t, class);
		c.n_found = class_of(c.found, d->found.n - f, class);
		match_class(&c, rule);
		if (c.verdicts.n)
			qsort(c.verdicts.v, c.verdicts.n, sizeof(*c.verdicts.v), by_score);
		for (k = 0; c.counted && k < rule->n_iou; k++)
			sum += score_class(&c, k, rule);
		classes += c.counted > 0;
		t += c.n_there;
		f += c.n_found;
		VEC_RELEASE(&c.verdicts);
	}
	return classes ? sum / (double)classes / (double)rule->n_iou : NAN;
}

void detect_release(struct detect *d)
{
	VEC_RELEASE(&d->there);
	VEC_RELEASE(&d->found);
}
