/* A runtime and a folder of its own, for the tests of a program. */
#ifndef UNIT_PLACE_H
#define UNIT_PLACE_H

#include "runtime/session.h"
#include "unit/tree.h"
#include "unit/unit.h"

static struct runtime *rt;
static char *dir;

static inline int place_open(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	dir = temp_tree();
	assert_ok(runtime_new(&rt, &err), err);
	return 0;
}

static inline int place_close(void **state)
{
	(void)state;
	runtime_free(rt);
	remove_tree(dir);
	return 0;
}

#endif
