/* Data that the program has as arrays in memory. */
#ifndef API_ARRAYS_H
#define API_ARRAYS_H

#include "base/err.h"

/* As a source of samples, which any number of threads may read; valid as long as the data. Fails if there is none. */
enum fettle_status arrays_source(const struct fettle_data *d, const struct fettle_data_source **out,
				 struct err *err);
bool source_is_arrays(const struct fettle_data_source *s);

#endif
