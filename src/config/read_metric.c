/* Metrics: one, several, with a parameter, with weights. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/print.h"
#include "config/read.h"

/* `topk: 1`, `topk: {k: 1}`, `F1: {average: micro}`, `MSE:`; *param is NULL where none is given */
static enum fettle_status metric_param(struct reader *r, const struct yaml *y, const char **param)
{
	*param = NULL;
	if (yaml_is_null(y) || (y->type == YAML_MAP && !y->n))
		return FETTLE_OK;
	if (y->type == YAML_MAP && y->n == 1 &&
	    (!strcmp(y->key[0]->text, "k") || !strcmp(y->key[0]->text, "average")))
		return read_text(r, y->v[0], param);
	if (y->type == YAML_MAP)
		return fail_value(r, y->key[0], "unknown option '%.80s', need k or average", y->key[0]->text);
	return read_text(r, y, param);
}

static const char *registered_metric(const struct config_strings *names, const char *text)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		if (strcasecmp(names->v[i], text) == 0)
			return names->v[i];
	return NULL;
}

/* One metric; *out is its name as it is to be kept. */
static enum fettle_status read_one_metric(struct reader *r, const struct yaml *name,
					  const struct yaml *options, const char **out)
{
	struct arena *arena = &r->c->state->arena;
	const char *text = name->text, *param = NULL;
	struct metric *m = NULL;
	enum fettle_status st = options ? metric_param(r, options, &param) : FETTLE_OK;

	if (st)
		return st;
	if (param)
		text = arena_strfmt(arena, "%s:%s", text, param);
	*out = registered_metric(&r->c->state->from.metrics, text);
	if (*out)
		return FETTLE_OK;
	st = metric_new(&m, text, r->err);
	if (st)
		return fail_here(r, name, st);
	*out = arena_strdup(arena, metric_name(m));
	metric_free(m);
	return FETTLE_OK;
}

/* "top1,f1", also with weights: each name as it is to be kept; what the names come to is checked when it is opened. */
static enum fettle_status read_metric_names(struct reader *r, const struct yaml *y, struct str *out)
{
	struct arena *arena = &r->c->state->arena;
	char *text = arena_strdup(arena, y->text), *part, *star;
	enum fettle_status st = FETTLE_OK;
	struct yaml one = *y;
	const char *name;

	while (!st && (part = strsep(&text, ","))) {
		part += strspn(part, " ");
		star = strchr(part, '*');
		one.text = star ? star + 1 : part;
		st = read_one_metric(r, &one, NULL, &name);
		if (!st)
			str_addf(out, "%s%.*s%s", out->n ? "," : "", (int)(star ? star + 1 - part : 0), part,
				 name);
	}
	return st;
}

static const struct yaml *find_list(const struct yaml *y, const char *key, const struct yaml **list)
{
	size_t i;

	*list = NULL;
	for (i = 0; i < y->n; i++)
		if (strcmp(y->key[i]->text, key) == 0)
			*list = y->v[i];
	return *list;
}

/* INC's multi_metrics: metrics by name, and lists in their order: `weight`, `higher_is_better`. */
static enum fettle_status read_metric_map(struct reader *r, const struct yaml *y, struct str *out)
{
	const struct yaml *weights, *directions;
	struct items w = { NULL, 0 }, d = { NULL, 0 };
	enum fettle_status st = FETTLE_OK;
	size_t i, n = 0, metrics = y->n;
	const char *name, *text;
	struct metric *m = NULL;
	bool higher;

	if (find_list(y, "weight", &weights)) {
		metrics--;
		st = read_items(r, weights, &w);
	}
	if (find_list(y, "higher_is_better", &directions)) {
		metrics--;
		st = st ? st : read_items(r, directions, &d);
	}
	if (!st && weights && w.n != metrics)
		return fail_value(r, weights, "%zu weights, need one for each of the %zu metrics", w.n,
				  metrics);
	if (!st && directions && d.n != metrics)
		return fail_value(r, directions, "%zu values, need one for each of the %zu metrics", d.n,
				  metrics);
	for (i = 0; i < y->n && !st; i++) {
		if (y->v[i] == weights || y->v[i] == directions)
			continue;
		st = read_one_metric(r, y->key[i], y->v[i], &name);
		if (!st && weights && metrics > 1)
			st = read_text(r, w.v[n], &text);
		if (!st && directions)
			higher = !strcasecmp(d.v[n]->text, "true");
		if (!st && directions && !metric_new(&m, name, NULL)) {
			if (metric_higher_is_better(m) != higher)
				st = fail_value(r, d.v[n], "%s for %s, where %s is better",
						higher ? "true" : "false", name, higher ? "lower" : "higher");
			metric_free(m);
		}
		if (!st && weights && metrics > 1)
			str_addf(out, "%s%s*%s", n ? "," : "", text, name);
		else if (!st)
			str_addf(out, "%s%s", n ? "," : "", name);
		n++;
	}
	return st;
}

static enum fettle_status read_metric(struct reader *r, const struct key *k, const struct yaml *y,
				      void *field)
{
	struct str text = STR_INIT;
	enum fettle_status st = FETTLE_OK;
	struct metric *m = NULL;
	size_t i;

	(void)k;
	if (yaml_is_null(y)) {
		*(const char **)field = NULL;
		return FETTLE_OK;
	}
	if (y->type == YAML_MAP && y->n == 1 && !strncasecmp(y->key[0]->text, "multi_metrics", 13))
		y = y->v[0];
	if (y->type == YAML_MAP)
		st = read_metric_map(r, y, &text);
	else if (y->type == YAML_LIST)
		for (i = 0; i < y->n && !st; i++)
			st = read_metric_names(r, y->v[i], &text);
	else
		st = read_metric_names(r, y, &text);
	if (!st && !text.n)
		st = fail_value(r, y, "no metric, need one");
	if (!st && strchr(text.s, ',') && !r->c->state->from.metrics.n) {
		st = metric_new(&m, text.s, r->err);
		st = st ? fail_here(r, y, st) : FETTLE_OK;
		metric_free(m);
	}
	if (!st)
		*(const char **)field = arena_strdup(&r->c->state->arena, text.s);
	str_release(&text);
	return st;
}

static void print_metric(struct printer *p, const struct key *k, const void *field)
{
	const char *name = *(const char *const *)field;
	struct str text = STR_INIT;

	if (k->quiet && !name)
		return;
	yaml_print_text(name ? name : "", &text);
	print_line(p, k->name, name ? text.s : "null", config_origin(p->c, field));
	str_release(&text);
}

const struct custom custom_metric = { read_metric, print_metric };
