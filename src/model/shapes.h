/* Shapes that values really have, as seen in a run. (Declared types leave dimensions open.) */
#ifndef MODEL_SHAPES_H
#define MODEL_SHAPES_H

#include "base/map.h"
#include "tensor/tensor.h"

struct shapes {
	struct map index; /* keys are the model's own names */
	struct tensor *v;
	size_t n;
};
#define SHAPES_INIT                                                                                          \
	{                                                                                                    \
		MAP_INIT, NULL, 0                                                                            \
	}

static inline const struct tensor *shapes_find(const struct shapes *s, const char *name)
{
	size_t i = map_get(&s->index, name);

	return i == MAP_NONE ? NULL : &s->v[i];
}

#endif
