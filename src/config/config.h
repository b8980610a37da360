/*
 * The configuration: the YAML of Intel Neural Compressor 1.x (LPOT), with the names of 2.x where they
 * differ, as plain structs. Flags go over it, and every setting remembers where it came from:
 *
 *	st = config_load(&c, "conf.yaml", err);				or config_new(), all defaults
 *	st = config_set(c, "tuning.exit_policy.timeout", "60", "--timeout", err);
 *	for (i = 0; i < c->n_notes; i++) tell the user c->notes[i].text
 *	if (config_is_set(c, &c->tuning.higher_is_better)) ...
 *	config_print(c, &text);						YAML with origins as comments
 *	config_free(c);
 *
 * Nothing is ignored in silence: an unknown key, a wrong type, a value out of its limits or a duplicate is
 * an error that names file, line, column and the nearest valid word; a key that is valid but does nothing
 * here becomes a note. What only a later stage can judge (does an op of that name exist, is there such a
 * strategy) is checked there; config_fail() gives its message the place in the file.
 *
 * A relative path in a file is relative to that file; one from config_set() to the current folder. Paths
 * here are ready to be opened. All pointers belong to the struct config.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/str.h"
#include "calibrate/range.h"
#include "data/squad.h"
#include "data/transform.h"
#include "evaluate/metric.h"
#include "space/qplan.h"

/* Where a setting came from. */
struct config_origin {
	const char *source; /* the file's name, or the flag */
	int line, column;   /* from 1; 0 for a flag */
	bool implied;       /* follows from another setting, the one at this place */
};

struct config_strings {
	const char **v;
	size_t n;
};
struct config_ints {
	int64_t *v;
	size_t n;
};
struct config_numbers {
	double *v;
	size_t n;
};

/* Values that are allowed, as bits; 0: not constrained. */
struct config_allowed {
	unsigned mask;
	struct config_origin at;
};
enum { CONFIG_PER_TENSOR = 1, CONFIG_PER_CHANNEL = 2 };
enum { CONFIG_FP32 = T_ALL + 1, CONFIG_BF16 = CONFIG_FP32 << 1 }; /* beside T_U8, … of ops/rules.h */

struct config_side {
	struct config_allowed granularity; /* CONFIG_PER_* */
	struct config_allowed scheme;      /* 1 << SCHEME_* */
	struct config_allowed dtype;       /* T_*, CONFIG_FP32, CONFIG_BF16 */
	struct config_allowed algorithm;   /* 1 << RANGE_*; weight-only: 1 << CONFIG_BLOCK(BLOCK_*) */
	/* weight-only */
	struct config_allowed bits;       /* 1 << bits */
	struct config_allowed group_size; /* a power of two is its bit */
	struct config_allowed level;      /* accuracy_level: 1 << level */
};
#define CONFIG_BLOCK(algorithm) (RANGE_ALGORITHMS + (algorithm))
_Static_assert(CONFIG_BLOCK(BLOCK_ALGORITHMS) < 31, "algorithms are bits of an int");
struct config_constraint {
	const char *name; /* an op's, or a regular expression; an op type; NULL in model_wise */
	struct config_origin at;
	struct config_side weight, activation;
};
struct config_constraints {
	struct config_constraint *v;
	size_t n;
};

/* A key with its value as YAML, on one line: `[256, 256]`, `bilinear`. */
struct config_param {
	const char *key, *value;
	const char *text; /* of a scalar: as it is, without quotes; a path is ready to be opened */
	struct config_origin at;
};
struct config_params {
	struct config_param *v;
	size_t n;
};

struct config_dataset {
	const char *kind; /* "ImageFolder", "TFRecordDataset", …: any name. NULL: found out from the root */
	const char *root; /* `root` or `data_path`, or the whole of `dataset: PATH`; NULL: none given */
	struct config_origin root_at;
	struct config_params params; /* the others */
};

struct config_transforms {
	struct transform *v; /* in the order given: goes into struct dataset_options */
	size_t n;
	struct config_named_params *source; /* how they were written; parallel to v */
};
struct config_named_params {
	const char *name;
	struct config_params params;
};

struct config_dataloader {
	int batch_size;                      /* 1 */
	int last_batch;                      /* enum config_last_batch: rollover */
	bool shuffle;                        /* false */
	struct config_dataset dataset;       /* .root and .kind NULL: no data described */
	struct config_transforms transforms; /* none */
	int64_t label_shift;                 /* postprocess.transform.LabelShift: 0; of the evaluation only */
	const char *label_map;               /* a metric's anno_path: NULL; of the evaluation only */
	int objects;                         /* filter.LabelBalance: 0, any number */
	const char *vocabulary;   /* evaluation.accuracy.vocab_file: NULL; of the evaluation only */
	struct squad_files squad; /* postprocess.transform.SquadV1: none; of the evaluation only */
};
enum config_last_batch { LAST_BATCH_ROLLOVER, LAST_BATCH_DISCARD };

enum config_criterion { CRITERION_RELATIVE, CRITERION_ABSOLUTE };
enum config_objective {
	OBJECTIVE_PERFORMANCE,
	OBJECTIVE_MODELSIZE,
	OBJECTIVE_FOOTPRINT,
	OBJECTIVE_ACCURACY,
};
enum config_quant_level { QUANT_LEVEL_0, QUANT_LEVEL_1, QUANT_LEVEL_AUTO };
enum config_direction { DIRECTION_MINIMIZE, DIRECTION_MAXIMIZE };
enum { CONFIG_SPACES = 10 };
enum config_graph_level { GRAPH_DEFAULT, GRAPH_DISABLE_ALL, GRAPH_BASIC, GRAPH_EXTENDED, GRAPH_ALL };
enum config_framework {
	FRAMEWORK_NONE,    /* not given */
	FRAMEWORK_QLINEAR, /* onnxrt_qlinearops: implies the QOperator format */
	FRAMEWORK_INTEGER, /* onnxrt_integerops: implies approach dynamic */
	FRAMEWORK_QDQ,     /* onnxrt_qdq */
	FRAMEWORK_ONNXRT,  /* onnxruntime */
	FRAMEWORK_OTHER,   /* from here on: only what transforms mean depends on it */
	FRAMEWORK_MXNET = FRAMEWORK_OTHER,
	FRAMEWORK_TENSORFLOW,
	FRAMEWORK_INTEL_TENSORFLOW,
	FRAMEWORK_TENSORFLOW_ITEX,
	FRAMEWORK_KERAS,
	FRAMEWORK_PYTORCH,
	FRAMEWORK_PYTORCH_FX,
	FRAMEWORK_PYTORCH_IPEX,
	FRAMEWORK_ENGINE,
	FRAMEWORK_NA, /* any other name */
};

struct config_note {
	const char *text; /* "conf.yaml:3: version: has no effect, …" */
	struct config_origin at;
	bool derived; /* follows from the settings; made again when they change */
};

struct config {
	struct {
		const char *name;             /* NULL */
		int framework;                /* enum config_framework, or above it; for `format` and notes */
		struct config_strings inputs; /* empty: as in the model */
		struct config_strings outputs;
	} model;
	int device;  /* 0: cpu */
	int backend; /* 0: ONNX Runtime's cpu */

	struct {
		int approach; /* enum approach: static (tune: auto); dynamic when the framework is onnxrt_integerops */
		int format; /* enum quant_format: QDQ; QOperator when the framework is onnxrt_qlinearops */
		const char *cpu; /* in ops/cpu.c; NULL: this one */
		struct config_constraint model_wise;
		struct config_constraints op_type_wise, op_wise;
	} quantization;

	/* A recipe that config_is_set() must be as the user says; the others are the search's to try. */
	struct {
		bool on[RECIPES]; /* as documented; of one with words: under its alias (include_fast_ft) */
		int way[RECIPES]; /* of one with words: which of them; 0: off, unless it is on */
		struct config_numbers number[RECIPES]; /* that comes with on: one, or several to be tuned */
		struct recipes
			keys; /* the settings of those that have some; nothing else of it has a meaning */
		struct config_strings optypes_to_exclude_output_quant; /* empty */
		int graph_optimization_level;                          /* enum config_graph_level: default */
		bool include_auto_mp;                                  /* false */
		bool rewrite_graph;                                    /* true */
		int finetune_device;                                   /* OptimDevice; 0: cpu */
	} recipes;

	struct {
		struct config_ints sampling_size; /* one, or several to be tuned; default 100 */
		int iterations;                   /* batches instead of samples; 0: not given */
		struct config_dataloader dataloader;
	} calibration;

	struct {
		const char *metric;           /* as metric_new() takes it, already tried; NULL: none given */
		const char *command, *server; /* programs as evaluators; NULL: none */
		struct config_dataloader dataloader;
		int iterations; /* batches to evaluate; 0: all (`iteration: -1`) */
		int threads;    /* configs.intra_num_of_threads; 0: not given */
	} evaluation;

	/* evaluation.performance: how latency is measured */
	struct {
		int threads;   /* configs.cores_per_instance; 0: as many as for everything else */
		int instances; /* configs.num_of_instance: 1; sessions that run at once */
		struct config_ints batches; /* dataloader.batch_size: 1; the first counts, all are shown */
	} performance;

	struct {
		int quant_level;          /* enum config_quant_level: auto; 1 when a strategy was named */
		const char *strategy;     /* "basic"; as written, the registry knows the names */
		int confidence_batches;   /* 2; mse_v2 */
		const char *hawq_v2_loss; /* NULL: cross-entropy or squared error */
		const char *sigopt_api_token, *sigopt_project_id; /* NULL */
		const char *sigopt_experiment_name;               /* "nc-tune" */
		const char *sigopt_api_url;                       /* NULL */
		int n_startup_trials, n_ei_candidates;            /* 10, 24; tpe */
		double gamma, prior_weight;                       /* 0.1, 1; tpe */

		int criterion;         /* enum config_criterion: relative */
		double tolerable_loss; /* 0.01 */
		bool higher_is_better; /* true; when not set, the metric knows better */

		int objective; /* enum config_objective: performance */
		/* several: parallel lists, the latter two empty or as long as the first */
		struct config_ints objectives;            /* enum config_objective; empty: just `objective` */
		struct config_numbers weights;            /* empty: equal */
		struct config_ints higher_is_better_each; /* 0 or 1; empty: true for accuracy only */

		const char *size_budget; /* of the model: a share of fp32's, or bytes; NULL: none */
		double timeout;          /* seconds; 0: stop at the first success */
		int max_trials;          /* 100; 0: no limit */
		bool performance_only;   /* false */
		int64_t random_seed;     /* 9527 */
		bool tensorboard;        /* false */
		const char *workspace;   /* NULL: to be chosen */
		const char *resume;      /* NULL; the workspace or history to continue */
	} tuning;

	/* 'fettle search', under the names of AMD's document */
	struct {
		struct config_space {
			struct config_ints calibrate_method;             /* enum range_algorithm */
			struct config_ints activation_type, weight_type; /* enum dtype */
			struct config_ints include_cle, include_auto_mp, include_fast_ft, include_sq;
			struct config_ints activation_symmetric, weight_symmetric, calib_moving_average;
			struct config_numbers calib_moving_average_constant, percentile;
			struct config_numbers smooth_alpha; /* or SMOOTH_AUTO */
			struct config_ints optim_algorithm; /* enum finetune_algorithm */
			struct config_ints granularity;     /* enum finetune_granularity */
			struct config_ints data_size, batch_size, num_iterations, fixed_seed;
			struct config_ints early_stop, selective_update;
			struct config_numbers learning_rate;
			struct config_numbers num_iter_lr; /* pairs, one after the other */
		} spaces[CONFIG_SPACES]; /* search_space, search_space_1, …: all lists empty */
		const char *algorithm;   /* search_algo: "grid" */
		const char *metric;      /* search_evaluator or search_metric; NULL: none given */
		double tolerance;        /* search_tolerance; has a meaning where it is set */
		int find_n_candidates, find_best_candidate; /* 0: not asked for (-1 in YAML) */
		int iteration_limit;                        /* 1000; 0: none */
		double time_limit;                          /* seconds; 0: none */
		bool two_stage, advanced_fastft;            /* false */
		const char *sampler_algo;                   /* "TPE" */
		int direction;                              /* enum config_direction: minimize */
		int n_trials;                               /* 10 */
		int jobs;                                   /* n_jobs: 1 */
		int devices;                                /* 0: cpu */
		const char *log;                            /* NULL: auto_search.log in the workspace */
	} search;

	/* to be read only */
	struct config_note *notes;
	size_t n_notes;

	struct config_state *state;
};

struct config *config_new(void); /* the defaults; never fails */
enum fettle_status config_load(struct config **out, const char *path, struct err *err);
/* Where a configuration comes from. All may be NULL or empty; what is given outlives it. */
struct config_source {
	const char *path;
	const char *text;              /* what is in it; NULL: it is read */
	const char *folder;            /* where relative paths in config_set() start; NULL: the current one */
	struct config_strings metrics; /* may be named beside those of the list */
	bool capability;               /* INC's capability files (onnxrt.yaml) are read too */
};
enum fettle_status config_open(struct config **out, const struct config_source *from, struct err *err);
/* `name` stands for the file in messages, and its folder is where relative paths start. */
enum fettle_status config_parse(struct config **out, const char *text, const char *name, struct err *err);
void config_free(struct config *c); /* NULL does nothing */

/*
 * Overrides one setting by its dotted name: any that config_print() prints, or an alias of it. The value is
 * text as after the colon in YAML; lists and maps in flow style: "[0.3, 0.7]", "{Conv: {weight: {…}}}".
 * `origin` names the flag in messages. When it fails, the configuration is as before.
 */
enum fettle_status config_set(struct config *c, const char *key, const char *value, const char *origin,
			      struct err *err);

/* Where the setting at `field`, a member of *c, came from; NULL: it is the default. */
/* What begins a message about a setting: "conf.yaml:3:5: "; "" if it was not set. */
const char *config_where(const struct config_origin *at, struct arena *a);
const struct config_origin *config_origin(const struct config *c, const void *field);
/* Whether the user gave it: not the default, and not implied by another setting. */
bool config_is_set(const struct config *c, const void *field);
/* For a search over plans: where the user has named no approach, all of them are tried. */
void config_open_approach(struct config *c);

/* For later stages: "FILE:LINE:COLUMN: …" or "FLAG: …", or just the message where `at` is NULL. */
enum fettle_status config_fail(const struct config_origin *at, enum fettle_status st, struct err *err,
			       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The strategy that quant_level and the name amount to. */
const char *config_strategy(const struct config *c);

/* Whether the i-th of tuning.objectives is better when higher: as the user says, else accuracy only. */
bool config_higher_is_better(const struct config *c, size_t i);

/* The commands that read a configuration, as bits. */
enum config_command {
	CONFIG_TUNE = 1,
	CONFIG_SEARCH = 2,
	CONFIG_QUANTIZE = 4,
	CONFIG_EVAL = 8,
	CONFIG_BENCH = 16,
	CONFIG_INSPECT = 32,
	CONFIG_SENSITIVITY = 64,
	CONFIG_COMMANDS = 127,
};
/* Tells `note` which of the user's settings do nothing in this command with this strategy, and why. `strategy` is "custom" where
 * the caller has registered it. */
void config_unused(const struct config *c, enum config_command command, const char *strategy,
		   void (*note)(void *self, const char *text), void *self);

/* The configuration in force as YAML, which loads to the same again, with the origin of every line:
 * `# default`, `# conf.yaml:12`, `# --timeout`. Secrets are left out. Notes follow as comments. When it is
 * loaded again, everything in it counts as set. */
void config_print(const struct config *c, struct str *out);

/*
 * The settings that decide what a run finds, one "dotted.name: value" per line, whoever set them: two configurations
 * with the same lines are the same run. Limits, places and the paths of data are not among them (data has
 * fingerprints); nor are recipes that are left to the search the same as those that were set to their default.
 */
void config_identity(const struct config *c, struct str *out);

#endif
