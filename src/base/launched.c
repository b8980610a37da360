#include "base/launched.h"

#include <stdlib.h>

/* the first of these that is set, as a number; -1: none is */
static int number(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return atoi(value);
	}
	return -1;
}

static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", NULL };

bool launched_by_mpi(void)
{
	return number(ranks) >= 0;
}

bool launched_as_rank(int *rank)
{
	static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
					     NULL };
	int size = number(sizes);

	*rank = number(ranks);
	if (*rank < 0) {
		*rank = 0;
		return false;
	}
	return size < 0 || size > 1;
}
