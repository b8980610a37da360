#include "data/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "data/unicode.h"

enum { WORD_MAX = 100 }; /* characters; a longer word is unknown */

enum fettle_status wordpiece_open(struct wordpiece *w, const char *path, bool lower, struct err *err)
{
	static const char *const special[] = { "[UNK]", "[CLS]", "[SEP]", "[PAD]" };
	int64_t *const ids[] = { &w->unknown, &w->begin, &w->end, &w->padding };
	struct bytes file = BYTES_INIT;
	enum fettle_status st = file_map(path, &file, err);
	const char *p, *end, *line;
	size_t number = 0, n, i;

	if (st)
		return st;
	w->lower = lower;
	for (p = (const char *)file.p, end = p + file.n; p < end; p = line + 1, number++) {
		line = memchr(p, '\n', (size_t)(end - p));
		line = line ? line : end;
		for (n = (size_t)(line - p); n && (p[n - 1] == '\r' || p[n - 1] == ' '); n--)
			;
		VEC_PUSH(&w->texts, n ? arena_strfmt(&w->arena, "%.*s", (int)n, p) : NULL);
		if (n)
			map_set(&w->pieces, w->texts.v[number], number);
	}
	for (i = 0; i < ARRAY_LEN(special) && !st; i++) {
		size_t id = map_get(&w->pieces, special[i]);

		if (id == MAP_NONE)
			st = fail(err, FETTLE_INVALID,
				  "cannot read %s: no line %s, need a WordPiece vocabulary (vocab.txt)", path,
				  special[i]);
		*ids[i] = (int64_t)id;
	}
	bytes_release(&file);
	return st;
}

void wordpiece_release(struct wordpiece *w)
{
	map_release(&w->pieces);
	VEC_RELEASE(&w->texts);
	arena_release(&w->arena);
}

/* ---- words and pieces ---- */

/* Where each character of a word begins, and its end; 0: it has too many. */
static size_t find_chars(const struct str *word, size_t at[WORD_MAX + 1])
{
	size_t n = 0, i;

	for (i = 0; i < word->n; i++)
		if (((unsigned char)word->s[i] & 0xc0) != 0x80) {
			if (n == WORD_MAX)
				return 0;
			at[n++] = i;
		}
	at[n] = word->n;
	return n;
}

static void add_word(const struct wordpiece *w, struct str *word, struct tokens *out)
{
	size_t at[WORD_MAX + 1], n = find_chars(word, at), from, to, id;
	const size_t before = out->ids.n;
	struct str piece = STR_INIT;

	for (from = 0; word->n && from < (n ? n : 1); from = to) {
		id = MAP_NONE;
		for (to = n; to > from && id == MAP_NONE; to -= id == MAP_NONE) {
			piece.n = 0;
			str_addf(&piece, "%s%.*s", from ? "##" : "", (int)(at[to] - at[from]),
				 word->s + at[from]);
			id = map_get(&w->pieces, piece.s);
		}
		if (id == MAP_NONE) { /* one piece is missing: the whole word is unknown */
			out->ids.n = before;
			VEC_PUSH(&out->ids, w->unknown);
			break;
		}
		VEC_PUSH(&out->ids, (int64_t)id);
	}
	word->n = 0;
	str_release(&piece);
}

/* Cuts UTF-8 text into words, punctuation being words of their own; take() empties each. */
static void each_word(bool lower, const char *text, size_t n, void (*take)(void *self, struct str *word),
		      void *self)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + n;
	struct str word = STR_INIT;
	uint32_t c;
	bool alone;

	while (p < end) {
		c = utf8_next(&p, end);
		if (unicode_is_blank(c)) {
			take(self, &word);
			continue;
		}
		if (unicode_is_dropped(c))
			continue;
		if (lower)
			c = unicode_plain(c);
		if (!c)
			continue;
		/* BERT takes all of ASCII that is neither letter nor digit for punctuation */
		alone = unicode_is_punctuation(c) || (c < 0x80 && unicode_is_symbol(c)) ||
			unicode_is_chinese(c);
		if (alone)
			take(self, &word);
		utf8_add(&word, c);
		if (alone)
			take(self, &word);
	}
	take(self, &word);
	str_release(&word);
}

struct adding {
	const struct wordpiece *w;
	struct tokens *out;
};

static void take_pieces(void *self, struct str *word)
{
	struct adding *a = self;

	add_word(a->w, word, a->out);
}

void wordpiece_add(const struct wordpiece *w, const char *text, size_t n, struct tokens *out)
{
	each_word(w->lower, text, n, take_pieces, &(struct adding){ w, out });
}

static void take_text(void *self, struct str *word)
{
	struct str *out = self;

	if (word->n)
		str_addf(out, "%s%.*s", out->n ? " " : "", (int)word->n, word->s);
	word->n = 0;
}

void wordpiece_words(const struct wordpiece *w, const char *text, size_t n, struct str *out)
{
	each_word(w->lower, text, n, take_text, out);
}

const char *wordpiece_text(const struct wordpiece *w, int64_t id)
{
	return id >= 0 && (size_t)id < w->texts.n && w->texts.v[id] ? w->texts.v[id] : "[UNK]";
}
