/*
 * An event file as TensorBoard reads it: what is known of one run at one step.
 *
 *	struct events e = EVENTS_INIT;
 *	events_begin(&e, trial, seconds);
 *	events_scalar(&e, "accuracy", 0.93);
 *	events_histogram(&e, "weights/conv1", &h);
 *	events_param(&e, "stage", "default");	as many as there are, then
 *	events_session(&e, start, ok);		what the plug-in hparams shows
 *	events_write(&e, folder, "scalars", err);
 *	events_release(&e);
 *
 * A file is written whole or not at all, under the same name each time: writing it again puts it in the place of the first.
 */
#ifndef TENSORBOARD_EVENTS_H
#define TENSORBOARD_EVENTS_H

#include "base/str.h"
#include "tensorboard/histogram.h"

struct events {
	struct str file, params;
	uint64_t step;
	double time; /* seconds since 1970 */
};
#define EVENTS_INIT                                                                                          \
	{                                                                                                    \
		STR_INIT, STR_INIT, 0, 0                                                                     \
	}

void events_begin(struct events *e, uint64_t step, double time);
void events_scalar(struct events *e, const char *tag, double value); /* a NaN is left out */
void events_histogram(struct events *e, const char *tag, const struct histogram *h);
void events_param(struct events *e, const char *name, const char *value);
/* `start`: when the run began, as `time`. */
void events_session(struct events *e, double start, bool ok);

/* FOLDER/events.out.tfevents.NAME; free() it. */
char *events_path(const char *folder, const char *name);
/* Makes the folder. Leaves a file alone that is the same already. */
enum fettle_status events_write(const struct events *e, const char *folder, const char *name,
				struct err *err);
void events_release(struct events *e);

#endif
