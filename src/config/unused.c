/* Settings that do nothing: by the command, by the strategy, or because another setting rules them out. */
#include <stdlib.h>
#include <string.h>

#include "config/read.h"
#include "config/recipe_keys.h"

struct leaf {
	const struct key *k;
	char *path;
	const void *field;
	unsigned used;
};
struct leaves {
	VEC(struct leaf) v;
};

/* every key that holds a value, under its printed name */
static void collect(struct leaves *out, const struct config *c, const struct key *keys, const char *base,
		    const char *path, unsigned used)
{
	const struct key *k;

	for (k = keys; k->name; k++) {
		unsigned narrowed = k->used ? used & k->used : used;
		char *name;

		if (k->alias || k->type == KEY_UNUSED || k->type == KEY_REFUSED)
			continue;
		name = *path ? xstrfmt("%s.%s", path, k->name) : xstrdup(k->name);
		if (k->type == KEY_MAP) {
			collect(out, c, key_table(c, k), base + k->offset, name, narrowed);
			free(name);
		} else {
			VEC_PUSH(&out->v, ((struct leaf){ k, name, base + k->offset, narrowed }));
		}
	}
}

static void release(struct leaves *l)
{
	size_t i;

	for (i = 0; i < l->v.n; i++)
		free(l->v.v[i].path);
	VEC_RELEASE(&l->v);
}

void config_each(const struct config *c,
		 void (*visit)(void *self, const char *path, const struct key *k, unsigned used), void *self)
{
	struct leaves l = { .v = { NULL, 0, 0 } };
	size_t i;

	collect(&l, c, config_keys, (const char *)c, "", CONFIG_COMMANDS);
	for (i = 0; i < l.v.n; i++)
		visit(self, l.v.v[i].path, l.v.v[i].k, l.v.v[i].used);
	release(&l);
}

/* NULL: the user has not set it */
static const struct config_origin *given(const struct config *c, const struct leaf *l)
{
	const struct config_allowed *allowed = l->field;
	const struct config_origin *at;

	if (l->k->type == KEY_ALLOWED) /* which keeps its own */
		return allowed->at.source ? &allowed->at : NULL;
	at = config_origin(c, l->field);
	return at && !at->implied ? at : NULL;
}

/* ---- what another setting rules out ---- */

static bool is_dynamic(const struct config *c, enum config_command command)
{
	(void)command;
	return c->quantization.approach == APPROACH_DYNAMIC;
}

static bool no_study(const struct config *c, enum config_command command)
{
	(void)command;
	return !c->search.advanced_fastft;
}

static bool looks_at_all(const struct config *c, enum config_command command)
{
	(void)command;
	return c->search.two_stage || c->search.advanced_fastft || c->search.find_best_candidate;
}

static bool search_measures(const struct config *c, enum config_command command)
{
	return command == CONFIG_SEARCH && c->search.metric;
}

static bool search_tolerates(const struct config *c, enum config_command command)
{
	return command == CONFIG_SEARCH && config_is_set(c, &c->search.tolerance);
}

static bool only_performance(const struct config *c, enum config_command command)
{
	(void)command;
	return c->tuning.performance_only;
}

#define FIELD(member) offsetof(struct config, member)
#define LAST(member) (FIELD(member) + sizeof(((struct config *)0)->member))
static const struct {
	size_t first, end; /* offsets of the settings */
	bool (*idle)(const struct config *c, enum config_command command);
	const char *why;
} rules[] = {
#define RULE(member, idle, why)                                                                              \
	{                                                                                                    \
		FIELD(member), LAST(member), idle, why                                                       \
	}
	RULE(calibration, is_dynamic, "nothing is calibrated, the approach is dynamic"),
	RULE(tuning.criterion, only_performance, "performance_only accepts any accuracy"),
	RULE(tuning.tolerable_loss, only_performance, "performance_only accepts any accuracy"),
	RULE(tuning.tolerable_loss, search_tolerates, "search_tolerance overrides it"),
	RULE(evaluation.metric, search_measures, "search_evaluator overrides it"),
	RULE(search.sampler_algo, no_study, "advanced_fastft_search is off"),
	RULE(search.n_trials, no_study, "advanced_fastft_search is off"),
	RULE(search.find_n_candidates, looks_at_all,
	     "two_stage_search, advanced_fastft_search and find_best_candidate look at all candidates"),
};

static const char *ruled_out(const struct config *c, enum config_command command, const void *field)
{
	size_t offset = (size_t)((const char *)field - (const char *)c), i;

	for (i = 0; i < ARRAY_LEN(rules); i++)
		if (offset >= rules[i].first && offset < rules[i].end && rules[i].idle(c, command))
			return rules[i].why;
	return recipe_key_idle(c, command, field);
}

/* ---- notes ---- */

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);
	const char *p;

	for (p = words; *p; p += strcspn(p, " "), p += strspn(p, " "))
		if (strcspn(p, " ") == n && strncmp(p, word, n) == 0)
			return true;
	return false;
}

/* the search's settings are at the top of a file, as documented */
static const char *known_as(const char *path)
{
	return str_starts(path, "auto_search.") ? path + strlen("auto_search.") : path;
}

/* The shortest part of the path under which nothing that is set has an effect. */
static size_t idle_part(const struct config *c, const struct leaves *l, const char *path,
			enum config_command command)
{
	size_t n = strcspn(path, "."), i;

	for (; path[n]; n += 1 + strcspn(path + n + 1, ".")) {
		for (i = 0; i < l->v.n; i++) {
			const struct leaf *x = &l->v.v[i];
			const char *other = known_as(x->path);

			if (strncmp(other, path, n) == 0 && other[n] == '.' && x->used & command &&
			    given(c, x))
				break;
		}
		if (i == l->v.n)
			break;
	}
	return n;
}

/* "conf.yaml: no effect in eval: quantization (line 3), --seed" */
static void list_unused(const struct config *c, const struct leaves *l, enum config_command command,
			const char *name, struct str *out)
{
	const char *last = "";
	size_t i, n, last_n = 0;

	for (i = 0; i < l->v.n; i++) {
		const struct leaf *x = &l->v.v[i];
		const struct config_origin *at = given(c, x);
		const char *path = known_as(x->path);

		if (!at || x->used & command)
			continue;
		n = idle_part(c, l, path, command);
		if (n == last_n && strncmp(path, last, n) == 0)
			continue; /* a part that is listed */
		if (last_n)
			str_addf(out, ", ");
		else
			str_addf(out, "%s%sno effect in %s: ", at->line ? at->source : "",
				 at->line ? ": " : "", name);
		str_addf(out, "%.*s", (int)n, path);
		if (at->line)
			str_addf(out, " (line %d)", at->line);
		else
			str_addf(out, " (%s)", at->source);
		last = path;
		last_n = n;
	}
}
/* "hawq_v2": those that read it, without callers' own */
static char *owners(const char *strategies)
{
	struct str out = STR_INIT;
	const char *p;

	for (p = strategies; *p; p += strcspn(p, " "), p += strspn(p, " "))
		if (!str_starts(p, "custom"))
			str_addf(&out, "%s%.*s", out.n ? ", " : "", (int)strcspn(p, " "), p);
	return out.s;
}

/* NULL: it has an effect */
static char *reason(const struct config *c, const struct leaf *x, enum config_command command,
		    const char *strategy)
{
	const char *why;
	char *whose, *text;

	if (x->k->strategies && !has_word(x->k->strategies, strategy)) {
		whose = owners(x->k->strategies);
		text = xstrfmt("the strategy is %s, and it belongs to %s", strategy, whose);
		free(whose);
		return text;
	}
	why = ruled_out(c, command, x->field);
	return why ? xstrdup(why) : NULL;
}

void config_unused(const struct config *c, enum config_command command, const char *strategy,
		   void (*note)(void *self, const char *text), void *self)
{
	static const char *const names[] = { "tune",  "search",  "quantize",   "eval",
					     "bench", "inspect", "sensitivity" };
	struct leaves l = { .v = { NULL, 0, 0 } };
	struct str list = STR_INIT;
	size_t i, bit = 0;

	while (!(command & 1u << bit))
		bit++;
	collect(&l, c, config_keys, (const char *)c, "", CONFIG_COMMANDS);
	for (i = 0; i < l.v.n; i++) {
		const struct leaf *x = &l.v.v[i];
		const struct config_origin *at = given(c, x);
		char *why = at && x->used & command ? reason(c, x, command, strategy) : NULL;
		struct err text = ERR_INIT;

		if (!why)
			continue;
		config_fail(at, FETTLE_OK, &text, "%s has no effect: %s", x->path, why);
		note(self, text.msg);
		free(why);
	}
	list_unused(c, &l, command, names[bit], &list);
	if (list.n)
		note(self, list.s);
	str_release(&list);
	release(&l);
}
