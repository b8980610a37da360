#include "evaluate/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "evaluate/metric_impl.h"

#define METRIC(id) extern const struct metric_type metric_type_##id;
#include "evaluate/list.h"
#undef METRIC

static const struct metric_type *const types[] = {
#define METRIC(id) &metric_type_##id,
#include "evaluate/list.h"
#undef METRIC
};

const struct metric_type *metric_type_at(size_t i)
{
	return i < ARRAY_LEN(types) ? types[i] : NULL;
}

static bool is_name(const char *s, size_t n, const char *name)
{
	return name && strlen(name) == n && strncasecmp(s, name, n) == 0;
}

static const struct metric_type *find(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++)
		if (is_name(s, n, types[i]->name) || is_name(s, n, types[i]->alias))
			return types[i];
	return NULL;
}

static enum fettle_status unknown(const char *name, struct err *err)
{
	const char *names[2 * ARRAY_LEN(types)], *near;
	struct str known = STR_INIT;
	enum fettle_status st;
	size_t i, n = 0;

	for (i = 0; i < ARRAY_LEN(types); i++) {
		names[n++] = types[i]->name;
		if (types[i]->alias)
			names[n++] = types[i]->alias;
		str_addf(&known, "%s%s", i ? ", " : "", types[i]->name);
	}
	near = str_nearest(name, names, n);
	if (near)
		st = fail(err, FETTLE_INVALID, "cannot use metric '%s': unknown, did you mean '%s'?", name,
			  near);
	else
		st = fail(err, FETTLE_INVALID, "cannot use metric '%s': unknown, need one of %s", name,
			  known.s);
	str_release(&known);
	return st;
}

bool metric_is_listed(const struct metric_type *t)
{
	size_t i;

	for (i = 0; metric_type_at(i); i++)
		if (metric_type_at(i) == t)
			return true;
	return false;
}

struct metric *metric_new_of(const struct metric_type *type)
{
	struct metric *m = xcalloc(1, sizeof(*m));

	m->type = type;
	m->param = type->param;
	m->needs = type->needs;
	memcpy(m->name, type->name, strlen(type->name) + 1);
	m->state = xcalloc(1, type->state_size);
	return m;
}

static enum fettle_status open_part(void *self, const char *name, struct metric **out, struct err *err)
{
	(void)self;
	return metric_new(out, name, err);
}

enum fettle_status metric_new(struct metric **out, const char *name, struct err *err)
{
	const char *colon = strchr(name, ':'), *param = colon ? colon + 1 : NULL;
	const struct metric_type *type = find(name, colon ? (size_t)(colon - name) : strlen(name));
	enum fettle_status st = FETTLE_OK;
	struct metric *m;

	if (strchr(name, ','))
		return metric_join(out, name, open_part, NULL, err);
	if (!type)
		return unknown(name, err);
	if (param && !type->parse)
		return fail(err, FETTLE_INVALID, "cannot use metric '%s': %s takes no parameter", name,
			    type->name);
	m = metric_new_of(type);
	if (type->parse)
		st = type->parse(m, param ? param : type->default_param, err);
	if (st)
		goto out;
	*out = m;
	m = NULL; /* now the caller's */
out:
	metric_free(m);
	return st;
}

void metric_reset(struct metric *m)
{
	size_t i;

	for (i = 0; i < metric_n_parts(m); i++)
		metric_reset(m->joint->part[i]);
	if (m->type->release)
		m->type->release(m->state);
	if (m->state)
		memset(m->state, 0, m->type->state_size);
	m->n = 0;
	m->target = 0;
	m->sum = 0;
}

void metric_free(struct metric *m)
{
	size_t i;

	if (!m)
		return;
	metric_reset(m);
	VEC_RELEASE(&m->scores);
	VEC_RELEASE(&m->selected);
	for (i = 0; i < metric_n_parts(m); i++)
		metric_free(m->joint->part[i]);
	free(m->joint);
	free(m->state);
	free(m->whole);
	free(m);
}

const struct metric_type *metric_type(const struct metric *m)
{
	return m->type;
}

const char *metric_name(const struct metric *m)
{
	return m->name;
}

bool metric_higher_is_better(const struct metric *m)
{
	return m->type->higher_is_better;
}

enum metric_needs metric_needs(const struct metric *m)
{
	return m->needs;
}

size_t metric_samples(const struct metric *m)
{
	return m->n;
}

void metric_select(struct metric *m, const size_t *outputs, size_t n)
{
	size_t i;

	m->selected.n = 0;
	for (i = 0; i < n; i++)
		VEC_PUSH(&m->selected, outputs[i]);
	for (i = 0; i < metric_n_parts(m); i++)
		metric_select(m->joint->part[i], outputs, n);
}

bool metric_looks_at(const struct metric *m, size_t output)
{
	size_t i;

	for (i = 0; i < metric_n_parts(m); i++)
		if (metric_looks_at(m->joint->part[i], output))
			return true;
	for (i = 0; i < m->selected.n; i++)
		if (m->selected.v[i] == output)
			return true;
	return !m->selected.n && !m->joint;
}

size_t metric_first_output(const struct metric *m)
{
	return m->selected.n ? m->selected.v[0] : 0;
}

double metric_chance(const struct metric *m, const struct tensor *output)
{
	return m->type->chance ? m->type->chance(m, output) : NAN;
}

/* The batch as the metric is to see it. free() *own when done with it. */
static enum fettle_status select_outputs(const struct metric *m, struct metric_batch *b, struct tensor **own,
					 struct err *err)
{
	size_t n = m->selected.n, i;

	*own = NULL;
	if (!n)
		return FETTLE_OK;
	for (i = 0; i < n; i++)
		if (m->selected.v[i] >= b->n_outputs)
			return fail(err, FETTLE_INVALID,
				    "cannot compute %s: output number %zu, there are %zu to compare", m->name,
				    m->selected.v[i] + 1, b->n_outputs);
	*own = xcalloc(2 * n, sizeof(**own));
	for (i = 0; i < n; i++) {
		(*own)[i] = b->outputs[m->selected.v[i]];
		if (b->reference)
			(*own)[n + i] = b->reference[m->selected.v[i]];
	}
	b->outputs = *own;
	b->n_outputs = n;
	if (b->reference)
		b->reference = *own + n;
	return FETTLE_OK;
}

static bool by_reference(const struct metric *m, const struct tensor *output, const struct tensor *labels)
{
	if (m->needs != METRIC_EITHER)
		return m->needs == METRIC_REFERENCE;
	return !labels || !metric_comparable(output, labels);
}

bool metric_uses_reference(const struct metric *m, const struct tensor *outputs, const struct tensor *labels)
{
	size_t i;

	for (i = 0; i < metric_n_parts(m); i++)
		if (metric_uses_reference(m->joint->part[i], outputs, labels))
			return true;
	if (m->joint)
		return false;
	return by_reference(m, &outputs[metric_first_output(m)], labels);
}

/* Which of labels and reference the batch is compared with, and that it has it. */
static enum fettle_status choose_target(const struct metric *m, struct metric_batch *b, struct err *err)
{
	bool reference;

	if (!b->n_outputs)
		return fail(err, FETTLE_INVALID, "cannot compute %s: the model has no outputs", m->name);
	reference = by_reference(m, &b->outputs[0], b->labels);
	b->target = reference ? METRIC_REFERENCE : METRIC_LABELS;
	if (reference && !b->reference && b->labels && m->needs == METRIC_EITHER)
		return metric_mismatch(m, &b->outputs[0], "labels", b->labels,
				       "numbers of the same shape, or the fp32 model's outputs", err);
	if (reference && !b->reference)
		return fail(err, FETTLE_INVALID, "cannot compute %s: no %sfp32 outputs to compare with",
			    m->name, m->needs == METRIC_EITHER ? "labels and no " : "");
	if (!reference && !b->labels && m->needs != METRIC_NOTHING)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: the data has no labels; agreement or mse need none", m->name);
	if (m->target && m->target != b->target)
		return fail(
			err, FETTLE_INVALID,
			"cannot compute %s: from sample %zu on, labels %s the outputs' shape, unlike before",
			m->name, m->n, reference ? "do not have" : "have");
	return FETTLE_OK;
}

static enum fettle_status add_scores(struct metric *m, const struct metric_batch *b, struct err *err)
{
	enum fettle_status st;
	size_t i;

	if (m->scores.cap < b->n_valid) {
		m->scores.v = xrealloc(m->scores.v, b->n_valid, sizeof(*m->scores.v));
		m->scores.cap = b->n_valid;
	}
	st = m->type->scores(m, b, m->scores.v, err);
	if (st)
		return st;
	for (i = 0; i < b->n_valid; i++)
		m->sum += m->scores.v[i];
	return FETTLE_OK;
}

enum fettle_status metric_add(struct metric *m, const struct tensor *outputs, size_t n_outputs,
			      const struct tensor *labels, const struct tensor *reference, size_t n_valid,
			      struct err *err)
{
	struct metric_batch b = { outputs, n_outputs, labels, reference, n_valid, 0 };
	struct tensor *own;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (!n_valid)
		return FETTLE_OK;
	for (i = 0; i < metric_n_parts(m) && !st; i++)
		st = metric_add(m->joint->part[i], outputs, n_outputs, labels, reference, n_valid, err);
	if (m->joint) {
		m->n += n_valid;
		return st;
	}
	st = select_outputs(m, &b, &own, err);
	if (!st)
		st = choose_target(m, &b, err);
	if (!st)
		st = m->type->is_mean ? add_scores(m, &b, err) : m->type->add(m, &b, err);
	free(own);
	if (st)
		return st;
	m->n += n_valid;
	m->target = b.target;
	return FETTLE_OK;
}

const double *metric_last_scores(const struct metric *m)
{
	return m->type->is_mean && !m->joint ? m->scores.v : NULL;
}

enum fettle_status metric_value(struct metric *m, double *value, struct err *err)
{
	if (!m->n)
		return fail(err, FETTLE_INVALID, "cannot compute %s: no samples", m->name);
	if (m->joint)
		return joint_value(m, value, err);
	if (!m->type->is_mean)
		return m->type->value(m, value, err);
	*value = m->sum / (double)m->n;
	return FETTLE_OK;
}

static void set_whole(struct metric *m, const void *state)
{
	m->whole = xrealloc(m->whole, 1, m->type->state_size);
	memcpy(m->whole, state, m->type->state_size);
}

struct metric *metric_twin(const struct metric *m)
{
	struct metric *twin;

	if (m->joint)
		return joint_twin(m);
	twin = metric_new_of(m->type);
	twin->param = m->param;
	twin->needs = m->needs;
	memcpy(twin->name, m->name, sizeof(twin->name));
	metric_select(twin, m->selected.v, m->selected.n);
	metric_set_texts(twin, m->squad, m->vocabulary);
	if (m->whole)
		set_whole(twin, m->whole);
	return twin;
}

void metric_set_texts(struct metric *m, const struct squad *s, const struct vocabulary *v)
{
	size_t i;

	for (i = 0; i < metric_n_parts(m); i++)
		metric_set_texts(m->joint->part[i], s, v);
	m->squad = s;
	m->vocabulary = v;
}

void metric_keep_whole(struct metric *m)
{
	size_t i;

	for (i = 0; i < metric_n_parts(m); i++)
		metric_keep_whole(m->joint->part[i]);
	if (m->type->has_whole)
		set_whole(m, m->state);
}

double metric_zeros(const struct metric *m)
{
	return m->type->scale && m->whole ? m->type->scale(m) : NAN;
}

/* A NaN may still come unless the type is bounded: then only failure can be certain. */
static void mean_bounds(const struct metric *m, size_t rest, double *low, double *high)
{
	const struct metric_type *t = m->type;
	double all = (double)(m->n + rest), left = (double)rest;

	*low = t->score_min > -INFINITY || !rest ? (m->sum + (rest ? left * t->score_min : 0)) / all
						 : -INFINITY;
	*high = t->score_max < INFINITY || !rest ? (m->sum + (rest ? left * t->score_max : 0)) / all
						 : INFINITY;
	if (t->bounded || !rest)
		return;
	if (t->higher_is_better)
		*low = -INFINITY;
	else
		*high = INFINITY;
}

void metric_bounds(const struct metric *m, size_t rest, double *low, double *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	if (m->joint)
		joint_bounds(m, rest, low, high);
	else if (m->type->is_mean && isnan(m->sum))
		*low = *high = NAN;
	else if (m->type->is_mean)
		mean_bounds(m, rest, low, high);
	else if (m->type->bounds && m->n)
		m->type->bounds(m, rest, low, high);
}

bool metric_next_tokens(const struct metric *m)
{
	size_t i;

	for (i = 0; i < metric_n_parts(m); i++)
		if (metric_next_tokens(m->joint->part[i]))
			return true;
	return m->type->next_tokens;
}

bool metric_any_order(const struct metric *m)
{
	return m->type->is_mean || m->type->counts;
}

void metric_margins(const struct metric *m, const struct tensor *outputs, size_t n_outputs,
		    const struct tensor *labels, const struct tensor *reference, size_t n_valid,
		    double *margins)
{
	struct metric_batch b = { outputs, n_outputs, labels, reference, n_valid, 0 };
	struct err ignored = ERR_INIT;
	struct tensor *own;
	size_t i;

	for (i = 0; i < n_valid; i++)
		margins[i] = NAN;
	if (m->type->margins && n_valid && !select_outputs(m, &b, &own, &ignored)) {
		if (!choose_target(m, &b, &ignored))
			m->type->margins(m, &b, margins);
		free(own);
	}
}

enum fettle_status metric_check(const struct metric *m, const char *what, const struct tensor *t,
				size_t n_valid, struct err *err)
{
	char shape[128];

	if (!dtype_size(t->dtype))
		return fail(err, FETTLE_INVALID, "cannot compute %s: %s of type %s, need numbers", m->name,
			    what, dtype_name(t->dtype));
	if (t->rank < 1 || tensor_count(t) < 0 || (uint64_t)t->dims[0] < n_valid)
		return fail(err, FETTLE_INVALID, "cannot compute %s: %s %s, need %zu rows", m->name, what,
			    tensor_shape_text(t, shape, sizeof(shape)), n_valid);
	return FETTLE_OK;
}

/* The next dimension after the rows that is not 1; 1 when there is none. */
static int64_t next_dim(const struct tensor *t, int *axis)
{
	while (*axis < t->rank)
		if (t->dims[(*axis)++] != 1)
			return t->dims[*axis - 1];
	return 1;
}

bool metric_comparable(const struct tensor *a, const struct tensor *b)
{
	int i = 1, j = 1;

	if (!dtype_size(a->dtype) || !dtype_size(b->dtype) || a->rank < 1 || b->rank < 1)
		return false;
	while (i < a->rank || j < b->rank)
		if (next_dim(a, &i) != next_dim(b, &j))
			return false;
	return true;
}

enum fettle_status metric_mismatch(const struct metric *m, const struct tensor *outputs, const char *what,
				   const struct tensor *t, const char *rule, struct err *err)
{
	char a[128], b[128];

	return fail(err, FETTLE_INVALID, "cannot compute %s: outputs %s, %s %s of %s, need %s", m->name,
		    tensor_shape_text(outputs, a, sizeof(a)), what, tensor_shape_text(t, b, sizeof(b)),
		    dtype_name(t->dtype), rule);
}

size_t metric_read(const struct tensor *t, size_t at, size_t n, double v[METRIC_PIECE])
{
	const float *f = t->data;
	size_t i;

	if (n > METRIC_PIECE)
		n = METRIC_PIECE;
	if (t->dtype == DT_F32)
		for (i = 0; i < n; i++)
			v[i] = f[at + i];
	else
		for (i = 0; i < n; i++)
			v[i] = tensor_get(t, at + i);
	return n;
}
