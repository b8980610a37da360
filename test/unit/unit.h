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
#undef fail /* ours is in base/err.h; fail_msg() says more anyway */

/* a call that must succeed; on failure the message says why */
#define assert_ok(call, err)                                                                                 \
	do {                                                                                                 \
		enum fettle_status st_ = (call);                                                             \
		if (st_)                                                                                     \
			fail_msg("%s: status %d, %s", #call, (int)st_, (err).msg);                           \
	} while (0)

#endif
