/* Sessions as contenders: one or several at once, each in its own thread. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "evaluate/evaluate.h"

struct timing {
	const struct contender *v;
	double seconds;
	progress_fn progress;
	void *self;
};

static enum fettle_status run_once(struct session *s, const struct tensor *inputs, struct run_time *out,
				   struct err *err)
{
	struct tensor *outputs = xcalloc(session_n_outputs(s), sizeof(*outputs));
	long waited = clock_waits();
	double cpu = clock_thread(), start = clock_now();
	enum fettle_status st = session_run(s, inputs, outputs, err);

	*out = (struct run_time){ .elapsed = clock_now() - start,
				  .cpu = clock_thread() - cpu,
				  .waited = clock_waits() > waited };
	free(outputs);
	return st;
}

struct instance {
	struct session *s;
	const struct tensor *inputs;
	const atomic_bool *go;
	struct run_time time;
	enum fettle_status st;
	struct err err;
};

static void *run_instance(void *arg)
{
	struct instance *i = arg;

	while (!atomic_load(i->go))
		sched_yield();
	i->st = run_once(i->s, i->inputs, &i->time, &i->err);
	return NULL;
}

/* All at once; what counts is the mean of what each took. */
static enum fettle_status run_instances(const struct contender *c, struct run_time *out, struct err *err)
{
	struct instance *v = xcalloc(c->n, sizeof(*v));
	pthread_t *threads = xcalloc(c->n, sizeof(*threads));
	enum fettle_status st = FETTLE_OK;
	atomic_bool go = false;
	size_t i, n;

	*out = (struct run_time){ .waited = c->crowded };
	for (n = 0; n < c->n; n++) {
		v[n] = (struct instance){ .s = c->s[n], .inputs = c->inputs, .go = &go };
		if (pthread_create(&threads[n], NULL, run_instance, &v[n])) {
			st = fail(err, FETTLE_SYSTEM, "cannot start thread %zu of %zu to time sessions in",
				  n + 1, c->n);
			break;
		}
	}
	atomic_store(&go, true);
	for (i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		out->elapsed += v[i].time.elapsed / (double)c->n;
		out->cpu += v[i].time.cpu / (double)c->n;
		out->waited |= v[i].time.waited;
		if (v[i].st && !st) {
			st = v[i].st;
			*err = v[i].err;
		}
	}
	free(threads);
	free(v);
	return st;
}

bool sessions_crowd(size_t n, int threads)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 1 && (!threads || (long)n * threads > cores);
}

static enum fettle_status run(void *self, size_t which, struct run_time *out, struct err *err)
{
	const struct contender *c = &((const struct timing *)self)->v[which];

	return c->n > 1 ? run_instances(c, out, err) : run_once(c->s[0], c->inputs, out, err);
}

/*
 * Where a session has a thread for each core, the runtime binds all but the caller's, to every core but the first. If the caller's is on
 * one of theirs, two wait for each other until the system moves it: it stays on the first as long as it is timed.
 */
static bool bind_to_first(cpu_set_t *before)
{
	cpu_set_t first;
	size_t i;

	if (sched_getaffinity(0, sizeof(*before), before))
		return false;
	for (i = 0; i < CPU_SETSIZE && !CPU_ISSET(i, before); i++)
		;
	CPU_ZERO(&first);
	CPU_SET(i % CPU_SETSIZE, &first);
	return sched_setaffinity(0, sizeof(first), &first) == 0;
}

static bool use_all_cores(const struct contender *v, size_t n)
{
	size_t i;

	for (i = 0; i < n && v[i].n == 1 && v[i].all_cores; i++)
		;
	return i == n;
}

static double now(void *self)
{
	(void)self;
	return clock_now();
}

static bool go_on(void *self, double seconds)
{
	const struct timing *t = self;

	return !t->progress ||
	       t->progress(t->self, (size_t)(1000 * (seconds < t->seconds ? seconds : t->seconds)),
			   (size_t)(1000 * t->seconds));
}

enum fettle_status evaluate_latency(const struct contender *v, size_t n, const struct latency_limits *limits,
				    progress_fn progress, void *self, struct latency *out, struct err *err)
{
	struct timing t = { .v = v, .seconds = limits->seconds, .progress = progress, .self = self };
	const struct turns turns = { .n = n,
				     .run = run,
				     .now = now,
				     .go_on = go_on,
				     .self = &t,
				     .seconds = limits->seconds,
				     .undecided = limits->undecided,
				     .equal = limits->equal,
				     .width = limits->width,
				     .slower = limits->slower,
				     .warm = limits->warm,
				     .least = limits->least };
	cpu_set_t before;
	const bool bound = use_all_cores(v, n) && bind_to_first(&before);
	enum fettle_status st = turns_take(&turns, out, err);

	if (bound)
		sched_setaffinity(0, sizeof(before), &before);
	return st;
}
