/* BERT's tokenizer; test/cli/glue.sh compares it with another on many texts. */
#include "unit/unit.h"

#include "data/wordpiece.h"
#include "unit/data_files.h"

struct word {
	int64_t id;
	const char *piece;
};

static char *put_vocabulary(const char *dir, const struct word *words, size_t n, int64_t lines)
{
	struct str text = STR_INIT;
	int64_t i;
	size_t k;

	for (i = 0; i < lines; i++) {
		const char *piece = i == 0     ? "[PAD]"
				    : i == 100 ? "[UNK]"
				    : i == 101 ? "[CLS]"
				    : i == 102 ? "[SEP]"
					       : "";

		for (k = 0; k < n; k++)
			if (words[k].id == i)
				piece = words[k].piece;
		str_addf(&text, *piece ? "%s\n" : "[unused%s]\n", piece);
	}
	return put_file(dir, "vocab.txt", &text);
}

static void check(const struct wordpiece *w, const char *text, const int64_t *want, size_t n)
{
	struct tokens t = { .ids = { NULL, 0, 0 } };
	size_t i;

	wordpiece_add(w, text, strlen(text), &t);
	assert_int_equal(t.ids.n, n);
	for (i = 0; i < n; i++)
		assert_int_equal(t.ids.v[i], want[i]);
	VEC_RELEASE(&t.ids);
}
#define CHECK(w, text, ...)                                                                                  \
	check(w, text, (const int64_t[]){ __VA_ARGS__ }, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* The first two sentences with the ids that a course on these models publishes for bert-base-uncased, their pieces being at those lines. */
static void published_ids(void **state)
{
	static const struct word uncased[] = {
		{ 1045, "i" },       { 1005, "'" },      { 2310, "ve" },   { 2042, "been" },
		{ 3403, "waiting" }, { 2005, "for" },    { 1037, "a" },    { 17662, "hugging" },
		{ 12172, "##face" }, { 2607, "course" }, { 2026, "my" },   { 2878, "whole" },
		{ 2166, "life" },    { 1012, "." },      { 5223, "hate" }, { 2023, "this" },
		{ 2061, "so" },      { 2172, "much" },   { 999, "!" },
	};
	static const struct word cased[] = {
		{ 7993, "Using" },   { 170, "a" },   { 13809, "Trans" }, { 23763, "##former" },
		{ 2443, "network" }, { 1110, "is" }, { 3014, "simple" },
	};
	struct wordpiece w = { .arena = ARENA_INIT };
	char *dir = temp_tree(), *path = put_vocabulary(dir, uncased, ARRAY_LEN(uncased), 18000);
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(wordpiece_open(&w, path, true, &err), err);
	assert_int_equal(w.begin, 101);
	assert_int_equal(w.end, 102);
	CHECK(&w, "I've been waiting for a HuggingFace course my whole life.", 1045, 1005, 2310, 2042, 3403,
	      2005, 1037, 17662, 12172, 2607, 2026, 2878, 2166, 1012);
	CHECK(&w, "I hate this so much!", 1045, 5223, 2023, 2061, 2172, 999);
	CHECK(&w, "  h\xc3\x80te\tth\xcc\x81is\xc2\xa0so unheardof ", 5223, 2023, 2061, 100);
	CHECK(&w, "so\x80much", 100); /* a damaged byte is left out */
	wordpiece_release(&w);
	free(path);
	path = put_vocabulary(dir, cased, ARRAY_LEN(cased), 24000);
	w = (struct wordpiece){ .arena = ARENA_INIT };
	assert_ok(wordpiece_open(&w, path, false, &err), err);
	CHECK(&w, "Using a Transformer network is simple", 7993, 170, 13809, 23763, 2443, 1110, 3014);
	CHECK(&w, "using", 100);
	wordpiece_release(&w);
	free(path);
	path = put_vocabulary(dir, cased, ARRAY_LEN(cased), 90);
	w = (struct wordpiece){ .arena = ARENA_INIT };
	assert_fails(wordpiece_open(&w, path, false, &err), FETTLE_INVALID, err, "no line [UNK]");
	wordpiece_release(&w);
	free(path);
	remove_tree(dir);
}

/* Any bytes are tokens. */
static void any_bytes(void **state)
{
	static const struct word words[] = { { 1, "a" }, { 2, "##a" }, { 3, "\xc3\xa4" } };
	struct wordpiece w = { .arena = ARENA_INIT };
	char *dir = temp_tree(), *path = put_vocabulary(dir, words, ARRAY_LEN(words), 103), text[300];
	struct tokens t = { .ids = { NULL, 0, 0 } };
	struct err err = ERR_INIT;
	struct rng r;
	int i;
	size_t k, n;

	(void)state;
	assert_ok(wordpiece_open(&w, path, true, &err), err);
	rng_seed(&r, 1);
	for (i = 0; i < 3000; i++) {
		n = rng_below(&r, sizeof(text));
		for (k = 0; k < n; k++)
			text[k] = (char)(rng_below(&r, 3) ? rng_below(&r, 256) : 'a');
		wordpiece_add(&w, text, n, &t);
		t.ids.n = 0;
	}
	memset(text, 'a', sizeof(text)); /* longer than any word */
	wordpiece_add(&w, text, 101, &t);
	assert_int_equal(t.ids.n, 1);
	assert_int_equal(t.ids.v[0], 100);
	wordpiece_add(&w, text, 100, &t);
	assert_int_equal(t.ids.n, 101);
	VEC_RELEASE(&t.ids);
	wordpiece_release(&w);
	free(path);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(published_ids), cmocka_unit_test(any_bytes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
