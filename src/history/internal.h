/* What the files of this folder share: the handle and its queries. */
#ifndef HISTORY_INTERNAL_H
#define HISTORY_INTERNAL_H

#include "history/db.h"
#include "history/history.h"

enum {
	PUT_RUN,
	CHANGE_RUN,
	GET_RUN,
	PUT_BASELINE,
	GET_BASELINE,
	PUT_TRIAL,
	CHANGE_TRIAL,
	GET_TRIAL_AT,
	GET_TRIAL_NEXT,
	GET_TRIAL_OF_PLAN,
	PUT_RANGE,
	GET_RANGES,
	PUT_RESULT,
	GET_RESULT,
	PUT_META,
	GET_META,
	N_QUERIES,
};
_Static_assert((int)N_QUERIES <= (int)DB_QUERIES_MAX, "struct db must hold every query");

extern const struct query history_queries[N_QUERIES];

/* a row of table meta */
struct meta {
	const char *key, *value;
};

struct history {
	struct db db;
	char *dir;
	int lock;      /* file descriptor; -1: reading only */
	bool syncs;    /* writes are synced at present */
	double synced; /* when one last was, by clock_now() */
	struct run_info run;
	void *run_own;
};

/* To be called before every write: decides whether that is synced to the disk. */
enum fettle_status history_pace(struct history *h, struct err *err);

/* Makes all tables, and names the file as ours. */
enum fettle_status history_make_tables(struct db *db, struct err *err);

enum history_kind {
	HISTORY_EMPTY, /* no run was begun in it */
	HISTORY_OURS,
	HISTORY_FOREIGN,
};
/* *version: of the tables, when it is ours */
enum fettle_status history_kind(struct db *db, enum history_kind *kind, int64_t *version, struct err *err);
enum { HISTORY_VERSION = 4 };
/* Of an older version, to this one. */
enum fettle_status history_upgrade(struct db *db, int64_t version, struct err *err);

#endif
