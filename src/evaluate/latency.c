#include "evaluate/evaluate.h"

#include <stdlib.h>

#include "base/file.h"

enum { WARM_UP = 3, RUNS_MIN = 5, RUNS_MAX = 100000 };

struct series {
	VEC(double) v;
	double last;
	struct race race; /* against the first */
	struct tensor *out;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct latency summarise(struct series *s)
{
	size_t n = s->v.n;

	qsort(s->v.v, n, sizeof(*s->v.v), by_value);
	return (struct latency){
		.median = n % 2 ? s->v.v[n / 2] : (s->v.v[n / 2 - 1] + s->v.v[n / 2]) / 2,
		.p90 = s->v.v[(n * 9 + 9) / 10 - 1],
		.runs = n,
		.speedup = race_ratio(&s->race),
	};
}

enum fettle_status evaluate_latency(struct session *const *s, struct tensor *const *inputs, size_t n,
				    double seconds, progress_fn progress, void *self, struct latency *out,
				    struct err *err)
{
	struct series *series = xcalloc(n, sizeof(*series));
	double start = clock_now(), elapsed = 0;
	enum fettle_status st = FETTLE_OK;
	size_t i, k, round;

	for (i = 0; i < n; i++) {
		race_init(&series[i].race, LATENCY_CONFIDENCE);
		series[i].out = xcalloc(session_n_outputs(s[i]), sizeof(*series[i].out));
	}
	for (round = 0; (elapsed < seconds || round < WARM_UP + RUNS_MIN) && round < RUNS_MAX; round++) {
		for (k = 0; k < n && !st; k++) {
			double t;

			i = (k + round) % n; /* none always runs after the same neighbour */
			t = clock_now();
			st = session_run(s[i], inputs[i], series[i].out, err);
			series[i].last = clock_now() - t;
			if (round >= WARM_UP)
				VEC_PUSH(&series[i].v, series[i].last);
		}
		if (st)
			break;
		for (i = 0; i < n && round >= WARM_UP; i++)
			race_add(&series[i].race, series[0].last, series[i].last);
		elapsed = clock_now() - start;
		if (progress && !progress(self, (size_t)(1000 * (elapsed < seconds ? elapsed : seconds)),
					  (size_t)(1000 * seconds))) {
			st = fail(err, FETTLE_STOP, "timing was stopped");
			break;
		}
	}
	for (i = 0; i < n; i++) {
		if (!st)
			out[i] = summarise(&series[i]);
		VEC_RELEASE(&series[i].v);
		race_release(&series[i].race);
		free(series[i].out);
	}
	free(series);
	return st;
}
