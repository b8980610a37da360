#include "tune/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "tune/pieces.h"
#include "tune/ranks_impl.h"
#include "tune/worker.h"

/* ---- what an observer has seen, as it is sent ---- */

/* A bin that is 0 is followed by how many more there are of its kind. */
static void put_bins(struct str *to, const struct observer *o)
{
	size_t i, n;

	for (i = 0; i < OBSERVER_BINS; i++) {
		wire_put_count(to, o->bins[i]);
		if (o->bins[i])
			continue;
		for (n = 0; i + 1 < OBSERVER_BINS && !o->bins[i + 1]; n++)
			i++;
		wire_put_count(to, n);
	}
}

static void read_bins(struct wire *w, struct observer *o)
{
	size_t i;

	for (i = 0; i < OBSERVER_BINS && !w->bad; i++) {
		o->bins[i] = wire_count(w);
		if (!o->bins[i])
			i += (size_t)wire_count(w);
	}
}

static void put_seen(struct str *to, const struct observer *o)
{
	wire_put_count(to, o->samples);
	if (!o->samples)
		return;
	wire_put_count(to, o->count);
	wire_put_count(to, o->zeros);
	wire_put_count(to, (uint64_t)(o->exponent - OBSERVER_EXPONENT_MIN));
	put_bins(to, o);
}

static void read_seen(struct wire *w, struct observer *o)
{
	o->samples = wire_count(w);
	if (!o->samples)
		return;
	o->count = wire_count(w);
	o->zeros = wire_count(w);
	o->exponent = OBSERVER_EXPONENT_MIN + (int)wire_count(w);
	read_bins(w, o);
}

/* of a part, that is joined to others */
static void put_part(struct str *to, const struct observer *o)
{
	size_t i;

	put_seen(to, o);
	for (i = 0; i < o->kept.n; i++) {
		const struct observed_sample *s = &o->kept.v[i];

		wire_put_real(to, s->min);
		wire_put_real(to, s->max);
		wire_put_real(to, s->sum);
		wire_put_real(to, s->squares);
	}
}

static void join_part(struct wire *w, struct observer *to)
{
	struct observer *part = xmalloc(sizeof(*part));
	struct observed_sample s;

	observer_init(part, &(struct observer_options){ .keep_samples = true });
	read_seen(w, part);
	while (part->kept.n < part->samples && !w->bad) {
		s.min = (float)wire_real(w);
		s.max = (float)wire_real(w);
		s.sum = wire_real(w);
		s.squares = wire_real(w);
		VEC_PUSH(&part->kept, s);
	}
	observer_join(to, part);
	observer_release(part);
	free(part);
}

/* of all samples */
static void put_whole(struct str *to, const struct observer *o)
{
	unsigned k;

	put_seen(to, o);
	wire_put_real(to, o->min);
	wire_put_real(to, o->max);
	wire_put_real(to, o->sum);
	wire_put_real(to, o->squares);
	for (k = 0; k < o->n_averages; k++) {
		wire_put_real(to, o->average[k].min);
		wire_put_real(to, o->average[k].max);
	}
}

static void read_whole(struct wire *w, struct observer *o)
{
	unsigned k;

	read_seen(w, o);
	o->min = (float)wire_real(w);
	o->max = (float)wire_real(w);
	o->sum = wire_real(w);
	o->squares = wire_real(w);
	for (k = 0; k < o->n_averages; k++) {
		o->average[k].min = wire_real(w);
		o->average[k].max = wire_real(w);
	}
}

/* ---- a piece is a batch ---- */

struct sweep {
	struct lab *l;
	int64_t samples;
	const char **values; /* which lie in what was sent */
	size_t n;
	struct calibrating *c;
};

static struct calibrate_options options_of(const struct lab *l)
{
	struct calibrate_options o = { .threads = l->o.threads };

	memcpy(o.averaging, l->o.averaging, sizeof(o.averaging));
	return o;
}

static struct str what_of_sweep(int64_t samples, const char *const *values, size_t n)
{
	struct str what = STR_INIT;
	size_t i;

	wire_put_count(&what, (uint64_t)samples);
	wire_put_count(&what, n);
	for (i = 0; i < n; i++)
		wire_put_text(&what, values[i]);
	return what;
}

/* free() the values */
static void read_what(struct wire *w, struct sweep *s)
{
	size_t i;

	s->samples = (int64_t)wire_count(w);
	s->n = (size_t)wire_count(w);
	if (s->n > w->n)
		s->n = 0; /* it is cut off */
	s->values = xcalloc(s->n + 1, sizeof(*s->values));
	for (i = 0; i < s->n; i++)
		s->values[i] = wire_text(w);
}

static void close_sweep(void *self)
{
	struct sweep *s = self;

	calibrating_free(s->c);
	free(s->values);
	free(s);
}

static enum fettle_status open_sweep(struct lab *l, struct wire *what, void **out, struct err *err)
{
	struct sweep *s = xcalloc(1, sizeof(*s));
	const struct calibrate_options o = options_of(l);
	enum fettle_status st;

	s->l = l;
	read_what(what, s);
	st = learner_use_samples(lab_learner(l), s->samples, err);
	if (!st)
		st = calibrating_open(&s->c, &(struct calibrate_on){ l->rt, l->s->m, l->calib }, s->values,
				      s->n, &o, err);
	if (st) {
		free(s->values);
		free(s);
	} else {
		*out = s;
	}
	return st;
}

static enum fettle_status run_sweep(void *self, size_t batch, struct str *answer, struct err *err)
{
	struct sweep *s = self;
	struct calibration *part = NULL;
	enum fettle_status st = calibrating_observe(s->c, batch, &part, err);
	size_t i;

	if (st)
		return st;
	wire_put_count(answer, calibration_samples(part));
	for (i = 0; i < s->n; i++)
		put_part(answer, calibration_at(part, i));
	calibration_free(part);
	return FETTLE_OK;
}

const struct piece_work sweep_work = { open_sweep, run_sweep, close_sweep };

/* ---- rank 0 ---- */

struct joining {
	struct lab *l;
	struct calibration *c;
};

static void join_batch(void *self, size_t batch, struct wire *answer)
{
	struct joining *j = self;
	size_t i;

	(void)batch;
	calibration_add_samples(j->c, (size_t)wire_count(answer));
	for (i = 0; i < calibration_n(j->c); i++)
		join_part(answer, calibration_at(j->c, i));
	lab_go_on(j->l, calibration_samples(j->c), feed_samples(j->l->calib));
}

static void teach(struct lab *l, int64_t samples, const char *const *values, struct calibration *c)
{
	const size_t n = calibration_n(c);
	struct str lesson = what_of_sweep(samples, values, n);
	size_t i;

	wire_put_count(&lesson, calibration_samples(c));
	for (i = 0; i < n; i++)
		put_whole(&lesson, calibration_at(c, i));
	ranks_teach(l->ranks, lesson);
}

enum fettle_status lab_sweep(void *lab, int64_t samples, const char *const *values, size_t n,
			     struct calibration **out, struct err *err)
{
	struct lab *l = lab;
	struct calibrate_options o = options_of(l);
	struct joining j = { .l = l };
	size_t batches = 0, *list, i;
	struct pieces p;
	enum fettle_status st;

	if (!n || (l->workers && !workers_is_main(l->workers))) { /* only that thread can talk to others */
		o.progress = lab_go_on;
		o.self = l;
		return calibrate(out, &(struct calibrate_on){ l->rt, l->s->m, l->calib }, values, n, &o, err);
	}
	j.c = calibration_new(values, n, &o, false);
	pieces_begin(&p, l, PIECES_SWEEP, what_of_sweep(samples, values, n));
	st = pieces_open(&p, err);
	if (!st)
		batches = calibrating_batches(((struct sweep *)p.here.self)->c);
	list = xcalloc(batches + 1, sizeof(*list));
	for (i = 0; i < batches; i++)
		list[i] = i;
	if (!st)
		st = pieces_run(&p, list, batches, join_batch, &j, err);
	pieces_end(&p);
	free(list);
	if (st) {
		calibration_free(j.c);
		return st;
	}
	teach(l, samples, values, j.c);
	*out = j.c;
	return FETTLE_OK;
}

/* ---- the others ---- */

void lab_learn_sweep(struct lab *l, struct wire *w)
{
	const struct calibrate_options o = options_of(l);
	struct sweep s = { .l = l };
	struct calibration *c;
	size_t i;

	read_what(w, &s);
	c = calibration_new(s.values, s.n, &o, false);
	calibration_add_samples(c, (size_t)wire_count(w));
	for (i = 0; i < s.n; i++)
		read_whole(w, calibration_at(c, i));
	if (w->bad || !s.n)
		calibration_free(c); /* it calibrates itself, then */
	else
		learner_take(lab_learner(l), s.samples, c);
	free(s.values);
}
