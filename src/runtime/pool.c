#include "runtime/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct member {
	struct pool *pool;
	OrtThreadWorkerFn work;
	void *param;
	pthread_t thread;
	bool exists;
};

struct pool {
	VEC(struct member *) v; /* all but the thread that runs the session */
	int running;
};

static void *member_main(void *self)
{
	struct member *m = self;

	m->work(m->param);
	return NULL;
}

static void start(struct member *m)
{
	if (!m->exists)
		m->exists = pthread_create(&m->thread, NULL, member_main, m) == 0;
}

static OrtCustomThreadHandle create(void *pool, OrtThreadWorkerFn work, void *param)
{
	struct member *m = xcalloc(1, sizeof(*m));
	struct pool *p = pool;

	*m = (struct member){ .pool = p, .work = work, .param = param };
	VEC_PUSH(&p->v, m);
	if (p->v.n < (size_t)p->running)
		start(m);
	return (OrtCustomThreadHandle)(void *)m;
}

/* The runtime's threads end once all of them have nothing to do: now they must exist. */
static void join(OrtCustomThreadHandle handle)
{
	struct member *m = (struct member *)(uintptr_t)handle;
	size_t i;

	for (i = 0; i < m->pool->v.n; i++)
		for (start(m->pool->v.v[i]); !m->pool->v.v[i]->exists; start(m->pool->v.v[i]))
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* others will end */
	pthread_join(m->thread, NULL);
}

enum fettle_status pool_new(struct pool **out, const OrtApi *api, OrtSessionOptions *so, int running,
			    const char *what, struct err *err)
{
	struct pool *p = *out = xcalloc(1, sizeof(*p));
	enum fettle_status st;

	p->running = running;
	TRY(api->SessionOptionsSetCustomCreateThreadFn(so, create));
	TRY(api->SessionOptionsSetCustomThreadCreationOptions(so, p));
	TRY(api->SessionOptionsSetCustomJoinThreadFn(so, join));
out:
	return st;
}

int pool_threads(const struct pool *p)
{
	return (int)p->v.n + 1;
}

void pool_free(struct pool *p)
{
	size_t i;

	for (i = 0; p && i < p->v.n; i++)
		free(p->v.v[i]);
	if (p)
		VEC_RELEASE(&p->v);
	free(p);
}
