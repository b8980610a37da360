/* Temporary files and folders: they go when they are done with, and those of dead processes with the next. */
#include "unit/unit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/scratch.h"
#include "unit/tree.h"

static char *dir;

static int set_up(void **state)
{
	(void)state;
	dir = temp_tree();
	return setenv("TMPDIR", dir, 1);
}

static int tear_down(void **state)
{
	(void)state;
	remove_tree(dir);
	return unsetenv("TMPDIR");
}

/* A process that has begun an output and a scratch folder, and waits. */
static pid_t start_writer(const char *out)
{
	struct file_out o = FILE_OUT_INIT;
	struct err err = ERR_INIT;
	struct scratch s;
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if (file_create(&o, out, &err) || scratch_new(&s, &err) || fputs("half", o.f) < 0)
			_exit(1);
		write_bytes(scratch_path(&s, "model.onnx"), "half", 4);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop_writer(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static size_t count_left(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void write_out(const char *out)
{
	struct file_out o = FILE_OUT_INIT;
	struct scratch s = { .dir = NULL };
	struct err err = ERR_INIT;

	assert_ok(scratch_new(&s, &err), err);
	assert_ok(file_create(&o, out, &err), err);
	fputs("whole", o.f);
	assert_ok(file_commit(&o, &err), err);
	scratch_release(&s);
}

static void the_dead_are_cleared_away(void **state)
{
	char *out = xstrfmt("%s/out.onnx", dir);

	(void)state;
	stop_writer(start_writer(out));
	assert_int_equal(count_left(), 2);
	write_out(out);
	assert_int_equal(count_left(), 1); /* out.onnx */
	free(out);
}

static void the_living_are_left_alone(void **state)
{
	char *out = xstrfmt("%s/out.onnx", dir);
	pid_t pid = start_writer(out);

	(void)state;
	write_out(out);
	assert_int_equal(count_left(), 3);
	stop_writer(pid);
	write_out(out);
	assert_int_equal(count_left(), 1);
	free(out);
}

/* files that only look alike */
static void others_are_left_alone(void **state)
{
	static const char *const names[] = { "out.onnx.tmp",      "out.onnx.12a.tmp", "out.onnx..tmp",
					     "other.onnx.12.tmp", "out.onnx.12.tmp2", "fettle.1234567" };
	char *out = xstrfmt("%s/out.onnx", dir), *path;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		path = xstrfmt("%s/%s", dir, names[i]);
		write_bytes(path, "x", 1);
		free(path);
	}
	path = xstrfmt("%s/out.onnx.12.tmp", dir); /* not a file */
	assert_int_equal(symlink("other.onnx.12.tmp", path), 0);
	write_out(out);
	assert_int_equal(count_left(), ARRAY_LEN(names) + 2);
	free(path);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_dead_are_cleared_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_living_are_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_are_left_alone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
