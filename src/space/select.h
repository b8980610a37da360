/* Ops by name: exact names, op types, or regular expressions, in a comma-separated list. */
#ifndef SPACE_SELECT_H
#define SPACE_SELECT_H

#include "ops/rules.h"

/*
 * Marks the ops that the list names: "conv1, MaxPool, /blocks\\.3.*\/" (a regular expression stands between
 * slashes and must match the whole name). An entry that matches nothing is an error with the nearest name,
 * unless it names an op that was rewritten away.
 */
enum fettle_status select_ops(const char *list, const struct op_list *ops, const struct model *m,
			      bool *selected, struct err *err);

#endif
