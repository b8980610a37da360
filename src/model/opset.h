/*
 * Raises a model to a later version of ONNX's own operators without changing what it computes: op by op and version
 * by version, from a table (opset_rules.c). Only exact conversions are made.
 */
#ifndef MODEL_OPSET_H
#define MODEL_OPSET_H

#include "model/model.h"

enum { OPSET_RAISE_MAX = 13 }; /* the table's last version */

/* The node that kept a model from being raised. Lives as long as the model. */
struct opset_obstacle {
	const char *op, *name; /* name: the node's, or its first output's */
	int version;           /* the opset whose version of the op it cannot be converted to */
	const char *why;
};

/*
 * A model derived from m at opset `to`, at most OPSET_RAISE_MAX; its IR version is at least the one that came with
 * that opset. NULL if a node has no exact conversion, and *obstacle says which. m must be a model that the runtime
 * accepts. Its values should have types (prepare() asks the runtime for them), and it must have no constants that are
 * inputs too: see model_fix_constants().
 */
struct model *model_raise(const struct model *m, int to, struct opset_obstacle *obstacle);

/* What the table says of an op at the version that introduced it or changed it. */
enum opset_change {
	OPSET_UNLISTED,  /* the op did not change in that version */
	OPSET_SAME,      /* what was valid before means the same */
	OPSET_CONVERTED, /* nodes are rewritten; a few may have no conversion */
	OPSET_NONE,      /* there is no exact conversion */
};
enum opset_change opset_change(const char *op, int version);

#endif
