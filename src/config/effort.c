/* How much a run may spend at once, and how sure its verdicts must be. */
#include "config/effort.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { JOBS_MAX = 256 };

enum fettle_status parse_size(const char *text, size_t *out, struct err *err)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long n;
	const char *unit;
	int shift;

	errno = 0;
	n = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : (end = (char *)(uintptr_t)text, 0);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (end == text || errno || (*end && (!unit || end[1])) || n > SIZE_MAX >> shift)
		return fail(err, FETTLE_INVALID,
			    "cannot set cache to '%s': need a number of bytes, e.g. 0, 500M or 2G", text);
	*out = (size_t)n << shift;
	return FETTLE_OK;
}

enum fettle_status parse_budget(const char *text, size_t whole, size_t *out, struct err *err)
{
	const size_t n = strlen(text);
	char *end, *bytes;
	double share = strtod(text, &end);
	enum fettle_status st;

	if (end != text && !*end && share > 0 && share <= 1) {
		*out = (size_t)(share * (double)whole);
		return FETTLE_OK;
	}
	bytes = xstrfmt("%.*s", (int)(n > 2 && toupper((unsigned char)text[n - 1]) == 'B' ? n - 1 : n), text);
	st = parse_size(bytes, out, NULL);
	free(bytes);
	return st || !*out ? fail(err, FETTLE_INVALID,
				  "cannot set size_budget to '%s': need a share of the fp32 model's size, "
				  "such as 0.3, "
				  "or bytes, such as 300MB",
				  text)
			   : FETTLE_OK;
}

static enum fettle_status parse_jobs(const char *text, size_t *out, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	char *end;
	unsigned long n;

	if (strcmp(text, "auto") == 0) {
		*out = cores > 0 ? (size_t)cores : 1;
		return FETTLE_OK;
	}
	n = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
	if (!n || *end || n > JOBS_MAX)
		return fail(err, FETTLE_INVALID,
			    "cannot set jobs to '%s': need auto or a number from 1 to %d", text, JOBS_MAX);
	*out = n;
	return FETTLE_OK;
}

enum fettle_status effort_read(struct run *u)
{
	const struct call_options *o = &u->r.o;
	struct lab_options *l = &u->lab.o;
	struct err *err = &u->cx->err;
	enum fettle_status st = FETTLE_OK;

	l->no_early = o->no_early;
	l->confidence = o->confidence;
	l->seed = (uint64_t)u->r.c->tuning.random_seed;
	l->cache = CACHE_DEFAULT;
	l->jobs = 1;
	if (!(o->confidence >= 0 && o->confidence < 1))
		return fail(err, FETTLE_INVALID,
			    "cannot set confidence to %g: need a probability below 1, e.g. 0.99",
			    o->confidence);
	if (o->cache)
		st = parse_size(o->cache, &l->cache, err);
	if (!st && o->jobs)
		st = parse_jobs(o->jobs, &l->jobs, err);
	return st;
}

/* What is the user's own may not be called by several threads at once. */
void effort_restrict(struct run *u)
{
	const struct call_options *o = &u->r.o;
	const struct metric_type *type = u->lab.metric ? metric_type(u->lab.metric) : NULL;
	const char *what = o->evaluate ? "the evaluator is a function"
			   : request_data_is_own(&u->r, &u->r.c->calibration.dataloader)
				   ? "the calibration data comes from a function"
			   : request_data_is_own(&u->r, &u->r.c->evaluation.dataloader)
				   ? "the evaluation data comes from a function"
			   : type && !metric_is_listed(type) ? "the metric is not fettle's own"
							     : NULL;

	if (u->lab.o.jobs > 1 && what) {
		char *note = xstrfmt("trials run one at a time: %s", what);

		context_note(u->cx, note);
		free(note);
		u->lab.o.jobs = 1;
	}
	if (u->lab.o.confidence > 0 && (!type || !type->is_mean || !type->bounded))
		context_note(u->cx, "confidence has no effect: the metric is no mean of bounded scores");
	else if (u->lab.o.confidence > 0 && u->lab.o.no_early)
		context_note(u->cx, "confidence has no effect: every trial is evaluated to its end");
}
