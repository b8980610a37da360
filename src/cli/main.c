#include "cli/cli.h"

#include <string.h>

static const struct command *const commands[] = {
#define COMMAND(id) &cmd_##id,
#include "cli/list.h"
#undef COMMAND
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void help(FILE *f)
{
	size_t i;

	fputs("fettle makes ONNX models small and fast without breaking them.\n\n"
	      "usage: fettle COMMAND [OPTION...]\n\n",
	      f);
	for (i = 0; i < N_COMMANDS; i++)
		if (!commands[i]->hidden)
			fprintf(f, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n'fettle COMMAND --help' tells a command's options; 'man fettle' tells the rest.\n"
	      "Exit codes: 0 done, 1 finished but the target was not met, 2 bad usage or input, 3 the system "
	      "failed.\n",
	      f);
}

static int version(void)
{
	bool saturates;
	const char *cpu = fettle_cpu(&saturates);

	printf("fettle %s on ONNX Runtime %s, %s%s\n", fettle_version(), fettle_runtime_version(), cpu,
	       saturates ? " (u8 x s8 products saturate: weights get 7 bits)" : "");
	return 0;
}

int main(int argc, char **argv)
{
	const char *names[N_COMMANDS], *near;
	size_t i, shown = 0;

	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0)
		return version();
	for (i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i]->name) == 0)
			return commands[i]->run(argc - 2, argv + 2);
		if (!commands[i]->hidden)
			names[shown++] = commands[i]->name;
	}
	near = nearest_word(argv[1], names, shown);
	fprintf(stderr, "fettle: no command '%s'%s%s%s; 'fettle --help' lists them\n", argv[1],
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	return EXIT_USAGE;
}
