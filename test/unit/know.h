/* Knowledge for a plan, from functions that say what a value's range and means are. */
#ifndef UNIT_KNOW_H
#define UNIT_KNOW_H

#include "unit/unit.h"

#include "quantize/subject.h"

typedef enum fettle_status (*range_fn)(void *self, const char *value, const struct qsetting *s,
				       struct range *out, struct err *err);
typedef enum fettle_status (*means_fn)(void *self, const char *value, int axis, size_t channels,
				       double *means, struct err *err);

/* Adds what the plan needs; means may be NULL, for none. */
static inline enum fettle_status know(struct statistics *s, struct quantizer *z, const struct qplan *plan,
				      range_fn range, means_fn means, void *self, struct err *err)
{
	struct needs needs = NEEDS_INIT;
	enum fettle_status st = quantizer_needs(z, plan, &needs, err);
	struct range r;
	size_t i;

	for (i = 0; i < needs.ranges.n && !st; i++) {
		st = range(self, needs.ranges.v[i].value, &needs.ranges.v[i].setting, &r, err);
		if (!st)
			statistics_set_range(s, needs.ranges.v[i].value, &needs.ranges.v[i].setting, r);
	}
	for (i = 0; i < needs.means.n && means && !st; i++) {
		const struct channel_axis *a = &needs.means.v[i];
		double *v = xcalloc(a->channels + 1, sizeof(*v));

		st = means(self, a->value, a->axis, a->channels, v, err);
		if (!st)
			statistics_set_means(s, a->value, a->axis, v, a->channels);
		free(v);
	}
	needs_release(&needs);
	return st;
}

/* The model of a plan of the subject. */
static inline enum fettle_status quantize_by(struct subject *s, const struct qplan *plan, range_fn range,
					     means_fn means, void *self, struct model **out, struct err *err)
{
	struct statistics *values = statistics_new();
	const struct knowledge k = { .values = values };
	enum fettle_status st = know(values, s->z, plan, range, means, self, err);

	if (!st)
		st = quantize(s->z, &k, plan, out, err);
	statistics_free(values);
	return st;
}

#endif
