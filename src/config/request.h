/* A call's options and configuration, merged: options override the YAML, the YAML overrides defaults. */
#ifndef CONFIG_REQUEST_H
#define CONFIG_REQUEST_H

#include "base/scratch.h"
#include "config/config.h"
#include "config/options.h"
#include "space/constraint.h"
#include "space/tuning.h"
#include "tune/fed.h"

struct request {
	struct context *cx;
	struct call_options o;
	struct config *c;
	enum config_command command;
	bool is_search;     /* of fettle_auto_search(): plans are settings */
	bool eval_is_calib; /* there is no evaluation data, so that calibration's serves */
	int threads;        /* 0: all cores */
	size_t samples;     /* to calibrate on, by the plan that was read; 0: by the configuration */
	struct config_strings metrics; /* names of those that are registered */
	struct scratch scratch;
	char *temp;         /* in it, the model that was given in memory */
	struct arena arena; /* of what data_refs point to */
};

/* Each call of the interface begins with this; request_release() ends it, also after a failure. */
enum fettle_status request_begin(struct request *r, struct context *cx, const struct call_options *in,
				 enum config_command command); /* 0: one that uses no setting */
void request_release(struct request *r);

/* The data that a dataloader describes; what it points to lasts as long as the request. `what`: "calibration". */
/* That there are such datasets with such keys; notes say which of these, and of the transforms', do nothing. */
enum fettle_status request_check_data(struct request *r);
enum fettle_status request_data(struct request *r, const struct config_dataloader *d, const char *what,
				struct data_ref *out);
/* How the evaluation data is read; and the calibration data. */
struct feed_options request_eval_options(const struct request *r);
struct feed_options request_calib_options(const struct request *r, size_t batch, size_t limit);
/* Does it come from functions that are not fettle's, which may not be called by several threads at once? */
bool request_data_is_own(const struct request *r, const struct config_dataloader *d);
/* Is there any? */
bool request_has_data(const struct request *r, const struct config_dataloader *d);
/* What measures the accuracy instead of data and metric: "eval-cmd", "eval-server", "evaluator" (a function); or NULL. */
const char *request_evaluator(const struct request *r);

/* The plan that options and configuration describe, without a search. */
enum fettle_status request_plan(struct request *r, const struct subject *s, struct qplan *out,
				struct err *err);
/* What a search may vary: tuning_free() it. */
enum fettle_status request_tuning(const struct request *r, struct subject *s, struct tuning **out,
				  struct err *err);
/* What is to be scored. */
struct scores_asked request_scores(struct request *r);
struct recipes request_recipes(const struct request *r);
/* Those with words, each on in the way that the configuration names. */
struct recipes request_ways(const struct config *c);

/* The configuration's constraints; free() the array. */
size_t request_constraints(const struct request *r, struct arena *a, struct constraint **out);

#endif
