/* Property: any bytes are a vocabulary, or an error of one line, and can be cut into its pieces; any bytes are questions of SQuAD's form,
 * whose answers can be scored, or an error of one line; any bytes, cut at the bytes 1, are the pieces and merges of byte pairs and a
 * text, or an error of one line. The first byte says which. */
#include "dataset.h"

#include "data/bpe.h"
#include "data/squad.h"
#include "data/vocabulary.h"

static void try_vocabulary(const uint8_t *data, size_t n, const char *path)
{
	struct wordpiece w = { .arena = ARENA_INIT };
	struct vocabulary *v = NULL;
	struct tokens ids = { .ids = { 0 } };
	struct str text = STR_INIT;
	struct err err = ERR_INIT;
	enum fettle_status st = wordpiece_open(&w, path, n % 2, &err);

	check_message(st, &err);
	if (!st) {
		wordpiece_add(&w, (const char *)data, n, &ids);
		wordpiece_words(&w, (const char *)data, n, &text);
	}
	st = vocabulary_open(&v, path, &err);
	check_message(st, &err);
	if (!st)
		vocabulary_text(v, ids.ids.v, ids.ids.n, &text);
	vocabulary_free(v);
	wordpiece_release(&w);
	VEC_RELEASE(&ids.ids);
	str_release(&text);
}

static void try_questions(const char *path)
{
	static const char pieces[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\nthe\n.\n";
	char vocab[FUZZ_PATH];
	int fd = fuzz_file(pieces, sizeof(pieces) - 1, vocab);
	const struct squad_files files = { path, vocab, true, 80 };
	struct squad *s = NULL;
	struct err err = ERR_INIT;
	enum fettle_status st = squad_open(&s, &files, &err);
	size_t i, from;

	check_message(st, &err);
	for (i = 0; !st && i < squad_features(s) && i < 4; i++) {
		struct tokens ids = { .ids = { 0 } };

		squad_tokens(s, i, &ids);
		for (from = 0; from < ids.ids.n; from++)
			if (squad_allows(s, i, from, from)) {
				struct str text = STR_INIT;
				double f1;
				bool exact;

				squad_text(s, i, from, from, &text);
				squad_score(s, squad_question(s, i), text.s ? text.s : "", &f1, &exact);
				if (!(f1 >= 0 && f1 <= 1))
					abort();
				str_release(&text);
			}
		VEC_RELEASE(&ids.ids);
	}
	squad_free(s);
	close(fd);
}

static size_t part_end(const uint8_t *data, size_t n)
{
	const uint8_t *end = memchr(data, 1, n);

	return end ? (size_t)(end - data) : n;
}

static void try_pairs(const uint8_t *data, size_t n)
{
	const size_t vocab = part_end(data, n), from = vocab < n ? vocab + 1 : n,
		     merges = part_end(data + from, n - from),
		     text = from + merges < n ? from + merges + 1 : n;
	char paths[2][FUZZ_PATH];
	int fds[] = { fuzz_file(data, vocab, paths[0]), fuzz_file(data + from, merges, paths[1]) };
	struct bpe b = { .arena = ARENA_INIT };
	struct tokens ids = { .ids = { 0 } };
	struct err err = ERR_INIT;
	enum fettle_status st = bpe_open(&b, paths[0], paths[1], &err);

	check_message(st, &err);
	if (!st)
		bpe_add(&b, (const char *)data + text, n - text, &ids);
	if (ids.ids.n > n - text) /* a piece has at least one byte */
		abort();
	bpe_release(&b);
	VEC_RELEASE(&ids.ids);
	close(fds[0]);
	close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[FUZZ_PATH];
	int fd;

	if (!n)
		return 0;
	if (data[0] % 3 == 2) {
		try_pairs(data + 1, n - 1);
		return 0;
	}
	fd = fuzz_file(data + 1, n - 1, path);
	if (data[0] % 3)
		try_questions(path);
	else
		try_vocabulary(data + 1, n - 1, path);
	close(fd);
	return 0;
}
