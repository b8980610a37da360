/* Property: any bytes are either weights that are all there, or an error of one line. */
#include "fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quantize/rounding.h"

enum { OPS = 4 };

static unsigned sum_of(const void *p, size_t n)
{
	unsigned sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += ((const unsigned char *)p)[i]; /* the sanitizer watches */
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct rounding *r = NULL;
	struct err err = ERR_INIT;
	enum fettle_status st;
	unsigned sum = 0;
	char path[64];
	int fd = memfd_create("rounding", 0);
	size_t i;

	if (write(fd, data, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	st = rounding_load(&r, path, OPS, &err);
	check_message(st, &err);
	for (i = 0; !st && i < OPS; i++)
		if (r->v[i])
			sum += sum_of(r->v[i]->w.q.data, tensor_bytes(&r->v[i]->w.q)) +
			       sum_of(r->v[i]->w.scale.data, tensor_bytes(&r->v[i]->w.scale)) +
			       sum_of(r->v[i]->w.zero.data, tensor_bytes(&r->v[i]->w.zero)) +
			       sum_of(r->v[i]->shift, r->v[i]->shift ? r->v[i]->n_shift * sizeof(double) : 0);
	rounding_free(r);
	close(fd);
	return sum == UINT32_MAX ? -1 : 0;
}
