#include "tune/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/index.h"
#include "tune/compare.h"
#include "tune/fed.h"

static bool same_text(const char *a, const char *b)
{
	return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static bool forms_differ(const struct op_form *a, const struct op_form *b)
{
	return !a->type || !b->type || strcmp(a->precision, b->precision) != 0 ||
	       !same_text(a->weight, b->weight) || !same_text(a->input, b->input) || a->bytes != b->bytes ||
	       a->zero != b->zero || (a->scale != b->scale && !(isnan(a->scale) && isnan(b->scale)));
}

static void add_pair(struct diff *d, const char *name, const struct op_form *a, const struct op_form *b)
{
	static const struct op_form none = { .scale = NAN };
	struct op_pair p = { .name = name, .a = a ? *a : none, .b = b ? *b : none, .sqnr = NAN };

	p.differs = forms_differ(&p.a, &p.b);
	VEC_PUSH(&d->ops, p);
}

enum fettle_status diff_open(struct diff *d, const char *a, const char *b, struct err *err)
{
	struct op_form *fa = NULL, *fb = NULL;
	const char **ka = NULL, **kb = NULL;
	struct map ia = MAP_INIT, ib = MAP_INIT, none = MAP_INIT;
	size_t na = 0, nb = 0, i, at;
	enum fettle_status st;

	d->parts = SIZE_MAX;
	d->output_sqnr = NAN;
	st = model_load(&d->a, a, err);
	if (!st)
		st = model_load(&d->b, b, err);
	/* names of either may have got numbers: those of the second go by the first's, and the other way round */
	if (!st)
		st = forms_of(d->b, NULL, &d->arena, &none, &fb, &kb, &nb, err);
	if (!st)
		st = forms_of(d->a, &none, &d->arena, &ia, &fa, &ka, &na, err);
	if (!st)
		st = forms_of(d->b, &ia, &d->arena, &ib, &fb, &kb, &nb, err);
	if (st)
		goto out;
	for (i = 0; i < nb; i++) {
		at = map_get(&ia, kb[i]);
		add_pair(d, kb[i], at == MAP_NONE ? NULL : &fa[at], &fb[i]);
	}
	for (i = 0; i < na; i++)
		if (map_get(&ib, ka[i]) == MAP_NONE)
			add_pair(d, ka[i], &fa[i], NULL);
	d->bytes_a = model_file_size(a);
	d->bytes_b = model_file_size(b);
out:
	map_release(&ia);
	map_release(&ib);
	map_release(&none);
	return st;
}

/* ---- on data ---- */

/* a value that both models have, and the op of b that makes it */
struct probe {
	size_t op;
	const char *in_a, *in_b;
	bool output; /* of the models; then op may be SIZE_MAX */
	double noise;
	struct products {
		double aa, ab, bb;
	} * channels;
	size_t n_channels;
};
struct probes {
	struct probe *v;
	size_t n, cap;
};

static void add_output(struct probes *p, const char *name)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (strcmp(p->v[i].in_a, name) == 0 || strcmp(p->v[i].in_b, name) == 0) {
			p->v[i].output = true;
			return;
		}
	VEC_PUSH(p, ((struct probe){ .op = SIZE_MAX, .in_a = name, .in_b = name, .output = true }));
}

static void choose_probes(struct diff *d, struct probes *out)
{
	struct graph_index a, b;
	size_t i;

	graph_index_init(&a, d->a);
	graph_index_init(&b, d->b);
	for (i = 0; i < d->ops.n; i++) {
		const char *value = d->ops.v[i].b.value;

		if (value && *value && graph_producer(&a, value))
			VEC_PUSH(out,
				 ((struct probe){
					 .op = i, .in_a = name_in(&a, value), .in_b = name_in(&b, value) }));
	}
	for (i = 0; i < d->b->n_outputs; i++)
		if (graph_producer(&a, d->b->outputs[i].name))
			add_output(out, d->b->outputs[i].name);
	graph_index_release(&a);
	graph_index_release(&b);
}

static enum fettle_status open_side(struct context *cx, const struct model *m, const struct probes *p,
				    bool is_b, int threads, struct model **exposed, struct session **out)
{
	struct session_options so = { .threads = threads };
	const char **names = xcalloc(p->n + 1, sizeof(*names));
	enum fettle_status st;
	size_t i;

	for (i = 0; i < p->n; i++)
		names[i] = is_b ? p->v[i].in_b : p->v[i].in_a;
	*exposed = model_derive(m);
	model_set_outputs(*exposed, names, p->n);
	st = session_new(out, cx->rt, *exposed, &so, &cx->err);
	free(names);
	return st;
}

/* Of images channels are the second dimension, of all else the last. */
static int64_t channels_of(const struct tensor *t, int64_t *inner)
{
	const int axis = t->rank == 4 || t->rank == 5 ? 1 : t->rank - 1;
	int i;

	*inner = 1;
	for (i = axis + 1; i < t->rank; i++)
		*inner *= t->dims[i];
	return axis < 0 ? 1 : t->dims[axis];
}

static void compare(struct probe *p, const struct tensor *a, const struct tensor *b)
{
	const int64_t n = tensor_count(a);
	int64_t inner, channels, i;

	if (n <= 0 || n != tensor_count(b) || a->dtype != DT_F32 || b->dtype != DT_F32)
		return;
	channels = channels_of(a, &inner);
	if (!p->channels) {
		p->n_channels = (size_t)channels;
		p->channels = xcalloc(p->n_channels, sizeof(*p->channels));
	}
	for (i = 0; i < n; i++) {
		const double x = ((const float *)a->data)[i], y = ((const float *)b->data)[i];
		struct products *c = &p->channels[(size_t)(i / inner % channels) % p->n_channels];

		p->noise += (x - y) * (x - y);
		c->aa += x * x;
		c->ab += x * y;
		c->bb += y * y;
	}
}

/* What is left of the error when each channel of b is scaled as fits best: recipes such as cle and smooth_quant scale them. */
static double rescaled_noise(const struct probe *p, double *signal)
{
	double noise = 0;
	size_t i;

	*signal = 0;
	for (i = 0; i < p->n_channels; i++) {
		const struct products *c = &p->channels[i];

		*signal += c->aa;
		noise += fmax(0, c->aa - (c->bb > 0 ? c->ab * c->ab / c->bb : 0));
	}
	return noise;
}

/* a and b take the samples in turns, so that nothing has to be kept */
static enum fettle_status run_both(struct context *cx, struct session *const s[2],
				   struct feed *const feeds[2], struct probes *p, size_t *samples)
{
	struct tensor *out[2] = { xcalloc(p->n, sizeof(struct tensor)),
				  xcalloc(p->n, sizeof(struct tensor)) };
	struct feed_batch batch[2] = { FEED_BATCH_INIT, FEED_BATCH_INIT };
	enum fettle_status st = FETTLE_OK;
	size_t i, k;

	for (i = 0; i < feed_batches(feeds[0]) && !st; i++) {
		for (k = 0; k < 2 && !st; k++) {
			st = feed_read(feeds[k], i, &batch[k], &cx->err);
			if (!st)
				st = session_run(s[k], batch[k].inputs, out[k], &cx->err);
		}
		for (k = 0; k < p->n && !st; k++)
			compare(&p->v[k], &out[0][k], &out[1][k]);
		*samples += st ? 0 : batch[0].valid;
		if (!st && !context_progress(cx, *samples, feed_samples(feeds[0])))
			st = fail(&cx->err, FETTLE_STOP, "stopped");
	}
	for (k = 0; k < 2; k++) {
		feed_batch_release(&batch[k]);
		free(out[k]);
	}
	return st;
}

static double decibels(double noise, double signal)
{
	return !(signal > 0) ? NAN : noise > 1e-20 * signal ? -10 * log10(noise / signal) : 200;
}

static void judge(struct diff *d, const struct probes *p)
{
	double worst = 200;
	size_t i;

	for (i = 0; i < p->n; i++) {
		const struct probe *x = &p->v[i];
		double signal, left = rescaled_noise(x, &signal);
		const double rescaled = decibels(left, signal), plain = decibels(x->noise, signal);
		const bool scaled = rescaled > plain + DIFF_DROP;
		const double sqnr = scaled ? rescaled : plain;

		if (isnan(sqnr))
			continue;
		if (x->output)
			d->output_sqnr = fmin(d->output_sqnr, plain);
		if (x->op == SIZE_MAX)
			continue;
		d->ops.v[x->op].sqnr = sqnr;
		d->ops.v[x->op].rescaled = scaled;
		/* rounding alone parts no values: what is above 40 dB is the same for all purposes */
		if (d->parts == SIZE_MAX && sqnr < fmin(worst, 40) - DIFF_DROP)
			d->parts = x->op;
		worst = fmin(worst, sqnr);
	}
}

enum fettle_status diff_values(struct diff *d, struct context *cx, const struct data_ref *data,
			       const struct feed_options *o, int threads)
{
	struct probes p = { NULL, 0, 0 };
	struct model *m[2] = { NULL, NULL };
	struct session *s[2] = { NULL, NULL };
	struct source source[2] = { SOURCE_INIT, SOURCE_INIT };
	struct feed *feeds[2];
	enum fettle_status st;
	size_t i;

	choose_probes(d, &p);
	if (!p.n)
		return fail(&cx->err, FETTLE_INVALID,
			    "cannot compare values: the models have none of the same name; were they made "
			    "from one model?");
	st = open_side(cx, d->a, &p, false, threads, &m[0], &s[0]);
	if (!st)
		st = open_side(cx, d->b, &p, true, threads, &m[1], &s[1]);
	if (!st)
		st = source_open(&source[0], cx, data, s[0], o);
	source[1].data = source[0].data; /* not read twice */
	if (!st)
		st = source_open(&source[1], cx, data, s[1], o);
	if (!st)
		st = fed_tell(cx, "evaluation", &source[0], NULL);
	if (!st)
		st = context_phase(cx, "compare");
	feeds[0] = source[0].feed;
	feeds[1] = source[1].feed;
	if (!st)
		st = run_both(cx, s, feeds, &p, &d->samples);
	if (!st)
		judge(d, &p);
	feed_free(source[1].feed);
	source_release(&source[0]);
	session_free(s[0]);
	session_free(s[1]);
	model_free(m[0]);
	model_free(m[1]);
	for (i = 0; i < p.n; i++)
		free(p.v[i].channels);
	VEC_RELEASE(&p);
	return st;
}

void diff_release(struct diff *d)
{
	VEC_RELEASE(&d->ops);
	model_free(d->a);
	model_free(d->b);
	arena_release(&d->arena);
}
