#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/locale.h"
#include "base/mem.h"

static void reserve(struct str *b, size_t more)
{
	if (b->n + more + 1 <= b->cap)
		return;
	b->cap = 2 * (b->n + more + 1);
	b->s = xrealloc(b->s, b->cap, 1);
}

void str_add(struct str *b, const void *bytes, size_t n)
{
	reserve(b, n);
	memcpy(b->s + b->n, bytes, n);
	b->n += n;
	b->s[b->n] = '\0';
}

void str_addf(struct str *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	reserve(b, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(b->s + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void str_add_number(struct str *b, double x)
{
	struct plain_locale locale = plain_locale_begin();
	char text[32];
	int digits;

	for (digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, x);
		if (strtod(text, NULL) == x)
			break;
	}
	str_addf(b, "%s", text);
	plain_locale_end(&locale);
}

double str_number(const char *s)
{
	struct plain_locale locale = plain_locale_begin();
	char *end;
	double x = strtod(s, &end);

	plain_locale_end(&locale);
	return end == s || *end ? NAN : x;
}

void str_release(struct str *b)
{
	free(b->s);
	*b = (struct str)STR_INIT;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

static size_t distance(const char *a, const char *b)
{
	enum { MAX = 64 };
	size_t row[MAX + 1], na = strlen(a), nb = strlen(b), i, j;

	if (na > MAX || nb > MAX)
		return MAX;
	for (j = 0; j <= nb; j++)
		row[j] = j;
	for (i = 1; i <= na; i++) {
		size_t diag = row[0];

		row[0] = i;
		for (j = 1; j <= nb; j++) {
			size_t best = diag + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);

			diag = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

const char *str_nearest(const char *word, const char *const *names, size_t n)
{
	size_t limit = strlen(word) / 3 + 1, i;
	const char *best = NULL;

	for (i = 0; i < n; i++) {
		size_t d = distance(word, names[i]);

		if (d < limit || (!best && d == limit)) {
			limit = d;
			best = names[i];
		}
	}
	return best;
}
