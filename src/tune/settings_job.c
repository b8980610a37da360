#include "tune/settings_job.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "space/plan_json.h"
#include "tune/job_impl.h"

enum { LOGGED_MAX = 1000 }; /* candidates that are listed beforehand */

/* ---- the log ---- */

static void log_line(struct settings_job *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void log_line(struct settings_job *s, const char *fmt, ...)
{
	char now[32];
	va_list ap;

	if (!s->log)
		return;
	clock_utc(now);
	fprintf(s->log, "%s ", now);
	va_start(ap, fmt);
	vfprintf(s->log, fmt, ap);
	va_end(ap);
	fputc('\n', s->log);
	fflush(s->log);
}

static void log_space(struct settings_job *s, const char *model, const char *metric)
{
	const struct param_search *p = s->search;
	size_t i;

	log_line(s, "search of %s: %zu settings in %zu space%s, %s, by %s", model, s->list->n, p->n_spaces,
		 p->n_spaces == 1 ? "" : "s",
		 p->advanced    ? "advanced_fastft_search"
		 : p->two_stage ? "two stages"
				: p->algorithm,
		 metric);
	for (i = 0; i < s->list->n && i < LOGGED_MAX; i++) {
		struct str text = STR_INIT;

		settings_text(&s->list->v[i], NULL, &text);
		log_line(s, "candidate: %s", text.s);
		str_release(&text);
	}
	if (i < s->list->n)
		log_line(s, "and %zu more candidates", s->list->n - i);
}

static void log_trial(struct job *j, const struct trial *t, const char *settings)
{
	struct settings_job *s = j->o.kind_self;

	if (t->score.failed)
		log_line(s, "trial %zu: %s: failed: %s", t->number, settings, t->why);
	else
		log_line(s, "trial %zu: %s: %s %.10g, loss %.6g, %s, %.2f s", t->number, settings,
			 j->o.metric, t->score.accuracy, t->score.loss, t->score.met ? "met" : "not met",
			 t->seconds);
}

/* ---- open ---- */

static char *identity(void *lab, const struct plan *p)
{
	const struct lab *l = lab;
	struct qplan q = QPLAN_INIT;
	char *json;

	tuning_qplan(l->t, p, &q);
	json = qplan_to_json(&q, &l->s->ops, tuning_samples(l->t, p));
	qplan_release(&q);
	return json;
}

/* the observers must know the constants of moving averages beforehand */
static enum fettle_status collect_averaging(const struct settings_list *list, double *v, struct err *err)
{
	size_t i, k, n = 0;

	for (i = 0; i < list->n; i++) {
		double x = list->v[i].v[SET_AVERAGING];

		for (k = 0; k < n && v[k] != x; k++)
			;
		if (isnan(x) || k < n)
			continue;
		if (n == OBSERVER_AVERAGES)
			return fail(err, FETTLE_INVALID,
				    "cannot search: more than %d values of CalibMovingAverageConstant in all "
				    "spaces",
				    OBSERVER_AVERAGES);
		v[n++] = x;
	}
	return FETTLE_OK;
}

static enum fettle_status open_settings(struct job *j, struct err *err)
{
	struct settings_job *s = j->o.kind_self;
	struct lab *l = j->o.lab;

	char *path = s->log_path ? xstrdup(s->log_path) : xstrfmt("%s/auto_search.log", j->o.workspace);
	enum fettle_status st = FETTLE_OK;

	s->log = fopen(path, "a");
	if (!s->log)
		st = fail(err, FETTLE_SYSTEM, "cannot write %s: %s", path, strerror(errno));
	free(path);
	if (st)
		return st;
	s->search->space = &l->t->space;
	s->search->identity = identity;
	s->search->self = l;
	settings_tuning_vary(l->t, s->list);
	log_space(s, j->o.model, j->o.metric);
	return collect_averaging(s->list, l->o.averaging, err);
}

void settings_job_release(struct settings_job *s)
{
	if (s->log)
		fclose(s->log);
	s->log = NULL;
	arena_release(&s->arena);
}

/* ---- candidates ---- */

struct listed {
	const struct trial *t;
	double int8_share;
};

static int better_first(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->t->score.loss != y->t->score.loss)
		return x->t->score.loss < y->t->score.loss ? -1 : 1;
	if (x->int8_share != y->int8_share)
		return x->int8_share > y->int8_share ? -1 : 1;
	return x->t->number < y->t->number ? -1 : x->t->number > y->t->number;
}

/* Of the steps of one search for mixed precision, only the one with most in int8 is a candidate. */
static void list_trial(const struct lab *l, struct listed *v, size_t *n, const struct trial *t)
{
	const struct space *space = &l->t->space;
	struct settings s = plan_settings(&t->plan, space), other;
	struct listed new = { t, lab_summary(l, &t->plan).int8_share };
	size_t i;

	for (i = 0; i < *n && settings_on(&s, SET_AUTO_MP); i++) {
		other = plan_settings(&v[i].t->plan, space);
		if (!settings_equal(&s, &other))
			continue;
		if (t->score.met ? new.int8_share > v[i].int8_share : t->score.loss < v[i].t->score.loss)
			v[i] = new;
		return;
	}
	v[(*n)++] = new;
}

/* those that met the target, best first; all when none has */
static struct listed *list_candidates(const struct job *j, size_t *n)
{
	const struct trial *best = search_best_trial(j->search);
	size_t trials = search_n_trials(j->search), i;
	struct listed *v = xcalloc(trials + 1, sizeof(*v));

	*n = 0;
	for (i = 1; i <= trials; i++) {
		const struct trial *t = search_trial(j->search, i);

		if (!t->score.failed && best && (t->score.met || !best->score.met))
			list_trial(j->o.lab, v, n, t);
	}
	qsort(v, *n, sizeof(*v), better_first);
	return v;
}

static const struct trial *best_settings(const struct job *j)
{
	const struct trial *best = search_best_trial(j->search);
	size_t n;
	struct listed *v = list_candidates(j, &n);

	if (n && j->o.lab->o.weights[LAB_ACCURACY] == 1) /* and by nothing else */
		best = v[0].t;
	free(v);
	return best;
}

/* what the runtime makes of it; a model that does not load again keeps what its plan asks for */
static double actual_share(struct lab *l, const struct listed *v)
{
	double share;

	return lab_share(l, &v->t->plan, &share, NULL) ? v->int8_share : share;
}

static void list_result(struct job *j)
{
	struct settings_job *s = j->o.kind_self;
	size_t i, n;
	struct listed *v = list_candidates(j, &n);

	s->n_candidates = s->most && n > s->most ? s->most : n;
	s->candidates = arena_alloc(&s->arena, (s->n_candidates + 1) * sizeof(*s->candidates));
	for (i = 0; i < s->n_candidates; i++) {
		struct candidate *c = &s->candidates[i];
		char *text = tuning_text(j->o.lab->t, &v[i].t->plan, "");

		*c = (struct candidate){
			.trial = v[i].t->number,
			.met = v[i].t->score.met,
			.accuracy = v[i].t->score.accuracy,
			.loss = v[i].t->score.loss,
			.int8_share = actual_share(j->o.lab, &v[i]),
			.settings = arena_strdup(&s->arena, text),
		};
		free(text);
		log_line(s, "place %zu: trial %zu: %s: %.10g%s", i + 1, c->trial, c->settings, c->accuracy,
			 c->met ? "" : ", not met");
	}
	free(v);
	log_line(s, "ended: %s, %zu trials, %.1f s, wrote %s", search_stop_word(j->r.stop), j->r.trials,
		 j->r.seconds_total, j->o.output);
}

const struct job_kind job_settings = { .name = "search",
				       .opened = open_settings,
				       .best = best_settings,
				       .tried = log_trial,
				       .finished = list_result };
