#include "tune/compare.h"

#include <stdlib.h>
#include <string.h>

#include "ops/kind.h"

enum {
	SCORED_SHARE = 16, /* of the samples of an evaluation, one in so many is enough to score a plan */
	SCORED_MIN = 4,
};

/* Where evaluations are short, so are scores: a plan's score must cost little beside its trial. */
static struct feed *few_samples(const struct lab *l, struct feed *all)
{
	struct feed *few = feed_twin(all);
	size_t total = feed_samples(all), n = l->eval ? feed_samples(l->eval) / SCORED_SHARE : total, i;
	size_t *chosen = xcalloc(total, sizeof(*chosen));

	n = n < SCORED_MIN ? SCORED_MIN : n;
	n = n < total ? n : total;
	for (i = 0; i < n; i++)
		chosen[i] = feed_sample(all, i);
	feed_set_order(few, chosen, n, NULL); /* the samples are the feed's own */
	free(chosen);
	return few;
}

struct feed *scoring_feed(struct lab *l)
{
	if (!l->few && (l->calib || l->eval))
		l->few = few_samples(l, l->calib ? l->calib : l->eval);
	return l->few;
}

enum fettle_status run_feed(struct lab *l, struct session *s, struct feed *feed, size_t batches, take_fn take,
			    void *self, struct err *err)
{
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < batches && i < feed_batches(feed) && !st; i++) {
		if (lab_stopped(l)) {
			st = fail(err, FETTLE_STOP, "stopped");
			break;
		}
		st = feed_read(feed, i, &b, err);
		if (!st)
			st = session_run(s, b.inputs, out, err);
		if (!st)
			take(self, i, &b, out, session_n_outputs(s));
	}
	feed_batch_release(&b);
	free(out);
	return st;
}

enum fettle_status run_batches(struct lab *l, struct session *s, size_t batches, take_fn take, void *self,
			       struct err *err)
{
	return run_feed(l, s, scoring_feed(l), batches, take, self, err);
}

void keep_outputs(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out, size_t n)
{
	struct reference *r = self;
	size_t i;

	(void)batch;
	(void)b;
	r->per_batch = n;
	for (i = 0; i < n; i++) {
		struct tensor t = out[i];

		t.data = NULL;
		if (dtype_is_float(out[i].dtype)) {
			t.dtype = DT_F32;
			t.data = xmalloc(tensor_bytes(&t));
			tensor_convert(&t, &out[i]);
		}
		VEC_PUSH(&r->v, t);
	}
}

void reference_release(struct reference *r)
{
	size_t i;

	for (i = 0; i < r->v.n; i++)
		free(r->v.v[i].data);
	VEC_RELEASE(&r->v);
}

void compare_outputs(void *self, size_t batch, const struct feed_batch *b, const struct tensor *out, size_t n)
{
	struct comparison *c = self;
	size_t i, k;

	(void)b;
	for (i = 0; i < n; i++) {
		const struct tensor *ref = &c->r->v.v[batch * c->r->per_batch + i];
		const float *x = ref->data;
		size_t count = (size_t)tensor_count(&out[i]);

		if (!x || !dtype_is_float(out[i].dtype) || tensor_count(ref) != tensor_count(&out[i]))
			continue;
		for (k = 0; k < count; k++) {
			double d = tensor_get(&out[i], k) - x[k];

			c->noise[i] += d * d;
			c->signal[i] += (double)x[k] * x[k];
		}
	}
}

double comparison_error(const struct lab *l, const struct comparison *c)
{
	double noise = 0, signal = 0;
	size_t i;

	for (i = 0; i < c->r->per_batch; i++) {
		if (!lab_output_counts(l, i))
			continue;
		noise += c->noise[i];
		signal += c->signal[i];
	}
	return signal > 0 ? noise / signal : noise;
}

/* where a value of the fp32 graph is in the quantized one: the output of its DQ, if it has one */
const char *name_in(const struct graph_index *q, const char *value)
{
	size_t v = graph_value(q, value), i, k;

	if (v == MAP_NONE)
		return NULL;
	for (i = q->first[v]; i < q->first[v + 1]; i++) {
		const struct node *n = q->m->nodes.v[q->uses[i]];
		size_t out;

		if (!is_quantize_linear(n))
			continue;
		out = graph_value(q, n->out[0]);
		for (k = q->first[out]; k < q->first[out + 1]; k++) {
			const struct node *dq = q->m->nodes.v[q->uses[k]];

			if (is_dequantize_linear(dq) && !node_has_attr(dq, "axis"))
				return dq->out[0];
		}
	}
	return value;
}

enum fettle_status expose_and_run(struct lab *l, const struct exposed *e, size_t batches, take_fn take,
				  void *self, struct err *err)
{
	struct session_options so = { .threads = l->o.threads };
	struct model *d = model_derive(e->m);
	struct session *s = NULL;
	enum fettle_status st;

	model_set_outputs(d, e->names, e->n);
	st = session_new(&s, l->rt, d, &so, err);
	if (!st)
		st = run_batches(l, s, batches, take, self, err);
	session_free(s);
	model_free(d);
	return st;
}
