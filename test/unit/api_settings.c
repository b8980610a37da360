/*
 * Every key of the schema does something: a run with another value of it comes out differently. A key without a row here
 * fails the test, so that none can be added that nobody reads. Those that only a note answers are marked.
 */
#include "unit/unit.h"
#include "unit/build.h"
#include "unit/tree.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/internal.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/str.h"
#include "config/commands.h"
#include "config/schema.h"

enum what { TUNE = 1, SEARCH, QUANTIZE, EVAL, NOTED, NOTED_BY_TUNE };
enum how {
	PLAIN = 0,
	SMALL = 1,   /* the small model: Concat, pools and an op after the last Conv */
	THREADS = 2, /* how many threads are started counts, too */
	SCORED = 4,  /* by a strategy that only ranks ops */
};

#define WEIGHT_ONLY "quantization.approach=weight_only"
#define SPACE "auto_search.search_space"
#define SQUAD "evaluation.accuracy.postprocess.transform.SquadV1"
#define FT "quantization.recipes.FastFinetune"
#define TUNED_BY(word) "quantization.recipes.finetune=" word "|" FT ".NumIterations=4|" FT ".BatchSize=4"
#define TPE8                                                                                                 \
	"tuning.strategy.name=tpe|tuning.accuracy_criterion.tolerable_loss=0|tuning.exit_policy.max_trials=" \
	"8|tuning.strategy.n_startup_trials=3"
#define METHODS SPACE ".calibrate_method=[MinMax, Entropy]"
#define SEARCH_FT                                                                                            \
	METHODS "|" SPACE ".include_fast_ft=[true]|" SPACE                                                   \
		".extra_options.FastFinetune.OptimAlgorithm=[adaquant]|" SPACE                               \
		".extra_options.FastFinetune.NumIterations=[3]"
#define STUDY                                                                                                \
	SPACE ".include_fast_ft=[true]|" SPACE                                                               \
	      ".extra_options.FastFinetune.OptimAlgorithm=[adaquant]|" SPACE                                 \
	      ".extra_options.FastFinetune.NumIterations=[2, "                                               \
	      "6]|auto_search.advanced_fastft_search=true|auto_search."                                      \
	      "advanced_fastft_params.n_trials=3"
#define SEVERAL                                                                                              \
	"!tuning.objective|tuning.strategy.name=random|tuning.exit_policy.max_trials=12|tuning.exit_policy." \
	"timeout=600|tuning."                                                                                \
	"accuracy_criterion.tolerable_loss=0.9|tuning.multi_objectives.objective=[accuracy, modelsize]"

/* Settings are "key=value|key=value"; `base` holds in both runs. */
static const struct row {
	const char *key, *value;
	enum what what;
	const char *base;
	unsigned how;
} rows[] = {
	{ "model.name", "mine", TUNE, "", SMALL },
	{ "model.framework", "onnxrt_qlinearops", QUANTIZE, "", PLAIN },
	{ "model.inputs", "other", QUANTIZE, "", PLAIN },
	{ "model.outputs", "other", TUNE, "", SMALL },
	{ "device", "cpu", NOTED, "", PLAIN },
	{ "backend", "default", NOTED, "", PLAIN },

	{ "quantization.approach", "dynamic", QUANTIZE, "", PLAIN },
	{ "quantization.cpu", "sse", QUANTIZE, "quantization.cpu=avx2", PLAIN },
	{ "quantization.quant_format", "QOperator", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.smooth_quant", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.smooth_quant_args.alpha", "0.9", QUANTIZE,
	  "quantization.recipes.smooth_quant=true", PLAIN },
	{ "quantization.recipes.fast_bias_correction", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.weight_correction", "true", QUANTIZE, "", PLAIN },
	/* more than the one op of this model has a sequence: quantize_outside.c */
	{ "quantization.recipes.true_sequential", "true", NOTED, "", PLAIN },
	{ "quantization.recipes.first_conv_or_matmul_quantization", "false", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.last_conv_or_matmul_quantization", "false", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.pre_post_process_quantization", "false", QUANTIZE, "", SMALL },
	{ "quantization.recipes.scale_propagation_max_pooling", "false", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.scale_propagation_concat", "false", QUANTIZE, "", SMALL },
	{ "quantization.recipes.gemm_to_matmul", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.add_qdq_pair_to_weight", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.dedicated_qdq_pair", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.optypes_to_exclude_output_quant", "Conv", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.graph_optimization_level", "DISABLE_ALL", TUNE, "", SMALL },
	{ "quantization.recipes.cle", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.include_auto_mp", "true", QUANTIZE, "", PLAIN },
	{ "quantization.recipes.rewrite_graph", "false", QUANTIZE, "", SMALL },
	{ "quantization.recipes.include_fast_ft", "true", QUANTIZE, "", SMALL },
	{ "quantization.recipes.finetune", "gram", QUANTIZE, "", SMALL },
	{ FT ".OptimAlgorithm", "adaquant", QUANTIZE,
	  "quantization.recipes.include_fast_ft=true|" FT ".NumIterations=4|" FT ".BatchSize=4", SMALL },
	{ FT ".Granularity", "block", QUANTIZE, TUNED_BY("adaround"), SMALL },
	{ FT ".DataSize", "4", QUANTIZE, TUNED_BY("gram"), SMALL },
	{ FT ".BatchSize", "2", QUANTIZE, "quantization.recipes.finetune=adaquant|" FT ".NumIterations=4",
	  SMALL },
	{ FT ".NumIterations", "9", QUANTIZE, "quantization.recipes.finetune=adaquant|" FT ".BatchSize=4",
	  SMALL },
	{ FT ".LearningRate", "0.3", QUANTIZE, TUNED_BY("adaquant"), SMALL },
	{ FT ".FixedSeed", "77", QUANTIZE, TUNED_BY("adaquant") "|" FT ".LearningRate=0.1", SMALL },
	{ FT ".EarlyStop", "true", QUANTIZE,
	  "quantization.recipes.finetune=adaquant|" FT ".BatchSize=4|" FT ".NumIterations=200|" FT
	  ".LearningRate=0.3",
	  SMALL },
	{ FT ".SelectiveUpdate", "false", QUANTIZE, TUNED_BY("adaquant") "|" FT ".LearningRate=5", SMALL },
	{ FT ".UpdateBias", "false", QUANTIZE, TUNED_BY("gram"), SMALL },
	{ FT ".DropRatio", "0.5", QUANTIZE, TUNED_BY("adaquant") "|" FT ".LearningRate=0.1", SMALL },
	{ FT ".RegParam", "50", QUANTIZE, TUNED_BY("adaround") "|" FT ".LearningRate=0.3", SMALL },
	{ FT ".WarmStart", "0", QUANTIZE,
	  TUNED_BY("adaround") "|" FT ".LearningRate=0.3|" FT ".RegParam=50|" FT ".WarmStart=1", SMALL },
	{ FT ".BetaRange", "[3, 2]", QUANTIZE,
	  TUNED_BY("adaround") "|" FT ".LearningRate=0.3|" FT ".RegParam=50", SMALL },
	{ FT ".OptimDevice", "cpu", NOTED, "", PLAIN },

	{ "quantization.calibration.sampling_size", "3", QUANTIZE, "", PLAIN },
	{ "quantization.calibration.iterations", "3", QUANTIZE, "!quantization.calibration.sampling_size",
	  PLAIN },
	{ "quantization.calibration.dataloader.batch_size", "3", QUANTIZE,
	  "!quantization.calibration.sampling_size|quantization.calibration.iterations=2", PLAIN },
	{ "quantization.calibration.dataloader.last_batch", "discard", QUANTIZE,
	  "quantization.calibration.dataloader.batch_size=5", PLAIN },
	{ "quantization.calibration.dataloader.shuffle", "true", QUANTIZE, "", PLAIN },
	{ "quantization.calibration.dataloader.dataset", "nowhere.npz", QUANTIZE, "", PLAIN },
	{ "quantization.calibration.dataloader.transform", "{Rescale: {}}", QUANTIZE, "", PLAIN },
	{ "quantization.calibration.dataloader.filter.LabelBalance", "1", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.weight.granularity", "per_tensor", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.weight.scheme", "asym", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.weight.dtype", "int16", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.weight.algorithm", "mse", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.weight.bits", "8", QUANTIZE, WEIGHT_ONLY, PLAIN },
	{ "quantization.model_wise.weight.group_size", "64", QUANTIZE, WEIGHT_ONLY, PLAIN },
	{ "quantization.model_wise.weight.accuracy_level", "0", QUANTIZE, WEIGHT_ONLY, PLAIN },
	{ "quantization.model_wise.activation.granularity", "per_channel", NOTED, "", PLAIN },
	{ "quantization.model_wise.activation.scheme", "sym", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.activation.dtype", "fp32", QUANTIZE, "", PLAIN },
	{ "quantization.model_wise.activation.algorithm", "kl", QUANTIZE, "", PLAIN },
	{ "quantization.op_type_wise", "{Conv: {weight: {dtype: fp32}}}", QUANTIZE, "", PLAIN },
	{ "quantization.op_wise", "{/conv2/Conv: {weight: {dtype: fp32}}}", QUANTIZE, "", PLAIN },

	{ "tuning.size_budget", "1K", TUNE, "", SMALL },
	{ "evaluation.accuracy.metric", "mse", EVAL, "", SMALL },
	{ "evaluation.accuracy.iteration", "2", EVAL, "", SMALL },
	{ "evaluation.accuracy.postprocess.transform.LabelShift", "-1", EVAL, "", SMALL },
	{ "evaluation.accuracy.dataloader.batch_size", "5", EVAL, "", SMALL },
	{ "evaluation.accuracy.dataloader.last_batch", "discard", EVAL,
	  "evaluation.accuracy.dataloader.batch_size=900|evaluation.accuracy.iteration=-1", SMALL },
	{ "evaluation.accuracy.dataloader.shuffle", "true", EVAL, "", SMALL },
	{ "evaluation.accuracy.dataloader.dataset", "nowhere.npz", EVAL, "", SMALL },
	{ "evaluation.accuracy.dataloader.transform", "{Rescale: {}}", EVAL, "", PLAIN },
	{ "evaluation.accuracy.dataloader.filter.LabelBalance", "1", EVAL, "", PLAIN },
	{ "evaluation.accuracy.vocab_file", "nowhere.txt", EVAL, "", SMALL },
	/* that answers change with them needs questions: cli/squad.sh */
	{ SQUAD ".label_file", "dev.json", NOTED, "", PLAIN },
	{ SQUAD ".vocab_file", "vocab.txt", NOTED, "", PLAIN },
	{ SQUAD ".do_lower_case", "false", NOTED, "", PLAIN },
	{ SQUAD ".max_seq_length", "128", NOTED, "", PLAIN },
	{ "evaluation.accuracy.anno_path", "map.yaml", NOTED, "", PLAIN },
	{ "evaluation.accuracy.configs.intra_num_of_threads", "3", EVAL, "", SMALL | THREADS },
	{ "evaluation.accuracy.eval_cmd", "echo 0.5", EVAL, "", SMALL },
	{ "evaluation.accuracy.eval_server", "while read m; do echo 0.5; done", EVAL, "", SMALL },

	{ "evaluation.performance.configs.cores_per_instance", "3", TUNE, "", SMALL | THREADS },
	{ "evaluation.performance.configs.num_of_instance", "2", TUNE, "", SMALL | THREADS },
	{ "evaluation.performance.dataloader.batch_size", "[2, 4]", TUNE, "", SMALL },

	{ "tuning.quant_level", "0", TUNE, "", SMALL },
	{ "tuning.strategy.name", "random", TUNE, "", SMALL },
	{ "tuning.strategy.confidence_batches", "1", TUNE,
	  "quantization.calibration.sampling_size=24|evaluation.accuracy.iteration=12", SCORED },
	{ "tuning.strategy.hawq_v2_loss", "mse", TUNE, "", SCORED },
	{ "tuning.strategy.sigopt_api_token", "t", NOTED_BY_TUNE, "", SMALL },
	{ "tuning.strategy.sigopt_project_id", "t", NOTED_BY_TUNE, "", SMALL },
	{ "tuning.strategy.sigopt_experiment_name", "t", NOTED_BY_TUNE, "", SMALL },
	{ "tuning.strategy.sigopt_api_url", "t", NOTED_BY_TUNE, "", SMALL },
	{ "tuning.strategy.n_startup_trials", "6", TUNE,
	  "tuning.strategy.name=tpe|tuning.accuracy_criterion.tolerable_loss=0|tuning.exit_policy.max_trials="
	  "8",
	  SMALL },
	{ "tuning.strategy.n_ei_candidates", "1", TUNE, TPE8, SMALL },
	{ "tuning.strategy.gamma", "0.9", TUNE, TPE8, SMALL },
	{ "tuning.strategy.prior_weight", "50", TUNE, TPE8, SMALL },
	{ "tuning.accuracy_criterion.criterion", "absolute", TUNE,
	  "evaluation.accuracy.metric=top1|evaluation.accuracy.iteration=8|tuning.accuracy_criterion."
	  "tolerable_loss=0.1",
	  SMALL },
	{ "tuning.accuracy_criterion.tolerable_loss", "0.5", TUNE, "", SMALL },
	{ "tuning.accuracy_criterion.higher_is_better", "false", TUNE, "", SMALL },
	{ "tuning.objective", "performance", TUNE, "tuning.accuracy_criterion.tolerable_loss=0.9", SMALL },
	{ "tuning.multi_objectives.objective", "[accuracy, modelsize]", TUNE,
	  "!tuning.objective|tuning.accuracy_criterion.tolerable_loss=0.9", SMALL },
	{ "tuning.multi_objectives.weight", "[1, 0]", TUNE, SEVERAL "|tuning.multi_objectives.weight=[0, 1]",
	  SMALL },
	{ "tuning.multi_objectives.higher_is_better", "[true, true]", TUNE,
	  SEVERAL
	  "|tuning.multi_objectives.weight=[0, 1]|tuning.multi_objectives.higher_is_better=[true, false]",
	  SMALL },
	{ "tuning.exit_policy.timeout", "0.001", TUNE, "", SMALL },
	{ "tuning.exit_policy.max_trials", "1", TUNE, "", SMALL },
	{ "tuning.exit_policy.performance_only", "true", TUNE, "", SMALL },
	{ "tuning.random_seed", "5", TUNE, "tuning.strategy.name=random", SMALL },
	{ "tuning.tensorboard", "true", TUNE, "", SMALL },
	{ "tuning.workspace.path", "mine", TUNE, "", SMALL },
	{ "tuning.workspace.resume", "nowhere/history.db", TUNE, "", SMALL },

	{ SPACE ".calibrate_method", "[Entropy]", SEARCH, METHODS, SMALL },
	{ SPACE ".activation_type", "[QUInt16]", SEARCH, METHODS, SMALL },
	{ SPACE ".weight_type", "[QUInt8]", SEARCH, METHODS, SMALL },
	{ SPACE ".include_cle", "[true]", SEARCH, METHODS, PLAIN },
	{ SPACE ".include_sq", "[true]", SEARCH, METHODS, PLAIN },
	{ SPACE ".include_auto_mp", "[true]", SEARCH, METHODS, PLAIN },
	{ SPACE ".include_fast_ft", "[true]", SEARCH, METHODS, SMALL },
	{ SPACE ".extra_options.ActivationSymmetric", "[true]", SEARCH, METHODS, SMALL },
	{ SPACE ".extra_options.WeightSymmetric", "[false]", SEARCH,
	  METHODS "|" SPACE ".weight_type=[QUInt8]", SMALL },
	{ SPACE ".extra_options.CalibMovingAverage", "[true]", SEARCH, METHODS, SMALL },
	{ SPACE ".extra_options.CalibMovingAverageConstant", "[0.5]", SEARCH,
	  METHODS "|" SPACE ".extra_options.CalibMovingAverage=[true]", SMALL },
	{ SPACE ".extra_options.Percentile", "[80]", SEARCH, SPACE ".calibrate_method=[Percentile]", SMALL },
	{ SPACE ".extra_options.SmoothAlpha", "[0.9]", SEARCH, METHODS "|" SPACE ".include_sq=[true]",
	  PLAIN },
	{ SPACE ".extra_options.FastFinetune.OptimAlgorithm", "[gram]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.Granularity", "[block]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.DataSize", "[4]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.BatchSize", "[2]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.NumIterations", "[9]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.LearningRate", "[0.3]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.NumIterLR", "[[7, 0.2]]", SEARCH,
	  METHODS "|" SPACE ".include_fast_ft=[true]|" SPACE
		  ".extra_options.FastFinetune.OptimAlgorithm=[adaquant]|" SPACE
		  ".extra_options.FastFinetune.NumIterLR=[[3, 0.1]]",
	  SMALL },
	{ SPACE ".extra_options.FastFinetune.FixedSeed", "[77]", SEARCH,
	  SEARCH_FT "|" SPACE ".extra_options.FastFinetune.LearningRate=[0.1]", SMALL },
	{ SPACE ".extra_options.FastFinetune.EarlyStop", "[true]", SEARCH, SEARCH_FT, SMALL },
	{ SPACE ".extra_options.FastFinetune.SelectiveUpdate", "[false]", SEARCH,
	  SEARCH_FT "|" SPACE ".extra_options.FastFinetune.LearningRate=[5]", SMALL },
	{ "auto_search.search_algo", "random", SEARCH,
	  SPACE ".calibrate_method=[MinMax, Entropy, Percentile, NonOverflow, MinMSE]", SMALL },
	{ "auto_search.search_evaluator", "cosine", SEARCH, METHODS, SMALL },
	{ "auto_search.search_tolerance", "0.3", SEARCH, METHODS, SMALL },
	{ "auto_search.search_stop_condition.find_n_candidates", "1", SEARCH,
	  METHODS "|auto_search.search_tolerance=100", SMALL },
	{ "auto_search.search_stop_condition.find_best_candidate", "1", SEARCH, METHODS, SMALL },
	{ "auto_search.search_stop_condition.iteration_limit", "1", SEARCH, METHODS, SMALL },
	{ "auto_search.search_stop_condition.time_limit", "0.001", SEARCH, METHODS, SMALL },
	{ "auto_search.two_stage_search", "true", SEARCH, METHODS "|" SPACE ".include_fast_ft=[true]",
	  SMALL },
	{ "auto_search.advanced_fastft_search", "true", SEARCH, METHODS, SMALL },
	{ "auto_search.advanced_fastft_params.sampler_algo", "random", SEARCH,
	  STUDY "|auto_search.advanced_fastft_params.n_trials=12|auto_search.advanced_fastft_params.sampler_"
		"algo=grid",
	  SMALL },
	{ "auto_search.advanced_fastft_params.direction", "maximize", SEARCH, STUDY, SMALL },
	{ "auto_search.advanced_fastft_params.n_trials", "2", SEARCH, STUDY, SMALL },
	{ "auto_search.n_jobs", "2", SEARCH, METHODS, SMALL | THREADS },
	{ "auto_search.search_devices", "cpu", NOTED, "", PLAIN },
	{ "auto_search.search_log_path", "my.log", SEARCH, METHODS, SMALL },
};

static struct fettle *f;
static char *dir, *fashion, *small, *calib, *eval;
static struct str found;      /* what the run came to */
static atomic_size_t threads; /* started */

/* ---- runs ---- */

/* Stands before the C library's: every thread that fettle or the runtime starts is counted, however short it lives. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
							  void *(*start)(void *), void *arg)
{
	typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	create_fn create = (create_fn)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");

	atomic_fetch_add(&threads, 1);
	return create(thread, attr, start, arg);
}

/* scores of ops, into what was found; and one trial, for a run needs one */
static enum fettle_status rank_ops(struct fettle_search *s, void *self)
{
	size_t n_ops = fettle_search_n_ops(s), n = fettle_search_n_params(s), i, by, m;
	unsigned char *plan = xcalloc(n, 1);
	size_t *ops = xcalloc(n_ops, sizeof(*ops));
	double *scores = xcalloc(n_ops, sizeof(*scores));
	struct fettle_plan_score score = FETTLE_PLAN_SCORE_INIT;
	enum fettle_status st;

	(void)self;
	for (i = 0; i < n; i++)
		plan[i] = (unsigned char)fettle_search_param(s, i)->first;
	st = fettle_search_try(s, plan, &score);
	for (by = FETTLE_RANK_IMPACT; by <= FETTLE_RANK_HESSIAN && !st; by++) {
		st = fettle_search_rank_ops(s, plan, (enum fettle_rank)by, ops, scores, &m);
		for (i = 0; i < m && !st; i++)
			str_addf(&found, "%zu %.6g, ", ops[i], scores[i]);
	}
	free(plan);
	free(ops);
	free(scores);
	return st;
}

/* paths without the time that is in their names */
static void add_path(const char *path)
{
	for (; path && *path; path++)
		str_addf(&found, "%c", *path >= '0' && *path <= '9' ? '#' : *path);
	str_addf(&found, "\n");
}

static void add_file(const char *path)
{
	char print[FINGERPRINT_LEN] = "none";

	fingerprint_file(path, print, NULL);
	str_addf(&found, "%s\n", print);
}

static void add_run(const struct fettle_tuned *t)
{
	struct fettle_run *run = NULL;
	char *board;
	size_t i;

	str_addf(&found, "%d %s %s %s target %.9g, %zu trials, best %zu\n", t->met, fettle_stop_word(t->stop),
		 t->strategy, t->metric, t->target, t->trials, t->best->trial);
	add_path(t->workspace);
	add_file(t->output);
	for (i = 0; i < t->n_speeds; i++)
		str_addf(&found, "batch %zu\n", t->speeds[i]->batch);
	for (i = 0; i < t->n_candidates; i++)
		str_addf(&found, "candidate %zu, met %d\n", t->candidates[i]->trial, t->candidates[i]->met);
	if (fettle_history(f, t->workspace, &run))
		fail_msg("%s", fettle_message(f));
	for (i = 0; i < run->n_trials; i++)
		str_addf(&found, "%.12g %d %zu %zu %s\n", run->trials[i]->accuracy, run->trials[i]->met,
			 run->trials[i]->samples, run->trials[i]->size_bytes, run->trials[i]->plan);
	for (i = 0; i < run->n_trials; i++)
		str_addf(&found, "%d", isnan(run->trials[i]->latency_ms));
	fettle_run_free(run);
	board = xstrfmt("%s/tensorboard", t->workspace);
	str_addf(&found, path_is_dir(board) ? "tensorboard\n" : "");
	free(board);
	nftw(t->workspace, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void add_names(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		str_addf(&found, "%s", strcmp(e->d_name, "my.log") == 0 ? "my.log\n" : "");
	if (d)
		closedir(d);
}

static enum fettle_status carry_out(enum what what, const struct call_options *o)
{
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct fettle_tuned *t = NULL;
	enum fettle_status st;

	if (what == EVAL) {
		st = request_eval(&f->cx, o, &score);
		if (!st)
			str_addf(&found, "%s %.12g on %zu\n", score.metric, score.value, score.samples);
		return st;
	}
	if (what == TUNE || what == SEARCH) {
		st = api_run_job(f, o, what == SEARCH, false, &t);
		if (!st)
			add_run(t);
		fettle_tuned_free(t);
		return st;
	}
	st = request_quantize(&f->cx, o, &q);
	if (!st) {
		str_addf(&found, "%zu int8, %zu fp32, %zu samples\n", q.ops_int8, q.ops_fp32,
			 q.calib_samples);
		add_file(o->output);
	}
	return st;
}

/* "key=value|key=value" into settings; "!key" takes one of those before away */
static size_t split(char *text, struct fettle_setting *out, size_t n)
{
	char *save, *p;
	size_t i;

	for (p = strtok_r(text, "|", &save); p; p = strtok_r(NULL, "|", &save)) {
		char *eq = strchr(p, '=');
		const char *key = *p == '!' ? p + 1 : p;

		if (eq)
			*eq = '\0';
		for (i = 0; i < n && strcmp(out[i].key, key) != 0;)
			i++;
		if (!eq)
			out[i] = out[--n];
		else
			out[i] = (struct fettle_setting){ p, eq + 1, "test" };
		n += eq && i == n;
	}
	return n;
}

/* What comes of it, as text that any difference shows in. */
static char *outcome(const struct row *row, bool with)
{
	static const char usual[] =
		"evaluation.accuracy.dataloader.batch_size=16|evaluation.accuracy.iteration=1|"
		"quantization.calibration.sampling_size=8|tuning.exit_policy.max_trials=2|"
		/* nothing that is timed decides */
		"tuning.strategy.name=exhaustive|tuning.objective=modelsize|tuning.accuracy_criterion."
		"tolerable_loss=0";
	struct fettle_setting settings[32];
	struct call_options o = { .model = NULL };
	const char *metric = row->what == EVAL || row->how & SCORED ? "|evaluation.accuracy.metric=top1"
			     : row->what == TUNE                    ? "|evaluation.accuracy.metric=cosine"
								    : "";
	char *text = xstrfmt("%s%s%s|%s", usual, metric,
			     row->how & SCORED ? "|tuning.strategy.name=ranks" : "", row->base);
	enum fettle_status st;

	str_release(&found);
	atomic_store(&threads, 0);
	o.model = row->how & SMALL ? small : fashion;
	o.threads = row->how & THREADS && row->what == EVAL ? 0 : 1;
	o.output = row->what == QUANTIZE || row->what == NOTED ? "q.onnx" : NULL;
	o.calib = strstr(row->key, "calibration.dataloader.dataset") && with ? NULL : calib;
	o.eval = row->what == SEARCH || (strstr(row->key, "accuracy.dataloader.dataset") && with) ? NULL
												  : eval;
	o.settings = settings;
	o.n_settings = split(text, settings, 0);
	if (with) {
		size_t i;

		for (i = 0; i < o.n_settings && strcmp(settings[i].key, row->key) != 0;)
			i++;
		o.n_settings += i == o.n_settings;
		settings[i] = (struct fettle_setting){ row->key, row->value, "test" };
	}
	st = carry_out(row->what == NOTED ? QUANTIZE : row->what == NOTED_BY_TUNE ? TUNE : row->what, &o);
	if (st)
		str_addf(&found, "status %d: %s\n", (int)st, fettle_message(f));
	if (!with && st)
		fail_msg("%s: the run without it failed: %s", row->key, fettle_message(f));
	if (row->how & THREADS)
		str_addf(&found, "%zu threads\n", atomic_load(&threads));
	add_names(".");
	remove("my.log");
	free(text);
	text = found.s;
	found = (struct str)STR_INIT;
	return text;
}

/* ---- the table against the schema ---- */

static const struct row *row_of(const char *key)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return NULL;
}

static void find_row(void *self, const char *path, const struct key *k, unsigned used)
{
	(void)self, (void)k, (void)used;
	if (strncmp(path, "auto_search.search_space_", 25) == 0)
		return; /* as the first */
	if (!row_of(path))
		fail_msg("%s: nobody shows that it does anything, add a row", path);
}

static void every_key_has_a_row(void **state)
{
	struct config *c = config_new();
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	config_each(c, find_row, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (config_set(c, rows[i].key, rows[i].value, "test", &err) && strstr(err.msg, "unknown key"))
			fail_msg("%s", err.msg);
	config_free(c);
}

static bool is_noted(const char *key)
{
	const char *last = strrchr(key, '.');
	size_t i;

	for (i = 0; fettle_note(f, i); i++)
		if (strstr(fettle_note(f, i), last ? last + 1 : key))
			return true;
	return false;
}

static bool same_base(const struct row *a, const struct row *b)
{
	return a->what == b->what && a->how == b->how && strcmp(a->base, b->base) == 0;
}

/* the outcome without the setting, which must be the same every time: else a difference would mean nothing */
static char *repeated(const struct row *row)
{
	char *first = outcome(row, false), *again = outcome(row, false);

	if (!(row->how & THREADS) && strcmp(first, again) != 0)
		fail_msg("%s: two runs without it differ: %.200s and %.200s", row->key, first, again);
	free(again);
	return first;
}

static void every_key_changes_something(void **state)
{
	char *base[ARRAY_LEN(rows)] = { NULL };
	size_t i, k, failed = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		char *without, *with;

		for (k = 0; !same_base(&rows[k], row);)
			k++;
		if (k == i && row->what < NOTED)
			base[i] = repeated(row);
		without = base[k];
		with = outcome(row, true);

		if (row->what >= NOTED ? !is_noted(row->key) : strcmp(without, with) == 0) {
			failed++;
			print_error("%s: %s has no effect, and no note says so: %.200s\n", row->key,
				    row->value, with);
		}
		free(with);
	}
	for (i = 0; i < ARRAY_LEN(rows); i++)
		free(base[i]);
	assert_int_equal(failed, 0);
}

static int begin(void **state)
{
	static const char body[] = "k = 0.5; s = Mul(x, k); "
				   "w1 = 4x1x3x3; b1 = 4; a = Conv(s, w1, b1) strides=2,2; r = Relu(a); w2 = "
				   "4x4x3x3; b2 = 4; b = Conv(r, w2, b2) "
				   "pads=1,1,1,1; c = Concat(r, b) axis=1; m = MaxPool(c) kernel_shape=2,2 "
				   "strides=2,2; w3 = 10x8x3x3; "
				   "b3 = 10; d = Conv(m, w3, b3); g = GlobalAveragePool(d); y = Flatten(g)";
	const struct fettle_strategy ranks = {
		.size = sizeof(ranks), .name = "ranks", .summary = "ranks ops", .traverse = rank_ops
	};

	(void)state;
	dir = temp_tree();
	fashion = realpath("examples/fashion.onnx", NULL);
	calib = realpath("examples/fashion_calib.npz", NULL);
	eval = realpath("examples/fashion_eval.npz", NULL);
	small = xstrfmt("%s/small.onnx", dir);
	build_model(small, 13, "x:?x1x28x28", body, "y");
	f = fettle_new();
	return !fashion || !calib || !eval || chdir(dir) || fettle_register_strategy(f, &ranks);
}

static int end(void **state)
{
	(void)state;
	fettle_free(f);
	free(fashion);
	free(calib);
	free(eval);
	free(small);
	remove_tree(dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_has_a_row),
		cmocka_unit_test(every_key_changes_something),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
