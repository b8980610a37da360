/*
 * Weight-only weights as the runtime reads them: made once per weight and setting, and kept by what they were made from. Those
 * of algorithms that need no data are made when a plan is carried out; the others are knowledge (tune/learn.h makes them), and a
 * workspace keeps them in files.
 */
#ifndef QUANTIZE_BLOCKS_H
#define QUANTIZE_BLOCKS_H

#include "model/model.h"
#include "space/qplan.h"

/* In the layout of MatMulNBits: see blockwise/blockwise.h. */
struct block_packed {
	struct block_format format;
	int64_t outputs, inputs;
	struct tensor codes, scales, zeros; /* zeros without data: symmetric */
	const struct late
		*spilled; /* [3]: where their bytes are instead, in that order; NULL: they are in memory */
};

struct block_packed block_packed_shape(const struct block_format *f, int64_t outputs,
				       int64_t inputs); /* no data yet */
/* What its codes mean, [outputs, inputs]; free() *out. `what` is for the message where memory does not suffice. */
enum fettle_status block_packed_floats(const struct block_packed *w, const char *what, float **out,
				       struct err *err);

struct block_store;
struct block_store *block_store_new(void);
void block_store_free(struct block_store *s);
const struct block_packed *block_store_find(const struct block_store *s,
					    const char *key); /* NULL: not there */

/* Which input of a node is its weight; and does that lie as [outputs, inputs]? So does a table. */
size_t block_input(const struct node *n);
bool block_turned(const struct node *n);
/* Does an op have the same numbers as its weight that a table has, either way round? */
bool block_tied(struct model *m, const struct node *table, const struct node *n);
/* A matrix as [outputs, inputs]: itself, or a copy that becomes *own; free() that. */
enum fettle_status block_rows(const struct tensor *t, bool turned, const float **rows, float **own,
			      struct err *err);
/* Does the algorithm need to see what the op reads? */
bool block_needs_data(const struct block_setting *s);
/* What it is kept by: the weight's name, how it lies, the setting. The level, which changes no number, is not part of it. free() it. */
char *block_key(const struct node *n, const struct block_setting *s);
/* Makes a node's weight under a setting and keeps it. `seen` may be NULL if block_needs_data() is not. */
enum fettle_status block_store_make(struct block_store *s, struct model *m, const struct node *n,
				    const struct block_setting *how, const struct block_seen *seen,
				    struct err *err);

/* The same from a weight's bytes; `name` is for messages. */
enum fettle_status block_store_put(struct block_store *s, const char *key, const char *name,
				   const struct tensor *t, bool turned, const struct block_setting *how,
				   const struct block_seen *seen, struct err *err);
/* Keeps a copy in a file that goes with the store, and no more than its shapes in memory. */
enum fettle_status block_store_spill(struct block_store *s, const char *key, const struct block_packed *p,
				     struct err *err);

/* One of them in a file, and back. */
enum fettle_status block_store_save(const struct block_store *s, const char *key, const char *path,
				    struct err *err);
enum fettle_status block_store_load(struct block_store *s, const char *key, const char *path,
				    struct err *err);

#endif
