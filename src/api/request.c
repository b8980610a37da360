#include "api/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/arrays.h"
#include "api/own.h"
#include "api/resume.h"
#include "base/file.h"
#include "config/yaml.h"
#include "base/str.h"

/* options that are settings of the configuration too */
static const struct {
	size_t offset;
	const char *key, *origin;
} texts[] = {
#define TEXT(field, key, flag)                                                                               \
	{                                                                                                    \
		offsetof(struct fettle_options, field), key, flag                                            \
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
	struct fettle_recipe r = FETTLE_RECIPE_INIT;
	const char *names[RECIPES + 1], *near;
	size_t n;

	for (n = 0; n < ARRAY_LEN(names) && fettle_recipe(n, &r); n++)
		names[n] = r.name;
	near = str_nearest(name, names, n);
	return fail(err, FETTLE_INVALID, "cannot apply recipe '%s': there is none of that name%s%s%s", name,
		    near ? ", did you mean '" : "; 'fettle inspect --recipes' lists them", near ? near : "",
		    near ? "'?" : "");
}

static enum fettle_status set_named_recipe(struct request *r, const char *name, const char *value,
					   struct err *err)
{
	const struct recipe *i = recipe_find(name);
	bool mixed = strcmp(name, "auto_mp") == 0 || strcmp(name, "include_auto_mp") == 0;
	bool number = i && i->number && !is_on(value) && !is_off(value);
	enum fettle_status st;

	if (!i && !mixed)
		return unknown_recipe(name, err);
	if (i && i->words)
		return set_words(r, i, value, err);
	if (!is_on(value) && !is_off(value) && !number)
		return fail(err, FETTLE_INVALID, "cannot apply recipe '%s': value '%s', need on or off",
			    i ? i->name : "auto_mp", value);
	st = set_key(r, NULL, mixed ? "include_auto_mp" : i->name, is_off(value) ? "false" : "true", err);
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
	return option == offsetof(struct fettle_options, calib) ||
	       option == offsetof(struct fettle_options, eval);
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
			value && is_data(texts[i].offset) ? own_dataset_named(r->f, value, &root) : NULL;

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
	FILE *f;

	if (r->o.model || !r->o.model_size)
		return fail(err, FETTLE_INVALID, "cannot use a model of %zu bytes in memory: need %s",
			    r->o.model_size, r->o.model ? "either a path or bytes" : "its size");
	st = scratch_new(&r->scratch, err);
	if (st)
		return st;
	r->o.model = r->temp = scratch_path(&r->scratch, "model.onnx");
	f = fopen(r->temp, "wbe");
	if (!f)
		return fail(err, FETTLE_SYSTEM, "cannot write %s: %s", r->temp, strerror(errno));
	fwrite(r->o.model_bytes, 1, r->o.model_size, f);
	if (ferror(f) | fclose(f))
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

static enum fettle_status open_config(struct request *r, const struct fettle *f, struct err *err)
{
	size_t i;

	r->metrics.v = xcalloc(f->metrics.n, sizeof(*r->metrics.v));
	for (i = 0; i < f->metrics.n; i++)
		r->metrics.v[r->metrics.n++] = f->metrics.v[i]->def.name;
	return config_open(&r->c,
			   &(struct config_source){ .path = r->o.config,
						    .text = f->resumed ? f->resumed->config : NULL,
						    .folder = f->resumed ? f->resumed->folder : NULL,
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
	if (str_starts(name, "history.") || strcmp(name, "best_plan.json") == 0)
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
		return FETTLE_OK;
	return fail(err, FETTLE_INVALID, "cannot evaluate: %s, need one of them",
		    !r->o.evaluate ? "both a command and a server are given"
				   : "both a program and a function are given");
}

static void tell(void *f, const char *text)
{
	api_note(f, text);
}

/* what the user has set and does nothing */
static void note_unused(struct request *r, enum config_command command)
{
	const char *strategy = config_strategy(r->c);
	const struct config_ints *sizes = &r->c->calibration.sampling_size;
	size_t i;

	for (i = 0; i < r->c->n_notes; i++)
		api_note(r->f, r->c->notes[i].text);
	if (!command)
		return;
	config_unused(r->c, command, own_strategy_find(r->f, strategy) ? "custom" : strategy, tell, r->f);
	if (sizes->n > 1 && command & (CONFIG_SEARCH | CONFIG_QUANTIZE | CONFIG_SENSITIVITY)) {
		char *text = xstrfmt(
			"of %zu sampling sizes only the first, %lld, is used: only tune tries several",
			sizes->n, (long long)sizes->v[0]);

		api_note(r->f, text);
		free(text);
	}
}

/* Accuracy is measured as on the CPU that is planned for, as far as that is possible here. */
static enum fettle_status choose_cpu(struct request *r, struct fettle *f)
{
	const struct cpu here = f->cpu;
	enum fettle_status st;
	char *text;

	if (!r->c->quantization.cpu)
		return FETTLE_OK;
	st = cpu_read(r->c->quantization.cpu, &f->cpu, &f->err);
	if (st || strcmp(f->cpu.name, here.name) == 0)
		return st;
	runtime_exact(f->rt, here.saturates && !f->cpu.saturates);
	text = xstrfmt("planned for CPU %s; speed is measured on this one, %s", f->cpu.name, here.name);
	api_note(f, text);
	free(text);
	return FETTLE_OK;
}

enum fettle_status request_begin(struct request *r, struct fettle *f, const struct fettle_options *in,
				 enum config_command command)
{
	enum fettle_status st;
	char number[32];

	*r = (struct request){ .f = f, .command = command };
	st = api_begin(f, in, &r->o);
	if (!st)
		st = check_source(r->o.calib_source, r->o.calib, "calibration", &f->err);
	if (!st)
		st = check_source(r->o.eval_source, r->o.eval, "evaluation", &f->err);
	if (!st && r->o.model_bytes)
		st = write_model(r, &f->err);
	if (!st)
		st = open_config(r, f, &f->err);
	if (!st)
		st = set_texts(r, &f->err);
	if (!st && r->o.calib_samples) {
		snprintf(number, sizeof(number), "%zu", r->o.calib_samples);
		st = config_set(r->c, "quantization.calibration.sampling_size", number, "--samples", &f->err);
	}
	if (!st)
		st = choose_cpu(r, f);
	if (!st)
		r->threads = r->o.threads ? r->o.threads : r->c->evaluation.threads;
	if (!st)
		st = check_output(r, &f->err);
	if (!st)
		st = check_evaluator(r, &f->err);
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
}

/* the caller's own data, over what the configuration says; NULL: none */
static const struct fettle_data_source *source_of(const struct request *r, const struct config_dataloader *d)
{
	return d == &r->c->calibration.dataloader  ? r->o.calib_source
	       : d == &r->c->evaluation.dataloader ? r->o.eval_source
						   : NULL;
}

static const struct fettle_dataset *registered_kind(const struct request *r,
						    const struct config_dataloader *d)
{
	return d->dataset.kind ? own_dataset_find(r->f, d->dataset.kind) : NULL;
}

bool request_data_is_own(const struct request *r, const struct config_dataloader *d)
{
	const struct fettle_data_source *source = source_of(r, d);

	return (source && !source_is_arrays(source)) || registered_kind(r, d);
}

bool request_has_data(const struct request *r, const struct config_dataloader *d)
{
	return source_of(r, d) || d->dataset.root != NULL || registered_kind(r, d);
}

static enum fettle_status check_kind(const struct config_dataset *d, const char *what, struct err *err)
{
	const char *near;
	enum fettle_status st;
	char *known;
	size_t i;

	if (!d->kind)
		return FETTLE_OK;
	for (i = 0; i < d->params.n && dataset_is_kind(d->kind); i++) {
		if (dataset_takes(d->kind, d->params.v[i].key, &known))
			continue;
		st = config_fail(&d->params.v[i].at, FETTLE_INVALID, err,
				 "unknown key '%s' of dataset %s, need %s", d->params.v[i].key, d->kind,
				 known);
		free(known);
		return st;
	}
	if (dataset_is_kind(d->kind))
		return FETTLE_OK;
	known = dataset_kinds_text(d->kind, &near);
	st = fail(err, FETTLE_UNSUPPORTED, "cannot read the %s data: dataset '%s', need %s%s%s%s", what,
		  d->kind, known, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	free(known);
	return st;
}

/* Which images a model takes says the model: those with one channel are grey. */
static int image_channels(const struct input_spec *specs, size_t n)
{
	const int64_t *dims = specs[0].dims;
	bool colour, grey;

	if (n != 1 || specs[0].rank != 4)
		return 0;
	colour = dims[1] == 3 || dims[3] == 3;
	grey = dims[1] == 1 || dims[3] == 1;
	return grey && !colour ? 1 : 0;
}

static enum fettle_status open_data(struct dataset **out, const struct request *r,
				    const struct config_dataloader *d, const char *what,
				    const struct input_spec *specs, size_t n, struct err *err)
{
	struct dataset_options opt = { .transforms = d->transforms.v,
				       .n_transforms = d->transforms.n,
				       .channels = n ? image_channels(specs, n) : 0,
				       .n_wanted = n };
	const char **names = xcalloc(n + 1, sizeof(*names));
	struct dataset_param *params = xcalloc(d->dataset.params.n + 1, sizeof(*params));
	const struct fettle_data_source *source = source_of(r, d);
	enum fettle_status st;

	size_t i;

	for (i = 0; i < n; i++)
		names[i] = specs[i].name;
	opt.wanted = names;
	for (i = 0; i < d->dataset.params.n; i++)
		params[i] =
			(struct dataset_param){ d->dataset.params.v[i].key, d->dataset.params.v[i].value };
	opt.kind = d->dataset.kind;
	opt.params = params;
	opt.n_params = d->dataset.params.n;
	if (source) {
		st = dataset_open_source(out, source, &opt, err);
		goto out;
	}
	if (registered_kind(r, d)) {
		st = own_dataset_open(registered_kind(r, d), &d->dataset, &opt, out, err);
		goto out;
	}
	st = check_kind(&d->dataset, what, err);
	if (!st && !d->dataset.root)
		st = fail(err, FETTLE_INVALID, "cannot read the %s data: no path is given", what);
	if (!st)
		st = dataset_open(out, d->dataset.root, &opt, err);
	if (!st && (*out)->ignored) {
		char *text = xstrfmt("%s: no input takes %s, ignored", d->dataset.root, (*out)->ignored);

		api_note(r->f, text);
		free(text);
	}
out:
	free(params);
	free(names);
	return st;
}

enum fettle_status request_fingerprint(const struct request *r, const struct config_dataloader *d,
				       char out[FINGERPRINT_LEN], struct err *err)
{
	struct dataset *data = NULL;
	enum fettle_status st;

	out[0] = '\0';
	if (!request_data_is_own(r, d))
		return d->dataset.root ? fingerprint_file(d->dataset.root, out, err) : FETTLE_OK;
	st = open_data(&data, r, d, "", NULL, 0, err);
	if (!st)
		st = dataset_fingerprint(data, out, err);
	dataset_free(data);
	return st;
}

/* model.inputs names what the model takes: a name that it does not have means another model */
static enum fettle_status check_inputs(const struct config *c, const struct input_spec *specs, size_t n,
				       struct err *err)
{
	const struct config_strings *names = &c->model.inputs;
	const char **known = xcalloc(n + 1, sizeof(*known)), *near;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (k = 0; k < n; k++)
		known[k] = specs[k].name;
	for (i = 0; i < names->n && !st; i++) {
		for (k = 0; k < n && strcmp(known[k], names->v[i]) != 0;)
			k++;
		if (k < n)
			continue;
		near = str_nearest(names->v[i], known, n);
		st = config_fail(config_origin(c, names), FETTLE_INVALID, err,
				 "cannot set model.inputs: the model has no input '%s'%s%s%s", names->v[i],
				 near ? ", did you mean '" : ", it has ",
				 near ? near
				 : n  ? known[0]
				      : "none",
				 near ? "'?" : "");
	}
	free(known);
	return st;
}

enum fettle_status request_source(struct source *s, const struct request *r,
				  const struct config_dataloader *d, const char *what,
				  const struct session *session, const struct feed_options *o,
				  struct err *err)
{
	size_t n = session_n_inputs(session);
	struct input_spec *specs = xcalloc(n + 1, sizeof(*specs));
	enum fettle_status st;

	session_specs(session, specs);
	st = check_inputs(r->c, specs, n, err);
	if (!st && !s->data)
		st = open_data(&s->data, r, d, what, specs, n, err);
	if (!st)
		st = feed_open(&s->feed, s->data, specs, n, o, err);
	free(specs);
	return st;
}

static struct side_mask side(const struct config_side *s)
{
	unsigned dtype = s->dtype.mask & ~(unsigned)CONFIG_BF16;

	if (s->dtype.mask & CONFIG_BF16)
		dtype |= MASK_FP32; /* the nearest, as the note says */
	return (struct side_mask){ s->granularity.mask, s->scheme.mask, dtype, s->algorithm.mask };
}

static struct constraint convert(struct arena *a, const struct config_constraint *c,
				 enum constraint_scope scope)
{
	const char *where = c->at.line ? arena_strfmt(a, "%s:%d:%d", c->at.source, c->at.line, c->at.column)
				       : c->at.source;

	return (struct constraint){
		scope, c->name, where, { .weight = side(&c->weight), .act = side(&c->activation) }
	};
}

size_t request_constraints(const struct request *r, struct arena *a, struct constraint **out)
{
	const struct config_constraints *lists[] = { &r->c->quantization.op_type_wise,
						     &r->c->quantization.op_wise };
	VEC(struct constraint) v = { 0 };
	size_t i, k;

	VEC_PUSH(&v, convert(a, &r->c->quantization.model_wise, CONSTRAIN_MODEL));
	for (k = 0; k < ARRAY_LEN(lists); k++)
		for (i = 0; i < lists[k]->n; i++)
			VEC_PUSH(&v, convert(a, &lists[k]->v[i], k ? CONSTRAIN_OP : CONSTRAIN_TYPE));
	*out = v.v;
	return v.n;
}

/* in this way, with the settings of the configuration */
static void start_recipe(struct recipes *out, const struct config *c, const struct recipe *i, int way)
{
	struct recipes usual = { 0 };
	const struct recipe_key *k;

	i->start(&usual, way);
	recipe_copy(out, &usual, i);
	for (k = i->keys + 1; k->name; k++) /* after the way itself; what is not set is as the way has it */
		if (config_is_set(c, (const char *)&c->recipes.keys + k->offset))
			recipe_copy_key(out, &c->recipes.keys, k);
}

struct recipes request_ways(const struct config *c)
{
	struct recipes out = { 0 };
	size_t i;

	for (i = 0; i < RECIPES; i++)
		if (recipe_list[i]->words)
			start_recipe(&out, c, recipe_list[i], recipe_way(&c->recipes.keys, recipe_list[i]));
	return out;
}

static void set_up_recipe(struct recipes *out, const struct config *c, size_t i)
{
	const struct recipe *r = recipe_list[i];
	bool on = c->recipes.on[i];

	if (r->words && (!on || config_is_set(c, &c->recipes.way[i]))) {
		start_recipe(out, c, r, c->recipes.way[i]);
	} else if (r->words) {
		start_recipe(out, c, r, recipe_way(&c->recipes.keys, r));
	} else {
		recipe_set(out, r, on);
		if (r->number)
			*recipe_number(out, r) = on ? c->recipes.number[i].v[0] : 0;
	}
}

struct recipes request_recipes(const struct request *asked)
{
	const struct config *c = asked->c;
	struct recipes r = { 0 };
	size_t i;

	for (i = 0; i < RECIPES; i++)
		set_up_recipe(&r, c, i);
	for (i = 0; i < c->recipes.optypes_to_exclude_output_quant.n; i++)
		recipes_leave_output(&r, c->recipes.optypes_to_exclude_output_quant.v[i]);
	return r;
}
