/*
 * How the ranks of a job, processes on one machine or several, send each other messages. A plug-in library brings it:
 * src/dist has the one for MPI. Only the thread that opened it may use it.
 */
#ifndef TUNE_TRANSPORT_H
#define TUNE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#define TRANSPORT_ABI 1
#define TRANSPORT_ENTRY "fettle_transport"

enum transport_got {
	TRANSPORT_NOTHING, /* in the time given */
	TRANSPORT_MESSAGE,
	TRANSPORT_GONE,   /* rank *from has died; nothing more is heard of it */
	TRANSPORT_BROKEN, /* nothing can be received any more, and *why says why */
};

struct transport {
	int rank, size; /* which of how many this is */
	int here;       /* how many of them are on this machine */
	/* False: rank `to` cannot be reached, and *why says why. Waits until the bytes may be used again. */
	bool (*send)(int to, const void *bytes, size_t n, const char **why);
	/* The next message from any rank, waiting for at most so many seconds without using the CPU. *bytes is the caller's to
	 * free(). */
	enum transport_got (*receive)(double seconds, int *from, void **bytes, size_t *n, const char **why);
};

/* What the plug-in exports under the name TRANSPORT_ENTRY. NULL: *why says why. It is closed when the process ends. */
typedef const struct transport *transport_entry(int abi, const char **why);

#endif
