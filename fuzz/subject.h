/* A small model for the targets whose input is about one. */
#ifndef FUZZ_SUBJECT_H
#define FUZZ_SUBJECT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define fail_msg(...) abort() /* which build.h has from cmocka */

#include "quantize/subject.h"
#include "unit/build.h"

/* Made of `graph` with build_model(), from x to y; it lives as long as the process. */
static inline struct subject *fuzz_subject(const char *in, const char *graph)
{
	static struct subject *s;
	static struct runtime *rt;
	char path[] = "/tmp/fettle-fuzz.XXXXXX";
	struct err err = ERR_INIT;
	int fd;

	if (s)
		return s;
	fd = mkstemp(path);
	build_model(path, 13, in, graph, "y");
	if (fd < 0 || runtime_new(&rt, &err) || subject_open(&s, rt, path, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	close(fd);
	unlink(path);
	return s;
}

#endif
