/*
 * Variants of a model that cle, smooth_quant and awq make: the same function (by ONNX Runtime, to 1e-4), channels found in
 * graphs of every kind, and int8 no worse than before somebody scaled the channels.
 */
#include "unit/quantize.h"

#include "base/str.h"
#include "data/feed.h"
#include "quantize/grams.h"
#include "quantize/rewrite.h"
#include "quantize/variant.h"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";

enum { SAMPLES = 64 };

/* normal numbers, others for every sample, the same each time */
static bool read_sample(void *self, size_t sample, size_t field, void *to)
{
	const struct fettle_field *f = self;
	struct rng rng;
	size_t n = 1, i;
	int d;

	(void)field;
	for (d = 0; d < f->rank; d++)
		n *= (size_t)f->dims[d];
	rng_seed(&rng, 100 + sample);
	for (i = 0; i < n; i++)
		((float *)to)[i] = (float)rng_normal(&rng);
	return true;
}

struct data {
	int64_t dims[8];
	struct fettle_field field;
	struct fettle_data_source source;
	struct dataset *set;
	struct feed *feed;
};

static void data_open(struct data *d, const struct subject *s)
{
	const struct value *in = &s->m->inputs[0];
	struct input_spec spec = { .name = in->name, .dtype = DT_F32, .rank = in->type.rank };
	struct err err = ERR_INIT;
	int i;

	for (i = 0; i < in->type.rank; i++) {
		spec.dims[i] = in->type.dims[i];
		if (i)
			d->dims[i - 1] = in->type.dims[i];
	}
	d->field = (struct fettle_field){ in->name, FETTLE_FLOAT32, in->type.rank - 1, d->dims };
	d->source = (struct fettle_data_source){ .size = sizeof(d->source),
						 .samples = SAMPLES,
						 .fields = &d->field,
						 .n_fields = 1,
						 .read = read_sample,
						 .self = &d->field };
	d->set = NULL;
	d->feed = NULL;
	assert_ok(dataset_open_source(&d->set, &d->source, &(struct dataset_options){ 0 }, &err), err);
	assert_ok(feed_open(&d->feed, d->set, &spec, 1, &(struct feed_options){ .batch = 8 }, &err), err);
}

static void data_close(struct data *d)
{
	feed_free(d->feed);
	dataset_free(d->set);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n'))
		n += str_starts(text, what);
	return n;
}

static struct subject *open_graph(const char *name, int opset, const char *inputs, const char *body,
				  const char *outputs)
{
	char *path = xstrfmt("%s/%s.onnx", dir, name);
	struct subject *s = NULL;
	struct err err = ERR_INIT;

	build_model(path, opset, inputs, body, outputs);
	assert_ok(subject_open(&s, rt, path, &err), err);
	free(path);
	return s;
}

static const struct calibrate_options one_thread = { .threads = 1 };

static struct variant *make_for(struct subject *s, struct recipes r, const struct qplan_defaults *defaults)
{
	struct qplan p = QPLAN_INIT;
	struct variant *v = NULL;
	struct err err = ERR_INIT;
	struct data d;

	qplan_default(&p, &s->ops, &s->g, defaults);
	p.recipes = r;
	data_open(&d, s);
	assert_ok(variant_new(&v, rt, s, &p, d.feed, &one_thread, NULL, &err), err);
	data_close(&d);
	qplan_release(&p);
	return v;
}

static struct variant *make(struct subject *s, struct recipes r)
{
	const struct qplan_defaults defaults = qplan_defaults(&s->cpu);

	return make_for(s, r, &defaults);
}

/* the ranges of all values that might be quantized, in the base or a variant */
static struct calibration *ranges_of(struct subject *s, const struct subject *base, const char ***values,
				     size_t *n)
{
	struct calibration *c = NULL;
	struct err err = ERR_INIT;
	struct data d;

	*n = quantizer_values(&s->g, &s->ops, NULL, values);
	data_open(&d, base);
	assert_ok(calibrate(&c, &(struct calibrate_on){ rt, s->m, d.feed }, *values, *n, &one_thread, &err),
		  err);
	data_close(&d);
	return c;
}

static void same_range(const char *why, const char *value, const struct observer *o, double min, double max)
{
	const double slack = 2e-5 * (fmax(o->max, 0) - fmin(o->min, 0));

	if (!(fabs(fmin(o->min, 0) - min) <= slack && fabs(fmax(o->max, 0) - max) <= slack))
		fail_msg("%s: '%s' has [%g, %g], calibrated [%g, %g]", why, value, min, max, (double)o->min,
			 (double)o->max);
}

/* What a variant says of its values, or the base's calibration does where it changes nothing, against a calibration of
 * the variant itself. Returns how many it changed. */
static size_t check_ranges(const char *why, struct subject *s, struct variant *v)
{
	const char **values = NULL, **base_values = NULL;
	size_t n, n_base, i, changed = 0;
	struct calibration *base = ranges_of(s, s, &base_values, &n_base),
			   *now = ranges_of(v->s, s, &values, &n);

	for (i = 0; i < n; i++) {
		const struct observer *o = calibration_find(now, values[i]), *was;
		struct range r;

		if (variant_changes(v, values[i], &r)) {
			same_range(why, values[i], o, r.min, r.max);
			changed++;
			continue;
		}
		was = calibration_find(base, values[i]);
		if (!was)
			fail_msg("%s: nobody knows the range of '%s'", why, values[i]);
		same_range(why, values[i], o, fmin(was->min, 0), fmax(was->max, 0));
	}
	calibration_free(base);
	calibration_free(now);
	free(values);
	free(base_values);
	return changed;
}

/* the same function; and its text makes the same model again, to the bit */
static void check_variant(const char *why, struct subject *s, struct variant *v)
{
	struct variant *again = NULL;
	struct err err = ERR_INIT;
	double db = compare(rt, s->m, v->s->m);

	if (!(db > 80))
		fail_msg("%s: %.1f dB from the model it is made of, need 80; ops:%s", why, db,
			 describe(v->s->m));
	assert_ok(variant_read(&again, s, v->text, &err), err);
	assert_string_equal(again->text, v->text);
	assert_true(compare(rt, v->s->m, again->s->m) > 250);
	variant_free(again);
}

/* factors from 1/30 to 30 or so, for every class that can take them, as if somebody had trained it so */
static char *mangle(struct subject *s, size_t *n)
{
	struct channels c;
	struct str text = STR_INIT;
	struct rng rng;
	size_t i, k;

	rng_seed(&rng, 3);
	*n = 0;
	channels_find(&c, s);
	for (i = 0; i < c.parts.n; i++) {
		const struct part *p = &c.parts.v[i];

		for (k = 0; k < i; k++)
			if (c.parts.v[k].class == p->class && c.parts.v[k].role == PART_MAKES)
				break;
		if (p->role != PART_MAKES || c.pinned[p->class] || k < i)
			continue;
		str_addf(&text, "fold %zu", c.size[p->class]);
		for (k = 0; k < c.size[p->class]; k++)
			str_addf(&text, " %a", exp(1.5 * rng_normal(&rng)));
		str_addf(&text, " %s\n", s->g.names[p->value]);
		++*n;
	}
	channels_release(&c);
	return text.s ? text.s : xstrdup("");
}

static enum fettle_status calibrated(void *self, const char *value, const struct qsetting *s,
				     struct range *out, struct err *err)
{
	struct range_options o = { s->algorithm, s->parameter, s->dtype, s->scheme };

	return range_compute(calibration_find(self, value), &o, out, err);
}

/* dB of the int8 model, calibrated on the variant's own values, on other data than that */
static double int8_db(struct subject *s, struct variant *v)
{
	struct statistics *ranges = statistics_new();
	struct qplan_defaults defaults = qplan_defaults(&s->cpu);
	struct qplan plan = QPLAN_INIT, own = QPLAN_INIT;
	struct calibration *c = NULL;
	struct model *q = NULL;
	struct err err = ERR_INIT;
	const char **values;
	struct data d;
	double db;
	size_t n;

	qplan_default(&plan, &s->ops, &s->g, &defaults);
	variant_plan(v, &plan, &own);
	n = quantizer_values(&v->s->g, &v->s->ops, &own, &values);
	data_open(&d, s);
	assert_ok(calibrate(&c, &(struct calibrate_on){ rt, v->s->m, d.feed }, values, n, &one_thread, &err),
		  err);
	data_close(&d);
	assert_ok(know(ranges, v->s->z, &own, calibrated, NULL, c, &err), err);
	assert_ok(quantize(s->z, &(struct knowledge){ .variant = v, .values = ranges }, &plan, &q, &err),
		  err);
	db = compare(rt, s->m, q);
	model_free(q);
	statistics_free(ranges);
	calibration_free(c);
	free(values);
	qplan_release(&plan);
	qplan_release(&own);
	return db;
}

#define X "x:?x4x8x8"
#define C1 "w1 = 8x4x3x3; b1 = 8; a = Conv(x, w1, b1) pads=1,1,1,1; "
#define C2 "w2 = 6x8x3x3; b2 = 6; "
#define NORM                                                                                                 \
	"e = 0.00001; two = 2.0; m = ReduceMean(x) axes=-1,-1; d = Sub(x, m); p = Pow(d, two); "             \
	"v = ReduceMean(p) axes=-1,-1; ve = Add(v, e); sd = Sqrt(ve); n = Div(d, sd); "

struct graph {
	const char *why;
	size_t classes; /* that can be scaled */
	const char *body;
};
static const struct graph graphs[] = {
	{ "Relu between", 1, C1 C2 "r = Relu(a); y = Conv(r, w2, b2)" },
	{ "nothing between, no biases", 1, "w1 = 8x4x1x1; a = Conv(x, w1); w2 = 6x8x1x1; y = Conv(a, w2)" },
	{ "LeakyRelu", 1, C1 C2 "r = LeakyRelu(a) alpha=0.2; y = Conv(r, w2, b2)" },
	{ "PRelu", 1, C1 C2 "sl = 8x1x1; r = PRelu(a, sl); y = Conv(r, w2, b2)" },
	{ "a depthwise chain", 2,
	  C1 C2 "r = Relu(a); d = 8x1x3x3; db = 8; e = Conv(r, d, db) group=8 pads=1,1,1,1; f = Relu(e); "
		"y = Conv(f, w2, b2)" },
	{ "groups", 2, C1 "r = Relu(a); g = 6x4x3x3; c = Conv(r, g) group=2; h = 4x6x1x1; y = Conv(c, h)" },
	{ "MaxPool", 1,
	  C1 C2 "r = Relu(a); p = MaxPool(r) kernel_shape=2,2 strides=2,2; y = Conv(p, w2, b2)" },
	{ "AveragePool", 1, C1 C2 "p = AveragePool(a) kernel_shape=2,2; y = Conv(p, w2, b2)" },
	{ "Flatten spreads each channel over its pixels", 1,
	  C1 "p = MaxPool(a) kernel_shape=4,4 strides=4,4; f = Flatten(p); w = 5x32; b = 5; "
	     "y = Gemm(f, w, b) transB=1" },
	{ "Reshape", 1,
	  C1 "p = GlobalAveragePool(a); s = [-1,8]; f = Reshape(p, s); w = 8x5; y = MatMul(f, w)" },
	{ "a Reshape that tears channels apart", 0,
	  C1 "p = GlobalAveragePool(a); s = [-1,4,2]; f = Reshape(p, s); w = 2x5; y = MatMul(f, w)" },
	{ "Transpose to channels last", 1, C1 "t = Transpose(a) perm=0,2,3,1; w = 8x5; y = MatMul(t, w)" },
	{ "ConvTranspose on both sides", 2,
	  "w1 = 4x8x2x2; b1 = 8; a = ConvTranspose(x, w1, b1) strides=2,2; r = Relu(a); w2 = 8x3x2x2; "
	  "c = ConvTranspose(r, w2) group=2; k = 5x6x1x1; y = Conv(c, k)" },
	{ "MatMul, Add, Relu, MatMul", 1,
	  "w = 8x12; b = 12; m = MatMul(x, w); a = Add(m, b); r = Relu(a); w2 = 12x5; y = MatMul(r, w2)" },
	{ "a number added to all channels", 1,
	  C1 C2 "k = 0.7; s = Add(a, k); t = Sub(k, s); y = Conv(t, w2, b2)" },
	{ "two readers", 1,
	  C1 C2 "r = Relu(a); w3 = 6x8x3x3; c = Conv(r, w2, b2); d = Conv(r, w3); y = Add(c, d)" },
	{ "a residual: one scale for all that is added", 2,
	  C1
	  "r = Relu(a); w3 = 8x8x3x3; b3 = 8; c = Conv(r, w3, b3) pads=1,1,1,1; t = Relu(c); w4 = 8x8x1x1; "
	  "d = Conv(t, w4); e = Add(d, r); w5 = 3x8x1x1; y = Conv(e, w5)" },
	{ "BatchNorm that cannot be folded, before the layer", 2,
	  C1 "w3 = 8x4x1x1; c = Conv(x, w3); e = Add(a, c); g = 8; be = 8; mu = 8; va = 8; vv = Abs(va); "
	     "n = BatchNormalization(e, g, be, mu, vv); r = Relu(n); w5 = 3x8x1x1; y = Conv(r, w5)" },
	{ "a constant per channel is multiplied", 2,
	  C1 C2 "r = Relu(a); k = 8x1x1; m = Mul(r, k); y = Conv(m, w2, b2)" },
	{ "a Clip that nothing reaches is a Relu", 1,
	  C1 C2 "lo = 0.0; hi = 1000.0; r = Clip(a, lo, hi); y = Conv(r, w2, b2)" },
	{ "Sigmoid is not homogeneous", 0, C1 C2 "r = Sigmoid(a); y = Conv(r, w2, b2)" },
	{ "an output of the model", 0, C1 C2 "r = Relu(a); y = Conv(r, w2, b2)" },
	{ "a Clip that cuts from below", 0,
	  C1 C2 "lo = -1.0; hi = 6.0; r = Clip(a, lo, hi); y = Conv(r, w2, b2)" },
	{ "Softmax over the channels also reads it", 0,
	  C1 C2 "r = Relu(a); c = Conv(r, w2, b2); q = Softmax(r) axis=1; w3 = 6x8x3x3; d = Conv(q, w3); y = "
		"Add(c, d)" },
	{ "a weight that two layers share", 2,
	  "w = 4x4x1x1; a = Conv(x, w); r = Relu(a); b = Conv(r, w); s = Relu(b); y = Conv(s, w)" },
	{ "a LayerNorm in pieces", 1,
	  NORM "g = 8; z = Mul(n, g); be = 8; a = Add(z, be); w = 8x5; y = MatMul(a, w)" },
};

/* scaling channels at random changes nothing in fp32, in graphs of every kind */
static void channels_are_found_and_scaled(void **state)
{
	struct err err = ERR_INIT;
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_LEN(graphs); i++) {
		const struct graph *g = &graphs[i];
		struct subject *s =
			open_graph("g", 13, X, g->body, strstr(g->why, "an output") ? "y,r" : "y");
		char *text = mangle(s, &n);
		struct variant *v = NULL;

		if (n != g->classes)
			fail_msg("%s: %zu classes, want %zu; ops:%s", g->why, n, g->classes, describe(s->m));
		assert_ok(variant_read(&v, s, text, &err), err);
		check_variant(g->why, s, v);
		variant_free(v);
		free(text);
		subject_free(s);
	}
}

/* of the mangled graph, cle makes one that quantizes about as well as the one before */
static void equalising_undoes_it(void **state)
{
	struct err err = ERR_INIT;
	size_t i, n, tried = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(graphs); i++) {
		const struct graph *g = &graphs[i];
		struct subject *s, *hard = NULL;
		struct variant *v = NULL, *plain, *naive, *cle;
		char *path, *text;
		double before, without, after;

		if (!g->classes || strstr(g->why, "LayerNorm") || strstr(g->why, "share"))
			continue; /* not for cle; and no longer shared */
		path = xstrfmt("%s/hard.onnx", dir);
		s = open_graph("g", 13, X, g->body, "y");
		text = mangle(s, &n);
		assert_ok(variant_read(&v, s, text, &err), err);
		assert_ok(model_save(v->s->m, path, &err), err);
		assert_ok(subject_open(&hard, rt, path, &err), err);
		assert_true(can_equalise(hard));
		plain = make(s, (struct recipes){ 0 });
		naive = make(hard, (struct recipes){ 0 });
		cle = make(hard, (struct recipes){ .cle = true });
		check_variant(g->why, hard, cle);
		check_ranges(g->why, hard, cle);
		before = int8_db(s, plain);
		without = int8_db(hard, naive);
		after = int8_db(hard, cle);
		if (after < before - 6 || after < without - 1)
			fail_msg("%s: %.1f dB, scaled at random %.1f, with cle %.1f: %s", g->why, before,
				 without, after, cle->text);
		tried += after > without + 3;
		variant_free(plain);
		variant_free(naive);
		variant_free(cle);
		variant_free(v);
		subject_free(hard);
		subject_free(s);
		free(path);
		free(text);
	}
	assert_true(tried >= 12); /* it was not for nothing */
}

/* a Clip whose bound is reached stays, and so do the channels */
static void a_clip_that_cuts_is_left_alone(void **state)
{
	struct subject *s = open_graph(
		"clip", 13, X,
		C1 C2 "k = 8x1x1; lo = 0.0; hi = 0.5; r = Clip(a, lo, hi); y = Conv(r, w2, b2)", "y");
	struct variant *v = make(s, (struct recipes){ .cle = true });

	(void)state;
	assert_string_equal(v->text, "");
	assert_int_equal(count_ops(v->s->m, "Clip"), 1);
	variant_free(v);
	subject_free(s);
}

static void biases_are_absorbed(void **state)
{
	/* between 0 and 1, times weights that are small, plus biases that are not */
	static const char body[] =
		"g = Sigmoid(x); w1 = 16x4x1x1; b1 = 16; a = Conv(g, w1, b1); r = Relu(a); "
		"w2 = 6x16x1x1; b2 = 6; y = Conv(r, w2, b2)";
	struct subject *s = open_graph("absorb", 13, X, body, "y");
	struct variant *v = make(s, (struct recipes){ .cle = true });
	struct subject *padded;
	struct variant *w;

	(void)state;
	assert_int_equal(count(v->text, "shift"), 1);
	check_variant("absorbed", s, v);
	check_ranges("absorbed", s, v);
	padded = open_graph("padded", 13, X,
			    "g = Sigmoid(x); w1 = 16x4x1x1; b1 = 16; a = Conv(g, w1, b1); r = Relu(a); "
			    "w2 = 6x16x3x3; b2 = 6; y = Conv(r, w2, b2) pads=1,1,1,1",
			    "y");
	w = make(padded, (struct recipes){ .cle = true });
	assert_int_equal(count(w->text, "shift"), 0); /* the border would see less */
	variant_free(v);
	variant_free(w);
	subject_free(s);
	subject_free(padded);
}

struct smoothed {
	const char *why;
	size_t folds, inserts; /* with a fixed alpha */
	int opset;
	const char *body;
};
static const struct smoothed smoothed[] = {
	{ "into the Mul and Add of a LayerNorm, for all that read it", 1, 0, 13,
	  NORM "g = 8; z = Mul(n, g); be = 8; a = Add(z, be); w = 8x5; w2 = 8x5; p1 = MatMul(a, w); "
	       "p2 = MatMul(a, w2); y = Add(p1, p2)" },
	{ "into a LayerNormalization", 1, 0, 17,
	  "g = 8; be = 8; a = LayerNormalization(x, g, be) axis=-1; w = 8x5; y = MatMul(a, w)" },
	{ "into the scale of an RMSNorm", 1, 0, 13,
	  "two = 2.0; p = Pow(x, two); m = ReduceMean(p) axes=-1,-1; sd = Sqrt(m); n = Div(x, sd); g = 8; "
	  "z = Mul(g, n); w = 8x5; y = MatMul(z, w)" },
	{ "into the layer before", 1, 1, 13,
	  "w = 8x12; m = MatMul(x, w); r = Relu(m); w2 = 12x5; y = MatMul(r, w2)" },
	{ "a Mul, where something else reads it", 0, 1, 13,
	  NORM "g = 8; z = Mul(n, g); w = 8x8; p1 = MatMul(z, w); y = Add(p1, z)" },
	{ "one Mul for two readers", 0, 1, 13,
	  "s = Sigmoid(x); w = 8x5; w2 = 8x5; p1 = MatMul(s, w); p2 = MatMul(s, w2); y = Mul(p1, p2)" },
};

static void smoothing_changes_nothing_in_fp32(void **state)
{
	static const double alphas[] = { 0, 0.5, 0.8, 1, SMOOTH_AUTO };
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(smoothed); i++) {
		const struct smoothed *c = &smoothed[i];
		struct subject *s = open_graph("s", c->opset, "x:?x6x8", c->body, "y");

		assert_true(can_smooth(s));
		for (k = 0; k < ARRAY_LEN(alphas); k++) {
			struct variant *v =
				make(s, (struct recipes){ .smooth_quant = true, .smooth_alpha = alphas[k] });

			check_variant(c->why, s, v);
			assert_true(check_ranges(c->why, s, v) > 0 || alphas[k] == SMOOTH_AUTO);
			if (alphas[k] != SMOOTH_AUTO &&
			    (count(v->text, "fold") != c->folds || count(v->text, "insert") != c->inserts))
				fail_msg("%s: %s", c->why, v->text);
			assert_true(int8_db(s, v) > 20);
			variant_free(v);
		}
		subject_free(s);
	}
}

/* channel 3 of what is read is 100 times as wide as the rest: int8 loses the others, unless it is smoothed */
static void outliers_are_smoothed(void **state)
{
	struct subject *s =
		open_graph("o", 13, "x:?x6x8", NORM "g = 8; z = Mul(n, g); w = 8x5; y = MatMul(z, w)", "y");
	struct subject *hard = NULL;
	struct variant *v = NULL, *naive, *half, *best;
	char *path = xstrfmt("%s/outlier.onnx", dir);
	struct err err = ERR_INIT;
	double without;

	(void)state;
	assert_ok(variant_read(&v, s, "fold 8 1 1 1 0x1.9p6 1 1 1 1 z\n", &err), err);
	assert_ok(model_save(v->s->m, path, &err), err);
	assert_ok(subject_open(&hard, rt, path, &err), err);
	naive = make(hard, (struct recipes){ 0 });
	half = make(hard, (struct recipes){ .smooth_quant = true, .smooth_alpha = 0.5 });
	best = make(hard, (struct recipes){ .smooth_quant = true, .smooth_alpha = SMOOTH_AUTO });
	without = int8_db(hard, naive);
	assert_true(int8_db(hard, half) > without + 10);
	assert_true(int8_db(hard, best) > without + 10);
	assert_true(count(best->text, "fold") == 1);
	variant_free(v);
	variant_free(naive);
	variant_free(half);
	variant_free(best);
	subject_free(hard);
	subject_free(s);
	free(path);
}

/* the formula, against a loop of its own: x' = x / s, s = max|x|^a / max|w|^(1-a) */
static void smoothing_is_the_formula(void **state)
{
	const double alpha = 0.7;
	struct subject *s = open_graph("f", 13, "x:?x6x8", "w = 8x5; y = MatMul(x, w)", "y");
	struct variant *v = make(s, (struct recipes){ .smooth_quant = true, .smooth_alpha = alpha });
	const struct fettle_field f = { "x", FETTLE_FLOAT32, 2, (const int64_t[]){ 6, 8 } };
	struct init *w = model_init(s->m, "w"), *scale;
	float x[48], most[8] = { 0 };
	struct err err = ERR_INIT;
	size_t i, k;

	(void)state;
	for (i = 0; i < SAMPLES; i++) {
		read_sample((void *)(uintptr_t)&f, i, 0, x);
		for (k = 0; k < 48; k++)
			most[k % 8] = fmaxf(most[k % 8], fabsf(x[k]));
	}
	assert_ok(model_weight(s->m, w, &err), err);
	assert_int_equal(v->s->m->nodes.n, 2);
	assert_string_equal(v->s->m->nodes.v[0]->op, "Mul");
	assert_int_equal(v->node[0], 1);
	scale = model_init(v->s->m, v->s->m->nodes.v[0]->in[1]);
	for (i = 0; i < 8; i++) {
		double widest = 0;

		for (k = 0; k < 5; k++)
			widest = fmax(widest, fabs(tensor_get(&w->t, i * 5 + k)));
		assert_true(fabs(tensor_get(&scale->t, i) * pow(most[i], alpha) / pow(widest, 1 - alpha) -
				 1) < 1e-5);
	}
	variant_free(v);
	subject_free(s);
}

/* What the matrix op of a_test_of_auto() reads, all of it, and its weight. */
enum { CHANNELS = 8, OUTPUTS = 5 };
struct layer {
	double x[SAMPLES][CHANNELS], w[CHANNELS][OUTPUTS];
	const struct qplan_defaults *d;
};

static void layer_read(struct layer *l, struct subject *s)
{
	const struct fettle_field f = { "x", FETTLE_FLOAT32, 2, (const int64_t[]){ 1, CHANNELS } };
	static const char *const value[] = { "z" };
	struct tensor in = { .dtype = DT_F32, .rank = 3, .dims = { 1, 1, CHANNELS } }, out;
	struct observed o = OBSERVED_INIT;
	struct err err = ERR_INIT;
	float x[CHANNELS];
	size_t i, k;
	struct init *w = NULL;

	for (i = 0; i < s->m->nodes.n; i++)
		if (node_is(s->m->nodes.v[i], "MatMul"))
			w = model_init(s->m, s->m->nodes.v[i]->in[1]);
	assert_ok(model_weight(s->m, w, &err), err);
	for (i = 0; i < CHANNELS * OUTPUTS; i++)
		l->w[i / OUTPUTS][i % OUTPUTS] = tensor_get(&w->t, i);
	assert_ok(observed_open(&o, rt, s->m, value, 1, 1, &err), err);
	in.data = x;
	for (i = 0; i < SAMPLES; i++) {
		read_sample((void *)(uintptr_t)&f, i, 0, x);
		assert_ok(session_run(o.session, &in, &out, &err), err);
		for (k = 0; k < CHANNELS; k++)
			l->x[i][k] = tensor_get(&out, k);
	}
	observed_close(&o);
}

static double rounded(double x, double lo, double hi, const struct qsetting *q)
{
	const struct qlimits lim = quant_limits(q->dtype, q->scheme, q->narrow);
	double scale = (hi - lo) / (lim.hi - lim.lo), zero = 0;

	if (q->scheme == SCHEME_SYM)
		scale = fmax(hi, -lo) / lim.hi;
	else
		zero = rint(lim.lo - lo / scale);
	return (fmin(fmax(rint(x / scale) + zero, lim.lo), lim.hi) - zero) * scale;
}

/* |Q(x f) Q(w / f) - x w|^2, one number after the other */
static double layer_loss(const struct layer *l, const double *f)
{
	double lo = 0, hi = 0, most[OUTPUTS] = { 0 }, sum = 0, widest = 0;
	size_t i, k, o;

	for (i = 0; i < SAMPLES; i++)
		for (k = 0; k < CHANNELS; k++) {
			lo = fmin(lo, l->x[i][k] * f[k]);
			hi = fmax(hi, l->x[i][k] * f[k]);
		}
	for (k = 0; k < CHANNELS; k++)
		for (o = 0; o < OUTPUTS; o++) {
			most[o] = fmax(most[o], fabs(l->w[k][o] / f[k]));
			widest = fmax(widest, most[o]);
		}
	for (i = 0; i < SAMPLES; i++)
		for (o = 0; o < OUTPUTS; o++) {
			const double m = l->d->weight.per_channel ? most[o] : widest;
			double error = 0;

			for (k = 0; k < CHANNELS; k++)
				error += rounded(l->x[i][k] * f[k], lo, hi, &l->d->act) *
						 rounded(l->w[k][o] / f[k], -m, m, &l->d->weight) -
					 l->x[i][k] * l->w[k][o];
			sum += error * error;
		}
	return sum;
}

static void fixed_factors(const struct layer *l, double alpha, double *f)
{
	size_t i, k;

	for (k = 0; k < CHANNELS; k++) {
		double x = 0, w = 0;

		for (i = 0; i < SAMPLES; i++)
			x = fmax(x, fabs(l->x[i][k]));
		for (i = 0; i < OUTPUTS; i++)
			w = fmax(w, fabs(l->w[k][i]));
		f[k] = pow(w, 1 - alpha) / pow(x, alpha);
	}
}

/* factors as a variant's text has them; 1 if it has none */
static void chosen_factors(const struct variant *v, double *f)
{
	char *p = v->text + strlen("fold 8");
	size_t k;

	for (k = 0; k < CHANNELS; k++)
		f[k] = *v->text ? strtod(p, &p) : 1;
}

/* with alpha auto, the error of a layer over all it reads is not above that of any alpha, or of none */
static void check_auto(const char *outliers, struct subject *s, const struct qplan_defaults *d)
{
	struct variant *v =
		make_for(s, (struct recipes){ .smooth_quant = true, .smooth_alpha = SMOOTH_AUTO }, d);
	struct layer l = { .d = d };
	double f[CHANNELS], none[CHANNELS] = { 1, 1, 1, 1, 1, 1, 1, 1 }, best;
	size_t i;

	layer_read(&l, s);
	chosen_factors(v, f);
	best = layer_loss(&l, f);
	if (best > 1.001 * layer_loss(&l, none))
		fail_msg("%s: auto has %g, none %g", outliers, best, layer_loss(&l, none));
	for (i = 0; i <= 10; i++) {
		fixed_factors(&l, (double)i / 10, f);
		if (best > 1.001 * layer_loss(&l, f))
			fail_msg("%s: auto has %g, %g has %g", outliers, best, (double)i / 10,
				 layer_loss(&l, f));
	}
	variant_free(v);
}

static void auto_is_the_best_alpha_for_a_layer(void **state)
{
	static const char *const outliers[] = { "fold 8 1 1 1 1 1 1 1 1 z\n", "fold 8 1 1 1 100 1 1 1 1 z\n",
						"fold 8 1 0.02 1 30 1 1 7 1 z\n",
						"fold 8 1 2 4 8 16 32 64 128 z\n" };
	struct subject *s = open_graph("auto", 13, "x:?x1x8",
				       NORM "g = 8; z = Mul(n, g); w = 8x5; y = MatMul(z, w)", "y");
	char *path = xstrfmt("%s/auto_hard.onnx", dir);
	struct err err = ERR_INIT;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(outliers); i++)
		for (k = 0; k < 4; k++) {
			struct qplan_defaults d = qplan_defaults(&s->cpu);
			struct variant *v = NULL;
			struct subject *hard = NULL;

			d.weight.per_channel = k & 1;
			if (k & 2)
				d.act.dtype = DT_S8, d.act.scheme = SCHEME_SYM;
			assert_ok(variant_read(&v, s, outliers[i], &err), err);
			assert_ok(model_save(v->s->m, path, &err), err);
			assert_ok(subject_open(&hard, rt, path, &err), err);
			check_auto(outliers[i], hard, &d);
			subject_free(hard);
			variant_free(v);
		}
	subject_free(s);
	free(path);
}

static void keys_tell_what_auto_chose_for(void **state)
{
	static const char *const keys[] = { "smooth_quant=auto uint8 asym int8 sym per_channel",
					    "smooth_quant=auto uint8 asym int8 sym", "smooth_quant=0.5" };
	struct subject *s = open_graph("keys", 13, "x:?x1x8", "w = 8x5; y = MatMul(x, w)", "y");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(keys); i++) {
		struct qplan_defaults d = qplan_defaults(&s->cpu);
		struct qplan p = QPLAN_INIT;
		char *key;

		d.weight.per_channel = i != 1;
		d.reduce_range = REDUCE_OFF;
		qplan_default(&p, &s->ops, &s->g, &d);
		p.recipes.smooth_quant = true;
		p.recipes.smooth_alpha = i == 2 ? 0.5 : SMOOTH_AUTO;
		key = variant_key(s, &p);
		assert_string_equal(key, keys[i]);
		free(key);
		qplan_release(&p);
	}
	subject_free(s);
}

static void bad_texts_are_refused(void **state)
{
	static const char *const texts[] = { "fold 8 1 1 1 a\n",
					     "fold 3 1 1 1 a\n",
					     "fold 8 1 1 1 1 1 1 1 1 nobody\n",
					     "shift 8 1 1 1 1 1 1 1 1 r\n",
					     "nonsense",
					     "fold",
					     "insert 2 1",
					     "insert 1 1 r\n",
					     "insert 2 1 1 f\n",
					     "insert 6 1 1 1 1 1 0 f\n",
					     "fold 8 1 1 1 1 1 1 1 nan a\n",
					     "fold 8 1 1 1 1 1 1 1 1e999 a\n",
					     "fold 8 1 1 1 1 1 1 1 -1 a\n",
					     "shift 8 1 1 1 1 1 1 1 inf a\n",
					     "fold 3 1 1 1 y\n" };
	struct subject *s = open_graph(
		"bad", 13, X,
		C1 C2 "r = Relu(a); c = Conv(r, w2, b2); p = GlobalAveragePool(c); f = Flatten(p); "
		      "w = 6x3; y = MatMul(f, w)",
		"y");
	struct variant *v = NULL;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(variant_read(&v, s, texts[i], &err), FETTLE_INVALID);
	subject_free(s);
}

/* the shared models: the same function in fp32 */
static void shared_models_stay_what_they_are(void **state)
{
	static const char *const names[] = { "cnn_hard", "resnet_v2_hard1", "mobilenet_hard1", "vit_hard1",
					     "cnn_bn" };
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		char *path = xstrfmt("../shared/models/%s.onnx", names[i]);
		struct subject *s = NULL;
		struct variant *v;

		if (access(path, R_OK)) {
			print_message("SKIPPED: %s is not here\n", path);
			free(path);
			continue;
		}
		assert_ok(subject_open(&s, rt, path, &err), err);
		v = make(s, (struct recipes){ .cle = true, .smooth_quant = true, .smooth_alpha = 0.5 });
		assert_true(count(v->text, "fold") > 0);
		check_variant(names[i], s, v);
		assert_true(check_ranges(names[i], s, v) > 0);
		variant_free(v);
		subject_free(s);
		free(path);
	}
}

/* ---- awq ---- */

/* what one op of the base reads, swept for it alone */
struct eyes {
	struct subject *s;
	struct grams *grams;
};

static enum fettle_status look(void *self, size_t node, const struct block_seen **out, struct err *err)
{
	struct eyes *e = self;
	const struct gram_input in = { e->s->m->nodes.v[node]->in[0], e->s->ops.v[node].inputs, false };
	enum fettle_status st;
	struct data d;

	grams_free(e->grams);
	e->grams = NULL;
	data_open(&d, e->s);
	st = grams_observe(&e->grams, &(struct calibrate_on){ rt, e->s->m, d.feed }, &in, 1, &one_thread,
			   err);
	data_close(&d);
	if (!st)
		*out = grams_find(e->grams, &in);
	return st;
}

static void by_awq(struct qplan *p, const struct subject *s, struct block_format f)
{
	size_t i;

	qplan_default(p, &s->ops, &s->g, &(struct qplan_defaults){ 0 });
	for (i = 0; i < p->n; i++)
		p->ops[i] = s->ops.v[i].modes & MODE_WEIGHT
				    ? (struct op_choice){ .mode = OP_WEIGHT, .blocks = { f, BLOCK_AWQ, 4 } }
				    : (struct op_choice){ .mode = OP_FP32 };
}

static const struct awq_row {
	const char *why;
	size_t folds;
	int opset;
	const char *body;
} awq_rows[] = {
	{ "into a LayerNormalization, for all that read it", 1, 17,
	  "g = 16; be = 16; a = LayerNormalization(x, g, be) axis=-1; w1 = 16x5; w2 = 16x5; "
	  "p1 = MatMul(a, w1); p2 = MatMul(a, w2); t1 = Tanh(p1); t2 = Tanh(p2); y = Add(t1, t2)" },
	{ "into the scale of an RMSNorm, and into the layer before a gate", 2, 13,
	  NORM "g = 16; z = Mul(n, g); w1 = 16x24; w2 = 16x24; w3 = 24x16; p1 = MatMul(z, w1); "
	       "s1 = Sigmoid(p1); h = Mul(p1, s1); p2 = MatMul(z, w2); r = Mul(h, p2); "
	       "p3 = MatMul(r, w3); y = Tanh(p3)" },
	{ "not where something else reads it", 0, 13,
	  NORM "g = 16; z = Mul(n, g); w1 = 16x16; p1 = MatMul(z, w1); t1 = Tanh(p1); y = Add(t1, z)" },
	{ "not where nothing can take it", 0, 13,
	  "s1 = Sigmoid(x); w1 = 16x5; p1 = MatMul(s1, w1); y = Tanh(p1)" },
	{ "not for logits", 0, 13, NORM "g = 16; z = Mul(n, g); w1 = 16x5; y = MatMul(z, w1)" },
	{ "not a weight that is another op's too", 0, 13,
	  NORM "g = 16; z = Mul(n, g); w1 = 16x16; p1 = MatMul(z, w1); t1 = Tanh(p1); p2 = MatMul(t1, w1); "
	       "y = Tanh(p2)" },
};

static void awq_divides_what_it_may(void **state)
{
	const struct block_format formats[] = { { 4, 32, false }, { 2, 16, true } };
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(awq_rows); i++) {
		const struct awq_row *row = &awq_rows[i];
		struct subject *s = open_graph("a", row->opset, "x:?x6x16", row->body, "y");

		for (k = 0; k < ARRAY_LEN(formats); k++) {
			struct eyes e = { .s = s };
			const struct input_seen seen = { &e, look };
			struct qplan p = QPLAN_INIT;
			struct variant *v = NULL;
			struct err err = ERR_INIT;
			char *key;

			by_awq(&p, s, formats[k]);
			key = variant_key(s, &p);
			assert_string_equal(key, k ? "awq=2_16_sym" : "awq=4_32_asym");
			assert_ok(variant_new(&v, rt, s, &p, NULL, &one_thread, &seen, &err), err);
			check_variant(row->why, s, v);
			if (count(v->text, "fold") != row->folds || count(v->text, "insert"))
				fail_msg("%s: %s", row->why, v->text);
			variant_free(v);
			qplan_release(&p);
			grams_free(e.grams);
			free(key);
		}
		subject_free(s);
	}
}

static int begin(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return !mkdtemp(dir) || runtime_new(&rt, &err) != FETTLE_OK;
}

static int end(void **state)
{
	char *clean = xstrfmt("rm -rf %s", dir);
	int rc;

	(void)state;
	runtime_free(rt);
	rc = system(clean);
	free(clean);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channels_are_found_and_scaled),
		cmocka_unit_test(equalising_undoes_it),
		cmocka_unit_test(a_clip_that_cuts_is_left_alone),
		cmocka_unit_test(biases_are_absorbed),
		cmocka_unit_test(smoothing_changes_nothing_in_fp32),
		cmocka_unit_test(outliers_are_smoothed),
		cmocka_unit_test(smoothing_is_the_formula),
		cmocka_unit_test(bad_texts_are_refused),
		cmocka_unit_test(auto_is_the_best_alpha_for_a_layer),
		cmocka_unit_test(keys_tell_what_auto_chose_for),
		cmocka_unit_test(shared_models_stay_what_they_are),
		cmocka_unit_test(awq_divides_what_it_may),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
