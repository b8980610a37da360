#include "space/settings_tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "space/plan_json.h"

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
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		size_t at = space->n_ops + i;

		s.v[i] = plan_uses(p, space, at)
				 ? setting_value((enum setting)i, space->v[at].names[p->choice[at]])
				 : (double)NAN;
	}
	return s;
}

enum fettle_status settings_plan(const struct settings *s, struct space *space, struct plan *out,
				 struct err *err)
{
	size_t i;

	plan_release(out);
	plan_init(out, space);
	for (i = 0; i < SETTINGS; i++) {
		struct str name = STR_INIT;
		unsigned k;

		if (isnan(s->v[i]))
			continue;
		setting_name((enum setting)i, s->v[i], &name);
		k = space_option(space, space->n_ops + i, name.s);
		str_release(&name);
		if (k == NO_OPTION)
			return fail(err, FETTLE_INVALID, "cannot search: more than %d values of %s",
				    NO_OPTION, setting_infos[i].name);
		out->choice[space->n_ops + i] = (uint16_t)k;
	}
	return FETTLE_OK;
}

static void add_setting(struct space *s, enum setting which)
{
	const struct setting_info *info = &setting_infos[which];
	struct param *p = &s->v[s->n];
	size_t i, n = setting_n_values(which);

	*p = (struct param){ .kind = PARAM_SETTING,
			     .name = info->name,
			     .open = true,
			     .fallback = NO_OPTION,
			     .apply = NO_OPTION,
			     .block = -1 };
	if (info->when != SETTINGS) { /* whose options are numbered as its values */
		p->when = s->n_ops + info->when;
		p->when_options = info->values;
	}
	for (i = 0; i <= n; i++) {
		struct str name = STR_INIT;
		unsigned k;

		setting_name(which, i < n ? setting_at(which, i) : info->first, &name);
		k = space_option(s, s->n, name.s);
		p->first = (uint16_t)(i < n ? 0 : k);
		str_release(&name);
	}
	p->open = !n;
	s->n++;
}

void space_add_settings(struct space *s)
{
	int i;

	for (i = 0; i < SETTINGS; i++)
		add_setting(s, (enum setting)i);
}

/* what weights are rounded for: the plan before anything fell back */
static void root_hash(const struct tuning *t, const struct plan *p, char out[FINGERPRINT_LEN])
{
	struct plan root = PLAN_INIT;
	size_t i;

	plan_copy(&root, p);
	for (i = 0; i < t->space.n_ops; i++)
		root.choice[i] = OPTION_AS_SET;
	plan_hash(&root, &t->space, out);
	plan_release(&root);
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
	if (out->recipes.finetune.algorithm != FINETUNE_OFF)
		root_hash(t, p, out->root);
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
	static const struct param_option options[] = {
		[OPTION_AS_SET] = { .mode = OPTION_STATIC, .setting = 0, .alike = OPTION_AS_SET },
		[OPTION_16_BITS] = { .mode = OPTION_WIDE, .setting = 1, .alike = OPTION_16_BITS },
		[OPTION_BACK_TO_FP32] = { .mode = OPTION_FP32, .setting = ~0u, .alike = OPTION_BACK_TO_FP32 },
	};
	static const char *const names[] = { [OPTION_AS_SET] = "\"as set\"",
					     [OPTION_16_BITS] = "\"16 bits\"",
					     [OPTION_BACK_TO_FP32] = "\"fp32\"" };
	const struct op *op = &t->ops->v[node];
	bool may_fp32 = mask_allows_fp32(m, op);

	t->space.v[t->space.n] = (struct param){
		.kind = PARAM_OP,
		.name = op->name,
		.names = names,
		.n_options = may_fp32 ? 3 : 2,
		.fallback = may_fp32 ? OPTION_BACK_TO_FP32 : NO_OPTION,
		.apply = NO_OPTION,
		.options = options,
		.type = op->rule->type,
		.block = op->block,
		.compute = op->rule->kind == OP_COMPUTE,
	};
	t->node[t->space.n] = node;
	t->space.n_ops = ++t->space.n;
}

struct tuning *settings_tuning_new(const struct op_list *ops, const struct graph_index *g,
				   const struct tuning_options *o)
{
	/* a base for the recipe finetune has what is no setting of it */
	const bool decided[RECIPES] = { [RECIPE_cle] = true,
					[RECIPE_smooth_quant] = true,
					[RECIPE_finetune] = o->recipes.finetune.algorithm == FINETUNE_OFF };
	struct tuning *t = xcalloc(1, sizeof(*t));
	struct context *x = arena_alloc(&t->arena, sizeof(*x));
	size_t i;

	*x = (struct context){ ops, g, o->defaults, NULL, o->recipes, o->samples[0], NULL };
	x->masks = arena_alloc(&t->arena, (ops->n + 1) * sizeof(*x->masks));
	if (ops->n)
		memcpy(x->masks, o->masks, ops->n * sizeof(*x->masks));
	t->ops = ops;
	t->own = x;
	t->own_qplan = make_qplan;
	t->own_text = make_text;
	t->space.v = xcalloc(ops->n + SETTINGS, sizeof(*t->space.v));
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
	space_add_settings(&t->space);
	space_fix_format(&t->space, o->defaults.format);
	space_fix_samples(&t->space, o->samples[0]);
	space_fix_recipes(&t->space, &o->recipes, decided);
	space_fix_defaults(&t->space, &o->defaults);
	space_fix_masks(&t->space, o->masks, ops);
	tuning_weigh(t);
	return t;
}
