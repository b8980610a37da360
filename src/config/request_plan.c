/* Words -> settings, with the nearest valid word in every error. */
#include "config/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/str.h"
#include "quantize/channels.h"
#include "runtime/session.h"
#include "space/plan_json.h"
#include "space/select.h"
#include "space/settings_tuning.h"

struct word {
	const char *text;
	int value;
};

static enum fettle_status pick(const char *setting, const char *text, const struct word *words, size_t n,
			       int *out, struct err *err)
{
	const char *names[8], *near;
	struct str all = STR_INIT;
	size_t i;

	if (!text)
		return FETTLE_OK; /* the default stands */
	for (i = 0; i < n; i++) {
		if (strcasecmp(words[i].text, text) == 0) {
			*out = words[i].value;
			return FETTLE_OK;
		}
		names[i] = words[i].text;
	}
	for (i = 0; i < n; i++)
		str_addf(&all, "%s%s", i ? ", " : "", words[i].text);
	near = str_nearest(text, names, n);
	fail(err, FETTLE_INVALID, "cannot set %s to '%s': need one of %s%s%s%s", setting, text, all.s,
	     near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	str_release(&all);
	return FETTLE_INVALID;
}

static enum fettle_status pick_algorithm(const char *text, struct qsetting *s, struct err *err)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	const struct range_method *m;
	enum range_algorithm a;
	char name[64], *end;
	enum fettle_status st;

	if (!text)
		return FETTLE_OK;
	snprintf(name, sizeof(name), "%.*s", (int)(colon ? colon - text : (long)strlen(text)), text);
	st = range_parse(name, &a, err);
	if (st)
		return st;
	qsetting_use(s, a);
	m = range_methods[a];
	if (!colon)
		return FETTLE_OK;
	if (!m->parameter.key)
		return fail(err, FETTLE_INVALID, "cannot set algorithm to '%s': %s takes no number", text,
			    m->name);
	s->parameter = strtod(colon + 1, &end);
	if (end == colon + 1 || *end ||
	    !(s->parameter >= m->parameter.min && s->parameter <= m->parameter.max))
		return fail(err, FETTLE_INVALID, "cannot set %s to '%s': need a number from %g to %g",
			    m->parameter.key, colon + 1, m->parameter.min, m->parameter.max);
	return FETTLE_OK;
}

static enum fettle_status read_settings(const struct call_options *o, const struct cpu *cpu,
					enum approach approach, struct qplan_defaults *d, struct err *err)
{
	static const struct word act_types[] = { { "uint8", DT_U8 },
						 { "int8", DT_S8 },
						 { "uint16", DT_U16 },
						 { "int16", DT_S16 } },
				 weight_types[] = { { "int8", DT_S8 },
						    { "uint8", DT_U8 },
						    { "int16", DT_S16 },
						    { "uint16", DT_U16 } },
				 schemes[] = { { "asym", SCHEME_ASYM }, { "sym", SCHEME_SYM } },
				 grains[] = { { "per_channel", 1 }, { "per_tensor", 0 } },
				 ranges[] = { { "auto", REDUCE_AUTO },
					      { "on", REDUCE_ON },
					      { "off", REDUCE_OFF } };
	int act = DT_U8, weight = DT_S8, act_scheme = SCHEME_ASYM, weight_scheme, grain = 1,
	    reduce = REDUCE_AUTO;
	enum fettle_status st;

	*d = qplan_defaults(cpu);
	d->approach = approach;
	weight_scheme = d->weight.scheme;
#define PICK(name, field, words, out) st = st ? st : pick(name, o->field, words, ARRAY_LEN(words), out, err)
	if (d->approach == APPROACH_WEIGHT && o->algorithm)
		st = block_method_parse(o->algorithm, &d->blocks.algorithm, err);
	else
		st = pick_algorithm(o->algorithm, &d->act, err);
	PICK("activation type", act_dtype, act_types, &act);
	PICK("weight type", weight_dtype, weight_types, &weight);
	PICK("activation scheme", act_scheme, schemes, &act_scheme);
	if (weight == DT_U8 || weight == DT_U16)
		weight_scheme = SCHEME_ASYM;
	PICK("weight scheme", weight_scheme, schemes, &weight_scheme);
	PICK("granularity", granularity, grains, &grain);
	PICK("reduce_range", reduce_range, ranges, &reduce);
#undef PICK
	if (st)
		return st;
	d->act.dtype = (enum dtype)act;
	d->act.scheme = (enum scheme)act_scheme;
	d->weight.dtype = (enum dtype)weight;
	d->weight.scheme = (enum scheme)weight_scheme;
	d->weight.per_channel = grain;
	if (qsetting_is_pow2(&d->act)) /* what wants powers of two wants them throughout */
		d->weight.algorithm = d->act.algorithm;
	d->reduce_range = (enum reduce_range)reduce;
	return FETTLE_OK;
}

/* ops that are not quantized by default, for those who name them */
static enum fettle_status quantize_too(const char *list, const struct subject *s,
				       const struct qplan_defaults *d, struct qplan *p, struct err *err)
{
	bool *selected = xcalloc(s->ops.n, sizeof(*selected));
	enum fettle_status st;
	size_t i;

	st = select_ops(list, &s->ops, s->m, selected, err);
	for (i = 0; i < s->ops.n && !st; i++) {
		const struct op *op = &s->ops.v[i];

		const unsigned modes = op->modes & MODE_INT;

		if (selected[i] && d->approach == APPROACH_WEIGHT && op->modes & MODE_WEIGHT) {
			p->ops[i].mode = OP_WEIGHT;
			/* nothing is seen of what a table reads */
			if (op->rule->kind == OP_TABLE && block_methods[p->ops[i].blocks.algorithm]->needs)
				p->ops[i].blocks.algorithm = BLOCK_K_QUANT;
		} else if (selected[i] && !modes)
			st = fail(err, FETTLE_INVALID, "cannot quantize op '%s': %s", op->name, op->why);
		else if (selected[i] && p->ops[i].mode == OP_FP32) {
			p->ops[i].mode = modes == MODE_STATIC              ? OP_STATIC
					 : modes == MODE_DYNAMIC           ? OP_DYNAMIC
					 : d->approach == APPROACH_DYNAMIC ? OP_DYNAMIC
									   : OP_STATIC;
			op_choice_reduce(&p->ops[i], op, d);
		}
	}
	free(selected);
	return st;
}

/* Types that a capability file does not list are not quantized; it need not know the model. */
static enum fettle_status apply_capability(const char *path, const struct subject *s, struct op_mask *masks,
					   struct err *err)
{
	struct request r = { .c = NULL };
	struct arena a = ARENA_INIT;
	struct constraint *v = NULL;
	enum fettle_status st;
	size_t n, i, k;

	st = config_open(&r.c, &(struct config_source){ .path = path, .capability = true }, err);
	if (st)
		return st;
	n = request_constraints(&r, &a, &v);
	for (i = 0; i < s->ops.n; i++) {
		struct op_mask allowed = { .act = { .dtype = MASK_FP32 }, .weight = { .dtype = MASK_FP32 } };

		for (k = 0; k < n; k++)
			if (v[k].scope == CONSTRAIN_TYPE && strcmp(v[k].name, op_type(s->m->nodes.v[i])) == 0)
				allowed = v[k].mask;
		allowed.named = allowed.act.dtype & T_ALL;
		mask_intersect(&masks[i], &allowed);
	}
	free(v);
	arena_release(&a);
	request_release(&r);
	return FETTLE_OK;
}

static enum fettle_status keep_fp32(const char *list, const struct subject *s, struct op_mask *masks,
				    struct err *err)
{
	bool *selected = xcalloc(s->ops.n, sizeof(*selected));
	enum fettle_status st = select_ops(list, &s->ops, s->m, selected, err);
	size_t i;

	for (i = 0; i < s->ops.n && !st; i++)
		if (selected[i])
			masks[i].act.dtype = masks[i].weight.dtype = MASK_FP32;
	free(selected);
	return st;
}

static void tell(void *cx, const char *text)
{
	context_note(cx, text);
}

/* what is allowed for each op */
static enum fettle_status read_masks(const struct request *r, const struct subject *s, struct op_mask **out,
				     struct err *err)
{
	struct arena a = ARENA_INIT;
	struct constraint *constraints = NULL;
	enum fettle_status st;
	size_t n;

	*out = xcalloc(s->ops.n, sizeof(**out));
	n = request_constraints(r, &a, &constraints);
	st = constraints_apply(constraints, n, &s->ops, s->m, &(struct constraint_notes){ tell, r->cx }, *out,
			       err);
	free(constraints);
	arena_release(&a);
	if (!st)
		constraints_resolve(*out, &s->ops, &s->cpu, tell, r->cx);
	if (!st && r->o.capability)
		st = apply_capability(r->o.capability, s, *out, err);
	if (!st && r->o.keep_fp32)
		st = keep_fp32(r->o.keep_fp32, s, *out, err);
	return st;
}

/* has the recipe nothing to work on in this model? */
static bool does_nothing(const struct request *r, struct subject *s, const struct recipe *i)
{
	if (r->c->quantization.approach == APPROACH_WEIGHT && !i->keeps_fp32)
		return true;
	if (i->needs_data && r->c->quantization.approach == APPROACH_DYNAMIC)
		return true; /* there need not be data to go by */
	return i == &recipe_cle ? !can_equalise(s) : i == &recipe_smooth_quant && !can_smooth(s);
}

/* what is tried of a recipe's number: what the user lists; or, where that is left open, the recipe's own */
static struct recipe_numbers numbers_of(const struct config *c, size_t i)
{
	const struct config_numbers *given = &c->recipes.number[i];
	const struct recipe_number *n = recipe_list[i]->number;

	if (!n)
		return (struct recipe_numbers){ NULL, 0 };
	if (config_is_set(c, given))
		return (struct recipe_numbers){ given->v, given->n };
	return (struct recipe_numbers){ n->tried, c->recipes.on[i] ? 1 : n->n_tried };
}

/* what the constraints take away, against the space that there would be without them */
static enum fettle_status note_taken_away(const struct request *r, const struct subject *s,
					  struct tuning_options o, const struct tuning *with, struct err *err)
{
	struct op_mask *masks = xcalloc(s->ops.n, sizeof(*masks));
	enum fettle_status st = r->o.keep_fp32 ? keep_fp32(r->o.keep_fp32, s, masks, err) : FETTLE_OK;
	struct tuning *without;
	char *text;

	o.masks = masks;
	if (!st) {
		without = (r->is_search ? settings_tuning_new : tuning_new)(&s->ops, &s->g, &o);
		text = tuning_taken_away(with, without);
		if (text)
			context_note(r->cx, text);
		free(text);
		tuning_free(without);
	}
	free(masks);
	return st;
}

/* of weight-only weights, as bits */
static unsigned methods_without_data(void)
{
	unsigned mask = 0;
	int i;

	for (i = 0; i < BLOCK_ALGORITHMS; i++)
		mask |= block_methods[i]->needs ? 0 : 1u << i;
	return mask;
}

/* What there is no data for is not on offer; that nothing would be left is for the user to know. */
static enum fettle_status mask_methods(const struct request *r, const struct subject *s,
				       struct op_mask *masks, struct err *err)
{
	const bool data = request_has_data(r, &r->c->calibration.dataloader);
	const unsigned without = methods_without_data();
	size_t i;
	int k;

	for (i = 0; i < s->ops.n; i++) {
		const struct op *op = &s->ops.v[i];
		unsigned *method = &masks[i].weight.method;
		const bool none = op->modes & MODE_WEIGHT && *method && !(*method & without);

		for (k = 0; none && !(*method & 1u << k); k++)
			;
		if (none && op->rule->kind == OP_TABLE)
			*method = 1u << BLOCK_K_QUANT; /* nothing is seen of what a table reads */
		else if (none && !data)
			return fail(err, FETTLE_INVALID,
				    "cannot tune %s: %s needs calibration data (--calib), or choose another "
				    "algorithm, such as rtn",
				    r->o.model, block_methods[k]->name);
		else if (!data)
			mask_intersect(&masks[i], &(struct op_mask){ .weight = { .method = without } });
	}
	return FETTLE_OK;
}

/* Weight-only ops are MatMulNBits, unless the user asks for pairs. */
static enum quant_format format_of(const struct config *c)
{
	const bool blocks =
		c->quantization.approach == APPROACH_WEIGHT || c->quantization.approach == APPROACH_ALL;

	return blocks && c->quantization.format == FORMAT_QDQ && config_is_set(c, &c->quantization.format)
		       ? FORMAT_QDQ_WEIGHTS
		       : (enum quant_format)c->quantization.format;
}

/* What the QDQ form can not say is not on offer. */
static enum fettle_status mask_pairs(const struct subject *s, struct op_mask *masks, struct err *err)
{
	static const struct op_mask can = { .weight = { .bits = 1u << 4 | 1u << 8, .level = 1u << 4 } };
	size_t i;

	if (s->m->opset < QDQ_WEIGHTS_OPSET)
		return fail(
			err, FETTLE_UNSUPPORTED,
			"cannot write weight-only ops in the QDQ form: that needs opset %d, the model has "
			"%d; leave out --format qdq",
			QDQ_WEIGHTS_OPSET, s->m->opset);
	for (i = 0; i < s->ops.n; i++)
		mask_intersect(&masks[i], &can);
	return FETTLE_OK;
}

enum fettle_status request_tuning(const struct request *r, struct subject *s, struct tuning **out,
				  struct err *err)
{
	const struct config *c = r->c;
	bool fixed[RECIPES];
	struct recipe_numbers numbers[RECIPES];
	struct tuning_options o = { .recipes = request_recipes(r),
				    .recipe_fixed = fixed,
				    .numbers = numbers,
				    .when_on = request_ways(c),
				    .mixed = c->recipes.include_auto_mp,
				    .samples = c->calibration.sampling_size.v,
				    .n_samples = c->calibration.sampling_size.n };
	struct op_mask *masks;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < RECIPES; i++) {
		fixed[i] = config_is_set(c, &c->recipes.on[i]) || config_is_set(c, &c->recipes.way[i]) ||
			   does_nothing(r, s, recipe_list[i]);
		numbers[i] = numbers_of(c, i);
	}
	o.defaults = qplan_defaults(&s->cpu);
	o.defaults.elsewhere = s->cpu.saturates && !cpu_detect().saturates;
	o.defaults.approach = (enum approach)c->quantization.approach;
	o.defaults.format = format_of(c);
	st = read_masks(r, s, &masks, err);
	if (!st)
		st = mask_methods(r, s, masks, err);
	if (!st && o.defaults.format == FORMAT_QDQ_WEIGHTS)
		st = mask_pairs(s, masks, err);
	o.masks = masks;
	if (!st)
		*out = (r->is_search ? settings_tuning_new : tuning_new)(&s->ops, &s->g, &o);
	if (!st)
		st = note_taken_away(r, s, o, *out, err);
	free(masks);
	return st;
}

/* what the configuration allows, and its recipes */
static enum fettle_status apply_config(const struct request *r, const struct subject *s,
				       const struct qplan_defaults *d, struct qplan *p, struct err *err)
{
	enum { SHOWN = 4 };
	struct str kept = STR_INIT;
	struct op_mask *masks;
	enum fettle_status st;
	size_t i, n = 0, all = 0;

	st = read_masks(r, s, &masks, err);
	for (i = 0; i < s->ops.n && !st; i++) {
		bool was = p->ops[i].mode != OP_FP32 && s->ops.v[i].rule->kind != OP_MOVE;

		mask_fit(&masks[i], &s->ops.v[i], d, &p->ops[i]);
		all += was;
		if (was && p->ops[i].mode == OP_FP32 && n++ < SHOWN)
			str_addf(&kept, "%s%s", n > 1 ? ", " : "", s->ops.v[i].name);
	}
	/* not what the user has listed; and request_tuning(), which inspect calls too, says it already */
	if (n && !r->o.keep_fp32 && r->command != CONFIG_INSPECT) {
		char *text = xstrfmt("by constraint, %zu op%s in fp32%s%.400s%s", n,
				     n == 1 ? " stays" : "s stay", n > 1 && n == all ? " (all)" : ": ",
				     n > 1 && n == all ? "" : kept.s, n > SHOWN && n < all ? ", …" : "");

		context_note(r->cx, text);
		free(text);
	}
	str_release(&kept);
	p->recipes = request_recipes(r);
	free(masks);
	return st;
}

static enum fettle_status read_plan(const char *path, const struct subject *s, struct qplan *out,
				    int64_t *samples, struct err *err)
{
	struct bytes file = BYTES_INIT;
	char *text;
	enum fettle_status st;

	st = file_map(path, &file, err);
	if (st)
		return st;
	text = xstrfmt("%.*s", (int)(file.n < 1 << 28 ? file.n : 1 << 28), (const char *)file.p);
	st = qplan_from_json(out, samples, text, path, &s->ops, &s->g, err);
	free(text);
	bytes_release(&file);
	return st;
}

/* Settings that no op can have would quantize nothing. An older runtime has weight-only kernels for 4 bits alone. */
static enum fettle_status check_bits(const struct request *r, const struct subject *s, const struct qplan *p,
				     struct err *err)
{
	bool can = false, does = false;
	size_t i;

	for (i = 0; i < s->ops.n; i++) {
		can |= (s->ops.v[i].modes & MODE_WEIGHT) != 0;
		does |= p->ops[i].mode == OP_WEIGHT;
	}
	if (!can || does || r->o.keep_fp32)
		return FETTLE_OK;
	if (runtime_weight_bits(s->m) != 1u << 4)
		return fail(err, FETTLE_INVALID,
			    "cannot quantize weights: the settings leave no op in few bits (8 bits need "
			    "accuracy level 4)");
	return fail(
		err, FETTLE_UNSUPPORTED,
		"cannot quantize weights: ONNX Runtime %s has kernels for 4 bits only, and no op is left in "
		"those; say --bits 4",
		runtime_version());
}

enum fettle_status request_plan(struct request *r, const struct subject *s, struct qplan *out,
				struct err *err)
{
	struct qplan_defaults d;
	int64_t samples = 0;
	enum fettle_status st;

	if (r->o.plan) {
		st = read_plan(r->o.plan, s, out, &samples, err);
		if (!config_is_set(r->c, &r->c->calibration.sampling_size) && samples > 0)
			r->samples = (size_t)samples;
		return st;
	}
	st = read_settings(&r->o, &s->cpu, (enum approach)r->c->quantization.approach, &d, err);
	if (st)
		return st;
	d.format = format_of(r->c);
	qplan_default(out, &s->ops, &s->g, &d);
	st = apply_config(r, s, &d, out, err);
	if (!st && r->o.quantize)
		st = quantize_too(r->o.quantize, s, &d, out, err);
	if (!st && d.approach == APPROACH_WEIGHT)
		st = check_bits(r, s, out, err);
	if (st)
		qplan_release(out);
	return st;
}
