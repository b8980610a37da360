#include "simplify/simplify.h"

#include <stdlib.h>

#define SIMPLIFICATION(id) extern const struct simplification simplification_##id;
#include "simplify/list.h"
#undef SIMPLIFICATION

const struct simplification *const simplifications[SIMPLIFICATIONS] = {
#define SIMPLIFICATION(id) &simplification_##id,
#include "simplify/list.h"
#undef SIMPLIFICATION
};

size_t simplified_total(const struct simplified *d)
{
	size_t total = 0, i;

	for (i = 0; i < SIMPLIFICATIONS; i++)
		total += d->n[i];
	return total;
}

static bool is_live(const struct graph_index *g, const struct node *n, const bool *dead)
{
	size_t k, u;

	for (k = 0; k < n->n_out; k++) {
		const size_t v = *n->out[k] ? graph_value(g, n->out[k]) : MAP_NONE;

		if (v == MAP_NONE)
			continue;
		if (g->output[v])
			return true;
		for (u = g->first[v]; u < g->first[v + 1]; u++)
			if (!dead[g->uses[u]])
				return true;
	}
	return !n->n_out;
}

/* drops the nodes that nothing depends on any more, and brings the index up to date */
static void refresh(struct simplifying *s)
{
	struct model *m = s->m;
	bool *dead = xcalloc(m->nodes.n + 1, sizeof(*dead));
	size_t i, kept = 0;

	graph_index_release(&s->g);
	graph_index_init(&s->g, m);
	for (i = m->nodes.n; i-- > 0;)
		dead[i] = !is_live(&s->g, m->nodes.v[i], dead);
	for (i = 0; i < m->nodes.n; i++)
		if (!dead[i])
			m->nodes.v[kept++] = m->nodes.v[i];
	if (kept < m->nodes.n) {
		m->nodes.n = kept;
		graph_index_release(&s->g);
		graph_index_init(&s->g, m);
	}
	free(dead);
}

static size_t apply_all(struct simplifying *s, const struct simplification *x)
{
	size_t n = 0, i;

	for (i = 0; i < s->m->nodes.n; i++) {
		while (i < s->m->nodes.n && x->apply(s, s->m->nodes.v[i])) {
			refresh(s);
			n++;
		}
	}
	return n;
}

size_t simplify(struct model *m, struct simplified *did)
{
	struct simplifying s = { .m = m };
	size_t total = 0, round, i;

	graph_index_init(&s.g, m);
	do {
		round = 0;
		for (i = 0; i < SIMPLIFICATIONS; i++) {
			size_t n = apply_all(&s, simplifications[i]);

			did->n[i] += n;
			round += n;
		}
		total += round;
	} while (round);
	graph_index_release(&s.g);
	if (total)
		model_sweep(m);
	return total;
}
