#include "config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/capability.h"
#include "config/read.h"

struct config *config_new(void)
{
	struct config *c = xcalloc(1, sizeof(*c));

	c->state = xcalloc(1, sizeof(*c->state));
	config_defaults(c, &c->state->arena);
	make_keys(c->state->keys, &c->state->arena);
	c->state->defaults = arena_alloc(&c->state->arena, sizeof(*c));
	*c->state->defaults = *c;
	return c;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	VEC_RELEASE(&c->state->origins);
	VEC_RELEASE(&c->state->notes);
	arena_release(&c->state->arena);
	free(c->state);
	free(c);
}

enum fettle_status config_fail(const struct config_origin *at, enum fettle_status st, struct err *err,
			       const char *fmt, ...)
{
	char msg[sizeof(err->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (!at || !at->source)
		return fail(err, st, "%s", msg);
	if (!at->line)
		return fail(err, st, "%s: %s", at->source, msg);
	return fail(err, st, "%s:%d:%d: %s", at->source, at->line, at->column, msg);
}

const char *config_where(const struct config_origin *at, struct arena *a)
{
	if (!at || !at->source)
		return "";
	return at->line ? arena_strfmt(a, "%s:%d:%d: ", at->source, at->line, at->column)
			: arena_strfmt(a, "%s: ", at->source);
}

const struct config_origin *config_origin(const struct config *c, const void *field)
{
	size_t offset = (size_t)((const char *)field - (const char *)c), i;

	for (i = 0; i < c->state->origins.n; i++)
		if (c->state->origins.v[i].offset == offset)
			return &c->state->origins.v[i].at;
	return NULL;
}

const char *config_strategy(const struct config *c)
{
	return c->tuning.quant_level == QUANT_LEVEL_0      ? "conservative"
	       : c->tuning.quant_level == QUANT_LEVEL_AUTO ? "auto"
							   : c->tuning.strategy;
}

bool config_higher_is_better(const struct config *c, size_t i)
{
	const struct config_ints *each = &c->tuning.higher_is_better_each;

	return each->n ? each->v[i] : c->tuning.objectives.v[i] == OBJECTIVE_ACCURACY;
}

bool config_is_set(const struct config *c, const void *field)
{
	const struct config_origin *at = config_origin(c, field);

	return at && !at->implied;
}

void add_note(struct config *c, const struct config_origin *at, bool derived, const char *fmt, ...)
{
	struct config_state *s = c->state;
	struct err text = ERR_INIT;
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	config_fail(at, FETTLE_OK, &text, "%s", msg);
	VEC_PUSH(&s->notes, ((struct config_note){ arena_strdup(&s->arena, text.msg), *at, derived }));
	c->notes = s->notes.v;
	c->n_notes = s->notes.n;
}

static enum fettle_status parse_text(struct config **out, const char *text, size_t n, const char *name,
				     const struct config_source *from, struct err *err)
{
	struct plain_locale locale = plain_locale_begin();
	struct config *c = config_new();
	struct reader r = { .c = c, .is_file = true, .path = "", .err = err };
	struct yaml *root = NULL;
	enum fettle_status st;

	c->state->from = *from;
	r.source = arena_strdup(&c->state->arena, name);
	st = yaml_parse(&root, &c->state->arena, text, n, name, err);
	if (st)
		goto out;
	if (root && from->capability)
		root = capability_tree(&c->state->arena, root);
	if (root && !yaml_is_null(root) && root->type != YAML_MAP) {
		st = fail(err, FETTLE_INVALID, "%s:%d:%d: %s, a configuration is a map of keys", name,
			  root->line, root->column, describe(&r, root));
		goto out;
	}
	st = root ? read_map(&r, config_keys, c, root) : FETTLE_OK;
	if (!st)
		st = config_finish(c, err);
	if (st)
		goto out;
	*out = c;
	c = NULL; /* now the caller's */
out:
	config_free(c);
	plain_locale_end(&locale);
	return st;
}

enum fettle_status config_parse(struct config **out, const char *text, const char *name, struct err *err)
{
	return parse_text(out, text, strlen(text), name, &(struct config_source){ NULL }, err);
}

enum fettle_status config_open(struct config **out, const struct config_source *from, struct err *err)
{
	struct bytes raw = BYTES_INIT;
	enum fettle_status st;

	if (!from->path) {
		*out = config_new();
		(*out)->state->from = *from;
		return FETTLE_OK;
	}
	if (from->text)
		return parse_text(out, from->text, strlen(from->text), from->path, from, err);
	st = file_map(from->path, &raw, err);
	if (!st)
		st = parse_text(out, (const char *)raw.p, raw.n, from->path, from, err);
	bytes_release(&raw);
	return st;
}

enum fettle_status config_load(struct config **out, const char *path, struct err *err)
{
	return config_open(out, &(struct config_source){ .path = path }, err);
}

/* ---- overriding ---- */

/* Finds the key of a dotted name; *base becomes the start of its table. */
static enum fettle_status find_path(struct reader *r, const char *dotted, const struct key **out, void **base)
{
	char *copy = arena_strdup(&r->c->state->arena, dotted), *name = copy, *rest;
	const struct key *keys = config_keys, *k = NULL;
	const char *near = NULL;

	for (; name; name = rest) {
		rest = strchr(name, '.');
		if (rest)
			*rest++ = '\0';
		if (k) {
			*base = (char *)*base + k->offset;
			keys = key_table(r->c, k);
		}
		k = keys ? find_key(keys, name, &near) : NULL;
		if (!keys)
			return fail(r->err, FETTLE_INVALID,
				    "%s: cannot set %.160s: '%s' has no keys, give its value", r->source,
				    dotted, r->path);
		if (!k)
			return fail(r->err, FETTLE_INVALID,
				    "%s: cannot set %.160s: unknown key '%.80s'%s%s%s", r->source, dotted,
				    name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
		r->path = path_add(r, k->name);
	}
	*out = k;
	return FETTLE_OK;
}

/* Lists and maps are YAML; a text is taken as it is. */
static enum fettle_status parse_value(struct reader *r, const struct key *k, const char *value,
				      struct yaml **out)
{
	struct arena *arena = &r->c->state->arena;

	if (k->type != KEY_TEXT && k->type != KEY_PATH && (*value == '[' || *value == '{'))
		return yaml_parse(out, arena, arena_strdup(arena, value), strlen(value), r->source, r->err);
	*out = yaml_scalar(arena, value, false);
	return FETTLE_OK;
}

static enum fettle_status set_value(struct config *c, const char *key, const char *value, const char *origin,
				    struct err *err)
{
	struct reader r = { .c = c, .path = "", .err = err };
	const struct key *k = NULL;
	struct yaml *y = NULL;
	void *base = c;
	enum fettle_status st;

	r.source = arena_strdup(&c->state->arena, origin);
	st = find_path(&r, key, &k, &base);
	if (!st)
		st = parse_value(&r, k, value, &y);
	if (!st)
		st = read_key(&r, k, base, y);
	return st ? st : config_finish(c, err);
}

enum fettle_status config_set(struct config *c, const char *key, const char *value, const char *origin,
			      struct err *err)
{
	struct plain_locale locale = plain_locale_begin();
	struct config_state *s = c->state, before = *s;
	struct config old = *c;
	enum fettle_status st;

	/* what a failure must give back; the arena only grows */
	s->origins.v = xmalloc((before.origins.n + 1) * sizeof(*before.origins.v));
	s->origins.cap = before.origins.n + 1;
	s->notes.v = xmalloc((before.notes.n + 1) * sizeof(*before.notes.v));
	s->notes.cap = before.notes.n + 1;
	if (before.origins.n)
		memcpy(s->origins.v, before.origins.v, before.origins.n * sizeof(*before.origins.v));
	if (before.notes.n)
		memcpy(s->notes.v, before.notes.v, before.notes.n * sizeof(*before.notes.v));

	st = set_value(c, key, value, origin, err);
	if (st) {
		VEC_RELEASE(&s->origins);
		VEC_RELEASE(&s->notes);
		memcpy(&s->origins, &before.origins, sizeof(s->origins));
		memcpy(&s->notes, &before.notes, sizeof(s->notes));
		*c = old;
	} else {
		VEC_RELEASE(&before.origins);
		VEC_RELEASE(&before.notes);
	}
	plain_locale_end(&locale);
	return st;
}

void config_open_approach(struct config *c)
{
	if (!config_is_set(c, &c->quantization.approach))
		c->quantization.approach = APPROACH_AUTO;
}
