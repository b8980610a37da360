/* What a run writes down, and reading it again. */
#include <stdlib.h>
#include <string.h>

#include "history/internal.h"
#include "space/space.h"

static enum fettle_status put(struct history *h, size_t query, const void *row, struct err *err)
{
	enum fettle_status st;

	st = history_pace(h, err);
	return st ? st : db_put(&h->db, query, row, err);
}

enum fettle_status history_set_request(struct history *h, const char *request, struct err *err)
{
	struct run_info run = h->run;

	run.request = request;
	return put(h, CHANGE_RUN, &run, err);
}

enum fettle_status history_set_baseline(struct history *h, const struct history_baseline *b, struct err *err)
{
	return put(h, PUT_BASELINE, b, err);
}

enum fettle_status history_baseline(struct history *h, struct history_baseline *out, bool *found,
				    struct err *err)
{
	enum fettle_status st;
	sqlite3_stmt *s;
	void *own = NULL;

	*found = false;
	st = db_prepare(&h->db, GET_BASELINE, &s, err);
	if (!st)
		st = db_get_one(&h->db, GET_BASELINE, out, &own, found, err);
	free(own);
	return st;
}

void history_trial_release(struct history_trial *t)
{
	free(t->own);
	*t = (struct history_trial){ 0 };
}

enum fettle_status history_add_trial(struct history *h, const struct history_trial *t, size_t *number,
				     struct err *err)
{
	char hash[FINGERPRINT_LEN];
	struct history_trial row = *t;
	enum fettle_status st;

	plan_text_hash(t->plan ? t->plan : "", hash);
	row.plan_hash = hash;
	st = put(h, PUT_TRIAL, &row, err);
	if (!st && number)
		*number = (size_t)sqlite3_last_insert_rowid(h->db.lite);
	return st;
}

enum fettle_status history_count(struct history *h, size_t *out, struct err *err)
{
	enum fettle_status st;
	int64_t n = 0;

	st = db_number(&h->db, "SELECT count(*) FROM trials", &n, err);
	*out = (size_t)n;
	return st;
}

/* The row of a query whose values are bound. */
static enum fettle_status get_trial(struct history *h, size_t query, struct history_trial *out,
				    struct err *err)
{
	struct history_trial t = { 0 };
	enum fettle_status st;
	void *own = NULL;
	bool found;

	history_trial_release(out);
	st = db_get_one(&h->db, query, &t, &own, &found, err);
	if (st || !found)
		return st;
	*out = t;
	out->own = own;
	return FETTLE_OK;
}

static enum fettle_status trial_by_number(struct history *h, size_t query, size_t number,
					  struct history_trial *out, struct err *err)
{
	enum fettle_status st;
	sqlite3_stmt *s;

	st = db_prepare(&h->db, query, &s, err);
	if (st)
		return st;
	sqlite3_bind_int64(s, 1, (sqlite3_int64)number);
	return get_trial(h, query, out, err);
}

enum fettle_status history_trial_at(struct history *h, size_t number, struct history_trial *out,
				    struct err *err)
{
	enum fettle_status st;
	size_t n;

	st = trial_by_number(h, GET_TRIAL_AT, number, out, err);
	if (st || out->number)
		return st;
	st = history_count(h, &n, err);
	if (st)
		return st;
	return fail(err, FETTLE_INVALID, "cannot find trial %zu in %s: it has %zu trial%s", number, h->dir, n,
		    n == 1 ? "" : "s");
}

enum fettle_status history_next(struct history *h, size_t number, struct history_trial *out, struct err *err)
{
	return trial_by_number(h, GET_TRIAL_NEXT, number, out, err);
}

enum fettle_status history_find(struct history *h, const char *plan_hash, struct history_trial *out,
				struct err *err)
{
	enum fettle_status st;
	sqlite3_stmt *s;

	st = db_prepare(&h->db, GET_TRIAL_OF_PLAN, &s, err);
	if (st)
		return st;
	sqlite3_bind_text(s, 1, plan_hash, -1, SQLITE_STATIC);
	return get_trial(h, GET_TRIAL_OF_PLAN, out, err);
}

enum fettle_status history_add_ranges(struct history *h, const struct history_range *v, size_t n,
				      struct err *err)
{
	enum fettle_status st;
	size_t i;

	st = history_pace(h, err);
	if (!st)
		st = db_exec(&h->db, "BEGIN IMMEDIATE", err);
	if (st)
		return st;
	for (i = 0; i < n && !st; i++)
		st = db_put(&h->db, PUT_RANGE, &v[i], err);
	if (!st)
		st = db_exec(&h->db, "COMMIT", err);
	if (st)
		db_exec(&h->db, "ROLLBACK", NULL);
	return st;
}

void history_ranges_release(struct history_ranges *r)
{
	free(r->v);
	arena_release(&r->names);
	*r = (struct history_ranges)HISTORY_RANGES_INIT;
}

enum fettle_status history_ranges(struct history *h, size_t samples, struct history_ranges *out,
				  struct err *err)
{
	struct history_range row;
	enum fettle_status st;
	sqlite3_stmt *s;
	bool found = true;
	void *own;

	history_ranges_release(out);
	st = db_prepare(&h->db, GET_RANGES, &s, err);
	if (st)
		return st;
	sqlite3_bind_int64(s, 1, (sqlite3_int64)samples);
	while (!st && found) {
		st = db_get(&h->db, GET_RANGES, &row, &own, &found, err);
		if (st || !found)
			break;
		row.value = arena_strdup(&out->names, row.value);
		row.setting = arena_strdup(&out->names, row.setting);
		VEC_PUSH(out, row);
		free(own);
	}
	db_done(&h->db, GET_RANGES);
	if (st)
		history_ranges_release(out);
	return st;
}

enum fettle_status history_set_result(struct history *h, const struct history_result *r, struct err *err)
{
	return put(h, PUT_RESULT, r, err);
}

enum fettle_status history_result(struct history *h, struct history_result *out, bool *found, struct err *err)
{
	struct history_result r = { 0 };
	enum fettle_status st;
	sqlite3_stmt *s;
	void *own = NULL;

	*found = false;
	history_result_release(out);
	st = db_prepare(&h->db, GET_RESULT, &s, err);
	if (!st)
		st = db_get_one(&h->db, GET_RESULT, &r, &own, found, err);
	if (st || !*found)
		return st;
	*out = r;
	out->own = own;
	return FETTLE_OK;
}

void history_result_release(struct history_result *r)
{
	free(r->own);
	*r = (struct history_result){ 0 };
}

enum fettle_status history_set_meta(struct history *h, const char *key, const char *value, struct err *err)
{
	return put(h, PUT_META, &(struct meta){ key, value }, err);
}

enum fettle_status history_meta(struct history *h, const char *key, char **value, struct err *err)
{
	struct meta row = { NULL, NULL };
	enum fettle_status st;
	sqlite3_stmt *s;
	void *own = NULL;
	bool found;

	*value = NULL;
	st = db_prepare(&h->db, GET_META, &s, err);
	if (st)
		return st;
	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	st = db_get_one(&h->db, GET_META, &row, &own, &found, err);
	if (!st && found)
		*value = xstrdup(row.value);
	free(own);
	return st;
}

enum fettle_status history_complete_trial(struct history *h, size_t number, bool met, double accuracy,
					  double loss, struct err *err)
{
	struct history_trial t = { 0 };
	enum fettle_status st = history_trial_at(h, number, &t, err);

	t.met = met;
	t.accuracy = t.accuracy_low = t.accuracy_high = accuracy;
	t.loss = loss;
	if (!st)
		st = put(h, CHANGE_TRIAL, &t, err);
	history_trial_release(&t);
	return st;
}
