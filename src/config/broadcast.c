/* Data that only rank 0 can read: every file that the configuration names for it is sent to the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "config/job.h"
#include "config/read.h"
#include "tune/ranks.h"

/* On another rank, *path is then where it is there. */
static enum fettle_status broadcast(struct job_request *u, const char **path, const char *name)
{
	struct err *err = &u->run.cx->err;
	char *folder, *there = NULL;
	enum fettle_status st;

	if (!*path)
		return FETTLE_OK;
	if (!job_request_serves(u))
		return ranks_send_data(u->ranks, *path, err);
	folder = scratch_path(&u->scratch, name);
	st = ranks_receive_data(u->ranks, folder, &there, err);
	if (there)
		*path = arena_strdup(&u->arena, there);
	free(there);
	free(folder);
	return st;
}

/* What a dataset reads beside its root, and what labels are read with. */
static enum fettle_status broadcast_files(struct job_request *u, struct config_dataloader *d,
					  const char *name)
{
	const char **others[] = { &d->label_map, &d->vocabulary, &d->squad.label_file, &d->squad.vocab_file };
	const struct config_params *params = &d->dataset.params;
	enum fettle_status st = FETTLE_OK;
	char folder[64];
	size_t i;

	for (i = 0; i < params->n && !st; i++) {
		snprintf(folder, sizeof(folder), "%s-%zu", name, i);
		if (config_is_data_file(params->v[i].key))
			st = broadcast(u, &params->v[i].text, folder);
	}
	for (i = 0; i < ARRAY_LEN(others) && !st; i++) {
		snprintf(folder, sizeof(folder), "%s-of-labels-%zu", name, i);
		st = broadcast(u, others[i], folder);
	}
	return st;
}

enum fettle_status job_request_broadcast(struct job_request *u)
{
	struct config *c = u->run.r.c;
	struct config_dataloader *calib = &c->calibration.dataloader, *eval = &c->evaluation.dataloader;
	struct str text = STR_INIT;
	enum fettle_status st;

	if (!u->ranks || !u->run.r.o.broadcast_data)
		return FETTLE_OK;
	if (job_request_serves(u)) {
		config_identity(c, &text);
		u->settings = arena_strdup(&u->arena, text.s ? text.s : "");
		str_release(&text);
	}
	st = broadcast(u, &calib->dataset.root, "calib");
	st = st ? st : broadcast_files(u, calib, "calib");
	if (st)
		return st;
	if (u->run.r.eval_is_calib) {
		*eval = *calib;
		return FETTLE_OK;
	}
	st = broadcast(u, &eval->dataset.root, "eval");
	return st ? st : broadcast_files(u, eval, "eval");
}
