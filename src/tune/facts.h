/* What a learner holds, shared by the files that fill it: learn.c, learn_data.c and learn_history.c. */
#ifndef TUNE_FACTS_H
#define TUNE_FACTS_H

#include "quantize/blocks.h"
#include "quantize/grams.h"
#include "quantize/variant.h"
#include "tune/learn.h"

struct noted_means {
	struct channel_axis at;
	const double *v;
};

/* Weight-only weights of one plan. */
struct sequence {
	char plan[FINGERPRINT_LEN];
	struct block_store *blocks;
};

/* What is known of one variant of the model, from so many samples. */
struct facts {
	int64_t asked; /* samples, as plans say */
	size_t samples;
	char *key; /* of the variant */
	struct variant *v;
	struct statistics *values;
	struct calibration *own; /* of the variant; NULL until it is needed */
	struct calibration *few; /* of the model as it is: only what the first plans needed; may be NULL */
	struct channel_means *means;      /* NULL until they are needed */
	struct map rounded;               /* path of a rounding -> its place in roundings */
	VEC(struct rounding *) roundings; /* models made from them share their bytes */
	struct block_store *blocks;       /* weight-only weights that data made; NULL until they are needed */
	struct grams *grams;              /* the last sweep for them */
	/* the same of plans with the recipe true_sequential, each of which has its own */
	VEC(struct sequence) sequences;
	/* not in the history yet */
	VEC(struct history_range) new_ranges;
	VEC(struct noted_means) new_means;
	bool rewriting_kept;
	struct arena arena;
};

struct learner {
	struct learn_source s;
	VEC(struct facts *) facts;
	size_t total;               /* samples there are */
	size_t *order;              /* which, in the order of the feed */
	VEC(const char *) expected; /* values, of learner_expect(); some several times */
	struct history_ranges stored;
	struct map stored_at; /* "value\tsetting\tsamples" -> place in stored */
	struct arena arena;
};

/* Of the variant with this key, from so many samples; NULL: there are none yet. */
struct facts *known_facts(const struct learner *l, int64_t samples, const char *key);
/* The facts that a plan needs, with the variant of the model; the rest is filled in as plans need it. */
enum fettle_status find_facts(struct learner *l, int64_t samples, const struct qplan *plan,
			      struct facts **out, struct err *err);
/* Those of the model as it is, from the same samples. */
enum fettle_status base_facts(struct learner *l, const struct facts *f, struct facts **out, struct err *err);

/*
 * learn_data.c: from the calibration samples. `mapped` is the plan as one of the facts' own model. What is found is noted
 * for the history.
 */
enum fettle_status make_variant(struct learner *l, struct facts *f, const struct qplan *plan,
				struct err *err);
/* Calibrates the model as it is on what a plan and those expected need, if that is little beside what all may need, and the first time. */
enum fettle_status calibrate_few(struct learner *l, struct facts *f, const struct qplan *mapped,
				 const struct needs *needs, struct err *err);
enum fettle_status observe_range(struct learner *l, struct facts *f, const struct qplan *plan,
				 const struct qplan *mapped, const struct range_need *n, struct range *out,
				 struct err *err);
enum fettle_status observe_means(struct learner *l, struct facts *f, const struct qplan *mapped,
				 const struct channel_axis *a, double *out, struct err *err);
enum fettle_status make_rounding(struct learner *l, struct facts *f, const struct qplan *mapped,
				 struct rounding **out, struct err *err);

enum fettle_status observe_grams(struct learner *l, struct facts *f, const struct gram_input *want, size_t n,
				 struct err *err);

/* learn_blocks.c: the weight-only weights of a plan of the facts' own model, from data or from the workspace */
enum fettle_status learn_blocks(struct learner *l, struct facts *f, const struct qplan *mapped,
				const struct needs *needs, struct err *err);

/* Those that a plan has been given; NULL: none. */
const struct block_store *known_blocks(const struct facts *f, const struct qplan *mapped);
enum fettle_status observe_in_sequence(struct learner *l, struct facts *f, const struct qplan *mapped,
				       struct block_store *out, struct err *err);
/* What a node of the facts' own model reads; valid until the next sweep. */
enum fettle_status see_input(struct learner *l, struct facts *f, size_t node, const struct block_seen **out,
			     struct err *err);

/* learn_history.c: from what learner_keep() wrote in another run */
enum fettle_status read_variant(struct learner *l, struct facts *f, const struct qplan *plan,
				struct err *err);
enum fettle_status read_range(const struct learner *l, const struct facts *f, const struct range_need *n,
			      struct range *out, struct err *err);
enum fettle_status read_means(const struct learner *l, const struct facts *f, const struct channel_axis *a,
			      double *out, struct err *err);
char *range_key(const struct qsetting *s, const char *variant); /* of a range, beside its value; free() it */

#endif
