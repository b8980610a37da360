#include "model/index.h"

#include <stdlib.h>
#include <string.h>

/* does the node apply weights, i.e. is it where the network's own computation happens? */
static bool applies_weights(const struct graph_index *g, const struct node *n)
{
	size_t j;

	for (j = 0; j < n->n_in; j++) {
		const struct init *w = model_init(g->m, n->in[j]);

		if (w && w->t.dtype == DT_F32 && w->t.rank >= 2 && tensor_count(&w->t) >= 16)
			return true;
	}
	return false;
}

static size_t reads(const struct graph_index *g, const struct node *n, size_t j)
{
	return graph_value(g, j < n->n_in ? n->in[j] : n->captured[j - n->n_in]);
}

/* nodes that lead to an output: what others read may pass by any cut */
static bool *live_nodes(const struct graph_index *g)
{
	bool *live = xcalloc(g->m->nodes.n, sizeof(*live)), *wanted = xcalloc(g->n, sizeof(*wanted));
	size_t i, j;

	if (g->n)
		memcpy(wanted, g->output, g->n * sizeof(*wanted));
	for (i = g->m->nodes.n; i-- > 0;) {
		const struct node *n = g->m->nodes.v[i];

		for (j = 0; j < n->n_out && !live[i]; j++)
			live[i] = wanted[graph_value(g, n->out[j])];
		for (j = 0; j < n->n_in + n->n_captured && live[i]; j++)
			wanted[reads(g, n, j)] = true;
	}
	free(wanted);
	return live;
}

/* Which values count for a cut: those that depend on an input; on the main path, only those that
 * weights were applied to, and float inputs. */
static bool *relevant_values(const struct graph_index *g, const bool *live, bool main_path)
{
	bool *relevant = xcalloc(g->n, sizeof(*relevant));
	size_t i, j;

	for (i = 0; i < g->m->n_inputs; i++)
		if (!main_path || g->m->inputs[i].type.dtype == DT_F32)
			relevant[graph_value(g, g->m->inputs[i].name)] = true;
	for (i = 0; i < g->m->nodes.n; i++) {
		const struct node *n = g->m->nodes.v[i];
		bool r = main_path && applies_weights(g, n);

		for (j = 0; j < n->n_in + n->n_captured && !r; j++)
			r = relevant[reads(g, n, j)];
		if (!live[i] || (main_path && node_is(n, "Shape")))
			r = false;
		for (j = 0; j < n->n_out; j++)
			relevant[graph_value(g, n->out[j])] = r && *n->out[j];
	}
	return relevant;
}

/*
 * One sweep over the nodes in order, with the set of values that are made and still to be read. When
 * that set is one value, everything passes through it. (A node that needs nothing, e.g. a random
 * generator, is not relevant; nor is a constant.)
 */
void graph_cuts(const struct graph_index *g, bool main_path, struct cuts *out)
{
	bool *live = live_nodes(g), *relevant = relevant_values(g, live, main_path);
	size_t *left = xcalloc(g->n, sizeof(*left)), i, j, alive = 0, inputs_left = 0, cap = 0;
	size_t n_nodes = g->m->nodes.n;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < g->n; i++)
		left[i] = g->output[i]; /* the caller reads an output */
	for (i = 0; i < n_nodes; i++)
		for (j = 0; live[i] && j < g->m->nodes.v[i]->n_in + g->m->nodes.v[i]->n_captured; j++)
			left[reads(g, g->m->nodes.v[i], j)]++;
	for (i = 0; i < g->m->n_inputs; i++) {
		size_t v = graph_value(g, g->m->inputs[i].name);

		if (relevant[v] && left[v])
			inputs_left++, alive++;
	}
	for (i = 0; i < n_nodes; i++) {
		const struct node *n = g->m->nodes.v[i];
		size_t candidate = MAP_NONE;

		for (j = 0; j < n->n_in + n->n_captured && live[i]; j++) {
			size_t v = reads(g, n, j);

			if (relevant[v] && --left[v] == 0) {
				alive--;
				inputs_left -= g->producer[v] == NO_NODE;
			}
		}
		for (j = 0; j < n->n_out; j++) {
			size_t v = graph_value(g, n->out[j]);

			if (relevant[v] && left[v]) {
				alive++;
				candidate = v;
			}
		}
		if (alive != 1 || inputs_left || candidate == MAP_NONE)
			continue;
		if (out->n == cap) {
			cap = cap ? 2 * cap : 32;
			out->v = xrealloc(out->v, cap, sizeof(*out->v));
			out->after = xrealloc(out->after, cap, sizeof(*out->after));
		}
		out->v[out->n] = g->names[candidate];
		out->after[out->n++] = (int)i;
	}
	free(live);
	free(relevant);
	free(left);
}

void cuts_release(struct cuts *c)
{
	free(c->v);
	free(c->after);
	memset(c, 0, sizeof(*c));
}

/* is there a MatMul within a few steps before (dir < 0) or after the node? */
static bool matmul_near(const struct graph_index *g, const struct node *n, int dir, int steps)
{
	size_t v, i;

	if (!steps || !n || !n->n_in || !n->n_out)
		return false;
	if (dir < 0) {
		const struct node *p = graph_producer(g, n->in[0]);

		return p && (node_is(p, "MatMul") || matmul_near(g, p, dir, steps - 1) ||
			     (p->n_in > 1 && graph_producer(g, p->in[1]) &&
			      node_is(graph_producer(g, p->in[1]), "MatMul")));
	}
	v = graph_value(g, n->out[0]);
	for (i = g->first[v]; i < g->first[v + 1]; i++) {
		const struct node *u = g->m->nodes.v[g->uses[i]];

		if (node_is(u, "MatMul") || matmul_near(g, u, dir, steps - 1))
			return true;
	}
	return false;
}

/* softmax(QK')V, however the runtime has fused it */
static bool is_attention(const struct graph_index *g, const struct node *n)
{
	if (strcmp(n->op, "Attention") == 0 || strcmp(n->op, "MultiHeadAttention") == 0)
		return true;
	return node_is(n, "Softmax") && matmul_near(g, n, -1, 5) && matmul_near(g, n, 1, 4);
}

/*
 * The main path's cuts divide the graph into segments; a block begins with a segment that holds an
 * attention and continues to the next one. The last one ends where the others' length says.
 */
size_t graph_blocks(const struct graph_index *g, struct block **out)
{
	struct cuts c;
	VEC(struct block) blocks = { 0 };
	VEC(size_t) starts = { 0 };
	size_t s, i, len = 0;

	graph_cuts(g, true, &c);
	for (s = 0; s + 1 < c.n; s++)
		for (i = (size_t)c.after[s] + 1; i <= (size_t)c.after[s + 1]; i++)
			if (is_attention(g, g->m->nodes.v[i]) && (!starts.n || starts.v[starts.n - 1] != s))
				VEC_PUSH(&starts, s);
	for (i = 0; i < starts.n; i++) {
		size_t end = i + 1 < starts.n ? starts.v[i + 1] : starts.v[i] + len;

		if (end >= c.n)
			end = c.n - 1;
		if (i + 1 < starts.n)
			len = end - starts.v[i];
		else if (!len)
			break; /* a single attention repeats nothing */
		VEC_PUSH(&blocks, ((struct block){ c.after[starts.v[i]] + 1, c.after[end] }));
	}
	cuts_release(&c);
	VEC_RELEASE(&starts);
	*out = blocks.v;
	return blocks.n;
}
