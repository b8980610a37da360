/*
 * Metrics: how good a model's outputs are, as one number over any number of samples.
 *
 *	metric_new(&m, "top1", err);
 *	for each batch: metric_add(m, outputs, n_outputs, labels, reference, n_valid, err);
 *	metric_value(m, &value, err);
 *	metric_free(m);
 *
 * Below, a is an output and b what it is compared with: numeric labels of the same shape (apart from
 * dimensions of 1) when the data has them, otherwise the reference, which is the fp32 model's outputs.
 *
 *	top1, topk:K  share of samples whose label is among the K highest classes (top5 = topk:5; accuracy = top1)
 *	f1            mean over the classes that occur of 2tp/(2tp+fp+fn); f1:micro of the summed counts;
 *	              f1:binary of class 1
 *	mcc           the correlation of answers and labels, for any number of classes; 0 where one never varies
 *	miou          mean over the classes that occur of tp/(tp+fp+fn)
 *	auc           chance that a sample of class 1 scores higher than one of class 0; a tie counts half
 *	cross_entropy mean over all tokens of -log of the label's probability, which is the outputs' softmax;
 *	              perplexity is its exp
 *	loss          mean over samples of the sum of outputs[0]: the model computes it itself
 *	agreement     share of samples whose highest class is the reference's
 *	kl            mean over all tokens of sum p log(p/q), p and q being the softmax of b and a
 *	mse, mae      mean of (a-b)^2, |a-b| over all elements of all samples; rmse is the root of mse
 *	l1, l2        mean over samples of the sum of |a-b|, of the root of the sum of (a-b)^2
 *	r2            1 - sum (a-b)^2 / sum (b-mean b)^2, pearson the linear correlation, over all elements
 *	spearman      the linear correlation of the ranks, over all elements; equal ones share their mean rank
 *	cosine        mean over samples of the cosine of a and b; 1 when both are zero, 0 when one is
 *	sqnr          10 log10(sum b^2 / sum (a-b)^2) in dB, over everything; at most 200, -inf when b is zero
 *	psnr          20 log10(max b - min b) - 10 log10(mse) in dB, over everything; at most 200
 *	mse:labels, mse:reference (also mae, rmse, r2, pearson, sqnr, psnr): compared with nothing else
 *	ssim          mean over samples of the structural similarity of a and b, see metric_ssim.c
 *	bleu, wer, cer, exact_match  of sequences of tokens, see metric_sequence.c
 *	squadf1, squadem  how good answers to questions are, see metric_squad.c
 *	cocomap, map  mean average precision of detected objects, see metric_map.c
 *
 * Classes. top-k, f1, mcc, miou, cross_entropy, perplexity, agreement and kl read outputs[0], shaped [N,C], or [N,T,C] for token classifiers, where
 * each sample's score is the mean over its T tokens, or [N,C,H,W] for segmentation (any number of dimensions
 * from 4 on), where pixels are the tokens. Labels are class numbers [N] or [N,1] (tokens: [N,T] or
 * [N,T,1], pixels: [N,H,W] or [N,1,H,W]) of any integral value, or, but for pixels, one-hot or probabilities
 * shaped like the outputs. A token labelled -100 does not count, nor a pixel labelled so or 255 where there is no such
 * class; agreement knows no labels and counts every token; kl looks at labels for that only. Where
 * samples differ in how many tokens count, top-k weighs samples alike; cross_entropy, perplexity and kl weigh tokens
 * alike. f1 also takes a score per sample,
 * [N] or [N,1]: above 0.5 is class 1. auc takes scores [N] or [N,1], or [N,2] whose score is the second
 * column minus the first. The lowest of equally high classes is the highest. A NaN is never among the
 * highest: the sample is a miss, or for f1 a prediction of no class.
 *
 * auc, and every metric that compares numbers (mse and what follows it), is NaN when an output is. The
 * metrics that compare numbers take all outputs of a sample as one vector; labels are those of outputs[0]
 * and leave the others out.
 *
 * The value does not depend, not even in the last bit, on how the samples were cut into batches: each
 * sample is summed by itself and then added, in the order of the samples, by one addition. Memory does
 * not grow with the number of samples, except for spearman and the mean average precisions. auc is exact up to 65,536 distinct scores; beyond that, it
 * drops as many low bits of the scores as it takes to leave that many (3 MB), so scores that differ only
 * there count as ties. The result is still independent of batches and of the order.
 */
#ifndef EVALUATE_METRIC_H
#define EVALUATE_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tensor/tensor.h"

struct metric;

enum { METRIC_NAME_LEN = 32 }; /* with the NUL */
enum { METRICS_MAX = 8, METRICS_NAME_LEN = 128 };

enum metric_needs {
	METRIC_NOTHING = 0, /* looks at labels where there are any */
	METRIC_LABELS = 1,
	METRIC_REFERENCE = 2,
	METRIC_EITHER = METRIC_LABELS | METRIC_REFERENCE,
};

/* The arguments of metric_add(). */
struct metric_batch {
	const struct tensor *outputs;
	size_t n_outputs;
	const struct tensor *labels, *reference; /* NULL: none */
	size_t n_valid;
	enum metric_needs
		target; /* METRIC_LABELS or METRIC_REFERENCE: which of the two counts; set by the metric */
};

/* What is known of a metric before it has seen a sample, and (below) how it works. */
struct metric_type {
	const char *name;
	const char *alias;   /* another name, or NULL */
	const char *summary; /* one line for --help */
	enum metric_needs needs;
	bool higher_is_better;
	/*
	 * A mean of per-sample scores, all samples weighing the same. A score lies in score_min..score_max
	 * or is NaN, which makes the mean NaN; `bounded` promises finite bounds and no NaN. So a failure can
	 * be certain early by the bounds alone, a pass only when `bounded`.
	 */
	bool is_mean, bounded;
	bool next_tokens; /* where the data has no labels, they are the inputs' next tokens: feed_label_tokens() */
	bool of_logits; /* outputs are logits: what a language model remembers, its other outputs, is none */
	bool whole_answer; /* looks at several outputs, each for what it is: none is chosen for it */
	/* That a configuration may give, as "NAME:OPTION=VALUE/OPTION=VALUE"; ends with NULL. NULL: none. */
	const char *const *options;
	bool counts; /* is no mean, but made of counts only: the order of the samples is all the same to it */
	double score_min, score_max;
	/* In decibels, a metric has no natural loss; this is what identical outputs have. 0: it is not in decibels. */
	double decibels_max;

	/* for the files that implement metrics; see evaluate/metric_impl.h */
	size_t state_size;
	long param;                /* of a type that has no parse() */
	const char *default_param; /* of one that has */
	enum fettle_status (*parse)(struct metric *m, const char *param, struct err *err);
	enum fettle_status (*scores)(const struct metric *m, const struct metric_batch *b, double *scores,
				     struct err *err);
	enum fettle_status (*add)(struct metric *m, const struct metric_batch *b, struct err *err);
	enum fettle_status (*value)(struct metric *m, double *value, struct err *err);
	void (*release)(void *state);
	bool has_whole; /* bounds() looks at m->whole */
	/* May be NULL: bounds of the value when `rest` more samples come, for types that are no mean. */
	void (*bounds)(const struct metric *m, size_t rest, double *low, double *high);
	/* May be NULL: the value that outputs of zeros would have; looks at m->whole. */
	double (*scale)(const struct metric *m);
	/* May be NULL: what guessing would score on such outputs; NaN: not known. */
	double (*chance)(const struct metric *m, const struct tensor *output);
	/*
	 * May be NULL: how far each sample is from the other verdict, in whatever unit; below 0: it is wrong. Of a mean that is not
	 * bounded: what a sample loses is in inverse proportion to it, other things being equal.
	 */
	void (*margins)(const struct metric *m, const struct metric_batch *b, double *margins);
};

const struct metric_type *metric_type_at(size_t i); /* the i-th of the list, NULL past its end */
bool metric_is_listed(const struct metric_type *t);

/* By name, whatever its case; "NAME:PARAM" for those that take one; several as one, see metric_join(). */
enum fettle_status metric_new(struct metric **out, const char *name, struct err *err);
/* Of a type that is not in the list, has no parse(), and outlives it. */
struct metric *metric_new_of(const struct metric_type *type);
void metric_free(struct metric *m);  /* NULL does nothing */
void metric_reset(struct metric *m); /* forgets the samples, to start again */

const struct metric_type *metric_type(const struct metric *m);
const char *metric_name(const struct metric *m); /* as metric_new() takes it: "top1", "topk:3", "f1:micro" */
bool metric_higher_is_better(const struct metric *m);
enum metric_needs metric_needs(const struct metric *m);
size_t metric_samples(const struct metric *m); /* added so far */

/*
 * Whether a batch with these outputs (the fp32 model's work) and labels (NULL if none) is compared with
 * the reference. It decides METRIC_EITHER, so that references are kept only for those who look at them.
 */
bool metric_uses_reference(const struct metric *m, const struct tensor *outputs, const struct tensor *labels);

/*
 * Adds the first n_valid rows (dimension 0) of a batch; rows after them are padding and may be missing
 * from labels and reference. `labels` is one tensor or NULL, `reference` n_outputs tensors or NULL. An error
 * names the sample by its number since metric_new() or metric_reset(), from 0; reset the metric after one.
 */
enum fettle_status metric_add(struct metric *m, const struct tensor *outputs, size_t n_outputs,
			      const struct tensor *labels, const struct tensor *reference, size_t n_valid,
			      struct err *err);

/*
 * The scores of the samples of the last metric_add(), the metric's own; NULL for those without is_mean. metric_value() is the sum
 * of all of them in the order of the samples over their number, bit for bit.
 */
const double *metric_last_scores(const struct metric *m);

enum fettle_status metric_value(struct metric *m, double *value, struct err *err);

/* From now on it looks only at these outputs (and the same of the reference's), in this order; n = 0: at all. */
void metric_select(struct metric *m, const size_t *outputs, size_t n);
bool metric_looks_at(const struct metric *m, size_t output);
size_t metric_first_output(const struct metric *m); /* the one that the above calls outputs[0] */

/* What guessing would score on such an output; NaN: not known. */
double metric_chance(const struct metric *m, const struct tensor *output);

/*
 * Several metrics as one. "top1,f1": the value is 1 less what the worst of them lost against the fp32 model's values,
 * which metric_set_base() sets; NaN before. "0.7*top1,0.3*f1": the weighted mean. `open` opens each by name.
 */
typedef enum fettle_status (*metric_open_fn)(void *self, const char *name, struct metric **out,
					     struct err *err);
enum fettle_status metric_join(struct metric **out, const char *name, metric_open_fn open, void *self,
			       struct err *err);
size_t metric_n_parts(const struct metric *m); /* 0: it is one metric, or NULL */
struct metric *metric_part(const struct metric *m, size_t i);
/* The values of the parts, [metric_n_parts()]. */
enum fettle_status metric_values(struct metric *m, double *values, struct err *err);
/* The fp32 model's values; whether losses are shares of them. Before metric_twin(). */
enum fettle_status metric_set_base(struct metric *m, const double *values, bool relative, struct err *err);

/* A metric of the same kind, looking at the same outputs, that has seen nothing. */
struct metric *metric_twin(const struct metric *m);

/* What the value can be once `rest` more samples are added: certain, not likely. Infinite where nothing is known;
 * both NaN when the value will be. Sums in another order may differ by some 1e-12 of their size. */
void metric_bounds(const struct metric *m, size_t rest, double *low, double *high);

/*
 * All samples were added: what outputs are compared with (labels, or the fp32 model's outputs) is known from now on to this metric
 * and to twins made of it, and bounds are the tighter for it.
 */
void metric_keep_whole(struct metric *m);
/* Of an error, after that: what outputs of zeros would have. NaN: not known, or it is no error. */
double metric_zeros(const struct metric *m);

/* The questions that answers are scored by (data/squad.h), and what tokens are as text (data/vocabulary.h); NULL: not known. They
 * must outlive the metric. Before metric_twin(). */
struct squad;
struct vocabulary;
void metric_set_texts(struct metric *m, const struct squad *s, const struct vocabulary *v);

/* Is it, or one of its parts, one with next_tokens? */
bool metric_next_tokens(const struct metric *m);

/* Does the value (but for the rounding of sums) not depend on the order of the samples? */
bool metric_any_order(const struct metric *m);

/* Of a batch that metric_add() takes: how far each sample is from the other verdict; NaN where there is none. */
void metric_margins(const struct metric *m, const struct tensor *outputs, size_t n_outputs,
		    const struct tensor *labels, const struct tensor *reference, size_t n_valid,
		    double *margins);

#endif
