/*
 * The record of a run: one SQLite file, history.db, in a workspace folder.
 *
 *	history_create(&h, dir, &info, err)		or, to resume:
 *	history_open(&h, dir, false, err), history_check_same(h, &info, err)
 *	history_set_baseline(), history_add_ranges(), then history_add_trial() for each trial that ended
 *	history_set_result()
 *	history_close(h)
 *
 * What a function has written when it returns survives kill -9. A power loss may undo what was written within a
 * second after something else: a second's work. One process writes at a time, any number may read meanwhile.
 *
 * Text is UTF-8 by convention, of any length, and is not looked into. NULL is written as "", so that text that was
 * read is never NULL. Doubles come back as they were, NaN and infinities too. What is read is the caller's: a
 * struct that holds text begins as zeroes, is released by its next use or with its _release function.
 *
 * A handle is for one thread at a time and does not cross a fork(). A child that is forked without exec keeps the
 * writer's lock until it ends too.
 *
 * Errors: FETTLE_SYSTEM for the disk, permissions and locks; FETTLE_INVALID for what is no history, is damaged, or
 * does not fit; FETTLE_UNSUPPORTED for a history that a newer fettle wrote.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct history;

struct run_info {
	const char *model_path;
	const char *model_fingerprint; /* base/fingerprint.h; "" for data or a model that has none */
	const char *calib_fingerprint, *eval_fingerprint;
	const char *calib_path, *eval_path; /* for messages; not kept */
	/* config_identity() and the like, one "name: value" per line; names what changed when a resume is refused.
	 * The fingerprint is "" in a history of an older version, which kept less: it cannot be resumed. */
	const char *config_fingerprint, *config;
	const char *space;   /* space_hash(); "" in a history of an older version, which is not asked */
	const char *request; /* all that it takes to run it again; as the caller spells it */
	const char *strategy;
	uint64_t seed;
	const char *fettle_version, *runtime_version;
	const char *cpu;       /* its kind; "avx2 on arm64": planned for the one, measured on the other */
	const char *started;   /* clock_utc() */
	const char *criterion; /* relative, absolute */
	double tolerance;
	const char *metric;
	bool higher_is_better;
};

/* Makes the folder, with those above it, and the database. Refused when a run is in it already. */
enum fettle_status history_create(struct history **out, const char *dir, const struct run_info *info,
				  struct err *err);
/* Would history_create() find the folder taken? Writes nothing. */
enum fettle_status history_check_free(const char *dir, struct err *err);
/* For writing, the whole database is checked first, and a second writer is refused. */
enum fettle_status history_open(struct history **out, const char *dir, bool read_only, struct err *err);
void history_close(struct history *h); /* NULL is fine */
/* Is a process writing to it, on this machine or another that shares the folder? */
bool history_is_written(const char *dir);
/*
 * Is there something to resume? A process that was killed in history_create() leaves nothing that counts:
 * then this is false, and history_create() works. True for a database that cannot be read: opening says why.
 */
bool history_exists(const char *dir);

const struct run_info *history_run(const struct history *h); /* valid until history_close() */
/*
 * May `now` continue this run? Refused with the reason when the model, the data, the configuration, the strategy, the
 * seed, the metric, the criterion, the CPU, the runtime or the tuning space are others.
 */
enum fettle_status history_check_same(const struct history *h, const struct run_info *now, struct err *err);
/* It is continued by another request: with other limits, say. */
enum fettle_status history_set_request(struct history *h, const char *request, struct err *err);

struct history_baseline {
	double accuracy;
	double latency; /* seconds of one run; NaN: not measured */
	size_t size_bytes;
	double pass_seconds; /* of one fp32 evaluation pass, the unit of account */
	size_t samples;
};
enum fettle_status history_set_baseline(struct history *h, const struct history_baseline *b, struct err *err);
enum fettle_status history_baseline(struct history *h, struct history_baseline *out, bool *found,
				    struct err *err);

struct history_trial {
	size_t number;         /* 1, 2, … */
	const char *plan;      /* plan_text() */
	const char *plan_hash; /* the hash of that; set by the history */
	const char *stage;     /* of the strategy */
	bool failed, met;
	double accuracy, loss, objective; /* as in struct score */
	double latency;                   /* seconds of one run; NaN: not measured */
	size_t size_bytes;
	size_t samples; /* evaluated, until the verdict was certain */
	double quantize_s, session_s, evaluate_s,
		measure_s;    /* where its time went; the last is for latency */
	double seconds;       /* all of it, by the wall clock */
	const char *finished; /* clock_utc() */
	const char *why;      /* it ended or failed */
	double accuracy_low,
		accuracy_high; /* as in struct score; NaN (from older versions): the accuracy is exact */
	void *own;             /* what was read; NULL in one to be written */
};
void history_trial_release(struct history_trial *t);

/* Number 0: the next. *number (may be NULL) is what it got. A number that is taken is refused. */
enum fettle_status history_add_trial(struct history *h, const struct history_trial *t, size_t *number,
				     struct err *err);
/* The trial that ended early was evaluated to its end. */
enum fettle_status history_complete_trial(struct history *h, size_t number, bool met, double accuracy,
					  double loss, struct err *err);
enum fettle_status history_count(struct history *h, size_t *out, struct err *err);
/* The trial of that number; FETTLE_INVALID when there is none. */
enum fettle_status history_trial_at(struct history *h, size_t number, struct history_trial *out,
				    struct err *err);
/* The latest trial of the plan of that hash, and the first one after `number`. out->number is 0 when there is none. */
enum fettle_status history_find(struct history *h, const char *plan_hash, struct history_trial *out,
				struct err *err);
enum fettle_status history_next(struct history *h, size_t number, struct history_trial *out, struct err *err);

/* Ranges of calibrated values, so that a model can be made again from a plan alone. */
struct history_range {
	const char *value;   /* the tensor's name */
	const char *setting; /* what else the range depends on, as the caller spells it */
	size_t samples;      /* calibration samples it was made from */
	double min, max;
};
struct history_ranges {
	struct history_range *v; /* by samples, setting, value */
	size_t n, cap;
	struct arena names;
};
#define HISTORY_RANGES_INIT                                                                                  \
	{                                                                                                    \
		NULL, 0, 0, ARENA_INIT                                                                       \
	}
/* All or none; a range that is there already is replaced. */
enum fettle_status history_add_ranges(struct history *h, const struct history_range *v, size_t n,
				      struct err *err);
/* Those made from that many samples; 0: all. Releases what `out` had. */
enum fettle_status history_ranges(struct history *h, size_t samples, struct history_ranges *out,
				  struct err *err);
void history_ranges_release(struct history_ranges *r);

/* How the run ended. Absent: it did not. Resuming and ending again replaces it. */
struct history_result {
	bool met;
	const char *stop;  /* accuracy_met, max_trials, timeout, exhausted, interrupted */
	size_t best_trial; /* 0: none */
	const char *output;
	void *own;
};
enum fettle_status history_set_result(struct history *h, const struct history_result *r, struct err *err);
enum fettle_status history_result(struct history *h, struct history_result *out, bool *found,
				  struct err *err);
void history_result_release(struct history_result *r);

/* Anything else, by name. *value is the caller's to free(); NULL when there is none. */
enum fettle_status history_set_meta(struct history *h, const char *key, const char *value, struct err *err);
enum fettle_status history_meta(struct history *h, const char *key, char **value, struct err *err);

#endif
