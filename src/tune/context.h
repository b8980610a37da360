/* What a call works with (the runtime, the CPU that is planned for, registered members) and what it has to say. */
#ifndef TUNE_CONTEXT_H
#define TUNE_CONTEXT_H

#include <stdatomic.h>

#include "quantize/precision.h"
#include "quantize/subject.h"
#include "tune/members.h"

struct context {
	struct err err;
	struct runtime *rt; /* started when first needed */
	struct cpu cpu;     /* that plans are made for */
	struct members members;
	fettle_progress progress;
	void *progress_self;
	atomic_bool interrupted; /* fettle_interrupt() */
	const char *phase;

	/* said during the last call */
	VEC(char *) notes, warnings;
	VEC(struct fettle_fed) fed;
	struct fettle_scoring scoring;          /* .metric is NULL: nothing was scored */
	struct arena told;                      /* what these two point to */
	VEC(struct fettle_finetuned) finetuned; /* names are its own */
	VEC(struct fettle_fp32_op) fp32_ops;    /* likewise */
};

/* Each call begins with this: forgets what the last one said, and starts the runtime. */
enum fettle_status context_begin(struct context *cx);
void context_clear(struct context *cx);
void context_release(struct context *cx);

/* Names what follows, and tells the caller; FETTLE_STOP if the caller says stop. */
enum fettle_status context_phase(struct context *cx, const char *phase);
bool context_progress(void *cx, size_t done, size_t total); /* a progress_fn */
void context_note(struct context *cx, const char *text);    /* once, however often it is said */
void context_warn(struct context *cx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Opens the model at `path`, its graph rewritten or not, and notes what was done to it. */
enum fettle_status context_subject(struct context *cx, const char *path, bool rewrite, struct subject **out);
/* The same for weight-only plans: a model with more than OUTSIDE_BYTES in files beside it keeps its weights there. */
#define OUTSIDE_BYTES ((size_t)1 << 30)
enum fettle_status context_subject_outside(struct context *cx, const char *path, bool rewrite,
					   struct subject **out);
/* Notes what the model is, where that limits what is done with it. */
void context_note_kind(struct context *cx, const struct subject *s);
/* Fails with that, where it leaves nothing to do. */
enum fettle_status context_nothing(struct context *cx, const struct subject *s, const char *verb,
				   const char *path);
/* Names the kinds of CPU that some products of the plan overflow on, and notes it unless that was measured. */
void context_saturates_on(struct context *cx, const struct qplan *p, const struct op_list *ops, char *out,
			  size_t n);
/*
 * What the runtime computes each op of a plan's model in; precisions_release() *out. The ops in fp32 are kept for the
 * caller.
 */
enum fettle_status context_precisions(struct context *cx, const struct subject *s, enum approach approach,
				      const struct qplan *plan, const struct model *quantized,
				      struct precisions *out);
void context_keep_precisions(struct context *cx, const struct precisions *p, const struct subject *s);

struct fettle_values values_of(const double *v, size_t n);

#endif
