/*
 * Weight-only weights that data decides on. What their ops read is seen in one sweep for all of them, or as many sweeps as it takes
 * to stay within a budget of memory; each weight and setting is made once. A workspace keeps them, so that a run that is resumed,
 * and recover, have the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "space/plan_json.h"
#include "tune/facts.h"

/* Bytes of what is kept of one sweep. */
#define SEEN_BYTES ((size_t)1 << 30)

/* the nodes whose weights are seen in the same sweep */
struct sweep {
	VEC(struct gram_input) inputs;
	size_t bytes;
};

static struct gram_input input_of(const struct facts *f, size_t node)
{
	const struct node *n = f->v->s->m->nodes.v[node];

	return (struct gram_input){ n->in[0], f->v->s->ops.v[node].inputs, op_input_turned(n) };
}

static bool is_seen_op(const struct facts *f, size_t node)
{
	const struct op *op = &f->v->s->ops.v[node];

	return op->modes & MODE_WEIGHT && op->rule->kind != OP_TABLE;
}

/* do they read the same weight the same way round? Then it is one weight, and all that they read counts. */
static bool same_weight(const struct facts *f, size_t a, size_t b)
{
	const struct node *x = f->v->s->m->nodes.v[a], *y = f->v->s->m->nodes.v[b];

	return is_seen_op(f, b) && strcmp(x->in[1], y->in[1]) == 0 &&
	       op_weight_turned(x) == op_weight_turned(y);
}

static bool has_input(const struct sweep *s, const struct gram_input *in)
{
	size_t i;

	for (i = 0; i < s->inputs.n; i++)
		if (strcmp(s->inputs.v[i].value, in->value) == 0 && s->inputs.v[i].turned == in->turned)
			return true;
	return false;
}

static void want_node(struct sweep *s, const struct facts *f, size_t node)
{
	size_t i;

	for (i = 0; i < f->v->s->ops.n; i++) {
		struct gram_input in;

		if (!same_weight(f, node, i))
			continue;
		in = input_of(f, i);
		if (has_input(s, &in))
			continue;
		VEC_PUSH(&s->inputs, in);
		s->bytes += gram_bytes(&in);
	}
}

/*
 * The sweep that sees what this node reads: sweeps are over the nodes in order, as many as the budget allows, whatever a plan
 * needs of them. So a weight does not depend on the plan.
 */
static void sweep_of(const struct facts *f, size_t node, struct sweep *out)
{
	size_t i;

	for (i = 0; i < f->v->s->ops.n; i++) {
		struct sweep before = { .bytes = out->bytes };

		if (!is_seen_op(f, i))
			continue;
		before.inputs.n = out->inputs.n;
		want_node(out, f, i);
		if (out->bytes <= SEEN_BYTES || !before.inputs.n)
			continue;
		if (i > node) { /* the node was among those before */
			out->inputs.n = before.inputs.n;
			return;
		}
		out->inputs.n = 0; /* the next sweep begins with this one */
		out->bytes = 0;
		want_node(out, f, i);
	}
}

/* are these what the last sweep saw? */
static bool is_seen(const struct facts *f, const struct sweep *s)
{
	size_t i;

	for (i = 0; i < s->inputs.n; i++)
		if (!grams_find(f->grams, &s->inputs.v[i]))
			return false;
	return f->grams;
}

static enum fettle_status see(struct learner *l, struct facts *f, size_t node, struct err *err)
{
	struct sweep s = { .bytes = 0 };
	enum fettle_status st = FETTLE_OK;

	sweep_of(f, node, &s);
	if (!is_seen(f, &s)) {
		grams_free(f->grams);
		f->grams = NULL;
		st = observe_grams(l, f, s.inputs.v, s.inputs.n, err);
	}
	VEC_RELEASE(&s.inputs);
	return st;
}

enum fettle_status see_input(struct learner *l, struct facts *f, size_t node, const struct block_seen **out,
			     struct err *err)
{
	const struct gram_input in = input_of(f, node);
	enum fettle_status st = see(l, f, node, err);

	if (!st)
		*out = grams_find(f->grams, &in);
	return st;
}

/* adds a share of what was seen of an input that has since been multiplied by these; NULL: by nothing */
static void add_seen(const struct block_seen *one, float share, const double *by, size_t k, float *sum)
{
	size_t i, c;

	for (i = 0; i < k; i++) {
		const float row = share * (float)(by ? by[i] : 1);

		for (c = 0; c < k; c++)
			sum[i * k + c] += row * (float)(by ? by[c] : 1) * one->gram[i * k + c];
		sum[k * k + i] += row * one->mean_abs[i];
	}
}

/* of everything that the node's weight is applied to, where `grams` are those of the base; *own is what must be freed */
static struct block_seen seen_by(const struct facts *f, const struct grams *grams, size_t node, float **own)
{
	const struct op_list *ops = &f->v->s->ops;
	const size_t k = (size_t)ops->v[node].inputs;
	struct sweep s = { .bytes = 0 };
	struct block_seen all;
	size_t i;

	want_node(&s, f, node);
	all = *grams_find(grams, &s.inputs.v[0]);
	if (s.inputs.n > 1 || f->v->scaled) {
		float *sum = *own = xcalloc(k * k + k, sizeof(*sum));

		for (all.rows = 0, i = 0; i < s.inputs.n; i++)
			all.rows += grams_find(grams, &s.inputs.v[i])->rows;
		for (i = 0; i < s.inputs.n; i++) {
			const struct block_seen *one = grams_find(grams, &s.inputs.v[i]);

			add_seen(one, all.rows ? (float)one->rows / (float)all.rows : 0,
				 f->v->scaled ? variant_factors(f->v, s.inputs.v[i].value) : NULL, k, sum);
		}
		all.gram = sum;
		all.mean_abs = sum + k * k;
	}
	VEC_RELEASE(&s.inputs);
	return all;
}

static enum fettle_status make_blocks(struct learner *l, struct facts *f, size_t node,
				      const struct block_setting *how, struct err *err)
{
	struct facts *from = f;
	enum fettle_status st = f->v->scaled ? base_facts(l, f, &from, err) : FETTLE_OK;
	struct block_seen seen;
	float *own = NULL;
	double start;

	if (!st)
		st = see(l, from, node, err);
	if (st)
		return st;
	start = clock_now();
	seen = seen_by(f, from->grams, node, &own);
	st = block_store_make(f->blocks, f->v->s->m, f->v->s->m->nodes.v[node], how, &seen, err);
	free(own);
	if (l->s.seconds)
		*l->s.seconds += clock_now() - start;
	return st;
}

/* the file of a weight: of this variant, by so many samples; and, in sequence, of this plan */
static char *blocks_path(const struct learner *l, const struct facts *f, const char *key, const char *plan)
{
	char *text = xstrfmt("%s\t%s\t%lld%s%s", key, f->key, (long long)f->asked, *plan ? "\t" : "", plan),
	     hash[FINGERPRINT_LEN], *path;

	fingerprint_bytes(text, strlen(text), hash);
	path = xstrfmt("%s/weight-%s", l->s.workspace ? l->s.workspace : "", hash);
	free(text);
	return path;
}

static enum fettle_status learn_one(struct learner *l, struct facts *f, size_t node,
				    const struct block_setting *how, struct err *err)
{
	char *key = block_key(f->v->s->m->nodes.v[node], how), *path = blocks_path(l, f, key, "");
	enum fettle_status st = FETTLE_OK;

	if (block_store_find(f->blocks, key))
		goto out;
	if (!l->s.calib)
		st = block_store_load(f->blocks, key, path, err);
	else if (!l->s.workspace || block_store_load(f->blocks, key, path, NULL)) {
		st = make_blocks(l, f, node, how, err);
		if (!st && l->s.workspace)
			st = block_store_save(f->blocks, key, path, err);
	}
out:
	free(path);
	free(key);
	return st;
}

/* ---- in sequence ---- */

static void plan_key(const struct facts *f, const struct qplan *mapped, char out[FINGERPRINT_LEN])
{
	char *text = qplan_to_json(mapped, &f->v->s->ops, 0);

	plan_text_hash(text, out);
	free(text);
}

const struct block_store *known_blocks(const struct facts *f, const struct qplan *mapped)
{
	char key[FINGERPRINT_LEN];
	size_t i;

	if (!mapped->recipes.true_sequential)
		return f->blocks;
	plan_key(f, mapped, key);
	for (i = 0; i < f->sequences.n; i++)
		if (strcmp(f->sequences.v[i].plan, key) == 0)
			return f->sequences.v[i].blocks;
	return NULL;
}

/* all weights of a plan from the workspace, or to it */
static enum fettle_status move_blocks(struct learner *l, const struct facts *f, const struct sequence *s,
				      const struct qplan *mapped, const struct needs *needs, bool save,
				      struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < needs->blocks.n && !st; i++) {
		const size_t node = needs->blocks.v[i];
		char *key = block_key(f->v->s->m->nodes.v[node], &mapped->ops[node].blocks),
		     *path = blocks_path(l, f, key, s->plan);

		if (save)
			st = block_store_save(s->blocks, key, path, err);
		else if (!block_store_find(s->blocks, key))
			st = block_store_load(s->blocks, key, path, err);
		free(path);
		free(key);
	}
	return st;
}

static enum fettle_status learn_sequence(struct learner *l, struct facts *f, const struct qplan *mapped,
					 const struct needs *needs, struct err *err)
{
	struct sequence s = { .blocks = block_store_new() };
	enum fettle_status st;

	plan_key(f, mapped, s.plan);
	if (!l->s.calib)
		st = move_blocks(l, f, &s, mapped, needs, false, err);
	else if (!l->s.workspace || move_blocks(l, f, &s, mapped, needs, false, NULL)) {
		block_store_free(s.blocks); /* some may have been there */
		s.blocks = block_store_new();
		st = observe_in_sequence(l, f, mapped, s.blocks, err);
		if (!st && l->s.workspace)
			st = move_blocks(l, f, &s, mapped, needs, true, err);
	} else
		st = FETTLE_OK;
	if (st)
		block_store_free(s.blocks);
	else
		VEC_PUSH(&f->sequences, s);
	return st;
}

enum fettle_status learn_blocks(struct learner *l, struct facts *f, const struct qplan *mapped,
				const struct needs *needs, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (mapped->recipes.true_sequential)
		return !needs->blocks.n || known_blocks(f, mapped) ? FETTLE_OK
								   : learn_sequence(l, f, mapped, needs, err);
	if (!f->blocks)
		f->blocks = block_store_new();
	for (i = 0; i < needs->blocks.n && !st; i++)
		st = learn_one(l, f, needs->blocks.v[i], &mapped->ops[needs->blocks.v[i]].blocks, err);
	return st;
}
