#include "history/db.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

enum fettle_status db_fail(const struct db *db, const char *verb, struct err *err)
{
	int code = sqlite3_extended_errcode(db->lite), why = sqlite3_system_errno(db->lite);
	enum fettle_status st = FETTLE_SYSTEM;
	const char *reason = sqlite3_errmsg(db->lite);

	switch (code & 0xff) {
	case SQLITE_FULL:
		reason = "the disk is full";
		break;
	case SQLITE_READONLY:
		reason = "the file or its folder is read-only";
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		reason = "another process has locked it";
		break;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		if (why == ENOSPC || why == EDQUOT)
			reason = "the disk is full";
		else if (why)
			reason = strerror(why);
		break;
	case SQLITE_NOMEM:
		break;
	case SQLITE_NOTADB:
		return fail(err, FETTLE_INVALID, "cannot %s %s: not a fettle history", verb, db->path);
	case SQLITE_TOOBIG:
	case SQLITE_CONSTRAINT:
		return fail(err, FETTLE_INVALID, "cannot %s %s: %s", verb, db->path, reason);
	default: /* SQLITE_CORRUPT, or a table that is not as we made it */
		return fail(err, FETTLE_INVALID, "cannot %s %s: the database is damaged (%s)", verb, db->path,
			    reason);
	}
	return fail(err, st, "cannot %s %s: %s", verb, db->path, reason);
}

enum fettle_status db_exec(struct db *db, const char *sql, struct err *err)
{
	if (sqlite3_exec(db->lite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return db_fail(db, "write", err);
	return FETTLE_OK;
}

/* Prepares, and steps to the first row. */
static enum fettle_status first_row(struct db *db, const char *sql, sqlite3_stmt **out, struct err *err)
{
	enum fettle_status st;
	sqlite3_stmt *s = NULL;
	int rc;

	rc = sqlite3_prepare_v2(db->lite, sql, -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW) {
		*out = s;
		return FETTLE_OK;
	}
	if (rc == SQLITE_DONE)
		st = fail(err, FETTLE_INVALID, "cannot read %s: the database is damaged (no answer)",
			  db->path);
	else
		st = db_fail(db, "read", err);
	sqlite3_finalize(s);
	return st;
}

enum fettle_status db_number(struct db *db, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *s = NULL;
	enum fettle_status st;

	st = first_row(db, sql, &s, err);
	if (st)
		return st;
	*out = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return FETTLE_OK;
}

enum fettle_status db_text(struct db *db, const char *sql, char **out, struct err *err)
{
	sqlite3_stmt *s = NULL;
	enum fettle_status st;
	const char *text;

	st = first_row(db, sql, &s, err);
	if (st)
		return st;
	text = (const char *)sqlite3_column_text(s, 0);
	*out = xstrdup(text ? text : "");
	sqlite3_finalize(s);
	return FETTLE_OK;
}

/* "file:…?immutable=1", with what a URI reserves escaped */
static char *immutable_uri(const char *path)
{
	struct str uri = STR_INIT;

	str_addf(&uri, "file:");
	for (; *path; path++)
		str_addf(&uri, strchr("%?#", *path) ? "%%%02X" : "%c", (unsigned char)*path);
	str_addf(&uri, "?immutable=1");
	return uri.s;
}

/*
 * SQLite reads a database in WAL mode through two files beside it, which it makes. Where it cannot make them,
 * nobody else can write either, and a database without a log may be read as it is.
 */
static bool is_immutable(const struct db *db)
{
	char *log = xstrfmt("%s-wal", db->path);
	struct stat sb;
	bool none;

	none = stat(log, &sb) != 0 || !sb.st_size;
	free(log);
	return none &&
	       (sqlite3_errcode(db->lite) == SQLITE_CANTOPEN || sqlite3_errcode(db->lite) == SQLITE_READONLY);
}

static enum fettle_status open_for_reading(struct db *db, struct err *err)
{
	enum fettle_status st;
	int64_t n;
	char *uri;

	if (sqlite3_open_v2(db->path, &db->lite, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		return db_fail(db, "open", err);
	sqlite3_busy_timeout(db->lite, 10000);
	st = db_number(db, "SELECT count(*) FROM sqlite_master", &n, err);
	if (!st || !is_immutable(db))
		return st;
	sqlite3_close(db->lite);
	uri = immutable_uri(db->path);
	st = FETTLE_OK;
	if (sqlite3_open_v2(uri, &db->lite, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) != SQLITE_OK)
		st = db_fail(db, "open", err);
	free(uri);
	return st;
}

enum fettle_status db_open(struct db *db, const char *path, enum db_mode mode, const struct query *queries,
			   struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	int flags = SQLITE_OPEN_READWRITE | (mode == DB_CREATE ? SQLITE_OPEN_CREATE : 0);

	db->path = xstrdup(path);
	db->queries = queries;
	if (mode == DB_READ)
		st = open_for_reading(db, err);
	else if (sqlite3_open_v2(path, &db->lite, flags, NULL) != SQLITE_OK)
		st = db_fail(db, "open", err);
	if (st)
		return st;
	/* SQLite would quietly open what is write-protected for reading */
	if (mode != DB_READ && sqlite3_db_readonly(db->lite, "main") == 1)
		return fail(err, FETTLE_SYSTEM, "cannot write %s: the file is read-only", path);
	sqlite3_busy_timeout(db->lite, 10000);
	/* a file may come from anywhere: nothing in it is run */
	sqlite3_db_config(db->lite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->lite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db->lite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db->lite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return FETTLE_OK;
}

void db_close(struct db *db)
{
	size_t i;

	for (i = 0; i < DB_QUERIES_MAX; i++)
		sqlite3_finalize(db->prepared[i]);
	sqlite3_close(db->lite);
	free(db->path);
	*db = (struct db){ 0 };
}

enum fettle_status db_make_table(struct db *db, const struct record *r, struct err *err)
{
	static const char *const types[] = {
		[FIELD_TEXT] = "TEXT NOT NULL",     [FIELD_REAL] = "REAL",
		[FIELD_COUNT] = "INTEGER NOT NULL", [FIELD_KEY] = "INTEGER PRIMARY KEY",
		[FIELD_WORD] = "INTEGER NOT NULL",  [FIELD_FLAG] = "INTEGER NOT NULL",
	};
	struct str sql = STR_INIT;
	enum fettle_status st;
	size_t i;

	str_addf(&sql, "CREATE TABLE %s (", r->table);
	for (i = 0; i < r->n; i++)
		str_addf(&sql, "%s%s %s", i ? ", " : "", r->fields[i].name, types[r->fields[i].type]);
	str_addf(&sql, "%s) %s", r->more, r->after);
	st = db_exec(db, sql.s, err);
	str_release(&sql);
	return st;
}

static void add_columns(struct str *sql, const struct record *r)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		str_addf(sql, "%s%s", i ? ", " : "", r->fields[i].name);
}

enum fettle_status db_prepare(struct db *db, size_t q, sqlite3_stmt **out, struct err *err)
{
	const struct query *query = &db->queries[q];
	enum fettle_status st = FETTLE_OK;
	struct str sql = STR_INIT;
	size_t i;

	*out = db->prepared[q];
	if (*out)
		return FETTLE_OK;
	if (query->insert) {
		str_addf(&sql, "%s %s (", query->insert, query->of->table);
		add_columns(&sql, query->of);
		str_addf(&sql, ") VALUES (");
		for (i = 0; i < query->of->n; i++)
			str_addf(&sql, i ? ", ?" : "?");
		str_addf(&sql, ")");
	} else {
		str_addf(&sql, "SELECT ");
		add_columns(&sql, query->of);
		str_addf(&sql, " FROM %s %s", query->of->table, query->where);
	}
	if (sqlite3_prepare_v3(db->lite, sql.s, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
		st = db_fail(db, query->insert ? "write" : "read", err);
	db->prepared[q] = *out;
	str_release(&sql);
	return st;
}

static int bind_field(sqlite3_stmt *s, int i, const struct field *f, const char *row)
{
	const void *p = row + f->at;
	const char *text;
	uint64_t word;
	size_t n;

	switch (f->type) {
	case FIELD_TEXT:
		text = *(const char *const *)p;
		text = text ? text : "";
		return sqlite3_bind_text64(s, i, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8);
	case FIELD_REAL:
		return sqlite3_bind_double(s, i, *(const double *)p);
	case FIELD_KEY:
	case FIELD_COUNT:
		n = *(const size_t *)p;
		if (!n && f->type == FIELD_KEY)
			return sqlite3_bind_null(s, i);
		return sqlite3_bind_int64(s, i, (sqlite3_int64)n);
	case FIELD_WORD:
		word = *(const uint64_t *)p;
		return sqlite3_bind_int64(s, i, (sqlite3_int64)word);
	case FIELD_FLAG:
		return sqlite3_bind_int(s, i, *(const bool *)p);
	}
	return SQLITE_MISUSE;
}

enum fettle_status db_put(struct db *db, size_t q, const void *row, struct err *err)
{
	const struct record *r = db->queries[q].of;
	enum fettle_status st;
	sqlite3_stmt *s;
	int rc = SQLITE_OK;
	size_t i;

	st = db_prepare(db, q, &s, err);
	if (st)
		return st;
	for (i = 0; i < r->n && rc == SQLITE_OK; i++)
		rc = bind_field(s, (int)i + 1, &r->fields[i], row);
	if (rc != SQLITE_OK || sqlite3_step(s) != SQLITE_DONE)
		st = db_fail(db, "write", err);
	db_done(db, q);
	return st;
}

/* One block for all text of the row. It may be as large as the file says. */
static enum fettle_status allocate_row(sqlite3_stmt *s, const struct record *r, void **own, struct err *err)
{
	size_t n = 1, i;

	for (i = 0; i < r->n; i++) {
		if (r->fields[i].type != FIELD_TEXT)
			continue;
		sqlite3_column_text(s, (int)i); /* converted before its size is asked for */
		n += (size_t)sqlite3_column_bytes(s, (int)i) + 1;
	}
	return mem_try(own, n, 1, r->table, err);
}

/* *free_at: where text goes to, moved past it */
static void read_text(sqlite3_stmt *s, int i, const struct field *f, char *row, char **free_at)
{
	const void *p = sqlite3_column_text(s, i);
	size_t n = p ? (size_t)sqlite3_column_bytes(s, i) : 0;

	if (n)
		memcpy(*free_at, p, n);
	(*free_at)[n] = '\0';
	*(const void **)(void *)(row + f->at) = *free_at;
	*free_at += n + 1;
}

static enum fettle_status read_number(const struct db *db, sqlite3_stmt *s, int i, const struct field *f,
				      char *row, struct err *err)
{
	void *p = row + f->at;
	sqlite3_int64 n;

	if (f->type == FIELD_REAL) {
		*(double *)p =
			sqlite3_column_type(s, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(s, i);
		return FETTLE_OK;
	}
	n = sqlite3_column_int64(s, i);
	if (f->type == FIELD_WORD)
		*(uint64_t *)p = (uint64_t)n;
	else if (f->type == FIELD_FLAG)
		*(bool *)p = n != 0;
	else if (n < 0)
		return fail(err, FETTLE_INVALID, "cannot read %s: the database is damaged (%s is %lld)",
			    db->path, f->name, (long long)n);
	else
		*(size_t *)p = (size_t)n;
	return FETTLE_OK;
}

enum fettle_status db_get(struct db *db, size_t q, void *row, void **own, bool *found, struct err *err)
{
	const struct record *r = db->queries[q].of;
	sqlite3_stmt *s = db->prepared[q];
	enum fettle_status st;
	char *free_at;
	size_t i;
	int rc;

	*own = NULL;
	*found = false;
	rc = sqlite3_step(s);
	if (rc == SQLITE_DONE)
		return FETTLE_OK;
	if (rc != SQLITE_ROW)
		return db_fail(db, "read", err);
	st = allocate_row(s, r, own, err);
	free_at = *own;
	for (i = 0; i < r->n && !st; i++) {
		if (r->fields[i].type == FIELD_TEXT)
			read_text(s, (int)i, &r->fields[i], row, &free_at);
		else
			st = read_number(db, s, (int)i, &r->fields[i], row, err);
	}
	if (st) {
		free(*own);
		*own = NULL;
		return st;
	}
	*found = true;
	return FETTLE_OK;
}

void db_done(struct db *db, size_t q)
{
	sqlite3_reset(db->prepared[q]);
	sqlite3_clear_bindings(db->prepared[q]);
}

enum fettle_status db_get_one(struct db *db, size_t q, void *row, void **own, bool *found, struct err *err)
{
	enum fettle_status st;

	st = db_get(db, q, row, own, found, err);
	db_done(db, q);
	return st;
}
