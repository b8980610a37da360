/* Samples for a model: from a file, a folder, a registered kind of data or the program itself. */
#ifndef TUNE_SOURCE_H
#define TUNE_SOURCE_H

#include "data/feed.h"
#include "data/squad.h"
#include "runtime/session.h"
#include "tune/context.h"

/* Which data, as a configuration or a program describes it. All zero: none. */
struct data_ref {
	const char *what;                        /* in messages: "calibration" */
	const struct fettle_data_source *source; /* of the program; over all else */
	const struct fettle_dataset *registered;
	const char *kind, *root;             /* kind NULL: by what is there */
	const struct fettle_setting *params; /* beside the root */
	size_t n_params;
	const struct transform *transforms;
	size_t n_transforms;
	int64_t label_shift;      /* is subtracted from labels */
	struct squad_files squad; /* of the evaluation only, as is ... */
	const char *vocabulary;   /* ... what tokens are as text: a file; NULL: none */
	size_t objects;           /* only images with so many; 0: any number */
	/* names that the model's inputs must have, and what begins a message about them ("conf.yaml:3:5: ") */
	const char *const *inputs;
	size_t n_inputs;
	const char *inputs_where;
	struct unpacking **begun; /* of its archive (data/unpack.h); NULL: none is */
};

/* Which data that is, for a history to compare; "" when there is none. */
enum fettle_status data_fingerprint(struct context *cx, const struct data_ref *d, char out[FINGERPRINT_LEN]);

/* The data, bound to a session's inputs. */
struct source {
	struct dataset *data;
	struct feed *feed;
};
#define SOURCE_INIT                                                                                          \
	{                                                                                                    \
		NULL, NULL                                                                                   \
	}
/* A dataset that the source has already is taken as it is. */
enum fettle_status source_open(struct source *s, struct context *cx, const struct data_ref *d,
			       const struct session *session, const struct feed_options *o);
/* The same, bound to inputs of which only the specs are known. */
enum fettle_status source_open_specs(struct source *s, struct context *cx, const struct data_ref *d,
				     const struct input_spec *specs, size_t n, const struct feed_options *o);
void source_release(struct source *s);

enum {
	DEFAULT_BATCH = 32,
	DEFAULT_BATCH_BYTES = 2 << 20, /* of inputs: with more, a network's values leave the cache */
	CALIB_BATCH = 8,               /* all activations at once: small enough to stay in the cache */
};

#endif
