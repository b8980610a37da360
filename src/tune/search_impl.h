/*
 * The search's insides, in five files: search.c (what has been tried, when to stop, what strategies ask), verdict.c (which
 * trials meet the criterion, which is the best, what is enough to know of the next), group.c (trials that run side by
 * side), foresee.c (which plans may be asked for next) and spend.c (what it has spent, and what more is worth).
 */
#ifndef TUNE_SEARCH_IMPL_H
#define TUNE_SEARCH_IMPL_H

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "tune/search.h"

#define GAIN_EQUAL 1e-9 /* gains are sums of shares of a model's time */

/* See foresee.h. */
struct memo {
	struct memo_entry *v;
	size_t n, cap;
	struct map places; /* keys are the search's */
};

struct search {
	struct search_config c;
	VEC(struct trial) trials;
	/* key of a plan -> place in `trials`, from 1, of its trial or of one that gave the same model */
	struct map places;
	struct arena keys;
	size_t n_same, n_same_in_a_row;
	struct str untried;
	size_t best, most_accurate; /* places in `trials`, from 1; 0: none yet */
	size_t whole;               /* the most accurate of those in which nothing has fallen back */
	size_t last;                /* the highest number of a trial */
	size_t fresh;               /* trials that were not known */
	struct trial asked;         /* the plan with the least objective that a strategy asked for */
	double least;               /* objective of those that count as much as the best */
	size_t held;
	size_t n_met;    /* plans that have met the criterion, and not by quantizing next to nothing */
	bool all_slight; /* not even the default plan quantizes more than that: then it counts */
	enum search_stop why;
	enum fettle_status failed; /* the status that ended it */
	struct err err;
	double started, replayed; /* when; and the seconds that known trials took, in their day */
	struct arena stages;
	const char *stage;
	enum want want;
	bool spends_all;
	double spent;           /* fp32 passes, see spend.c */
	bool ends_at_limit;     /* see search_bound() */
	bool limited;           /* something was not tried because too much was spent */
	struct verdict verdict; /* of the trials in progress */
	double least_before;    /* the least objective, and these when they began */
	size_t best_before, most_accurate_before, whole_before;
	const struct strategy
		*strategy; /* that can run again to see what it asks for; NULL: nothing is foreseen */
	struct memo memo;
	struct map ahead; /* plans that ran ahead to their end, though nobody has asked for them yet */
};

/* ---- search.c ---- */

struct trial *trial_at(const struct search *s, size_t place);
/* Of a plan; `kind` makes several of one. */
void search_key(const struct search *s, const struct plan *p, int kind, char out[FINGERPRINT_LEN]);
struct trial *search_tried(const struct search *s, const struct plan *p); /* NULL: not yet */
void search_keep_place(struct search *s, const struct plan *p, size_t place);
struct trial *search_remember(struct search *s, struct trial t);
double search_now(const struct search *s);
/* Ends the search, unless it has ended already: FETTLE_STOP, or the status that it failed with. */
enum fettle_status search_stop(struct search *s, enum search_stop why);
enum fettle_status search_after_trial(struct search *s);
/* What a backend's status means: broken off, or a failure that ends the search. */
enum fettle_status search_backend_ended(struct search *s, enum fettle_status st);

/* ---- verdict.c ---- */

bool quantizes_little(const struct search *s, const struct plan *p);
void judge(const struct search *s,
	   struct trial *t); /* fills in what follows from its accuracy, or its bounds */
void keep_best(struct search *s, const struct trial *t); /* one of those remembered may be the best now */
void find_best_again(struct search *s);                  /* of all, after scores have changed */
bool wants_value(const struct search *s);                /* of the trials to come, not just a verdict */
/* What is enough to know of the trials to come, by what is known now. */
void decide_verdict(struct search *s);
void prepare_trial(struct search *s, struct trial *t, struct verdict *own);
enum fettle_status too_slow(struct search *s, struct trial *t, struct verdict *v, bool *too_slow);
/* Judges a trial that has run, and measures its objective if that matters. */
enum fettle_status measure_trial(struct search *s, struct trial *t);

/* ---- spend.c ---- */

void spend_trial(struct search *s, const struct trial *t); /* that is not among those remembered yet */
void spend_estimate(struct search *s, const struct plan *p);
void spend_rank(struct search *s);
void spend_profiles(struct search *s);
bool may_profile_again(const struct search *s);

/* ---- group.c ---- */

/* Fills in the result of a trial that the history has; false: it has not. */
bool replay_trial(struct search *s, struct trial *t);

#endif
