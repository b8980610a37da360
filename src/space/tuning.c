#include "space/tuning.h"

#include <stdlib.h>
#include <string.h>

#include "space/plan_json.h"

/* Settings in order of preference. What gives the same numbers is listed once: int8 asymmetric is uint8 shifted. 16 bits, and
 * ranges by algorithms that are not `tried`, are for those who ask. */
static size_t list_activations(const struct op_mask *m, const struct qplan_defaults *d, struct qsetting *out)
{
	bool have[2] = { false, false };
	size_t n = 0, i, k;

	for (i = 0; i < N_ACT_FORMS; i++) {
		const struct form *f = &act_forms[i];
		bool wide = dtype_size(f->dtype) == 2;

		if (m->act.dtype ? !(m->act.dtype & dtype_bit(f->dtype))
				 : wide || (f->dtype == DT_S8 && !d->cpu.s8_activations))
			continue;
		if ((m->act.scheme && !(m->act.scheme & 1u << f->scheme)) || (!wide && have[f->scheme]))
			continue;
		have[f->scheme] |= !wide;
		for (k = 0; k < RANGE_ALGORITHMS; k++) {
			const enum range_algorithm a = range_preferred(k);

			if (m->act.algorithm ? !(m->act.algorithm & 1u << a) : !range_methods[a]->tried)
				continue;
			out[n] = d->act;
			out[n].dtype = f->dtype;
			out[n].scheme = f->scheme;
			qsetting_use(&out[n++], a);
		}
	}
	return n;
}

/* 7 bits, and u8 beside s8, only where the op saturates or for those who ask */
static bool offers_weight(const struct op_mask *m, bool saturates, const struct form *f)
{
	if (m->weight.scheme && !(m->weight.scheme & 1u << f->scheme))
		return false;
	if (m->weight.dtype)
		return m->weight.dtype & dtype_bit(f->dtype);
	return f->dtype == DT_S8 || (f->dtype == DT_U8 && (saturates || m->weight.scheme));
}

static size_t list_weights(const struct op *op, const struct op_mask *m, const struct qplan_defaults *d,
			   struct qsetting *out)
{
	const unsigned algorithms = m->weight.algorithm;
	const bool saturates = op_saturates(&d->cpu, op, DT_U8, DT_S8);
	size_t n = 0, i;
	int whole, tensor, mse;

	for (i = 0; i < 2 * (size_t)N_WEIGHT_FORMS; i++) {
		const struct form *f = &weight_forms[i / 2];

		whole = i % 2;
		if ((!whole && !(saturates && f->dtype == DT_S8)) || !offers_weight(m, saturates, f))
			continue;
		if (whole && saturates && f->dtype == DT_S8 && d->elsewhere)
			continue;
		for (tensor = 0; tensor < 2; tensor++)
			for (mse = 0; mse < 2; mse++) {
				if (m->weight.granularity &&
				    !(m->weight.granularity & (tensor ? MASK_PER_TENSOR : MASK_PER_CHANNEL)))
					continue;
				if (algorithms && !(algorithms & 1u << (mse ? RANGE_MSE : RANGE_MINMAX)))
					continue;
				out[n] = d->weight;
				out[n].dtype = f->dtype;
				out[n].scheme = f->scheme;
				out[n].narrow = !whole;
				out[n].per_channel = !tensor;
				out[n++].algorithm = mse ? RANGE_MSE : RANGE_MINMAX;
			}
	}
	return n;
}

enum { ACTS_MAX = 4 * RANGE_ALGORITHMS, WEIGHTS_MAX = 16 };

/*
 * Weight-only. Preference: the defaults; other algorithms; other blocks; more bits, fewer bits. Other schemes and levels are for
 * those who ask.
 */
static size_t list_blocks(const struct op *op, const struct op_mask *m, const struct qplan_defaults *d,
			  struct op_choice *out, struct param_option *options, size_t room)
{
	static const int bits[] = { 4, 8, 2 }, levels[] = { 4, 0, 1 };
	static const int64_t blocks[] = { 32, 128, 64, 16, 256 };
	enum { FORMS = 3 * 5 * 2 * 3 * BLOCK_ALGORITHMS, FIRST = 2000 };
	const unsigned schemes = m->weight.scheme ? m->weight.scheme : 1u << SCHEME_ASYM;
	size_t n = 0, i;

	for (i = 0; i < FORMS && n < room; i++) {
		struct op_choice c = op_choice(OP_WEIGHT, &d->act, &d->weight);
		size_t k = i;

		c.blocks.algorithm = (enum block_algorithm)(k % BLOCK_ALGORITHMS);
		k /= BLOCK_ALGORITHMS;
		c.blocks.level = levels[k % 3];
		if (k % 3 && !m->weight.level)
			continue;
		k /= 3;
		c.blocks.format.symmetric = k % 2;
		if (!(schemes & 1u << (k % 2 ? SCHEME_SYM : SCHEME_ASYM)))
			continue;
		k /= 2;
		c.blocks.format.block = blocks[k % 5];
		c.blocks.format.bits = bits[k / 5];
		if (!mask_allows_block(m, op, &c.blocks) || block_setting_check(&c.blocks, NULL))
			continue;
		options[n] = (struct param_option){ .mode = OPTION_WEIGHT,
						    .setting = (unsigned)(FIRST + i),
						    .bits = (unsigned)c.blocks.format.bits,
						    .block = (unsigned)c.blocks.format.block,
						    .algorithm = c.blocks.algorithm,
						    .part = { 0, (uint16_t)n } };
		out[n++] = c;
	}
	return n;
}

/* what an op's weight takes up */
static double weight_bytes(const struct op *op, const struct op_choice *c)
{
	const double n = (double)op->inputs * (double)op->outputs;
	const struct block_format *f = &c->blocks.format;

	if (c->mode == OP_FP32)
		return 4 * n;
	if (c->mode != OP_WEIGHT)
		return n * (double)dtype_size(c->weight.dtype);
	return (double)block_packed_codes(f, op->outputs, op->inputs) +
	       4.0 * (double)(op->outputs * block_count(f, op->inputs)) +
	       (f->symmetric ? 0 : (double)block_packed_zeros(f, op->outputs, op->inputs));
}

/*
 * Preference: the defaults; then other ranges of the activations; then other weights. A Conv that can be static is not offered as
 * dynamic: the runtime takes several times as long for it as in fp32.
 */
static size_t list_choices(const struct op *op, const struct op_mask *m, const struct qplan_defaults *d,
			   struct op_choice *out, struct param_option *options)
{
	struct qsetting acts[ACTS_MAX], weights[WEIGHTS_MAX];
	size_t n_acts = list_activations(m, d, acts), n_weights = 1, n = 0, w, a;
	bool has_weight = op->rule->weight >= 0;

	weights[0] = d->weight;
	weights[0].narrow = false; /* of an op that has none */
	if (has_weight)
		n_weights = list_weights(op, m, d, weights);
	if (op->rule->kind == OP_TABLE) { /* its rows have one scale, and no activation is calibrated */
		n_acts = 1;
		n_weights = n_weights ? 1 : 0;
	}
	if (d->approach == APPROACH_WEIGHT)
		return list_blocks(op, m, d, out, options, SPACE_OPTIONS_MAX - 2);
	if (!mask_allows_int(m, op))
		return 0;
	if (op->modes & MODE_STATIC && d->approach != APPROACH_DYNAMIC)
		for (w = 0; w < n_weights; w++)
			for (a = 0; a < n_acts && n + 8 < SPACE_OPTIONS_MAX; a++) {
				bool pow2 = qsetting_is_pow2(&acts[a]); /* then throughout */

				if (pow2 && weights[w].algorithm != RANGE_MINMAX)
					continue;
				if (weights[w].narrow && !op_saturates(&d->cpu, op, acts[a].dtype, DT_S8))
					continue; /* 7 bits would only lose accuracy */
				options[n] = (struct param_option){ .mode = OPTION_STATIC,
								    .setting = (unsigned)(w * ACTS_MAX + a),
								    .part = { (uint16_t)a, (uint16_t)w } };
				out[n] = op_choice(OP_STATIC, &acts[a], &weights[w]);
				if (pow2)
					out[n].weight.algorithm = acts[a].algorithm;
				n++;
			}
	if (op->modes & MODE_DYNAMIC && d->approach != APPROACH_STATIC && !(n && op->rule->dynamic_slow) &&
	    (!m->act.dtype || m->act.dtype & T_U8))
		for (w = 0; w < n_weights && n + 1 < SPACE_OPTIONS_MAX; w++) {
			if (weights[w].algorithm == RANGE_MSE)
				continue;
			options[n] = (struct param_option){ .mode = OPTION_DYNAMIC,
							    .setting = (unsigned)(1000 + w),
							    .part = { 0, (uint16_t)w } };
			out[n++] = op_choice(OP_DYNAMIC, &d->act, &weights[w]);
		}
	if (d->approach == APPROACH_ALL)
		n += list_blocks(op, m, d, out + n, options + n, SPACE_OPTIONS_MAX - 2 - n);
	return n;
}

static unsigned type_number(struct tuning *t, const char *type)
{
	unsigned i;

	for (i = 0; i < t->space.n_types; i++)
		if (strcmp(t->space.types[i], type) == 0)
			return i;
	t->space.types[t->space.n_types++] = type;
	return i;
}

/* the share of the model's work that int8 is expected to save; a little even where nothing is known or gained, since
 * staying in integers saves conversions */
static double expected_gain(const struct op *op, double total_macs)
{
	double saved = op->speedup > 1 ? 1 - 1 / op->speedup : 0;

	return total_macs > 0 ? op->macs / total_macs * (saved > 0.05 ? saved : 0.05) : 0;
}

/* do they run the same kernels, if on other numbers? */
static bool alike(const struct op_choice *a, const struct op_choice *b)
{
	return a->mode == b->mode &&
	       (a->mode == OP_FP32 ||
		(a->mode == OP_WEIGHT && a->blocks.level == b->blocks.level &&
		 a->blocks.format.bits == b->blocks.format.bits &&
		 a->blocks.format.block == b->blocks.format.block &&
		 a->blocks.format.symmetric == b->blocks.format.symmetric) ||
		(a->mode != OP_WEIGHT && a->act.dtype == b->act.dtype && a->act.scheme == b->act.scheme &&
		 a->weight.dtype == b->weight.dtype && a->weight.per_channel == b->weight.per_channel));
}

static void find_alike(const struct op_choice *choices, struct param_option *options, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; !alike(&choices[k], &choices[i]); k++)
			;
		options[i].alike = (uint16_t)k;
	}
}

static bool same_choices(const struct op_choice *a, const struct op_choice *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i].mode != b[i].mode || !qsetting_equal(&a[i].act, &b[i].act) ||
		    !qsetting_equal(&a[i].weight, &b[i].weight) ||
		    !block_setting_equal(&a[i].blocks, &b[i].blocks))
			return false;
	return true;
}

/* ops of one type mostly have the same options, and then the same names */
static const char *const *name_options(struct tuning *t, size_t param, const struct op *op)
{
	const struct param *p = &t->space.v[param];
	const char **names;
	size_t i;

	for (i = param; i-- > 0;)
		if (t->space.v[i].type_id == p->type_id && t->space.v[i].n_options == p->n_options &&
		    same_choices(t->choices[i], t->choices[param], p->n_options))
			return t->space.v[i].names;
	names = arena_alloc(&t->space.arena, p->n_options * sizeof(*names));
	for (i = 0; i < p->n_options; i++)
		names[i] = op_choice_text(&t->space.arena, op, &t->choices[param][i]);
	return names;
}

static void add_op(struct tuning *t, size_t node, const struct tuning_options *o)
{
	const struct op *op = &t->ops->v[node];
	const struct op_mask *m = &o->masks[node];
	struct op_choice *choices = arena_alloc(&t->arena, SPACE_OPTIONS_MAX * sizeof(*choices));
	struct param_option *options = arena_alloc(&t->arena, SPACE_OPTIONS_MAX * sizeof(*options));
	size_t n = list_choices(op, m, &o->defaults, choices, options), i = t->space.n, k;
	struct param *p = &t->space.v[i];
	bool starts_fp32 =
		t->base.ops[node].mode == OP_FP32; /* off by default: on offer, but not in the default plan */
	bool may_fp32 = mask_allows_fp32(m, op) || !n;

	*p = (struct param){
		.kind = PARAM_OP,
		.name = op->name,
		.fallback = NO_OPTION,
		.apply = NO_OPTION,
		.options = options,
		.type = op->rule->type,
		.type_id = type_number(t, op->rule->type),
		.block = op->block,
		.compute = op->rule->kind == OP_COMPUTE,
	};
	if (o->mixed && n && options[0].mode == OPTION_STATIC) {
		options[n] = (struct param_option){ .mode = OPTION_WIDE, .setting = ~0u };
		choices[n] = choices[0];
		n += op_choice_widen(&choices[n], op->rule) && mask_allows(m, op, &choices[n]);
	}
	if (may_fp32) {
		options[n] = (struct param_option){ .mode = OPTION_FP32, .setting = ~0u };
		choices[n] = op_choice(OP_FP32, &o->defaults.act, &o->defaults.weight);
		p->fallback = (uint16_t)n++;
	}
	p->n_options = (uint16_t)n;
	p->first = starts_fp32 && may_fp32 ? p->fallback : 0;
	t->node[i] = node;
	t->choices[i] = choices;
	for (k = 0; k < n; k++)
		options[k].bytes = weight_bytes(op, &choices[k]);
	p->names = name_options(t, i, op);
	find_alike(choices, options, n);
	t->space.n = ++t->space.n_ops;
}

/* off and on; or off and each number; or, where the user wants it on, each number */
static size_t list_recipe(struct tuning *t, const struct recipe *r, bool fixed,
			  const struct recipe_numbers *numbers, struct recipe_option **out)
{
	size_t n = 0, i;

	*out = arena_alloc(&t->arena, (2 + numbers->n) * sizeof(**out));
	if (!fixed)
		(*out)[n++] = (struct recipe_option){ .on = false };
	if (!r->number)
		(*out)[n++] = (struct recipe_option){ .on = true };
	for (i = 0; i < numbers->n && n < SPACE_OPTIONS_MAX; i++)
		(*out)[n++] = (struct recipe_option){ true, numbers->v[i] };
	return n;
}

static void apply_recipe(const struct tuning *t, const struct recipe *recipe, const struct recipe_option *o,
			 struct recipes *r)
{
	if (recipe->words && o->on)
		recipe_copy(r, &t->when_on, recipe);
	else
		recipe_set(r, recipe, o->on);
	if (recipe->number)
		*recipe_number(r, recipe) = o->number;
}

static const char *const *name_recipe(struct tuning *t, const struct recipe *info,
				      const struct recipe_option *options, size_t n)
{
	const char **names = arena_alloc(&t->space.arena, n * sizeof(*names));
	size_t i;

	for (i = 0; i < n; i++) {
		struct recipes r = t->base.recipes;

		apply_recipe(t, info, &options[i], &r);
		names[i] = recipe_text(&t->space.arena, &r, info);
	}
	return names;
}

static double matrix_share(const struct op_list *ops)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < ops->n; i++)
		sum += ops->v[i].rule && ops->v[i].rule->layout == LAYOUT_MATRIX ? ops->v[i].macs : 0;
	return ops->total_macs > 0 ? sum / ops->total_macs : 1;
}

static void add_recipes(struct tuning *t, const struct tuning_options *o)
{
	size_t i;

	for (i = 0; i < RECIPES; i++) {
		const struct recipe *r = recipe_list[i];
		const struct recipe_numbers numbers =
			r->number && o->numbers ? o->numbers[i] : (struct recipe_numbers){ NULL, 0 };
		bool now = recipe_get(&o->recipes, r), fixed = o->recipe_fixed[i];
		struct recipe_option *options;
		size_t n;

		if (!r->tuned || (fixed && !(now && numbers.n > 1)))
			continue;
		n = list_recipe(t, r, fixed, &numbers, &options);
		if (n < 2)
			continue;
		t->recipe_options[t->n_recipes] = options;
		t->recipe[t->n_recipes++] = i;
		t->space.v[t->space.n++] = (struct param){
			.kind = PARAM_RECIPE,
			.name = r->name,
			.names = name_recipe(t, r, options, n),
			.n_options = (uint16_t)n,
			.first = now && !fixed,
			.fallback = NO_OPTION,
			.apply = !fixed && !r->usual,
			.keeps_fp32 = r->keeps_fp32,
			.costly = r->costly,
			.corrects = r->changes_numbers && !r->rewrites && !r->costly,
			.rewrites = r->rewrites,
			.rounds = i == RECIPE_finetune,
			.block = -1,
		};
	}
}

static bool tunes_rounding(const struct space *s)
{
	size_t i;

	for (i = s->n_ops; i < s->n; i++)
		if (s->v[i].rounds)
			return true;
	return false;
}

/* the last parameter, if there are several sizes */
static void name_samples(struct tuning *t)
{
	const char **names = arena_alloc(&t->space.arena, t->n_samples * sizeof(*names));
	size_t i;

	for (i = 0; i < t->n_samples; i++)
		names[i] = arena_strfmt(&t->space.arena, "%lld", (long long)t->samples[i]);
	if (t->n_samples > 1)
		t->space.v[t->space.n - 1].names = names;
	else
		space_fix_samples(&t->space, t->samples[0]);
}

/* in fp32 by default, but with the right bits it is small and loses little */
static bool is_block_table(const struct op *op, const struct tuning_options *o)
{
	return op->rule->kind == OP_TABLE && op->modes & MODE_WEIGHT &&
	       o->defaults.approach == APPROACH_WEIGHT;
}

struct tuning *tuning_new(const struct op_list *ops, const struct graph_index *g,
			  const struct tuning_options *o)
{
	struct tuning *t = xcalloc(1, sizeof(*t));
	size_t max = ops->n + RECIPES + 1, i;

	t->ops = ops;
	t->space.v = xcalloc(max, sizeof(*t->space.v));
	t->space.types = xcalloc(max, sizeof(*t->space.types));
	t->space.n_blocks = (int)ops->n_blocks;
	t->space.prefer_static =
		o->defaults.approach == APPROACH_AUTO || o->defaults.approach == APPROACH_ALL;
	t->node = xcalloc(max, sizeof(*t->node));
	t->choices = xcalloc(max, sizeof(*t->choices));
	t->recipe = xcalloc(max, sizeof(*t->recipe));
	t->recipe_options = xcalloc(max, sizeof(*t->recipe_options));
	qplan_default(&t->base, ops, g, &o->defaults);
	t->base.recipes = o->recipes;
	t->when_on = o->when_on;
	for (i = 0; i < ops->n; i++) {
		mask_fit(&o->masks[i], &ops->v[i], &o->defaults, &t->base.ops[i]);
		/* what the default plan leaves alone gains nothing: it is tuned only for those who name it */
		if (ops->v[i].rule && ops->v[i].offered && ops->v[i].rule->kind != OP_MOVE &&
		    (t->base.ops[i].mode != OP_FP32 || o->masks[i].named || is_block_table(&ops->v[i], o)))
			add_op(t, i, o);
		else if (!ops->v[i].rule || ops->v[i].rule->kind != OP_MOVE)
			t->base.ops[i].mode = OP_FP32;
	}
	add_recipes(t, o);
	if (o->n_samples > 1) {
		t->samples = arena_alloc(&t->arena, o->n_samples * sizeof(*t->samples));
		memcpy(t->samples, o->samples, o->n_samples * sizeof(*t->samples));
		t->space.v[t->space.n++] = (struct param){ .kind = PARAM_SAMPLES,
							   .name = "samples",
							   .n_options = (uint16_t)o->n_samples,
							   .fallback = NO_OPTION,
							   .apply = NO_OPTION,
							   .block = -1 };
	}
	t->n_samples = o->n_samples;
	if (o->n_samples == 1) {
		t->samples = arena_alloc(&t->arena, sizeof(*t->samples));
		t->samples[0] = o->samples[0];
	}
	t->space.rounds = t->base.recipes.finetune.algorithm != FINETUNE_OFF && !tunes_rounding(&t->space);
	name_samples(t);
	space_fix_format(&t->space, t->base.format);
	space_fix_recipes(&t->space, &t->base.recipes, NULL);
	space_fix_ops(&t->space, &t->base, ops);
	tuning_weigh(t);
	return t;
}

void tuning_weigh(struct tuning *t)
{
	const double total = t->ops->total_macs;
	size_t i;

	for (i = 0; i < t->space.n_ops; i++) {
		const struct op *op = &t->ops->v[t->node[i]];

		t->space.v[i].gain = !t->own ? expected_gain(op, total) : total > 0 ? op->macs / total : 0;
	}
	for (i = 0; i < t->n_recipes; i++)
		t->space.v[t->space.n_ops + i].spares =
			recipe_list[t->recipe[i]]->matrix_only ? 1 - matrix_share(t->ops) : 0;
}

bool tuning_limit_samples(struct tuning *t, size_t there_are)
{
	size_t i, k, n = 0;
	bool fewer;

	if (t->n_samples < 2)
		return false;
	for (i = 0; i < t->n_samples; i++) {
		int64_t size = t->samples[i];

		if (size <= 0 || (size_t)size > there_are)
			size = (int64_t)there_are;
		for (k = 0; k < n && t->samples[k] != size;)
			k++;
		t->samples[k] = size;
		n += k == n;
	}
	fewer = n < t->n_samples;
	t->n_samples = n;
	t->space.v[t->space.n - 1].n_options = (uint16_t)n;
	t->space.n -= n == 1;
	name_samples(t);
	return fewer;
}

void tuning_free(struct tuning *t)
{
	if (!t)
		return;
	space_release(&t->space);
	qplan_release(&t->base);
	free(t->space.v);
	free(t->space.types);
	free(t->node);
	free(t->choices);
	free(t->recipe);
	free(t->recipe_options);
	arena_release(&t->arena);
	free(t);
}

size_t tuning_param(const struct tuning *t, size_t node)
{
	size_t i;

	for (i = 0; i < t->space.n_ops; i++)
		if (t->node[i] == node)
			return i;
	return MAP_NONE;
}

static struct recipes recipes_of(const struct tuning *t, const struct plan *p)
{
	struct recipes r = t->base.recipes;
	size_t i;

	for (i = 0; i < t->n_recipes; i++)
		apply_recipe(t, recipe_list[t->recipe[i]],
			     &t->recipe_options[i][p->choice[t->space.n_ops + i]], &r);
	return r;
}

static bool is_int8(const struct tuning *t, const struct plan *p, size_t op)
{
	return option_is_int8(&t->space.v[op].options[p->choice[op]]);
}

uint16_t tuning_back(const struct tuning *t, const struct plan *p, size_t op)
{
	const struct plan *root = plan_root(p, &t->space);
	const struct param *o = &t->space.v[op];

	if (root && is_int8(t, root, op))
		return root->choice[op];
	return o->first != o->fallback ? o->first : 0;
}

static void tell_fallen_back(const struct tuning *t, const struct plan *p, struct qplan *out)
{
	const struct plan *root = plan_root(p, &t->space);
	size_t i;

	plan_hash(root ? root : p, &t->space, out->root);
	for (i = 0; root && i < t->space.n_ops; i++)
		if (!is_int8(t, p, i) && is_int8(t, root, i))
			op_choice_fell_back(&out->ops[t->node[i]], &t->choices[i][root->choice[i]]);
}

void tuning_qplan(const struct tuning *t, const struct plan *p, struct qplan *out)
{
	size_t i;

	if (t->own_qplan) {
		t->own_qplan(t, p, out);
		return;
	}
	*out = t->base;
	out->ops = xcalloc(out->n, sizeof(*out->ops));
	memcpy(out->ops, t->base.ops, out->n * sizeof(*out->ops));
	for (i = 0; i < t->space.n_ops; i++)
		out->ops[t->node[i]] = t->choices[i][p->choice[i]];
	out->recipes = recipes_of(t, p);
	if (out->recipes.finetune.algorithm != FINETUNE_OFF)
		tell_fallen_back(t, p, out);
}

int64_t tuning_samples(const struct tuning *t, const struct plan *p)
{
	return t->samples[t->n_samples > 1 ? p->choice[p->n - 1] : 0];
}

char *tuning_text(const struct tuning *t, const struct plan *p, const char *otherwise)
{
	return t->own_text ? t->own_text(t, p) : xstrdup(otherwise);
}
