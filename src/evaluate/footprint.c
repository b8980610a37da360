/* Memory, measured in a process of its own. */
#include <stdio.h>
#include <stdlib.h>

#include "evaluate/evaluate.h"
#include "evaluate/process.h"

/* Not getrusage(): its figure survives exec, so a child would begin with its parent's. */
size_t peak_memory(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	size_t kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %zu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

enum fettle_status evaluate_footprint(const char *helper, const char *model, const char *data, size_t batch,
				      long past, int threads, size_t *bytes, struct err *err)
{
	struct str out = STR_INIT;
	char batch_text[32], threads_text[32], past_text[32];
	char *argv[] = { (char *)(uintptr_t)helper,
			 "measure-footprint",
			 (char *)(uintptr_t)model,
			 batch_text,
			 threads_text,
			 past_text,
			 (char *)(uintptr_t)data,
			 NULL };
	enum fettle_status st;
	char *end;

	snprintf(batch_text, sizeof(batch_text), "%zu", batch);
	snprintf(threads_text, sizeof(threads_text), "%d", threads);
	snprintf(past_text, sizeof(past_text), "%ld", past);
	st = run_program("a process to measure memory in", argv, &out, NULL, NULL, err);
	if (!st) {
		*bytes = out.s ? strtoull(out.s, &end, 10) : 0;
		if (!*bytes)
			st = fail(err, FETTLE_SYSTEM,
				  "cannot measure the memory of %s: no figure from the process", model);
	}
	str_release(&out);
	return st;
}
