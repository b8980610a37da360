/* Shares of right answers: top-k against labels, agreement against the reference. */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "evaluate/metric_impl.h"

static enum fettle_status parse_k(struct metric *m, const char *param, struct err *err)
{
	char *end = NULL;
	unsigned long k = isdigit((unsigned char)*param) ? strtoul(param, &end, 10) : 0;

	if (!k || k > INT_MAX || *end)
		return fail(err, FETTLE_INVALID, "cannot use metric 'topk:%s': need a number from 1", param);
	m->param = (long)k;
	snprintf(m->name, sizeof(m->name), k == 1 || k == 5 ? "top%lu" : "topk:%lu", k);
	return FETTLE_OK;
}

/* Fewer than k classes come before the label: those with a higher score, and equals with a lower index. */
static bool among_highest(const struct metric_classes *c, size_t token, size_t label, size_t k)
{
	size_t before = 0, i, j, got;
	double v[METRIC_PIECE], own = metric_class_score(c, token, label);

	if (isnan(own))
		return false;
	for (i = 0; i < c->columns; i += got) {
		got = metric_class_scores(c, token, i, v);
		for (j = 0; j < got; j++)
			before += v[j] > own || (v[j] == own && i + j < label);
	}
	return before < k;
}

static enum fettle_status score_sample(const struct metric *m, const struct metric_batch *b,
				       const struct metric_classes *c, size_t sample, double *score,
				       struct err *err)
{
	size_t hits = 0, counted = 0, i;

	for (i = sample * c->tokens; i < (sample + 1) * c->tokens; i++) {
		int64_t label;
		enum fettle_status st = metric_label(m, b, c, i, &label, err);

		if (st)
			return st;
		if (label == METRIC_IGNORED)
			continue;
		counted++;
		hits += among_highest(c, i, (size_t)label, (size_t)m->param);
	}
	if (!counted)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: sample %zu has no token whose label is not %d", m->name,
			    m->n + sample, METRIC_IGNORED);
	*score = (double)hits / (double)counted;
	return FETTLE_OK;
}

static enum fettle_status topk_scores(const struct metric *m, const struct metric_batch *b, double *scores,
				      struct err *err)
{
	struct metric_classes c;
	enum fettle_status st;
	size_t i;

	st = metric_classes(m, "outputs", &b->outputs[0], b->n_valid, false, &c, err);
	if (st)
		return st;
	if ((size_t)m->param > c.classes)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: outputs of %zu classes, need at least %ld", m->name,
			    c.classes, m->param);
	st = metric_labels(m, b, &c, err);
	for (i = 0; !st && i < b->n_valid; i++)
		st = score_sample(m, b, &c, i, &scores[i], err);
	return st;
}

static double topk_chance(const struct metric *m, const struct tensor *output)
{
	struct metric_classes c;
	struct err ignored = ERR_INIT;

	return metric_classes(m, "outputs", output, 0, false, &c, &ignored)
		       ? NAN
		       : fmin((double)m->param / (double)c.classes, 1);
}

static void topk_margins(const struct metric *m, const struct metric_batch *b, double *margins)
{
	metric_label_margins(m, b, false, (size_t)m->param, margins);
}

/* of the reference: what it is least sure of changes first */
static void agreement_margins(const struct metric *m, const struct metric_batch *b, double *margins)
{
	struct metric_classes c;
	struct err ignored = ERR_INIT;
	size_t i;

	if (metric_classes(m, "reference", &b->reference[0], b->n_valid, false, &c, &ignored))
		return;
	for (i = 0; i < b->n_valid * c.tokens; i++)
		margins[i / c.tokens] =
			fmin(margins[i / c.tokens], metric_margin(&c, i, metric_highest(&c, i), 1));
}

static enum fettle_status agreement_scores(const struct metric *m, const struct metric_batch *b,
					   double *scores, struct err *err)
{
	struct metric_classes out, ref;
	enum fettle_status st;
	size_t i, k;

	st = metric_classes(m, "outputs", &b->outputs[0], b->n_valid, false, &out, err);
	if (st)
		return st;
	st = metric_classes(m, "reference", &b->reference[0], b->n_valid, false, &ref, err);
	if (st)
		return st;
	if (out.t->rank != ref.t->rank || out.tokens != ref.tokens || out.classes != ref.classes)
		return metric_mismatch(m, out.t, "reference", ref.t, "the same shape", err);
	if (!out.tokens)
		return fail(err, FETTLE_INVALID, "cannot compute %s: samples of no tokens", m->name);
	for (i = 0; i < b->n_valid; i++) {
		size_t hits = 0;

		for (k = i * out.tokens; k < (i + 1) * out.tokens; k++) {
			int64_t winner = metric_highest(&out, k);

			hits += winner >= 0 && winner == metric_highest(&ref, k);
		}
		scores[i] = (double)hits / (double)out.tokens;
	}
	return FETTLE_OK;
}

#define SHARE .higher_is_better = true, .is_mean = true, .bounded = true, .score_min = 0, .score_max = 1

const struct metric_type metric_type_top1 = {
	.name = "top1",
	.alias = "accuracy",
	.summary = "share of samples whose highest class is the label",
	.needs = METRIC_LABELS,
	SHARE,
	.param = 1,
	.scores = topk_scores,
	.chance = topk_chance,
	.margins = topk_margins,
};

const struct metric_type metric_type_top5 = {
	.name = "top5",
	.summary = "share of samples whose label is among the five highest classes",
	.needs = METRIC_LABELS,
	SHARE,
	.param = 5,
	.scores = topk_scores,
	.chance = topk_chance,
	.margins = topk_margins,
};

const struct metric_type metric_type_topk = {
	.name = "topk",
	.summary = "topk:K, share of samples whose label is among the K highest classes; K is 1 if not given",
	.needs = METRIC_LABELS,
	SHARE,
	.default_param = "1",
	.parse = parse_k,
	.scores = topk_scores,
	.chance = topk_chance,
	.margins = topk_margins,
};

const struct metric_type metric_type_agreement = {
	.name = "agreement",
	.summary = "share of samples whose highest class is the fp32 model's",
	.needs = METRIC_REFERENCE,
	SHARE,
	.scores = agreement_scores,
	.margins = agreement_margins,
};
