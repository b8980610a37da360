/* What is measured by running a program: peak memory of a model in a process of its own, and any evaluator. */
#include "evaluate/evaluate.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
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

/* Collects what comes out of fd until its end; false when `go_on`, asked ten times a second, says stop. */
static bool read_all(int fd, struct str *out, progress_fn go_on, void *self)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[4096];
	ssize_t n;

	for (;;) {
		int ready = poll(&p, 1, go_on ? 100 : -1);

		if (go_on && !go_on(self, 0, 0))
			return false;
		if (ready <= 0)
			continue; /* nothing yet, or a signal */
		n = read(fd, buf, sizeof(buf));
		if (n == 0 || (n < 0 && errno != EINTR))
			return true;
		if (n > 0 && out->n < 1 << 20)
			str_add(out, buf, (size_t)n);
	}
}

/* The program with all it has started; it may tidy up, but not take long over it. */
static void end_group(pid_t pid, int *status)
{
	const struct timespec tick = { .tv_nsec = 10000000 };
	int i;

	kill(-pid, SIGTERM);
	for (i = 0; i < 100; i++) {
		if (waitpid(pid, status, WNOHANG) == pid)
			break;
		nanosleep(&tick, NULL);
	}
	kill(-pid, SIGKILL);
	if (i == 100)
		while (waitpid(pid, status, 0) < 0 && errno == EINTR)
			;
}

/* Runs argv, gives what it wrote to its standard output. A program that fails is an error naming `what`; one that
 * go_on (may be NULL) broke off is FETTLE_STOP. */
static enum fettle_status run_program(const char *what, char *const *argv, struct str *out, progress_fn go_on,
				      void *self, struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int fds[2], status = 0, rc;
	pid_t pid;

	if (pipe(fds) != 0)
		return fail(err, FETTLE_SYSTEM, "cannot run %s: %s", what, strerror(errno));
	posix_spawn_file_actions_init(&actions);
	/* in the background it must not wait for a terminal */
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP); /* a group of its own, to end it as a whole */
	rc = posix_spawnp(&pid, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return fail(err, FETTLE_SYSTEM, "cannot run %s: %s", what, strerror(rc));
	}
	if (!read_all(fds[0], out, go_on, self)) {
		close(fds[0]);
		end_group(pid, &status);
		return fail(err, FETTLE_STOP, "%s was stopped", what);
	}
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
	st = run_program("a process to measure memory in", argv, &out, NULL, NULL, err);
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

/* The only number of the last line that says anything; how many it has. */
static size_t last_number(char *text, double *value)
{
	static const char separators[] = " \t\r\n,;:=()[]{}\"";
	char *line, *p;
	size_t found = 0, n = strlen(text);

	while (n && strchr("\r\n \t", text[n - 1]))
		text[--n] = '\0';
	line = strrchr(text, '\n');
	for (p = line ? line + 1 : text; *p;) {
		size_t word;
		char *end;
		double x;

		p += strspn(p, separators);
		word = strcspn(p, separators);
		x = strtod(p, &end);
		if (word && end != p && (end == p + word || (end + 1 == p + word && *end == '%'))) {
			*value = x;
			found++;
		}
		p += word;
	}
	return found;
}

enum fettle_status evaluate_command(const char *command, const char *model, progress_fn go_on, void *self,
				    double *value, struct err *err)
{
	struct str script = STR_INIT, out = STR_INIT;
	char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	enum fettle_status st;
	size_t n;
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
	st = run_program(command, argv, &out, go_on, self, err);
	n = st || !out.s ? 0 : last_number(out.s, value);
	if (!st && n != 1)
		st = fail(err, FETTLE_INVALID,
			  "cannot use evaluator '%s': it printed %s, need one on its last line", command,
			  n ? "several numbers there" : "no number there");
	str_release(&script);
	str_release(&out);
	return st;
}
