#include "sampler/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "sampler/type.h"

enum {
	LEVELS = 10, /* of a float without a step, where it must have some */
};

static const struct sampler_type *const types[] = {
#define SAMPLER(id) &sampler_##id,
#include "sampler/list.h"
#undef SAMPLER
};

struct sampler {
	const struct sampler_type *type;
	struct point_space space;
	size_t n_objectives, n_constraints;
	bool maximize[SAMPLER_OBJECTIVES_MAX];
	double *point; /* between the caller's form and ours */
	void *state;
};

size_t sampler_count(void)
{
	return ARRAY_LEN(types);
}

const char *sampler_name(size_t i)
{
	return types[i]->name;
}

const char *sampler_aliases(size_t i)
{
	return types[i]->aliases;
}

bool sampler_takes_several(size_t i)
{
	return types[i]->several;
}

const char *sampler_summary(size_t i)
{
	return types[i]->summary;
}

static bool is_called(const struct sampler_type *type, const char *name)
{
	const char *alias = type->aliases;
	size_t n = strlen(name);

	if (!strcasecmp(name, type->name))
		return true;
	for (; *alias; alias += strspn(alias, " ")) {
		size_t len = strcspn(alias, " ");

		if (len == n && !strncasecmp(name, alias, n))
			return true;
		alias += len;
	}
	return false;
}

static enum fettle_status find_type(const char *name, const struct sampler_type **out, struct err *err)
{
	const char *names[ARRAY_LEN(types)], *nearest;
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++) {
		names[i] = types[i]->name;
		if (is_called(types[i], name)) {
			*out = types[i];
			return FETTLE_OK;
		}
	}
	nearest = str_nearest(name, names, ARRAY_LEN(types));
	return fail(err, FETTLE_INVALID, "cannot start sampler %s: there is none of that name%s%s", name,
		    nearest ? ", the nearest is " : "", nearest ? nearest : "");
}

static enum fettle_status check_number(const struct sampler_param *p, size_t i, struct err *err)
{
	double widest = 9007199254740992; /* 2^53 */
	const char *rule = NULL;

	if (!isfinite(p->low) || !isfinite(p->high) || !(p->low <= p->high))
		rule = "need finite bounds in order";
	else if (!isfinite(p->high - p->low))
		rule = "need bounds whose difference is finite";
	else if (p->log && !(p->low > 0))
		rule = "a log scale needs bounds above 0";
	else if (!(p->step >= 0) || (p->log && p->step > 0 && !(p->kind == SAMPLER_INTEGER && p->step == 1)))
		rule = "need a step of 0 or more, and none on a log scale";
	else if (p->kind == SAMPLER_INTEGER &&
		 (p->low != floor(p->low) || p->high != floor(p->high) || p->step != floor(p->step) ||
		  p->low < -widest || p->high > widest))
		rule = "an integer needs integers within 2^53";
	else if ((p->high - p->low) / (p->step > 0 ? p->step : 1) >= widest &&
		 (p->step > 0 || p->kind == SAMPLER_INTEGER))
		rule = "need fewer than 2^53 steps";
	if (!rule)
		return FETTLE_OK;
	return fail(err, FETTLE_INVALID,
		    "cannot start a sampler: parameter %zu from %g to %g in steps of %g, %s", i, p->low,
		    p->high, p->step, rule);
}

static enum fettle_status check_condition(const struct sampler_param *params, size_t i, struct err *err)
{
	const struct sampler_condition *when = params[i].when;
	size_t k;

	if (when->param >= i || params[when->param].kind != SAMPLER_CATEGORICAL)
		return fail(err, FETTLE_INVALID,
			    "cannot start a sampler: parameter %zu depends on %zu, need an earlier "
			    "categorical one",
			    i, when->param);
	for (k = 0; k < when->n_options; k++)
		if (when->options[k] >= params[when->param].options)
			return fail(err, FETTLE_INVALID,
				    "cannot start a sampler: parameter %zu depends on option %u of %zu, "
				    "which has %u",
				    i, when->options[k], when->param, params[when->param].options);
	return FETTLE_OK;
}

static enum fettle_status check_param(const struct sampler_param *params, size_t i, struct err *err)
{
	const struct sampler_param *p = &params[i];
	enum fettle_status st = FETTLE_OK;

	if (p->kind == SAMPLER_INTEGER || p->kind == SAMPLER_FLOAT)
		st = check_number(p, i, err);
	else if (p->kind != SAMPLER_CATEGORICAL)
		return fail(err, FETTLE_INVALID,
			    "cannot start a sampler: parameter %zu is of unknown kind %d", i, (int)p->kind);
	else if (!p->options || p->options > SAMPLER_OPTIONS_MAX)
		return fail(err, FETTLE_INVALID,
			    "cannot start a sampler: parameter %zu has %u options, need 1 to %d", i,
			    p->options, SAMPLER_OPTIONS_MAX);
	return st || !p->when ? st : check_condition(params, i, err);
}

static enum fettle_status check_options(const struct sampler_type *type, const struct sampler_options *opt,
					struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (!opt->n_params || opt->n_params > SAMPLER_PARAMS_MAX)
		return fail(err, FETTLE_INVALID, "cannot start a sampler: %zu parameters, need 1 to %d",
			    opt->n_params, SAMPLER_PARAMS_MAX);
	if (opt->n_objectives > (type->several ? SAMPLER_OBJECTIVES_MAX : 1))
		return fail(err, FETTLE_INVALID, "cannot start sampler %s: %zu objectives, it takes %d",
			    type->name, opt->n_objectives, type->several ? SAMPLER_OBJECTIVES_MAX : 1);
	if (opt->n_constraints > SAMPLER_CONSTRAINTS_MAX)
		return fail(err, FETTLE_INVALID, "cannot start a sampler: %zu constraints, need %d at most",
			    opt->n_constraints, SAMPLER_CONSTRAINTS_MAX);
	if (!(opt->tpe.gamma >= 0 && opt->tpe.gamma <= 1))
		return fail(err, FETTLE_INVALID, "cannot start a sampler: gamma %g, need 0 to 1",
			    opt->tpe.gamma);
	if (!(opt->tpe.prior_weight >= 0 && isfinite(opt->tpe.prior_weight)))
		return fail(err, FETTLE_INVALID, "cannot start a sampler: prior weight %g, need 0 or more",
			    opt->tpe.prior_weight);
	for (i = 0; !st && i < opt->n_params; i++)
		st = check_param(opt->params, i, err);
	return st;
}

enum fettle_status sampler_new(struct sampler **out, const char *name, const struct sampler_options *opt,
			       struct err *err)
{
	const struct sampler_type *type = NULL;
	struct sampler *s;
	enum fettle_status st;

	st = find_type(name, &type, err);
	if (st)
		return st;
	st = check_options(type, opt, err);
	if (st)
		return st;
	s = xcalloc(1, sizeof(*s));
	s->type = type;
	s->n_objectives = opt->n_objectives ? opt->n_objectives : 1;
	s->n_constraints = opt->n_constraints;
	memcpy(s->maximize, opt->maximize, sizeof(s->maximize));
	point_space_init(&s->space, opt->params, opt->n_params,
			 !type->listed ? 0
			 : opt->levels ? opt->levels
				       : LEVELS);
	s->point = xcalloc(s->space.n, sizeof(*s->point));
	s->state = type->start(&s->space, opt);
	*out = s;
	return FETTLE_OK;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	s->type->end(s->state);
	free(s->point);
	point_space_release(&s->space);
	free(s);
}

size_t sampler_independent(const struct sampler *s)
{
	return s->type->never_learns ? SIZE_MAX : s->type->independent ? s->type->independent(s->state) : 1;
}

enum fettle_status sampler_ask(struct sampler *s, double *point, struct err *err)
{
	size_t i;

	if (!s->type->ask(s->state, s->point))
		return fail(err, FETTLE_STOP, "cannot ask %s for a point: none is left, all %llu are known",
			    s->type->name, (unsigned long long)s->space.size);
	for (i = 0; i < s->space.n; i++)
		point[i] = isnan(s->point[i]) ? NAN : param_value(&s->space.params[i], s->point[i]);
	return FETTLE_OK;
}

/* Between the levels that a listed sampler gives to a float there are points as well: `*known` is false then. */
static enum fettle_status read_point(struct sampler *s, const double *point, bool *known, struct err *err)
{
	size_t i;

	*known = true;
	for (i = 0; i < s->space.n; i++) {
		const struct point_param *p = &s->space.params[i];

		if (!point_active(&s->space, s->point, i)) {
			s->point[i] = NAN;
			continue;
		}
		if (param_find(p, point[i], &s->point[i]))
			continue;
		if (!param_is_number(p))
			return fail(err, FETTLE_INVALID,
				    "cannot tell %s a point: option %g of parameter %zu, which has %llu",
				    s->type->name, point[i], i, (unsigned long long)p->levels);
		if (!(point[i] >= p->low && point[i] <= p->high) || p->step > 0)
			return fail(err, FETTLE_INVALID,
				    "cannot tell %s a point: %g for parameter %zu, which has %g to %g in "
				    "steps of %g",
				    s->type->name, point[i], i, p->low, p->high, p->step);
		*known = false;
	}
	return FETTLE_OK;
}

/* Low values are good from here on. False when the trial has failed. */
static bool read_result(const struct sampler *s, const struct sampler_result *from, struct sampler_result *to)
{
	size_t i;

	memset(to, 0, sizeof(*to));
	for (i = 0; i < s->n_objectives; i++) {
		if (!isfinite(from->values[i]))
			return false;
		to->values[i] = s->maximize[i] ? -from->values[i] : from->values[i];
	}
	for (i = 0; i < s->n_constraints; i++) {
		if (!isfinite(from->violations[i]))
			return false;
		to->violations[i] = from->violations[i];
	}
	return true;
}

enum fettle_status sampler_tell(struct sampler *s, const double *point, const struct sampler_result *result,
				struct err *err)
{
	struct sampler_result r;
	enum fettle_status st;
	bool known;

	st = read_point(s, point, &known, err);
	if (st)
		return st;
	if (known)
		s->type->tell(s->state, s->point, read_result(s, result, &r) ? &r : NULL);
	return FETTLE_OK;
}

size_t sampler_space_size(const struct sampler *s)
{
	return s->space.size && s->space.size < SIZE_MAX ? (size_t)s->space.size : SIZE_MAX;
}
