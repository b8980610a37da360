/*
 * Work beside trials that is cut into pieces which do not depend on each other, such as the scores of single ops: rank 0 and the
 * others take one after the other. How it is cut does not depend on how many there are, a piece has the same answer wherever it
 * is worked out, and answers are taken in the order of the pieces: so all that is made of them is the same at any number of ranks.
 *
 *	pieces_begin(&p, lab, PIECES_EFFECTS, what);		as open() reads it
 *	pieces_run(&p, list, n, take, self, err);		as often as one likes
 *	pieces_end(&p);
 */
#ifndef TUNE_PIECES_H
#define TUNE_PIECES_H

#include "base/str.h"
#include "tune/lab.h"
#include "tune/wire.h"

enum pieces_kind {
	PIECES_TRACES,  /* hessian.c */
	PIECES_EFFECTS, /* impact.c */
	PIECES_SWEEP,   /* sweep.c */
	PIECES_ERRORS,  /* rank.c */
	PIECES_KINDS
};

struct piece_work {
	/* All that the pieces need; on each rank, before its first. */
	enum fettle_status (*open)(struct lab *l, struct wire *what, void **out, struct err *err);
	enum fettle_status (*run)(void *self, size_t piece, struct str *answer, struct err *err);
	void (*close)(void *self);
};
extern const struct piece_work trace_work, effect_work, sweep_work, error_work;

/* One of these, as far as this rank has it open. */
struct pieces_opened {
	const struct piece_work *work;
	void *self; /* NULL: it is not open */
};
enum fettle_status pieces_open_here(struct pieces_opened *o, struct lab *l, enum pieces_kind kind,
				    const struct str *what, struct err *err);
void pieces_close(struct pieces_opened *o);

struct pieces {
	struct lab *l;
	enum pieces_kind kind;
	struct str what;
	uint64_t number; /* of this work; 0: there are no other ranks */
	struct pieces_opened here;
	double longest; /* seconds, of a piece that ran here */
};
/* Releases `what`. */
void pieces_begin(struct pieces *p, struct lab *l, enum pieces_kind kind, struct str what);
/* Opens it here, for who needs to know how many pieces there are; pieces_run() does otherwise. */
enum fettle_status pieces_open(struct pieces *p, struct err *err);
/* A plan, and how many batches it is scored on. */
struct str what_of_plan(const struct lab *l, const struct plan *plan, size_t batches);
/* Answers are read by `take`, one by one in the order of the list. Fails when a piece fails here: what others could not do is done
 * here. FETTLE_STOP: the lab was stopped. */
typedef void (*piece_fn)(void *self, size_t piece, struct wire *answer);
enum fettle_status pieces_run(struct pieces *p, const size_t *list, size_t n, piece_fn take, void *self,
			      struct err *err);
void pieces_end(struct pieces *p);

/* A piece_fn: the answer is a number, which goes into an array by piece. */
void take_score(void *scores, size_t piece, struct wire *answer);

#endif
