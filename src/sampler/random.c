/* Points in random order. The order itself remembers what was asked; only what is told beside it is kept. */
#include <stdlib.h>

#include "sampler/shuffle.h"
#include "sampler/type.h"

struct random {
	struct shuffle order;
	struct point_set
		seen; /* told before the order came to them; those asked, where it does not remember */
};

static void *random_start(const struct point_space *space, const struct sampler_options *opt)
{
	struct random *r = xcalloc(1, sizeof(*r));

	shuffle_init(&r->order, space, opt->seed);
	point_set_init(&r->seen, space->n);
	return r;
}

static bool random_ask(void *state, double *point)
{
	struct random *r = state;

	if (!shuffle_next_unseen(&r->order, &r->seen, point))
		return false;
	if (!shuffle_remembers(&r->order))
		point_set_add(&r->seen, point);
	return true;
}

static void random_tell(void *state, const double *point, const struct sampler_result *result)
{
	struct random *r = state;

	(void)result;
	if (!shuffle_passed(&r->order, point))
		point_set_add(&r->seen, point);
}

static void random_end(void *state)
{
	struct random *r = state;

	point_set_release(&r->seen);
	free(r);
}

const struct sampler_type sampler_random = {
	.name = "random",
	.aliases = "RandomSampler",
	.several = true,
	.never_learns = true,
	.summary = "every point in random order, without repetition",
	.start = random_start,
	.ask = random_ask,
	.tell = random_tell,
	.end = random_end,
};
