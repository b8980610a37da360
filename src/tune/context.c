#include "tune/context.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

void context_clear(struct context *cx)
{
	cx->err.msg[0] = '\0';
	while (cx->notes.n)
		free(cx->notes.v[--cx->notes.n]);
	while (cx->warnings.n)
		free(cx->warnings.v[--cx->warnings.n]);
	cx->fed.n = 0;
	cx->scoring = (struct fettle_scoring){ .metric = NULL };
	arena_release(&cx->told);
	while (cx->finetuned.n)
		free((char *)cx->finetuned.v[--cx->finetuned.n].name);
	while (cx->fp32_ops.n) {
		const struct fettle_fp32_op *o = &cx->fp32_ops.v[--cx->fp32_ops.n];

		free((char *)o->name);
		free((char *)o->type);
		free((char *)o->why);
	}
}

enum fettle_status context_begin(struct context *cx)
{
	context_clear(cx);
	atomic_store(&cx->interrupted, false);
	cx->cpu = cpu_detect();
	if (!cx->rt)
		return runtime_new(&cx->rt, &cx->err);
	runtime_go_on(cx->rt);
	runtime_exact(cx->rt, false);
	return FETTLE_OK;
}

void context_release(struct context *cx)
{
	runtime_free(cx->rt);
	context_clear(cx);
	free(cx->notes.v);
	free(cx->warnings.v);
	free(cx->fed.v);
	free(cx->finetuned.v);
	free(cx->fp32_ops.v);
	members_release(&cx->members);
}

void context_note(struct context *cx, const char *text)
{
	size_t i;

	for (i = 0; i < cx->notes.n; i++)
		if (strcmp(cx->notes.v[i], text) == 0)
			return;
	VEC_PUSH(&cx->notes, xstrdup(text));
}

void context_warn(struct context *cx, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	VEC_PUSH(&cx->warnings, text);
}

bool context_progress(void *self, size_t done, size_t total)
{
	struct context *cx = self;

	return !atomic_load(&cx->interrupted) &&
	       (!cx->progress || cx->progress(cx->progress_self, cx->phase, done, total));
}

enum fettle_status context_phase(struct context *cx, const char *phase)
{
	cx->phase = phase;
	return context_progress(cx, 0, 0) ? FETTLE_OK : fail(&cx->err, FETTLE_STOP, "stopped");
}

/* "graph rewritten: hard_swish 11 times, fold_scale 10 times" */
static void note_rewritten(struct context *cx, const struct simplified *did)
{
	struct str text = STR_INIT;
	size_t i;

	for (i = 0; i < SIMPLIFICATIONS; i++)
		if (did->n[i])
			str_addf(&text, "%s%s %zu time%s",
				 text.n ? ", " : "graph rewritten: ", simplifications[i]->name, did->n[i],
				 did->n[i] == 1 ? "" : "s");
	if (text.n)
		context_note(cx, text.s);
	str_release(&text);
}

/* what there is to say of it */
static enum fettle_status present_subject(struct context *cx, const char *path, enum fettle_status st,
					  struct subject **out)
{
	size_t i;

	if (!st)
		(*out)->cpu = cx->cpu;
	for (i = 0; !st && i < ARRAY_LEN((*out)->m->notes); i++)
		if ((*out)->m->notes[i])
			context_note(cx, (*out)->m->notes[i]);
	if (!st)
		note_rewritten(cx, &(*out)->rewritten);
	if (!st && (*out)->quantized)
		context_warn(cx, "%s is %s: those ops stay as they are; begin with the fp32 model", path,
			     (*out)->quantized);
	return st;
}

enum fettle_status context_subject(struct context *cx, const char *path, bool rewrite, struct subject **out)
{
	return present_subject(cx, path,
			       rewrite ? subject_open(out, cx->rt, path, &cx->err)
				       : subject_open_as_is(out, cx->rt, path, &cx->err),
			       out);
}

enum fettle_status context_subject_outside(struct context *cx, const char *path, bool rewrite,
					   struct subject **out)
{
	struct stat sb;

	if (stat(path, &sb) != 0 || model_file_size(path) - (size_t)sb.st_size <= OUTSIDE_BYTES)
		return context_subject(cx, path, rewrite, out);
	return present_subject(cx, path, subject_open_outside(out, cx->rt, path, rewrite, &cx->err), out);
}

void context_note_kind(struct context *cx, const struct subject *s)
{
	char *text = NULL;

	if (s->hidden && !s->quantized)
		text = xstrfmt("%s: only the main graph is quantized, and only its multiply-adds count",
			       s->hidden);
	if (text)
		context_note(cx, text);
	free(text);
}

enum fettle_status context_nothing(struct context *cx, const struct subject *s, const char *verb,
				   const char *path)
{
	if (s->quantized)
		return fail(&cx->err, FETTLE_INVALID,
			    "cannot %s %s: it is %s, need the float model it was made from", verb, path,
			    s->quantized);
	if (s->hidden)
		return fail(&cx->err, FETTLE_INVALID,
			    "cannot %s %s: nothing in its main graph can be quantized (%s, and only the main "
			    "graph is quantized)",
			    verb, path, s->hidden);
	return fail(&cx->err, FETTLE_INVALID,
		    "cannot %s %s: it has no op that can be quantized ('fettle inspect' says why)", verb,
		    path);
}

void context_saturates_on(struct context *cx, const struct qplan *p, const struct op_list *ops, char *out,
			  size_t n)
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
	if (most && !cx->cpu.saturates) {
		char *text = xstrfmt(
			"on CPUs of kind %s, products of %zu op%s overflow and accuracy is lost; --cpu %.*s "
			"plans for them",
			out, most, most == 1 ? "" : "s", (int)strcspn(out, ","), out);

		context_note(cx, text);
		free(text);
	}
	str_release(&names);
}

void context_keep_precisions(struct context *cx, const struct precisions *p, const struct subject *s)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct op *op = &s->ops.v[i];
		struct fettle_fp32_op out = { .reason = fp32_reasons[p->v[i].reason],
					      .share = s->ops.total_macs > 0 ? op->macs / s->ops.total_macs
									     : 0 };

		if (p->v[i].is != PRECISION_FP32)
			continue;
		out.name = xstrdup(op->name);
		out.type = xstrdup(s->m->nodes.v[i]->op);
		out.why = xstrdup(p->v[i].why);
		VEC_PUSH(&cx->fp32_ops, out);
	}
}

enum fettle_status context_precisions(struct context *cx, const struct subject *s, enum approach approach,
				      const struct qplan *plan, const struct model *quantized,
				      struct precisions *out)
{
	const struct precisions_wanted wanted = { approach, plan, plan, quantized };
	enum fettle_status st = precisions_of(out, cx->rt, s, &wanted, &cx->err);

	if (!st)
		context_keep_precisions(cx, out, s);
	return st;
}

struct fettle_values values_of(const double *v, size_t n)
{
	struct fettle_values out = { .n = n };

	assert(n <= METRICS_MAX);
	_Static_assert((int)FETTLE_METRICS_MAX == (int)METRICS_MAX, "as many as a metric can have");
	memcpy(out.v, v, n * sizeof(*v));
	return out;
}
