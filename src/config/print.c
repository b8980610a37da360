#include "config/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/read.h"

enum { COMMENT_COLUMN_MAX = 72 };

static char *origin_text(const struct config_origin *at)
{
	if (!at || !at->source)
		return xstrdup("default");
	return at->line
		       ? xstrfmt("%s:%d%s", path_base(at->source), at->line, at->implied ? " implies it" : "")
		       : xstrfmt("%s%s", at->source, at->implied ? " implies it" : "");
}

static void add_line(struct printer *p, const char *key, const char *value, char *comment)
{
	struct str text = STR_INIT;
	size_t i;

	if (p->identity) {
		for (i = 0; i < p->path.n; i++)
			str_addf(p->identity, "%s.", p->path.v[i]);
		str_addf(p->identity, "%s: %s\n", key, value);
		free(comment);
		return;
	}
	str_addf(&text, "%*s", 2 * p->depth, "");
	yaml_print_text(key, &text);
	str_addf(&text, ":%s%s", value ? " " : "", value ? value : "");
	VEC_PUSH(&p->lines, ((struct print_line){ text.s, comment }));
}

void print_line(struct printer *p, const char *key, const char *value, const struct config_origin *at)
{
	add_line(p, key, value, origin_text(at));
}

void print_open(struct printer *p, const char *key)
{
	if (p->identity)
		VEC_PUSH(&p->path, key);
	else
		add_line(p, key, NULL, NULL);
	p->depth++;
}

void print_close(struct printer *p)
{
	struct print_line *last;

	p->depth--;
	if (p->identity) {
		p->path.n--;
		return;
	}
	last = &p->lines.v[p->lines.n - 1];
	/* a line that is still open at our depth is our own */
	if (!last->comment && strspn(last->text, " ") == 2 * (size_t)p->depth) {
		free(last->text);
		p->lines.n--;
	}
}

static const char *word_name(const struct word *words, int value)
{
	for (; words->name; words++)
		if (words->value == value && !words->refused)
			return words->name;
	return NULL;
}

static void add_ints(struct str *s, const struct key *k, const struct config_ints *list)
{
	size_t i;

	str_addf(s, "[");
	for (i = 0; i < list->n; i++) {
		str_addf(s, "%s", i ? ", " : "");
		if (k->type == KEY_WORDS)
			str_addf(s, "%s", word_name(k->words, (int)list->v[i]));
		else if (k->type == KEY_BOOLS)
			str_addf(s, "%s", list->v[i] ? "true" : "false");
		else
			str_addf(s, "%lld", (long long)list->v[i]);
	}
	str_addf(s, "]");
}

static void add_numbers(struct str *s, const struct config_numbers *list)
{
	size_t i;

	str_addf(s, "[");
	for (i = 0; i < list->n; i++) {
		str_addf(s, "%s", i ? ", " : "");
		str_add_number(s, list->v[i]);
	}
	str_addf(s, "]");
}

static void add_pair(struct str *s, const double *pair)
{
	struct config_numbers list = { .n = 2 };
	double v[] = { pair[0], pair[1] };

	list.v = v;
	add_numbers(s, &list);
}

static void add_texts(struct str *s, const struct config_strings *list)
{
	size_t i;

	str_addf(s, "[");
	for (i = 0; i < list->n; i++) {
		str_addf(s, "%s", i ? ", " : "");
		yaml_print_text(list->v[i], s);
	}
	str_addf(s, "]");
}

static void add_allowed(struct str *s, const struct key *k, unsigned mask)
{
	const struct word *w;

	str_addf(s, "[");
	for (w = k->words; w->name; w++) {
		if (!(mask & (unsigned)w->value))
			continue;
		str_addf(s, "%s%s", s->n > 1 ? ", " : "", w->name);
		mask &= ~(unsigned)w->value;
	}
	str_addf(s, "]");
}

static void add_text(struct str *s, const char *text)
{
	if (text)
		yaml_print_text(text, s);
	else
		str_addf(s, "null");
}

/* Nothing where the value has no word: then it was not given. */
static void add_word(struct str *s, const struct key *k, int value)
{
	const char *name = word_name(k->words, value);

	if (name)
		str_addf(s, "%s", name);
}

void print_value_text(struct str *s, const struct key *k, const void *field)
{
	switch (k->type) {
	case KEY_BOOL:
		str_addf(s, "%s", *(const bool *)field ? "true" : "false");
		break;
	case KEY_INT:
		str_addf(s, "%d", *(const int *)field);
		break;
	case KEY_INT64:
		str_addf(s, "%lld", (long long)*(const int64_t *)field);
		break;
	case KEY_COUNT:
		str_addf(s, "%zu", *(const size_t *)field);
		break;
	case KEY_PAIR:
		add_pair(s, field);
		break;
	case KEY_NUMBER:
		str_add_number(s, *(const double *)field);
		break;
	case KEY_WORD:
		add_word(s, k, *(const int *)field);
		break;
	case KEY_TEXT:
	case KEY_PATH:
		add_text(s, k->secret ? NULL : *(const char *const *)field);
		break;
	case KEY_NUMBERS:
		add_numbers(s, field);
		break;
	case KEY_TEXTS:
		add_texts(s, field);
		break;
	default:
		add_ints(s, k, field);
		break;
	}
}

void print_numbers(struct printer *p, const struct key *k, const struct config_numbers *list)
{
	struct str s = STR_INIT;

	add_numbers(&s, list);
	print_line(p, k->name, s.s, config_origin(p->c, list));
	str_release(&s);
}

static void print_allowed(struct printer *p, const struct key *k, const struct config_allowed *allowed)
{
	struct str s = STR_INIT;

	if (!allowed->mask)
		return;
	add_allowed(&s, k, allowed->mask);
	print_line(p, k->name, s.s, &allowed->at);
	str_release(&s);
}

static void print_value(struct printer *p, const struct key *k, const void *field)
{
	struct str s = STR_INIT;

	if (k->quiet && !config_origin(p->c, field))
		return;
	print_value_text(&s, k, field);
	if (k->secret && *(const char *const *)field)
		add_line(p, k->name, s.s, xstrdup("not shown"));
	else if (s.n)
		print_line(p, k->name, s.s, config_origin(p->c, field));
	str_release(&s);
}

void print_keys(struct printer *p, const struct key *keys, const void *base)
{
	const struct key *k;

	for (k = keys; k->name; k++) {
		const char *field = (const char *)base + k->offset;

		if (k->alias || k->type == KEY_UNUSED || k->type == KEY_REFUSED)
			continue;
		if (p->identity && k->incidental)
			continue;
		if (p->identity && k->open && !config_is_set(p->c, field)) {
			print_line(p, k->name, "left open", NULL);
		} else if (k->type == KEY_MAP) {
			print_open(p, k->name);
			print_keys(p, key_table(p->c, k), field);
			print_close(p);
		} else if (k->type == KEY_CUSTOM) {
			k->custom->print(p, k, field);
		} else if (k->type == KEY_ALLOWED) {
			print_allowed(p, k, (const struct config_allowed *)(const void *)field);
		} else {
			print_value(p, k, field);
		}
	}
}

/* A comment ends with its line, whatever a file's name holds. */
static void add_comment(struct str *out, const char *text)
{
	str_addf(out, "# ");
	for (; *text; text++)
		str_addf(out, "%c", (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
	str_addf(out, "\n");
}

static int comment_column(const struct printer *p)
{
	size_t i, widest = 0;

	for (i = 0; i < p->lines.n; i++) {
		size_t width = strlen(p->lines.v[i].text);

		if (p->lines.v[i].comment && width > widest && width <= COMMENT_COLUMN_MAX)
			widest = width;
	}
	return (int)widest;
}

void config_identity(const struct config *c, struct str *out)
{
	struct plain_locale locale = plain_locale_begin();
	struct printer p = { .c = c, .identity = out };

	print_keys(&p, config_keys, c);
	VEC_RELEASE(&p.path);
	plain_locale_end(&locale);
}

void config_print(const struct config *c, struct str *out)
{
	struct plain_locale locale = plain_locale_begin();
	struct printer p = { .c = c };
	size_t i;
	int column;

	print_keys(&p, config_keys, c);
	column = comment_column(&p);
	for (i = 0; i < p.lines.n; i++) {
		struct print_line *l = &p.lines.v[i];

		if (l->comment) {
			str_addf(out, "%-*s  ", column, l->text);
			add_comment(out, l->comment);
		} else {
			str_addf(out, "%s\n", l->text);
		}
		free(l->text);
		free(l->comment);
	}
	for (i = 0; i < c->n_notes; i++)
		add_comment(out, c->notes[i].text);
	VEC_RELEASE(&p.lines);
	plain_locale_end(&locale);
}
