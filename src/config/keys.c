/* The schema as a page of the manual: what each key takes, its default, its meaning, an example. */
#include "config/keys.h"

#include <stdlib.h>
#include <string.h>

#include "config/print.h"
#include "config/read.h"
#include "data/dataset.h"
#include "evaluate/metric.h"

enum { LIMIT_SHOWN = 1 << 16 }; /* larger limits are there for safety, not for the user */

/* A key that is another name for one with the same place, or a map for one with the same keys at the same place. */
struct other_name {
	char *path;
	const struct key *keys; /* of a map */
	size_t offset;
};
struct section { /* a map that has been described */
	char *path;
	const struct key *keys;
};
struct page {
	const struct config *c;
	struct str out, idle, refused;
	VEC(struct other_name) others;
	VEC(struct section) sections;
};

static char *join(const char *path, const char *name)
{
	return *path ? xstrfmt("%s.%s", path, name) : xstrdup(name);
}

/* Text in which Markdown sees nothing. */
static void add_plain(struct str *out, const char *text)
{
	for (; *text; text++)
		str_addf(out, "%s%c", strchr("\\`*<>[]|", *text) ? "\\" : "", *text);
}

/* ---- what a key takes ---- */

/* The first name of each value, the others in brackets. */
static void add_words(struct str *out, const struct word *words)
{
	const struct word *w, *v;
	const char *comma = "";

	for (w = words; w->name; w++) {
		const char *also = " (or ";

		for (v = words; v < w && (v->refused || v->value != w->value); v++)
			;
		if (w->refused || v < w)
			continue;
		str_addf(out, "%s%s", comma, w->name);
		comma = ", ";
		for (v = w + 1; v->name; v++) {
			if (v->refused || v->value != w->value)
				continue;
			str_addf(out, "%s%s", also, v->name);
			also = ", ";
		}
		str_addf(out, "%s", strcmp(also, ", ") == 0 ? ")" : "");
	}
}

static void add_limits(struct str *out, const struct key *k)
{
	const bool low = k->min > -LIMIT_SHOWN, high = k->max < LIMIT_SHOWN;

	if (k->max <= k->min || (!low && !high))
		return;
	str_addf(out, high ? low ? ", " : ", at most " : ", at least ");
	if (low)
		str_add_number(out, k->min);
	if (low && high)
		str_addf(out, " to ");
	if (high)
		str_add_number(out, k->max);
}

static void add_type(struct str *out, const struct key *k)
{
	static const char *const types[] = {
		[KEY_BOOL] = "true or false",
		[KEY_INT] = "whole number",
		[KEY_INT64] = "whole number",
		[KEY_COUNT] = "whole number",
		[KEY_NUMBER] = "number",
		[KEY_WORD] = "one of ",
		[KEY_TEXT] = "text",
		[KEY_PATH] = "path, from the folder of the file",
		[KEY_INTS] = "whole number or list of them",
		[KEY_NUMBERS] = "number or list of them",
		[KEY_PAIR] = "two numbers",
		[KEY_BOOLS] = "true or false, or a list of them",
		[KEY_WORDS] = "one or a list of ",
		[KEY_TEXTS] = "text or list of them",
		[KEY_ALLOWED] = "one or a list of ",
		[KEY_CUSTOM] = "see the example",
	};

	if (k->duration)
		str_addf(out, "seconds, or as in 10m and 1h30m");
	else if (k->percent)
		str_addf(out, "number, or percentage as in 1%%");
	else
		str_addf(out, "%s", types[k->type]);
	if (k->words)
		add_words(out, k->words);
	else
		add_limits(out, k);
}

/* Nothing where there is none, or where it only says that the key is not set. */
static void add_default(struct str *out, const struct key *k, const void *field)
{
	struct str text = STR_INIT;

	if (k->type == KEY_CUSTOM || k->type == KEY_ALLOWED || k->secret)
		return;
	print_value_text(&text, k, field);
	if (text.n && strcmp(text.s, "null") != 0 && strcmp(text.s, "[]") != 0 &&
	    !((k->quiet || k->example) && strcmp(text.s, "0") == 0))
		str_addf(out, "; default %s", text.s);
	str_release(&text);
}

static void add_commands(struct str *out, unsigned used)
{
	static const char *const names[] = { "tune",  "search",  "quantize",   "eval",
					     "bench", "inspect", "sensitivity" };
	const char *comma = "";
	size_t i;

	if (used == CONFIG_COMMANDS)
		return;
	str_addf(out, " For ");
	for (i = 0; i < ARRAY_LEN(names); i++) {
		if (!(used >> i & 1))
			continue;
		str_addf(out, "%s%s", comma, names[i]);
		comma = ", ";
	}
	str_addf(out, ".");
}

/* "tpe random" */
static void add_strategies(struct str *out, const char *names)
{
	str_addf(out, strchr(names, ' ') ? " For the strategies " : " For the strategy ");
	for (; *names; names++)
		str_addf(out, *names == ' ' ? ", " : "%c", *names);
	str_addf(out, ".");
}

static void add_other_names(struct page *p, const struct key *keys, size_t offset)
{
	const char *comma = " Also ";
	size_t i;

	for (i = 0; i < p->others.n; i++) {
		if (p->others.v[i].keys != keys || p->others.v[i].offset != offset)
			continue;
		str_addf(&p->out, "%s`%s`", comma, p->others.v[i].path);
		comma = ", ";
	}
	str_addf(&p->out, "%s", strcmp(comma, ", ") == 0 ? "." : "");
}

/* A text that ends as a sentence does. */
static void add_sentence(struct str *out, const char *text)
{
	const size_t n = strlen(text);

	add_plain(out, text);
	str_addf(out, "%s", n && text[n - 1] == '.' ? "" : ".");
}

/* ---- the page ---- */

/* What is another name, without effect or refused, wherever it is. */
static void collect(struct page *p, const struct key *keys, size_t base, const char *path, bool inside_other)
{
	const struct key *k;

	for (k = keys; k->name; k++) {
		char *name = join(path, k->name);
		const bool other = inside_other || k->alias;

		if (k->type == KEY_UNUSED || k->type == KEY_REFUSED) {
			struct str *out = k->type == KEY_UNUSED ? &p->idle : &p->refused;

			if (!inside_other)
				str_addf(out, "**%s**\n\n: %s\n\n", name, k->why);
		} else if (k->type == KEY_MAP) {
			const struct key *table = key_table(p->c, k);

			if (k->alias)
				VEC_PUSH(&p->others,
					 ((struct other_name){ xstrdup(name), table, base + k->offset }));
			collect(p, table, base + k->offset, name, other);
		} else if (k->alias && !k->also && !inside_other) {
			VEC_PUSH(&p->others, ((struct other_name){ xstrdup(name), NULL, base + k->offset }));
		}
		free(name);
	}
}

static void add_key(struct page *p, const struct key *k, size_t base, unsigned used)
{
	const unsigned own = k->used ? used & k->used : used;

	str_addf(&p->out, "**%s** (", k->name);
	add_type(&p->out, k);
	add_default(&p->out, k, (const char *)p->c + base + k->offset);
	str_addf(&p->out, ")\n\n: ");
	add_sentence(&p->out, k->help ? k->help : "");
	if (k->strategies)
		add_strategies(&p->out, k->strategies);
	if (own != used)
		add_commands(&p->out, own);
	if (!k->alias)
		add_other_names(p, NULL, base + k->offset);
	if (k->example)
		str_addf(&p->out, " Example: `%s: %s`", k->name, k->example);
	str_addf(&p->out, "\n\n");
}

static const char *described(const struct page *p, const struct key *keys)
{
	size_t i;

	for (i = 0; i < p->sections.n; i++)
		if (p->sections.v[i].keys == keys)
			return p->sections.v[i].path;
	return NULL;
}

static bool shown(const struct key *k)
{
	return k->type != KEY_UNUSED && k->type != KEY_REFUSED && (!k->alias || k->also);
}

/* The keys of a map, then the maps in it. The same keys again at another place are named only. */
static void add_map(struct page *p, const struct key *map, const struct key *keys, size_t base,
		    const char *path, unsigned used)
{
	const char *as = described(p, keys);
	const unsigned own = map && map->used ? used & map->used : used;
	const struct key *k;

	str_addf(&p->out, "## %s\n\n", *path ? path : "At the top");
	if (map) {
		struct str text = STR_INIT;

		str_addf(&text, "%c%s",
			 map->help[0] >= 'a' && map->help[0] <= 'z' ? map->help[0] - 32 : map->help[0],
			 map->help + 1);
		add_sentence(&p->out, text.s);
		str_release(&text);
		if (own != used)
			add_commands(&p->out, own);
		add_other_names(p, keys, base);
		if (as)
			str_addf(&p->out, " The keys are those of %s.", as);
		str_addf(&p->out, "\n\n");
	}
	if (as)
		return;
	VEC_PUSH(&p->sections, ((struct section){ xstrdup(path), keys }));
	for (k = keys; k->name; k++)
		if (shown(k) && k->type != KEY_MAP)
			add_key(p, k, base, own);
	for (k = keys; k->name; k++) {
		if (k->type == KEY_MAP && !k->alias) {
			char *name = join(path, k->name);

			add_map(p, k, key_table(p->c, k), base + k->offset, name, own);
			free(name);
		}
	}
}

static void add_member(struct str *out, const char *name, const char *summary, const char *const *keys,
		       size_t most)
{
	size_t i;

	str_addf(out, "**%s**\n\n: ", name);
	add_sentence(out, summary ? summary : "");
	for (i = 0; keys && i < most && keys[i]; i++)
		str_addf(out, "%s%s", i ? ", " : " Keys: ", keys[i]);
	str_addf(out, "%s\n\n", i ? "." : "");
}

static void add_members(struct str *out)
{
	const struct metric_type *metric;
	const char *name, *summary;
	const char *const *keys;
	size_t i;

	str_addf(out, "# DATASETS\n\nEach takes root (or data_path) unless it makes its samples up.\n\n");
	for (i = 0; (name = dataset_kind_name(i, &summary, &keys)); i++)
		add_member(out, name, summary, keys, SIZE_MAX);
	str_addf(out, "# TRANSFORMS\n\n");
	for (i = 0; (name = transform_kind_name(i, &summary, &keys)); i++)
		add_member(out, name, summary, keys, TRANSFORM_KEYS_MAX);
	str_addf(out, "# METRICS\n\n");
	for (i = 0; (metric = metric_type_at(i)); i++)
		add_member(out, metric->name, metric->summary, NULL, 0);
}

char *config_keys_text(void)
{
	struct plain_locale locale = plain_locale_begin();
	struct config *c = config_new();
	struct page p = { .c = c, .out = STR_INIT, .idle = STR_INIT, .refused = STR_INIT };
	size_t i;

	collect(&p, config_keys, 0, "", false);
	add_map(&p, NULL, config_keys, 0, "", CONFIG_COMMANDS);
	str_addf(&p.out, "## Without effect\n\nThese are read, and a note says that they do nothing.\n\n%s",
		 p.idle.s);
	str_addf(&p.out, "## Refused\n\n%s", p.refused.s);
	add_members(&p.out);
	for (i = 0; i < p.others.n; i++)
		free(p.others.v[i].path);
	for (i = 0; i < p.sections.n; i++)
		free(p.sections.v[i].path);
	VEC_RELEASE(&p.others);
	VEC_RELEASE(&p.sections);
	str_release(&p.idle);
	str_release(&p.refused);
	config_free(c);
	plain_locale_end(&locale);
	return p.out.s;
}
