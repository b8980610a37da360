#include "space/plan_read.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/json_text.h"

static const char *const modes[] = {
	[OP_FP32] = "fp32", [OP_STATIC] = "static", [OP_DYNAMIC] = "dynamic", [OP_WEIGHT] = "weight_only"
};
const char *const plan_formats[FORMATS] = {
	[FORMAT_QDQ] = "qdq", [FORMAT_QOPERATOR] = "qoperator", [FORMAT_QDQ_WEIGHTS] = "qdq_weights"
};
const char *const plan_schemes[2] = { [SCHEME_ASYM] = "asym", [SCHEME_SYM] = "sym" };
const char *const plan_grains[2] = { "per_tensor", "per_channel" };

static json_t *side_to_json(const struct qsetting *s, bool weight)
{
	json_t *j = json_pack("{s:s, s:s, s:s}", "dtype", dtype_name(s->dtype), "scheme",
			      plan_schemes[s->scheme], "algorithm", range_methods[s->algorithm]->name);

	if (range_methods[s->algorithm]->parameter.key && s->parameter)
		json_object_set_new(j, range_methods[s->algorithm]->parameter.key, json_real(s->parameter));
	if (weight) {
		json_object_set_new(j, "granularity", json_string(plan_grains[s->per_channel]));
		json_object_set_new(j, "reduce_range", json_boolean(s->narrow));
	}
	return j;
}

static json_t *blocks_to_json(const struct block_setting *s)
{
	return json_pack("{s:i, s:I, s:s, s:s, s:i}", "bits", s->format.bits, "group_size",
			 (json_int_t)s->format.block, "scheme",
			 plan_schemes[s->format.symmetric ? SCHEME_SYM : SCHEME_ASYM], "algorithm",
			 block_methods[s->algorithm]->name, "accuracy_level", s->level);
}

static json_t *op_to_json(const struct op *op, const struct op_choice *c)
{
	json_t *j = json_pack("{s:s}", "mode", modes[c->mode]);

	if (c->mode == OP_STATIC && op->rule->kind != OP_TABLE)
		json_object_set_new(j, "activation", side_to_json(&c->act, false));
	if (c->mode == OP_WEIGHT)
		json_object_set_new(j, "weight", blocks_to_json(&c->blocks));
	else if (c->mode != OP_FP32 && op->rule->weight >= 0)
		json_object_set_new(j, "weight", side_to_json(&c->weight, true));
	return j;
}

/* prints it and lets go of it */
static const char *text_of(struct arena *a, json_t *j)
{
	struct str text = STR_INIT;
	const char *out;

	json_text(j, &text);
	out = arena_strdup(a, text.s);
	str_release(&text);
	json_decref(j);
	return out;
}

const char *op_choice_text(struct arena *a, const struct op *op, const struct op_choice *c)
{
	return text_of(a, op_to_json(op, c));
}

static json_t *key_to_json(const struct recipe_key *k, const void *p)
{
	switch (k->type) {
	case RECIPE_COUNT:
		return json_integer((json_int_t) * (const size_t *)p);
	case RECIPE_SEED:
		return json_integer((json_int_t) * (const uint64_t *)p);
	case RECIPE_REAL:
		return json_real(*(const double *)p);
	case RECIPE_PAIR:
		return json_pack("[f, f]", ((const double *)p)[0], ((const double *)p)[1]);
	case RECIPE_BOOL:
		return json_boolean(*(const bool *)p);
	case RECIPE_WORD:
		return k->newer && !*(const int *)p ? NULL : json_string(k->words[*(const int *)p]);
	}
	return NULL;
}

static json_t *keys_to_json(const struct recipes *r, const struct recipe *i)
{
	const struct recipe_key *k;
	json_t *j = json_object();

	for (k = i->keys; k->name; k++)
		json_object_set_new(j, k->name, key_to_json(k, (const char *)r + k->offset));
	return j;
}

/* true or false; its number instead of true; of one with settings all of those, or false */
static json_t *recipe_to_json(const struct recipes *r, const struct recipe *i)
{
	bool on = recipe_get(r, i);
	double x;

	if (i->keys)
		return on ? keys_to_json(r, i) : json_false();
	if (!i->number || !on)
		return json_boolean(on);
	x = *(const double *)(const void *)((const char *)r + i->number->offset);
	return i->number->word && x == i->number->word_value ? json_string(i->number->word) : json_real(x);
}

const char *recipe_text(struct arena *a, const struct recipes *r, const struct recipe *i)
{
	return text_of(a, recipe_to_json(r, i));
}

/* ---- what no parameter decides ---- */

#define LEFT_OUTPUTS "optypes_to_exclude_output_quant"

static void fix(struct space *s, const char *section, const char *name, const char *value)
{
	VEC_PUSH(&s->fixed, ((struct space_fixed){ section, name, value }));
}

static void fix_text(struct space *s, const char *name, const char *value)
{
	fix(s, "", name, text_of(&s->arena, json_string(value)));
}

void space_fix_samples(struct space *s, int64_t samples)
{
	fix(s, "", "samples", arena_strfmt(&s->arena, "%lld", (long long)samples));
}

void space_fix_format(struct space *s, enum quant_format format)
{
	fix(s, "", "fettle_plan", arena_strfmt(&s->arena, "%d", PLAN_VERSION));
	fix_text(s, "format", plan_formats[format]);
}

static bool is_param(const struct space *s, enum param_kind kind, const char *name)
{
	size_t i;

	for (i = s->n_ops; i < s->n; i++)
		if (s->v[i].kind == kind && strcmp(s->v[i].name, name) == 0)
			return true;
	return false;
}

void space_fix_recipes(struct space *s, const struct recipes *r, const bool *decided)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (!(decided && decided[i]) &&
		    !(recipe_list[i]->newer && !recipe_applies(r, recipe_list[i])) &&
		    !is_param(s, PARAM_RECIPE, recipe_list[i]->name))
			fix(s, "recipes", recipe_list[i]->name, recipe_text(&s->arena, r, recipe_list[i]));
	for (i = 0; i < r->n_no_output; i++)
		json_array_append_new(list, json_string(r->no_output[i]));
	if (r->n_no_output)
		fix(s, "recipes", LEFT_OUTPUTS, text_of(&s->arena, json_incref(list)));
	json_decref(list);
}

void space_fix_ops(struct space *s, const struct qplan *p, const struct op_list *ops)
{
	struct map params = MAP_INIT;
	size_t i;

	for (i = 0; i < s->n_ops; i++)
		map_set(&params, s->v[i].name, i);
	for (i = 0; i < ops->n; i++) {
		const struct op *op = &ops->v[i];
		const struct op_choice *c = &p->ops[i];

		if (!op->rule || op->rule->kind == OP_MOVE || (!op->offered && c->mode == OP_FP32) ||
		    map_get(&params, op->name) != MAP_NONE)
			continue;
		fix(s, "ops", op->name, op_choice_text(&s->arena, op, c));
		if (c->fell_back) {
			struct op_choice before = op_choice(OP_STATIC, &c->act_before, &c->weight_before);

			fix(s, "before", op->name, op_choice_text(&s->arena, op, &before));
		}
	}
	map_release(&params);
}

/* as the only plan of a space without parameters */
char *qplan_to_json(const struct qplan *p, const struct op_list *ops, int64_t samples)
{
	struct space s = { .n = 0 };
	char *text;

	space_fix_format(&s, p->format);
	space_fix_samples(&s, samples);
	space_fix_recipes(&s, &p->recipes, NULL);
	space_fix_ops(&s, p, ops);
	text = plan_text(&(struct plan)PLAN_INIT, &s);
	space_release(&s);
	return text;
}

enum fettle_status plan_read_word(const struct plan_reader *r, const json_t *j, const char *key,
				  const char *const *words, size_t n, int *out)
{
	const json_t *v = json_object_get(j, key);
	const char *text = json_string_value(v), *near;
	size_t i;

	if (!v)
		return FETTLE_OK;
	for (i = 0; text && i < n; i++)
		if (strcmp(text, words[i]) == 0) {
			*out = (int)i;
			return FETTLE_OK;
		}
	near = text ? str_nearest(text, words, n) : NULL;
	return fail(r->err, FETTLE_INVALID, "cannot read plan %s: op '%s', %s '%s'%s%s%s", r->where, r->op,
		    key, text ? text : "(not a text)", near ? ", did you mean '" : ", which is no valid word",
		    near ? near : "", near ? "'?" : "");
}

/* `name` may be NULL. A parameter of another algorithm is checked, too. */
static enum fettle_status read_algorithm(const struct plan_reader *r, const json_t *j, const char *name,
					 struct qsetting *s)
{
	enum range_algorithm a = s->algorithm;
	int i;

	if (name && range_parse(name, &a, r->err))
		return fail_prefix(r->err, FETTLE_INVALID, "cannot read plan %s: op '%s'", r->where, r->op);
	qsetting_use(s, a);
	for (i = 0; i < RANGE_ALGORITHMS; i++) {
		const struct range_method *m = range_methods[i];
		const json_t *v = m->parameter.key ? json_object_get(j, m->parameter.key) : NULL;
		const double x = json_number_value(v);

		if (v && !(json_is_number(v) && x >= m->parameter.min && x <= m->parameter.max))
			return fail(r->err, FETTLE_INVALID,
				    "cannot read plan %s: op '%s', %s %g, need a number from %g to %g",
				    r->where, r->op, m->parameter.key, x, m->parameter.min, m->parameter.max);
		if (v && i == (int)a)
			s->parameter = x;
	}
	return FETTLE_OK;
}

static enum fettle_status read_side(const struct plan_reader *r, const json_t *j, struct qsetting *s)
{
	static const char *const types[] = { "uint8", "int8", "uint16", "int16" };
	static const enum dtype values[] = { DT_U8, DT_S8, DT_U16, DT_S16 };
	const char *algorithm = json_string_value(json_object_get(j, "algorithm"));
	int dtype = -1, scheme = s->scheme, grain = s->per_channel;
	enum fettle_status st;

	if (!j)
		return FETTLE_OK;
	st = plan_read_word(r, j, "dtype", types, ARRAY_LEN(types), &dtype);
	st = st ? st : plan_read_word(r, j, "scheme", plan_schemes, 2, &scheme);
	st = st ? st : plan_read_word(r, j, "granularity", plan_grains, 2, &grain);
	if (!st)
		st = read_algorithm(r, j, algorithm, s);
	if (st)
		return st;
	if (dtype >= 0)
		s->dtype = values[dtype];
	s->scheme = (enum scheme)scheme;
	s->per_channel = grain;
	s->narrow = json_is_true(json_object_get(j, "reduce_range"));
	return FETTLE_OK;
}

static enum fettle_status read_count(const struct plan_reader *r, const json_t *j, const char *key,
				     int64_t *out)
{
	const json_t *v = json_object_get(j, key);

	if (v && !json_is_integer(v))
		return fail(r->err, FETTLE_INVALID, "cannot read plan %s: op '%s', %s is not a whole number",
			    r->where, r->op, key);
	if (v)
		*out = json_integer_value(v);
	return FETTLE_OK;
}

static enum fettle_status read_blocks(const struct plan_reader *r, const json_t *j, struct block_setting *s)
{
	const char *algorithm = json_string_value(json_object_get(j, "algorithm"));
	int64_t bits = s->format.bits, level = s->level;
	int scheme = s->format.symmetric ? SCHEME_SYM : SCHEME_ASYM;
	enum fettle_status st;

	if (!j)
		return FETTLE_OK;
	st = plan_read_word(r, j, "scheme", plan_schemes, 2, &scheme);
	st = st ? st : read_count(r, j, "bits", &bits);
	st = st ? st : read_count(r, j, "group_size", &s->format.block);
	st = st ? st : read_count(r, j, "accuracy_level", &level);
	if (st)
		return st;
	s->format.bits = bits > 0 && bits < 64 ? (int)bits : 0;
	s->format.symmetric = scheme == SCHEME_SYM;
	s->level = level >= 0 && level < 64 ? (int)level : -1;
	if (algorithm)
		st = block_method_parse(algorithm, &s->algorithm, r->err);
	if (!st)
		st = block_setting_check(s, r->err);
	return st ? fail_prefix(r->err, FETTLE_INVALID, "cannot read plan %s: op '%s'", r->where, r->op) : st;
}

static enum fettle_status check_mode(const struct plan_reader *r, const struct op *op, enum op_mode mode)
{
	static const unsigned need[] = { [OP_FP32] = 0,
					 [OP_STATIC] = MODE_STATIC,
					 [OP_DYNAMIC] = MODE_DYNAMIC,
					 [OP_WEIGHT] = MODE_WEIGHT };

	if (!(need[mode] & ~op->modes))
		return FETTLE_OK;
	return fail(r->err, FETTLE_INVALID, "cannot read plan %s: op '%s' cannot be %s: %s", r->where, r->op,
		    modes[mode], op->why ? op->why : "the runtime has no such kernel");
}

static enum fettle_status read_op(const struct plan_reader *r, const json_t *j, const struct op *op,
				  struct op_choice *c)
{
	int mode = OP_FP32;
	enum fettle_status st;

	st = plan_read_word(r, j, "mode", modes, ARRAY_LEN(modes), &mode);
	if (!st)
		st = check_mode(r, op, (enum op_mode)mode);
	c->mode = (enum op_mode)mode;
	if (!st && c->mode == OP_WEIGHT)
		return read_blocks(r, json_object_get(j, "weight"), &c->blocks);
	st = st ? st : read_side(r, json_object_get(j, "activation"), &c->act);
	return st ? st : read_side(r, json_object_get(j, "weight"), &c->weight);
}

static enum fettle_status read_before(const struct plan_reader *r, const json_t *j, const struct op *op,
				      struct op_choice *c)
{
	struct op_choice was = op_choice(OP_STATIC, &c->act, &c->weight);
	enum fettle_status st = check_mode(r, op, OP_STATIC);

	st = st ? st : read_side(r, json_object_get(j, "activation"), &was.act);
	st = st ? st : read_side(r, json_object_get(j, "weight"), &was.weight);
	op_choice_fell_back(c, &was);
	return st;
}

/* the ops that a section names */
static enum fettle_status read_ops(struct plan_reader *r, json_t *list, const struct op_list *ops,
				   struct qplan *out,
				   enum fettle_status (*read)(const struct plan_reader *r, const json_t *j,
							      const struct op *op, struct op_choice *c))
{
	struct map names = MAP_INIT;
	enum fettle_status st = FETTLE_OK;
	const char **all = xcalloc(ops->n, sizeof(*all));
	const char *name;
	json_t *j;
	size_t i;

	for (i = 0; i < ops->n; i++) {
		map_set(&names, ops->v[i].name, i);
		all[i] = ops->v[i].name;
	}
	json_object_foreach(list, name, j)
	{
		i = map_get(&names, name);
		r->op = name;
		if (i == MAP_NONE) {
			const char *near = str_nearest(name, all, ops->n);

			st = fail(r->err, FETTLE_INVALID,
				  "cannot read plan %s: the model has no op '%s'%s%s%s", r->where, name,
				  near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
		} else {
			st = read(r, j, &ops->v[i], &out->ops[i]);
		}
		if (st)
			break;
	}
	free(all);
	map_release(&names);
	return st;
}

static bool read_pair(const struct recipe_key *k, const json_t *v, double *out)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		out[i] = json_number_value(json_array_get(v, i));
		if (!(out[i] >= k->min && out[i] <= k->max))
			return false;
	}
	return true;
}

static bool read_key(const struct recipe_key *k, const json_t *v, void *p)
{
	const double x = json_number_value(v);
	const bool in_limits = x >= k->min && x <= k->max;

	switch (k->type) {
	case RECIPE_COUNT:
		*(size_t *)p = (size_t)json_integer_value(v);
		return json_is_integer(v) && in_limits;
	case RECIPE_SEED:
		*(uint64_t *)p = (uint64_t)json_integer_value(v);
		return json_is_integer(v) && in_limits;
	case RECIPE_REAL:
		*(double *)p = x;
		return json_is_number(v) && in_limits;
	case RECIPE_PAIR:
		return read_pair(k, v, p);
	case RECIPE_BOOL:
		*(bool *)p = json_is_true(v);
		return json_is_boolean(v);
	default:
		return true; /* a word has been read */
	}
}

static enum fettle_status fail_key(const struct plan_reader *r, const struct recipe *i,
				   const struct recipe_key *k)
{
	if (k->type == RECIPE_PAIR)
		return fail(r->err, FETTLE_INVALID,
			    "cannot read plan %s: recipe %s, %s needs two numbers over 0 and at most %g",
			    r->where, i->name, k->name, k->max);
	return fail(r->err, FETTLE_INVALID, "cannot read plan %s: recipe %s, %s has no valid value", r->where,
		    i->name, k->name);
}

/* what is not said is the default of the way it is on */
static enum fettle_status read_keys(const struct plan_reader *rd, const json_t *j, const struct recipe *i,
				    struct recipes *r)
{
	const struct recipe_key *k;
	enum fettle_status st = FETTLE_OK;
	int word = 0;

	st = plan_read_word(rd, j, i->keys->name, i->words, i->n_words, &word); /* the first key is the way */
	i->start(r, word);
	for (k = i->keys + 1; k->name && !st; k++) {
		const json_t *v = json_object_get(j, k->name);
		void *p = (char *)r + k->offset;

		if (!v)
			continue;
		if (k->type == RECIPE_WORD) {
			word = 0;
			st = plan_read_word(rd, j, k->name, k->words, k->n_words, &word);
			*(int *)p = word;
		} else if (!read_key(k, v, p)) {
			st = fail_key(rd, i, k);
		}
	}
	return st;
}

static enum fettle_status read_recipe(const struct plan_reader *rd, const json_t *v, const struct recipe *i,
				      struct recipes *r)
{
	const struct recipe_number *n = i->number;
	double x = n ? n->by_default : 0;

	if (i->keys && !json_is_false(v))
		return read_keys(rd, v, i, r);
	if (n && n->word && json_is_string(v) && strcmp(json_string_value(v), n->word) == 0)
		x = n->word_value;
	else if (n && json_is_number(v) && json_number_value(v) >= n->min && json_number_value(v) <= n->max)
		x = json_number_value(v);
	else if (!json_is_boolean(v) && !n)
		return fail(rd->err, FETTLE_INVALID, "cannot read plan %s: recipe '%s', need true or false",
			    rd->where, i->name);
	else if (!json_is_boolean(v))
		return fail(
			rd->err, FETTLE_INVALID,
			"cannot read plan %s: recipe '%s', need true or false, or a number (%s) from %g to "
			"%g%s%s%s",
			rd->where, i->name, n->key, n->min, n->max, n->word ? ", or \"" : "",
			n->word ? n->word : "", n->word ? "\"" : "");
	recipe_set(r, i, !json_is_false(v));
	if (n)
		*recipe_number(r, i) = json_is_false(v) ? 0 : x;
	return FETTLE_OK;
}

static void start_empty(struct qplan *out, const struct op_list *ops)
{
	struct cpu cpu = cpu_detect();
	struct qplan_defaults d = qplan_defaults(&cpu);
	size_t i;

	out->n = ops->n;
	out->ops = xcalloc(ops->n, sizeof(*out->ops));
	for (i = 0; i < ops->n; i++) {
		bool move = ops->v[i].rule && ops->v[i].rule->kind == OP_MOVE;

		out->ops[i] = op_choice(move ? OP_STATIC : OP_FP32, &d.act, &d.weight);
		out->ops[i].blocks = d.blocks;
	}
}

/* Version 1 had what an op was like before within the op, and no finetune where it was off. */
static void update(json_t *all)
{
	json_t *ops = json_object_get(all, "ops"), *recipes = json_object_get(all, "recipes"),
	       *before = json_object(), *op;
	const char *name;

	json_object_foreach(ops, name, op)
	{
		if (!json_object_get(op, "before"))
			continue;
		json_object_set(before, name, json_object_get(op, "before"));
		json_object_del(op, "before");
	}
	if (json_object_size(before))
		json_object_set(all, "before", before);
	json_decref(before);
	if (recipes && !json_object_get(recipes, "finetune"))
		json_object_set_new(recipes, "finetune", json_false());
	json_object_set_new(all, "fettle_plan", json_integer(PLAN_VERSION));
}

/* The text of any version as JSON of this one; NULL: it is none. */
static json_t *load(const char *text, const char *where, struct err *err)
{
	json_error_t why;
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &why), *ops = json_object_get(all, "ops");
	json_int_t version = json_integer_value(json_object_get(all, "fettle_plan"));

	if (!all) {
		fail(err, FETTLE_INVALID, "cannot read plan %s: line %d, %s", where, why.line, why.text);
		return NULL;
	}
	if (version < 1 || version > PLAN_VERSION || (ops && !json_is_object(ops))) {
		fail(err, FETTLE_INVALID, "cannot read plan %s: need \"fettle_plan\": %d and \"ops\"", where,
		     PLAN_VERSION);
		json_decref(all);
		return NULL;
	}
	if (version < PLAN_VERSION)
		update(all);
	return all;
}

char *plan_text_update(const char *text, struct err *err)
{
	json_t *all = load(text, "of the history", err);
	struct str out = STR_INIT;

	if (!all)
		return NULL;
	json_text(all, &out);
	json_decref(all);
	return out.s;
}

/* of the plan before its ops fell back: plan_root() */
static void root_hash(const json_t *all, char out[FINGERPRINT_LEN])
{
	json_t *root = json_deep_copy(all);
	struct str text = STR_INIT;

	json_object_update_existing(json_object_get(root, "ops"), json_object_get(root, "before"));
	json_object_del(root, "before");
	json_text(root, &text);
	plan_text_hash(text.s, out);
	str_release(&text);
	json_decref(root);
}

enum fettle_status plan_read_recipes(struct plan_reader *r, const json_t *recipes, struct recipes *out)
{
	const json_t *left = json_object_get(recipes, LEFT_OUTPUTS), *v;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < RECIPES && !st; i++) {
		v = json_object_get(recipes, recipe_list[i]->name);
		r->op = recipe_list[i]->name;
		if (v)
			st = read_recipe(r, v, recipe_list[i], out);
	}
	for (i = 0; i < json_array_size(left); i++)
		if (json_is_string(json_array_get(left, i)))
			recipes_leave_output(out, json_string_value(json_array_get(left, i)));
	return st;
}

/* a plan whose ops are spelled out */
static enum fettle_status read_spelled_out(struct plan_reader *r, json_t *all, const struct op_list *ops,
					   struct qplan *out)
{
	int format = FORMAT_QDQ;
	enum fettle_status st;

	start_empty(out, ops);
	st = plan_read_word(r, all, "format", plan_formats, FORMATS, &format);
	out->format = (enum quant_format)format;
	if (!st)
		st = plan_read_recipes(r, json_object_get(all, "recipes"), &out->recipes);
	if (!st)
		st = read_ops(r, json_object_get(all, "ops"), ops, out, read_op);
	if (!st)
		st = read_ops(r, json_object_get(all, "before"), ops, out, read_before);
	if (!st && out->recipes.finetune.algorithm != FINETUNE_OFF)
		root_hash(all, out->root);
	return st;
}

enum fettle_status qplan_from_json(struct qplan *out, int64_t *samples, const char *text, const char *where,
				   const struct op_list *ops, const struct graph_index *g, struct err *err)
{
	struct plan_reader r = { where, "", err };
	json_t *all = load(text, where, err);
	enum fettle_status st;

	*out = (struct qplan)QPLAN_INIT;
	if (!all)
		return FETTLE_INVALID;
	if (samples)
		*samples = json_integer_value(json_object_get(all, "samples"));
	if (json_object_get(all, "settings"))
		st = plan_read_settings(&r, all, ops, g, out);
	else
		st = read_spelled_out(&r, all, ops, out);
	json_decref(all);
	if (st)
		qplan_release(out);
	return st;
}
