#include "space/settings_tuning.h"

#include <stdlib.h>
#include <string.h>

/* what it takes to turn settings into a plan for the quantizer */
struct context {
	const struct op_list *ops;
	const struct graph_index *g;
	struct qplan_defaults defaults;
	struct op_mask *masks;
	struct recipes recipes;
	int64_t samples;
	const struct settings_list *list; /* for words; NULL: all */
};

struct settings plan_settings(const struct plan *p, const struct space *space)
{
	struct settings s;

	memcpy(&s, p->choice + space->n_ops, sizeof(s));
	return s;
}

void settings_plan(const struct settings *s, const struct space *space, struct plan *out)
{
	plan_release(out);
	plan_init(out, space);
	memcpy(out->choice + space->n_ops, s, sizeof(*s));
}

static void make_qplan(const struct tuning *t, const struct plan *p, struct qplan *out)
{
	const struct context *x = t->own;
	struct settings s = plan_settings(p, &t->space);
	struct qplan_defaults d = x->defaults;
	size_t i;

	*out = (struct qplan)QPLAN_INIT;
	out->recipes = x->recipes;
	settings_apply(&s, &d, &out->recipes);
	if (x->samples > 0 && out->recipes.finetune.data_size >= (size_t)x->samples)
		out->recipes.finetune.data_size = 0; /* all there are */
	qplan_default(out, x->ops, x->g, &d);
	for (i = 0; i < x->ops->n; i++)
		mask_fit(&x->masks[i], &x->ops->v[i], &d, &out->ops[i]);
	for (i = 0; i < t->space.n_ops; i++) {
		struct op_choice *c = &out->ops[t->node[i]], before = *c;

		if (c->mode == OP_FP32 || p->choice[i] == OPTION_AS_SET)
			continue;
		if (p->choice[i] == OPTION_BACK_TO_FP32)
			c->mode = OP_FP32;
		else
			op_choice_widen(c, x->ops->v[t->node[i]].rule);
		if (out->recipes.finetune.algorithm != FINETUNE_OFF)
			op_choice_fell_back(c, &before);
	}
}

static char *make_text(const struct tuning *t, const struct plan *p)
{
	const struct context *x = t->own;
	struct settings s = plan_settings(p, &t->space);
	size_t wide = 0, fp32 = 0, i;
	struct str text = STR_INIT;

	for (i = 0; i < t->space.n_ops; i++) {
		wide += p->choice[i] == OPTION_16_BITS;
		fp32 += p->choice[i] == OPTION_BACK_TO_FP32;
	}
	settings_text(&s, x->list, &text);
	if (wide)
		str_addf(&text, ", %zu op%s in 16 bits", wide, wide == 1 ? "" : "s");
	if (fp32)
		str_addf(&text, ", %zu op%s in fp32", fp32, fp32 == 1 ? "" : "s");
	return text.s;
}

void settings_tuning_vary(struct tuning *t, const struct settings_list *l)
{
	((struct context *)t->own)->list = l;
}

static void add_op(struct tuning *t, size_t node, const struct op_mask *m)
{
	static const struct param_option options[] = { [OPTION_AS_SET] = { OPTION_STATIC, 0 },
						       [OPTION_16_BITS] = { OPTION_WIDE, 1 },
						       [OPTION_BACK_TO_FP32] = { OPTION_FP32, ~0u } };
	const struct op *op = &t->ops->v[node];
	bool may_fp32 = mask_allows_fp32(m, op);

	t->space.v[t->space.n] = (struct param){
		.kind = PARAM_OP,
		.name = op->name,
		.n_options = may_fp32 ? 3 : 2,
		.fallback = may_fp32 ? OPTION_BACK_TO_FP32 : NO_OPTION,
		.apply = NO_OPTION,
		.options = options,
		.type = op->rule->type,
		.block = op->block,
		.compute = op->rule->kind == OP_COMPUTE,
		.gain = t->ops->total_macs > 0 ? op->macs / t->ops->total_macs : 0,
	};
	t->node[t->space.n] = node;
	t->space.n_ops = ++t->space.n;
}

struct tuning *settings_tuning_new(const struct op_list *ops, const struct graph_index *g,
				   const struct tuning_options *o)
{
	struct settings first = settings_default();
	struct tuning *t = xcalloc(1, sizeof(*t));
	struct context *x = arena_alloc(&t->arena, sizeof(*x));
	const uint8_t *bytes = (const uint8_t *)&first;
	size_t i;

	*x = (struct context){ ops, g, o->defaults, NULL, o->recipes, o->samples[0], NULL };
	x->masks = arena_alloc(&t->arena, (ops->n + 1) * sizeof(*x->masks));
	if (ops->n)
		memcpy(x->masks, o->masks, ops->n * sizeof(*x->masks));
	t->ops = ops;
	t->own = x;
	t->own_qplan = make_qplan;
	t->own_text = make_text;
	t->space.v = xcalloc(ops->n + sizeof(first), sizeof(*t->space.v));
	t->node = xcalloc(ops->n, sizeof(*t->node));
	t->samples = arena_alloc(&t->arena, sizeof(*t->samples));
	t->samples[0] = o->samples[0];
	t->n_samples = 1;
	qplan_default(&t->base, ops, g, &o->defaults);
	for (i = 0; i < ops->n; i++) {
		mask_fit(&o->masks[i], &ops->v[i], &o->defaults, &t->base.ops[i]);
		if (t->base.ops[i].mode != OP_FP32 && ops->v[i].rule->kind != OP_MOVE)
			add_op(t, i, &o->masks[i]);
	}
	for (i = 0; i < sizeof(first); i++)
		t->space.v[t->space.n++] = (struct param){
			.kind = PARAM_RECIPE,
			.name = "settings",
			.first = bytes[i],
			.fallback = NO_OPTION,
			.apply = NO_OPTION,
			.block = -1,
		};
	return t;
}
