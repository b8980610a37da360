#include "config/schema.h"

#include <string.h>

#include "config/read.h"
#include "config/recipe_keys.h"
#include "config/schema_impl.h"

static const struct key model_keys[] = {
	{ "name", KEY_TEXT,
	  .help = "names the folder of the run in fettle_workspace; the model's file name otherwise",
	  .example = "resnet50", AT(model.name), USED(SEARCHES), .incidental = true },
	/* what it implies is in the identity */
	{ "framework", KEY_WORD,
	  .help = "INC's name for the kind of result: onnxrt_qlinearops asks for the QOperator format, "
		  "onnxrt_integerops for dynamic quantization; of other frameworks only the meaning of "
		  "transforms depends on it",
	  .example = "onnxrt_qdq", AT(model.framework), WORDS(frameworks), .otherwise = "NA",
	  .checked = "onnx", USED(PLANS), .incidental = true },
	{ "inputs", KEY_TEXTS,
	  .help = "the model's inputs, in the order in which a dataset's arrays feed them",
	  .example = "[input_ids, attention_mask]", AT(model.inputs), .empty = true,
	  USED(SCORES | CONFIG_QUANTIZE | CONFIG_BENCH) },
	{ "outputs", KEY_TEXTS,
	  .help = "the outputs that the metric looks at; the one that fits the labels otherwise",
	  .example = "[logits]", AT(model.outputs), .empty = true, USED(SCORES) },
	END,
};

/* beside those of the recipes themselves */
static const struct key other_recipe_keys[] = {
	{ "optypes_to_exclude_output_quant", KEY_TEXTS, .help = "op types whose output is not quantized",
	  .example = "[Softmax]", AT(recipes.optypes_to_exclude_output_quant), .empty = true },
	{ "graph_optimization_level", KEY_WORD, .help = "how far the runtime optimises the graph in trials",
	  AT(recipes.graph_optimization_level), WORDS(graph_levels), USED(TRIES) },
	{ "include_auto_mp", KEY_BOOL,
	  .help = "ops go to 16 bits, then to fp32, the most sensitive first, until the target holds",
	  AT(recipes.include_auto_mp), .open = true },
	{ "rewrite_graph", KEY_BOOL,
	  .help = "the fp32 graph is rewritten first, where fewer ops compute the same",
	  AT(recipes.rewrite_graph), USED(PLANS) },
	{ "ffn_matmul_quantization", KEY_UNUSED, .why = "MatMul is tuned op by op" },
	{ "layer_wise_quant", KEY_UNUSED, .why = "memory is bounded anyway" },
	END,
};

static const struct key filter_keys[] = {
	{ "LabelBalance", KEY_CUSTOM, .help = "takes only images with this many objects, for detection",
	  .example = "{ size: 1 }", IN(config_dataloader, objects), .custom = &custom_label_balance,
	  .quiet = true },
	END,
};
static const struct key dataloader_keys[] = {
	{ "batch_size", KEY_INT, .help = "samples per run of the model", IN(config_dataloader, batch_size),
	  LIMITS(1, 1 << 20), NOT_BENCH },
	{ "last_batch", KEY_WORD,
	  .help = "what becomes of a last batch that is not full: rollover keeps it, discard leaves it out",
	  IN(config_dataloader, last_batch), WORDS(last_batches), NOT_BENCH },
	{ "shuffle", KEY_BOOL, .help = "samples come in a random order that follows from random_seed",
	  IN(config_dataloader, shuffle), NOT_BENCH },
	{ "dataset", KEY_CUSTOM,
	  .help = "the samples: a path, or a kind of dataset with its keys; DATASETS lists them",
	  .example = "{ ImageFolder: { root: images/val } }", IN(config_dataloader, dataset),
	  .custom = &custom_dataset },
	{ "transform", KEY_CUSTOM,
	  .help = "what is done to each sample, in this order; TRANSFORMS lists them",
	  .example = "{ Resize: { size: 256 }, CenterCrop: { size: 224 } }",
	  IN(config_dataloader, transforms), .custom = &custom_transforms },
	{ "filter", KEY_MAP, .help = "which samples are taken", .keys = filter_keys },
	{ "distributed", KEY_UNUSED, .why = "trials are distributed, not data" },
	{ "num_workers", KEY_UNUSED, .why = "data is read by the threads of the evaluation" },
	{ "pin_memory", KEY_UNUSED, .why = "there is only the memory of the cpu" },
	END,
};

static const struct key calibration_keys[] = {
	{ "sampling_size", KEY_INTS,
	  .help = "how many samples to calibrate on; of several, the search tries each",
	  AT(calibration.sampling_size), LIMITS(1, 1 << 30) },
	{ "iterations", KEY_INT, .help = "the same in batches of the dataloader", .example = "10",
	  AT(calibration.iterations), LIMITS(0, 1 << 20) },
	{ "dataloader", KEY_MAP, .help = "the samples to calibrate on", AT(calibration.dataloader),
	  .keys = dataloader_keys, USED(TRIES | CONFIG_QUANTIZE) },
	END,
};

/* INC's weight.bit and activation.compute_dtype are for other runtimes. */
#define SIDE_KEYS(algorithms_)                                                                               \
	{ "granularity",                                                                                     \
	  KEY_ALLOWED,                                                                                       \
	  .help = "one scale for the tensor, or one for each channel",                                       \
	  .example = "per_channel",                                                                          \
	  IN(config_side, granularity),                                                                      \
	  WORDS(granularities) },                                                                            \
		{ "scheme",                                                                                  \
		  KEY_ALLOWED,                                                                               \
		  .help = "ranges around zero, or with a zero point",                                        \
		  .example = "sym",                                                                          \
		  IN(config_side, scheme),                                                                   \
		  WORDS(schemes) },                                                                          \
		{ "dtype",                                                                                   \
		  KEY_ALLOWED,                                                                               \
		  .help = "the integer types that may be used; fp32 leaves ops alone",                       \
		  .example = "[int8, fp32]",                                                                 \
		  IN(config_side, dtype),                                                                    \
		  WORDS(dtypes) },                                                                           \
		{ "algorithm",                                                                               \
		  KEY_ALLOWED,                                                                               \
		  .help = "how ranges are found",                                                            \
		  .example = "[minmax, kl]",                                                                 \
		  IN(config_side, algorithm),                                                                \
		  WORDS(algorithms_) },                                                                      \
		{ "bit", KEY_UNUSED, .why = "the dtype says how many bits there are" },                      \
	{                                                                                                    \
		"compute_dtype", KEY_UNUSED, .why = "ONNX Runtime computes in the dtype"                     \
	}
static const struct key side_keys[] = { SIDE_KEYS(algorithms), END };
static const struct key weight_keys[] = {
	SIDE_KEYS(weight_algorithms),
	{ "bits", KEY_ALLOWED, .help = "of a weight-only weight", .example = "4", IN(config_side, bits),
	  WORDS(bit_words) },
	{ "group_size", KEY_ALLOWED, .help = "how many weight-only weights share a scale", .example = "32",
	  IN(config_side, group_size), WORDS(group_words) },
	{ "accuracy_level", KEY_ALLOWED,
	  .help = "how the runtime computes with weight-only weights: in floats (0, 1) or in int8 (4)",
	  .example = "4", IN(config_side, level), WORDS(level_words) },
	END,
};
/* of weight-only weights, for the whole model */
static const struct key weight_only_keys[] = {
	{ "bits", KEY_ALLOWED, AT(quantization.model_wise.weight.bits), WORDS(bit_words), .alias = true },
	{ "group_size", KEY_ALLOWED, AT(quantization.model_wise.weight.group_size), WORDS(group_words),
	  .alias = true },
	{ "scheme", KEY_ALLOWED, AT(quantization.model_wise.weight.scheme), WORDS(schemes), .alias = true },
	{ "algorithm", KEY_ALLOWED, AT(quantization.model_wise.weight.algorithm), WORDS(weight_algorithms),
	  .alias = true },
	{ "accuracy_level", KEY_ALLOWED, AT(quantization.model_wise.weight.level), WORDS(level_words),
	  .alias = true },
	END,
};
const struct key constraint_keys[] = {
	{ "weight", KEY_MAP, .help = "of weights", IN(config_constraint, weight), .keys = weight_keys },
	{ "activation", KEY_MAP, .help = "of activations", IN(config_constraint, activation),
	  .keys = side_keys },
	END,
};

#define NO_BF16 "ONNX Runtime has no bf16 or fp16 kernels for the cpu, so that fp32 stays"
#define NO_TRAINING "fettle does not train: give it the trained model and leave this section out"
static const struct key quantization_keys[] = {
	{ "approach", KEY_WORD,
	  .help = "static int8, dynamic int8, both as each op gains most (auto), weights alone in few bits, "
		  "or all of these; unless one is named, tune has static and dynamic",
	  AT(quantization.approach), WORDS(approaches) },
	{ "quant_format", KEY_WORD,
	  .help = "Q/DQ pairs around float ops, or integer ops; given as QDQ, weight-only ops are pairs too",
	  AT(quantization.format), WORDS(formats), USED(TRIES | CONFIG_QUANTIZE) },
	{ "cpu", KEY_TEXT,
	  .help = "plans for another kind of CPU ('fettle inspect --cpus' lists them); this one otherwise",
	  .example = "avx2", AT(quantization.cpu), USED(PLANS) },
	{ "recipes", KEY_MAP,
	  .help = "changes to how the whole model is quantized. tune and search try those that are not set.",
	  .made = KEYS_RECIPES },
	{ "calibration", KEY_MAP, .help = "the samples that ranges are taken from",
	  .keys = calibration_keys },
	{ "model_wise", KEY_MAP,
	  .help = "what the ops of the whole model may use. Constraints only take options away.",
	  AT(quantization.model_wise), .keys = constraint_keys },
	{ "weight_only", KEY_MAP, .help = "the same as model_wise.weight, for weight-only quantization",
	  .keys = weight_only_keys },
	{ "op_type_wise", KEY_CUSTOM, .help = "what ops of a type may use, with the keys of model_wise",
	  .example = "{ Conv: { weight: { dtype: [int8] } } }", AT(quantization.op_type_wise),
	  .custom = &custom_constraints },
	{ "op_wise", KEY_CUSTOM,
	  .help = "what ops may use, by name or by a regular expression that matches the beginning of names",
	  .example = "{ .*head.*: { weight: { dtype: [fp32] }, activation: { dtype: [fp32] } } }",
	  AT(quantization.op_wise), .custom = &custom_constraints },
	{ "optype_wise", KEY_CUSTOM, AT(quantization.op_type_wise), .custom = &custom_constraints,
	  .alias = true },
	{ "op_type_dict", KEY_CUSTOM, AT(quantization.op_type_wise), .custom = &custom_constraints,
	  .alias = true },
	{ "op_name_dict", KEY_CUSTOM, AT(quantization.op_wise), .custom = &custom_constraints,
	  .alias = true },
	{ "calibration_sampling_size", KEY_INTS, AT(calibration.sampling_size), LIMITS(1, 1 << 30),
	  .alias = true },
	{ "quant_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true },
	{ "optimization_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true,
	  .yields = true },
	{ "use_bf16", KEY_UNUSED, .why = NO_BF16 },
	{ "excluded_precisions", KEY_UNUSED, .why = NO_BF16 },
	{ "advance", KEY_UNUSED, .why = "recipes.weight_correction corrects weights" },
	{ "train", KEY_REFUSED, .why = NO_TRAINING },
	END,
};

static const struct key accuracy_configs_keys[] = {
	{ "intra_num_of_threads", KEY_INT, .help = "threads for the runtime; all cores otherwise",
	  .example = "4", AT(evaluation.threads), LIMITS(0, 4096),
	  USED(SCORES | CONFIG_QUANTIZE | CONFIG_BENCH) },
	{ "inter_num_of_threads", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "cores_per_instance", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "num_of_instance", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "kmp_blocktime", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "kmp_affinity", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	END,
};
/* Of the label, and of outputs. */
static const struct key squad_keys[] = {
	{ "label_file", KEY_PATH, .help = "the questions, in SQuAD's form", .example = "dev-v1.1.json",
	  AT(evaluation.dataloader.squad.label_file), .quiet = true, USED(SCORES) },
	{ "vocab_file", KEY_PATH, .help = "the model's WordPiece vocabulary", .example = "vocab.txt",
	  AT(evaluation.dataloader.squad.vocab_file), .quiet = true, USED(SCORES) },
	{ "do_lower_case", KEY_BOOL, .help = "of models without capitals",
	  AT(evaluation.dataloader.squad.lower), .quiet = true, USED(SCORES) },
	{ "max_seq_length", KEY_INT, .help = "tokens of a sample", .example = "384",
	  AT(evaluation.dataloader.squad.max_seq_length), LIMITS(1, 1e6), .quiet = true, USED(SCORES) },
	END,
};
static const struct key postprocess_transform_keys[] = {
	{ "LabelShift", KEY_INT64, .help = "is subtracted from labels", .example = "1",
	  AT(evaluation.dataloader.label_shift), LIMITS(-1e9, 1e9), .quiet = true },
	{ "Collect", KEY_UNUSED, .why = "a metric sees all outputs anyway" },
	{ "COCOPreds", KEY_UNUSED, .why = "the metric knows the outputs of detectors" },
	{ "SquadV1", KEY_MAP, .help = "answers to questions, for the metric SquadF1", .keys = squad_keys },
	{ "SquadV1ModelZoo", KEY_MAP, .keys = squad_keys, .alias = true },
	END,
};
static const struct key postprocess_keys[] = {
	{ "transform", KEY_MAP, .help = "what is done to labels and outputs",
	  .keys = postprocess_transform_keys },
	END,
};
static const struct key accuracy_keys[] = {
	{ "metric", KEY_CUSTOM,
	  .help = "what accuracy is, with its parameters; METRICS lists them. What suits the labels "
		  "otherwise.",
	  .example = "{ topk: 5 }", AT(evaluation.metric), .custom = &custom_metric, USED(SCORES) },
	{ "anno_path", KEY_PATH,
	  .help = "lines NAME: NUMBER, for models whose classes have other numbers than the data's",
	  .example = "label_map.yaml", AT(evaluation.dataloader.label_map), .quiet = true, USED(SCORES) },
	{ "vocab_file", KEY_PATH, .help = "a piece per line: bleu, wer and cer then compare tokens as text",
	  .example = "vocab.txt", AT(evaluation.dataloader.vocabulary), .quiet = true, USED(SCORES) },
	{ "eval_cmd", KEY_TEXT, .help = "a program that prints the accuracy of {model}",
	  .example = "python3 score.py {model}", AT(evaluation.command), .quiet = true,
	  USED(CONFIG_TUNE | CONFIG_SEARCH | CONFIG_EVAL) },
	{ "eval_server", KEY_TEXT,
	  .help = "a program that stays: it reads a path per line and answers each with a number",
	  .example = "python3 server.py", AT(evaluation.server), .quiet = true,
	  USED(CONFIG_TUNE | CONFIG_SEARCH | CONFIG_EVAL) },
	{ "iteration", KEY_INT, .help = "how many batches to evaluate; -1: all", .example = "-1",
	  AT(evaluation.iterations), LIMITS(-1, 1 << 30), USED(SCORES) },
	{ "dataloader", KEY_MAP, .help = "the samples to evaluate on", AT(evaluation.dataloader),
	  .keys = dataloader_keys, USED(SCORES | CONFIG_BENCH) },
	{ "configs", KEY_MAP, .help = "threads of the evaluation", .keys = accuracy_configs_keys },
	{ "multi_metrics", KEY_CUSTOM, AT(evaluation.metric), .custom = &custom_metric, .alias = true,
	  USED(SCORES) },
	{ "postprocess", KEY_MAP, .help = "what is done before the metric", .keys = postprocess_keys,
	  USED(SCORES) },
	END,
};
/* INC's meaning: so many instances at once, each on so many cores. Both are for latency alone. */
static const struct key performance_configs_keys[] = {
	{ "cores_per_instance", KEY_INT,
	  .help = "threads of a session whose latency is measured; as for everything else otherwise",
	  .example = "4", AT(performance.threads), LIMITS(0, 1024), USED(SEARCHES) },
	{ "num_of_instance", KEY_INT, .help = "sessions that run at once while latency is measured",
	  AT(performance.instances), LIMITS(1, 256), USED(SEARCHES | CONFIG_BENCH) },
	{ "intra_num_of_threads", KEY_INT, AT(performance.threads), LIMITS(0, 1024), USED(SEARCHES),
	  .alias = true, .yields = true },
	{ "inter_num_of_threads", KEY_UNUSED, .why = "only cores_per_instance is used" },
	{ "kmp_blocktime", KEY_UNUSED, .why = "only cores_per_instance is used" },
	{ "kmp_affinity", KEY_UNUSED, .why = "only cores_per_instance is used" },
	END,
};
#define SAME_DATA KEY_UNUSED, .why = "performance is measured on the data of the accuracy"
static const struct key performance_dataloader_keys[] = {
	{ "batch_size", KEY_INTS,
	  .help = "samples per run while latency is measured; of several, the first decides and all are "
		  "reported",
	  AT(performance.batches), LIMITS(1, 1 << 16), USED(SEARCHES) },
	{ "last_batch", SAME_DATA },
	{ "shuffle", SAME_DATA },
	{ "dataset", SAME_DATA },
	{ "transform", SAME_DATA },
	{ "filter", SAME_DATA },
	{ "distributed", SAME_DATA },
	{ "num_workers", SAME_DATA },
	{ "pin_memory", SAME_DATA },
	END,
};
static const struct key performance_keys[] = {
	{ "configs", KEY_MAP, .help = "threads and sessions", .keys = performance_configs_keys },
	{ "dataloader", KEY_MAP, .help = "only its batch_size counts", .keys = performance_dataloader_keys },
	{ "warmup", KEY_UNUSED, .why = "models are warmed up as long as that takes" },
	{ "iteration", KEY_UNUSED, .why = "timing ends when the result is certain" },
	{ "postprocess", KEY_UNUSED, .why = "what is timed is the model" },
	END,
};
static const struct key evaluation_keys[] = {
	{ "accuracy", KEY_MAP, .help = "how accuracy is measured", .keys = accuracy_keys },
	{ "performance", KEY_MAP, .help = "how latency is measured", .keys = performance_keys },
	END,
};

/* The options of all strategies; they are beside the name or under strategy_kwargs. */
#define RANKING .strategies = "auto fettle conservative basic mse mse_v2 hawq_v2 custom"
#define SIGOPT .strategies = "sigopt"
#define TPE .strategies = "tpe"
#define STRATEGY_OPTIONS                                                                                     \
	{ "confidence_batches",                                                                              \
	  KEY_INT,                                                                                           \
	  .help = "batches of samples by which ops are ranked",                                              \
	  AT(tuning.confidence_batches),                                                                     \
	  LIMITS(1, 1 << 20),                                                                                \
	  RANKING },                                                                                         \
		{ "hawq_v2_loss",                                                                            \
		  KEY_TEXT,                                                                                  \
		  .help = "a loss that a plug-in brings; cross-entropy or squared error otherwise",          \
		  .example = "my_loss",                                                                      \
		  AT(tuning.hawq_v2_loss),                                                                   \
		  .strategies = "hawq_v2 custom" },                                                          \
		{ "sigopt_api_token",                                                                        \
		  KEY_TEXT,                                                                                  \
		  .help = "the token of a SigOpt server; better in SIGOPT_API_TOKEN",                        \
		  .example = "abc",                                                                          \
		  AT(tuning.sigopt_api_token),                                                               \
		  .secret = true,                                                                            \
		  .incidental = true,                                                                        \
		  SIGOPT },                                                                                  \
		{ "sigopt_project_id",                                                                       \
		  KEY_TEXT,                                                                                  \
		  .help = "the project on the server",                                                       \
		  .example = "my-project",                                                                   \
		  AT(tuning.sigopt_project_id),                                                              \
		  SIGOPT },                                                                                  \
		{ "sigopt_experiment_name", KEY_TEXT, .help = "the experiment on the server",                \
		  AT(tuning.sigopt_experiment_name), SIGOPT },                                               \
		{ "sigopt_api_url",                                                                          \
		  KEY_TEXT,                                                                                  \
		  .help = "the address of the server; SIGOPT_API_URL otherwise",                             \
		  .example = "https://sigopt.example.org",                                                   \
		  AT(tuning.sigopt_api_url),                                                                 \
		  SIGOPT },                                                                                  \
		{ "n_startup_trials",                                                                        \
		  KEY_INT,                                                                                   \
		  .help = "random trials before the first model of the results",                             \
		  AT(tuning.n_startup_trials),                                                               \
		  LIMITS(1, 1 << 20),                                                                        \
		  TPE },                                                                                     \
		{ "n_ei_candidates",                                                                         \
		  KEY_INT,                                                                                   \
		  .help = "candidates of which the most promising is tried",                                 \
		  AT(tuning.n_ei_candidates),                                                                \
		  LIMITS(1, 1 << 20),                                                                        \
		  TPE },                                                                                     \
		{ "gamma",          KEY_NUMBER,   .help = "the share of trials that counts as good",         \
		  AT(tuning.gamma), LIMITS(0, 1), TPE },                                                     \
		{ "prior_weight",          KEY_NUMBER,     .help = "the weight of the prior",                \
		  AT(tuning.prior_weight), LIMITS(0, 1e6), TPE },                                            \
		{ "accuracy_weight", KEY_UNUSED, .why = "the accuracy is a constraint" },                    \
	{                                                                                                    \
		"latency_weight", KEY_UNUSED, .why = "the accuracy is a constraint"                          \
	}

static const struct key strategy_kwargs_keys[] = { STRATEGY_OPTIONS, END };
static const struct key strategy_keys[] = {
	{ "name", KEY_TEXT, .help = "the order in which plans are tried; 'fettle strategies' lists them",
	  AT(tuning.strategy) },
	STRATEGY_OPTIONS,
	{ "strategy_kwargs", KEY_MAP, .keys = strategy_kwargs_keys, .alias = true },
	END,
};

/* a negative loss demands a gain */
#define LOSS(word, id, most)                                                                                 \
	{                                                                                                    \
		word, KEY_NUMBER, AT(tuning.tolerable_loss), LIMITS(-1e9, most),                             \
			.percent = true, .alias = true, .also = offsetof(struct config, tuning.criterion),   \
			.also_value = (id), .help = "criterion and tolerable_loss in one"                    \
	}
static const struct key criterion_keys[] = {
	{ "criterion", KEY_WORD,
	  .help = "whether the loss is a share of the fp32 model's accuracy or a difference from it",
	  AT(tuning.criterion), WORDS(criteria) },
	{ "tolerable_loss", KEY_NUMBER,
	  .help = "how much may be lost: 0.01 or 1%; a negative one demands a gain",
	  AT(tuning.tolerable_loss), LIMITS(-1e9, 1e9), .percent = true },
	{ "higher_is_better", KEY_BOOL,
	  .help = "false for errors; the metrics know it, an evaluator of your own does not",
	  AT(tuning.higher_is_better) },
	LOSS("relative", CRITERION_RELATIVE, 1),
	LOSS("absolute", CRITERION_ABSOLUTE, 1e9),
	END,
};

static const struct key objectives_keys[] = {
	{ "objective", KEY_WORDS, .help = "what is weighed", .example = "[accuracy, performance]",
	  AT(tuning.objectives), WORDS(objectives), .empty = true },
	{ "weight", KEY_NUMBERS, .help = "the weight of each; equal otherwise", .example = "[0.8, 0.2]",
	  AT(tuning.weights), LIMITS(0, 1e9), .empty = true },
	{ "higher_is_better", KEY_BOOLS,
	  .help = "turns one around; only accuracy is better when higher otherwise",
	  .example = "[true, false]", AT(tuning.higher_is_better_each), .empty = true },
	END,
};

#define EXIT_POLICY                                                                                          \
	{ "timeout",                                                                                         \
	  KEY_NUMBER,                                                                                        \
	  .help = "how long to look for something faster; 0: until the target is met",                       \
	  AT(tuning.timeout),                                                                                \
	  LIMITS(0, 1e9),                                                                                    \
	  .duration = true,                                                                                  \
	  USED(CONFIG_TUNE),                                                                                 \
	  .incidental = true },                                                                              \
	{                                                                                                    \
		"max_trials", KEY_INT, .help = "0: no limit", AT(tuning.max_trials), LIMITS(0, 1e9),         \
				       USED(CONFIG_TUNE), .incidental = true                                 \
	}
static const struct key exit_keys[] = {
	EXIT_POLICY,
	{ "performance_only", KEY_BOOL, .help = "any accuracy will do", AT(tuning.performance_only),
	  USED(SEARCHES) },
	END,
};
static const struct key tuning_criterion_keys[] = {
	EXIT_POLICY,
	{ "strategy", KEY_MAP, .keys = strategy_keys, .whole = "name", .alias = true },
	{ "strategy_kwargs", KEY_MAP, .keys = strategy_kwargs_keys, .alias = true },
	{ "objective", KEY_WORD, AT(tuning.objective), WORDS(objectives), .alias = true },
	END,
};

static const struct key workspace_keys[] = {
	{ "path", KEY_PATH, .help = "where the run is kept; a folder in fettle_workspace otherwise",
	  .example = "runs/first", AT(tuning.workspace), .incidental = true },
	{ "resume", KEY_PATH, .help = "continues the run of this workspace", .example = "runs/first",
	  AT(tuning.resume), .incidental = true },
	END,
};

static const struct key tuning_keys[] = {
	{ "quant_level", KEY_WORD,
	  .help = "0: the strategy conservative; 1: the strategy that is named; auto: the strategy auto",
	  AT(tuning.quant_level), WORDS(quant_levels), USED(CONFIG_TUNE) },
	{ "strategy", KEY_MAP,
	  .help = "which plans are tried, with the options of the strategy, which may also be under "
		  "strategy_kwargs",
	  .keys = strategy_keys, .whole = "name", USED(CONFIG_TUNE) },
	{ "strategy_kwargs", KEY_MAP, .keys = strategy_kwargs_keys, .alias = true },
	{ "accuracy_criterion", KEY_MAP, .help = "how much accuracy may be lost", .keys = criterion_keys,
	  USED(SEARCHES) },
	{ "objective", KEY_WORD,
	  .help = "what makes a plan better among those that meet the target: latency, size of the model, or "
		  "memory",
	  AT(tuning.objective), WORDS(objectives), USED(SEARCHES) },
	{ "multi_objectives", KEY_MAP,
	  .help = "several objectives at once, each in units of the fp32 model's", .keys = objectives_keys,
	  USED(SEARCHES) },
	{ "size_budget", KEY_TEXT,
	  .help = "looks for the most accurate model of this size instead: a share of the fp32 model's, or "
		  "bytes",
	  .example = "0.3", AT(tuning.size_budget), .quiet = true, USED(CONFIG_TUNE) },
	{ "exit_policy", KEY_MAP, .help = "when the search ends", .keys = exit_keys },
	{ "tuning_criterion", KEY_MAP, .keys = tuning_criterion_keys, .alias = true },
	{ "random_seed", KEY_INT64, .help = "the same seed gives the same run", AT(tuning.random_seed),
	  LIMITS(0, 9007199254740992.), USED(SCORES | CONFIG_QUANTIZE) },
	{ "tensorboard", KEY_BOOL, .help = "writes event files for TensorBoard to WORKSPACE/tensorboard",
	  AT(tuning.tensorboard), .incidental = true, USED(SEARCHES) },
	{ "workspace", KEY_MAP, .help = "where the run is kept; a path alone is its path",
	  .keys = workspace_keys, .whole = "path", USED(SEARCHES) },
	{ "diagnosis", KEY_UNUSED, .why = "every run keeps its trials, 'fettle history' shows them" },
	END,
};

/* The spaces of 'fettle search'. What is not set is not printed: there may be ten of them. */
#define SPACE_KEY(name, type, ...)                                                                           \
	{                                                                                                    \
		name, type, .quiet = true, __VA_ARGS__                                                       \
	}
/* limits and words are those of the recipe's settings */
static const struct key finetune_search_keys[] = {
	SPACE_KEY("OptimAlgorithm", KEY_WORDS, IN(config_space, optim_algorithm)),
	SPACE_KEY("Granularity", KEY_WORDS, IN(config_space, granularity)),
	SPACE_KEY("DataSize", KEY_INTS, IN(config_space, data_size)),
	SPACE_KEY("BatchSize", KEY_INTS, IN(config_space, batch_size)),
	SPACE_KEY("NumIterations", KEY_INTS, IN(config_space, num_iterations)),
	SPACE_KEY("LearningRate", KEY_NUMBERS, IN(config_space, learning_rate)),
	SPACE_KEY("NumIterLR", KEY_CUSTOM, .help = "pairs of NumIterations and LearningRate",
		  .example = "[[100, 0.1], [1000, 0.01]]", IN(config_space, num_iter_lr),
		  .custom = &custom_pairs),
	SPACE_KEY("FixedSeed", KEY_INTS, IN(config_space, fixed_seed)),
	SPACE_KEY("EarlyStop", KEY_BOOLS, IN(config_space, early_stop)),
	SPACE_KEY("SelectiveUpdate", KEY_BOOLS, IN(config_space, selective_update)),
	END,
};
static const struct key extra_option_keys[] = {
	SPACE_KEY("ActivationSymmetric", KEY_BOOLS, .help = "activations around zero",
		  .example = "[false, true]", IN(config_space, activation_symmetric)),
	SPACE_KEY("WeightSymmetric", KEY_BOOLS, .help = "weights around zero", .example = "[true]",
		  IN(config_space, weight_symmetric)),
	SPACE_KEY("CalibMovingAverage", KEY_BOOLS,
		  .help = "with MinMax: ranges are averages over the samples, in their order",
		  .example = "[false, true]", IN(config_space, calib_moving_average)),
	SPACE_KEY("CalibMovingAverageConstant", KEY_NUMBERS,
		  .help = "the share of each new sample in that average", .example = "[0.01, 0.1]",
		  IN(config_space, calib_moving_average_constant), LIMITS(1e-9, 1)),
	SPACE_KEY("Percentile", KEY_NUMBERS,
		  .help = "with Percentile: the share of values, in percent, that ranges hold",
		  .example = "[99.99, 99.999]", IN(config_space, percentile), LIMITS(50, 100)),
	SPACE_KEY("SmoothAlpha", KEY_CUSTOM,
		  .help = "with include_sq: how much of the width moves into weights, 0 to 1 or auto",
		  .example = "[0.5, auto]", IN(config_space, smooth_alpha), .custom = &custom_list_of_numbers,
		  .recipe = &recipe_smooth_quant, LIMITS(0, 1)),
	{ "FastFinetune", KEY_MAP,
	  .help = "with include_fast_ft: the settings of fine-tuning, as in "
		  "quantization.recipes.FastFinetune",
	  .made = KEYS_FINETUNE_SEARCH },
	END,
};
static const struct key space_keys[] = {
	SPACE_KEY("calibrate_method", KEY_WORDS,
		  .help = "how ranges are found; NonOverflow and MinMSE have scales that are powers of two",
		  .example = "[MinMax, Percentile]",
		  IN(config_space, calibrate_method)), /* words: make_keys() */
	SPACE_KEY("activation_type", KEY_WORDS, .help = "types of activations", .example = "[QUInt8, QInt16]",
		  IN(config_space, activation_type), WORDS(quant_types)),
	SPACE_KEY("weight_type", KEY_WORDS, .help = "types of weights", .example = "[QInt8]",
		  IN(config_space, weight_type), WORDS(quant_types)),
	SPACE_KEY("include_cle", KEY_BOOLS, .help = "channels of activations are equalised across layers",
		  .example = "[false, true]", IN(config_space, include_cle)),
	SPACE_KEY("include_sq", KEY_BOOLS,
		  .help = "outliers in what MatMul and Gemm read move into their weights",
		  .example = "[false, true]", IN(config_space, include_sq)),
	SPACE_KEY("include_auto_mp", KEY_BOOLS,
		  .help = "ops go to 16 bits, then to fp32, until the target holds",
		  .example = "[false, true]", IN(config_space, include_auto_mp)),
	SPACE_KEY("include_fast_ft", KEY_BOOLS,
		  .help = "weights are rounded so that ops' outputs change least", .example = "[false, true]",
		  IN(config_space, include_fast_ft)),
	{ "extra_options", KEY_MAP, .help = "further settings", .keys = extra_option_keys },
	END,
};
static const struct key stop_keys[] = {
	{ "find_n_candidates", KEY_INT, .help = "ends when so many meet the tolerance; -1: does not",
	  .example = "3", AT(search.find_n_candidates), LIMITS(-1, 1e9), .quiet = true, .incidental = true },
	{ "find_best_candidate", KEY_INT, .help = "tries all, and lists so many; -1: does not",
	  .example = "5", AT(search.find_best_candidate), LIMITS(-1, 1e9), .quiet = true,
	  .incidental = true },
	{ "iteration_limit", KEY_INT, .help = "how many candidates at most; -1: any number",
	  AT(search.iteration_limit), LIMITS(-1, 1e9), .quiet = true, .incidental = true },
	{ "time_limit", KEY_NUMBER, .help = "how long at most; -1: any time", .example = "1h30m",
	  AT(search.time_limit), LIMITS(-1, 1e9), .duration = true, .quiet = true, .incidental = true },
	END,
};
static const struct key advanced_keys[] = {
	{ "sampler_algo", KEY_TEXT,
	  .help = "the sampler of the study: TPE, GP, CMAES, NSGA2, QMC, Random or Grid",
	  AT(search.sampler_algo), .quiet = true },
	{ "direction", KEY_WORD, .help = "whether the metric is to become small or large",
	  AT(search.direction), WORDS(directions), .quiet = true },
	{ "n_trials", KEY_INT, .help = "trials of the study", AT(search.n_trials), LIMITS(1, 1e9),
	  .quiet = true, .incidental = true },
	END,
};
#define SPACE(name, i, other)                                                                                \
	{                                                                                                    \
		name, KEY_MAP, AT(search.spaces[i]),                                                         \
			.made = KEYS_SPACE, .alias = (other),                                                \
			.help = "settings to search over; each takes a value or a list"                      \
	}
/* They are at the top, as documented, or together under auto_search. */
#define SEARCH_KEYS(other)                                                                                   \
	SPACE("search_space", 0, other), SPACE("search_space_1", 1, other),                                  \
		SPACE("search_space_2", 2, other), SPACE("search_space_3", 3, other),                        \
		SPACE("search_space_4", 4, other), SPACE("search_space_5", 5, other),                        \
		SPACE("search_space_6", 6, other), SPACE("search_space_7", 7, other),                        \
		SPACE("search_space_8", 8, other), SPACE("search_space_9", 9, other),                        \
		{ "search_algo",                                                                             \
		  KEY_TEXT,                                                                                  \
		  .help = "the order of candidates: grid, random, or a sampler (tpe, gp, cmaes, nsga2, "     \
			  "qmc)",                                                                            \
		  AT(search.algorithm),                                                                      \
		  .quiet = true,                                                                             \
		  .alias = (other) },                                                                        \
		{ "search_evaluator",                                                                        \
		  KEY_CUSTOM,                                                                                \
		  .help = "what candidates are judged by: l1, l2, cosine, psnr or ssim against the fp32 "    \
			  "model's outputs, or any metric",                                                  \
		  .example = "l2",                                                                           \
		  AT(search.metric),                                                                         \
		  .custom = &custom_metric,                                                                  \
		  .quiet = true,                                                                             \
		  .alias = (other) },                                                                        \
		{ "search_metric", KEY_CUSTOM, AT(search.metric), .custom = &custom_metric, .alias = true }, \
		{ "search_tolerance",                                                                        \
		  KEY_NUMBER,                                                                                \
		  .help = "what a candidate may lose: a difference for l1, l2, cosine and ssim, decibels "   \
			  "to reach for psnr and sqnr, for other metrics as accuracy_criterion",             \
		  .example = "0.01",                                                                         \
		  AT(search.tolerance),                                                                      \
		  LIMITS(0, 1e9),                                                                            \
		  .percent = true,                                                                           \
		  .quiet = true,                                                                             \
		  .alias = (other) },                                                                        \
		{ "search_metric_tolerance", KEY_NUMBER,   AT(search.tolerance), LIMITS(0, 1e9),             \
		  .percent = true,           .alias = true },                                                \
		{ "search_stop_condition", KEY_MAP, .help = "when the search ends", .keys = stop_keys,       \
		  .alias = (other) },                                                                        \
		{ "two_stage_search",                                                                        \
		  KEY_BOOL,                                                                                  \
		  .help = "first all settings without fine-tuning, then fine-tuning of the best",            \
		  AT(search.two_stage),                                                                      \
		  .quiet = true,                                                                             \
		  .alias = (other) },                                                                        \
		{ "advanced_fastft_search",                                                                  \
		  KEY_BOOL,                                                                                  \
		  .help = "one study of NumIterations and LearningRate, between the least and greatest "     \
			  "value given",                                                                     \
		  AT(search.advanced_fastft),                                                                \
		  .quiet = true,                                                                             \
		  .alias = (other) },                                                                        \
		{ "advanced_fastft_params", KEY_MAP, .help = "that study", .keys = advanced_keys,            \
		  .alias = (other) },                                                                        \
		{ "n_jobs",           KEY_INT,         .help = "trials side by side",                        \
		  AT(search.jobs),    LIMITS(1, 1024), .quiet = true,                                        \
		  .incidental = true, .alias = (other) },                                                    \
		{ "search_devices",    KEY_WORD,      .help = "where it runs", AT(search.devices),           \
		  WORDS(device_words), .quiet = true, .alias = (other) },                                    \
		{ "search_log_path",                                                                         \
		  KEY_PATH,                                                                                  \
		  .help = "the log; WORKSPACE/auto_search.log otherwise",                                    \
		  .example = "search.log",                                                                   \
		  AT(search.log),                                                                            \
		  .quiet = true,                                                                             \
		  .incidental = true,                                                                        \
		  .alias = (other) },                                                                        \
		{ "search_output_dir", KEY_PATH, AT(tuning.workspace), .alias = true },                      \
	{                                                                                                    \
		"search_cache_dir", KEY_UNUSED, .why = "outputs are compared as they come", .alias = true    \
	}
static const struct key search_keys[] = { SEARCH_KEYS(false), END };

#define OTHER_JOB(name)                                                                                      \
	{                                                                                                    \
		name, KEY_REFUSED, .why = NO_TRAINING                                                        \
	}
/* The fields of INC 2.x's PostTrainingQuantConfig that a configuration of 1.x has elsewhere; as keys at the top, or in a map of that name. */
#define FIELDS_2X                                                                                            \
	{ "quant_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true },             \
		{ "accuracy_criterion", KEY_MAP, .keys = criterion_keys, .alias = true },                    \
		{ "tuning_criterion", KEY_MAP, .keys = tuning_criterion_keys, .alias = true },               \
		{ "approach", KEY_WORD, AT(quantization.approach), WORDS(approaches), .alias = true },       \
		{ "quant_format", KEY_WORD, AT(quantization.format), WORDS(formats), .alias = true },        \
		{ "recipes", KEY_MAP, .made = KEYS_RECIPES, .alias = true },                                 \
		{ "op_type_dict", KEY_CUSTOM, AT(quantization.op_type_wise), .custom = &custom_constraints,  \
		  .alias = true },                                                                           \
		{ "op_name_dict", KEY_CUSTOM, AT(quantization.op_wise), .custom = &custom_constraints,       \
		  .alias = true },                                                                           \
		{ "calibration_sampling_size", KEY_INTS, AT(calibration.sampling_size), LIMITS(1, 1 << 30),  \
		  .alias = true },                                                                           \
		{ "inputs", KEY_TEXTS, AT(model.inputs), .empty = true, .alias = true },                     \
		{ "outputs", KEY_TEXTS, AT(model.outputs), .empty = true, .alias = true },                   \
		{ "excluded_precisions", KEY_UNUSED, .why = NO_BF16, .alias = true },                        \
		{ "domain", KEY_UNUSED, .why = "what suits the model is found by trying", .alias = true },   \
		{ "example_inputs", KEY_UNUSED, .why = "the data says what the model is fed",                \
		  .alias = true },                                                                           \
		{ "reduce_range", KEY_UNUSED,                                                                \
		  .why = "--reduce-range says it; weights have 7 bits where the CPU saturates",              \
		  .alias = true },                                                                           \
		{ "diagnosis", KEY_UNUSED, .why = "every run keeps its trials, 'fettle history' shows them", \
		  .alias = true },                                                                           \
	{                                                                                                    \
		"ni_workload_name", KEY_UNUSED, .why = "there is no other program that shows runs",          \
						.alias = true                                                \
	}
static const struct key fields_2x_keys[] = {
	FIELDS_2X,
	{ "device", KEY_WORD, AT(device), WORDS(device_words), .alias = true },
	{ "backend", KEY_WORD, AT(backend), WORDS(backends), .alias = true },
	END,
};

const struct key config_keys[] = {
	{ "version", KEY_UNUSED, .why = "all versions are read alike" },
	{ "model", KEY_MAP, .help = "the model", .keys = model_keys },
	{ "device", KEY_WORD, .help = "where it runs", AT(device), WORDS(device_words) },
	{ "quantization", KEY_MAP, .help = "how the model may be quantized", .keys = quantization_keys,
	  USED(PLANS) },
	{ "evaluation", KEY_MAP, .help = "how models are measured", .keys = evaluation_keys },
	{ "tuning", KEY_MAP, .help = "what is looked for, and for how long", .keys = tuning_keys },
	{ "backend", KEY_WORD, .help = "ONNX Runtime's provider", AT(backend), WORDS(backends),
	  .quiet = true },
	FIELDS_2X,
	{ "PostTrainingQuantConfig", KEY_MAP, .keys = fields_2x_keys, .alias = true },
	{ "auto_search", KEY_MAP,
	  .help = "what 'fettle search' tries. All of these keys may also be at the top.",
	  .keys = search_keys, USED(CONFIG_SEARCH) },
	SEARCH_KEYS(true),
	OTHER_JOB("pruning"),
	OTHER_JOB("distillation"),
	OTHER_JOB("auto_distillation"),
	OTHER_JOB("train"),
	OTHER_JOB("nas"),
	{ "mixed_precision", KEY_UNUSED, .why = NO_BF16, .alias = true },
	{ "graph_optimization", KEY_UNUSED, .why = NO_BF16, .alias = true },
	{ "use_bf16", KEY_UNUSED, .why = NO_BF16, .alias = true },
	{ "optimization_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true,
	  .yields = true },
	END,
};

const struct key *key_table(const struct config *c, const struct key *map)
{
	return map->made ? c->state->keys[map->made] : map->keys;
}

/* calibrate_method: "MinMax" and "CalibrationMethod.MinMax" */
static const struct word *method_words(struct arena *arena)
{
	struct word *words = arena_alloc(arena, (2 * RANGE_ALGORITHMS + 1) * sizeof(*words));
	size_t n = 0;
	int i;

	for (i = 0; i < RANGE_ALGORITHMS; i++) {
		const struct range_method *m = range_methods[i];
		const char *name = m->documented ? m->documented : m->name;

		if (m->by_switch)
			continue;
		words[n++] = (struct word)WORD(name, i);
		if (m->family)
			words[n++] = (struct word)WORD(arena_strfmt(arena, "%s.%s", m->family, name), i);
	}
	return words;
}

static const struct key *make_space_keys(struct arena *arena)
{
	struct key *keys = arena_alloc(arena, sizeof(space_keys));

	memcpy(keys, space_keys, sizeof(space_keys));
	keys[0].words = method_words(arena);
	return keys;
}

void make_keys(const struct key *out[KEY_MAKERS], struct arena *arena)
{
	out[KEYS_RECIPES] = make_recipe_keys(arena, other_recipe_keys);
	out[KEYS_SPACE] = make_space_keys(arena);
	out[KEYS_FINETUNE_SEARCH] = make_search_keys(arena, finetune_search_keys, &recipe_finetune);
}

void config_defaults(struct config *c, struct arena *arena)
{
	struct config_dataloader loader = { .batch_size = 1,
					    .squad = { .lower = true, .max_seq_length = 384 } };

	recipe_key_defaults(c, arena);
	c->calibration.sampling_size = (struct config_ints){ arena_alloc(arena, sizeof(int64_t)), 1 };
	c->calibration.sampling_size.v[0] = 100;
	c->recipes.rewrite_graph = true;
	c->calibration.dataloader = loader;
	c->evaluation.dataloader = loader;
	c->performance.instances = 1;
	c->performance.batches = (struct config_ints){ arena_alloc(arena, sizeof(int64_t)), 1 };
	c->performance.batches.v[0] = 1;
	c->tuning.quant_level = QUANT_LEVEL_AUTO;
	c->tuning.strategy = "basic";
	c->tuning.confidence_batches = 2;
	c->tuning.sigopt_experiment_name = "nc-tune";
	c->tuning.n_startup_trials = 10;
	c->tuning.n_ei_candidates = 24;
	c->tuning.gamma = 0.1;
	c->tuning.prior_weight = 1;
	c->tuning.tolerable_loss = 0.01;
	c->tuning.higher_is_better = true;
	c->tuning.max_trials = 100;
	c->tuning.random_seed = 9527;
	c->search.algorithm = "grid";
	c->search.iteration_limit = 1000;
	c->search.sampler_algo = "TPE";
	c->search.n_trials = 10;
	c->search.jobs = 1;
}
