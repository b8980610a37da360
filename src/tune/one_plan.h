/* One plan carried out, without a search: learn, quantize, write. */
#ifndef TUNE_ONE_PLAN_H
#define TUNE_ONE_PLAN_H

#include "tune/fed.h"

struct one_plan {
	struct subject *s;
	const struct qplan *plan;
	enum approach approach;
	const char *model, *output;
	const struct data_ref *calib; /* NULL: there is none */
	struct feed_options feed;     /* how it is read */
	int threads;
	size_t cache; /* bytes that the recipe finetune keeps samples in */
};

enum fettle_status quantize_one(struct context *cx, const struct one_plan *o, struct fettle_quantized *out);

#endif
