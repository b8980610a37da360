/* Strings that grow, and the few string questions C does not answer. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

struct str {
	char *s; /* always NUL-terminated once something was added */
	size_t n, cap;
};
#define STR_INIT                                                                                             \
	{                                                                                                    \
		NULL, 0, 0                                                                                   \
	}

void str_addf(struct str *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_add(struct str *b, const void *bytes, size_t n);
/* The shortest decimal number that reads back as x, with a point in every locale. */
void str_add_number(struct str *b, double x);
/* Such a number; NAN: it is none. */
double str_number(const char *s);
void str_release(struct str *b);

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* The name nearest to `word` (edit distance, at most a third of its length), or NULL. */
const char *str_nearest(const char *word, const char *const *names, size_t n);

#endif
