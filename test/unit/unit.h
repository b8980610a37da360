/* What every cmocka program includes, in the order cmocka wants it. */
#ifndef UNIT_H
#define UNIT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* fail() is ours, in base/err.h; and fail_msg() is written in terms of cmocka's */
#undef fail
#undef fail_msg
#define fail_msg(...)                                                                                        \
	do {                                                                                                 \
		print_error("ERROR: " __VA_ARGS__);                                                          \
		print_error("\n");                                                                           \
		_fail(__FILE__, __LINE__);                                                                   \
	} while (0)

/* a call that must succeed; on failure the message says why */
#define assert_ok(call, err)                                                                                 \
	do {                                                                                                 \
		enum fettle_status st_ = (call);                                                             \
		if (st_)                                                                                     \
			fail_msg("%s: status %d, %s", #call, (int)st_, (err).msg);                           \
	} while (0)

#endif
