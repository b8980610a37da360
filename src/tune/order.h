/* The evaluation samples: in which order trials look at them, and what the fp32 model said to each. */
#ifndef TUNE_ORDER_H
#define TUNE_ORDER_H

#include "evaluate/hard.h"
#include "tune/lab.h"

struct order {
	size_t n;         /* samples */
	size_t batch;     /* of so many; see tune/seats.h */
	size_t *place;    /* sample number -> its place in the data's own order */
	size_t *sample;   /* and back */
	double *baseline; /* what each scored in fp32, by place; NULL when the metric is no mean */
	double *weights; /* what each is expected to lose, in parts of what others do, by place; NULL: not known */
	struct feed
		*feed; /* the hardest first, or at random; NULL: the metric needs them in their own order */
	struct hard *hard; /* NULL: at random, for verdicts by confidence */
};

/* Where the samples of a batch are; valid until the next call with the same scratch. */
const size_t *order_places(const struct order *o, const struct feed_batch *b, size_t **scratch);
/* A feed of these samples is to visit those at the places `wanted`, the first as early as possible: see seats_order(). */
enum fettle_status order_visit(const struct order *o, struct feed *feed, const size_t *wanted, size_t n,
			       struct err *err);
void order_free(struct order *o);

/* The fp32 model as a network that runs nothing where its outputs were kept (see struct examiner); for one thread. */
struct recall {
	struct lab *l;
	struct session *fp32; /* its own, when trials run side by side and what is asked for was not kept */
	struct buffer *rows;
	size_t *scratch;
};
struct network recall_network(struct recall *r);
void recall_release(struct recall *r);

#endif
