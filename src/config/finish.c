/* What follows from the settings together. It is run after every change, so it starts by forgetting what it
 * had derived before. */
#include <stdlib.h>
#include <string.h>

#include "config/read.h"
#include "data/dataset.h"
#include "strategy/strategy.h"

static void forget_derived(struct config *c)
{
	struct config_state *s = c->state;
	size_t i, n = 0;

	for (i = 0; i < s->notes.n; i++)
		if (!s->notes.v[i].derived)
			s->notes.v[n++] = s->notes.v[i];
	s->notes.n = n;
	for (i = n = 0; i < s->origins.n; i++)
		if (!s->origins.v[i].at.implied)
			s->origins.v[n++] = s->origins.v[i];
	s->origins.n = n;
	c->notes = s->notes.v;
	c->n_notes = s->notes.n;
}

/* `field`, which the user left open, follows from the one at `from`. */
static void imply(struct config *c, const void *field, const void *from)
{
	struct field_origin o = { .offset = (size_t)((const char *)field - (const char *)c) };
	const struct config_origin *at = config_origin(c, from);

	if (at)
		o.at = *at;
	o.at.implied = true;
	VEC_PUSH(&c->state->origins, o);
}

/* An enum that follows from another setting when that holds, and else is its default. */
static void imply_int(struct config *c, int *field, bool holds, int value, const void *from)
{
	const struct config *d = c->state->defaults;

	if (config_is_set(c, field))
		return;
	memcpy(field, (const char *)d + ((char *)field - (char *)c), sizeof(*field));
	if (!holds)
		return;
	*field = value;
	imply(c, field, from);
}

static void finish_framework(struct config *c)
{
	const int *from = &c->model.framework;
	const struct config_origin *at = config_origin(c, from);

	imply_int(c, &c->quantization.format, *from == FRAMEWORK_QLINEAR, FORMAT_QOPERATOR, from);
	imply_int(c, &c->quantization.approach, *from == FRAMEWORK_INTEGER, APPROACH_DYNAMIC, from);
	if (!at)
		return;
	if (*from >= FRAMEWORK_OTHER)
		add_note(
			c, at, true,
			"model.framework matters only to what transforms mean: any ONNX model is read alike");
	if (*from == FRAMEWORK_QLINEAR && c->quantization.format != FORMAT_QOPERATOR)
		add_note(c, at, true,
			 "model.framework says QOperator, but quantization.quant_format overrides it");
	if (*from == FRAMEWORK_INTEGER && c->quantization.approach != APPROACH_DYNAMIC)
		add_note(c, at, true, "model.framework says dynamic, but quantization.approach overrides it");
}

static void finish_sequential(struct config *c)
{
	const bool *on = &c->recipes.on[RECIPE_true_sequential];
	const int approach = c->quantization.approach;

	if (*on && approach != APPROACH_WEIGHT && approach != APPROACH_ALL && config_origin(c, on))
		add_note(c, config_origin(c, on), true,
			 "recipe true_sequential is for weight-only ops, which this approach does not have");
}

static enum transform_dialect dialect_of(int framework)
{
	if (framework == FRAMEWORK_NONE)
		return DIALECT_NONE;
	if (framework >= FRAMEWORK_TENSORFLOW && framework <= FRAMEWORK_KERAS)
		return DIALECT_TENSORFLOW;
	if (framework >= FRAMEWORK_PYTORCH && framework <= FRAMEWORK_PYTORCH_IPEX)
		return DIALECT_PYTORCH;
	return DIALECT_ONNXRT;
}

static void finish_transforms(struct config *c)
{
	const struct config_transforms *const lists[] = { &c->calibration.dataloader.transforms,
							  &c->evaluation.dataloader.transforms };
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(lists); i++)
		for (k = 0; k < lists[i]->n; k++) {
			lists[i]->v[k].dialect = dialect_of(c->model.framework);
			lists[i]->v[k].seed = (uint64_t)c->tuning.random_seed;
		}
}

static void finish_strategy(struct config *c)
{
	const struct config_origin *at = config_origin(c, &c->tuning.strategy);
	const struct strategy *known = strategy_find(c->tuning.strategy);

	if (known) /* in the spelling that everything else knows */
		c->tuning.strategy = known->name;
	/* INC 1.x knows no levels: who names a strategy means it */
	imply_int(c, &c->tuning.quant_level, at != NULL, QUANT_LEVEL_1, &c->tuning.strategy);
	if (at && c->tuning.quant_level != QUANT_LEVEL_1 && strcmp(c->tuning.strategy, "basic") != 0)
		add_note(c, at, true, "tuning.strategy.name has no effect: tuning.quant_level is %s, need 1",
			 c->tuning.quant_level == QUANT_LEVEL_AUTO ? "auto" : "0");
}

static enum fettle_status finish_sampling(struct config *c, struct err *err)
{
	struct config_ints *size = &c->calibration.sampling_size;
	int64_t samples = (int64_t)c->calibration.iterations * c->calibration.dataloader.batch_size;
	const struct config_origin *at = config_origin(c, size);

	if (at) {
		if (!samples || (size->n == 1 && size->v[0] == samples))
			return FETTLE_OK;
		return config_fail(
			at, FETTLE_INVALID, err,
			"cannot set quantization.calibration.sampling_size: iterations is set too, "
			"need one of them");
	}
	*size = c->state->defaults->calibration.sampling_size;
	if (!samples)
		return FETTLE_OK;
	size->v = arena_alloc(&c->state->arena, sizeof(*size->v));
	size->v[0] = samples;
	imply(c, size, &c->calibration.iterations);
	return FETTLE_OK;
}

static enum fettle_status check_length(struct config *c, const void *field, const char *name, size_t n,
				       struct err *err)
{
	if (!n || n == c->tuning.objectives.n)
		return FETTLE_OK;
	return config_fail(config_origin(c, field), FETTLE_INVALID, err,
			   "cannot set tuning.multi_objectives.%s: %zu values, need %zu, one per objective",
			   name, n, c->tuning.objectives.n);
}

static enum fettle_status finish_objectives(struct config *c, struct err *err)
{
	const struct config_ints *list = &c->tuning.objectives;
	bool found = !list->n;
	enum fettle_status st;
	size_t i, j;

	st = check_length(c, &c->tuning.weights, "weight", c->tuning.weights.n, err);
	if (!st)
		st = check_length(c, &c->tuning.higher_is_better_each, "higher_is_better",
				  c->tuning.higher_is_better_each.n, err);
	for (i = 0; !st && i < list->n; i++)
		for (j = 0; !st && j < i; j++)
			if (list->v[i] == list->v[j])
				st = config_fail(
					config_origin(c, list), FETTLE_INVALID, err,
					"cannot set tuning.multi_objectives.objective: one of them is "
					"there twice");
	if (st)
		return st;
	for (i = 0; i < list->n; i++) {
		bool given = list->v[i] == OBJECTIVE_ACCURACY && c->tuning.higher_is_better_each.n;

		if (given && config_is_set(c, &c->tuning.higher_is_better) &&
		    c->tuning.higher_is_better != config_higher_is_better(c, i))
			add_note(c, config_origin(c, &c->tuning.higher_is_better_each), true,
				 "tuning.multi_objectives.higher_is_better of the accuracy has no effect: "
				 "accuracy_criterion says otherwise");
	}
	for (i = 0; i < list->n; i++)
		if (list->v[i] != OBJECTIVE_ACCURACY) {
			imply_int(c, &c->tuning.objective, true, (int)list->v[i], list);
			break;
		}
	if (!list->n)
		imply_int(c, &c->tuning.objective, false, 0, list);
	for (i = 0; i < list->n; i++)
		found |= list->v[i] == c->tuning.objective || !config_is_set(c, &c->tuning.objective);
	if (!found)
		return config_fail(config_origin(c, &c->tuning.objective), FETTLE_INVALID, err,
				   "cannot set tuning.objective: multi_objectives is set too and does not "
				   "name it, need one of them");
	return FETTLE_OK;
}

static void note_bf16(struct config *c, const struct config_constraint *constraint)
{
	const struct config_allowed *const sides[] = { &constraint->weight.dtype,
						       &constraint->activation.dtype };
	size_t i;

	for (i = 0; i < ARRAY_LEN(sides); i++)
		if (sides[i]->mask & CONFIG_BF16)
			add_note(c, &sides[i]->at, true,
				 "dtype bf16 is not available, fp32 is used in its place");
}

/* Numbers of classes for names, where labels have numbers already. */
static void note_label_map(struct config *c)
{
	const struct config_dataloader *d = &c->evaluation.dataloader;
	char *others = NULL;

	if (d->label_map && !(d->dataset.kind && dataset_takes(d->dataset.kind, "label_map", &others)))
		add_note(c, config_origin(c, &d->label_map), true,
			 "evaluation.accuracy.anno_path has no effect: the labels of %s are class numbers",
			 d->dataset.kind ? d->dataset.kind : "the data");
	free(others);
}

/* What answers are made with, where none are made. */
static void note_squad(struct config *c)
{
	const struct squad_files *f = &c->evaluation.dataloader.squad;
	const struct {
		const char *key;
		const void *field;
	} keys[] = { { "label_file", &f->label_file },
		     { "vocab_file", &f->vocab_file },
		     { "do_lower_case", &f->lower },
		     { "max_seq_length", &f->max_seq_length } };
	const char *metric = c->evaluation.metric;
	size_t i;

	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (config_is_set(c, keys[i].field) && !(metric && strncmp(metric, "squad", 5) == 0))
			add_note(c, config_origin(c, keys[i].field), true,
				 "SquadV1's %s has no effect: the metric is %s, need SquadF1", keys[i].key,
				 metric ? metric : "not named");
}

static void finish_notes(struct config *c)
{
	const struct config_constraints *const lists[] = { &c->quantization.op_type_wise,
							   &c->quantization.op_wise };
	size_t i, j;

	if (config_is_set(c, &c->device))
		add_note(c, config_origin(c, &c->device), true, "device has no effect: cpu is the only one");
	if (config_is_set(c, &c->backend))
		add_note(c, config_origin(c, &c->backend), true,
			 "backend has no effect: ONNX Runtime's cpu is the only one");
	note_label_map(c);
	note_squad(c);
	note_bf16(c, &c->quantization.model_wise);
	for (i = 0; i < ARRAY_LEN(lists); i++)
		for (j = 0; j < lists[i]->n; j++)
			note_bf16(c, &lists[i]->v[j]);
}

/* what one space says, for 'fettle search' */
static enum fettle_status check_space(const struct config *c, const struct config_space *s, struct err *err)
{
	const struct config_origin *pairs = config_origin(c, &s->num_iter_lr);

	if (pairs && (s->num_iterations.n || s->learning_rate.n))
		return config_fail(pairs, FETTLE_INVALID, err,
				   "cannot set NumIterLR: %s is set too, need one of them",
				   s->num_iterations.n ? "NumIterations" : "LearningRate");
	if (s->calib_moving_average_constant.n > OBSERVER_AVERAGES)
		return config_fail(config_origin(c, &s->calib_moving_average_constant), FETTLE_INVALID, err,
				   "cannot set CalibMovingAverageConstant: %zu values, need at most %d",
				   s->calib_moving_average_constant.n, OBSERVER_AVERAGES);
	return FETTLE_OK;
}

static enum fettle_status finish_search(struct config *c, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	/* -1: no limit */
	if (c->search.find_n_candidates < 0)
		c->search.find_n_candidates = 0;
	if (c->search.find_best_candidate < 0)
		c->search.find_best_candidate = 0;
	if (c->search.iteration_limit < 0)
		c->search.iteration_limit = 0;
	if (c->search.time_limit < 0)
		c->search.time_limit = 0;
	for (i = 0; i < CONFIG_SPACES && !st; i++)
		st = check_space(c, &c->search.spaces[i], err);
	return st;
}

enum fettle_status config_finish(struct config *c, struct err *err)
{
	enum fettle_status st;

	forget_derived(c);
	if (c->evaluation.iterations < 0)
		c->evaluation.iterations = 0;
	if (c->tuning.criterion == CRITERION_RELATIVE && c->tuning.tolerable_loss > 1)
		return config_fail(config_origin(c, &c->tuning.tolerable_loss), FETTLE_INVALID, err,
				   "cannot set tuning.accuracy_criterion.tolerable_loss: %g, need at most 1 "
				   "where it is relative",
				   c->tuning.tolerable_loss);
	finish_framework(c);
	finish_sequential(c);
	finish_transforms(c);
	finish_strategy(c);
	st = finish_sampling(c, err);
	if (!st)
		st = finish_objectives(c, err);
	if (!st)
		st = finish_search(c, err);
	finish_notes(c);
	return st;
}
