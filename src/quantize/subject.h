/* A model made ready to be quantized: prepared, indexed, its ops examined. */
#ifndef QUANTIZE_SUBJECT_H
#define QUANTIZE_SUBJECT_H

#include "calibrate/calibrate.h"
#include "quantize/quantize.h"
#include "runtime/session.h"
#include "simplify/simplify.h"

struct subject {
	struct model *m;
	struct graph_index g;
	struct op_list ops;
	struct quantizer *z;
	bool outside; /* large weights lie in files, and nothing was run: shapes are as declared */
	/*
	 * Of every value, for one sample: with 1 where inputs are open, empty if the model does not run on such zeros; and as seen
	 * in a sample of the data, empty if nothing else is open than the number of samples. What a plan makes of a model must
	 * not depend on the latter, prices may: subject_shape().
	 */
	struct shapes shapes, seen;
	struct cpu cpu;
	const char *quantized, *hidden; /* see ops/kind.h; NULL: nothing to say */
	struct simplified rewritten;    /* how its graph was */
};

enum fettle_status subject_open(struct subject **out, struct runtime *rt, const char *path, struct err *err);
/* The same, but no weight that lies in a file is read (prepare_outside()), for models that are larger than memory. */
enum fettle_status subject_open_outside(struct subject **out, struct runtime *rt, const char *path,
					bool rewrite, struct err *err);
/* The same, its graph not rewritten. */
enum fettle_status subject_open_as_is(struct subject **out, struct runtime *rt, const char *path,
				      struct err *err);
void subject_free(struct subject *s);
/* Looks at a sample, where inputs are open. Ops have the multiply-adds of that, from then on. */
void subject_see(struct subject *s, struct runtime *rt, const struct feed *data);
const struct tensor *subject_shape(const struct subject *s, const char *value); /* NULL: not known */
/*
 * A calibration of all values that any plan of the ops on offer may need, and of what this plan (may be NULL) needs beyond. Not
 * of fewer: what is observed decides what the runtime fuses, and so the last bits of ranges.
 */
enum fettle_status subject_calibrate(struct subject *s, struct runtime *rt, const struct qplan *plan,
				     struct feed *feed, const struct calibrate_options *o,
				     struct calibration **out, struct err *err);

#endif
