/*
 * A feed: a dataset in the form a model's inputs want it, batch by batch.
 *
 *	st = feed_open(&feed, dataset, specs, n_specs, &(struct feed_options){ .batch = 8 }, err);
 *	while (!(st = feed_next(feed, &b, err)))
 *		run(b.inputs, b.n_inputs), score(b.labels, b.valid);	(FETTLE_STOP is the end)
 *	feed_batch_release(&b);
 *	feed_free(feed);
 *
 * Which array feeds which input: the one of its name; for a model of one input (but for those that can be made) else `x`, or the only
 * array that is no label; test sets go by position. A model's input called `y` takes the array `y`, which
 * then is no label. What no array feeds is made, where there is an obvious rule (data/made.h).
 *
 * Types must be equal, except that these convert: float64 to float32, uint8 to float32, and integers and
 * bools to int32 and int64; every value is checked to fit.
 *
 * When a model fixes its first dimension to B, batches have exactly B rows, whatever was asked for: the
 * last is filled up with its last sample. Otherwise the last may be smaller.
 */
#ifndef DATA_FEED_H
#define DATA_FEED_H

#include "data/dataset.h"
#include "data/made.h"

struct feed_options {
	size_t batch; /* samples in a batch; 0: 1 */
	size_t bytes; /* fewer where their inputs take more than this; 0: any */
	size_t limit; /* samples in all; 0: every one */
	size_t whole; /* only whole groups of so many: what is left over is not used; 0 or 1: all are used */
	bool shuffle; /* take samples at random: the same ones, in the same order, for the same seed */
	uint64_t seed;
};

/* Start with FEED_BATCH_INIT; buffers are kept from one read to the next. */
struct feed_batch {
	struct tensor *inputs; /* parallel to the specs; borrowed from this batch */
	size_t n_inputs;
	size_t n;            /* rows of the inputs */
	size_t valid;        /* the first so many are samples, the rest padding */
	const size_t *index; /* which samples: valid numbers */
	/* Of the valid samples: int64 [valid, …] when stored as integers, else float64. No data (NULL) when
	 * the dataset has none. */
	struct tensor labels;
	struct tensor *outputs; /* expected outputs, as stored, `valid` rows; test sets only */
	size_t n_outputs;

	struct batch raw; /* these are private */
	struct buffer *converted, converted_labels;
	size_t *indices, cap, n_converted;
};
#define FEED_BATCH_INIT                                                                                      \
	{                                                                                                    \
		.n = 0                                                                                       \
	}

struct feed;

/* The dataset must outlive the feed; the specs (and their names) are copied. opt may be NULL. */
enum fettle_status feed_open(struct feed **out, const struct dataset *d, const struct input_spec *specs,
			     size_t n, const struct feed_options *opt, struct err *err);
/* The same samples, in an order of its own. */
struct feed *feed_twin(const struct feed *f);
void feed_free(struct feed *f);
/* Batches of at most so many samples from now on, from the first; unless the model fixes how many. */
void feed_limit_batch(struct feed *f, size_t most);

/* Which array feeds which of the model's inputs. */
size_t feed_n_inputs(const struct feed *f);
const struct input_spec *feed_input(const struct feed *f, size_t i);
const struct field *feed_field(const struct feed *f, size_t i); /* NULL: it is made ... */
enum made_rule feed_made(const struct feed *f, size_t i);       /* ... by this rule */
const struct dataset *feed_data(const struct feed *f);

size_t feed_samples(const struct feed *f); /* in one round */
size_t feed_batches(const struct feed *f);
size_t feed_batch_size(const struct feed *f);       /* of all but the last, which may have fewer samples */
size_t feed_sample(const struct feed *f, size_t i); /* the number of the i-th that is visited */
bool feed_has_labels(const struct feed *f);
/*
 * Labels are those of tokens from now on: where the data has none they are the next tokens of the input, and they are
 * -100 where the attention mask of the data is 0. Fails when there are neither labels nor tokens.
 */
enum fettle_status feed_label_tokens(struct feed *f, struct err *err);
/* The input that holds token numbers [N,T]; SIZE_MAX: none does. */
size_t feed_tokens(const struct feed *f);

enum fettle_status feed_next(struct feed *f, struct feed_batch *b, struct err *err);
void feed_rewind(struct feed *f);
/* Batch k of a round; does not move feed_next(). Thread-safe for different batches. */
enum fettle_status feed_read(const struct feed *f, size_t k, struct feed_batch *b, struct err *err);
/* From now on visits these samples (copied) in this order, and rewinds. */
enum fettle_status feed_set_order(struct feed *f, const size_t *order, size_t n, struct err *err);

void feed_batch_release(struct feed_batch *b);

#endif
