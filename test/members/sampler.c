/* Points in random order, whatever it is told. */
#include <stdlib.h>

#include "sampler/shuffle.h"
#include "sampler/type.h"

struct dummy {
	struct shuffle order;
	struct point_set seen;
};

static void *start(const struct point_space *space, const struct sampler_options *opt)
{
	struct dummy *d = xcalloc(1, sizeof(*d));

	shuffle_init(&d->order, space, opt->seed);
	point_set_init(&d->seen, space->n);
	return d;
}

static bool ask(void *state, double *point)
{
	struct dummy *d = state;

	if (!shuffle_next_unseen(&d->order, &d->seen, point))
		return false;
	point_set_add(&d->seen, point);
	return true;
}

static void tell(void *state, const double *point, const struct sampler_result *r)
{
	(void)state;
	(void)point;
	(void)r;
}

static void end(void *state)
{
	struct dummy *d = state;

	point_set_release(&d->seen);
	free(d);
}

const struct sampler_type sampler_dummy = {
	.name = "dummy",
	.summary = "every point in random order",
	.start = start,
	.ask = ask,
	.tell = tell,
	.end = end,
};
