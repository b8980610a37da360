/*
 * What exporters leave in graphs and ONNX Runtime's own optimiser does not see through: each is rewritten into fewer ops, or
 * into the form that the runtime fuses. The function stays the same, but for the rounding of floats; graph outputs and
 * the ops that have weights keep their names. A rewriting is one file and one line in list.h. It is there because it was
 * measured to gain, and test/unit/simplify_*.c shows where it fires, where not, and that outputs stay.
 */
#ifndef SIMPLIFY_SIMPLIFY_H
#define SIMPLIFY_SIMPLIFY_H

#include "model/index.h"

/* A graph that is being rewritten. The index is up to date whenever a rewriting is asked. */
struct simplifying {
	struct model *m;
	struct graph_index g;
};

struct simplification {
	const char *name;
	const char *summary;
	/* Rewrites the pattern of which n is the part that names it (the Erf of a GELU), if it is there; false: it is not. */
	bool (*apply)(struct simplifying *s, struct node *n);
};

enum simplification_id {
#define SIMPLIFICATION(id) SIMPLIFICATION_##id,
#include "simplify/list.h"
#undef SIMPLIFICATION
	SIMPLIFICATIONS
};
extern const struct simplification *const simplifications[SIMPLIFICATIONS];

/* How often each was applied. */
struct simplified {
	size_t n[SIMPLIFICATIONS];
};
size_t simplified_total(const struct simplified *d);

/*
 * Applies all of them until none applies, and adds to *did. Returns how many did. For a model that nobody has derived from,
 * with its constants fetched; the better the types of its values are known, the more can be done. New values have no
 * types yet.
 */
size_t simplify(struct model *m, struct simplified *did);

#endif
