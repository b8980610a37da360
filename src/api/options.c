#include "api/options.h"

/* a member of a call's struct that is one of struct call_options; a setting; neither */
#define TO(kind_, field, member)                                                                             \
	{                                                                                                    \
		.name = #field, .kind = FIELD_##kind_, .at = offsetof(struct CALL, field),                   \
		.to = offsetof(struct call_options, member)                                                  \
	}
#define SAME(kind, field) TO(kind, field, field)
#define SETTING(kind_, field, key_, ...)                                                                     \
	{                                                                                                    \
		.name = #field, .kind = FIELD_##kind_, .at = offsetof(struct CALL, field),                   \
		.to = FIELD_NOWHERE, .key = key_, __VA_ARGS__                                                \
	}
#define READ_BY_CALL(kind_, field)                                                                           \
	{                                                                                                    \
		.name = #field, .kind = FIELD_##kind_, .at = offsetof(struct CALL, field),                   \
		.to = FIELD_NOWHERE                                                                          \
	}
#define MODEL SAME(TEXT, model), SAME(POINTER, model_bytes), SAME(POINTER, model_size), SAME(TEXT, config)
#define CALIB SAME(TEXT, calib), SAME(POINTER, calib_source), TO(COUNT, samples, calib_samples)
#define ARRAYS TO(DATA, calib_data, calib_source), TO(DATA, eval_data, eval_source)
#define EVAL SAME(TEXT, eval), SAME(POINTER, eval_source), SAME(COUNT, eval_samples), SAME(TEXT, scores)
#define PROGRAMS                                                                                             \
	SAME(TEXT, eval_cmd), SAME(TEXT, eval_server), SAME(POINTER, evaluate),                              \
		SAME(POINTER, evaluate_self),                                                                \
		SETTING(YES, lower_is_better, "tuning.accuracy_criterion.higher_is_better",                  \
			.value = "false")
#define SETTINGS READ_BY_CALL(PAIRS, settings)
#define MAX_TRIALS SETTING(WHOLE, max_trials, "tuning.exit_policy.max_trials", .value = "0")
#define TIMEOUT SETTING(REAL, timeout, "tuning.exit_policy.timeout")
#define INSTANCES SETTING(COUNT, instances, "evaluation.performance.configs.num_of_instance")
#define DEPLOYED                                                                                             \
	SETTING(TEXT, latency_batch, "evaluation.performance.dataloader.batch_size"),                        \
		SETTING(INT, latency_threads, "evaluation.performance.configs.cores_per_instance"),          \
		INSTANCES
#define BLOCKS                                                                                               \
	SETTING(TEXT, bits, "quantization.weight_only.bits"),                                                \
		SETTING(TEXT, group_size, "quantization.weight_only.group_size"),                            \
		SETTING(TEXT, scheme, "quantization.weight_only.scheme"),                                    \
		SETTING(TEXT, accuracy_level, "quantization.weight_only.accuracy_level")
#define RANDOM_SEED SETTING(SEED, seed, "tuning.random_seed")

#define OPTIONS(word, init_)                                                                                 \
	const struct options_type options_##word = {                                                         \
		.name = #word,                                                                               \
		.init = &(const struct CALL)init_,                                                           \
		.size = sizeof(struct CALL),                                                                 \
		.fields = word##_fields,                                                                     \
		.n = ARRAY_LEN(word##_fields),                                                               \
	}

#define CALL fettle_tune_options
static const struct option_field tune_fields[] = {
	MODEL,
	SAME(TEXT, output),
	CALIB,
	EVAL,
	SAME(TEXT, holdout),
	SAME(COUNT, batch),
	SAME(TEXT, metric),
	PROGRAMS,
	SETTING(REAL, tolerance, "tuning.accuracy_criterion.tolerable_loss"),
	SETTING(TEXT, criterion, "tuning.accuracy_criterion.criterion"),
	SETTING(TEXT, objective, "tuning.objective"),
	SETTING(TEXT, strategy, "tuning.strategy"),
	SETTING(TEXT, quant_level, "tuning.quant_level"),
	MAX_TRIALS,
	TIMEOUT,
	RANDOM_SEED,
	SAME(TEXT, approach),
	SAME(TEXT, format),
	SAME(TEXT, keep_fp32),
	SAME(TEXT, capability),
	SAME(TEXTS, recipes),
	SAME(YES, no_early),
	SAME(REAL, confidence),
	SAME(TEXT, jobs),
	SAME(TEXT, cache),
	SAME(TEXT, cpu),
	SAME(INT, threads),
	SAME(TEXT, workspace),
	SAME(YES, resume),
	SAME(TEXT, helper),
	SETTINGS,
	ARRAYS,
	READ_BY_CALL(YES, to_memory),
	DEPLOYED,
	BLOCKS,
	SETTING(TEXT, algorithm, "quantization.weight_only.algorithm"),
	SETTING(TEXT, size_budget, "tuning.size_budget"),
	SAME(YES, ranks),
	SAME(YES, broadcast_data),
};
OPTIONS(tune, FETTLE_TUNE_OPTIONS_INIT);
#undef CALL

#define CALL fettle_search_options
static const struct option_field search_fields[] = {
	MODEL,
	SAME(TEXT, output),
	CALIB,
	EVAL,
	SAME(COUNT, batch),
	SETTING(TEXT, metric, "search_metric"),
	PROGRAMS,
	SETTING(REAL, tolerance, "search_tolerance"),
	SETTING(TEXT, algo, "search_algo"),
	SETTING(WHOLE, iteration_limit, "search_stop_condition.iteration_limit", .value = "-1"),
	SETTING(REAL, time_limit, "search_stop_condition.time_limit"),
	RANDOM_SEED,
	SAME(TEXT, keep_fp32),
	SAME(TEXT, jobs),
	SAME(TEXT, cache),
	SAME(TEXT, cpu),
	SAME(INT, threads),
	SAME(TEXT, workspace),
	SAME(YES, resume),
	SETTING(TEXT, log, "search_log_path"),
	SAME(TEXT, helper),
	SETTINGS,
	ARRAYS,
	READ_BY_CALL(YES, to_memory),
	DEPLOYED,
	SAME(YES, ranks),
	SAME(YES, broadcast_data),
};
OPTIONS(search, FETTLE_SEARCH_OPTIONS_INIT);
#undef CALL

#define CALL fettle_resume_options
static const struct option_field resume_fields[] = {
	SAME(TEXT, workspace),
	SAME(TEXT, output),
	MAX_TRIALS,
	TIMEOUT,
	SAME(TEXT, jobs),
	SAME(TEXT, cache),
	SAME(TEXT, helper),
	SAME(POINTER, calib_source),
	SAME(POINTER, eval_source),
	SAME(POINTER, evaluate),
	SAME(POINTER, evaluate_self),
	SETTINGS,
	ARRAYS,
	READ_BY_CALL(YES, to_memory),
	SAME(YES, ranks),
	SAME(YES, broadcast_data),
};
OPTIONS(resume, FETTLE_RESUME_OPTIONS_INIT);
#undef CALL

#define CALL fettle_quantize_options
static const struct option_field quantize_fields[] = {
	MODEL,
	SAME(TEXT, output),
	CALIB,
	SAME(SEED, seed),
	SAME(COUNT, batch),
	SAME(TEXT, plan),
	SAME(TEXT, approach),
	SAME(TEXT, format),
	SAME(TEXT, algorithm),
	TO(TEXT, activation_type, act_dtype),
	TO(TEXT, activation_scheme, act_scheme),
	TO(TEXT, weight_type, weight_dtype),
	SAME(TEXT, weight_scheme),
	SAME(TEXT, granularity),
	SAME(TEXT, reduce_range),
	SAME(TEXT, keep_fp32),
	SAME(TEXT, quantize),
	SAME(TEXTS, recipes),
	SAME(TEXT, cache),
	SAME(TEXT, cpu),
	SAME(INT, threads),
	SETTINGS,
	TO(DATA, calib_data, calib_source),
	READ_BY_CALL(YES, to_memory),
	BLOCKS,
};
OPTIONS(quantize, FETTLE_QUANTIZE_OPTIONS_INIT);
#undef CALL

#define CALL fettle_eval_options
static const struct option_field eval_fields[] = {
	MODEL,
	TO(TEXT, data, eval),
	TO(POINTER, data_source, eval_source),
	TO(COUNT, samples, eval_samples),
	SAME(COUNT, batch),
	SAME(TEXT, metric),
	SAME(TEXT, scores),
	SAME(TEXT, reference),
	SAME(TEXT, eval_cmd),
	SAME(TEXT, eval_server),
	SAME(INT, threads),
	SETTINGS,
	TO(DATA, arrays, eval_source),
};
OPTIONS(eval, FETTLE_EVAL_OPTIONS_INIT);
#undef CALL

#define CALL fettle_bench_options
static const struct option_field bench_fields[] = {
	READ_BY_CALL(TEXTS, models), TO(TEXT, data, eval), SAME(COUNT, batch), SAME(REAL, seconds),
	SAME(INT, threads),          SAME(TEXT, helper),   INSTANCES,          SAME(YES, decode),
	SAME(COUNT, past),
};
OPTIONS(bench, FETTLE_BENCH_OPTIONS_INIT);
#undef CALL

#define CALL fettle_sensitivity_options
static const struct option_field sensitivity_fields[] = {
	MODEL, CALIB, EVAL, SAME(TEXT, metric), SAME(TEXT, cpu), SAME(INT, threads), SETTINGS, ARRAYS,
};
OPTIONS(sensitivity, FETTLE_SENSITIVITY_OPTIONS_INIT);
#undef CALL

#define CALL fettle_recover_options
static const struct option_field recover_fields[] = {
	SAME(TEXT, workspace),        READ_BY_CALL(COUNT, trial),
	SAME(TEXT, output),           SAME(TEXT, model),
	SAME(POINTER, model_bytes),   SAME(POINTER, model_size),
	READ_BY_CALL(YES, to_memory),
};
OPTIONS(recover, FETTLE_RECOVER_OPTIONS_INIT);
#undef CALL

#define CALL fettle_report_options
static const struct option_field report_fields[] = {
	READ_BY_CALL(TEXTS, workspaces),   SAME(TEXT, output),
	READ_BY_CALL(TEXT, format),        READ_BY_CALL(YES, no_analysis),
	READ_BY_CALL(YES, no_sensitivity), SAME(INT, threads),
	READ_BY_CALL(COUNT, refresh),      ARRAYS,
};
OPTIONS(report, FETTLE_REPORT_OPTIONS_INIT);
#undef CALL

#define CALL fettle_diff_options
static const struct option_field diff_fields[] = {
	READ_BY_CALL(TEXT, a), READ_BY_CALL(TEXT, b), TO(TEXT, data, eval), TO(COUNT, samples, eval_samples),
	SAME(INT, threads),
};
OPTIONS(diff, FETTLE_DIFF_OPTIONS_INIT);
#undef CALL

#define CALL fettle_inspect_options
static const struct option_field inspect_fields[] = {
	MODEL, SAME(TEXT, approach), SAME(TEXT, keep_fp32), SAME(TEXT, quantize), SAME(TEXT, cpu), SETTINGS,
};
OPTIONS(inspect, FETTLE_INSPECT_OPTIONS_INIT);
#undef CALL
