#include "evaluate/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "evaluate/evaluate.h"

extern char **environ;

enum { OUTPUT_MAX = 1 << 20 };

static void close_pair(const int fds[2])
{
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

enum fettle_status child_start(struct child *c, const char *what, char *const *argv, bool has_input,
			       struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, rc;

	/* closed in children: one that inherited another's pipe would keep it from ending */
	if (pipe2(out, O_CLOEXEC) != 0 || (has_input && pipe2(in, O_CLOEXEC) != 0)) {
		rc = errno;
		close_pair(out);
		return fail(err, FETTLE_SYSTEM, "cannot run %s: %s", what, strerror(rc));
	}
	posix_spawn_file_actions_init(&actions);
	if (has_input)
		posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	else /* in the background it must not wait for a terminal */
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP); /* a group of its own, to end it as a whole */
	rc = posix_spawnp(&c->pid, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (rc) {
		close_pair(in);
		close_pair(out);
		return fail(err, FETTLE_SYSTEM, "cannot run %s: %s", what, strerror(rc));
	}
	if (has_input)
		close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	return FETTLE_OK;
}

bool child_wait(const struct child *c, progress_fn go_on, void *self)
{
	struct pollfd p = { .fd = c->out, .events = POLLIN };

	for (;;) {
		int ready = poll(&p, 1, go_on ? 100 : -1);

		if (go_on && !go_on(self, 0, 0))
			return false;
		if (ready > 0)
			return true; /* else nothing yet, or a signal */
	}
}

static void close_pipes(struct child *c)
{
	close_pair((int[]){ c->in, c->out });
	c->in = c->out = -1;
}

enum fettle_status child_reap(struct child *c, const char *what, struct err *err)
{
	int status = 0;

	close_pipes(c);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return fail(err, FETTLE_SYSTEM, "cannot run %s: ended by signal %d (%s)", what,
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		return fail(err, FETTLE_SYSTEM, "cannot run %s: exit code %d", what, WEXITSTATUS(status));
	return FETTLE_OK;
}

void child_end(struct child *c)
{
	const struct timespec tick = { .tv_nsec = 10000000 };
	int status, i;

	close_pipes(c);
	kill(-c->pid, SIGTERM);
	for (i = 0; i < 100; i++) {
		if (waitpid(c->pid, &status, WNOHANG) == c->pid)
			break;
		nanosleep(&tick, NULL);
	}
	kill(-c->pid, SIGKILL);
	if (i == 100)
		while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
			;
}

enum fettle_status run_program(const char *what, char *const *argv, struct str *out, progress_fn go_on,
			       void *self, struct err *err)
{
	struct child c;
	char buf[4096];
	ssize_t n;
	enum fettle_status st = child_start(&c, what, argv, false, err);

	if (st)
		return st;
	do {
		if (!child_wait(&c, go_on, self)) {
			child_end(&c);
			return fail(err, FETTLE_STOP, "%s was stopped", what);
		}
		n = read(c.out, buf, sizeof(buf));
		if (n > 0 && out->n < OUTPUT_MAX)
			str_add(out, buf, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return child_reap(&c, what, err);
}
