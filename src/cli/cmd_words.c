#include "cli/cli.h"

#include <string.h>

static int run(int argc, char **argv);

const struct command cmd_words = {
	.name = "words",
	.args = "commands|strategies|metrics|recipes|algorithms",
	.summary = "the words that an option takes, for the shells' completion",
	.run = run,
	.hidden = true,
};

static const char *command_word(size_t i, const char **summary)
{
	static const struct command *const commands[] = {
#define COMMAND(id) &cmd_##id,
#include "cli/list.h"
#undef COMMAND
	};

	if (i == sizeof(commands) / sizeof(commands[0]))
		return NULL;
	*summary = commands[i]->summary;
	return commands[i]->hidden ? "" : commands[i]->name;
}

static const char *recipe_word(size_t i, const char **summary)
{
	struct fettle_recipe r = FETTLE_RECIPE_INIT;

	if (!fettle_recipe(i, &r))
		return NULL;
	*summary = r.summary;
	return r.name;
}

static const char *cpu_word(size_t i, const char **summary)
{
	struct fettle_cpu_kind k = FETTLE_CPU_KIND_INIT;

	if (!fettle_cpu_kind(i, &k))
		return NULL;
	*summary = k.summary;
	return k.name;
}

static int run(int argc, char **argv)
{
	static const struct {
		const char *name;
		const char *(*word)(size_t i, const char **summary);
	} kinds[] = { { "commands", command_word },
		      { "strategies", fettle_strategy_name },
		      { "metrics", fettle_metric_name },
		      { "recipes", recipe_word },
		      { "algorithms", fettle_algorithm_name },
		      { "block_algorithms", fettle_block_algorithm_name },
		      { "cpus", cpu_word } };
	const char *word, *summary;
	size_t k, i;

	for (k = 0; argc == 1 && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (strcmp(argv[0], kinds[k].name) != 0)
			continue;
		for (i = 0; (word = kinds[k].word(i, &summary)); i++)
			if (*word)
				printf("%s\t%s\n", word, summary);
		return 0;
	}
	return usage_error(&cmd_words, "need one of %s", cmd_words.args);
}
