#include "data/ahead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

struct slot {
	struct feed_batch b;
	enum fettle_status st;
	struct err err;
};

struct ahead {
	const struct feed *feed;
	size_t n;             /* batches in all */
	size_t made, taken;   /* made by the thread; asked for, the last AHEAD_IN_USE of them being in use */
	bool threaded, stop;  /* stop: nobody wants more */
	pthread_t thread;     /* that makes them */
	pthread_mutex_t lock; /* of made, taken and stop; a slot belongs to the thread or to the caller */
	pthread_cond_t changed; /* one of these did */
	struct slot v[AHEAD_BATCHES];
};

static enum fettle_status read_slot(struct ahead *a, size_t k)
{
	struct slot *s = &a->v[k % AHEAD_BATCHES];

	s->st = feed_read(a->feed, k, &s->b, &s->err);
	return s->st;
}

static void *make(void *self)
{
	struct ahead *a = self;
	bool more = true;
	size_t k;

	for (k = 0; k < a->n && more; k++) {
		pthread_mutex_lock(&a->lock);
		/* the slot of batch k is free once batch k - AHEAD_BATCHES is no longer in use */
		while (!a->stop && k >= AHEAD_BATCHES && a->taken < k - AHEAD_BATCHES + 1 + AHEAD_IN_USE)
			pthread_cond_wait(&a->changed, &a->lock);
		more = !a->stop;
		pthread_mutex_unlock(&a->lock);
		if (!more)
			break;
		more = !read_slot(a, k); /* after an error there are no more */
		pthread_mutex_lock(&a->lock);
		a->made = k + 1;
		pthread_cond_broadcast(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

struct ahead *ahead_new(const struct feed *f)
{
	struct ahead *a = xcalloc(1, sizeof(*a));

	a->feed = f;
	a->n = feed_batches(f);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	/* without a thread, batches are read when they are asked for */
	a->threaded =
		a->n > 1 && dataset_decodes(feed_data(f)) && pthread_create(&a->thread, NULL, make, a) == 0;
	return a;
}

enum fettle_status ahead_next(struct ahead *a, struct feed_batch **out, struct err *err)
{
	const size_t k = a->taken;
	struct slot *s = &a->v[k % AHEAD_BATCHES];

	if (k == a->n)
		return fail(err, FETTLE_STOP, "no more batches");
	pthread_mutex_lock(&a->lock);
	a->taken = k + 1;
	pthread_cond_broadcast(&a->changed);
	while (a->threaded && a->made <= k)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	if (!a->threaded)
		read_slot(a, k);
	*out = &s->b;
	if (s->st)
		*err = s->err;
	return s->st;
}

void ahead_free(struct ahead *a)
{
	size_t i;

	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (a->threaded)
		pthread_join(a->thread, NULL);
	for (i = 0; i < AHEAD_BATCHES; i++)
		feed_batch_release(&a->v[i].b);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
