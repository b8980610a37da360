/* The model that a call writes, as bytes in memory. */
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/file.h"

enum fettle_status memory_begin(struct fettle *f, struct call_options *o, struct scratch *s)
{
	enum fettle_status st;

	if (o->output)
		return FETTLE_OK;
	st = scratch_new(s, &f->cx.err);
	if (!st)
		o->output = scratch_path(s, "model.onnx");
	return st;
}

enum fettle_status memory_keep(struct fettle *f, const char *path)
{
	struct bytes b = BYTES_INIT;
	enum fettle_status st = file_map(path, &b, &f->cx.err);

	if (!st && model_file_size(path) != b.n)
		st = fail(&f->cx.err, FETTLE_UNSUPPORTED,
			  "cannot give %s in memory: its weights are in a file beside it, for one ONNX "
			  "message is too "
			  "small; call without to_memory",
			  path);
	if (!st)
		st = mem_try(&f->model, b.n, 1, "the model", &f->cx.err);
	if (!st) {
		memcpy(f->model, b.p, b.n);
		f->model_size = b.n;
	}
	bytes_release(&b);
	return st;
}

void memory_release(struct call_options *o, struct scratch *s)
{
	if (s->dir)
		free((char *)(uintptr_t)o->output);
	scratch_release(s);
}
