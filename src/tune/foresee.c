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

/* Whether each of the trials to come meets the criterion, as far as decided on. */
struct path {
	bool *met;
	size_t n;
	double weight; /* how likely all of this is */
};

struct found {
	struct plan plan;
	double weight; /* how likely it is to be asked for */
};

struct foresight {
	const struct search *s; /* the real one */
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

static struct path path_with(const struct path *p, bool met, double weight)
{
	struct path q = { xcalloc(p->n + 1, sizeof(bool)), p->n + 1, weight };

	if (p->n)
		memcpy(q.met, p->met, p->n * sizeof(*p->met));
	q.met[p->n] = met;
	return q;
}

/* The share of this stage's trials that met the criterion, so far. */
static double chance(const struct search *s, const char *stage)
{
	double met = 1, n = 2;
	size_t i;

	for (i = 0; i < s->trials.n; i++)
		if (strcmp(s->trials.v[i].stage, stage) == 0) {
			met += s->trials.v[i].score.met;
			n++;
		}
	return met / n;
}

static bool guess(struct foresight *f, const char *stage)
{
	struct path longer;
	double p;
	bool likely;

	if (f->depth++ < f->decided)
		return f->now.met[f->depth - 1];
	p = chance(f->s, stage);
	likely = p > 0.5;
	VEC_PUSH(&f->open, path_with(&f->now, !likely, f->now.weight * fmin(p, 1 - p)));
	longer = path_with(&f->now, likely, f->now.weight * fmax(p, 1 - p));
	free(f->now.met);
	f->now = longer;
	return likely;
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

static void answer(const struct foresight *f, struct trial *t, bool met)
{
	double target = search_target(f->s);

	if (met)
		t->score.accuracy = isfinite(target) ? target : f->s->c.baseline;
	else
		t->score.accuracy = f->s->c.higher_is_better ? -INFINITY : INFINITY;
}

static enum fettle_status run(void *self, struct trial *t, struct err *err)
{
	struct foresight *f = self;
	const struct trial *before = search_tried(f->s, &t->plan);

	(void)err;
	if (before) { /* it ended early, and now its value is wanted */
		t->score.accuracy = before->score.accuracy;
		return FETTLE_OK;
	}
	collect(f, &t->plan);
	if (f->n_found >= f->wanted)
		return FETTLE_STOP;
	answer(f, t, guess(f, t->stage));
	return FETTLE_OK;
}

/* All are asked for, whatever comes of them. */
static void run_all(void *self, struct trial *t, size_t n, enum fettle_status *st, struct err *err)
{
	struct foresight *f = self;
	size_t i;

	if (n == 1) {
		st[0] = run(self, t, err);
		return;
	}
	for (i = 0; i < n; i++) {
		collect(f, &t[i].plan);
		st[i] = f->n_found >= f->wanted ? FETTLE_STOP : FETTLE_OK;
		answer(f, &t[i], false);
	}
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

static enum fettle_status rank(void *self, const struct plan *p, enum rank by, int batches,
			       struct op_order *out, struct err *err)
{
	const struct foresight *f = self;
	const struct memo_entry *e = memo_find(f->s, MEMO_RANK + (int)by, p);

	(void)batches;
	(void)err;
	if (!e) /* ops fall back one by one: what was said of the plan before still holds for the others */
		e = memo_last(f->s, MEMO_RANK + (int)by);
	if (!e) /* nobody can guess it: this is as far as one sees */
		return FETTLE_STOP;
	*out = op_order_copy(&e->order);
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
	if (search_new(&again, &c, NULL) == FETTLE_OK)
		strategy_run(f->s->strategy, again);
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
		free(f.now.met);
	}
	n = take_found(&f, out, n);
	for (i = 0; i < f.open.n; i++)
		free(f.open.v[i].met);
	VEC_RELEASE(&f.open);
	VEC_RELEASE(&f.found);
	map_release(&f.places);
	arena_release(&f.keys);
	return n;
}
