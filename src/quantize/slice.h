/*
 * The parts of a model that is larger than memory (by_parts.h): where each begins and ends, and running one over all calibration
 * samples. What later parts read of it is kept.
 */
#ifndef QUANTIZE_SLICE_H
#define QUANTIZE_SLICE_H

#include "ops/rules.h"
#include "quantize/by_parts.h"
#include "quantize/grams.h"

/* A value that nodes to come read: what it was for each batch. */
struct kept {
	size_t value;
	struct tensor *t;
};

struct batch_size {
	size_t n, valid;
};

struct parts_run {
	const struct parts *p;
	const struct graph_index *g;
	struct batch_size *batches;
	size_t n;      /* of batches */
	int last;      /* node: what comes after it is not run */
	int *last_use; /* value -> the last node, up to that one, that reads it; NO_NODE: none */
	VEC(struct kept) kept;
};

/* A weight as it has become, in the layout of the op's own. */
struct replaced {
	size_t node;
	struct tensor w;
};

/* A part: nodes from .. to-1 as a model of its own. */
struct slice {
	int from, to;
	struct model *m;
	struct session *s;
	VEC(size_t) reads;   /* values made before it, or inputs of the graph */
	VEC(size_t) makes;   /* values that the session gives: read later, or to be observed */
	VEC(size_t) ops;     /* nodes whose weights are quantized by what they read */
	VEC(void *) weights; /* the bytes of its weights */
	VEC(struct replaced) replaced;
	struct grams *grams;
	bool sees, keeps; /* what a run over the batches is for: grams, and values for later parts */
};

static inline bool parts_by_data(const struct qplan *plan, size_t node)
{
	return plan->ops[node].mode == OP_WEIGHT && block_needs_data(&plan->ops[node].blocks);
}

static inline bool parts_block_op(const struct parts_run *r, size_t node)
{
	return r->p->plan->ops[node].mode == OP_WEIGHT && r->p->s->ops.v[node].rule->kind == OP_COMPUTE;
}

static inline bool parts_in_sequence(const struct parts_run *r)
{
	return r->p->plan->recipes.true_sequential;
}

static inline const struct node *parts_node(const struct parts_run *r, int i)
{
	return r->g->m->nodes.v[i];
}

static inline struct gram_input parts_input(const struct parts_run *r, size_t node)
{
	const struct node *n = parts_node(r, (int)node);

	return (struct gram_input){ n->in[0], r->p->s->ops.v[node].inputs, op_input_turned(n) };
}

/* Reads the samples. parts_end() in any case. */
enum fettle_status parts_begin(struct parts_run *r, struct err *err);
void parts_end(struct parts_run *r);
/* Forgets what no node from `next` on reads. */
void parts_forget(struct parts_run *r, int next);

/* The part that begins at node `from`. */
void slice_find(const struct parts_run *r, struct slice *p, int from);
void slice_release(struct slice *p);
/* Do later parts read what it makes? */
bool slice_is_read(const struct parts_run *r, const struct slice *p);
/* All samples through it, with the weights that were replaced; sees: fills grams; keeps: what later parts read. */
enum fettle_status slice_run(struct parts_run *r, struct slice *p, bool sees, bool keeps, struct err *err);
/* A weight into memory. free() *bytes. */
enum fettle_status slice_load(const struct model *m, const struct init *w, void **bytes, struct err *err);

#endif
