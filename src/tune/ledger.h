/* Trials in the history: what a resumed run finds again, and what is written of each that ends. */
#ifndef TUNE_LEDGER_H
#define TUNE_LEDGER_H

#include "evaluate/race.h"
#include "history/history.h"
#include "tune/search.h"

/* The result of the latest trial of the plan with that hash, as struct search_backend wants it; false: there is none. */
bool ledger_find(struct history *h, const char *hash, struct trial *out);
/* `plan` is its text, `text` describes it; `n_values` metrics have a value each. */
enum fettle_status ledger_write(struct history *h, const struct trial *t, const char *plan, const char *text,
				size_t n_values, struct err *err);
/* Which rank and worker ran it, where there are several. false: that is not kept. */
enum fettle_status ran_on_write(struct history *h, const struct trial *t, struct err *err);
bool ran_on_read(struct history *h, size_t number, int *rank, int *worker);
/* What the history keeps a trial's peak memory by, where that is an objective; free() it. */
char *footprint_key(size_t trial);

/* The speed-up of the result against fp32, with its interval. false: none is kept. */
enum fettle_status speedup_write(struct history *h, const struct race_ratio *r, struct err *err);
bool speedup_read(struct history *h, struct race_ratio *out);

#endif
