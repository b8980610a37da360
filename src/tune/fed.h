/* What is fed to the model, and what of its outputs is scored: found out before anything is measured, and told. */
#ifndef TUNE_FED_H
#define TUNE_FED_H

#include "tune/source.h"

/* Of some samples, spread over all of them. */
struct looked {
	bool has_labels;
	bool integral; /* labels are whole numbers */
	bool shares;   /* along their last dimension labels are one-hot, or shares that add up to 1 */
	double min, max;
};

/* Tells which array feeds which input (fettle_fed()), and what the labels are like. `purpose`: "calibration". */
enum fettle_status fed_tell(struct context *cx, const char *purpose, const struct source *s,
			    struct looked *out);
/* Warns when what should be two sets of samples is one. Either may be empty. */
enum fettle_status fed_compare(struct context *cx, const char *what, const struct source *a,
			       const char *other, const struct source *b);

/* What is scored. */
struct scores {
	struct metric *metric; /* looking at the outputs that were chosen */
	double chance;         /* what guessing would score; NaN: not known */
};

/* What the user wants scored. */
struct scores_asked {
	const char *metric;         /* NULL: what labels and outputs suggest */
	const char *const *outputs; /* names; none: those that fit the labels */
	size_t n_outputs;
	const char *where; /* the outputs were named, to begin a message with: "conf.yaml:3:5: " */
};

/*
 * Opens the metric that is asked for, or the one that labels and outputs suggest, and chooses the outputs it looks
 * at: those that were named, or else the one that fits the labels. The session is run on a few samples for that.
 */
enum fettle_status scores_open(struct scores *out, struct context *cx, const struct scores_asked *asked,
			       struct session *s, const struct source *data, const struct looked *l);
/* Labels as the metric wants them, from a further feed: scores_open() has seen to that of its data. */
enum fettle_status scores_label(const struct scores *s, struct feed *feed, struct err *err);
/* Warns when a model does no better than guessing. `who`: "the fp32 model". */
void scores_judge(const struct scores *s, struct context *cx, const char *who, double value);

#endif
