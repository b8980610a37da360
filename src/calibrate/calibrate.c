#include "calibrate/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "base/spread.h"

enum { ALONE_MAX = 1 << 18 }; /* so many elements are observed sooner than threads are started */

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

static size_t look_threads(const struct tensor *out, size_t n, size_t most)
{
	double elements = 0;
	size_t i;

	for (i = 0; i < n; i++)
		elements += (double)tensor_count(&out[i]);
	return elements < ALONE_MAX ? 1 : most;
}

static enum fettle_status observe_all(struct calibration *c, const struct calibrate_watch *watch,
				      const struct tensor *out, const struct feed_batch *b, size_t threads,
				      struct err *err)
{
	struct looking l = { .c = c, .watch = watch, .out = out, .b = b };
	const size_t n = watch ? watch->n : c->n;
	const struct look_failure *first = NULL;
	size_t i;

	spread(n, look_threads(out, n, threads), look_at, &l);
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
	const struct observed *by;
};

static enum fettle_status observe_watched(void *self, const struct tensor *out, const struct feed_batch *b,
					  struct err *err)
{
	const struct watched *w = self;

	return observe_all(w->c, w->watch, out, b, spread_threads() - w->by->beside, err);
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
	struct observer_scratch *scratch[SPREAD_MAX];
	struct observed s = OBSERVED_INIT;
	struct watched w = { c, o->watch, &s };
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
	c->by = observed_begin(&c->s, on->feed, false);
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
		st = observe_all(part, NULL, c->out, &c->batch, spread_threads(), err);
	if (st)
		calibration_free(part);
	else
		*out = part;
	return st;
}
