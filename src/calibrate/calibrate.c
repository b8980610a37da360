#include "calibrate/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "base/spread.h"
#include "data/ahead.h"

enum {
	OBSERVED_BYTES = 32 << 20, /* of the values of one run, unless one sample alone has more */
	ALONE_MAX = 1 << 18,       /* so many elements are observed sooner than threads are started */
};

struct calibration {
	struct map index;
	struct observer *v;
	char **names;
	size_t n, samples;
	struct observer_scratch *const *scratch; /* while it is made: one for each thread */
};

void session_specs(const struct session *s, struct input_spec *specs)
{
	size_t i;

	for (i = 0; i < session_n_inputs(s); i++) {
		const struct value *v = session_input(s, i);

		specs[i] =
			(struct input_spec){ .name = v->name, .dtype = v->type.dtype, .rank = v->type.rank };
		if (v->type.rank > 0)
			memcpy(specs[i].dims, v->type.dims, (size_t)v->type.rank * sizeof(specs[i].dims[0]));
	}
}

/*
 * A value's rows belong to samples when its first dimension is a multiple of the batch's, as after a
 * Reshape to [batch * tokens, width]; otherwise the batch counts as one sample.
 */
static enum fettle_status observe(struct observer *o, struct observer_scratch *scratch,
				  const struct tensor *t, const struct feed_batch *b, struct err *err)
{
	size_t count = (size_t)tensor_count(t);
	bool by_sample = t->rank > 0 && b->n && t->dims[0] % (int64_t)b->n == 0;

	if (!count)
		return FETTLE_OK;
	if (!by_sample)
		return observer_add(o, scratch, t->data, 1, count, err);
	return observer_add(o, scratch, t->data, b->valid, count / b->n, err);
}

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
	struct session_options so = { .threads = threads };
	enum fettle_status st;

	o->m = model_derive(m);
	expose(o->m, values, n);
	st = session_new(&o->session, rt, o->m, &so, err);
	if (!st)
		session_reuse_outputs(
			o->session); /* all activations at once: fresh memory each time would cost */
	return st;
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

/* How many samples may be run at once: all their values are in memory together. Rather too few than too many; what is
 * observed does not depend on it. */
static size_t samples_at_once(const struct session *s, const struct feed *f)
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
	return bytes < OBSERVED_BYTES ? (size_t)(OBSERVED_BYTES / bytes) : 1;
}

static struct feed *feed_in_batches(const struct feed *feed, const struct session *s)
{
	struct feed *by = feed_twin(feed);

	feed_limit_batch(by, samples_at_once(s, by));
	return by;
}

enum fettle_status observed_run(struct observed *o, struct feed *feed, const struct calibrate_options *opt,
				observe_fn take, void *self, struct err *err)
{
	struct tensor *out = xcalloc(session_n_outputs(o->session), sizeof(*out));
	struct feed_batch *b = NULL;
	struct feed *by = feed_in_batches(feed, o->session);
	struct ahead *ahead;
	size_t done = 0;
	enum fettle_status st;

	ahead = ahead_new(by);
	while (!(st = ahead_next(ahead, &b, err))) {
		st = session_run(o->session, b->inputs, out, err);
		if (!st)
			st = take(self, out, b, err);
		if (st)
			goto out;
		done += b->valid;
		if (opt->progress && !opt->progress(opt->self, done, feed_samples(feed))) {
			st = fail(err, FETTLE_STOP, "calibration was stopped");
			goto out;
		}
	}
	if (st == FETTLE_STOP)
		st = FETTLE_OK; /* the end of the samples */
out:
	ahead_free(ahead);
	feed_free(by);
	free(out);
	return st;
}

/* The values of a batch, each of which is one observer's: they are looked at side by side. */
struct looking {
	struct calibration *c;
	const struct calibrate_watch *watch; /* may be NULL */
	const struct tensor *out;
	const struct feed_batch *b;
	struct look_failure {
		enum fettle_status st;
		size_t at;
		struct err err;
	} failed[SPREAD_MAX]; /* the first of each thread */
};

static void look_at(void *self, size_t i, size_t thread)
{
	struct looking *l = self;
	struct look_failure *f = &l->failed[thread];
	enum fettle_status st = FETTLE_OK;

	if (f->st)
		return;
	if (i < l->c->n && l->out[i].dtype == DT_F32)
		st = observe(&l->c->v[i], l->c->scratch[thread], &l->out[i], l->b, &f->err);
	if (!st && l->watch) /* as long as it is in the cache */
		st = l->watch->take(l->watch->self, i, &l->out[i], l->b, &f->err);
	f->st = st;
	f->at = i;
}

static size_t look_threads(const struct tensor *out, size_t n)
{
	double elements = 0;
	size_t i;

	for (i = 0; i < n; i++)
		elements += (double)tensor_count(&out[i]);
	return elements < ALONE_MAX ? 1 : spread_threads();
}

static enum fettle_status observe_all(struct calibration *c, const struct calibrate_watch *watch,
				      const struct tensor *out, const struct feed_batch *b, struct err *err)
{
	struct looking l = { .c = c, .watch = watch, .out = out, .b = b };
	const size_t n = watch ? watch->n : c->n;
	const struct look_failure *first = NULL;
	size_t i;

	spread(n, look_threads(out, n), look_at, &l);
	for (i = 0; i < SPREAD_MAX; i++)
		if (l.failed[i].st && (!first || l.failed[i].at < first->at))
			first = &l.failed[i];
	c->samples += b->valid;
	if (!first)
		return FETTLE_OK;
	if (err)
		*err = first->err;
	return first->st;
}

struct watched {
	struct calibration *c;
	const struct calibrate_watch *watch; /* may be NULL */
};

static enum fettle_status observe_watched(void *self, const struct tensor *out, const struct feed_batch *b,
					  struct err *err)
{
	const struct watched *w = self;

	return observe_all(w->c, w->watch, out, b, err);
}

static void scratch_new(struct observer_scratch *scratch[SPREAD_MAX])
{
	size_t i;

	for (i = 0; i < SPREAD_MAX; i++)
		scratch[i] = observer_scratch_new();
}

static void scratch_free(struct observer_scratch *scratch[SPREAD_MAX])
{
	size_t i;

	for (i = 0; i < SPREAD_MAX; i++)
		observer_scratch_free(scratch[i]);
}

struct calibration *calibration_new(const char *const *values, size_t n, const struct calibrate_options *o,
				    bool keep_samples)
{
	struct calibration *c = xcalloc(1, sizeof(*c));
	struct observer_options observer;
	size_t i;

	c->v = xcalloc(n, sizeof(*c->v));
	c->names = xcalloc(n, sizeof(*c->names));
	for (i = 0; i < n; i++) {
		c->names[i] = xstrdup(values[i]);
		observer = (struct observer_options){ .name = c->names[i], .keep_samples = keep_samples };
		memcpy(observer.averaging, o->averaging, sizeof(observer.averaging));
		observer_init(&c->v[i], &observer);
		map_set(&c->index, c->names[i], i);
	}
	c->n = n;
	return c;
}

enum fettle_status calibrate(struct calibration **out, const struct calibrate_on *on,
			     const char *const *values, size_t n, const struct calibrate_options *o,
			     struct err *err)
{
	struct calibration *c = calibration_new(values, n, o, false);
	struct watched w = { c, o->watch };
	struct observer_scratch *scratch[SPREAD_MAX];
	struct observed s = OBSERVED_INIT;
	enum fettle_status st = FETTLE_OK;

	if (n) {
		scratch_new(scratch);
		c->scratch = scratch;
		st = observed_open(&s, on->rt, on->m, w.watch ? w.watch->values : values,
				   w.watch ? w.watch->n : n, o->threads, err);
		if (!st)
			st = observed_run(&s, on->feed, o, observe_watched, &w, err);
		scratch_free(scratch);
		c->scratch = NULL;
	}
	observed_close(&s);
	if (st)
		calibration_free(c);
	else
		*out = c;
	return st;
}

void calibration_free(struct calibration *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->n; i++) {
		observer_release(&c->v[i]);
		free(c->names[i]);
	}
	map_release(&c->index);
	free(c->v);
	free(c->names);
	free(c);
}

size_t calibration_samples(const struct calibration *c)
{
	return c->samples;
}

const struct observer *calibration_find(const struct calibration *c, const char *value)
{
	size_t i = map_get(&c->index, value);

	return i == MAP_NONE ? NULL : &c->v[i];
}

size_t calibration_n(const struct calibration *c)
{
	return c->n;
}

struct observer *calibration_at(struct calibration *c, size_t i)
{
	return &c->v[i];
}

void calibration_add_samples(struct calibration *c, size_t n)
{
	c->samples += n;
}

/* ---- in parts ---- */

struct calibrating {
	struct observed s;
	struct feed *by; /* in the batches that observed_run() runs */
	struct feed_batch batch;
	struct tensor *out;
	const char *const *values;
	size_t n;
	struct calibrate_options o;
	struct observer_scratch *scratch[SPREAD_MAX];
};

enum fettle_status calibrating_open(struct calibrating **out, const struct calibrate_on *on,
				    const char *const *values, size_t n, const struct calibrate_options *o,
				    struct err *err)
{
	struct calibrating *c = xcalloc(1, sizeof(*c));
	enum fettle_status st;

	c->values = values;
	c->n = n;
	c->o = *o;
	scratch_new(c->scratch);
	st = observed_open(&c->s, on->rt, on->m, values, n, o->threads, err);
	if (st) {
		calibrating_free(c);
		return st;
	}
	c->out = xcalloc(session_n_outputs(c->s.session), sizeof(*c->out));
	c->by = feed_in_batches(on->feed, c->s.session);
	*out = c;
	return FETTLE_OK;
}

void calibrating_free(struct calibrating *c)
{
	observed_close(&c->s);
	feed_batch_release(&c->batch);
	feed_free(c->by);
	scratch_free(c->scratch);
	free(c->out);
	free(c);
}

size_t calibrating_batches(const struct calibrating *c)
{
	return feed_batches(c->by);
}

enum fettle_status calibrating_observe(struct calibrating *c, size_t batch, struct calibration **out,
				       struct err *err)
{
	struct calibration *part = calibration_new(c->values, c->n, &c->o, true);
	enum fettle_status st = feed_read(c->by, batch, &c->batch, err);

	part->scratch = c->scratch;
	if (!st)
		st = session_run(c->s.session, c->batch.inputs, c->out, err);
	if (!st)
		st = observe_all(part, NULL, c->out, &c->batch, err);
	if (st)
		calibration_free(part);
	else
		*out = part;
	return st;
}
