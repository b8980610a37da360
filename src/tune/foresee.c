#include "tune/foresee.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYS_MAX = 64 }; /* a replay takes about as long as hashing the plans of all trials so far */

/* ---- what is known ---- */

void memo_keep(struct search *s, int kind, const struct plan *p, const struct memo_entry *e)
{
	struct memo_entry copy = { .kind = kind, .value = e->value };
	char key[FINGERPRINT_LEN];

	search_key(s, p, kind, key);
	if (!s->strategy || map_get(&s->memo.places, key) != MAP_NONE)
		return;
	copy.order = op_order_copy(&e->order);
	if (e->plan.choice)
		plan_copy(&copy.plan, &e->plan);
	map_set(&s->memo.places, arena_strdup(&s->keys, key), s->memo.n);
	VEC_PUSH(&s->memo, copy);
}

void memo_release(struct memo *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		op_order_release(&m->v[i].order);
		plan_release(&m->v[i].plan);
	}
	VEC_RELEASE(m);
	map_release(&m->places);
}

const struct memo_entry *memo_find(const struct search *s, int kind, const struct plan *p)
{
	char key[FINGERPRINT_LEN];
	size_t place;

	search_key(s, p, kind, key);
	place = map_get(&s->memo.places, key);
	return place == MAP_NONE ? NULL : &s->memo.v[place];
}

static const struct memo_entry *memo_last(const struct search *s, int kind)
{
	size_t i;

	for (i = s->memo.n; i-- > 0;)
		if (s->memo.v[i].kind == kind)
			return &s->memo.v[i];
	return NULL;
}

/* ---- guesses ---- */

/* What becomes of a trial to come. Of several side by side it is which of them is the better one, from 1; 0: none. */
enum outcome { OUTCOME_FAILS, OUTCOME_BETTER, OUTCOME_MEETS, N_OUTCOMES };

/* The outcomes of the trials to come, as far as decided on. */
struct path {
	size_t *outcome;
	size_t n;
	double weight; /* how likely all of this is */
};

struct found {
	struct plan plan;
	double weight; /* how likely it is to be asked for */
};

struct foresight {
	const struct search *s;     /* the real one */
	const struct search *again; /* the one that is run on guesses */
	const struct trial *in_progress;
	size_t n_in_progress, wanted;
	VEC(struct path) open; /* to be followed yet */
	VEC(struct found) found;
	struct map places; /* of plans in `found` */
	struct arena keys;
	/* the path that is followed now, which grows by the likelier guess at each step */
	struct path now;
	size_t depth, decided, n_found;
};

static struct path path_with(const struct path *p, size_t outcome, double chance)
{
	struct path q = { xcalloc(p->n + 1, sizeof(*q.outcome)), p->n + 1, p->weight * chance };

	if (p->n)
		memcpy(q.outcome, p->outcome, p->n * sizeof(*p->outcome));
	q.outcome[p->n] = outcome;
	return q;
}

/*
 * The share of trials that met the criterion: of this stage, of those that quantize no less and meet it all the same, and of
 * those that quantize no more and fail.
 */
static double chance_to_meet(const struct search *s, const struct trial *of)
{
	const size_t quantized = plan_n_quantized(&of->plan, s->c.space);
	double met = 1, n = 2;
	size_t i;

	for (i = 0; i < s->trials.n; i++) {
		const struct trial *t = &s->trials.v[i];
		const size_t other = plan_n_quantized(&t->plan, s->c.space);

		if (strcmp(t->stage, of->stage) != 0 &&
		    (t->score.met ? other < quantized : other > quantized))
			continue;
		met += t->score.met;
		n++;
	}
	return met / n;
}

/* That none of n trials is better than the best before them and those that the stage has tried already: all are alike. */
static double chance_of_none(const struct search *again, const char *stage, size_t n)
{
	size_t i, before = 1;

	for (i = 0; i < again->trials.n; i++)
		before += strcmp(again->trials.v[i].stage, stage) == 0;
	return (double)before / (double)(before + n);
}

/* One of n outcomes, by their chances: the likeliest, unless another is to be followed. */
static size_t guess(struct foresight *f, const double *chance, size_t n)
{
	struct path longer;
	size_t i, likeliest = 0;

	if (f->depth++ < f->decided)
		return f->now.outcome[f->depth - 1];
	for (i = 1; i < n; i++)
		likeliest = chance[i] > chance[likeliest] ? i : likeliest;
	for (i = 0; i < n; i++)
		if (i != likeliest && chance[i] > 0)
			VEC_PUSH(&f->open, path_with(&f->now, i, chance[i]));
	longer = path_with(&f->now, likeliest, chance[likeliest]);
	free(f->now.outcome);
	f->now = longer;
	return likeliest;
}

static bool is_in_progress(const struct foresight *f, const struct plan *p)
{
	size_t i;

	for (i = 0; i < f->n_in_progress; i++)
		if (plan_equal(&f->in_progress[i].plan, p, f->s->c.space))
			return true;
	return false;
}

static void collect(struct foresight *f, const struct plan *p)
{
	struct found x = { .weight = f->now.weight };
	char key[FINGERPRINT_LEN];
	size_t place;

	search_key(f->s, p, MEMO_PLAN, key);
	if (f->depth < f->decided || map_get(&f->s->ahead, key) != MAP_NONE || is_in_progress(f, p))
		return;
	f->n_found++;
	place = map_get(&f->places, key);
	if (place != MAP_NONE) {
		f->found.v[place].weight += x.weight;
		return;
	}
	map_set(&f->places, arena_strdup(&f->keys, key), f->found.n);
	plan_copy(&x.plan, p);
	VEC_PUSH(&f->found, x);
}

/* ---- a search that answers with what is known, then with guesses ---- */

static bool known(void *self, const struct plan *p, struct trial *out)
{
	const struct foresight *f = self;
	const struct trial *t = search_tried(f->s, p);

	if (!t || !plan_equal(&t->plan, p, f->s->c.space))
		return false;
	out->number = t->number;
	out->score = t->score;
	out->identity = (uint64_t)(t - f->s->trials.v) + 1;
	return true;
}

/* A plan that came to the same model as another does so again. */
static void identify(void *self, struct trial *t)
{
	const struct foresight *f = self;
	const struct trial *same = search_tried(f->s, &t->plan);

	t->identity = same ? (uint64_t)(same - f->s->trials.v) + 1 : 0;
}

/* Would the next trials start from this one if it were better than those before? */
static bool may_be_base(const struct foresight *f, const struct plan *p)
{
	return !f->again->n_met && f->again->whole && plan_is_whole(p, f->s->c.space) &&
	       isfinite(search_target(f->s));
}

static void answer(const struct foresight *f, struct trial *t, enum outcome outcome)
{
	double target = search_target(f->s);

	if (outcome == OUTCOME_MEETS)
		t->score.accuracy = isfinite(target) ? target : f->s->c.baseline;
	else if (outcome == OUTCOME_BETTER) /* half way from the best to the target */
		t->score.accuracy =
			target - (target - trial_at(f->again, f->again->whole)->score.accuracy) / 2;
	else
		t->score.accuracy = (f->s->c.higher_is_better ? -1 : 1) * (f->again->whole ? INFINITY : 1e9);
}

static enum fettle_status run(void *self, struct trial *t, struct err *err)
{
	struct foresight *f = self;
	const struct trial *before = search_tried(f->s, &t->plan);
	double chance[N_OUTCOMES];

	(void)err;
	if (before) { /* it ended early, and now its value is wanted */
		t->score.accuracy = before->score.accuracy;
		return FETTLE_OK;
	}
	collect(f, &t->plan);
	if (f->n_found >= f->wanted)
		return FETTLE_STOP;
	chance[OUTCOME_MEETS] = chance_to_meet(f->s, t);
	chance[OUTCOME_FAILS] = 1 - chance[OUTCOME_MEETS];
	if (may_be_base(f, &t->plan))
		chance[OUTCOME_FAILS] *= chance_of_none(f->again, t->stage, 1);
	chance[OUTCOME_BETTER] = fmax(1 - chance[OUTCOME_MEETS] - chance[OUTCOME_FAILS], 0);
	answer(f, t, (enum outcome)guess(f, chance, N_OUTCOMES));
	return FETTLE_OK;
}

/* Which of several is better than all before: 0: none, else its number from 1. */
static size_t guess_better(struct foresight *f, const struct trial *t, size_t n)
{
	double none = chance_of_none(f->again, t->stage, n), *chance;
	size_t i, which;

	for (i = 0; i < n; i++)
		if (!may_be_base(f, &t[i].plan))
			return 0;
	chance = xcalloc(n + 1, sizeof(*chance));
	for (i = 0; i <= n; i++)
		chance[i] = i ? (1 - none) / (double)n : none;
	which = guess(f, chance, n + 1);
	free(chance);
	return which;
}

/* All are asked for, whatever comes of them. */
static void run_all(void *self, struct trial *t, size_t n, enum fettle_status *st, struct err *err)
{
	struct foresight *f = self;
	size_t i, better;

	if (n == 1) {
		st[0] = run(self, t, err);
		return;
	}
	for (i = 0; i < n; i++) {
		collect(f, &t[i].plan);
		st[i] = f->n_found >= f->wanted ? FETTLE_STOP : FETTLE_OK;
	}
	better = f->n_found < f->wanted ? guess_better(f, t, n) : 0;
	for (i = 0; i < n; i++)
		answer(f, &t[i], i + 1 == better ? OUTCOME_BETTER : OUTCOME_FAILS);
}

static double share(void *self, const struct plan *p)
{
	const struct search *s = ((const struct foresight *)self)->s;

	return s->c.backend->share ? s->c.backend->share(s->c.self, p) : 1;
}

/* What is wanted is faster. */
static enum fettle_status objective(void *self, struct trial *t, const struct trial *against, double *value,
				    struct err *err)
{
	const struct foresight *f = self;
	const struct memo_entry *e = memo_find(f->s, MEMO_OBJECTIVE, &t->plan);

	(void)err;
	*value = e ? e->value : against ? 0.9 * against->score.objective : 0.9;
	return FETTLE_OK;
}

/* Blocks fall back one after the other: while none suffices, the order decides only on which comes first. */
#define ANY_ORDER 0.2

static struct op_order order_any(const struct space *space, const struct plan *p)
{
	struct op_order o = { xcalloc(space->n_ops + 1, sizeof(*o.op)),
			      xcalloc(space->n_ops + 1, sizeof(*o.score)), 0 };
	size_t i;

	for (i = 0; i < space->n_ops; i++)
		if (plan_is_quantized(p, space, i))
			o.op[o.n++] = i;
	return o;
}

static enum fettle_status rank(void *self, const struct plan *p, enum rank by, int batches,
			       struct op_order *out, struct err *err)
{
	struct foresight *f = self;
	const struct memo_entry *e = memo_find(f->s, MEMO_RANK + (int)by, p);

	(void)batches;
	(void)err;
	if (!e) /* ops fall back one by one: what was said of the plan before still holds for the others */
		e = memo_last(f->s, MEMO_RANK + (int)by);
	if (!e && by != RANK_OUTPUT_MSE) /* nobody can guess it: this is as far as one sees */
		return FETTLE_STOP;
	if (!e && f->depth >= f->decided)
		f->now.weight *= ANY_ORDER;
	*out = e ? op_order_copy(&e->order) : order_any(f->s->c.space, p);
	return FETTLE_OK;
}

static enum fettle_status estimate(void *self, const struct plan *p, int batches, double *error,
				   struct err *err)
{
	const struct foresight *f = self;
	const struct memo_entry *e = memo_find(f->s, MEMO_ESTIMATE, p);

	(void)batches;
	(void)err;
	*error = e ? e->value : INFINITY;
	return e ? FETTLE_OK : FETTLE_STOP;
}

static enum fettle_status fastest(void *self, const struct plan *from, bool within, struct plan *out,
				  struct err *err)
{
	const struct foresight *f = self;
	const struct memo_entry *e = memo_find(f->s, MEMO_FASTEST + within, from);

	(void)err;
	if (e)
		plan_copy(out, &e->plan);
	return e || !f->s->c.backend->fastest ? FETTLE_OK : FETTLE_STOP;
}

static const struct search_backend backend = {
	.run = run,
	.run_all = run_all,
	.identify = identify,
	.share = share,
	.objective = objective,
	.rank = rank,
	.estimate = estimate,
	.fastest = fastest,
	.known = known,
};

static void follow(struct foresight *f)
{
	struct search_config c = f->s->c;
	struct search *again = NULL;

	c.backend = &backend;
	c.self = f;
	c.recorded = f->s->trials.n;
	f->depth = f->n_found = 0;
	f->decided = f->now.n;
	if (search_new(&again, &c, NULL) == FETTLE_OK) {
		f->again = again;
		strategy_run(f->s->strategy, again);
	}
	search_free(again);
}

/* ---- the likeliest ---- */

static struct path take_likeliest(struct foresight *f)
{
	size_t i, k = 0;
	struct path p;

	for (i = 1; i < f->open.n; i++)
		if (f->open.v[i].weight > f->open.v[k].weight)
			k = i;
	p = f->open.v[k];
	f->open.v[k] = f->open.v[--f->open.n];
	return p;
}

static size_t n_likelier(const struct foresight *f, double weight)
{
	size_t i, n = 0;

	for (i = 0; i < f->found.n; i++)
		n += f->found.v[i].weight >= weight;
	return n;
}

/* In the order of their weights; of equals, the one found first. */
static size_t take_found(struct foresight *f, struct plan *out, size_t n)
{
	size_t i, k, taken;

	for (taken = 0; taken < n && taken < f->found.n; taken++) {
		for (i = k = 0; i < f->found.n; i++)
			if (f->found.v[i].weight > f->found.v[k].weight)
				k = i;
		out[taken] = f->found.v[k].plan;
		f->found.v[k] = (struct found){ .weight = -1 };
	}
	for (i = 0; i < f->found.n; i++)
		plan_release(&f->found.v[i].plan);
	return taken;
}

void foresee_no_more(struct search *s, const struct plan *p)
{
	char key[FINGERPRINT_LEN];

	search_key(s, p, MEMO_PLAN, key);
	map_set(&s->ahead, arena_strdup(&s->keys, key), 0);
}

size_t foresee(struct search *s, const struct trial *in_progress, size_t n_in_progress, struct plan *out,
	       size_t n)
{
	struct foresight f = {
		.s = s, .in_progress = in_progress, .n_in_progress = n_in_progress, .wanted = n
	};
	size_t i, replays;
	bool enough = false;

	if (!s->strategy || !n)
		return 0;
	VEC_PUSH(&f.open, ((struct path){ .weight = 1 }));
	for (replays = 0; f.open.n && !enough && replays < REPLAYS_MAX; replays++) {
		f.now = take_likeliest(&f);
		enough = n_likelier(&f, f.now.weight) >= n; /* what is left is less likely than those */
		if (!enough)
			follow(&f);
		free(f.now.outcome);
	}
	n = take_found(&f, out, n);
	for (i = 0; i < f.open.n; i++)
		free(f.open.v[i].outcome);
	VEC_RELEASE(&f.open);
	VEC_RELEASE(&f.found);
	map_release(&f.places);
	arena_release(&f.keys);
	return n;
}
