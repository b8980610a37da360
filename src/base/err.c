#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

/* names come from files: what they hold must not break the line, nor speak to the terminal */
static void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
}

enum fettle_status fail(struct err *err, enum fettle_status st, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return st;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	one_line(err->msg);
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
	one_line(err->msg);
	return st;
}
