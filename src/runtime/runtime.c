/* ONNX Runtime itself: starting it, its version, its errors. */
#include "runtime/pool.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

void runtime_add_busy(struct runtime *rt, double since)
{
	atomic_fetch_add(&rt->busy, (long long)(1e9 * (clock_now() - since)));
}

double runtime_busy(struct runtime *rt)
{
	return 1e-9 * (double)atomic_load(&rt->busy);
}

void runtime_share(struct runtime *rt, int threads, int running)
{
	rt->threads = threads;
	rt->running = running;
}

bool runtime_is_shared(const struct runtime *rt)
{
	return rt->threads || rt->running;
}

void runtime_exact(struct runtime *rt, bool on)
{
	rt->exact = on;
}

/* They only set a flag, and give no status. */
void runtime_stop(struct runtime *rt)
{
	atomic_store(&rt->stopped, true);
	(void)!rt->api->RunOptionsSetTerminate(rt->run);
	(void)!rt->api->RunOptionsSetTerminate(rt->run_large);
}

void runtime_go_on(struct runtime *rt)
{
	if (!atomic_exchange(&rt->stopped, false))
		return;
	(void)!rt->api->RunOptionsUnsetTerminate(rt->run);
	(void)!rt->api->RunOptionsUnsetTerminate(rt->run_large);
}

enum fettle_status ort_fail(const OrtApi *api, OrtStatus *s, const char *what, struct err *err)
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

const char *runtime_version(void)
{
	return OrtGetApiBase()->GetVersionString();
}

int runtime_minor(void)
{
	const char *dot = strchr(runtime_version(), '.');

	return dot ? atoi(dot + 1) : 0;
}

/* y = Neg(x): IR version 7, opset 13 */
static const char one_op[] =
	"\x08\x07:2\n\x0b\n\x01x\x12\x01y\"\x03Neg\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01"
	"\x12\x04\n\x02\x08\x01"
	"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01"
	"B\x04\n\x00\x10\r";

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
		s = api->CreateSessionFromArray(env, one_op, sizeof(one_op) - 1, o, &session);
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

int runtime_threads(struct runtime *rt)
{
	const OrtApi *api = rt->api;
	const char *what = "make a session";
	OrtSessionOptions *so = NULL;
	OrtSession *session = NULL;
	struct pool *pool = NULL;
	struct err *err = NULL;
	enum fettle_status st;

	if (rt->chosen)
		return rt->chosen;
	TRY(api->CreateSessionOptions(&so));
	st = pool_new(&pool, api, so, 1, what, err);
	if (st)
		goto out;
	TRY(api->CreateSessionFromArray(rt->env, one_op, sizeof(one_op) - 1, so, &session));
	rt->chosen = pool_threads(pool);
out:
	if (session)
		api->ReleaseSession(session);
	if (so)
		api->ReleaseSessionOptions(so);
	pool_free(pool);
	return rt->chosen;
}

/*
 * Sessions take the memory of activations from one place, where the next finds what the last has left: each would have to ask the system
 * for its own, and the first use of a page takes a microsecond or more. The place is the process's: if this fails, it is there already.
 */
static void share_memory(const struct runtime *rt)
{
	const OrtApi *api = rt->api;
	OrtArenaCfg *cfg = NULL;
	OrtStatus *s = api->CreateArenaCfg(0, -1, -1, -1, &cfg); /* as it is by default */

	if (!s)
		s = api->CreateAndRegisterAllocator(rt->env, rt->cpu, cfg);
	if (s)
		api->ReleaseStatus(s);
	if (cfg)
		api->ReleaseArenaCfg(cfg);
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
	share_memory(rt);
	TRY(api->CreateRunOptions(&rt->run));
	TRY(api->CreateRunOptions(&rt->run_large));
	TRY(api->AddRunConfigEntry(rt->run_large, "memory.enable_memory_arena_shrinkage", "cpu:0"));
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
	if (rt->run)
		rt->api->ReleaseRunOptions(rt->run);
	if (rt->run_large)
		rt->api->ReleaseRunOptions(rt->run_large);
	if (rt->cpu)
		rt->api->ReleaseMemoryInfo(rt->cpu);
	if (rt->env)
		rt->api->ReleaseEnv(rt->env);
	free(rt);
}
