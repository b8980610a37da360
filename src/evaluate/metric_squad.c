/*
 * SQuAD's F1 and exact match, in percent as its official script has them. Of each feature (data/squad.h), the 20 highest starts and ends
 * are paired; a question's answer is the pair with the highest sum of logits that can be one, over all its features that were seen.
 * Labels are numbers of features. Outputs are logits of starts and of ends [N,T], in this order, or both as [N,T,2]; outputs of
 * integers (ids) are passed over.
 */
#include <math.h>
#include <stdlib.h>

#include "data/convert.h"
#include "data/squad.h"
#include "evaluate/metric_impl.h"

enum { BEST = 20, LONGEST = 30 };

struct answer {
	bool seen;
	size_t feature, from, to;
	double score; /* -INFINITY: nothing in its features can be an answer */
};
struct answers {
	VEC(struct answer) v; /* by question */
};

struct logits {
	const struct tensor *start, *end; /* the same: [N,T,2] */
	size_t tokens;
};

static double logit(const struct logits *l, bool end, size_t row, size_t i)
{
	if (l->start != l->end)
		return tensor_get(end ? l->end : l->start, row * l->tokens + i);
	return tensor_get(l->start, (row * l->tokens + i) * 2 + end);
}

/* The positions with the highest logits, highest first; of equal ones the first. Returns how many. */
static size_t highest(const struct logits *l, bool end, size_t row, size_t at[BEST])
{
	size_t n = 0, i, k;

	for (i = 0; i < l->tokens; i++) {
		const double x = logit(l, end, row, i);

		for (k = n; k > 0 && (x > logit(l, end, row, at[k - 1])); k--)
			if (k < BEST)
				at[k] = at[k - 1];
		if (k < BEST)
			at[k] = i;
		n += n < BEST;
	}
	return n;
}

static enum fettle_status find_logits(const struct metric *m, const struct metric_batch *b,
				      struct logits *out, struct err *err)
{
	size_t i;

	*out = (struct logits){ .start = NULL };
	for (i = 0; i < b->n_outputs; i++) {
		const struct tensor *t = &b->outputs[i];

		if (dtype_is_integer(t->dtype))
			continue;
		if (t->rank == 3 && t->dims[2] == 2 && !out->start)
			out->start = out->end = t;
		else if (t->rank == 2 && !out->start)
			out->start = t;
		else if (t->rank == 2 && !out->end)
			out->end = t;
	}
	if (!out->end || (out->start != out->end && !metric_comparable(out->start, out->end)))
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: need two outputs [N,T], logits of starts and of ends, or one "
			    "[N,T,2]",
			    m->name);
	out->tokens = (size_t)out->start->dims[1];
	return FETTLE_OK;
}

static void add_feature(const struct squad *s, const struct logits *l, size_t row, size_t feature,
			struct answer *best)
{
	size_t starts[BEST], ends[BEST], n_starts = highest(l, false, row, starts),
					 n_ends = highest(l, true, row, ends), i, k;
	struct answer own = { .seen = true, .feature = feature, .score = -INFINITY };

	for (i = 0; i < n_starts; i++)
		for (k = 0; k < n_ends; k++) {
			const double score = logit(l, false, row, starts[i]) + logit(l, true, row, ends[k]);

			if (score > own.score && ends[k] - starts[i] < LONGEST &&
			    squad_allows(s, feature, starts[i], ends[k])) {
				own.from = starts[i];
				own.to = ends[k];
				own.score = score;
			}
		}
	if (!best->seen || own.score > best->score || (own.score == best->score && feature < best->feature))
		*best = own;
}

static enum fettle_status squad_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct answers *all = m->state;
	struct logits l;
	enum fettle_status st;
	size_t i;

	if (!m->squad)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: need label_file and vocab_file under "
			    "evaluation.accuracy.postprocess.transform.SquadV1",
			    m->name);
	st = find_logits(m, b, &l, err);
	if (!st)
		st = metric_check(m, "outputs", l.start, b->n_valid, err);
	while (!st && all->v.n < squad_questions(m->squad))
		VEC_PUSH(&all->v, ((struct answer){ .seen = false }));
	for (i = 0; i < b->n_valid && !st; i++) {
		const double label = tensor_get(b->labels, i);

		if (!(label >= 0 && label < (double)squad_features(m->squad)))
			return fail(err, FETTLE_INVALID,
				    "cannot compute %s: sample %zu has the label %g, the SQuAD file has "
				    "features 0 to %zu",
				    m->name, m->n + i, label, squad_features(m->squad) - 1);
		add_feature(m->squad, &l, i, (size_t)label,
			    &all->v.v[squad_question(m->squad, (size_t)label)]);
	}
	return st;
}

static enum fettle_status squad_value(struct metric *m, double *value, struct err *err)
{
	const struct answers *all = m->state;
	double sum = 0, f1;
	size_t n = 0, i;
	bool exact;

	for (i = 0; i < all->v.n; i++) {
		const struct answer *a = &all->v.v[i];
		struct str text = STR_INIT;

		if (!a->seen)
			continue;
		n++;
		if (isfinite(a->score))
			squad_text(m->squad, a->feature, a->from, a->to, &text);
		squad_score(m->squad, i, text.s ? text.s : "empty", &f1, &exact);
		sum += m->param ? exact : f1;
		str_release(&text);
	}
	*value = 100 * sum / (double)n;
	return n ? FETTLE_OK : fail(err, FETTLE_INVALID, "cannot compute %s: there are no samples", m->name);
}

static void squad_release(void *state)
{
	VEC_RELEASE(&((struct answers *)state)->v);
}

#define SQUAD(id, word, also, exact, about)                                                                  \
	const struct metric_type metric_type_##id = {                                                        \
		.name = (word),                                                                              \
		.alias = (also),                                                                             \
		.summary = (about),                                                                          \
		.needs = METRIC_LABELS,                                                                      \
		.higher_is_better = true,                                                                    \
		.whole_answer = true,                                                                        \
		.param = (exact),                                                                            \
		.state_size = sizeof(struct answers),                                                        \
		.add = squad_add,                                                                            \
		.value = squad_value,                                                                        \
		.release = squad_release,                                                                    \
	};
SQUAD(squad_f1, "squadf1", "squad_f1", 0, "F1 of answers to SQuAD's questions, in percent")
SQUAD(squad_em, "squadem", "squad_em", 1,
      "share of SQuAD's questions whose answer is exactly right, in percent")
