/* A plan's identity: its canonical text and the hash of that; and the plan of a text. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/json_text.h"
#include "space/space.h"

/* a member of the text, as in struct space_fixed */
struct members {
	struct space_fixed *v;
	size_t n, cap;
	struct arena arena;
};
#define MEMBERS_INIT                                                                                         \
	{                                                                                                    \
		.n = 0                                                                                       \
	}

static const char *const sections[] = {
	[PARAM_OP] = "ops", [PARAM_RECIPE] = "recipes", [PARAM_SAMPLES] = "", [PARAM_SETTING] = "settings"
};
#define BEFORE "before" /* the section with what ops were like before they fell back */

/* of the member at the top that it is, or is part of */
static const char *top_name(const struct space_fixed *m)
{
	return *m->section ? m->section : m->name;
}

static int by_name(const void *a, const void *b)
{
	const struct space_fixed *x = a, *y = b;
	int order = strcmp(top_name(x), top_name(y));

	return order ? order : strcmp(x->name, y->name);
}

static const char *option_name(struct members *m, const struct param *p, unsigned k)
{
	return p->names ? p->names[k] : arena_strfmt(&m->arena, "%u", k);
}

static const char *param_name(struct members *m, const struct space *s, size_t i)
{
	return s->v[i].name ? s->v[i].name : arena_strfmt(&m->arena, "%zu", i);
}

static void add_before(struct members *m, const struct plan *p, const struct space *s)
{
	const struct plan *root = plan_root(p, s);
	size_t i;

	for (i = 0; root && i < s->n_ops; i++) {
		const struct param *op = &s->v[i];

		if (!option_is_int8(&op->options[p->choice[i]]) &&
		    option_is_int8(&op->options[root->choice[i]]))
			VEC_PUSH(m, ((struct space_fixed){ BEFORE, param_name(m, s, i),
							   option_name(m, op, root->choice[i]) }));
	}
}

static void print_key(const char *name, struct str *out)
{
	json_text_string(name, out);
	str_add(out, ":", 1);
}

static void print_members(struct members *m, struct str *out)
{
	const char *section = "";
	size_t i;

	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_name);
	str_add(out, "{", 1);
	for (i = 0; i < m->n; i++) {
		const struct space_fixed *x = &m->v[i];
		bool opens = strcmp(x->section, section) != 0;

		if (opens && *section)
			str_add(out, "}", 1);
		if (i)
			str_add(out, ",", 1);
		if (opens && *x->section) {
			print_key(x->section, out);
			str_add(out, "{", 1);
		}
		section = x->section;
		print_key(x->name, out);
		str_add(out, x->value, strlen(x->value));
	}
	str_add(out, "}}", *section ? 2 : 1);
}

char *plan_text(const struct plan *p, const struct space *s)
{
	struct members m = MEMBERS_INIT;
	struct str out = STR_INIT;
	size_t i;

	for (i = 0; i < s->fixed.n; i++)
		VEC_PUSH(&m, s->fixed.v[i]);
	for (i = 0; i < s->n; i++)
		if (plan_uses(p, s, i))
			VEC_PUSH(&m, ((struct space_fixed){ sections[s->v[i].kind], param_name(&m, s, i),
							    option_name(&m, &s->v[i], p->choice[i]) }));
	add_before(&m, p, s);
	print_members(&m, &out);
	VEC_RELEASE(&m);
	arena_release(&m.arena);
	return out.s;
}

void plan_text_hash(const char *text, char out[FINGERPRINT_LEN])
{
	fingerprint_bytes(text, strlen(text), out);
}

void plan_hash(const struct plan *p, const struct space *s, char out[FINGERPRINT_LEN])
{
	char *text = plan_text(p, s);

	plan_text_hash(text, out);
	free(text);
}

void space_hash(const struct space *s, char out[FINGERPRINT_LEN])
{
	struct members m = MEMBERS_INIT;
	struct str text = STR_INIT;
	size_t i, k;

	for (i = 0; i < s->fixed.n; i++)
		str_addf(&text, "%s %s %s\n", s->fixed.v[i].section, s->fixed.v[i].name, s->fixed.v[i].value);
	for (i = 0; i < s->n; i++) {
		const struct param *p = &s->v[i];

		str_addf(&text, "%s %s %d %d %d", sections[p->kind], param_name(&m, s, i), p->first,
			 p->fallback, p->apply);
		if (p->when_options)
			str_addf(&text, " when %zu %llx", p->when, (unsigned long long)p->when_options);
		for (k = 0; k < p->n_options && !p->open;
		     k++) /* those of an open one are as a run has met them */
			str_addf(&text, " %s", option_name(&m, p, (unsigned)k));
		str_addf(&text, "\n");
	}
	fingerprint_bytes(text.s ? text.s : "", text.n, out);
	arena_release(&m.arena);
	str_release(&text);
}

/* ---- and back ---- */

static enum fettle_status read_param(struct plan *out, struct space *s, size_t i, const json_t *all,
				     const char *where, struct err *err)
{
	const char *section = sections[s->v[i].kind];
	struct members m = MEMBERS_INIT;
	const char *name = param_name(&m, s, i);
	const json_t *v = json_object_get(*section ? json_object_get(all, section) : all, name);
	enum fettle_status st = FETTLE_OK;
	struct str text = STR_INIT;
	unsigned k = NO_OPTION, n;

	if (v) {
		json_text(v, &text);
		if (s->v[i].names)
			k = space_option(s, i, text.s);
		for (n = 0; !s->v[i].names && n < s->v[i].n_options; n++)
			if (strcmp(option_name(&m, &s->v[i], n), text.s) == 0)
				k = n;
	}
	if (k == NO_OPTION)
		st = fail(err, FETTLE_INVALID,
			  "cannot read plan %s: '%s' is %.200s, which is no option of it", where, name,
			  v ? text.s : "not there");
	else
		out->choice[i] = (uint16_t)k;
	str_release(&text);
	arena_release(&m.arena);
	return st;
}

enum fettle_status plan_read(struct plan *out, struct space *s, const char *text, const char *where,
			     struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	json_error_t why;
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	char *again;
	size_t i;

	plan_release(out);
	if (!all)
		return fail(err, FETTLE_INVALID, "cannot read plan %s: line %d, %s", where, why.line,
			    why.text);
	plan_init(out, s);
	for (i = 0; i < s->n && !st; i++)
		if (plan_uses(out, s, i))
			st = read_param(out, s, i, all, where, err);
	if (!st) {
		again = plan_text(out, s);
		if (strcmp(again, text) != 0)
			st = fail(err, FETTLE_INVALID,
				  "cannot read plan %s: parts of it do not fit this model, configuration or "
				  "CPU",
				  where);
		free(again);
	}
	json_decref(all);
	if (st)
		plan_release(out);
	return st;
}
