#include "tune/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tune/context.h"

static struct fettle_value *values(const struct value *v, size_t n)
{
	struct fettle_value *out = xcalloc(n, sizeof(*out));
	size_t i;

	for (i = 0; i < n; i++) {
		out[i].name = v[i].name;
		out[i].dtype = dtype_name(v[i].type.dtype);
		if (v[i].type.rank < 0)
			snprintf(out[i].shape, sizeof(out[i].shape), "unknown");
		else
			tensor_shape_text(&v[i].type, out[i].shape, sizeof(out[i].shape));
	}
	return out;
}

static size_t weight_bytes(const struct model *m)
{
	size_t total = 0, i;

	for (i = 0; i < m->inits.n; i++)
		total += tensor_bytes(&m->inits.v[i]->t);
	return total;
}

/* What the runtime would make of the plan. Ranges decide nothing there, so they are made up. */
static enum fettle_status try_plan(struct context *cx, struct subject *s, enum approach approach,
				   const struct qplan *plan, struct precisions *out)
{
	struct statistics *ranges = statistics_new();
	struct qplan plain = *plan;
	struct model *q = NULL;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (recipe_list[i]->changes_numbers) /* for which there need not be data here */
			recipe_set(&plain.recipes, recipe_list[i], false);
	st = made_up_ranges(ranges, s, &plain, &cx->err);
	if (!st)
		st = quantize(s->z, &(struct knowledge){ .values = ranges }, &plain, &q, &cx->err);
	if (!st)
		st = context_precisions(cx, s, approach, plan, q, out);
	model_free(q);
	statistics_free(ranges);
	return st;
}

static void fill_op(struct fettle_op *o, struct arena *a, const struct op *op, const struct node *n,
		    const struct op_choice *c, const struct op_precision *p)
{
	static const char *const words[] = { [PRECISION_INT8] = "int8",
					     [PRECISION_DYNAMIC] = "dynamic",
					     [PRECISION_INT16] = "int16",
					     [PRECISION_FP32] = "fp32" };

	static const char *const kinds[] = {
		[OP_COMPUTE] = "compute", [OP_ELEMENT] = "element", [OP_MOVE] = "move", [OP_TABLE] = "table"
	};

	*o = (struct fettle_op){
		.name = op->name,
		.type = n->op,
		.why_not = p->is == PRECISION_WEIGHT ? NULL : op->why,
		.kind = op->rule ? kinds[op->rule->kind] : NULL,
		.can_static = op->modes & MODE_STATIC,
		.can_dynamic = op->modes & MODE_DYNAMIC,
		.can_weight_only = op->modes & MODE_WEIGHT,
		.by_default = p->is == PRECISION_WEIGHT
				      ? arena_strfmt(a, "weight-only %d bits", c->blocks.format.bits)
			      : p->is != PRECISION_NONE ? words[p->is]
			      : op->rule && c->mode     ? "int8"
							: "fp32",
		.why_fp32 = p->is == PRECISION_FP32     ? p->why
			    : p->is == PRECISION_WEIGHT ? NULL
							: op->why,
		.macs = op->macs,
		.block = op->block,
	};
}

/* the values of one field among an op's options of one mode, each once, in order */
static void list_values(struct str *out, const struct tuning *t, size_t op, enum op_mode mode, bool weight)
{
	const struct param *p = &t->space.v[op];
	struct map seen = MAP_INIT;
	size_t i, k;

	for (k = 0; k < 4; k++)
		for (i = 0; i < p->n_options; i++) {
			const struct op_choice *c = &t->choices[op][i];
			const struct qsetting *s = weight ? &c->weight : &c->act;
			const char *words[] = { dtype_name(s->dtype),
						s->scheme == SCHEME_SYM ? "sym" : "asym",
						!weight          ? NULL
						: s->narrow      ? "7-bit"
						: s->per_channel ? "per_channel"
								 : "per_tensor",
						range_methods[s->algorithm]->name };

			if (c->mode != mode || !words[k] || map_get(&seen, words[k]) != MAP_NONE)
				continue;
			map_set(&seen, words[k], 1);
			str_addf(out, " %s", words[k]);
		}
	map_release(&seen);
}

/* the same for weight-only options: " 4 8 2 bits, group_size 32 128, rtn gptq" */
static void list_blocks(struct str *out, const struct tuning *t, size_t op)
{
	static const char *const after[] = { " bits, group_size", ",", "" };
	const struct param *p = &t->space.v[op];
	struct arena arena = ARENA_INIT;
	struct map seen = MAP_INIT;
	size_t i, k;

	for (k = 0; k < ARRAY_LEN(after); k++) {
		for (i = 0; i < p->n_options; i++) {
			const struct block_setting *s = &t->choices[op][i].blocks;
			const char *word =
				k == 0   ? arena_strfmt(&arena, " %d", s->format.bits)
				: k == 1 ? arena_strfmt(&arena, " %lld", (long long)s->format.block)
					 : arena_strfmt(&arena, " %s", block_methods[s->algorithm]->name);
			const char *key = arena_strfmt(&arena, "%zu%s", k, word);

			if (t->choices[op][i].mode != OP_WEIGHT || map_get(&seen, key) != MAP_NONE)
				continue;
			map_set(&seen, key, 1);
			str_addf(out, "%s", word);
		}
		str_addf(out, "%s", after[k]);
	}
	map_release(&seen);
	arena_release(&arena);
}

static void describe_options(struct inspection *x, const struct tuning *t)
{
	static const char *const words[] = {
		[OP_STATIC] = "static", [OP_DYNAMIC] = "dynamic", [OP_WEIGHT] = "weight_only"
	};
	size_t i;

	for (i = 0; i < t->space.n_ops; i++) {
		struct fettle_op *op = &x->ops[t->node[i]];
		const struct op_rule *rule = t->ops->v[t->node[i]].rule;
		struct str text = STR_INIT;
		enum op_mode mode;

		for (mode = OP_STATIC; mode <= OP_WEIGHT; mode++) {
			size_t before = text.n, k, n = 0;

			for (k = 0; k < t->space.v[i].n_options; k++)
				n += t->choices[i][k].mode == mode;
			if (!n)
				continue;
			str_addf(&text, "%s%s:", before ? "; " : "", words[mode]);
			if (mode == OP_WEIGHT) {
				list_blocks(&text, t, i);
				continue;
			}
			if (mode == OP_STATIC && rule->kind != OP_TABLE)
				list_values(&text, t, i, mode, false);
			if (rule->weight >= 0) {
				str_addf(&text, " x");
				list_values(&text, t, i, mode, true);
			}
		}
		if (t->space.v[i].fallback != NO_OPTION)
			str_addf(&text, "%sfp32", text.n ? "; " : "");
		op->n_options = t->space.v[i].n_options;
		op->options = arena_strdup(&x->arena, text.s ? text.s : "");
		str_release(&text);
	}
	x->recipes = arena_alloc(&x->arena, (t->n_recipes + 1) * sizeof(*x->recipes));
	for (i = 0; i < t->n_recipes; i++)
		x->recipes[i] = recipe_list[t->recipe[i]]->name;
}

enum fettle_status inspect(struct context *cx, struct subject *s, enum approach approach,
			   const struct qplan *plan, const struct tuning *t, struct inspection *out)
{
	struct precisions is = PRECISIONS_INIT;
	struct cuts cuts;
	enum fettle_status st = try_plan(cx, s, approach, plan, &is);
	size_t k;

	if (st)
		return st;
	context_note_kind(cx, s);
	out->ops = xcalloc(s->ops.n, sizeof(*out->ops));
	for (k = 0; k < s->ops.n; k++)
		fill_op(&out->ops[k], &out->arena, &s->ops.v[k], s->m->nodes.v[k], &plan->ops[k], &is.v[k]);
	describe_options(out, t);
	out->in = values(s->m->inputs, s->m->n_inputs);
	out->out = values(s->m->outputs, s->m->n_outputs);
	graph_cuts(&s->g, false, &cuts);
	out->n_cuts = cuts.n;
	out->weight_bytes = weight_bytes(s->m);
	out->int8_share = is.int8_share;
	out->log10_plans = space_size_log10(&t->space, false);
	out->n_recipes = t->n_recipes;
	cuts_release(&cuts);
	precisions_release(&is);
	return FETTLE_OK;
}

void inspection_release(struct inspection *x)
{
	subject_free(x->subject);
	arena_release(&x->arena);
	free(x->ops);
	free(x->in);
	free(x->out);
}
