#include "unit/unit.h"

#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "space/space.h"
#include "unit/history_run.h"

static void check_run(const struct run_info *a)
{
	const struct run_info b = sample_run();

	assert_string_equal(a->model_path, b.model_path);
	assert_string_equal(a->model_fingerprint, b.model_fingerprint);
	assert_string_equal(a->calib_fingerprint, b.calib_fingerprint);
	assert_string_equal(a->eval_fingerprint, b.eval_fingerprint);
	assert_string_equal(a->config_fingerprint, b.config_fingerprint);
	assert_string_equal(a->config, b.config);
	assert_string_equal(a->strategy, b.strategy);
	assert_true(a->seed == b.seed);
	assert_string_equal(a->fettle_version, b.fettle_version);
	assert_string_equal(a->runtime_version, b.runtime_version);
	assert_string_equal(a->cpu, b.cpu);
	assert_string_equal(a->started, b.started);
	assert_string_equal(a->criterion, b.criterion);
	assert_true(a->tolerance == b.tolerance);
	assert_string_equal(a->metric, b.metric);
	assert_true(a->higher_is_better);
}

static void a_run_is_read_as_it_was_written(void **state)
{
	const struct history_baseline base = { 0.875, (double)NAN, (size_t)5 << 32, 1.5, 1000 };
	const struct history_result end = { true, "accuracy_met", 3, "out/größe.onnx", NULL };
	char *tree = temp_tree(), *dir = xstrfmt("%s/made/on the way?#%%41", tree), *value;
	struct history_baseline b = { 0 };
	struct history_result r = { 0 };
	struct err err = ERR_INIT;
	struct history *h;
	int pass;
	bool found;

	(void)state;
	assert_false(history_exists(dir));
	h = new_run(dir);
	assert_true(history_exists(dir));
	for (pass = 0; pass < 2; pass++) { /* absent, and at once */
		assert_ok(history_baseline(h, &b, &found, &err), err);
		assert_int_equal(found, pass);
		assert_ok(history_result(h, &r, &found, &err), err);
		assert_int_equal(found, pass);
		assert_ok(history_meta(h, "a", &value, &err), err);
		assert_int_equal(value != NULL, pass);
		free(value);
		assert_ok(history_set_request(h, pass ? "{\"job\": \"tune\"}" : "other", &err), err);
		assert_ok(history_set_baseline(h, &base, &err), err);
		assert_ok(history_set_result(h, &end, &err), err);
		assert_ok(history_set_meta(h, "a", pass ? "new" : "old", &err), err);
	}
	check_run(history_run(h));
	history_close(h);

	h = open_run(dir, true);
	check_run(history_run(h));
	assert_ok(history_baseline(h, &b, &found, &err), err);
	assert_true(found && b.accuracy == base.accuracy && isnan(b.latency) &&
		    b.size_bytes == base.size_bytes);
	assert_true(b.pass_seconds == base.pass_seconds && b.samples == base.samples);
	assert_ok(history_result(h, &r, &found, &err), err);
	assert_true(found && r.met && r.best_trial == 3);
	assert_string_equal(r.stop, end.stop);
	assert_string_equal(r.output, end.output);
	assert_ok(history_meta(h, "a", &value, &err), err);
	assert_string_equal(value, "new");
	free(value);
	assert_int_equal(history_set_meta(h, "a", "x", &err), FETTLE_SYSTEM);
	assert_non_null(strstr(err.msg, "read-only"));
	history_result_release(&r);
	history_close(h);
	free(dir);
	remove_tree(tree);
}

static void trials_are_read_as_they_were_written(void **state)
{
	char *dir = temp_tree();
	struct history *h = new_run(dir);
	struct history_trial t = { 0 };
	struct err err = ERR_INIT;
	struct sample s;
	size_t n;

	(void)state;
	add_trials(h, 1, 300);
	assert_int_equal(check_trials(h), 300);
	history_close(h);
	h = open_run(dir, false);
	assert_int_equal(check_trials(h), 300);
	add_trials(h, 301, 310); /* numbering continues */
	assert_ok(history_count(h, &n, &err), err);
	assert_int_equal(n, 310);
	assert_ok(history_trial_at(h, 307, &t, &err), err);
	check_trial(&t, 307);
	assert_int_equal(history_trial_at(h, 311, &t, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "trial 311"));
	assert_non_null(strstr(err.msg, "310 trials"));
	assert_int_equal(t.number, 0);
	sample_trial(&s, 5); /* a number that is taken */
	assert_int_equal(history_add_trial(h, &s.t, &n, &err), FETTLE_INVALID);
	assert_ok(history_count(h, &n, &err), err);
	assert_int_equal(n, 310);
	history_trial_release(&t);
	history_close(h);
	remove_tree(dir);
}

static void a_plan_is_found_by_its_hash(void **state)
{
	char *dir = temp_tree();
	struct history *h = new_run(dir);
	struct history_trial t = { 0 };
	struct err err = ERR_INIT;
	char hash[FINGERPRINT_LEN];
	struct sample s;
	size_t i;

	(void)state;
	add_trials(h, 1, 200);
	for (i = 1; i <= 200; i++) {
		sample_trial(&s, i);
		assert_ok(history_find(h, sample_hash(&s), &t, &err), err);
		check_trial(&t, i);
		assert_string_equal(t.plan_hash, sample_hash(&s));
		s.plan[strlen(s.plan) - 1] = ' '; /* another text is another plan */
		assert_ok(history_find(h, sample_hash(&s), &t, &err), err);
		assert_int_equal(t.number, 0);
	}
	sample_trial(&s, 7);
	s.t.number = 0;
	assert_ok(history_add_trial(h, &s.t, NULL, &err), err); /* tried again: the latest counts */
	assert_ok(history_find(h, sample_hash(&s), &t, &err), err);
	assert_int_equal(t.number, 201);
	assert_ok(history_add_trial(h, &(struct history_trial){ 0 }, NULL, &err), err);
	plan_text_hash("", hash);
	assert_ok(history_find(h, hash, &t, &err), err);
	assert_int_equal(t.number, 202);
	assert_string_equal(t.plan, ""); /* NULL was written */
	history_trial_release(&t);
	history_close(h);
	remove_tree(dir);
}

static void text_of_any_length_and_kind_comes_back(void **state)
{
	enum { LONG = 20 << 20 };
	static const char *const words[] = {
		"", "'", "\";DROP TABLE trials;--", "größe 模型 🦀", "\xff\xfe not UTF-8", "a\nb\tc\r"
	};
	char *dir = temp_tree(), *big = xmalloc(LONG + 1), *value;
	struct history *h = new_run(dir);
	struct history_trial t = { 0 };
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	memset(big, 'x', LONG);
	big[LONG] = '\0';
	assert_ok(history_add_trial(h, &(struct history_trial){ .plan = big }, NULL, &err), err);
	for (i = 0; i < ARRAY_LEN(words); i++) {
		assert_ok(history_add_trial(h, &(struct history_trial){ .why = words[i] }, NULL, &err), err);
		assert_ok(history_set_meta(h, words[i], words[i], &err), err);
	}
	history_close(h);
	h = open_run(dir, true);
	assert_ok(history_trial_at(h, 1, &t, &err), err);
	assert_true(strcmp(t.plan, big) == 0);
	for (i = 0; i < ARRAY_LEN(words); i++) {
		assert_ok(history_trial_at(h, i + 2, &t, &err), err);
		assert_string_equal(t.why, words[i]);
		assert_ok(history_meta(h, words[i], &value, &err), err);
		assert_string_equal(value, words[i]);
		free(value);
	}
	history_trial_release(&t);
	history_close(h);
	free(big);
	remove_tree(dir);
}

static void ranges_come_back_by_samples(void **state)
{
	const struct history_range v[] = {
		{ "x", "minmax", 100, -1.5, 2 },
		{ "x", "kl", 100, -(double)INFINITY, (double)INFINITY },
		{ "größe/0", "minmax", 100, (double)NAN, 0 },
		{ "x", "minmax", 200, (double)0.1f, (double)3.4e38f },
	};
	const struct history_range again = { "x", "minmax", 200, 7, 8 };
	char *dir = temp_tree();
	struct history_ranges r = HISTORY_RANGES_INIT;
	struct history *h = new_run(dir);
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(history_ranges(h, 0, &r, &err), err);
	assert_int_equal(r.n, 0);
	assert_ok(history_add_ranges(h, v, ARRAY_LEN(v), &err), err);
	history_close(h);
	h = open_run(dir, false);
	assert_ok(history_ranges(h, 0, &r, &err), err);
	assert_int_equal(r.n, 4);
	assert_true((float)r.v[3].min == 0.1f && (float)r.v[3].max == 3.4e38f && r.v[3].samples == 200);
	assert_ok(history_add_ranges(h, &again, 1, &err), err);
	assert_ok(history_ranges(h, 200, &r, &err), err);
	assert_true(r.n == 1 && r.v[0].min == 7 && r.v[0].max == 8);
	assert_ok(history_ranges(h, 100, &r, &err), err);
	assert_int_equal(r.n, 3);
	assert_string_equal(r.v[0].setting, "kl");
	assert_true(r.v[0].min == -(double)INFINITY && r.v[0].max == (double)INFINITY);
	assert_string_equal(r.v[1].value, "größe/0");
	assert_true(isnan(r.v[1].min) && r.v[1].max == 0);
	assert_ok(history_ranges(h, 300, &r, &err), err);
	assert_int_equal(r.n, 0);
	history_ranges_release(&r);
	history_close(h);
	remove_tree(dir);
}

static void a_write_costs_less_than_two_milliseconds(void **state)
{
	enum { N = 10000 };
	char *dir = temp_tree();
	struct history *h = new_run(dir);
	struct history_trial t = { 0 };
	struct err err = ERR_INIT;
	double start, open_s;
	clock_t begun = clock(), early, late; /* processor time of the first tenth, and of the last */
	struct sample s;
	size_t i;

	(void)state;
	add_trials(h, 1, N / 10);
	early = clock() - begun;
	add_trials(h, N / 10 + 1, N / 10 * 9);
	begun = clock();
	add_trials(h, N / 10 * 9 + 1, N);
	late = clock() - begun;
	history_close(h);
	start = clock_now();
	h = open_run(dir, false);
	open_s = clock_now() - start;
	start = clock_now();
	for (i = 1; i <= N; i += 10) {
		sample_trial(&s, i);
		assert_ok(history_find(h, sample_hash(&s), &t, &err), err);
		assert_int_equal(t.number, i);
	}
	print_message("%d trials: %.3f ms to write one, %.0f ms to open for writing, %.3f ms to find one\n",
		      N, 1e3 * (double)late / CLOCKS_PER_SEC / (N / 10), 1e3 * open_s,
		      1e3 * (clock_now() - start) / (N / 10));
	assert_int_equal(check_trials(h), N);
	assert_true(late < 4 * early); /* the last costs what the first did */
	history_trial_release(&t);
	history_close(h);
	remove_tree(dir);
}

/* want NULL: may resume */
static void check_same(const struct history *h, const struct run_info *now, const char *want)
{
	struct err err = ERR_INIT;
	enum fettle_status st;

	st = history_check_same(h, now, &err);
	if (!want) {
		assert_ok(st, err);
		return;
	}
	assert_int_equal(st, FETTLE_INVALID);
	if (!strstr(err.msg, want))
		fail_msg("want '%s', got '%s'", want, err.msg);
}

static void resuming_something_else_is_refused(void **state)
{
#define AT(member) offsetof(struct run_info, member)
	static const struct {
		size_t at;
		const char *value, *want;
	} rows[] = {
		{ AT(started), "later", NULL },
		{ AT(fettle_version), "9", NULL },
		{ AT(model_path), "moved", NULL },
		{ AT(request), "with more trials", NULL },
		{ AT(config), "# the same settings, in other words", NULL },
		{ AT(model_fingerprint), "x", "the model changed since: models/" },
		{ AT(calib_fingerprint), NULL, "the calibration data changed since: calib.npz" },
		{ AT(eval_fingerprint), "x", "the evaluation data changed since: eval.npz" },
		{ AT(strategy), "mse", "the strategy is 'mse', was 'basic'" },
		{ AT(criterion), "absolute", "the criterion is 'absolute', was 'relative'" },
		{ AT(metric), "f1", "the metric is 'f1', was 'topk'" },
		{ AT(cpu), "another", "the CPU is 'another', was 'avx512-vnni'" },
		{ AT(runtime_version), "2", "ONNX Runtime is '2', was '1.30.0'" },
		{ AT(space), "other", "plans mean something else" },
		{ AT(config_fingerprint), "g", "the configuration changed since" },
	};
	static const struct {
		const char *config, *want;
	} configs[] = {
		{ "tuning.strategy.name: basic\ntuning.gamma: 0.2\nnew: 1\n",
		  "tuning.gamma is 0.2, was 0.1; new is 1, was not set; keep_fp32 is not set, was a: b" },
		{ "a: 1\nb: 2\nc: 3\nd: 4\ne: 5", "d is 4, was not set; and 4 more" },
		{ "", "tuning.strategy.name is not set, was basic" },
		{ NULL, "keep_fp32 is not set" },
	};
	const struct run_info same = sample_run();
	struct run_info now = same;
	char *dir = temp_tree();
	struct history *h = new_run(dir);
	size_t i;

	(void)state;
	check_same(h, &same, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		now = same;
		*(const char **)(void *)((char *)&now + rows[i].at) = rows[i].value;
		check_same(h, &now, rows[i].want);
	}
	for (i = 0; i < ARRAY_LEN(configs); i++) {
		now = same;
		now.config_fingerprint = "g";
		now.config = configs[i].config;
		check_same(h, &now, configs[i].want);
	}
	now = same;
	now.seed = 9;
	check_same(h, &now, "the seed is 9, was 18446744073709551614");
	now = same;
	now.tolerance = 0.02;
	check_same(h, &now, "the tolerance is 0.02, was 0.01");
	now = same;
	now.higher_is_better = false;
	check_same(h, &now, "higher_is_better is false, was true");
	history_close(h);
	remove_tree(dir);
}

static void refuse(const char *dir, bool create, bool read_only, enum fettle_status want, const char *words)
{
	struct run_info info = sample_run();
	struct err err = ERR_INIT;
	struct history *h = NULL;
	enum fettle_status st;

	st = create ? history_create(&h, dir, &info, &err) : history_open(&h, dir, read_only, &err);
	assert_null(h);
	if (st != want || !strstr(err.msg, words) || !strstr(err.msg, dir))
		fail_msg("%s: want status %d and '%s', got %d: %s", dir, (int)want, words, (int)st, err.msg);
}

static void run_sql(const char *dir, const char *sql)
{
	char *command = xstrfmt("sqlite3 %s/history.db '%s' >/dev/null", dir, sql);

	assert_int_equal(system(command), 0);
	free(command);
}

/* Version 1 knew no bounds of accuracies: they are exact. Nor did it know all that decides a result. */
static void an_older_history_is_brought_up_to_date(void **state)
{
	char *tree = temp_tree(), *dir = xstrfmt("%s/w", tree);
	const struct run_info same = sample_run();
	struct history_trial t = { 0 };
	struct history *h = new_run(dir);
	struct err err = ERR_INIT;
	size_t n;

	(void)state;
	add_trials(h, 1, 3);
	history_close(h);
	if (system("command -v sqlite3 >/dev/null") == 0) {
		run_sql(dir, "ALTER TABLE trials DROP COLUMN accuracy_low; ALTER TABLE trials DROP COLUMN "
			     "accuracy_high; ALTER TABLE trials ADD COLUMN choice BLOB; ALTER TABLE run DROP "
			     "COLUMN space; ALTER TABLE run DROP COLUMN request; PRAGMA user_version = 1");
		assert_ok(history_open(&h, dir, true, &err), err);
		assert_ok(history_count(h, &n, &err), err);
		assert_ok(history_trial_at(h, 2, &t, &err), err);
		assert_true(n == 3 && isnan(t.accuracy_low) && isnan(t.accuracy_high));
		history_trial_release(&t);
		history_close(h);
		assert_ok(history_open(&h, dir, false, &err), err);
		assert_ok(history_complete_trial(h, 2, true, 0.75, 0.5, &err), err);
		assert_ok(history_trial_at(h, 2, &t, &err), err);
		assert_true(t.met && t.accuracy == 0.75 && t.accuracy_low == 0.75 && t.loss == 0.5);
		history_trial_release(&t);
		check_same(h, &same, "wrote it without all that decides a result");
		history_close(h);
	} else {
		print_message("SKIPPED: older databases, there is no sqlite3 command\n");
	}
	free(dir);
	remove_tree(tree);
}

static void what_is_no_history_is_refused(void **state)
{
	char *tree = temp_tree(), *dir = xstrfmt("%s/w", tree), *db = xstrfmt("%s/history.db", dir);

	(void)state;
	refuse(dir, false, true, FETTLE_INVALID, "no such folder");
	assert_int_equal(mkdir(dir, 0777), 0);
	refuse(dir, false, true, FETTLE_INVALID, "there is no history.db");
	refuse(dir, false, false, FETTLE_INVALID, "there is no history.db");
	write_bytes(db, "", 0); /* as if killed before anything was written */
	assert_false(history_exists(dir));
	refuse(dir, false, true, FETTLE_INVALID, "no run was begun");
	refuse(dir, false, false, FETTLE_INVALID, "no run was begun");
	history_close(new_run(dir));
	refuse(dir, true, false, FETTLE_INVALID, "there is one already");
	write_bytes(db, "something else that is not empty", 32);
	assert_true(history_exists(dir));
	refuse(dir, false, true, FETTLE_INVALID, "not a fettle history");
	refuse(dir, false, false, FETTLE_INVALID, "not a fettle history");
	refuse(dir, true, false, FETTLE_INVALID, "not a fettle history");
	unlink(db);
	assert_int_equal(mkdir(db, 0777), 0);
	refuse(dir, false, true, FETTLE_SYSTEM, "");
	rmdir(db);
	if (system("command -v sqlite3 >/dev/null") == 0) {
		run_sql(dir, "CREATE TABLE other (x)");
		assert_true(history_exists(dir));
		refuse(dir, false, true, FETTLE_INVALID, "not a fettle history");
		refuse(dir, true, false, FETTLE_INVALID, "not fettle");
		unlink(db);
		history_close(new_run(dir));
		run_sql(dir, "PRAGMA user_version = 5");
		refuse(dir, false, true, FETTLE_UNSUPPORTED, "a newer fettle wrote it");
		refuse(dir, false, false, FETTLE_UNSUPPORTED, "version 5");
		run_sql(dir, "PRAGMA user_version = 4; DROP TABLE trials");
		refuse(dir, true, false, FETTLE_INVALID, "there is one already");
	} else {
		print_message("SKIPPED: foreign and newer databases, there is no sqlite3 command\n");
	}
	free(db);
	free(dir);
	remove_tree(tree);
}

/* Root may write anywhere: act as nobody where that is needed. */
static void as_nobody(bool yes)
{
	if (getuid() == 0)
		assert_int_equal(seteuid(yes ? 65534 : 0), 0);
}

static void a_read_only_folder_can_be_read(void **state)
{
	char *tree = temp_tree(), *dir = xstrfmt("%s/w%%?#", tree), *below = xstrfmt("%s/below", dir);
	char *files = xstrfmt("%s/history.db-wal", dir), *command;
	struct history *h = new_run(dir);

	(void)state;
	add_trials(h, 1, 20);
	history_close(h);
	assert_int_equal(chmod(tree, 0755), 0);
	assert_int_equal(chmod(dir, 0555), 0);
	as_nobody(true);
	h = open_run(dir, true);
	assert_int_equal(check_trials(h), 20);
	history_close(h);
	refuse(dir, false, false, FETTLE_SYSTEM, "Permission denied");
	refuse(dir, true, false, FETTLE_SYSTEM, "Permission denied");
	refuse(below, true, false, FETTLE_SYSTEM, "Permission denied");
	as_nobody(false);

	/* what a killed run leaves: a database with its log */
	assert_int_equal(chmod(dir, 0755), 0);
	h = open_run(dir, false);
	add_trials(h, 21, 30);
	command = xstrfmt("cp -r '%s' '%s/copy' && chmod 0555 '%s/copy'", dir, tree, tree);
	assert_int_equal(system(command), 0);
	history_close(h);
	free(command);
	free(below);
	below = xstrfmt("%s/copy", tree);
	as_nobody(true);
	h = open_run(below, true);
	assert_int_equal(check_trials(h), 30);
	history_close(h);
	as_nobody(false);

	/* a database that is write-protected itself */
	assert_int_equal(chmod(dir, 0777), 0);
	free(files);
	files = xstrfmt("%s/history.lock", dir);
	assert_int_equal(chmod(files, 0666), 0);
	free(files);
	files = xstrfmt("%s/history.db", dir);
	assert_int_equal(chmod(files, 0444), 0);
	as_nobody(true);
	refuse(dir, false, false, FETTLE_SYSTEM, "read-only");
	as_nobody(false);
	free(files);
	free(below);
	free(dir);
	remove_tree(tree);
}

/* Fills what is left of the disk that `path` is on. */
static void fill_disk(const char *path)
{
	static const char zeroes[4096];
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	while (fwrite(zeroes, 1, sizeof(zeroes), f) == sizeof(zeroes))
		;
	fclose(f);
}

static void a_full_disk_is_an_error_that_passes(void **state)
{
	char *dir = temp_tree(), *work = xstrfmt("%s/w", dir), *ballast = xstrfmt("%s/ballast", dir);
	char *other = xstrfmt("%s/other", dir);
	struct history_range *ranges = xcalloc(3000, sizeof(*ranges));
	struct history_ranges r = HISTORY_RANGES_INIT;
	enum fettle_status st = FETTLE_OK;
	struct err err = ERR_INIT;
	struct history *h;
	struct sample s;
	size_t n = 0, count, i;

	(void)state;
	/* in a mount namespace of our own, where the small disk vanishes with the process */
	if (getuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=512k") != 0) {
		print_message("SKIPPED: a full disk, mounting a small one needs root\n");
		goto out;
	}
	h = new_run(work);
	fill_disk(ballast);
	while (!st && n < 10000) {
		sample_trial(&s, n + 1);
		st = history_add_trial(h, &s.t, NULL, &err);
		n += !st;
	}
	print_message("%zu trials, then: %s\n", n, err.msg);
	assert_int_equal(st, FETTLE_SYSTEM);
	assert_non_null(strstr(err.msg, "the disk is full"));
	assert_non_null(strstr(err.msg, work));
	assert_int_equal(check_trials(h), n);
	refuse(other, true, false, FETTLE_SYSTEM, "");
	for (i = 0; i < 3000; i++)
		ranges[i] = (struct history_range){ "x", "minmax", i + 1, 0, 1 };
	assert_int_equal(history_add_ranges(h, ranges, 3000, &err), FETTLE_SYSTEM);

	unlink(ballast); /* there is room again: the same handle continues */
	assert_ok(history_ranges(h, 0, &r, &err), err);
	assert_int_equal(r.n, 0);
	add_trials(h, n + 1, n + 20);
	history_close(h);
	h = open_run(work, false);
	assert_int_equal(check_trials(h), n + 20);
	fill_disk(ballast);
	history_close(h); /* with no room for what closing wants to write */
	h = open_run(work, true);
	assert_ok(history_count(h, &count, &err), err);
	assert_int_equal(count, n + 20);
	history_close(h);
	umount2(dir, MNT_DETACH);
out:
	history_ranges_release(&r);
	free(ranges);
	free(work);
	free(other);
	free(ballast);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_read_as_it_was_written),
		cmocka_unit_test(trials_are_read_as_they_were_written),
		cmocka_unit_test(a_plan_is_found_by_its_hash),
		cmocka_unit_test(text_of_any_length_and_kind_comes_back),
		cmocka_unit_test(ranges_come_back_by_samples),
		cmocka_unit_test(a_write_costs_less_than_two_milliseconds),
		cmocka_unit_test(resuming_something_else_is_refused),
		cmocka_unit_test(what_is_no_history_is_refused),
		cmocka_unit_test(an_older_history_is_brought_up_to_date),
		cmocka_unit_test(a_read_only_folder_can_be_read),
		cmocka_unit_test(a_full_disk_is_an_error_that_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
