/*
 * An op's mode is two bits: "not dynamic" and "static". Every price is then one that a minimum cut can express (V. Kolmogorov
 * and R. Zabih, "What energy functions can be minimized via graph cuts?", PAMI 26, 2004), so the cut of a network with a few
 * nodes per op and value is the best assignment, whatever the shape of the graph.
 */
#include "tune/assign.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tune/mincut.h"

#define UNIT 1e-12    /* seconds; capacities are integers */
#define FORBIDDEN 100 /* seconds that a mode costs which is not on offer: more than any model takes */

double assign_cost(const struct assign_problem *p, const enum assign_mode *mode)
{
	double sum = 0;
	size_t i, k;

	for (i = 0; i < p->n_ops; i++)
		sum += p->ops[i].seconds[mode[i]];
	for (i = 0; i < p->n_values; i++) {
		const struct assign_value *v = &p->values[i];
		bool made_int = v->maker != ASSIGN_OUTSIDE && mode[v->maker] == ASSIGN_STATIC, ints = false,
		     floats = v->floats_read, at_run_time = false;

		for (k = 0; k < v->n_readers; k++) {
			ints |= mode[v->readers[k]] == ASSIGN_STATIC;
			floats |= mode[v->readers[k]] != ASSIGN_STATIC;
			at_run_time |= mode[v->readers[k]] == ASSIGN_DYNAMIC;
		}
		sum += (!made_int && ints ? v->to_int : 0) + (made_int && floats ? v->to_float : 0) +
		       (at_run_time ? v->at_run_time : 0);
	}
	for (i = 0; i < p->n_pairs; i++)
		if (mode[p->pairs[i].op[0]] == ASSIGN_STATIC && mode[p->pairs[i].op[1]] == ASSIGN_STATIC)
			sum -= p->pairs[i].gain;
	return sum;
}

static int64_t units(double seconds)
{
	return llround(fmin(seconds, FORBIDDEN) / UNIT);
}

/* what it costs that a bit is set, against that it is not */
static void add_bit(struct mincut *c, size_t bit, int64_t cost)
{
	if (cost > 0)
		mincut_edge(c, bit, CUT_SINK, cost);
	else if (cost < 0)
		mincut_edge(c, CUT_SOURCE, bit, -cost);
}

/* A bit that is set only if all (or, if any is) of its readers' bits are. */
static size_t bit_of_all(struct mincut *c, const struct assign_value *v, const size_t *bits)
{
	size_t all = mincut_node(c), k;

	for (k = 0; k < v->n_readers; k++)
		mincut_edge(c, all, bits[v->readers[k]], CUT_NEVER);
	return all;
}

static size_t bit_of_any(struct mincut *c, const struct assign_value *v, const size_t *bits)
{
	size_t any = mincut_node(c), k;

	for (k = 0; k < v->n_readers; k++)
		mincut_edge(c, bits[v->readers[k]], any, CUT_NEVER);
	return any;
}

void assign_best(const struct assign_problem *p, enum assign_mode *mode)
{
	struct mincut *c = mincut_new();
	size_t *not_dynamic = xcalloc(p->n_ops + 1, sizeof(*not_dynamic)),
	       *is_static = xcalloc(p->n_ops + 1, sizeof(*is_static)), i;

	for (i = 0; i < p->n_ops; i++) {
		const double *t = p->ops[i].seconds;

		not_dynamic[i] = mincut_node(c);
		is_static[i] = mincut_node(c);
		add_bit(c, not_dynamic[i], units(t[ASSIGN_FP32]) - units(t[ASSIGN_DYNAMIC]));
		add_bit(c, is_static[i], units(t[ASSIGN_STATIC]) - units(t[ASSIGN_FP32]));
		mincut_edge(c, is_static[i], not_dynamic[i], CUT_NEVER); /* static is not dynamic */
	}
	for (i = 0; i < p->n_values; i++) {
		const struct assign_value *v = &p->values[i];
		size_t maker = v->maker == ASSIGN_OUTSIDE ? CUT_SINK : is_static[v->maker];

		if (v->n_readers && v->to_int > 0)
			mincut_edge(c, bit_of_any(c, v, is_static), maker, units(v->to_int));
		if (maker != CUT_SINK && v->to_float > 0)
			mincut_edge(c, maker, v->floats_read ? CUT_SINK : bit_of_all(c, v, is_static),
				    units(v->to_float));
		if (v->n_readers && v->at_run_time > 0)
			mincut_edge(c, CUT_SOURCE, bit_of_all(c, v, not_dynamic), units(v->at_run_time));
	}
	for (i = 0; i < p->n_pairs; i++) { /* the first gains it, and loses it if the second is not static */
		const struct assign_pair *pair = &p->pairs[i];

		add_bit(c, is_static[pair->op[0]], -units(pair->gain));
		mincut_edge(c, is_static[pair->op[0]], is_static[pair->op[1]], units(pair->gain));
	}
	mincut_solve(c);
	for (i = 0; i < p->n_ops; i++)
		mode[i] = mincut_at_source(c, is_static[i])     ? ASSIGN_STATIC
			  : mincut_at_source(c, not_dynamic[i]) ? ASSIGN_FP32
								: ASSIGN_DYNAMIC;
	free(not_dynamic);
	free(is_static);
	mincut_free(c);
}
