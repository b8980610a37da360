#include "data/bpe.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/unicode.h"

enum { WORD_MAX = 1000 }; /* bytes; what is longer is cut */

/* Printable bytes stand for themselves, the others for the characters from U+0100 on. */
static void name_bytes(struct bpe *b)
{
	uint32_t next = 0x100, c;
	int i;

	for (i = 0; i < 256; i++) {
		struct str s = STR_INIT;

		c = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae ? (uint32_t)i : next++;
		utf8_add(&s, c);
		memcpy(b->letter[i], s.s, s.n);
		str_release(&s);
	}
}

static enum fettle_status read_pieces(struct bpe *b, const char *path, struct err *err)
{
	static const char *const special[] = { "<unk>", "<s>", "</s>" };
	int64_t *const ids[] = { &b->unknown, &b->begin, &b->end };
	json_error_t why;
	json_t *all = json_load_file(path, 0, &why), *id;
	enum fettle_status st = FETTLE_OK;
	const char *piece;
	size_t i;

	if (!all)
		return fail(err, FETTLE_INVALID, "cannot read %s: line %d: %s", path, why.line, why.text);
	json_object_foreach(all, piece, id)
	{
		if (!json_is_integer(id) || json_integer_value(id) < 0)
			st = fail(err, FETTLE_INVALID, "cannot read %s: piece '%.80s', need its number", path,
				  piece);
		else
			map_set(&b->pieces, arena_strdup(&b->arena, piece), (size_t)json_integer_value(id));
	}
	for (i = 0; i < ARRAY_LEN(special) && !st; i++) {
		*ids[i] = (int64_t)map_get(&b->pieces, special[i]);
		if (map_get(&b->pieces, special[i]) == MAP_NONE)
			st = fail(err, FETTLE_INVALID,
				  "cannot read %s: no piece %s, need a vocabulary such as RoBERTa's", path,
				  special[i]);
	}
	json_decref(all);
	return st;
}

static enum fettle_status read_merges(struct bpe *b, const char *path, struct err *err)
{
	struct bytes file = BYTES_INIT;
	enum fettle_status st = file_map(path, &file, err);
	const char *p = (const char *)file.p, *end = file.n ? p + file.n : p, *line, *blank;
	size_t number = 0, n;

	for (; !st && p < end; p = line + 1, number++) {
		line = memchr(p, '\n', (size_t)(end - p));
		line = line ? line : end;
		n = (size_t)(line - p);
		n -= n && p[n - 1] == '\r';
		if (!n || (!number && n > 8 && memcmp(p, "#version", 8) == 0))
			continue;
		blank = memchr(p, ' ', n);
		if (!blank || blank == p || blank == p + n - 1 || memchr(p, '\0', n))
			st = fail(err, FETTLE_INVALID, "cannot read %s: line %zu, need two pieces", path,
				  number + 1);
		else
			map_set(&b->merges, arena_strfmt(&b->arena, "%.*s", (int)n, p), number);
	}
	bytes_release(&file);
	return st;
}

enum fettle_status bpe_open(struct bpe *b, const char *vocab, const char *merges, struct err *err)
{
	enum fettle_status st = read_pieces(b, vocab, err);

	name_bytes(b);
	return st ? st : read_merges(b, merges, err);
}

void bpe_release(struct bpe *b)
{
	map_release(&b->pieces);
	map_release(&b->merges);
	arena_release(&b->arena);
}

/* ---- a word's pieces ---- */

/* Where each piece of a word begins in its text, and the end. */
struct cut {
	struct str text; /* bytes by their characters */
	size_t at[WORD_MAX + 1], n;
};

static void add_piece(const struct cut *w, size_t i, struct str *out)
{
	str_addf(out, "%.*s", (int)(w->at[i + 1] - w->at[i]), w->text.s + w->at[i]);
}

/* The place in the list of the pair that begins with piece i. */
static size_t rank_of(const struct bpe *b, const struct cut *w, size_t i, struct str *pair)
{
	pair->n = 0;
	add_piece(w, i, pair);
	str_addf(pair, " ");
	add_piece(w, i + 1, pair);
	return map_get(&b->merges, pair->s);
}

/* The pair that comes first in the list is joined, everywhere; again and again. */
static void join(const struct bpe *b, struct cut *w)
{
	size_t rank[WORD_MAX], best, i, k;
	struct str pair = STR_INIT;

	for (i = 0; i + 1 < w->n; i++)
		rank[i] = rank_of(b, w, i, &pair);
	while (w->n > 1) {
		for (best = MAP_NONE, i = 0; i + 1 < w->n; i++)
			best = rank[i] < best ? rank[i] : best;
		if (best == MAP_NONE)
			break;
		for (i = k = 0; i < w->n; i++, k++) {
			w->at[k] = w->at[i];
			i += i + 1 < w->n && rank[i] == best;
		}
		w->at[k] = w->at[w->n];
		w->n = k;
		for (i = 0; i + 1 < w->n; i++)
			rank[i] = rank_of(b, w, i, &pair);
	}
	str_release(&pair);
}

static void add_word(const struct bpe *b, const unsigned char *p, size_t n, struct tokens *out)
{
	struct cut w = { .text = STR_INIT };
	struct str piece = STR_INIT;
	size_t i, id;

	for (w.n = 0; w.n < n; w.n++) {
		w.at[w.n] = w.text.n;
		str_addf(&w.text, "%s", b->letter[p[w.n]]);
	}
	w.at[w.n] = w.text.n;
	join(b, &w);
	for (i = 0; i < w.n; i++) {
		piece.n = 0;
		add_piece(&w, i, &piece);
		id = map_get(&b->pieces, piece.s);
		VEC_PUSH(&out->ids, id == MAP_NONE ? b->unknown : (int64_t)id);
	}
	str_release(&piece);
	str_release(&w.text);
}

/* ---- words ---- */

enum sort { BLANK, LETTER, NUMBER, OTHER, END };

static enum sort sort_at(const unsigned char *p, const unsigned char *end, const unsigned char **next)
{
	uint32_t c;

	if (p == end)
		return END;
	c = utf8_next(&p, end);
	*next = p;
	if (unicode_is_blank(c) || c == 0x0b || c == 0x0c || c == 0x85 || c == 0x2028 || c == 0x2029)
		return BLANK;
	return unicode_is_letter(c) ? LETTER : unicode_is_number(c) ? NUMBER : OTHER;
}

/* The end of the characters of one sort that begin at p. */
static const unsigned char *run_end(const unsigned char *p, const unsigned char *end)
{
	const unsigned char *next = p;
	const enum sort first = sort_at(p, end, &next);

	for (p = next; sort_at(p, end, &next) == first; p = next)
		;
	return p;
}

static const unsigned char *word_end(const unsigned char *p, const unsigned char *end)
{
	static const char *const endings[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };
	const unsigned char *next, *q, *last = p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(endings); i++)
		if ((size_t)(end - p) >= strlen(endings[i]) && !memcmp(p, endings[i], strlen(endings[i])))
			return p + strlen(endings[i]);
	q = p + (*p == ' '); /* which belongs to the word after it */
	if (q < end && sort_at(q, end, &next) != BLANK)
		return run_end(q, end);
	q = run_end(p, end); /* blanks: the last of several is left to what follows */
	if (q == end)
		return q;
	for (next = p; next < q;) {
		last = next;
		sort_at(next, end, &next);
	}
	return last > p ? last : q;
}

void bpe_add(const struct bpe *b, const char *text, size_t n, struct tokens *out)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + n, *next;

	for (; p < end; p = next) {
		next = word_end(p, end);
		if (next - p > WORD_MAX)
			next = p + WORD_MAX;
		add_word(b, p, (size_t)(next - p), out);
	}
}
