/* A plan of a parameter search as text: what decides on the model apart from the settings, written and read. */
#include <stdlib.h>
#include <string.h>

#include "space/json_text.h"
#include "space/plan_read.h"
#include "space/settings_tuning.h"

static const char *const approaches[] = { [APPROACH_STATIC] = "static",
					  [APPROACH_DYNAMIC] = "dynamic",
					  [APPROACH_AUTO] = "auto",
					  [APPROACH_WEIGHT] = "weight_only",
					  [APPROACH_ALL] = "all" };
static const char *const dtypes[] = { "uint8", "int8", "uint16", "int16", "fp32" };
_Static_assert(MASK_FP32 == 1 << 4 && T_S16 == 1 << 3, "dtypes[] are the bits of a mask");

/* a field of a mask, whose bits have these names */
struct field {
	const char *name;
	size_t offset; /* in struct side_mask */
	const char *const *words;
	size_t n;
};
enum { N_FIELDS = 4 };

static void list_fields(struct field out[N_FIELDS], const char *algorithms[RANGE_ALGORITHMS])
{
	size_t i;

	for (i = 0; i < RANGE_ALGORITHMS; i++)
		algorithms[i] = range_methods[i]->name;
	out[0] = (struct field){ "algorithm", offsetof(struct side_mask, algorithm), algorithms,
				 RANGE_ALGORITHMS };
	out[1] = (struct field){ "dtype", offsetof(struct side_mask, dtype), dtypes, ARRAY_LEN(dtypes) };
	out[2] = (struct field){ "granularity", offsetof(struct side_mask, granularity), plan_grains, 2 };
	out[3] = (struct field){ "scheme", offsetof(struct side_mask, scheme), plan_schemes, 2 };
}

static json_t *side_to_json(const struct side_mask *m)
{
	const char *algorithms[RANGE_ALGORITHMS];
	struct field fields[N_FIELDS];
	json_t *out = json_object();
	size_t i, k;

	list_fields(fields, algorithms);
	for (i = 0; i < N_FIELDS; i++) {
		unsigned bits = *(const unsigned *)(const void *)((const char *)m + fields[i].offset);
		json_t *list = json_array();

		for (k = 0; k < fields[i].n; k++)
			if (bits >> k & 1)
				json_array_append_new(list, json_string(fields[i].words[k]));
		if (bits)
			json_object_set(out, fields[i].name, list);
		json_decref(list);
	}
	return out;
}

static void fix(struct space *s, const char *section, const char *name, json_t *value)
{
	struct str text = STR_INIT;

	json_text(value, &text);
	VEC_PUSH(&s->fixed, ((struct space_fixed){ section, name, arena_strdup(&s->arena, text.s) }));
	str_release(&text);
	json_decref(value);
}

void space_fix_defaults(struct space *s, const struct qplan_defaults *d)
{
	fix(s, "", "approach", json_string(approaches[d->approach]));
	fix(s, "", "cpu", json_string(d->cpu.name));
}

void space_fix_masks(struct space *s, const struct op_mask *masks, const struct op_list *ops)
{
	size_t i;

	for (i = 0; i < ops->n; i++) {
		json_t *act = side_to_json(&masks[i].act), *weight = side_to_json(&masks[i].weight);

		if (ops->v[i].rule && (json_object_size(act) || json_object_size(weight)))
			fix(s, "constraints", ops->v[i].name,
			    json_pack("{s:O, s:O}", "activation", act, "weight", weight));
		json_decref(act);
		json_decref(weight);
	}
}

static enum fettle_status read_side(const struct plan_reader *r, const json_t *j, struct side_mask *out)
{
	const char *algorithms[RANGE_ALGORITHMS];
	struct field fields[N_FIELDS];
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	list_fields(fields, algorithms);
	for (i = 0; i < N_FIELDS && !st; i++) {
		const json_t *list = json_object_get(j, fields[i].name);
		unsigned *bits = (unsigned *)(void *)((char *)out + fields[i].offset);

		for (k = 0; k < json_array_size(list) && !st; k++) {
			json_t *one = json_pack("{s:O}", fields[i].name, json_array_get(list, k));
			int word = 0;

			st = plan_read_word(r, one, fields[i].name, fields[i].words, fields[i].n, &word);
			*bits |= st ? 0 : 1u << word;
			json_decref(one);
		}
	}
	return st;
}

/* constraints on ops that the model does not have are found when the plan is compared with its text */
static enum fettle_status read_masks(struct plan_reader *r, const json_t *constraints,
				     const struct op_list *ops, struct op_mask *out)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < ops->n && !st; i++) {
		const json_t *j = json_object_get(constraints, ops->v[i].name);

		r->op = ops->v[i].name;
		st = read_side(r, json_object_get(j, "activation"), &out[i].act);
		st = st ? st : read_side(r, json_object_get(j, "weight"), &out[i].weight);
	}
	return st;
}

static enum fettle_status read_defaults(struct plan_reader *r, const json_t *all, struct qplan_defaults *out)
{
	const char *name = json_string_value(json_object_get(all, "cpu"));
	int format = FORMAT_QDQ, approach = APPROACH_STATIC;
	struct cpu cpu;
	enum fettle_status st;

	r->op = "";
	st = cpu_read(name ? name : "", &cpu, r->err);
	if (st)
		return fail_prefix(r->err, st, "cannot read plan %s", r->where);
	st = plan_read_word(r, all, "format", plan_formats, FORMATS, &format);
	st = st ? st : plan_read_word(r, all, "approach", approaches, ARRAY_LEN(approaches), &approach);
	*out = qplan_defaults(&cpu);
	out->format = (enum quant_format)format;
	out->approach = (enum approach)approach;
	return st;
}

/* The space is made again from what the text says of it; then the plan is one of that. */
enum fettle_status plan_read_settings(struct plan_reader *r, const json_t *all, const struct op_list *ops,
				      const struct graph_index *g, struct qplan *out)
{
	struct op_mask *masks = xcalloc(ops->n + 1, sizeof(*masks));
	const int64_t samples = json_integer_value(json_object_get(all, "samples"));
	struct tuning_options o = { .masks = masks, .samples = &samples, .n_samples = 1 };
	struct plan plan = PLAN_INIT;
	struct str text = STR_INIT;
	struct tuning *t = NULL;
	enum fettle_status st;

	st = read_defaults(r, all, &o.defaults);
	if (!st)
		st = plan_read_recipes(r, json_object_get(all, "recipes"), &o.recipes);
	if (!st)
		st = read_masks(r, json_object_get(all, "constraints"), ops, masks);
	if (st)
		goto out;
	t = settings_tuning_new(ops, g, &o);
	json_text(all, &text);
	st = plan_read(&plan, &t->space, text.s, r->where, r->err);
	if (!st)
		tuning_qplan(t, &plan, out);
out:
	str_release(&text);
	plan_release(&plan);
	tuning_free(t);
	free(masks);
	return st;
}
