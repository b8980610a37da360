#include "base/spread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct loop {
	size_t n;
	atomic_size_t next;
	spread_fn work;
	void *self;
};

struct helper {
	struct loop *loop;
	size_t number;
	pthread_t thread;
};

static void take_turns(struct loop *l, size_t thread)
{
	size_t i;

	while ((i = atomic_fetch_add(&l->next, 1)) < l->n)
		l->work(l->self, i, thread);
}

static void *helper_main(void *self)
{
	const struct helper *h = self;

	take_turns(h->loop, h->number);
	return NULL;
}

size_t spread_threads(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : n < SPREAD_MAX ? (size_t)n : SPREAD_MAX;
}

void spread(size_t n, size_t threads, spread_fn work, void *self)
{
	struct loop l = { .n = n, .work = work, .self = self };
	struct helper v[SPREAD_MAX];
	size_t i, started;

	atomic_init(&l.next, 0);
	for (started = 1; started < threads && started < n && started < SPREAD_MAX; started++) {
		v[started] = (struct helper){ .loop = &l, .number = started };
		if (pthread_create(&v[started].thread, NULL, helper_main, &v[started]))
			break;
	}
	take_turns(&l, 0);
	for (i = 1; i < started; i++)
		pthread_join(v[i].thread, NULL);
}
