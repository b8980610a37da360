/*
 * Op-wise settings, proposed by a SigOpt server: accuracy is a constraint, latency is minimised. The server needs both of every
 * trial, so latency is measured of each.
 *
 * What is proposed is noted before it is tried, and again when the server knows the result. So a run that is resumed goes through
 * its proposals again, which costs nothing for those that the history has, reports what the server has not heard of, and
 * continues with the same experiment.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "space/plan_json.h"
#include "strategy/opwise.h"

enum {
	BUDGET = 1000,     /* what a server is told where there is no limit: it wants to know */
	REPEATS_MAX = 100, /* proposals in a row that were made before: it has no other */
};
#define LAST_WORDS 5 /* seconds to tell the server what it should know before the run ends */

enum state { OPEN, TOLD, DROPPED };

/* A proposal of the server. */
struct proposal {
	size_t number;
	char *id;
	size_t *choice; /* of each parameter of the experiment */
	struct plan plan;
	double objective;
};

struct remote {
	struct search *s;
	struct service *service;
	struct opwise ops;
	size_t *at; /* parameter of the experiment -> place in `ops`: those with a choice */
	struct service_param *params;
	size_t n;
	struct arena arena;
	size_t n_proposals;
	struct map seen; /* hashes of plans that were proposed */
	size_t repeats;
	double deadline;
};

/* ---- what the server is told of the space ---- */

/* "2: static, activation minmax uint8 asym": the number tells options apart that are too long */
static char *label(struct arena *a, const struct param *p, unsigned k, uint16_t option)
{
	char *words = p->names ? option_words(p->names[option]) : xstrdup("");
	char *text = arena_strfmt(a, "%u%s%.*s", k, *words ? ": " : "", SERVICE_OPTION_MAX - 6, words);

	free(words);
	return text;
}

static void describe_params(struct remote *r)
{
	const struct space *space = search_space(r->s);
	size_t i;
	unsigned k;

	r->at = xcalloc(r->ops.n, sizeof(*r->at));
	r->params = xcalloc(r->ops.n, sizeof(*r->params));
	for (i = 0; i < r->ops.n; i++) {
		const struct param *p = &space->v[r->ops.param[i]];
		char **options;

		if (r->ops.n_options[i] < 2)
			continue;
		options = arena_alloc(&r->arena, r->ops.n_options[i] * sizeof(*options));
		for (k = 0; k < r->ops.n_options[i]; k++)
			options[k] = label(&r->arena, p, k, r->ops.option[i][k]);
		r->at[r->n] = i;
		r->params[r->n++] = (struct service_param){ p->name, options, r->ops.n_options[i] };
	}
}

static double n_plans(const struct remote *r)
{
	double n = 1;
	size_t i;

	for (i = 0; i < r->n; i++)
		n *= (double)r->params[i].n;
	return n;
}

static void make_plan(const struct remote *r, struct proposal *p)
{
	size_t i;

	plan_init(&p->plan, search_space(r->s));
	for (i = 0; i < r->n; i++) {
		size_t at = r->at[i];

		p->plan.choice[r->ops.param[at]] = r->ops.option[at][p->choice[i]];
	}
}

/* ---- notes ---- */

static char *note_name(size_t number)
{
	return xstrfmt("sigopt proposal %zu", number);
}

static enum fettle_status note(struct remote *r, const struct proposal *p, enum state state)
{
	char *name = note_name(p->number);
	struct str text = STR_INIT;
	enum fettle_status st;
	size_t i;

	str_addf(&text, "%s %d", p->id, (int)state);
	for (i = 0; i < r->n; i++)
		str_addf(&text, " %zu", p->choice[i]);
	st = search_note(r->s, name, text.s);
	str_release(&text);
	free(name);
	return st;
}

static void proposal_release(struct proposal *p)
{
	free(p->id);
	free(p->choice);
	plan_release(&p->plan);
}

/* The next that an earlier session has noted; false: there is none. */
static bool read_note(struct remote *r, struct proposal *p, enum state *state)
{
	char *name = note_name(r->n_proposals + 1), *text = search_noted(r->s, name), *at = text;
	size_t i, n = text ? strcspn(text, " ") : 0;
	bool ok = n > 0;

	*p = (struct proposal){ .number = r->n_proposals + 1, .objective = NAN };
	p->choice = xcalloc(r->n, sizeof(*p->choice));
	if (ok) {
		p->id = xstrfmt("%.*s", (int)n, text);
		at = text + n;
		*state = (enum state)strtoul(at, &at, 10);
	}
	for (i = 0; i < r->n && ok; i++) {
		p->choice[i] = strtoul(at, &at, 10);
		ok = p->choice[i] < r->params[i].n;
	}
	if (ok) {
		make_plan(r, p);
		r->n_proposals++;
	} else {
		proposal_release(p);
	}
	free(name);
	free(text);
	return ok;
}

/* ---- trials ---- */

static bool cancelled(void *self)
{
	const struct remote *r = self;

	return search_cancelled(r->s);
}

static bool too_late(void *self)
{
	const struct remote *r = self;

	return clock_now() > r->deadline;
}

static enum fettle_status tell(struct remote *r, const struct proposal *p, const struct score *score)
{
	const struct service_result result = { .failed = score->failed,
					       .accuracy = score->accuracy,
					       .objective = p->objective };
	enum fettle_status st = r->service->observe(r->service, p->id, &result, search_err(r->s));

	return st ? st : note(r, p, TOLD);
}

static enum fettle_status drop(struct remote *r, const struct proposal *p)
{
	enum fettle_status st = r->service->drop(r->service, p->id, search_err(r->s));

	return st ? st : note(r, p, DROPPED);
}

/*
 * The search is over. What is not told now is told when the run is resumed, so that it fails is no reason to report a failure.
 */
static void tell_last(struct remote *r, const struct proposal *v, size_t n, const struct score *scores)
{
	struct err kept = *search_err(r->s);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	r->deadline = clock_now() + LAST_WORDS;
	r->service->stop = too_late;
	for (i = 0; i < n && !st; i++)
		st = scores && !scores[i].failed ? tell(r, &v[i], &scores[i]) : drop(r, &v[i]);
	r->service->stop = cancelled;
	*search_err(r->s) = kept;
}

static enum fettle_status try_proposals(struct remote *r, struct proposal *v, size_t n)
{
	struct plan *plans = xcalloc(n, sizeof(*plans));
	struct score *scores = xcalloc(n, sizeof(*scores));
	enum fettle_status st = FETTLE_OK;
	bool tried = false;
	size_t i;

	for (i = 0; i < n; i++) {
		plans[i] = v[i].plan; /* the proposal's own */
		if (!st)
			st = search_objective(r->s, &v[i].plan, &v[i].objective);
	}
	if (!st) {
		tried = true;
		st = search_try_all(r->s, plans, n, scores);
	}
	if (st == FETTLE_STOP)
		tell_last(r, v, n, tried ? scores : NULL);
	for (i = 0; i < n && !st; i++)
		st = tell(r, &v[i], &scores[i]);
	free(plans);
	free(scores);
	return st;
}

/* Is there nothing left to propose? */
static bool exhausted(struct remote *r, const struct plan *p)
{
	char hash[FINGERPRINT_LEN];

	plan_hash(p, search_space(r->s), hash);
	if (map_get(&r->seen, hash) != MAP_NONE) {
		r->repeats++;
	} else {
		r->repeats = 0;
		map_set(&r->seen, arena_strdup(&r->arena, hash), 1);
	}
	return (double)r->seen.n >= n_plans(r) || r->repeats >= REPEATS_MAX;
}

/* ---- the whole ---- */

static enum fettle_status open_experiment(struct remote *r)
{
	static const char name[] = "sigopt experiment";
	const double plans = n_plans(r);
	const size_t left = search_trials_left(r->s), most = left == SIZE_MAX ? BUDGET : left;
	const char *objective = search_options(r->s)->objective;
	const struct service_experiment e = { .params = r->params,
					      .n = r->n,
					      .objective = objective ? objective : "latency",
					      .higher_is_better = search_higher_is_better(r->s),
					      .threshold = search_target(r->s),
					      .budget = plans < (double)most ? (size_t)plans : most,
					      .workers = search_workers(r->s) };
	char *id = search_noted(r->s, name);
	enum fettle_status st;

	if (id) {
		st = r->service->resume(r->service, &e, id, search_err(r->s));
	} else {
		st = r->service->create(r->service, &e, &id, search_err(r->s));
		if (!st)
			st = search_note(r->s, name, id);
	}
	free(id);
	return st;
}

/* What an earlier session was proposed: most of it is in the history. */
static enum fettle_status replay(struct remote *r)
{
	enum fettle_status st = FETTLE_OK;
	struct proposal p;
	struct score score;
	enum state state = TOLD;

	while (!st && read_note(r, &p, &state)) {
		exhausted(r, &p.plan);
		if (state == OPEN)
			st = try_proposals(r, &p, 1);
		if (st == FETTLE_INVALID) /* refused: the earlier session was cut off after it had told */
			st = note(r, &p, TOLD);
		else if (state == TOLD)
			st = search_try(r->s, &p.plan, &score);
		proposal_release(&p);
	}
	return st;
}

static enum fettle_status ask(struct remote *r, struct proposal *p)
{
	enum fettle_status st;

	*p = (struct proposal){ .number = r->n_proposals + 1, .objective = NAN };
	p->choice = xcalloc(r->n, sizeof(*p->choice));
	st = r->service->suggest(r->service, p->choice, &p->id, search_err(r->s));
	if (!st)
		st = note(r, p, OPEN);
	if (st) {
		proposal_release(p);
		return st;
	}
	make_plan(r, p);
	r->n_proposals++;
	return FETTLE_OK;
}

static enum fettle_status follow(struct remote *r)
{
	const size_t width = search_workers(r->s);
	struct proposal *v = xcalloc(width, sizeof(*v));
	enum fettle_status st = FETTLE_OK;
	bool done = (double)r->seen.n >= n_plans(r);
	size_t n, i;

	while (!st && !done) {
		for (n = 0; n < width && n < search_trials_left(r->s) && !st && !done; n++) {
			st = ask(r, &v[n]);
			if (st)
				break;
			done = exhausted(r, &v[n].plan);
		}
		if (st == FETTLE_STOP)
			tell_last(r, v, n, NULL);
		else if (!st)
			st = try_proposals(r, v, n);
		for (i = 0; i < n; i++)
			proposal_release(&v[i]);
	}
	free(v);
	return st;
}

static enum fettle_status sigopt_traverse(struct search *s)
{
	struct remote r = { .s = s, .service = search_options(s)->service };
	struct score score;
	struct plan p = PLAN_INIT;
	enum fettle_status st;

	if (!opwise_can_quantize(search_space(s)))
		return FETTLE_OK;
	if (!r.service)
		return fail(search_err(s), FETTLE_INVALID, "cannot use strategy sigopt: it has no server");
	opwise_init(&r.ops, search_space(s));
	describe_params(&r);
	opwise_begin(s);
	r.service->stop = cancelled;
	r.service->stop_self = &r;
	if (r.n) {
		st = open_experiment(&r);
		if (!st)
			st = replay(&r);
		if (!st)
			st = follow(&r);
	} else { /* there is but one plan */
		plan_init(&p, search_space(s));
		st = search_try(s, &p, &score);
		plan_release(&p);
	}
	if (st ==
	    FETTLE_STOP) /* maybe of the service, which was told to: then the search does not know yet */
		search_may_continue(s);
	r.service->stop = NULL;
	opwise_release(&r.ops);
	free(r.at);
	free(r.params);
	map_release(&r.seen);
	arena_release(&r.arena);
	return st;
}

const struct strategy strategy_sigopt = {
	.name = "sigopt",
	.summary = "op-wise settings that a SigOpt server proposes; no fallback",
	.traverse = sigopt_traverse,
};
