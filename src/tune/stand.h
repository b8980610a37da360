/* A place where one trial is carried out: its model, its session, and what an evaluation needs of its own. */
#ifndef TUNE_STAND_H
#define TUNE_STAND_H

#include "evaluate/paired.h"
#include "tune/order.h"

struct stand {
	struct plan plan; /* whose model and session these are */
	bool plain;       /* but without finetune: see lab.scoring */
	struct model *model;
	struct session *session;
	struct metric *metric;
	struct server *server; /* for options.eval_server; NULL: not started yet */
	struct recall recall;
	double *scores; /* what the samples scored in the last evaluation, by place; NaN: not looked at */
	struct err err;
};

#endif
