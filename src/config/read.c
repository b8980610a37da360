#include "config/read.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"

enum { NAMES_MAX = 64 };

static struct arena *arena_of(const struct reader *r)
{
	return &r->c->state->arena;
}

struct config_origin origin_of(const struct reader *r, const struct yaml *y)
{
	return (struct config_origin){ .source = r->source,
				       .line = r->is_file ? y->line : 0,
				       .column = r->is_file ? y->column : 0 };
}

enum fettle_status fail_value(const struct reader *r, const struct yaml *y, const char *fmt, ...)
{
	struct config_origin at = origin_of(r, y);
	char msg[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return config_fail(&at, FETTLE_INVALID, r->err, "cannot set %.160s: %s", r->path, msg);
}

enum fettle_status fail_here(const struct reader *r, const struct yaml *y, enum fettle_status st)
{
	struct config_origin at = origin_of(r, y);
	char msg[sizeof(r->err->msg)];

	if (!r->err)
		return st;
	memcpy(msg, r->err->msg, sizeof(msg));
	return config_fail(&at, st, r->err, "%.800s", msg);
}

const char *path_add(struct reader *r, const char *key)
{
	return *r->path ? arena_strfmt(arena_of(r), "%s.%s", r->path, key) : key;
}

const char *describe(const struct reader *r, const struct yaml *y)
{
	if (y->type != YAML_SCALAR)
		return y->type == YAML_MAP ? "a map" : "a list";
	if (yaml_is_null(y))
		return "no value";
	return arena_strfmt(arena_of(r), "'%.80s'", y->text);
}

static enum fettle_status mark_as(struct reader *r, const void *field, const struct yaml *y,
				  const char *yields)
{
	struct config_state *s = r->c->state;
	struct field_origin o = { (size_t)((const char *)field - (const char *)r->c), origin_of(r, y),
				  yields };
	size_t i;

	for (i = 0; i < s->origins.n; i++) {
		struct field_origin *old = &s->origins.v[i];

		if (old->offset != o.offset)
			continue;
		if (old->at.source == r->source && !old->at.implied && old->yields)
			add_note(r->c, &old->at, false, "%s has no effect: %s overrules it", old->yields,
				 r->path);
		else if (old->at.source == r->source && !old->at.implied && r->is_file)
			return fail_value(r, y, "line %d has set it already, under another name",
					  old->at.line);
		else if (old->at.source == r->source && !old->at.implied)
			return fail_value(r, y, "it is there twice, under two names");
		*old = o;
		return FETTLE_OK;
	}
	VEC_PUSH(&s->origins, o);
	return FETTLE_OK;
}

enum fettle_status mark(struct reader *r, const void *field, const struct yaml *y)
{
	return mark_as(r, field, y, NULL);
}

/* Has this reading set it? */
static bool is_set_here(const struct reader *r, const void *field)
{
	const struct config_origin *at = config_origin(r->c, field);

	return at && at->source == r->source && !at->implied;
}

/* ---- scalars ---- */

bool parse_number(const char *text, double *out)
{
	char *end;

	if (!*text || isspace((unsigned char)*text))
		return false;
	*out = strtod(text, &end);
	return !*end && isfinite(*out);
}

/* "1.5h", "1h30m": numbers with a unit each, in seconds */
static bool parse_duration(const char *text, double *out)
{
	static const char units[] = "smhd";
	static const double worth[] = { 1, 60, 3600, 86400 };
	const char *s = text, *unit;
	char *end;

	for (*out = 0; *s; s = end + 1) {
		double x = isdigit((unsigned char)*s) ? strtod(s, &end) : NAN;

		unit = isfinite(x) && *end ? strchr(units, *end) : NULL;
		if (!unit)
			return false;
		*out += x * worth[unit - units];
	}
	return s != text;
}

static enum fettle_status check_limits(struct reader *r, const struct key *k, const struct yaml *y, double x)
{
	if (k->max <= k->min || (x >= k->min && x <= k->max))
		return FETTLE_OK;
	if (x < k->min)
		return fail_value(r, y, "%s, need at least %.10g", describe(r, y), k->min);
	return fail_value(r, y, "%s, need at most %.10g", describe(r, y), k->max);
}

enum fettle_status read_number(struct reader *r, const struct key *k, const struct yaml *y, bool whole,
			       double *out)
{
	bool percent = false;
	const char *text = y->text;
	double x = 0;

	if (k->percent && yaml_is_text(y) && str_ends(y->text, "%")) {
		percent = true;
		text = arena_strfmt(arena_of(r), "%.*s", (int)strlen(y->text) - 1, y->text);
	}
	if (!yaml_is_text(y) || (!parse_number(text, &x) && !(k->duration && parse_duration(text, &x))) ||
	    (whole && x != floor(x)))
		return fail_value(r, y, "%s, need a %s", describe(r, y),
				  k->duration ? "number of seconds, or e.g. 90s, 10m, 1h30m"
				  : whole     ? "whole number"
					      : "number");
	if (percent)
		x /= 100;
	*out = x;
	return check_limits(r, k, y, x);
}

static enum fettle_status read_bool(struct reader *r, const struct yaml *y, bool *out)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
	size_t i;

	for (i = 0; yaml_is_text(y) && i < ARRAY_LEN(words); i++) {
		if (strcasecmp(y->text, words[i]) != 0)
			continue;
		*out = i % 2;
		return FETTLE_OK;
	}
	return fail_value(r, y, "%s, need true or false", describe(r, y));
}

static enum fettle_status fail_word(struct reader *r, const struct word *words, const struct yaml *y)
{
	const char *names[NAMES_MAX], *near;
	struct str list = STR_INIT;
	enum fettle_status st;
	size_t n = 0;

	for (; words->name; words++) {
		if (words->refused)
			continue;
		str_addf(&list, "%s%s", n ? ", " : "", words->name);
		names[n++] = words->name;
	}
	near = yaml_is_text(y) ? str_nearest(y->text, names, n) : NULL;
	if (near)
		st = fail_value(r, y, "%s, did you mean '%s'?", describe(r, y), near);
	else
		st = fail_value(r, y, "%s, need %s%s", describe(r, y), n > 1 ? "one of " : "", list.s);
	str_release(&list);
	return st;
}

static enum fettle_status read_word(struct reader *r, const struct key *k, const struct yaml *y, int *out)
{
	bool other = k->otherwise && yaml_is_text(y) && !str_starts(y->text, k->checked);
	const struct word *w;

	for (w = k->words; yaml_is_text(y) && w->name; w++) {
		if (strcasecmp(w->name, y->text) != 0)
			continue;
		if (w->refused)
			return fail_value(r, y, "%s, %s", describe(r, y), w->refused);
		*out = w->value;
		return FETTLE_OK;
	}
	for (w = k->words; other && w->name; w++)
		if (strcmp(w->name, k->otherwise) == 0) {
			*out = w->value;
			return FETTLE_OK;
		}
	return fail_word(r, k->words, y);
}

enum fettle_status read_text(struct reader *r, const struct yaml *y, const char **out)
{
	if (!yaml_is_text(y))
		return fail_value(r, y, "%s, need a text", describe(r, y));
	*out = y->text;
	return FETTLE_OK;
}

enum fettle_status read_path(struct reader *r, const struct yaml *y, const char **out)
{
	const char *folder = r->c->state->from.folder;
	char *beside;

	if (!yaml_is_text(y) || !*y->text)
		return fail_value(r, y, "%s, need a path", describe(r, y));
	if (r->is_file)
		beside = path_beside(r->source, y->text);
	else
		beside = path_from(folder, y->text);
	*out = arena_strdup(arena_of(r), beside);
	free(beside);
	return FETTLE_OK;
}

/* ---- lists ---- */

/* at commas, or where there are none at blanks */
static void split_text(struct reader *r, const struct yaml *y, struct items *out)
{
	static const char blanks[] = " \t\n";
	const char *s = y->text, *end, *mark = strchr(s, ',') ? "," : blanks;
	size_t n = 1;

	for (end = s; *end; end++)
		n += strchr(mark, *end) != NULL;
	out->v = arena_alloc(arena_of(r), n * sizeof(*out->v));
	for (out->n = 0, end = ","; *end; s = end + 1) {
		const char *first = s + strspn(s, blanks), *last;
		struct yaml *item;

		if (!*first && mark == blanks)
			break;
		end = first + strcspn(first, mark);
		for (last = end; last > first && isspace((unsigned char)last[-1]); last--)
			;
		item = arena_alloc(arena_of(r), sizeof(*item));
		*item = *y;
		item->text = arena_strfmt(arena_of(r), "%.*s", (int)(last - first), first);
		if (strchr(y->text, '\n') == NULL)
			item->column += (int)(first - y->text) + y->quoted;
		item->quoted = false;
		out->v[out->n++] = item;
	}
}

enum fettle_status read_items(struct reader *r, const struct yaml *y, struct items *out)
{
	size_t i;

	*out = (struct items){ NULL, 0 };
	if (yaml_is_text(y) && strpbrk(y->text, ", \t\n")) {
		split_text(r, y, out);
	} else if (y->type == YAML_LIST) {
		*out = (struct items){ y->v, y->n };
	} else {
		out->v = arena_alloc(arena_of(r), sizeof(*out->v));
		out->v[out->n++] = (struct yaml *)(uintptr_t)y; /* which nobody writes to */
	}
	for (i = 0; i < out->n; i++)
		if (!yaml_is_text(out->v[i]))
			return fail_value(r, out->v[i], "%s, need a value", describe(r, out->v[i]));
	return FETTLE_OK;
}

static enum fettle_status read_numbers(struct reader *r, const struct key *k, const struct items *items,
				       struct config_numbers *out)
{
	struct config_numbers list = { arena_alloc(arena_of(r), items->n * sizeof(double)), items->n };
	enum fettle_status st;
	size_t i;

	for (i = 0; i < items->n; i++) {
		st = read_number(r, k, items->v[i], false, &list.v[i]);
		if (st)
			return st;
	}
	*out = list;
	return FETTLE_OK;
}

static enum fettle_status read_pair(struct reader *r, const struct key *k, const struct yaml *y,
				    const struct items *items, double *out)
{
	struct config_numbers list;
	enum fettle_status st;

	if (items->n != 2)
		return fail_value(r, y, "%zu number%s, need two", items->n, items->n == 1 ? "" : "s");
	st = read_numbers(r, k, items, &list);
	if (!st)
		memcpy(out, list.v, 2 * sizeof(*out));
	return st;
}

static enum fettle_status read_int_item(struct reader *r, const struct key *k, const struct yaml *y,
					int64_t *out)
{
	enum fettle_status st;
	double x = 0;
	bool b = false;
	int word = 0;

	if (k->type == KEY_WORDS) {
		st = read_word(r, k, y, &word);
		*out = word;
	} else if (k->type == KEY_BOOLS) {
		st = read_bool(r, y, &b);
		*out = b;
	} else {
		st = read_number(r, k, y, true, &x);
		*out = st ? 0 : (int64_t)x;
	}
	return st;
}

static enum fettle_status read_ints(struct reader *r, const struct key *k, const struct items *items,
				    struct config_ints *out)
{
	struct config_ints list = { arena_alloc(arena_of(r), items->n * sizeof(int64_t)), items->n };
	enum fettle_status st;
	size_t i;

	for (i = 0; i < items->n; i++) {
		st = read_int_item(r, k, items->v[i], &list.v[i]);
		if (st)
			return st;
	}
	*out = list;
	return FETTLE_OK;
}

static void read_texts(struct reader *r, const struct items *items, struct config_strings *out)
{
	size_t i;

	out->v = arena_alloc(arena_of(r), items->n * sizeof(*out->v));
	out->n = items->n;
	for (i = 0; i < items->n; i++)
		out->v[i] = items->v[i]->text;
}

static enum fettle_status read_allowed(struct reader *r, const struct key *k, const struct yaml *y,
				       const struct items *items, struct config_allowed *out)
{
	struct config_allowed allowed = { .at = origin_of(r, y) };
	enum fettle_status st;
	int word = 0;
	size_t i;

	for (i = 0; i < items->n; i++) {
		st = read_word(r, k, items->v[i], &word);
		if (st)
			return st;
		allowed.mask |= (unsigned)word;
	}
	*out = allowed;
	return FETTLE_OK;
}

static enum fettle_status read_list(struct reader *r, const struct key *k, const struct yaml *y, void *field)
{
	struct items items;
	enum fettle_status st = read_items(r, y, &items);

	if (st)
		return st;
	if (!items.n && !k->empty)
		return fail_value(r, y, "an empty list, need at least one value");
	switch (k->type) {
	case KEY_NUMBERS:
		return read_numbers(r, k, &items, field);
	case KEY_PAIR:
		return read_pair(r, k, y, &items, field);
	case KEY_TEXTS:
		read_texts(r, &items, field);
		return FETTLE_OK;
	case KEY_ALLOWED:
		return read_allowed(r, k, y, &items, field);
	default:
		return read_ints(r, k, &items, field);
	}
}

/* ---- keys ---- */

/* A null where a text may be missing: back to the default. */
static enum fettle_status read_optional_text(struct reader *r, const struct key *k, const struct yaml *y,
					     const char **field)
{
	size_t offset = (size_t)((char *)field - (char *)r->c);

	if (yaml_is_null(y)) {
		memcpy(field, (const char *)r->c->state->defaults + offset, sizeof(*field));
		return FETTLE_OK;
	}
	return k->type == KEY_PATH ? read_path(r, y, field) : read_text(r, y, field);
}

static enum fettle_status read_value(struct reader *r, const struct key *k, const struct yaml *y, void *field)
{
	enum fettle_status st;
	double x = 0;

	switch (k->type) {
	case KEY_BOOL:
		return read_bool(r, y, field);
	case KEY_INT:
		st = read_number(r, k, y, true, &x);
		if (!st)
			*(int *)field = (int)x;
		return st;
	case KEY_INT64:
		st = read_number(r, k, y, true, &x);
		if (!st)
			*(int64_t *)field = (int64_t)x;
		return st;
	case KEY_COUNT:
		st = read_number(r, k, y, true, &x);
		if (!st)
			*(size_t *)field = (size_t)x;
		return st;
	case KEY_NUMBER:
		return read_number(r, k, y, false, field);
	case KEY_WORD:
		return read_word(r, k, y, field);
	case KEY_TEXT:
	case KEY_PATH:
		return read_optional_text(r, k, y, field);
	case KEY_CUSTOM:
		return k->custom->read(r, k, y, field);
	default:
		return read_list(r, k, y, field);
	}
}

static enum fettle_status read_leaf(struct reader *r, const struct key *k, void *base, const struct yaml *y)
{
	char *field = (char *)base + k->offset;
	struct config_origin at = origin_of(r, y);
	enum fettle_status st;

	if (k->yields && is_set_here(r, field)) {
		add_note(r->c, &at, false, "%s has no effect: another name of it overrules it", r->path);
		return FETTLE_OK;
	}
	st = read_value(r, k, y, field);
	if (!st && k->type != KEY_ALLOWED) /* which keeps its own */
		st = mark_as(r, field, y, k->yields ? r->path : NULL);
	if (!st && k->also) {
		*(int *)((char *)base + k->also) = k->also_value;
		st = mark(r, (char *)base + k->also, y);
	}
	return st;
}

enum fettle_status read_key(struct reader *r, const struct key *k, void *base, const struct yaml *y)
{
	const struct yaml *key = r->key ? r->key : y;
	struct config_origin at = origin_of(r, key);
	const char *near;

	switch (k->type) {
	case KEY_MAP:
		if (k->whole && yaml_is_text(y)) {
			r->path = path_add(r, k->whole);
			return read_key(r, find_key(key_table(r->c, k), k->whole, &near),
					(char *)base + k->offset, y);
		}
		return read_map(r, key_table(r->c, k), (char *)base + k->offset, y);
	case KEY_UNUSED:
		add_note(r->c, &at, false, "%s has no effect: %s", r->path, k->why);
		return FETTLE_OK;
	case KEY_REFUSED:
		return fail_value(r, key, "%s", k->why);
	default:
		return read_leaf(r, k, base, y);
	}
}

const struct key *find_key(const struct key *keys, const char *name, const char **nearest)
{
	const char **names;
	size_t n;

	for (n = 0; keys[n].name; n++)
		if (!strcmp(keys[n].name, name))
			return &keys[n];
	names = xcalloc(n, sizeof(*names));
	for (n = 0; keys[n].name; n++)
		names[n] = keys[n].name;
	*nearest = str_nearest(name, names, n);
	free(names);
	return NULL;
}

static enum fettle_status fail_key(struct reader *r, const struct key *keys, const struct yaml *key,
				   const char *near)
{
	struct config_origin at = origin_of(r, key);
	struct str list = STR_INIT;
	enum fettle_status st;

	if (near)
		return config_fail(&at, FETTLE_INVALID, r->err, "unknown key '%.80s', did you mean '%s'?",
				   key->text, near);
	for (; keys->name; keys++)
		if (!keys->alias && keys->type != KEY_REFUSED)
			str_addf(&list, "%s%s", list.n ? ", " : "", keys->name);
	st = config_fail(&at, FETTLE_INVALID, r->err, "unknown key '%.80s', %s takes %s", key->text,
			 *r->path ? r->path : "a configuration", list.s);
	str_release(&list);
	return st;
}

enum fettle_status as_map(struct reader *r, const struct yaml **y)
{
	const struct yaml *list = *y;
	struct yaml *map;
	size_t i, k, n = 0;

	for (i = 0; i < list->n; i++) {
		if (list->type != YAML_LIST || list->v[i]->type != YAML_MAP)
			return FETTLE_OK;
		n += list->v[i]->n;
	}
	if (!n)
		return FETTLE_OK;
	map = arena_alloc(arena_of(r), sizeof(*map));
	*map = *list;
	map->type = YAML_MAP;
	map->v = arena_alloc(arena_of(r), n * sizeof(*map->v));
	map->key = arena_alloc(arena_of(r), n * sizeof(*map->key));
	map->n = 0;
	for (i = 0; i < list->n; i++)
		for (k = 0; k < list->v[i]->n; k++) {
			struct yaml *key = list->v[i]->key[k];

			for (n = 0; n < map->n; n++)
				if (strcmp(map->key[n]->text, key->text) == 0)
					return fail_value(r, key, "'%.80s' is there twice", key->text);
			map->key[map->n] = key;
			map->v[map->n++] = list->v[i]->v[k];
		}
	*y = map;
	return FETTLE_OK;
}

enum fettle_status read_map(struct reader *r, const struct key *keys, void *base, const struct yaml *y)
{
	const char *path = r->path, *near = NULL;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	if (yaml_is_null(y))
		return FETTLE_OK;
	st = as_map(r, &y);
	if (!st && y->type != YAML_MAP)
		return fail_value(r, y, "%s, need a map", describe(r, y));
	for (i = 0; !st && i < y->n; i++) {
		const struct key *k = find_key(keys, y->key[i]->text, &near);

		if (!k)
			return fail_key(r, keys, y->key[i], near);
		r->path = path_add(r, k->name);
		r->key = y->key[i];
		st = read_key(r, k, base, y->v[i]);
		r->path = path;
	}
	return st;
}
