/* Every command by its name, for other languages: options as a JSON object in, what the command prints with --json out. */
#include "report/json.h"

#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/str.h"

/* ---- results by themselves ---- */

char *fettle_tuned_json(const struct fettle *f, const struct fettle_tuned *t)
{
	return report_text(json_of_tuned(&f->cx, t));
}

char *fettle_quantized_json(const struct fettle *f, const struct fettle_quantized *q)
{
	struct fettle_quantized full = FETTLE_QUANTIZED_INIT;

	sized_take(&full, q, sizeof(full));
	return report_text(json_of_quantized(&f->cx, &full));
}

char *fettle_score_json(const struct fettle *f, const struct fettle_score *s)
{
	struct fettle_score full = FETTLE_SCORE_INIT;

	sized_take(&full, s, sizeof(full));
	return report_text(json_of_score(&f->cx, &full));
}

char *fettle_preview_json(const struct fettle *f, const struct fettle_preview *p)
{
	struct fettle_preview full = FETTLE_PREVIEW_INIT;

	sized_take(&full, p, sizeof(full));
	return report_text(json_of_preview(&f->cx, &full));
}

char *fettle_timings_json(const struct fettle_bench_options *o, const struct fettle_timing *t)
{
	struct fettle_timing *full = xcalloc(o->n_models, sizeof(*full));
	json_t *j;
	size_t i;

	for (i = 0; i < o->n_models; i++)
		sized_take(&full[i], (const char *)t + i * t->size, sizeof(*full));
	j = json_of_timings(o->models, o->n_models, full);
	free(full);
	return report_text(j);
}

char *fettle_inspection_json(const struct fettle *f, const struct fettle_inspection *x)
{
	return report_text(json_of_inspection(&f->cx, x));
}

char *fettle_sensitivity_json(const struct fettle *f, const struct fettle_sensitivity *s)
{
	return report_text(json_of_sensitivity(&f->cx, s));
}

char *fettle_diff_json(const struct fettle *f, const struct fettle_diff *d)
{
	return report_text(json_of_diff(&f->cx, d));
}

char *fettle_run_json(const struct fettle_run *r, bool pareto)
{
	return report_text(json_of_run(r, pareto));
}

char *fettle_runs_json(const struct fettle_run *const *v, size_t n)
{
	return report_text(json_of_runs(v, n));
}

/* ---- the commands ---- */

struct history_options {
	size_t size;
	const char *workspace;
	bool pareto;
};
static const struct option_field history_fields[] = {
	{ .name = "workspace", .kind = FIELD_TEXT, .at = offsetof(struct history_options, workspace) },
	{ .name = "pareto", .kind = FIELD_YES, .at = offsetof(struct history_options, pareto) },
};
static const struct options_type options_history = {
	.name = "history",
	.init = &(const struct history_options){ .size = sizeof(struct history_options) },
	.size = sizeof(struct history_options),
	.fields = history_fields,
	.n = ARRAY_LEN(history_fields),
};

static enum fettle_status give_tuned(struct fettle *f, enum fettle_status st, struct fettle_tuned *t,
				     json_t **out)
{
	if (!st)
		*out = t ? json_of_tuned(&f->cx, t) : json_null(); /* rank 0 has the result */
	fettle_tuned_free(t);
	return st;
}

static enum fettle_status call_tune(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_tuned *t = NULL;
	enum fettle_status st = fettle_tune(f, o, &t);

	return give_tuned(f, st, t, out);
}

static enum fettle_status call_search(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_tuned *t = NULL;
	enum fettle_status st = fettle_auto_search(f, o, &t);

	return give_tuned(f, st, t, out);
}

static enum fettle_status call_resume(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_tuned *t = NULL;
	enum fettle_status st = fettle_resume(f, o, &t);

	return give_tuned(f, st, t, out);
}

static enum fettle_status call_quantize(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	enum fettle_status st = fettle_quantize(f, o, &q);

	if (!st)
		*out = json_of_quantized(&f->cx, &q);
	return st;
}

static enum fettle_status call_eval(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_score s = FETTLE_SCORE_INIT;
	enum fettle_status st = fettle_eval(f, o, &s);

	if (!st)
		*out = json_of_score(&f->cx, &s);
	return st;
}

static enum fettle_status call_bench(struct fettle *f, const void *options, json_t **out)
{
	const struct fettle_bench_options *o = options;
	struct fettle_timing *t = xcalloc(o->n_models, sizeof(*t));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < o->n_models; i++)
		t[i].size = sizeof(*t);
	st = fettle_bench(f, o, t);
	if (!st)
		*out = json_of_timings(o->models, o->n_models, t);
	free(t);
	return st;
}

static enum fettle_status call_inspect(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_inspection *x = NULL;
	enum fettle_status st = fettle_inspect(f, o, &x);

	if (!st)
		*out = json_of_inspection(&f->cx, x);
	fettle_inspection_free(x);
	return st;
}

static enum fettle_status call_sensitivity(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_sensitivity *s = NULL;
	enum fettle_status st = fettle_sensitivity(f, o, &s);

	if (!st)
		*out = json_of_sensitivity(&f->cx, s);
	fettle_sensitivity_free(s);
	return st;
}

static enum fettle_status call_recover(struct fettle *f, const void *options, json_t **out)
{
	const struct fettle_recover_options *o = options;
	enum fettle_status st = fettle_recover(f, o);

	if (!st)
		*out = json_pack("{s:s?, s:s, s:o}", "output", o->output, "workspace", o->workspace, "trial",
				 o->trial ? json_integer((json_int_t)o->trial) : json_null());
	return st;
}

static enum fettle_status call_report(struct fettle *f, const void *options, json_t **out)
{
	const struct fettle_report_options *o = options;
	char *text = NULL;
	enum fettle_status st = fettle_report(f, o, o->output ? NULL : &text);

	if (!st)
		*out = json_pack("{s:s?, s:s*}", "output", o->output, "text", text);
	free(text);
	return st;
}

static enum fettle_status call_diff(struct fettle *f, const void *o, json_t **out)
{
	struct fettle_diff *d = NULL;
	enum fettle_status st = fettle_diff(f, o, &d);

	if (!st)
		*out = json_of_diff(&f->cx, d);
	fettle_diff_free(d);
	return st;
}

/* A run that cannot be read fails the call: its name is in the message. */
static enum fettle_status list_runs(struct fettle *f, json_t **out)
{
	struct fettle_run **runs;
	char **paths = NULL;
	size_t n = 0, i;
	enum fettle_status st = fettle_workspaces(f, NULL, &paths, &n);

	runs = xcalloc(n, sizeof(struct fettle_run *));
	for (i = 0; i < n && !st; i++)
		st = fettle_history(f, paths[i], &runs[i]);
	if (!st)
		*out = json_of_runs((const struct fettle_run *const *)runs, n);
	for (i = 0; i < n; i++) {
		fettle_run_free(runs[i]);
		free(paths[i]);
	}
	free(runs);
	free(paths);
	return st;
}

static enum fettle_status call_history(struct fettle *f, const void *options, json_t **out)
{
	const struct history_options *o = options;
	struct fettle_run *r = NULL;
	enum fettle_status st;

	if (!o->workspace)
		return list_runs(f, out);
	st = fettle_history(f, o->workspace, &r);
	if (!st)
		*out = json_of_run(r, o->pareto);
	fettle_run_free(r);
	return st;
}

static enum fettle_status call_recipes(struct fettle *f, const void *o, json_t **out)
{
	(void)f, (void)o;
	*out = json_of_recipes();
	return FETTLE_OK;
}

static enum fettle_status call_cpus(struct fettle *f, const void *o, json_t **out)
{
	(void)f, (void)o;
	*out = json_of_cpus();
	return FETTLE_OK;
}

static enum fettle_status call_strategies(struct fettle *f, const void *o, json_t **out)
{
	(void)f, (void)o;
	*out = json_of_strategies();
	return FETTLE_OK;
}

static const struct options_type no_options = {
	.name = "",
	.init = &(const struct { size_t size; }){ sizeof(size_t) },
	.size = sizeof(size_t),
};
static const struct json_call {
	const char *name;
	const struct options_type *options;
	enum fettle_status (*run)(struct fettle *f, const void *options, json_t **out);
} calls[] = {
	{ "tune", &options_tune, call_tune },
	{ "search", &options_search, call_search },
	{ "resume", &options_resume, call_resume },
	{ "quantize", &options_quantize, call_quantize },
	{ "eval", &options_eval, call_eval },
	{ "bench", &options_bench, call_bench },
	{ "inspect", &options_inspect, call_inspect },
	{ "sensitivity", &options_sensitivity, call_sensitivity },
	{ "history", &options_history, call_history },
	{ "recover", &options_recover, call_recover },
	{ "report", &options_report, call_report },
	{ "diff", &options_diff, call_diff },
	{ "strategies", &no_options, call_strategies },
	{ "recipes", &no_options, call_recipes },
	{ "cpus", &no_options, call_cpus },
};

static enum fettle_status find_call(const char *name, const struct json_call **out, struct err *err)
{
	const char *names[ARRAY_LEN(calls)], *near;
	size_t i;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		names[i] = calls[i].name;
		if (name && strcmp(calls[i].name, name) == 0) {
			*out = &calls[i];
			return FETTLE_OK;
		}
	}
	near = name ? str_nearest(name, names, ARRAY_LEN(calls)) : NULL;
	return fail(err, FETTLE_INVALID, "cannot call '%.80s': there is no such command%s%s%s",
		    name ? name : "", near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum fettle_status fettle_call_json(struct fettle *f, const char *command, const char *json_in,
				    char **json_out)
{
	struct arena a = ARENA_INIT;
	const struct json_call *call = NULL;
	json_t *out = NULL;
	void *options;
	enum fettle_status st;

	api_clear(f);
	*json_out = NULL;
	st = find_call(command, &call, &f->cx.err);
	if (!st)
		st = options_from_json(call->options, call->name, json_in, &a, &options, &f->cx.err);
	if (!st)
		st = call->run(f, options, &out);
	if (!st)
		*json_out = report_text(out);
	arena_release(&a);
	return st;
}
