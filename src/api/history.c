/* What runs have left behind: listing them, and making the model of any trial again. */
#include "api/pareto.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "history/history.h"
#include "quantize/variant.h"
#include "space/plan_json.h"
#include "tune/lab.h"
#include "tune/values.h"

struct run_copy {
	struct fettle_run pub;
	struct arena arena;
	VEC(struct fettle_trial) trials;
};

void fettle_run_free(struct fettle_run *r)
{
	struct run_copy *c = (struct run_copy *)r;

	if (!c)
		return;
	VEC_RELEASE(&c->trials);
	arena_release(&c->arena);
	free(c);
}

static void copy_trial(struct run_copy *c, const struct history_trial *t)
{
	struct arena *a = &c->arena;

	VEC_PUSH(&c->trials,
		 ((struct fettle_trial){
			 .number = t->number,
			 .stage = arena_strdup(a, t->stage),
			 .failed = t->failed,
			 .met = t->met,
			 .why = arena_strdup(a, t->why),
			 .accuracy = t->accuracy,
			 .loss = t->loss,
			 .early = !t->failed && (isnan(t->accuracy) || t->accuracy_low < t->accuracy_high),
			 .accuracy_low = t->accuracy_low,
			 .accuracy_high = t->accuracy_high,
			 .latency_ms = 1e3 * t->latency,
			 .size_bytes = t->size_bytes,
			 .samples = t->samples,
			 .seconds = t->seconds,
			 .plan = arena_strdup(a, t->plan),
		 }));
}

/* How a trial differs from the one that is most like it, of those shortly before and the first. */
static void describe_change(struct run_copy *c, size_t i)
{
	enum { LOOK_BACK = 20 };
	size_t k, least = SIZE_MAX;

	c->trials.v[i].changed = "";
	for (k = i; k-- > 0;) {
		struct str text = STR_INIT;
		size_t n;

		if (k && i - k > LOOK_BACK)
			continue;
		n = plan_changes(c->trials.v[k].plan, c->trials.v[i].plan, &text);
		if (n < least) {
			least = n;
			c->trials.v[i].changed =
				arena_strfmt(&c->arena, "as trial %zu%s%s", c->trials.v[k].number,
					     n ? ", but " : "", text.s ? text.s : "");
		}
		str_release(&text);
	}
}

/* The one to recover from a run that did not come to its end. */
static const struct fettle_trial *best_so_far(const struct fettle_trial *v, size_t n)
{
	const struct fettle_trial *best = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		if (v[i].failed || isnan(v[i].accuracy))
			continue;
		if (!best || v[i].met > best->met ||
		    (v[i].met == best->met &&
		     (v[i].met && v[i].latency_ms != best->latency_ms ? v[i].latency_ms < best->latency_ms
								      : v[i].loss < best->loss)))
			best = &v[i];
	}
	return best;
}

static enum fettle_status copy_run(struct run_copy *c, struct history *h, struct err *err)
{
	const struct run_info *info = history_run(h);
	struct history_trial t = { .number = 0 };
	struct history_baseline b = { 0 };
	struct history_result r = { .met = false };
	const char *on = strstr(info->cpu, " on ");
	bool has_baseline = false, ended = false;
	struct fettle_trial *at;
	size_t last = 0;
	enum fettle_status st;

	c->pub.model = arena_strdup(&c->arena, info->model_path);
	c->pub.strategy = arena_strdup(&c->arena, info->strategy);
	c->pub.metric = arena_strdup(&c->arena, info->metric);
	c->pub.started = arena_strdup(&c->arena, info->started);
	c->pub.cpu = on ? arena_strfmt(&c->arena, "%.*s", (int)(on - info->cpu), info->cpu)
			: arena_strdup(&c->arena, info->cpu);
	c->pub.measured_on = on ? arena_strdup(&c->arena, on + strlen(" on ")) : c->pub.cpu;
	st = history_baseline(h, &b, &has_baseline, err);
	if (!st)
		st = history_result(h, &r, &ended, err);
	c->pub.baseline_values.n = values_read(h, 0, c->pub.baseline_values.v);
	c->pub.baseline = has_baseline ? b.accuracy : NAN;
	c->pub.baseline_latency_ms = has_baseline ? 1e3 * b.latency : NAN;
	if (ended) {
		c->pub.stop = arena_strdup(&c->arena, r.stop);
		c->pub.met = r.met;
		c->pub.best = r.best_trial;
	}
	while (!st) {
		st = history_next(h, last, &t, err);
		if (st || !t.number)
			break;
		copy_trial(c, &t);
		at = &c->trials.v[c->trials.n - 1];
		at->values.n = values_read(h, t.number, at->values.v);
		last = t.number;
	}
	history_trial_release(&t);
	history_result_release(&r);
	if (!st)
		st = pareto_mark_run(h, c->trials.v, c->trials.n, err);
	c->pub.trials = c->trials.v;
	c->pub.n_trials = c->trials.n;
	if (!ended) {
		const struct fettle_trial *best = best_so_far(c->trials.v, c->trials.n);

		c->pub.best = best ? best->number : 0;
		c->pub.met = best && best->met;
	}
	return st;
}

enum fettle_status fettle_history(struct fettle *f, const char *workspace, struct fettle_run **out)
{
	struct run_copy *c = xcalloc(1, sizeof(*c));
	struct history *h = NULL;
	enum fettle_status st;
	size_t i;

	f->err.msg[0] = '\0';
	c->pub.workspace = arena_strdup(&c->arena, workspace);
	st = history_open(&h, workspace, true, &f->err);
	if (!st)
		st = copy_run(c, h, &f->err);
	for (i = 0; i < c->trials.n && !st; i++)
		describe_change(c, i);
	history_close(h);
	if (st)
		fettle_run_free(&c->pub);
	else
		*out = &c->pub;
	return st;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum fettle_status fettle_workspaces(struct fettle *f, const char *folder, char ***out, size_t *n)
{
	const char *root = folder ? folder : DEFAULT_WORKSPACES;
	VEC(char *) found = { 0 };
	struct dirent *e;
	DIR *d = opendir(root);

	f->err.msg[0] = '\0';
	if (!d && errno != ENOENT)
		return fail(&f->err, FETTLE_SYSTEM, "cannot list %s: %s", root, strerror(errno));
	while (d && (e = readdir(d))) {
		char *path = xstrfmt("%s/%s", root, e->d_name);

		if (e->d_name[0] != '.' && history_exists(path))
			VEC_PUSH(&found, path);
		else
			free(path);
	}
	if (d)
		closedir(d);
	if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), by_name);
	*out = found.v;
	*n = found.n;
	return FETTLE_OK;
}

/* ranges from the history instead of from data */
struct stored {
	struct history_ranges ranges;
	struct map index; /* "value\tsetting" */
	struct arena arena;
	struct history *h;
	size_t samples; /* that they are of */
	char *variant;  /* of the model: variant_key() */
	const struct variant *v;
	const char *workspace;
	struct rounding *rounding;
};

static enum fettle_status stored_get(void *self, const char *value, const struct qsetting *s,
				     struct range *out, struct err *err)
{
	struct stored *r = self;
	char *setting = range_key(s, r->variant), *key = xstrfmt("%s\t%s", value, setting);
	size_t i = map_get(&r->index, key);

	free(setting);
	free(key);
	if (i == MAP_NONE)
		return fail(err, FETTLE_INVALID, "cannot recover: the history has no range for value '%s'",
			    value);
	*out = (struct range){ (float)r->ranges.v[i].min, (float)r->ranges.v[i].max };
	return FETTLE_OK;
}

static enum fettle_status stored_means(void *self, const char *value, int axis, size_t channels, double *out,
				       struct err *err)
{
	struct stored *r = self;
	char *key = mean_key(value, axis, r->samples, r->variant), *text = NULL, *p;
	enum fettle_status st;
	size_t i;

	st = history_meta(r->h, key, &text, err);
	p = text;
	for (i = 0; i < channels && !st; i++) {
		char *end = p;

		out[i] = p ? strtod(p, &end) : 0;
		if (end == p)
			st = fail(err, FETTLE_INVALID,
				  "cannot recover: the history has no means for value '%s'", value);
		p = end;
	}
	free(text);
	free(key);
	return st;
}

static enum fettle_status stored_rounding(void *self, struct quantizer *z, const struct qplan *plan,
					  const struct rounding **out, struct err *err)
{
	struct stored *r = self;
	char *path = rounding_path(r->workspace, plan, &r->v->s->ops, r->samples);
	enum fettle_status st = FETTLE_OK;

	(void)z;
	if (!r->rounding)
		st = rounding_load(&r->rounding, path, r->v->s->ops.n, err);
	*out = r->rounding;
	free(path);
	return st;
}

/* The ranges of a plan that asks for `samples`; of all there were, when there were not so many. */
static enum fettle_status stored_open(struct stored *r, struct history *h, size_t samples, struct err *err)
{
	enum fettle_status st = history_ranges(h, 0, &r->ranges, err);
	size_t i;

	r->h = h;
	for (i = 0; i < r->ranges.n && !st; i++)
		if (r->ranges.v[i].samples <= samples && r->ranges.v[i].samples > r->samples)
			r->samples = r->ranges.v[i].samples;
	for (i = 0; i < r->ranges.n && !st; i++)
		if (r->ranges.v[i].samples == r->samples)
			map_set(&r->index,
				arena_strfmt(&r->arena, "%s\t%s", r->ranges.v[i].value,
					     r->ranges.v[i].setting),
				i);
	return st;
}

/* the model as the plan's recipes had rewritten it */
static enum fettle_status stored_variant(struct stored *r, struct subject *s, const struct qplan *plan,
					 struct variant **out, struct err *err)
{
	char *key, *text = NULL;
	enum fettle_status st;

	r->variant = variant_key(s, plan);
	if (!recipes_rewrite(&plan->recipes))
		return variant_new(out, NULL, s, plan, NULL, NULL, err);
	key = rewrite_key(r->variant, r->samples);
	st = history_meta(r->h, key, &text, err);
	if (!st && !text)
		st = fail(err, FETTLE_INVALID, "cannot recover: the history does not say what %s did",
			  r->variant);
	if (!st)
		st = variant_read(out, s, text, err);
	free(key);
	free(text);
	return st;
}

static void stored_release(struct stored *r)
{
	free(r->variant);
	rounding_free(r->rounding);
	map_release(&r->index);
	arena_release(&r->arena);
	history_ranges_release(&r->ranges);
}

static enum fettle_status best_trial(struct history *h, const char *workspace, size_t *out, struct err *err)
{
	struct run_copy *c = xcalloc(1, sizeof(*c));
	enum fettle_status st = copy_run(c, h, err);

	*out = c->pub.best;
	fettle_run_free(&c->pub);
	if (!st && !*out)
		st = fail(err, FETTLE_INVALID, "cannot recover the best trial of %s: it has none", workspace);
	return st;
}

enum fettle_status fettle_recover(struct fettle *f, const struct fettle_options *in, const char *workspace,
				  size_t trial)
{
	struct request r;
	struct stored stored = { .ranges = HISTORY_RANGES_INIT };
	struct range_source source = {
		.get = stored_get, .mean = stored_means, .rounding = stored_rounding, .self = &stored
	};
	struct history *h = NULL;
	struct history_trial t = { .number = 0 };
	struct subject *s = NULL;
	struct quantizer *z = NULL;
	struct variant *v = NULL;
	struct qplan plan = QPLAN_INIT;
	struct model *q = NULL;
	const char *model;
	int64_t samples = 0;
	enum fettle_status st;

	st = request_begin(&r, f, in, 0);
	if (!st && !r.o.output)
		st = fail(&f->err, FETTLE_INVALID, "cannot recover: need an output path");
	if (!st)
		st = history_open(&h, workspace, true, &f->err);
	if (!st && !trial)
		st = best_trial(h, workspace, &trial, &f->err);
	if (!st)
		st = history_trial_at(h, trial, &t, &f->err);
	if (st)
		goto out;
	model = r.o.model ? r.o.model : history_run(h)->model_path;
	st = api_subject(f, model, &s);
	if (!st)
		st = qplan_from_json(&plan, &samples, t.plan, "of the history", &s->ops, &f->err);
	if (!st)
		st = stored_open(&stored, h, (size_t)samples, &f->err);
	if (!st)
		st = stored_variant(&stored, s, &plan, &v, &f->err);
	if (st)
		goto out;
	stored.v = v;
	stored.workspace = workspace;
	z = variant_quantizer(v, &source);
	st = quantize(z, &plan, &q, &f->err);
	if (!st)
		st = model_save(q, r.o.output, &f->err);
out:
	model_free(q);
	quantizer_free(z);
	variant_free(v);
	qplan_release(&plan);
	subject_free(s);
	stored_release(&stored);
	history_trial_release(&t);
	history_close(h);
	request_release(&r);
	return st;
}
