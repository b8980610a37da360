/*
 * RANK_SECONDS: what each op takes as a plan has it, whatever the mode, by a profile of the plan. For plans whose ops are all alike:
 * ops of one shape share their mean, which is less noisy. The history keeps it, so that a run that is resumed goes the same way.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tune/compare.h"
#include "tune/modes_impl.h"

static double elements(const struct lab *l, const char *value)
{
	const struct tensor *t = subject_shape(l->s, value);

	return t ? (double)tensor_count(t) : 0;
}

/* What an op reads and makes at run time, if the plan has it in integers between floats: conversions take time by that. */
static double converted(const struct lab *l, const struct plan *p, size_t param)
{
	const enum option_mode mode = l->t->space.v[param].options[p->choice[param]].mode;
	const struct node *n = l->s->m->nodes.v[l->t->node[param]];
	double sum = 0;
	size_t k;

	if (mode == OPTION_FP32 || mode == OPTION_WEIGHT)
		return 0;
	for (k = 0; k < n->n_in; k++)
		if (*n->in[k] && !model_init(l->s->m, n->in[k]))
			sum += elements(l, n->in[k]);
	return sum + elements(l, n->out[0]);
}

/* The node with what alone reads it, a bias or an activation: some kernels do that too, others leave it to a node. */
static double with_reader(const struct lab *l, const double *seconds, size_t param)
{
	const size_t node = l->t->node[param];
	const struct graph_index *g = &l->s->g;
	const struct node *reader = graph_only_user(g, l->s->m->nodes.v[node]->out[0]);
	const size_t at = reader && reader->n_out ? graph_value(g, reader->out[0]) : MAP_NONE;

	if (at == MAP_NONE || g->producer[at] == NO_NODE ||
	    tuning_param(l->t, (size_t)g->producer[at]) != MAP_NONE || l->s->ops.v[g->producer[at]].macs > 0)
		return seconds[node];
	return seconds[node] + seconds[g->producer[at]];
}

static bool same_shape(const struct lab *l, const struct plan *p, size_t a, size_t b)
{
	const struct space *s = &l->t->space;
	const struct op *x = &l->s->ops.v[l->t->node[a]], *y = &l->s->ops.v[l->t->node[b]];

	return s->v[a].type_id == s->v[b].type_id && x->inputs == y->inputs && x->outputs == y->outputs &&
	       x->macs == y->macs && /* and the same kernel */
	       s->v[a].options[p->choice[a]].mode == s->v[b].options[p->choice[b]].mode &&
	       s->v[a].options[p->choice[a]].setting == s->v[b].options[p->choice[b]].setting;
}

static double mean_of_shape(const struct lab *l, const struct plan *p, const double *own, size_t param)
{
	double sum = 0, n = 0;
	size_t i;

	for (i = 0; i < l->t->space.n_ops; i++)
		if (same_shape(l, p, i, param)) {
			sum += own[i];
			n++;
		}
	return sum / n;
}

static void add_ops(const struct lab *l, const struct plan *p, const struct mode_profile *profile,
		    struct op_order *out)
{
	const size_t n = l->t->space.n_ops;
	double *own = xcalloc(n + 1, sizeof(*own)), all = 0;
	size_t i;

	for (i = 0; i < n; i++)
		all += converted(l, p, i);
	for (i = 0; i < n; i++)
		own[i] = with_reader(l, profile->seconds, i) +
			 (all > 0 ? mode_converting(l, profile) * converted(l, p, i) / all : 0);
	for (i = 0; i < n; i++)
		op_order_add(out, i, mean_of_shape(l, p, own, i) / l->modes->fp32.total);
	free(own);
}

/* What conversions take is learnt from plans that are full of them, for the prices of modes; not from these. */
static enum fettle_status profile_apart(struct lab *l, struct model *m, struct mode_profile *out,
					struct err *err)
{
	struct line lines[CONVERSIONS];
	enum fettle_status st;

	memcpy(lines, l->modes->lines, sizeof(lines));
	st = mode_profile(l, m, out, NULL, err);
	memcpy(l->modes->lines, lines, sizeof(lines));
	return st;
}

static enum fettle_status measure(struct lab *l, const struct plan *p, struct op_order *out, struct err *err)
{
	struct mode_profile profile = { .seconds = NULL };
	const struct mode_profile *before = profile_of(l, p);
	struct model *m;
	enum fettle_status st = profile_fp32(l, err);

	if (!st && !plan_n_quantized(p, &l->t->space))
		before = &l->modes->fp32;
	if (!st && before) {
		add_ops(l, p, before, out);
		return FETTLE_OK;
	}
	if (!st)
		st = lab_model(l, p, WEIGHTS_ANY, &m, err);
	if (!st)
		st = profile_apart(l, m, &profile, err);
	if (!st)
		add_ops(l, p, &profile, out);
	free(profile.seconds);
	return st;
}

/* ---- what the history keeps of it ---- */

static char *key_of(const struct lab *l, const struct plan *p)
{
	char hash[FINGERPRINT_LEN];

	plan_hash(p, &l->t->space, hash);
	return xstrfmt("seconds of %s", hash);
}

bool known_scores(struct lab *l, const char *key, struct op_order *out)
{
	char *text = NULL, *at, *end;
	size_t i;

	if (!l->history || history_meta(l->history, key, &text, NULL) || !text)
		return false;
	for (i = 0, at = text; i < l->t->space.n_ops; i++, at = end) {
		const double seconds = strtod(at, &end);

		if (end == at)
			break;
		op_order_add(out, i, seconds);
	}
	free(text);
	if (i < l->t->space.n_ops)
		op_order_release(out);
	return i == l->t->space.n_ops;
}

enum fettle_status keep_scores(struct lab *l, const char *key, const struct op_order *o, struct err *err)
{
	struct str text = STR_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < o->n; i++)
		str_addf(&text, "%.6g ", o->score[i]);
	if (l->history && o->n)
		st = history_set_meta(l->history, key, text.s, err);
	str_release(&text);
	return st;
}

enum fettle_status rank_seconds(struct lab *l, const struct plan *p, struct op_order *out, struct err *err)
{
	enum fettle_status st;
	char *key;

	if (!lab_latency_counts(l))
		return FETTLE_OK;
	modes_of(l);
	key = key_of(l, p);
	if (known_scores(l, key, out)) {
		free(key);
		return FETTLE_OK;
	}
	st = measure(l, p, out, err);
	if (st == FETTLE_UNSUPPORTED ||
	    st == FETTLE_BACKEND) /* such a plan cannot run: nothing is known of it */
		st = FETTLE_OK;
	if (!st)
		st = keep_scores(l, key, out, err);
	free(key);
	return st;
}
