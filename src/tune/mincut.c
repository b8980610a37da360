/*
 * Dinic's algorithm: while a path from source to sink has room, fill all shortest ones at once. E. A. Dinic, "Algorithm for
 * solution of a problem of maximum flow in networks with power estimation", Soviet Math. Doklady 11, 1970. The nodes that the
 * source still reaches when no path is left are one side of a minimum cut.
 */
#include "tune/mincut.h"

#include <stdlib.h>

#include "base/mem.h"

struct edge {
	size_t to, next; /* the next edge of the same node, + 1; 0: none. Edge i ^ 1 is the way back. */
	int64_t room;
};

struct mincut {
	VEC(struct edge) edges;
	VEC(size_t) first; /* per node: its first edge, + 1 */
	VEC(size_t) at;    /* per node: the edge to try next */
	VEC(int) level;    /* per node: edges from the source; -1: not reached */
	VEC(size_t) queue;
};

struct mincut *mincut_new(void)
{
	struct mincut *c = xcalloc(1, sizeof(*c));
	size_t i;

	for (i = 0; i < CUT_NODES; i++)
		mincut_node(c);
	return c;
}

void mincut_free(struct mincut *c)
{
	if (!c)
		return;
	VEC_RELEASE(&c->edges);
	VEC_RELEASE(&c->first);
	VEC_RELEASE(&c->at);
	VEC_RELEASE(&c->level);
	VEC_RELEASE(&c->queue);
	free(c);
}

size_t mincut_node(struct mincut *c)
{
	VEC_PUSH(&c->first, 0);
	VEC_PUSH(&c->at, 0);
	VEC_PUSH(&c->level, -1);
	VEC_PUSH(&c->queue, 0);
	return c->first.n - 1;
}

static void add(struct mincut *c, size_t from, size_t to, int64_t room)
{
	VEC_PUSH(&c->edges, ((struct edge){ to, c->first.v[from], room }));
	c->first.v[from] = c->edges.n;
}

void mincut_edge(struct mincut *c, size_t from, size_t to, int64_t capacity)
{
	add(c, from, to, capacity);
	add(c, to, from, 0);
}

/* distances from the source; false: the sink is out of reach */
static bool find_levels(struct mincut *c)
{
	size_t head = 0, tail = 0, i, e;

	for (i = 0; i < c->first.n; i++) {
		c->level.v[i] = -1;
		c->at.v[i] = c->first.v[i];
	}
	c->level.v[CUT_SOURCE] = 0;
	c->queue.v[tail++] = CUT_SOURCE;
	while (head < tail) {
		size_t n = c->queue.v[head++];

		for (e = c->first.v[n]; e; e = c->edges.v[e - 1].next) {
			const struct edge *x = &c->edges.v[e - 1];

			if (x->room > 0 && c->level.v[x->to] < 0) {
				c->level.v[x->to] = c->level.v[n] + 1;
				c->queue.v[tail++] = x->to;
			}
		}
	}
	return c->level.v[CUT_SINK] >= 0;
}

/* Sends at most `most` from the node to the sink, along edges that lead one level further. The depth is a path's length. */
static int64_t send(struct mincut *c, size_t node, int64_t most)
{
	size_t *e = &c->at.v[node];

	if (node == CUT_SINK)
		return most;
	for (; *e; *e = c->edges.v[*e - 1].next) {
		struct edge *x = &c->edges.v[*e - 1];
		int64_t sent;

		if (x->room <= 0 || c->level.v[x->to] != c->level.v[node] + 1)
			continue;
		sent = send(c, x->to, most < x->room ? most : x->room);
		if (sent > 0) {
			x->room -= sent;
			c->edges.v[(*e - 1) ^ 1].room += sent;
			return sent;
		}
	}
	return 0;
}

void mincut_solve(struct mincut *c)
{
	while (find_levels(c))
		while (send(c, CUT_SOURCE, CUT_NEVER) > 0)
			;
}

bool mincut_at_source(const struct mincut *c, size_t node)
{
	return c->level.v[node] >= 0;
}
