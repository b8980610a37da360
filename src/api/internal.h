/* What the files of this folder share: the handle, and options turned into what the library works with. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "evaluate/evaluate.h"
#include "fettle.h"
#include "quantize/subject.h"

struct fettle {
	struct err err;
	struct runtime *rt; /* started when first needed */
	fettle_progress progress;
	void *progress_self;
	const char *phase;
};

/* Each call of the interface begins with this. It copies what the caller's version of the struct has. */
enum fettle_status api_begin(struct fettle *f, const struct fettle_options *in, struct fettle_options *out);
/* Names what follows, and tells the caller; FETTLE_STOP if the caller says stop. */
enum fettle_status api_phase(struct fettle *f, const char *phase);
bool api_progress(void *f, size_t done, size_t total); /* a progress_fn */

/* DATA opened and bound to a session's inputs. */
struct source {
	struct dataset *data;
	struct feed *feed;
};
enum fettle_status source_open(struct source *s, const char *path, const struct session *session,
			       const struct feed_options *o, struct err *err);
void source_release(struct source *s);

enum {
	DEFAULT_BATCH = 32,
	CALIB_BATCH = 8, /* all activations at once: small enough to stay in the cache */
	DEFAULT_CALIB_SAMPLES = 100,
};

/* The plan that the options describe. */
enum fettle_status make_plan(const struct fettle_options *o, const struct subject *s, struct qplan *out,
			     struct err *err);

/* Ranges by calibration, as a quantizer asks for them. */
struct range_source calibration_source(struct calibration *c);

#endif
