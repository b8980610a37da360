#include "evaluate/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

bool rows_init(struct rows *r, size_t n, const struct tensor *batch, size_t rows_in)
{
	size_t bytes = tensor_bytes(batch);
	void *p;

	if (batch->rank < 1 || !dtype_size(batch->dtype) || (uint64_t)batch->dims[0] != rows_in || !bytes)
		return false;
	/* pages that nobody writes to take no memory */
	p = mmap(NULL, n * (bytes / rows_in), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	*r = (struct rows){ .row = *batch, .n = n, .bytes = bytes / rows_in, .data = p };
	r->row.data = NULL;
	r->row.dims[0] = 1;
	r->have = xcalloc(n, sizeof(*r->have));
	return true;
}

void rows_release(struct rows *r)
{
	if (r->data)
		munmap(r->data, r->n * r->bytes);
	free(r->have);
	*r = (struct rows){ .n = 0 };
}

bool rows_have(const struct rows *r, const size_t *place, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!r->have[place[i]])
			return false;
	return true;
}

static bool same_row(const struct rows *r, const struct tensor *batch)
{
	return batch->dtype == r->row.dtype && batch->rank == r->row.rank &&
	       memcmp(batch->dims + 1, r->row.dims + 1, (size_t)(batch->rank - 1) * sizeof(batch->dims[0])) ==
		       0;
}

bool rows_put(struct rows *r, const struct tensor *batch, const size_t *place, size_t n)
{
	size_t i;

	if (!same_row(r, batch) || (uint64_t)batch->dims[0] < n)
		return false;
	for (i = 0; i < n; i++) {
		memcpy(r->data + place[i] * r->bytes, (const char *)batch->data + i * r->bytes, r->bytes);
		r->n_have += !r->have[place[i]];
		r->have[place[i]] = true;
	}
	return true;
}

void rows_get(const struct rows *r, const size_t *place, size_t n, size_t fill, struct buffer *out)
{
	struct tensor t = r->row;
	size_t i;

	t.dims[0] = (int64_t)fill;
	if (out->cap < fill * r->bytes) {
		out->t.data = xrealloc(out->t.data, fill, r->bytes);
		out->cap = fill * r->bytes;
	}
	t.data = out->t.data;
	out->t = t;
	for (i = 0; i < fill; i++)
		memcpy((char *)t.data + i * r->bytes, r->data + place[i < n ? i : n - 1] * r->bytes,
		       r->bytes);
}
