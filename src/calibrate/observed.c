/* Sessions whose outputs are values of a model: run over all samples, and looked at while the next ones run. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/spread.h"
#include "calibrate/calibrate.h"
#include "data/ahead.h"

enum { OBSERVED_BYTES = 32 << 20 }; /* of the values of one run, unless one sample alone has more */

/* Graph inputs can be outputs too, but not in every runtime version: an Identity goes between. */
static void expose(struct model *m, const char *const *values, size_t n)
{
	const char **names = arena_alloc(&m->arena, n * sizeof(*names));
	size_t i, k;

	for (i = 0; i < n; i++) {
		names[i] = values[i];
		for (k = 0; k < m->n_inputs; k++) {
			struct node *id;

			if (strcmp(values[i], m->inputs[k].name) != 0)
				continue;
			id = model_new_node(m, "Identity", "", "fettle_observe", 1, 1);
			id->in[0] = values[i];
			names[i] = id->out[0] = model_fresh(m, "fettle_observed");
			VEC_PUSH(&m->nodes, id);
		}
	}
	model_set_outputs(m, names, n);
}

enum fettle_status observed_open(struct observed *o, struct runtime *rt, const struct model *m,
				 const char *const *values, size_t n, int threads, struct err *err)
{
	const struct session_options so = { .threads = threads };

	o->m = model_derive(m);
	expose(o->m, values, n);
	return session_new(&o->session, rt, o->m, &so, err);
}

void observed_close(struct observed *o)
{
	session_free(o->session);
	model_free(o->m);
	mem_trim(); /* all values of a batch, and the weights once more */
	*o = (struct observed)OBSERVED_INIT;
}

/* the largest dimension that the model leaves open, besides the batch */
static int64_t open_dim(const struct feed *f)
{
	int64_t most = 1;
	size_t i;
	int d;

	for (i = 0; i < feed_n_inputs(f); i++) {
		const struct input_spec *spec = feed_input(f, i);
		const struct field *field = feed_field(f, i);

		for (d = 1; field && d < spec->rank && d <= field->sample.rank; d++)
			if (spec->dims[d] < 0 && field->sample.dims[d - 1] > most)
				most = field->sample.dims[d - 1];
	}
	return most;
}

/* Bytes of all values of a sample, rather too many than too few. */
static double sample_bytes(const struct session *s, const struct feed *f)
{
	const int64_t open = open_dim(f);
	const char *batch = session_n_inputs(s) ? session_input(s, 0)->batch : NULL;
	double bytes = 1;
	size_t i;
	int d;

	for (i = 0; i < session_n_outputs(s); i++) {
		const struct value *v = session_output(s, i);
		double n = (double)dtype_size(v->type.dtype);

		for (d = 0; d < v->type.rank; d++) {
			const bool by_sample = !d && v->batch && batch && strcmp(v->batch, batch) == 0;

			n *= by_sample ? 1 : (double)(v->type.dims[d] < 0 ? open : v->type.dims[d]);
		}
		bytes += n;
	}
	return bytes;
}

struct feed *observed_begin(struct observed *o, const struct feed *feed, bool beside)
{
	struct feed *by = feed_twin(feed);
	const double bytes = sample_bytes(o->session, by);

	feed_limit_batch(by, bytes < OBSERVED_BYTES ? (size_t)(OBSERVED_BYTES / bytes) : 1);
	o->beside = beside && bytes < OBSERVED_BYTES && spread_threads() > 1;
	session_reuse_outputs(o->session, o->beside); /* fresh memory for all of them each time would cost */
	return by;
}

/* What looks at the outputs of a batch: in a thread, where it has a core of its own while the next batch runs. */
struct look {
	observe_fn take;
	void *self;
	const struct tensor *out;
	const struct feed_batch *b;
	bool threaded;
	pthread_t thread;
	enum fettle_status st;
	struct err err;
};

static void *look_main(void *self)
{
	struct look *l = self;

	l->st = l->take(l->self, l->out, l->b, &l->err);
	return NULL;
}

static void look_begin(struct look *l, bool beside, const struct tensor *out, const struct feed_batch *b)
{
	l->out = out;
	l->b = b;
	l->threaded = beside && pthread_create(&l->thread, NULL, look_main, l) == 0;
	if (!l->threaded)
		look_main(l);
}

static enum fettle_status look_end(struct look *l, struct err *err)
{
	if (l->threaded)
		pthread_join(l->thread, NULL);
	l->threaded = false;
	if (l->st && err)
		*err = l->err;
	return l->st;
}

enum fettle_status observed_run(struct observed *o, struct feed *feed, const struct calibrate_options *opt,
				observe_fn take, void *self, struct err *err)
{
	const size_t n = session_n_outputs(o->session);
	struct tensor *out = xcalloc(2 * n, sizeof(*out)), *now = out;
	struct feed *by = observed_begin(o, feed, opt->threads == 1);
	struct ahead *ahead = ahead_new(by);
	struct look look = { .take = take, .self = self };
	struct feed_batch *b = NULL;
	enum fettle_status st = FETTLE_OK;
	size_t done = 0;

	while (!st && done < feed_samples(by)) {
		st = ahead_next(ahead, &b, err);
		if (!st)
			st = session_run(o->session, b->inputs, now, err);
		if (!st)
			st = look_end(&look, err); /* at the batch before */
		if (st)
			break;
		look_begin(&look, o->beside, now, b);
		now = now == out ? out + n : out;
		done += b->valid;
		if (opt->progress && !opt->progress(opt->self, done, feed_samples(feed)))
			st = fail(err, FETTLE_STOP, "calibration was stopped");
	}
	if (look_end(&look, err)) /* what went wrong first counts */
		st = look.st;
	ahead_free(ahead);
	feed_free(by);
	free(out);
	return st;
}
