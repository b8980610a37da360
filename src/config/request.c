#include "config/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config/resume.h"
#include "base/file.h"
#include "config/yaml.h"
#include "evaluate/evaluate.h"
#include "tune/runs.h"
#include "base/str.h"

/* options that are settings of the configuration too */
static const struct {
	size_t offset;
	const char *key, *origin;
} texts[] = {
#define TEXT(field, key, flag)                                                                               \
	{                                                                                                    \
		offsetof(struct call_options, field), key, flag                                              \
	}
	TEXT(calib, "quantization.calibration.dataloader.dataset", "--calib"),
	TEXT(eval, "evaluation.accuracy.dataloader.dataset", "--eval"),
	TEXT(metric, "evaluation.accuracy.metric", "--metric"),
	TEXT(scores, "model.outputs", "--scores"),
	TEXT(eval_cmd, "evaluation.accuracy.eval_cmd", "--eval-cmd"),
	TEXT(eval_server, "evaluation.accuracy.eval_server", "--eval-server"),
	TEXT(approach, "quantization.approach", "--approach"),
	TEXT(format, "quantization.quant_format", "--format"),
	TEXT(cpu, "quantization.cpu", "--cpu"),
};

/* In any order: a value that only goes with another, such as a loss over 1 with an absolute criterion, is tried
 * again after it. */
static enum fettle_status set_settings(struct request *r, struct err *err)
{
	const struct fettle_setting *s = r->o.settings;
	size_t i, n = r->o.n_settings, left = n, before;
	bool *done = xcalloc(n, sizeof(*done));
	enum fettle_status st;

	do {
		before = left;
		st = FETTLE_OK;
		for (i = 0; i < n; i++) {
			enum fettle_status one;

			if (done[i])
				continue;
			/* the message that is left is the first one's */
			one = config_set(r->c, s[i].key, s[i].value, s[i].origin, st ? NULL : err);
			done[i] = !one;
			left -= !one;
			st = st ? st : one;
		}
	} while (left && left < before);
	free(done);
	return st;
}

static bool is_on(const char *value)
{
	return strcasecmp(value, "on") == 0 || strcasecmp(value, "true") == 0;
}

static bool is_off(const char *value)
{
	return strcasecmp(value, "off") == 0 || strcasecmp(value, "false") == 0;
}

/* recipes.NAME, or recipes.MAP.NAME */
static enum fettle_status set_key(struct request *r, const char *map, const char *name, const char *value,
				  struct err *err)
{
	char *key = xstrfmt("quantization.recipes.%s%s%s", map ? map : "", map ? "." : "", name);
	enum fettle_status st = config_set(r->c, key, value, "--recipe", err);

	free(key);
	return st;
}

/* one of the recipe's words, and maybe one of a setting: "gram:block" */
static enum fettle_status set_words(struct request *r, const struct recipe *i, const char *text,
				    struct err *err)
{
	const char *colon = strchr(text, ':');
	char *way = colon ? xstrfmt("%.*s", (int)(colon - text), text) : xstrdup(text);
	const struct recipe_key *k = i->keys;
	enum fettle_status st;

	while (k->name && !k->brief)
		k++;
	st = set_key(r, NULL, i->name,
		     is_on(way)    ? i->words[recipe_way(&r->c->recipes.keys, i)]
		     : is_off(way) ? i->words[0]
				   : way,
		     err);
	if (!st && colon && !k->name)
		st = fail(err, FETTLE_INVALID, "cannot apply recipe '%s': value '%s', need one word", i->name,
			  text);
	if (!st && colon)
		st = set_key(r, i->map, k->name, colon + 1, err);
	free(way);
	return st;
}

static enum fettle_status unknown_recipe(const char *name, struct err *err)
{
	const char *names[RECIPES + 2], *near;
	size_t n;

	for (n = 0; n < RECIPES; n++)
		names[n] = recipe_list[n]->name;
	names[n++] = "auto_mp";
	names[n++] = "rewrite_graph";
	near = str_nearest(name, names, n);
	return fail(err, FETTLE_INVALID, "cannot apply recipe '%s': there is none of that name%s%s%s", name,
		    near ? ", did you mean '" : "; 'fettle inspect --recipes' lists them", near ? near : "",
		    near ? "'?" : "");
}

static enum fettle_status set_named_recipe(struct request *r, const char *name, const char *value,
					   struct err *err)
{
	const struct recipe *i = recipe_find(name);
	/* keys among the recipes that are no part of a plan */
	const char *key = strcmp(name, "auto_mp") == 0 || strcmp(name, "include_auto_mp") == 0
				  ? "include_auto_mp"
			  : strcmp(name, "rewrite_graph") == 0 ? "rewrite_graph"
							       : NULL;
	bool number = i && i->number && !is_on(value) && !is_off(value);
	enum fettle_status st;

	if (!i && !key)
		return unknown_recipe(name, err);
	if (i && i->words)
		return set_words(r, i, value, err);
	if (!is_on(value) && !is_off(value) && !number)
		return fail(err, FETTLE_INVALID, "cannot apply recipe '%s': value '%s', need on or off",
			    i ? i->name : name, value);
	st = set_key(r, NULL, key ? key : i->name, is_off(value) ? "false" : "true", err);
	if (!st && number)
		st = set_key(r, i->number->map, i->number->key, value, err);
	return st;
}

/* "cle", "cle=off", "smooth_quant=0.6", "finetune=gram" */
static enum fettle_status set_recipe(struct request *r, const char *text, struct err *err)
{
	const char *value = strchr(text, '=');
	char *name = value ? xstrfmt("%.*s", (int)(value - text), text) : xstrdup(text);
	enum fettle_status st = set_named_recipe(r, name, value ? value + 1 : "on", err);

	free(name);
	return st;
}

static bool is_data(size_t option)
{
	return option == offsetof(struct call_options, calib) ||
	       option == offsetof(struct call_options, eval);
}

/* DATA of a registered kind, "NAME:ROOT", as the configuration has it */
static enum fettle_status set_data(struct request *r, const char *key, const struct fettle_dataset *def,
				   const char *root, const char *origin, struct err *err)
{
	struct str text = STR_INIT;
	enum fettle_status st;

	str_addf(&text, "{");
	yaml_print_text(def->name, &text);
	str_addf(&text, ": {root: ");
	yaml_print_text(root, &text);
	str_addf(&text, "}}");
	st = config_set(r->c, key, text.s, origin, err);
	str_release(&text);
	return st;
}

static enum fettle_status set_texts(struct request *r, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < ARRAY_LEN(texts) && !st; i++) {
		const char *value = *(const char *const *)((const char *)&r->o + texts[i].offset);

		const char *root;
		const struct fettle_dataset *own =
			value && is_data(texts[i].offset)
				? registered_dataset_named(&r->cx->members, value, &root)
				: NULL;

		if (own)
			st = set_data(r, texts[i].key, own, root, texts[i].origin, err);
		else if (value)
			st = config_set(r->c, texts[i].key, value, texts[i].origin, err);
	}
	for (i = 0; i < r->o.n_recipes && !st; i++)
		st = set_recipe(r, r->o.recipes[i], err);
	return st ? st : set_settings(r, err);
}

/* a model in memory goes to a file, for the runtime and evaluators read files */
static enum fettle_status write_model(struct request *r, struct err *err)
{
	enum fettle_status st;
	FILE *file;

	if (r->o.model || !r->o.model_size)
		return fail(err, FETTLE_INVALID, "cannot use a model of %zu bytes in memory: need %s",
			    r->o.model_size, r->o.model ? "either a path or bytes" : "its size");
	st = scratch_new(&r->scratch, err);
	if (st)
		return st;
	r->o.model = r->temp = scratch_path(&r->scratch, "model.onnx");
	file = fopen(r->temp, "wbe");
	if (!file)
		return fail(err, FETTLE_SYSTEM, "cannot write %s: %s", r->temp, strerror(errno));
	fwrite(r->o.model_bytes, 1, r->o.model_size, file);
	if (ferror(file) | fclose(file))
		return fail(err, FETTLE_SYSTEM, "cannot write %s: %s", r->temp, strerror(errno));
	return FETTLE_OK;
}

static enum fettle_status check_source(const struct fettle_data_source *s, const char *path, const char *what,
				       struct err *err)
{
	if (!s)
		return FETTLE_OK;
	if (path)
		return fail(err, FETTLE_INVALID,
			    "cannot read the %s data: %s and a source are given, need one of them", what,
			    path);
	if (s->size != sizeof(*s)) /* the first version: there is no older one */
		return fail(err, FETTLE_INVALID, "cannot read the %s data: a source of size %zu, need %zu",
			    what, s->size, sizeof(*s));
	return FETTLE_OK;
}

static enum fettle_status open_config(struct request *r, const struct members *m, struct err *err)
{
	const struct run_request *resumed = r->o.resumed;
	size_t i;

	r->metrics.v = xcalloc(m->metrics.n, sizeof(*r->metrics.v));
	for (i = 0; i < m->metrics.n; i++)
		r->metrics.v[r->metrics.n++] = m->metrics.v[i]->def.name;
	return config_open(&r->c,
			   &(struct config_source){ .path = r->o.config,
						    .text = resumed ? resumed->config : NULL,
						    .folder = resumed ? resumed->folder : NULL,
						    .metrics = r->metrics },
			   err);
}

/* the result must not take the place of what it is made from */
static enum fettle_status check_output(const struct request *r, struct err *err)
{
	const struct {
		const char *path, *what;
	} inputs[] = { { r->o.model, "the model it is made from" },
		       { r->c->calibration.dataloader.dataset.root, "the calibration data" },
		       { r->c->evaluation.dataloader.dataset.root, "the evaluation data" },
		       { r->o.config, "the configuration" },
		       { r->o.holdout, "the holdout data" },
		       { r->o.plan, "the plan" } };
	const char *name = r->o.output ? path_base(r->o.output) : "";
	size_t i;

	for (i = 0; i < ARRAY_LEN(inputs); i++)
		if (path_same(r->o.output, inputs[i].path))
			return fail(err, FETTLE_INVALID, "cannot write %s: it is %s, choose another name",
				    r->o.output, inputs[i].what);
	if (str_starts(name, "history.") || strcmp(name, "best_plan.json") == 0 ||
	    strcmp(name, RESULT_FILE) == 0)
		return fail(err, FETTLE_INVALID,
			    "cannot write %s: '%s' is a name of the workspace's own, choose another",
			    r->o.output, name);
	return FETTLE_OK;
}

const char *request_evaluator(const struct request *r)
{
	return r->c->evaluation.server    ? "eval-server"
	       : r->c->evaluation.command ? "eval-cmd"
	       : r->o.evaluate            ? "evaluator"
					  : NULL;
}

static enum fettle_status check_evaluator(const struct request *r, struct err *err)
{
	const char *command = r->c->evaluation.command, *server = r->c->evaluation.server;

	if (!!command + !!server + !!r->o.evaluate < 2)
		return command ? evaluate_command_check(command, err) : FETTLE_OK;
	return fail(err, FETTLE_INVALID, "cannot evaluate: %s, need one of them",
		    !r->o.evaluate ? "both a command and a server are given"
				   : "both a program and a function are given");
}

static void tell(void *cx, const char *text)
{
	context_note(cx, text);
}

/* what the user has set and does nothing */
static void note_unused(struct request *r, enum config_command command)
{
	const char *strategy = config_strategy(r->c);
	const struct config_ints *sizes = &r->c->calibration.sampling_size;
	size_t i;

	for (i = 0; i < r->c->n_notes; i++)
		context_note(r->cx, r->c->notes[i].text);
	if (!command)
		return;
	config_unused(r->c, command,
		      registered_strategy_find(&r->cx->members, strategy) ? "custom" : strategy, tell, r->cx);
	if (sizes->n > 1 && command & (CONFIG_SEARCH | CONFIG_QUANTIZE | CONFIG_SENSITIVITY)) {
		char *text = xstrfmt(
			"of %zu sampling sizes only the first, %lld, is used: only tune tries several",
			sizes->n, (long long)sizes->v[0]);

		context_note(r->cx, text);
		free(text);
	}
}

/* Accuracy is measured as on the CPU that is planned for, as far as that is possible here. */
static enum fettle_status choose_cpu(struct request *r, struct context *cx)
{
	const struct cpu here = cx->cpu;
	enum fettle_status st;
	char *text;

	if (!r->c->quantization.cpu)
		return FETTLE_OK;
	st = cpu_read(r->c->quantization.cpu, &cx->cpu, &cx->err);
	if (st || strcmp(cx->cpu.name, here.name) == 0)
		return st;
	runtime_exact(cx->rt, here.saturates && !cx->cpu.saturates);
	text = xstrfmt("planned for CPU %s; speed is measured on this one, %s", cx->cpu.name, here.name);
	context_note(cx, text);
	free(text);
	return FETTLE_OK;
}

enum fettle_status request_begin(struct request *r, struct context *cx, const struct call_options *in,
				 enum config_command command)
{
	enum fettle_status st;
	char number[32];

	*r = (struct request){ .cx = cx, .command = command };
	r->o = *in;
	st = context_begin(cx);
	if (!st && (in->threads < 0 || in->threads > 1024))
		st = fail(&cx->err, FETTLE_INVALID, "cannot use %d threads: need 0 (all cores) to 1024",
			  in->threads);
	if (!st)
		st = check_source(r->o.calib_source, r->o.calib, "calibration", &cx->err);
	if (!st)
		st = check_source(r->o.eval_source, r->o.eval, "evaluation", &cx->err);
	if (!st && r->o.model_bytes)
		st = write_model(r, &cx->err);
	if (!st)
		st = open_config(r, &cx->members, &cx->err);
	if (!st)
		st = set_texts(r, &cx->err);
	if (!st)
		st = request_check_data(r);
	if (!st && r->o.calib_samples) {
		snprintf(number, sizeof(number), "%zu", r->o.calib_samples);
		st = config_set(r->c, "quantization.calibration.sampling_size", number, "--samples",
				&cx->err);
	}
	if (!st && command & (CONFIG_TUNE | CONFIG_INSPECT))
		config_open_approach(r->c);
	if (!st)
		st = choose_cpu(r, cx);
	if (!st)
		r->threads = r->o.threads ? r->o.threads : r->c->evaluation.threads;
	if (!st)
		st = check_output(r, &cx->err);
	if (!st)
		st = check_evaluator(r, &cx->err);
	if (!st)
		note_unused(r, command);
	return st;
}

void request_release(struct request *r)
{
	config_free(r->c);
	r->c = NULL;
	free(r->metrics.v);
	r->metrics = (struct config_strings){ NULL, 0 };
	scratch_release(&r->scratch);
	free(r->temp);
	r->temp = NULL;
	arena_release(&r->arena);
}

struct scores_asked request_scores(struct request *r)
{
	const struct config_strings *outputs = &r->c->model.outputs;

	return (struct scores_asked){ .metric = r->c->evaluation.metric,
				      .outputs = outputs->v,
				      .n_outputs = outputs->n,
				      .where = config_where(config_origin(r->c, outputs), &r->arena) };
}
