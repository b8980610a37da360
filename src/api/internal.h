/* What the files of this folder share: the handle, and options turned into what the library works with. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "evaluate/evaluate.h"
#include "fettle.h"
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
	struct cpu cpu;                    /* that plans are made for */
	const struct run_request *resumed; /* while fettle_resume() runs it again */
};

/* Each call of the interface begins with this. It copies what the caller's version of the struct has. */
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
