/* Recipes and constraints of a request, as plans and spaces have them. */
#include "config/request.h"

static struct side_mask side(const struct config_side *s)
{
	unsigned dtype = s->dtype.mask & ~(unsigned)CONFIG_BF16;

	if (s->dtype.mask & CONFIG_BF16)
		dtype |= MASK_FP32; /* the nearest, as the note says */
	return (struct side_mask){ .granularity = s->granularity.mask,
				   .scheme = s->scheme.mask,
				   .dtype = dtype,
				   .algorithm = s->algorithm.mask & ((1u << RANGE_ALGORITHMS) - 1),
				   .bits = s->bits.mask,
				   .group = s->group_size.mask,
				   .method = s->algorithm.mask >> RANGE_ALGORITHMS,
				   .level = s->level.mask };
}

static struct constraint convert(struct arena *a, const struct config_constraint *c,
				 enum constraint_scope scope)
{
	const char *where = c->at.line ? arena_strfmt(a, "%s:%d:%d", c->at.source, c->at.line, c->at.column)
				       : c->at.source;

	return (struct constraint){
		scope, c->name, where, { .weight = side(&c->weight), .act = side(&c->activation) }
	};
}

size_t request_constraints(const struct request *r, struct arena *a, struct constraint **out)
{
	const struct config_constraints *lists[] = { &r->c->quantization.op_type_wise,
						     &r->c->quantization.op_wise };
	VEC(struct constraint) v = { 0 };
	size_t i, k;

	VEC_PUSH(&v, convert(a, &r->c->quantization.model_wise, CONSTRAIN_MODEL));
	for (k = 0; k < ARRAY_LEN(lists); k++)
		for (i = 0; i < lists[k]->n; i++)
			VEC_PUSH(&v, convert(a, &lists[k]->v[i], k ? CONSTRAIN_OP : CONSTRAIN_TYPE));
	*out = v.v;
	return v.n;
}

/* in this way, with the settings of the configuration */
static void start_recipe(struct recipes *out, const struct config *c, const struct recipe *i, int way)
{
	struct recipes usual = { 0 };
	const struct recipe_key *k;

	i->start(&usual, way);
	recipe_copy(out, &usual, i);
	for (k = i->keys + 1; k->name; k++) /* after the way itself; what is not set is as the way has it */
		if (config_is_set(c, (const char *)&c->recipes.keys + k->offset))
			recipe_copy_key(out, &c->recipes.keys, k);
}

struct recipes request_ways(const struct config *c)
{
	struct recipes out = { 0 };
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (recipe_list[i]->words)
			start_recipe(&out, c, recipe_list[i], recipe_way(&c->recipes.keys, recipe_list[i]));
	return out;
}

static void set_up_recipe(struct recipes *out, const struct config *c, size_t i)
{
	const struct recipe *r = recipe_list[i];
	bool on = c->recipes.on[i];

	if (r->words && (!on || config_is_set(c, &c->recipes.way[i]))) {
		start_recipe(out, c, r, c->recipes.way[i]);
	} else if (r->words) {
		start_recipe(out, c, r, recipe_way(&c->recipes.keys, r));
	} else {
		recipe_set(out, r, on);
		if (r->number)
			*recipe_number(out, r) = on ? c->recipes.number[i].v[0] : 0;
	}
}

struct recipes request_recipes(const struct request *asked)
{
	const struct config *c = asked->c;
	struct recipes r = { 0 };
	size_t i;

	for (i = 0; i < RECIPES; i++)
		set_up_recipe(&r, c, i);
	for (i = 0; i < c->recipes.optypes_to_exclude_output_quant.n; i++)
		recipes_leave_output(&r, c->recipes.optypes_to_exclude_output_quant.v[i]);
	return r;
}
