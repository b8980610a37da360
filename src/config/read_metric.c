/* Metrics: one, several, with a parameter, with weights. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/print.h"
#include "config/read.h"

/* The metrics that INC has for the tasks of GLUE, and for others that it names by a task. */
static const struct {
	const char *name, *task, *metric;
} tasks[] = {
	{ "GLUE", "mrpc", "top1" }, /* the first is the default */
	{ "GLUE", "cola", "mcc" },     { "GLUE", "sts-b", "0.5*pearson,0.5*spearman" },
	{ "GLUE", "qqp", "top1" },     { "GLUE", "mnli", "top1" },
	{ "GLUE", "qnli", "top1" },    { "GLUE", "rte", "top1" },
	{ "GLUE", "wnli", "top1" },    { "GLUE", "sst-2", "top1" },
	{ "ROC", "dlrm", "auc" },      { "ROC", "dien", "auc" },
	{ "ROC", "wide_deep", "auc" },
};

/* The metric that a name and a task (NULL: none given) stand for; NULL: it has none. */
static const char *metric_of_task(const char *name, const char *task)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(tasks); i++)
		if (!strcasecmp(tasks[i].name, name) && (!task || !strcasecmp(tasks[i].task, task)))
			return tasks[i].metric;
	return NULL;
}

static enum fettle_status fail_task(struct reader *r, const char *name, const struct yaml *task)
{
	struct str list = STR_INIT;
	enum fettle_status st;
	size_t i;

	for (i = 0; i < ARRAY_LEN(tasks); i++)
		if (!strcasecmp(tasks[i].name, name))
			str_addf(&list, "%s%s", list.n ? ", " : "", tasks[i].task);
	st = list.n ? fail_value(r, task, "%s, need one of %s", describe(r, task), list.s)
		    : fail_value(r, task, "%s has no tasks", name);
	str_release(&list);
	return st;
}

/* What `MSE: {compare_label: false}` and so on make of a metric's name. */
static enum fettle_status metric_option(struct reader *r, const char *name, const struct yaml *key,
					const struct yaml *y, const char **text)
{
	struct config_origin at = origin_of(r, key);
	const char *option = key->text, *value = NULL;
	enum fettle_status st = read_text(r, y, &value);

	if (st)
		return st;
	if (!strcmp(option, "k") || !strcmp(option, "average")) {
		*text = arena_strfmt(&r->c->state->arena, "%s:%s", name, value);
	} else if (!strcmp(option, "task")) {
		*text = metric_of_task(name, value);
		if (!*text)
			return fail_task(r, name, y);
	} else if (!strcmp(option, "compare_label")) {
		if (strcasecmp(value, "true") != 0 && strcasecmp(value, "false") != 0)
			return fail_value(r, y, "%s, need true or false", describe(r, y));
		*text = arena_strfmt(&r->c->state->arena, "%s:%s", name,
				     strcasecmp(value, "true") == 0 ? "labels" : "reference");
	} else if (!strcmp(option, "num_classes")) {
		add_note(r->c, &at, false,
			 "%s: num_classes has no effect: the model's output has the classes", r->path);
	} else {
		return fail_value(
			r, key, "unknown option '%.80s', need k, average, task, compare_label or num_classes",
			option);
	}
	return FETTLE_OK;
}

/* ---- options of a metric that has several: "NAME:OPTION=VALUE/OPTION=VALUE" ---- */

static bool takes_option(const struct metric_type *type, const char *name)
{
	size_t i;

	for (i = 0; type->options && type->options[i]; i++)
		if (strcmp(type->options[i], name) == 0)
			return true;
	return false;
}

static enum fettle_status fail_option(struct reader *r, const struct metric_type *type,
				      const struct yaml *key)
{
	struct str list = STR_INIT;
	enum fettle_status st;
	size_t i;

	for (i = 0; type->options[i]; i++)
		str_addf(&list, "%s%s", i ? ", " : "", type->options[i]);
	st = fail_value(r, key, "unknown option '%.80s', need anno_path, output_index_mapping or one of %s",
			key->text, list.s);
	str_release(&list);
	return st;
}

/* INC's anno_path has the numbers of the classes: what reads the labels needs it. */
static enum fettle_status read_label_map(struct reader *r, const struct yaml *y)
{
	const char **field = &r->c->evaluation.dataloader.label_map;
	enum fettle_status st = yaml_is_null(y) ? FETTLE_OK : read_path(r, y, field);

	return st || yaml_is_null(y) ? st : mark(r, field, y);
}

static enum fettle_status add_options(struct reader *r, const struct metric_type *type, const struct yaml *y,
				      struct str *out)
{
	enum fettle_status st = FETTLE_OK;
	const char *value;
	size_t i;

	for (i = 0; i < y->n && !st; i++) {
		const char *key = y->key[i]->text;

		if (strcmp(key, "output_index_mapping") == 0 && y->v[i]->type == YAML_MAP) {
			st = add_options(r, type, y->v[i], out);
		} else if (strcmp(key, "anno_path") == 0) {
			st = read_label_map(r, y->v[i]);
		} else if (!takes_option(type, key)) {
			st = fail_option(r, type, y->key[i]);
		} else if (!(st = read_text(r, y->v[i], &value))) {
			if (str_starts(value, "DetectionBoxes_") && strchr(value, '/'))
				value = strchr(value, '/') + 1;
			str_addf(out, "%s%s=%s", out->n ? "/" : "", key, value);
		}
	}
	return st;
}

static enum fettle_status metric_options(struct reader *r, const struct yaml *name, const struct yaml *y,
					 const struct metric_type *type, const char **text)
{
	struct str out = STR_INIT;
	enum fettle_status st = add_options(r, type, y, &out);

	/* what INC's metric of this name looks at, where it is not told */
	if (!st && !strcasecmp(name->text, "COCOmAPv2") && !(out.s && strstr(out.s, "boxes=")))
		str_addf(&out, "%sboxes=0/scores=1/classes=2", out.n ? "/" : "");
	if (!st && out.n)
		*text = arena_strfmt(&r->c->state->arena, "%s:%s", type->name, out.s);
	str_release(&out);
	return st;
}

static const char *registered_metric(const struct config_strings *names, const char *text)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		if (strcasecmp(names->v[i], text) == 0)
			return names->v[i];
	return NULL;
}

/* `topk: 1`, `topk: {k: 1}`, `F1: {average: micro}`, `MSE:`, `GLUE: {task: cola}`, as metric_new() takes it */
static enum fettle_status metric_text(struct reader *r, const struct yaml *name, const struct yaml *y,
				      const char **text)
{
	const char *task = metric_of_task(name->text, NULL), *param;
	const struct metric_type *type;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	*text = task ? task : name->text;
	if (!y || yaml_is_null(y))
		return FETTLE_OK;
	if (y->type != YAML_MAP) {
		st = read_text(r, y, &param);
		if (!st)
			*text = arena_strfmt(&r->c->state->arena, "%s:%s", name->text, param);
		return st;
	}
	if (!task && !registered_metric(&r->c->state->from.metrics, name->text)) {
		struct metric *m = NULL;

		st = metric_new(&m, name->text, r->err); /* its options mean nothing where it is unknown */
		if (st)
			return fail_here(r, name, st);
		type = metric_type(m);
		metric_free(m);
		if (type->options)
			return metric_options(r, name, y, type, text);
	}
	if (y->n > 1)
		return fail_value(r, y->key[1], "%zu options, need one", y->n);
	for (i = 0; i < y->n && !st; i++)
		st = metric_option(r, name->text, y->key[i], y->v[i], text);
	return st;
}

/* One metric; *out is its name as it is to be kept. */
static enum fettle_status read_one_metric(struct reader *r, const struct yaml *name,
					  const struct yaml *options, const char **out)
{
	struct arena *arena = &r->c->state->arena;
	const char *text;
	struct metric *m = NULL;
	enum fettle_status st = metric_text(r, name, options, &text);

	if (st)
		return st;
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
			struct config_origin at = origin_of(r, d.v[n]);

			if (metric_higher_is_better(m) != higher)
				add_note(r->c, &at, false,
					 "%s.higher_is_better has no effect for %s, where %s is better",
					 r->path, name, higher ? "lower" : "higher");
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
	st = as_map(r, &y);
	if (st)
		return st;
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
