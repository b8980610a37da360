#include "model/index.h"

#include <stdlib.h>
#include <string.h>

static const char *node_reads(const struct node *n, size_t j)
{
	return j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
}

static bool given(const struct model *m, const char *name)
{
	return model_init(m, name) || map_get(&m->sparse, name) != MAP_NONE;
}

/* A heap of node numbers, least first. */
static void heap_push(size_t *heap, size_t n, size_t x)
{
	for (; n && heap[(n - 1) / 2] > x; n = (n - 1) / 2)
		heap[n] = heap[(n - 1) / 2];
	heap[n] = x;
}

static size_t heap_pop(size_t *heap, size_t n)
{
	size_t top = heap[0], x = heap[n - 1], i = 0, child;

	while ((child = 2 * i + 1) < n - 1) {
		child += child + 1 < n - 1 && heap[child + 1] < heap[child];
		if (heap[child] >= x)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = x;
	return top;
}

/* who makes each value; no value may be made twice, or what is read would depend on the order */
static enum fettle_status find_makers(const struct model *m, struct map *maker, struct err *err)
{
	size_t i, k;

	for (i = 0; i < m->n_inputs; i++)
		map_set(maker, m->inputs[i].name, m->nodes.n);
	for (i = 0; i < m->nodes.n; i++)
		for (k = 0; k < m->nodes.v[i]->n_out; k++) {
			const char *name = m->nodes.v[i]->out[k];

			if (*name && (map_get(maker, name) != MAP_NONE || given(m, name)))
				return fail(err, FETTLE_INVALID,
					    "cannot order the graph: value '%s' is made twice", name);
			map_set(maker, name, i);
		}
	return FETTLE_OK;
}

/* Kahn's algorithm, taking the earliest node that is ready, so that a sorted graph stays as it is. */
enum fettle_status graph_sort(struct model *m, struct err *err)
{
	struct map maker = MAP_INIT;
	size_t n = m->nodes.n, done = 0, ready = 0, i, j, edges = 0;
	struct node **order = xcalloc(n, sizeof(struct node *));
	size_t *waits = xcalloc(n, sizeof(*waits)), *heap = xcalloc(n, sizeof(*heap));
	/* edges in lists by maker: the maker's latest (0 is none), who waits, and the maker's one before */
	size_t *last = xcalloc(n, sizeof(*last));
	VEC(size_t) reader = { 0 };
	VEC(size_t) before = { 0 };
	enum fettle_status st;

	VEC_PUSH(&reader, 0);
	VEC_PUSH(&before, 0);
	st = find_makers(m, &maker, err);
	for (i = 0; i < n && !st; i++) {
		const struct node *node = m->nodes.v[i];

		for (j = 0; j < node->n_in + node->n_captured; j++) {
			const char *name = node_reads(node, j);
			size_t from = *name ? map_get(&maker, name) : n;

			if (from == MAP_NONE && !given(m, name)) {
				st = fail(err, FETTLE_INVALID,
					  "cannot order the graph: value '%s' is read but nothing makes it",
					  name);
				break;
			}
			if (from >= n) /* an input, a constant, or left out */
				continue;
			VEC_PUSH(&reader, i);
			VEC_PUSH(&before, last[from]);
			last[from] = ++edges;
			waits[i]++;
		}
		if (!waits[i])
			heap_push(heap, ready++, i);
	}
	while (ready && !st) {
		size_t at = heap_pop(heap, ready--), e;

		order[done++] = m->nodes.v[at];
		for (e = last[at]; e; e = before.v[e])
			if (--waits[reader.v[e]] == 0)
				heap_push(heap, ready++, reader.v[e]);
	}
	for (i = 0; i < n && !st && done < n; i++)
		if (waits[i])
			st = fail(err, FETTLE_INVALID,
				  "cannot order the graph: node '%s' (%s) waits for its own result",
				  m->nodes.v[i]->name, m->nodes.v[i]->op);
	if (!st)
		model_set_nodes(m, order, n);
	free(order);
	free(waits);
	free(heap);
	free(last);
	VEC_RELEASE(&reader);
	VEC_RELEASE(&before);
	map_release(&maker);
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
	for (i = 0; i < g->n; i++) {
		g->producer[i] = NO_NODE;
		g->constant[i] = given(m, g->names[i]);
	}
	for (i = 0; i < m->n_outputs; i++)
		g->output[graph_value(g, m->outputs[i].name)] = true;
	/* count the readers of each value, then fill their places */
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < m->nodes.n; i++) {
			const struct node *n = m->nodes.v[i];

			/* "" stands for what is left out: nobody makes it, nobody reads it */
			for (j = 0; j < n->n_in + n->n_captured; j++) {
				const char *name = node_reads(n, j);
				size_t v = graph_value(g, name);

				if (!*name)
					continue;
				if (pass)
					g->uses[g->first[v + 1]] = i;
				g->first[v + (pass ? 1 : 2)]++;
			}
			for (j = 0; j < n->n_out && pass; j++)
				if (*n->out[j])
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
