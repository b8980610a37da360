#include "runtime/prepare.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/scratch.h"
#include "base/str.h"
#include "model/index.h"
#include "model/opset.h"
#include "ops/rules.h"
#include "runtime/probe.h"

enum { REWRITE_ROUNDS = 4 };

struct held {
	const struct init **v;
	size_t n, cap;
};

/* maps the external data and lets go of the names on disk */
static enum fettle_status take(struct model **out, const char *path, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st;
	size_t i;

	st = model_load(&m, path, err);
	for (i = 0; !st && i < m->inits.n; i++)
		if (dtype_size(m->inits.v[i]->t.dtype) && !init_is_lost(m->inits.v[i]))
			st = model_weight(m, m->inits.v[i], err);
	if (!st)
		st = graph_sort(m, err);
	if (st) {
		model_free(m);
		return st;
	}
	model_drop_repeats(m);
	model_sweep(m);
	*out = m;
	return FETTLE_OK;
}

static void rename_model(struct model *m, const char *path)
{
	free(m->path);
	m->path = path ? xstrdup(path) : NULL;
}

enum fettle_status optimised_graph(struct model **out, struct runtime *rt, struct model *m,
				   const struct session_options *o, struct err *err)
{
	struct session_options so = *o;
	struct scratch tmp = { .dir = NULL };
	struct session *s = NULL;
	char *path = NULL;
	enum fettle_status st;

	/* the runtime writes its optimised graph only to a file, and weights beside it */
	st = scratch_new(&tmp, err);
	if (!st)
		so.dump = path = scratch_path(&tmp, "model.onnx");
	if (!st) {
		so.unused = true;
		st = session_new(&s, rt, m, &so, err);
	}
	if (st && path) { /* a kernel looked at a constant that the optimiser had changed */
		so.unused = false;
		st = session_new(&s, rt, m, &so, err);
	}
	if (st == FETTLE_BACKEND) { /* 1.21 cannot write subgraphs with weights beside them */
		so.dump_whole = true;
		st = session_new(&s, rt, m, &so, err);
	}
	if (!st)
		st = take(out, path, err);
	if (!st) {
		rename_model(*out, m->path);
		(*out)->runtime = runtime_minor();
	}
	session_free(s);
	scratch_release(&tmp);
	free(path);
	return st;
}

/* The types and shapes of all values, as the runtime infers them: it reports them only for outputs, so make
 * every value one for a moment. */
static enum fettle_status infer_types(struct model *m, struct runtime *rt, struct err *err)
{
	struct all_values all;
	enum fettle_status st;
	size_t i;

	st = all_values_open(&all, rt, m, err);
	for (i = 0; !st && i < all.n; i++) {
		struct value v = *session_output(all.s, i);

		if (!v.type.rank) /* the runtime says 0 of a scalar and of an unknown shape alike */
			v.type.rank = -1;
		v.name = all.names[i];
		v.batch = v.batch ? arena_strdup(&m->arena, v.batch) : NULL;
		model_declare(m, &v);
	}
	all_values_close(&all);
	return st;
}

static const char *kept_note(struct arena *a, const struct model *m, int need, const struct opset_obstacle *o)
{
	struct str lost = STR_INIT;
	const char *text;

	opset_losses(m, m->opset, &lost);
	text = arena_strfmt(a,
			    "kept at opset %d, so that %s: %s '%s' has no exact conversion to opset %d (%s); "
			    "export the model with opset %d or later",
			    m->opset,
			    lost.n ? arena_strfmt(a, "%s cannot be quantized", lost.s)
				   : "no op can be quantized dynamically",
			    o->op, o->name, o->version, o->why, need);
	str_release(&lost);
	return text;
}

static void copy_notes(struct model *to, const struct model *from)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(to->notes); i++)
		to->notes[i] = from->notes[i] ? arena_strdup(&to->arena, from->notes[i]) : NULL;
}

/*
 * Raises a prepared model below OPSET_STATIC to what its quantization needs. This comes after the runtime's
 * optimisations: what was folded or inlined needs no conversion.
 */
static enum fettle_status raise_opset(struct model **m, struct runtime *rt, const struct session_options *so,
				      struct err *err)
{
	const int need = opset_needed(*m);
	struct model *old = *m, *raised, *optimised = NULL;
	struct opset_obstacle o;
	enum fettle_status st;

	if (!old->opset || old->opset >= OPSET_STATIC || !need)
		return FETTLE_OK;
	raised = model_raise(old, need, &o);
	if (!raised) {
		old->notes[0] = kept_note(&old->arena, old, need, &o);
		return FETTLE_OK;
	}
	old->notes[0] = arena_strfmt(&old->arena, "raised from opset %d to %d, which its quantization needs",
				     old->opset, need);
	st = optimised_graph(&optimised, rt, raised, so, err); /* and one that needs no base */
	if (!st)
		st = infer_types(optimised, rt, err);
	model_free(raised);
	if (st) {
		model_free(optimised);
		return st;
	}
	optimised->raised_from = old->opset;
	copy_notes(optimised, old);
	model_free(old);
	*m = optimised;
	return FETTLE_OK;
}

/* Another round of the runtime's optimisations, on what was rewritten: it folds and fuses what it can see now. */
static enum fettle_status reoptimise(struct model **m, struct runtime *rt, const struct session_options *so,
				     struct err *err)
{
	struct model *again = NULL;
	enum fettle_status st;

	st = optimised_graph(&again, rt, *m, so, err);
	if (!st)
		st = infer_types(again, rt, err);
	if (st) {
		model_free(again);
		return st;
	}
	copy_notes(again, *m);
	model_free(*m);
	*m = again;
	return FETTLE_OK;
}

/* Shapes that became constants tell more about the shapes after them: a few rounds. */
static enum fettle_status rewrite_graph(struct model **m, struct runtime *rt,
					const struct session_options *so, struct simplified *did,
					struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	int round;

	for (round = 0; round < REWRITE_ROUNDS && !st && simplify(*m, did); round++)
		st = reoptimise(m, rt, so, err);
	return st;
}

/* What a user may call the ops of a model: by name, by what they make, by type. */
struct words {
	struct arena arena;
	VEC(const char *) v;
	struct map seen;
};

static void add_word(struct words *w, const char *word)
{
	if (!*word || map_get(&w->seen, word) != MAP_NONE)
		return;
	word = arena_strdup(&w->arena, word);
	map_set(&w->seen, word, 1);
	VEC_PUSH(&w->v, word);
}

static void add_words(struct words *w, const struct model *m)
{
	size_t i;

	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];

		add_word(w, *n->name || !n->n_out ? n->name : n->out[0]);
		add_word(w, n->op);
	}
}

static void words_release(struct words *w)
{
	VEC_RELEASE(&w->v);
	map_release(&w->seen);
	arena_release(&w->arena);
}

static void note_gone(struct model *m, const struct words *before)
{
	struct words now = { .arena = ARENA_INIT };
	size_t i;

	add_words(&now, m);
	for (i = 0; i < before->v.n; i++)
		if (map_get(&now.seen, before->v.v[i]) == MAP_NONE)
			VEC_PUSH(&m->gone, arena_strdup(&m->arena, before->v.v[i]));
	words_release(&now);
}

static size_t count_halves(const struct model *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->inits.n; i++)
		n += m->inits.v[i]->t.dtype == DT_F16;
	return n;
}

/*
 * What only moves data would stay in float16, between Casts that integers do not pass, and what has no kernel there would be taken
 * apart (Softmax). So all of it is in float32 before the runtime sees it. A model that cannot be stays.
 */
static void widen_all(struct model **m, struct model *raw, struct runtime *rt,
		      const struct session_options *so)
{
	struct model *wide = infer_types(raw, rt, NULL) ? NULL : model_widen(raw), *again = NULL;

	if (wide && !optimised_graph(&again, rt, wide, so, NULL)) {
		model_free(*m);
		*m = again;
	}
	model_free(wide);
}

/*
 * Where the runtime has no kernel for float16 it computes in float32, between Casts. They come after its folding of
 * constants: a second round leaves float32 weights, which can be quantized.
 */
static enum fettle_status widen_halves(struct model **m, struct model *raw, struct runtime *rt,
				       const struct session_options *so, struct err *err)
{
	const size_t before = count_halves(raw);
	struct model *again = NULL;
	enum fettle_status st;

	if (!before)
		return FETTLE_OK;
	st = optimised_graph(&again, rt, *m, so, err);
	if (st)
		return st;
	model_free(*m);
	*m = again;
	if (count_halves(again) >= before)
		return FETTLE_OK;
	widen_all(m, raw, rt, so);
	(*m)->notes[2] =
		arena_strfmt(&(*m)->arena, "a float16 model: the runtime computes it in float32 on this "
					   "CPU, and so does what is made of it");
	return FETTLE_OK;
}

/* Weights from this size on are worth leaving in their file. */
enum { OUTSIDE_MIN = 1 << 16 }; /* smaller ones are read at once: model/weight.c */

/* Weights that lie in files become inputs, so that nobody reads them; those that did are in *held, which lives with `raw`. */
static void hold_weights(struct model *raw, struct held *held)
{
	size_t i = 0;

	while (i < raw->inits.n) {
		struct init *w = raw->inits.v[i];

		if (!init_is_outside(w) || w->t.dtype != DT_F32 || tensor_bytes(&w->t) < OUTSIDE_MIN) {
			i++;
			continue;
		}
		VEC_PUSH(held, w);
		model_init_to_input(raw, w->name);
	}
}

/* And constants again, in the model that was made of it. */
static void return_weights(struct model *m, const struct held *held)
{
	size_t i;

	for (i = 0; i < held->n; i++)
		model_input_to_init(m, held->v[i]);
	if (held->n)
		model_fix_constants(m);
	model_sweep(m);
}

/* The weight of a file that a Transpose turns before a MatMul reads it, as heads tied to tables do; NULL: there is none. */
static const struct init *turned_weight(const struct graph_index *g, const struct node *n)
{
	const struct node *t = node_is(n, "MatMul") ? graph_producer(g, n->in[1]) : NULL;
	const struct init *w = t && node_is(t, "Transpose") ? model_init(g->m, t->in[0]) : NULL;
	size_t count;
	const int64_t *perm = t ? node_ints(t, "perm", &count) : NULL;

	return w && init_is_outside(w) && w->t.rank == 2 && w->t.dtype == DT_F32 &&
			       (!perm || (count == 2 && perm[0] == 1))
		       ? w
		       : NULL;
}

/* Where the weight is in memory the runtime folds such a Transpose. Here it becomes part of the product. */
static void join_transposes(struct model *m)
{
	struct node **left = xcalloc(m->nodes.n + 1, sizeof(*left));
	struct graph_index g;
	size_t i, n = 0;

	graph_index_init(&g, m);
	for (i = 0; i < m->nodes.n; i++) {
		const struct init *w = turned_weight(&g, m->nodes.v[i]);

		if (!w)
			continue;
		m->nodes.v[i]->op = "FusedMatMul";
		m->nodes.v[i]->domain = DOMAIN_MS;
		m->nodes.v[i]->in[1] = w->name;
		node_set_int(m, m->nodes.v[i], "transB", 1);
		model_need_domain(m, DOMAIN_MS, 1);
	}
	graph_index_release(&g);
	graph_index_init(&g, m);
	for (i = 0; i < m->nodes.n; i++) {
		const size_t v = graph_value(&g, m->nodes.v[i]->out[0]);

		if (!node_is(m->nodes.v[i], "Transpose") || g.output[v] || graph_n_uses(&g, v))
			left[n++] = m->nodes.v[i];
	}
	model_set_nodes(m, left, n);
	graph_index_release(&g);
	free(left);
}

static enum fettle_status prepare_model(struct model **out, struct runtime *rt, const char *path,
					bool outside, struct simplified *did, struct err *err)
{
	struct session_options so = { .threads = 1, .level = OPT_BASIC };
	struct model *raw = NULL, *m = NULL;
	struct words before = { .arena = ARENA_INIT };
	struct held held = { NULL, 0, 0 };
	enum fettle_status st;
	size_t fixed = 0;

	st = model_load(&raw, path, err); /* for our own, better errors first */
	if (!st) {
		fixed = model_fix_constants(raw);
		if (outside)
			hold_weights(raw, &held);
		model_sweep(raw); /* the runtime drops what nothing reads, and then refuses to be handed it */
		st = optimised_graph(&m, rt, raw, &so, err);
	}
	if (!st)
		st = widen_halves(&m, raw, rt, &so, err);
	if (!held.n) {
		model_free(raw);
		raw = NULL;
	}
	mem_trim();
	if (!st)
		st = infer_types(m, rt, err);
	if (!st && fixed)
		m->notes[1] =
			arena_strfmt(&m->arena, "%zu inputs with a default value become constants", fixed);
	if (!st && did) {
		add_words(&before, m);
		st = rewrite_graph(&m, rt, &so, did, err);
	}
	if (!st)
		st = raise_opset(&m, rt, &so, err);
	if (!st && did && simplified_total(did))
		note_gone(m, &before);
	words_release(&before);
	if (!st) {
		return_weights(m, &held);
		if (outside)
			join_transposes(m);
	}
	VEC_RELEASE(&held);
	model_free(raw);
	mem_trim();
	if (st)
		model_free(m);
	else
		*out = m;
	return st;
}

enum fettle_status prepare(struct model **out, struct runtime *rt, const char *path, struct err *err)
{
	return prepare_model(out, rt, path, false, NULL, err);
}

enum fettle_status prepare_rewritten(struct model **out, struct runtime *rt, const char *path,
				     struct simplified *did, struct err *err)
{
	*did = (struct simplified){ { 0 } };
	return prepare_model(out, rt, path, false, did, err);
}

enum fettle_status prepare_outside(struct model **out, struct runtime *rt, const char *path,
				   struct simplified *did, struct err *err)
{
	if (did)
		*did = (struct simplified){ { 0 } };
	return prepare_model(out, rt, path, true, did, err);
}
