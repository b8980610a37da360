/* Runs a model once on zeros, batch 1, to see what shape every value really has. */
#ifndef RUNTIME_PROBE_H
#define RUNTIME_PROBE_H

#include "model/shapes.h"
#include "runtime/session.h"

/* Best effort: a model that cannot run on zeros leaves `out` empty. Open dimensions count as 1. */
void probe_shapes(struct shapes *out, struct runtime *rt, struct model *m);
void shapes_release(struct shapes *s);

/* Inputs a session accepts: zeros, or values from a fixed seed, open dimensions as given (dimension 0 is
 * the batch). To be freed one by one with tensor_free(). */
enum fettle_status fake_inputs(const struct session *s, size_t batch, int64_t other_dims, bool random,
			       struct tensor *out, struct err *err);

#endif
