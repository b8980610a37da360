/*
 * The ranks of a job: processes that mpirun has started, on one machine or several. Rank 0 runs the search, keeps the history and
 * hands trials out; the others open the same model and data, and answer. What they are sent is enough to give the answer
 * that rank 0 would give, so it does not matter who runs a trial, nor how many ranks there are.
 *
 *	rank 0					the others
 *	ranks_open(&r, ...)			ranks_open(&r, ...)
 *	ranks_agree(r, &facts, err)		ranks_agree(r, &facts, err)	same model, same data?
 *	ranks_give(), ranks_hear(), ...		ranks_serve(r, lab, err)	until rank 0 ends it
 *	ranks_close(r, st, err)			ranks_close(r, st, err)		also after a failure
 */
#ifndef TUNE_RANKS_H
#define TUNE_RANKS_H

#include "base/str.h"
#include "tune/examiner.h"
#include "tune/lab.h"

struct ranks;

/* *out is NULL when there is one rank only. `warn` is told of ranks that drop out. */
enum fettle_status ranks_open(struct ranks **out, void (*warn)(void *self, const char *text), void *self,
			      struct err *err);
int ranks_rank(const struct ranks *r); /* which of them this is; 0 of NULL */
/* Of a session, that run, so that the ranks on this machine do not ask for more cores than there are; 0: all. */
int ranks_threads(const struct ranks *r);

/* Before they open it: rank 0 sends a file, a folder's files, or the files of a folder that a pattern as for glob(3) names, to
 * all; the others keep them in a folder of theirs. *out is the path there, free() it; NULL: nothing was sent. */
enum fettle_status ranks_send_data(struct ranks *r, const char *path, struct err *err);
enum fettle_status ranks_receive_data(struct ranks *r, const char *folder, char **out, struct err *err);

/* What must be the same for all: texts, and how messages name them. */
struct ranks_fact {
	const char *what; /* "the evaluation data differs" */
	const char *value;
	const char *path; /* of the file; NULL: it has none */
};
/* Fails on all ranks when one differs from rank 0, or could not begin. `jobs` trials this rank can run at once; `threads` become
 * rank 0's. */
enum fettle_status ranks_agree(struct ranks *r, const struct ranks_fact *facts, size_t n, size_t jobs,
			       int *threads, struct err *err);
/* Ends the others' work; on these, waits until rank 0 does. They end with rank 0's status. NULL is fine. */
enum fettle_status ranks_close(struct ranks *r, enum fettle_status st, struct err *err);

/* What was sent. */
struct ranks_stats {
	size_t ranks;             /* that take part */
	size_t trials;            /* that others ran */
	size_t given_twice;       /* to another, because the first was slow; pieces of other work, too */
	size_t bytes, most_bytes; /* there and back, for all these and for one, plans apart */
	size_t plan_bytes;
	size_t pieces, piece_bytes; /* of other work, that others did */
	size_t ahead;               /* plans that others ran ahead to their end */
};
struct ranks_stats ranks_stats(const struct ranks *r); /* all 0 of NULL */

/* ---- rank 0 ---- */

size_t ranks_slots(const struct ranks *r);             /* trials that others can run at once; 0 of NULL */
size_t ranks_at_work(const struct ranks *r);           /* this one included */
void ranks_baseline(struct ranks *r, double accuracy); /* who gets another for fp32 is given nothing */

/* Gives a trial to a rank that is free, and remembers it by `key`: to the rank `to`, -1: any but `not_to`. False: none is. */
bool ranks_give(struct ranks *r, struct lab *l, const struct trial *t, size_t key, int to, int not_to);
bool ranks_any_free(const struct ranks *r);
bool ranks_have(const struct ranks *r, size_t key, int *rank); /* is it with one of them? */
void ranks_drop(struct ranks *r, size_t key);                  /* its answer is no longer wanted */
void ranks_gave_twice(struct ranks *r);                        /* for the statistics */
/* A trial has taken so long; and what takes longer than this is slow: INFINITY as long as too few have ended. */
void ranks_took(struct ranks *r, double seconds);
double ranks_slow_after(const struct ranks *r);
double
ranks_patience(const struct ranks *r); /* it is worth waiting so long for a rank that has run a plan ahead */

/*
 * The rank, this one included, on which the plan with this hash has run ahead, to its end or in part: there its trial takes less
 * time. False: none, or it has gone.
 */
bool ranks_home(const struct ranks *r, const char *hash, int *rank, bool *whole);
void ranks_set_home(struct ranks *r, const char *hash, int rank, bool whole);
bool ranks_frees_soon(const struct ranks *r, int rank); /* what it runs was dropped */

enum heard_what { HEARD_NOTHING, HEARD_ANSWER, HEARD_PIECE, HEARD_LOST };
struct heard {
	enum heard_what what;
	size_t key;
	struct trial t; /* but for number, plan and stage */
	enum fettle_status st;
	struct shown shown;
	uint64_t work;     /* of a piece, see pieces.h; 0: a trial */
	struct str answer; /* of a piece; str_release() it */
};
/* Waits for an answer for at most so many seconds. HEARD_LOST: that trial's rank has gone, somebody else must run it. */
enum fettle_status ranks_hear(struct ranks *r, double seconds, struct heard *out, struct err *err);

/* ---- the others ---- */

enum fettle_status ranks_serve(struct ranks *r, struct lab *l, struct err *err);

/* transport.c */
struct transport;
enum fettle_status transport_load(const struct transport **out, struct err *err);

#endif
