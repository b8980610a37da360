/* Histories as earlier versions wrote them, made here in SQL: brought up to date, or refused with a sentence. */
#include "unit/unit.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "space/plan_json.h"
#include "unit/history_run.h"

static const char tables[] =
	"CREATE TABLE run (model_path TEXT NOT NULL, model_fingerprint TEXT NOT NULL, calib_fingerprint TEXT "
	"NOT "
	"NULL, eval_fingerprint TEXT NOT NULL, config_fingerprint TEXT NOT NULL, config TEXT NOT NULL, "
	"strategy "
	"TEXT NOT NULL, seed INTEGER NOT NULL, fettle_version TEXT NOT NULL, runtime_version TEXT NOT NULL, "
	"cpu "
	"TEXT NOT NULL, started TEXT NOT NULL, criterion TEXT NOT NULL, tolerance REAL, metric TEXT NOT "
	"NULL, "
	"higher_is_better INTEGER NOT NULL, space TEXT NOT NULL, request TEXT NOT NULL, one INTEGER NOT NULL "
	"DEFAULT 1 UNIQUE CHECK (one = 1));"
	"CREATE TABLE baseline (accuracy REAL, latency REAL, size_bytes INTEGER NOT NULL, pass_seconds REAL, "
	"samples INTEGER NOT NULL, one INTEGER NOT NULL DEFAULT 1 UNIQUE CHECK (one = 1));"
	"CREATE TABLE trials (number INTEGER PRIMARY KEY, choice BLOB NOT NULL, plan_hash INTEGER NOT NULL, "
	"plan "
	"TEXT NOT NULL, stage TEXT NOT NULL, failed INTEGER NOT NULL, met INTEGER NOT NULL, accuracy REAL, "
	"loss "
	"REAL, objective REAL, latency REAL, size_bytes INTEGER NOT NULL, samples INTEGER NOT NULL, "
	"quantize_s "
	"REAL, session_s REAL, evaluate_s REAL, measure_s REAL, seconds REAL, finished TEXT NOT NULL, why "
	"TEXT "
	"NOT NULL, accuracy_low REAL, accuracy_high REAL);"
	"CREATE TABLE ranges (value TEXT NOT NULL, setting TEXT NOT NULL, samples INTEGER NOT NULL, min "
	"REAL, max "
	"REAL, PRIMARY KEY (samples, setting, value)) WITHOUT ROWID;"
	"CREATE TABLE result (met INTEGER NOT NULL, stop TEXT NOT NULL, best_trial INTEGER NOT NULL, output "
	"TEXT "
	"NOT NULL, one INTEGER NOT NULL DEFAULT 1 UNIQUE CHECK (one = 1));"
	"CREATE TABLE meta (key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (key)) WITHOUT ROWID;"
	"CREATE INDEX trial_of_plan ON trials (plan_hash);"
	"PRAGMA application_id = 1718905957; PRAGMA user_version = 3;";

/* as version 3 wrote plans; and as they are written now */
static const struct {
	const char *old, *new;
} plans[] = {
	{ "{\"fettle_plan\":1,\"format\":\"qdq\",\"samples\":100,\"recipes\":{\"cle\":true,\"smooth_quant\":"
	  "0.5},"
	  "\"ops\":{\"b\":{\"mode\":\"fp32\"},\"a\":{\"mode\":\"static\",\"activation\":{\"dtype\":\"uint8\","
	  "\"percentile\":99.99}}}}",
	  "{\"fettle_plan\":2,\"format\":\"qdq\",\"ops\":{\"a\":{\"activation\":{\"dtype\":\"uint8\","
	  "\"percentile\":99.99},\"mode\":\"static\"},\"b\":{\"mode\":\"fp32\"}},\"recipes\":{\"cle\":true,"
	  "\"finetune\":false,\"smooth_quant\":0.5},\"samples\":100}" },
	{ "{\"fettle_plan\":1,\"format\":\"qdq\",\"samples\":100,\"recipes\":{\"finetune\":{"
	  "\"OptimAlgorithm\":"
	  "\"gram\",\"DataSize\":0}},\"ops\":{\"b\":{\"mode\":\"fp32\",\"before\":{\"mode\":\"static\"}}}}",
	  "{\"before\":{\"b\":{\"mode\":\"static\"}},\"fettle_plan\":2,\"format\":\"qdq\",\"ops\":{\"b\":{"
	  "\"mode\":\"fp32\"}},\"recipes\":{\"finetune\":{\"DataSize\":0,\"OptimAlgorithm\":\"gram\"}},"
	  "\"samples\":100}" },
	{ "what is no plan", "what is no plan" },
};

static void run_sql(sqlite3 *db, char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_free(sql);
}

/* sample_run() and a trial of each plan, by their numbers' bytes, as version 3 had them */
static void write_version_3(const char *dir, const char *strategy)
{
	const struct run_info r = sample_run();
	char *path = xstrfmt("%s/history.db", dir);
	sqlite3 *db = NULL;
	size_t i;

	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run_sql(db, sqlite3_mprintf("%s", tables));
	run_sql(db,
		sqlite3_mprintf(
			"INSERT INTO run VALUES (%Q, %Q, %Q, %Q, %Q, %Q, %Q, %lld, %Q, %Q, %Q, %Q, %Q, "
			"%f, %Q, 1, 'as it was', %Q, 1)",
			r.model_path, r.model_fingerprint, r.calib_fingerprint, r.eval_fingerprint,
			r.config_fingerprint, r.config, strategy, (long long)r.seed, r.fettle_version,
			r.runtime_version, r.cpu, r.started, r.criterion, r.tolerance, r.metric, r.request));
	for (i = 0; i < ARRAY_LEN(plans); i++)
		run_sql(db,
			sqlite3_mprintf("INSERT INTO trials VALUES (%d, x'0001%02x', %d, %Q, 'stage', 0, 1, "
					"0.5, 0, NULL, NULL, 7, 8, 1, 1, 1, 1, 4, 'then', '', 0.25, 0.75)",
					(int)i + 1, (int)i, 1000 + (int)i, plans[i].old));
	sqlite3_close(db);
	free(path);
}

static void check_same(const struct history *h, const char *strategy, const char *want)
{
	struct run_info now = sample_run();
	struct err err = ERR_INIT;

	now.strategy = strategy;
	if (!want) {
		assert_ok(history_check_same(h, &now, &err), err);
		return;
	}
	assert_int_equal(history_check_same(h, &now, &err), FETTLE_INVALID);
	if (!strstr(err.msg, want))
		fail_msg("want '%s', got '%s'", want, err.msg);
}

static void version_3_knew_plans_by_bytes(void **state)
{
	static const struct {
		const char *why, *strategy, *refusal;
	} rows[] = {
		{ "tune's plans were spelled out in their texts", "basic", NULL },
		{ "the texts of a search left out the settings", "search",
		  "fettle 0.1.0 wrote it without all that decides a result; begin a new run" },
	};
	size_t row, i, n;

	(void)state;
	for (row = 0; row < ARRAY_LEN(rows); row++) {
		char *tree = temp_tree(), *dir = xstrfmt("%s/w", tree), hash[FINGERPRINT_LEN];
		struct history_trial t = { 0 };
		struct history *h;
		struct err err = ERR_INIT;
		struct sample s;

		write_version_3(dir, rows[row].strategy);
		h = open_run(dir, true); /* reading is enough to bring it up to date */
		for (i = 0; i < ARRAY_LEN(plans); i++) {
			assert_ok(history_trial_at(h, i + 1, &t, &err), err);
			assert_string_equal(t.plan, plans[i].new);
			assert_true(t.accuracy == 0.5 && t.accuracy_high == 0.75 && t.size_bytes == 7);
			plan_text_hash(plans[i].new, hash);
			assert_string_equal(t.plan_hash, hash);
			assert_ok(history_find(h, hash, &t, &err), err);
			assert_int_equal(t.number, i + 1);
			plan_text_hash(plans[i].old, hash); /* the one that is no plan keeps its text */
			assert_ok(history_find(h, hash, &t, &err), err);
			assert_int_equal(t.number, i == 2 ? 3 : 0);
		}
		history_close(h);
		h = open_run(dir, false);
		check_same(h, rows[row].strategy, rows[row].refusal);
		sample_trial(&s, 4);
		assert_ok(history_add_trial(h, &s.t, &n, &err), err);
		assert_int_equal(n, 4);
		assert_ok(history_find(h, sample_hash(&s), &t, &err), err);
		check_trial(&t, 4);
		history_trial_release(&t);
		history_close(h);
		free(dir);
		remove_tree(tree);
	}
}

/* A database that says it is of version 3, and is not, is refused and left as it was. */
static void a_damaged_one_is_left_alone(void **state)
{
	char *tree = temp_tree(), *dir = xstrfmt("%s/w", tree), *path = xstrfmt("%s/history.db", dir);
	struct history *h = NULL;
	struct err err = ERR_INIT;
	sqlite3 *db = NULL;
	int round;

	(void)state;
	write_version_3(dir, "basic");
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run_sql(db, sqlite3_mprintf("ALTER TABLE trials DROP COLUMN plan"));
	sqlite3_close(db);
	for (round = 0; round < 2; round++) {
		assert_int_equal(history_open(&h, dir, true, &err), FETTLE_INVALID);
		assert_non_null(strstr(err.msg, "the database is damaged"));
	}
	free(path);
	free(dir);
	remove_tree(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_3_knew_plans_by_bytes),
		cmocka_unit_test(a_damaged_one_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
