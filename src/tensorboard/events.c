#include "tensorboard/events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "tensorboard/crc32c.h"
#include "tensorboard/message.h"

/* field numbers of TensorBoard's messages */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_NUMBER = 2, VALUE_HISTOGRAM = 5, VALUE_METADATA = 9 };
enum {
	HISTOGRAM_MIN = 1,
	HISTOGRAM_MAX = 2,
	HISTOGRAM_NUM = 3,
	HISTOGRAM_SUM = 4,
	HISTOGRAM_SQUARES = 5,
	HISTOGRAM_LIMIT = 6,
	HISTOGRAM_COUNT = 7
};
enum { METADATA_PLUGIN = 1 };
enum { PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
/* of the plug-in hparams */
enum { CONTENT_START = 3, CONTENT_END = 4 };
enum { START_PARAMS = 1, START_TIME = 5 };
enum { END_STATUS = 1, END_TIME = 2 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { ANY_TEXT = 3 };

/* ---- records ---- */

/* length, its CRC, the bytes, their CRC */
static void add_record(struct events *e, const struct str *bytes)
{
	struct str length = STR_INIT;

	message_fixed(&length, bytes->n, 8);
	str_add(&e->file, length.s, length.n);
	message_fixed(&e->file, crc32c_masked(length.s, length.n), 4);
	str_add(&e->file, bytes->s, bytes->n);
	message_fixed(&e->file, crc32c_masked(bytes->s, bytes->n), 4);
	str_release(&length);
}

void events_begin(struct events *e, uint64_t step, double time)
{
	struct str event = STR_INIT;

	e->step = step;
	e->time = time;
	message_double(&event, EVENT_TIME, time);
	message_text(&event, EVENT_VERSION, "brain.Event:2");
	add_record(e, &event);
	str_release(&event);
}

/* `value` has all but the tag */
static void add_value(struct events *e, const char *tag, const struct str *rest)
{
	struct str value = STR_INIT, summary = STR_INIT, event = STR_INIT;

	message_text(&value, VALUE_TAG, tag);
	str_add(&value, rest->s, rest->n);
	message_inner(&summary, SUMMARY_VALUE, &value);
	message_double(&event, EVENT_TIME, e->time);
	message_int(&event, EVENT_STEP, e->step);
	message_inner(&event, EVENT_SUMMARY, &summary);
	add_record(e, &event);
	str_release(&value);
	str_release(&summary);
	str_release(&event);
}

void events_scalar(struct events *e, const char *tag, double value)
{
	struct str rest = STR_INIT;

	if (isnan(value))
		return;
	message_float(&rest, VALUE_NUMBER, (float)value);
	add_value(e, tag, &rest);
	str_release(&rest);
}

void events_histogram(struct events *e, const char *tag, const struct histogram *h)
{
	struct str inner = STR_INIT, rest = STR_INIT;

	message_double(&inner, HISTOGRAM_MIN, h->min);
	message_double(&inner, HISTOGRAM_MAX, h->max);
	message_double(&inner, HISTOGRAM_NUM, h->num);
	message_double(&inner, HISTOGRAM_SUM, h->sum);
	message_double(&inner, HISTOGRAM_SQUARES, h->squares);
	message_doubles(&inner, HISTOGRAM_LIMIT, h->limit, h->n);
	message_doubles(&inner, HISTOGRAM_COUNT, h->count, h->n);
	message_inner(&rest, VALUE_HISTOGRAM, &inner);
	add_value(e, tag, &rest);
	str_release(&inner);
	str_release(&rest);
}

/* ---- hparams ---- */

void events_param(struct events *e, const char *name, const char *value)
{
	struct str any = STR_INIT, entry = STR_INIT;

	message_text(&any, ANY_TEXT, value);
	message_text(&entry, ENTRY_KEY, name);
	message_inner(&entry, ENTRY_VALUE, &any);
	message_inner(&e->params, START_PARAMS, &entry);
	str_release(&any);
	str_release(&entry);
}

static void add_hparams(struct events *e, const char *tag, unsigned field, const struct str *info)
{
	struct str content = STR_INIT, plugin = STR_INIT, metadata = STR_INIT, rest = STR_INIT;

	message_inner(&content, field, info);
	message_text(&plugin, PLUGIN_NAME, "hparams");
	message_inner(&plugin, PLUGIN_CONTENT, &content);
	message_inner(&metadata, METADATA_PLUGIN, &plugin);
	message_inner(&rest, VALUE_METADATA, &metadata);
	add_value(e, tag, &rest);
	str_release(&content);
	str_release(&plugin);
	str_release(&metadata);
	str_release(&rest);
}

void events_session(struct events *e, double start, bool ok)
{
	struct str end = STR_INIT;

	message_double(&e->params, START_TIME, start);
	add_hparams(e, "_hparams_/session_start_info", CONTENT_START, &e->params);
	message_int(&end, END_STATUS, ok ? STATUS_SUCCESS : STATUS_FAILURE);
	message_double(&end, END_TIME, e->time);
	add_hparams(e, "_hparams_/session_end_info", CONTENT_END, &end);
	str_release(&end);
}

/* ---- the file ---- */

char *events_path(const char *folder, const char *name)
{
	return xstrfmt("%s/events.out.tfevents.%s", folder, name);
}

static bool is_same(const char *path, const struct str *file)
{
	struct bytes there = BYTES_INIT;
	bool same =
		!file_map(path, &there, NULL) && there.n == file->n && memcmp(there.p, file->s, file->n) == 0;

	bytes_release(&there);
	return same;
}

enum fettle_status events_write(const struct events *e, const char *folder, const char *name, struct err *err)
{
	char *path = events_path(folder, name);
	enum fettle_status st = FETTLE_OK;

	if (!is_same(path, &e->file)) {
		st = dir_make(folder, err);
		if (!st)
			st = file_write(path, e->file.s, e->file.n, err);
	}
	free(path);
	return st;
}

void events_release(struct events *e)
{
	str_release(&e->file);
	str_release(&e->params);
}
