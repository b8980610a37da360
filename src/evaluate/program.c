/* Any program as evaluator: run for each model, or kept alive and asked. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "evaluate/answer.h"
#include "evaluate/evaluate.h"
#include "evaluate/process.h"

enum { LINE_MAX_BYTES = 1 << 16 };

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

enum fettle_status evaluate_command_check(const char *command, struct err *err)
{
	if (strstr(command, "{model}"))
		return FETTLE_OK;
	return fail(err, FETTLE_INVALID,
		    "cannot use evaluator '%s': it must say where the model goes, {model}", command);
}

enum fettle_status evaluate_command(const char *command, const char *model, progress_fn go_on, void *self,
				    double *value, struct err *err)
{
	struct str script = STR_INIT, out = STR_INIT;
	char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	enum fettle_status st;
	const char *p, *mark;

	st = evaluate_command_check(command, err);
	if (st)
		return st;
	for (p = command; (mark = strstr(p, "{model}")); p = mark + strlen("{model}")) {
		str_add(&script, p, (size_t)(mark - p));
		add_quoted(&script, model);
	}
	str_addf(&script, "%s", p);
	argv[2] = script.s;
	st = run_program(command, argv, &out, go_on, self, err);
	if (!st)
		st = answer_read(out.s ? out.s : "", command, value, err);
	str_release(&script);
	str_release(&out);
	return st;
}

/* ---- one that stays ---- */

struct server {
	char *command;
	struct child c;
	bool runs;
	struct str read; /* what it has written and nobody has asked for yet */
};

struct server *server_new(const char *command)
{
	struct server *s = xcalloc(1, sizeof(*s));

	s->command = xstrdup(command);
	return s;
}

static void stop(struct server *s)
{
	if (s->runs)
		child_end(&s->c);
	s->runs = false;
	s->read.n = 0;
}

/* Has it ended by itself? It is given a second. */
static bool ends(const struct server *s)
{
	const struct timespec tick = { .tv_nsec = 10000000 };
	siginfo_t info = { .si_pid = 0 };
	int i;

	for (i = 0; i < 100 && !info.si_pid; i++) {
		if (i)
			nanosleep(&tick, NULL);
		if (waitid(P_PID, (id_t)s->c.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
			return true;
	}
	return info.si_pid != 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	if (s->runs) { /* the end of its input says that no more models come */
		close(s->c.in);
		s->c.in = -1;
		ends(s);
	}
	stop(s);
	str_release(&s->read);
	free(s->command);
	free(s);
}

/* It has closed its output: why? */
static enum fettle_status ended(struct server *s, struct err *err)
{
	enum fettle_status st;

	if (!ends(s)) {
		stop(s);
		return fail(
			err, FETTLE_INVALID,
			"cannot use evaluator '%s': it closed its input or output, need an answer for each "
			"model",
			s->command);
	}
	s->runs = false;
	s->read.n = 0;
	st = child_reap(&s->c, s->command, err);
	return st ? st
		  : fail(err, FETTLE_INVALID,
			 "cannot use evaluator '%s': it ended before it answered, need an answer for each "
			 "model",
			 s->command);
}

/* A write to a program that has gone raises SIGPIPE: it must not end this process, nor change what signals do in it. */
static bool send_line(int fd, const char *p, size_t n)
{
	const struct timespec now = { 0 };
	sigset_t pipe_only, before, pending;
	ssize_t wrote = 0;
	int problem;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	for (; n; p += wrote, n -= (size_t)wrote) {
		wrote = write(fd, p, n);
		if (wrote < 0 && errno == EINTR)
			wrote = 0;
		if (wrote < 0)
			break;
	}
	problem = errno;
	if (wrote < 0 && problem == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !n;
}

/* Asks, and gives the line that it answers with. */
static enum fettle_status exchange(struct server *s, const char *request, progress_fn go_on, void *self,
				   char **line, struct err *err)
{
	char buf[4096], *end;
	ssize_t n;

	if (!send_line(s->c.in, request, strlen(request)))
		return ended(s, err);
	while (!s->read.n || !(end = memchr(s->read.s, '\n', s->read.n))) {
		if (s->read.n > LINE_MAX_BYTES) {
			stop(s);
			return fail(err, FETTLE_INVALID,
				    "cannot use evaluator '%s': a line of over %d bytes, need one number",
				    s->command, LINE_MAX_BYTES);
		}
		if (!child_wait(&s->c, go_on, self)) {
			stop(s);
			return fail(err, FETTLE_STOP, "%s was stopped", s->command);
		}
		n = read(s->c.out, buf, sizeof(buf));
		if (n > 0)
			str_add(&s->read, buf, (size_t)n);
		else if (n == 0 || errno != EINTR)
			return ended(s, err);
	}
	*line = xstrfmt("%.*s", (int)(end - s->read.s), s->read.s);
	s->read.n -= (size_t)(end + 1 - s->read.s);
	memmove(s->read.s, end + 1, s->read.n);
	return FETTLE_OK;
}

static enum fettle_status start(struct server *s, struct err *err)
{
	char *argv[] = { "/bin/sh", "-c", s->command, NULL };
	enum fettle_status st = child_start(&s->c, s->command, argv, true, err);

	s->runs = !st;
	return st;
}

static enum fettle_status ask(struct server *s, const char *path, progress_fn go_on, void *self,
			      double *value, struct err *err)
{
	char *line = NULL, *request = xstrfmt("%s\n", path);
	const bool old = s->runs;
	enum fettle_status st = old ? FETTLE_OK : start(s, err);

	if (!st)
		st = exchange(s, request, go_on, self, &line, err);
	if (old && st && st != FETTLE_STOP && !s->runs) { /* it may have ended since it last answered */
		st = start(s, err);
		if (!st)
			st = exchange(s, request, go_on, self, &line, err);
	}
	free(request);
	if (!st)
		st = answer_read(line, s->command, value, err);
	if (!st && s->read.n)
		st = fail(err, FETTLE_INVALID,
			  "cannot use evaluator '%s': it printed more than one line for a model, need one "
			  "(other text belongs on its standard error)",
			  s->command);
	if (st) /* whatever it writes next is not the answer to the next question */
		stop(s);
	free(line);
	return st;
}

enum fettle_status server_ask(struct server *s, const char *model, progress_fn go_on, void *self,
			      double *value, struct err *err)
{
	char *path = realpath(model, NULL);
	enum fettle_status st;

	if (!path)
		return fail(err, FETTLE_SYSTEM, "cannot read %s: %s", model, strerror(errno));
	if (strchr(path, '\n'))
		st = fail(err, FETTLE_INVALID,
			  "cannot name %s to an evaluator: its path has several lines, need one", model);
	else
		st = ask(s, path, go_on, self, value, err);
	free(path);
	return st;
}
