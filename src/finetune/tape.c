#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "finetune/tape_op.h"

/* ---- what every value looks like: the runtime is asked ---- */

static bool is_constant(const struct tape *t, const struct node *n)
{
	size_t k;

	if (node_is(n, "Shape") || node_is(n, "Size"))
		return true; /* for samples that all look the same */
	for (k = 0; k < n->n_in; k++)
		if (*n->in[k] && !t->cells[graph_value(&t->g, n->in[k])].constant)
			return false;
	return !n->n_captured;
}

/* constants as floats; of other values only the shape */
static enum fettle_status keep(struct tape_cell *c, const struct tensor *from, struct err *err)
{
	enum fettle_status st;

	c->t = *from;
	c->t.dtype = DT_F32;
	c->t.data = NULL;
	if (!c->constant || !dtype_size(from->dtype))
		return FETTLE_OK;
	st = tensor_alloc(&c->t, "a constant of a block", err);
	if (!st)
		tensor_convert(&c->t, from);
	return st;
}

static enum fettle_status keep_inits(struct tape *t, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t v, i;

	for (v = 0; v < t->g.n && !st; v++) {
		struct init *w = t->g.constant[v] ? model_init(t->m, t->g.names[v]) : NULL;
		bool read = false;

		/* integers of weights are only read by what makes floats of them, which the runtime has done */
		for (i = t->g.first[v]; w && i < t->g.first[v + 1]; i++)
			read |= !is_constant(t, t->m->nodes.v[t->g.uses[i]]);
		if (!read)
			continue;
		st = model_weight(t->m, w, err);
		if (!st)
			st = keep(&t->cells[v], &w->t, err);
	}
	return st;
}

static enum fettle_status probe(struct tape *t, const struct tensor *in, char why[TAPE_WHY], struct err *err)
{
	struct session_options so = { .threads = 1, .level = OPT_NONE };
	struct model *m = model_derive(t->m);
	const char **names = xcalloc(t->g.n + 1, sizeof(*names));
	struct tensor *values = xcalloc(t->g.n + 1, sizeof(*values));
	struct session *session = NULL;
	enum fettle_status st = FETTLE_OK;
	size_t i, k, n = 0;

	for (i = 0; i < t->g.n; i++)
		t->cells[i].constant = t->g.constant[i];
	for (i = 0; i < t->m->n_inputs && !st; i++)
		st = keep(&t->cells[graph_value(&t->g, t->m->inputs[i].name)], &in[i], err);
	for (i = 0; i < t->m->nodes.n; i++) {
		const struct node *node = t->m->nodes.v[i];

		for (k = 0; k < node->n_out; k++)
			if (*node->out[k]) {
				t->cells[graph_value(&t->g, node->out[k])].constant = is_constant(t, node);
				names[n++] = node->out[k];
			}
	}
	if (!st)
		st = keep_inits(t, err);
	model_set_outputs(m, names, n);
	if (!st)
		st = session_new(&session, t->rt, m, &so, err);
	if (!st && session_run(session, in, values, err) != FETTLE_OK)
		snprintf(why, TAPE_WHY, "it does not run on so many samples at once");
	for (i = 0; i < n && !st && !*why; i++)
		st = keep(&t->cells[graph_value(&t->g, names[i])], &values[i], err);
	session_free(session);
	model_free(m);
	free(names);
	free(values);
	return st;
}

/* ---- the steps ---- */

static const struct tape_kind *find_kind(const struct node *n)
{
	static const struct tape_kind *const all[] = { tape_layers, tape_maps, tape_moves, tape_reductions };
	const struct tape_kind *k;
	size_t i;

	for (i = 0; i < ARRAY_LEN(all); i++)
		for (k = all[i]; k->op; k++)
			if (strcmp(k->op, n->op) == 0 &&
			    (!*n->domain || strcmp(n->domain, "com.microsoft") == 0)) /* which has the same */
				return k;
	return NULL;
}

static enum fettle_status add_step(struct tape *t, const struct node *n, size_t which, const char **reason,
				   struct err *err)
{
	struct tape_step s = { .kind = find_kind(n), .node = n, .n_in = n->n_in, .which = which };
	enum fettle_status st;
	bool learns = false;
	size_t k;

	if (!s.kind || n->n_captured) {
		*reason = "has no gradient here";
		return FETTLE_OK;
	}
	s.in = arena_alloc(&t->arena, (n->n_in + 1) * sizeof(struct tape_cell *));
	s.out = &t->cells[graph_value(&t->g, n->out[which])];
	for (k = 0; k < n->n_in; k++)
		s.in[k] = *n->in[k] ? &t->cells[graph_value(&t->g, n->in[k])] : NULL;
	st = s.kind->prepare ? s.kind->prepare(t, &s, reason, err) : FETTLE_OK;
	if (st || *reason)
		return st;
	for (k = 0; k < n->n_in; k++)
		learns |= s.in[k] && s.in[k]->g;
	learns |= s.layer && s.layer->learns;
	st = tensor_alloc(&s.out->t, "values of a block", err);
	if (!st && learns)
		st = mem_try(&s.out->g, cell_count(s.out), sizeof(float), "values of a block", err);
	VEC_PUSH(&t->steps, s);
	return st;
}

static enum fettle_status add_node(struct tape *t, const struct node *n, char why[TAPE_WHY], struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	const char *reason = NULL;
	size_t k;

	for (k = 0; k < n->n_out && !st && !reason; k++)
		if (*n->out[k] && !t->cells[graph_value(&t->g, n->out[k])].constant &&
		    (k == 0 || graph_n_uses(&t->g, graph_value(&t->g, n->out[k]))))
			st = add_step(t, n, k, &reason, err);
	if (reason)
		snprintf(why, TAPE_WHY, "%s %s", n->op, reason);
	return st;
}

/* layers that learn are known by their outputs */
static void mark(struct tape *t, const char *const *learns, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (graph_value(&t->g, learns[i]) != MAP_NONE)
			map_set(&t->learns, learns[i], 1);
}

enum fettle_status tape_new(struct tape **out, const struct tape_of *of, char why[TAPE_WHY], struct err *err)
{
	struct tape *t = xcalloc(1, sizeof(*t));
	enum fettle_status st;
	size_t i;

	*why = '\0';
	*out = NULL;
	t->rt = of->rt;
	t->m = of->m;
	graph_index_init(&t->g, of->m);
	t->cells = xcalloc(t->g.n + 1, sizeof(*t->cells));
	mark(t, of->learns, of->n_learns);
	st = probe(t, of->in, why, err);
	for (i = 0; i < t->m->n_inputs && !st && !*why; i++) {
		struct tape_cell *c = &t->cells[graph_value(&t->g, t->m->inputs[i].name)];

		st = tensor_alloc(&c->t, "values of a block", err);
		if (!st)
			tensor_convert(&c->t, &of->in[i]);
	}
	for (i = 0; i < t->m->nodes.n && !st && !*why; i++)
		st = add_node(t, t->m->nodes.v[i], why, err);
	if (!st && !*why)
		*out = t;
	else
		tape_free(t);
	return st;
}

void tape_free(struct tape *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->layers.n; i++) {
		math_free(t->layers.v[i]->math);
		layer_release(&t->layers.v[i]->l);
	}
	for (i = 0; i < t->g.n; i++) {
		tensor_free(&t->cells[i].t);
		free(t->cells[i].g);
	}
	free(t->cells);
	VEC_RELEASE(&t->steps);
	VEC_RELEASE(&t->layers);
	map_release(&t->learns);
	graph_index_release(&t->g);
	arena_release(&t->arena);
	free(t);
}

/* ---- looking and running ---- */

struct tape_layer *tape_layer(struct tape *t, const char *output)
{
	size_t i;

	for (i = 0; i < t->steps.n; i++)
		if (t->steps.v[i].layer && strcmp(t->steps.v[i].node->out[0], output) == 0)
			return t->steps.v[i].layer;
	return NULL;
}

static struct tape_cell *find(const struct tape *t, const char *name)
{
	return &t->cells[graph_value(&t->g, name)];
}

const struct tensor *tape_input(const struct tape *t, size_t i)
{
	return &find(t, t->m->inputs[i].name)->t;
}

const struct tensor *tape_output(const struct tape *t, size_t i)
{
	return &find(t, t->m->outputs[i].name)->t;
}

float *tape_output_gradient(struct tape *t, size_t i)
{
	return find(t, t->m->outputs[i].name)->g;
}

const struct tensor *tape_value(const struct tape *t, const char *name)
{
	return &find(t, name)->t;
}

enum fettle_status tape_forward(struct tape *t, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < t->steps.n && !st; i++) {
		struct tape_step *s = &t->steps.v[i];

		st = s->kind->forward(s, err);
		if (s->out->g)
			memset(s->out->g, 0, cell_count(s->out) * sizeof(float));
	}
	return st;
}

enum fettle_status tape_backward(struct tape *t, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = t->steps.n; i-- > 0 && !st;)
		if (t->steps.v[i].out->g)
			st = t->steps.v[i].kind->backward(&t->steps.v[i], err);
	return st;
}
