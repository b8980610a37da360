/* What opset.c and opset_rules.c share: the table of conversions, and what a conversion may use. */
#ifndef MODEL_OPSET_RULES_H
#define MODEL_OPSET_RULES_H

#include "model/internal.h"
#include "model/opset.h"

/* One graph that is being raised: the main graph, or a subgraph inside it. */
struct raise {
	struct model *m;
	int to;
	const Onnx__GraphProto *graph; /* NULL for the main graph, which is m */
	const struct raise *outer;
	struct node **all; /* its nodes, in the version before */
	size_t n_all;
	VEC(struct node *) nodes; /* the converted ones so far */
	struct node *after;       /* a node to follow the one that is being converted, or NULL */
};

/* Rewrites n in place. Returns NULL, or why there is no exact conversion. Nodes that must run before n go to r->nodes. */
typedef const char *opset_convert(struct raise *r, struct node *n);

struct opset_rule {
	int version;
	const char *ops;        /* separated by spaces */
	opset_convert *convert; /* NULL: nothing to do, unless there is a `why` */
	const char *why;        /* there is no conversion, because */
};
extern const struct opset_rule opset_rules[];
extern const size_t n_opset_rules;

const struct opset_rule *opset_rule_find(const char *op, int version); /* NULL: unchanged */

/* What is known of a value's type, by the innermost graph that has it; DT_NONE and rank -1 where nothing is. */
struct tensor raise_type(const struct raise *r, const char *name);
/* Does anything in the graph that is being raised read this value? */
bool raise_reads(const struct raise *r, const char *name);
/* A constant of the main graph, which subgraphs can read too. The data are copied. */
const char *raise_constant(struct raise *r, const struct node *n, const char *what, const struct tensor *t);

#endif
