#include "evaluate/sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/unicode.h"
#include "data/vocabulary.h"

const char *const sequence_option_names[] = { "blank", "end", "pad", "space", NULL };

bool sequence_options(const char *text, const struct sequence_rule *otherwise, struct sequence_rule *out,
		      char **bad)
{
	char *copy = xstrdup(text), *at = copy, *part, *value, *end;
	int64_t *const fields[] = { &out->blank, &out->end, &out->pad, &out->space };
	bool ok = true;
	size_t i;

	*bad = NULL;
	*out = *otherwise;
	while (ok && *text && (part = strsep(&at, "/"))) {
		value = strchr(part, '=');
		if (value)
			*value++ = '\0';
		for (i = 0; sequence_option_names[i] && strcasecmp(sequence_option_names[i], part) != 0; i++)
			;
		ok = value && sequence_option_names[i];
		if (ok && strcasecmp(value, "none") == 0) {
			*fields[i] = -1;
		} else if (ok) {
			*fields[i] = strtoll(value, &end, 10);
			ok = end != value && !*end && *fields[i] >= -1;
		}
		if (!ok)
			*bad = xstrfmt("%s%s%s", part, value ? "=" : "", value ? value : "");
	}
	free(copy);
	return ok;
}

enum fettle_status sequence_check(const struct metric *m, const struct metric_batch *b, struct err *err)
{
	const struct tensor *out = &b->outputs[0], *labels = b->labels;
	enum fettle_status st = metric_check(m, "outputs", out, b->n_valid, err);

	if (!st)
		st = metric_check(m, "labels", labels, b->n_valid, err);
	if (!st && ((out->rank != 2 && out->rank != 3) || labels->rank != 2))
		st = metric_mismatch(m, out, "labels", labels,
				     "tokens [N,T] or their scores [N,T,V], and labels [N,T]", err);
	return st;
}

static void push_token(const struct sequence_rule *r, int64_t id, int64_t *last, struct sequence *out)
{
	if (id != r->blank && id != r->pad && id != METRIC_IGNORED && !(r->blank >= 0 && id == *last))
		VEC_PUSH(&out->ids, id);
	*last = id;
}

void sequence_of_output(const struct tensor *t, size_t row, const struct sequence_rule *r,
			struct sequence *out)
{
	const size_t steps = (size_t)t->dims[1], width = t->rank == 3 ? (size_t)t->dims[2] : 1;
	int64_t last = -1, id;
	size_t i, k;

	out->ids.n = 0;
	for (i = 0; i < steps; i++) {
		const size_t at = (row * steps + i) * width;
		double best = -INFINITY, x;

		id = t->rank == 3 ? -1 : (int64_t)tensor_get(t, at);
		for (k = 0; t->rank == 3 && k < width; k++) {
			x = tensor_get(t, at + k);
			if (x > best) {
				best = x;
				id = (int64_t)k;
			}
		}
		if (id >= 0 && id == r->end)
			break;
		push_token(r, id, &last, out);
	}
}

void sequence_of_label(const struct tensor *t, size_t row, const struct sequence_rule *r,
		       struct sequence *out)
{
	const struct sequence_rule as_is = { .blank = -1, .end = r->end, .pad = r->pad, .space = -1 };
	struct tensor flat = *t;

	flat.rank = 2;
	sequence_of_output(&flat, row, &as_is, out);
}

/* ---- words ---- */

static bool is_digit(uint32_t c)
{
	return c < 0x80 ? c >= '0' && c <= '9'
			: unicode_is_number(c) && ((c >= 0x660 && c < 0x2000) || c >= 0xff10);
}

struct points {
	VEC(uint32_t) c;
};

/* Two characters in a row: is the first (second) no digit and the other punctuation? Blanks go around it. */
static void part_punctuation(struct points *p, bool before)
{
	struct points out = { .c = { 0 } };
	size_t i;

	for (i = 0; i < p->c.n; i++) {
		const uint32_t a = p->c.v[i], b = i + 1 < p->c.n ? p->c.v[i + 1] : '0';
		const bool apart = i + 1 < p->c.n && (before ? !is_digit(a) && unicode_is_punctuation(b)
							     : unicode_is_punctuation(a) && !is_digit(b));

		if (apart && !before)
			VEC_PUSH(&out.c, ' ');
		VEC_PUSH(&out.c, a);
		if (!apart)
			continue;
		VEC_PUSH(&out.c, ' ');
		VEC_PUSH(&out.c, b);
		if (before)
			VEC_PUSH(&out.c, ' ');
		i++;
	}
	VEC_RELEASE(&p->c);
	*p = out;
}

/* Neural Compressor's way to cut text for BLEU, which is mteval-v14's. */
static void cut_for_bleu(struct points *p)
{
	struct points out = { .c = { 0 } };
	size_t i;

	part_punctuation(p, true);
	part_punctuation(p, false);
	for (i = 0; i < p->c.n; i++) {
		const bool symbol = unicode_is_symbol(p->c.v[i]);

		if (symbol)
			VEC_PUSH(&out.c, ' ');
		VEC_PUSH(&out.c, p->c.v[i]);
		if (symbol)
			VEC_PUSH(&out.c, ' ');
	}
	VEC_RELEASE(&p->c);
	*p = out;
}

static void push_word(struct sequence_words *out, struct str *word)
{
	if (word->n)
		VEC_PUSH(&out->v, arena_strfmt(&out->arena, "%.*s", (int)word->n, word->s));
	word->n = 0;
}

static void words_of_text(const char *text, size_t n, enum word_unit unit, struct sequence_words *out)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + n;
	struct points points = { .c = { 0 } };
	struct str word = STR_INIT;
	size_t i;

	while (p < end) {
		const uint32_t c = utf8_next(&p, end);

		VEC_PUSH(&points.c, unit == UNIT_BLEU ? unicode_lower(c) : c);
	}
	if (unit == UNIT_BLEU)
		cut_for_bleu(&points);
	for (i = 0; i < points.c.n; i++) {
		if (unicode_is_blank(points.c.v[i]) && unit != UNIT_CHARACTERS) {
			push_word(out, &word);
			continue;
		}
		utf8_add(&word, points.c.v[i]);
		if (unit == UNIT_CHARACTERS)
			push_word(out, &word);
	}
	push_word(out, &word);
	VEC_RELEASE(&points.c);
	str_release(&word);
}

void sequence_words(const struct metric *m, const struct sequence_rule *r, const struct sequence *s,
		    enum word_unit unit, struct sequence_words *out)
{
	struct str text = STR_INIT;
	size_t i;

	if (m->vocabulary) {
		vocabulary_text(m->vocabulary, s->ids.v, s->ids.n, &text);
		words_of_text(text.s ? text.s : "", text.n, unit, out);
	} else {
		for (i = 0; i < s->ids.n; i++) {
			const bool space = s->ids.v[i] == r->space && unit != UNIT_CHARACTERS;

			if (space || r->space < 0 || unit == UNIT_CHARACTERS)
				push_word(out, &text);
			if (!space)
				str_addf(&text, "%s%lld", text.n ? " " : "", (long long)s->ids.v[i]);
		}
		push_word(out, &text);
	}
	str_release(&text);
}

void sequence_words_release(struct sequence_words *w)
{
	VEC_RELEASE(&w->v);
	arena_release(&w->arena);
}

size_t sequence_edits(const struct sequence_words *a, const struct sequence_words *b)
{
	size_t *row = xcalloc(b->v.n + 1, sizeof(*row)), i, k, edits;

	for (k = 0; k <= b->v.n; k++)
		row[k] = k;
	for (i = 1; i <= a->v.n; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (k = 1; k <= b->v.n; k++) {
			size_t best = corner + (strcmp(a->v.v[i - 1], b->v.v[k - 1]) != 0);

			best = row[k] + 1 < best ? row[k] + 1 : best;
			best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
			corner = row[k];
			row[k] = best;
		}
	}
	edits = row[b->v.n];
	free(row);
	return edits;
}
