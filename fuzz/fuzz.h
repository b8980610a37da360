/* What the fuzz targets share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Whatever the input, a failure says why, in one line. */
static inline void check_message(enum fettle_status st, const struct err *err)
{
	if (st && (!err->msg[0] || strchr(err->msg, '\n')))
		abort();
}

#endif
