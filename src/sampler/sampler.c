#include "sampler/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sampler/type.h"

static const struct sampler_type *const types[] = {
#define SAMPLER(id) &sampler_##id,
#include "sampler/list.h"
#undef SAMPLER
};

struct sampler {
	const struct sampler_type *type;
	struct point_space space;
	bool maximize;
	uint16_t *point; /* between the caller's form and ours */
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

const char *sampler_summary(size_t i)
{
	return types[i]->summary;
}

static enum fettle_status find_type(const char *name, const struct sampler_type **out, struct err *err)
{
	const char *names[ARRAY_LEN(types)], *nearest;
	size_t i;

	for (i = 0; i < ARRAY_LEN(types); i++) {
		names[i] = types[i]->name;
		if (!strcmp(name, names[i])) {
			*out = types[i];
			return FETTLE_OK;
		}
	}
	nearest = str_nearest(name, names, ARRAY_LEN(types));
	return fail(err, FETTLE_INVALID, "cannot start sampler %s: there is none of that name%s%s", name,
		    nearest ? ", the nearest is " : "", nearest ? nearest : "");
}

static enum fettle_status check_params(const struct sampler_options *opt, struct err *err)
{
	size_t i;

	if (!opt->n_params || opt->n_params > SAMPLER_PARAMS_MAX)
		return fail(err, FETTLE_INVALID, "cannot start a sampler: %zu parameters, need 1 to %d",
			    opt->n_params, SAMPLER_PARAMS_MAX);
	if (!(opt->tpe.gamma >= 0 && opt->tpe.gamma <= 1))
		return fail(err, FETTLE_INVALID, "cannot start a sampler: gamma %g, need 0 to 1",
			    opt->tpe.gamma);
	if (!(opt->tpe.prior_weight >= 0 && isfinite(opt->tpe.prior_weight)))
		return fail(err, FETTLE_INVALID, "cannot start a sampler: prior weight %g, need 0 or more",
			    opt->tpe.prior_weight);
	for (i = 0; i < opt->n_params; i++) {
		const struct sampler_param *p = &opt->params[i];

		if (p->kind != SAMPLER_CATEGORICAL)
			return fail(err, FETTLE_INVALID,
				    "cannot start a sampler: parameter %zu is of unknown kind %d", i,
				    (int)p->kind);
		if (!p->options || p->options > SAMPLER_OPTIONS_MAX)
			return fail(err, FETTLE_INVALID,
				    "cannot start a sampler: parameter %zu has %u options, need 1 to %d", i,
				    p->options, SAMPLER_OPTIONS_MAX);
	}
	return FETTLE_OK;
}

enum fettle_status sampler_new(struct sampler **out, const char *name, const struct sampler_options *opt,
			       struct err *err)
{
	const struct sampler_type *type = NULL;
	struct sampler *s;
	enum fettle_status st;
	size_t i;

	st = find_type(name, &type, err);
	if (st)
		return st;
	st = check_params(opt, err);
	if (st)
		return st;
	s = xcalloc(1, sizeof(*s));
	s->type = type;
	s->maximize = opt->maximize;
	s->space.n = opt->n_params;
	s->space.options = xcalloc(s->space.n, sizeof(*s->space.options));
	for (i = 0; i < s->space.n; i++)
		s->space.options[i] = opt->params[i].options;
	point_space_measure(&s->space);
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
	free(s->space.options);
	free(s);
}

enum fettle_status sampler_ask(struct sampler *s, unsigned *point, struct err *err)
{
	size_t i;

	if (!s->type->ask(s->state, s->point))
		return fail(err, FETTLE_STOP, "cannot ask %s for a point: none is left, all %llu are known",
			    s->type->name, (unsigned long long)s->space.size);
	for (i = 0; i < s->space.n; i++)
		point[i] = s->point[i];
	return FETTLE_OK;
}

enum fettle_status sampler_tell(struct sampler *s, const unsigned *point, double value, struct err *err)
{
	size_t i;

	for (i = 0; i < s->space.n; i++) {
		if (point[i] >= s->space.options[i])
			return fail(err, FETTLE_INVALID,
				    "cannot tell %s a point: option %u of parameter %zu, which has %u",
				    s->type->name, point[i], i, s->space.options[i]);
		s->point[i] = (uint16_t)point[i];
	}
	if (!isfinite(value))
		value = NAN;
	s->type->tell(s->state, s->point, s->maximize ? -value : value);
	return FETTLE_OK;
}

size_t sampler_space_size(const struct sampler *s)
{
	return s->space.size && s->space.size < SIZE_MAX ? (size_t)s->space.size : SIZE_MAX;
}
