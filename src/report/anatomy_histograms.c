/* Histograms of what ops read and of their weights, before and after quantization. */
#include "report/anatomy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensorboard/histogram.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct drawn {
	const struct anatomy *a;
	json_t *values, *weights; /* by value, by op */
	enum fettle_status st;
};

/* Two digits per bucket: 4095 log(1 + count) / log(1 + most), so that tails are seen. */
static json_t *histogram_json(const struct histogram *h)
{
	char text[2 * HISTOGRAM_BUCKETS + 1];
	double most = 0;
	size_t i;

	for (i = 0; i < h->n; i++)
		most = fmax(most, h->count[i]);
	for (i = 0; i < h->n; i++) {
		const unsigned code = (unsigned)lround(4095 * log1p(h->count[i]) / log1p(fmax(most, 1)));

		text[2 * i] = digits[code / 64];
		text[2 * i + 1] = digits[code % 64];
	}
	text[2 * h->n] = '\0';
	return json_pack("{s:f, s:f, s:f, s:s}", "from", h->first * h->width, "width", h->width, "most", most,
			 "counts", text);
}

static void draw_value(void *self, const char *value, const char *observed, struct qparams q, enum dtype t)
{
	struct drawn *d = self;
	const struct qlimits limits = quant_limits(t, SCHEME_ASYM, false);
	const struct observer *o =
		d->a->learner ? learner_plan_observer(d->a->learner, d->a->samples, d->a->plan, observed)
			      : NULL;
	struct histogram h;
	json_t *j;

	if (json_object_get(d->values, value))
		return;
	j = json_pack("{s:f, s:i, s:s, s:f, s:f}", "scale", (double)q.scale, "zero", (int)q.zero, "dtype",
		      dtype_name(t), "low", (limits.lo - q.zero) * (double)q.scale, "high",
		      (limits.hi - q.zero) * (double)q.scale);
	if (o && o->count) {
		histogram_of_seen(&h, o);
		json_object_set_new(j, "before", histogram_json(&h));
		histogram_of_quantized(&h, o, q, t);
		json_object_set_new(j, "after", histogram_json(&h));
	}
	json_object_set_new(d->values, value, j);
}

static void draw_weight(void *self, const struct op *op, size_t input, const struct qweight *w)
{
	struct drawn *d = self;
	const size_t n = (size_t)tensor_count(&w->q);
	struct histogram h;
	float *x = NULL;

	if (d->st || !n || (int)input != op->rule->weight || json_object_get(d->weights, op->name))
		return;
	d->st = mem_try(&x, n, sizeof(*x), op->name, &d->a->cx->err);
	if (d->st)
		return;
	qweight_floats(w, x);
	histogram_of_floats(&h, x, n);
	json_object_set_new(d->weights, op->name,
			    json_pack("{s:o, s:s, s:b}", "after", histogram_json(&h), "dtype",
				      dtype_name(w->q.dtype), "per_channel", w->axis >= 0));
	free(x);
}

/* of an op that is weight-only */
static void draw_blocks(void *self, const struct op *op, const struct block_packed *w)
{
	struct drawn *d = self;
	const size_t n = (size_t)(w->outputs * w->inputs);
	struct histogram h;
	float *x = NULL;
	char type[32];

	if (!d->st)
		d->st = block_packed_floats(w, op->name, &x, &d->a->cx->err);
	if (!d->st && n) {
		histogram_of_floats(&h, x, n);
		snprintf(type, sizeof(type), "%d bits", w->format.bits);
		json_object_set_new(d->weights, op->name,
				    json_pack("{s:o, s:s, s:b}", "after", histogram_json(&h), "dtype", type,
					      "per_channel", true));
	}
	free(x);
}

/* the weights as they are in the fp32 model, of ops whose weight is quantized */
static enum fettle_status add_fp32_weights(struct drawn *d)
{
	struct model *m = d->a->s->m;
	enum fettle_status st = FETTLE_OK;
	struct histogram h;
	size_t i;

	for (i = 0; i < m->nodes.n && !st; i++) {
		const struct op *op = &d->a->s->ops.v[i];
		json_t *j = json_object_get(d->weights, op->name);
		struct init *w = j ? model_init(m, m->nodes.v[i]->in[op->rule->weight]) : NULL;

		if (!w || w->t.dtype != DT_F32 || tensor_count(&w->t) <= 0)
			continue;
		st = model_weight(m, w, &d->a->cx->err);
		if (st)
			break;
		histogram_of_floats(&h, w->t.data, (size_t)tensor_count(&w->t));
		json_object_set_new(j, "before", histogram_json(&h));
	}
	return st;
}

/* which value each op reads first, and which it makes */
static json_t *ends_json(const struct anatomy *a, json_t *values)
{
	json_t *ops = json_object();
	size_t i;

	for (i = 0; i < a->s->ops.n; i++) {
		const struct node *n = a->s->m->nodes.v[i];
		const struct graph_index *g = &a->s->g;
		const char *in = n->n_in ? n->in[0] : "",
			   *out = n->n_out ? g->names[quantized_output(g, n->out[0])] : "";

		if (json_object_get(values, in) || json_object_get(values, out))
			json_object_set_new(ops, a->s->ops.v[i].name,
					    json_pack("[s?, s?]", json_object_get(values, in) ? in : NULL,
						      json_object_get(values, out) ? out : NULL));
	}
	return ops;
}

enum fettle_status anatomy_histograms(const struct anatomy *a, json_t *run)
{
	struct drawn d = { .a = a, .values = json_object(), .weights = json_object() };
	const struct quantize_watch watch = { &d, draw_value, draw_weight, draw_blocks };
	enum fettle_status st = quantize_watched(a->s->z, a->known, a->plan, &watch, &a->cx->err);

	st = st ? st : d.st;
	st = st ? st : add_fp32_weights(&d);
	if (!st)
		json_object_set_new(run, "histograms",
				    json_pack("{s:O, s:O, s:o}", "values", d.values, "weights", d.weights,
					      "ops", ends_json(a, d.values)));
	json_decref(d.values);
	json_decref(d.weights);
	return st;
}
