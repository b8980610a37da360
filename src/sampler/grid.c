/* Every point in a fixed order, the last parameter changing fastest. The seed changes nothing. Points told that are not on the
 * grid are of no account. */
#include <stdlib.h>
#include <string.h>

#include "sampler/type.h"

struct grid {
	const struct point_space *space;
	double *next;
	bool done;
	struct point_set told; /* from `next` on */
};

static void *grid_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct grid *g = xcalloc(1, sizeof(*g));

	(void)opt->seed;
	g->space = space;
	g->next = xcalloc(space->n, sizeof(*g->next));
	point_first(space, g->next);
	point_set_init(&g->told, space->n);
	return g;
}

static bool grid_ask(void *state, double *point)
{
	struct grid *g = state;
	bool found = false;

	while (!g->done && !found) {
		memcpy(point, g->next, g->space->n * sizeof(*point));
		found = point_set_find(&g->told, point) == POINT_NONE;
		g->done = !point_step(g->space, g->next);
	}
	return found;
}

static void grid_tell(void *state, const double *point, const struct sampler_result *result)
{
	struct grid *g = state;

	(void)result;
	if (!g->done && point_compare(point, g->next, g->space->n) >= 0)
		point_set_add(&g->told, point);
}

static void grid_end(void *state)
{
	struct grid *g = state;

	point_set_release(&g->told);
	free(g->next);
	free(g);
}

const struct sampler_type sampler_grid = {
	.name = "grid",
	.aliases = "GridSampler",
	.several = true,
	.never_learns = true,
	.listed = true,
	.summary = "every point in a fixed order",
	.start = grid_start,
	.ask = grid_ask,
	.tell = grid_tell,
	.end = grid_end,
};
