/* Questions about a graph's structure, answered from tables built once: who makes a value, who reads
 * it, in which order, where the graph can be cut, which blocks repeat. */
#ifndef MODEL_INDEX_H
#define MODEL_INDEX_H

#include "model/model.h"

enum { NO_NODE = -1 };

/* Values are numbered; so are nodes (their place in model->nodes, which is a topological order). */
struct graph_index {
	const struct model *m;
	struct map ids; /* name -> value */
	const char **names;
	size_t n;
	int *producer;        /* value -> node, NO_NODE for inputs and constants */
	size_t *first, *uses; /* readers of value v: uses[first[v]] .. uses[first[v + 1] - 1], ascending */
	bool *constant, *output;
};

/* Sorts m's nodes if they are not in order; a cycle or a value that nothing makes is an error. */
enum fettle_status graph_sort(struct model *m, struct err *err);
void graph_index_init(struct graph_index *g, const struct model *m);
void graph_index_release(struct graph_index *g);

size_t graph_value(const struct graph_index *g, const char *name); /* MAP_NONE when unknown */
size_t graph_n_uses(const struct graph_index *g, size_t value);
/* The only node that reads this value, or NULL if there are none, several, or it is an output too. */
struct node *graph_only_user(const struct graph_index *g, const char *name);
struct node *graph_producer(const struct graph_index *g, const char *name);

/*
 * Cut points: values through which everything passes from inputs to outputs, in order. With
 * `main_path` only what carries weights counts: masks, shapes and the like may pass by.
 */
struct cuts {
	const char **v;
	size_t n;
	int *after; /* the last node that must have run when the cut is complete */
};
void graph_cuts(const struct graph_index *g, bool main_path, struct cuts *out);
void cuts_release(struct cuts *c);

/*
 * of[value]: two values, of whatever models, that have the same number are computed from the inputs by the same nodes
 * with the same constants. Names of nodes and of values other than inputs do not matter.
 */
void graph_fingerprints(const struct graph_index *g, uint64_t *of);
/* What it takes to compute the outputs when some values are known: nodes[], and the values[] that are read or known. */
void graph_behind(const struct graph_index *g, const bool *known, bool *nodes, bool *values);

/* Repeated transformer blocks: nodes first..last, each with an attention (MatMul, Softmax, MatMul). */
struct block {
	int first, last;
};
size_t graph_blocks(const struct graph_index *g, struct block **out); /* free() *out */

#endif
