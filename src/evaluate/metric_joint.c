/*
 * Several metrics as one. Without weights, the value is what the worst of them kept of the fp32 model's: 1 is as good
 * as fp32, and a loss of 0.01 is what the criterion allows or not. So "each metric meets its target" is one comparison.
 * With weights, the value is their weighted mean; where directions differ, what is better when lower counts as its negative.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "evaluate/metric_impl.h"

static enum fettle_status read_weight(const char **part, const char *name, double *weight, struct err *err)
{
	const char *star = strchr(*part, '*');
	char *end;

	*weight = NAN;
	if (!star)
		return FETTLE_OK;
	*weight = strtod(*part, &end);
	if (end != star || !(*weight > 0) || isinf(*weight))
		return fail(err, FETTLE_INVALID,
			    "cannot use metric '%s': weight '%.*s', need a number above 0", name,
			    (int)(star - *part), *part);
	*part = star + 1;
	return FETTLE_OK;
}

static enum fettle_status add_part(struct metric *m, const char *text, const char *name, metric_open_fn open,
				   void *self, struct err *err)
{
	struct metric_joint *j = m->joint;
	enum fettle_status st;

	if (j->n == METRICS_MAX)
		return fail(err, FETTLE_INVALID, "cannot use metric '%s': more than %d metrics", name,
			    METRICS_MAX);
	st = read_weight(&text, name, &j->weight[j->n], err);
	if (!st)
		st = open(self, text, &j->part[j->n], err);
	if (!st)
		j->n++;
	return st;
}

/* That they can be one, and what is known of it. */
static enum fettle_status describe(struct metric *m, const char *name, struct err *err)
{
	struct metric_joint *j = m->joint;
	struct str text = STR_INIT;
	size_t i;

	j->type = (struct metric_type){ .name = "several", .higher_is_better = true };
	j->weighted = !isnan(j->weight[0]);
	for (i = 0; i < j->n; i++) {
		if (isnan(j->weight[i]) == j->weighted)
			return fail(err, FETTLE_INVALID,
				    "cannot use metric '%s': some have a weight, need all or none", name);
		j->mixed |= metric_higher_is_better(j->part[i]) != metric_higher_is_better(j->part[0]);
		m->needs |= metric_needs(j->part[i]);
	}
	for (i = 0; i < j->n; i++) {
		if (j->weighted)
			str_addf(&text, "%s%.6g*%s", i ? "," : "", j->weight[i], metric_name(j->part[i]));
		else
			str_addf(&text, "%s%s", i ? "," : "", metric_name(j->part[i]));
	}
	if (j->weighted && !j->mixed)
		j->type.higher_is_better = metric_higher_is_better(j->part[0]);
	if (text.n < sizeof(m->name))
		memcpy(m->name, text.s, text.n + 1);
	i = text.n;
	str_release(&text);
	return i < sizeof(m->name)
		       ? FETTLE_OK
		       : fail(err, FETTLE_INVALID,
			      "cannot use metric '%s': its name has %zu characters, need less than %zu", name,
			      i, sizeof(m->name));
}

enum fettle_status metric_join(struct metric **out, const char *name, metric_open_fn open, void *self,
			       struct err *err)
{
	struct metric *m = xcalloc(1, sizeof(*m));
	char *copy = xstrdup(name), *at = copy, *part;
	enum fettle_status st = FETTLE_OK;

	m->joint = xcalloc(1, sizeof(*m->joint));
	m->type = &m->joint->type;
	while ((part = strsep(&at, ",")) && !st)
		st = add_part(m, part + strspn(part, " "), name, open, self, err);
	if (!st)
		st = describe(m, name, err);
	free(copy);
	if (!st)
		*out = m;
	else
		metric_free(m);
	return st;
}

struct metric *joint_twin(const struct metric *m)
{
	struct metric *twin = xcalloc(1, sizeof(*twin));
	size_t i;

	twin->joint = xmalloc(sizeof(*twin->joint));
	*twin->joint = *m->joint;
	twin->type = &twin->joint->type;
	memcpy(twin->name, m->name, sizeof(twin->name));
	for (i = 0; i < m->joint->n; i++)
		twin->joint->part[i] = metric_twin(m->joint->part[i]);
	return twin;
}

size_t metric_n_parts(const struct metric *m)
{
	return m && m->joint ? m->joint->n : 0;
}

struct metric *metric_part(const struct metric *m, size_t i)
{
	return m->joint->part[i];
}

enum fettle_status metric_set_base(struct metric *m, const double *values, bool relative, struct err *err)
{
	struct metric_joint *j = m->joint;
	size_t i;

	for (i = 0; i < j->n && !j->weighted; i++) {
		if (isnan(values[i]))
			return fail(err, FETTLE_INVALID, "cannot tune: the fp32 model's %s is not a number",
				    metric_name(j->part[i]));
		if (relative && values[i] == 0)
			return fail(
				err, FETTLE_INVALID,
				"cannot tune: the baseline's %s is 0, no loss can be relative to it; use an "
				"absolute criterion",
				metric_name(j->part[i]));
		j->base[i] = values[i];
	}
	j->relative = relative;
	j->has_base = !j->weighted;
	return FETTLE_OK;
}

/* 1 less what is lost against fp32 */
static double kept(const struct metric_joint *j, size_t i, double value)
{
	double gain = metric_higher_is_better(j->part[i]) ? value - j->base[i] : j->base[i] - value;

	return 1 + (j->relative ? gain / fabs(j->base[i]) : gain);
}

/* The value, from those of the parts. */
static double combine(const struct metric_joint *j, const double *values)
{
	double sum = 0, weights = 0, worst = INFINITY;
	size_t i;

	if (!j->weighted && !j->has_base)
		return NAN;
	for (i = 0; i < j->n; i++) {
		if (isnan(values[i]))
			return NAN;
		sum += j->weight[i] *
		       (j->mixed && !metric_higher_is_better(j->part[i]) ? -values[i] : values[i]);
		weights += j->weight[i];
		worst = fmin(worst, j->weighted ? 0 : kept(j, i, values[i]));
	}
	return j->weighted ? sum / weights : worst;
}

enum fettle_status joint_value(struct metric *m, double *value, struct err *err)
{
	double values[METRICS_MAX];
	enum fettle_status st = metric_values(m, values, err);

	if (!st)
		*value = combine(m->joint, values);
	return st;
}

enum fettle_status metric_values(struct metric *m, double *values, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < metric_n_parts(m) && !st; i++)
		st = metric_value(m->joint->part[i], &values[i], err);
	return st;
}

void joint_bounds(const struct metric *m, size_t rest, double *low, double *high)
{
	const struct metric_joint *j = m->joint;
	double bad[METRICS_MAX], good[METRICS_MAX], a, b;
	const bool up = j->type.higher_is_better;
	size_t i;

	for (i = 0; i < j->n; i++) {
		metric_bounds(j->part[i], rest, &a, &b);
		bad[i] = metric_higher_is_better(j->part[i]) ? a : b;
		good[i] = metric_higher_is_better(j->part[i]) ? b : a;
	}
	a = combine(j, bad);
	b = combine(j, good);
	*low = up ? a : b;
	*high = up ? b : a;
}
