/*
 * Ranks on one machine that talk through sockets in the folder FETTLE_TEST_SOCKETS, so that sharing trials is tested without
 * MPI. Each is started with PMI_RANK and PMI_SIZE. A rank that dies does not end the others. FETTLE_TEST_SLOW=R: what
 * rank R sends after its first two messages arrives 30 seconds late.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tune/transport.h"

enum { MOST = 1 << 17, RANKS = 64, NAPS = 30000 };

static int sock;
static bool heard[RANKS], gone[RANKS];
static struct transport t;

static struct sockaddr_un address(int rank)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%d", getenv("FETTLE_TEST_SOCKETS"), rank);
	return a;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static bool is_slow(void)
{
	static int sent;
	const char *slow = getenv("FETTLE_TEST_SLOW");

	return slow && atoi(slow) == t.rank && sent++ >= 2;
}

static bool test_send(int to, const void *bytes, size_t n, const char **why)
{
	struct sockaddr_un a = address(to);
	char *message = malloc(n + sizeof(int));
	ssize_t sent;
	int naps = 0;

	if (is_slow())
		sleep(30);
	memcpy(message, &t.rank, sizeof(int));
	memcpy(message + sizeof(int), bytes, n);
	while ((sent = sendto(sock, message, n + sizeof(int), 0, (struct sockaddr *)&a, sizeof(a))) < 0 &&
	       errno == ENOENT && naps++ < NAPS) /* it has not begun yet */
		nap();
	free(message);
	*why = "nobody reads its socket";
	heard[to] = heard[to] || sent >= 0;
	return sent >= 0;
}

static bool nobody_reads(int rank)
{
	struct sockaddr_un a = address(rank);
	int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool refused = connect(probe, (struct sockaddr *)&a, sizeof(a)) && errno == ECONNREFUSED;

	close(probe);
	return refused;
}

/* a rank that was heard of, and whose socket nobody reads any more; -1: none */
static int newly_gone(void)
{
	int i;

	for (i = 0; i < t.size; i++)
		if (i != t.rank && heard[i] && !gone[i] && nobody_reads(i)) {
			gone[i] = true;
			return i;
		}
	return -1;
}

static enum transport_got test_receive(double seconds, int *from, void **bytes, size_t *n, const char **why)
{
	static char message[MOST];
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct timespec begun, now;

	*why = "";
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		double wait = seconds < 0.2 ? seconds : 0.2;
		ssize_t got =
			poll(&p, 1, (int)(1000 * wait) + 1) > 0 ? recv(sock, message, sizeof(message), 0) : 0;

		if (got > (ssize_t)sizeof(int)) {
			memcpy(from, message, sizeof(int));
			heard[*from] = true;
			*n = (size_t)got - sizeof(int);
			*bytes = malloc(*n + 1);
			memcpy(*bytes, message + sizeof(int), *n);
			return TRANSPORT_MESSAGE;
		}
		*from = newly_gone();
		if (*from >= 0)
			return TRANSPORT_GONE;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begun.tv_sec) + 1e-9 * (double)(now.tv_nsec - begun.tv_nsec) <
		 seconds);
	return TRANSPORT_NOTHING;
}

transport_entry fettle_transport;

const struct transport *fettle_transport(int abi, const char **why)
{
	struct sockaddr_un a;

	if (abi != TRANSPORT_ABI) {
		*why = "another ABI";
		return NULL;
	}
	t = (struct transport){ .rank = atoi(getenv("PMI_RANK")),
				.size = atoi(getenv("PMI_SIZE")),
				.here = 2,
				.send = test_send,
				.receive = test_receive };
	a = address(t.rank);
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || bind(sock, (struct sockaddr *)&a, sizeof(a))) {
		*why = strerror(errno);
		return NULL;
	}
	return &t;
}
