#include "cli/cli.h"

static int run(int argc, char **argv)
{
	(void)argv;
	printf("dummy: %d arguments\n", argc);
	return EXIT_MET;
}

const struct command cmd_dummy = {
	.name = "dummy",
	.args = "[ARGUMENT...]",
	.summary = "counts its arguments",
	.run = run,
};
