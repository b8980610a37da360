#include "data/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

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
		if (n)
			map_set(&w->pieces, arena_strfmt(&w->arena, "%.*s", (int)n, p), number);
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
	arena_release(&w->arena);
}

/* ---- characters ---- */

/* The next one; 0 at a byte that is not UTF-8. */
static uint32_t next_char(const unsigned char **p, const unsigned char *end)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	uint32_t c = *(*p)++;
	int more = c < 0x80                ? 0
		   : c >= 0xc2 && c < 0xe0 ? 1
		   : c >= 0xe0 && c < 0xf0 ? 2
		   : c >= 0xf0 && c < 0xf5 ? 3
					   : -1,
	    i;

	if (more < 0 || end - *p < more)
		return 0;
	c &= more ? 0x3fu >> more : 0x7fu;
	for (i = 0; i < more; i++) {
		if (((*p)[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | ((*p)[i] & 0x3fu);
	}
	if (more && c < least[more])
		return 0;
	*p += more;
	return c;
}

static void add_char(struct str *s, uint32_t c)
{
	unsigned char b[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, i;

	for (i = n; i-- > 1; c >>= 6)
		b[i] = (unsigned char)(0x80 | (c & 0x3f));
	b[0] = (unsigned char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
	str_add(s, b, n);
}

struct range {
	uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (c >= r[i].first && c <= r[i].last)
			return true;
	return false;
}
#define IN(c, ranges) in_ranges(c, ranges, ARRAY_LEN(ranges))

static bool is_blank(uint32_t c)
{
	static const struct range blanks[] = { { '\t', '\n' },     { '\r', '\r' },     { ' ', ' ' },
					       { 0xa0, 0xa0 },     { 0x1680, 0x1680 }, { 0x2000, 0x200a },
					       { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 } };

	return IN(c, blanks);
}

/* control and format characters, and what stands for damage */
static bool is_dropped(uint32_t c)
{
	static const struct range dropped[] = { { 0, 0x1f },        { 0x7f, 0x9f },     { 0xad, 0xad },
						{ 0x600, 0x605 },   { 0x200b, 0x200f }, { 0x202a, 0x202e },
						{ 0x2060, 0x206f }, { 0xd800, 0xf8ff }, { 0xfeff, 0xfeff },
						{ 0xfff9, 0xfffd } };

	return IN(c, dropped);
}

/* all of ASCII that is neither letter nor digit, and Unicode's categories P* of the blocks that texts use */
static bool is_punctuation(uint32_t c)
{
	static const struct range marks[] = {
		{ 33, 47 },         { 58, 64 },         { 91, 96 },         { 123, 126 },
		{ 0xa1, 0xa1 },     { 0xa7, 0xa7 },     { 0xab, 0xab },     { 0xb6, 0xb7 },
		{ 0xbb, 0xbb },     { 0xbf, 0xbf },     { 0x37e, 0x37e },   { 0x387, 0x387 },
		{ 0x55a, 0x55f },   { 0x589, 0x58a },   { 0x5be, 0x5be },   { 0x60c, 0x60d },
		{ 0x61b, 0x61b },   { 0x61e, 0x61f },   { 0x66a, 0x66d },   { 0x6d4, 0x6d4 },
		{ 0x964, 0x965 },   { 0x2010, 0x2027 }, { 0x2030, 0x2043 }, { 0x2045, 0x2051 },
		{ 0x2053, 0x205e }, { 0x207d, 0x207e }, { 0x208d, 0x208e }, { 0x2329, 0x232a },
		{ 0x2768, 0x2775 }, { 0x3001, 0x3003 }, { 0x3008, 0x3011 }, { 0x3014, 0x301f },
		{ 0x3030, 0x3030 }, { 0x30fb, 0x30fb }, { 0xff01, 0xff03 }, { 0xff05, 0xff0a },
		{ 0xff0c, 0xff0f }, { 0xff1a, 0xff1b }, { 0xff1f, 0xff20 }, { 0xff3b, 0xff3d },
		{ 0xff3f, 0xff3f }, { 0xff5b, 0xff5b }, { 0xff5d, 0xff5d }, { 0xff5f, 0xff65 }
	};

	return IN(c, marks);
}

static bool is_chinese(uint32_t c)
{
	static const struct range ideographs[] = { { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },
						   { 0xf900, 0xfaff },   { 0x20000, 0x2a6df },
						   { 0x2a700, 0x2b81f }, { 0x2b820, 0x2ceaf },
						   { 0x2f800, 0x2fa1f } };

	return IN(c, ideographs);
}

/* Lower case without accents; 0: it was one. '.' in the table: the letter has none. */
static uint32_t plain(uint32_t c)
{
	static const char latin[] = "aaaaaa.ceeeeiiii" /* U+00C0 */
				    ".nooooo..uuuuy.."
				    "aaaaaa.ceeeeiiii"
				    ".nooooo..uuuuy.y"
				    "aaaaaaccccccccdd" /* U+0100 */
				    "..eeeeeeeeeegggg"
				    "gggghh..iiiiiiii"
				    "i...jjkk.llllll."
				    "...nnnnnn...oooo"
				    "oo..rrrrrrssssss"
				    "sstttt..uuuuuuuu"
				    "uuuuwwyyyzzzzzz.";
	static const uint32_t cyrillic[][2] = { { 0x439, 0x438 }, { 0x451, 0x435 }, { 0x450, 0x435 },
						{ 0x453, 0x433 }, { 0x457, 0x456 }, { 0x45c, 0x43a },
						{ 0x45d, 0x438 }, { 0x45e, 0x443 } };
	size_t i;

	if (c >= 'A' && c <= 'Z')
		return c + 32;
	if (c < 0xc0)
		return c;
	if (c < 0x180 && latin[c - 0xc0] != '.')
		return (unsigned char)latin[c - 0xc0];
	if (c == 0xd7 || c == 0xf7 || c == 0xdf)
		return c;
	if (c < 0xdf)
		return c + 32;
	if (c >= 0x100 && c < 0x180) /* pairs of capital and small; which comes first differs */
		return c == 0x130 || c == 0x131 || c == 0x138 || c == 0x149 || c == 0x178 || c == 0x17f ? c
		       : (c >= 0x139 && c <= 0x148) || c > 0x178 ? c + (c & 1)
								 : c | 1;
	if (c >= 0x300 && c <= 0x36f)
		return 0;
	if (c >= 0x391 && c <= 0x3a9 && c != 0x3a2)
		return c + 32;
	if (c >= 0x410 && c <= 0x42f)
		c += 32;
	else if (c >= 0x400 && c <= 0x40f)
		c += 80;
	for (i = 0; i < ARRAY_LEN(cyrillic); i++)
		if (c == cyrillic[i][0])
			return cyrillic[i][1];
	return c;
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

void wordpiece_add(const struct wordpiece *w, const char *text, size_t n, struct tokens *out)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + n;
	struct str word = STR_INIT;
	uint32_t c;
	bool alone;

	while (p < end) {
		c = next_char(&p, end);
		if (is_blank(c)) {
			add_word(w, &word, out);
			continue;
		}
		if (is_dropped(c))
			continue;
		if (w->lower)
			c = plain(c);
		if (!c)
			continue;
		alone = is_punctuation(c) || is_chinese(c);
		if (alone)
			add_word(w, &word, out);
		add_char(&word, c);
		if (alone)
			add_word(w, &word, out);
	}
	add_word(w, &word, out);
	str_release(&word);
}
