#include "evaluate/answer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"

enum { QUOTED_MAX = 80 };

static const char NEED[] =
	"need one number alone on its line, or one JSON object with value, accuracy or score";

static bool is_number(const char *s, size_t n, double *value)
{
	char *end;

	*value = strtod(s, &end);
	return end != s && end == s + n;
}

/* An object that has exactly one of the keys; a number there. */
static bool is_object(const char *s, size_t n, double *value)
{
	static const char *const keys[] = { "value", "accuracy", "score" };
	json_t *j = n && *s == '{' ? json_loadb(s, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	size_t i, found = 0;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		const json_t *x = json_object_get(j, keys[i]);

		if (!json_is_number(x))
			continue;
		*value = json_number_value(x);
		found++;
	}
	json_decref(j);
	return found == 1;
}

static bool is_space(char c)
{
	return isspace((unsigned char)c);
}

/* without space at both ends */
static size_t trim(const char **s, size_t n)
{
	while (n && is_space((*s)[n - 1]))
		n--;
	while (n && is_space(**s)) {
		(*s)++;
		n--;
	}
	return n;
}

/* fit for a message of one line */
static char *quote(const char *s, size_t n)
{
	char *text =
		xstrfmt("'%.*s%s'", (int)(n < QUOTED_MAX ? n : QUOTED_MAX), s, n > QUOTED_MAX ? "…" : "");
	char *p;

	for (p = text; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = ' ';
	return text;
}

static enum fettle_status refuse(const char *command, const char *lead, const char *s, size_t n,
				 struct err *err)
{
	char *text = quote(s, n);

	fail(err, FETTLE_INVALID, "cannot use evaluator '%s': it printed %s%s, %s", command, lead, text,
	     NEED);
	free(text);
	return FETTLE_INVALID;
}

enum fettle_status answer_read(const char *text, const char *command, double *value, struct err *err)
{
	const char *all = text, *last = NULL, *line, *next;
	size_t n = trim(&all, strlen(text)), found = 0, length, last_length = 0;
	double x;

	if (!n)
		return fail(err, FETTLE_INVALID, "cannot use evaluator '%s': it printed nothing, %s", command,
			    NEED);
	if (is_object(all, n, value))
		return FETTLE_OK;
	for (line = all; line; line = next) {
		next = memchr(line, '\n', (size_t)(all + n - line));
		length = (size_t)((next ? next : all + n) - line);
		next = next ? next + 1 : NULL;
		length = trim(&line, length);
		if (is_number(line, length, &x) || is_object(line, length, &x)) {
			if (found++)
				return refuse(command, "several answers, the second ", line, length, err);
			*value = x;
		}
		if (length) {
			last = line;
			last_length = length;
		}
	}
	return found ? FETTLE_OK : refuse(command, "", last, last_length, err);
}
