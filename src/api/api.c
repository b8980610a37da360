/* The handle, what the last call has to say, and the lists of what there is. */
#include <stdlib.h>

#include "api/internal.h"
#include "config/keys.h"
#include "report/capability.h"
#include "report/json.h"
#include "tune/stop_words.h"

struct fettle *fettle_new(void)
{
	return xcalloc(1, sizeof(struct fettle));
}

void fettle_free(struct fettle *f)
{
	if (!f)
		return;
	context_release(&f->cx);
	free(f->model);
	free(f);
}

void api_clear(struct fettle *f)
{
	context_clear(&f->cx);
	free(f->model);
	f->model = NULL;
	f->model_size = 0;
}

void fettle_on_progress(struct fettle *f, fettle_progress call, void *self)
{
	f->cx.progress = call;
	f->cx.progress_self = self;
}

void fettle_interrupt(struct fettle *f)
{
	atomic_store(&f->cx.interrupted, true);
	if (f->cx.rt)
		runtime_stop(f->cx.rt);
}

void fettle_on_trial(struct fettle *f, fettle_on_trial_fn call, void *self)
{
	f->on_trial = call;
	f->on_trial_self = self;
}

/* ---- what the last call has to say ---- */

const char *fettle_message(const struct fettle *f)
{
	return f->cx.err.msg;
}

const char *fettle_note(const struct fettle *f, size_t i)
{
	return i < f->cx.notes.n ? f->cx.notes.v[i] : NULL;
}

const char *fettle_warning(const struct fettle *f, size_t i)
{
	return i < f->cx.warnings.n ? f->cx.warnings.v[i] : NULL;
}

bool fettle_scoring(const struct fettle *f, struct fettle_scoring *out)
{
	sized_give(out, &f->cx.scoring, sizeof(*out));
	return f->cx.scoring.metric != NULL;
}

#define GIVE_ONE(list)                                                                                       \
	do {                                                                                                 \
		if (i >= f->cx.list.n)                                                                       \
			return false;                                                                        \
		sized_give(out, &f->cx.list.v[i], sizeof(*out));                                             \
		return true;                                                                                 \
	} while (0)

bool fettle_fed(const struct fettle *f, size_t i, struct fettle_fed *out)
{
	GIVE_ONE(fed);
}

bool fettle_finetuned(const struct fettle *f, size_t i, struct fettle_finetuned *out)
{
	GIVE_ONE(finetuned);
}

bool fettle_fp32_op(const struct fettle *f, size_t i, struct fettle_fp32_op *out)
{
	GIVE_ONE(fp32_ops);
}

const void *fettle_model_bytes(const struct fettle *f, size_t *size)
{
	*size = f->model_size;
	return f->model;
}

/* ---- what there is ---- */

const char *fettle_version(void)
{
	return FETTLE_VERSION;
}

int fettle_version_number(void)
{
	return FETTLE_VERSION_NUMBER;
}

const char *fettle_runtime_version(void)
{
	return runtime_version();
}

const char *fettle_cpu(bool *saturates)
{
	struct cpu cpu = cpu_detect();

	if (saturates)
		*saturates = cpu.saturates;
	return cpu.name;
}

bool fettle_cpu_kind(size_t i, struct fettle_cpu_kind *out)
{
	if (i >= n_cpus)
		return false;
	sized_give(out,
		   &(struct fettle_cpu_kind){
			   .name = cpus[i].name, .summary = cpus[i].summary, .saturates = cpus[i].saturates },
		   sizeof(*out));
	return true;
}

bool fettle_recipe(size_t i, struct fettle_recipe *out)
{
	struct fettle_recipe r;

	if (!recipe_describe(i, &r))
		return false;
	sized_give(out, &r, sizeof(r));
	return true;
}

char *fettle_capability(void)
{
	return capability_text();
}

char *fettle_config_keys(void)
{
	return config_keys_text();
}

const char *fettle_strategy_name(size_t i, const char **summary)
{
	const struct strategy *s = strategy_at(i);

	if (s && summary)
		*summary = s->summary;
	return s ? s->name : NULL;
}

const char *fettle_metric_name(size_t i, const char **summary)
{
	const struct metric_type *t = metric_type_at(i);

	if (t && summary)
		*summary = t->summary;
	return t ? t->name : NULL;
}

const char *fettle_algorithm_name(size_t i, const char **summary)
{
	if (i >= RANGE_ALGORITHMS)
		return NULL;
	if (summary)
		*summary = range_methods[i]->summary;
	return range_methods[i]->name;
}

const char *fettle_block_algorithm_name(size_t i, const char **summary)
{
	if (i >= BLOCK_ALGORITHMS)
		return NULL;
	if (summary)
		*summary = block_methods[i]->summary;
	return block_methods[i]->name;
}

const char *fettle_stop_word(enum fettle_stop why)
{
	return stop_word(why);
}

const char *fettle_value_name(const char *metric, size_t i, char *buf, size_t n)
{
	return value_name(metric, i, buf, n);
}
