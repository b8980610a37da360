#include "tune/seats.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

size_t seats_order(size_t n, size_t batch, const size_t *wanted, size_t n_wanted, size_t *out)
{
	const size_t full = n / batch * batch; /* the last batch is not, from here on */
	size_t *used = xcalloc(batch, sizeof(*used)), rows = 0, i, k;
	bool last = false;

	for (i = 0; i < n_wanted; i++) {
		const size_t seat = wanted[i] % batch;

		if (wanted[i] >= full) {
			last = true;
			continue;
		}
		out[used[seat]++ * batch + seat] = wanted[i];
		rows = used[seat] > rows ? used[seat] : rows;
	}
	for (i = 0; i < rows * batch; i++)
		if (i / batch >= used[i % batch])
			out[i] = i % batch;
	for (k = full; k < n && last; k++)
		out[i++] = k;
	free(used);
	return i;
}
