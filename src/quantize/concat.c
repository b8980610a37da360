/*
 * Scale propagation through Concat: its inputs take the parameters of its output, so that the runtime only
 * copies integers. That coarsens an input whose range is smaller; the recipe own_concat_scale turns it off.
 *
 * A value belongs to the first Concat that claims it. Others that read it rescale it, which their integer
 * kernel does by itself: were they to share too, values that none of them reads together would be cut off.
 * A Concat of a Concat passes the outer one's parameters on, for its range holds the inner one's.
 */
#include "quantize/internal.h"

#include <stdlib.h>

/* parent[v]: the output of the Concat whose parameters v takes, or v */
static size_t find(const size_t *parent, size_t v)
{
	while (parent[v] != v)
		v = parent[v];
	return v;
}

/* does anything take its parameters from this value? */
static bool has_heirs(const struct job *j, const size_t *parent, size_t v)
{
	size_t i;

	for (i = 0; i < j->g->n; i++)
		if (i != v && parent[i] == v)
			return true;
	return false;
}

/*
 * Will the range of `value` do for the value it shares parameters with through moves? Yes if it has all its
 * elements. If it has some of them, yes if nothing else knows the others: selecting and cutting off can
 * change places.
 */
static bool stands_for_root(const struct job *j, const size_t *parent, size_t value)
{
	while (value != j->values[value].root) {
		const struct node *n = graph_producer(j->g, j->g->names[value]);
		size_t in = graph_value(j->g, n->in[0]);
		bool all = rearranged_from(j->g, value) == rearranged_from(j->g, in);

		if (!all && (n->n_out > 1 || !graph_only_user(j->g, n->in[0]) || has_heirs(j, parent, in)))
			return false;
		value = in;
	}
	return true;
}

/* would every Relu that the runtime drops now still be dropped? */
static bool keeps_fusions(const struct job *j, const size_t *parent, size_t class, const struct qpair *p)
{
	size_t i;

	for (i = 0; i < j->g->n; i++)
		if (j->values[i].pair && find(parent, i) == class && j->values[i].from_int &&
		    absorbs_activation(j, i, j->values[class].pair) && !absorbs_activation(j, i, p))
			return false;
	return true;
}

static void claim(struct job *j, size_t *parent, size_t value, size_t concat)
{
	const struct qpair *p = j->values[concat].pair;
	size_t root = j->values[value].root;
	const struct qpair *own = j->values[root].pair;

	if (parent[root] != root || root == concat || !stands_for_root(j, parent, value))
		return;
	/* readers of another setting need the value's own range; then it is not shared */
	if (own->next || !qsetting_equal(&own->setting, &p->setting) || !keeps_fusions(j, parent, root, p))
		return;
	parent[root] = concat;
}

void share_concats(struct job *j)
{
	const struct model *m = j->g->m;
	size_t *parent = xcalloc(j->g->n, sizeof(*parent)), i, k;

	for (i = 0; i < j->g->n; i++)
		parent[i] = i;
	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];
		size_t out;

		if (!node_is(n, "Concat") || !job_quantizes(j, i))
			continue;
		out = graph_value(j->g, n->out[0]);
		/* not quantized itself if a Relu follows: the range after that would cut its inputs off */
		if (!j->values[out].from_int ||
		    !qsetting_equal(&j->values[out].pair->setting, &j->plan->ops[i].act))
			continue;
		for (k = 0; k < n->n_in; k++)
			if (is_activation_input(m, j->z->ops->v[i].rule, n, k))
				claim(j, parent, graph_value(j->g, n->in[k]), out);
	}
	for (i = 0; i < j->g->n; i++)
		j->values[i].root = find(parent, j->values[i].root);
	for (i = 0; i < j->g->n; i++)
		if (parent[i] != i)
			j->values[i].pair = NULL; /* emit() gives it one with the root's numbers */
	free(parent);
}
