#include "config/schema.h"

#include <string.h>

#include "config/read.h"
#include "config/recipe_keys.h"

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

static const struct word approaches[] = {
	WORD("post_training_static_quant", APPROACH_STATIC),
	WORD("post_training_dynamic_quant", APPROACH_DYNAMIC),
	WORD("post_training_auto_quant", APPROACH_AUTO),
	WORD("static", APPROACH_STATIC),
	WORD("dynamic", APPROACH_DYNAMIC),
	WORD("auto", APPROACH_AUTO),
	WORD("weight_only", APPROACH_WEIGHT),
	WORD("post_training_weight_only", APPROACH_WEIGHT),
	WORD("all", APPROACH_ALL),
	{ "quant_aware_training", 0,
	  "fettle does not train: give it the trained model and say post_training_static_quant" },
	END,
};
/* The first name of a value is the one that is printed; the others are INC's of other times. */
static const struct word frameworks[] = {
	WORD("onnxrt_qlinearops", FRAMEWORK_QLINEAR),
	WORD("onnxrt_integerops", FRAMEWORK_INTEGER),
	WORD("onnxrt_qdq", FRAMEWORK_QDQ),
	WORD("onnxruntime", FRAMEWORK_ONNXRT),
	WORD("onnxrt_qlinear", FRAMEWORK_QLINEAR),
	WORD("onnxrt_integer", FRAMEWORK_INTEGER),
	WORD("onnxrt_qdqops", FRAMEWORK_QDQ),
	WORD("onnxrt_qoperator", FRAMEWORK_QLINEAR),
	WORD("onnxrt", FRAMEWORK_ONNXRT),
	WORD("mxnet", FRAMEWORK_MXNET),
	WORD("tensorflow", FRAMEWORK_TENSORFLOW),
	WORD("inteltensorflow", FRAMEWORK_INTEL_TENSORFLOW),
	WORD("tensorflow_itex", FRAMEWORK_TENSORFLOW_ITEX),
	WORD("keras", FRAMEWORK_KERAS),
	WORD("pytorch", FRAMEWORK_PYTORCH),
	WORD("pytorch_fx", FRAMEWORK_PYTORCH_FX),
	WORD("pytorch_ipex", FRAMEWORK_PYTORCH_IPEX),
	WORD("engine", FRAMEWORK_ENGINE),
	WORD("NA", FRAMEWORK_NA),
	END,
};
static const struct word formats[] = { WORD("QDQ", FORMAT_QDQ), WORD("QOperator", FORMAT_QOPERATOR), END };
const struct word device_words[] = {
	WORD("cpu", 0),
	{ "gpu", 0, "fettle runs on the cpu: say cpu or leave it out" },
	END,
};
#define OTHER_BACKEND "fettle runs on ONNX Runtime's cpu: say default or leave it out"
static const struct word backends[] = {
	WORD("default", 0),
	WORD("onnxrt_cpu_ep", 0),
	{ "onnxrt_cuda_ep", 0, OTHER_BACKEND },
	{ "onnxrt_trt_ep", 0, OTHER_BACKEND },
	{ "onnxrt_dnnl_ep", 0, OTHER_BACKEND },
	{ "onnxrt_dml_ep", 0, OTHER_BACKEND },
	{ "ipex", 0, OTHER_BACKEND },
	{ "itex", 0, OTHER_BACKEND },
	END,
};
static const struct word graph_levels[] = {
	WORD("default", GRAPH_DEFAULT),    WORD("DISABLE_ALL", GRAPH_DISABLE_ALL),
	WORD("ENABLE_BASIC", GRAPH_BASIC), WORD("ENABLE_EXTENDED", GRAPH_EXTENDED),
	WORD("ENABLE_ALL", GRAPH_ALL),     END,
};
static const struct word granularities[] = {
	WORD("per_tensor", CONFIG_PER_TENSOR),
	WORD("per_channel", CONFIG_PER_CHANNEL),
	END,
};
static const struct word schemes[] = {
	WORD("asym", 1 << SCHEME_ASYM),
	WORD("sym", 1 << SCHEME_SYM),
	WORD("asym_float", 1 << SCHEME_ASYM), /* PyTorch's: the zero point before it is rounded */
	END,
};
static const struct word dtypes[] = {
	WORD("uint8", T_U8),
	WORD("int8", T_S8),
	WORD("uint16", T_U16),
	WORD("int16", T_S16),
	WORD("fp32", CONFIG_FP32),
	WORD("bf16", CONFIG_BF16),
	WORD("int", T_8), /* INC's, of weight-only weights; `bits` says how many */
	END,
};
static const struct word algorithms[] = {
#define RANGE(ID, id) WORD(#id, 1 << RANGE_##ID),
#include "calibrate/list.h"
#undef RANGE
	WORD("entropy", 1 << RANGE_KL),
	WORD("placeholder", 1 << RANGE_MINMAX), /* PyTorch's, of activations whose range each batch gives */
	END,
};
static const struct word weight_algorithms[] = {
#define RANGE(ID, id) WORD(#id, 1 << RANGE_##ID),
#include "calibrate/list.h"
#undef RANGE
#define BLOCK(ID, id) WORD(#id, 1 << CONFIG_BLOCK(BLOCK_##ID)),
#include "blockwise/list.h"
#undef BLOCK
	WORD("entropy", 1 << RANGE_KL),
	END,
};
static const struct word bit_words[] = { WORD("2", 1 << 2), WORD("4", 1 << 4), WORD("8", 1 << 8), END };
static const struct word group_words[] = { WORD("16", 16),   WORD("32", 32),   WORD("64", 64),
					   WORD("128", 128), WORD("256", 256), END };
static const struct word level_words[] = { WORD("0", 1 << 0), WORD("1", 1 << 1), WORD("4", 1 << 4), END };
static const struct word last_batches[] = {
	WORD("rollover", LAST_BATCH_ROLLOVER),
	WORD("discard", LAST_BATCH_DISCARD),
	END,
};
static const struct word criteria[] = {
	WORD("relative", CRITERION_RELATIVE),
	WORD("absolute", CRITERION_ABSOLUTE),
	END,
};
static const struct word objectives[] = {
	WORD("performance", OBJECTIVE_PERFORMANCE),
	WORD("modelsize", OBJECTIVE_MODELSIZE),
	WORD("footprint", OBJECTIVE_FOOTPRINT),
	END,
};
static const struct word many_objectives[] = {
	WORD("performance", OBJECTIVE_PERFORMANCE),
	WORD("modelsize", OBJECTIVE_MODELSIZE),
	WORD("footprint", OBJECTIVE_FOOTPRINT),
	WORD("accuracy", OBJECTIVE_ACCURACY),
	END,
};
static const struct word quant_levels[] = {
	WORD("0", QUANT_LEVEL_0),  WORD("1", QUANT_LEVEL_1),  WORD("auto", QUANT_LEVEL_AUTO),
	WORD("O0", QUANT_LEVEL_0), WORD("O1", QUANT_LEVEL_1), END,
};

/* As documented, with and without the names of the Python enums. */
#define QTYPE(name, id) WORD(name, id), WORD("QuantType." name, id), WORD("ExtendedQuantType." name, id)
static const struct word quant_types[] = {
	QTYPE("QInt8", DT_S8),    QTYPE("QUInt8", DT_U8), QTYPE("QInt16", DT_S16),
	QTYPE("QUInt16", DT_U16), WORD("int8", DT_S8),    WORD("uint8", DT_U8),
	WORD("int16", DT_S16),    WORD("uint16", DT_U16), END,
};
static const struct word directions[] = {
	WORD("minimize", DIRECTION_MINIMIZE),
	WORD("maximize", DIRECTION_MAXIMIZE),
	END,
};

static const struct key model_keys[] = {
	{ "name", KEY_TEXT, AT(model.name), USED(SEARCHES), .incidental = true },
	/* what it implies is in the identity */
	{ "framework", KEY_WORD, AT(model.framework), WORDS(frameworks), .otherwise = "NA", .checked = "onnx",
	  USED(PLANS), .incidental = true },
	{ "inputs", KEY_TEXTS, AT(model.inputs), .empty = true,
	  USED(SCORES | CONFIG_QUANTIZE | CONFIG_BENCH) },
	{ "outputs", KEY_TEXTS, AT(model.outputs), .empty = true, USED(SCORES) },
	END,
};

/* beside those of the recipes themselves */
static const struct key other_recipe_keys[] = {
	{ "optypes_to_exclude_output_quant", KEY_TEXTS, AT(recipes.optypes_to_exclude_output_quant),
	  .empty = true },
	{ "graph_optimization_level", KEY_WORD, AT(recipes.graph_optimization_level), WORDS(graph_levels),
	  USED(TRIES) },
	{ "include_auto_mp", KEY_BOOL, AT(recipes.include_auto_mp), .open = true },
	{ "rewrite_graph", KEY_BOOL, AT(recipes.rewrite_graph), USED(PLANS) },
	{ "ffn_matmul_quantization", KEY_UNUSED, .why = "MatMul is tuned op by op" },
	{ "layer_wise_quant", KEY_UNUSED, .why = "memory is bounded anyway" },
	END,
};

static const struct key filter_keys[] = {
	{ "LabelBalance", KEY_CUSTOM, IN(config_dataloader, objects), .custom = &custom_label_balance,
	  .quiet = true },
	END,
};
static const struct key dataloader_keys[] = {
	{ "batch_size", KEY_INT, IN(config_dataloader, batch_size), LIMITS(1, 1 << 20), NOT_BENCH },
	{ "last_batch", KEY_WORD, IN(config_dataloader, last_batch), WORDS(last_batches), NOT_BENCH },
	{ "shuffle", KEY_BOOL, IN(config_dataloader, shuffle), NOT_BENCH },
	{ "dataset", KEY_CUSTOM, IN(config_dataloader, dataset), .custom = &custom_dataset },
	{ "transform", KEY_CUSTOM, IN(config_dataloader, transforms), .custom = &custom_transforms },
	{ "filter", KEY_MAP, .keys = filter_keys },
	{ "distributed", KEY_UNUSED, .why = "trials are distributed, not data" },
	{ "num_workers", KEY_UNUSED, .why = "data is read by the threads of the evaluation" },
	{ "pin_memory", KEY_UNUSED, .why = "there is only the memory of the cpu" },
	END,
};

static const struct key calibration_keys[] = {
	{ "sampling_size", KEY_INTS, AT(calibration.sampling_size), LIMITS(1, 1 << 30) },
	{ "iterations", KEY_INT, AT(calibration.iterations), LIMITS(0, 1 << 20) },
	{ "dataloader", KEY_MAP, AT(calibration.dataloader), .keys = dataloader_keys,
	  USED(TRIES | CONFIG_QUANTIZE) },
	END,
};

/* INC's weight.bit and activation.compute_dtype are for other runtimes. */
#define SIDE_KEYS(algorithms_)                                                                               \
	{ "granularity", KEY_ALLOWED, IN(config_side, granularity), WORDS(granularities) },                  \
		{ "scheme", KEY_ALLOWED, IN(config_side, scheme), WORDS(schemes) },                          \
		{ "dtype", KEY_ALLOWED, IN(config_side, dtype), WORDS(dtypes) },                             \
		{ "algorithm", KEY_ALLOWED, IN(config_side, algorithm), WORDS(algorithms_) },                \
		{ "bit", KEY_UNUSED, .why = "the dtype says how many bits there are" },                      \
	{                                                                                                    \
		"compute_dtype", KEY_UNUSED, .why = "ONNX Runtime computes in the dtype"                     \
	}
static const struct key side_keys[] = { SIDE_KEYS(algorithms), END };
static const struct key weight_keys[] = {
	SIDE_KEYS(weight_algorithms),
	{ "bits", KEY_ALLOWED, IN(config_side, bits), WORDS(bit_words) },
	{ "group_size", KEY_ALLOWED, IN(config_side, group_size), WORDS(group_words) },
	{ "accuracy_level", KEY_ALLOWED, IN(config_side, level), WORDS(level_words) },
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
	{ "weight", KEY_MAP, IN(config_constraint, weight), .keys = weight_keys },
	{ "activation", KEY_MAP, IN(config_constraint, activation), .keys = side_keys },
	END,
};

#define NO_BF16 "ONNX Runtime has no bf16 or fp16 kernels for the cpu, so that fp32 stays"
#define NO_TRAINING "fettle does not train: give it the trained model and leave this section out"
static const struct key quantization_keys[] = {
	{ "approach", KEY_WORD, AT(quantization.approach), WORDS(approaches) },
	{ "quant_format", KEY_WORD, AT(quantization.format), WORDS(formats), USED(TRIES | CONFIG_QUANTIZE) },
	{ "cpu", KEY_TEXT, AT(quantization.cpu), USED(PLANS) },
	{ "recipes", KEY_MAP, .made = KEYS_RECIPES },
	{ "calibration", KEY_MAP, .keys = calibration_keys },
	{ "model_wise", KEY_MAP, AT(quantization.model_wise), .keys = constraint_keys },
	{ "weight_only", KEY_MAP, .keys = weight_only_keys },
	{ "op_type_wise", KEY_CUSTOM, AT(quantization.op_type_wise), .custom = &custom_constraints },
	{ "op_wise", KEY_CUSTOM, AT(quantization.op_wise), .custom = &custom_constraints },
	{ "optype_wise", KEY_CUSTOM, AT(quantization.op_type_wise), .custom = &custom_constraints,
	  .alias = true },
	{ "op_type_dict", KEY_CUSTOM, AT(quantization.op_type_wise), .custom = &custom_constraints,
	  .alias = true },
	{ "op_name_dict", KEY_CUSTOM, AT(quantization.op_wise), .custom = &custom_constraints,
	  .alias = true },
	{ "calibration_sampling_size", KEY_INTS, AT(calibration.sampling_size), LIMITS(1, 1 << 30),
	  .alias = true },
	{ "quant_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true },
	{ "optimization_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true },
	{ "use_bf16", KEY_UNUSED, .why = NO_BF16 },
	{ "excluded_precisions", KEY_UNUSED, .why = NO_BF16 },
	{ "advance", KEY_UNUSED, .why = "recipes.weight_correction corrects weights" },
	{ "train", KEY_REFUSED, .why = NO_TRAINING },
	END,
};

static const struct key accuracy_configs_keys[] = {
	{ "intra_num_of_threads", KEY_INT, AT(evaluation.threads), LIMITS(0, 4096),
	  USED(SCORES | CONFIG_QUANTIZE | CONFIG_BENCH) },
	{ "inter_num_of_threads", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "cores_per_instance", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "num_of_instance", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "kmp_blocktime", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	{ "kmp_affinity", KEY_UNUSED, .why = "only intra_num_of_threads is used" },
	END,
};
/* Of the label, and of outputs. */
#define SQUAD KEY_REFUSED, .why = "answers to questions are not scored here, use eval_cmd"
static const struct key postprocess_transform_keys[] = {
	{ "LabelShift", KEY_INT64, AT(evaluation.dataloader.label_shift), LIMITS(-1e9, 1e9), .quiet = true },
	{ "Collect", KEY_UNUSED, .why = "a metric sees all outputs anyway" },
	{ "SquadV1", SQUAD },
	{ "SquadV1ModelZoo", SQUAD },
	END,
};
static const struct key postprocess_keys[] = {
	{ "transform", KEY_MAP, .keys = postprocess_transform_keys },
	END,
};
static const struct key accuracy_keys[] = {
	{ "metric", KEY_CUSTOM, AT(evaluation.metric), .custom = &custom_metric, USED(SCORES) },
	{ "anno_path", KEY_PATH, AT(evaluation.dataloader.label_map), .quiet = true, USED(SCORES) },
	{ "eval_cmd", KEY_TEXT, AT(evaluation.command), .quiet = true,
	  USED(CONFIG_TUNE | CONFIG_SEARCH | CONFIG_EVAL) },
	{ "eval_server", KEY_TEXT, AT(evaluation.server), .quiet = true,
	  USED(CONFIG_TUNE | CONFIG_SEARCH | CONFIG_EVAL) },
	{ "iteration", KEY_INT, AT(evaluation.iterations), LIMITS(-1, 1 << 30), USED(SCORES) },
	{ "dataloader", KEY_MAP, AT(evaluation.dataloader), .keys = dataloader_keys,
	  USED(SCORES | CONFIG_BENCH) },
	{ "configs", KEY_MAP, .keys = accuracy_configs_keys },
	{ "multi_metrics", KEY_CUSTOM, AT(evaluation.metric), .custom = &custom_metric, .alias = true,
	  USED(SCORES) },
	{ "postprocess", KEY_MAP, .keys = postprocess_keys, USED(SCORES) },
	END,
};
/* INC's meaning: so many instances at once, each on so many cores. Both are for latency alone. */
static const struct key performance_configs_keys[] = {
	{ "cores_per_instance", KEY_INT, AT(performance.threads), LIMITS(0, 1024), USED(SEARCHES) },
	{ "num_of_instance", KEY_INT, AT(performance.instances), LIMITS(1, 256),
	  USED(SEARCHES | CONFIG_BENCH) },
	{ "intra_num_of_threads", KEY_INT, AT(performance.threads), LIMITS(0, 1024), USED(SEARCHES),
	  .alias = true },
	{ "inter_num_of_threads", KEY_UNUSED, .why = "only cores_per_instance is used" },
	{ "kmp_blocktime", KEY_UNUSED, .why = "only cores_per_instance is used" },
	{ "kmp_affinity", KEY_UNUSED, .why = "only cores_per_instance is used" },
	END,
};
#define SAME_DATA KEY_UNUSED, .why = "performance is measured on the data of the accuracy"
static const struct key performance_dataloader_keys[] = {
	{ "batch_size", KEY_INTS, AT(performance.batches), LIMITS(1, 1 << 16), USED(SEARCHES) },
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
	{ "configs", KEY_MAP, .keys = performance_configs_keys },
	{ "dataloader", KEY_MAP, .keys = performance_dataloader_keys },
	{ "warmup", KEY_UNUSED, .why = "models are warmed up as long as that takes" },
	{ "iteration", KEY_UNUSED, .why = "timing ends when the result is certain" },
	{ "postprocess", KEY_UNUSED, .why = "what is timed is the model" },
	END,
};
static const struct key evaluation_keys[] = {
	{ "accuracy", KEY_MAP, .keys = accuracy_keys },
	{ "performance", KEY_MAP, .keys = performance_keys },
	END,
};

/* The options of all strategies; they are beside the name or under strategy_kwargs. */
#define RANKING .strategies = "auto fettle conservative basic mse mse_v2 hawq_v2 custom"
#define SIGOPT .strategies = "sigopt"
#define TPE .strategies = "tpe"
#define STRATEGY_OPTIONS                                                                                     \
	{ "confidence_batches", KEY_INT, AT(tuning.confidence_batches), LIMITS(1, 1 << 20), RANKING },       \
		{ "hawq_v2_loss", KEY_TEXT, AT(tuning.hawq_v2_loss), .strategies = "hawq_v2 custom" },       \
		{ "sigopt_api_token", KEY_TEXT,           AT(tuning.sigopt_api_token),                       \
		  .secret = true,     .incidental = true, SIGOPT },                                          \
		{ "sigopt_project_id", KEY_TEXT, AT(tuning.sigopt_project_id), SIGOPT },                     \
		{ "sigopt_experiment_name", KEY_TEXT, AT(tuning.sigopt_experiment_name), SIGOPT },           \
		{ "sigopt_api_url", KEY_TEXT, AT(tuning.sigopt_api_url), SIGOPT },                           \
		{ "n_startup_trials", KEY_INT, AT(tuning.n_startup_trials), LIMITS(1, 1 << 20), TPE },       \
		{ "n_ei_candidates", KEY_INT, AT(tuning.n_ei_candidates), LIMITS(1, 1 << 20), TPE },         \
		{ "gamma", KEY_NUMBER, AT(tuning.gamma), LIMITS(0, 1), TPE },                                \
		{ "prior_weight", KEY_NUMBER, AT(tuning.prior_weight), LIMITS(0, 1e6), TPE },                \
		{ "accuracy_weight", KEY_UNUSED, .why = "the accuracy is a constraint" },                    \
	{                                                                                                    \
		"latency_weight", KEY_UNUSED, .why = "the accuracy is a constraint"                          \
	}

static const struct key strategy_kwargs_keys[] = { STRATEGY_OPTIONS, END };
static const struct key strategy_keys[] = {
	{ "name", KEY_TEXT, AT(tuning.strategy) },
	STRATEGY_OPTIONS,
	{ "strategy_kwargs", KEY_MAP, .keys = strategy_kwargs_keys, .alias = true },
	END,
};

/* a negative loss demands a gain */
#define LOSS(word, id, most)                                                                                 \
	{                                                                                                    \
		word, KEY_NUMBER, AT(tuning.tolerable_loss), LIMITS(-1e9, most),                             \
			.percent = true, .alias = true, .also = offsetof(struct config, tuning.criterion),   \
			.also_value = (id)                                                                   \
	}
static const struct key criterion_keys[] = {
	{ "criterion", KEY_WORD, AT(tuning.criterion), WORDS(criteria) },
	{ "tolerable_loss", KEY_NUMBER, AT(tuning.tolerable_loss), LIMITS(-1e9, 1e9), .percent = true },
	{ "higher_is_better", KEY_BOOL, AT(tuning.higher_is_better) },
	LOSS("relative", CRITERION_RELATIVE, 1),
	LOSS("absolute", CRITERION_ABSOLUTE, 1e9),
	END,
};

static const struct key objectives_keys[] = {
	{ "objective", KEY_WORDS, AT(tuning.objectives), WORDS(many_objectives), .empty = true },
	{ "weight", KEY_NUMBERS, AT(tuning.weights), LIMITS(0, 1e9), .empty = true },
	{ "higher_is_better", KEY_BOOLS, AT(tuning.higher_is_better_each), .empty = true },
	END,
};

#define EXIT_POLICY                                                                                          \
	{ "timeout",        KEY_NUMBER,        AT(tuning.timeout), LIMITS(0, 1e9),                           \
	  .duration = true, USED(CONFIG_TUNE), .incidental = true },                                         \
	{                                                                                                    \
		"max_trials", KEY_INT, AT(tuning.max_trials), LIMITS(0, 1e9), USED(CONFIG_TUNE),             \
			.incidental = true                                                                   \
	}
static const struct key exit_keys[] = {
	EXIT_POLICY,
	{ "performance_only", KEY_BOOL, AT(tuning.performance_only), USED(SEARCHES) },
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
	{ "path", KEY_PATH, AT(tuning.workspace), .incidental = true },
	{ "resume", KEY_PATH, AT(tuning.resume), .incidental = true },
	END,
};

static const struct key tuning_keys[] = {
	{ "quant_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), USED(CONFIG_TUNE) },
	{ "strategy", KEY_MAP, .keys = strategy_keys, .whole = "name", USED(CONFIG_TUNE) },
	{ "strategy_kwargs", KEY_MAP, .keys = strategy_kwargs_keys, .alias = true },
	{ "accuracy_criterion", KEY_MAP, .keys = criterion_keys, USED(SEARCHES) },
	{ "objective", KEY_WORD, AT(tuning.objective), WORDS(objectives), USED(SEARCHES) },
	{ "multi_objectives", KEY_MAP, .keys = objectives_keys, USED(SEARCHES) },
	{ "size_budget", KEY_TEXT, AT(tuning.size_budget), .quiet = true, USED(CONFIG_TUNE) },
	{ "exit_policy", KEY_MAP, .keys = exit_keys },
	{ "tuning_criterion", KEY_MAP, .keys = tuning_criterion_keys, .alias = true },
	{ "random_seed", KEY_INT64, AT(tuning.random_seed), LIMITS(0, 9007199254740992.),
	  USED(SCORES | CONFIG_QUANTIZE) },
	{ "tensorboard", KEY_BOOL, AT(tuning.tensorboard), .incidental = true, USED(SEARCHES) },
	{ "workspace", KEY_MAP, .keys = workspace_keys, .whole = "path", USED(SEARCHES) },
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
	SPACE_KEY("NumIterLR", KEY_CUSTOM, IN(config_space, num_iter_lr), .custom = &custom_pairs),
	SPACE_KEY("FixedSeed", KEY_INTS, IN(config_space, fixed_seed)),
	SPACE_KEY("EarlyStop", KEY_BOOLS, IN(config_space, early_stop)),
	SPACE_KEY("SelectiveUpdate", KEY_BOOLS, IN(config_space, selective_update)),
	END,
};
static const struct key extra_option_keys[] = {
	SPACE_KEY("ActivationSymmetric", KEY_BOOLS, IN(config_space, activation_symmetric)),
	SPACE_KEY("WeightSymmetric", KEY_BOOLS, IN(config_space, weight_symmetric)),
	SPACE_KEY("CalibMovingAverage", KEY_BOOLS, IN(config_space, calib_moving_average)),
	SPACE_KEY("CalibMovingAverageConstant", KEY_NUMBERS, IN(config_space, calib_moving_average_constant),
		  LIMITS(1e-9, 1)),
	SPACE_KEY("Percentile", KEY_NUMBERS, IN(config_space, percentile), LIMITS(50, 100)),
	SPACE_KEY("SmoothAlpha", KEY_CUSTOM, IN(config_space, smooth_alpha),
		  .custom = &custom_list_of_numbers, .recipe = &recipe_smooth_quant, LIMITS(0, 1)),
	{ "FastFinetune", KEY_MAP, .made = KEYS_FINETUNE_SEARCH },
	END,
};
static const struct key space_keys[] = {
	SPACE_KEY("calibrate_method", KEY_WORDS, IN(config_space, calibrate_method)), /* words: make_keys() */
	SPACE_KEY("activation_type", KEY_WORDS, IN(config_space, activation_type), WORDS(quant_types)),
	SPACE_KEY("weight_type", KEY_WORDS, IN(config_space, weight_type), WORDS(quant_types)),
	SPACE_KEY("include_cle", KEY_BOOLS, IN(config_space, include_cle)),
	SPACE_KEY("include_sq", KEY_BOOLS, IN(config_space, include_sq)),
	SPACE_KEY("include_auto_mp", KEY_BOOLS, IN(config_space, include_auto_mp)),
	SPACE_KEY("include_fast_ft", KEY_BOOLS, IN(config_space, include_fast_ft)),
	{ "extra_options", KEY_MAP, .keys = extra_option_keys },
	END,
};
static const struct key stop_keys[] = {
	{ "find_n_candidates", KEY_INT, AT(search.find_n_candidates), LIMITS(-1, 1e9), .quiet = true,
	  .incidental = true },
	{ "find_best_candidate", KEY_INT, AT(search.find_best_candidate), LIMITS(-1, 1e9), .quiet = true,
	  .incidental = true },
	{ "iteration_limit", KEY_INT, AT(search.iteration_limit), LIMITS(-1, 1e9), .quiet = true,
	  .incidental = true },
	{ "time_limit", KEY_NUMBER, AT(search.time_limit), LIMITS(-1, 1e9), .duration = true, .quiet = true,
	  .incidental = true },
	END,
};
static const struct key advanced_keys[] = {
	{ "sampler_algo", KEY_TEXT, AT(search.sampler_algo), .quiet = true },
	{ "direction", KEY_WORD, AT(search.direction), WORDS(directions), .quiet = true },
	{ "n_trials", KEY_INT, AT(search.n_trials), LIMITS(1, 1e9), .quiet = true, .incidental = true },
	END,
};
#define SPACE(name, i, other)                                                                                \
	{                                                                                                    \
		name, KEY_MAP, AT(search.spaces[i]), .made = KEYS_SPACE, .alias = (other)                    \
	}
/* They are at the top, as documented, or together under auto_search. */
#define SEARCH_KEYS(other)                                                                                   \
	SPACE("search_space", 0, other), SPACE("search_space_1", 1, other),                                  \
		SPACE("search_space_2", 2, other), SPACE("search_space_3", 3, other),                        \
		SPACE("search_space_4", 4, other), SPACE("search_space_5", 5, other),                        \
		SPACE("search_space_6", 6, other), SPACE("search_space_7", 7, other),                        \
		SPACE("search_space_8", 8, other), SPACE("search_space_9", 9, other),                        \
		{ "search_algo", KEY_TEXT, AT(search.algorithm), .quiet = true, .alias = (other) },          \
		{ "search_evaluator",       KEY_CUSTOM,    AT(search.metric),                                \
		  .custom = &custom_metric, .quiet = true, .alias = (other) },                               \
		{ "search_metric", KEY_CUSTOM, AT(search.metric), .custom = &custom_metric, .alias = true }, \
		{ "search_tolerance", KEY_NUMBER,    AT(search.tolerance), LIMITS(0, 1e9),                   \
		  .percent = true,    .quiet = true, .alias = (other) },                                     \
		{ "search_metric_tolerance", KEY_NUMBER,   AT(search.tolerance), LIMITS(0, 1e9),             \
		  .percent = true,           .alias = true },                                                \
		{ "search_stop_condition", KEY_MAP, .keys = stop_keys, .alias = (other) },                   \
		{ "two_stage_search", KEY_BOOL, AT(search.two_stage), .quiet = true, .alias = (other) },     \
		{ "advanced_fastft_search", KEY_BOOL, AT(search.advanced_fastft), .quiet = true,             \
		  .alias = (other) },                                                                        \
		{ "advanced_fastft_params", KEY_MAP, .keys = advanced_keys, .alias = (other) },              \
		{ "n_jobs",           KEY_INT,         AT(search.jobs), LIMITS(1, 1024), .quiet = true,      \
		  .incidental = true, .alias = (other) },                                                    \
		{ "search_devices",    KEY_WORD,      AT(search.devices),                                    \
		  WORDS(device_words), .quiet = true, .alias = (other) },                                    \
		{ "search_log_path", KEY_PATH,           AT(search.log),                                     \
		  .quiet = true,     .incidental = true, .alias = (other) },                                 \
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
	{ "model", KEY_MAP, .keys = model_keys },
	{ "device", KEY_WORD, AT(device), WORDS(device_words) },
	{ "quantization", KEY_MAP, .keys = quantization_keys, USED(PLANS) },
	{ "evaluation", KEY_MAP, .keys = evaluation_keys },
	{ "tuning", KEY_MAP, .keys = tuning_keys },
	{ "backend", KEY_WORD, AT(backend), WORDS(backends), .quiet = true },
	FIELDS_2X,
	{ "PostTrainingQuantConfig", KEY_MAP, .keys = fields_2x_keys, .alias = true },
	{ "auto_search", KEY_MAP, .keys = search_keys, USED(CONFIG_SEARCH) },
	SEARCH_KEYS(true),
	OTHER_JOB("pruning"),
	OTHER_JOB("distillation"),
	OTHER_JOB("auto_distillation"),
	OTHER_JOB("train"),
	OTHER_JOB("nas"),
	{ "mixed_precision", KEY_UNUSED, .why = NO_BF16, .alias = true },
	{ "graph_optimization", KEY_UNUSED, .why = NO_BF16, .alias = true },
	{ "use_bf16", KEY_UNUSED, .why = NO_BF16, .alias = true },
	{ "optimization_level", KEY_WORD, AT(tuning.quant_level), WORDS(quant_levels), .alias = true },
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
	struct config_dataloader loader = { .batch_size = 1 };

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
