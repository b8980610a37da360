/*
 * fettle: makes ONNX models small and fast without breaking them.
 *
 *	struct fettle *f = fettle_new();
 *	struct fettle_tune_options o = FETTLE_TUNE_OPTIONS_INIT;
 *	struct fettle_tuned *t = NULL;
 *
 *	o.model = "model.onnx";
 *	o.calib = "calib.npz";
 *	o.eval = "eval.npz";
 *	o.tolerance = 0.01;
 *	o.output = "model.int8.onnx";
 *	if (fettle_tune(f, &o, &t))
 *		fprintf(stderr, "%s\n", fettle_message(f));
 *	fettle_tuned_free(t);
 *	fettle_free(f);
 *
 * Threads. A handle serves one thread at a time; any number of handles may be in use at once. Functions that take no
 * handle may be called from anywhere. The library calls your functions (progress, trials, data, metrics, losses,
 * strategies, evaluators) from the thread that called it, one at a time, and never after the call has returned. They
 * must not call the library with the same handle, but for functions that only read, such as fettle_message().
 *
 * Fork. After fork() without exec, the child must not use a handle that the parent has made, nor free it: the threads
 * that ONNX Runtime started for it exist in the parent only. The library itself starts programs (evaluators, the memory
 * measurement) with posix_spawn(), each in its own process group, and waits for them by process id. So do not set SIGCHLD
 * to SIG_IGN, and do not wait for "any child", while a call with such a program runs.
 *
 * Signals. The library installs no handlers and changes no dispositions. It blocks SIGPIPE in its own thread while it
 * writes to an evaluator. To stop on Ctrl-C, set a flag in your handler and let the progress function return false: it is
 * called every batch of samples, and ten times a second while the library waits.
 *
 * Memory. If a tensor, a file or a model does not fit into memory, the call returns FETTLE_SYSTEM or FETTLE_BACKEND. If a
 * small allocation fails (names, lists, graph nodes), the library writes one line to stderr and calls abort(). A host
 * that must survive that runs fettle in a process of its own, for example as the command with --json.
 *
 * Ownership. What you pass is borrowed for the call, unless its comment says longer. What *_free() takes is yours until
 * then, with everything it points to. Texts from functions that take a handle belong to the handle and last until the
 * next call with it; "free() it" is said where a text is yours.
 *
 * Globals. The library has no state of its own outside handles, but for the text of fettle_callback_failed() in each
 * thread. Of the process it changes, and puts back before it
 * returns: OpenBLAS's number of threads (one, while it computes with it) and, with Debian's ONNX Runtime, where stderr goes
 * (while the first handle starts). It reads $TMPDIR. ONNX Runtime has one environment per process: whoever makes it first,
 * you or fettle, sets the level of its log, and fettle asks for fatal errors only. It makes files in $TMPDIR (or
 * /tmp), in the workspace and where you say, and needs no other.
 *
 * Versions. Every struct begins with its size, so that fields can be added at the end without breaking programs that
 * were compiled before. You set it with the struct's *_INIT, also where the library fills the struct: it then fills what
 * your version has. The library sets it in structs that it makes itself; it hands over several of those as a list of
 * pointers. Four small types are complete and never change, so they have no size: fettle_setting, fettle_field,
 * fettle_values and fettle_tensor. Of options, 0 and NULL mean "the default" where nothing else is said.
 */
#ifndef FETTLE_H
#define FETTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the header, and of everything else: CMake, packages and documents take it from here. */
#define FETTLE_VERSION "0.2.0"
#define FETTLE_VERSION_NUMBER 200 /* 10000 * major + 100 * minor + patch */

/* For the *_INIT macros: all zeros but the size, in C99 and in C++11. */
#ifdef __cplusplus
} /* extern "C" */
template <class T> inline T fettle_init_()
{
	T t = T();
	t.size = sizeof(T);
	return t;
}
template <class T> inline T fettle_init_tolerance_()
{
	T t = fettle_init_<T>();
	t.tolerance = -1;
	return t;
}
extern "C" {
#define FETTLE_INIT_(type) fettle_init_<struct type>()
#define FETTLE_INIT_TOLERANCE_(type) fettle_init_tolerance_<struct type>()
#else
#define FETTLE_INIT_(type)                                                                                   \
	{                                                                                                    \
		.size = sizeof(struct type)                                                                  \
	}
#define FETTLE_INIT_TOLERANCE_(type)                                                                         \
	{                                                                                                    \
		.size = sizeof(struct type), .tolerance = -1                                                 \
	}
#endif

#if defined(__GNUC__)
#define FETTLE_API __attribute__((visibility("default")))
#else
#define FETTLE_API
#endif

/* How a call ended. Zero is success; fettle_message() has the reason for the others. */
enum fettle_status {
	FETTLE_OK = 0,
	FETTLE_STOP,        /* told to stop: the budget is spent, the goal is reached, or cancelled */
	FETTLE_INVALID,     /* the input or a setting is wrong */
	FETTLE_UNSUPPORTED, /* the input is fine, but not something fettle handles */
	FETTLE_SYSTEM,      /* a file, the disk, memory or a process failed */
	FETTLE_BACKEND,     /* ONNX Runtime failed */
};

struct fettle;

/*
 * ONNX Runtime's own builds report usage to their maker and leave files in TMPDIR. fettle switches the reports off once the
 * runtime has started; set ORT_DISABLE_TELEMETRY=1 in the environment before, as the command does, and it reports nothing.
 */
FETTLE_API struct fettle *fettle_new(void);
FETTLE_API void fettle_free(struct fettle *f);
/* Why the last call failed; "" if it did not. Valid until the next call. */
FETTLE_API const char *fettle_message(const struct fettle *f);
/* The version of this library, which may be newer than the header's, and of the ONNX Runtime it runs on. */
FETTLE_API const char *fettle_version(void);
FETTLE_API int fettle_version_number(void); /* as FETTLE_VERSION_NUMBER */
FETTLE_API const char *fettle_runtime_version(void);
/* The kind of this CPU as far as int8 goes, and whether its u8 x s8 products saturate. */
FETTLE_API const char *fettle_cpu(bool *saturates);
/* The kinds of CPU that plans can be made for. */
struct fettle_cpu_kind {
	size_t size;
	const char *name, *summary;
	bool saturates; /* u8 x s8 products overflow: int8 weights get 7 bits */
};
#define FETTLE_CPU_KIND_INIT FETTLE_INIT_(fettle_cpu_kind)
FETTLE_API bool fettle_cpu_kind(size_t i, struct fettle_cpu_kind *out); /* false past the end */

/* Called now and then with what is being done and how far it is (total 0: unknown). Returning false
 * cancels: the call returns FETTLE_STOP. */
typedef bool (*fettle_progress)(void *self, const char *phase, size_t done, size_t total);
FETTLE_API void fettle_on_progress(struct fettle *f, fettle_progress call, void *self);
/* Cancels the call in progress, too, and need not wait for a run of the model to end, which may take seconds. A search
 * still writes the best so far. May be called by any thread, and by a signal handler; the handle must not be freed meanwhile.
 * No effect when no call is in progress. */
FETTLE_API void fettle_interrupt(struct fettle *f);

/* One setting of the configuration by its dotted name, e.g. "tuning.exit_policy.timeout" = "60". `origin` says in
 * messages where it came from ("--timeout"). */
struct fettle_setting {
	const char *key, *value, *origin;
};

/* Types of elements, by ONNX's numbers (TensorProto.DataType). */
enum fettle_dtype {
	FETTLE_FLOAT32 = 1,
	FETTLE_UINT8 = 2,
	FETTLE_INT8 = 3,
	FETTLE_UINT16 = 4,
	FETTLE_INT16 = 5,
	FETTLE_INT32 = 6,
	FETTLE_INT64 = 7,
	FETTLE_BOOL = 9,
	FETTLE_FLOAT16 = 10,
	FETTLE_FLOAT64 = 11,
	FETTLE_UINT32 = 12,
	FETTLE_UINT64 = 13,
	FETTLE_BFLOAT16 = 16,
};

/*
 * Data that the program has itself, as an alternative to a path. A field is an array of all samples, with names as
 * in a .npz: the model's inputs, or `x`; labels `y`. read() writes one sample of one field to `to`, in row-major
 * order; false: it failed, and so does the call. Samples are asked for in any order and more than once, by the
 * thread that called.
 */
struct fettle_field {
	const char *name;
	enum fettle_dtype dtype;
	int rank; /* of one sample; 0: a number */
	const int64_t *dims;
};
struct fettle_data_source {
	size_t size;
	const char *name; /* for messages; NULL: "callback" */
	size_t samples;
	const struct fettle_field *fields;
	size_t n_fields;
	bool (*read)(void *self, size_t sample, size_t field, void *to);
	void *self;
};
#define FETTLE_DATA_SOURCE_INIT FETTLE_INIT_(fettle_data_source)

/*
 * Data that the program has as arrays in memory, one call per array. Names are as above. The first dimension counts the
 * samples and is the same for all; values are in row-major order. They are borrowed until fettle_data_free(), not copied,
 * and read by several threads at once.
 *
 *	struct fettle_data *d = fettle_data_new();
 *	fettle_data_add(f, d, "x", FETTLE_FLOAT32, 4, (const int64_t[]){ 500, 3, 224, 224 }, images);
 *	fettle_data_add(f, d, "y", FETTLE_INT64, 1, (const int64_t[]){ 500 }, labels);
 *	o.eval_data = d;
 */
struct fettle_data;
FETTLE_API struct fettle_data *fettle_data_new(void);
FETTLE_API enum fettle_status fettle_data_add(struct fettle *f, struct fettle_data *d, const char *name,
					      enum fettle_dtype dtype, int rank, const int64_t *dims,
					      const void *values);
FETTLE_API void fettle_data_free(struct fettle_data *d);

/*
 * Why a function of yours fails: call this in it before it returns "failed" (false, NaN). The message of the call, or of
 * the trial, then ends with it. Copied.
 */
FETTLE_API void fettle_callback_failed(const char *why);

/*
 * The model that the last call wrote, where its options have to_memory: fettle_quantize() and fettle_recover() then need
 * no output path. Valid until the next call; NULL: none. A model of more than 1 GB does not fit into one ONNX message and
 * can only be written to a file.
 */
FETTLE_API const void *fettle_model_bytes(const struct fettle *f, size_t *size);

/*
 * Where options say DATA: a .npz (arrays named as the model's inputs, or `x`; labels `y`), a folder of class folders with
 * images, a folder of test_data_set_* as ONNX publishes them, or NAME:ROOT of a kind that was registered. Where they say
 * OPS: names, types or /regular expressions/ of ops, with commas.
 *
 * What options have in common:
 *   model, model_bytes  an ONNX file, or a model in memory without external data
 *   config              YAML; what is set in the options overrides it
 *   settings            any setting of the configuration by its dotted name, over all others
 *   threads             of the runtime; 0: all cores
 *   cpu                 plan for this kind of CPU, see fettle_cpu_kind(); NULL: for this one
 *   metric              top1, top5, topk:K, f1, mse, …; NULL: by the labels, else cosine. "top1,f1": each must meet the
 *                       target, and the accuracy is what the worst kept of fp32's; "0.7*top1,0.3*f1": the weighted mean
 *   scores              names of the outputs to score, with commas; NULL: as fits the labels
 *   eval_cmd            any program instead of data and metric: "cmd {model}" prints one number, or JSON
 *   eval_server         one that stays: a model's path per line in, its score per line out
 *   evaluate            a function instead; NaN: it failed
 *   recipes             "NAME", "NAME=off", "smooth_quant=0.6"; see fettle_recipe()
 *   calib_source, …     data that the program has, by a function; calib_data, eval_data, arrays: as arrays
 *   to_memory           the model also as bytes, see fettle_model_bytes()
 *   helper              the fettle command, to measure memory in a separate process; NULL: do not
 */

/* Quantizes a model by one plan, without a search, and writes it. */
struct fettle_quantize_options {
	size_t size;
	const char *model, *output, *config;
	const void *model_bytes;
	size_t model_size;
	const char *calib; /* DATA for calibration */
	const struct fettle_data_source *calib_source;
	size_t samples;       /* to calibrate on; 0: 100, or all if there are fewer */
	uint64_t seed;        /* of their choice; 0: the first ones */
	size_t batch;         /* samples per run of the model, fewer if they need much memory; 0: 8 */
	const char *plan;     /* JSON file of a plan, as fettle_tune() writes it */
	const char *approach; /* static (default), dynamic, auto, weight_only, all */
	const char *format;   /* qdq (default), qoperator */
	/* weight_only: rtn (default) and others that fettle_block_algorithm_name() lists; else of activations */
	const char *
		algorithm; /* minmax (default), kl, percentile[:P], mse, moving_average, nonoverflow, minmse */
	const char *activation_type;   /* uint8 (default), int8, uint16, int16 */
	const char *activation_scheme; /* asym (default), sym */
	const char *weight_type;       /* int8 (default), uint8, int16, uint16 */
	const char *weight_scheme;     /* sym (default), asym */
	const char *granularity;       /* per_channel (default), per_tensor */
	const char *reduce_range; /* auto (default: on where the CPU saturates), on, off: 7-bit weights */
	const char *keep_fp32;    /* OPS to leave alone */
	const char *quantize;     /* OPS to quantize that are not by default */
	const char *const *recipes;
	size_t n_recipes;
	const char *cache; /* memory that the recipe finetune keeps samples in: "2G"; NULL: 1G */
	const char *cpu;
	int threads;
	const struct fettle_setting *settings;
	size_t n_settings;
	const struct fettle_data *calib_data;
	bool to_memory;
	/* weight_only */
	const char *bits;       /* 2, 4 (default), 8 */
	const char *group_size; /* weights that share a scale: 16, 32 (default), 64, 128, 256 */
	const char *scheme;     /* asym (default), sym */
	const char *
		accuracy_level; /* what the runtime computes in: 0 or 1 floats, 4 (default) int8; 8 bits need 4 */
};
#define FETTLE_QUANTIZE_OPTIONS_INIT FETTLE_INIT_(fettle_quantize_options)
struct fettle_quantized {
	size_t size;
	/* ops by what a default session computes them in; in 16 bits means rounded to that, computed in floats */
	size_t ops_int8, ops_int16, ops_dynamic, ops_fp32;
	double int8_share; /* of the multiply-adds, dynamic ones included */
	size_t calib_samples;
	size_t size_before, size_after;                              /* bytes on disk */
	double seconds_prepare, seconds_calibrate, seconds_quantize; /* where the time went */
	const char *cpu;                                             /* the kind it is planned for */
	char saturates_on
		[64]; /* kinds of CPU on which some of its products overflow: "avx2, avx512"; "": none */
	const char *output; /* as in the options; valid until the next call */
	/* with the recipe finetune: the ops it tuned, those it found nothing better for, those it left alone; and the
	 * mean squared error of the outputs of the first, before and after */
	size_t finetuned, finetune_kept, finetune_left;
	double finetune_before, finetune_after;
	size_t ops_weight_only;   /* whose weights are in 2 to 8 bits, in blocks */
	double weight_only_share; /* of the multiply-adds */
};
#define FETTLE_QUANTIZED_INIT FETTLE_INIT_(fettle_quantized)
FETTLE_API enum fettle_status fettle_quantize(struct fettle *f, const struct fettle_quantize_options *o,
					      struct fettle_quantized *out);
/* What its recipe finetune did to each op. False past the end; valid until the next call. */
struct fettle_finetuned {
	size_t size;
	const char *name;
	const char *left;     /* why it was left at nearest rounding; NULL: it was not */
	double before, after; /* squared error of its output, relative to fp32, on samples held out */
	bool kept;            /* what was found was no better: its weights are the nearest, too */
};
#define FETTLE_FINETUNED_INIT FETTLE_INIT_(fettle_finetuned)
FETTLE_API bool fettle_finetuned(const struct fettle *f, size_t i, struct fettle_finetuned *out);

/*
 * The ops that the written model computes in fp32, of those that could be quantized or have multiply-adds: after
 * fettle_quantize(), fettle_tune() and fettle_auto_search(). `reason` is one of
 *   no_kernel  it cannot be quantized               user       an option, the configuration or a given plan says so
 *   no_gain    int8 would not make it faster        search     the search put it back
 *   recipe     a recipe leaves it out               not_fused  quantized, but the runtime computes it in floats
 * False past the end; valid until the next call.
 */
struct fettle_fp32_op {
	size_t size;
	const char *name, *type, *reason;
	const char *why; /* the same in words */
	double share;    /* of the multiply-adds */
};
#define FETTLE_FP32_OP_INIT FETTLE_INIT_(fettle_fp32_op)
FETTLE_API bool fettle_fp32_op(const struct fettle *f, size_t i, struct fettle_fp32_op *out);

/* What each of several metrics gives, in the order of their names in `metric`. With one metric n is 0. */
enum { FETTLE_METRICS_MAX = 8 };
struct fettle_values {
	size_t n;
	double v[FETTLE_METRICS_MAX];
};

/* The name of the i-th of several metrics, such as "f1" of "0.7*top1,0.3*f1", in `buf`; returns `buf`. */
FETTLE_API const char *fettle_value_name(const char *metric, size_t i, char *buf, size_t n);

/* The score of a model on data, or by a program. */
struct fettle_eval_options {
	size_t size;
	const char *model, *config;
	const void *model_bytes;
	size_t model_size;
	const char *data; /* DATA */
	const struct fettle_data_source *data_source;
	size_t samples; /* 0: all */
	size_t batch;   /* samples per run of the model; 0: 32, fewer if their inputs take more than 2 MB */
	const char *metric, *scores;
	const char *reference; /* model whose outputs are used as labels */
	const char *eval_cmd, *eval_server;
	int threads;
	const struct fettle_setting *settings;
	size_t n_settings;
	const struct fettle_data *arrays;
};
#define FETTLE_EVAL_OPTIONS_INIT FETTLE_INIT_(fettle_eval_options)
struct fettle_score {
	size_t size;
	char metric[128]; /* as it was computed */
	double value;     /* NaN of several metrics without weights */
	struct fettle_values values;
	bool higher_is_better;
	size_t samples;
	double seconds; /* in the runtime */
};
#define FETTLE_SCORE_INIT FETTLE_INIT_(fettle_score)
FETTLE_API enum fettle_status fettle_eval(struct fettle *f, const struct fettle_eval_options *o,
					  struct fettle_score *out);

/* Latency, size and memory of several models, timed in turns. */
struct fettle_bench_options {
	size_t size;
	const char *const *models;
	size_t n_models;
	const char *data; /* DATA to take the inputs from; NULL: they are made up */
	size_t batch;     /* 0: 1 */
	double seconds;   /* to time each model for; 0: 1 */
	int threads;
	const char *helper;
	size_t instances; /* sessions of a model that run at once, each on `threads`; 0: 1 */
	bool decode;      /* of language models: time one token after `past` others, instead of data */
	size_t past;
};
#define FETTLE_BENCH_OPTIONS_INIT FETTLE_INIT_(fettle_bench_options)
struct fettle_timing {
	size_t size;
	/* of one run: the median without what other processes took, the 90th percentile with it */
	double latency_ms, p90_ms;
	size_t runs;
	size_t size_bytes;
	size_t footprint_bytes; /* peak memory of a process that runs it; 0 without a helper */
	double speedup;         /* against the first model */
	/* between which the speed-up lies, with 99 % confidence; 0 and infinity when too few runs were timed to tell */
	double speedup_low, speedup_high;
	size_t batch; /* samples in a run: the model or the data may have no other number than the one asked for */
	size_t past;         /* with decode: tokens before the one that is timed */
	double tokens_per_s; /* with decode, of all rows together; else 0 */
};
#define FETTLE_TIMING_INIT FETTLE_INIT_(fettle_timing)
/* `out` has room for n_models, each begun with FETTLE_TIMING_INIT. */
FETTLE_API enum fettle_status fettle_bench(struct fettle *f, const struct fettle_bench_options *o,
					   struct fettle_timing *out);
/* Loads the only model of the options and runs it once in this process; gives the process's peak memory. */
FETTLE_API enum fettle_status fettle_footprint(struct fettle *f, const struct fettle_bench_options *o,
					       size_t *bytes);

/* One trial of a run. */
struct fettle_trial {
	size_t size;
	size_t number; /* from 1 */
	const char *stage;
	bool failed, met;
	const char *why;       /* of a failure */
	double accuracy, loss; /* loss against the baseline, in units of the criterion */
	/* Its evaluation ended when the verdict was certain: the accuracy lies within low..high, and `accuracy` is the
	 * end nearer to the target. All NaN: it was not evaluated, for no accuracy could have made it the best. */
	bool early;
	double accuracy_low, accuracy_high;
	double latency_ms; /* NaN: not measured */
	size_t size_bytes, samples;
	double seconds;
	const char *plan;    /* JSON; NULL while a run is going on */
	const char *changed; /* from fettle_history(): "as trial 2, but /fc/Gemm in fp32"; "" of the first */
	bool pareto;         /* no other trial beats it in all objectives of the run; of finished runs */
	size_t footprint_bytes;      /* peak memory, where that is an objective; 0: not measured */
	struct fettle_values values; /* of an evaluation that did not end early */
	int rank, worker;            /* that ran it, where several do; -1: one at a time */
};
/* Called after every trial, with the best so far and the accuracy to reach. */
struct fettle_progress_info {
	size_t size;
	const struct fettle_trial *trial;
	size_t max_trials; /* 0: no limit */
	double baseline, target;
	bool higher_is_better;
	size_t best; /* its number; 0: none yet */
	double best_accuracy;
	bool best_met, best_early;         /* early: its accuracy is a bound */
	double seconds_used, seconds_left; /* left: INFINITY when unknown */
	size_t ranks;                      /* that take part; 1: there is no other */
};
typedef void (*fettle_on_trial_fn)(void *self, const struct fettle_progress_info *info);
FETTLE_API void fettle_on_trial(struct fettle *f, fettle_on_trial_fn call, void *self);

/* Why a run has ended. */
enum fettle_stop {
	FETTLE_STOP_NONE = 0,     /* it has not */
	FETTLE_STOP_ACCURACY_MET, /* the target is met */
	FETTLE_STOP_MAX_TRIALS,   /* all trials are used up */
	FETTLE_STOP_TIMEOUT,      /* the time is used up */
	FETTLE_STOP_EXHAUSTED,    /* the strategy has nothing more to try */
	FETTLE_STOP_INTERRUPTED,  /* the progress function said so */
};
/* As JSON has it: "accuracy_met", "max_trials", "timeout", "exhausted", "interrupted"; NULL of FETTLE_STOP_NONE. */
FETTLE_API const char *fettle_stop_word(enum fettle_stop why);

/* Searches for the fastest model within the accuracy that may be lost, and writes it. */
struct fettle_tune_options {
	size_t size;
	const char *model, *output, *config;
	const void *model_bytes; /* a run keeps a copy */
	size_t model_size;
	const char *calib; /* DATA for calibration */
	const struct fettle_data_source *calib_source;
	size_t samples;   /* to calibrate on; 0: 100, or all if there are fewer */
	const char *eval; /* DATA for evaluation */
	const struct fettle_data_source *eval_source;
	size_t eval_samples; /* the first so many; 0: all */
	const char *holdout; /* DATA nothing is chosen by, to measure the result on */
	size_t batch;        /* samples per run of the model; 0: 8 for calibration, up to 32 for evaluation */
	const char *metric, *scores;
	const char *eval_cmd, *eval_server;
	double (*evaluate)(void *self, const char *model);
	void *evaluate_self;
	bool lower_is_better; /* what the evaluator or metric gives is an error */

	double tolerance; /* accuracy that may be lost: 0.01 is one percent; -1: as configured, else 0.01 */
	const char *criterion;   /* relative (default), absolute */
	const char *objective;   /* performance (default), modelsize, footprint */
	const char *strategy;    /* see fettle_strategy_name(); NULL: auto */
	const char *quant_level; /* auto (default), 0: conservative, 1: the strategy */
	int64_t max_trials;      /* 0: as configured, else 100; -1: no limit */
	double timeout; /* seconds; keeps looking for the fastest for so long; 0: stops at the first that
				  * meets the target, unless the configuration sets it */
	uint64_t seed;  /* the same seed gives the same sequence of plans; 0: as configured, else 9527 */

	const char *approach;   /* static (default), dynamic, auto */
	const char *format;     /* qdq (default), qoperator */
	const char *keep_fp32;  /* OPS to leave alone */
	const char *capability; /* YAML of what op types may be quantized to, instead of the built-in table */
	const char *const *recipes;
	size_t n_recipes;
	bool no_early;     /* evaluate every trial to its end, even when its verdict is certain before */
	double confidence; /* 0.99: a verdict that holds with 99 % is enough; 0: it must be certain */
	const char *jobs;  /* trials side by side: a number, or "auto"; NULL: 1 */
	const char *cache; /* memory for activations that trials have in common: "2G"; "0": none; NULL: 1G */
	const char *cpu;
	int threads;
	const char *workspace; /* folder of the run's history; NULL: fettle_workspace/<model>-<time> */
	bool resume;           /* continue the run in that folder */
	const char *helper;
	const struct fettle_setting *settings;
	size_t n_settings;
	const struct fettle_data *calib_data, *eval_data;
	bool to_memory;
	/*
	 * How the model will be deployed, which is how latency is measured; evaluation goes by `batch` and `threads`. Samples
	 * per run: "1,32" chooses plans by the first and reports all; NULL: "1". Threads per session; 0: as `threads`. Sessions
	 * that run at once; 0: 1.
	 */
	const char *latency_batch;
	int latency_threads;
	size_t instances;
	/* weight_only: what the search keeps to, "4" or "[4, 8]"; NULL: it is open. As in struct fettle_quantize_options. */
	const char *bits, *group_size, *scheme, *accuracy_level, *algorithm;
	/* The most accurate model of at most this size, a share of the fp32 model's ("0.3") or bytes ("300MB"); NULL: any. */
	const char *size_budget;
	/* One of the processes that mpirun has started: trials are shared among them. Only rank 0 writes and reports; on the others
	 * the call serves rank 0 until that is done, and *out is NULL. doc/MANY-MACHINES.md */
	bool ranks;
	bool broadcast_data; /* calibration and evaluation data that only rank 0 can read are sent to the others */
};
#define FETTLE_TUNE_OPTIONS_INIT FETTLE_INIT_TOLERANCE_(fettle_tune_options)
struct fettle_measure {
	size_t size;
	size_t trial; /* 0: the baseline */
	double accuracy, latency_ms, speedup;
	size_t size_bytes;
	size_t ops_int8, ops_int16, ops_dynamic, ops_fp32; /* as in struct fettle_quantized */
	double int8_share;
	struct fettle_values values;
	double speedup_low, speedup_high; /* as in struct fettle_timing */
	size_t ops_weight_only;           /* as in struct fettle_quantized */
	double weight_only_share;
};
/* How often the fp32 graph was rewritten in one way. */
struct fettle_rewriting {
	size_t size;
	const char *name, *summary;
	size_t times;
};
/* Where the time went. */
struct fettle_seconds {
	size_t size;
	double total, prepare, calibrate, quantize, session, evaluate, latency, rank;
	double runtime; /* of all that, in ONNX Runtime itself, summed over threads */
};
/* Time that was not spent, in fp32 passes, and why not. */
struct fettle_saved {
	size_t size;
	double early;    /* verdicts that were certain early */
	double cuts;     /* plans that begin as another did */
	double repeated; /* plans that gave a model that was tried */
	double beside;   /* trials side by side */
};
/* One of the settings that fettle_auto_search() found. */
struct fettle_candidate {
	size_t size;
	size_t trial; /* for fettle_recover() */
	bool met;
	double accuracy, loss, int8_share;
	const char *settings; /* "calibrate_method: MinMax, include_cle: true": what varies */
};
/* The best model against fp32, on batches of one size. */
struct fettle_speed {
	size_t size;
	size_t batch;                              /* samples in a run */
	double latency_ms, baseline_latency_ms;    /* of one run */
	double speedup, speedup_low, speedup_high; /* as in struct fettle_timing */
};
/* What other ranks did, and what was sent for it, there and back. */
struct fettle_ranks {
	size_t size;
	size_t ranks, trials; /* how many there are; trials that others than rank 0 ran */
	size_t given_twice;   /* trials and pieces that another rank got too, because the first was slow */
	size_t bytes, most_bytes, plan_bytes; /* for all trials without the plans; for one; of the plans */
	size_t pieces, piece_bytes;           /* of other work that was cut up, that others than rank 0 did */
	size_t ahead; /* plans that others ran to their end before anybody had asked for them */
};
struct fettle_tuned {
	size_t size;
	bool met;
	enum fettle_stop stop;
	const char *strategy;
	char metric[128];
	double target; /* accuracy that was to be reached; NaN: none was, by performance_only */
	bool higher_is_better;
	const struct fettle_measure *baseline, *best;
	size_t trials;
	double fp32_pass_s; /* one evaluation of the fp32 model: the unit of account */
	const struct fettle_seconds *seconds;
	const struct fettle_saved *saved;
	size_t samples_evaluated;
	const char *output, *workspace, *plan; /* plan: best_plan.json */
	bool has_holdout;
	double holdout, holdout_low, holdout_high, holdout_baseline; /* with a 95 % confidence interval */
	size_t holdout_samples;
	/* of fettle_auto_search(): those that met the target, or else all; best first */
	const struct fettle_candidate *const *candidates;
	size_t n_candidates;
	size_t space;        /* settings that differ, in all search spaces */
	const char *recipes; /* of the best, as far as they are not as by default: "cle, finetune=gram" */
	bool is_search;      /* of fettle_auto_search() */
	const char *model;   /* the fp32 model's path */
	/* by how much two evaluations of the fp32 model differed; NaN where it was evaluated only once, for fettle's own
	 * metrics do not differ */
	double noise;
	const char *cpu,
		*measured_on;  /* the kinds of CPU that it is planned for, and that it was measured on */
	char saturates_on[64]; /* as in struct fettle_quantized */
	const size_t *pareto;  /* numbers of the trials that no other beats in all objectives */
	size_t n_pareto;
	/* why less than a tenth of the multiply-adds is in low precision, even if that meets the target; NULL: more is */
	const char *almost_nothing;
	/* which plans were not tried, and why: of a strategy that ran out of plans, or had spent enough; NULL: nothing to say */
	const char *untried;
	const struct fettle_speed *const *speeds; /* by batch, in the order of latency_batch */
	size_t n_speeds;
	int latency_threads; /* 0: all cores */
	size_t instances;
	/* The fp32 model with its graph rewritten (recipe rewrite_graph), timed as the others: what came from the graph, and not
	 * from integers. Its accuracy is not measured. NULL: nothing was rewritten. */
	const struct fettle_measure *rewritten;
	const struct fettle_rewriting *const *rewritings;
	size_t n_rewritings;
	/* why it is no faster than fp32, by op types, and what would help (NULL: nothing is known); NULL: it is faster */
	const char *no_faster, *would_help;
	/* how many times as fast as fp32 it was to be when it was chosen, by its profile or those of others; NaN: not known */
	double predicted_speedup;
	const struct fettle_ranks *ranks; /* NULL: there were no others */
};
FETTLE_API enum fettle_status fettle_tune(struct fettle *f, const struct fettle_tune_options *o,
					  struct fettle_tuned **out);
FETTLE_API void fettle_tuned_free(struct fettle_tuned *t);
/* The configuration in force, as YAML with the origin of every value; free() it. */
FETTLE_API enum fettle_status fettle_tune_config(struct fettle *f, const struct fettle_tune_options *o,
						 char **text);

/*
 * What fettle_tune() would do with these options, without doing it: nothing is written. It fails where fettle_tune() would
 * fail before its first trial. fettle_fed() and fettle_scoring() then say what would be fed and scored.
 */
struct fettle_preview {
	size_t size;
	const char *strategy;
	char metric[128];
	bool higher_is_better;
	const char *criterion; /* relative, absolute */
	double tolerance;
	size_t calib_samples, eval_samples;
	size_t n_ops;       /* that have a choice */
	double log10_plans; /* size of the tuning space, as a power of ten */
	size_t max_trials;  /* 0: no limit */
	double timeout;     /* seconds; 0: none */
	/* Seconds, from a few batches of the fp32 model. NaN with an evaluator of the user's, whose time is not known. */
	double fp32_pass_s; /* one evaluation */
	double shortest_s;  /* the whole run, if the first plan meets the target */
	double longest_s;   /* if every trial is evaluated to its end; INFINITY: there is no limit */
};
#define FETTLE_PREVIEW_INIT FETTLE_INIT_(fettle_preview)
FETTLE_API enum fettle_status fettle_tune_preview(struct fettle *f, const struct fettle_tune_options *o,
						  struct fettle_preview *out);
FETTLE_API char *fettle_preview_json(const struct fettle *f, const struct fettle_preview *p); /* free() it */

/*
 * Searches the settings that the configuration's search_space lists (calibration methods, types, recipes, fine-tuning)
 * for those that lose least, and writes the model of the best. Without evaluation data, outputs are compared with the
 * fp32 model's on the calibration data. Never empty-handed, resumed and recovered as fettle_tune() is.
 */
struct fettle_search_options {
	size_t size;
	const char *model, *output, *config;
	const void *model_bytes;
	size_t model_size;
	const char *calib;
	const struct fettle_data_source *calib_source;
	size_t samples;
	const char *eval;
	const struct fettle_data_source *eval_source;
	size_t eval_samples;
	size_t batch;
	const char *metric, *scores;
	const char *eval_cmd, *eval_server;
	double (*evaluate)(void *self, const char *model);
	void *evaluate_self;
	bool lower_is_better;

	double tolerance; /* what a candidate may lose; in dB for psnr: what it must reach; -1: as configured */
	const char *algo;        /* grid (default), random, tpe, gp, cmaes, nsga2, qmc */
	int64_t iteration_limit; /* trials; 0: as configured, else 1000; -1: no limit */
	double time_limit;       /* seconds; 0: as configured, else no limit */
	uint64_t seed;           /* 0: as configured, else 9527 */

	const char *keep_fp32, *jobs, *cache, *cpu;
	int threads;
	const char *workspace;
	bool resume;
	const char *log; /* where the search is logged; NULL: auto_search.log in the workspace */
	const char *helper;
	const struct fettle_setting *settings;
	size_t n_settings;
	const struct fettle_data *calib_data, *eval_data;
	bool to_memory;
	/*
	 * How the model will be deployed, which is how latency is measured; evaluation goes by `batch` and `threads`. Samples
	 * per run: "1,32" chooses plans by the first and reports all; NULL: "1". Threads per session; 0: as `threads`. Sessions
	 * that run at once; 0: 1.
	 */
	const char *latency_batch;
	int latency_threads;
	size_t instances;
	bool ranks, broadcast_data; /* as in struct fettle_tune_options */
};
#define FETTLE_SEARCH_OPTIONS_INIT FETTLE_INIT_TOLERANCE_(fettle_search_options)
FETTLE_API enum fettle_status fettle_auto_search(struct fettle *f, const struct fettle_search_options *o,
						 struct fettle_tuned **out);
FETTLE_API enum fettle_status fettle_search_config(struct fettle *f, const struct fettle_search_options *o,
						   char **text); /* as fettle_tune_config() */

/*
 * Continues a run that was interrupted or killed, or one that has ended and gets more trials or time, from its workspace
 * alone. What the program itself had brought (evaluate, calib_source, eval_source) it must bring again. Settings may
 * raise limits; whatever decides a result must be as it was.
 */
struct fettle_resume_options {
	size_t size;
	const char *workspace;
	const char *output; /* NULL: as before */
	int64_t max_trials; /* in all; 0: as before; -1: no limit */
	double timeout;     /* seconds in all, those of the trials so far included; 0: as before */
	const char *jobs, *cache, *helper;
	const struct fettle_data_source *calib_source, *eval_source;
	double (*evaluate)(void *self, const char *model);
	void *evaluate_self;
	const struct fettle_setting *settings;
	size_t n_settings;
	const struct fettle_data *calib_data, *eval_data;
	bool to_memory;
	bool ranks, broadcast_data; /* as in struct fettle_tune_options */
};
#define FETTLE_RESUME_OPTIONS_INIT FETTLE_INIT_(fettle_resume_options)
FETTLE_API enum fettle_status fettle_resume(struct fettle *f, const struct fettle_resume_options *o,
					    struct fettle_tuned **out);

/* The recipes: what each does, its default, the values it takes, and whether a search tries it. */
struct fettle_recipe {
	size_t size;
	const char *name, *summary, *by_default, *values;
	bool tuned;
};
#define FETTLE_RECIPE_INIT FETTLE_INIT_(fettle_recipe)
FETTLE_API bool fettle_recipe(size_t i, struct fettle_recipe *out); /* false past the end */

/* The strategies. NULL past the end. */
FETTLE_API const char *fettle_strategy_name(size_t i, const char **summary);

/* How much each op costs when it alone is quantized, and why; worst first. Evaluation data is optional. */
struct fettle_sensitivity_options {
	size_t size;
	const char *model, *config;
	const void *model_bytes;
	size_t model_size;
	const char *calib;
	const struct fettle_data_source *calib_source;
	size_t samples;
	const char *eval;
	const struct fettle_data_source *eval_source;
	size_t eval_samples;
	const char *metric, *scores, *cpu;
	int threads;
	const struct fettle_setting *settings;
	size_t n_settings;
	const struct fettle_data *calib_data, *eval_data;
};
#define FETTLE_SENSITIVITY_OPTIONS_INIT FETTLE_INIT_(fettle_sensitivity_options)
struct fettle_op_cost {
	size_t size;
	const char *name, *type;
	double sqnr_db;        /* of the op's own output; higher is better */
	double model_sqnr_db;  /* of the model's output */
	double weight_share;   /* of the error; the rest is the activations' */
	double clipping_share; /* of the activations' error; the rest is rounding */
	double metric; /* with only this op quantized; NaN without evaluation data, or not among the worst */
	double macs_share;
};
struct fettle_sensitivity {
	size_t size;
	char metric[128]; /* "" without evaluation data */
	double baseline;
	size_t n;
	const struct fettle_op_cost *const *ops;
	const char *cpu; /* the kind that ops are planned for */
};
FETTLE_API enum fettle_status fettle_sensitivity(struct fettle *f, const struct fettle_sensitivity_options *o,
						 struct fettle_sensitivity **out);
FETTLE_API void fettle_sensitivity_free(struct fettle_sensitivity *s);

/* What is recorded of a run. */
struct fettle_run {
	size_t size;
	const char *model, *strategy, *metric, *started;
	enum fettle_stop stop; /* FETTLE_STOP_NONE while it has not ended */
	bool met;
	double baseline, baseline_latency_ms;
	size_t best; /* so far, while it has not ended; 0: none */
	size_t n_trials;
	const struct fettle_trial *const *trials;
	const char *workspace, *cpu; /* the kind of CPU that it is planned for */
	const char *measured_on;     /* and the kind that it was measured on */
	struct fettle_values baseline_values;
	/* of the result against fp32; NaN: not measured, or it has not ended */
	double speedup, speedup_low, speedup_high;
	const struct fettle_trial *best_trial; /* NULL: none */
	bool running; /* a process is at it; neither this nor ended: it was cut off */
};
FETTLE_API enum fettle_status fettle_history(struct fettle *f, const char *workspace,
					     struct fettle_run **out);
FETTLE_API void fettle_run_free(struct fettle_run *r);
/* The workspaces in a folder (NULL: fettle_workspace, where they go by default), by name; free() each and the list. */
FETTLE_API enum fettle_status fettle_workspaces(struct fettle *f, const char *folder, char ***out, size_t *n);
/* Makes the model of a trial again, from its history alone. */
struct fettle_recover_options {
	size_t size;
	const char *workspace;
	size_t trial; /* 0: the best */
	const char *output;
	const char *model; /* the fp32 model, if it is no longer where it was */
	const void *model_bytes;
	size_t model_size;
	bool to_memory;
};
#define FETTLE_RECOVER_OPTIONS_INIT FETTLE_INIT_(fettle_recover_options)
FETTLE_API enum fettle_status fettle_recover(struct fettle *f, const struct fettle_recover_options *o);

/*
 * A report of runs, from their workspaces: one page of HTML that needs nothing else, or a table of the trials. Works while a run
 * is in progress, too. With several workspaces it compares them. Where the run's model and data can be opened, the page also
 * shows the graph by precision, where the time goes, histograms, and how sensitive each op is, which takes a few passes.
 */
struct fettle_report_options {
	size_t size;
	const char *const *workspaces;
	size_t n_workspaces;
	const char *output;  /* where to write it; NULL: only into *text */
	const char *format;  /* html (default), markdown, csv (a row per trial), json (what the page shows) */
	bool no_analysis;    /* only what the workspace has: no graph, profiles, histograms or sensitivity */
	bool no_sensitivity; /* leave that out, for it takes longest */
	int threads;
	size_t refresh; /* seconds after which the page loads itself again; 0: it does not */
	/* of a run whose data came from the program: the same again, to analyse its model with */
	const struct fettle_data *calib_data, *eval_data;
};
#define FETTLE_REPORT_OPTIONS_INIT FETTLE_INIT_(fettle_report_options)
/* `text` may be NULL; else free() *text. */
FETTLE_API enum fettle_status fettle_report(struct fettle *f, const struct fettle_report_options *o,
					    char **text);

/*
 * Two models op by op, such as fp32 and int8 ones, or two plans' models: what differs in precision, scales and size, as their
 * graphs say it. With data, where their values part.
 */
struct fettle_diff_options {
	size_t size;
	const char *a, *b; /* ONNX files */
	const char *data;  /* DATA; NULL: values are not compared */
	size_t samples;    /* to compare on, the first so many; 0: 32 */
	int threads;
};
#define FETTLE_DIFF_OPTIONS_INIT FETTLE_INIT_(fettle_diff_options)
/* An op as one of the models has it. */
struct fettle_op_form {
	size_t size;
	const char *type;      /* NULL: it does not have it */
	const char *precision; /* int8, dynamic, weight_only, int16, fp32 */
	double scale;          /* of what it reads; NaN: that is floats */
	int64_t zero_point;
	const char *input, *weight; /* "uint8", "int8 per_channel"; NULL: floats, or none */
	size_t bytes;               /* of its constants */
};
struct fettle_op_diff {
	size_t size;
	const char *name;
	const struct fettle_op_form *a, *b;
	bool differs;   /* in precision, scale, types or bytes */
	double sqnr_db; /* of what b makes against what a makes; NaN: not compared */
	/* its channels are scaled, as by recipes such as cle: the error is that after each was scaled to fit best */
	bool rescaled;
};
struct fettle_diff {
	size_t size;
	size_t n;
	const struct fettle_op_diff *const *ops; /* in the order of b; those that only a has come last */
	size_t n_differ;
	size_t size_a, size_b; /* bytes on disk */
	size_t samples;        /* compared; 0: none */
	double output_sqnr_db; /* the least of the models' outputs */
	/* the first op whose error is 10 dB larger than that of any before it, and at least 10 dB below 40 dB; NULL: none */
	const char *parts_at;
};
FETTLE_API enum fettle_status fettle_diff(struct fettle *f, const struct fettle_diff_options *o,
					  struct fettle_diff **out);
FETTLE_API void fettle_diff_free(struct fettle_diff *d);

/* What the last call fed to the model: which array to which input. False past the end. */
struct fettle_fed {
	size_t size;
	const char *purpose;              /* calibration, evaluation, holdout */
	const char *data, *array, *input; /* the file, and the names in it and in the model */
	const char *stored, *dtype;       /* as it comes out of the data, as the input takes it */
	double min, max;                  /* of some samples, spread over all of them; as they are fed */
	size_t samples;
	const char *
		made; /* the data has no such array: what the input gets instead ("running positions"); else NULL */
	const char *shape;      /* of a batch as it is fed: "[8,3,224,224]" */
	const char *transforms; /* that samples pass, in order: "Resize, CenterCrop"; NULL: none */
};
#define FETTLE_FED_INIT FETTLE_INIT_(fettle_fed)
FETTLE_API bool fettle_fed(const struct fettle *f, size_t i, struct fettle_fed *out);
/* What of the outputs it scored, and by what. False: nothing, or not by fettle's own metrics. */
struct fettle_scoring {
	size_t size;
	const char *metric;
	const char *outputs;                  /* names, with commas */
	const char *why_metric, *why_outputs; /* NULL: they were named, or there is no other */
};
#define FETTLE_SCORING_INIT FETTLE_INIT_(fettle_scoring)
FETTLE_API bool fettle_scoring(const struct fettle *f, struct fettle_scoring *out);
/* Remarks on the last call: settings without effect and the like. NULL past the end. */
FETTLE_API const char *fettle_note(const struct fettle *f, size_t i);
/* What casts doubt on its result. NULL past the end. */
FETTLE_API const char *fettle_warning(const struct fettle *f, size_t i);

/* Where a model's time goes, by op type, from the runtime's own profile. */
struct fettle_profile_row {
	size_t size;
	char op[48];  /* with "(depthwise)" where that matters */
	size_t count; /* nodes */
	double ms;    /* per run, all of them together */
};
struct fettle_profile {
	size_t size;
	size_t n;
	const struct fettle_profile_row *const *rows; /* most time first */
};
/* Of the only model of the options. */
FETTLE_API enum fettle_status fettle_profile(struct fettle *f, const struct fettle_bench_options *o,
					     struct fettle_profile **out);
FETTLE_API void fettle_profile_free(struct fettle_profile *p);

/* What fettle sees in a model. */
struct fettle_op {
	size_t size;
	const char *name, *type;
	const char *why_not; /* why it stays in fp32; NULL: it can be quantized */
	const char *kind;    /* compute, element, move, table; NULL when it cannot be quantized */
	bool can_static, can_dynamic;
	const char *
		by_default; /* what the runtime makes of it by the default plan: int8, int16, dynamic, fp32, "weight-only 4 bits" */
	const char *why_fp32; /* then why it is in fp32; NULL: it is not */
	double macs;          /* multiply-adds per sample */
	int block;            /* transformer block, or -1 */
	size_t n_options;     /* that a search may choose from; 0: it is not tuned */
	const char *options;  /* in words */
	bool can_weight_only;
};
struct fettle_value {
	size_t size;
	const char *name, *dtype;
	char shape[96];
};
struct fettle_inspection {
	size_t size;
	size_t n_ops, n_blocks, n_cuts, n_inputs, n_outputs;
	const struct fettle_op *const *ops; /* in the order they run */
	const struct fettle_value *const *inputs, *const *outputs;
	int opset; /* a model below opset 10 is raised to what its quantization needs */
	size_t weight_bytes;
	double total_macs;
	double int8_share;  /* of the default plan, as the runtime carries it out */
	double log10_plans; /* size of the tuning space, as a power of ten */
	size_t n_recipes;   /* recipes that the search tries */
	const char *const *recipes;
	int opset_of_file; /* before it was raised */
	const char *cpu;   /* the kind that the plan and the space are for */
};
struct fettle_inspect_options {
	size_t size;
	const char *model, *config;
	const void *model_bytes;
	size_t model_size;
	const char *approach;  /* show the default plan of this one */
	const char *keep_fp32; /* and with these OPS left alone */
	const char *quantize;  /* and with these quantized too */
	const char *cpu;
	const struct fettle_setting *settings;
	size_t n_settings;
};
#define FETTLE_INSPECT_OPTIONS_INIT FETTLE_INIT_(fettle_inspect_options)
FETTLE_API enum fettle_status fettle_inspect(struct fettle *f, const struct fettle_inspect_options *o,
					     struct fettle_inspection **out);
FETTLE_API void fettle_inspection_free(struct fettle_inspection *i);

/* The built-in capability table for ONNX Runtime on this CPU, as YAML; free() it. */
FETTLE_API char *fettle_capability(void);
/* Every key of a configuration in Markdown: what it takes, its default, its meaning; free() it. */
FETTLE_API char *fettle_config_keys(void);

/*
 * Your own strategy. traverse() has full control: it tries plans and looks at their scores, until it has
 * nothing more to try (FETTLE_OK) or a function returns something else, which it passes up. FETTLE_STOP says that
 * the budget is spent, the goal reached, or the user wants to stop. Or next() writes the plan to try next into
 * `plan`, which holds the defaults; FETTLE_STOP: no more. Set one of the two.
 *
 * A plan is one option per parameter of the space: the ops first, then recipes, then the number of calibration
 * samples. The search remembers every trial and the best; a plan that was tried before costs nothing.
 */
struct fettle_search; /* valid during traverse() or next() only */
struct fettle_strategy {
	size_t size;
	const char *name, *summary;
	enum fettle_status (*traverse)(struct fettle_search *s, void *self);
	enum fettle_status (*next)(struct fettle_search *s, void *self, unsigned char *plan);
	void *self;
};
#define FETTLE_STRATEGY_INIT FETTLE_INIT_(fettle_strategy)
/* Makes it known to this handle under its name, which no other may have. Strings are copied. */
FETTLE_API enum fettle_status fettle_register_strategy(struct fettle *f,
						       const struct fettle_strategy *strategy);

enum fettle_param_kind { FETTLE_PARAM_OP, FETTLE_PARAM_RECIPE, FETTLE_PARAM_SAMPLES };
/* the last is static in 16 bits, on offer with the recipe auto_mp */
enum fettle_mode { FETTLE_MODE_FP32, FETTLE_MODE_STATIC, FETTLE_MODE_DYNAMIC, FETTLE_MODE_WIDE };
struct fettle_param {
	size_t size;
	enum fettle_param_kind kind;
	const char *name; /* the op's, the recipe's, "samples" */
	size_t n_options;
	size_t first; /* the default */

	/* ops only */
	const char *type;              /* "Conv" */
	int block;                     /* transformer block, or -1 */
	int fp32;                      /* the option that leaves it in fp32, or -1: not allowed */
	const enum fettle_mode *modes; /* of each option; they come in the order of preference */
	bool compute;                  /* conv-like or matmul-like: what int8 is for */
	double gain;                   /* share of the model's time that int8 saves, as far as known */
};
FETTLE_API size_t fettle_search_n_params(const struct fettle_search *s);
FETTLE_API size_t fettle_search_n_ops(const struct fettle_search *s); /* the first so many parameters */
FETTLE_API const struct fettle_param *fettle_search_param(const struct fettle_search *s,
							  size_t i); /* NULL past the end */

struct fettle_plan_score {
	size_t size;
	bool failed;      /* could not be run or evaluated; accuracy and loss are NaN */
	bool met;         /* within the accuracy that may be lost */
	double accuracy;  /* as the metric gives it */
	double loss;      /* against the baseline, in units of the criterion; lower is better */
	double objective; /* of those that met it: latency, size or memory; lower is better */
};
#define FETTLE_PLAN_SCORE_INIT FETTLE_INIT_(fettle_plan_score)
/* One trial. With FETTLE_STOP the score is still this plan's, if it ran. */
FETTLE_API enum fettle_status fettle_search_try(struct fettle_search *s, const unsigned char *plan,
						struct fettle_plan_score *score);
/* The best so far: by the objective if the target is met, else by the loss. false: none yet. */
FETTLE_API bool fettle_search_best(const struct fettle_search *s, unsigned char *plan,
				   struct fettle_plan_score *score);
FETTLE_API size_t fettle_search_n_trials(const struct fettle_search *s);    /* so far */
FETTLE_API size_t fettle_search_trials_left(const struct fettle_search *s); /* SIZE_MAX: no limit */
FETTLE_API uint64_t fettle_search_seed(const struct fettle_search *s);
/* Names the stage that the following trials belong to, for the history and the user. Copied. */
FETTLE_API void fettle_search_stage(struct fettle_search *s, const char *stage);

enum fettle_rank {
	FETTLE_RANK_OUTPUT_ERROR, /* squared error of each op's output against the fp32 model's */
	FETTLE_RANK_IMPACT,       /* error of the model's output when this op alone is quantized */
	FETTLE_RANK_IMPACT_BACK,  /* the same for ops in fp32, as they would be quantized again */
	FETTLE_RANK_HESSIAN,      /* average trace of the Hessian times squared weight error (HAWQ-V2) */
};
/* The ops that the rank covers under this plan, highest first. `ops` has room for all ops, as has `scores`
 * unless NULL. Costs no trial. */
FETTLE_API enum fettle_status fettle_search_rank_ops(struct fettle_search *s, const unsigned char *plan,
						     enum fettle_rank by, size_t *ops, double *scores,
						     size_t *n);
/* Says why a strategy gives up: return fettle_search_fail(s, FETTLE_INVALID, "…"). */
FETTLE_API enum fettle_status fettle_search_fail(struct fettle_search *s, enum fettle_status st,
						 const char *message);

/*
 * Your own metric: the mean of sample() over all samples. It gets one sample's outputs and its label (int64
 * if stored as integers, else float64; NULL: the data has none). NaN makes the mean NaN, which fails the trial.
 */
struct fettle_tensor {
	enum fettle_dtype dtype;
	int rank;
	const int64_t *dims;
	const void *data;
};
struct fettle_metric {
	size_t size;
	const char *name; /* of less than 32 characters, no colon; no other may have it, whatever its case */
	bool higher_is_better;
	double (*sample)(void *self, const struct fettle_tensor *outputs, size_t n_outputs,
			 const struct fettle_tensor *label);
	void *self;
};
#define FETTLE_METRIC_INIT FETTLE_INIT_(fettle_metric)
FETTLE_API enum fettle_status fettle_register_metric(struct fettle *f, const struct fettle_metric *metric);

/*
 * Your own loss for strategy hawq_v2 (hawq_v2_loss: NAME): the sum of sample() over samples, whose curvature in the
 * weights orders the ops. It gets one sample's outputs, those of the fp32 model (data NULL unless they are float32), and
 * its label as a metric does.
 */
struct fettle_loss {
	size_t size;
	const char *name; /* not cross_entropy or mse */
	double (*sample)(void *self, const struct fettle_tensor *outputs,
			 const struct fettle_tensor *reference, size_t n_outputs,
			 const struct fettle_tensor *label);
	void *self;
};
#define FETTLE_LOSS_INIT FETTLE_INIT_(fettle_loss)
FETTLE_API enum fettle_status fettle_register_loss(struct fettle *f, const struct fettle_loss *loss);

/*
 * Your own kind of data, beside .npz and folders: "NAME:ROOT" wherever DATA is asked for, or in a configuration
 * `dataset: {NAME: {root: ROOT, key: value, …}}`. open() fills `out` with a source whose texts and arrays are valid
 * until close(), which may be NULL; it returns NULL, or why it failed. `root` may be NULL. A source that cannot be read
 * by several threads at once is fine: then trials run one at a time.
 */
struct fettle_dataset {
	size_t size;
	const char *name; /* no colon, no slash */
	const char *(*open)(void *self, const char *root, const struct fettle_setting *params,
			    size_t n_params, struct fettle_data_source *out);
	void (*close)(void *self, const struct fettle_data_source *source);
	void *self;
};
#define FETTLE_DATASET_INIT FETTLE_INIT_(fettle_dataset)
FETTLE_API enum fettle_status fettle_register_dataset(struct fettle *f, const struct fettle_dataset *dataset);

/*
 * A plug-in is a shared library that defines fettle_plugin_entry(). Loading it registers what it brings; it stays
 * loaded until fettle_free(). Only load what you trust: it runs in this process.
 */
#define FETTLE_PLUGIN_ABI 1
struct fettle_plugin {
	size_t size;
	int abi; /* FETTLE_PLUGIN_ABI */
	const struct fettle_strategy *strategies;
	size_t n_strategies;
	const struct fettle_metric *metrics;
	size_t n_metrics;
	const struct fettle_loss *losses;
	size_t n_losses;
	const struct fettle_dataset *datasets;
	size_t n_datasets;
};
#define FETTLE_PLUGIN_INIT FETTLE_INIT_(fettle_plugin)
FETTLE_API const struct fettle_plugin *fettle_plugin_entry(void); /* the plug-in's, not the library's */
FETTLE_API enum fettle_status fettle_load_plugin(struct fettle *f, const char *path);

/*
 * A command by its name, for other languages: "tune", "search", "resume", "quantize", "eval", "bench", "inspect",
 * "sensitivity", "history", "recover", "report", "diff", "strategies", "recipes", "cpus". `json_in` is an object with the names of the
 * command's options in this header: {"model": "m.onnx", "tolerance": 0.01, "recipes": ["cle"], "settings":
 * {"tuning.objective": "modelsize"}}; NULL: none. Functions and pointers are addresses in this process, as whole numbers:
 * {"calib_data": 94063782401472}. "history" takes workspace and pareto. An unknown name
 * is an error. *json_out is what the command prints with --json; free() it. Progress and trials are reported as usual.
 */
FETTLE_API enum fettle_status fettle_call_json(struct fettle *f, const char *command, const char *json_in,
					       char **json_out);
/* A result as the command prints it with --json; free() it. The handle is that of the call, and the call its last. */
FETTLE_API char *fettle_tuned_json(const struct fettle *f, const struct fettle_tuned *t);
FETTLE_API char *fettle_quantized_json(const struct fettle *f, const struct fettle_quantized *q);
FETTLE_API char *fettle_score_json(const struct fettle *f, const struct fettle_score *s);
FETTLE_API char *fettle_timings_json(const struct fettle_bench_options *o, const struct fettle_timing *t);
FETTLE_API char *fettle_inspection_json(const struct fettle *f, const struct fettle_inspection *i);
FETTLE_API char *fettle_sensitivity_json(const struct fettle *f, const struct fettle_sensitivity *s);
FETTLE_API char *fettle_diff_json(const struct fettle *f, const struct fettle_diff *d);
FETTLE_API char *fettle_run_json(const struct fettle_run *r, bool pareto); /* only the trials with .pareto */
FETTLE_API char *fettle_runs_json(const struct fettle_run *const *v, size_t n);

/* The words that settings take: metrics, algorithms. NULL past the end. */
FETTLE_API const char *fettle_metric_name(size_t i, const char **summary);
FETTLE_API const char *fettle_algorithm_name(size_t i, const char **summary);
/* The algorithms of weight-only quantization. */
FETTLE_API const char *fettle_block_algorithm_name(size_t i, const char **summary);

#ifdef __cplusplus
}
#endif
#endif
