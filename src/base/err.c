#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

enum fettle_status fail(struct err *err, enum fettle_status st, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return st;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return st;
}

enum fettle_status fail_prefix(struct err *err, enum fettle_status st, const char *fmt, ...)
{
	struct err cause;
	char prefix[512];
	va_list ap;

	if (!err)
		return st;
	cause = *err;
	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	snprintf(err->msg, sizeof(err->msg), "%s: %.500s", prefix, cause.msg);
	return st;
}
