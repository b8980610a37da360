#include "runtime/session.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "runtime/pool.h"

/* The outputs of a run. */
struct results {
	OrtValue **v;
	struct tensor *in; /* shapes of the run's inputs, if they are to be written to again */
};

struct session {
	struct runtime *rt;
	OrtSession *ort;
	struct pool *pool; /* NULL: the runtime's own threads */
	OrtAllocator *alloc;
	struct value *in, *out;
	const char **in_names, **out_names;
	size_t n_in, n_out;
	struct results now, before; /* before: only where outputs are reused in turns */
	OrtValue **weights;         /* the model's, which the runtime reads where they lie */
	size_t n_weights;
	bool large; /* its weights are: see session_run_large() */
};

enum {
	SHARE_MIN = 256, /* smaller constants travel inside the model: shape inference wants to see them */
	SETTLE_MIN = 16 << 20, /* bytes of weights that are worth the time it takes to give memory back */
	LARGE_MIN = 64 << 20,  /* the same, after every batch */
};

/* how many threads, and how many of these exist */
static enum fettle_status set_threads(struct session *s, OrtSessionOptions *so,
				      const struct session_options *o, const char *what, struct err *err)
{
	const struct runtime *rt = s->rt;
	const OrtApi *api = rt->api;
	const bool shared = !o->threads && !o->deployed;
	const int threads = shared ? rt->threads : o->threads;
	const int running = o->alone ? 1 : shared ? rt->running : 0;
	enum fettle_status st = FETTLE_OK;

	if (threads)
		TRY(api->SetIntraOpNumThreads(so, threads));
	/* Threads that have run one session would keep a core busy for a while, just when another is run or timed. */
	if (threads != 1)
		TRY(api->AddSessionConfigEntry(so, "session.force_spinning_stop", "1"));
	if (running)
		st = pool_new(&s->pool, api, so, running, what, err);
out:
	return st;
}

static enum fettle_status make_options(struct session *s, const struct session_options *o,
				       OrtSessionOptions **out, const char *what, struct err *err)
{
	static const GraphOptimizationLevel levels[] = {
		[OPT_DEFAULT] = ORT_ENABLE_ALL, [OPT_NONE] = ORT_DISABLE_ALL,
		[OPT_BASIC] = ORT_ENABLE_BASIC, [OPT_EXTENDED] = ORT_ENABLE_EXTENDED,
		[OPT_ALL] = ORT_ENABLE_ALL,
	};
	const struct runtime *rt = s->rt;
	const OrtApi *api = rt->api;
	OrtSessionOptions *so = NULL;
	enum fettle_status st;

	TRY(api->CreateSessionOptions(&so));
	*out = so;
	TRY(api->SetSessionLogSeverityLevel(so, ORT_LOGGING_LEVEL_FATAL));
	st = set_threads(s, so, o, what, err);
	if (st)
		goto out;
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
	} else {
		TRY(api->AddSessionConfigEntry(so, "session.use_env_allocators", "1"));
		/* weights are given back with their session */
		TRY(api->AddSessionConfigEntry(so, "session.use_device_allocator_for_initializers", "1"));
	}
	if (o->unused)
		TRY(api->AddSessionConfigEntry(so, "session.disable_prepacking", "1"));
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
	s->now.v = xcalloc(s->n_out, sizeof(OrtValue *));
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

static enum fettle_status share_weights(struct session *s, OrtSessionOptions *so, const struct packed *p,
					const char *what, struct err *err)
{
	const OrtApi *api = s->rt->api;
	const char **names = xcalloc(p->n_weights, sizeof(*names));
	enum fettle_status st = FETTLE_OK;
	size_t i, n;

	s->weights = xcalloc(p->n_weights, sizeof(OrtValue *));
	s->n_weights = p->n_weights;
	for (i = 0; i < p->n_weights; i++) {
		const void *data = init_bytes(p->weights[i], &n);

		names[i] = p->weights[i]->name;
		st = wrap(s->rt, &p->weights[i]->t, data, n, &s->weights[i], what, err);
		if (st)
			goto out;
	}
	/*
	 * Not AddInitializer(), which would spare the runtime its own copy: the transpose optimizer rewrites a constant
	 * under its old name, and a session then computes with the bytes from before. On a CPU without VNNI 1.30 crashes.
	 */
	if (p->n_weights)
		TRY(api->AddExternalInitializers(so, names, (const OrtValue *const *)s->weights,
						 p->n_weights));
out:
	free(names);
	return st;
}

static size_t weight_bytes(const struct packed *p)
{
	size_t total = 0, i, n;

	for (i = 0; i < p->n_weights; i++) {
		init_bytes(p->weights[i], &n);
		total += n;
	}
	return total;
}

/*
 * While the runtime copies large weights, those of ours that are mapped leave memory every few milliseconds: once copied they
 * are not read again, and if they were, they would come from the file.
 */
struct rest {
	const struct model *m;
	pthread_t thread;
	atomic_bool done;
	bool large, runs;
};

static void *rest_main(void *self)
{
	struct rest *r = self;

	while (!atomic_load(&r->done)) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		model_rest(r->m);
	}
	return NULL;
}

static void rest_begin(struct rest *r, const struct model *m, const struct packed *p)
{
	r->m = m;
	r->large = weight_bytes(p) >= SETTLE_MIN;
	atomic_init(&r->done, false);
	r->runs = r->large && pthread_create(&r->thread, NULL, rest_main, r) == 0;
}

/* Once the runtime has its own copy of the weights, neither ours nor what it copied more than once need stay in memory. */
static void rest_end(struct rest *r)
{
	atomic_store(&r->done, true);
	if (r->runs)
		pthread_join(r->thread, NULL);
	if (!r->large)
		return;
	model_rest(r->m);
	mem_trim();
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
	struct rest rest;
	double start;
	enum fettle_status st;

	s->rt = rt;
	st = make_options(s, o, &so, what, err);
	if (!st)
		st = model_pack(m, SHARE_MIN, &p, err);
	if (!st)
		st = share_weights(s, so, &p, what, err);
	if (st)
		goto out;
	rest_begin(&rest, m, &p);
	start = clock_now();
	made = api->CreateSessionFromArray(rt->env, p.bytes, p.n, so, &s->ort);
	runtime_add_busy(rt, start);
	rest_end(&rest);
	s->large = weight_bytes(&p) >= LARGE_MIN;
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
	st = make_options(s, o, &so, what, err);
	if (st)
		goto out;
	start = clock_now();
	made = api->CreateSession(rt->env, path, so, &s->ort);
	runtime_add_busy(rt, start);
	TRY(made);
	st = finish(s, what, err);
	if (st)
		goto out;
	s->large = model_file_size(path) >= LARGE_MIN;
	*out = s;
	s = NULL;
out:
	session_free(s);
	if (so)
		api->ReleaseSessionOptions(so);
	free(what);
	return st;
}

static void release_values(struct session *s, OrtValue **v, size_t n)
{
	size_t i;

	for (i = 0; v && i < n; i++) {
		if (v[i])
			s->rt->api->ReleaseValue(v[i]);
		v[i] = NULL;
	}
}

static void release_results(struct session *s)
{
	release_values(s, s->now.v, s->n_out);
}

static void results_free(struct session *s, struct results *r)
{
	release_values(s, r->v, s->n_out);
	free(r->v);
	free(r->in);
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
	results_free(s, &s->now);
	results_free(s, &s->before);
	release_names(s, s->in_names, s->n_in);
	release_names(s, s->out_names, s->n_out);
	if (s->ort)
		s->rt->api->ReleaseSession(s->ort);
	pool_free(s->pool);
	release_values(s, s->weights, s->n_weights);
	free(s->weights);
	free_values(s->in, s->n_in);
	free_values(s->out, s->n_out);
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
	assert(i < s->n_in);
	return &s->in[i];
}

const struct value *session_output(const struct session *s, size_t i)
{
	assert(i < s->n_out);
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
	TRY(api->IsTensor(s->now.v[i], &is_tensor));
	if (!is_tensor) /* a sequence or map: DT_NONE tells the caller */
		goto out;
	TRY(api->GetTensorTypeAndShape(s->now.v[i], &info));
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
		TRY(api->GetTensorMutableData(s->now.v[i], &t->data));
out:
	if (info)
		api->ReleaseTensorTypeAndShapeInfo(info);
	return st;
}

void session_reuse_outputs(struct session *s, bool in_turns)
{
	s->now.in = xcalloc(s->n_in, sizeof(*s->now.in));
	if (!in_turns)
		return;
	s->before.in = xcalloc(s->n_in, sizeof(*s->before.in));
	s->before.v = xcalloc(s->n_out, sizeof(OrtValue *));
}

/* lets go of older results, unless they are to be written to again */
static bool prepare_results(struct session *s, const struct tensor *in)
{
	const struct results last = s->now;
	bool same = last.in != NULL;
	size_t i;

	if (s->before.v) {
		s->now = s->before;
		s->before = last;
	}
	for (i = 0; i < s->n_in && same; i++)
		same = tensor_same_shape(&in[i], &s->now.in[i]);
	if (same)
		return true;
	release_results(s);
	if (s->now.in)
		memcpy(s->now.in, in, s->n_in * sizeof(*in));
	return false;
}

static enum fettle_status run_with(struct session *s, const OrtRunOptions *options, const struct tensor *in,
				   struct tensor *out, struct err *err)
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
	run = api->Run(s->ort, options, s->in_names, (const OrtValue *const *)values, s->n_in, s->out_names,
		       s->n_out, s->now.v);
	runtime_add_busy(s->rt, start);
	if (run && atomic_load(&s->rt->stopped)) {
		api->ReleaseStatus(run);
		st = fail(err, FETTLE_STOP, "stopped");
		goto out;
	}
	if (run && reuse) { /* the outputs' shapes were others this time */
		api->ReleaseStatus(run);
		release_results(s);
		run = api->Run(s->ort, options, s->in_names, (const OrtValue *const *)values, s->n_in,
			       s->out_names, s->n_out, s->now.v);
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

enum fettle_status session_run(struct session *s, const struct tensor *in, struct tensor *out,
			       struct err *err)
{
	return run_with(s, s->rt->run, in, out, err);
}

enum fettle_status session_run_large(struct session *s, const struct tensor *in, struct tensor *out,
				     struct err *err)
{
	return run_with(s, s->large ? s->rt->run_large : s->rt->run, in, out, err);
}

enum fettle_status session_run_timed(struct session *s, const struct tensor *in, struct tensor *out,
				     double *seconds, struct err *err)
{
	const long waits = clock_waits();
	const double cpu = clock_thread(), start = clock_now();
	enum fettle_status st = session_run(s, in, out, err);

	*seconds = clock_waits() > waits ? clock_now() - start : clock_thread() - cpu;
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
