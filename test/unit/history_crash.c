/* What happens to a history when processes die, meet, or the file is damaged. */
#include "unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>

#include "unit/history_run.h"

static void sleep_us(uint64_t us)
{
	nanosleep(&(struct timespec){ (time_t)(us / 1000000), (long)(us % 1000000) * 1000 }, NULL);
}

/* A child that resumes (or begins) the run and adds trials, reporting each that is committed, until killed. */
static pid_t start_writer(const char *dir, int *reports)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20); /* so that reports seldom wait for their reader */
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct run_info info = sample_run();
		struct history *h = NULL;
		struct sample s;
		size_t n = 0;

		close(ends[0]); /* when the test is gone, writing to it ends this too */
		if (history_exists(dir) ? history_open(&h, dir, false, NULL)
					: history_create(&h, dir, &info, NULL))
			_exit(1);
		if (history_count(h, &n, NULL) || write(ends[1], &n, sizeof(n)) != sizeof(n))
			_exit(1);
		for (;;) {
			sample_trial(&s, n + 1);
			s.t.number = 0;
			if (history_add_trial(h, &s.t, &n, NULL) ||
			    write(ends[1], &n, sizeof(n)) != sizeof(n))
				_exit(1);
		}
	}
	close(ends[1]);
	*reports = ends[0];
	return pid;
}

/* Kills it; the last number that it reported. SIZE_MAX: it had not yet opened the history. */
static size_t kill_writer(pid_t pid, int reports)
{
	size_t last = SIZE_MAX, n;
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status)); /* it did not end by an error of its own */
	while (read(reports, &n, sizeof(n)) == sizeof(n))
		last = n;
	close(reports);
	return last;
}

static void check_integrity(const char *dir)
{
	char *path = xstrfmt("%s/history.db", dir);
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(s, 0), "ok");
	sqlite3_finalize(s);
	sqlite3_close(db);
	free(path);
}

static void killed_at_random_nothing_is_lost(void **state)
{
	enum { ROUNDS = 20 };
	char *dir = temp_tree();
	size_t known = 0, round;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20);
	for (round = 0; round < ROUNDS; round++) {
		size_t last, first = 0;
		struct history *h;
		int reports;
		pid_t pid;

		pid = start_writer(dir, &reports);
		assert_int_equal(read(reports, &first, sizeof(first)), sizeof(first));
		assert_true(first >= known);
		sleep_us(rng_below(&rng, 60000));
		last = kill_writer(pid, reports);
		if (last == SIZE_MAX)
			last = first;
		if (round % 2) /* before anyone repairs it */
			check_integrity(dir);
		h = open_run(dir, round % 3 == 0);
		known = check_trials(h);
		assert_true(known == last || known == last + 1); /* committed, but not yet reported */
		if (round % 3) {
			known++;
			add_trials(h, known, known); /* numbering continues */
		}
		history_close(h);
		check_integrity(dir);
	}
	print_message("%zu trials through %d kills\n", known, ROUNDS);
	assert_true(known > ROUNDS);
	remove_tree(dir);
}

static void killed_at_the_beginning_a_run_can_begin(void **state)
{
	size_t round, begun = 0;
	double takes = 0; /* seconds until a run has begun, on this disk */
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21);
	for (round = 0; round < 40; round++) {
		char *dir = temp_tree();
		struct history *h;
		int reports;
		pid_t pid;

		takes -= round ? 0 : clock_now();
		pid = start_writer(dir, &reports);
		if (round)
			sleep_us(rng_below(&rng, 1 + (uint64_t)(1.5e6 * takes)));
		else
			assert_int_equal(read(reports, &begun, sizeof(begun)), sizeof(begun));
		takes += round ? 0 : clock_now();
		kill_writer(pid, reports);
		begun += history_exists(dir);
		h = history_exists(dir) ? open_run(dir, false) : new_run(dir);
		check_trials(h);
		history_close(h);
		remove_tree(dir);
	}
	print_message("%zu of 40 had begun\n", begun);
}

static void others_may_read_while_one_writes(void **state)
{
	char *dir = temp_tree();
	size_t first, last, seen = 0, n, i;
	struct history *h;
	int reports;
	pid_t pid;

	(void)state;
	pid = start_writer(dir, &reports);
	assert_int_equal(read(reports, &first, sizeof(first)), sizeof(first));
	for (i = 0; i < 8; i++) {
		h = open_run(dir, true);
		n = check_trials(h);
		assert_true(n >= seen);
		seen = n;
		sleep_us(2000);
		assert_true(check_trials(h) >= seen); /* an open handle sees what was added */
		history_close(h);
	}
	last = kill_writer(pid, reports);
	assert_true(seen > 0 && last != SIZE_MAX && last + 1 >= seen); /* the last may not be reported yet */
	h = open_run(dir, true);
	n = check_trials(h);
	assert_true(n == last || n == last + 1);
	history_close(h);
	remove_tree(dir);
}

static void a_second_writer_is_refused(void **state)
{
	char *dir = temp_tree(), *name;
	struct run_info info = sample_run();
	struct history *h = NULL, *again = NULL;
	struct err err = ERR_INIT;
	size_t first;
	int reports;
	pid_t pid;

	(void)state;
	pid = start_writer(dir, &reports);
	assert_int_equal(read(reports, &first, sizeof(first)), sizeof(first));
	name = xstrfmt("process %ld is writing", (long)pid);
	assert_int_equal(history_open(&h, dir, false, &err), FETTLE_SYSTEM);
	assert_non_null(strstr(err.msg, name));
	assert_non_null(strstr(err.msg, dir));
	err.msg[0] = '\0';
	assert_int_equal(history_create(&h, dir, &info, &err), FETTLE_SYSTEM);
	assert_non_null(strstr(err.msg, name));
	kill_writer(pid, reports);
	h = open_run(dir, false); /* what the dead held is free */
	assert_int_equal(history_open(&again, dir, false, &err), FETTLE_SYSTEM); /* in one process, too */
	history_close(h);
	h = open_run(dir, false);
	history_close(h);
	free(name);
	remove_tree(dir);
}

/* Everything that can be asked and written. It may all fail, with a message; how many calls did. */
static size_t use_everything(const char *dir, bool read_only)
{
	struct history_ranges ranges = HISTORY_RANGES_INIT;
	struct history_trial t = { 0 };
	struct history_result r = { 0 };
	struct history_baseline b = { 0 };
	struct history *h = NULL;
	size_t failed = 0, n = 0, i;
	char *value = NULL;
	struct sample s;
	bool found;

#define TRY(call)                                                                                            \
	do {                                                                                                 \
		struct err err = ERR_INIT;                                                                   \
		enum fettle_status st_ = call;                                                               \
		if (st_ && !err.msg[0])                                                                      \
			fail_msg("%s: no message", #call);                                                   \
		failed += st_ != FETTLE_OK;                                                                  \
	} while (0)
	history_exists(dir);
	TRY(history_open(&h, dir, read_only, &err));
	if (!h)
		return failed;
	TRY(history_count(h, &n, &err));
	for (i = 0; i < 1000 && !failed; i++) {
		TRY(history_next(h, t.number, &t, &err));
		if (!t.number)
			break;
	}
	sample_trial(&s, 3);
	TRY(history_find(h, sample_hash(&s), &t, &err));
	TRY(history_baseline(h, &b, &found, &err));
	TRY(history_result(h, &r, &found, &err));
	TRY(history_ranges(h, 0, &ranges, &err));
	TRY(history_meta(h, "key", &value, &err));
	if (!read_only) {
		s.t.number = 0;
		TRY(history_add_trial(h, &s.t, NULL, &err));
		TRY(history_add_ranges(h, &(struct history_range){ "v", "s", 1, 0, 1 }, 1, &err));
		TRY(history_set_meta(h, "key", "other", &err));
	}
	history_trial_release(&t);
	history_result_release(&r);
	history_ranges_release(&ranges);
	history_close(h);
	free(value);
	return failed;
}

static void fill_run(struct history *h)
{
	struct history_range v[50];
	struct err err = ERR_INIT;
	size_t i;

	add_trials(h, 1, 60);
	for (i = 0; i < ARRAY_LEN(v); i++)
		v[i] = (struct history_range){ "value", "minmax", i, -1, 1 };
	assert_ok(history_add_ranges(h, v, ARRAY_LEN(v), &err), err);
	assert_ok(history_set_baseline(h, &(struct history_baseline){ 0.5, 1, 2, 3, 4 }, &err), err);
	assert_ok(history_set_result(h, &(struct history_result){ .stop = "timeout" }, &err), err);
	assert_ok(history_set_meta(h, "key", "value", &err), err);
}

static void read_into(const char *dir, const char *name, struct str *out)
{
	char *path = xstrfmt("%s/%s", dir, name);
	struct bytes b = BYTES_INIT;

	if (!file_map(path, &b, NULL))
		str_add(out, b.p, b.n);
	bytes_release(&b);
	free(path);
}

static void write_from(const char *dir, const char *name, const struct str *b)
{
	char *path = xstrfmt("%s/%s", dir, name);

	unlink(path);
	if (b->n)
		write_bytes(path, b->s, b->n);
	free(path);
}

/* Spoils some of it: bytes, a stretch, the end, or all. */
static void mutate(struct str *b, struct rng *rng)
{
	size_t i, from, n;

	if (!b->n)
		return;
	switch (rng_below(rng, 8)) {
	case 0:
		b->n = rng_below(rng, b->n);
		return;
	case 1:
		for (i = 0; i < b->n; i++)
			b->s[i] = (char)rng_next(rng);
		return;
	case 2:
		from = rng_below(rng, b->n);
		n = rng_below(rng, b->n - from) % 5000;
		memset(b->s + from, (int)rng_below(rng, 256), n);
		return;
	case 3: /* a page's header, or the file's */
		from = rng_below(rng, 1 + b->n / 4096) * 4096;
		for (i = from; i < from + 100 && i < b->n; i++)
			if (!rng_below(rng, 10))
				b->s[i] = (char)rng_next(rng);
		return;
	default:
		n = 1 + rng_below(rng, 30);
		for (i = 0; i < n; i++)
			b->s[rng_below(rng, b->n)] = (char)rng_next(rng);
	}
}

static void a_damaged_database_is_an_error(void **state)
{
	enum { ROUNDS = 240 };
	static const char *const names[] = { "history.db", "history.db-wal", "history.db-shm" };
	char *dir = temp_tree(), *lab = xstrfmt("%s/lab", dir);
	struct str closed[3] = { STR_INIT, STR_INIT, STR_INIT }, live[3] = { STR_INIT, STR_INIT, STR_INIT };
	struct history *h = new_run(dir);
	size_t round, i, refused = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 22);
	assert_int_equal(mkdir(lab, 0777), 0);
	fill_run(h);
	for (i = 0; i < 3; i++)
		read_into(dir, names[i], &live[i]); /* as a kill would leave it */
	history_close(h);
	read_into(dir, names[0], &closed[0]);
	for (round = 0; round < ROUNDS; round++) {
		const struct str *from = round % 2 ? live : closed;
		size_t spoilt = round % 4 == 3 ? 1 : round % 16 == 1 ? 2 : 0;

		for (i = 0; i < 3; i++) {
			struct str b = STR_INIT;

			if (from[i].n)
				str_add(&b, from[i].s, from[i].n);
			if (i == spoilt)
				mutate(&b, &rng);
			write_from(lab, names[i], &b);
			str_release(&b);
		}
		refused += use_everything(lab, true) + use_everything(lab, false) > 0;
	}
	print_message("%zu of %d were refused\n", refused, ROUNDS);
	assert_true(refused > ROUNDS / 4);
	for (i = 0; i < 3; i++) { /* and unspoilt, nothing is */
		write_from(lab, names[i], &live[i]);
		str_release(&live[i]);
		str_release(&closed[i]);
	}
	assert_int_equal(use_everything(lab, true), 0);
	assert_int_equal(use_everything(lab, false), 0);
	free(lab);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random_nothing_is_lost),
		cmocka_unit_test(killed_at_the_beginning_a_run_can_begin),
		cmocka_unit_test(others_may_read_while_one_writes),
		cmocka_unit_test(a_second_writer_is_refused),
		cmocka_unit_test(a_damaged_database_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
