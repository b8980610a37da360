/* Two models op by op: what differs in precision, scales and size, and on data where their values part. */
#ifndef TUNE_DIFF_H
#define TUNE_DIFF_H

#include "tune/source.h"

/* What a model does to one op, as its graph says it; the runtime may compute otherwise. */
struct op_form {
	const char *type;      /* of the node that computes it; NULL: this model does not have it */
	const char *precision; /* int8, dynamic, weight_only, int16, fp32 */
	const char *value;     /* that it makes */
	double scale;          /* of what it reads; NaN: it reads floats */
	int64_t zero;
	const char *input,
		*weight; /* their types as stored: "uint8", "int8 per_channel"; NULL: no weight, floats */
	size_t bytes;    /* of its constants */
};
struct op_pair {
	const char *name;
	struct op_form a, b;
	bool differs;
	double sqnr;   /* of b's value against a's, in dB; NaN: not compared */
	bool rescaled; /* its channels are scaled in b, which the error leaves out */
};
struct diff {
	VEC(struct op_pair) ops; /* in the order of b, those that only a has last */
	struct model *a, *b;
	struct arena arena;
	size_t parts;            /* the op at which values part: see diff_values(); SIZE_MAX: none */
	double output_sqnr;      /* the least of the models' outputs, in dB; NaN: not compared */
	size_t samples;          /* compared */
	size_t bytes_a, bytes_b; /* of the files */
};

/* Zeroed before, diff_release() after, also after a failure. */
enum fettle_status diff_open(struct diff *d, const char *a, const char *b, struct err *err);
/* Runs both on the first samples. The values part at the first op whose error is DIFF_DROP dB larger than any before it had. */
#define DIFF_DROP 10.0
enum fettle_status diff_values(struct diff *d, struct context *cx, const struct data_ref *data,
			       const struct feed_options *o, int threads);
void diff_release(struct diff *d);

/* diff_form.c: the forms of all ops of a model, by their names; what another model calls ops is in `names`, or NULL. */
enum fettle_status forms_of(struct model *m, const struct map *names, struct arena *a, struct map *index,
			    struct op_form **forms, const char ***keys, size_t *n, struct err *err);

#endif
