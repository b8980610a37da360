#include "tune/forerun.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "evaluate/rows.h"

struct kept {
	uint64_t model;
	struct rows *rows; /* [n], one per output; none before the first batch */
	size_t n, bytes;
	bool in_use;
};

struct forerun {
	pthread_mutex_t lock;
	VEC(struct kept *) v; /* the oldest first */
	size_t budget, bytes;
	atomic_bool useless;
};

struct forerun_pass {
	struct forerun *a;
	struct kept *k;
	struct forerun_options o;
	struct buffer *rows; /* one per output */
	struct feed *
		missing; /* samples that nothing is known of, in the order of the feed; NULL until the first */
	size_t next;     /* batch of it */
	struct feed_batch b;
	size_t *scratch;
};

struct forerun *forerun_new(size_t budget)
{
	struct forerun *a = xcalloc(1, sizeof(*a));

	pthread_mutex_init(&a->lock, NULL);
	a->budget = budget;
	atomic_init(&a->useless, !budget);
	return a;
}

static void kept_free(struct kept *k)
{
	size_t i;

	for (i = 0; i < k->n; i++)
		rows_release(&k->rows[i]);
	free(k->rows);
	free(k);
}

static void drop(struct forerun *a, size_t i)
{
	a->bytes -= a->v.v[i]->bytes;
	kept_free(a->v.v[i]);
	for (a->v.n--; i < a->v.n; i++)
		a->v.v[i] = a->v.v[i + 1];
}

void forerun_free(struct forerun *a)
{
	if (!a)
		return;
	while (a->v.n)
		drop(a, a->v.n - 1);
	VEC_RELEASE(&a->v);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

bool forerun_is_useless(const struct forerun *a)
{
	return !a || atomic_load(&a->useless);
}

void forerun_begin(struct forerun *a, uint64_t model, const struct forerun_options *o,
		   struct forerun_pass **out)
{
	struct kept *k = NULL;
	size_t i;

	*out = NULL;
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	for (i = 0; i < a->v.n; i++)
		if (a->v.v[i]->model == model)
			k = a->v.v[i];
	if (!k && o->create) {
		k = xcalloc(1, sizeof(*k));
		k->model = model;
		VEC_PUSH(&a->v, k);
	}
	if (k && !k->in_use) {
		k->in_use = true;
		*out = xcalloc(1, sizeof(**out));
		**out = (struct forerun_pass){ .a = a, .k = k, .o = *o, .b = FEED_BATCH_INIT };
	}
	pthread_mutex_unlock(&a->lock);
}

void forerun_end(struct forerun_pass *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; r->rows && i < r->o.net.n_outputs; i++)
		buffer_release(&r->rows[i]);
	pthread_mutex_lock(&r->a->lock);
	r->k->in_use = false;
	for (i = 0; i < r->a->v.n; i++) /* it is asked for once */
		if (r->a->v.v[i] == r->k && !r->o.create)
			drop(r->a, i);
	pthread_mutex_unlock(&r->a->lock);
	free(r->rows);
	free(r->scratch);
	feed_free(r->missing);
	feed_batch_release(&r->b);
	free(r);
}

/* Room for so many bytes: the oldest that nobody uses go. */
static bool make_room(struct forerun *a, struct kept *k, size_t bytes)
{
	bool fits;
	size_t i;

	pthread_mutex_lock(&a->lock);
	for (i = 0; a->bytes + bytes > a->budget && i < a->v.n;)
		if (a->v.v[i]->in_use)
			i++;
		else
			drop(a, i);
	fits = a->bytes + bytes <= a->budget;
	if (fits) {
		k->bytes = bytes;
		a->bytes += bytes;
	}
	pthread_mutex_unlock(&a->lock);
	return fits;
}

static bool start(struct forerun_pass *r, const struct feed_batch *b, const struct tensor *out)
{
	struct kept *k = r->k;
	size_t i, bytes = 0;

	for (i = 0; i < r->o.net.n_outputs; i++)
		bytes += tensor_bytes(&out[i]) / (b->n ? b->n : 1) * r->o.order->n;
	if (bytes > r->a->budget)
		atomic_store(&r->a->useless, true);
	if (!make_room(r->a, k, bytes))
		return false;
	k->rows = xcalloc(r->o.net.n_outputs, sizeof(*k->rows));
	for (; k->n < r->o.net.n_outputs; k->n++)
		if (!rows_init(&k->rows[k->n], r->o.order->n, &out[k->n], b->n)) {
			atomic_store(&r->a->useless, true);
			return false;
		}
	return true;
}

/* From now on nothing is kept of this model, nor taken. */
static void give_up(struct forerun_pass *r)
{
	struct kept *k = r->k;

	for (; k->n; k->n--)
		rows_release(&k->rows[k->n - 1]);
	free(k->rows);
	k->rows = NULL;
}

/* Runs the batch, and keeps what it gave. */
static enum fettle_status run_batch(struct forerun_pass *r, const struct feed_batch *b, struct tensor *out,
				    struct err *err)
{
	enum fettle_status st = r->o.net.run(r->o.net.self, b, out, err);
	const size_t *place = order_places(r->o.order, b, &r->scratch);
	bool keep = r->k->rows != NULL;
	size_t i;

	if (st)
		return st;
	if (!keep && r->o.create && !r->k->bytes)
		keep = start(r, b, out);
	for (i = 0; i < r->k->n && keep; i++)
		keep = rows_put(&r->k->rows[i], &out[i], place, b->valid);
	if (!keep)
		give_up(r);
	return FETTLE_OK;
}

static size_t n_known(struct forerun_pass *r, const struct feed_batch *b)
{
	const size_t *place = order_places(r->o.order, b, &r->scratch);
	size_t i, n = 0;

	for (i = 0; i < b->valid && r->k->n; i++)
		n += rows_have(&r->k->rows[0], &place[i], 1);
	return n;
}

static void list_missing(struct forerun_pass *r)
{
	const struct order *o = r->o.order;
	size_t *place = xcalloc(o->n, sizeof(*place)), i, n = 0;

	for (i = 0; i < feed_samples(r->o.feed); i++) {
		place[n] = o->place[feed_sample(r->o.feed, i)];
		n += !rows_have(&r->k->rows[0], &place[n], 1);
	}
	r->missing = feed_twin(r->o.feed);
	order_visit(o, r->missing, place, n, NULL); /* the samples are the feed's own */
	free(place);
}

/* Of a batch, some samples are known: the others run together with those that will be missing next. */
static enum fettle_status run_missing(struct forerun_pass *r, const struct feed_batch *b, struct tensor *out,
				      struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	if (!r->missing)
		list_missing(r);
	while (!st && r->k->n && n_known(r, b) < b->valid && r->next < feed_batches(r->missing)) {
		st = feed_read(r->missing, r->next++, &r->b, err);
		if (!st && n_known(r, &r->b) < r->b.valid)
			st = run_batch(r, &r->b, out, err);
	}
	return st;
}

static enum fettle_status forerun_run(void *self, const struct feed_batch *b, struct tensor *out,
				      struct err *err)
{
	struct forerun_pass *r = self;
	enum fettle_status st = FETTLE_OK;
	const size_t *place;
	size_t i, n = n_known(r, b);

	if (n && n < b->valid && r->o.any_batch)
		st = run_missing(r, b, out, err);
	if (st)
		return st;
	if (!r->k->n || n_known(r, b) < b->valid)
		return run_batch(r, b, out, err);
	if (!r->rows)
		r->rows = xcalloc(r->o.net.n_outputs, sizeof(*r->rows));
	place = order_places(r->o.order, b, &r->scratch);
	for (i = 0; i < r->k->n; i++) {
		rows_get(&r->k->rows[i], place, b->valid, b->n, &r->rows[i]);
		out[i] = r->rows[i].t;
	}
	return FETTLE_OK;
}

struct network forerun_network(struct forerun_pass *r)
{
	return (struct network){ forerun_run, r, r->o.net.n_outputs };
}
