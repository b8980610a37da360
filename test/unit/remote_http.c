/* HTTP calls against a server in a thread of this program, which answers each connection as a script says. */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "remote/http.h"

#define ANY SIZE_MAX
#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n"
#define WITH(n, body) OK "Content-Length: " #n "\r\n\r\n" body

struct server {
	int socket;
	const char *const *answers; /* up to a NULL; then nobody listens. "hang": no answer */
	size_t heard;
	char last[4096]; /* request */
	char url[64];
	pthread_t thread;
};

static void *serve(void *self)
{
	struct server *s = self;
	size_t i;

	for (i = 0; s->answers[i]; i++) {
		int c = accept(s->socket, NULL, NULL);
		ssize_t n;

		if (c < 0)
			break;
		n = read(c, s->last, sizeof(s->last) - 1); /* requests are small: one segment */
		s->last[n > 0 ? n : 0] = '\0';
		s->heard++;
		if (strcmp(s->answers[i], "hang") == 0)
			usleep(350000) /* longer than the client waits */;
		else
			(void)!write(c, s->answers[i], strlen(s->answers[i]));
		close(c);
	}
	close(s->socket);
	return NULL;
}

static void begin(struct server *s, const char *const *answers)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);

	*s = (struct server){ .answers = answers };
	s->socket = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->socket, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(s->socket, 8), 0);
	getsockname(s->socket, (struct sockaddr *)&at, &n);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void end(struct server *s)
{
	shutdown(s->socket, SHUT_RDWR);
	pthread_join(s->thread, NULL);
}

struct row {
	const char *why;
	const char *answers[8];
	enum fettle_status st;
	size_t heard;     /* requests; ANY: as many as the machine's speed makes it */
	const char *says; /* the answer, or the message */
};

static const struct row rows[] = {
	{ "an answer", { WITH(2, "{}") }, FETTLE_OK, 1, "{}" },
	{ "busy, then well",
	  { "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", WITH(2, "{}") },
	  FETTLE_OK,
	  2,
	  "{}" },
	{ "three kinds of failure, then well",
	  { "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", WITH(9, "cut"), "", WITH(1, "x") },
	  FETTLE_OK,
	  4,
	  "x" },
	{ "given up",
	  { "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "",
	    "HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
	    WITH(2, "no") },
	  FETTLE_SYSTEM,
	  4,
	  "answers with status 500 (tried 4 times)" },
	{ "nobody there", { NULL }, FETTLE_SYSTEM, 0, "no answer from http://127.0.0.1:" },
	{ "refused: not tried again",
	  { "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n?" },
	  FETTLE_OK,
	  1,
	  "?" },
	{ "too slow, then well",
	  { "hang", WITH(2, "{}"), WITH(2, "{}"), WITH(2, "{}") },
	  FETTLE_OK,
	  ANY,
	  "{}" },
	{ "not HTTP", { "hello\n", "hello\n", "hello\n", "hello\n" }, FETTLE_SYSTEM, 4, "no answer from" },
};

static void what_may_go_better_is_tried_again(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_options o = { .user = "s3cret", .timeout = 0.3, .wait = 0.01, .tries = 4 };
		struct str answer = STR_INIT;
		struct err err = ERR_INIT;
		struct http *h = NULL;
		struct server s;
		enum fettle_status st;
		long status = 0;

		begin(&s, rows[i].answers);
		o.url = s.url;
		st = http_new(&h, &o, &err);
		if (st == FETTLE_UNSUPPORTED) {
			print_message("SKIPPED: built without libcurl\n");
			end(&s);
			skip();
		}
		assert_ok(st, err);
		st = http_call(h, "POST", "/v1/x", "{}", &status, &answer, &err);
		http_free(h);
		end(&s);
		if (st != rows[i].st || (rows[i].heard != ANY && s.heard != rows[i].heard) ||
		    !strstr(st ? err.msg : answer.s, rows[i].says) || strstr(err.msg, "s3cret"))
			fail_msg("%s: status %d, heard %zu, '%s'", rows[i].why, (int)st, s.heard,
				 st ? err.msg : answer.s);
		if (s.heard) { /* token as user, no password: base64 of "s3cret:" */
			assert_non_null(strstr(s.last, "POST /v1/x HTTP/1.1\r\n"));
			assert_non_null(strstr(s.last, "Authorization: Basic czNjcmV0Og==\r\n"));
			assert_non_null(strstr(s.last, "Content-Type: application/json\r\n"));
		}
		str_release(&answer);
	}
}

/* waits double, and vary: many clients must not come back together */
static void waits_grow_and_vary(void **state)
{
	static const char *const nobody[] = { NULL };
	double took[6];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(took); i++) {
		struct http_options o = { .timeout = 1, .wait = 0.02, .tries = 4, .seed = i };
		struct str answer = STR_INIT;
		struct err err = ERR_INIT;
		struct http *h = NULL;
		struct server s;
		long status;

		begin(&s, nobody);
		end(&s);
		o.url = s.url;
		if (http_new(&h, &o, &err) == FETTLE_UNSUPPORTED)
			skip();
		took[i] = clock_now();
		assert_int_equal(http_call(h, "GET", "/", NULL, &status, &answer, &err), FETTLE_SYSTEM);
		took[i] = clock_now() - took[i];
		assert_int_equal(http_tries(h), 4);
		assert_true(took[i] >=
			    0.5 * (0.02 + 0.04 + 0.08)); /* how long at most depends on the machine */
		http_free(h);
		str_release(&answer);
	}
	assert_true(took[0] != took[1] || took[1] != took[2]);
}

static bool at_once(void *self)
{
	(void)self;
	return true;
}

static void told_to_stop_it_stops(void **state)
{
	static const char *const nobody[] = { NULL };
	struct http_options o = { .wait = 1000, .tries = 4 };
	struct str answer = STR_INIT;
	struct err err = ERR_INIT;
	struct http *h = NULL;
	struct server s;
	long status;

	(void)state;
	begin(&s, nobody);
	end(&s);
	o.url = s.url;
	if (http_new(&h, &o, &err) == FETTLE_UNSUPPORTED)
		skip();
	http_stop_by(h, at_once, NULL);
	assert_int_equal(http_call(h, "GET", "/", NULL, &status, &answer, &err), FETTLE_STOP);
	http_free(h);
	str_release(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_go_better_is_tried_again),
		cmocka_unit_test(waits_grow_and_vary),
		cmocka_unit_test(told_to_stop_it_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
