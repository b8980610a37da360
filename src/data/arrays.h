/* Data that the program has as arrays in memory: fettle_data_new() and the like. */
#ifndef DATA_ARRAYS_H
#define DATA_ARRAYS_H

#include "base/err.h"

struct fettle_data *arrays_new(void);
void arrays_free(struct fettle_data *d);
/* Values are borrowed; the first of the dimensions counts the samples. */
enum fettle_status arrays_add(struct fettle_data *d, const struct fettle_field *array, const void *values,
			      struct err *err);
/* As a source of samples, which any number of threads may read; valid as long as the data. Fails if there is none. */
enum fettle_status arrays_source(const struct fettle_data *d, const struct fettle_data_source **out,
				 struct err *err);
bool source_is_arrays(const struct fettle_data_source *s);

#endif
