#ifndef EVALUATE_PROFILE_H
#define EVALUATE_PROFILE_H

#include "runtime/session.h"

/*
 * Where the time of the model at `path` goes, most time first; free() the rows. On these inputs; NULL: on so many rows of
 * made-up numbers.
 */
enum fettle_status profile_by_op(struct runtime *rt, const char *path, int threads, size_t batch,
				 struct tensor *inputs, struct fettle_profile_row **out, size_t *n,
				 struct err *err);

#endif
