/* What the files of this folder share: the handle, and options turned into what the library works with. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "api/options.h"
#include "base/scratch.h"
#include "evaluate/evaluate.h"
#include "quantize/subject.h"

struct plugin {
	void *library; /* of dlopen() */
	char *path;    /* absolute */
};

struct fettle {
	struct err err;
	struct runtime *rt; /* started when first needed */
	fettle_progress progress;
	void *progress_self;
	const char *phase;
	fettle_on_trial_fn on_trial;
	void *on_trial_self;
	VEC(char *) notes, warnings;
	VEC(struct fettle_fed) fed;
	struct fettle_scoring scoring;          /* .metric is NULL: nothing was scored */
	struct arena told;                      /* what these two point to */
	VEC(struct fettle_finetuned) finetuned; /* names are its own */
	VEC(struct fettle_fp32_op) fp32_ops;    /* likewise */
	VEC(struct own_strategy *) strategies; /* registered by the caller or a plug-in, as are those below */
	VEC(struct own_metric *) metrics;
	VEC(struct fettle_loss) losses; /* names are its own, as are those below */
	VEC(struct fettle_dataset) datasets;
	VEC(struct plugin) plugins;
	struct cpu cpu; /* that plans are made for */
	void *model;    /* of fettle_model_bytes(); NULL: it was not asked for */
	size_t model_size;
	const struct run_request *resumed; /* while fettle_resume() runs it again */
};

/* Forgets what the last call left to be asked for, its message too. */
void api_clear(struct fettle *f);
/* Fills a struct of the caller's, of this version or an older one, from the library's; both begin with their size. */
void api_give(void *out, const void *from, size_t size);
/* The other way round: what the caller's version has, over what `to` holds. */
void api_take(void *to, const void *from, size_t size);
/* A list of pointers to n structs of `size` bytes, which it writes into each: arrays could not grow. */
void *api_list(struct arena *a, void *v, size_t n, size_t size);

/* Each call begins with this. */
enum fettle_status api_begin(struct fettle *f, const struct fettle_options *in, struct fettle_options *out);
/* Names what follows, and tells the caller; FETTLE_STOP if the caller says stop. */
enum fettle_status api_phase(struct fettle *f, const char *phase);
void api_note(struct fettle *f, const char *text); /* once, however often it is said */
/* Opens the model at `path`, and notes what had to be done to it. */
enum fettle_status api_subject(struct fettle *f, const char *path, struct subject **out);
void api_warn(struct fettle *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Names the kinds of CPU that some products of the plan overflow on, and notes it unless that was measured. */
void api_saturates_on(struct fettle *f, const struct qplan *p, const struct op_list *ops, char *out,
		      size_t n);
bool api_progress(void *f, size_t done, size_t total); /* a progress_fn */

/* The calls, with the options of all in one. */
enum fettle_status api_quantize(struct fettle *f, const struct fettle_options *o,
				struct fettle_quantized *out);
enum fettle_status api_eval(struct fettle *f, const struct fettle_options *o, struct fettle_score *out);
enum fettle_status api_bench(struct fettle *f, const struct fettle_options *o, const char *const *models,
			     size_t n, struct fettle_timing *out);
enum fettle_status api_footprint(struct fettle *f, const struct fettle_options *o, size_t *bytes);
enum fettle_status api_profile(struct fettle *f, const struct fettle_options *o, struct arena *a,
			       struct fettle_profile *out);
enum fettle_status api_tune(struct fettle *f, const struct fettle_options *o, struct fettle_tuned **out);
enum fettle_status api_search(struct fettle *f, const struct fettle_options *o, struct fettle_tuned **out);
enum fettle_status api_resume(struct fettle *f, const struct fettle_options *o, struct fettle_tuned **out);
enum fettle_status api_config(struct fettle *f, const struct fettle_options *o, char **text);
enum fettle_status api_sensitivity(struct fettle *f, const struct fettle_options *o,
				   struct fettle_sensitivity **out);
enum fettle_status api_recover(struct fettle *f, const struct fettle_options *o, const char *workspace,
			       size_t trial);
enum fettle_status api_inspect(struct fettle *f, const struct fettle_options *o,
			       struct fettle_inspection **out);

/* memory.c: lets a call that has no output path write to a temporary file; keeps a written model for
 * fettle_model_bytes(); ends what the first began. */
enum fettle_status memory_begin(struct fettle *f, struct fettle_options *o, struct scratch *s);
enum fettle_status memory_keep(struct fettle *f, const char *path);
void memory_release(struct fettle_options *o, struct scratch *s);

struct fettle_values api_values(const double *v, size_t n);

/* DATA opened and bound to a session's inputs. */
struct source {
	struct dataset *data;
	struct feed *feed;
};
void source_release(struct source *s);

#define DEFAULT_WORKSPACES "fettle_workspace" /* the folder of workspaces that were not named */

enum {
	DEFAULT_BATCH = 32,
	CALIB_BATCH = 8, /* all activations at once: small enough to stay in the cache */
};

#endif
