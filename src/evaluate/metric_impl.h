/*
 * For the files that implement metrics. A metric is a `struct metric_type metric_type_ID` and a line in
 * evaluate/list.h. If it is a mean of per-sample scores it has scores(); otherwise add() and value(), and
 * state_size bytes of state that start zeroed, with release() for what they point to. parse() reads
 * what follows "NAME:", or default_param, into m->param and m->name; a type without it takes no parameter.
 */
#ifndef EVALUATE_METRIC_IMPL_H
#define EVALUATE_METRIC_IMPL_H

#include <stdint.h>

#include "base/mem.h"
#include "evaluate/metric.h"

/* Several metrics as one: metric_joint.c. */
struct metric_joint {
	struct metric_type type;
	size_t n;
	struct metric *part[METRICS_MAX];
	bool weighted, mixed;       /* mixed: of some higher is better, of others lower */
	double weight[METRICS_MAX]; /* NaN: none */
	bool has_base, relative;
	double base[METRICS_MAX]; /* what the fp32 model has */
};
struct metric *joint_twin(const struct metric *m);
enum fettle_status joint_value(struct metric *m, double *value, struct err *err);
void joint_bounds(const struct metric *m, size_t rest, double *low, double *high);

struct metric {
	const struct metric_type *type;
	char name[METRICS_NAME_LEN];
	long param;
	enum metric_needs needs;  /* the type's, unless a parameter narrows them */
	size_t n;                 /* samples added */
	enum metric_needs target; /* what they were compared with; 0 before the first */
	double sum;               /* of scores */
	VEC(double) scores;       /* of one batch */
	VEC(size_t) selected;     /* outputs to look at; none: all */
	void *state;
	void *whole;                         /* the state after metric_keep_whole(); NULL: not known */
	struct metric_joint *joint;          /* NULL: it is one metric */
	const struct squad *squad;           /* what answers are scored by; NULL: none */
	const struct vocabulary *vocabulary; /* what tokens are as text; NULL: not known */
};

/* Numeric, and at least n_valid rows. `what` is "outputs", "labels" or "reference". */
enum fettle_status metric_check(const struct metric *m, const char *what, const struct tensor *t,
				size_t n_valid, struct err *err);

/* Same shape, apart from the number of rows and from dimensions of 1. */
bool metric_comparable(const struct tensor *a, const struct tensor *b);

/* That every output has something of its shape to be compared with. */
enum fettle_status metric_check_pairs(const struct metric *m, const struct metric_batch *b, struct err *err);

/* "cannot compute NAME: outputs [..], WHAT [..], need RULE" */
enum fettle_status metric_mismatch(const struct metric *m, const struct tensor *outputs, const char *what,
				   const struct tensor *t, const char *rule, struct err *err);

/* Tensors are read in pieces, converted to double, so that the loops are plain and need no memory. */
enum { METRIC_PIECE = 512 };
/* Fills v with elements at .. at+n-1, or the first METRIC_PIECE of them; returns how many. */
size_t metric_read(const struct tensor *t, size_t at, size_t n, double v[METRIC_PIECE]);

/* Class scores: N samples x `tokens` x `columns`. */
struct metric_classes {
	const struct tensor *t;
	int lead;       /* dimensions of labels that are class numbers */
	size_t tokens;  /* per sample; 1 unless the outputs are [N,T,C] or [N,C,H,W] */
	size_t columns; /* 1: one score per sample, for two classes */
	size_t classes;
	bool pixels; /* [N,C,H,W]: a token's scores lie `tokens` apart */
};

/* Views t as [N,C], [N,T,C] or [N,C,H,W] with two classes or more; with `single`, also as [N] or [N,1]. */
enum fettle_status metric_classes(const struct metric *m, const char *what, const struct tensor *t,
				  size_t n_valid, bool single, struct metric_classes *c, struct err *err);

/* Fills v with the scores of token i (counted over all samples) from class `at` on; returns how many. */
size_t metric_class_scores(const struct metric_classes *c, size_t i, size_t at, double v[METRIC_PIECE]);
double metric_class_score(const struct metric_classes *c, size_t i, size_t k);

/* The class with the highest of the scores of token i (counted over all samples), -1 if all are NaN. */
int64_t metric_highest(const struct metric_classes *c, size_t i);

/*
 * How far token i is from another answer: the score of `wanted` above the k-th best of the others; below 0 when it is
 * not among the k highest. -inf for NaN.
 */
double metric_margin(const struct metric_classes *c, size_t i, int64_t wanted, size_t k);

/* That labels fit the outputs c. */
enum fettle_status metric_labels(const struct metric *m, const struct metric_batch *b,
				 const struct metric_classes *c, struct err *err);

/* The label of token i, 0 .. classes-1, or METRIC_IGNORED. */
enum { METRIC_IGNORED = -100, METRIC_VOID = 255 /* pixels only */ };
enum fettle_status metric_label(const struct metric *m, const struct metric_batch *b,
				const struct metric_classes *c, size_t i, int64_t *label, struct err *err);

/* The least margin of each sample's tokens against their labels; for metric_type.margins. */
void metric_label_margins(const struct metric *m, const struct metric_batch *b, bool single, size_t k,
			  double *margins);

#endif
