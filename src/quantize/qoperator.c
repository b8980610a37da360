/*
 * From QDQ to the QOperator format: every quantized op with the Q and DQ around it becomes one integer
 * op. Which nodes the plan quantizes is known, so nothing has to be guessed from patterns. What has no
 * integer op (ConvTranspose) stays as it is, which every runtime can run too.
 */
#include "ops/kind.h"
#include "quantize/internal.h"

#include <stdlib.h>
#include <string.h>

struct conversion {
	struct job *j;
	struct model *m;
	struct graph_index g;
	bool *drop; /* nodes that their op has swallowed */
};

static struct node *dq_of(const struct conversion *c, const char *value)
{
	struct node *n = graph_producer(&c->g, value);

	return is_dequantize_linear(n) ? n : NULL;
}

static size_t node_index(const struct conversion *c, const struct node *n)
{
	return (size_t)c->g.producer[graph_value(&c->g, n->out[0])];
}

/* the Q that an op's output goes to, past the Relu or Clip it replaces; NULL if the output is float */
static struct node *output_q(const struct conversion *c, const struct node *n, size_t k, struct node **act)
{
	struct node *user = graph_only_user(&c->g, n->out[k]);

	*act = NULL;
	if (user && op_cuts_off(user)) {
		*act = user;
		user = graph_only_user(&c->g, user->out[0]);
	}
	return is_quantize_linear(user) ? user : NULL;
}

struct operands {
	const char *v[3 * 64 + 8];
	size_t n;
};

static void add(struct operands *o, const char *name)
{
	o->v[o->n++] = name;
}

/* x, scale, zero point that a DQ reads */
static bool add_quantized(struct operands *o, const struct conversion *c, const char *value)
{
	const struct node *dq = dq_of(c, value);
	size_t k;

	if (!dq || o->n + 3 > 3 * 64)
		return false;
	for (k = 0; k < 3; k++)
		add(o, dq->in[k]);
	return true;
}

static void add_output(struct operands *o, const struct node *q)
{
	add(o, q->in[1]);
	add(o, q->in[2]);
}

/* the integer op's inputs, in the order its definition wants; false: leave it in QDQ */
static bool collect(struct operands *o, const struct conversion *c, const struct node *n,
		    const struct op_rule *r, const struct node *q)
{
	const bool conv = node_is(n, "Conv"), gemm = node_is(n, "Gemm"), concat = node_is(n, "Concat");
	const bool bias = (conv || gemm) && n->n_in > 2 && *n->in[2];
	size_t k, first = node_is(n, "Where") ? 1 : 0, last = conv || gemm ? 2 : n->n_in;

	if (!q && !gemm && !node_is(n, "MatMul"))
		return false;
	if (first)
		add(o, n->in[0]);
	if (concat)
		add_output(o, q);
	if (r->kind == OP_ELEMENT && !concat && last > first + 2)
		last = first + 2;
	for (k = first; k < last; k++)
		if (!add_quantized(o, c, n->in[k]))
			return false;
	if (gemm)
		add(o, bias ? dq_of(c, n->in[2])->in[0] : "");
	if (!concat && q)
		add_output(o, q);
	if (conv && bias)
		add(o, dq_of(c, n->in[2])->in[0]);
	return true;
}

/* MatMulIntegerToFloat: A, B, scales, zero points */
static void reorder_to_float(struct operands *o)
{
	const char *a[6];

	memcpy(a, o->v, sizeof(a));
	o->v[1] = a[3];
	o->v[2] = a[1];
	o->v[3] = a[4];
	o->v[4] = a[2];
	o->v[5] = a[5];
}

static enum dtype q_type(const struct conversion *c, const struct node *q)
{
	return model_init(c->m, q->in[2])->t.dtype;
}

static void convert_op(struct conversion *c, struct node *n, const struct op_rule *r, enum dtype type)
{
	struct operands o = { .n = 0 };
	struct node *act, *q = output_q(c, n, 0, &act);

	if (q && q_type(c, q) != type)
		q = NULL; /* a reader's: no integer op reads one type and writes another */
	if (!r->qlinear || !collect(&o, c, n, r, q))
		return;
	n->op = r->qlinear;
	n->domain = r->qlinear_domain;
	if (!q && strcmp(n->op, "QLinearMatMul") == 0) {
		n->op = "MatMulIntegerToFloat";
		n->domain = DOMAIN_MS;
		reorder_to_float(&o);
	}
	if (strcmp(n->op, "QLinearSoftmax") == 0)
		node_set_int(c->m, n, "opset", c->m->opset);
	if (strcmp(n->op, "QGemm") == 0)
		node_drop_attr(n, "beta"); /* 1, or it would not be quantized */
	n->in = arena_alloc(&c->m->arena, o.n * sizeof(*n->in));
	memcpy(n->in, o.v, o.n * sizeof(*n->in));
	n->n_in = o.n;
	if (!q)
		return;
	c->drop[node_index(c, q)] = true;
	if (act)
		c->drop[node_index(c, act)] = true;
	n->out[0] = q->out[0];
}

/* do Q and DQ have the same constants, so that an op between them can work on the integers? */
static bool same_params(const struct node *q, const struct node *dq)
{
	return strcmp(q->in[1], dq->in[1]) == 0 && strcmp(q->in[2], dq->in[2]) == 0;
}

/* an op that only moves data runs on the integers as it is */
static void convert_move(struct conversion *c, struct node *n)
{
	const struct node *dq = dq_of(c, n->in[0]);
	struct node *act, *q;
	size_t k;

	if (!dq || dtype_size(q_type(c, dq)) != 1) /* MaxPool, for one, is not defined for 16 bits */
		return;
	for (k = 0; k < n->n_out; k++) {
		q = *n->out[k] ? output_q(c, n, k, &act) : NULL;
		if (*n->out[k] && (!q || act || !same_params(q, dq)))
			return;
	}
	n->in[0] = dq->in[0];
	for (k = 0; k < n->n_out; k++) {
		if (!*n->out[k])
			continue;
		q = output_q(c, n, k, &act);
		c->drop[node_index(c, q)] = true;
		n->out[k] = q->out[0];
	}
}

/* DQs that nobody reads any more */
static void drop_unused(struct model *m)
{
	struct graph_index g;
	size_t i, kept = 0;

	graph_index_init(&g, m);
	for (i = 0; i < m->nodes.n; i++) {
		struct node *n = m->nodes.v[i];
		size_t v = graph_value(&g, n->out[0]);

		if (is_dequantize_linear(n) && !g.output[v] && !graph_n_uses(&g, v))
			continue;
		m->nodes.v[kept++] = n;
	}
	m->nodes.n = kept;
	graph_index_release(&g);
}

/* Integer ops are of eight bits; those with weights take u8 weights only with u8 activations. */
static bool has_kernel(const struct op_choice *c, const struct op_rule *r)
{
	if (dtype_size(c->act.dtype) != 1)
		return false;
	return r->weight < 0 ||
	       (dtype_size(c->weight.dtype) == 1 && !(c->act.dtype == DT_S8 && c->weight.dtype == DT_U8));
}

void to_qoperator(struct job *j, struct node *const *ops)
{
	struct conversion c = { .j = j, .m = j->m };
	size_t i, kept = 0;

	graph_index_init(&c.g, c.m);
	c.drop = xcalloc(c.m->nodes.n, sizeof(*c.drop));
	for (i = 0; i < j->z->ops->n; i++) {
		const struct op_rule *r = op_rule_find(ops[i]); /* a Gemm may have become a MatMul */

		if (job_quantizes(j, i) && has_kernel(&j->plan->ops[i], r))
			convert_op(&c, ops[i], r, j->plan->ops[i].act.dtype);
		else if (job_moves(j, i))
			convert_move(&c, ops[i]);
	}
	for (i = 0; i < c.m->nodes.n; i++)
		if (!c.drop[i])
			c.m->nodes.v[kept++] = c.m->nodes.v[i];
	c.m->nodes.n = kept;
	free(c.drop);
	graph_index_release(&c.g);
	drop_unused(c.m);
}
