/*
 * Which plans a strategy will ask for next, so that workers with nothing to do can run them ahead. The strategy runs again, on
 * another search that answers with what this one knows and then with guesses; what it asks for on guesses is what may come.
 * Several guesses are followed, the likeliest first: of a bisection both halves, then their halves. A wrong guess costs the
 * time of a worker that had nothing else to do, and changes nothing: the search counts only what its strategy asks for.
 */
#ifndef TUNE_FORESEE_H
#define TUNE_FORESEE_H

#include "tune/search_impl.h"

/* What the backend answered to questions that are no trials, in case the strategy runs again. */
struct memo_entry {
	int kind;
	struct op_order order;
	struct plan plan;
	double value;
};
enum memo_kind {
	MEMO_PLAN, /* none: the plan itself */
	MEMO_RANK, /* and after it a kind for each enum rank */
	MEMO_ESTIMATE = MEMO_RANK + 16,
	MEMO_FASTEST, /* and within */
	MEMO_OBJECTIVE = MEMO_FASTEST + 2,
};
/* Copies the entry; does nothing where no plan is ever foreseen. */
void memo_keep(struct search *s, int kind, const struct plan *p, const struct memo_entry *e);
const struct memo_entry *memo_find(const struct search *s, int kind,
				   const struct plan *p); /* NULL: not known */
void memo_release(struct memo *m);

/*
 * Up to n plans that are likely to be asked for after the trials in progress, the likeliest first. Not those in progress, and none
 * that was tried or has run ahead to its end. Returns how many.
 */
size_t foresee(struct search *s, const struct trial *in_progress, size_t n_in_progress, struct plan *out,
	       size_t n);

/* The plan has run ahead to its end. */
void foresee_no_more(struct search *s, const struct plan *p);

#endif
