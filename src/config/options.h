/*
 * The options of all calls in one struct, as the library works with them. Each call's own struct in fettle.h is read into
 * this by a table (api/options.c), which also gives fettle_call_json() the names.
 */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include "base/err.h"
#include "base/mem.h"
#include "fettle.h"

struct call_options {
	const char *model;  /* ONNX file */
	const char *output; /* where to write the result */
	const char *config; /* YAML; what is set here overrides it */

	const char *calib;    /* DATA for calibration */
	size_t calib_samples; /* 0: 100, or all if there are fewer */
	const char *eval;     /* DATA for evaluation */
	size_t eval_samples;  /* 0: all */
	size_t batch;         /* 0: 8 for calibration, up to 32 for evaluation, 1 for timing */
	uint64_t seed;        /* of the choice of calibration samples; 0: the first ones */

	/* top1, top5, topk:K, f1, mse, …; NULL: by the labels, else cosine. "top1,f1": each must meet the target, and the
	 * accuracy is what the worst kept of fp32's; "0.7*top1,0.3*f1": the accuracy is the weighted mean. */
	const char *metric;
	const char *eval_cmd;  /* any program instead: "cmd {model}" prints one number, or JSON */
	const char *reference; /* model whose outputs are used as labels */

	const char *approach;   /* static (default), dynamic, auto */
	const char *format;     /* qdq (default), qoperator */
	const char *act_dtype;  /* uint8 (default), int8, uint16, int16 */
	const char *act_scheme; /* asym (default), sym */
	const char *
		algorithm; /* minmax (default), kl, percentile[:P], mse, moving_average, nonoverflow, minmse */
	const char *weight_dtype;  /* int8 (default), uint8, int16, uint16 */
	const char *weight_scheme; /* sym (default), asym */
	const char *granularity;   /* per_channel (default), per_tensor */
	const char *reduce_range;  /* auto (default: on where the CPU saturates), on, off: 7-bit weights */
	const char
		*keep_fp32; /* comma-separated names, types or /regular expressions/ of ops to leave alone */
	const char *quantize; /* the same, of ops to quantize that are not by default */

	int threads;    /* 0: all cores */
	double seconds; /* for timing, per model; 0: 1 */
	bool decode;    /* time one token after `past` others */
	size_t past;
	bool no_early;      /* evaluate every trial to its end, even when its verdict is certain before */
	double confidence;  /* 0.99: a verdict that holds with 99 % is enough; 0: it must be certain */
	const char *jobs;   /* trials side by side: a number, or "auto"; NULL: 1 */
	const char *cache;  /* memory for activations that trials have in common: "2G"; "0": none; NULL: 1G */
	const char *helper; /* the fettle command, to measure memory in a process of its own; NULL: do not */

	const struct fettle_setting *settings; /* further ones, over what is set above */
	size_t n_settings;

	/* fettle_tune() */
	const char *workspace;  /* folder of the run's history; NULL: fettle_workspace/<model>-<time> */
	bool resume;            /* continue the run in that folder */
	const char *holdout;    /* DATA nothing was chosen by, to measure the result on */
	const char *plan;       /* JSON file of a plan, for fettle_quantize() */
	const char *capability; /* YAML of what op types may be quantized to, instead of the built-in table */
	double (*evaluate)(void *self,
			   const char *model); /* evaluator instead of data and metric; NaN: failed */
	void *evaluate_self;

	/* instead of files */
	const void *model_bytes; /* an ONNX model in memory, without external data; a run keeps a copy */
	size_t model_size;
	const struct fettle_data_source *calib_source, *eval_source;

	const char *const *recipes; /* "NAME", "NAME=off", "smooth_quant=0.6"; see fettle_recipe() */
	size_t n_recipes;

	const char *eval_server; /* stays running: a model's path per line in, its score per line out */
	const char *cpu;         /* plan for this kind of CPU, see fettle_cpu_kind(); NULL: for this one */
	const char *scores;      /* names of the outputs to score, with commas; NULL: as fits the labels */
	const struct run_request *resumed; /* the run that is done again; NULL: a new one */
	bool ranks;                        /* share trials with the other ranks of an MPI job */
	bool broadcast_data;               /* and send them the data */
};

/* What a field of a call's options is. */
enum field_kind {
	FIELD_TEXT,    /* const char * */
	FIELD_COUNT,   /* size_t */
	FIELD_SEED,    /* uint64_t */
	FIELD_WHOLE,   /* int64_t; 0: not given, -1: no limit */
	FIELD_INT,     /* int */
	FIELD_REAL,    /* double */
	FIELD_YES,     /* bool */
	FIELD_TEXTS,   /* const char *const *, and a size_t after it */
	FIELD_PAIRS,   /* const struct fettle_setting *, and a size_t after it */
	FIELD_DATA,    /* const struct fettle_data *, which becomes the source at `to` */
	FIELD_POINTER, /* a function or the program's own data */
};
struct option_field {
	const char *name;
	enum field_kind kind;
	size_t at, to; /* in the call's struct, in struct call_options */
	const char
		*key; /* the setting of the configuration that it is; NULL: a member of struct call_options */
	const char *value; /* of that setting, when it is FIELD_YES, or FIELD_WHOLE and -1 */
};
#define FIELD_NOWHERE SIZE_MAX /* for `to`: the call itself reads it */
/* The options of one call. */
struct options_type {
	const char *name; /* "tune" */
	const void *init; /* as its *_INIT */
	size_t size;
	const struct option_field *fields;
	size_t n;
};
struct options {
	struct call_options o;
	void *given; /* the call's own struct, in this version's size */
	struct fettle_setting *settings;
	struct arena arena; /* of all these */
};
/* Reads a call's struct of this version or an older one. options_release() it, also after a failure. */
enum fettle_status options_read(struct options *out, const struct options_type *type, const void *in,
				struct err *err);
void options_release(struct options *o);

/* Fills the struct of the command `name` from a JSON object (NULL: none), by the names in the table; texts are `a`'s. */
enum fettle_status options_from_json(const struct options_type *type, const char *name, const char *json,
				     struct arena *a, void **out, struct err *err);

#endif
