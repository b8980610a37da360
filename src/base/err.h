/* The one way errors travel: a status, and a message written once where the cause is known. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "fettle.h"

struct err {
	char msg[1024];
};
#define ERR_INIT                                                                                             \
	{                                                                                                    \
		{                                                                                            \
			0                                                                                    \
		}                                                                                            \
	}

/* Writes "cannot VERB OBJECT: VALUE, RULE" into err (which may be NULL) and returns st. */
enum fettle_status fail(struct err *err, enum fettle_status st, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the message that is already in err, and returns st. */
enum fettle_status fail_prefix(struct err *err, enum fettle_status st, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
