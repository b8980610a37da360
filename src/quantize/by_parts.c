#include "quantize/by_parts.h"

#include <stdlib.h>
#include <string.h>

#include "quantize/slice.h"
#include "quantize/part_scales.h"

/* What several ops have read that share a weight. */
struct shared {
	const char *weight;
	bool turned;
	size_t last; /* of those ops */
	int64_t k, rows;
	float *sum; /* [k, k] and [k], times rows */
};

struct work {
	struct parts_run run;
	VEC(struct shared) shared;
	struct part_scales *scales; /* NULL in sequence: the second run would need them */
	struct block_store *out;
};

bool parts_needed(const struct qplan *plan)
{
	size_t i;

	for (i = 0; i < plan->n; i++)
		if (parts_by_data(plan, i))
			return true;
	return false;
}

/* ---- weights that several ops share ---- */

/* The last op that has the same weight, and goes by data. */
static size_t last_reader(const struct work *r, size_t node)
{
	const struct node *n = parts_node(&r->run, (int)node);
	size_t i, last = node;

	for (i = node + 1; i < r->run.p->plan->n; i++)
		if (parts_by_data(r->run.p->plan, i) &&
		    strcmp(parts_node(&r->run, (int)i)->in[1], n->in[1]) == 0 &&
		    op_weight_turned(parts_node(&r->run, (int)i)) == op_weight_turned(n))
			last = i;
	return last;
}

static struct shared *find_shared(const struct work *r, const struct node *n)
{
	size_t i;

	for (i = 0; i < r->shared.n; i++)
		if (strcmp(r->shared.v[i].weight, n->in[1]) == 0 &&
		    r->shared.v[i].turned == op_weight_turned(n))
			return &r->shared.v[i];
	return NULL;
}

static enum fettle_status add_shared(struct work *r, size_t node, const struct block_seen *x, struct err *err)
{
	const struct node *n = parts_node(&r->run, (int)node);
	const int64_t k = r->run.p->s->ops.v[node].inputs;
	struct shared *s = find_shared(r, n);
	int64_t i;

	if (!s) {
		struct shared new = { n->in[1], op_weight_turned(n), last_reader(r, node), k, 0, NULL };
		enum fettle_status st = mem_try(&new.sum, (size_t)(k * k + k), sizeof(*new.sum),
						"what a shared weight is applied to", err);

		if (st)
			return st;
		memset(new.sum, 0, (size_t)(k * k + k) * sizeof(*new.sum));
		VEC_PUSH(&r->shared, new);
		s = &r->shared.v[r->shared.n - 1];
	}
	for (i = 0; i < k * k; i++)
		s->sum[i] += x->gram[i] * (float)x->rows;
	for (i = 0; i < k; i++)
		s->sum[k * k + i] += x->mean_abs[i] * (float)x->rows;
	s->rows += x->rows;
	return FETTLE_OK;
}

/* The mean of what was added. */
static struct block_seen finish_shared(struct shared *s)
{
	int64_t i;

	for (i = 0; i < s->k * s->k + s->k; i++)
		s->sum[i] /= s->rows ? (float)s->rows : 1;
	return (struct block_seen){ s->sum, s->sum + s->k * s->k, s->rows, NULL };
}

/* ---- quantizing ---- */

/* Keeps a weight as it has become, for the second run of the part. */
static enum fettle_status replace(struct slice *p, size_t node, const struct tensor *was, bool turned,
				  const struct block_packed *w, struct err *err)
{
	struct replaced r = { node, *was };
	struct tensor rows = { .dtype = DT_F32, .rank = 2, .dims = { w->outputs, w->inputs } };
	const float *same;
	float *floats = NULL, *other = NULL;
	enum fettle_status st = block_packed_floats(w, "a quantized weight", &floats, err);

	rows.data = floats;
	if (!st && !turned) {
		st = block_rows(&rows, false, &same, &other, err); /* the other way round */
		free(floats);
		floats = other;
	}
	r.w.data = floats;
	if (!st)
		VEC_PUSH(&p->replaced, r);
	return st;
}

/* What decides on a weight that goes by data; *wait: an op to come reads it too. In sequence the first op decides. */
static enum fettle_status find_seen(struct work *r, const struct slice *p, size_t node,
				    struct block_seen *out, bool *wait, struct err *err)
{
	const struct gram_input in = parts_input(&r->run, node);
	const struct node *n = parts_node(&r->run, (int)node);
	enum fettle_status st;

	*out = *grams_find(p->grams, &in);
	*wait = false;
	if (parts_in_sequence(&r->run) || (last_reader(r, node) == node && !find_shared(r, n)))
		return FETTLE_OK;
	st = add_shared(r, node, out, err);
	*wait = !st && find_shared(r, n)->last != node;
	if (!st && !*wait)
		*out = finish_shared(find_shared(r, n));
	return st;
}

static enum fettle_status quantize_op(struct work *r, struct slice *p, size_t node, bool again,
				      struct err *err)
{
	const struct node *n = parts_node(&r->run, (int)node);
	const struct block_setting *how = &r->run.p->plan->ops[node].blocks;
	const bool data = parts_by_data(r->run.p->plan, node);
	struct init *w = model_init(r->run.p->s->m, n->in[1]);
	struct block_store *made = block_store_new(), *to = r->run.p->s->outside || !data ? made : r->out;
	struct block_seen seen = { .gram = NULL };
	char *key = block_key(n, how);
	struct tensor t = w->t;
	void *bytes = NULL;
	bool wait = false, known = block_store_find(r->out, key) != NULL;
	enum fettle_status st = FETTLE_OK;

	if (data && !known)
		st = find_seen(r, p, node, &seen, &wait, err);
	if (st || wait || (known && (!again || r->run.p->s->outside)))
		goto out;
	if (data && r->scales)
		seen.input_scales = part_scales_of(r->scales, node);
	if (init_is_outside(w))
		st = slice_load(r->run.g->m, w, &bytes, err);
	else
		st = model_weight(r->run.p->s->m, w, err);
	t.data = bytes ? bytes : w->t.data;
	if (!st && !(known && to == r->out))
		st = block_store_put(to, key, w->name, &t, op_weight_turned(n), how, data ? &seen : NULL,
				     err);
	free(bytes);
	if (!st && again)
		st = replace(p, node, &w->t, op_weight_turned(n), block_store_find(to, key), err);
	if (!st && data && to == made && !known)
		st = block_store_spill(r->out, key, block_store_find(made, key), err);
out:
	block_store_free(made);
	free(key);
	return st;
}

/* ---- awq's input scales ---- */

/* The weights, as rows, of the part's ops that read what `node` reads. */
struct readers {
	VEC(struct block_reader) v;
	VEC(float *) rows;
};

static enum fettle_status read_rows(const struct work *r, size_t node, struct readers *out, struct err *err)
{
	const struct node *n = parts_node(&r->run, (int)node);
	struct init *w = model_init(r->run.p->s->m, n->in[1]);
	const bool turned = op_weight_turned(n);
	struct tensor t = w->t;
	const float *rows = NULL;
	float *own = NULL;
	void *bytes = NULL;
	enum fettle_status st = slice_load(r->run.g->m, w, &bytes, err);

	t.data = bytes;
	if (!st)
		st = block_rows(&t, turned, &rows, &own, err);
	if (own)
		free(bytes);
	VEC_PUSH(&out->rows, own ? own : bytes);
	if (!st)
		VEC_PUSH(&out->v, ((struct block_reader){ rows, t.dims[turned ? 0 : 1] }));
	return st;
}

static enum fettle_status choose_scales(struct work *r, const struct slice *p, size_t node, struct err *err)
{
	const struct gram_input in = parts_input(&r->run, node);
	struct readers readers = { .v = { NULL, 0, 0 } };
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < p->ops.n && !st; i++)
		if (part_scales_alike(r->scales, node, p->ops.v[i]))
			st = read_rows(r, p->ops.v[i], &readers, err);
	if (!st)
		st = part_scales_choose(r->scales, node, readers.v.v, readers.v.n, grams_find(p->grams, &in),
					err);
	for (i = 0; i < readers.rows.n; i++)
		free(readers.rows.v[i]);
	VEC_RELEASE(&readers.rows);
	VEC_RELEASE(&readers.v);
	return st;
}

static bool has_block_op(const struct work *r, const struct slice *p)
{
	int i;

	for (i = p->from; i < p->to; i++)
		if (parts_block_op(&r->run, (size_t)i))
			return true;
	return false;
}

static enum fettle_status do_slice(struct work *r, struct slice *p, struct err *err)
{
	/* in sequence, what later parts read comes from the weights as they have become: a second run */
	const bool again = parts_in_sequence(&r->run) && has_block_op(r, p) && slice_is_read(&r->run, p);
	enum fettle_status st = slice_run(&r->run, p, true, !again, err);
	size_t k;
	int i;

	for (k = 0; k < p->ops.n && !st && r->scales; k++)
		if (part_scales_open(r->scales, p->ops.v[k]))
			st = choose_scales(r, p, p->ops.v[k], err);
	for (i = p->from; i < p->to && !st; i++)
		if (again ? parts_block_op(&r->run, (size_t)i) : parts_by_data(r->run.p->plan, (size_t)i))
			st = quantize_op(r, p, (size_t)i, again, err);
	if (!st && again)
		st = slice_run(&r->run, p, false, true, err);
	parts_forget(&r->run, p->to);
	if (!st && r->run.p->progress &&
	    !r->run.p->progress(r->run.p->self, (size_t)p->to, (size_t)r->run.last + 1))
		st = fail(err, FETTLE_STOP, "calibration was stopped");
	return st;
}

enum fettle_status blocks_by_parts(struct block_store *out, const struct parts *p, struct err *err)
{
	struct work r = { .run = { .p = p, .g = &p->s->g }, .out = out };
	enum fettle_status st = parts_begin(&r.run, err);
	size_t i;
	int from;

	if (p->s->outside && !parts_in_sequence(&r.run))
		r.scales = part_scales_new(p->s, p->plan);
	for (from = 0; from <= r.run.last && !st;) {
		struct slice slice = { .from = from };

		slice_find(&r.run, &slice, from);
		st = do_slice(&r, &slice, err);
		from = slice.to;
		slice_release(&slice);
	}
	if (!st && r.scales)
		st = part_scales_apply(r.scales, err);
	part_scales_free(r.scales);
	parts_end(&r.run);
	for (i = 0; i < r.shared.n; i++)
		free(r.shared.v[i].sum);
	VEC_RELEASE(&r.shared);
	return st;
}
