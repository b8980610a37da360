#include "tune/cutcache.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ops/kind.h"

/* A cut that saves less than this share of the network is not worth a session of its own. */
#define WORTH_IT 0.1

enum { KEY_LEN = 17, PAGE = 4096 };

struct entry {
	char key[KEY_LEN];
	struct rows rows; /* no data before the first row comes, nor after it was thrown out */
	size_t bytes;     /* that it takes */
	double saves;     /* share of the network that need not be run */
	uint64_t used;
	unsigned pins; /* trials that are using it */
	bool unfit;    /* it has no row per sample */
};

struct cutcache {
	pthread_mutex_t lock;
	VEC(struct entry *) v;
	struct map index; /* key -> v */
	struct map seen;  /* keys of the values in all models so far */
	struct arena keys;
	size_t budget, samples, bytes, peak;
	uint64_t tick;
};

/* One tensor of a cut. */
struct cut_value {
	struct value v;
	struct entry *e;
	struct buffer rows;
};

struct cut_list {
	struct cut_value *v;
	size_t n, cap;
};

struct cut_run {
	struct cutcache *c;
	struct cut_options o;
	struct model *m;
	struct cut_list start;   /* where the network can be entered */
	struct cut_list capture; /* what later trials may enter at */
	double start_saves;
	struct session *whole, *part;
	struct model *whole_model, *part_model;
	struct tensor *in, *out;
	size_t *scratch;
	double saved, session_seconds;
};

struct cutcache *cutcache_new(size_t budget, size_t samples)
{
	struct cutcache *c = xcalloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	c->budget = budget;
	c->samples = samples;
	return c;
}

void cutcache_free(struct cutcache *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->v.n; i++) {
		rows_release(&c->v.v[i]->rows);
		free(c->v.v[i]);
	}
	VEC_RELEASE(&c->v);
	map_release(&c->index);
	map_release(&c->seen);
	arena_release(&c->keys);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

size_t cutcache_peak(const struct cutcache *c)
{
	return c->peak;
}

/* ---- what is kept ---- */

static struct entry *find(const struct cutcache *c, const char *key)
{
	size_t i = map_get(&c->index, key);

	return i == MAP_NONE ? NULL : c->v.v[i];
}

static struct entry *find_or_add(struct cutcache *c, const char *key)
{
	struct entry *e = find(c, key);

	if (e)
		return e;
	e = xcalloc(1, sizeof(*e));
	memcpy(e->key, key, KEY_LEN);
	map_set(&c->index, e->key, c->v.n);
	VEC_PUSH(&c->v, e);
	return e;
}

static void throw_out(struct cutcache *c, struct entry *e)
{
	rows_release(&e->rows);
	c->bytes -= e->bytes;
	e->bytes = 0;
}

/* Of what no trial is using, the least useful per time since it was used. */
static bool make_room(struct cutcache *c, size_t bytes)
{
	while (c->bytes + bytes > c->budget) {
		struct entry *worst = NULL;
		double least = 0;
		size_t i;

		for (i = 0; i < c->v.n; i++) {
			struct entry *e = c->v.v[i];
			double worth = e->saves / (double)(c->tick - e->used + 1);

			if (e->bytes && !e->pins && (!worst || worth < least)) {
				worst = e;
				least = worth;
			}
		}
		if (!worst)
			return false;
		throw_out(c, worst);
	}
	return true;
}

/* Memory comes in pages: rows that are smaller make whole pages resident. */
static size_t room_for(const struct rows *r, size_t n, size_t now)
{
	size_t all = r->n * r->bytes, page = r->bytes < PAGE ? PAGE : r->bytes + PAGE - 1;
	size_t more = n * page;

	return now + more > all ? all - now : more;
}

static void keep(struct cutcache *c, struct entry *e, const struct tensor *t, const struct feed_batch *b,
		 const size_t *place)
{
	size_t i, fresh = 0, room;

	if (e->unfit)
		return;
	if (!e->rows.data && !rows_init(&e->rows, c->samples, t, b->n)) {
		e->unfit = true;
		return;
	}
	for (i = 0; i < b->valid; i++)
		fresh += !e->rows.have[place[i]];
	room = room_for(&e->rows, fresh, e->bytes);
	if (!fresh || !make_room(c, room))
		return;
	if (!rows_put(&e->rows, t, place, b->valid)) {
		throw_out(c, e);
		e->unfit = true;
		return;
	}
	e->bytes += room;
	c->bytes += room;
	if (c->bytes > c->peak)
		c->peak = c->bytes;
}

/* ---- where to cut ---- */

/* Integer tensors between Q and DQ, one row per sample: the first dimension is the only one that may be anything. */
static bool can_cut(const struct model *m, const struct node *n, struct value *out)
{
	const struct init *zero = n->n_in > 2 ? model_init(m, n->in[2]) : NULL;
	const struct value *source;
	int i;

	if (!is_quantize_linear(n) || !zero)
		return false;
	source = model_value(m, n->in[0]);
	if (!source || source->type.rank < 1 || source->type.dims[0] >= 0)
		return false;
	for (i = 1; i < source->type.rank; i++)
		if (source->type.dims[i] < 0)
			return false;
	*out = (struct value){ .name = n->out[0], .type = source->type, .batch = source->batch };
	out->type.dtype = zero->t.dtype;
	return true;
}

/* The graph of one model, and what is known of its values. */
struct survey {
	const struct graph_index *g;
	const uint64_t *prints;
	struct value *at; /* those that can be cut; the others have no name */
	bool *known, *nodes, *values;
};

static void survey_init(struct survey *s, const struct graph_index *g, const uint64_t *prints)
{
	const struct model *m = g->m;
	size_t i;

	s->g = g;
	s->prints = prints;
	s->at = xcalloc(g->n, sizeof(*s->at));
	s->known = xcalloc(g->n, sizeof(*s->known));
	s->values = xcalloc(g->n, sizeof(*s->values));
	s->nodes = xcalloc(m->nodes.n, sizeof(*s->nodes));
	for (i = 0; i < m->nodes.n; i++) {
		struct value v;

		if (can_cut(m, m->nodes.v[i], &v))
			s->at[graph_value(g, v.name)] = v;
	}
}

static void survey_release(struct survey *s)
{
	free(s->at);
	free(s->known);
	free(s->values);
	free(s->nodes);
}

static void key_of(const struct survey *s, size_t value, char key[KEY_LEN])
{
	snprintf(key, KEY_LEN, "%016" PRIx64, s->prints[value]);
}

/* The share of the network that need not be run when the values in s->known are. */
static double cut_saves(struct survey *s, const struct cut_options *o)
{
	double all = 0, left = 0;
	size_t i;

	graph_behind(s->g, s->known, s->nodes, s->values);
	for (i = 0; i < s->g->m->nodes.n; i++) {
		double cost = o->cost(o->self, s->g->m->nodes.v[i]);

		all += cost;
		left += s->nodes[i] ? cost : 0;
	}
	return all > 0 ? 1 - left / all : 0;
}

static bool listed(const struct cut_list *l, const struct entry *e)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->v[i].e == e)
			return true;
	return false;
}

/* The values at which the last cut_saves() ends. */
static void list_cut(struct cut_run *r, struct survey *s, struct cut_list *list, double saves)
{
	size_t i;
	char key[KEY_LEN];

	for (i = 0; i < s->g->n; i++) {
		struct entry *e;

		if (!s->known[i] || !s->values[i])
			continue;
		key_of(s, i, key);
		e = find_or_add(r->c, key);
		if (listed(&r->start, e))
			continue;
		e->pins++;
		e->used = r->c->tick;
		e->saves = saves;
		VEC_PUSH(list, ((struct cut_value){ s->at[i], e, { .cap = 0 } }));
	}
}

static void choose(struct cut_run *r, struct survey *s)
{
	struct cutcache *c = r->c;
	double saves;
	char key[KEY_LEN];
	size_t i;

	for (i = 0; i < s->g->n; i++) {
		const struct entry *e;

		key_of(s, i, key);
		e = find(c, key);
		s->known[i] = s->at[i].name && e && !e->unfit && e->rows.n_have;
	}
	saves = cut_saves(s, &r->o);
	if (saves >= WORTH_IT) {
		list_cut(r, s, &r->start, saves);
		r->start_saves = saves;
	}
	for (i = 0; i < s->g->n; i++) {
		key_of(s, i, key);
		s->known[i] = s->at[i].name && map_get(&c->seen, key) != MAP_NONE &&
			      !(find(c, key) && find(c, key)->unfit);
	}
	saves = cut_saves(s, &r->o);
	if (saves >= r->start_saves + WORTH_IT)
		list_cut(r, s, &r->capture, saves);
	for (i = 0; i < s->g->n; i++) {
		key_of(s, i, key);
		if (s->at[i].name && map_get(&c->seen, key) == MAP_NONE)
			map_set(&c->seen, arena_strdup(&c->keys, key), 1);
	}
}

void cut_begin(struct cutcache *c, struct model *m, const struct graph_index *g, const uint64_t *prints,
	       const struct cut_options *o, struct cut_run **out)
{
	struct cut_run *r = xcalloc(1, sizeof(*r));
	struct survey s;

	*out = NULL;
	*r = (struct cut_run){ .c = c, .o = *o, .m = m };
	survey_init(&s, g, prints);
	pthread_mutex_lock(&c->lock);
	c->tick++;
	choose(r, &s);
	pthread_mutex_unlock(&c->lock);
	survey_release(&s);
	if (r->start.n || r->capture.n)
		*out = r;
	else
		free(r);
}

/* ---- running ---- */

static void add_names(const struct cut_list *l, const char **names, size_t *n)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		names[(*n)++] = l->v[i].v.name;
}

/* The network, or the part of it after the start, with what is to be kept as further outputs. */
static enum fettle_status open_session(struct cut_run *r, bool part, struct model **model,
				       struct session **out, struct err *err)
{
	size_t n = 0, i, n_start = part ? r->start.n : 0;
	const char **names = xcalloc(r->m->n_outputs + r->start.n + r->capture.n, sizeof(*names));
	struct value *at = xcalloc(n_start + 1, sizeof(*at));
	double start = clock_now();
	enum fettle_status st;

	for (i = 0; i < r->m->n_outputs; i++)
		names[n++] = r->m->outputs[i].name;
	add_names(&r->capture, names, &n);
	if (!part)
		add_names(&r->start, names, &n);
	*model = model_derive(r->m);
	model_set_outputs(*model, names, n);
	for (i = 0; i < n_start; i++)
		at[i] = r->start.v[i].v;
	if (part)
		model_cut(*model, at, n_start);
	st = session_new(out, r->o.rt, *model, r->o.session, err);
	free(names);
	free(at);
	r->session_seconds += clock_now() - start;
	return st;
}

static bool gather(struct cut_run *r, const struct feed_batch *b, const size_t *place)
{
	bool have = r->start.n > 0;
	size_t i;

	pthread_mutex_lock(&r->c->lock);
	for (i = 0; i < r->start.n && have; i++)
		have = r->start.v[i].e->rows.data && rows_have(&r->start.v[i].e->rows, place, b->valid);
	for (i = 0; i < r->start.n && have; i++)
		rows_get(&r->start.v[i].e->rows, place, b->valid, b->n, &r->start.v[i].rows);
	pthread_mutex_unlock(&r->c->lock);
	return have;
}

/* What the session reads: what was gathered, and of the batch what it still needs. */
static void bind_inputs(struct cut_run *r, struct session *s, const struct feed_batch *b)
{
	size_t i, k;

	for (i = 0; i < session_n_inputs(s); i++) {
		const char *name = session_input(s, i)->name;

		for (k = 0; k < r->m->n_inputs; k++)
			if (strcmp(r->m->inputs[k].name, name) == 0)
				r->in[i] = b->inputs[k];
		for (k = 0; k < r->start.n; k++)
			if (strcmp(r->start.v[k].v.name, name) == 0)
				r->in[i] = r->start.v[k].rows.t;
	}
}

static void keep_outputs_of(struct cut_run *r, bool part, const struct feed_batch *b, const size_t *place)
{
	const struct tensor *t = r->out + r->m->n_outputs;
	size_t i;

	pthread_mutex_lock(&r->c->lock);
	for (i = 0; i < r->capture.n; i++)
		keep(r->c, r->capture.v[i].e, t++, b, place);
	for (i = 0; i < r->start.n && !part; i++)
		keep(r->c, r->start.v[i].e, t++, b, place);
	pthread_mutex_unlock(&r->c->lock);
}

static enum fettle_status cut_run_batch(void *self, const struct feed_batch *b, struct tensor *out,
					struct err *err)
{
	struct cut_run *r = self;
	const size_t *place = order_places(r->o.order, b, &r->scratch);
	bool part = gather(r, b, place);
	struct session **s = part ? &r->part : &r->whole;
	enum fettle_status st = FETTLE_OK;

	if (!r->out) {
		r->out = xcalloc(r->m->n_outputs + r->start.n + r->capture.n, sizeof(*r->out));
		r->in = xcalloc(r->m->n_inputs + r->start.n, sizeof(*r->in));
	}
	if (!*s)
		st = open_session(r, part, part ? &r->part_model : &r->whole_model, s, err);
	if (st)
		return st;
	bind_inputs(r, *s, b);
	st = session_run(*s, r->in, r->out, err);
	if (st)
		return st;
	memcpy(out, r->out, r->m->n_outputs * sizeof(*out));
	keep_outputs_of(r, part, b, place);
	if (part)
		r->saved += r->start_saves * (double)b->valid;
	return FETTLE_OK;
}

struct network cut_network(struct cut_run *r)
{
	return (struct network){ cut_run_batch, r, r->m->n_outputs };
}

static void release_list(struct cut_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		l->v[i].e->pins--;
		buffer_release(&l->v[i].rows);
	}
	VEC_RELEASE(l);
}

double cut_end(struct cut_run *r, double *session_seconds)
{
	double saved = r->saved;

	*session_seconds += r->session_seconds;
	session_free(r->part);
	session_free(r->whole);
	model_free(r->part_model);
	model_free(r->whole_model);
	pthread_mutex_lock(&r->c->lock);
	release_list(&r->start);
	release_list(&r->capture);
	pthread_mutex_unlock(&r->c->lock);
	free(r->in);
	free(r->out);
	free(r->scratch);
	free(r);
	return saved;
}
