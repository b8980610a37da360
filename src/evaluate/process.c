/* What is measured by running a program: peak memory of a model in a process of its own, and any evaluator. */
#include "evaluate/evaluate.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

extern char **environ;

/* Not getrusage(): its figure survives exec, so a child would begin with its parent's. */
size_t peak_memory(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	size_t kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %zu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

/* runs argv, gives what it wrote to its standard output; a program that fails is an error naming `what` */
static enum fettle_status run_program(const char *what, char *const *argv, struct str *out, struct err *err)
{
	posix_spawn_file_actions_t actions;
	int fds[2], status = 0, rc;
	char buf[4096];
	ssize_t n;
	pid_t pid;

	if (pipe(fds) != 0)
		return fail(err, FETTLE_SYSTEM, "cannot run %s: %s", what, strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return fail(err, FETTLE_SYSTEM, "cannot run %s: %s", what, strerror(rc));
	}
	while ((n = read(fds[0], buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && out->n < 1 << 20)
			str_add(out, buf, (size_t)n);
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return fail(err, FETTLE_SYSTEM, "cannot run %s: ended by signal %d (%s)", what,
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		return fail(err, FETTLE_SYSTEM, "cannot run %s: exit code %d", what, WEXITSTATUS(status));
	return FETTLE_OK;
}

enum fettle_status evaluate_footprint(const char *helper, const char *model, const char *data, size_t batch,
				      int threads, size_t *bytes, struct err *err)
{
	struct str out = STR_INIT;
	char batch_text[32], threads_text[32];
	char *argv[] = { (char *)(uintptr_t)helper,
			 "measure-footprint",
			 (char *)(uintptr_t)model,
			 batch_text,
			 threads_text,
			 (char *)(uintptr_t)data,
			 NULL };
	enum fettle_status st;
	char *end;

	snprintf(batch_text, sizeof(batch_text), "%zu", batch);
	snprintf(threads_text, sizeof(threads_text), "%d", threads);
	st = run_program("a process to measure memory in", argv, &out, err);
	if (!st) {
		*bytes = out.s ? strtoull(out.s, &end, 10) : 0;
		if (!*bytes)
			st = fail(err, FETTLE_SYSTEM,
				  "cannot measure the memory of %s: no figure from the process", model);
	}
	str_release(&out);
	return st;
}

/* quotes for sh, so that a path may hold anything */
static void add_quoted(struct str *b, const char *s)
{
	str_addf(b, "'");
	for (; *s; s++)
		if (*s == '\'')
			str_addf(b, "'\\''");
		else
			str_add(b, s, 1);
	str_addf(b, "'");
}

/* the last number in a text, written as a word of its own */
static bool last_number(const char *text, double *value)
{
	const char *p = text;
	bool found = false;

	while (*p) {
		size_t word;
		char *end;
		double x;

		p += strspn(p, " \t\r\n,;:=()[]{}");
		word = strcspn(p, " \t\r\n,;:=()[]{}");
		if (!word)
			break;
		x = strtod(p, &end);
		if (end != p && (end == p + word || (end + 1 == p + word && *end == '%'))) {
			*value = x;
			found = true;
		}
		p += word;
	}
	return found;
}

enum fettle_status evaluate_command(const char *command, const char *model, double *value, struct err *err)
{
	struct str script = STR_INIT, out = STR_INIT;
	char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	enum fettle_status st;
	const char *p, *mark;

	if (!strstr(command, "{model}"))
		return fail(err, FETTLE_INVALID,
			    "cannot use evaluator '%s': it must say where the model goes, {model}", command);
	for (p = command; (mark = strstr(p, "{model}")); p = mark + strlen("{model}")) {
		str_add(&script, p, (size_t)(mark - p));
		add_quoted(&script, model);
	}
	str_addf(&script, "%s", p);
	argv[2] = script.s;
	st = run_program(command, argv, &out, err);
	if (!st && (!out.s || !last_number(out.s, value)))
		st = fail(err, FETTLE_INVALID, "cannot use evaluator '%s': it printed no number", command);
	str_release(&script);
	str_release(&out);
	return st;
}
