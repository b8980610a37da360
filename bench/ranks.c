/*
 * How tuning scales with ranks: the real strategies and the real search on synthetic worlds, with clocks that only move as
 * trials of a real run would move them. Usage: bench_ranks [--alone | --stages] [TRIALS [WORLDS [STRATEGY]]]: at most so many trials
 * (100), the mean of so many worlds (1), all strategies or one; --alone: no worker runs plans ahead; --stages: what each stage
 * takes on 16 ranks. The same arguments print the same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/conformance/synthetic.h"

/*
 * Seconds of a trial, from the histories of basic and mse_v2 on four models of ../shared/models (2,000 samples, one thread),
 * in units of one evaluation of the model with all ops in int8.
 */
#define FP32_PASS 1.7       /* the fp32 model's evaluation */
#define PREPARING 0.1       /* quantizing, and making a session */
#define SHARE_MIN 0.22      /* of the samples, that a clear verdict takes; a close one takes all */
#define SPREAD 0.2          /* of trials of equal work: the deviation of the time's logarithm */
#define MEASURING 0.1       /* the latency of a plan that meets the criterion: on one rank */
#define ESTIMATING 0.12     /* a plan's error on two batches: on one rank */
#define PROFILING 0.5       /* what is fastest: on one rank */
#define RANKING_OUTPUTS 0.2 /* one run over a few batches: on one rank */
#define RECALLING 0.02      /* to judge what has run ahead */
#define SENDING 0.005       /* a plan to a rank, and its result back */

/* Ranking by impact splits op by op over the ranks, as trials do; all else that is no trial is rank 0's. */

static const size_t ranks[] = { 1, 2, 4, 8, 16, 64, 256, 1024 };
enum { N_RANKS = ARRAY_LEN(ranks), STAGES_MAX = 32 };

/* Where the time of all ranks goes. */
struct spent {
	char stage[64];
	double seconds;  /* that passed */
	double useful;   /* worker-seconds: of trials that were asked for, and what ran ahead for them */
	double unneeded; /* ran ahead for nothing */
	double serial;   /* one rank measures, estimates or profiles, and the others wait */
	double alone;    /* seconds of that */
	size_t trials;
};

/* The trials of one rank, in order. */
struct script {
	VEC(struct line {
		struct plan plan;
		size_t unknown; /* rankings, estimates and profiles that were made before it */
	})
	v;
};

struct sim {
	struct world w;             /* first: the world's callbacks get this; its clock does not count */
	struct script *writes;      /* NULL: nobody asks */
	const struct script *knows; /* what comes, up to the next ranking; NULL: it is guessed */
	size_t unknown;
	double clock;
	size_t width;
	VEC(struct ahead {
		struct plan plan;
		double seconds;
		size_t stage;
	})
	ahead; /* what has run of plans that nobody has asked for yet */
	struct spent stage[STAGES_MAX];
	size_t n_stages, at;
	double longest; /* trial that was asked for */
	const struct search *search;
};

static struct sim *sim_of(void *self)
{
	return self;
}

static struct spent *spent_in(struct sim *s, const char *stage)
{
	size_t i;

	for (i = 0; i < s->n_stages && strcmp(s->stage[i].stage, stage) != 0;)
		i++;
	if (i == STAGES_MAX)
		i--;
	if (i == s->n_stages) {
		snprintf(s->stage[i].stage, sizeof(s->stage[i].stage), "%s", stage);
		s->n_stages++;
	}
	s->at = i;
	return &s->stage[i];
}

/* Work that splits into so many parts, the same on all. */
static void pass_time(struct sim *s, double seconds, size_t parts)
{
	struct spent *now = &s->stage[s->at];
	size_t n = parts < s->width ? parts : s->width;

	s->clock += seconds / (double)n;
	now->seconds += seconds / (double)n;
	now->useful += seconds;
	now->serial += seconds / (double)n * (double)(s->width - n);
	now->alone += parts == 1 ? seconds : 0;
}

/* ---- what a trial takes ---- */

/* How much of the evaluation it takes to be certain: close calls take all. */
static double share_needed(const struct score *score)
{
	return score->early ? 1 - (1 - SHARE_MIN) * sqrt(fmin(score->high - score->low, 0.1 * 4 / 3) /
							 (0.1 * 4 / 3))
			    : 1;
}

static double seconds_of(const struct sim *s, const struct plan *p, const struct score *score)
{
	double fp32 = 1 - world_share((void *)&s->w, p);
	double u = fmax(noise(&s->w, p, 31), 1e-9), v = noise(&s->w, p, 32);
	double spread = exp(SPREAD * sqrt(-2 * log(u)) * cos(6.283185307 * v));

	return PREPARING + share_needed(score) * (1 + (FP32_PASS - 1) * fp32) * spread;
}

static struct ahead *ahead_of(struct sim *s, const struct plan *p)
{
	size_t i;

	for (i = 0; i < s->ahead.n; i++)
		if (plan_equal(&s->ahead.v[i].plan, p, &s->w.space))
			return &s->ahead.v[i];
	return NULL;
}

/* What is left to run of a trial that is asked for now. */
static double remaining(struct sim *s, const struct trial *t)
{
	struct ahead *a = ahead_of(s, &t->plan);
	double needed = seconds_of(s, &t->plan, &t->score), left = needed + SENDING;

	s->stage[s->at].useful += needed;
	s->longest = fmax(s->longest, needed);
	if (a) {
		left = fmax(needed - a->seconds, RECALLING) + SENDING;
		s->stage[a->stage].unneeded -= fmin(a->seconds, needed);
		plan_release(&a->plan);
		*a = s->ahead.v[--s->ahead.n];
	}
	return left;
}

static enum fettle_status go_ahead(struct sim *s, const struct trial *t, double *until_free, double end)
{
	struct ahead *a = ahead_of(s, &t->plan), new = { .stage = s->at };
	double needed = seconds_of(s, &t->plan, &t->score), spent;

	if (!a) {
		plan_copy(&new.plan, &t->plan);
		VEC_PUSH(&s->ahead, new);
		a = &s->ahead.v[s->ahead.n - 1];
	}
	spent = fmax(fmin(needed - a->seconds, end - *until_free), 0);
	*until_free += spent;
	a->seconds += spent;
	a->stage = s->at;
	s->stage[s->at].unneeded += spent; /* until it is asked for */
	return a->seconds < needed - 1e-9 ? FETTLE_STOP : FETTLE_OK;
}

/* Each takes the next when it has ended the one before; all are broken off at the end. */
static void run_ahead(struct sim *s, const struct trial *t, enum fettle_status *st, size_t n,
		      double *until_free, double end)
{
	size_t i, k, first;

	for (i = 0; i < n; i++) {
		for (k = first = 0; k < s->width; k++)
			first = until_free[k] < until_free[first] ? k : first;
		st[i] = FETTLE_STOP;
		if (until_free[first] < end)
			st[i] = go_ahead(s, &t[i], &until_free[first], end);
	}
}

/* Before guesses: the trials that come after these, as far as no ranking must be made first. */
static size_t script_ahead(struct sim *s, const struct trial *asked, size_t n_asked, struct trial **out)
{
	size_t i, at = 0, n = 0;

	*out = xcalloc(s->knows->v.n + 1, sizeof(**out));
	for (i = 0; i < s->knows->v.n; i++)
		if (plan_equal(&s->knows->v.v[i].plan, &asked[n_asked - 1].plan, &s->w.space))
			at = i;
	for (i = at + 1; i < s->knows->v.n && s->knows->v.v[i].unknown == s->unknown; i++) {
		struct trial t = { .plan = s->knows->v.v[i].plan, .verdict = asked[0].verdict };
		struct err err = ERR_INIT;

		world_run(&s->w, &t, &err);
		(*out)[n++] = t;
	}
	return n;
}

static void script_release(struct script *s)
{
	size_t i;

	for (i = 0; i < s->v.n; i++)
		plan_release(&s->v.v[i].plan);
	VEC_RELEASE(&s->v);
}

static void script_write(struct sim *s, const struct trial *t)
{
	struct line l = { .unknown = s->unknown };

	plan_copy(&l.plan, &t->plan);
	VEC_PUSH(&s->writes->v, l);
}

static void sim_run_all(void *self, struct trial *t, size_t n, enum fettle_status *st, struct err *err)
{
	struct sim *s = sim_of(self);
	struct spent *now = spent_in(s, t[0].stage);
	double longest = 0, *until_free = xcalloc(s->width, sizeof(*until_free));
	size_t i, n_asked = 0;

	for (i = 0; i < n; i++) {
		st[i] = world_run(&s->w, &t[i], err);
		n_asked += !t[i].ahead;
	}
	for (i = 0; i < n_asked; i++) {
		until_free[i] = remaining(s, &t[i]);
		longest = fmax(longest, until_free[i]);
	}
	now->trials += n_asked;
	for (i = 0; i < n_asked && s->writes; i++)
		script_write(s, &t[i]);
	if (s->knows) {
		struct trial *known;
		const size_t n_known = script_ahead(s, t, n_asked, &known);
		enum fettle_status *ended = xcalloc(n_known + 1, sizeof(*ended));

		run_ahead(s, known, ended, n_known, until_free, longest);
		free(ended);
		free(known);
	}
	run_ahead(s, t + n_asked, st + n_asked, n - n_asked, until_free, longest);
	free(until_free);
	now->seconds += longest;
	s->clock += longest;
}

static enum fettle_status sim_run(void *self, struct trial *t, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	sim_run_all(self, t, 1, &st, err);
	return st;
}

/* ---- what is no trial ---- */

static enum fettle_status sim_measure(void *self, struct trial *t, const struct trial *against, double *value,
				      struct err *err)
{
	pass_time(self, MEASURING, 1);
	return world_measure(self, t, against, value, err);
}

static enum fettle_status sim_rank(void *self, const struct plan *p, enum rank by, int batches,
				   struct op_order *out, struct err *err)
{
	sim_of(self)->unknown++;
	if (by == RANK_OUTPUT_MSE)
		pass_time(self, RANKING_OUTPUTS, 1);
	else
		pass_time(self, FP32_PASS, sim_of(self)->w.space.n_ops);
	return world_rank(self, p, by, batches, out, err);
}

static enum fettle_status sim_estimate(void *self, const struct plan *p, int batches, double *error,
				       struct err *err)
{
	sim_of(self)->unknown++;
	pass_time(self, ESTIMATING, 1);
	sim_of(self)->stage[sim_of(self)->at].alone -= ESTIMATING; /* several could be, side by side */
	return world_estimate(self, p, batches, error, err);
}

static enum fettle_status sim_estimate_all(void *self, const struct plan *plans, size_t n, int batches,
					   double *errors, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	sim_of(self)->unknown++;
	pass_time(self, (double)n * ESTIMATING, n);
	for (i = 0; i < n && !st; i++)
		st = world_estimate(self, &plans[i], batches, &errors[i], err);
	return st;
}

static enum fettle_status sim_fastest(void *self, const struct plan *from, bool within, struct plan *out,
				      struct err *err)
{
	sim_of(self)->unknown++;
	pass_time(self, PROFILING, 1);
	return world_fastest(self, from, within, out, err);
}

static double sim_now(void *self)
{
	return sim_of(self)->clock;
}

static const struct search_backend sim_backend = {
	.run = sim_run,
	.run_all = sim_run_all,
	.identify = world_identify,
	.share = world_share,
	.objective = sim_measure,
	.rank = sim_rank,
	.estimate = sim_estimate,
	.estimate_all = sim_estimate_all,
	.fastest = sim_fastest,
	.record = world_record,
	.now = sim_now,
};

/* ---- one run ---- */

/* Models that need all stages: settings and recipes do not suffice, a few ops must be in fp32. */
static struct recipe_for_world world_of(size_t n_ops)
{
	return (struct recipe_for_world){ .name = "bench",
					  .n_ops = n_ops,
					  .settings = 6,
					  .dynamic = true,
					  .n_types = n_ops < 60 ? 3 : 5,
					  .n_recipes = 8,
					  .n_blocks = (int)n_ops / 16,
					  .n_sizes = 2,
					  .op_loss = 0.03,
					  .setting_loss = 0.01,
					  .n_pairs = 2,
					  .rank_noise = 1,
					  .slow = 3 };
}

struct answer {
	double seconds, longest;
	size_t trials, best;
	enum search_stop why;
};

static struct answer simulate(const struct strategy *strategy, const struct recipe_for_world *r,
			      uint64_t seed, size_t width, size_t max_trials, struct script *writes,
			      const struct script *knows, struct spent *stages, size_t *n_stages)
{
	struct sim s = { .width = width, .writes = writes, .knows = knows };
	struct search_config c;
	struct answer a = { 0 };
	struct err err = ERR_INIT;
	size_t i;

	world_init(&s.w, r, seed);
	s.w.width = width;
	s.w.frugal = true;
	c = world_config(&s.w, max_trials);
	c.backend = &sim_backend;
	c.self = &s;
	spent_in(&s, "before the first trial");
	if (search_new((struct search **)&s.search, &c, &err) ||
	    search_run((struct search *)s.search, strategy, &err)) {
		fprintf(stderr, "bench_ranks: %s\n", err.msg);
		exit(3);
	}
	a = (struct answer){ s.clock, s.longest, search_n_trials(s.search), 0, search_why(s.search) };
	if (search_best_trial(s.search))
		a.best = search_best_trial(s.search)->number;
	search_free((struct search *)s.search);
	memcpy(stages, s.stage, sizeof(s.stage));
	*n_stages = s.n_stages;
	for (i = 0; i < s.ahead.n; i++)
		plan_release(&s.ahead.v[i].plan);
	VEC_RELEASE(&s.ahead);
	world_release(&s.w);
	return a;
}

/* ---- the table ---- */

struct row {
	double seconds[N_RANKS], longest; /* of all worlds; and each one's longest trial */
	double knowing[N_RANKS];          /* seconds, were no guess wrong */
	struct spent stage[N_RANKS][STAGES_MAX];
	size_t n_stages[N_RANKS], trials;
};

static void add_stages(struct row *row, size_t k, const struct spent *from, size_t n)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < row->n_stages[k] && strcmp(row->stage[k][j].stage, from[i].stage) != 0;)
			j++;
		if (j == STAGES_MAX)
			continue;
		if (j == row->n_stages[k]) {
			memcpy(row->stage[k][j].stage, from[i].stage, sizeof(from[i].stage));
			row->n_stages[k]++;
		}
		row->stage[k][j].seconds += from[i].seconds;
		row->stage[k][j].useful += from[i].useful;
		row->stage[k][j].unneeded += from[i].unneeded;
		row->stage[k][j].serial += from[i].serial;
		row->stage[k][j].alone += from[i].alone;
		row->stage[k][j].trials += from[i].trials;
	}
}

static double efficiency(const struct row *row, size_t k)
{
	return row->seconds[0] / ((double)ranks[k] * row->seconds[k]);
}

static void fill_row(struct row *row, const struct strategy *strategy, size_t n_ops, size_t max_trials,
		     size_t worlds)
{
	const struct recipe_for_world r = world_of(n_ops);
	struct answer first = { 0 }, a;
	struct script script = { .v = { 0 } };
	size_t k, seed;

	*row = (struct row){ .trials = 0 };
	for (seed = 1; seed <= worlds; seed++, script_release(&script))
		for (k = 0; k < N_RANKS; k++) {
			struct spent stage[STAGES_MAX];
			size_t n_stages;

			if (k)
				row->knowing[k] += simulate(strategy, &r, seed, ranks[k], max_trials, NULL,
							    &script, stage, &n_stages)
							   .seconds;
			a = simulate(strategy, &r, seed, ranks[k], max_trials, k ? NULL : &script, NULL,
				     stage, &n_stages);
			first = k ? first : a;
			if (a.trials != first.trials || a.best != first.best || a.why != first.why) {
				fprintf(stderr, "bench_ranks: %s at %zu ranks has another answer than at 1\n",
					strategy->name, ranks[k]);
				exit(3);
			}
			row->trials += k ? 0 : a.trials;
			row->longest += k ? 0 : a.longest;
			row->seconds[k] += a.seconds;
			row->knowing[k] += k ? 0 : a.seconds;
			add_stages(row, k, stage, n_stages);
		}
}

/*
 * Were every plan to come known: all trials begin at once. What one rank does while the others wait stays as it is.
 */
static double bound(const struct row *row, size_t k)
{
	double serial = 0, shared = 0;
	size_t i;

	for (i = 0; i < row->n_stages[0]; i++) {
		serial += row->stage[0][i].alone;
		shared += row->stage[0][i].useful - row->stage[0][i].alone;
	}
	return row->seconds[0] /
	       ((double)ranks[k] * (serial + fmax(shared / (double)ranks[k], row->longest)));
}

static void print_stages(const struct strategy *strategy, const struct row *row, size_t n_ops, size_t k)
{
	size_t i;

	printf("\n%s, %zu ops, %zu ranks:\n%-24s %7s %8s %8s %8s %8s %8s\n", strategy->name, n_ops, ranks[k],
	       "stage", "trials", "seconds", "on 1", "eff. %", "serial %", "unneeded");
	for (i = 0; i < row->n_stages[k]; i++) {
		const struct spent *x = &row->stage[k][i], *one = &row->stage[0][i];
		const double all = x->seconds * (double)ranks[k];

		printf("%-24s %7zu %8.2f %8.2f %8.1f %8.1f %8.1f\n", x->stage, x->trials, x->seconds,
		       one->seconds, 100 * one->seconds / all, 100 * x->serial / all,
		       100 * x->unneeded / all);
	}
}

/* At the first number of ranks at which less than half of their time is of use: which stage loses most of it, and how. */
static void explain(const struct strategy *strategy, const struct row *row, size_t n_ops, size_t worlds)
{
	double most = 0, lost = 0, serial, idle, unneeded;
	const struct spent *worst = NULL;
	size_t k, i;

	for (k = 1; k < N_RANKS && efficiency(row, k) >= 0.5;)
		k++;
	if (k == N_RANKS) {
		printf("%-12s %3zu ops: scales to %zu ranks\n", strategy->name, n_ops, ranks[N_RANKS - 1]);
		return;
	}
	for (i = 0; i < row->n_stages[k]; i++) {
		const struct spent *x = &row->stage[k][i];
		double all = x->seconds * (double)ranks[k] - x->useful;

		lost += all;
		if (all > most) {
			most = all;
			worst = x;
		}
	}
	serial = 100 * worst->serial / most;
	unneeded = 100 * worst->unneeded / most;
	idle = 100 - serial - unneeded;
	printf("%-12s %3zu ops: under 50 %% from %zu ranks on. Most is lost in '%s' (%.0f %% of it; %.0f "
	       "trials): ",
	       strategy->name, n_ops, ranks[k], worst->stage, 100 * most / lost,
	       (double)worst->trials / (double)worlds);
	if (!strategy->replays)
		printf("each trial depends on all before it\n");
	else if (serial >= idle && serial >= unneeded)
		printf("one rank measures, estimates or profiles (%.0f %%)\n", serial);
	else if (unneeded > idle)
		printf("trials depend on each other, what ran ahead was not needed (%.0f %%)\n", unneeded);
	else
		printf("it has too few trials that can be foreseen (%.0f %%)\n", idle);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 20, 60, 200 };
	static struct row rows[64][ARRAY_LEN(sizes)];
	const bool alone = argc > 1 && strcmp(argv[1], "--alone") == 0,
		   stages = argc > 1 && strcmp(argv[1], "--stages") == 0;
	char **arg = argv + (alone || stages);
	const int n_args = argc - (alone || stages);
	const size_t max_trials = n_args > 1 ? strtoul(arg[1], NULL, 10) : 100,
		     worlds = n_args > 2 ? strtoul(arg[2], NULL, 10) : 1;
	const struct strategy *listed;
	struct strategy strategy;
	size_t i, k, n;

	printf("efficiency in percent: time on 1 rank / (N x time on N); at most %zu trials, mean of %zu "
	       "worlds%s\n\n",
	       max_trials, worlds, alone ? ", nothing runs ahead" : "");
	printf("%-12s %4s %7s", "strategy", "ops", "trials");
	for (k = 0; k < N_RANKS; k++)
		printf(" %6zu", ranks[k]);
	printf("\n");
	for (i = 0; (listed = strategy_at(i)); i++)
		for (n = 0; n < ARRAY_LEN(sizes); n++) {
			if (strcmp(listed->name, "sigopt") == 0 || /* its server proposes */
			    (n_args > 3 && strcmp(listed->name, arg[3]) != 0))
				continue;
			strategy = *listed;
			strategy.replays &= !alone;
			fill_row(&rows[i][n], &strategy, sizes[n], max_trials, worlds);
			printf("%-12s %4zu %7.1f", n ? "" : listed->name, sizes[n],
			       (double)rows[i][n].trials / (double)worlds);
			for (k = 0; k < N_RANKS; k++)
				printf(" %6.1f", 100 * efficiency(&rows[i][n], k));
			printf("\n");
			fflush(stdout);
		}
	printf("\nthe same were no guess wrong: trials are known up to the next ranking, estimate or "
	       "profile, and "
	       "guessed from there\n\n");
	for (i = 0; (listed = strategy_at(i)) && !alone; i++)
		for (n = 0; n < ARRAY_LEN(sizes) && rows[i][n].seconds[0] > 0; n++) {
			printf("%-12s %4zu %7.1f", n ? "" : listed->name, sizes[n],
			       (double)rows[i][n].trials / (double)worlds);
			for (k = 0; k < N_RANKS; k++)
				printf(" %6.1f", 100 * rows[i][n].seconds[0] /
							 ((double)ranks[k] * rows[i][n].knowing[k]));
			printf("\n");
		}
	printf("\nthe same were every plan to come known: trials / N, and what one rank does alone\n\n");
	for (i = 0; (listed = strategy_at(i)) && !alone; i++)
		for (n = 0; n < ARRAY_LEN(sizes) && rows[i][n].seconds[0] > 0; n++) {
			printf("%-12s %4zu %7.1f", n ? "" : listed->name, sizes[n],
			       (double)rows[i][n].trials / (double)worlds);
			for (k = 0; k < N_RANKS; k++)
				printf(" %6.1f", 100 * bound(&rows[i][n], k));
			printf("\n");
		}
	printf("\n");
	for (i = 0; (listed = strategy_at(i)) && !alone; i++)
		for (n = 0; n < ARRAY_LEN(sizes) && rows[i][n].seconds[0] > 0; n++)
			explain(listed, &rows[i][n], sizes[n], worlds);
	for (i = 0; (listed = strategy_at(i)) && stages; i++)
		for (n = 0; n < ARRAY_LEN(sizes) && rows[i][n].seconds[0] > 0; n++)
			print_stages(listed, &rows[i][n], sizes[n], 4);
	return 0;
}
