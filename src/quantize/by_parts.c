#include "quantize/by_parts.h"

#include <stdlib.h>
#include <string.h>

#include "ops/rules.h"
#include "quantize/grams.h"
#include "quantize/part_scales.h"

#define PART_BYTES ((size_t)128 << 20)

/* A value that nodes to come read: what it was for each batch. */
struct kept {
	size_t value;
	struct tensor *t;
};

struct batch_size {
	size_t n, valid;
};

/* What several ops have read that share a weight. */
struct shared {
	const char *weight;
	bool turned;
	size_t last; /* of those ops */
	int64_t k, rows;
	float *sum; /* [k, k] and [k], times rows */
};

struct run {
	const struct parts *p;
	const struct graph_index *g;
	struct batch_size *batches;
	size_t n;      /* of batches */
	int last;      /* node: what comes after it is not run */
	int *last_use; /* value -> the last node, up to that one, that reads it; NO_NODE: none */
	VEC(struct kept) kept;
	VEC(struct shared) shared;
	struct part_scales *scales; /* NULL in sequence: the second run would need them */
	struct block_store *out;
};

/* A weight as it has become, in the layout of the op's own. */
struct replaced {
	size_t node;
	struct tensor w;
};

/* Nodes from .. to-1 as a model of its own. */
struct part {
	int from, to;
	struct model *m;
	struct session *s;
	VEC(size_t) reads;   /* values made before it, or inputs of the graph */
	VEC(size_t) makes;   /* values that the session gives: read later, or to be observed */
	VEC(size_t) ops;     /* nodes whose weights are quantized by what they read */
	VEC(void *) weights; /* the bytes of its weights */
	VEC(struct replaced) replaced;
	struct grams *grams;
	bool sees, keeps; /* what a run over the batches is for: grams, and values for later parts */
};

static bool by_data(const struct qplan *plan, size_t node)
{
	return plan->ops[node].mode == OP_WEIGHT && block_needs_data(&plan->ops[node].blocks);
}

static bool is_block_op(const struct run *r, size_t node)
{
	return r->p->plan->ops[node].mode == OP_WEIGHT && r->p->s->ops.v[node].rule->kind == OP_COMPUTE;
}

static bool in_sequence(const struct run *r)
{
	return r->p->plan->recipes.true_sequential;
}

bool parts_needed(const struct qplan *plan)
{
	size_t i;

	for (i = 0; i < plan->n; i++)
		if (by_data(plan, i))
			return true;
	return false;
}

static const struct node *node_at(const struct run *r, int i)
{
	return r->g->m->nodes.v[i];
}

/* The j-th value that a node or its subgraphs read; MAP_NONE for none, or a constant. *more: there are more. */
static size_t read_by(const struct run *r, const struct node *n, size_t j, bool *more)
{
	const char *name = j < n->n_in                   ? n->in[j]
			   : j < n->n_in + n->n_captured ? n->captured[j - n->n_in]
							 : NULL;
	size_t v = name && *name ? graph_value(r->g, name) : MAP_NONE;

	*more = name != NULL;
	return v == MAP_NONE || r->g->constant[v] ? MAP_NONE : v;
}

static void find_last_uses(struct run *r)
{
	size_t i, j, v;
	bool more;

	r->last = NO_NODE;
	for (i = 0; i < r->p->plan->n; i++)
		if (by_data(r->p->plan, i))
			r->last = (int)i;
	r->last_use = xcalloc(r->g->n + 1, sizeof(*r->last_use));
	for (i = 0; i < r->g->n; i++)
		r->last_use[i] = NO_NODE;
	for (i = 0; (int)i <= r->last; i++)
		for (j = 0, more = true; more; j++)
			if ((v = read_by(r, node_at(r, (int)i), j, &more)) != MAP_NONE)
				r->last_use[v] = (int)i;
}

/* ---- values between parts ---- */

static struct kept *find_kept(const struct run *r, size_t value)
{
	size_t i;

	for (i = 0; i < r->kept.n; i++)
		if (r->kept.v[i].value == value)
			return &r->kept.v[i];
	return NULL;
}

static void release_kept(struct run *r, struct kept *k)
{
	size_t b;

	for (b = 0; b < r->n; b++)
		tensor_free(&k->t[b]);
	free(k->t);
}

static void keep(struct run *r, size_t value)
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

/* what no node from `next` on reads */
static void forget(struct run *r, int next)
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
static enum fettle_status read_inputs(struct run *r, struct err *err)
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
	forget(r, 0);
	return st;
}

/* ---- a part ---- */

static size_t weight_bytes(const struct run *r, const struct node *n)
{
	size_t bytes = 0, j;

	for (j = 0; j < n->n_in; j++) {
		const struct init *w = model_init(r->g->m, n->in[j]);

		bytes += w && init_is_outside(w) ? tensor_bytes(&w->t) : 0;
	}
	return bytes;
}

/* Follows what becomes of the outputs of quantized ops; true: this op must see it before it is quantized. */
static bool follow(const struct run *r, int node, bool *touched)
{
	const struct node *n = node_at(r, node);
	bool is = is_block_op(r, (size_t)node), more;
	size_t j, v;

	if (by_data(r->p->plan, (size_t)node) && touched[graph_value(r->g, n->in[0])])
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
static int part_end(const struct run *r, int from)
{
	const size_t most = r->p->bytes ? r->p->bytes : PART_BYTES;
	bool *touched = xcalloc(r->g->n + 1, sizeof(*touched));
	size_t bytes = 0, more;
	int i;

	for (i = from; i <= r->last; i++) {
		more = weight_bytes(r, node_at(r, i));
		if ((more && bytes && bytes + more > most) || (in_sequence(r) && follow(r, i, touched)))
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

static void find_values(const struct run *r, struct part *p)
{
	size_t j, v;
	bool more;
	int i;

	for (i = p->from; i < p->to; i++) {
		const struct node *n = node_at(r, i);

		for (j = 0, more = true; more; j++)
			if ((v = read_by(r, n, j, &more)) != MAP_NONE && r->g->producer[v] < p->from)
				PUSH_NEW(&p->reads, v);
		for (j = 0; j < n->n_out; j++)
			if (*n->out[j] && r->last_use[v = graph_value(r->g, n->out[j])] >= p->to)
				PUSH_NEW(&p->makes, v);
		if (!by_data(r->p->plan, (size_t)i))
			continue;
		VEC_PUSH(&p->ops, (size_t)i);
		v = graph_value(r->g, n->in[0]);
		if (r->g->producer[v] >= p->from)
			PUSH_NEW(&p->makes, v);
	}
}

/* A weight into memory. free() *bytes. */
static enum fettle_status load(const struct model *m, const struct init *w, void **bytes, struct err *err)
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

static enum fettle_status load_weights(struct part *p, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < p->m->inits.n && !st; i++) {
		const struct init *w = p->m->inits.v[i];
		struct init *own;
		void *bytes = NULL;

		if (!init_is_outside(w))
			continue;
		st = load(p->m, w, &bytes, err);
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
static void use_replaced(const struct run *r, struct part *p)
{
	size_t i, k;

	for (i = 0; i < p->replaced.n; i++)
		for (k = 0; k < p->m->nodes.n; k++)
			if (strcmp(p->m->nodes.v[k]->out[0],
				   node_at(r, (int)p->replaced.v[i].node)->out[0]) == 0)
				p->m->nodes.v[k]->in[1] = model_add_init(p->m, model_fresh(p->m, "quantized"),
									 &p->replaced.v[i].w)
								  ->name;
	if (p->replaced.n)
		model_sweep(p->m);
}

static enum fettle_status open_part(const struct run *r, struct part *p, struct err *err)
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

static void close_session(struct part *p)
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

static void release_part(struct part *p)
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

static struct gram_input input_of(const struct run *r, size_t node)
{
	const struct node *n = node_at(r, (int)node);

	return (struct gram_input){ n->in[0], r->p->s->ops.v[node].inputs, op_input_turned(n) };
}

static enum fettle_status begin_grams(const struct run *r, struct part *p, struct err *err)
{
	struct gram_input *want = xcalloc(p->ops.n + 1, sizeof(*want));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < p->ops.n; i++)
		want[i] = input_of(r, p->ops.v[i]);
	st = grams_new(&p->grams, want, p->ops.n, err);
	free(want);
	return st;
}

/* One batch through the part. */
static enum fettle_status run_batch(struct run *r, struct part *p, size_t k, struct tensor *in,
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

static enum fettle_status run_batches(struct run *r, struct part *p, struct err *err)
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

/* ---- weights that several ops share ---- */

/* The last op that has the same weight, and goes by data. */
static size_t last_reader(const struct run *r, size_t node)
{
	const struct node *n = node_at(r, (int)node);
	size_t i, last = node;

	for (i = node + 1; i < r->p->plan->n; i++)
		if (by_data(r->p->plan, i) && strcmp(node_at(r, (int)i)->in[1], n->in[1]) == 0 &&
		    op_weight_turned(node_at(r, (int)i)) == op_weight_turned(n))
			last = i;
	return last;
}

static struct shared *find_shared(const struct run *r, const struct node *n)
{
	size_t i;

	for (i = 0; i < r->shared.n; i++)
		if (strcmp(r->shared.v[i].weight, n->in[1]) == 0 &&
		    r->shared.v[i].turned == op_weight_turned(n))
			return &r->shared.v[i];
	return NULL;
}

static enum fettle_status add_shared(struct run *r, size_t node, const struct block_seen *x, struct err *err)
{
	const struct node *n = node_at(r, (int)node);
	const int64_t k = r->p->s->ops.v[node].inputs;
	struct shared *s = find_shared(r, n);
	int64_t i;

	if (!s) {
		struct shared new = { n->in[1], op_weight_turned(n), last_reader(r, node), k, 0, NULL };
		enum fettle_status st = mem_try(&new.sum, (size_t)(k * k + k), sizeof(*new.sum),
						"what a shared weight is applied to", err);

		if (st)
			return st;
		memset(new.sum, 0, (size_t)(k * k + k) * sizeof(*new.sum));
		VEC_PUSH(&r->shared, new);
		s = &r->shared.v[r->shared.n - 1];
	}
	for (i = 0; i < k * k; i++)
		s->sum[i] += x->gram[i] * (float)x->rows;
	for (i = 0; i < k; i++)
		s->sum[k * k + i] += x->mean_abs[i] * (float)x->rows;
	s->rows += x->rows;
	return FETTLE_OK;
}

/* The mean of what was added. */
static struct block_seen finish_shared(struct shared *s)
{
	int64_t i;

	for (i = 0; i < s->k * s->k + s->k; i++)
		s->sum[i] /= s->rows ? (float)s->rows : 1;
	return (struct block_seen){ s->sum, s->sum + s->k * s->k, s->rows, NULL };
}

/* ---- quantizing ---- */

/* Keeps a weight as it has become, for the second run of the part. */
static enum fettle_status replace(struct part *p, size_t node, const struct tensor *was, bool turned,
				  const struct block_packed *w, struct err *err)
{
	struct replaced r = { node, *was };
	struct tensor rows = { .dtype = DT_F32, .rank = 2, .dims = { w->outputs, w->inputs } };
	const float *same;
	float *floats = NULL, *other = NULL;
	enum fettle_status st = block_packed_floats(w, "a quantized weight", &floats, err);

	rows.data = floats;
	if (!st && !turned) {
		st = block_rows(&rows, false, &same, &other, err); /* the other way round */
		free(floats);
		floats = other;
	}
	r.w.data = floats;
	if (!st)
		VEC_PUSH(&p->replaced, r);
	return st;
}

/* What decides on a weight that goes by data; *wait: an op to come reads it too. In sequence the first op decides. */
static enum fettle_status find_seen(struct run *r, const struct part *p, size_t node, struct block_seen *out,
				    bool *wait, struct err *err)
{
	const struct gram_input in = input_of(r, node);
	const struct node *n = node_at(r, (int)node);
	enum fettle_status st;

	*out = *grams_find(p->grams, &in);
	*wait = false;
	if (in_sequence(r) || (last_reader(r, node) == node && !find_shared(r, n)))
		return FETTLE_OK;
	st = add_shared(r, node, out, err);
	*wait = !st && find_shared(r, n)->last != node;
	if (!st && !*wait)
		*out = finish_shared(find_shared(r, n));
	return st;
}

static enum fettle_status quantize_op(struct run *r, struct part *p, size_t node, bool again, struct err *err)
{
	const struct node *n = node_at(r, (int)node);
	const struct block_setting *how = &r->p->plan->ops[node].blocks;
	const bool data = by_data(r->p->plan, node);
	struct init *w = model_init(r->p->s->m, n->in[1]);
	struct block_store *made = block_store_new(), *to = r->p->s->outside || !data ? made : r->out;
	struct block_seen seen = { .gram = NULL };
	char *key = block_key(n, how);
	struct tensor t = w->t;
	void *bytes = NULL;
	bool wait = false, known = block_store_find(r->out, key) != NULL;
	enum fettle_status st = FETTLE_OK;

	if (data && !known)
		st = find_seen(r, p, node, &seen, &wait, err);
	if (st || wait || (known && (!again || r->p->s->outside)))
		goto out;
	if (data && r->scales)
		seen.input_scales = part_scales_of(r->scales, node);
	if (init_is_outside(w))
		st = load(r->g->m, w, &bytes, err);
	else
		st = model_weight(r->p->s->m, w, err);
	t.data = bytes ? bytes : w->t.data;
	if (!st && !(known && to == r->out))
		st = block_store_put(to, key, w->name, &t, op_weight_turned(n), how, data ? &seen : NULL,
				     err);
	free(bytes);
	if (!st && again)
		st = replace(p, node, &w->t, op_weight_turned(n), block_store_find(to, key), err);
	if (!st && data && to == made && !known)
		st = block_store_spill(r->out, key, block_store_find(made, key), err);
out:
	block_store_free(made);
	free(key);
	return st;
}

/* ---- awq's input scales ---- */

/* The weights, as rows, of the part's ops that read what `node` reads. */
struct readers {
	VEC(struct block_reader) v;
	VEC(float *) rows;
};

static enum fettle_status read_rows(const struct run *r, size_t node, struct readers *out, struct err *err)
{
	const struct node *n = node_at(r, (int)node);
	struct init *w = model_init(r->p->s->m, n->in[1]);
	const bool turned = op_weight_turned(n);
	struct tensor t = w->t;
	const float *rows = NULL;
	float *own = NULL;
	void *bytes = NULL;
	enum fettle_status st = load(r->g->m, w, &bytes, err);

	t.data = bytes;
	if (!st)
		st = block_rows(&t, turned, &rows, &own, err);
	if (own)
		free(bytes);
	VEC_PUSH(&out->rows, own ? own : bytes);
	if (!st)
		VEC_PUSH(&out->v, ((struct block_reader){ rows, t.dims[turned ? 0 : 1] }));
	return st;
}

static enum fettle_status choose_scales(struct run *r, const struct part *p, size_t node, struct err *err)
{
	const struct gram_input in = input_of(r, node);
	struct readers readers = { .v = { NULL, 0, 0 } };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < p->ops.n && !st; i++)
		if (part_scales_alike(r->scales, node, p->ops.v[i]))
			st = read_rows(r, p->ops.v[i], &readers, err);
	if (!st)
		st = part_scales_choose(r->scales, node, readers.v.v, readers.v.n, grams_find(p->grams, &in),
					err);
	for (i = 0; i < readers.rows.n; i++)
		free(readers.rows.v[i]);
	VEC_RELEASE(&readers.rows);
	VEC_RELEASE(&readers.v);
	return st;
}

static bool is_kept(const struct run *r, const struct part *p)
{
	size_t i;

	for (i = 0; i < p->makes.n; i++)
		if (r->last_use[p->makes.v[i]] >= p->to)
			return true;
	return false;
}

static bool has_block_op(const struct run *r, const struct part *p)
{
	int i;

	for (i = p->from; i < p->to; i++)
		if (is_block_op(r, (size_t)i))
			return true;
	return false;
}

static enum fettle_status do_part(struct run *r, struct part *p, struct err *err)
{
	enum fettle_status st;
	bool again;
	size_t k;
	int i;

	find_values(r, p);
	again = in_sequence(r) && has_block_op(r, p) && is_kept(r, p);
	p->sees = true;
	p->keeps = !again;
	st = begin_grams(r, p, err);
	if (!st && p->makes.n)
		st = open_part(r, p, err);
	if (!st)
		st = run_batches(r, p, err);
	close_session(p);
	for (k = 0; k < p->ops.n && !st && r->scales; k++)
		if (part_scales_open(r->scales, p->ops.v[k]))
			st = choose_scales(r, p, p->ops.v[k], err);
	for (i = p->from; i < p->to && !st; i++)
		if (again ? is_block_op(r, (size_t)i) : by_data(r->p->plan, (size_t)i))
			st = quantize_op(r, p, (size_t)i, again, err);
	p->sees = false;
	p->keeps = true;
	if (!st && again)
		st = open_part(r, p, err);
	if (!st && again)
		st = run_batches(r, p, err);
	close_session(p);
	forget(r, p->to);
	if (!st && r->p->progress && !r->p->progress(r->p->self, (size_t)p->to, (size_t)r->last + 1))
		st = fail(err, FETTLE_STOP, "calibration was stopped");
	return st;
}

enum fettle_status blocks_by_parts(struct block_store *out, const struct parts *p, struct err *err)
{
	struct run r = { .p = p, .g = &p->s->g, .out = out };
	enum fettle_status st;
	size_t i;
	int from;

	find_last_uses(&r);
	if (p->s->outside && !in_sequence(&r))
		r.scales = part_scales_new(p->s, p->plan);
	st = read_inputs(&r, err);
	for (from = 0; from <= r.last && !st;) {
		struct part part = { .from = from, .to = part_end(&r, from) };

		st = do_part(&r, &part, err);
		from = part.to;
		release_part(&part);
	}
	if (!st && r.scales)
		st = part_scales_apply(r.scales, err);
	part_scales_free(r.scales);
	for (i = 0; i < r.kept.n; i++)
		release_kept(&r, &r.kept.v[i]);
	VEC_RELEASE(&r.kept);
	for (i = 0; i < r.shared.n; i++)
		free(r.shared.v[i].sum);
	VEC_RELEASE(&r.shared);
	free(r.batches);
	free(r.last_use);
	return st;
}
