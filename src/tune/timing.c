/* Timing models as they will be deployed: on so many threads, so many at once, on batches of so many samples. */
#include "tune/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runtime/probe.h"
#include "tune/deployed.h"
#include "tune/modes.h"
#include "tune/worker.h"

/* The fp32 model as rewritten is what profiled plans are timed beside if it is so many times as fast as the user's file, and no larger
 * than this: then there are more turns in the same time. */
#define QUICK_SPEEDUP 1.3
#define QUICK_BYTES 64e6

/* The sessions of one model. */
struct entrant {
	struct session **s;
	size_t n;
	bool borrowed;
};

struct timing {
	struct entrant fp32, quick; /* kept from one timing to the next; quick: see QUICK_SPEEDUP */
	/* seconds of the shortest run, by the place in l->timed; 0: not known */
	double run[DEPLOYED_BATCHES + 1], quick_run;
	/* of the fp32 model as it is and as rewritten, if it was timed */
	struct latency rewritten[2];
	bool has_rewritten;
	/* the last plan that was timed with the fp32 model to be reported, on which place, and the times of both */
	struct plan reported;
	size_t reported_on;
	struct latency report[2];
};

static void entrant_release(struct entrant *e)
{
	size_t i;

	for (i = 0; i < e->n && !e->borrowed; i++)
		session_free(e->s[i]);
	free(e->s);
	*e = (struct entrant){ .n = 0 };
}

void timing_free(struct timing *t)
{
	if (!t)
		return;
	entrant_release(&t->fp32);
	entrant_release(&t->quick);
	plan_release(&t->reported);
	free(t);
}

static size_t n_instances(const struct lab *l)
{
	return l->o.deployed.instances ? l->o.deployed.instances : 1;
}

/* Does a session of the lab run as one that is deployed? */
static bool runs_as_deployed(const struct lab *l, const struct session_options *so)
{
	return n_instances(l) == 1 && so->threads == l->o.deployed.threads &&
	       (so->threads == 1 || !so->alone) && (so->threads || !runtime_is_shared(l->rt));
}

static bool fp32_runs_as_deployed(const struct lab *l)
{
	const struct session_options so = lab_session_options(l);

	return runs_as_deployed(l, &so);
}

static bool trials_run_as_deployed(const struct lab *l)
{
	const struct session_options so = lab_trial_options(l);

	return runs_as_deployed(l, &so);
}

static void lend(struct entrant *e, struct session *s)
{
	*e = (struct entrant){ .s = xcalloc(1, sizeof(struct session *)), .n = 1, .borrowed = true };
	e->s[0] = s;
}

/* of the model in memory, or of the file when m is NULL */
static enum fettle_status open_sessions(struct lab *l, struct model *m, struct entrant *e, struct err *err)
{
	struct session_options so = { .threads = l->o.deployed.threads,
				      .deployed = true,
				      .level = l->o.level };
	enum fettle_status st = FETTLE_OK;
	double start = clock_now();

	*e = (struct entrant){ .s = xcalloc(n_instances(l), sizeof(struct session *)) };
	while (e->n < n_instances(l) && !st) {
		st = m ? session_new(&e->s[e->n], l->rt, m, &so, err)
		       : session_open(&e->s[e->n], l->rt, l->o.model, &so, err);
		e->n += !st;
	}
	l->times.session += clock_now() - start;
	return st;
}

static enum fettle_status enter_fp32(struct lab *l, struct entrant **out, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	if (!l->timing)
		l->timing = xcalloc(1, sizeof(*l->timing));
	*out = &l->timing->fp32;
	if (!(*out)->n && fp32_runs_as_deployed(l))
		lend(*out, l->fp32);
	else if (!(*out)->n)
		st = open_sessions(l, NULL, *out, err);
	return st;
}

enum fettle_status deployed_fp32(struct lab *l, struct session **out, struct err *err)
{
	struct entrant *fp32;
	enum fettle_status st = enter_fp32(l, &fp32, err);

	*out = st ? NULL : fp32->s[0];
	return st;
}

static enum fettle_status enter_plan(struct lab *l, const struct plan *p, struct entrant *e, struct err *err)
{
	struct session *s;
	struct model *m;
	enum fettle_status st;

	if (trials_run_as_deployed(l)) {
		st = lab_session(l, p, modes_weights(l), &s, err);
		if (!st)
			lend(e, s);
		return st;
	}
	st = lab_model(l, p, modes_weights(l), &m, err);
	return st ? st : open_sessions(l, m, e, err);
}

void lab_take_session(struct lab *l, const struct plan *p, struct session *s)
{
	struct worker *d = workers_with(l->workers, p);

	if (d && !d->session && trials_run_as_deployed(l))
		d->session = s;
	else
		session_free(s);
}

/* samples, or what looks like some where there is no data */
struct timed_on {
	struct feed_batch b;
	struct tensor *made_up, *inputs;
	size_t n;
};

static enum fettle_status read_inputs(struct lab *l, size_t which, struct timed_on *in, struct err *err)
{
	enum fettle_status st;

	if (l->timed[which]) {
		st = feed_read(l->timed[which], 0, &in->b, err);
		in->inputs = in->b.inputs;
		return st;
	}
	in->n = session_n_inputs(l->fp32);
	in->inputs = in->made_up = xcalloc(in->n, sizeof(*in->made_up));
	return fake_inputs(l->fp32, deployed_batch(&l->o.deployed, which), 1, true, in->made_up, err);
}

static void timed_on_release(struct timed_on *in)
{
	size_t i;

	for (i = 0; in->made_up && i < in->n; i++)
		tensor_free(&in->made_up[i]);
	free(in->made_up);
	feed_batch_release(&in->b);
}

/* The plan that others are measured against is at hand again, should it have given way to another. */
static enum fettle_status keep_at_hand(struct lab *l, const struct plan *against, struct err *err)
{
	struct session *s;
	struct model *m;
	enum fettle_status st;

	if (!l->workers || !workers_with(l->workers, against)) {
		st = trials_run_as_deployed(l) ? lab_session(l, against, modes_weights(l), &s, err)
					       : lab_model(l, against, modes_weights(l), &m, err);
		if (st)
			return st;
	}
	workers_keep(l->workers, against);
	return FETTLE_OK;
}

/* More than plans are compared by: a sixth of an evaluation; while it is not certain which is faster, half of one. */
static struct latency_limits report_limits(const struct lab *l)
{
	return (struct latency_limits){ .seconds = fmin(fmax(l->pass_seconds / 6, 0.04), 2),
					.undecided = fmin(fmax(l->pass_seconds / 2, 0.07), 4),
					.equal = LATENCY_EQUAL,
					.width = 2 * LATENCY_EQUAL };
}

/* The shortest run that the first of two is known to have had; NULL: it is not remembered. */
static double *shortest_run(const struct lab *l, const struct entrant *first, size_t which)
{
	return !l->timing                   ? NULL
	       : first == &l->timing->fp32  ? &l->timing->run[which]
	       : first == &l->timing->quick ? &l->timing->quick_run
					    : NULL;
}

/* two that have entered */
static enum fettle_status time_pair(struct lab *l, const struct entrant *first, const struct entrant *own,
				    size_t which, const struct latency_limits *limits,
				    struct latency times[2], struct err *err)
{
	struct timed_on in = { .b = FEED_BATCH_INIT };
	const bool crowd = sessions_crowd(n_instances(l), l->o.deployed.threads);
	double *run = shortest_run(l, first, which);
	struct latency_limits how = *limits;
	struct contender v[2];
	double start = clock_now();
	enum fettle_status st = read_inputs(l, which, &in, err);

	if (!st) {
		v[0] = (struct contender){ first->s, first->n, in.inputs, crowd, !l->o.deployed.threads };
		v[1] = (struct contender){ own->s, own->n, in.inputs, crowd, !l->o.deployed.threads };
		if (l->timing && own->borrowed) /* a session that others have used */
			how.warm = l->timing->run[which];
		if (run)
			how.least = *run;
		st = evaluate_latency(v, 2, &how, lab_go_on_uncounted, l, times, err);
		if (!st && run)
			*run = how.least > 0 ? fmin(how.least, times[0].least) : times[0].least;
	}
	l->times.latency += clock_now() - start;
	timed_on_release(&in);
	return st;
}

enum fettle_status lab_time(struct lab *l, const struct plan *p, const struct plan *against, size_t which,
			    const struct latency_limits *limits, struct latency times[2], struct err *err)
{
	struct entrant own = { .n = 0 }, other = { .n = 0 }, *first = &other;
	enum fettle_status st = FETTLE_OK;

	if (against)
		st = keep_at_hand(l, against, err);
	if (!st)
		st = against ? enter_plan(l, against, &other, err) : enter_fp32(l, &first, err);
	if (!st)
		st = enter_plan(l, p, &own, err);
	if (!st)
		st = time_pair(l, first, &own, which, limits, times, err);
	entrant_release(&own);
	entrant_release(&other);
	return st;
}

enum fettle_status lab_time_to_report(struct lab *l, const struct plan *p, size_t which,
				      struct latency times[2], struct err *err)
{
	const struct latency_limits limits = report_limits(l);
	struct timing *t = l->timing;
	enum fettle_status st;

	if (t && t->reported_on == which && plan_equal(&t->reported, p, &l->t->space)) {
		memcpy(times, t->report, sizeof(t->report));
		return FETTLE_OK;
	}
	st = lab_time(l, p, NULL, which, &limits, times, err);
	if (st)
		return st;
	t = l->timing;
	plan_copy(&t->reported, p);
	t->reported_on = which;
	memcpy(t->report, times, sizeof(t->report));
	return FETTLE_OK;
}

double timing_fp32_run(const struct lab *l)
{
	return l->timing ? l->timing->run[l->o.deployed.compared] : 0;
}

static struct latency_limits limits_rewritten(const struct lab *l)
{
	struct latency_limits limits = report_limits(l);

	limits.seconds /= 2;
	limits.undecided = limits.width = 0; /* to see what is due to the graph, a few rounds are enough */
	return limits;
}

/* against the user's file, unless `first` is given */
static enum fettle_status time_with(struct lab *l, const struct entrant *first, struct session *s,
				    const struct latency_limits *limits, struct latency times[2],
				    struct err *err)
{
	struct entrant own, *fp32;
	enum fettle_status st = first ? FETTLE_OK : enter_fp32(l, &fp32, err);

	if (st)
		return st;
	first = first ? first : fp32;
	lend(&own, s);
	st = time_pair(l, first, &own, l->o.deployed.compared, limits, times, err);
	entrant_release(&own);
	return st;
}

enum fettle_status time_rewritten_with(struct lab *l, struct session *s, double *least, struct err *err)
{
	const struct latency_limits limits = limits_rewritten(l);
	struct latency times[2];
	enum fettle_status st;

	*least = NAN;
	if (n_instances(l) > 1)
		return FETTLE_OK;
	st = time_with(l, NULL, s, &limits, times, err);
	if (st)
		return st;
	*least = times[1].least;
	memcpy(l->timing->rewritten, times, sizeof(times));
	l->timing->has_rewritten = true;
	return st;
}

enum fettle_status time_beside_fp32(struct lab *l, struct session *s, double seconds, double slower,
				    double *ratio, struct err *err)
{
	const bool quick = l->timing && l->timing->quick.n;
	const double quicker = quick ? rewritten_speedup(l) : 1;
	const struct latency_limits limits = { .seconds = seconds, .slower = slower * quicker };
	struct latency times[2];
	enum fettle_status st;

	*ratio = NAN;
	if (n_instances(l) > 1)
		return FETTLE_OK;
	st = time_with(l, quick ? &l->timing->quick : NULL, s, &limits, times, err);
	if (!st)
		*ratio = 1 / times[1].speedup.value / quicker;
	return st;
}

void timing_take_rewritten(struct lab *l, struct session *s)
{
	if (!s || rewritten_speedup(l) < QUICK_SPEEDUP || l->timing->quick.n ||
	    (double)l->baseline_size > QUICK_BYTES) {
		session_free(s);
		return;
	}
	lend(&l->timing->quick, s);
	l->timing->quick.borrowed = false; /* ours from now on */
}

enum fettle_status time_beside_rewritten(struct lab *l, const struct plan *p, double seconds, double *ratio,
					 struct err *err)
{
	const struct latency_limits limits = { .seconds = seconds };
	struct entrant own = { .n = 0 }, rewritten = { .n = 0 };
	struct latency times[2];
	enum fettle_status st = open_sessions(l, l->s->m, &rewritten, err);

	if (!st)
		st = enter_plan(l, p, &own, err);
	if (!st)
		st = time_pair(l, &rewritten, &own, l->o.deployed.compared, &limits, times, err);
	*ratio = st ? NAN : 1 / times[1].speedup.value;
	entrant_release(&own);
	entrant_release(&rewritten);
	return st;
}

bool was_rewritten(const struct lab *l)
{
	return l->timing && l->timing->has_rewritten;
}

double rewritten_speedup(const struct lab *l)
{
	return was_rewritten(l) ? l->timing->rewritten[1].speedup.value : 1;
}

enum fettle_status lab_time_rewritten(struct lab *l, struct latency times[2], struct err *err)
{
	const struct latency_limits limits = limits_rewritten(l);
	struct entrant own = { .n = 0 }, *first;
	enum fettle_status st;

	if (l->timing && l->timing->has_rewritten) {
		memcpy(times, l->timing->rewritten, sizeof(l->timing->rewritten));
		return FETTLE_OK;
	}
	workers_end_sessions(l->workers);
	st = enter_fp32(l, &first, err);
	if (!st)
		st = open_sessions(l, l->s->m, &own, err);
	if (!st)
		st = time_pair(l, first, &own, 0, &limits, times, err);
	entrant_release(&own);
	return st;
}

void lab_prefer(void *lab, const struct plan *p)
{
	struct lab *l = lab;

	if (l->o.weights[LAB_LATENCY] > 0 && l->workers)
		workers_keep(l->workers, p);
}
