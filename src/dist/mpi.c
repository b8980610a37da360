/*
 * The ranks of an MPI job as a struct transport: fettle_mpi.so, which tune/transport.c loads under mpirun. Built by
 * 'make mpi' with the compiler of the MPI that is used, Open MPI or MPICH; knows nothing else of fettle.
 */
#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tune/transport.h"

/* ULFM: ranks go on when others have died, where mpirun lets them (Open MPI 5: --with-ft ulfm). MPICH declares it, but ends. */
#if defined(OPEN_MPI) && OPEN_MPI && defined(MPIX_ERR_PROC_FAILED)
#define SURVIVES 1
#else
#define SURVIVES 0
#endif

enum { TAG = 1, LOOK_EVERY = 50 };

/* A process has one MPI. */
static struct state {
	struct transport t;
	MPI_Comm comm;
	bool open, own; /* own: MPI was started here, and is ended here */
	unsigned polls;
	double heard; /* when the last message came */
	bool lost;    /* some rank has died: MPI_Finalize() would wait for it */
	char why[MPI_MAX_ERROR_STRING];
#if SURVIVES
	int acked, known_dead; /* deaths that MPI has told, and those of them that were passed on */
#endif
} mpi;

static const char *reason(int code)
{
	int n = 0;

	if (MPI_Error_string(code, mpi.why, &n) != MPI_SUCCESS)
		snprintf(mpi.why, sizeof(mpi.why), "MPI error %d", code);
	return mpi.why;
}

/* ---- dead ranks ---- */

#if SURVIVES
/* A rank that has died and was not passed on yet; -1: none. `more`: MPI says that some have. */
static int newly_dead(bool more)
{
	MPI_Group all, dead;
	int first, rank = -1;

	if (!more && mpi.known_dead == mpi.acked)
		return -1;
	if (more)
		MPIX_Comm_failure_ack(mpi.comm);
	MPIX_Comm_failure_get_acked(mpi.comm, &dead);
	MPI_Group_size(dead, &mpi.acked);
	if (mpi.acked > mpi.known_dead) {
		first = mpi.known_dead++;
		MPI_Comm_group(mpi.comm, &all);
		MPI_Group_translate_ranks(dead, 1, &first, all, &rank);
		MPI_Group_free(&all);
		mpi.lost = true;
	}
	MPI_Group_free(&dead);
	return rank;
}

static bool is_death(int code)
{
	int class = 0;

	MPI_Error_class(code, &class);
	return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING;
}
#else
static int newly_dead(bool more)
{
	(void)more;
	return -1;
}

static bool is_death(int code)
{
	(void)code;
	return false;
}
#endif

/* ---- messages ---- */

static bool mpi_send(int to, const void *bytes, size_t n, const char **why)
{
	int code = MPI_Send(bytes, (int)n, MPI_BYTE, to, TAG, mpi.comm);

	if (code == MPI_SUCCESS)
		return true;
	*why = is_death(code) ? "it has died" : reason(code);
	return false;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* MPI's own waiting would use up the CPU that trials need, and so would looking too often: the longer nothing has come, the
 * longer the next message may wait. */
static void nap(double until)
{
	const double start = now();
	double seconds = (start - mpi.heard) / 50;

	seconds = seconds < 1e-4 ? 1e-4 : seconds > 2e-3 ? 2e-3 : seconds;
	seconds = seconds > until - start ? until - start : seconds;
	if (seconds > 0)
		nanosleep(&(struct timespec){ .tv_nsec = (long)(seconds * 1e9) }, NULL);
}

static enum transport_got take(const MPI_Status *ready, int *from, void **bytes, size_t *n, const char **why)
{
	int size, code;

	MPI_Get_count(ready, MPI_BYTE, &size);
	*from = ready->MPI_SOURCE;
	*n = (size_t)size;
	*bytes = malloc(*n + 1);
	if (!*bytes) {
		*why = "out of memory";
		return TRANSPORT_BROKEN;
	}
	code = MPI_Recv(*bytes, size, MPI_BYTE, *from, TAG, mpi.comm, MPI_STATUS_IGNORE);
	mpi.heard = now();
	if (code == MPI_SUCCESS)
		return TRANSPORT_MESSAGE;
	free(*bytes);
	*bytes = NULL;
	*why = reason(code);
	return is_death(code) ? TRANSPORT_GONE : TRANSPORT_BROKEN;
}

static enum transport_got mpi_receive(double seconds, int *from, void **bytes, size_t *n, const char **why)
{
	const double until = now() + seconds;

	for (;;) {
		MPI_Status status;
		int there = 0, code = MPI_Iprobe(MPI_ANY_SOURCE, TAG, mpi.comm, &there, &status);

		if (code == MPI_SUCCESS && there)
			return take(&status, from, bytes, n, why);
		/* MPI_Iprobe() need not tell */
		*from = newly_dead((code != MPI_SUCCESS && is_death(code)) || ++mpi.polls % LOOK_EVERY == 0);
		if (*from >= 0)
			return TRANSPORT_GONE;
		if (code != MPI_SUCCESS && !is_death(code)) {
			*why = reason(code);
			return TRANSPORT_BROKEN;
		}
		if (now() >= until)
			return TRANSPORT_NOTHING;
		nap(until);
	}
}

/* ---- opening and closing ---- */

static int ranks_on_this_machine(void)
{
	MPI_Comm here;
	int n = 1;

	if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) ==
	    MPI_SUCCESS) {
		MPI_Comm_size(here, &n);
		MPI_Comm_free(&here);
	}
	return n;
}

static void finalize(void)
{
	int done = 1;

	MPI_Finalized(&done);
	if (!done && mpi.own && !mpi.lost)
		MPI_Finalize();
}

__attribute__((visibility("default"))) transport_entry fettle_transport;

const struct transport *fettle_transport(int abi, const char **why)
{
	int started = 0, level, code = MPI_SUCCESS;

	if (abi != TRANSPORT_ABI) {
		*why = "it was built for another version of fettle; build it again with 'make mpi'";
		return NULL;
	}
	if (mpi.open)
		return &mpi.t;
	MPI_Initialized(&started);
	if (!started) {
		code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
		mpi.own = true;
		atexit(finalize);
	}
	if (code == MPI_SUCCESS)
		code = MPI_Comm_dup(MPI_COMM_WORLD, &mpi.comm);
	if (code != MPI_SUCCESS) {
		*why = reason(code);
		return NULL;
	}
	MPI_Comm_set_errhandler(mpi.comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(mpi.comm, &mpi.t.rank);
	MPI_Comm_size(mpi.comm, &mpi.t.size);
	mpi.t.here = ranks_on_this_machine();
	mpi.t.send = mpi_send;
	mpi.t.receive = mpi_receive;
	mpi.open = true;
	return &mpi.t;
}
