/* A call's options and configuration, merged: options override the YAML, the YAML overrides defaults. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "api/internal.h"
#include "base/scratch.h"
#include "config/config.h"
#include "quantize/precision.h"
#include "space/constraint.h"
#include "space/tuning.h"

struct request {
	struct fettle *f;
	struct fettle_options o;
	struct config *c;
	enum config_command command;
	bool is_search;     /* of fettle_auto_search(): plans are settings */
	bool eval_is_calib; /* there is no evaluation data, so that calibration's serves */
	int threads;        /* 0: all cores */
	size_t samples;     /* to calibrate on, by the plan that was read; 0: by the configuration */
	struct config_strings metrics; /* names of those that are registered */
	struct scratch scratch;
	char *temp; /* in it, the model that was given in memory */
};

/* Each call of the interface begins with this; request_release() ends it, also after a failure. */
enum fettle_status request_begin(struct request *r, struct fettle *f, const struct fettle_options *in,
				 enum config_command command); /* 0: one that uses no setting */
void request_release(struct request *r);

/*
 * The data a dataloader describes, bound to a session's inputs. `what` names it in messages: "calibration". Data that the
 * source has already are taken as they are.
 */
enum fettle_status request_source(struct source *s, const struct request *r,
				  const struct config_dataloader *d, const char *what,
				  const struct session *session, const struct feed_options *o,
				  struct err *err);
/* Which data that is, for a history to compare; "" when there is none. */
enum fettle_status request_fingerprint(const struct request *r, const struct config_dataloader *d,
				       char out[FINGERPRINT_LEN], struct err *err);
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
/*
 * precision.c: what the runtime computes each op of a quantized model in. The ops in fp32 are what fettle_fp32_op() then
 * gives. `allowed` is the plan before a search changed it; precisions_release() *out.
 */
enum fettle_status api_precisions(struct fettle *f, const struct request *r, const struct subject *s,
				  const struct qplan *allowed, const struct qplan *plan,
				  const struct model *quantized, struct precisions *out);
/* For fettle_fp32_op(). */
void api_keep_precisions(struct fettle *f, const struct precisions *p, const struct subject *s);
/* kind.c: notes what the model is, where that limits what is done with it; fails with that, where it leaves nothing to do. */
void api_note_kind(struct fettle *f, const struct subject *s);
enum fettle_status api_nothing(struct fettle *f, const struct subject *s, const char *verb, const char *path);
struct recipes request_recipes(const struct request *r);
/* Those with words, each on in the way that the configuration names. */
struct recipes request_ways(const struct config *c);

/* The configuration's constraints; free() the array. */
size_t request_constraints(const struct request *r, struct arena *a, struct constraint **out);

#endif
