#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/own.h"
#include "base/str.h"

struct fettle *fettle_new(void)
{
	return xcalloc(1, sizeof(struct fettle));
}

void api_clear(struct fettle *f)
{
	free(f->model);
	f->model = NULL;
	f->model_size = 0;
	f->err.msg[0] = '\0';
	while (f->notes.n)
		free(f->notes.v[--f->notes.n]);
	while (f->warnings.n)
		free(f->warnings.v[--f->warnings.n]);
	f->fed.n = 0;
	f->scoring = (struct fettle_scoring){ .metric = NULL };
	arena_release(&f->told);
	while (f->finetuned.n)
		free((char *)f->finetuned.v[--f->finetuned.n].name);
	while (f->fp32_ops.n) {
		const struct fettle_fp32_op *o = &f->fp32_ops.v[--f->fp32_ops.n];

		free((char *)o->name);
		free((char *)o->type);
		free((char *)o->why);
	}
}

bool fettle_finetuned(const struct fettle *f, size_t i, struct fettle_finetuned *out)
{
	if (i >= f->finetuned.n)
		return false;
	api_give(out, &f->finetuned.v[i], sizeof(*out));
	return true;
}

const char *fettle_note(const struct fettle *f, size_t i)
{
	return i < f->notes.n ? f->notes.v[i] : NULL;
}

bool fettle_fed(const struct fettle *f, size_t i, struct fettle_fed *out)
{
	if (i >= f->fed.n)
		return false;
	api_give(out, &f->fed.v[i], sizeof(*out));
	return true;
}

bool fettle_scoring(const struct fettle *f, struct fettle_scoring *out)
{
	api_give(out, &f->scoring, sizeof(*out));
	return f->scoring.metric != NULL;
}

const char *fettle_warning(const struct fettle *f, size_t i)
{
	return i < f->warnings.n ? f->warnings.v[i] : NULL;
}

void api_note(struct fettle *f, const char *text)
{
	size_t i;

	for (i = 0; i < f->notes.n; i++)
		if (strcmp(f->notes.v[i], text) == 0)
			return;
	VEC_PUSH(&f->notes, xstrdup(text));
}

enum fettle_status api_subject(struct fettle *f, const char *path, struct subject **out)
{
	enum fettle_status st = subject_open(out, f->rt, path, &f->err);
	size_t i;

	if (!st)
		(*out)->cpu = f->cpu;
	for (i = 0; !st && i < ARRAY_LEN((*out)->m->notes); i++)
		if ((*out)->m->notes[i])
			api_note(f, (*out)->m->notes[i]);
	if (!st && (*out)->quantized)
		api_warn(f, "%s is %s: those ops stay as they are; begin with the fp32 model", path,
			 (*out)->quantized);
	return st;
}

void api_warn(struct fettle *f, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	VEC_PUSH(&f->warnings, text);
}

void api_saturates_on(struct fettle *f, const struct qplan *p, const struct op_list *ops, char *out, size_t n)
{
	struct str names = STR_INIT;
	size_t i, most = 0;

	for (i = 0; i < n_cpus; i++) {
		size_t k = qplan_saturating(p, ops, &cpus[i]);

		if (k)
			str_addf(&names, "%s%s", names.n ? ", " : "", cpus[i].name);
		most = k > most ? k : most;
	}
	snprintf(out, n, "%s", names.s ? names.s : "");
	if (most && !f->cpu.saturates) {
		char *text = xstrfmt(
			"on CPUs of kind %s, products of %zu op%s overflow and accuracy is lost; --cpu %.*s "
			"plans for them",
			out, most, most == 1 ? "" : "s", (int)strcspn(out, ","), out);

		api_note(f, text);
		free(text);
	}
	str_release(&names);
}

void fettle_on_trial(struct fettle *f, fettle_on_trial_fn call, void *self)
{
	f->on_trial = call;
	f->on_trial_self = self;
}

void fettle_free(struct fettle *f)
{
	if (!f)
		return;
	runtime_free(f->rt);
	api_clear(f);
	free(f->notes.v);
	free(f->warnings.v);
	free(f->fed.v);
	free(f->finetuned.v);
	free(f->fp32_ops.v);
	own_release(f);
	free(f);
}

const char *fettle_message(const struct fettle *f)
{
	return f->err.msg;
}

const char *fettle_version(void)
{
	return FETTLE_VERSION;
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
	api_give(out,
		 &(struct fettle_cpu_kind){
			 .name = cpus[i].name, .summary = cpus[i].summary, .saturates = cpus[i].saturates },
		 sizeof(*out));
	return true;
}

void fettle_on_progress(struct fettle *f, fettle_progress call, void *self)
{
	f->progress = call;
	f->progress_self = self;
}

static void list_algorithms(struct str *out, bool for_weights)
{
	const char *comma = "";
	size_t k;

	for (k = 0; k < RANGE_ALGORITHMS; k++) {
		const struct range_method *m = range_methods[range_preferred(k)];

		if (for_weights ? !m->for_weights : !m->tried)
			continue;
		str_addf(out, "%s%s", comma, m->name);
		comma = ", ";
	}
	str_addf(out, "] }\n");
}

static void list_types(struct str *out, unsigned mask)
{
	static const char *const names[] = { "uint8", "int8", "uint16", "int16" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (mask & 1u << i)
			str_addf(out, "%s, ", names[i]);
}

char *fettle_capability(void)
{
	struct cpu cpu = cpu_detect();
	struct str out = STR_INIT;
	size_t i;

	str_addf(&out,
		 "# What ONNX Runtime %s computes in integers on this CPU (%s), in order of preference.\n%s",
		 runtime_version(), cpu.name,
		 cpu.saturates ? "# u8 x s8 products saturate: int8 weights get 7 bits, or uint8 is used.\n"
			       : "");
	str_addf(&out, "quantization:\n  op_type_wise:\n");
	for (i = 0; i < n_op_rules; i++) {
		const struct op_rule *r = &op_rules[i];

		if (r->kind == OP_MOVE)
			continue;
		str_addf(&out, "    %s:%s\n", r->type, r->modes == MODE_DYNAMIC ? " # dynamic only" : "");
		str_addf(&out, "      activation: { dtype: [");
		list_types(&out, r->act_dtypes);
		str_addf(&out, "fp32], scheme: [asym, sym], granularity: [per_tensor], algorithm: [");
		list_algorithms(&out, false);
		if (r->weight < 0)
			continue;
		str_addf(&out, "      weight: { dtype: [");
		list_types(&out, r->weight_dtypes);
		str_addf(&out, "fp32], scheme: [sym, asym], granularity: [per_channel, per_tensor], "
			       "algorithm: [");
		list_algorithms(&out, true);
	}
	return out.s;
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

enum fettle_status api_begin(struct fettle *f, const struct fettle_options *in, struct fettle_options *out)
{
	api_clear(f);
	*out = *in;
	if (out->threads < 0 || out->threads > 1024)
		return fail(&f->err, FETTLE_INVALID, "cannot use %d threads: need 0 (all cores) to 1024",
			    out->threads);
	f->cpu = cpu_detect();
	if (!f->rt)
		return runtime_new(&f->rt, &f->err);
	runtime_exact(f->rt, false);
	return FETTLE_OK;
}

void api_give(void *out, const void *from, size_t size)
{
	size_t room;

	memcpy(&room, out, sizeof(room));
	if (room > size)
		room = size;
	if (room > sizeof(room))
		memcpy((char *)out + sizeof(room), (const char *)from + sizeof(room), room - sizeof(room));
}

void api_take(void *to, const void *from, size_t size)
{
	size_t given;

	memcpy(&given, from, sizeof(given));
	memcpy(to, from, given < size ? given : size);
}

void *api_list(struct arena *a, void *v, size_t n, size_t size)
{
	const void **list = arena_alloc(a, (n + 1) * sizeof(*list));
	size_t i;

	for (i = 0; i < n; i++) {
		char *one = (char *)v + i * size;

		memcpy(one, &size, sizeof(size));
		list[i] = one;
	}
	return list;
}

bool api_progress(void *self, size_t done, size_t total)
{
	struct fettle *f = self;

	return !f->progress || f->progress(f->progress_self, f->phase, done, total);
}

enum fettle_status api_phase(struct fettle *f, const char *phase)
{
	f->phase = phase;
	return api_progress(f, 0, 0) ? FETTLE_OK : fail(&f->err, FETTLE_STOP, "stopped");
}

void source_release(struct source *s)
{
	feed_free(s->feed);
	dataset_free(s->data);
	*s = (struct source){ NULL, NULL };
}

struct fettle_values api_values(const double *v, size_t n)
{
	struct fettle_values out = { .n = n };

	_Static_assert((int)FETTLE_METRICS_MAX == (int)METRICS_MAX, "as many as a metric can have");
	memcpy(out.v, v, n * sizeof(*v));
	return out;
}
