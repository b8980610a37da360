#include "space/qplan.h"

#include <stdlib.h>
#include <string.h>

#include "space/constraint.h"

bool qsetting_equal(const struct qsetting *a, const struct qsetting *b)
{
	return a->dtype == b->dtype && a->scheme == b->scheme && a->per_channel == b->per_channel &&
	       a->narrow == b->narrow && a->algorithm == b->algorithm &&
	       (!range_methods[a->algorithm]->parameter.key || a->parameter == b->parameter);
}

bool block_setting_equal(const struct block_setting *a, const struct block_setting *b)
{
	return a->format.bits == b->format.bits && a->format.block == b->format.block &&
	       a->format.symmetric == b->format.symmetric && a->algorithm == b->algorithm &&
	       a->level == b->level;
}

enum fettle_status block_setting_check(const struct block_setting *s, struct err *err)
{
	if (s->level != 0 && s->level != 1 && s->level != 4)
		return fail(err, FETTLE_INVALID, "cannot quantize weights: accuracy_level %d, need 0, 1 or 4",
			    s->level);
	if (s->format.bits == 8 && s->level != 4)
		return fail(
			err, FETTLE_INVALID,
			"cannot quantize weights: 8 bits with accuracy_level %d, need 4: the runtime would "
			"unpack them at each call",
			s->level);
	return block_format_check(&s->format, err);
}

bool block_setting_fits(const struct block_setting *s, const struct op *op)
{
	if (!(op->modes & MODE_WEIGHT) || !(op->weight_bits & 1u << s->format.bits))
		return false;
	return op->rule->kind != OP_TABLE ||
	       (op->inputs % s->format.block == 0 && !block_methods[s->algorithm]->needs);
}

void qsetting_use(struct qsetting *s, enum range_algorithm a)
{
	if (s->algorithm != a)
		s->parameter = range_methods[a]->parameter.by_default;
	s->algorithm = a;
}

void qplan_averages(const struct qplan *p, double out[OBSERVER_AVERAGES])
{
	size_t i, k, n = 0;

	memset(out, 0, OBSERVER_AVERAGES * sizeof(*out));
	for (i = 0; i < p->n; i++) {
		const struct qsetting *s = &p->ops[i].act;

		if (p->ops[i].mode != OP_STATIC || s->algorithm != RANGE_MOVING_AVERAGE)
			continue;
		for (k = 0; k < n && out[k] != s->parameter; k++)
			;
		if (k == n && n < OBSERVER_AVERAGES && s->parameter > 0)
			out[n++] = s->parameter;
	}
}

bool qsetting_is_pow2(const struct qsetting *s)
{
	return range_methods[s->algorithm]->power_of_two;
}

struct qplan_defaults qplan_defaults(const struct cpu *cpu)
{
	return (struct qplan_defaults){
		.act = { .dtype = DT_U8, .scheme = SCHEME_ASYM, .algorithm = RANGE_MINMAX },
		.weight = { .dtype = DT_S8,
			    .scheme = SCHEME_SYM,
			    .per_channel = true,
			    .narrow = cpu->saturates,
			    .algorithm = RANGE_MINMAX },
		.blocks = { .format = { .bits = 4, .block = 32 }, .algorithm = BLOCK_RTN, .level = 4 },
		.cpu = *cpu,
	};
}

static bool saturates(const struct op_choice *c, const struct op *op, const struct cpu *cpu)
{
	/* a dynamic op's activation is uint8, whatever its setting says */
	return op_saturates(cpu, op, c->mode == OP_DYNAMIC ? DT_U8 : c->act.dtype, c->weight.dtype);
}

void op_choice_reduce(struct op_choice *c, const struct op *op, const struct qplan_defaults *d)
{
	c->weight.narrow =
		d->reduce_range == REDUCE_AUTO ? saturates(c, op, &d->cpu) : d->reduce_range == REDUCE_ON;
}

size_t qplan_saturating(const struct qplan *p, const struct op_list *ops, const struct cpu *cpu)
{
	size_t n = 0, i;

	for (i = 0; i < p->n; i++)
		n += p->ops[i].mode != OP_FP32 && p->ops[i].mode != OP_WEIGHT && !p->ops[i].weight.narrow &&
		     saturates(&p->ops[i], &ops->v[i], cpu);
	return n;
}

/* is the value there in integers, i.e. made by a quantized op, maybe through ops that only move it? */
static bool in_integers(const struct qplan *p, const struct op_list *ops, const struct graph_index *g,
			const char *value)
{
	const struct node *n = graph_producer(g, value);
	size_t i;

	if (!n)
		return false;
	i = (size_t)g->producer[graph_value(g, value)];
	if (op_cuts_off(n) && fused_activation(g, n->in[0]) == n)
		return in_integers(p, ops, g, n->in[0]);
	if (p->ops[i].mode != OP_STATIC || ops->v[i].rule->kind == OP_TABLE)
		return false; /* a table's rows are floats again before anyone reads them */
	return ops->v[i].rule->kind != OP_MOVE || in_integers(p, ops, g, n->in[0]);
}

static bool element_gains(const struct qplan *p, const struct op_list *ops, const struct graph_index *g,
			  const struct op *op)
{
	const struct node *n = g->m->nodes.v[op->node];
	size_t j;

	for (j = 0; j < n->n_in; j++)
		if ((op->rule->activations & (1u << (j < 7 ? j : 7))) && !in_integers(p, ops, g, n->in[j]))
			return false;
	return true;
}

void qplan_default(struct qplan *p, const struct op_list *ops, const struct graph_index *g,
		   const struct qplan_defaults *d)
{
	size_t i;

	p->n = ops->n;
	p->ops = xcalloc(ops->n, sizeof(*p->ops));
	p->format = d->format;
	for (i = 0; i < ops->n; i++) {
		const struct op *op = &ops->v[i];
		struct op_choice *c = &p->ops[i];
		bool can_static = op->modes & MODE_STATIC, can_dynamic = op->modes & MODE_DYNAMIC;

		c->act = d->act;
		c->weight = d->weight;
		c->blocks = d->blocks;
		c->mode = OP_FP32;
		if (!op->rule || !op->rule->on) {
			op_choice_reduce(c, op, d);
			continue;
		}
		if (d->approach == APPROACH_WEIGHT)
			c->mode = op->modes & MODE_WEIGHT && op->rule->kind != OP_TABLE ? OP_WEIGHT : OP_FP32;
		else if (op->rule->kind == OP_TABLE)
			c->mode = OP_STATIC; /* needs no calibration */
		else if (d->approach == APPROACH_DYNAMIC || (d->approach != APPROACH_STATIC && !can_static))
			c->mode = can_dynamic && !op->rule->dynamic_slow ? OP_DYNAMIC : OP_FP32;
		else if (can_static && (op->rule->kind != OP_ELEMENT || element_gains(p, ops, g, op)))
			c->mode = OP_STATIC;
		op_choice_reduce(c, op, d);
	}
}

void qplan_release(struct qplan *p)
{
	free(p->ops);
	*p = (struct qplan)QPLAN_INIT;
}

struct qplan qplan_copy(const struct qplan *p)
{
	struct qplan out = *p;

	out.ops = xcalloc(p->n, sizeof(*out.ops));
	if (p->n)
		memcpy(out.ops, p->ops, p->n * sizeof(*out.ops));
	return out;
}

struct op_choice op_choice(enum op_mode mode, const struct qsetting *act, const struct qsetting *weight)
{
	return (struct op_choice){ .mode = mode, .act = *act, .weight = *weight };
}

bool op_choice_widen(struct op_choice *c, const struct op_rule *r)
{
	enum dtype act = c->act.dtype == DT_U8 ? DT_U16 : c->act.dtype == DT_S8 ? DT_S16 : c->act.dtype;
	enum dtype weight = c->weight.dtype == DT_U8 ? DT_U16 : DT_S16;
	bool wider = false;

	if (c->act.dtype != act && r->act_dtypes & dtype_bit(act)) {
		c->act.dtype = act;
		wider = true;
	}
	if (r->weight >= 0 && c->weight.dtype != weight && r->weight_dtypes & dtype_bit(weight)) {
		c->weight.dtype = weight;
		c->weight.narrow = false;
		wider = true;
	}
	return wider;
}

void op_choice_fell_back(struct op_choice *c, const struct op_choice *before)
{
	c->fell_back = before->mode == OP_STATIC;
	c->act_before = before->act;
	c->weight_before = before->weight;
}

struct qplan qplan_before(const struct qplan *p)
{
	struct qplan out = qplan_copy(p);
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct op_choice *c = &p->ops[i];

		if (c->fell_back)
			out.ops[i] = op_choice(OP_STATIC, &c->act_before, &c->weight_before);
	}
	return out;
}
