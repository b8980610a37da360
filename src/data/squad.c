#include "data/squad.h"

#include <string.h>
#include <stdlib.h>

#include <jansson.h>

#include "data/unicode.h"

enum { STRIDE = 128, QUERY_MAX = 64 };

struct word {
	const char *p;
	size_t n;
};

/* A paragraph: its words, and their pieces. */
struct context {
	VEC(struct word) words;
	struct tokens pieces;
	VEC(size_t) word_of; /* piece -> word */
};

struct question {
	size_t context;
	struct tokens query;
	const char **answers;
	size_t n_answers;
	size_t first, n; /* features */
};

struct feature {
	size_t question;
	size_t at, n; /* pieces of the context */
};

struct squad {
	struct arena arena;
	struct wordpiece words;
	VEC(struct context) contexts;
	VEC(struct question) questions;
	VEC(struct feature) features;
};

static bool cuts_words(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void cut_context(struct squad *s, struct context *c, const char *text)
{
	const char *p = text, *end = text + strlen(text), *start;
	size_t i;

	while (p < end) {
		for (; p < end && (cuts_words(*p) || str_starts(p, "\xe2\x80\xaf"));
		     p += cuts_words(*p) ? 1 : 3)
			;
		for (start = p; p < end && !cuts_words(*p) && !str_starts(p, "\xe2\x80\xaf"); p++)
			;
		if (p == start)
			continue;
		VEC_PUSH(&c->words, ((struct word){ start, (size_t)(p - start) }));
		wordpiece_add(&s->words, start, (size_t)(p - start), &c->pieces);
		for (i = c->word_of.n; i < c->pieces.ids.n; i++)
			VEC_PUSH(&c->word_of, c->words.n - 1);
	}
}

/* The features of the last question. */
static void add_features(struct squad *s, size_t room)
{
	struct question *q = &s->questions.v[s->questions.n - 1];
	const size_t all = s->contexts.v[q->context].pieces.ids.n;
	size_t at = 0, n;

	q->first = s->features.n;
	room -= q->query.ids.n + 3;
	while (at < all) {
		n = all - at < room ? all - at : room;
		VEC_PUSH(&s->features, ((struct feature){ s->questions.n - 1, at, n }));
		if (at + n == all)
			break;
		at += n < STRIDE ? n : STRIDE;
	}
	q->n = s->features.n - q->first;
}

static enum fettle_status add_question(struct squad *s, const json_t *qa, const char *path, size_t room,
				       struct err *err)
{
	const char *text = json_string_value(json_object_get(qa, "question"));
	const json_t *answers = json_object_get(qa, "answers");
	struct question q = { .context = s->contexts.n - 1, .n_answers = json_array_size(answers) };
	const char *answer;
	size_t i;

	if (!text || !q.n_answers)
		return fail(err, FETTLE_INVALID,
			    "cannot read %s: question %zu, need a question with answers (SQuAD 1.1)", path,
			    s->questions.n);
	q.answers = arena_alloc(&s->arena, q.n_answers * sizeof(*q.answers));
	for (i = 0; i < q.n_answers; i++) {
		answer = json_string_value(json_object_get(json_array_get(answers, i), "text"));
		if (!answer)
			return fail(err, FETTLE_INVALID,
				    "cannot read %s: question %zu, answer %zu has no text", path,
				    s->questions.n, i);
		q.answers[i] = arena_strdup(&s->arena, answer);
	}
	wordpiece_add(&s->words, text, strlen(text), &q.query);
	if (q.query.ids.n > QUERY_MAX)
		q.query.ids.n = QUERY_MAX;
	VEC_PUSH(&s->questions, q);
	add_features(s, room);
	return FETTLE_OK;
}

static enum fettle_status read_file(struct squad *s, const json_t *all, const char *path, size_t room,
				    struct err *err)
{
	const json_t *article, *paragraph, *qa;
	enum fettle_status st = FETTLE_OK;
	const char *text;
	size_t i, k, j;

	json_array_foreach(json_object_get(all, "data"), i, article)
	{
		json_array_foreach(json_object_get(article, "paragraphs"), k, paragraph)
		{
			text = json_string_value(json_object_get(paragraph, "context"));
			if (!text)
				return fail(err, FETTLE_INVALID,
					    "cannot read %s: paragraph %zu of article %zu has no context",
					    path, k, i);
			VEC_PUSH(&s->contexts, ((struct context){ .words = { 0 } }));
			cut_context(s, &s->contexts.v[s->contexts.n - 1], arena_strdup(&s->arena, text));
			json_array_foreach(json_object_get(paragraph, "qas"), j, qa)
			{
				st = add_question(s, qa, path, room, err);
				if (st)
					return st;
			}
		}
	}
	return s->features.n ? FETTLE_OK
			     : fail(err, FETTLE_INVALID,
				    "cannot read %s: no questions, need a file of SQuAD 1.1", path);
}

enum fettle_status squad_open(struct squad **out, const struct squad_files *files, struct err *err)
{
	struct squad *s = xcalloc(1, sizeof(*s));
	json_error_t why;
	json_t *all = NULL;
	enum fettle_status st;

	if (!files->vocab_file || !files->label_file)
		st = fail(err, FETTLE_INVALID, "cannot score answers: no %s, need one",
			  files->vocab_file ? "label_file" : "vocab_file");
	else if (files->max_seq_length < QUERY_MAX + 4)
		st = fail(err, FETTLE_INVALID, "cannot score answers: max_seq_length %d, need %d or more",
			  files->max_seq_length, QUERY_MAX + 4);
	else
		st = wordpiece_open(&s->words, files->vocab_file, files->lower, err);
	if (st)
		goto out;
	all = json_load_file(files->label_file, 0, &why);
	if (!all) {
		st = fail(err, FETTLE_INVALID, "cannot read %s: line %d: %s", files->label_file, why.line,
			  why.text);
		goto out;
	}
	st = read_file(s, all, files->label_file, (size_t)files->max_seq_length, err);
	if (st)
		goto out;
	*out = s;
	s = NULL; /* now the caller's */
out:
	json_decref(all);
	squad_free(s);
	return st;
}

void squad_free(struct squad *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->contexts.n; i++) {
		VEC_RELEASE(&s->contexts.v[i].words);
		VEC_RELEASE(&s->contexts.v[i].pieces.ids);
		VEC_RELEASE(&s->contexts.v[i].word_of);
	}
	for (i = 0; i < s->questions.n; i++)
		VEC_RELEASE(&s->questions.v[i].query.ids);
	VEC_RELEASE(&s->contexts);
	VEC_RELEASE(&s->questions);
	VEC_RELEASE(&s->features);
	wordpiece_release(&s->words);
	arena_release(&s->arena);
	free(s);
}

size_t squad_questions(const struct squad *s)
{
	return s->questions.n;
}

size_t squad_features(const struct squad *s)
{
	return s->features.n;
}

size_t squad_question(const struct squad *s, size_t feature)
{
	return s->features.v[feature].question;
}

void squad_tokens(const struct squad *s, size_t feature, struct tokens *out)
{
	const struct feature *f = &s->features.v[feature];
	const struct question *q = &s->questions.v[f->question];
	size_t i;

	VEC_PUSH(&out->ids, s->words.begin);
	for (i = 0; i < q->query.ids.n; i++)
		VEC_PUSH(&out->ids, q->query.ids.v[i]);
	VEC_PUSH(&out->ids, s->words.end);
	for (i = 0; i < f->n; i++)
		VEC_PUSH(&out->ids, s->contexts.v[q->context].pieces.ids.v[f->at + i]);
	VEC_PUSH(&out->ids, s->words.end);
}

/* Where a feature's context begins among its tokens. */
static size_t context_at(const struct squad *s, size_t feature)
{
	return s->questions.v[s->features.v[feature].question].query.ids.n + 2;
}

/* How much context a feature has on both sides of a piece; below 0: it has not the piece. */
static double context_around(const struct feature *f, size_t piece)
{
	size_t left, right;

	if (piece < f->at || piece >= f->at + f->n)
		return -1;
	left = piece - f->at;
	right = f->at + f->n - 1 - piece;
	return (double)(left < right ? left : right) + 0.01 * (double)f->n;
}

bool squad_allows(const struct squad *s, size_t feature, size_t from, size_t to)
{
	const struct feature *f = &s->features.v[feature];
	const struct question *q = &s->questions.v[f->question];
	const size_t at = context_at(s, feature);
	double own;
	size_t i;

	if (from < at || to < from || to >= at + f->n)
		return false;
	own = context_around(f, f->at + from - at);
	for (i = q->first; i < q->first + q->n; i++) {
		double other = context_around(&s->features.v[i], f->at + from - at);

		if (other > own || (other == own && i < feature)) /* of equal ones, the first */
			return false;
	}
	return true;
}

/* ---- from tokens back to text ---- */

struct chars {
	VEC(uint32_t) c;
	VEC(size_t) at;    /* of each in the text */
	VEC(size_t) solid; /* those that are no blanks */
};

static void chars_of(struct chars *out, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + n;

	while (p < end) {
		VEC_PUSH(&out->at, (size_t)(p - (const unsigned char *)text));
		VEC_PUSH(&out->c, utf8_next(&p, end));
		if (out->c.v[out->c.n - 1] != ' ')
			VEC_PUSH(&out->solid, out->c.n - 1);
	}
	VEC_PUSH(&out->at, n);
}

static void chars_release(struct chars *c)
{
	VEC_RELEASE(&c->c);
	VEC_RELEASE(&c->at);
	VEC_RELEASE(&c->solid);
}

/* Which of the solid ones character i is; SIZE_MAX: a blank. */
static size_t solid_number(const struct chars *c, size_t i)
{
	size_t k;

	for (k = 0; k < c->solid.n && c->solid.v[k] < i; k++)
		;
	return k < c->solid.n && c->solid.v[k] == i ? k : SIZE_MAX;
}

/*
 * The part of `original` that the pieces' text `pieces` stands for: it is looked for in what the tokenizer makes of the original, and
 * found again by counting characters that are no blanks. What cannot be found is the whole original.
 */
static void project(const struct squad *s, const struct str *pieces, const struct str *original,
		    struct str *out)
{
	struct str tokenised = STR_INIT;
	struct chars o = { .c = { 0 } }, t = { .c = { 0 } };
	const char *found;
	size_t from = 0, to = original->n, first, last, a, b;

	wordpiece_words(&s->words, original->s, original->n, &tokenised);
	found = tokenised.n ? strstr(tokenised.s, pieces->s) : NULL;
	if (!found)
		goto out;
	chars_of(&o, original->s, original->n);
	chars_of(&t, tokenised.s, tokenised.n);
	if (o.solid.n != t.solid.n)
		goto out;
	for (first = 0; t.at.v[first] < (size_t)(found - tokenised.s); first++)
		;
	for (last = first; t.at.v[last + 1] < (size_t)(found - tokenised.s) + pieces->n; last++)
		;
	a = solid_number(&t, first);
	b = solid_number(&t, last);
	if (a == SIZE_MAX || b == SIZE_MAX)
		goto out;
	from = o.at.v[o.solid.v[a]];
	to = o.at.v[o.solid.v[b] + 1];
out:
	str_add(out, original->s + from, to - from);
	chars_release(&o);
	chars_release(&t);
	str_release(&tokenised);
}

void squad_text(const struct squad *s, size_t feature, size_t from, size_t to, struct str *out)
{
	const struct feature *f = &s->features.v[feature];
	const struct context *c = &s->contexts.v[s->questions.v[f->question].context];
	const size_t first = f->at + from - context_at(s, feature),
		     last = f->at + to - context_at(s, feature);
	struct str pieces = STR_INIT, original = STR_INIT;
	size_t i;

	for (i = first; i <= last; i++) {
		const char *text = wordpiece_text(&s->words, c->pieces.ids.v[i]);
		const bool inner = str_starts(text, "##");

		str_addf(&pieces, "%s%s", pieces.n && !inner ? " " : "", inner ? text + 2 : text);
	}
	for (i = c->word_of.v[first]; i <= c->word_of.v[last]; i++)
		str_addf(&original, "%s%.*s", original.n ? " " : "", (int)c->words.v[i].n, c->words.v[i].p);
	project(s, &pieces, &original, out);
	str_release(&pieces);
	str_release(&original);
}

/* ---- scores ---- */

struct bag {
	struct str text;
	VEC(struct word) words;
};

static bool is_article(const char *p, size_t n)
{
	return (n == 1 && *p == 'a') || (n == 2 && !memcmp(p, "an", 2)) || (n == 3 && !memcmp(p, "the", 3));
}

/* Lower case, without ASCII's punctuation, without articles. */
static void normalise(struct bag *b, const char *text)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
	struct str run = STR_INIT, *out = &b->text; /* run: letters and digits in a row */
	size_t i, start;
	uint32_t c;
	bool more = true;

	while (more) {
		more = p < end;
		c = more ? unicode_lower(utf8_next(&p, end)) : ' ';
		if (c < 0x80 && (unicode_is_punctuation(c) || unicode_is_symbol(c)))
			continue;
		if (unicode_is_letter(c) || unicode_is_number(c)) {
			utf8_add(&run, c);
			continue;
		}
		if (is_article(run.s ? run.s : "", run.n))
			str_add(out, " ", 1);
		else if (run.n)
			str_add(out, run.s, run.n);
		run.n = 0;
		if (unicode_is_blank(c))
			str_add(out, " ", 1);
		else
			utf8_add(out, c);
	}
	for (i = 0; i < out->n; i = start + 1) {
		for (start = i; start < out->n && out->s[start] != ' '; start++)
			;
		if (start > i)
			VEC_PUSH(&b->words, ((struct word){ out->s + i, start - i }));
	}
	str_release(&run);
}

static void bag_release(struct bag *b)
{
	str_release(&b->text);
	VEC_RELEASE(&b->words);
}

static bool same_word(const struct word *a, const struct word *b)
{
	return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

static double common_f1(const struct bag *a, const struct bag *b)
{
	bool *used = xcalloc(b->words.n + 1, sizeof(*used));
	size_t same = 0, i, k;

	for (i = 0; i < a->words.n; i++) {
		for (k = 0; k < b->words.n && (used[k] || !same_word(&a->words.v[i], &b->words.v[k])); k++)
			;
		if (k < b->words.n) {
			used[k] = true;
			same++;
		}
	}
	free(used);
	return same ? 2 * (double)same / (double)(a->words.n + b->words.n) : 0;
}

static bool equal(const struct bag *a, const struct bag *b)
{
	size_t i;

	for (i = 0; i < a->words.n && i < b->words.n && same_word(&a->words.v[i], &b->words.v[i]); i++)
		;
	return i == a->words.n && i == b->words.n;
}

void squad_score(const struct squad *s, size_t question, const char *text, double *f1, bool *exact)
{
	const struct question *q = &s->questions.v[question];
	struct bag given = { .text = STR_INIT };
	size_t i;

	*f1 = 0;
	*exact = false;
	normalise(&given, text);
	for (i = 0; i < q->n_answers; i++) {
		struct bag wanted = { .text = STR_INIT };
		double x;

		normalise(&wanted, q->answers[i]);
		x = common_f1(&given, &wanted);
		*f1 = x > *f1 ? x : *f1;
		*exact = *exact || equal(&given, &wanted);
		bag_release(&wanted);
	}
	bag_release(&given);
}
