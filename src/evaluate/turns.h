/*
 * Timing several things against each other. They take turns, so that whatever disturbs the machine disturbs all alike,
 * and each round gives one ratio per contender (evaluate/race.h). What counts is robust twice over:
 *
 * - A run counts with the time that its thread spent on a CPU, as long as the thread never waited: then the rest of the
 *   elapsed time went to other processes.
 * - A turn is several runs, of all contenders as many, as long as the shortest is short, and counts with the shortest.
 *   The first run of a turn finds the caches full of another's data, and other processes can only make a run longer.
 *
 * How runs are made and where the time comes from is the caller's, so that all this is tested without a clock.
 */
#ifndef EVALUATE_TURNS_H
#define EVALUATE_TURNS_H

#include "base/err.h"
#include "evaluate/race.h"

#define LATENCY_CONFIDENCE 0.99
/* Speeds that differ by less count as equal. */
#define LATENCY_EQUAL 0.01

struct run_time {
	double elapsed, cpu; /* seconds; cpu: of the thread that made the run */
	bool waited;         /* the thread gave the CPU up by itself: cpu says nothing */
};

struct latency {
	double median, p90; /* seconds of one run: without what other processes took, and with it */
	double least;       /* of all runs, likewise without */
	size_t runs;
	struct race_ratio speedup; /* against the first; the interval holds it with LATENCY_CONFIDENCE */
};

struct turns {
	size_t n; /* contenders */
	enum fettle_status (*run)(void *self, size_t which, struct run_time *out, struct err *err);
	double (*now)(void *self);
	bool (*go_on)(void *self, double seconds); /* since it began; may be NULL. false: FETTLE_STOP */
	void *self;
	double seconds; /* at most, as soon as each had a few turns; with a width: enough turns for an interval */
	double undecided; /* while it is not certain which is faster: at most so many of their own, other processes aside */
	/*
	 * Ends before, once it is certain of each that it is faster or slower than the first, or equal within this (0.01:
	 * 1 %), and its interval is at most so wide (0.02: from 1.49 to 1.51). 0: takes all the time; is as wide as it is.
	 */
	double equal, width;
	/* Ends after one quiet round if the others take so many times as long as the first: how long precisely does not matter. 0: never. */
	double slower;
	double least; /* the shortest that a run of the first ever took: it tells how quiet the machine is; 0: not known */
	/* Contenders have run before, and a run of the first takes about so long: then none need be run just to see that. 0: warms up. */
	double warm;
};
enum fettle_status turns_take(const struct turns *t, struct latency *out, struct err *err);

#endif
