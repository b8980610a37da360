/* tf.train.Example: features by name, each a list of byte strings, floats or integers. */
#ifndef DATA_EXAMPLE_H
#define DATA_EXAMPLE_H

#include "base/file.h"
#include "data/buffer.h"
#include "base/mem.h"
#include "data/wire.h"

enum feature_type { FEATURE_NONE, FEATURE_BYTES, FEATURE_FLOATS, FEATURE_INTS }; /* NONE: it has no values */

struct feature {
	struct wire name;
	enum feature_type type;
	struct wire list; /* the message of that type */
	size_t n;         /* values */
};

struct example {
	VEC(struct feature) features;
};
#define EXAMPLE_INIT                                                                                         \
	{                                                                                                    \
		{                                                                                            \
			NULL, 0, 0                                                                           \
		}                                                                                            \
	}

/* Everything points into the record. Forgets what was in e; false when it is damaged. */
bool example_read(struct example *e, struct bytes record);
void example_release(struct example *e);
/* The feature of that name, with values; or NULL. */
const struct feature *example_find(const struct example *e, const char *name);
/* The i-th value, i < n. */
struct bytes feature_bytes(const struct feature *f, size_t i);
/* All values, [n]: of floats and integers; of integers. */
void feature_floats(const struct feature *f, float *out);
void feature_ints(const struct feature *f, int64_t *out);

#endif
