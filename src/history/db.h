/*
 * SQLite, as far as a history needs it: rows that are C structs, described by tables of fields, and statements
 * that are prepared once. Here its errors become ours.
 */
#ifndef HISTORY_DB_H
#define HISTORY_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum field_type {
	FIELD_TEXT,  /* const char * */
	FIELD_REAL,  /* double; NaN is stored as NULL, which is what SQLite makes of it */
	FIELD_COUNT, /* size_t */
	FIELD_KEY,   /* size_t; 0: SQLite gives the next number */
	FIELD_WORD,  /* uint64_t */
	FIELD_FLAG,  /* bool */
};

struct field {
	const char *name; /* of the column */
	enum field_type type;
	size_t at; /* offset in the struct */
};

struct record {
	const char *table;
	const struct field *fields;
	size_t n;
	const char *more;  /* SQL: further columns and constraints, or "" */
	const char *after; /* SQL: table options, or "" */
};

struct query {
	const struct record *of;
	const char *insert; /* "INSERT INTO", "INSERT OR REPLACE INTO"; NULL: it selects */
	const char *where;  /* what follows SELECT … FROM table */
};

enum { DB_QUERIES_MAX = 16 };

struct db {
	sqlite3 *lite;
	char *path;
	const struct query *queries;
	sqlite3_stmt *prepared[DB_QUERIES_MAX];
};

enum db_mode {
	DB_READ,   /* works in a folder that cannot be written to, and beside a writer */
	DB_WRITE,  /* must be there */
	DB_CREATE, /* may be there */
};

/* `db` is zeroed; db_close() it even after an error. */
enum fettle_status db_open(struct db *db, const char *path, enum db_mode mode, const struct query *queries,
			   struct err *err);
void db_close(struct db *db);

/* Turns what SQLite said last into a status and a message: "cannot VERB PATH: reason". */
enum fettle_status db_fail(const struct db *db, const char *verb, struct err *err);

enum fettle_status db_exec(struct db *db, const char *sql, struct err *err);
/* The first column of the first row: as a number, and as text to free(). */
enum fettle_status db_number(struct db *db, const char *sql, int64_t *out, struct err *err);
enum fettle_status db_text(struct db *db, const char *sql, char **out, struct err *err);
enum fettle_status db_make_table(struct db *db, const struct record *r, struct err *err);

/* The statement of queries[q], for binding what its WHERE asks for. It stays the db's. */
enum fettle_status db_prepare(struct db *db, size_t q, sqlite3_stmt **out, struct err *err);
enum fettle_status db_put(struct db *db, size_t q, const void *row, struct err *err);
/*
 * The next row of a prepared query, with *own as the memory that its text lies in; free() it.
 * *found is false at the end. db_done() before the query is used again.
 */
enum fettle_status db_get(struct db *db, size_t q, void *row, void **own, bool *found, struct err *err);
void db_done(struct db *db, size_t q);
/* db_get() and db_done() */
enum fettle_status db_get_one(struct db *db, size_t q, void *row, void **own, bool *found, struct err *err);

#endif
