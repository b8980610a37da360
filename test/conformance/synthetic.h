/*
 * Synthetic tuning spaces without a model: a loss that is computed from the plan, a clock that only trials
 * move, and a log of everything that was run.
 */
#ifndef CONFORMANCE_SYNTHETIC_H
#define CONFORMANCE_SYNTHETIC_H

#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"
#include "blockwise/blockwise.h"
#include "tune/search.h"

/* What a space is like. Zero is the plain case throughout. */
struct recipe_for_world {
	const char *name;
	size_t n_ops;
	unsigned settings;   /* quantized options per op, at least 1 */
	bool dynamic;        /* half of them are dynamic */
	bool matrices;       /* and only one op in four may be; profiles tell that it gains so, too */
	double dynamic_loss; /* what a dynamic op loses, as a share of what a static one does; 0: as much */
	size_t n_types, n_recipes;
	int n_blocks;
	unsigned n_sizes;  /* numbers of calibration samples to choose from */
	double op_loss;    /* what quantizing all ops costs by itself */
	size_t n_pairs;    /* two ops of which both must be in fp32, or a large loss stays */
	double rank_noise; /* how far off ranks are, as a power of e; 0: up to half */
	double wobble; /* loss that depends on the plan without rhyme or reason: accuracy is not monotone */
	double fail_rate;    /* trials that fail */
	double always;       /* loss as soon as anything is quantized */
	double setting_loss; /* what the worst setting of every op would cost */
	unsigned fixed;      /* one op in so many may not fall back */
	unsigned slow;       /* one op in so many gains nothing from int8 */
	bool slower; /* int8 costs each op time, the op of the seed least, which profiles tell; the fp32 model's objective is known */
	/* An op, and the next if its number is odd, gain only together: one alone in int8 costs time. What is fastest is known. */
	bool couples;
	bool costly;  /* the last recipe is */
	bool wide;    /* ops can be in 16 bits, at a tenth of their loss */
	bool twins;   /* every second setting of an op, and the last recipe, change nothing */
	bool blocks;  /* settings are weight-only formats: fewer bits lose more */
	bool by_size; /* the objective is the bytes of those */
	bool by_time; /* the objective is the sum of what ops take, which profiles tell; few bits are not always fastest */
	bool int8; /* the first option of each op is static int8 */
	bool lower_is_better, absolute;
};

enum { PAIRS_MAX = 8, LOG_MAX = 4096 };
#define FP32_MS 100.0 /* the objective of a plan that quantizes nothing, as a rule */

struct logged {
	struct plan plan;
	struct score score;
	size_t number, samples;
	double seconds;
	char stage[64];
};

struct world {
	bool no_early, frugal, bounded;
	size_t samples;     /* of an evaluation; 0: not known */
	bool counts;        /* each of them right or wrong */
	bool only_lose;     /* what is lost grows as errors do */
	bool gains_nothing; /* the fastest plan is found to save next to nothing */
	bool disturbed;     /* until it is doubted, every second op is thought to be faster in fp32 */
	double trial_runs;
	size_t width;
	const struct recipe_for_world *r;
	struct space space;
	struct param_option (*options)[SPACE_OPTIONS_MAX];
	const struct strategy_options *options_given; /* NULL: only the seed */
	double *weight;
	size_t pair[PAIRS_MAX][2];
	uint64_t seed;
	bool (*needle)(const struct world *w, const struct plan *p); /* if given: only such plans pass */
	/* the run */
	double clock, timeout;
	size_t n_runs, n_measured, n_ranked, n_ahead;
	void (*on_ahead)(struct world *w, const struct trial *t, enum fettle_status st);
	double last_start;   /* of a run */
	size_t cancel_after; /* runs; 0: never */
	size_t fail_at;      /* run number that returns fail_with; 0: never */
	enum fettle_status fail_with;
	VEC(struct logged) log, ended; /* recorded; run ahead to their end */
	const struct world *history;   /* trials that are known: */
	size_t n_history;
};

/* What a plan comes to: the first of the options that are the same. */
static inline void world_real(const struct world *w, const struct plan *p, struct plan *out)
{
	size_t i;

	plan_copy(out, p);
	for (i = 0; i < w->space.n_ops; i++)
		if (option_is_int8(&w->space.v[i].options[p->choice[i]]))
			out->choice[i] &= 0xfe;
	if (w->r->n_recipes)
		out->choice[w->r->n_ops + w->r->n_recipes - 1] = 0;
}

static inline uint64_t choices_hash(const struct plan *p, uint64_t salt)
{
	uint8_t *bytes = xcalloc(p->n + 1, 1);
	uint64_t h;
	size_t i;

	for (i = 0; i < p->n; i++)
		bytes[i] = (uint8_t)p->choice[i];
	h = hash_bytes(bytes, p->n, salt);
	free(bytes);
	return h;
}

static inline uint64_t world_hash(const struct world *w, const struct plan *p, uint64_t salt)
{
	struct plan real = PLAN_INIT;
	uint64_t h;

	if (!w->r->twins)
		return choices_hash(p, salt);
	world_real(w, p, &real);
	h = choices_hash(&real, salt);
	plan_release(&real);
	return h;
}

static inline double noise(const struct world *w, const struct plan *p, uint64_t salt)
{
	uint64_t h = world_hash(w, p, w->seed * 1000003 + salt);

	return (double)(h >> 11) / 9007199254740992.0;
}

/* ---- what a plan is worth ---- */

static inline bool in_fp32(const struct world *w, const struct plan *p, size_t op)
{
	return !plan_is_quantized(p, &w->space, op);
}

static inline bool in_16_bits(const struct world *w, const struct plan *p, size_t op)
{
	return w->space.v[op].options[p->choice[op]].mode == OPTION_WIDE;
}

static inline double dynamic_factor(const struct world *w, const struct plan *p, size_t op)
{
	return w->r->dynamic_loss > 0 && w->space.v[op].options[p->choice[op]].mode == OPTION_DYNAMIC
		       ? w->r->dynamic_loss
		       : 1;
}

/* Is the op in int8 to no avail, because what it is fast together with is not? */
static inline bool is_alone(const struct world *w, const struct plan *p, size_t op)
{
	return w->r->couples && !in_fp32(w, p, op) && (op ^ 1) < w->space.n_ops && in_fp32(w, p, op ^ 1);
}

static inline double setting_loss(const struct world *w, size_t op, uint16_t choice)
{
	size_t key[] = { op, choice, w->seed };

	return w->r->setting_loss / (double)w->r->n_ops * (double)(hash_bytes(key, sizeof(key), 5) % 1000) /
	       1000;
}

/* a step of so many bits, in so large a block */
static inline double block_loss(const struct world *w, size_t op, uint16_t choice)
{
	const struct param_option *o = &w->space.v[op].options[choice];

	if (o->mode != OPTION_WEIGHT)
		return 1;
	return (o->bits == 8   ? 1.0 / 256
		: o->bits == 4 ? 1
			       : 16) *
	       (o->block > 32 ? 1.5 : 1) * (o->algorithm == BLOCK_RTN ? 1 : 0.4);
}

static inline double loss_of_real(const struct world *w, const struct plan *p)
{
	double loss = 0;
	size_t i;

	if (!plan_n_quantized(p, &w->space))
		return 0;
	if (w->needle)
		return w->needle(w, p) ? 0 : 0.5 + 0.1 * noise(w, p, 3);
	for (i = 0; i < w->space.n_ops; i++)
		if (!in_fp32(w, p, i))
			loss += w->weight[i] * (in_16_bits(w, p, i) ? 0.1 : 1) * dynamic_factor(w, p, i) *
					block_loss(w, i, p->choice[i]) *
					(1 - 0.03 * (double)(w->r->blocks ? 0 : p->choice[i] % 7)) +
				setting_loss(w, i, p->choice[i]);
	for (i = w->space.n_ops; i < w->space.n; i++)
		loss *= 1 - 0.02 * p->choice[i];
	for (i = 0; i < w->r->n_pairs; i++)
		loss += in_fp32(w, p, w->pair[i][0]) && in_fp32(w, p, w->pair[i][1]) ? 0 : 0.4;
	return loss + w->r->always + w->r->wobble * (noise(w, p, 1) - 0.5);
}

static inline double world_loss(const struct world *w, const struct plan *p)
{
	struct plan real = PLAN_INIT;
	double loss;

	if (!w->r->twins)
		return loss_of_real(w, p);
	world_real(w, p, &real);
	loss = loss_of_real(w, &real);
	plan_release(&real);
	return loss;
}

static inline bool world_fails(const struct world *w, const struct plan *p)
{
	return noise(w, p, 2) < w->r->fail_rate;
}

enum { BASELINE = 2 };
#define TOLERANCE 0.01

static inline double world_accuracy(const struct world *w, const struct plan *p)
{
	double loss = fmin(world_loss(w, p), 0.9); /* no worse than guessing */

	if (w->r->absolute)
		loss /= BASELINE;
	return BASELINE * (w->r->lower_is_better ? 1 + loss : 1 - loss);
}

/* Independent of the search's arithmetic, so with room for rounding. */
static inline bool world_meets(const struct world *w, const struct plan *p)
{
	return !world_fails(w, p) && plan_n_quantized(p, &w->space) && world_loss(w, p) <= TOLERANCE + 1e-9;
}

/* every op has the same share of the multiply-adds */
static inline double world_share(void *self, const struct plan *p)
{
	const struct world *w = self;

	return (double)plan_n_quantized(p, &w->space) / (double)w->space.n_ops;
}

static inline bool world_is_slight(struct world *w, const struct plan *p)
{
	return world_meets(w, p) && world_share(w, p) < SLIGHT_SHARE;
}

/* Ops differ in size; in which of two formats they are faster depends on the op. */
static inline double op_seconds(const struct world *w, size_t op, uint16_t choice)
{
	const struct param_option *o = &w->space.v[op].options[choice];
	const double large = (double)(1 + op % 5);

	if (o->mode != OPTION_WEIGHT)
		return large * (o->mode == OPTION_FP32 ? 1 : op % 2 ? 0.2 : 0.4);
	return large *
	       (o->bits == 8   ? 0.45
		: o->bits == 4 ? 0.3
		: op % 3       ? 0.25
			       : 0.5) *
	       (o->block > 32 ? 0.9 : 1);
}

/* In a world where int8 costs time. */
static inline double op_costs(const struct world *w, size_t op)
{
	return op == w->seed % w->space.n_ops ? 0.5 : 3;
}

static inline double world_objective(const struct world *w, const struct plan *p)
{
	double ms = w->r->by_size || w->r->by_time ? 0 : FP32_MS;
	size_t i;

	for (i = 0; i < w->space.n_ops; i++)
		if (w->r->by_time)
			ms += op_seconds(w, i, p->choice[i]);
		else if (w->r->by_size)
			ms += w->space.v[i].options[p->choice[i]].bytes;
		else if (w->r->slower)
			ms += in_fp32(w, p, i) ? 0 : op_costs(w, i);
		else if (is_alone(w, p, i))
			ms += w->space.v[i].gain;
		else if (!in_fp32(w, p, i))
			ms -= w->space.v[i].gain + 1e-6 -
			      1e-9 * (w->r->twins ? p->choice[i] & 0xfe : p->choice[i]);
	return ms;
}

/* ---- the backend ---- */

/* What lies within 0.1, then 0.05, … of the accuracy, until that will do; a world that ends early pays less: a tenth for each. */
static inline void world_end_early(const struct world *w, struct trial *t)
{
	double a = t->score.accuracy, half;
	size_t tenths = 1;

	for (half = 0.1; t->verdict && half > 1e-6 && tenths < 10; half /= 2, tenths++)
		if (verdict_certain(t->verdict, a - half / 3, a + half)) {
			t->score.early = true;
			t->score.low = a - half / 3;
			t->score.high = a + half;
			break;
		}
	t->samples = t->score.early ? tenths * w->samples / 10 : w->samples;
}

static inline enum fettle_status world_run(void *self, struct trial *out, struct err *err)
{
	struct world *w = self;
	const struct plan *p = &out->plan;

	w->n_runs++;
	w->last_start = w->clock;
	w->clock += 1;
	if (w->fail_at == w->n_runs)
		return fail(err, w->fail_with, "cannot run: made to fail");
	if (world_fails(w, p)) {
		out->score.failed = w->n_runs % 2; /* some only come out as NaN */
		strcpy(out->why, "as ordered");
	} else {
		out->score.accuracy = world_accuracy(w, p);
		world_end_early(w, out);
	}
	return FETTLE_OK;
}

static inline void world_identify(void *self, struct trial *t)
{
	t->identity = world_hash(self, &t->plan, 77) | 1;
}

/* As many threads would: the last one first. Of those that run ahead, every second is broken off. */
static inline void world_run_all(void *self, struct trial *t, size_t n, enum fettle_status *st,
				 struct err *err)
{
	struct world *w = self;

	while (n-- > 0) {
		if (!t[n].ahead) {
			st[n] = world_run(self, &t[n], err);
			continue;
		}
		st[n] = w->n_ahead++ % 2 ? FETTLE_STOP : FETTLE_OK;
		if (w->on_ahead)
			w->on_ahead(w, &t[n], st[n]);
	}
}

static inline enum fettle_status world_measure(void *self, struct trial *t, const struct trial *against,
					       double *value, struct err *err)
{
	struct world *w = self;
	const struct plan *p = &t->plan;

	(void)against;
	(void)err;
	w->n_measured++;
	w->clock += 0.125;
	*value = world_objective(w, p);
	return FETTLE_OK;
}

static inline double op_changes(const struct world *w, const struct plan *p, size_t op, uint16_t to)
{
	struct plan q = PLAN_INIT;
	double change;

	plan_copy(&q, p);
	q.choice[op] = to;
	change = fabs(fmin(world_loss(w, &q), 0.9) - fmin(world_loss(w, p), 0.9));
	plan_release(&q);
	return change;
}

/* Noisy, but right on the whole. An op after a bad pair looks bad, guilty or not. */
static inline double op_score(const struct world *w, const struct plan *p, size_t op, enum rank by)
{
	double off = noise(w, p, 100 + op) - 0.5;
	double factor = w->r->rank_noise > 0 ? exp(2 * w->r->rank_noise * off) : 1 + off,
	       error = w->weight[op];
	size_t i;

	if (by == RANK_SECONDS)
		return op_seconds(w, op, p->choice[op]);
	if (by == RANK_DYNAMIC)
		return w->space.v[op].gain / 2;
	if (by == RANK_ALONE)
		return -op_costs(w, op) / FP32_MS;
	if (w->space.n_ops > 100 && by != RANK_OUTPUT_MSE)
		return factor * error; /* what follows takes time for each op */
	if (by == RANK_IMPACT)
		return factor * op_changes(w, p, op, w->space.v[op].fallback);
	if (by == RANK_IMPACT_BACK)
		return factor * op_changes(w, p, op, w->space.v[op].first);
	for (i = 0; i < w->r->n_pairs && by == RANK_OUTPUT_MSE; i++)
		if (op >= w->pair[i][0] && !(in_fp32(w, p, w->pair[i][0]) && in_fp32(w, p, w->pair[i][1])))
			error += 0.2 * pow(0.97, (double)(op - w->pair[i][0]));
	return factor * error;
}

static inline bool rank_speaks_of(const struct world *w, const struct plan *p, size_t op, enum rank by)
{
	if (by == RANK_SECONDS)
		return w->r->by_time;
	if (by == RANK_DYNAMIC)
		return w->r->matrices && op % 4 == 0;
	if (by == RANK_WORTH || by == RANK_ALONE)
		return by == RANK_ALONE && w->r->slower;
	if (by == RANK_IMPACT_BACK)
		return in_fp32(w, p, op) && w->space.v[op].n_options > 1;
	if (by == RANK_HESSIAN && !w->space.v[op].compute)
		return false;
	if (by == RANK_IMPACT)
		return plan_can_fall_back(p, &w->space, op);
	return !in_fp32(w, p, op);
}

static inline enum fettle_status world_rank(void *self, const struct plan *p, enum rank by, int batches,
					    struct op_order *out, struct err *err)
{
	struct world *w = self;
	size_t i;

	(void)err;
	(void)batches;
	w->n_ranked++;
	w->clock += 0.0625;
	out->op = xcalloc(w->space.n_ops, sizeof(*out->op));
	out->score = xcalloc(w->space.n_ops, sizeof(*out->score));
	for (i = 0; i < w->space.n_ops; i++) {
		if (!rank_speaks_of(w, p, i, by))
			continue;
		out->op[out->n] = i;
		out->score[out->n++] = op_score(w, p, i, by);
	}
	return FETTLE_OK;
}

/* Noisy, but right on the whole. */
static inline enum fettle_status world_estimate(void *self, const struct plan *p, int batches, double *error,
						struct err *err)
{
	struct world *w = self;

	(void)batches;
	(void)err;
	w->clock += 0.03;
	*error = fmax(world_loss(w, p), 0) * (0.8 + 0.4 * noise(w, p, 7));
	return FETTLE_OK;
}

/* without the ops that cost time in int8; the one that costs least, if all do and nothing is gained */
static inline enum fettle_status world_fastest(void *self, const struct plan *from, bool within,
					       struct plan *out, struct err *err)
{
	struct world *w = self;
	size_t i;

	(void)within;
	(void)err;
	w->clock += 0.1;
	plan_copy(out, from);
	for (i = 0; i < w->space.n_ops && w->r->couples; i++)
		if (is_alone(w, from, i) && plan_can_fall_back(from, &w->space, i))
			out->choice[i] = w->space.v[i].fallback;
	for (i = 0; i < w->space.n_ops && w->r->slower && w->gains_nothing; i++)
		if (i != w->seed % w->space.n_ops)
			out->choice[i] = w->space.v[i].fallback;
	for (i = 0; i < w->space.n_ops && w->disturbed; i += 2)
		if (plan_can_fall_back(from, &w->space, i))
			out->choice[i] = w->space.v[i].fallback;
	return FETTLE_OK;
}

static inline bool world_doubts(void *self, const struct plan *p, double objective)
{
	struct world *w = self;
	const bool doubted = w->disturbed;

	(void)p;
	(void)objective;
	w->disturbed = false;
	return doubted;
}

static inline double world_saves(void *self)
{
	return ((const struct world *)self)->gains_nothing ? 0.005 : INFINITY;
}

static inline bool world_known(void *self, const struct plan *p, struct trial *out)
{
	const struct world *w = self;
	size_t i;

	for (i = 0; w->history && i < w->n_history; i++) {
		const struct logged *l = &w->history->log.v[i];

		if (!plan_equal(&l->plan, p, &w->space))
			continue;
		out->identity = world_hash(w, p, 77) | 1;
		out->score = l->score;
		out->seconds = l->seconds;
		out->samples = l->samples;
		return true;
	}
	return false;
}

static inline void world_record(void *self, const struct trial *t)
{
	struct world *w = self;
	struct logged l = {
		.score = t->score, .number = t->number, .seconds = t->seconds, .samples = t->samples
	};

	plan_copy(&l.plan, &t->plan);
	snprintf(l.stage, sizeof(l.stage), "%s", t->stage);
	VEC_PUSH(&w->log, l);
}

static inline bool world_cancelled(void *self)
{
	const struct world *w = self;

	return w->cancel_after && w->n_runs >= w->cancel_after;
}

static inline double world_now(void *self)
{
	return ((const struct world *)self)->clock;
}

static const struct search_backend world_backend = {
	.run = world_run,
	.run_all = world_run_all,
	.identify = world_identify,
	.share = world_share,
	.objective = world_measure,
	.rank = world_rank,
	.estimate = world_estimate,
	.fastest = world_fastest,
	.doubts = world_doubts,
	.saves = world_saves,
	.known = world_known,
	.record = world_record,
	.cancelled = world_cancelled,
	.now = world_now,
};

static inline struct search_config world_config(struct world *w, size_t max_trials)
{
	return (struct search_config){ .space = &w->space,
				       .options = w->options_given
							  ? *w->options_given
							  : (struct strategy_options){ .seed = w->seed },
				       .baseline = BASELINE,
				       .higher_is_better = !w->r->lower_is_better,
				       .relative = !w->r->absolute,
				       .tolerance = TOLERANCE,
				       .fp32_objective = w->r->slower ? FP32_MS : 0,
				       .max_trials = max_trials,
				       .timeout = w->timeout,
				       .no_early = w->no_early,
				       .width = w->width,
				       .frugal = w->frugal,
				       .bounded = w->bounded,
				       .samples = w->samples,
				       .trial_runs = w->trial_runs,
				       .counts = w->counts,
				       .only_lose = w->only_lose,
				       .backend = &world_backend,
				       .self = w };
}

/* ---- making one ---- */

static inline void make_op(struct world *w, size_t i, struct rng *rng)
{
	static const char *const types[] = { "Conv",   "MatMul", "Gemm", "Add",  "MaxPool",
					     "Concat", "Mul",    "Relu", "LSTM", "Gather" };
	const struct recipe_for_world *r = w->r;
	struct param *op = &w->space.v[i];
	size_t type = rng_below(rng, r->n_types ? r->n_types : 1);
	unsigned k, n = 0;

	if (r->int8)
		w->options[i][n++] = (struct param_option){ .mode = OPTION_STATIC, .setting = 1000 };
	for (k = 0; k < r->settings && r->blocks; k++) {
		static const struct block_format forms[] = { { 4, 32, false },
							     { 4, 128, false },
							     { 8, 128, false },
							     { 2, 32, false },
							     { 2, 128, false } };
		static const enum block_algorithm by[] = { BLOCK_RTN, BLOCK_GPTQ, BLOCK_GRAM };
		const struct block_format *f = &forms[k % 5];

		w->options[i][n++] = (struct param_option){ .mode = OPTION_WEIGHT,
							    .setting = k,
							    .bytes = (double)(1 + i % 5) *
								     (f->bits + 32.0 / (double)f->block),
							    .bits = (unsigned)f->bits,
							    .block = (unsigned)f->block,
							    .algorithm = by[k / 5 % 3] };
	}
	for (k = 0; k < r->settings && !r->blocks; k++)
		w->options[i][n++] =
			(struct param_option){ .mode = r->dynamic && k >= (r->settings + 1) / 2 &&
								       !(r->matrices && i % 4)
							       ? OPTION_DYNAMIC
							       : OPTION_STATIC,
					       .setting = k,
					       .part = { (uint16_t)(k / 2), (uint16_t)(k % 2) } };
	*op = (struct param){
		.kind = PARAM_OP,
		.name = arena_strfmt(&w->space.arena, "op %zu", i),
		.type = types[type],
		.type_id = (unsigned)type,
	};
	if (r->wide)
		w->options[i][n++] = (struct param_option){ .mode = OPTION_WIDE, .setting = ~0u };
	op->fallback = r->fixed && i % r->fixed == 0 ? NO_OPTION : (uint16_t)n;
	op->apply = NO_OPTION;
	if (op->fallback != NO_OPTION)
		w->options[i][n++] =
			(struct param_option){ .mode = OPTION_FP32, .bytes = 32.0 * (double)(1 + i % 5) };
	op->n_options = (uint16_t)n;
	op->options = w->options[i];
	op->block = r->n_blocks && i > 0 ? (int)(i * (size_t)r->n_blocks / r->n_ops) : -1;
	op->compute = type < 3;
	op->gain = r->slow && i % r->slow == 0 ? 0 : 1.0 / (double)r->n_ops;
	w->space.types[type] = types[type];
	w->weight[i] = -log(1 - rng_unit(rng)); /* a few cost much, most cost little */
}

static inline void make_pairs(struct world *w, struct rng *rng)
{
	size_t i;

	for (i = 0; i < w->r->n_pairs; i++) {
		do
			w->pair[i][0] = rng_below(rng, w->r->n_ops - 1);
		while (w->r->fixed &&
		       (w->pair[i][0] % w->r->fixed == 0 || (w->pair[i][0] + 1) % w->r->fixed == 0));
		w->pair[i][1] = w->pair[i][0] + 1;
	}
}

static inline void scale_weights(struct world *w)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < w->r->n_ops; i++)
		sum += w->weight[i];
	for (i = 0; i < w->r->n_ops; i++)
		w->weight[i] *= w->r->op_loss / sum;
}

static inline void world_init(struct world *w, const struct recipe_for_world *r, uint64_t seed)
{
	size_t i, n = r->n_ops + r->n_recipes + (r->n_sizes > 0);
	const char **numbers;
	struct rng rng;

	*w = (struct world){ .r = r, .seed = seed };
	rng_seed(&rng, seed);
	w->space = (struct space){ .v = xcalloc(n, sizeof(struct param)),
				   .n = n,
				   .n_ops = r->n_ops,
				   .types = xcalloc(10, sizeof(char *)),
				   .n_types = r->n_types ? r->n_types : 1,
				   .n_blocks = r->n_blocks,
				   .prefer_static = r->dynamic };
	w->options = xcalloc(r->n_ops, sizeof(*w->options));
	w->weight = xcalloc(r->n_ops, sizeof(*w->weight));
	for (i = 0; i < 10; i++)
		w->space.types[i] = "none";
	for (i = 0; i < r->n_ops; i++)
		make_op(w, i, &rng);
	for (i = r->n_ops; i < r->n_ops + r->n_recipes; i++)
		w->space.v[i] = (struct param){ .kind = PARAM_RECIPE,
						.name = arena_strfmt(&w->space.arena, "recipe %zu", i),
						.n_options = 2,
						.fallback = NO_OPTION,
						.apply = i % 3 ? 1 : NO_OPTION };
	if (r->costly)
		w->space.v[r->n_ops + r->n_recipes - 1].costly = true;
	if (r->n_sizes)
		w->space.v[n - 1] = (struct param){ .kind = PARAM_SAMPLES,
						    .name = "samples",
						    .n_options = (uint16_t)r->n_sizes,
						    .fallback = NO_OPTION,
						    .apply = NO_OPTION };
	numbers = arena_alloc(&w->space.arena, SPACE_OPTIONS_MAX * sizeof(*numbers));
	for (i = 0; i < SPACE_OPTIONS_MAX; i++)
		numbers[i] = arena_strfmt(&w->space.arena, "%zu", i);
	for (i = 0; i < n; i++)
		w->space.v[i].names = numbers;
	make_pairs(w, &rng);
	scale_weights(w);
}

static inline void world_release(struct world *w)
{
	size_t i;

	for (i = 0; i < w->log.n; i++)
		plan_release(&w->log.v[i].plan);
	for (i = 0; i < w->ended.n; i++)
		plan_release(&w->ended.v[i].plan);
	VEC_RELEASE(&w->ended);
	VEC_RELEASE(&w->log);
	space_release(&w->space);
	free(w->space.v);
	free(w->space.types);
	free(w->options);
	free(w->weight);
}

#endif
