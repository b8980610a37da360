/* Prepares a model for quantization: the runtime's basic optimisations (constants folded, Conv and
 * BatchNorm fused, dead ends removed), before any Q/DQ goes in. A model below opset 10 is raised to the lowest that its
 * quantization needs (see model/opset.h); model->raised_from and notes say so. */
#ifndef RUNTIME_PREPARE_H
#define RUNTIME_PREPARE_H

#include "runtime/session.h"
#include "simplify/simplify.h"

enum fettle_status prepare(struct model **out, struct runtime *rt, const char *path, struct err *err);
/* The same, and the graph is rewritten too where that gains (see simplify/simplify.h); *did says what was done. */
enum fettle_status prepare_rewritten(struct model **out, struct runtime *rt, const char *path,
				     struct simplified *did, struct err *err);

/*
 * The same of the graph alone: float weights that lie in files beside the model stay there, and no one reads them. What
 * is computed from them is not folded. did == NULL: the graph is not rewritten.
 */
enum fettle_status prepare_outside(struct model **out, struct runtime *rt, const char *path,
				   struct simplified *did, struct err *err);

/* The graph that a session with these options would run, for tests and for `inspect`. */
enum fettle_status optimised_graph(struct model **out, struct runtime *rt, struct model *m,
				   const struct session_options *o, struct err *err);

#endif
