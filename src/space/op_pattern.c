#include "space/op_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* What follows a backslash, in a set of characters or outside; returns false where POSIX has it alike. */
static bool add_class(struct str *out, char c, bool in_set)
{
	static const struct {
		char c;
		const char *set;
	} classes[] = { { 'd', "0-9" }, { 'w', "A-Za-z0-9_" }, { 's', " \t" } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(classes); i++) {
		const bool other = c == classes[i].c - 32; /* the capital: what is not in it */

		if (c != classes[i].c && (!other || in_set))
			continue;
		str_addf(out, "%s%s%s%s", in_set ? "" : "[", other ? "^" : "", classes[i].set,
			 in_set ? "" : "]");
		return true;
	}
	return false;
}

/* A regular expression of Python as one of POSIX, in so far as both have the same. */
static void translate(const char *p, struct str *out)
{
	bool in_set = false;

	str_addf(out, "^(");
	for (; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
			if (!add_class(out, *p, in_set))
				str_addf(out, "%s%c", in_set ? "" : "\\", *p);
		} else if (in_set || *p == '[') {
			str_addf(out, "%c", *p);
			if (!in_set && p[1] == '^')
				str_addf(out, "%c", *++p);
			if (!in_set && p[1] == ']')
				str_addf(out, "%c", *++p);
			in_set = !in_set || *p != ']';
		} else if (strncmp(p, "(?:", 3) == 0) {
			str_addf(out, "(");
			p += 2;
		} else {
			str_addf(out, "%c", *p);
			p += strchr("*+?}", *p) &&
			     p[1] == '?'; /* as few as possible: that is the same here */
		}
	}
	str_addf(out, ")");
}

void op_pattern_init(struct op_pattern *p, const char *name)
{
	struct str posix = STR_INIT;

	*p = (struct op_pattern){ .name = name };
	if (!strpbrk(name, "*+?[](){}|^$\\"))
		return;
	translate(name, &posix);
	p->is_regex = regcomp(&p->re, posix.s, REG_EXTENDED | REG_NOSUB) == 0;
	str_release(&posix);
}

void op_pattern_release(struct op_pattern *p)
{
	if (p->is_regex)
		regfree(&p->re);
}

bool op_pattern_matches(const struct op_pattern *p, const char *name, const char *type)
{
	const size_t n = strlen(name);

	if (strcmp(p->name, name) == 0 || (p->is_regex && regexec(&p->re, name, 0, NULL, 0) == 0))
		return true;
	return type && strcmp(type, "Gemm") == 0 && strncmp(p->name, name, n) == 0 &&
	       strcmp(p->name + n, "_MatMul") == 0;
}
