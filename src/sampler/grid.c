/* Every point in a fixed order, the last parameter changing fastest. The seed changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "sampler/type.h"

struct grid {
	const struct point_space *space;
	uint16_t *next;
	bool done;
	struct point_set told; /* from `next` on */
};

static void *grid_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct grid *g = xcalloc(1, sizeof(*g));

	(void)opt->seed;
	g->space = space;
	g->next = xcalloc(space->n, sizeof(*g->next));
	point_set_init(&g->told, space->n);
	return g;
}

static bool grid_ask(void *state, uint16_t *point)
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

static void grid_tell(void *state, const uint16_t *point, double cost)
{
	struct grid *g = state;

	(void)cost;
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
	.summary = "every point in a fixed order",
	.start = grid_start,
	.ask = grid_ask,
	.tell = grid_tell,
	.end = grid_end,
};
