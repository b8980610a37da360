#include "quantize/slice.h"

#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES ((size_t)128 << 20)

/* ---- the graph ---- */

/* The j-th value that a node or its subgraphs read; MAP_NONE for none, or a constant. *more: there are more. */
static size_t read_by(const struct parts_run *r, const struct node *n, size_t j, bool *more)
{
	const char *name = j < n->n_in                   ? n->in[j]
			   : j < n->n_in + n->n_captured ? n->captured[j - n->n_in]
							 : NULL;
	size_t v = name && *name ? graph_value(r->g, name) : MAP_NONE;

	*more = name != NULL;
	return v == MAP_NONE || r->g->constant[v] ? MAP_NONE : v;
}

static void find_last_uses(struct parts_run *r)
{
	size_t i, j, v;
	bool more;

	r->last = NO_NODE;
	for (i = 0; i < r->p->plan->n; i++)
		if (parts_by_data(r->p->plan, i))
			r->last = (int)i;
	r->last_use = xcalloc(r->g->n + 1, sizeof(*r->last_use));
	for (i = 0; i < r->g->n; i++)
		r->last_use[i] = NO_NODE;
	for (i = 0; (int)i <= r->last; i++)
		for (j = 0, more = true; more; j++)
			if ((v = read_by(r, parts_node(r, (int)i), j, &more)) != MAP_NONE)
				r->last_use[v] = (int)i;
}

/* ---- values between parts ---- */

static struct kept *find_kept(const struct parts_run *r, size_t value)
{
	size_t i;

	for (i = 0; i < r->kept.n; i++)
		if (r->kept.v[i].value == value)
			return &r->kept.v[i];
	return NULL;
}

static void release_kept(struct parts_run *r, struct kept *k)
{
	size_t b;

	for (b = 0; b < r->n; b++)
		tensor_free(&k->t[b]);
	free(k->t);
}

static void keep(struct parts_run *r, size_t value)
{
	struct kept k = { value, xcalloc(r->n, sizeof(*k.t)) };

	VEC_PUSH(&r->kept, k);
}

static enum fettle_status copy(struct tensor *to, const struct tensor *from, struct err *err)
{
	enum fettle_status st;

	*to = *from;
	to->data = NULL;
	st = tensor_alloc(to, "what a part of the model computed", err);
	if (!st && tensor_bytes(from))
		memcpy(to->data, from->data, tensor_bytes(from));
	return st;
}

void parts_forget(struct parts_run *r, int next)
{
	size_t i, left = 0;

	for (i = 0; i < r->kept.n; i++)
		if (r->last_use[r->kept.v[i].value] < next)
			release_kept(r, &r->kept.v[i]);
		else
			r->kept.v[left++] = r->kept.v[i];
	r->kept.n = left;
}

/* the inputs of the graph */
static enum fettle_status read_inputs(struct parts_run *r, struct err *err)
{
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k, v;

	r->n = feed_batches(r->p->feed);
	r->batches = xcalloc(r->n, sizeof(*r->batches));
	for (i = 0; i < feed_n_inputs(r->p->feed); i++) {
		v = graph_value(r->g, feed_input(r->p->feed, i)->name);
		if (v != MAP_NONE)
			keep(r, v);
	}
	for (k = 0; k < r->n && !st; k++) {
		st = feed_read(r->p->feed, k, &b, err);
		if (st)
			break;
		r->batches[k] = (struct batch_size){ b.n, b.valid };
		for (i = 0; i < b.n_inputs && !st; i++) {
			v = graph_value(r->g, feed_input(r->p->feed, i)->name);
			if (v != MAP_NONE)
				st = copy(&find_kept(r, v)->t[k], &b.inputs[i], err);
		}
	}
	feed_batch_release(&b);
	parts_forget(r, 0);
	return st;
}

enum fettle_status parts_begin(struct parts_run *r, struct err *err)
{
	find_last_uses(r);
	return read_inputs(r, err);
}

void parts_end(struct parts_run *r)
{
	size_t i;

	for (i = 0; i < r->kept.n; i++)
		release_kept(r, &r->kept.v[i]);
	VEC_RELEASE(&r->kept);
	free(r->batches);
	free(r->last_use);
}

/* ---- what a part is ---- */

static size_t weight_bytes(const struct parts_run *r, const struct node *n)
{
	size_t bytes = 0, j;

	for (j = 0; j < n->n_in; j++) {
		const struct init *w = model_init(r->g->m, n->in[j]);

		bytes += w && init_is_outside(w) ? tensor_bytes(&w->t) : 0;
	}
	return bytes;
}

/* Follows what becomes of the outputs of quantized ops; true: this op must see it before it is quantized. */
static bool follow(const struct parts_run *r, int node, bool *touched)
{
	const struct node *n = parts_node(r, node);
	bool is = parts_block_op(r, (size_t)node), more;
	size_t j, v;

	if (parts_by_data(r->p->plan, (size_t)node) && touched[graph_value(r->g, n->in[0])])
		return true;
	for (j = 0, more = true; more; j++)
		if ((v = read_by(r, n, j, &more)) != MAP_NONE)
			is |= touched[v];
	for (j = 0; j < n->n_out; j++)
		if (*n->out[j])
			touched[graph_value(r->g, n->out[j])] = is;
	return false;
}

/* where the part that begins at `from` ends */
static int slice_end(const struct parts_run *r, int from)
{
	const size_t most = r->p->bytes ? r->p->bytes : SLICE_BYTES;
	bool *touched = xcalloc(r->g->n + 1, sizeof(*touched));
	size_t bytes = 0, more;
	int i;

	for (i = from; i <= r->last; i++) {
		more = weight_bytes(r, parts_node(r, i));
		if ((more && bytes && bytes + more > most) || (parts_in_sequence(r) && follow(r, i, touched)))
			break;
		bytes += more;
	}
	free(touched);
	return i;
}

#define PUSH_NEW(vec, x)                                                                                     \
	do {                                                                                                 \
		size_t at_;                                                                                  \
		for (at_ = 0; at_ < (vec)->n && (vec)->v[at_] != (x); at_++)                                 \
			;                                                                                    \
		if (at_ == (vec)->n)                                                                         \
			VEC_PUSH(vec, x);                                                                    \
	} while (0)

static void find_values(const struct parts_run *r, struct slice *p)
{
	size_t j, v;
	bool more;
	int i;

	for (i = p->from; i < p->to; i++) {
		const struct node *n = parts_node(r, i);

		for (j = 0, more = true; more; j++)
			if ((v = read_by(r, n, j, &more)) != MAP_NONE && r->g->producer[v] < p->from)
				PUSH_NEW(&p->reads, v);
		for (j = 0; j < n->n_out; j++)
			if (*n->out[j] && r->last_use[v = graph_value(r->g, n->out[j])] >= p->to)
				PUSH_NEW(&p->makes, v);
		if (!parts_by_data(r->p->plan, (size_t)i))
			continue;
		VEC_PUSH(&p->ops, (size_t)i);
		v = graph_value(r->g, n->in[0]);
		if (r->g->producer[v] >= p->from)
			PUSH_NEW(&p->makes, v);
	}
}

void slice_find(const struct parts_run *r, struct slice *p, int from)
{
	p->from = from;
	p->to = slice_end(r, from);
	find_values(r, p);
}

bool slice_is_read(const struct parts_run *r, const struct slice *p)
{
	size_t i;

	for (i = 0; i < p->makes.n; i++)
		if (r->last_use[p->makes.v[i]] >= p->to)
			return true;
	return false;
}

/* ---- running it ---- */

enum fettle_status slice_load(const struct model *m, const struct init *w, void **bytes, struct err *err)
{
	struct weight_reader f;
	enum fettle_status st = weight_open(&f, m, w, err);

	if (st)
		return st;
	st = mem_try(bytes, f.n, 1, w->name, err);
	if (!st)
		st = weight_read(&f, 0, *bytes, f.n, err);
	weight_close(&f);
	return st;
}

static enum fettle_status load_weights(struct slice *p, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < p->m->inits.n && !st; i++) {
		const struct init *w = p->m->inits.v[i];
		struct init *own;
		void *bytes = NULL;

		if (!init_is_outside(w))
			continue;
		st = slice_load(p->m, w, &bytes, err);
		VEC_PUSH(&p->weights, bytes);
		own = arena_alloc(&p->m->arena, sizeof(*own)); /* the other belongs to the base */
		own->name = w->name;
		own->t = w->t;
		own->t.data = bytes;
		p->m->inits.v[i] = own;
	}
	return st;
}

/* The part's ops whose weights are quantized by now read those. */
static void use_replaced(const struct parts_run *r, struct slice *p)
{
	size_t i, k;

	for (i = 0; i < p->replaced.n; i++)
		for (k = 0; k < p->m->nodes.n; k++)
			if (strcmp(p->m->nodes.v[k]->out[0],
				   parts_node(r, (int)p->replaced.v[i].node)->out[0]) == 0)
				p->m->nodes.v[k]->in[1] = model_add_init(p->m, model_fresh(p->m, "quantized"),
									 &p->replaced.v[i].w)
								  ->name;
	if (p->replaced.n)
		model_sweep(p->m);
}

static enum fettle_status open_slice(const struct parts_run *r, struct slice *p, struct err *err)
{
	const struct session_options so = { .threads = r->p->threads };
	struct value *at = xcalloc(p->reads.n + 1, sizeof(*at));
	const char **names = xcalloc(p->makes.n + 1, sizeof(*names));
	enum fettle_status st = FETTLE_OK;
	size_t i, n = 0;

	for (i = 0; i < p->makes.n; i++)
		names[i] = r->g->names[p->makes.v[i]];
	for (i = 0; i < p->reads.n && !st; i++) {
		const size_t v = p->reads.v[i];
		const struct value *type = model_value(r->g->m, r->g->names[v]);

		if (r->g->producer[v] == NO_NODE) /* it is an input already */
			continue;
		if (!type || !dtype_size(type->type.dtype))
			st = fail(err, FETTLE_UNSUPPORTED,
				  "cannot run the model in parts: value '%s' is no tensor of known type",
				  r->g->names[v]);
		else
			at[n++] = *type;
	}
	if (!st) {
		p->m = model_derive(r->g->m);
		model_set_outputs(p->m, names, p->makes.n);
		model_cut(p->m, at, n);
		use_replaced(r, p);
		st = load_weights(p, err);
	}
	if (!st)
		st = session_new(&p->s, r->p->rt, p->m, &so, err);
	free(at);
	free(names);
	return st;
}

static void close_session(struct slice *p)
{
	size_t i;

	session_free(p->s);
	p->s = NULL;
	model_free(p->m);
	p->m = NULL;
	for (i = 0; i < p->weights.n; i++)
		free(p->weights.v[i]);
	VEC_RELEASE(&p->weights);
	mem_trim();
}

static enum fettle_status begin_grams(const struct parts_run *r, struct slice *p, struct err *err)
{
	struct gram_input *want = xcalloc(p->ops.n + 1, sizeof(*want));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < p->ops.n; i++)
		want[i] = parts_input(r, p->ops.v[i]);
	st = grams_new(&p->grams, want, p->ops.n, err);
	free(want);
	return st;
}

/* One batch through the part. */
static enum fettle_status run_batch(struct parts_run *r, struct slice *p, size_t k, struct tensor *in,
				    struct tensor *out, struct err *err)
{
	const struct batch_size *b = &r->batches[k];
	enum fettle_status st = FETTLE_OK;
	struct kept *kept;
	size_t i;

	for (i = 0; p->s && i < session_n_inputs(p->s); i++)
		in[i] = find_kept(r, graph_value(r->g, session_input(p->s, i)->name))->t[k];
	if (p->s)
		st = session_run(p->s, in, out, err);
	for (i = 0; i < p->reads.n && !st && p->sees; i++)
		st = grams_add(p->grams, r->g->names[p->reads.v[i]], &find_kept(r, p->reads.v[i])->t[k], b->n,
			       b->valid, err);
	for (i = 0; i < p->makes.n && !st; i++) {
		if (p->sees)
			st = grams_add(p->grams, r->g->names[p->makes.v[i]], &out[i], b->n, b->valid, err);
		kept = p->keeps ? find_kept(r, p->makes.v[i]) : NULL;
		if (!st && kept)
			st = copy(&kept->t[k], &out[i], err);
	}
	return st;
}

static enum fettle_status run_batches(struct parts_run *r, struct slice *p, struct err *err)
{
	struct tensor *in = xcalloc(p->s ? session_n_inputs(p->s) + 1 : 1, sizeof(*in)),
		      *out = xcalloc(p->makes.n + 1, sizeof(*out));
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < p->makes.n && p->keeps; i++)
		if (r->last_use[p->makes.v[i]] >= p->to)
			keep(r, p->makes.v[i]);
	for (k = 0; k < r->n && !st; k++)
		st = run_batch(r, p, k, in, out, err);
	if (p->sees)
		grams_finish(p->grams);
	free(in);
	free(out);
	return st;
}

enum fettle_status slice_run(struct parts_run *r, struct slice *p, bool sees, bool keeps, struct err *err)
{
	enum fettle_status st = FETTLE_OK;

	p->sees = sees;
	p->keeps = keeps;
	if (sees)
		st = begin_grams(r, p, err);
	if (!st && p->makes.n)
		st = open_slice(r, p, err);
	if (!st)
		st = run_batches(r, p, err);
	close_session(p);
	return st;
}

void slice_release(struct slice *p)
{
	size_t i;

	close_session(p);
	VEC_RELEASE(&p->reads);
	VEC_RELEASE(&p->makes);
	VEC_RELEASE(&p->ops);
	for (i = 0; i < p->replaced.n; i++)
		free(p->replaced.v[i].w.data);
	VEC_RELEASE(&p->replaced);
	grams_free(p->grams);
}
