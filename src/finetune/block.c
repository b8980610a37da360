#include "finetune/block.h"

#include <stdlib.h>
#include <string.h>

void offers_init(struct offers *o, size_t nodes)
{
	int i;

	for (i = 0; i < N_OFFERS; i++)
		o->v[i] = rounding_new(nodes);
}

void offers_release(struct offers *o)
{
	int i;

	for (i = 0; i < N_OFFERS; i++)
		rounding_free(o->v[i]);
	*o = (struct offers){ { NULL } };
}

/* ---- which blocks there are ---- */

static bool any(const bool *v, int first, int last)
{
	while (first <= last)
		if (v[first++])
			return true;
	return false;
}

/* do two stretches of nodes belong to one block? */
static bool belong(const struct subject *s, const bool *wanted, const struct block *a, const struct block *b)
{
	const int block = s->ops.v[b->first].block;

	if (block >= 0 && s->ops.v[a->last].block == block)
		return true;
	return !any(wanted, a->first, a->last) || !any(wanted, b->first, b->last);
}

size_t block_list(const struct subject *s, const bool *wanted, struct block **out)
{
	VEC(struct block) blocks = { 0 };
	const int n = (int)s->m->nodes.n;
	struct cuts c;
	int first = 0;
	size_t i;

	graph_cuts(&s->g, true, &c);
	for (i = 0; i <= c.n; i++) {
		struct block b = { first, i < c.n ? c.after[i] : n - 1 };

		if (b.last < b.first)
			continue;
		first = b.last + 1;
		if (blocks.n && belong(s, wanted, &blocks.v[blocks.n - 1], &b))
			blocks.v[blocks.n - 1].last = b.last;
		else
			VEC_PUSH(&blocks, b);
	}
	cuts_release(&c);
	*out = blocks.v;
	return blocks.n;
}

/* ---- what is added after an op ---- */

/* the other operand of an Add, or a Sum of two, that alone reads the value; NULL: there is none */
static const char *other_operand(const struct graph_index *g, const char *value, const struct node **add)
{
	*add = graph_only_user(g, value);
	if (!*add || !(node_is(*add, "Add") || node_is(*add, "Sum")) || (*add)->n_in != 2 ||
	    strcmp((*add)->in[0], (*add)->in[1]) == 0)
		return NULL;
	return (*add)->in[strcmp((*add)->in[0], value) == 0];
}

bool find_aside(const struct subject *s, size_t node, const struct model *quantized, struct aside *out)
{
	const char *value = s->m->nodes.v[node]->out[0], *other;
	const struct tensor *shape = shapes_find(&s->shapes, value), *others;
	const struct node *add;
	struct graph_index g;

	other = other_operand(&s->g, value, &add);
	if (other && model_init(s->m, other)) /* a bias comes first */
		other = other_operand(&s->g, add->out[0], &add);
	if (!other || model_init(s->m, other))
		return false;
	others = shapes_find(&s->shapes, other);
	if (!shape || !others || others->dtype != DT_F32 || !tensor_same_shape(shape, others))
		return false;
	graph_index_init(&g, quantized);
	*out = (struct aside){ other, quantized_name(&g, other) };
	graph_index_release(&g);
	return true;
}

/* ---- choosing ---- */

struct chooser {
	struct block_work w;
	struct rounding now; /* only points to what others own */
	double error;        /* of that */
};

enum fettle_status block_error(struct block_work *w, const struct rounding *r, double *out, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st = quantize_rounded(w->part.source, w->plan, r, NULL, &m, err);

	if (!st)
		st = part_error(&w->part, m, out, err);
	model_free(m);
	return st;
}

static enum fettle_status measure(struct chooser *c, double *out, struct err *err)
{
	return block_error(&c->w, &c->now, out, err);
}

/* the op takes what is best, given the others; *changed if that is not what it has */
static enum fettle_status choose(struct chooser *c, size_t node, bool *changed, struct err *err)
{
	struct rounded **at = &c->now.v[node], *best = *at;
	enum fettle_status st = FETTLE_OK;
	int i;

	*changed = false;
	for (i = -1; i < N_OFFERS && !st; i++) {
		struct rounded *offer = i < 0 ? NULL : c->w.offers->v[i]->v[node];
		double e = 0;

		/* with SelectiveUpdate off nothing goes back to the nearest */
		if (offer == best || (!offer && (i >= 0 || !c->w.plan->recipes.finetune.selective_update)))
			continue;
		*at = offer;
		st = measure(c, &e, err);
		if (!st && e < c->error) {
			c->error = e;
			best = offer;
			*changed = true;
		}
	}
	*at = best;
	return st;
}

/* one op after the other, until all have looked and none has changed */
static enum fettle_status choose_all(struct chooser *c, struct err *err)
{
	const struct block *b = c->w.b;
	size_t ops = 0, idle = 0, i, k;
	enum fettle_status st = FETTLE_OK;
	bool changed;

	for (i = (size_t)b->first; i <= (size_t)b->last; i++)
		for (k = 0; k < N_OFFERS; k++)
			if (c->w.offers->v[k]->v[i]) {
				ops++;
				break;
			}
	/* the error falls with each change, so this ends */
	for (i = (size_t)b->first; idle < ops && !st; i = i < (size_t)b->last ? i + 1 : (size_t)b->first) {
		for (k = 0; k < N_OFFERS && !c->w.offers->v[k]->v[i];)
			k++;
		if (k == N_OFFERS)
			continue;
		st = choose(c, i, &changed, err);
		idle = changed ? 1 : idle + 1;
	}
	return st;
}

static void forget(struct chooser *c)
{
	const struct block *b = c->w.b;

	memset(c->now.v + b->first, 0, (size_t)(b->last - b->first + 1) * sizeof(struct rounded *));
}

/* all that have learned together take what they learned, if that is better; *out is the error then */
static enum fettle_status try_joint(struct chooser *c, double *out, struct err *err)
{
	const struct rounding *joint = c->w.offers->v[OFFER_JOINT];
	struct rounded **before = xcalloc(c->now.n, sizeof(*before));
	enum fettle_status st;
	size_t i;

	memcpy(before, c->now.v, c->now.n * sizeof(*before));
	for (i = 0; i < joint->n; i++)
		if (joint->v[i])
			c->now.v[i] = joint->v[i];
	st = measure(c, out, err);
	if (!st && *out < c->error)
		c->error = *out;
	else
		memcpy(c->now.v, before, c->now.n * sizeof(*before));
	free(before);
	return st;
}

/*
 * What the biases of ops gain when they have learned together is fitted again, op by op, so that each op's mean output is
 * right: the block's error hardly shows that, but what comes after the block does.
 */
static enum fettle_status fit_joint(struct chooser *c, struct err *err)
{
	struct rounding *joint = c->w.offers->v[OFFER_JOINT], *all = rounding_new(joint->n);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	part_empty(&c->w.part); /* two captures would not fit the cache */
	for (i = 0; i < joint->n; i++)
		all->v[i] = joint->v[i] ? joint->v[i] : c->now.v[i];
	for (i = 0; i < joint->n && !st; i++) {
		if (!joint->v[i])
			continue;
		st = finetune_shift(c->w.plan, c->w.part.source, all, i, err);
		joint->v[i] = NULL;
		if (!st && all->v[i])
			rounding_set(joint, i, all->v[i]);
	}
	rounding_free(all);
	return st;
}

/* learns together, and chooses again */
static enum fettle_status learn_joint(struct chooser *c, struct finetune_block *report, struct err *err)
{
	enum fettle_status st = block_learn(&c->w, &c->now, &report->left, err);

	if (st || report->left)
		return st;
	if (c->w.plan->recipes.finetune.update_bias)
		st = fit_joint(c, err);
	if (!st)
		st = part_refill(&c->w.part, err);
	if (!st)
		st = try_joint(c, &report->joint, err);
	return st ? st : choose_all(c, err);
}

enum fettle_status block_choose(const struct finetune_source *s, const struct block_of *of,
				struct model *quantized, struct rounding *r, struct finetune_block *report,
				struct err *err)
{
	struct chooser c = { .w = { .plan = of->plan, .b = of->b, .offers = of->offers },
			     .now = { .n = r->n } };
	const size_t first = (size_t)of->b->first, end = (size_t)of->b->last + 1;
	enum fettle_status st;
	size_t i;

	c.now.v = xcalloc(r->n, sizeof(struct rounded *));
	memcpy(c.now.v, r->v, r->n * sizeof(struct rounded *));
	st = part_open(&c.w.part, s,
		       &(struct part_of){ first, end, &of->plan->recipes.finetune, .all = false }, quantized,
		       err);
	if (st)
		goto out;
	forget(&c);
	st = measure(&c, &report->before, err);
	for (i = first; i < end; i++)
		if (r->v[i]) /* as was offered */
			c.now.v[i] = of->offers->v[OFFER_TUNED]->v[i];
	if (!st)
		st = measure(&c, &report->layered, err);
	c.error = report->layered;
	if (!st)
		st = choose_all(&c, err);
	if (!st)
		st = learn_joint(&c, report, err);
	if (st)
		goto out;
	report->after = c.error;
	report->kept = of->plan->recipes.finetune.selective_update && !(c.error < report->before);
	if (report->kept)
		forget(&c);
	for (i = first; i < end; i++) {
		if (!c.now.v[i])
			r->v[i] = NULL;
		else if (!r->v[i] || c.now.v[i] != of->offers->v[OFFER_TUNED]->v[i])
			rounding_set(r, i, c.now.v[i]);
	}
out:
	part_close(&c.w.part);
	free(c.now.v);
	return st;
}
