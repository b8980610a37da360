#include "tune/runs.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "space/plan_json.h"
#include "tune/job.h"
#include "tune/learn.h"
#include "tune/ledger.h"
#include "tune/pareto.h"
#include "tune/stop_words.h"
#include "tune/values.h"

void run_copy_free(struct run_copy *c)
{
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

/* How each trial differs from the one that is most like it, of those shortly before and the first. */
static void describe_changes(struct run_copy *c)
{
	enum { LOOK_BACK = 20 };
	struct plan_words **plans = xcalloc(c->trials.n, sizeof(struct plan_words *));
	size_t i, k;

	for (i = 0; i < c->trials.n; i++) {
		struct str text = STR_INIT;
		size_t least = SIZE_MAX, nearest = 0, n;

		plans[i] = plan_words_new(c->trials.v[i].plan);
		c->trials.v[i].changed = "";
		for (k = i; k-- > 0;) {
			n = k && i - k > LOOK_BACK ? SIZE_MAX : plan_distance(plans[k], plans[i]);
			if (n < least) {
				least = n;
				nearest = k;
			}
		}
		if (!i)
			continue;
		n = plan_changes(plans[nearest], plans[i], &text);
		c->trials.v[i].changed =
			arena_strfmt(&c->arena, "as trial %zu%s%s", c->trials.v[nearest].number,
				     n ? ", but " : "", text.s ? text.s : "");
		str_release(&text);
	}
	for (i = 0; i < c->trials.n; i++)
		plan_words_free(plans[i]);
	free(plans);
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

static enum fettle_status mark_front(struct run_copy *c, struct history *h, struct err *err)
{
	struct pareto_point *v = NULL;
	size_t n = 0, i;
	enum fettle_status st = pareto_points(h, &v, &n, err);

	for (i = 0; i < n && i < c->trials.n && !st; i++) {
		c->trials.v[i].pareto = v[i].on_front;
		c->trials.v[i].footprint_bytes = isnan(v[i].footprint) ? 0 : (size_t)v[i].footprint;
	}
	free(v);
	return st;
}

static enum fettle_status copy_run(struct run_copy *c, struct history *h, struct err *err)
{
	const struct run_info *info = history_run(h);
	struct history_trial t = { .number = 0 };
	struct history_baseline b = { 0 };
	struct history_result r = { .met = false };
	const char *on = strstr(info->cpu, " on ");
	bool has_baseline = false, ended = false;
	struct race_ratio speedup;
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
	if (!speedup_read(h, &speedup))
		speedup = (struct race_ratio){ NAN, NAN, NAN };
	c->pub.speedup = speedup.value;
	c->pub.speedup_low = speedup.low;
	c->pub.speedup_high = speedup.high;
	c->pub.baseline_latency_ms = has_baseline ? 1e3 * b.latency : NAN;
	if (ended) {
		c->pub.stop = stop_of_word(r.stop);
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
		if (!ran_on_read(h, t.number, &at->rank, &at->worker))
			at->rank = at->worker = -1;
		last = t.number;
	}
	history_trial_release(&t);
	history_result_release(&r);
	if (!st)
		st = mark_front(c, h, err);
	if (!ended) {
		const struct fettle_trial *best = best_so_far(c->trials.v, c->trials.n);

		c->pub.best = best ? best->number : 0;
		c->pub.met = best && best->met;
	}
	return st;
}

enum fettle_status run_read(const char *workspace, struct run_copy **out, struct err *err)
{
	struct run_copy *c = xcalloc(1, sizeof(*c));
	struct history *h = NULL;
	enum fettle_status st;
	size_t i;

	c->pub.workspace = arena_strdup(&c->arena, workspace);
	c->pub.running = history_is_written(
		workspace); /* asked first: a run that ends now has ended when it is read */
	st = history_open(&h, workspace, true, err);
	if (!st)
		st = copy_run(c, h, err);
	if (!st)
		describe_changes(c);
	history_close(h);
	c->pub.size = sizeof(c->pub);
	c->pub.trials = sized_list(&c->arena, c->trials.v, c->trials.n, sizeof(*c->trials.v));
	c->pub.n_trials = c->trials.n;
	for (i = 0; i < c->trials.n; i++)
		if (c->trials.v[i].number == c->pub.best)
			c->pub.best_trial = &c->trials.v[i];
	if (st)
		run_copy_free(c);
	else
		*out = c;
	return st;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum fettle_status runs_list(const char *folder, char ***out, size_t *n, struct err *err)
{
	const char *root = folder ? folder : DEFAULT_WORKSPACES;
	VEC(char *) found = { 0 };
	struct dirent *e;
	DIR *d = opendir(root);

	if (!d && errno != ENOENT)
		return fail(err, FETTLE_SYSTEM, "cannot list %s: %s", root, strerror(errno));
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

static enum fettle_status best_trial(struct history *h, const char *workspace, size_t *out, struct err *err)
{
	struct run_copy *c = xcalloc(1, sizeof(*c));
	enum fettle_status st = copy_run(c, h, err);

	*out = c->pub.best;
	run_copy_free(c);
	if (!st && !*out)
		st = fail(err, FETTLE_INVALID, "cannot recover the best trial of %s: it has none", workspace);
	return st;
}

/* Plans are about the ops of the graph as it was then. Runs of before there were rewritings say nothing. */
static enum fettle_status was_rewritten(struct history *h, bool *yes, struct err *err)
{
	char *text = NULL;
	enum fettle_status st = history_meta(h, REWRITTEN_META, &text, err);

	*yes = text && strcmp(text, "yes") == 0;
	free(text);
	return st;
}

enum fettle_status run_recover(struct context *cx, const char *workspace, size_t trial, const char *model,
			       const char *output)
{
	struct learn_source source = { .workspace = workspace };
	struct learner *learner = NULL;
	struct knowledge known;
	struct history *h = NULL;
	struct history_trial t = { .number = 0 };
	struct subject *s = NULL;
	struct qplan plan = QPLAN_INIT;
	struct model *q = NULL;
	int64_t samples = 0;
	bool rewritten = false;
	enum fettle_status st;

	st = history_open(&h, workspace, true, &cx->err);
	if (!st && !trial)
		st = best_trial(h, workspace, &trial, &cx->err);
	if (!st)
		st = history_trial_at(h, trial, &t, &cx->err);
	if (!st)
		st = was_rewritten(h, &rewritten, &cx->err);
	if (!st)
		st = context_subject(cx, model ? model : history_run(h)->model_path, rewritten, &s);
	if (!st)
		st = qplan_from_json(&plan, &samples, t.plan, "of the history", &s->ops, &s->g, &cx->err);
	if (st)
		goto out;
	source.s = s;
	source.history = h;
	learner = learner_new(&source);
	st = learn(learner, samples, &plan, &known, &cx->err);
	if (!st)
		st = quantize(s->z, &known, &plan, &q, &cx->err);
	if (!st)
		st = model_save(q, output, &cx->err);
out:
	model_free(q);
	learner_free(learner);
	qplan_release(&plan);
	subject_free(s);
	history_trial_release(&t);
	history_close(h);
	return st;
}
