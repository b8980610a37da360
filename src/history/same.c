/* Whether a run may be gone on with, and if not, why not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "history/internal.h"

struct line {
	const char *s; /* without the spaces around it */
	size_t n;
};
struct lines {
	struct line *v;
	size_t n, cap;
};

static struct lines split(const char *text)
{
	struct lines l = { NULL, 0, 0 };

	while (*text) {
		size_t n = strcspn(text, "\n"), from = 0, to = n;

		while (from < to && strchr(" \t", text[from]))
			from++;
		while (to > from && strchr(" \t\r", text[to - 1]))
			to--;
		if (to > from)
			VEC_PUSH(&l, ((struct line){ text + from, to - from }));
		text += n + (text[n] == '\n');
	}
	return l;
}

static bool same_line(const struct line *a, const struct line *b)
{
	return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* The part before the colon: what is set. */
static bool same_key(const struct line *a, const struct line *b)
{
	const char *colon = memchr(a->s, ':', a->n);
	size_t n = colon ? (size_t)(colon - a->s) + 1 : 0;

	return n && b->n >= n && memcmp(a->s, b->s, n) == 0;
}

/* Drops from each what the other has too: what differs is left, in order. */
static void drop_common(struct lines *a, struct lines *b)
{
	size_t i, j, kept = 0;

	for (i = 0; i < a->n; i++) {
		for (j = 0; j < b->n && !same_line(&a->v[i], &b->v[j]); j++)
			;
		if (j == b->n) {
			a->v[kept++] = a->v[i];
			continue;
		}
		memmove(&b->v[j], &b->v[j + 1], (b->n - j - 1) * sizeof(*b->v));
		b->n--;
	}
	a->n = kept;
}

/* The next difference, into `out`: a line with what it was, one that is new, or one that is gone. */
static void describe_one(struct lines *was, struct lines *now, struct str *out)
{
	size_t j;

	if (!now->n) {
		str_addf(out, "'%.*s' is gone", (int)was->v->n, was->v->s);
		was->v++;
		was->n--;
		return;
	}
	for (j = 0; j < was->n && !same_key(&now->v[0], &was->v[j]); j++)
		;
	if (j < was->n) {
		str_addf(out, "'%.*s' was '%.*s'", (int)now->v->n, now->v->s, (int)was->v[j].n, was->v[j].s);
		memmove(&was->v[j], &was->v[j + 1], (was->n - j - 1) * sizeof(*was->v));
		was->n--;
	} else {
		str_addf(out, "'%.*s' is new", (int)now->v->n, now->v->s);
	}
	now->v++;
	now->n--;
}

/* "; 'seed: 2' was 'seed: 1'; …": at most so much that it makes one line to read. */
static void describe_changes(const char *was_text, const char *now_text, struct str *out)
{
	enum { SHOWN = 4 };
	struct lines was = split(was_text), now = split(now_text);
	struct line *was_all = was.v, *now_all = now.v;
	size_t i;

	drop_common(&now, &was);
	for (i = 0; i < SHOWN && was.n + now.n; i++) {
		str_addf(out, i ? "; " : ": ");
		describe_one(&was, &now, out);
	}
	if (was.n + now.n)
		str_addf(out, "; and %zu more line%s", was.n + now.n, was.n + now.n == 1 ? "" : "s");
	free(was_all);
	free(now_all);
}

static const char *text(const char *s)
{
	return s ? s : "";
}

static enum fettle_status same_config(const struct history *h, const struct run_info *now, struct err *err)
{
	const struct run_info *was = &h->run;
	struct str changes = STR_INIT;
	enum fettle_status st;

	if (!strcmp(was->config_fingerprint, text(now->config_fingerprint)))
		return FETTLE_OK;
	describe_changes(was->config, text(now->config), &changes);
	st = fail(err, FETTLE_INVALID, "cannot resume %s: the configuration changed%s", h->dir,
		  changes.n ? changes.s : " since");
	str_release(&changes);
	return st;
}

enum fettle_status history_check_same(const struct history *h, const struct run_info *now, struct err *err)
{
	const struct run_info *was = &h->run;
	const struct {
		const char *what, *was, *now;
		bool show;
	} rows[] = {
		{ "the model", was->model_fingerprint, now->model_fingerprint, false },
		{ "the calibration data", was->calib_fingerprint, now->calib_fingerprint, false },
		{ "the evaluation data", was->eval_fingerprint, now->eval_fingerprint, false },
		{ "the strategy", was->strategy, now->strategy, true },
		{ "the metric", was->metric, now->metric, true },
		{ "the criterion", was->criterion, now->criterion, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (!strcmp(rows[i].was, text(rows[i].now)))
			continue;
		if (rows[i].show)
			return fail(err, FETTLE_INVALID, "cannot resume %s: %s is '%s', was '%s'", h->dir,
				    rows[i].what, text(rows[i].now), rows[i].was);
		return fail(err, FETTLE_INVALID, "cannot resume %s: %s changed since", h->dir, rows[i].what);
	}
	if (was->seed != now->seed)
		return fail(err, FETTLE_INVALID, "cannot resume %s: the seed is %llu, was %llu", h->dir,
			    (unsigned long long)now->seed, (unsigned long long)was->seed);
	if (was->tolerance != now->tolerance && !(isnan(was->tolerance) && isnan(now->tolerance)))
		return fail(err, FETTLE_INVALID, "cannot resume %s: the tolerance is %g, was %g", h->dir,
			    now->tolerance, was->tolerance);
	if (was->higher_is_better != now->higher_is_better)
		return fail(err, FETTLE_INVALID, "cannot resume %s: higher_is_better is %s, was %s", h->dir,
			    now->higher_is_better ? "true" : "false",
			    was->higher_is_better ? "true" : "false");
	return same_config(h, now, err);
}
