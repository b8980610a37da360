/* What a tape is made of: values, and steps that compute one from others. */
#ifndef FINETUNE_TAPE_OP_H
#define FINETUNE_TAPE_OP_H

#include "finetune/tape.h"
#include "model/index.h"

/* A value of the graph. */
struct tape_cell {
	struct tensor t; /* float; data NULL: nothing needs it as numbers */
	float *g;        /* gradient; NULL: it depends on nothing that learns */
	bool constant;
};

struct tape_step {
	const struct tape_kind *kind;
	const struct node *node;
	struct tape_cell **in; /* NULL for one that is left out */
	struct tape_cell *out;
	size_t n_in, which; /* the node's inputs; which of its outputs this one is */
	float p[4];         /* what the kind makes of attributes */
	size_t size[3];
	uint32_t *map[2]; /* for each element, which one of another value; NULL: the same */
	struct pool {
		long kernel[2], stride[2], pad[2], dilation[2];
		bool whole; /* padding counts */
	} * pool;
	float *kept; /* from forward for backward */
	struct tape_layer *layer;
};

struct tape {
	struct runtime *rt;
	struct model *m;
	struct graph_index g;
	struct arena arena;
	struct tape_cell *cells; /* per value */
	VEC(struct tape_step) steps;
	VEC(struct tape_layer *) layers;
	struct map learns; /* outputs of layers whose gradients are wanted */
};

struct tape_kind {
	const char *op;
	/* makes the step ready; *why if it cannot be had */
	enum fettle_status (*prepare)(struct tape *t, struct tape_step *s, const char **why, struct err *err);
	enum fettle_status (*forward)(struct tape_step *s, struct err *err);
	/* adds to the gradients of its inputs, where they have any */
	enum fettle_status (*backward)(struct tape_step *s, struct err *err);
};
/* each ends with a NULL */
extern const struct tape_kind tape_maps[], tape_moves[], tape_reductions[], tape_layers[];

static inline size_t cell_count(const struct tape_cell *c)
{
	return (size_t)tensor_count(&c->t);
}
static inline float *cell_data(const struct tape_cell *c)
{
	return c->t.data;
}
static inline float cell_get(const struct tape_cell *c, size_t i)
{
	return ((const float *)c->t.data)[i];
}
static inline bool step_has(const struct tape_step *s, size_t k)
{
	return s->n_in > k && s->in[k];
}
static inline bool step_has_constant(const struct tape_step *s, size_t k)
{
	return step_has(s, k) && s->in[k]->constant;
}

/* map[i] of the value with the shape of `to`: which element of `from` is broadcast there */
uint32_t *tape_broadcast(struct tape *t, const struct tensor *from, const struct tensor *to);

#endif
