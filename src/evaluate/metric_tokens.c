/*
 * What a model's distributions over classes or words are worth: cross_entropy and perplexity by the probability of
 * the label, kl by the distance from the fp32 model's distribution. Every token weighs the same. Outputs are logits.
 */
#include <math.h>

#include "evaluate/metric_impl.h"

/* Sums of integers are the same in whatever order samples come, and so are the values of these metrics. */
#define NATS_UNIT 0x1p-30
#define NATS_MAX 0x1p31 /* more than this in all is infinite */

struct nats {
	int64_t sum; /* in NATS_UNIT */
	uint64_t tokens;
	bool endless, nan;
	size_t batch, width; /* the most samples that came at once, the most tokens of a sample */
};

static void nats_add(struct nats *s, double nats)
{
	s->nan = s->nan || isnan(nats);
	s->endless = s->endless || nats > NATS_MAX || (double)s->sum * NATS_UNIT > NATS_MAX;
	if (!s->nan && !s->endless)
		s->sum += llround(nats / NATS_UNIT);
}

static double nats_mean(const struct nats *s, uint64_t tokens)
{
	return s->nan ? NAN : s->endless ? INFINITY : (double)s->sum * NATS_UNIT / (double)tokens;
}

/* The log of the sum of the exponentials of token i's scores; NaN when one is NaN, or none is above -inf. */
static double log_sum_exp(const struct metric_classes *c, size_t i)
{
	double v[METRIC_PIECE], max = -INFINITY, sum = 0;
	size_t at, k, got;

	for (at = 0; at < c->columns; at += got) {
		got = metric_class_scores(c, i, at, v);
		for (k = 0; k < got; k++)
			max = v[k] > max ? v[k] : max;
	}
	if (isinf(max))
		return NAN;
	for (at = 0; at < c->columns; at += got) {
		got = metric_class_scores(c, i, at, v);
		for (k = 0; k < got; k++)
			if (!(v[k] < max - 60)) /* even a million of them would not show; a NaN must */
				sum += exp(v[k] - max);
	}
	return max + log(sum);
}

/* Minus the log of the label's probability. */
static double surprise(const struct metric_classes *c, size_t i, int64_t label)
{
	double nats = log_sum_exp(c, i) - metric_class_score(c, i, (size_t)label);

	return nats < 0 ? 0 : nats; /* a NaN stays one */
}

/* The sum over a sample's tokens, and how many they are. */
static enum fettle_status sample_surprise(const struct metric *m, const struct metric_batch *b,
					  const struct metric_classes *c, size_t sample, double *nats,
					  uint64_t *tokens, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	int64_t label;
	size_t i;

	*nats = 0;
	*tokens = 0;
	for (i = sample * c->tokens; i < (sample + 1) * c->tokens && !st; i++) {
		st = metric_label(m, b, c, i, &label, err);
		if (st || label == METRIC_IGNORED)
			continue;
		*nats += surprise(c, i, label);
		++*tokens;
	}
	return st;
}

static void seen(struct nats *s, const struct metric_batch *b, const struct metric_classes *c)
{
	s->batch = b->n_valid > s->batch ? b->n_valid : s->batch;
	s->width = c->tokens > s->width ? c->tokens : s->width;
}

static enum fettle_status entropy_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct nats *s = m->state;
	struct metric_classes c;
	enum fettle_status st = metric_classes(m, "outputs", &b->outputs[0], b->n_valid, false, &c, err);
	uint64_t tokens;
	double nats;
	size_t i;

	st = st ? st : metric_labels(m, b, &c, err);
	for (i = 0; i < b->n_valid && !st; i++) {
		st = sample_surprise(m, b, &c, i, &nats, &tokens, err);
		if (st)
			return st;
		nats_add(s, nats);
		s->tokens += tokens;
	}
	if (!st)
		seen(s, b, &c);
	return st;
}

/* What the model is least sure of loses most: the geometric mean of the labels' probabilities. */
static void entropy_margins(const struct metric *m, const struct metric_batch *b, double *margins)
{
	struct metric_classes c;
	struct err ignored = ERR_INIT;
	uint64_t tokens;
	double nats;
	size_t i;

	if (metric_classes(m, "outputs", &b->outputs[0], b->n_valid, false, &c, &ignored) ||
	    metric_labels(m, b, &c, &ignored))
		return;
	for (i = 0; i < b->n_valid; i++)
		if (!sample_surprise(m, b, &c, i, &nats, &tokens, &ignored) && tokens)
			margins[i] = exp(-nats / (double)tokens);
}

/* The divergence of token i's distribution from the reference's. */
static double divergence(const struct metric_classes *out, const struct metric_classes *ref, size_t i)
{
	double a[METRIC_PIECE], b[METRIC_PIECE], log_a = log_sum_exp(out, i), log_b = log_sum_exp(ref, i),
						 sum = 0;
	size_t at, k, got;

	if (isnan(log_a) || isnan(log_b))
		return NAN;
	for (at = 0; at < out->columns; at += got) {
		got = metric_class_scores(out, i, at, a);
		metric_class_scores(ref, i, at, b);
		for (k = 0; k < got; k++) {
			double share = b[k] - log_b < -60 ? 0 : exp(b[k] - log_b);

			if (share > 0)
				sum += share * (b[k] - log_b - (a[k] - log_a));
		}
	}
	return sum < 0 ? 0 : sum;
}

static enum fettle_status kl_add(struct metric *m, const struct metric_batch *b, struct err *err)
{
	struct nats *s = m->state;
	struct metric_classes out, ref;
	struct err ignored = ERR_INIT;
	enum fettle_status st = metric_classes(m, "outputs", &b->outputs[0], b->n_valid, false, &out, err);
	bool labels;
	size_t i, k;

	st = st ? st : metric_classes(m, "reference", &b->reference[0], b->n_valid, false, &ref, err);
	if (st)
		return st;
	if (out.t->rank != ref.t->rank || out.tokens != ref.tokens || out.classes != ref.classes)
		return metric_mismatch(m, out.t, "reference", ref.t, "the same shape", err);
	labels = b->labels && !metric_labels(m, b, &out, &ignored);
	for (i = 0; i < b->n_valid; i++) {
		double nats = 0;

		for (k = i * out.tokens; k < (i + 1) * out.tokens; k++) {
			int64_t label = 0;

			if (labels && !metric_label(m, b, &out, k, &label, &ignored) &&
			    label == METRIC_IGNORED)
				continue;
			nats += divergence(&out, &ref, k);
			s->tokens++;
		}
		nats_add(s, nats);
	}
	seen(s, b, &out);
	return FETTLE_OK;
}

static double plain(double nats)
{
	return nats;
}

static enum fettle_status value_of(struct metric *m, double (*of)(double), double *value, struct err *err)
{
	const struct nats *s = m->state;

	if (!s->tokens)
		return fail(err, FETTLE_INVALID,
			    "cannot compute %s: no token that counts (label %d does not)", m->name,
			    METRIC_IGNORED);
	*value = of(nats_mean(s, s->tokens));
	return FETTLE_OK;
}

/*
 * No token has less than 0 nats. How many there are in all is known once all were seen; before that, samples are of one
 * size when they come several in a batch.
 */
static void bounds_of(const struct metric *m, size_t rest, double (*of)(double), double *low, double *high)
{
	const struct nats *s = m->state, *whole = m->whole;
	uint64_t most = whole ? whole->tokens : s->batch > 1 ? s->tokens + rest * s->width : 0;

	*high = rest || !s->tokens || s->nan ? INFINITY : of(nats_mean(s, s->tokens));
	*low = of(rest && !most ? 0 : nats_mean(s, rest ? most : s->tokens));
	if (s->nan)
		*low = *high = NAN;
	else if (!s->tokens)
		*low = of(0);
}

#define NATS(id, of, needed, adds, margins_of, tokens, about)                                                \
	static enum fettle_status id##_value(struct metric *m, double *value, struct err *err)               \
	{                                                                                                    \
		return value_of(m, of, value, err);                                                          \
	}                                                                                                    \
	static void id##_bounds(const struct metric *m, size_t rest, double *low, double *high)              \
	{                                                                                                    \
		bounds_of(m, rest, of, low, high);                                                           \
	}                                                                                                    \
	const struct metric_type metric_type_##id = {                                                        \
		.name = #id,                                                                                 \
		.summary = about,                                                                            \
		.needs = needed,                                                                             \
		.counts = true,                                                                              \
		.of_logits = true,                                                                           \
		.next_tokens = tokens,                                                                       \
		.state_size = sizeof(struct nats),                                                           \
		.add = adds,                                                                                 \
		.value = id##_value,                                                                         \
		.has_whole = true,                                                                           \
		.bounds = id##_bounds,                                                                       \
		.margins = margins_of,                                                                       \
	};

NATS(perplexity, exp, METRIC_LABELS, entropy_add, entropy_margins, true,
     "exp of cross_entropy; without labels, of the next tokens of the inputs")
NATS(cross_entropy, plain, METRIC_LABELS, entropy_add, entropy_margins, true,
     "mean over tokens of -log of the label's probability; outputs are logits")
NATS(kl, plain, METRIC_REFERENCE, kl_add, NULL, false,
     "mean over tokens of the KL divergence from the fp32 model's distribution")
