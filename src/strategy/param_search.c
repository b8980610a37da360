#include "strategy/param_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "sampler/sampler.h"
#include "strategy/stages.h"

/* Trials that are asked for at once. Neither depends on how many are run side by side, so the answer does not. */
enum { WIDTH = 8, SAMPLED_WIDTH = 4 };

struct work {
	struct search *s;
	const struct param_search *p;
	struct arena arena;
	struct map seen; /* identity -> index in firsts */
	VEC(struct settings) firsts;
};

/* ---- trying settings ---- */

/* The plan of settings, or of those that come to the same and were tried first. */
static enum fettle_status plan_of(struct work *w, const struct settings *s, struct plan *out)
{
	struct err *err = search_err(w->s);
	enum fettle_status st = settings_plan(s, w->p->space, out, err);
	char *text;
	size_t i;

	if (st || !w->p->identity)
		return st;
	text = w->p->identity(w->p->self, out);
	i = map_get(&w->seen, text);
	if (i == MAP_NONE) {
		i = w->firsts.n;
		map_set(&w->seen, arena_strdup(&w->arena, text), i);
		VEC_PUSH(&w->firsts, *s);
	}
	free(text);
	return settings_plan(&w->firsts.v[i], w->p->space, out, err);
}

/* Those of one kind at a time; scores in their order. */
static enum fettle_status try_settings(struct work *w, const struct settings *v, size_t n,
				       struct score *scores)
{
	struct plan plans[WIDTH] = { PLAN_INIT };
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < n; i++) {
		st = st ? st : plan_of(w, &v[i], &plans[i]);
		scores[i] = (struct score){ .failed = true, .accuracy = NAN, .loss = NAN, .objective = NAN };
	}
	for (i = 0; i < n && !st; i += k) {
		for (k = 0; i + k < n && !settings_on(&v[i + k], SET_AUTO_MP); k++)
			;
		if (k)
			st = search_try_all(w->s, &plans[i], k, &scores[i]);
		else
			st = mixed_precision(w->s, &plans[i], &scores[i]);
		k = k ? k : 1;
	}
	for (i = 0; i < n; i++)
		plan_release(&plans[i]);
	return st;
}

static enum fettle_status try_list(struct work *w, const struct settings *v, size_t n, struct score *scores)
{
	struct score unwanted[WIDTH];
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < n && !st; i += k) {
		k = n - i < WIDTH ? n - i : WIDTH;
		st = try_settings(w, &v[i], k, scores ? &scores[i] : unwanted);
	}
	return st;
}

/* ---- in which order ---- */

struct drawn {
	double key;
	struct settings s;
};

static int by_key(const void *a, const void *b)
{
	double x = ((const struct drawn *)a)->key, y = ((const struct drawn *)b)->key;

	return x < y ? -1 : x > y;
}

/* drawn without replacement, each with a chance of one over its cost (Efraimidis and Spirakis 2006) */
static struct settings *shuffled(const struct settings_list *l, uint64_t seed)
{
	struct drawn *drawn = xcalloc(l->n, sizeof(*drawn));
	struct settings *out = xcalloc(l->n, sizeof(*out));
	struct rng r;
	size_t i;

	rng_seed(&r, seed);
	for (i = 0; i < l->n; i++)
		drawn[i] = (struct drawn){ -log(1 - rng_unit(&r)) * settings_cost(&l->v[i]), l->v[i] };
	qsort(drawn, l->n, sizeof(*drawn), by_key);
	for (i = 0; i < l->n; i++)
		out[i] = drawn[i].s;
	free(drawn);
	return out;
}

/* The spaces as a sampler sees them: which space, then each of its settings, as far as it has a meaning. */
struct sampled {
	const struct param_search *p;
	struct sampler_param *params;
	struct sampler_condition *when;
	unsigned (*options)[32]; /* that a condition names */
	double *point;
	size_t n;
};

static size_t n_values(const struct settings_space *space, int which)
{
	if (space->n_pairs && which == SET_ITERATIONS)
		return space->n_pairs;
	if (space->n_pairs && which == SET_LEARNING_RATE)
		return 1;
	return space->list[which].n ? space->list[which].n : 1;
}

static double value_at(const struct settings_space *space, int which, size_t i)
{
	if (space->n_pairs && which == SET_ITERATIONS)
		return space->pairs[i][0];
	return space->list[which].n ? space->list[which].v[i] : setting_infos[which].first;
}

static void describe_param(struct sampled *x, size_t space, int which)
{
	const struct settings_space *sp = &x->p->spaces[space];
	const struct setting_info *info = &setting_infos[which];
	size_t at = 1 + space * SETTINGS + (size_t)which, i;
	struct sampler_condition *c = &x->when[at];

	x->params[at] = (struct sampler_param){ SAMPLER_CATEGORICAL, .options = (unsigned)n_values(sp, which),
						.when = c };
	c->options = x->options[at];
	if (info->when == SETTINGS) { /* of this space */
		c->param = 0;
		x->options[at][c->n_options++] = (unsigned)space;
		return;
	}
	c->param = 1 + space * SETTINGS + (size_t)info->when;
	for (i = 0; i < n_values(sp, (int)info->when) && c->n_options < 32; i++)
		if (info->values >> (unsigned)value_at(sp, (int)info->when, i) & 1)
			x->options[at][c->n_options++] = (unsigned)i;
	if (!c->n_options) { /* it never has a meaning: one value, of this space, which normalising takes away */
		x->params[at].options = 1;
		c->param = 0;
		x->options[at][c->n_options++] = (unsigned)space;
	}
}

static struct settings settings_of(const struct sampled *x)
{
	size_t space = (size_t)x->point[0];
	const struct settings_space *sp = &x->p->spaces[space];
	struct settings s;
	int i;

	for (i = 0; i < SETTINGS; i++) {
		double option = x->point[1 + space * SETTINGS + (size_t)i];

		s.v[i] = isnan(option) ? NAN : value_at(sp, i, (size_t)option);
		if (i == SET_LEARNING_RATE && sp->n_pairs && !isnan(option)) /* chosen with its partner */
			s.v[i] = sp->pairs[(size_t)x->point[1 + space * SETTINGS + SET_ITERATIONS]][1];
	}
	settings_normalise(&s);
	return s;
}

static void sampled_init(struct sampled *x, const struct param_search *p)
{
	size_t i;
	int k;

	x->p = p;
	x->n = 1 + p->n_spaces * SETTINGS;
	x->params = xcalloc(x->n, sizeof(*x->params));
	x->when = xcalloc(x->n, sizeof(*x->when));
	x->options = xcalloc(x->n, sizeof(*x->options));
	x->point = xcalloc(x->n, sizeof(*x->point));
	x->params[0] = (struct sampler_param){ SAMPLER_CATEGORICAL, .options = (unsigned)p->n_spaces };
	for (i = 0; i < p->n_spaces; i++)
		for (k = 0; k < SETTINGS; k++)
			describe_param(x, i, k);
}

static void sampled_release(struct sampled *x)
{
	free(x->params);
	free(x->when);
	free(x->options);
	free(x->point);
}

/* Asks the sampler, tries, and reports back, a few at a time, until nothing is left or `most` are tried. */
static enum fettle_status study(struct work *w, const char *name, const struct sampler_options *o,
				double *point, struct settings (*settings)(const void *self),
				const void *self, size_t most)
{
	double *points = xcalloc(SAMPLED_WIDTH * o->n_params, sizeof(*points));
	struct settings v[SAMPLED_WIDTH];
	struct score scores[SAMPLED_WIDTH];
	struct sampler *sampler = NULL;
	struct err *err = search_err(w->s);
	size_t done = 0, n = 1, i;
	enum fettle_status st;

	st = sampler_new(&sampler, name, o, err);
	while (!st && n && done < most) {
		for (n = 0; n < SAMPLED_WIDTH && done + n < most; n++) {
			st = sampler_ask(sampler, point, err);
			if (st)
				break;
			memcpy(points + n * o->n_params, point, o->n_params * sizeof(*point));
			v[n] = settings(self);
		}
		if (st && st != FETTLE_STOP)
			break;
		st = try_settings(w, v, n, scores);
		for (i = 0; i < n && !st; i++)
			st = sampler_tell(sampler, points + i * o->n_params,
					  &(struct sampler_result){ .values = { scores[i].loss } }, err);
		done += n;
	}
	sampler_free(sampler);
	free(points);
	return st;
}

static struct settings sampled_settings(const void *self)
{
	return settings_of(self);
}

static enum fettle_status run_sampler(struct work *w)
{
	struct sampled x = { .n = 0 };
	struct sampler_options o = { .seed = search_options(w->s)->seed };
	enum fettle_status st;

	sampled_init(&x, w->p);
	o.params = x.params;
	o.n_params = x.n;
	st = study(w, w->p->algorithm, &o, x.point, sampled_settings, &x, SIZE_MAX);
	sampled_release(&x);
	return st;
}

/* ---- advanced_fastft_search ---- */

struct advanced {
	struct settings base;
	enum setting which[2]; /* parameter of the study -> setting */
	size_t n;
	double point[2];
};

static struct settings advanced_settings(const void *self)
{
	const struct advanced *a = self;
	struct settings s = a->base;
	size_t i;

	for (i = 0; i < a->n; i++)
		s.v[a->which[i]] = a->point[i];
	return s;
}

static enum fettle_status run_advanced(struct work *w)
{
	const struct param_search *p = w->p;
	struct advanced a = { .base = p->list->v[0] };
	struct sampler_param params[2];
	struct sampler_options o = { .params = params, .seed = search_options(w->s)->seed };

	if (p->iterations[0] < p->iterations[1]) {
		params[a.n] = (struct sampler_param){ SAMPLER_INTEGER, .low = p->iterations[0],
						      .high = p->iterations[1] };
		a.which[a.n++] = SET_ITERATIONS;
	}
	if (p->learning_rate[0] < p->learning_rate[1]) {
		params[a.n] = (struct sampler_param){ SAMPLER_FLOAT, .low = p->learning_rate[0],
						      .high = p->learning_rate[1], .log = true };
		a.which[a.n++] = SET_LEARNING_RATE;
	}
	o.n_params = a.n;
	return study(w, p->sampler, &o, a.point, advanced_settings, &a, p->n_trials);
}

/* ---- two stages ---- */

static struct settings without_finetuning(struct settings s)
{
	s.v[SET_FAST_FT] = 0;
	settings_normalise(&s);
	return s;
}

/* one's fine-tuning on top of the other */
static struct settings with_finetuning(struct settings s, const struct settings *from)
{
	int i;

	for (i = SET_OPTIM_ALGORITHM; i < SETTINGS; i++)
		s.v[i] = from->v[i];
	s.v[SET_FAST_FT] = from->v[SET_FAST_FT];
	settings_normalise(&s);
	return s;
}

bool param_search_has_stages(const struct settings_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (settings_on(&l->v[i], SET_FAST_FT))
			return true;
	return false;
}

static enum fettle_status run_stages(struct work *w)
{
	const struct settings_list *all = w->p->list;
	struct settings_list first = SETTINGS_LIST_INIT, second = SETTINGS_LIST_INIT;
	struct score *scores;
	size_t i, best = 0;
	enum fettle_status st;

	for (i = 0; i < all->n; i++) {
		struct settings s = without_finetuning(all->v[i]);

		settings_add(&first, &s);
	}
	scores = xcalloc(first.n, sizeof(*scores));
	st = try_list(w, first.v, first.n, scores);
	for (i = 1; i < first.n; i++)
		if (scores[i].loss < scores[best].loss || isnan(scores[best].loss))
			best = i;
	for (i = 0; i < all->n; i++) {
		struct settings s = with_finetuning(first.v[best], &all->v[i]);

		if (settings_on(&all->v[i], SET_FAST_FT))
			settings_add(&second, &s);
	}
	if (!st)
		st = try_list(w, second.v, second.n, NULL);
	free(scores);
	settings_list_release(&first);
	settings_list_release(&second);
	return st;
}

static enum fettle_status traverse(struct search *s)
{
	const struct param_search *p = search_options(s)->self;
	struct work w = { .s = s, .p = p };
	struct settings *order = NULL;
	enum fettle_status st;

	if (p->advanced) {
		st = run_advanced(&w);
	} else if (p->two_stage) {
		st = run_stages(&w);
	} else if (strcmp(p->algorithm, "grid") == 0) {
		st = try_list(&w, p->list->v, p->list->n, NULL);
	} else if (strcmp(p->algorithm, "random") == 0) {
		order = shuffled(p->list, search_options(s)->seed);
		st = try_list(&w, order, p->list->n, NULL);
	} else {
		st = run_sampler(&w);
	}
	free(order);
	map_release(&w.seen);
	VEC_RELEASE(&w.firsts);
	arena_release(&w.arena);
	return st;
}

const struct strategy strategy_param_search = {
	.name = "search",
	.summary = "the parameter search of 'fettle search'",
	.traverse = traverse,
};
