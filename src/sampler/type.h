/*
 * What a sampler is made of: one `const struct sampler_type sampler_<id>` per file, and a line in list.h.
 * sampler.c checks and converts what comes in: here points are those of point.h, and low values are good.
 */
#ifndef SAMPLER_TYPE_H
#define SAMPLER_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/point.h"
#include "sampler/sampler.h"

struct sampler_type {
	const char *name, *summary;
	const char *aliases; /* with spaces between */
	bool several;        /* objectives may be several */
	bool listed;         /* floats without a step are given levels */
	void *(*start)(const struct point_space *space,
		       const struct sampler_options *opt); /* the space outlives the state */
	bool (*ask)(void *state, double *point);           /* false: none is left */
	bool never_learns; /* what it asks for does not depend on what it is told */
	size_t (*independent)(
		const void *state); /* as sampler_independent(); NULL: 1, unless it never learns */
	void (*tell)(void *state, const double *point, const struct sampler_result *r); /* NULL: it failed */
	void (*end)(void *state);
};

#define SAMPLER(id) extern const struct sampler_type sampler_##id;
#include "sampler/list.h"
#undef SAMPLER

#endif
