/* What a value is computed from, as a number; and the part of a graph after some of its values. */
#include <stdlib.h>
#include <string.h>

#include "model/index.h"
#include "onnx.pb-c.h"

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 29);
}

static uint64_t hash_data(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t lane[4] = { h, ~h, h * 3, h * 5 }, word;
	size_t i;

	for (; n >= 32; n -= 32, p += 32) /* four at a time: they do not wait for each other */
		for (i = 0; i < 4; i++) {
			memcpy(&word, p + 8 * i, 8);
			lane[i] = mix(lane[i], word);
		}
	for (; n; n -= i, p += i) {
		i = n < 8 ? n : 8;
		word = i;
		memcpy(&word, p, i);
		h = mix(h, word);
	}
	for (i = 0; i < 4; i++)
		h = mix(h, lane[i]);
	return h;
}

static uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_data(h, s, strlen(s) + 1);
}

static uint64_t hash_constant(const struct init *w)
{
	uint64_t h = hash_data(1, &w->t.dtype, sizeof(w->t.dtype));
	size_t n = 0;
	const void *bytes = init_bytes(w, &n);

	h = hash_data(h, w->t.dims, (size_t)w->t.rank * sizeof(w->t.dims[0]));
	return bytes ? hash_data(h, bytes, n) : hash_text(h, w->name);
}

static uint64_t hash_attrs(uint64_t h, const struct node *n)
{
	size_t i, size;

	for (i = 0; i < n->n_attrs; i++) {
		const Onnx__AttributeProto *a = n->attrs[i];
		uint8_t *buf;

		size = onnx__attribute_proto__get_packed_size(a);
		buf = xmalloc(size + 1);
		onnx__attribute_proto__pack(a, buf);
		h = mix(h, hash_data(2, buf, size));
		free(buf);
	}
	return h;
}

void graph_fingerprints(const struct graph_index *g, uint64_t *of)
{
	size_t i, j;

	for (i = 0; i < g->n; i++) {
		const struct init *w = g->constant[i] ? model_init(g->m, g->names[i]) : NULL;

		of[i] = w ? hash_constant(w) : hash_text(3, g->names[i]); /* inputs; the rest follows */
	}
	for (i = 0; i < g->m->nodes.n; i++) {
		const struct node *n = g->m->nodes.v[i];
		uint64_t h = hash_attrs(hash_text(hash_text(4, n->op), n->domain), n);

		for (j = 0; j < n->n_in; j++)
			h = mix(h, *n->in[j] ? of[graph_value(g, n->in[j])] : 5);
		for (j = 0; j < n->n_captured; j++)
			h = mix(hash_text(h, n->captured[j]), of[graph_value(g, n->captured[j])]);
		for (j = 0; j < n->n_out; j++)
			if (*n->out[j])
				of[graph_value(g, n->out[j])] = mix(h, j + 6);
	}
}

void graph_behind(const struct graph_index *g, const bool *known, bool *nodes, bool *values)
{
	size_t i, j;

	memset(nodes, 0, g->m->nodes.n * sizeof(*nodes));
	memcpy(values, g->output, g->n * sizeof(*values));
	for (i = g->m->nodes.n; i-- > 0;) {
		const struct node *n = g->m->nodes.v[i];

		for (j = 0; j < n->n_out && !nodes[i]; j++) {
			size_t v = *n->out[j] ? graph_value(g, n->out[j]) : MAP_NONE;

			nodes[i] = v != MAP_NONE && values[v] && !known[v];
		}
		for (j = 0; j < n->n_in && nodes[i]; j++)
			if (*n->in[j])
				values[graph_value(g, n->in[j])] = true;
		for (j = 0; j < n->n_captured && nodes[i]; j++)
			values[graph_value(g, n->captured[j])] = true;
	}
}

void model_cut(struct model *m, const struct value *at, size_t n)
{
	struct graph_index g;
	bool *known, *nodes, *values;
	struct value *inputs = arena_alloc(&m->arena, (m->n_inputs + n) * sizeof(*inputs));
	size_t i, kept = 0;

	graph_index_init(&g, m);
	known = xcalloc(g.n, sizeof(*known));
	nodes = xcalloc(m->nodes.n, sizeof(*nodes));
	values = xcalloc(g.n, sizeof(*values));
	for (i = 0; i < n; i++)
		known[graph_value(&g, at[i].name)] = true;
	graph_behind(&g, known, nodes, values);
	for (i = 0; i < m->n_inputs; i++)
		if (values[graph_value(&g, m->inputs[i].name)])
			inputs[kept++] = m->inputs[i];
	for (i = 0; i < n; i++)
		inputs[kept++] = typed_input(m, &at[i]);
	m->inputs = inputs;
	m->n_inputs = kept;
	for (i = 0, kept = 0; i < m->nodes.n; i++)
		if (nodes[i])
			m->nodes.v[kept++] = m->nodes.v[i];
	m->nodes.n = kept;
	graph_index_release(&g);
	free(known);
	free(nodes);
	free(values);
	model_sweep(m);
}
