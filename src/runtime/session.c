#include "runtime/session.h"

#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onnxruntime_c_api.h>

#include "base/file.h"

struct runtime {
	const OrtApi *api;
	OrtEnv *env;
	OrtMemoryInfo *cpu;
	atomic_llong busy; /* nanoseconds that threads have spent in it */
	bool exact;        /* runtime_exact() */
};

struct session {
	struct runtime *rt;
	OrtSession *ort;
	OrtAllocator *alloc;
	struct value *in, *out;
	const char **in_names, **out_names;
	size_t n_in, n_out;
	OrtValue **results;
	struct tensor *last; /* shapes of the last run's inputs, when outputs are reused */
};

static void add_busy(struct runtime *rt, double since)
{
	atomic_fetch_add(&rt->busy, (long long)(1e9 * (clock_now() - since)));
}

double runtime_busy(struct runtime *rt)
{
	return 1e-9 * (double)atomic_load(&rt->busy);
}

void runtime_exact(struct runtime *rt, bool on)
{
	rt->exact = on;
}

enum { SHARE_MIN = 256 }; /* smaller constants travel inside the model: shape inference wants to see them */

/* ONNX Runtime's errors become ours here. A model or data it refuses is bad input; the rest is its own failure. */
static enum fettle_status ort_fail(const OrtApi *api, OrtStatus *s, const char *what, struct err *err)
{
	enum fettle_status st;
	const char *text;
	int n;

	if (!s)
		return FETTLE_OK;
	text = api->GetErrorMessage(s);
	switch (api->GetErrorCode(s)) {
	case ORT_NO_SUCHFILE:
	case ORT_NO_MODEL:
	case ORT_INVALID_ARGUMENT:
	case ORT_INVALID_PROTOBUF:
		st = FETTLE_INVALID;
		break;
	case ORT_INVALID_GRAPH:
	case ORT_NOT_IMPLEMENTED:
		st = FETTLE_UNSUPPORTED;
		break;
	case ORT_FAIL: /* its code for a great many things; an op that it does not have is the model's affair */
		st = strstr(text, "is not a registered function/op") ? FETTLE_UNSUPPORTED : FETTLE_BACKEND;
		break;
	default:
		st = FETTLE_BACKEND;
	}
	n = (int)strcspn(text, "\n");
	fail(err, st, "cannot %s: ONNX Runtime says: %.*s", what, n > 400 ? 400 : n, text);
	api->ReleaseStatus(s);
	return st;
}

#define TRY(call)                                                                                            \
	do {                                                                                                 \
		st = ort_fail(api, (call), what, err);                                                       \
		if (st)                                                                                      \
			goto out;                                                                            \
	} while (0)

const char *runtime_version(void)
{
	return OrtGetApiBase()->GetVersionString();
}

int runtime_minor(void)
{
	const char *dot = strchr(runtime_version(), '.');

	return dot ? atoi(dot + 1) : 0;
}

static int is_libonnx(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return strstr(info->dlpi_name, "/libonnx.so") != NULL;
}

/*
 * Debian's ONNX Runtime takes its op schemas from libonnx, which registers them again with the first model and
 * writes a line to stderr for each, 500 in all. No setting turns that off. So a model of one op goes first, while
 * stderr leads nowhere.
 */
static void load_schemas(const OrtApi *api, OrtEnv *env)
{
	/* y = Neg(x): IR version 7, opset 13 */
	static const char model[] =
		"\x08\x07:2\n\x0b\n\x01x\x12\x01y\"\x03Neg\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01"
		"\x12\x04\n\x02\x08\x01"
		"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01"
		"B\x04\n\x00\x10\r";
	OrtSessionOptions *o = NULL;
	OrtSession *session = NULL;
	OrtStatus *s;
	int null, saved;

	if (!dl_iterate_phdr(is_libonnx, NULL))
		return;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	if (null >= 0 && saved >= 0)
		dup2(null, STDERR_FILENO);
	s = api->CreateSessionOptions(&o);
	if (!s)
		s = api->SetIntraOpNumThreads(o, 1);
	if (!s)
		s = api->CreateSessionFromArray(env, model, sizeof(model) - 1, o, &session);
	if (s) /* if this is wrong, so is the next session, which says so */
		api->ReleaseStatus(s);
	if (session)
		api->ReleaseSession(session);
	if (o)
		api->ReleaseSessionOptions(o);
	if (null >= 0 && saved >= 0)
		dup2(saved, STDERR_FILENO);
	close(null);
	close(saved);
}

enum fettle_status runtime_new(struct runtime **out, struct err *err)
{
	const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
	const char *what = "start ONNX Runtime";
	struct runtime *rt = xcalloc(1, sizeof(*rt));
	enum fettle_status st;

	if (!api) {
		st = fail(err, FETTLE_BACKEND, "cannot start ONNX Runtime: version %s, need 1.%d or later",
			  runtime_version(), ORT_API_VERSION);
		goto out;
	}
	rt->api = api;
	TRY(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "fettle", &rt->env));
	TRY(api->DisableTelemetryEvents(rt->env));
	load_schemas(api, rt->env);
	TRY(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &rt->cpu));
	*out = rt;
	rt = NULL;
out:
	runtime_free(rt);
	return st;
}

void runtime_free(struct runtime *rt)
{
	if (!rt)
		return;
	if (rt->cpu)
		rt->api->ReleaseMemoryInfo(rt->cpu);
	if (rt->env)
		rt->api->ReleaseEnv(rt->env);
	free(rt);
}

static enum fettle_status make_options(struct runtime *rt, const struct session_options *o,
				       OrtSessionOptions **out, const char *what, struct err *err)
{
	static const GraphOptimizationLevel levels[] = {
		[OPT_DEFAULT] = ORT_ENABLE_ALL, [OPT_NONE] = ORT_DISABLE_ALL,
		[OPT_BASIC] = ORT_ENABLE_BASIC, [OPT_EXTENDED] = ORT_ENABLE_EXTENDED,
		[OPT_ALL] = ORT_ENABLE_ALL,
	};
	const OrtApi *api = rt->api;
	OrtSessionOptions *so = NULL;
	enum fettle_status st;

	TRY(api->CreateSessionOptions(&so));
	*out = so;
	TRY(api->SetSessionLogSeverityLevel(so, ORT_LOGGING_LEVEL_FATAL));
	if (o->threads)
		TRY(api->SetIntraOpNumThreads(so, o->threads));
	if (o->level != OPT_DEFAULT)
		TRY(api->SetSessionGraphOptimizationLevel(so, levels[o->level]));
	if (o->dump) {
		TRY(api->SetOptimizedModelFilePath(so, o->dump));
		/* weights above 1 GB in all would not fit one protobuf message */
		if (!o->dump_whole)
			TRY(api->AddSessionConfigEntry(
				so, "session.optimized_model_external_initializers_file_name",
				"weights.bin"));
		TRY(api->AddSessionConfigEntry(
			so, "session.optimized_model_external_initializers_min_size_in_bytes", "4096"));
	}
	if (rt->exact)
		TRY(api->AddSessionConfigEntry(so, "session.x64quantprecision", "1"));
	if (o->profile)
		TRY(api->EnableProfiling(so, o->profile));
	if (o->low_memory) {
		TRY(api->DisableCpuMemArena(so));
		TRY(api->DisableMemPattern(so));
	}
out:
	return st;
}

static enum fettle_status read_type(struct session *s, OrtTypeInfo *info, struct value *v, const char *what,
				    struct err *err)
{
	const OrtApi *api = s->rt->api;
	const OrtTensorTypeAndShapeInfo *t = NULL;
	ONNXTensorElementDataType dtype;
	const char *symbols[TENSOR_RANK_MAX]; /* the type's */
	enum fettle_status st;
	size_t rank;

	v->type.rank = -1;
	TRY(api->CastTypeInfoToTensorInfo(info, &t));
	if (!t)
		goto out;
	TRY(api->GetTensorElementType(t, &dtype));
	TRY(api->GetDimensionsCount(t, &rank));
	v->type.dtype = (enum dtype)dtype;
	if (rank > TENSOR_RANK_MAX)
		goto out;
	v->type.rank = (int)rank;
	TRY(api->GetDimensions(t, v->type.dims, rank));
	TRY(api->GetSymbolicDimensions(t, symbols, rank));
	if (rank && *symbols[0])
		v->batch = xstrdup(symbols[0]);
out:
	return st;
}

static enum fettle_status read_values(struct session *s, bool inputs, const char *what, struct err *err)
{
	const OrtApi *api = s->rt->api;
	enum fettle_status st;
	size_t n, i;
	struct value *v;
	const char **names;

	TRY(inputs ? api->SessionGetInputCount(s->ort, &n) : api->SessionGetOutputCount(s->ort, &n));
	v = xcalloc(n, sizeof(*v));
	names = xcalloc(n, sizeof(*names));
	if (inputs)
		s->in = v, s->in_names = names, s->n_in = n;
	else
		s->out = v, s->out_names = names, s->n_out = n;
	for (i = 0; i < n; i++) {
		OrtTypeInfo *info = NULL;
		char *name = NULL;

		TRY(inputs ? api->SessionGetInputName(s->ort, i, s->alloc, &name)
			   : api->SessionGetOutputName(s->ort, i, s->alloc, &name));
		v[i].name = names[i] = name;
		TRY(inputs ? api->SessionGetInputTypeInfo(s->ort, i, &info)
			   : api->SessionGetOutputTypeInfo(s->ort, i, &info));
		st = read_type(s, info, &v[i], what, err);
		api->ReleaseTypeInfo(info);
		if (st)
			goto out;
	}
out:
	return st;
}

static enum fettle_status finish(struct session *s, const char *what, struct err *err)
{
	const OrtApi *api = s->rt->api;
	enum fettle_status st;

	TRY(api->GetAllocatorWithDefaultOptions(&s->alloc));
	st = read_values(s, true, what, err);
	if (!st)
		st = read_values(s, false, what, err);
	s->results = xcalloc(s->n_out, sizeof(OrtValue *));
out:
	return st;
}

/* with borrowed memory; the API takes a mutable pointer but does not write through it */
static enum fettle_status wrap(struct runtime *rt, const struct tensor *t, const void *data, size_t n,
			       OrtValue **out, const char *what, struct err *err)
{
	static const char nothing[1]; /* the API wants a pointer even to no bytes */

	return ort_fail(rt->api,
			rt->api->CreateTensorWithDataAsOrtValue(
				rt->cpu, (void *)(uintptr_t)(n ? data : nothing), n, t->dims, (size_t)t->rank,
				(ONNXTensorElementDataType)t->dtype, out),
			what, err);
}

static enum fettle_status share_weights(struct runtime *rt, OrtSessionOptions *so, const struct packed *p,
					const char *what, struct err *err)
{
	const OrtApi *api = rt->api;
	const char **names = xcalloc(p->n_weights, sizeof(*names));
	OrtValue **values = xcalloc(p->n_weights, sizeof(OrtValue *));
	enum fettle_status st = FETTLE_OK;
	size_t i, n;

	for (i = 0; i < p->n_weights; i++) {
		const void *data = init_bytes(p->weights[i], &n);

		names[i] = p->weights[i]->name;
		st = wrap(rt, &p->weights[i]->t, data, n, &values[i], what, err);
		if (st)
			goto out;
	}
	/*
	 * Not AddInitializer(), which would spare the runtime its own copy: the transpose optimizer rewrites a
	 * constant under its old name, and the session would then compute with the bytes from before.
	 */
	if (p->n_weights)
		TRY(api->AddExternalInitializers(so, names, (const OrtValue *const *)values, p->n_weights));
out:
	for (i = 0; i < p->n_weights; i++)
		if (values[i])
			api->ReleaseValue(values[i]);
	free(names);
	free(values);
	return st;
}

enum fettle_status session_new(struct session **out, struct runtime *rt, struct model *m,
			       const struct session_options *o, struct err *err)
{
	const OrtApi *api = rt->api;
	struct session *s = xcalloc(1, sizeof(*s));
	struct packed p = PACKED_INIT;
	OrtSessionOptions *so = NULL;
	char *what = xstrfmt("load %s", m->path ? m->path : "model");
	OrtStatus *made;
	double start;
	enum fettle_status st;

	s->rt = rt;
	st = make_options(rt, o, &so, what, err);
	if (!st)
		st = model_pack(m, SHARE_MIN, &p, err);
	if (!st)
		st = share_weights(rt, so, &p, what, err);
	if (st)
		goto out;
	start = clock_now();
	made = api->CreateSessionFromArray(rt->env, p.bytes, p.n, so, &s->ort);
	add_busy(rt, start);
	TRY(made);
	st = finish(s, what, err);
	if (st)
		goto out;
	*out = s;
	s = NULL;
out:
	session_free(s);
	if (so)
		api->ReleaseSessionOptions(so);
	packed_release(&p);
	free(what);
	return st;
}

enum fettle_status session_open(struct session **out, struct runtime *rt, const char *path,
				const struct session_options *o, struct err *err)
{
	const OrtApi *api = rt->api;
	struct session *s = xcalloc(1, sizeof(*s));
	OrtSessionOptions *so = NULL;
	char *what = xstrfmt("load %s", path);
	OrtStatus *made;
	double start;
	enum fettle_status st;

	s->rt = rt;
	st = make_options(rt, o, &so, what, err);
	if (st)
		goto out;
	start = clock_now();
	made = api->CreateSession(rt->env, path, so, &s->ort);
	add_busy(rt, start);
	TRY(made);
	st = finish(s, what, err);
	if (st)
		goto out;
	*out = s;
	s = NULL;
out:
	session_free(s);
	if (so)
		api->ReleaseSessionOptions(so);
	free(what);
	return st;
}

static void release_results(struct session *s)
{
	size_t i;

	for (i = 0; s->results && i < s->n_out; i++) {
		if (s->results[i])
			s->rt->api->ReleaseValue(s->results[i]);
		s->results[i] = NULL;
	}
}

static void release_names(struct session *s, const char **names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (names[i])
			s->alloc->Free(s->alloc, (void *)(uintptr_t)names[i]);
	free(names);
}

static void free_values(struct value *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free((char *)(uintptr_t)v[i].batch);
	free(v);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	release_results(s);
	release_names(s, s->in_names, s->n_in);
	release_names(s, s->out_names, s->n_out);
	if (s->ort)
		s->rt->api->ReleaseSession(s->ort);
	free_values(s->in, s->n_in);
	free_values(s->out, s->n_out);
	free(s->results);
	free(s->last);
	free(s);
}

size_t session_n_inputs(const struct session *s)
{
	return s->n_in;
}

size_t session_n_outputs(const struct session *s)
{
	return s->n_out;
}

const struct value *session_input(const struct session *s, size_t i)
{
	return &s->in[i];
}

const struct value *session_output(const struct session *s, size_t i)
{
	return &s->out[i];
}

static enum fettle_status read_result(struct session *s, size_t i, struct tensor *t, const char *what,
				      struct err *err)
{
	const OrtApi *api = s->rt->api;
	OrtTensorTypeAndShapeInfo *info = NULL;
	ONNXTensorElementDataType dtype;
	enum fettle_status st;
	size_t rank;
	int is_tensor;

	*t = (struct tensor)TENSOR_INIT;
	TRY(api->IsTensor(s->results[i], &is_tensor));
	if (!is_tensor) /* a sequence or map: DT_NONE tells the caller */
		goto out;
	TRY(api->GetTensorTypeAndShape(s->results[i], &info));
	TRY(api->GetTensorElementType(info, &dtype));
	TRY(api->GetDimensionsCount(info, &rank));
	if (rank > TENSOR_RANK_MAX) {
		st = fail(err, FETTLE_UNSUPPORTED,
			  "cannot %s: output '%s' has %zu dimensions, %d is the most", what, s->out[i].name,
			  rank, TENSOR_RANK_MAX);
		goto out;
	}
	t->dtype = (enum dtype)dtype;
	t->rank = (int)rank;
	TRY(api->GetDimensions(info, t->dims, rank));
	if (t->dtype != DT_STRING)
		TRY(api->GetTensorMutableData(s->results[i], &t->data));
out:
	if (info)
		api->ReleaseTensorTypeAndShapeInfo(info);
	return st;
}

void session_reuse_outputs(struct session *s)
{
	if (!s->last)
		s->last = xcalloc(s->n_in, sizeof(*s->last));
}

/* lets go of the last results, unless they are to be written to again */
static bool prepare_results(struct session *s, const struct tensor *in)
{
	bool same = s->last != NULL;
	size_t i;

	for (i = 0; i < s->n_in && same; i++)
		same = tensor_same_shape(&in[i], &s->last[i]);
	if (same)
		return true;
	release_results(s);
	if (s->last)
		memcpy(s->last, in, s->n_in * sizeof(*in));
	return false;
}

enum fettle_status session_run(struct session *s, const struct tensor *in, struct tensor *out,
			       struct err *err)
{
	const OrtApi *api = s->rt->api;
	const char *what = "run the model";
	OrtValue **values = xcalloc(s->n_in, sizeof(OrtValue *));
	enum fettle_status st = FETTLE_OK;
	bool reuse = prepare_results(s, in);
	OrtStatus *run;
	double start;
	size_t i;

	for (i = 0; i < s->n_in && !st; i++) {
		if (in[i].rank < 0 || in[i].rank > TENSOR_RANK_MAX || !dtype_size(in[i].dtype))
			st = fail(err, FETTLE_UNSUPPORTED,
				  "cannot %s: input '%s' is given as %s of rank %d, need numbers", what,
				  s->in[i].name, dtype_name(in[i].dtype), in[i].rank);
		else
			st = wrap(s->rt, &in[i], in[i].data, tensor_bytes(&in[i]), &values[i], what, err);
	}
	if (st)
		goto out;
	start = clock_now();
	run = api->Run(s->ort, NULL, s->in_names, (const OrtValue *const *)values, s->n_in, s->out_names,
		       s->n_out, s->results);
	add_busy(s->rt, start);
	if (run && reuse) { /* the outputs' shapes were others this time */
		api->ReleaseStatus(run);
		release_results(s);
		run = api->Run(s->ort, NULL, s->in_names, (const OrtValue *const *)values, s->n_in,
			       s->out_names, s->n_out, s->results);
	}
	TRY(run);
	for (i = 0; i < s->n_out && !st; i++)
		st = read_result(s, i, &out[i], what, err);
out:
	for (i = 0; i < s->n_in; i++)
		if (values[i])
			api->ReleaseValue(values[i]);
	free(values);
	return st;
}

enum fettle_status session_end_profile(struct session *s, char **path, struct err *err)
{
	const OrtApi *api = s->rt->api;
	const char *what = "end the profile";
	enum fettle_status st;
	char *name = NULL;

	TRY(api->SessionEndProfiling(s->ort, s->alloc, &name));
	*path = xstrdup(name);
	s->alloc->Free(s->alloc, name);
out:
	return st;
}
