/*
 * Metrics of sequences (evaluate/sequence.h): error rates of words and characters, sequences that are exactly right, BLEU.
 *
 * wer, cer and exact_match decode CTC's outputs greedily where blank=ID says which token is its blank. BLEU (Papineni et al. 2002) is
 * Neural Compressor's: of the whole corpus, n-grams up to 4, a brevity penalty; where no n-gram of an order matches, its precision is
 * smoothed as in Lin and Och 2004.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "evaluate/sequence.h"

enum { WER, CER, EXACT, BLEU };
enum { ORDERS = 4 };

static const struct sequence_rule no_rule = { -1, -1, -1, -1 };

static struct sequence_rule rule_of(const struct metric *m)
{
	const char *colon = strchr(m->name, ':');
	struct sequence_rule r;
	char *bad;

	sequence_options(colon ? colon + 1 : "", &no_rule, &r, &bad);
	free(bad);
	return r;
}

static enum fettle_status sequence_parse(struct metric *m, const char *param, struct err *err)
{
	struct sequence_rule r;
	enum fettle_status st;
	char *bad;

	if (sequence_options(param, &no_rule, &r, &bad)) {
		if (*param)
			snprintf(m->name, sizeof(m->name), "%s:%s", m->type->name, param);
		return FETTLE_OK;
	}
	st = fail(err, FETTLE_INVALID,
		  "cannot use metric '%s:%s': option '%s', need blank, end, pad or space=TOKEN, with slashes "
		  "between them",
		  m->type->name, param, bad);
	free(bad);
	return st;
}

struct counts {
	uint64_t edits, length; /* of labels */
	uint64_t output_length, matches[ORDERS], possible[ORDERS];
};

/* How often each n-gram of an order occurs; names are `a`'s. */
static void count_grams(const struct sequence_words *w, size_t order, struct map *out, struct arena *a)
{
	struct str gram = STR_INIT;
	size_t i, k, had;

	for (i = 0; i + order <= w->v.n; i++) {
		gram.n = 0;
		for (k = 0; k < order; k++)
			str_addf(&gram, "%s\n", w->v.v[i + k]);
		had = map_get(out, gram.s);
		map_set(out, arena_strdup(a, gram.s), had == MAP_NONE ? 1 : had + 1);
	}
	str_release(&gram);
}

static void add_grams(struct counts *c, const struct sequence_words *got, const struct sequence_words *want)
{
	struct arena a = ARENA_INIT;
	struct str gram = STR_INIT;
	size_t order, i, k;

	for (order = 1; order <= ORDERS; order++) {
		struct map wanted = MAP_INIT;

		count_grams(want, order, &wanted, &a);
		for (i = 0; i + order <= got->v.n; i++) {
			size_t left;

			gram.n = 0;
			for (k = 0; k < order; k++)
				str_addf(&gram, "%s\n", got->v.v[i + k]);
			left = map_get(&wanted, gram.s);
			if (left != MAP_NONE && left > 0) { /* each of the label's counts once */
				c->matches[order - 1]++;
				map_set(&wanted, arena_strdup(&a, gram.s), left - 1);
			}
			c->possible[order - 1]++;
		}
		map_release(&wanted);
	}
	str_release(&gram);
	arena_release(&a);
}

static enum fettle_status counts_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	static const enum word_unit units[] = {
		[WER] = UNIT_WORDS, [CER] = UNIT_CHARACTERS, [BLEU] = UNIT_BLEU
	};
	const struct sequence_rule r = rule_of(m);
	struct sequence got = { .ids = { 0 } }, want = { .ids = { 0 } };
	struct counts *c = m->state;
	enum fettle_status st = sequence_check(m, b, err);
	size_t i;

	for (i = 0; i < b->n_valid && !st; i++) {
		struct sequence_words a = { .arena = ARENA_INIT }, w = { .arena = ARENA_INIT };

		sequence_of_output(&b->outputs[0], i, &r, &got);
		sequence_of_label(b->labels, i, &r, &want);
		sequence_words(m, &r, &got, units[m->type->param], &a);
		sequence_words(m, &r, &want, units[m->type->param], &w);
		c->length += w.v.n;
		c->output_length += a.v.n;
		if (m->type->param == BLEU)
			add_grams(c, &a, &w);
		else
			c->edits += sequence_edits(&a, &w);
		sequence_words_release(&a);
		sequence_words_release(&w);
	}
	VEC_RELEASE(&got.ids);
	VEC_RELEASE(&want.ids);
	return st;
}

static enum fettle_status rate_value(struct metric *m, double *value, struct err *err)
{
	const struct counts *c = m->state;

	*value = (double)c->edits / (double)c->length;
	return c->length ? FETTLE_OK
			 : fail(err, FETTLE_INVALID, "cannot compute %s: all labels are empty", m->name);
}

static enum fettle_status bleu_value(struct metric *m, double *value, struct err *err)
{
	const struct counts *c = m->state;
	const double ratio = (double)c->output_length / (double)c->length;
	double logs = 0, smooth = 1, any = 0;
	size_t i;

	for (i = 0; i < ORDERS; i++) {
		double p = (double)c->matches[i] / (double)c->possible[i];

		if (!c->possible[i])
			continue;
		if (!c->matches[i]) {
			smooth *= 2;
			p = 1 / (smooth * (double)c->possible[i]);
		}
		logs += log(p);
		any = 1;
	}
	*value = 100 * any * exp(logs / ORDERS) * (ratio < 1 ? exp(1 - 1 / ratio) : 1);
	return c->length ? FETTLE_OK
			 : fail(err, FETTLE_INVALID, "cannot compute %s: all labels are empty", m->name);
}

static enum fettle_status exact_scores(const struct metric *m, const struct metric_batch *b, double *scores,
				       struct err *err)
{
	const struct sequence_rule r = rule_of(m);
	struct sequence got = { .ids = { 0 } }, want = { .ids = { 0 } };
	enum fettle_status st = sequence_check(m, b, err);
	size_t i;

	for (i = 0; i < b->n_valid && !st; i++) {
		sequence_of_output(&b->outputs[0], i, &r, &got);
		sequence_of_label(b->labels, i, &r, &want);
		scores[i] =
			got.ids.n == want.ids.n &&
			(!got.ids.n || memcmp(got.ids.v, want.ids.v, got.ids.n * sizeof(*got.ids.v)) == 0);
	}
	VEC_RELEASE(&got.ids);
	VEC_RELEASE(&want.ids);
	return st;
}

#define COUNTED(id, which, up, of, about)                                                                    \
	const struct metric_type metric_type_##id = {                                                        \
		.name = #id,                                                                                 \
		.summary = (about),                                                                          \
		.needs = METRIC_LABELS,                                                                      \
		.higher_is_better = (up),                                                                    \
		.options = sequence_option_names,                                                            \
		.counts = true,                                                                              \
		.param = (which),                                                                            \
		.default_param = "",                                                                         \
		.parse = sequence_parse,                                                                     \
		.state_size = sizeof(struct counts),                                                         \
		.add = counts_add,                                                                           \
		.value = (of),                                                                               \
	};
COUNTED(wer, WER, false, rate_value,
	"word error rate of token sequences; blank=ID: after CTC decoding, space=ID parts words")
COUNTED(cer, CER, false, rate_value, "character error rate of token sequences, likewise")
COUNTED(bleu, BLEU, true, bleu_value, "BLEU of token sequences, in percent")

const struct metric_type metric_type_exact_match = {
	.name = "exact_match",
	.summary = "share of token sequences that are exactly right; blank=ID: after CTC decoding",
	.needs = METRIC_LABELS,
	.higher_is_better = true,
	.is_mean = true,
	.bounded = true,
	.score_min = 0,
	.score_max = 1,
	.options = sequence_option_names,
	.param = EXACT,
	.default_param = "",
	.parse = sequence_parse,
	.scores = exact_scores,
};
