/* What 'tune' and 'search' have in common: progress by trials, and the result as a table or JSON. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/launched.h"

static const char *best_sign(const struct fettle_progress_info *i)
{
	return !i->best_early ? "" : i->best_met == i->higher_is_better ? ">=" : "<=";
}

static bool best_meets(const struct fettle_progress_info *i)
{
	return i->best_met && isfinite(i->target);
}

/* " meets 0.7940"; "" where there is no target */
static const char *verdict(const struct fettle_progress_info *i, char *buf, size_t n)
{
	const bool met = i->trial->met;
	char target[32], word[32];

	buf[0] = 0;
	if (isfinite(i->target))
		snprintf(buf, n, " %s %s",
			 styled(stderr, met ? STYLE_GOOD : STYLE_BAD, met ? "meets" : "misses", word,
				sizeof(word)),
			 human_score(i->target, target, sizeof(target)));
	return buf;
}

/* "4 ranks, "; "" where there is one */
static const char *ranks_text(const struct fettle_progress_info *i, char *buf, size_t n)
{
	buf[0] = 0;
	if (i->ranks > 1)
		snprintf(buf, n, "%zu ranks, ", i->ranks);
	return buf;
}

/* what the live line says until the next trial; least important last, for it may be cut off */
static void keep_trial(struct progress *p, const struct fettle_progress_info *i)
{
	const struct fettle_trial *t = i->trial;
	char limit[32] = "", left[32] = "", result[96] = "failed", best[64] = "", a[32], b[64], ranks[32];

	if (i->max_trials)
		snprintf(limit, sizeof(limit), " of %zu", i->max_trials);
	if (isfinite(i->seconds_left) && i->seconds_left > 0)
		snprintf(left, sizeof(left), "up to %.0f s left, ", ceil(i->seconds_left));
	if (!t->failed)
		snprintf(result, sizeof(result), "%s%s", trial_score(t, a, sizeof(a)),
			 verdict(i, b, sizeof(b)));
	if (i->best)
		snprintf(best, sizeof(best), ", best %s%s%s", best_sign(i),
			 human_score(i->best_accuracy, a, sizeof(a)), best_meets(i) ? " met" : "");
	snprintf(p->trial, sizeof(p->trial), "%s%strial %zu%s: %s%s, %.200s", left,
		 ranks_text(i, ranks, sizeof(ranks)), t->number, limit, result, best, t->stage);
}

static void show_trial(void *self, const struct fettle_progress_info *i)
{
	struct progress *p = self;
	const struct fettle_trial *t = i->trial;
	char limit[48] = "", left[64] = "", best[96] = "", value[32], target[48], top[32];

	if (p->level < LOG_INFO)
		return;
	if (p->level == LOG_DEBUG)
		fprintf(stderr, "debug: trial %zu: %.3f s, %zu samples, %zu bytes, latency %.3f ms\n",
			t->number, t->seconds, t->samples, t->size_bytes, t->latency_ms);
	keep_trial(p, i);
	if (p->live) {
		progress_show(p, "%.0f s, %s", i->seconds_used, p->trial);
		return;
	}
	if (i->max_trials)
		snprintf(limit, sizeof(limit), " of at most %zu", i->max_trials);
	if (isfinite(i->seconds_left) && i->seconds_left > 0)
		snprintf(left, sizeof(left), ", up to about %.0f s left", ceil(i->seconds_left));
	if (i->best)
		snprintf(best, sizeof(best), ", best %s%s (trial %zu%s)", best_sign(i),
			 human_score(i->best_accuracy, top, sizeof(top)), i->best,
			 best_meets(i) ? ", met" : "");
	if (t->failed)
		progress_show(p, "trial %zu%s, %s: failed: %s", t->number, limit, t->stage, t->why);
	else if (isnan(t->accuracy))
		progress_show(p, "trial %zu%s, %s: %s", t->number, limit, t->stage, t->why);
	else
		progress_show(p, "trial %zu%s, %s: %s%s%s, %.0f s used%s", t->number, limit, t->stage,
			      trial_score(t, value, sizeof(value)), verdict(i, target, sizeof(target)), best,
			      i->seconds_used, left);
}

static void show_row(struct table *table, const char *name, const struct fettle_measure *m, bool wide)
{
	char buf[32];

	table_cell(table, "%s", name);
	table_cell(table, "%s", human_score(m->accuracy, buf, sizeof(buf)));
	table_cell(table, isfinite(m->latency_ms) ? "%.3f ms" : "-", m->latency_ms);
	table_cell(table, isfinite(m->speedup) ? "%.2fx" : "-", m->speedup);
	table_cell(table, "%s", human_bytes((double)m->size_bytes, buf, sizeof(buf)));
	table_cell(table, "%zu", m->ops_int8 + m->ops_dynamic + m->ops_weight_only);
	if (wide)
		table_cell(table, "%zu", m->ops_int16);
	table_cell(table, "%zu", m->ops_fp32);
	table_cell(table, "%.0f %%", 100 * m->int8_share);
}

/* Several metrics: what each was, and is. */
static void show_values(const struct fettle_tuned *t)
{
	static const char *const head[] = { "metric", "fp32", "best" };
	struct table table;
	char name[64], buf[32];
	size_t i;

	if (!t->best->values.n)
		return;
	putchar('\n');
	table_begin(&table, head, 3, 6);
	for (i = 0; i < t->best->values.n; i++) {
		table_cell(&table, "%s", fettle_value_name(t->metric, i, name, sizeof(name)));
		table_cell(&table, "%s", human_score(t->baseline->values.v[i], buf, sizeof(buf)));
		table_cell(&table, "%s", human_score(t->best->values.v[i], buf, sizeof(buf)));
	}
	table_print(&table);
}

/* "batch 32, 2 threads, 4 at once" */
static const char *conditions(const struct fettle_tuned *t, size_t batch, char *buf, size_t n)
{
	char threads[32] = "all cores", instances[48] = "";

	if (t->latency_threads)
		snprintf(threads, sizeof(threads), "%d thread%s", t->latency_threads,
			 t->latency_threads == 1 ? "" : "s");
	if (t->instances > 1)
		snprintf(instances, sizeof(instances), ", %zu instances at once", t->instances);
	snprintf(buf, n, "batch %zu, %s%s", batch, threads, instances);
	return buf;
}

static void show_speeds(const struct fettle_tuned *t)
{
	static const char *const head[] = { "batch", "fp32", "best", "speed-up", "99 % sure" };
	struct table table;
	char where[96], buf[64];
	size_t i;

	if (t->n_speeds == 1) {
		printf("\nSpeed-up: %s, %s\n",
		       human_speedup(t->best->speedup, t->best->speedup_low, t->best->speedup_high, buf,
				     sizeof(buf)),
		       conditions(t, t->speeds[0]->batch, where, sizeof(where)));
		if (isfinite(t->predicted_speedup))
			printf("Profiles of its ops had predicted %.2fx\n", t->predicted_speedup);
	}
	if (t->n_speeds < 2)
		return;
	putchar('\n');
	table_begin(&table, head, 5, 0x1f);
	for (i = 0; i < t->n_speeds; i++) {
		const struct fettle_speed *s = t->speeds[i];

		table_cell(&table, "%zu", s->batch);
		table_cell(&table, "%.3f ms", s->baseline_latency_ms);
		table_cell(&table, "%.3f ms", s->latency_ms);
		table_cell(&table, "%.2fx", s->speedup);
		table_cell(&table, isfinite(s->speedup_high) ? "%.2f-%.2f" : "-", s->speedup_low,
			   s->speedup_high);
	}
	table_print(&table);
	printf("Chosen for %s\n", conditions(t, t->speeds[0]->batch, where, sizeof(where)));
}

void show_models(const struct fettle_tuned *t)
{
	const bool wide = t->best->ops_int16 > 0;
	const bool joint = t->best->values.n && !strchr(t->metric, '*');
	const char *head[] = { "model",     joint ? "of fp32" : t->metric,
			       "latency",   "speed-up",
			       "size",      "int8 ops",
			       NULL,        "fp32 ops",
			       "int8 share" };
	struct table table;

	if (wide)
		head[6] = "16-bit ops";
	else
		memmove(head + 6, head + 7, 2 * sizeof(*head));
	table_begin(&table, head, wide ? 9 : 8, 0x1fe);
	show_row(&table, "fp32", t->baseline, wide);
	if (t->rewritten)
		show_row(&table, "fp32, rewritten", t->rewritten, wide);
	show_row(&table, t->met ? "best" : t->best->trial ? "best seen" : "written", t->best, wide);
	table_print(&table);
	show_values(t);
	show_speeds(t);
}

const char *why_stopped(const struct fettle_tuned *t)
{
	switch (t->stop) {
	case FETTLE_STOP_ACCURACY_MET:
		return "the target is met";
	case FETTLE_STOP_MAX_TRIALS:
		return "all trials are used up";
	case FETTLE_STOP_TIMEOUT:
		return "the time is used up";
	case FETTLE_STOP_INTERRUPTED:
		return "it was interrupted";
	default:
		return "the strategy has nothing more to try";
	}
}

static int print_config(const struct tuner *u)
{
	struct fettle *f = fettle_new();
	char *text = NULL;
	enum fettle_status st = u->plugin ? fettle_load_plugin(f, u->plugin) : FETTLE_OK;
	int code = 0;

	if (!st)
		st = u->config(f, u, &text);
	if (st)
		code = library_error(f, st);
	else
		fputs(text, stdout);
	free(text);
	fettle_free(f);
	return code;
}

static int run_one(const struct tuner *u)
{
	struct fettle *f = fettle_new();
	struct fettle_tuned *t = NULL;
	struct progress p;
	enum fettle_status st;
	int code;

	progress_begin(&p, f, u->quiet);
	fettle_on_trial(f, show_trial, &p);
	st = u->plugin ? fettle_load_plugin(f, u->plugin) : FETTLE_OK;
	if (!st)
		st = u->run(f, u, &t);
	progress_end(&p);
	if (st) {
		code = library_error(f, st);
	} else if (!t) { /* rank 0 reports */
		code = EXIT_MET;
	} else {
		if (u->json)
			print_json(fettle_tuned_json(f, t));
		else
			u->show(f, t, u->given);
		code = t->met ? EXIT_MET : EXIT_NOT_MET;
		fettle_tuned_free(t);
	}
	fettle_free(f);
	return code;
}

static int preview(const struct tuner *u)
{
	struct fettle *f = fettle_new();
	struct progress p;
	enum fettle_status st;
	int code = 0;

	progress_begin(&p, f, u->quiet);
	st = u->plugin ? fettle_load_plugin(f, u->plugin) : FETTLE_OK;
	if (!st)
		st = u->preview(f, u);
	progress_end(&p);
	if (st)
		code = library_error(f, st);
	fettle_free(f);
	return code;
}

static size_t flags_given(const struct flag *v, size_t n, struct fettle_setting *out)
{
	size_t i, given = 0;

	for (i = 0; i < n; i++)
		if (v[i].value)
			out[given++] = (struct fettle_setting){ v[i].key, v[i].value, v[i].name };
	return given;
}

/* of several that mpirun has started, only rank 0 speaks */
static void silence_other_ranks(void)
{
	const char *level = getenv("LOGLEVEL");
	int rank;

	if (!launched_as_rank(&rank) || !rank || (level && strcasecmp(level, "DEBUG") == 0))
		return;
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(EXIT_USAGE);
}

int tuner_main(struct tuner *u, int argc, char **argv)
{
	const char *rest[128];
	int n;

	silence_other_ranks();
	if (argc > 128)
		return usage_error(u->command, "too many arguments");
	n = args_read(u->command, u->options, u->n_options, u->details, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n > 1 || (!n && !u->print_config))
		return usage_error(u->command, n ? "one %s at a time" : "which %s?",
				   u->subject ? u->subject : "model");
	u->given = n ? rest[0] : NULL;
	u->n_settings = flags_given(u->flags, u->n_flags, u->settings);
	if (u->tensorboard)
		u->settings[u->n_settings++] =
			(struct fettle_setting){ "tuning.tensorboard", "true", "--tensorboard" };
	return u->print_config ? print_config(u) : u->dry_run ? preview(u) : run_one(u);
}
