/* A service (remote/service.h) without a network: proposes at random, and checks that each proposal is told or dropped once. */
#ifndef CONFORMANCE_SERVICE_H
#define CONFORMANCE_SERVICE_H

#include "base/mem.h"
#include "remote/service.h"
#include "sampler/sampler.h"

struct fake_service {
	struct service service; /* first */
	struct sampler *sampler;
	struct sampler_param *params;
	double *point;
	size_t n, n_suggested, n_told, n_dropped;
	bool *closed; /* [n_suggested] */
	uint64_t seed;
	struct service_experiment e;
};

static inline enum fettle_status fake_create(struct service *s, const struct service_experiment *e, char **id,
					     struct err *err)
{
	struct fake_service *f = (struct fake_service *)s;
	size_t i;

	f->e = *e;
	f->n = e->n;
	f->params = xcalloc(e->n, sizeof(*f->params));
	f->point = xcalloc(e->n, sizeof(*f->point));
	for (i = 0; i < e->n; i++)
		f->params[i] = (struct sampler_param){ .kind = SAMPLER_CATEGORICAL,
						       .options = (unsigned)e->params[i].n };
	*id = xstrdup("1");
	return sampler_new(
		&f->sampler, "random",
		&(struct sampler_options){ .params = f->params, .n_params = f->n, .seed = f->seed }, err);
}

static inline enum fettle_status fake_suggest(struct service *s, size_t *choice, char **suggestion,
					      struct err *err)
{
	struct fake_service *f = (struct fake_service *)s;
	enum fettle_status st = sampler_ask(f->sampler, f->point, err);
	size_t i;

	if (st && st != FETTLE_STOP) /* which is not for the server to say: it repeats itself */
		return st;
	for (i = 0; i < f->n; i++)
		choice[i] = (size_t)f->point[i];
	*suggestion = xstrfmt("%zu", f->n_suggested);
	f->closed = xrealloc(f->closed, f->n_suggested + 1, sizeof(*f->closed));
	f->closed[f->n_suggested++] = false;
	return FETTLE_OK;
}

static inline void fake_close(struct fake_service *f, const char *suggestion)
{
	size_t i = strtoul(suggestion, NULL, 10);

	if (i >= f->n_suggested || f->closed[i])
		fail_msg("proposal %s is unknown, or told twice", suggestion);
	f->closed[i] = true;
}

static inline enum fettle_status fake_observe(struct service *s, const char *suggestion,
					      const struct service_result *r, struct err *err)
{
	struct fake_service *f = (struct fake_service *)s;

	(void)err;
	fake_close(f, suggestion);
	f->n_told++;
	if (!r->failed && !(isfinite(r->accuracy) && isfinite(r->objective)))
		fail_msg("proposal %s: accuracy %g, objective %g", suggestion, r->accuracy, r->objective);
	return FETTLE_OK;
}

static inline enum fettle_status fake_drop(struct service *s, const char *suggestion, struct err *err)
{
	struct fake_service *f = (struct fake_service *)s;

	(void)err;
	fake_close(f, suggestion);
	f->n_dropped++;
	return FETTLE_OK;
}

static inline void fake_init(struct fake_service *f, uint64_t seed)
{
	*f = (struct fake_service){ .seed = seed };
	f->service.create = fake_create;
	f->service.suggest = fake_suggest;
	f->service.observe = fake_observe;
	f->service.drop = fake_drop;
}

/* `ended`: the run did, and was not cut off by a failure */
static inline void fake_release(struct fake_service *f, bool ended)
{
	if (ended && f->n_told + f->n_dropped != f->n_suggested)
		fail_msg("%zu proposals, but %zu told and %zu dropped", f->n_suggested, f->n_told,
			 f->n_dropped);
	sampler_free(f->sampler);
	free(f->params);
	free(f->point);
	free(f->closed);
}

#endif
