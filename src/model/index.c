#include "model/index.h"

#include <stdlib.h>
#include <string.h>

/* Kahn's algorithm, taking the earliest node that is ready, so that a sorted graph stays as it is. */
enum fettle_status graph_sort(struct model *m, struct err *err)
{
	struct map made = MAP_INIT;
	struct node **order = xcalloc(m->nodes.n, sizeof(struct node *));
	bool *done = xcalloc(m->nodes.n, sizeof(*done));
	enum fettle_status st = FETTLE_OK;
	size_t n = 0, i, j, k, before;
	const char *missing = "";

	for (i = 0; i < m->inits.n; i++)
		map_set(&made, m->inits.v[i]->name, 1);
	for (i = 0; i < m->n_inputs; i++)
		map_set(&made, m->inputs[i].name, 1);
	do {
		before = n;
		for (i = 0; i < m->nodes.n; i++) {
			struct node *node = m->nodes.v[i];
			bool ready = !done[i];

			for (j = 0; j < node->n_in + node->n_captured && ready; j++) {
				const char *name =
					j < node->n_in ? node->in[j] : node->captured[j - node->n_in];

				if (*name && map_get(&made, name) == MAP_NONE) {
					ready = false;
					missing = name;
				}
			}
			if (!ready)
				continue;
			done[i] = true;
			order[n++] = node;
			for (k = 0; k < node->n_out; k++)
				map_set(&made, node->out[k], 1);
		}
	} while (n > before && n < m->nodes.n);
	if (n < m->nodes.n)
		st = fail(err, FETTLE_INVALID,
			  "value '%s' is read but nothing makes it, or the graph has a cycle", missing);
	else
		model_set_nodes(m, order, n);
	free(order);
	free(done);
	map_release(&made);
	return st;
}

static size_t number(struct graph_index *g, const char *name, size_t *cap)
{
	size_t id = map_get(&g->ids, name);

	if (id != MAP_NONE)
		return id;
	if (g->n == *cap) {
		*cap = *cap ? 2 * *cap : 256;
		g->names = xrealloc(g->names, *cap, sizeof(*g->names));
	}
	g->names[g->n] = name;
	map_set(&g->ids, name, g->n);
	return g->n++;
}

void graph_index_init(struct graph_index *g, const struct model *m)
{
	size_t cap = 0, i, j, total = 0, pass;

	memset(g, 0, sizeof(*g));
	g->m = m;
	for (i = 0; i < m->n_inputs; i++)
		number(g, m->inputs[i].name, &cap);
	for (i = 0; i < m->inits.n; i++)
		number(g, m->inits.v[i]->name, &cap);
	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];

		for (j = 0; j < n->n_in; j++)
			number(g, n->in[j], &cap);
		for (j = 0; j < n->n_captured; j++)
			number(g, n->captured[j], &cap);
		for (j = 0; j < n->n_out; j++)
			number(g, n->out[j], &cap);
		total += n->n_in + n->n_captured;
	}
	for (i = 0; i < m->n_outputs; i++)
		number(g, m->outputs[i].name, &cap);

	g->producer = xcalloc(g->n, sizeof(*g->producer));
	g->constant = xcalloc(g->n, sizeof(*g->constant));
	g->output = xcalloc(g->n, sizeof(*g->output));
	g->first = xcalloc(g->n + 2, sizeof(*g->first));
	g->uses = xcalloc(total + 1, sizeof(*g->uses));
	for (i = 0; i < g->n; i++)
		g->producer[i] = NO_NODE;
	for (i = 0; i < m->inits.n; i++)
		g->constant[graph_value(g, m->inits.v[i]->name)] = true;
	for (i = 0; i < m->n_outputs; i++)
		g->output[graph_value(g, m->outputs[i].name)] = true;
	/* count the readers of each value, then fill their places */
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < m->nodes.n; i++) {
			const struct node *n = m->nodes.v[i];

			for (j = 0; j < n->n_in + n->n_captured; j++) {
				size_t v = graph_value(g, j < n->n_in ? n->in[j] : n->captured[j - n->n_in]);

				if (pass)
					g->uses[g->first[v + 1]] = i;
				g->first[v + (pass ? 1 : 2)]++;
			}
			for (j = 0; j < n->n_out && pass; j++)
				g->producer[graph_value(g, n->out[j])] = (int)i;
		}
		for (i = 0; i < g->n && !pass; i++)
			g->first[i + 2] += g->first[i + 1];
	}
}

void graph_index_release(struct graph_index *g)
{
	map_release(&g->ids);
	free(g->names);
	free(g->producer);
	free(g->first);
	free(g->uses);
	free(g->constant);
	free(g->output);
	memset(g, 0, sizeof(*g));
}

size_t graph_value(const struct graph_index *g, const char *name)
{
	return map_get(&g->ids, name);
}

size_t graph_n_uses(const struct graph_index *g, size_t value)
{
	return g->first[value + 1] - g->first[value];
}

struct node *graph_only_user(const struct graph_index *g, const char *name)
{
	size_t v = graph_value(g, name);

	if (v == MAP_NONE || g->output[v] || graph_n_uses(g, v) != 1)
		return NULL;
	return g->m->nodes.v[g->uses[g->first[v]]];
}

struct node *graph_producer(const struct graph_index *g, const char *name)
{
	size_t v = graph_value(g, name);

	return v == MAP_NONE || g->producer[v] == NO_NODE ? NULL : g->m->nodes.v[g->producer[v]];
}
