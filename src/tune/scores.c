#include "tune/fed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "evaluate/metric_impl.h"

/* What the model says to a few samples. */
struct taste {
	struct tensor *out; /* [n], of the first */
	size_t n;
	bool *moves;          /* does the output change from sample to sample? */
	bool *has_rows;       /* has it a row for each sample, of one shape? */
	size_t samples;       /* that differ */
	struct tensor labels; /* of the first; no data: there are none */
	struct tensor tokens; /* that the first feeds; no data: there are none */
	size_t valid;
	bool published; /* the data says what outputs it expects */
};

enum { TASTES = 3 };

static void copy(struct tensor *to, const struct tensor *from)
{
	const size_t bytes = dtype_size(from->dtype) ? tensor_bytes(from) : 0;

	*to = *from;
	to->data = NULL;
	if (!bytes || !from->data)
		return;
	to->data = xmalloc(bytes);
	memcpy(to->data, from->data, bytes);
}

static bool differs(const struct tensor *a, const struct tensor *b)
{
	return !tensor_same_shape(a, b) || (a->data && memcmp(a->data, b->data, tensor_bytes(a)) != 0);
}

static void taste_release(struct taste *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		free(t->out[i].data);
	free(t->out);
	free(t->moves);
	free(t->has_rows);
	free(t->labels.data);
	free(t->tokens.data);
}

/* Does the model take any number of samples at once? */
static bool takes_any_number(const struct session *s)
{
	size_t i;

	for (i = 0; i < session_n_inputs(s); i++)
		if (session_input(s, i)->type.rank > 0 && session_input(s, i)->type.dims[0] < 0)
			return true;
	return false;
}

/* The first sample's answer, and whether another sample gets another one. */
static enum fettle_status taste_feed(struct taste *t, struct session *s, const struct feed *feed,
				     struct err *err)
{
	const size_t n = feed_batches(feed);
	const bool any_number = takes_any_number(s);
	struct tensor *out = xcalloc(t->n, sizeof(*out)), first = TENSOR_INIT;
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (k = 0; k < TASTES && k < n && !st; k++) {
		st = feed_read(feed, k * (n - 1) / (TASTES - 1), &b, err);
		if (!st)
			st = session_run(s, b.inputs, out, err);
		if (st)
			break;
		for (i = 0; i < t->n; i++) {
			if (b.n == 1 && !any_number)
				tensor_as_row(&out[i]);
			if (!k)
				copy(&t->out[i], &out[i]);
			t->has_rows[i] = (!k || t->has_rows[i]) && out[i].rank > 0 &&
					 (uint64_t)out[i].dims[0] == b.n &&
					 (any_number || tensor_same_shape(&out[i], &t->out[i]));
		}
		if (!k) {
			copy(&first, &b.inputs[0]);
			copy(&t->labels, &b.labels);
			if (feed_tokens(feed) != SIZE_MAX)
				copy(&t->tokens, &b.inputs[feed_tokens(feed)]);
			t->valid = b.valid;
			t->published = b.n_outputs > 0;
			t->samples = 1;
		} else if (differs(&first, &b.inputs[0])) {
			t->samples++;
			for (i = 0; i < t->n; i++)
				t->moves[i] = t->moves[i] || differs(&t->out[i], &out[i]);
		}
	}
	feed_batch_release(&b);
	free(first.data);
	free(out);
	return st;
}

static enum fettle_status taste(struct taste *t, struct session *s, const struct source *data, bool of_tokens,
				struct err *err)
{
	struct feed_options o = { .batch = 1, .limit = feed_samples(data->feed) };
	struct input_spec *specs = xcalloc(session_n_inputs(s) + 1, sizeof(*specs));
	struct feed *feed = NULL;
	enum fettle_status st;

	t->n = session_n_outputs(s);
	t->out = xcalloc(t->n, sizeof(*t->out));
	t->moves = xcalloc(t->n, sizeof(*t->moves));
	t->has_rows = xcalloc(t->n, sizeof(*t->has_rows));
	session_specs(s, specs);
	st = feed_open(&feed, data->data, specs, session_n_inputs(s), &o, err);
	if (!st && of_tokens)
		st = feed_label_tokens(feed, err);
	if (!st)
		st = taste_feed(t, s, feed, err);
	feed_free(feed);
	free(specs);
	return st;
}

/* ---- which outputs ---- */

struct choice {
	struct context *cx;
	const struct scores_asked *asked;
	const struct looked *l;
	const struct session *s;
	struct taste t;
	const char **names; /* of all outputs */
	VEC(size_t) named;  /* those that the user has named */
	VEC(size_t) fit;
};

static enum fettle_status find_named(struct choice *c)
{
	const struct scores_asked *asked = c->asked;
	struct str all = STR_INIT;
	const char *near;
	size_t i, k;

	for (i = 0; i < asked->n_outputs; i++) {
		for (k = 0; k < c->t.n && strcmp(asked->outputs[i], c->names[k]) != 0; k++)
			;
		if (k < c->t.n) {
			VEC_PUSH(&c->named, k);
			continue;
		}
		near = str_nearest(asked->outputs[i], c->names, c->t.n);
		for (k = 0; k < c->t.n; k++)
			str_addf(&all, "%s%s", k ? ", " : "", c->names[k]);
		fail(&c->cx->err, FETTLE_INVALID,
		     near ? "%sunknown output '%s', did you mean '%s'?"
			  : "%sunknown output '%s', the model has: %.500s",
		     asked->where, asked->outputs[i], near ? near : all.s);
		str_release(&all);
		return FETTLE_INVALID;
	}
	return FETTLE_OK;
}

static bool is_candidate(const struct choice *c, size_t i)
{
	size_t k;

	for (k = 0; k < c->named.n; k++)
		if (c->named.v[k] == i)
			return true;
	return !c->named.n;
}

/* Does the metric take this output with the labels? With `highest`, also were the label the highest there is. */
static bool takes(const struct choice *c, const struct metric *m, size_t i, bool highest)
{
	struct metric *twin = metric_twin(m);
	struct err ignored = ERR_INIT;
	struct tensor labels;
	bool ok;

	copy(&labels, &c->t.labels);
	if (highest && c->l->integral && tensor_count(&labels) == 1 && labels.dtype == DT_S64)
		*(int64_t *)labels.data = (int64_t)c->l->max;
	metric_select(twin, NULL, 0);
	ok = !metric_add(twin, &c->t.out[i], 1, &labels, NULL, c->t.valid, &ignored);
	free(labels.data);
	metric_free(twin);
	return ok;
}

/* The outputs that the metric takes; if none, those that it would but for the labels' values: it says what is wrong. */
static void find_fitting(struct choice *c, const struct metric *m)
{
	size_t i, k;

	c->fit.n = 0;
	for (k = 0; k < 2 && !c->fit.n; k++)
		for (i = 0; i < c->t.n; i++)
			if (is_candidate(c, i) && takes(c, m, i, k == 0))
				VEC_PUSH(&c->fit, i);
}

/* Keys and values for the next token are no logits. False: there are none, or nothing else. */
static bool find_no_caches(struct choice *c)
{
	size_t i;

	c->fit.n = 0;
	for (i = 0; i < c->t.n; i++)
		if (strncmp(c->names[i], "present", strlen("present")) != 0)
			VEC_PUSH(&c->fit, i);
	return c->fit.n && c->fit.n < c->t.n;
}

/* Why an output cannot be compared sample by sample with the fp32 model's; NULL: it can. */
static const char *not_by_sample(const struct choice *c, size_t i)
{
	const struct tensor *declared = &session_output(c->s, i)->type;

	if (!dtype_size(c->t.out[i].dtype))
		return "no numbers";
	if (!c->t.has_rows[i] || (declared->rank > 0 && (declared->dims[0] < 0) != takes_any_number(c->s)))
		return "no row for each sample";
	return NULL;
}

/*
 * What is compared with the fp32 model's outputs: not what is found (its size is another for each sample) nor what an RNN
 * remembers; and no class numbers or places where there are floats. False: all of them, or none would be left.
 */
static bool find_comparable(struct choice *c, const char **why)
{
	struct str without = STR_INIT;
	bool floats = false;
	size_t i;

	for (i = 0; i < c->t.n; i++)
		floats = floats || (dtype_is_float(c->t.out[i].dtype) && !not_by_sample(c, i));
	c->fit.n = 0;
	for (i = 0; i < c->t.n; i++) {
		const char *bar = not_by_sample(c, i);

		if (!bar && floats && !dtype_is_float(c->t.out[i].dtype))
			bar = "whole numbers";
		if (bar)
			str_addf(&without, "%s%s (%s)", without.s ? ", " : "without ", c->names[i], bar);
		else
			VEC_PUSH(&c->fit, i);
	}
	if (c->fit.n && without.s)
		*why = arena_strdup(&c->cx->told, without.s);
	str_release(&without);
	return c->fit.n && c->fit.n < c->t.n;
}

/* ---- which metric ---- */

static int64_t per_sample(const struct tensor *t)
{
	return t->rank && t->dims[0] ? tensor_count(t) / t->dims[0] : 0;
}

/* Finds outputs for one of the metrics, with so many numbers in a sample of the labels for one in the outputs'. */
static bool fits(struct choice *c, const char *metric, bool one_each)
{
	struct metric *m = NULL;
	size_t i, kept = 0;

	if (metric_new(&m, metric, NULL))
		return false;
	find_fitting(c, m);
	metric_free(m);
	for (i = 0; i < c->fit.n; i++)
		if ((per_sample(&c->t.labels) == per_sample(&c->t.out[c->fit.v[i]])) == one_each)
			c->fit.v[kept++] = c->fit.v[i];
	c->fit.n = kept;
	return kept > 0;
}

static enum fettle_status nothing_fits(struct choice *c)
{
	struct str all = STR_INIT;
	char shape[128];
	size_t i;

	for (i = 0; i < c->t.n; i++)
		str_addf(&all, "%s%s %s", i ? ", " : "", c->names[i],
			 tensor_shape_text(&c->t.out[i], shape, sizeof(shape)));
	fail(&c->cx->err, FETTLE_INVALID,
	     "cannot choose a metric: labels %s, %.6g to %.6g, fit none of the outputs (%.500s), name one "
	     "(--metric; cosine compares outputs with the fp32 model's)",
	     tensor_shape_text(&c->t.labels, shape, sizeof(shape)), c->l->min, c->l->max, all.s);
	str_release(&all);
	return FETTLE_INVALID;
}

/* Is each label the next token of what is fed? Then the model is there to predict them. */
static bool labels_are_next_tokens(const struct choice *c)
{
	const struct tensor *tokens = &c->t.tokens, *labels = &c->t.labels;
	size_t i, width, equal = 0, counted = 0;

	if (!tokens->data || tokens->rank != 2 || tokens->dims[1] < 4 ||
	    tensor_count(labels) != tensor_count(tokens))
		return false;
	width = (size_t)tokens->dims[1];
	for (i = 0; i < (size_t)tensor_count(tokens); i++) {
		if (i % width == width - 1 || tensor_get(labels, i) == METRIC_IGNORED)
			continue;
		counted++;
		equal += tensor_get(labels, i) == tensor_get(tokens, i + 1);
	}
	return counted && equal == counted;
}

/* What labels and outputs suggest, and why. */
static enum fettle_status suggest(struct choice *c, const char **metric, char **why)
{
	const struct looked *l = c->l;

	if (!l->has_labels) {
		*metric = "cosine";
		*why = xstrdup(c->t.published ? "the data has the outputs that are expected"
					      : "the data has no labels, so outputs are compared with the "
						"reference's");
	} else if (l->shares && fits(c, "top1", true)) {
		*metric = "top1";
		*why = xstrdup("the labels are shares of classes");
	} else if (l->integral && labels_are_next_tokens(c) && fits(c, "perplexity", false)) {
		*metric = "perplexity";
		*why = xstrdup("the labels are the next tokens of the input");
	} else if (l->integral && fits(c, "top1", false)) {
		*metric = "top1";
		*why = xstrfmt("the labels are class numbers, %.0f to %.0f", l->min, l->max);
	} else if (l->integral && l->min >= 0 && l->max <= 1 && fits(c, "auc", true)) {
		*metric = "auc";
		*why = xstrdup("the labels are 0 and 1, for one score per sample");
	} else if (fits(c, "mse", true)) {
		*metric = "mse";
		*why = xstrfmt("the labels are numbers of the output's shape, %.6g to %.6g", l->min, l->max);
	} else {
		return nothing_fits(c);
	}
	return FETTLE_OK;
}

static char *join(const struct choice *c, const size_t *which, size_t n)
{
	struct str s = STR_INIT;
	size_t i;

	for (i = 0; i < n; i++)
		str_addf(&s, "%s%s", i ? ", " : "", c->names[which ? which[i] : i]);
	return s.s ? s.s : xstrdup("");
}

/* Tells the metric which outputs it looks at; why, unless there is no choice. */
static void choose_outputs(struct choice *c, struct metric *m, const char **why)
{
	const bool by_labels = c->t.labels.data && metric_needs(m) & METRIC_LABELS;
	char *text;
	size_t i;

	if (c->named.n) {
		metric_select(m, c->named.v, c->named.n);
		return;
	}
	if (metric_type(m)->whole_answer)
		return;
	for (i = 0; i < metric_n_parts(m); i++)
		choose_outputs(c, metric_part(m, i), why);
	if (c->t.n < 2 || metric_n_parts(m))
		return;
	if (metric_type(m)->of_logits && find_no_caches(c)) {
		metric_select(m, c->fit.v, c->fit.n);
		*why = "the others are what a language model remembers";
	} else if (!by_labels && metric_needs(m) & METRIC_REFERENCE && find_comparable(c, why)) {
		metric_select(m, c->fit.v, c->fit.n);
	}
	if (!by_labels)
		return;
	find_fitting(c, m);
	if (!c->fit.n)
		return;
	metric_select(m, c->fit.v, 1);
	text = join(c, c->fit.v, c->fit.n);
	*why = c->fit.n == 1
		       ? "the only one that fits the labels"
		       : arena_strfmt(&c->cx->told,
				      "the first of those that fit the labels (%s), --scores names another",
				      text);
	free(text);
}

static void tell_scoring(struct choice *c, const struct metric *m, const char *why_metric,
			 const char *why_outputs)
{
	char *text;
	VEC(size_t) which = { 0 };
	size_t i;

	for (i = 0; i < c->t.n; i++)
		if (metric_looks_at(m, i))
			VEC_PUSH(&which, i);
	text = join(c, c->named.n ? c->named.v : which.v, c->named.n ? c->named.n : which.n);
	c->cx->scoring =
		(struct fettle_scoring){ .metric = arena_strdup(&c->cx->told, metric_name(m)),
					 .outputs = arena_strdup(&c->cx->told, text),
					 .why_metric =
						 why_metric ? arena_strdup(&c->cx->told, why_metric) : NULL,
					 .why_outputs = why_outputs };
	VEC_RELEASE(&which);
	free(text);
}

static void warn_constant(const struct choice *c, const struct metric *m)
{
	size_t i;

	for (i = 0; i < c->t.n; i++)
		if (metric_looks_at(m, i) && (c->t.moves[i] || !tensor_count(&c->t.out[i])))
			return;
	if (c->t.samples > 1 && c->t.n)
		context_warn(c->cx,
			     "%s is the same for %zu samples that differ: no score can tell models apart",
			     c->t.n == 1 ? "the model's output" : "what is scored of the model's outputs",
			     c->t.samples);
}

enum fettle_status scores_label(const struct scores *s, struct feed *feed, struct err *err)
{
	return s->metric && metric_next_tokens(s->metric) ? feed_label_tokens(feed, err) : FETTLE_OK;
}

enum fettle_status scores_open(struct scores *out, struct context *cx, const struct scores_asked *asked,
			       struct session *s, const struct source *data, const struct looked *l)
{
	struct choice c = { .cx = cx, .asked = asked, .l = l, .s = s };
	const char *metric = asked->metric, *why_outputs = NULL;
	char *why_metric = NULL;
	enum fettle_status st;
	size_t i;

	c.names = xcalloc(session_n_outputs(s) + 1, sizeof(*c.names));
	for (i = 0; i < session_n_outputs(s); i++)
		c.names[i] = session_output(s, i)->name;
	st = metric ? registered_metric_open(&cx->members, metric, &out->metric, &cx->err) : FETTLE_OK;
	st = st ? st : taste(&c.t, s, data, metric && metric_next_tokens(out->metric), &cx->err);
	st = st ? st : find_named(&c);
	if (!st && !metric) {
		st = suggest(&c, &metric, &why_metric);
		st = st ? st : registered_metric_open(&cx->members, metric, &out->metric, &cx->err);
	}
	st = st ? st : scores_label(out, data->feed, &cx->err);
	if (!st && !l->has_labels && metric_next_tokens(out->metric)) {
		free(why_metric);
		why_metric = xstrfmt("the data has no labels, so they are the next tokens of input '%s'",
				     feed_input(data->feed, feed_tokens(data->feed))->name);
	}
	if (!st)
		metric_set_texts(out->metric, data->data->squad, data->data->vocabulary);
	if (!st) {
		choose_outputs(&c, out->metric, &why_outputs);
		tell_scoring(&c, out->metric, why_metric, why_outputs);
		warn_constant(&c, out->metric);
		out->chance = c.t.n && !metric_n_parts(out->metric)
				      ? metric_chance(out->metric, &c.t.out[metric_first_output(out->metric)])
				      : NAN;
	}
	free(why_metric);
	VEC_RELEASE(&c.named);
	VEC_RELEASE(&c.fit);
	free(c.names);
	taste_release(&c.t);
	return st;
}

/* Half as much again as guessing, or a tenth of the way to perfect: whichever is less. */
void scores_judge(const struct scores *s, struct context *cx, const char *who, double value)
{
	const struct fettle_fed *fed = cx->fed.n ? &cx->fed.v[cx->fed.n - 1] : NULL;

	if (!s->metric || !(value < fmin(1.5 * s->chance, s->chance + 0.1 * (1 - s->chance))))
		return;
	context_warn(
		cx,
		"%s scores %.4g (%s), about what guessing does (%.4g): is it fed what it was trained on? "
		"Input "
		"'%s' gets %.4g to %.4g",
		who, value, metric_name(s->metric), s->chance, fed ? fed->input : "", fed ? fed->min : NAN,
		fed ? fed->max : NAN);
}
