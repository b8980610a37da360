#include "tune/worker.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct workers {
	struct worker *v; /* n, and the keeper: see workers_keep() */
	size_t n;
	const struct space *space;
	pthread_mutex_t lock;
	pthread_t main;
	atomic_bool stop;
	atomic_int without_model; /* of the trials that were asked for */
};

struct workers *workers_new(size_t n, struct lab *l)
{
	struct workers *w = xcalloc(1, sizeof(*w));
	size_t i;

	w->n = 2 * n;
	w->v = xcalloc(w->n + 1, sizeof(*w->v));
	for (i = 0; i <= w->n; i++)
		w->v[i].l = l;
	w->space = &l->t->space;
	w->main = pthread_self();
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

void workers_free(struct workers *w)
{
	size_t i;

	if (!w)
		return;
	for (i = 0; i <= w->n; i++) {
		struct worker *d = &w->v[i];

		session_free(d->session);
		model_free(d->model);
		plan_release(&d->plan);
		metric_free(d->metric);
		server_free(d->server);
		recall_release(&d->recall);
		free(d->scores);
	}
	pthread_mutex_destroy(&w->lock);
	free(w->v);
	free(w);
}

size_t workers_n(const struct workers *w)
{
	return w->n;
}

struct worker *workers_at(struct workers *w, size_t i)
{
	assert(i <= w->n);
	return &w->v[i];
}

size_t workers_index(const struct workers *w, const struct worker *d)
{
	return (size_t)(d - w->v);
}

struct worker *workers_with(const struct workers *w, const struct plan *p)
{
	size_t i;

	/* the keeper first: what others are timed against stays there, also when a trial of it runs elsewhere */
	for (i = w ? w->n + 1 : 0; i-- > 0;)
		if (w->v[i].model && plan_equal(&w->v[i].plan, p, w->space))
			return &w->v[i];
	return NULL;
}

struct worker *workers_for(struct workers *w, const struct plan *p)
{
	struct worker *d = workers_with(w, p);

	return d ? d : &w->v[0];
}

void workers_keep(struct workers *w, const struct plan *p)
{
	struct worker *d = workers_with(w, p), *keeper, old;

	if (!d || d == &w->v[w->n])
		return;
	keeper = &w->v[w->n];
	old = *keeper;
	keeper->plan = d->plan;
	keeper->weights = d->weights;
	keeper->model = d->model;
	keeper->session = d->session;
	d->plan = old.plan;
	d->weights = old.weights;
	d->model = old.model;
	d->session = old.session;
}

void workers_end_sessions(struct workers *w)
{
	size_t i;

	for (i = 0; w && i <= w->n; i++) {
		session_free(w->v[i].session);
		w->v[i].session = NULL;
	}
}

void workers_lock(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
}

void workers_unlock(struct workers *w)
{
	pthread_mutex_unlock(&w->lock);
}

void workers_begin(struct workers *w, bool stopped)
{
	w->main = pthread_self();
	atomic_store(&w->stop, stopped);
}

bool workers_is_main(const struct workers *w)
{
	return pthread_equal(pthread_self(), w->main);
}

void workers_stop(struct workers *w, bool stop)
{
	atomic_store(&w->stop, stop);
}

bool workers_stopped(const struct workers *w)
{
	return atomic_load(&w->stop);
}

void workers_expect_model(struct workers *w)
{
	atomic_fetch_add(&w->without_model, 1);
}

void workers_has_model(struct workers *w)
{
	atomic_fetch_sub(&w->without_model, 1);
}

bool workers_expect_models(const struct workers *w)
{
	return atomic_load(&w->without_model) > 0;
}
