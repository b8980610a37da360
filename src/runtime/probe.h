/* Runs a model once on zeros, batch 1, to see what shape every value really has, unless all are declared. */
#ifndef RUNTIME_PROBE_H
#define RUNTIME_PROBE_H

#include "model/shapes.h"
#include "runtime/session.h"

/* A session on m with every value that a node makes as an output. all_values_close() it, also after a failure. A model
 * that was folded into constants has none, and no session. */
struct all_values {
	struct model *m;
	struct session *s;
	const char **names; /* m's own; parallel to the session's outputs */
	size_t n;
};
enum fettle_status all_values_open(struct all_values *a, struct runtime *rt, const struct model *m,
				   struct err *err);
void all_values_close(struct all_values *a);

/* Best effort: a model that cannot run on zeros leaves `out` empty. Open dimensions count as 1. */
void probe_shapes(struct shapes *out, struct runtime *rt, struct model *m);
/* Likewise, on these inputs; those have shapes, too. */
void probe_shapes_on(struct shapes *out, struct runtime *rt, const struct model *m, struct tensor *inputs);
void shapes_release(struct shapes *s);

/* Inputs a session accepts: zeros, or values from a fixed seed, open dimensions as given (dimension 0 is
 * the batch). A language model's past is empty. To be freed one by one with tensor_free(). */
enum fettle_status fake_inputs(const struct session *s, size_t batch, int64_t other_dims, bool random,
			       struct tensor *out, struct err *err);
/* Likewise, of a language model: for each row, one token after `past` others. */
enum fettle_status fake_token(const struct session *s, size_t batch, size_t past, struct tensor *out,
			      struct err *err);

#endif
