/* The noise of each op, and the model that it is put into. */
#include <stdlib.h>
#include <string.h>

#include "quantize/quantize.h"
#include "tune/own_noise.h"

struct making {
	struct model *q; /* the quantized model */
	struct model *f; /* the fp32 model it was derived from */
	struct model *m; /* being made, on top of f */
	struct graph_index gq, gf;
	struct map consts; /* constants of q that m has: name in q -> place in names */
	VEC(const char *) names;
	VEC(struct node *) * after; /* of each node of f: what comes right after it */
};

/* a constant of q under the name that it has in m */
static enum fettle_status constant(struct making *t, const char *name, const char **out, struct err *err)
{
	struct init *w = model_init(t->q, name), *same = model_init(t->f, name);
	size_t known = map_get(&t->consts, name);
	enum fettle_status st;

	if (known != MAP_NONE) {
		*out = t->names.v[known];
		return FETTLE_OK;
	}
	st = model_weight(t->q, w, err);
	if (!st && same)
		st = model_weight(t->f, same, err);
	if (st)
		return st;
	if (!w->t.data && !(same && same->opaque == w->opaque))
		return fail(err, FETTLE_UNSUPPORTED, "cannot measure ops: constant '%s' is of a type unknown",
			    name);
	*out = same && same->t.data == w->t.data ? name
						 : model_add_init(t->m, model_fresh(t->m, name), &w->t)->name;
	map_set(&t->consts, name, t->names.n);
	VEC_PUSH(&t->names, *out);
	return FETTLE_OK;
}

/* One op as q has it: the nodes from the values that f has, too, to what the op makes. */
struct cone {
	bool *nodes;       /* of q */
	const char **name; /* of q's values, in m; NULL: as in q */
	size_t made, after;
};

static bool inside(const struct making *t, const struct cone *c, size_t v)
{
	size_t f = graph_value(&t->gf, t->gq.names[v]);

	return t->gq.producer[v] != NO_NODE && (f == MAP_NONE || f == c->made || f == c->after);
}

static void mark(const struct making *t, struct cone *c, size_t v)
{
	int maker = t->gq.producer[v];
	const struct node *n;
	size_t k;

	if (!inside(t, c, v) || c->nodes[maker])
		return;
	c->nodes[maker] = true;
	n = t->gq.m->nodes.v[maker];
	for (k = 0; k < n->n_in; k++)
		if (*n->in[k])
			mark(t, c, graph_value(&t->gq, n->in[k]));
}

static struct node *copy_node(struct model *m, const struct node *n, const char *name)
{
	struct node *copy = model_new_node(m, n->op, n->domain, name, n->n_in, n->n_out);
	const char **in = copy->in, **out = copy->out;

	memcpy(in, n->in, n->n_in * sizeof(*in));
	memcpy(out, n->out, n->n_out * sizeof(*out));
	*copy = *n;
	copy->name = name;
	copy->in = in;
	copy->out = out;
	return copy;
}

static enum fettle_status copy_inputs(struct making *t, const struct cone *c, struct node *n, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t k;

	for (k = 0; k < n->n_in && !st; k++) {
		size_t v = *n->in[k] ? graph_value(&t->gq, n->in[k]) : MAP_NONE;

		if (v == MAP_NONE)
			continue;
		if (c->name[v])
			n->in[k] = c->name[v];
		else if (model_init(t->q, n->in[k]))
			st = constant(t, n->in[k], &n->in[k], err);
	}
	return st;
}

/* Adds the op as q has it after f's node `at`; *out is what it makes. */
static enum fettle_status add_cone(struct making *t, size_t op, struct cone *c, int at, const char **out,
				   struct err *err)
{
	const char *value = t->gf.names[c->after];
	size_t end = graph_value(&t->gq, name_in(&t->gq, value)), i, k;
	enum fettle_status st = FETTLE_OK;

	memset(c->nodes, 0, t->q->nodes.n * sizeof(*c->nodes));
	memset(c->name, 0, t->gq.n * sizeof(*c->name));
	mark(t, c, end);
	for (i = 0; i < t->q->nodes.n && !st; i++) {
		const struct node *old = t->q->nodes.v[i];
		struct node *n;

		if (!c->nodes[i])
			continue;
		n = copy_node(t->m, old, arena_strfmt(&t->m->arena, "%s_alone%zu", old->name, op));
		st = copy_inputs(t, c, n, err);
		for (k = 0; k < n->n_out; k++)
			if (*n->out[k]) {
				n->out[k] = model_fresh(t->m, n->out[k]);
				c->name[graph_value(&t->gq, old->out[k])] = n->out[k];
			}
		if (*n->domain)
			model_need_domain(t->m, n->domain, model_domain_version(t->q, n->domain));
		VEC_PUSH(&t->after[at], n);
	}
	*out = c->name[end];
	return st;
}

/* *out = as q has it, less as f has it */
static enum fettle_status add_noise(struct making *t, size_t op, struct cone *c, const char **out,
				    struct err *err)
{
	const char *value = t->gf.names[c->after], *alone = NULL;
	int at = t->gf.producer[c->after];
	enum fettle_status st = add_cone(t, op, c, at, &alone, err);
	struct node *n;

	if (!st && !alone)
		st = fail(err, FETTLE_UNSUPPORTED, "cannot measure ops: '%s' is not made anew", value);
	if (st)
		return st;
	n = model_new_node(t->m, "Sub", "", "noise_of", 2, 1);
	n->in[0] = alone;
	n->in[1] = value;
	n->out[0] = *out = model_fresh(t->m, "noise");
	VEC_PUSH(&t->after[at], n);
	return FETTLE_OK;
}

static void put_together(struct making *t)
{
	VEC(struct node *) all = { 0 };
	size_t i, k;

	for (i = 0; i < t->m->nodes.n; i++) {
		VEC_PUSH(&all, t->m->nodes.v[i]);
		for (k = 0; k < t->after[i].n; k++)
			VEC_PUSH(&all, t->after[i].v[k]);
	}
	model_set_nodes(t->m, all.v, all.n);
	VEC_RELEASE(&all);
}

enum fettle_status noise_model(struct model *q, const char *const *value, size_t n, struct model **out,
			       struct err *err)
{
	struct making t = { .q = q, .f = (struct model *)q->base, .m = model_derive(q->base) };
	const char **noise = xcalloc(n, sizeof(*noise));
	struct cone c;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	graph_index_init(&t.gq, q);
	graph_index_init(&t.gf, t.f);
	t.after = xcalloc(t.f->nodes.n, sizeof(*t.after));
	c = (struct cone){ .nodes = xcalloc(q->nodes.n, sizeof(bool)),
			   .name = xcalloc(t.gq.n, sizeof(char *)) };
	for (i = 0; i < n && !st; i++) {
		c.made = graph_value(&t.gf, value[i]);
		c.after = quantized_output(&t.gf, value[i]);
		st = add_noise(&t, i, &c, &noise[i], err);
	}
	if (!st) {
		put_together(&t);
		model_set_outputs(t.m, noise, n);
		st = graph_sort(t.m, err);
	}
	for (i = 0; i < t.f->nodes.n; i++)
		VEC_RELEASE(&t.after[i]);
	free(t.after);
	free(noise);
	free(c.nodes);
	free(c.name);
	VEC_RELEASE(&t.names);
	map_release(&t.consts);
	graph_index_release(&t.gq);
	graph_index_release(&t.gf);
	if (st)
		model_free(t.m);
	else
		*out = t.m;
	return st;
}

enum fettle_status noisy_model(const struct model *f, const char *const *value, const struct tensor *types,
			       size_t n, struct model **out, struct err *err)
{
	struct making t = { .f = (struct model *)f, .m = model_derive(f) };
	float *zero = arena_alloc(&t.m->arena, sizeof(*zero));
	enum fettle_status st;
	size_t i, k;

	graph_index_init(&t.gf, f);
	t.after = xcalloc(f->nodes.n, sizeof(*t.after));
	for (i = 0; i < n; i++) {
		size_t v = quantized_output(&t.gf, value[i]);
		int at = t.gf.producer[v];
		struct tensor any = types[i];
		struct node *maker = copy_node(t.m, t.m->nodes.v[at], t.m->nodes.v[at]->name), *add;
		const char *plain = model_fresh(t.m, t.gf.names[v]);

		any.data = zero;
		for (k = 0; k < (size_t)any.rank; k++)
			any.dims[k] = -1; /* the noise, or one zero */
		for (k = 0; k < maker->n_out; k++)
			if (strcmp(maker->out[k], t.gf.names[v]) == 0)
				maker->out[k] = plain;
		t.m->nodes.v[at] = maker;
		add = model_new_node(t.m, "Add", "", "with_noise", 2, 1);
		add->in[0] = plain;
		add->in[1] = model_add_init(t.m, model_fresh(t.m, "noise"), &any)->name;
		add->out[0] = t.gf.names[v];
		model_init_to_input(t.m, add->in[1]);
		VEC_PUSH(&t.after[at], add);
	}
	put_together(&t);
	st = graph_sort(t.m, err);
	for (i = 0; i < f->nodes.n; i++)
		VEC_RELEASE(&t.after[i]);
	free(t.after);
	graph_index_release(&t.gf);
	if (st)
		model_free(t.m);
	else
		*out = t.m;
	return st;
}

/* ---- running it ---- */

enum fettle_status noises_begin(struct noises *t, struct feed *all, size_t samples, size_t n, struct err *err)
{
	const size_t total = feed_samples(all), some = samples < total ? samples : total;
	size_t *chosen = xcalloc(some + 1, sizeof(*chosen)), i;
	enum fettle_status st;

	for (i = 0; i < some; i++)
		chosen[i] = feed_sample(all, i * total / some);
	*t = (struct noises){ .feed = feed_twin(all), .n = n };
	st = feed_set_order(t->feed, chosen, some, err);
	t->batches = feed_batches(t->feed);
	t->v = xcalloc(t->batches * n + 1, sizeof(*t->v));
	free(chosen);
	return st;
}

void noises_release(struct noises *t)
{
	size_t i;

	for (i = 0; i < t->batches * t->n; i++)
		tensor_free(&t->v[i]);
	free(t->v);
	feed_free(t->feed);
	*t = (struct noises){ .feed = NULL };
}

void keep_noises(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out, size_t n)
{
	struct noises *t = self;
	size_t i;

	(void)b;
	for (i = 0; i < t->n && i < n; i++) {
		struct tensor *to = &t->v[batch * t->n + i];

		*to = out[i];
		to->data = xmalloc(tensor_bytes(&out[i]) + 1);
		memcpy(to->data, out[i].data, tensor_bytes(&out[i]));
	}
}

enum fettle_status noises_run(struct lab *l, const struct noises *t, struct session *s, size_t op,
			      take_fn take, void *self, struct err *err)
{
	static const double zero; /* of any type */
	const size_t plain = session_n_inputs(s) - t->n;
	struct tensor *in = xcalloc(plain + t->n, sizeof(*in)),
		      *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < t->batches && !st; i++) {
		if (lab_stopped(l)) {
			st = fail(err, FETTLE_STOP, "stopped");
			break;
		}
		st = feed_read(t->feed, i, &b, err);
		if (st)
			break;
		memcpy(in, b.inputs, plain * sizeof(*in));
		for (k = 0; k < t->n; k++) {
			struct tensor *x = &in[plain + k];

			*x = t->v[i * t->n + k];
			if (k == op)
				continue;
			x->data = (void *)(uintptr_t)&zero;
			for (int d = 0; d < x->rank; d++)
				x->dims[d] = 1;
		}
		st = session_run(s, in, out, err);
		if (!st)
			take(self, i, &b, out, session_n_outputs(s));
	}
	feed_batch_release(&b);
	free(in);
	free(out);
	return st;
}
