/* Whether a run may be continued, and if not, why not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "history/internal.h"

/* Changes that are named; more would not be read. */
enum { SHOWN = 4 };

/* A line "name: value" of a configuration. */
struct setting {
	const char *name, *value;
	size_t name_len, value_len;
};

/* The setting that *text begins with; moves it to the next. False at the end. */
static bool next_setting(const char **text, struct setting *out)
{
	const char *line = *text, *colon;
	size_t n = strcspn(line, "\n");

	if (!n)
		return false;
	colon = memchr(line, ':', n);
	*text = line + n + (line[n] == '\n');
	*out = (struct setting){ line, line + n, n, 0 };
	if (!colon)
		return true;
	out->name_len = (size_t)(colon - line);
	out->value = colon + 1 + (colon[1] == ' ');
	out->value_len = (size_t)(line + n - out->value);
	return true;
}

static bool find_setting(const char *text, const struct setting *wanted, struct setting *out)
{
	while (next_setting(&text, out))
		if (out->name_len == wanted->name_len &&
		    memcmp(out->name, wanted->name, wanted->name_len) == 0)
			return true;
	return false;
}

static void add_change(struct str *out, size_t n, const struct setting *s, const char *value, int len,
		       const char *was, int was_len)
{
	if (n > SHOWN)
		return;
	str_addf(out, "%s%.*s is %.*s, was %.*s", n > 1 ? "; " : "", (int)s->name_len, s->name, len, value,
		 was_len, was);
}

/* "a.b is 2, was 1; c is not set, was 3; …" */
static void describe_changes(const char *was, const char *now, struct str *out)
{
	static const char none[] = "not set";
	struct setting s, other;
	const char *text;
	size_t n = 0;

	for (text = now; next_setting(&text, &s);) {
		if (!find_setting(was, &s, &other))
			other = (struct setting){ s.name, none, s.name_len, strlen(none) };
		else if (s.value_len == other.value_len && memcmp(s.value, other.value, s.value_len) == 0)
			continue;
		add_change(out, ++n, &s, s.value, (int)s.value_len, other.value, (int)other.value_len);
	}
	for (text = was; next_setting(&text, &s);)
		if (!find_setting(now, &s, &other))
			add_change(out, ++n, &s, none, (int)strlen(none), s.value, (int)s.value_len);
	if (n > SHOWN)
		str_addf(out, "; and %zu more", n - SHOWN);
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
	st = fail(err, FETTLE_INVALID, "cannot resume %s: %s", h->dir,
		  changes.n ? changes.s : "the configuration changed since");
	str_release(&changes);
	return st;
}

enum fettle_status history_check_same(const struct history *h, const struct run_info *now, struct err *err)
{
	const struct run_info *was = &h->run;
	const struct {
		const char *what, *was, *now, *file;
	} rows[] = {
		{ "the model", was->model_fingerprint, now->model_fingerprint, text(now->model_path) },
		{ "the calibration data", was->calib_fingerprint, now->calib_fingerprint,
		  text(now->calib_path) },
		{ "the evaluation data", was->eval_fingerprint, now->eval_fingerprint, text(now->eval_path) },
		{ "the strategy", was->strategy, now->strategy, NULL },
		{ "the metric", was->metric, now->metric, NULL },
		{ "the criterion", was->criterion, now->criterion, NULL },
		{ "the CPU", was->cpu, now->cpu, NULL },
		{ "ONNX Runtime", was->runtime_version, now->runtime_version, NULL },
	};
	size_t i;

	if (!*was->config_fingerprint)
		return fail(err, FETTLE_INVALID,
			    "cannot resume %s: fettle %s wrote it without all that decides a result; begin "
			    "a new run",
			    h->dir, was->fettle_version);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (!strcmp(rows[i].was, text(rows[i].now)))
			continue;
		if (!rows[i].file)
			return fail(err, FETTLE_INVALID, "cannot resume %s: %s is '%s', was '%s'", h->dir,
				    rows[i].what, text(rows[i].now), rows[i].was);
		return fail(err, FETTLE_INVALID, "cannot resume %s: %s changed since%s%s", h->dir,
			    rows[i].what, *rows[i].file ? ": " : "", rows[i].file);
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
	if (same_config(h, now, err))
		return FETTLE_INVALID;
	if (*was->space && strcmp(was->space, text(now->space)))
		return fail(err, FETTLE_INVALID,
			    "cannot resume %s: fettle %s wrote it, whose plans mean something else than "
			    "those of %s; begin a new run",
			    h->dir, was->fettle_version, text(now->fettle_version));
	return FETTLE_OK;
}
