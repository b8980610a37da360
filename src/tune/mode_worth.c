/* Ops by what their integers are worth: by the time that they save for their error, and by what each gains alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tune/compare.h"
#include "tune/modes_impl.h"

/* Prices of an error that are tried: from next to none to more than any op is worth, each so many times the one before. */
enum { STEPS = 60 };
#define STEP 1.3
#define FIRST                                                                                                \
	1e-3 /* of the price at which the errors of all ops would cost as much as the fp32 model takes */

void modes_keep_errors(struct lab *l, const struct plan *p, const struct op_order *errors)
{
	struct modes *m = l->modes;
	size_t i;

	if (!m)
		return;
	if (!m->errors)
		m->errors = xcalloc(l->t->space.n_ops + 1, sizeof(*m->errors));
	memset(m->errors, 0, l->t->space.n_ops * sizeof(*m->errors));
	for (i = 0; i < errors->n; i++)
		m->errors[errors->op[i]] = fmax(errors->score[i], 0);
	plan_copy(&m->ranked, p);
}

/*
 * As the price of errors rises, the cheapest plan has ever fewer ops in integers: the capacities of its minimum cut grow on one side
 * only (of static ops; dynamic ones are on the other). The price at which an op leaves is the time that it saves, with those that
 * leave with it, for a unit of error.
 */
static void rank_worth(struct lab *l, const struct plan *p, double *score)
{
	const struct modes *m = l->modes;
	const size_t n = l->t->space.n_ops;
	struct plan q = PLAN_INIT;
	double all = 0, price;
	size_t i, k, left = 1;

	for (i = 0; i < n; i++)
		all += m->errors[i];
	for (k = 0, price = FIRST * m->fp32.total / all; k < STEPS && all > 0 && left; k++, price *= STEP) {
		solve_erring(l, p, m->errors, price, &q);
		left = plan_n_quantized(&q, &l->t->space);
		for (i = 0; i < n; i++)
			if (!(score[i] > 0) && plan_is_quantized(p, &l->t->space, i) &&
			    !plan_is_quantized(&q, &l->t->space, i))
				score[i] = 1 / price;
	}
	plan_release(&q);
}

static void rank_alone(struct lab *l, const struct plan *p, double *score)
{
	size_t i;

	price_alone(l, p, score);
	for (i = 0; i < l->t->space.n_ops; i++)
		score[i] = 1 - (l->modes->fp32.total + score[i]) / l->modes->original;
}

static void rank_dynamic(struct lab *l, const struct plan *p, double *score)
{
	const struct space *space = &l->t->space;
	struct plan dynamic = PLAN_INIT;
	size_t i;

	plan_copy(&dynamic, p);
	for (i = 0; i < space->n_ops; i++) {
		const unsigned o = mode_option(l, i, p, false, ASSIGN_DYNAMIC);

		if (o != NO_OPTION)
			dynamic.choice[i] = (uint16_t)o;
	}
	price_alone(l, &dynamic, score);
	for (i = 0; i < space->n_ops; i++)
		score[i] = mode_in(l, &dynamic, i) == ASSIGN_DYNAMIC ? -score[i] / l->modes->fp32.total
								     : -INFINITY;
	plan_release(&dynamic);
}

enum fettle_status rank_by_prices(struct lab *l, const struct plan *p, enum rank by, struct op_order *out,
				  struct err *err)
{
	const struct modes *m = l->modes;
	static const struct {
		const char *name;
		void (*rank)(struct lab *l, const struct plan *p, double *score);
	} kinds[] = { [RANK_WORTH] = { "worth", rank_worth },
		      [RANK_ALONE] = { "alone", rank_alone },
		      [RANK_DYNAMIC] = { "dynamic", rank_dynamic } };
	char hash[FINGERPRINT_LEN], *key;
	enum fettle_status st = FETTLE_OK;
	double *score;
	size_t i;

	if (!lab_latency_counts(l) || !m)
		return FETTLE_OK;
	plan_hash(p, &l->t->space, hash);
	key = xstrfmt("%s of %s", kinds[by].name, hash);
	score = xcalloc(l->t->space.n_ops + 1, sizeof(*score));
	if (!known_scores(l, key, out) && m->place && m->original > 0 &&
	    (by != RANK_WORTH || (m->errors && plan_equal(&m->ranked, p, &l->t->space)))) {
		kinds[by].rank(l, p, score);
		for (i = 0; i < l->t->space.n_ops; i++)
			op_order_add(out, i, score[i]);
		st = keep_scores(l, key, out, err);
	}
	free(score);
	free(key);
	return st;
}
