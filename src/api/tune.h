/* A run that tries plans and ends with the best one's model: what fettle_tune() and fettle_auto_search() share. */
#ifndef API_TUNE_H
#define API_TUNE_H

#include "api/run.h"

struct auto_search; /* search.c */

/* the result, with what it points to */
struct tuned {
	struct fettle_tuned pub;
	struct fettle_measure baseline, best;
	struct fettle_seconds seconds;
	struct fettle_saved saved;
	struct arena arena;
};

/* Lets the public part point to the others. */
struct fettle_tuned *tuned_publish(struct tuned *t);

struct tune_run {
	struct run base;
	const struct strategy *strategy;
	struct own_strategy *own; /* the same, if it was registered */
	struct auto_search *as;   /* of fettle_auto_search(); NULL: tuning */
	struct history *history;
	struct search *search;
	struct accuracy baseline;
	struct source hold;
	char *output;
	struct tuned *out;
};

/* All of it, from the options to the result. */
enum fettle_status tune_run(struct tune_run *u, const struct fettle_options *in, struct fettle_tuned **out);

bool auto_search_has_space(const struct config *c);
/* search.c: what is different when settings are searched, in the order it is asked for */
enum fettle_status auto_search_begin(struct tune_run *u); /* after the options are read */
enum fettle_status auto_search_open(struct tune_run *u);  /* when the workspace is there */
void auto_search_config(struct tune_run *u, struct search_config *c);
void auto_search_log_trial(struct tune_run *u, const struct trial *t, const char *settings);
/* The first of the candidates so far, or NULL. */
const struct trial *auto_search_best(const struct tune_run *u);
void auto_search_finish(struct tune_run *u); /* when the result is complete: lists the candidates */

#endif
