/* What the mode of an op does to others: in floats, a convolution also does the sum or the activation that reads its output. */
#include <math.h>

#include "tune/modes_impl.h"

/* Nodes without a choice in a row, at most, between an op and one that its mode has an effect on. */
enum { NEIGHBOURS_DEPTH = 3 };

bool is_summed(const struct lab *l, size_t v)
{
	const struct graph_index *g = &l->s->g;
	const struct node *reader = graph_only_user(g, g->names[v]);
	const size_t out = reader && node_is(reader, "Add") ? graph_value(g, reader->out[0]) : MAP_NONE;
	size_t k, last = MAP_NONE;

	if (out == MAP_NONE || l->modes->fp32.seconds[g->producer[out]] > 0)
		return false;
	for (k = 0; k < reader->n_in; k++) { /* of two convolutions, the one that is computed last */
		const size_t in = graph_value(g, reader->in[k]);

		if (in != MAP_NONE && g->producer[in] != NO_NODE &&
		    op_convolves(g->m->nodes.v[g->producer[in]]) &&
		    (last == MAP_NONE || g->producer[in] > g->producer[last]))
			last = in;
	}
	return last == v;
}

bool makes_floats(const struct lab *l, size_t v)
{
	const struct modes *m = l->modes;
	const int by = l->s->g.producer[v];
	const size_t node = by == NO_NODE || m->place[by] < 0 ? MAP_NONE : m->node[m->place[by]];

	return node != MAP_NONE && l->s->ops.v[node].rule->kind == OP_COMPUTE &&
	       !op_needs_output(&l->s->g, l->s->ops.v[node].rule, l->s->m->nodes.v[node]->out[0]);
}

double out_of_blocks(const struct lab *l, size_t v)
{
	const struct graph_index *g = &l->s->g;
	const struct modes *m = l->modes;
	double sum = 0;
	size_t i;

	for (i = g->first[v]; i < g->first[v + 1]; i++) {
		const size_t by = g->uses[i];

		if (m->blocked[by] && node_is(g->m->nodes.v[by], "Resize"))
			sum += fmax(m->seconds[ASSIGN_STATIC][by] - m->seconds[ASSIGN_FP32][by], 0);
	}
	return sum;
}

void find_within(struct lab *l, const struct plan *p)
{
	const struct modes *m = l->modes;
	size_t i, k, at = 0, param;

	for (i = 0; i < m->values.n; at += m->values.v[i++].n_readers)
		for (k = at; k < at + m->values.v[i].n_readers; k++) {
			param = tuning_param(l->t, m->node[m->readers.v[k]]);
			if (param != MAP_NONE && mode_in(l, p, param) == ASSIGN_DYNAMIC)
				m->within[m->names.v[i]] = !m->apart[m->names.v[i]];
		}
}

struct neighbours {
	size_t node[16], n;
};

static bool is_static(const struct lab *l, const struct plan *p, size_t node)
{
	const size_t param = tuning_param(l->t, node);

	return param != MAP_NONE && mode_in(l, p, param) == ASSIGN_STATIC;
}

/* An op in integers is one; through a node without a choice of modes, `find` has others. */
static void add_neighbour(const struct lab *l, const struct plan *p, size_t node, int depth,
			  void (*find)(const struct lab *, const struct plan *, size_t, int,
				       struct neighbours *),
			  struct neighbours *out)
{
	const struct modes *m = l->modes;
	size_t param;

	if (out->n == ARRAY_LEN(out->node))
		return;
	if (m->place[node] < 0) {
		if (depth)
			find(l, p, node, depth - 1, out);
		return;
	}
	param = tuning_param(l->t, m->node[m->place[node]]);
	if (param != MAP_NONE && mode_in(l, p, param) != ASSIGN_FP32)
		out->node[out->n++] = l->t->node[param];
}

static void find_makers(const struct lab *l, const struct plan *p, size_t node, int depth,
			struct neighbours *out)
{
	const struct graph_index *g = &l->s->g;
	const struct node *n = g->m->nodes.v[node];
	size_t k, v;

	for (k = 0; k < n->n_in; k++) {
		v = graph_value(g, n->in[k]);
		if (v != MAP_NONE && g->producer[v] != NO_NODE)
			add_neighbour(l, p, (size_t)g->producer[v], depth, find_makers, out);
	}
}

static void find_readers(const struct lab *l, const struct plan *p, size_t node, int depth,
			 struct neighbours *out)
{
	const struct graph_index *g = &l->s->g;
	const struct node *n = g->m->nodes.v[node];
	size_t k, v, i;

	for (k = 0; k < n->n_out; k++) {
		v = graph_value(g, n->out[k]);
		for (i = v == MAP_NONE ? 0 : g->first[v]; v != MAP_NONE && i < g->first[v + 1]; i++)
			add_neighbour(l, p, g->uses[i], depth, find_readers, out);
	}
}

/* What is known of the pairs of a plan, through a node, is about to be found out again. */
static void forget_pairs(struct lab *l, const struct plan *p, size_t node)
{
	struct modes *m = l->modes;
	size_t i, n = 0;

	for (i = 0; i < m->pairs.n; i++) {
		const struct assign_pair *pair = &m->pairs.v[i];

		if (pair->through != node || !is_static(l, p, m->node[pair->op[0]]) ||
		    !is_static(l, p, m->node[pair->op[1]]))
			m->pairs.v[n++] = *pair;
	}
	m->pairs.n = n;
}

/* Ops that are neighbours of a node on both sides share what it gains; are there any? */
static bool add_pairs(struct lab *l, const struct plan *p, size_t node, const struct neighbours *makers,
		      const struct neighbours *readers, double gain)
{
	struct modes *m = l->modes;
	const size_t before = m->pairs.n;
	size_t i, k;

	for (i = 0; i < makers->n; i++)
		for (k = 0; k < readers->n; k++) {
			const struct assign_pair pair = { { (size_t)m->place[makers->node[i]],
							    (size_t)m->place[readers->node[k]] },
							  gain,
							  node };

			if (is_static(l, p, makers->node[i]) && is_static(l, p, readers->node[k]) &&
			    pair.op[0] != pair.op[1])
				VEC_PUSH(&m->pairs, pair);
		}
	for (i = before; i < m->pairs.n; i++)
		m->pairs.v[i].gain /= (double)(m->pairs.n - before);
	return m->pairs.n > before;
}

void charge_neighbours(struct lab *l, const struct plan *p, const struct mode_profile *now)
{
	struct modes *m = l->modes;
	size_t i, k;

	for (i = 0; i < l->s->m->nodes.n; i++) {
		const double more = now->seconds[i] - m->fp32.seconds[i];
		struct neighbours makers = { .n = 0 }, readers = { .n = 0 }, *by;

		if (m->place[i] >= 0)
			continue;
		find_makers(l, p, i, NEIGHBOURS_DEPTH, &makers);
		find_readers(l, p, i, NEIGHBOURS_DEPTH, &readers);
		forget_pairs(l, p, i);
		if (more < 0 && add_pairs(l, p, i, &makers, &readers, -more))
			continue;
		by = makers.n ? &makers : &readers;
		for (k = 0; k < by->n; k++)
			m->seconds[mode_in(l, p, tuning_param(l->t, by->node[k]))][by->node[k]] +=
				more / (double)by->n;
	}
}
