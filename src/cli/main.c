#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/str.h"

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
		if (!commands[i]->hidden) {
			fprintf(f, "  %-12s ", commands[i]->name);
			print_indented(f, 15, 65, commands[i]->summary);
		}
	fputs("\n'fettle help COMMAND' lists a command's options; 'man fettle-COMMAND' says more.\n"
	      "Exit codes: 0 done, 1 finished but the target was not met, 2 bad usage or input,\n"
	      "3 the system failed.\n",
	      f);
}

static int version(void)
{
	bool saturates;
	const char *cpu = fettle_cpu(&saturates);

	struct fettle_cpu_kind k = FETTLE_CPU_KIND_INIT;
	size_t i;

	printf("fettle %s on ONNX Runtime %s\n", fettle_version(), fettle_runtime_version());
	for (i = 0; fettle_cpu_kind(i, &k); i++)
		if (strcmp(k.name, cpu) == 0)
			print_wrapped(stdout, "CPU %s: %s%s", cpu, k.summary,
				      saturates ? "; u8 x s8 products saturate, so int8 weights get 7 bits"
						: "");
	return 0;
}

/*
 * Memory of a megabyte or more goes back to the system as soon as it is freed. glibc would learn to keep it for the
 * next block like it, but copies of weights come and go in all sizes, and the holes add up to another model.
 */
static void give_back_large(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

static int run(const char *name, int argc, char **argv)
{
	const char *names[N_COMMANDS], *near;
	size_t i, shown = 0;

	for (i = 0; i < N_COMMANDS; i++) {
		if (strcmp(name, commands[i]->name) == 0) {
			if (!commands[i]
				     ->hidden) /* such a one measures memory as a user's program needs it */
				give_back_large();
			return commands[i]->run(argc, argv);
		}
		if (!commands[i]->hidden)
			names[shown++] = commands[i]->name;
	}
	near = str_nearest(name, names, shown);
	fprintf(stderr, "fettle: no command '%s'%s%s%s; 'fettle --help' lists them\n", name,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	return EXIT_USAGE;
}

static bool is(const char *arg, const char *word, const char *letter)
{
	return strcmp(arg, word) == 0 || strcmp(arg, letter) == 0;
}

int main(int argc, char **argv)
{
	char *ask[] = { argv[0], (char[]){ "--help" }, NULL };

	/* unless the user wants it: ONNX Runtime's own builds report to their maker, and leave files in TMPDIR */
	setenv("ORT_DISABLE_TELEMETRY", "1", 0);
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (is(argv[1], "--version", "-V"))
		return version();
	if (strcmp(argv[1], "help") == 0 && argc > 2)
		return run(argv[2], 1, ask + 1);
	if (is(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return 0;
	}
	return run(argv[1], argc - 2, argv + 2);
}
