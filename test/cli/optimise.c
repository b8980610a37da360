/* optimise MODEL OUT: has ONNX Runtime write the graph that a default session runs. Knows nothing of fettle. */
#include <onnxruntime_c_api.h>
#include <stdio.h>

static const OrtApi *ort;

static void must(OrtStatus *s)
{
	if (s) {
		fprintf(stderr, "%s\n", ort->GetErrorMessage(s));
		_Exit(1);
	}
}

int main(int argc, char **argv)
{
	OrtEnv *env = NULL;
	OrtSessionOptions *o = NULL;
	OrtSession *s = NULL;

	ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
	if (argc != 3)
		return 2;
	must(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "optimise", &env));
	must(ort->CreateSessionOptions(&o));
	must(ort->SetOptimizedModelFilePath(o, argv[2]));
	must(ort->CreateSession(env, argv[1], o, &s));
	ort->ReleaseSession(s);
	ort->ReleaseSessionOptions(o);
	ort->ReleaseEnv(env);
	return 0;
}
