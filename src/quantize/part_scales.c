#include "quantize/part_scales.h"

#include <stdlib.h>
#include <string.h>

#include "quantize/rewrite.h"

struct part_scales {
	struct subject *s;
	const struct qplan *plan;
	struct rewrite w;
	size_t *class;  /* per node: of what it reads, if that can be scaled; NO_CLASS: it cannot */
	float **scales; /* per class; NULL: not decided on */
};

static bool by_awq(const struct part_scales *p, size_t node)
{
	return p->plan->ops[node].mode == OP_WEIGHT &&
	       block_methods[p->plan->ops[node].blocks.algorithm]->scales_inputs;
}

static bool used_once(const struct graph_index *g, const char *value)
{
	return graph_n_uses(g, graph_value(g, value)) == 1;
}

/* A weight that no other op reads, whose product is no output of the model: see scale_inputs.c. */
static bool reader_fits(const struct part_scales *p, const struct part *part)
{
	const struct graph_index *g = &p->s->g;
	const struct node *n = p->s->m->nodes.v[part->node];

	return is_matrix_op(p->s->m, n) && by_awq(p, part->node) && used_once(g, n->in[1]) &&
	       !g->output[graph_value(g, n->out[0])] && p->w.c.lanes[part->value].repeat == 1;
}

/* Its constants are in memory, and its own. */
static bool maker_fits(const struct part_scales *p, const struct part *part)
{
	const struct node *n = p->s->m->nodes.v[part->node];
	size_t k;

	if (is_linear(p->s->m, n) || part->role == PART_CLIPS)
		return false;
	for (k = 0; k < n->n_in; k++) {
		const struct init *c = *n->in[k] ? model_init(p->s->m, n->in[k]) : NULL;

		if (c && (init_is_outside(c) || !used_once(&p->s->g, n->in[k])))
			return false;
	}
	return true;
}

static bool class_fits(const struct part_scales *p, size_t class)
{
	size_t i, value = MAP_NONE;

	if (channels_root(&p->w.c, class) != class || !smooth_can_fold(&p->w, class))
		return false;
	for (i = 0; i < p->w.c.parts.n; i++) {
		const struct part *part = &p->w.c.parts.v[i];

		if (part->class != class)
			continue;
		if (part->role != PART_READS
			    ? !maker_fits(p, part)
			    : !reader_fits(p, part) || (value != MAP_NONE && value != part->value))
			return false;
		if (part->role == PART_READS)
			value = part->value;
	}
	return true;
}

struct part_scales *part_scales_new(struct subject *s, const struct qplan *plan)
{
	struct part_scales *p = xcalloc(1, sizeof(*p));
	size_t i, k;

	p->s = s;
	p->plan = plan;
	rewrite_begin(&p->w, s);
	p->class = xcalloc(s->ops.n + 1, sizeof(*p->class));
	p->scales = xcalloc(p->w.c.n + 1, sizeof(*p->scales));
	for (i = 0; i < s->ops.n; i++)
		p->class[i] = NO_CLASS;
	for (i = 0; i < p->w.c.n; i++)
		for (k = 0; k < p->w.c.parts.n && class_fits(p, i); k++)
			if (p->w.c.parts.v[k].class == i && p->w.c.parts.v[k].role == PART_READS)
				p->class[p->w.c.parts.v[k].node] = i;
	return p;
}

void part_scales_free(struct part_scales *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->w.c.n; i++)
		free(p->scales[i]);
	free(p->scales);
	free(p->class);
	rewrite_release(&p->w);
	free(p);
}

bool part_scales_open(const struct part_scales *p, size_t node)
{
	return p->class[node] != NO_CLASS && !p->scales[p->class[node]];
}

bool part_scales_alike(const struct part_scales *p, size_t a, size_t b)
{
	return p->class[a] != NO_CLASS && p->class[a] == p->class[b];
}

const float *part_scales_of(const struct part_scales *p, size_t node)
{
	return p->class[node] == NO_CLASS ? NULL : p->scales[p->class[node]];
}

enum fettle_status part_scales_choose(struct part_scales *p, size_t node, const struct block_reader *readers,
				      size_t n, const struct block_seen *seen, struct err *err)
{
	const size_t class = p->class[node], k = p->w.c.size[class];

	p->scales[class] = xcalloc(k, sizeof(float));
	return block_input_scales(readers, n, (int64_t)k, seen, &p->plan->ops[node].blocks.format,
				  p->scales[class], err);
}

/* A constant of the subject as it is in the rewritten model. */
static void take_over(struct part_scales *p, const struct init *from, struct init *to)
{
	to->t = from->t;
	to->t.data = arena_alloc(&p->s->m->arena, tensor_bytes(&from->t));
	memcpy(to->t.data, from->t.data, tensor_bytes(&from->t));
	to->proto = NULL; /* it is not as it came */
}

enum fettle_status part_scales_apply(struct part_scales *p, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < p->w.c.n && !st; i++) {
		double *factors = xcalloc(p->w.c.size[i] + 1, sizeof(*factors));

		for (k = 0; p->scales[i] && k < p->w.c.size[i]; k++)
			factors[k] = 1 / (double)p->scales[i][k];
		if (p->scales[i])
			st = rewrite_fold_into_makers(&p->w, i, factors, err);
		free(factors);
	}
	for (i = 0; i < p->s->ops.n && !st; i++) {
		const struct node *was = p->s->m->nodes.v[i], *is = p->w.m->nodes.v[i];

		for (k = 0; k < was->n_in; k++)
			if (strcmp(was->in[k], is->in[k]) != 0)
				take_over(p, model_init(p->w.m, is->in[k]), model_init(p->s->m, was->in[k]));
	}
	return st;
}
