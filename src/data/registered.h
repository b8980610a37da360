/* A kind of data that a caller has registered. */
#ifndef DATA_REGISTERED_H
#define DATA_REGISTERED_H

#include "data/dataset.h"
#include "fettle.h"

/* Opens `root` (NULL: none) with what a configuration gives beside it. */
enum fettle_status registered_dataset_open(const struct fettle_dataset *def, const char *root,
					   const struct fettle_setting *params, size_t n_params,
					   const struct dataset_options *o, struct dataset **out,
					   struct err *err);

#endif
