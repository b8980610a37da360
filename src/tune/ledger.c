#include "tune/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "tune/values.h"

#define IDENTITY_NAME "model of trial %zu" /* what the history keeps it by */
#define BEYOND_NAME "expected to be worse, trial %zu"

static double read_beyond(struct history *h, size_t number)
{
	char name[64], *text = NULL;
	double beyond = 0;

	snprintf(name, sizeof(name), BEYOND_NAME, number);
	if (!history_meta(h, name, &text, NULL) && text)
		beyond = strtod(text, NULL);
	free(text);
	return beyond;
}

static enum fettle_status write_beyond(struct history *h, const struct trial *t, struct err *err)
{
	char name[64], text[64];

	snprintf(name, sizeof(name), BEYOND_NAME, t->number);
	snprintf(text, sizeof(text), "%.17g", t->beyond);
	return t->score.early && t->beyond > 0 ? history_set_meta(h, name, text, err) : FETTLE_OK;
}

bool ledger_find(struct history *h, const char *hash, struct trial *out)
{
	struct history_trial t = { .number = 0 };
	char name[64], *identity = NULL;

	if (history_find(h, hash, &t, NULL) || !t.number)
		return false;
	out->number = t.number;
	out->score.accuracy = t.accuracy;
	out->score.failed = t.failed;
	out->score.objective = t.objective;
	out->score.early = !t.failed && (isnan(t.accuracy) || t.accuracy_low < t.accuracy_high);
	out->score.low = isnan(t.accuracy) ? -INFINITY : t.accuracy_low; /* not evaluated: anything */
	out->score.high = isnan(t.accuracy) ? INFINITY : t.accuracy_high;
	out->seconds = t.seconds;
	out->samples = t.samples;
	snprintf(name, sizeof(name), IDENTITY_NAME, t.number);
	if (!history_meta(h, name, &identity, NULL) && identity)
		out->identity = strtoull(identity, NULL, 16);
	free(identity);
	out->beyond = read_beyond(h, t.number);
	snprintf(out->why, sizeof(out->why), "%s", t.why);
	history_trial_release(&t);
	return true;
}

#define SPEEDUP_NAME "speed-up of the result"

enum fettle_status speedup_write(struct history *h, const struct race_ratio *r, struct err *err)
{
	char *text = xstrfmt("%.17g %.17g %.17g", r->value, r->low, r->high);
	enum fettle_status st = history_set_meta(h, SPEEDUP_NAME, text, err);

	free(text);
	return st;
}

bool speedup_read(struct history *h, struct race_ratio *out)
{
	char *text = NULL;
	bool read = !history_meta(h, SPEEDUP_NAME, &text, NULL) && text &&
		    sscanf(text, "%lg %lg %lg", &out->value, &out->low, &out->high) == 3;

	free(text);
	return read;
}

#define RAN_ON_NAME "who ran trial %zu"

enum fettle_status ran_on_write(struct history *h, const struct trial *t, struct err *err)
{
	char name[64], text[64];

	snprintf(name, sizeof(name), RAN_ON_NAME, t->number);
	snprintf(text, sizeof(text), "%d %zu", t->rank, t->worker);
	return history_set_meta(h, name, text, err);
}

bool ran_on_read(struct history *h, size_t number, int *rank, int *worker)
{
	char name[64], *text = NULL;
	bool read;

	snprintf(name, sizeof(name), RAN_ON_NAME, number);
	read = !history_meta(h, name, &text, NULL) && text && sscanf(text, "%d %d", rank, worker) == 2;
	free(text);
	return read;
}

char *footprint_key(size_t trial)
{
	return xstrfmt("footprint of trial %zu", trial);
}

static enum fettle_status write_footprint(struct history *h, const struct trial *t, struct err *err)
{
	char *key = footprint_key(t->number), *bytes = xstrfmt("%zu", t->footprint_bytes);
	enum fettle_status st = t->footprint_bytes ? history_set_meta(h, key, bytes, err) : FETTLE_OK;

	free(key);
	free(bytes);
	return st;
}

/* before the trial: a run that is cut off here tries it again */
static enum fettle_status write_identity(struct history *h, const struct trial *t, struct err *err)
{
	char name[64], identity[32];

	snprintf(name, sizeof(name), IDENTITY_NAME, t->number);
	snprintf(identity, sizeof(identity), "%016" PRIx64, t->identity);
	return history_set_meta(h, name, identity, err);
}

enum fettle_status ledger_write(struct history *h, const struct trial *t, const char *plan, const char *text,
				size_t n_values, struct err *err)
{
	char finished[CLOCK_UTC_LEN];
	enum fettle_status st;

	clock_utc(finished);
	st = write_identity(h, t, err);
	if (!st)
		st = values_write(h, t->number, t->values, n_values, err);
	if (!st)
		st = write_footprint(h, t, err);
	if (!st)
		st = write_beyond(h, t, err);
	return st ? st
		  : history_add_trial(h,
				      &(struct history_trial){
					      .number = t->number,
					      .plan = plan,
					      .stage = text,
					      .failed = t->score.failed,
					      .met = t->score.met,
					      .accuracy = t->score.accuracy,
					      .accuracy_low = t->score.low,
					      .accuracy_high = t->score.high,
					      .loss = t->score.loss,
					      .objective = t->score.objective,
					      .latency = t->latency,
					      .size_bytes = t->size_bytes,
					      .samples = t->samples,
					      .quantize_s = t->quantize_s,
					      .session_s = t->session_s,
					      .evaluate_s = t->evaluate_s,
					      .measure_s = t->measure_s,
					      .seconds = t->seconds,
					      .finished = finished,
					      .why = t->why,
				      },
				      NULL, err);
}
