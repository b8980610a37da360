#include "data/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/unicode.h"

#define WORD_BEGIN "\xe2\x96\x81" /* U+2581 */

enum joining { WORDS, CHARACTERS, CONTINUED, BEGUN, ENDED };

struct vocabulary {
	struct arena arena;
	VEC(const char *) pieces;
	enum joining joining;
};

static bool is_character(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	return *s && utf8_next(&p, p + strlen(s)) && !*p;
}

static enum joining find_joining(const struct vocabulary *v)
{
	size_t continued = 0, begun = 0, ended = 0, single = 0, i;

	for (i = 0; i < v->pieces.n; i++) {
		const char *s = v->pieces.v[i];

		continued += str_starts(s, "##");
		begun += str_starts(s, WORD_BEGIN);
		ended += strlen(s) > 1 && str_ends(s, "_");
		single += is_character(s) || *s == '<' || *s == '['; /* "<pad>" and the like are no text */
	}
	if (begun)
		return BEGUN;
	if (continued)
		return CONTINUED;
	if (ended > v->pieces.n / 4)
		return ENDED;
	return single == v->pieces.n ? CHARACTERS : WORDS;
}

enum fettle_status vocabulary_open(struct vocabulary **out, const char *path, struct err *err)
{
	struct bytes file = BYTES_INIT;
	struct vocabulary *v;
	const char *p, *end, *line;
	size_t n;
	enum fettle_status st = file_map(path, &file, err);

	if (st)
		return st;
	v = xcalloc(1, sizeof(*v));
	for (p = (const char *)file.p, end = p + file.n; p < end; p = line + 1) {
		line = memchr(p, '\n', (size_t)(end - p));
		line = line ? line : end;
		n = (size_t)(line - p);
		n -= n && p[n - 1] == '\r';
		VEC_PUSH(&v->pieces, arena_strfmt(&v->arena, "%.*s", (int)n, p));
	}
	v->joining = find_joining(v);
	bytes_release(&file);
	*out = v;
	return FETTLE_OK;
}

void vocabulary_free(struct vocabulary *v)
{
	if (!v)
		return;
	VEC_RELEASE(&v->pieces);
	arena_release(&v->arena);
	free(v);
}

void vocabulary_text(const struct vocabulary *v, const int64_t *ids, size_t n, struct str *out)
{
	const size_t before = out->n;
	size_t i;

	for (i = 0; i < n; i++) {
		const char *s = ids[i] >= 0 && (size_t)ids[i] < v->pieces.n ? v->pieces.v[ids[i]] : NULL;
		const bool first = out->n == before;

		if (!s)
			continue;
		switch (v->joining) {
		case CONTINUED:
			str_addf(out, "%s%s", first || str_starts(s, "##") ? "" : " ",
				 str_starts(s, "##") ? s + 2 : s);
			break;
		case BEGUN:
			str_addf(out, "%s%s", first || !str_starts(s, WORD_BEGIN) ? "" : " ",
				 str_starts(s, WORD_BEGIN) ? s + strlen(WORD_BEGIN) : s);
			break;
		case ENDED:
			str_addf(out, "%.*s%s", (int)(strlen(s) - str_ends(s, "_")), s,
				 str_ends(s, "_") ? " " : "");
			break;
		case CHARACTERS:
			str_addf(out, "%s", s);
			break;
		default:
			str_addf(out, "%s%s", first ? "" : " ", s);
			break;
		}
	}
}
