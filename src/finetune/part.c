#include "finetune/part.h"

#include <stdlib.h>
#include <string.h>

#include "ops/kind.h"

enum { QUANTIZED, FP32 };

static bool has(const struct map *m, const char *name)
{
	return map_get(m, name) != MAP_NONE;
}

const char *quantized_name(const struct graph_index *g, const char *value)
{
	const size_t v = graph_value(g, value);
	size_t i, k;

	for (i = g->first[v]; i < g->first[v + 1]; i++) {
		const struct node *q = g->m->nodes.v[g->uses[i]];
		size_t ints;

		if (!is_quantize_linear(q))
			continue;
		ints = graph_value(g, q->out[0]);
		for (k = g->first[ints]; k < g->first[ints + 1]; k++)
			if (is_dequantize_linear(g->m->nodes.v[g->uses[k]]))
				return g->m->nodes.v[g->uses[k]]->out[0];
	}
	return value;
}

/* ---- where a quantized model is cut ---- */

/* are these integers made, maybe in several steps, from a value that the part reads? */
static bool made_from_read(const struct graph_index *g, const struct map *reads, const char *ints)
{
	const struct node *q = graph_producer(g, ints), *dq;

	while (is_quantize_linear(q)) {
		if (has(reads, q->in[0]))
			return true;
		dq = graph_producer(g, q->in[0]);
		q = is_dequantize_linear(dq) ? graph_producer(g, dq->in[0]) : NULL;
	}
	return false;
}

/*
 * The values of a quantized model that are between the part and what is before it, integers where there are any.
 * Backwards from the part's outputs; the same order in every model of a plan. Returns how many.
 */
static size_t find_cut(const struct graph_index *g, const struct map *reads, const char *const *outputs,
		       size_t n_outputs, const char **cut)
{
	const struct model *m = g->m;
	bool *need = xcalloc(g->n, sizeof(*need)), *ends = xcalloc(g->n, sizeof(*ends));
	size_t i, k, n = 0;

	for (i = 0; i < n_outputs; i++)
		need[graph_value(g, outputs[i])] = true;
	for (i = m->nodes.n; i--;) {
		const struct node *node = m->nodes.v[i];
		bool dequantizes = is_dequantize_linear(node), inside = false;

		for (k = 0; k < node->n_out; k++) {
			const size_t v = *node->out[k] ? graph_value(g, node->out[k]) : MAP_NONE;

			if (v == MAP_NONE || !need[v])
				continue;
			if (ends[v] || (has(reads, node->out[k]) && !dequantizes))
				cut[n++] = node->out[k];
			else
				inside = true;
		}
		if (inside && dequantizes && !g->constant[graph_value(g, node->in[0])]) {
			const size_t ints = graph_value(g, node->in[0]);

			ends[ints] = has(reads, node->out[0]) || made_from_read(g, reads, node->in[0]);
		}
		for (k = 0; k < node->n_in && inside; k++)
			if (*node->in[k])
				need[graph_value(g, node->in[k])] = true;
		for (k = 0; k < node->n_captured && inside; k++)
			need[graph_value(g, node->captured[k])] = true;
	}
	for (i = 0; i < m->n_inputs; i++)
		if (need[graph_value(g, m->inputs[i].name)])
			cut[n++] = m->inputs[i].name;
	free(need);
	free(ends);
	return n;
}

/* cuts a quantized model's values out; both arrays are to be freed */
static size_t locate(const struct part *p, const struct model *m, const char ***cut, const char ***outputs)
{
	struct graph_index g;
	size_t i, n;

	graph_index_init(&g, m);
	*outputs = xcalloc(p->n_outputs + 1, sizeof(**outputs));
	*cut = xcalloc(g.n + 1, sizeof(**cut));
	for (i = 0; i < p->n_outputs; i++)
		(*outputs)[i] = quantized_name(&g, p->outputs[i]);
	n = find_cut(&g, &p->reads, *outputs, p->n_outputs, *cut);
	graph_index_release(&g);
	return n;
}

static bool is_input(const struct model *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->n_inputs; i++)
		if (strcmp(m->inputs[i].name, name) == 0)
			return true;
	return false;
}

enum fettle_status part_session_open(struct part_session *out, const struct part *p, struct model *quantized,
				     struct err *err)
{
	struct session_options so = { .threads = p->source->threads };
	struct value *at = xcalloc(p->n_inputs + 1, sizeof(*at));
	enum fettle_status st = FETTLE_OK;
	size_t i, n, kept = 0;

	*out = (struct part_session){ .m = NULL };
	n = locate(p, quantized, &out->inputs, &out->outputs);
	if (n != p->n_inputs)
		st = fail(err, FETTLE_INVALID, "cannot fine-tune: a block reads %zu values, then %zu",
			  p->n_inputs, n);
	for (i = 0; i < n && !st; i++)
		if (!is_input(quantized, out->inputs[i])) /* those stay */
			at[kept++] = (struct value){ .name = out->inputs[i], .type = p->inputs[i] };
	if (!st) {
		out->m = model_derive(quantized);
		model_set_outputs(out->m, out->outputs, p->n_outputs);
		model_cut(out->m, at, kept);
		st = session_new(&out->s, p->source->rt, out->m, &so, err);
	}
	free(at);
	return st;
}

void part_session_close(struct part_session *s)
{
	session_free(s->s);
	model_free(s->m);
	free(s->inputs);
	free(s->outputs);
	*s = (struct part_session){ .m = NULL };
}

/* ---- what it is fed ---- */

static void drop_value(struct part *p, struct tensor *t)
{
	p->bytes -= t->data ? tensor_bytes(t) : 0;
	tensor_free(t);
}

static void drop(struct part *p, struct part_batch *b)
{
	size_t i;

	for (i = 0; i < p->n_inputs && b->in; i++)
		drop_value(p, &b->in[i]);
	for (i = 0; i < p->n_outputs && b->out; i++)
		drop_value(p, &b->out[i]);
	free(b->in);
	free(b->out);
	b->in = b->out = NULL;
}

static enum fettle_status copy_all(struct tensor **to, const struct tensor *from, size_t n, size_t *bytes,
				   struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	*to = xcalloc(n + 1, sizeof(**to));
	for (i = 0; i < n && !st; i++) {
		(*to)[i] = from[i];
		(*to)[i].data = NULL;
		st = tensor_alloc(&(*to)[i], "values of a block", err);
		if (st)
			break;
		memcpy((*to)[i].data, from[i].data, tensor_bytes(&from[i]));
		*bytes += tensor_bytes(&from[i]);
	}
	return st;
}

/* runs batch k through what is before the part, and through fp32; the caller drops it if it must not stay */
static enum fettle_status run_batch(struct part *p, size_t k, struct err *err)
{
	struct part_batch *b = &p->v[k];
	struct tensor *in = xcalloc(p->n_inputs + 1, sizeof(*in)),
		      *out = xcalloc(p->n_outputs + 1, sizeof(*out));
	const size_t left = p->split.samples - k * p->split.per_batch;
	enum fettle_status st;

	st = feed_read(p->source->feed, k, &p->raw, err);
	if (!st)
		st = session_run(p->sessions[QUANTIZED], p->raw.inputs, in, err);
	if (!st)
		st = session_run(p->sessions[FP32], p->raw.inputs, out, err);
	if (!st) {
		b->rows = p->raw.n;
		b->valid = p->raw.valid < left ? p->raw.valid : left;
		st = copy_all(&b->in, in, p->n_inputs, &p->bytes, err);
	}
	if (!st)
		st = copy_all(&b->out, out, p->n_outputs, &p->bytes, err);
	free(in);
	free(out);
	return st;
}

/* where a batch differs from those before it the dimension is open; the number of samples always is, if the model's is */
static void widen(struct part *p, size_t k)
{
	const struct model *m = p->source->s->m;
	const bool open = m->n_inputs && m->inputs[0].type.rank > 0 && m->inputs[0].type.dims[0] < 0;
	size_t i;
	int d;

	for (i = 0; i < p->n_inputs; i++) {
		const struct tensor *t = &p->v[k].in[i];

		if (p->inputs[i].dtype == DT_NONE)
			p->inputs[i] = *t;
		p->inputs[i].data = NULL;
		for (d = 0; d < t->rank; d++)
			if (p->inputs[i].dims[d] != t->dims[d] || (d == 0 && open))
				p->inputs[i].dims[d] = -1;
	}
}

enum fettle_status part_refill(struct part *p, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t k;

	for (k = p->judged; k < p->split.n && !st; k++) {
		if (p->v[k].in)
			continue;
		st = run_batch(p, k, err);
		if (!st)
			widen(p, k);
		if (st || p->bytes > capture_budget(p->source))
			drop(p, &p->v[k]);
	}
	return st;
}

enum fettle_status part_window(struct part *p, size_t first, size_t end, size_t *n, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t k, i;

	for (k = first; k < end && !st; k++) {
		if (p->v[k].in)
			continue;
		st = run_batch(p, k, err);
		for (i = 0; i < p->split.n && p->bytes > capture_budget(p->source); i++)
			if (i < first || i > k)
				drop(p, &p->v[i]);
		if (p->bytes > capture_budget(p->source) && k > first) {
			drop(p, &p->v[k]);
			break;
		}
	}
	*n = k - first;
	return st;
}

/* what the nodes of the fp32 model take from outside and give there */
static void find_ends(struct part *p)
{
	const struct graph_index *g = &p->source->s->g;
	size_t i, k;

	p->outputs = xcalloc(g->n + 1, sizeof(*p->outputs));
	for (i = p->first; i < p->end; i++) {
		const struct node *n = g->m->nodes.v[i];

		for (k = 0; k < n->n_in + n->n_captured; k++) {
			const char *name = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
			const size_t v = *name ? graph_value(g, name) : MAP_NONE;

			if (v != MAP_NONE && !g->constant[v] &&
			    (g->producer[v] == NO_NODE || (size_t)g->producer[v] < p->first))
				map_set(&p->reads, name, 1);
		}
		for (k = 0; k < n->n_out; k++) {
			const size_t v = *n->out[k] ? graph_value(g, n->out[k]) : MAP_NONE;

			if (v != MAP_NONE &&
			    (g->output[v] || (graph_n_uses(g, v) && g->uses[g->first[v + 1] - 1] >= p->end)))
				p->outputs[p->n_outputs++] = n->out[k];
		}
	}
}

enum fettle_status part_open(struct part *p, const struct finetune_source *s, const struct part_of *of,
			     struct model *quantized, struct err *err)
{
	const char **cut = NULL, **outputs = NULL;
	enum fettle_status st;

	*p = (struct part){ .source = s, .first = of->first, .end = of->end };
	st = capture_split(s, of->o, &p->raw, &p->split, err);
	if (st)
		goto out;
	p->judged = of->all ? 0 : p->split.held;
	find_ends(p);
	p->n_inputs = locate(p, quantized, &cut, &outputs);
	p->inputs = xcalloc(p->n_inputs + 1, sizeof(*p->inputs));
	p->v = xcalloc(p->split.n, sizeof(*p->v));
	st = capture_session(s, quantized, cut, p->n_inputs, &p->models[QUANTIZED], &p->sessions[QUANTIZED],
			     err);
	if (!st)
		st = capture_session(s, s->s->m, p->outputs, p->n_outputs, &p->models[FP32],
				     &p->sessions[FP32], err);
	if (!st)
		st = part_refill(p, err);
out:
	free(cut);
	free(outputs);
	if (st)
		part_close(p);
	return st;
}

void part_empty(struct part *p)
{
	size_t k;

	for (k = 0; p->v && k < p->split.n; k++)
		drop(p, &p->v[k]);
}

void part_close(struct part *p)
{
	int i;

	part_empty(p);
	free(p->v);
	free(p->inputs);
	free(p->outputs);
	map_release(&p->reads);
	feed_batch_release(&p->raw);
	for (i = 0; i < 2; i++) {
		session_free(p->sessions[i]);
		model_free(p->models[i]);
	}
	*p = (struct part){ .first = 0 };
}

/* ---- what it is judged by ---- */

enum fettle_status part_run(const struct part *p, struct part_session *s, size_t k, struct tensor *out,
			    struct err *err)
{
	const size_t n = session_n_inputs(s->s);
	struct tensor *in = xcalloc(n + 1, sizeof(*in));
	enum fettle_status st;
	size_t i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < p->n_inputs; j++)
			if (strcmp(session_input(s->s, i)->name, s->inputs[j]) == 0)
				in[i] = p->v[k].in[j];
	st = session_run(s->s, in, out, err);
	free(in);
	return st;
}

/* adds one batch's squares of each output: [0] of the error, [1] of the fp32 values */
static void add_squares(const struct part *p, size_t k, const struct tensor *out, double (*sums)[2])
{
	const struct part_batch *b = &p->v[k];
	size_t i, j;

	for (i = 0; i < p->n_outputs; i++) {
		const float *x = out[i].data, *y = b->out[i].data;
		size_t n = (size_t)tensor_count(&b->out[i]);

		if (b->out[i].dtype != DT_F32 || !tensor_same_shape(&out[i], &b->out[i]))
			continue; /* a shape, or the like */
		if (b->out[i].rank && (size_t)b->out[i].dims[0] % b->rows == 0)
			n = n / b->rows * b->valid;
		for (j = 0; j < n; j++) {
			sums[i][0] += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
			sums[i][1] += (double)y[j] * (double)y[j];
		}
	}
}

enum fettle_status part_error(struct part *p, struct model *quantized, double *out, struct err *err)
{
	double(*sums)[2] = xcalloc(p->n_outputs + 1, sizeof(*sums));
	struct tensor *got = xcalloc(p->n_outputs + 1, sizeof(*got));
	struct part_session s;
	enum fettle_status st = part_session_open(&s, p, quantized, err);
	size_t k, i;

	for (k = p->judged; k < p->split.n && !st; k++) {
		const bool at_hand = p->v[k].in;

		if (!at_hand)
			st = run_batch(p, k, err);
		if (!st)
			st = part_run(p, &s, k, got, err);
		if (!st)
			add_squares(p, k, got, sums);
		if (!at_hand)
			drop(p, &p->v[k]);
	}
	*out = 0;
	for (i = 0; i < p->n_outputs; i++)
		*out += (sums[i][1] > 0 ? sums[i][0] / sums[i][1] : sums[i][0]) / (double)p->n_outputs;
	part_session_close(&s);
	free(sums);
	free(got);
	return st;
}
