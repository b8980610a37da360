/*
 * The batches of a feed, read ahead in a thread of their own where reading takes work: images are decoded while the model runs.
 *
 *	struct ahead *a = ahead_new(feed);
 *	while (!(st = ahead_next(a, &b, err)))		(FETTLE_STOP is the end)
 *		run(b->inputs);				b is valid until the next call but one
 *	ahead_free(a);					also before the end
 *
 * Batches, their order and errors are those of feed_read(feed, 0), feed_read(feed, 1), …; an error comes when its batch is asked for. At
 * most AHEAD_BATCHES are in memory. The feed must not be changed meanwhile.
 */
#ifndef DATA_AHEAD_H
#define DATA_AHEAD_H

#include "data/feed.h"

enum { AHEAD_BATCHES = 4, AHEAD_IN_USE = 2 }; /* the former with those that are in use */

struct ahead;

struct ahead *ahead_new(const struct feed *f);
enum fettle_status ahead_next(struct ahead *a, struct feed_batch **out, struct err *err);
void ahead_free(struct ahead *a); /* NULL does nothing */

#endif
