/* What the mode of an op does to others: in floats, a convolution also does the sum or the activation that reads its output. */
#include <math.h>

#include "tune/modes_impl.h"

/* Nodes without a choice in a row, at most, between an op and one that its mode has an effect on. */
enum { MAKERS_DEPTH = 3 };

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

struct makers {
	size_t node[8], n;
};

/* The ops in integers that a node reads from, through others without a choice of modes. */
static void find_makers(const struct lab *l, const struct plan *p, size_t node, int depth, struct makers *out)
{
	const struct graph_index *g = &l->s->g;
	const struct modes *m = l->modes;
	const struct node *n = g->m->nodes.v[node];
	size_t k, v, param;

	for (k = 0; k < n->n_in; k++) {
		v = graph_value(g, n->in[k]);
		if (v == MAP_NONE || g->producer[v] == NO_NODE || out->n == ARRAY_LEN(out->node))
			continue;
		if (m->place[g->producer[v]] < 0) {
			if (depth)
				find_makers(l, p, (size_t)g->producer[v], depth - 1, out);
			continue;
		}
		param = tuning_param(l->t, m->node[m->place[g->producer[v]]]);
		if (param != MAP_NONE && mode_in(l, p, param) != ASSIGN_FP32)
			out->node[out->n++] = l->t->node[param];
	}
}

void charge_makers(struct lab *l, const struct plan *p, const struct mode_profile *now)
{
	struct modes *m = l->modes;
	size_t i, k;

	for (i = 0; i < l->s->m->nodes.n; i++) {
		struct makers by = { .n = 0 };

		if (m->place[i] >= 0)
			continue;
		find_makers(l, p, i, MAKERS_DEPTH, &by);
		for (k = 0; k < by.n; k++) {
			double *price =
				&m->seconds[mode_in(l, p, tuning_param(l->t, by.node[k]))][by.node[k]];

			*price = fmax(*price + (now->seconds[i] - m->fp32.seconds[i]) / (double)by.n, 0);
		}
	}
}
