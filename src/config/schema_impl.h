/* For the files of the schema: how its rows are written, and the words that keys take. */
#ifndef CONFIG_SCHEMA_IMPL_H
#define CONFIG_SCHEMA_IMPL_H

#include "config/schema.h"

#define AT(member) .offset = offsetof(struct config, member)
#define IN(type, member) .offset = offsetof(struct type, member)
#define LIMITS(lo, hi) .min = (lo), .max = (hi)
#define WORD(name, value)                                                                                    \
	{                                                                                                    \
		name, value, NULL                                                                            \
	}
#define WORDS(table) .words = (table)
#define USED(commands) .used = (commands)
/* what makes plans; what runs them; what also times or scores them */
#define PLANS (CONFIG_TUNE | CONFIG_SEARCH | CONFIG_QUANTIZE | CONFIG_INSPECT | CONFIG_SENSITIVITY)
#define TRIES (CONFIG_TUNE | CONFIG_SEARCH | CONFIG_SENSITIVITY)
#define SCORES (TRIES | CONFIG_EVAL)
#define NOT_BENCH .used = CONFIG_COMMANDS & ~CONFIG_BENCH
#define SEARCHES (CONFIG_TUNE | CONFIG_SEARCH)
#define END                                                                                                  \
	{                                                                                                    \
		.name = NULL                                                                                 \
	}

extern const struct word approaches[], frameworks[], formats[], backends[], graph_levels[], granularities[],
	schemes[], dtypes[], algorithms[], weight_algorithms[], bit_words[], group_words[], level_words[],
	last_batches[], criteria[], objectives[], quant_levels[], quant_types[], directions[];

#endif
