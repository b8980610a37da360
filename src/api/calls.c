/* The calls of fettle.h: each reads its own options, does its work by the options of all, and fills what the caller's version
 * of the result has. */
#include <stdlib.h>
#include <string.h>

#include "api/tune.h"

static enum fettle_status begin(struct fettle *f, struct options *o, const struct options_type *type,
				const void *in)
{
	api_clear(f);
	return options_read(o, type, in, &f->err);
}

/* what the recipe finetune did, in all */
static void sum_up(const struct fettle *f, struct fettle_quantized *q)
{
	size_t i;

	for (i = 0; i < f->finetuned.n; i++) {
		const struct fettle_finetuned *op = &f->finetuned.v[i];

		q->finetune_left += op->left != NULL;
		q->finetune_kept += op->kept;
		if (op->left || op->kept)
			continue;
		q->finetune_before += op->before;
		q->finetune_after += op->after;
		q->finetuned++;
	}
	if (q->finetuned) {
		q->finetune_before /= (double)q->finetuned;
		q->finetune_after /= (double)q->finetuned;
	}
}

enum fettle_status fettle_quantize(struct fettle *f, const struct fettle_quantize_options *in,
				   struct fettle_quantized *out)
{
	const struct fettle_quantize_options *given;
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct scratch s = { NULL, -1 };
	struct options o;
	enum fettle_status st = begin(f, &o, &options_quantize, in);

	given = o.given;
	if (!st && given->to_memory)
		st = memory_begin(f, &o.o, &s);
	if (!st)
		st = api_quantize(f, &o.o, &q);
	if (!st && given->to_memory)
		st = memory_keep(f, o.o.output);
	if (!st && given->output)
		q.output = arena_strdup(&f->told, given->output);
	memory_release(&o.o, &s);
	sum_up(f, &q);
	api_give(out, &q, sizeof(q));
	options_release(&o);
	return st;
}

enum fettle_status fettle_eval(struct fettle *f, const struct fettle_eval_options *in,
			       struct fettle_score *out)
{
	struct fettle_score score = FETTLE_SCORE_INIT;
	struct options o;
	enum fettle_status st = begin(f, &o, &options_eval, in);

	if (!st)
		st = api_eval(f, &o.o, &score);
	api_give(out, &score, sizeof(score));
	options_release(&o);
	return st;
}

enum fettle_status fettle_bench(struct fettle *f, const struct fettle_bench_options *in,
				struct fettle_timing *out)
{
	struct fettle_timing *timings = NULL;
	const struct fettle_bench_options *given;
	struct options o;
	enum fettle_status st = begin(f, &o, &options_bench, in);
	size_t i;

	given = o.given;
	if (!st && !given->n_models)
		st = fail(&f->err, FETTLE_INVALID, "cannot time models: none is given");
	if (!st) {
		timings = xcalloc(given->n_models, sizeof(*timings));
		st = api_bench(f, &o.o, given->models, given->n_models, timings);
	}
	for (i = 0; i < given->n_models && !st; i++) /* of the caller's version: as large as the first says */
		api_give((char *)out + i * out->size, &timings[i], sizeof(*timings));
	free(timings);
	options_release(&o);
	return st;
}

/* options of `bench` for a call that takes one model */
static enum fettle_status begin_one(struct fettle *f, struct options *o,
				    const struct fettle_bench_options *in)
{
	enum fettle_status st = begin(f, o, &options_bench, in);
	const struct fettle_bench_options *given = o->given;

	if (!st && given->n_models != 1)
		st = fail(&f->err, FETTLE_INVALID, "cannot measure %zu models: need a model, and only one",
			  given->n_models);
	o->o.model = st ? NULL : given->models[0];
	return st;
}

enum fettle_status fettle_footprint(struct fettle *f, const struct fettle_bench_options *in, size_t *bytes)
{
	struct options o;
	enum fettle_status st = begin_one(f, &o, in);

	if (!st)
		st = api_footprint(f, &o.o, bytes);
	options_release(&o);
	return st;
}

struct profile {
	struct fettle_profile pub;
	struct arena arena;
};

enum fettle_status fettle_profile(struct fettle *f, const struct fettle_bench_options *in,
				  struct fettle_profile **out)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	struct options o;
	enum fettle_status st = begin_one(f, &o, in);

	if (!st)
		st = api_profile(f, &o.o, &p->arena, &p->pub);
	if (st)
		fettle_profile_free(&p->pub);
	else
		*out = &p->pub;
	options_release(&o);
	return st;
}

void fettle_profile_free(struct fettle_profile *pub)
{
	struct profile *p = (struct profile *)pub;

	if (!p)
		return;
	arena_release(&p->arena);
	free(p);
}

struct fettle_tuned *tuned_publish(struct tuned *t)
{
	t->baseline.size = sizeof(t->baseline);
	t->best.size = sizeof(t->best);
	t->seconds.size = sizeof(t->seconds);
	t->saved.size = sizeof(t->saved);
	t->pub.size = sizeof(t->pub);
	t->pub.baseline = &t->baseline;
	t->pub.best = &t->best;
	t->pub.seconds = &t->seconds;
	t->pub.saved = &t->saved;
	return &t->pub;
}

/* A model that is too large for that stays where it was written. */
static enum fettle_status keep_tuned(struct fettle *f, bool to_memory, struct fettle_tuned **t)
{
	enum fettle_status st = to_memory ? memory_keep(f, (*t)->output) : FETTLE_OK;

	if (st) {
		fettle_tuned_free(*t);
		*t = NULL;
	}
	return st;
}

enum fettle_status fettle_tune(struct fettle *f, const struct fettle_tune_options *in,
			       struct fettle_tuned **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_tune, in);

	if (!st)
		st = api_tune(f, &o.o, out);
	if (!st)
		st = keep_tuned(f, ((const struct fettle_tune_options *)o.given)->to_memory, out);
	options_release(&o);
	return st;
}

enum fettle_status fettle_auto_search(struct fettle *f, const struct fettle_search_options *in,
				      struct fettle_tuned **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_search, in);

	if (!st)
		st = api_search(f, &o.o, out);
	if (!st)
		st = keep_tuned(f, ((const struct fettle_search_options *)o.given)->to_memory, out);
	options_release(&o);
	return st;
}

enum fettle_status fettle_resume(struct fettle *f, const struct fettle_resume_options *in,
				 struct fettle_tuned **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_resume, in);

	if (!st)
		st = api_resume(f, &o.o, out);
	if (!st)
		st = keep_tuned(f, ((const struct fettle_resume_options *)o.given)->to_memory, out);
	options_release(&o);
	return st;
}

static enum fettle_status print_config(struct fettle *f, const struct options_type *type, const void *in,
				       char **text)
{
	struct options o;
	enum fettle_status st = begin(f, &o, type, in);

	if (!st)
		st = api_config(f, &o.o, text);
	options_release(&o);
	return st;
}

enum fettle_status fettle_tune_config(struct fettle *f, const struct fettle_tune_options *in, char **text)
{
	return print_config(f, &options_tune, in, text);
}

enum fettle_status fettle_search_config(struct fettle *f, const struct fettle_search_options *in, char **text)
{
	return print_config(f, &options_search, in, text);
}

enum fettle_status fettle_sensitivity(struct fettle *f, const struct fettle_sensitivity_options *in,
				      struct fettle_sensitivity **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_sensitivity, in);

	if (!st)
		st = api_sensitivity(f, &o.o, out);
	options_release(&o);
	return st;
}

enum fettle_status fettle_recover(struct fettle *f, const struct fettle_recover_options *in)
{
	const struct fettle_recover_options *given;
	struct scratch s = { NULL, -1 };
	struct options o;
	enum fettle_status st = begin(f, &o, &options_recover, in);

	given = o.given;
	if (!st && !given->workspace)
		st = fail(&f->err, FETTLE_INVALID, "cannot recover: need a workspace");
	if (!st && given->to_memory)
		st = memory_begin(f, &o.o, &s);
	if (!st)
		st = api_recover(f, &o.o, given->workspace, given->trial);
	if (!st && given->to_memory)
		st = memory_keep(f, o.o.output);
	memory_release(&o.o, &s);
	options_release(&o);
	return st;
}

enum fettle_status fettle_inspect(struct fettle *f, const struct fettle_inspect_options *in,
				  struct fettle_inspection **out)
{
	struct options o;
	enum fettle_status st = begin(f, &o, &options_inspect, in);

	if (!st)
		st = api_inspect(f, &o.o, out);
	options_release(&o);
	return st;
}
