/*
 * The tables of history.db, version 4. To change one is to raise HISTORY_VERSION and to say in history_upgrade() how
 * the older one is brought up to date; what can wait goes into meta.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "history/internal.h"
#include "space/plan_json.h"

#define F(record, member, kind) .name = #member, .type = FIELD_##kind, .at = offsetof(struct record, member)

/* a table of at most one row */
#define ONLY_ONE ", one INTEGER NOT NULL DEFAULT 1 UNIQUE CHECK (one = 1)"

static const struct field run_fields[] = {
	{ F(run_info, model_path, TEXT) },
	{ F(run_info, model_fingerprint, TEXT) },
	{ F(run_info, calib_fingerprint, TEXT) },
	{ F(run_info, eval_fingerprint, TEXT) },
	{ F(run_info, config_fingerprint, TEXT) },
	{ F(run_info, config, TEXT) },
	{ F(run_info, strategy, TEXT) },
	{ F(run_info, seed, WORD) }, /* as a signed number: SQLite knows no other */
	{ F(run_info, fettle_version, TEXT) },
	{ F(run_info, runtime_version, TEXT) },
	{ F(run_info, cpu, TEXT) },
	{ F(run_info, started, TEXT) },
	{ F(run_info, criterion, TEXT) },
	{ F(run_info, tolerance, REAL) },
	{ F(run_info, metric, TEXT) },
	{ F(run_info, higher_is_better, FLAG) },
	{ F(run_info, space, TEXT) },
	{ F(run_info, request, TEXT) },
};

static const struct field baseline_fields[] = {
	{ F(history_baseline, accuracy, REAL) },    { F(history_baseline, latency, REAL) },
	{ F(history_baseline, size_bytes, COUNT) }, { F(history_baseline, pass_seconds, REAL) },
	{ F(history_baseline, samples, COUNT) },
};

static const struct field trials_fields[] = {
	{ F(history_trial, number, KEY) },         { F(history_trial, plan_hash, TEXT) },
	{ F(history_trial, plan, TEXT) },          { F(history_trial, stage, TEXT) },
	{ F(history_trial, failed, FLAG) },        { F(history_trial, met, FLAG) },
	{ F(history_trial, accuracy, REAL) },      { F(history_trial, loss, REAL) },
	{ F(history_trial, objective, REAL) },     { F(history_trial, latency, REAL) },
	{ F(history_trial, size_bytes, COUNT) },   { F(history_trial, samples, COUNT) },
	{ F(history_trial, quantize_s, REAL) },    { F(history_trial, session_s, REAL) },
	{ F(history_trial, evaluate_s, REAL) },    { F(history_trial, measure_s, REAL) },
	{ F(history_trial, seconds, REAL) },       { F(history_trial, finished, TEXT) },
	{ F(history_trial, why, TEXT) },           { F(history_trial, accuracy_low, REAL) },
	{ F(history_trial, accuracy_high, REAL) },
};

static const struct field ranges_fields[] = {
	{ F(history_range, value, TEXT) },    { F(history_range, setting, TEXT) },
	{ F(history_range, samples, COUNT) }, { F(history_range, min, REAL) },
	{ F(history_range, max, REAL) },
};

static const struct field result_fields[] = {
	{ F(history_result, met, FLAG) },
	{ F(history_result, stop, TEXT) },
	{ F(history_result, best_trial, COUNT) },
	{ F(history_result, output, TEXT) },
};

static const struct field meta_fields[] = {
	{ F(meta, key, TEXT) },
	{ F(meta, value, TEXT) },
};

#define RECORD(name, more, after)                                                                            \
	static const struct record name = { #name, name##_fields, ARRAY_LEN(name##_fields), more, after }
RECORD(run, ONLY_ONE, "");
RECORD(baseline, ONLY_ONE, "");
RECORD(trials, "", "");
RECORD(ranges, ", PRIMARY KEY (samples, setting, value)", "WITHOUT ROWID");
RECORD(result, ONLY_ONE, "");
RECORD(meta, ", PRIMARY KEY (key)", "WITHOUT ROWID");

#define REPLACE "INSERT OR REPLACE INTO"
const struct query history_queries[N_QUERIES] = {
	[PUT_RUN] = { &run, "INSERT INTO", NULL },
	[CHANGE_RUN] = { &run, REPLACE, NULL },
	[GET_RUN] = { &run, NULL, "" },
	[PUT_BASELINE] = { &baseline, REPLACE, NULL },
	[GET_BASELINE] = { &baseline, NULL, "" },
	[PUT_TRIAL] = { &trials, "INSERT INTO", NULL },
	[CHANGE_TRIAL] = { &trials, REPLACE, NULL },
	[GET_TRIAL_AT] = { &trials, NULL, "WHERE number = ?1" },
	[GET_TRIAL_NEXT] = { &trials, NULL, "WHERE number > ?1 ORDER BY number LIMIT 1" },
	[GET_TRIAL_OF_PLAN] = { &trials, NULL, "WHERE plan_hash = ?1 ORDER BY number DESC LIMIT 1" },
	[PUT_RANGE] = { &ranges, REPLACE, NULL },
	[GET_RANGES] = { &ranges, NULL, "WHERE ?1 IN (0, samples) ORDER BY samples, setting, value" },
	[PUT_RESULT] = { &result, REPLACE, NULL },
	[GET_RESULT] = { &result, NULL, "" },
	[PUT_META] = { &meta, REPLACE, NULL },
	[GET_META] = { &meta, NULL, "WHERE key = ?1" },
};

#define INDEX_PLANS "CREATE INDEX trial_of_plan ON trials (plan_hash)"
#define APPLICATION_ID 0x66746c65 /* "ftle"; file(1) and others look at it */

enum fettle_status history_make_tables(struct db *db, struct err *err)
{
	static const struct record *const all[] = { &run, &baseline, &trials, &ranges, &result, &meta };
	enum fettle_status st = FETTLE_OK;
	char sql[128];
	size_t i;

	for (i = 0; i < ARRAY_LEN(all) && !st; i++)
		st = db_make_table(db, all[i], err);
	if (!st)
		st = db_exec(db, INDEX_PLANS, err);
	if (st)
		return st;
	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION_ID,
		 HISTORY_VERSION);
	return db_exec(db, sql, err);
}

/* SQL: a plan's text as it is written now; one that is none stays as it is */
static void sql_plan_text(sqlite3_context *c, int n, sqlite3_value **v)
{
	const char *old = (const char *)sqlite3_value_text(v[0]);
	char *new = old ? plan_text_update(old, NULL) : NULL;

	(void)n;
	sqlite3_result_text(c, new ? new : old, -1, SQLITE_TRANSIENT);
	free(new);
}

static void sql_plan_hash(sqlite3_context *c, int n, sqlite3_value **v)
{
	const char *text = (const char *)sqlite3_value_text(v[0]);
	char hash[FINGERPRINT_LEN];

	(void)n;
	plan_text_hash(text ? text : "", hash);
	sqlite3_result_text(c, hash, -1, SQLITE_TRANSIENT);
}

/*
 * Version 1 knew no evaluation that ended early. The configuration of version 2 left out what decides a
 * result (keep_fp32, say): without a fingerprint of it, history_check_same() refuses to resume. Version 3 knew plans by
 * the numbers of their options, and the text of a parameter search's plans left out the settings: such a run cannot be resumed.
 */
static const char *const upgrades[HISTORY_VERSION] = {
	[1] = "ALTER TABLE trials ADD COLUMN accuracy_low REAL;"
	      "ALTER TABLE trials ADD COLUMN accuracy_high REAL",
	[2] = "ALTER TABLE run ADD COLUMN space TEXT NOT NULL DEFAULT '';"
	      "ALTER TABLE run ADD COLUMN request TEXT NOT NULL DEFAULT '';"
	      "UPDATE run SET config_fingerprint = ''",
	[3] = "DROP INDEX trial_of_plan;"
	      "ALTER TABLE trials DROP COLUMN choice;"
	      "ALTER TABLE trials DROP COLUMN plan_hash;"
	      "ALTER TABLE trials ADD COLUMN plan_hash TEXT NOT NULL DEFAULT '';"
	      "UPDATE trials SET plan = plan_text(plan);"
	      "UPDATE trials SET plan_hash = plan_hash(plan);" INDEX_PLANS ";"
	      "UPDATE run SET space = '';"
	      "UPDATE run SET config_fingerprint = '' WHERE strategy = 'search'",
};

enum fettle_status history_upgrade(struct db *db, int64_t version, struct err *err)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
	enum fettle_status st = db_exec(db, "BEGIN IMMEDIATE", err);
	char sql[64];

	sqlite3_create_function(db->lite, "plan_text", 1, flags, NULL, sql_plan_text, NULL, NULL);
	sqlite3_create_function(db->lite, "plan_hash", 1, flags, NULL, sql_plan_hash, NULL, NULL);
	for (; version < HISTORY_VERSION && !st; version++)
		st = db_exec(db, upgrades[version], err);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d; COMMIT", HISTORY_VERSION);
	if (!st)
		st = db_exec(db, sql, err);
	if (st)
		db_exec(db, "ROLLBACK", NULL);
	return st;
}

enum fettle_status history_kind(struct db *db, enum history_kind *kind, int64_t *version, struct err *err)
{
	int64_t tables, application;
	enum fettle_status st;

	st = db_number(db, "SELECT count(*) FROM sqlite_master", &tables, err);
	if (!st)
		st = db_number(db, "PRAGMA application_id", &application, err);
	if (!st)
		st = db_number(db, "PRAGMA user_version", version, err);
	if (st)
		return st;
	if (!tables && !application)
		*kind = HISTORY_EMPTY;
	else
		*kind = application == APPLICATION_ID ? HISTORY_OURS : HISTORY_FOREIGN;
	return FETTLE_OK;
}
