/* A model, its data and a lab to try plans in: what tuning and sensitivity have in common. */
#ifndef CONFIG_RUN_H
#define CONFIG_RUN_H

#include "config/request.h"
#include "tune/lab.h"

struct run {
	struct context *cx;
	struct request r;
	struct lab lab;
	struct source calib, eval;
	struct unpacking *calib_begun, *eval_begun; /* NULL: not begun, or taken by now */
	struct scores scores;                       /* its metric is the lab's */
	struct looked looked;                       /* at the evaluation data */
	char metric[METRICS_NAME_LEN];
	bool higher_is_better;
	char *command, *server; /* evaluators, to be run from anywhere; NULL: none */
	char *workspace;        /* NULL: none */
	double start, busy;     /* when it began; what the runtime had done by then */
};

/* After request_begin(): prepares the model, builds its space, opens data and metric. */
enum fettle_status run_open(struct run *u, bool need_eval);
void run_release(struct run *u);

#endif
