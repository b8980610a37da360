#include "config/yaml.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libfyaml.h>

#include "base/map.h"

/* A map or list under construction, with the anchor and the key that wait for their node. */
struct level {
	struct yaml *node;
	const char *anchor;
	struct yaml *key;
	size_t cap;
	struct map seen; /* keys of a map: index */
};

struct builder {
	struct arena *arena;
	const char *name;
	struct err *err;
	struct level stack[YAML_DEPTH_MAX];
	size_t depth;
	struct yaml *root;
	size_t nodes;
	struct map anchors; /* index into `anchored` */
	VEC(struct yaml *) anchored;
	int line, column; /* where the parser is, for nodes without a token */
};

static enum fettle_status fail_at(struct builder *b, int line, int column, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static enum fettle_status fail_at(struct builder *b, int line, int column, const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return fail(b->err, FETTLE_INVALID, "%s:%d:%d: %s", b->name, line, column, msg);
}

/* What libfyaml complains about, in our words: its first message, with positions from 1. */
static enum fettle_status fail_parser(struct builder *b, struct fy_diag *diag)
{
	struct fy_diag_error *e;
	void *iter = NULL;

	e = fy_diag_errors_iterate(diag, &iter);
	if (!e)
		return fail_at(b, b->line, b->column, "cannot parse the YAML");
	return fail_at(b, e->line > 0 ? e->line : b->line, e->column > 0 ? e->column : b->column,
		       "cannot parse the YAML: %s", e->msg);
}

static char *token_text(struct builder *b, struct fy_token *t)
{
	size_t n = 0;
	const char *s = t ? fy_token_get_text(t, &n) : NULL;
	char *copy = arena_alloc(b->arena, n + 1);

	if (s)
		memcpy(copy, s, n);
	return copy;
}

static void note_position(struct builder *b, struct fy_token *t)
{
	const struct fy_mark *mark = t ? fy_token_start_mark(t) : NULL;

	if (mark) {
		b->line = mark->line + 1;
		b->column = mark->column + 1;
	}
}

static struct yaml *new_node(struct builder *b, enum yaml_type type)
{
	struct yaml *y = arena_alloc(b->arena, sizeof(*y));

	y->type = type;
	y->line = b->line;
	y->column = b->column;
	y->size = 1;
	return y;
}

static void add_child(struct builder *b, struct level *l, struct yaml *child)
{
	struct yaml *y = l->node;

	if (y->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 8;
		struct yaml **v = arena_alloc(b->arena, cap * sizeof(*v));
		struct yaml **key = arena_alloc(b->arena, cap * sizeof(*key));

		if (y->n) {
			memcpy(v, y->v, y->n * sizeof(*v));
			memcpy(key, y->key, y->n * sizeof(*key));
		}
		y->v = v;
		y->key = key;
		l->cap = cap;
	}
	y->v[y->n] = child;
	y->key[y->n] = l->key;
	y->n++;
	y->size += child->size;
	l->key = NULL;
}

static enum fettle_status take_key(struct builder *b, struct level *l, struct yaml *key)
{
	size_t seen;

	if (key->type != YAML_SCALAR)
		return fail_at(b, key->line, key->column, "a key must be a word, not a %s",
			       key->type == YAML_MAP ? "map" : "list");
	seen = map_get(&l->seen, key->text);
	if (seen != MAP_NONE)
		return fail_at(b, key->line, key->column, "duplicate key '%.80s', first at line %d",
			       key->text, l->node->key[seen]->line);
	map_set(&l->seen, key->text, l->node->n);
	l->key = key;
	return FETTLE_OK;
}

/* A node is complete: it goes where it belongs. */
static enum fettle_status place(struct builder *b, struct yaml *y, const char *anchor)
{
	struct level *l = b->depth ? &b->stack[b->depth - 1] : NULL;

	if (anchor) {
		map_set(&b->anchors, anchor, b->anchored.n);
		VEC_PUSH(&b->anchored, y);
	}
	if (l && l->node->type == YAML_MAP && !l->key)
		return take_key(b, l, y);
	if (!l) {
		b->root = y;
		return FETTLE_OK;
	}
	add_child(b, l, y);
	if (l->node->size > YAML_NODES_MAX)
		return fail_at(b, b->line, b->column, "too large: more than %d nodes", YAML_NODES_MAX);
	return FETTLE_OK;
}

static enum fettle_status check_tag(struct builder *b, struct fy_token *tag, enum yaml_type type)
{
	if (!tag)
		return FETTLE_OK;
	note_position(b, tag);
	if (type == YAML_LIST && str_ends(token_text(b, tag), ":python/tuple")) /* INC writes such itself */
		return FETTLE_OK;
	/* INC's only other tag */
	if (strcmp(token_text(b, tag), "!Pruner") == 0)
		return fail_at(b, b->line, b->column,
			       "fettle does not prune: give it the pruned model and leave the section out");
	return fail_at(b, b->line, b->column, "tag '%.80s' is not supported, leave it out",
		       token_text(b, tag));
}

static enum fettle_status open_level(struct builder *b, enum yaml_type type, struct fy_token *anchor)
{
	struct level *l = &b->stack[b->depth];

	if (b->depth == YAML_DEPTH_MAX)
		return fail_at(b, b->line, b->column, "too deep: more than %d levels", YAML_DEPTH_MAX);
	*l = (struct level){ .node = new_node(b, type), .seen = MAP_INIT };
	if (anchor)
		l->anchor = token_text(b, anchor);
	b->depth++;
	return FETTLE_OK;
}

/* `<<: *map` or `<<: [*map, *map]`: the keys of the others, where the map has none of that name. */
static enum fettle_status merge(struct builder *b, struct level *l)
{
	struct yaml *y = l->node, *from;
	size_t at = y->type == YAML_MAP ? map_get(&l->seen, "<<") : MAP_NONE, n, i, k;

	if (at == MAP_NONE || y->key[at]->quoted)
		return FETTLE_OK;
	from = y->v[at];
	y->n--;
	memmove(y->v + at, y->v + at + 1, (y->n - at) * sizeof(*y->v));
	memmove(y->key + at, y->key + at + 1, (y->n - at) * sizeof(*y->key));
	y->size -= from->size;
	n = from->type == YAML_LIST ? from->n : 1;
	for (i = 0; i < n; i++) {
		const struct yaml *map = from->type == YAML_LIST ? from->v[i] : from;

		if (map->type != YAML_MAP)
			return fail_at(b, from->line, from->column,
				       "merge key '<<' needs a map, or a list of maps");
		for (k = 0; k < map->n; k++) {
			if (map_get(&l->seen, map->key[k]->text) != MAP_NONE)
				continue;
			map_set(&l->seen, map->key[k]->text, y->n);
			l->key = map->key[k];
			add_child(b, l, map->v[k]);
			if (y->size > YAML_NODES_MAX)
				return fail_at(b, y->line, y->column, "too large: more than %d nodes",
					       YAML_NODES_MAX);
		}
	}
	return FETTLE_OK;
}

static enum fettle_status close_level(struct builder *b)
{
	struct level *l = &b->stack[--b->depth];
	enum fettle_status st = merge(b, l);

	map_release(&l->seen);
	return st ? st : place(b, l->node, l->anchor);
}

static enum fettle_status take_scalar(struct builder *b, const struct fy_event *e)
{
	enum fy_scalar_style style = e->scalar.value ? fy_token_scalar_style(e->scalar.value) : FYSS_PLAIN;
	struct yaml *y = new_node(b, YAML_SCALAR);
	size_t n = 0;

	/* libfyaml points after the quote */
	if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && y->column > 1)
		y->column--;
	/* libfyaml 0.7.12 returns memory it has not written for some that are wrongly indented */
	if (style == FYSS_LITERAL || style == FYSS_FOLDED)
		return fail_at(b, y->line, y->column,
			       "a text block ('|' or '>') is not supported, write it in quotes");
	if (e->scalar.value)
		fy_token_get_text(e->scalar.value, &n);
	y->text = token_text(b, e->scalar.value);
	y->quoted = style != FYSS_PLAIN && style != FYSS_ANY;
	if (strlen(y->text) != n)
		return fail_at(b, y->line, y->column, "a text must not hold a NUL character");
	return place(b, y, e->scalar.anchor ? token_text(b, e->scalar.anchor) : NULL);
}

/* An anchor is known only when its node is complete: so there are no cycles. */
static enum fettle_status take_alias(struct builder *b, const struct fy_event *e)
{
	const char *name = token_text(b, e->alias.anchor);
	size_t i = map_get(&b->anchors, name);

	if (i == MAP_NONE)
		return fail_at(b, b->line, b->column, "unknown alias '*%.80s'", name);
	return place(b, b->anchored.v[i], NULL);
}

static enum fettle_status take_event(struct builder *b, const struct fy_event *e)
{
	enum fettle_status st;

	switch (e->type) {
	case FYET_DOCUMENT_START:
		if (b->root)
			return fail_at(b, b->line, b->column, "more than one document, need one");
		return FETTLE_OK;
	case FYET_MAPPING_START:
		note_position(b, e->mapping_start.mapping_start);
		st = check_tag(b, e->mapping_start.tag, YAML_MAP);
		return st ? st : open_level(b, YAML_MAP, e->mapping_start.anchor);
	case FYET_SEQUENCE_START:
		note_position(b, e->sequence_start.sequence_start);
		st = check_tag(b, e->sequence_start.tag, YAML_LIST);
		return st ? st : open_level(b, YAML_LIST, e->sequence_start.anchor);
	case FYET_SCALAR:
		/* a value that is missing: libfyaml 0.8 has a token for it, 0.7 has none */
		if (fy_token_get_text_length(e->scalar.value) ||
		    fy_token_scalar_style(e->scalar.value) != FYSS_PLAIN)
			note_position(b, e->scalar.value);
		st = check_tag(b, e->scalar.tag, YAML_SCALAR);
		return st ? st : take_scalar(b, e);
	case FYET_ALIAS:
		note_position(b, e->alias.anchor);
		b->column -= b->column > 1; /* libfyaml points after the star */
		return take_alias(b, e);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		return close_level(b);
	default:
		return FETTLE_OK;
	}
}

static enum fettle_status take_events(struct builder *b, struct fy_parser *parser, struct fy_diag *diag)
{
	struct fy_event *e;
	enum fettle_status st = FETTLE_OK;

	while (!st && (e = fy_parser_parse(parser))) {
		if (++b->nodes > 2 * YAML_NODES_MAX)
			st = fail_at(b, b->line, b->column, "too large: more than %d nodes", YAML_NODES_MAX);
		else
			st = take_event(b, e);
		fy_parser_event_free(parser, e);
	}
	if (!st && (fy_diag_got_error(diag) || fy_parser_get_stream_error(parser)))
		st = fail_parser(b, diag);
	return st;
}

/* Length of the UTF-8 character at p, of n bytes that are left; 0 when it is none, or a control character. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
	size_t length = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0, i;

	if (!length || length > n || (*p < 0x20 && !strchr("\t\n\r", *p)) || *p == 0 || *p == 0x7f)
		return 0;
	for (i = 1; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, surrogates, above U+10FFFF */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
	    (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return length;
}

/* libfyaml 0.7.12 never returns from some directives that are not UTF-8: it does not get to see them. */
static enum fettle_status check_bytes(struct builder *b, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + n;
	int line = 1, column = 1;

	while (p < end) {
		size_t length = utf8_length(p, (size_t)(end - p));

		if (!length)
			return fail_at(b, line, column, "byte 0x%02x, need UTF-8 text", *p);
		column = *p == '\n' ? 1 : column + 1;
		line += *p == '\n';
		p += length;
	}
	return FETTLE_OK;
}

enum fettle_status yaml_parse(struct yaml **out, struct arena *arena, const char *text, size_t n,
			      const char *name, struct err *err)
{
	struct builder b = {
		.arena = arena, .name = name, .err = err, .anchors = MAP_INIT, .line = 1, .column = 1
	};
	struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
					     FYPCF_SLOPPY_FLOW_INDENTATION | FYPCF_JSON_NONE };
	struct fy_diag_cfg diag_cfg;
	struct fy_parser *parser = NULL;
	struct fy_diag *diag = NULL;
	enum fettle_status st;

	if (n > YAML_BYTES_MAX)
		return fail(err, FETTLE_INVALID, "cannot read %s: %zu bytes, a configuration has at most %d",
			    name, n, YAML_BYTES_MAX);
	st = check_bytes(&b, text, n);
	if (st)
		return st;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag = fy_diag_create(&diag_cfg);
	if (diag)
		fy_diag_set_collect_errors(diag, true);
	cfg.diag = diag;
	parser = diag ? fy_parser_create(&cfg) : NULL;
	if (!parser || (n && fy_parser_set_string(parser, text, n))) {
		st = fail(err, FETTLE_SYSTEM, "cannot read %s: libfyaml does not start", name);
		goto out;
	}
	st = n ? take_events(&b, parser, diag) : FETTLE_OK;
	if (!st)
		*out = b.root;
out:
	while (b.depth)
		map_release(&b.stack[--b.depth].seen);
	map_release(&b.anchors);
	VEC_RELEASE(&b.anchored);
	if (parser)
		fy_parser_destroy(parser);
	if (diag)
		fy_diag_destroy(diag);
	return st;
}

struct yaml *yaml_scalar(struct arena *arena, const char *text, bool quoted)
{
	struct yaml *y = arena_alloc(arena, sizeof(*y));

	*y = (struct yaml){
		.type = YAML_SCALAR, .text = arena_strdup(arena, text), .quoted = quoted, .size = 1
	};
	return y;
}

bool yaml_is_null(const struct yaml *y)
{
	return !y || (y->type == YAML_SCALAR && !y->quoted &&
		      (!*y->text || !strcmp(y->text, "~") || !strcasecmp(y->text, "null")));
}

bool yaml_is_text(const struct yaml *y)
{
	return y && y->type == YAML_SCALAR && !yaml_is_null(y);
}

/* Plain where that is certain to be read back as the same text; words, numbers and paths are. */
static bool is_plain(const char *s)
{
	size_t i;

	if (!isalnum((unsigned char)*s) && !strchr("/._", *s))
		return false;
	if (!strcasecmp(s, "null") || !strcmp(s, "..."))
		return false;
	for (i = 0; s[i]; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("/._+-", s[i]))
			return false;
	return true;
}

void yaml_print_text(const char *text, struct str *out)
{
	const unsigned char *p = (const unsigned char *)text;

	if (*text && is_plain(text)) {
		str_addf(out, "%s", text);
		return;
	}
	str_addf(out, "\"");
	for (; *p; p++) {
		/* U+0085, U+2028 and U+2029 would be line breaks to some readers */
		if (*p == '"' || *p == '\\')
			str_addf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			str_addf(out, "\\x%02X", *p);
		else if (p[0] == 0xc2 && p[1] == 0x85)
			str_addf(out, "\\N"), p++;
		else if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
			str_addf(out, "\\%c", p[2] == 0xa8 ? 'L' : 'P'), p += 2;
		else
			str_addf(out, "%c", *p);
	}
	str_addf(out, "\"");
}

void yaml_print(const struct yaml *y, struct str *out)
{
	size_t i;

	if (y->type == YAML_SCALAR) {
		if (yaml_is_null(y))
			str_addf(out, "null");
		else
			yaml_print_text(y->text, out);
		return;
	}
	str_addf(out, "%c", y->type == YAML_MAP ? '{' : '[');
	for (i = 0; i < y->n; i++) {
		if (i)
			str_addf(out, ", ");
		if (y->type == YAML_MAP) {
			yaml_print(y->key[i], out);
			str_addf(out, ": ");
		}
		yaml_print(y->v[i], out);
	}
	str_addf(out, "%c", y->type == YAML_MAP ? '}' : ']');
}
