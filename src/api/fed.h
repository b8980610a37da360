/* What is fed to the model, and what of its outputs is scored: found out before anything is measured, and told. */
#ifndef API_FED_H
#define API_FED_H

#include "api/request.h"

/* Of some samples, spread over all of them. */
struct looked {
	bool has_labels;
	bool integral; /* labels are whole numbers */
	bool shares;   /* along their last dimension labels are one-hot, or shares that add up to 1 */
	double min, max;
};

/* Tells which array feeds which input (fettle_fed()), and what the labels are like. `purpose`: "calibration". */
enum fettle_status fed_tell(struct fettle *f, const char *purpose, const struct source *s,
			    struct looked *out);
/* Warns when what should be two sets of samples is one. Either may be empty. */
enum fettle_status fed_compare(struct fettle *f, const char *what, const struct source *a, const char *other,
			       const struct source *b);

/* What is scored. */
struct scores {
	struct metric *metric; /* looking at the outputs that were chosen */
	double chance;         /* what guessing would score; NaN: not known */
};

/*
 * Opens the metric that the request names, or the one that labels and outputs suggest, and chooses the outputs it looks
 * at: those that were named, or else the one that fits the labels. The session is run on a few samples for that.
 */
enum fettle_status scores_open(struct scores *out, struct fettle *f, const struct request *r,
			       struct session *s, const struct source *data, const struct looked *l);
/* Warns when a model does no better than guessing. `who`: "the fp32 model". */
void scores_judge(const struct scores *s, struct fettle *f, const char *who, double value);

#endif
