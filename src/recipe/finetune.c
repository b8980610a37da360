/* Its pass is the folder finetune. */
#include "recipe/recipe.h"

const char *const finetune_algorithms[] = { "off", "adaround", "adaquant", "gram" };
const char *const finetune_granularities[] = { "layer", "block" };

struct finetune finetune_defaults(enum finetune_algorithm a)
{
	return (struct finetune){
		.algorithm = a,
		.batch_size = 32,
		.iterations = 1000,
		.learning_rate = a == FINETUNE_ADAQUANT ? 0.001 : 0.01,
		.seed = 1,
		.selective_update = true,
		.update_bias = true,
		.drop_ratio = 1,
		.reg_param = 0.01,
		.beta_range = { 20, 2 },
		.warm_start = 0.2,
	};
}

static void start(struct recipes *r, int way)
{
	r->finetune = finetune_defaults((enum finetune_algorithm)way);
}

#define AT(member) .offset = offsetof(struct recipes, finetune.member)
#define LIMITS(lo, hi) .min = (lo), .max = (hi)
#define SGD                                                                                                  \
	.ways = 1u << FINETUNE_ADAROUND | 1u << FINETUNE_ADAQUANT,                                           \
	.why = "gram does not iterate; adaround and adaquant do"
#define ADAROUND .ways = 1u << FINETUNE_ADAROUND, .why = "only adaround has it"
/* In the order in which plans have them. */
static const struct recipe_key keys[] = {
	{ "OptimAlgorithm", "how weights are rounded: gram computes it, adaround and adaquant learn it",
	  RECIPE_WORD, AT(algorithm), .words = finetune_algorithms, .n_words = N_FINETUNE_ALGORITHMS,
	  .searched = true },
	{ "BetaRange", "the exponent of the regulariser, from the first to the second", RECIPE_PAIR,
	  AT(beta_range), LIMITS(1e-6, 1e6), ADAROUND },
	{ "Granularity", "whether roundings are judged by the output of their op or of their block",
	  RECIPE_WORD, AT(granularity), .words = finetune_granularities, .n_words = N_FINETUNE_GRANULARITIES,
	  .newer = true, .brief = true, .searched = true },
	{ "DataSize", "how many samples; 0: all there are", RECIPE_COUNT, AT(data_size), LIMITS(0, 1 << 30),
	  .searched = true },
	{ "BatchSize", "samples per iteration", RECIPE_COUNT, AT(batch_size), LIMITS(1, 1 << 20), SGD,
	  .searched = true },
	{ "NumIterations", "iterations for each op", RECIPE_COUNT, AT(iterations), LIMITS(1, 1 << 30), SGD,
	  .searched = true },
	{ "LearningRate", "of Adam, in integer steps", RECIPE_REAL, AT(learning_rate), LIMITS(1e-30, 1e6),
	  SGD, .searched = true },
	{ "FixedSeed", "the seed of the order of samples", RECIPE_SEED, AT(seed),
	  LIMITS(0, 9007199254740992.), SGD, .searched = true },
	{ "EarlyStop", "ends when the error on samples held out stops falling", RECIPE_BOOL, AT(early_stop),
	  SGD, .searched = true },
	{ "SelectiveUpdate", "an op whose error did not fall keeps its weights", RECIPE_BOOL,
	  AT(selective_update), .searched = true },
	{ "UpdateBias", "learns biases, too", RECIPE_BOOL, AT(update_bias) },
	{ "DropRatio", "share of the input that comes from the quantized model; 1: all", RECIPE_REAL,
	  AT(drop_ratio), LIMITS(0, 1) },
	{ "RegParam", "the weight of the regulariser", RECIPE_REAL, AT(reg_param), LIMITS(0, 1e6), ADAROUND },
	{ "WarmStart", "share of the iterations without regulariser", RECIPE_REAL, AT(warm_start),
	  LIMITS(0, 1), ADAROUND },
	{ .name = NULL },
};

const struct recipe recipe_finetune = {
	.name = "finetune",
	.alias = "include_fast_ft",
	.summary = "weights are rounded so that ops' outputs change least (include_fast_ft)",
	.values = "on (gram), off, gram, adaround, adaquant; each also with :block",
	RECIPE_MEMBER(finetune),
	.words = finetune_algorithms,
	.n_words = N_FINETUNE_ALGORITHMS,
	.map = "FastFinetune",
	.keys = keys,
	.off = "neither finetune nor include_fast_ft is on",
	.usual_way = FINETUNE_GRAM,
	.start = start,
	.tuned = true,
	.costly = true,
	.changes_numbers = true,
	.needs_data = true,
};
