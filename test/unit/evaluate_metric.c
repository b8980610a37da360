#include "unit/unit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "evaluate/metric.h"

#define T(type, r, ...) ((struct tensor){ .dtype = (type), .rank = (r), .dims = { __VA_ARGS__ } })

static struct metric *make(const char *name)
{
	struct err err = ERR_INIT;
	struct metric *m = NULL;

	assert_ok(metric_new(&m, name, &err), err);
	return m;
}

static bool same_bits(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static size_t row_size(const struct tensor *t)
{
	size_t n = 1;
	int i;

	for (i = 1; i < t->rank; i++)
		n *= (size_t)t->dims[i];
	return n;
}

static struct tensor alloc(struct tensor t)
{
	struct err err = ERR_INIT;

	assert_ok(tensor_alloc(&t, "a test's tensor", &err), err);
	return t;
}

/* rows from .. from+n-1, with one row of rubbish after them */
static struct tensor rows_of(const struct tensor *t, size_t from, size_t n)
{
	struct tensor out = *t;
	size_t row = row_size(t), i;

	out.dims[0] = (int64_t)n + 1;
	out = alloc(out);
	for (i = 0; i < n * row; i++)
		tensor_set(&out, i, tensor_get(t, from * row + i));
	for (; i < (n + 1) * row; i++)
		tensor_set(&out, i, t->dtype == DT_F32 ? NAN : -7);
	return out;
}

enum { OUTPUTS_MAX = 3 };

/* a whole data set: what a model said, and what it should have said */
struct set {
	struct tensor outputs[OUTPUTS_MAX], reference[OUTPUTS_MAX], labels;
	size_t n_outputs, n;
	bool has_labels, has_reference;
};

static void set_release(struct set *s)
{
	size_t i;

	for (i = 0; i < s->n_outputs; i++) {
		tensor_free(&s->outputs[i]);
		tensor_free(&s->reference[i]);
	}
	tensor_free(&s->labels);
}

static struct set set_slice(const struct set *s, size_t from, size_t n)
{
	struct set out = *s;
	size_t i;

	for (i = 0; i < s->n_outputs; i++) {
		out.outputs[i] = rows_of(&s->outputs[i], from, n);
		if (s->has_reference)
			out.reference[i] = rows_of(&s->reference[i], from, n);
	}
	if (s->has_labels)
		out.labels = rows_of(&s->labels, from, n);
	out.n = n;
	return out;
}

static enum fettle_status add(struct metric *m, const struct set *s, struct err *err)
{
	return metric_add(m, s->outputs, s->n_outputs, s->has_labels ? &s->labels : NULL,
			  s->has_reference ? s->reference : NULL, s->n, err);
}

/* the scores of the same samples, summed by hand, are the value */
static void scores_are_the_value(const struct metric *m, const struct set *s, double want)
{
	const struct metric_type *type = metric_type(m);
	struct metric *twin = metric_twin(m);
	struct err err = ERR_INIT;
	const double *scores;
	double sum = 0;
	size_t i;

	assert_ok(add(twin, s, &err), err);
	scores = metric_last_scores(twin);
	assert_true(!scores == !type->is_mean);
	for (i = 0; scores && i < s->n; i++) {
		assert_true(scores[i] >= type->score_min && scores[i] <= type->score_max);
		sum += scores[i];
	}
	if (scores)
		assert_true(same_bits(sum / (double)s->n, want));
	metric_free(twin);
}

/* The value; and that any other cut into batches gives the same bits. */
static double evaluate(const char *name, const struct set *s, struct rng *r)
{
	struct metric *m = make(name);
	struct err err = ERR_INIT;
	double whole, parts;
	int cut;

	assert_ok(add(m, s, &err), err);
	assert_int_equal(metric_samples(m), s->n);
	assert_ok(metric_value(m, &whole, &err), err);
	for (cut = 0; cut < 3; cut++) {
		size_t at = 0, step;

		metric_reset(m);
		assert_int_equal(metric_value(m, &parts, &err), FETTLE_INVALID);
		for (; at < s->n; at += step) {
			struct set part;

			step = cut ? 1 + rng_below(r, s->n - at) : 1;
			part = set_slice(s, at, step);
			assert_ok(add(m, &part, &err), err);
			set_release(&part);
		}
		assert_ok(metric_value(m, &parts, &err), err);
		if (!same_bits(whole, parts))
			fail_msg("%s: %.17g whole, %.17g in parts", name, whole, parts);
	}
	metric_reset(m);
	scores_are_the_value(m, s, whole);
	assert_int_equal(metric_samples(m), 0);
	metric_free(m);
	return whole;
}

static void check_close(const char *name, double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
		fail_msg("%s: %.17g, want %.17g", name, got, want);
}

static void fill_normal(struct tensor *t, struct rng *r)
{
	size_t n = (size_t)tensor_count(t), i;

	for (i = 0; i < n; i++)
		tensor_set(t, i, rng_normal(r));
}

/* few different values, so that ties are common, and now and then a NaN */
static void fill_coarse(struct tensor *t, struct rng *r)
{
	size_t n = (size_t)tensor_count(t), i;

	for (i = 0; i < n; i++)
		tensor_set(t, i, rng_below(r, 40) ? (double)rng_below(r, 5) - 2 : NAN);
}

/* [N,C], or [N,T,C] when tokens > 0, with labels as numbers of some type or as scores */
static struct set class_set(struct rng *r, size_t classes, size_t tokens)
{
	static const enum dtype label_types[] = { DT_S64, DT_S32, DT_S16, DT_F32, DT_F64 };
	size_t n = 1 + rng_below(r, 40), i, count = n * (tokens ? tokens : 1);
	int64_t rows = (int64_t)n, c = (int64_t)classes, t = (int64_t)tokens;
	struct set s = { .n_outputs = 1, .n = n, .has_labels = true, .has_reference = true };
	enum dtype type = label_types[rng_below(r, ARRAY_LEN(label_types))];
	unsigned form = (unsigned)rng_below(r, 3);

	s.outputs[0] = alloc(tokens ? T(DT_F32, 3, rows, t, c) : T(DT_F32, 2, rows, c));
	s.reference[0] = alloc(s.outputs[0]);
	fill_coarse(&s.outputs[0], r);
	fill_coarse(&s.reference[0], r);
	if (form == 2) {
		s.labels = alloc(s.outputs[0]);
		fill_normal(&s.labels, r);
		return s;
	}
	s.labels = tokens ? T(type, 2, rows, t) : T(type, 1, rows);
	if (form == 1)
		s.labels.dims[s.labels.rank++] = 1;
	s.labels = alloc(s.labels);
	for (i = 0; i < count; i++) {
		bool ignore = tokens && i % tokens && rng_below(r, 4) == 0;

		tensor_set(&s.labels, i, ignore ? -100 : (double)rng_below(r, classes));
	}
	return s;
}

/* class numbers sorted by score, best first, by the plainest of sorts; NaN is left out */
static size_t order_of(const struct tensor *t, size_t at, size_t n, size_t *order)
{
	size_t got = 0, i, k;

	for (i = 0; i < n; i++) {
		double x = tensor_get(t, at + i);

		if (isnan(x))
			continue;
		for (k = got++; k && tensor_get(t, at + order[k - 1]) < x; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	return got;
}

static long naive_label(const struct set *s, size_t i, size_t classes)
{
	size_t order[64];

	if (s->labels.rank == s->outputs[0].rank && s->labels.dims[s->labels.rank - 1] == (int64_t)classes) {
		assert_true(order_of(&s->labels, i * classes, classes, order) > 0);
		return (long)order[0];
	}
	return (long)tensor_get(&s->labels, i);
}

static double naive_topk(const struct set *s, size_t k)
{
	size_t classes = (size_t)s->outputs[0].dims[s->outputs[0].rank - 1];
	size_t tokens = row_size(&s->outputs[0]) / classes, i, j, p;
	double sum = 0;

	for (i = 0; i < s->n; i++) {
		double hits = 0, counted = 0;

		for (j = 0; j < tokens; j++) {
			size_t order[64], token = i * tokens + j;
			size_t n = order_of(&s->outputs[0], token * classes, classes, order);
			long label = naive_label(s, token, classes);

			counted += label != -100;
			for (p = 0; p < n && p < k; p++)
				hits += (long)order[p] == label;
		}
		sum += hits / counted;
	}
	return sum / (double)s->n;
}

static double naive_agreement(const struct set *s)
{
	size_t classes = (size_t)s->outputs[0].dims[s->outputs[0].rank - 1];
	size_t tokens = row_size(&s->outputs[0]) / classes, i;
	double hits = 0;

	for (i = 0; i < s->n * tokens; i++) {
		size_t a[64], b[64];

		if (order_of(&s->outputs[0], i * classes, classes, a) &&
		    order_of(&s->reference[0], i * classes, classes, b))
			hits += a[0] == b[0];
	}
	return hits / (double)(s->n * tokens);
}

static double naive_f1(const struct set *s, const char *average)
{
	size_t classes = (size_t)s->outputs[0].dims[s->outputs[0].rank - 1];
	size_t tokens = row_size(&s->outputs[0]) / classes, c, i;
	double sum = 0, occur = 0, tp_all = 0, wrong_all = 0, of_one = 0;

	for (c = 0; c < classes; c++) {
		double tp = 0, wrong = 0;

		for (i = 0; i < s->n * tokens; i++) {
			long label = naive_label(s, i, classes);
			size_t order[64];
			bool said = order_of(&s->outputs[0], i * classes, classes, order) && order[0] == c;

			if (label == -100)
				continue;
			tp += said && label == (long)c;
			wrong += said != (label == (long)c);
		}
		occur += tp + wrong > 0;
		if (tp > 0)
			sum += 2 * tp / (2 * tp + wrong);
		if (c == 1)
			of_one = tp > 0 ? 2 * tp / (2 * tp + wrong) : 0;
		tp_all += tp;
		wrong_all += wrong;
	}
	if (strcmp(average, "binary") == 0)
		return of_one;
	return strcmp(average, "micro") ? sum / occur : 2 * tp_all / (2 * tp_all + wrong_all);
}

/* the correlation of the indicators of each class, summed over classes: another way to write it */
static double naive_mcc(const struct set *s)
{
	size_t classes = (size_t)s->outputs[0].dims[s->outputs[0].rank - 1];
	size_t tokens = row_size(&s->outputs[0]) / classes, n = 0, i, c;
	double xy = 0, xx = 0, yy = 0;
	long *said = xcalloc(s->n * tokens, sizeof(*said)), *is = xcalloc(s->n * tokens, sizeof(*is));

	for (i = 0; i < s->n * tokens; i++) {
		size_t order[64];

		if (naive_label(s, i, classes) == -100)
			continue;
		is[n] = naive_label(s, i, classes);
		said[n++] = order_of(&s->outputs[0], i * classes, classes, order) ? (long)order[0]
										  : (long)classes;
	}
	for (c = 0; c <= classes; c++) { /* the last is "no answer" */
		double x = 0, y = 0;

		for (i = 0; i < n; i++) {
			x += said[i] == (long)c;
			y += is[i] == (long)c;
		}
		x /= (double)n;
		y /= (double)n;
		for (i = 0; i < n; i++) {
			xy += ((double)(said[i] == (long)c) - x) * ((double)(is[i] == (long)c) - y);
			xx += ((double)(said[i] == (long)c) - x) * ((double)(said[i] == (long)c) - x);
			yy += ((double)(is[i] == (long)c) - y) * ((double)(is[i] == (long)c) - y);
		}
	}
	free(said);
	free(is);
	return xx > 1e-9 && yy > 1e-9 ? xy / sqrt(xx * yy) : 0;
}

static double naive_miou(const struct set *s)
{
	size_t classes = (size_t)s->outputs[0].dims[s->outputs[0].rank - 1];
	size_t tokens = row_size(&s->outputs[0]) / classes, i, c;
	double sum = 0, occur = 0;

	for (c = 0; c < classes; c++) {
		double both = 0, either = 0;

		for (i = 0; i < s->n * tokens; i++) {
			long label = naive_label(s, i, classes);
			size_t order[64];
			bool said = order_of(&s->outputs[0], i * classes, classes, order) && order[0] == c;

			if (label == -100)
				continue;
			both += said && label == (long)c;
			either += said || label == (long)c;
		}
		occur += either > 0;
		sum += either > 0 ? both / either : 0;
	}
	return sum / occur;
}

static void classes_match_naive_loops(void **state)
{
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 1);
	for (i = 0; i < 300; i++) {
		size_t classes = 5 + rng_below(&r, 20);
		struct set s = class_set(&r, classes, i % 2 ? 1 + rng_below(&r, 6) : 0);

		check_close("top1", evaluate("top1", &s, &r), naive_topk(&s, 1), 1e-12);
		check_close("top5", evaluate("top5", &s, &r), naive_topk(&s, 5), 1e-12);
		check_close("topk:3", evaluate("topk:3", &s, &r), naive_topk(&s, 3), 1e-12);
		check_close("f1", evaluate("f1", &s, &r), naive_f1(&s, "macro"), 1e-12);
		check_close("f1:micro", evaluate("f1:micro", &s, &r), naive_f1(&s, "micro"), 1e-12);
		check_close("mcc", evaluate("mcc", &s, &r), naive_mcc(&s), 1e-9);
		check_close("miou", evaluate("mIOU", &s, &r), naive_miou(&s), 1e-12);
		check_close("agreement", evaluate("agreement", &s, &r), naive_agreement(&s), 1e-12);
		set_release(&s);
		s = class_set(&r, 2, 0);
		check_close("f1:binary", evaluate("f1:binary", &s, &r), naive_f1(&s, "binary"), 1e-12);
		set_release(&s);
	}
}

/* more classes than are read at a time */
static void many_classes(void **state)
{
	struct set s = { .n_outputs = 1, .n = 3, .has_labels = true };
	float x[3][1300] = { { 0 } };
	int64_t labels[3] = { 1299, 700, 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 9);
	s.outputs[0] = alloc(T(DT_F32, 2, 3, 1300));
	s.labels = alloc(T(DT_S64, 1, 3));
	x[0][1299] = 1;
	x[1][700] = 1;
	x[1][1200] = 2;
	memcpy(s.outputs[0].data, x, sizeof(x)); /* row 2: all equal, so class 0 is the highest */
	memcpy(s.labels.data, labels, sizeof(labels));
	check_close("top1", evaluate("top1", &s, &r), 2 / 3.0, 1e-15);
	check_close("topk:2", evaluate("topk:2", &s, &r), 1, 0);
	set_release(&s);
}

/* up to three outputs of any rank, against labels or the reference */
static struct set number_set(struct rng *r)
{
	static const enum dtype types[] = { DT_F32, DT_F64, DT_F16, DT_S8 };
	struct set s = { .n = 1 + rng_below(r, 12), .n_outputs = 1 + rng_below(r, OUTPUTS_MAX) };
	size_t i;

	s.has_labels = rng_below(r, 2);
	s.has_reference = !s.has_labels;
	if (s.has_labels)
		s.n_outputs = 1;
	for (i = 0; i < s.n_outputs; i++) {
		struct tensor t = T(types[rng_below(r, 4)], 1 + (int)rng_below(r, 4), (int64_t)s.n);
		int axis;

		for (axis = 1; axis < t.rank; axis++)
			t.dims[axis] = 1 + (int64_t)rng_below(r, 12);
		s.outputs[i] = alloc(t);
		s.reference[i] = alloc(t);
		fill_normal(&s.outputs[i], r);
		fill_normal(&s.reference[i], r);
	}
	if (s.has_labels) {
		s.labels = s.reference[0];
		s.reference[0].data = NULL;
		if (s.labels.rank < 4) /* as good as the same shape */
			s.labels.dims[s.labels.rank++] = 1;
	}
	return s;
}

struct naive {
	double mse, mae, l1, l2, cosine, sqnr, psnr;
};

static double db(double ratio)
{
	return 10 * log10(ratio);
}

static struct naive naive_numbers(const struct set *s)
{
	double square = 0, absolute = 0, signal = 0, min = INFINITY, max = -INFINITY, count = 0, l1 = 0,
	       l2 = 0, cosine = 0;
	size_t i, o, e;

	for (i = 0; i < s->n; i++) {
		double d1 = 0, d2 = 0, aa = 0, bb = 0, ab = 0;

		for (o = 0; o < s->n_outputs; o++) {
			const struct tensor *other = s->has_labels ? &s->labels : &s->reference[o];
			size_t row = row_size(&s->outputs[o]);

			for (e = i * row; e < (i + 1) * row; e++) {
				double a = tensor_get(&s->outputs[o], e), b = tensor_get(other, e);

				d1 += fabs(a - b);
				d2 += (a - b) * (a - b);
				aa += a * a;
				bb += b * b;
				ab += a * b;
				min = fmin(min, b);
				max = fmax(max, b);
				count++;
			}
		}
		absolute += d1;
		square += d2;
		signal += bb;
		l1 += d1;
		l2 += sqrt(d2);
		cosine += aa == 0 && bb == 0 ? 1 : aa == 0 || bb == 0 ? 0 : ab / sqrt(aa) / sqrt(bb);
	}
	return (struct naive){ .mse = square / count,
			       .mae = absolute / count,
			       .l1 = l1 / (double)s->n,
			       .l2 = l2 / (double)s->n,
			       .cosine = cosine / (double)s->n,
			       .sqnr = square == 0 ? 200 : db(signal / square),
			       .psnr = square == 0 ? 200 : db((max - min) * (max - min) / (square / count)) };
}

/* in two passes: first the means */
static void naive_correlation(const struct set *s, double *r2, double *pearson)
{
	double mean_a = 0, mean_b = 0, n = 0, ab = 0, aa = 0, bb = 0, square = 0;
	size_t o, e, pass;

	for (pass = 0; pass < 2; pass++) {
		for (o = 0; o < s->n_outputs; o++)
			for (e = 0; e < s->n * row_size(&s->outputs[o]); e++) {
				double a = tensor_get(&s->outputs[o], e),
				       b = tensor_get(s->has_labels ? &s->labels : &s->reference[o], e);

				if (pass == 0) {
					mean_a += a;
					mean_b += b;
					n++;
					continue;
				}
				ab += (a - mean_a) * (b - mean_b);
				aa += (a - mean_a) * (a - mean_a);
				bb += (b - mean_b) * (b - mean_b);
				square += (a - b) * (a - b);
			}
		if (pass == 0) {
			mean_a /= n;
			mean_b /= n;
		}
	}
	*r2 = square == 0 ? 1 : 1 - square / bb;
	*pearson = aa == 0 || bb == 0 ? 0 : ab / sqrt(aa * bb);
}

/* ranks by counting: those below, and half of the others that are equal */
static double naive_spearman(const struct set *s)
{
	double *v[2], mean, ab = 0, aa = 0, bb = 0, rank[2];
	size_t o, e, n = 0, i, k, side;

	for (o = 0; o < s->n_outputs; o++)
		n += s->n * row_size(&s->outputs[o]);
	v[0] = xcalloc(n, sizeof(double));
	v[1] = xcalloc(n, sizeof(double));
	for (n = 0, o = 0; o < s->n_outputs; o++)
		for (e = 0; e < s->n * row_size(&s->outputs[o]); e++, n++) {
			v[0][n] = tensor_get(&s->outputs[o], e);
			v[1][n] = tensor_get(s->has_labels ? &s->labels : &s->reference[o], e);
		}
	mean = ((double)n - 1) / 2;
	for (i = 0; i < n; i++) {
		for (side = 0; side < 2; side++)
			for (rank[side] = -0.5 - mean, k = 0; k < n; k++)
				rank[side] += v[side][k] < v[side][i]    ? 1
					      : v[side][k] == v[side][i] ? 0.5
									 : 0;
		ab += rank[0] * rank[1];
		aa += rank[0] * rank[0];
		bb += rank[1] * rank[1];
	}
	free(v[0]);
	free(v[1]);
	return aa == 0 || bb == 0 ? 0 : ab / sqrt(aa * bb);
}

static void check_db(const char *name, double got, double want)
{
	if (isinf(want))
		assert_true(got == want);
	else
		check_close(name, got, want, 1e-9);
}

static void numbers_match_naive_loops(void **state)
{
	double r2, pearson;
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 2);
	for (i = 0; i < 300; i++) {
		struct set s = number_set(&r);
		struct naive want = naive_numbers(&s);

		check_close("mse", evaluate("mse", &s, &r), want.mse, 1e-12);
		check_close("mae", evaluate("mae", &s, &r), want.mae, 1e-12);
		check_close("rmse", evaluate("rmse", &s, &r), sqrt(want.mse), 1e-12);
		naive_correlation(&s, &r2, &pearson);
		check_db("r2", evaluate("r2", &s, &r), r2);
		check_db("pearson", evaluate("pearson", &s, &r), pearson);
		if (i % 10 == 0) /* each is quadratic */
			check_close("spearman", evaluate("spearman", &s, &r), naive_spearman(&s), 1e-9);
		check_close("l1", evaluate("l1", &s, &r), want.l1, 1e-12);
		check_close("l2", evaluate("l2", &s, &r), want.l2, 1e-12);
		check_close("cosine", evaluate("cosine", &s, &r), want.cosine, 1e-12);
		check_db("sqnr", evaluate("sqnr", &s, &r), want.sqnr);
		check_db("psnr", evaluate("psnr", &s, &r), want.psnr);
		set_release(&s);
	}
}

/* by the formula with raw moments, over every window of 7 x 7 of each channel; or over the whole row */
static double naive_ssim(const double *a, const double *b, size_t channels, size_t height, size_t width)
{
	bool images = height >= 7 && width >= 7;
	size_t h = images ? 7 : height, w = images ? 7 : width, c, y, x, i, k, n = 0;
	double lo = INFINITY, hi = -INFINITY, sum = 0, count = (double)(h * w);

	for (i = 0; i < channels * height * width; i++) {
		lo = b[i] < lo ? b[i] : lo;
		hi = b[i] > hi ? b[i] : hi;
	}
	for (c = 0; c < channels; c++)
		for (y = 0; y + h <= height; y++)
			for (x = 0; x + w <= width; x++, n++) {
				double m[5] = { 0 }, c1 = 1e-4 * (hi - lo) * (hi - lo), c2 = 9 * c1;

				for (i = 0; i < h; i++)
					for (k = 0; k < w; k++) {
						double p = a[(c * height + y + i) * width + x + k],
						       q = b[(c * height + y + i) * width + x + k];

						m[0] += p / count;
						m[1] += q / count;
						m[2] += p * p / count;
						m[3] += q * q / count;
						m[4] += p * q / count;
					}
				for (i = 2; i < 5; i++) {
					m[i] -= i == 2 ? m[0] * m[0] : i == 3 ? m[1] * m[1] : m[0] * m[1];
					m[i] *= count / (count - 1);
				}
				sum += (2 * m[0] * m[1] + c1) * (2 * m[4] + c2) /
				       ((m[0] * m[0] + m[1] * m[1] + c1) * (m[2] + m[3] + c2));
			}
	return sum / (double)n;
}

static void ssim_matches_a_naive_loop(void **state)
{
	static const size_t shapes[][3] = { { 1, 7, 7 }, { 3, 9, 12 }, { 2, 6, 30 }, { 1, 1, 10 } };
	struct rng r;
	size_t i, e, row;

	(void)state;
	rng_seed(&r, 11);
	for (i = 0; i < ARRAY_LEN(shapes); i++) {
		const size_t *d = shapes[i], per = d[0] * d[1] * d[2], n = 4;
		struct set s = { .n_outputs = 1, .n = n, .has_reference = true };
		double *a = xcalloc(per, sizeof(*a)), *b = xcalloc(per, sizeof(*b)), want = 0;

		s.outputs[0] = d[1] == 1 ? alloc(T(DT_F32, 2, (int64_t)n, (int64_t)per))
					 : alloc(T(DT_F32, 4, (int64_t)n, (int64_t)d[0], (int64_t)d[1],
						   (int64_t)d[2]));
		s.reference[0] = alloc(s.outputs[0]);
		for (e = 0; e < n * per; e++) {
			tensor_set(&s.reference[0], e, rng_normal(&r));
			tensor_set(&s.outputs[0], e,
				   (float)tensor_get(&s.reference[0], e) + 0.2 * rng_normal(&r));
		}
		for (row = 0; row < n; row++) {
			for (e = 0; e < per; e++) {
				a[e] = tensor_get(&s.outputs[0], row * per + e);
				b[e] = tensor_get(&s.reference[0], row * per + e);
			}
			/* what is not an image is one window over all of it */
			want += d[1] < 7 ? naive_ssim(a, b, 1, 1, per) : naive_ssim(a, b, d[0], d[1], d[2]);
		}
		assert_true(want / (double)n < 0.999);
		check_close("ssim", evaluate("ssim", &s, &r), want / (double)n, 1e-9);
		free(a);
		free(b);
		set_release(&s);
	}
}

/* scores of a model that is often right; kind 0: [N], 1: [N,1], 2: [N,2] */
static struct set score_set(struct rng *r, size_t n, int kind, bool coarse)
{
	struct set s = { .n_outputs = 1, .n = n, .has_labels = true };
	int64_t rows = (int64_t)n;
	size_t i;

	s.outputs[0] = alloc(T(DT_F32, kind ? 2 : 1, rows, kind));
	s.labels = alloc(T(DT_S64, 1, rows));
	for (i = 0; i < n; i++) {
		bool positive = i < 2 ? i : rng_below(r, 3) == 0;
		double x = rng_normal(r) + positive;

		if (coarse)
			x = rint(x * 2);
		tensor_set(&s.labels, i, positive);
		if (kind < 2) {
			tensor_set(&s.outputs[0], i, x);
			continue;
		}
		tensor_set(&s.outputs[0], 2 * i, coarse ? 1 - x : rng_normal(r));
		tensor_set(&s.outputs[0], 2 * i + 1, x);
	}
	return s;
}

static double score_at(const struct set *s, size_t i)
{
	const struct tensor *t = &s->outputs[0];

	if (t->rank == 2 && t->dims[1] == 2)
		return tensor_get(t, 2 * i + 1) - tensor_get(t, 2 * i);
	return tensor_get(t, i);
}

static double pairwise_auc(const struct set *s)
{
	double good = 0, pairs = 0;
	size_t i, k;

	for (i = 0; i < s->n; i++)
		for (k = 0; k < s->n; k++)
			if (tensor_get(&s->labels, i) == 1 && tensor_get(&s->labels, k) == 0) {
				double p = score_at(s, i), q = score_at(s, k);

				good += p > q ? 1 : p == q ? 0.5 : 0;
				pairs++;
			}
	return good / pairs;
}

static void auc_matches_the_pairs(void **state)
{
	struct rng r;
	int i;

	(void)state;
	rng_seed(&r, 3);
	for (i = 0; i < 120; i++) {
		struct set s = score_set(&r, 2 + rng_below(&r, 60), i % 3, i % 2);

		check_close("auc", evaluate("auc", &s, &r), pairwise_auc(&s), 1e-12);
		set_release(&s);
	}
}

struct scored {
	double score;
	bool positive;
};

static int by_score(const void *a, const void *b)
{
	const struct scored *x = a, *y = b;

	return x->score < y->score ? -1 : x->score > y->score;
}

/* of distinct scores */
static double sorted_auc(const struct set *s)
{
	struct scored *v = xcalloc(s->n, sizeof(*v));
	double good = 0, pos = 0, neg = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		v[i] = (struct scored){ score_at(s, i), tensor_get(&s->labels, i) == 1 };
	qsort(v, s->n, sizeof(*v), by_score);
	for (i = 0; i < s->n; i++) {
		good += v[i].positive ? neg : 0;
		pos += v[i].positive;
		neg += !v[i].positive;
	}
	free(v);
	return good / (pos * neg);
}

static void squeeze(struct set *s, double centre, double width)
{
	size_t i;

	for (i = 0; i < s->n; i++) /* monotone, so the exact value stays */
		tensor_set(&s->outputs[0], i, centre + width * tanh(tensor_get(&s->outputs[0], i) / 3));
}

/* more distinct scores than are kept: close to exact, wherever the scores lie; and any order gives the same */
static void auc_of_many_scores(void **state)
{
	static const struct {
		const char *why;
		double centre, width;
	} rows[] = {
		{ "around zero", 0, 1 },
		{ "probabilities", 0.5, 0.5 },
		{ "nearly all sure", 0.999, 0.001 },
		{ "tiny", 1e-30, 1e-30 },
	};
	enum { N = 300000 };
	struct set s = { .n_outputs = 1, .n = N, .has_labels = true };
	struct metric *m = make("auc");
	struct err err = ERR_INIT;
	struct rng r;
	size_t i, k;

	(void)state;
	rng_seed(&r, 4);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		double value, again;

		s.outputs[0] = alloc(T(DT_F64, 1, N));
		s.labels = alloc(T(DT_U8, 1, N));
		for (k = 0; k < N; k++) {
			bool positive = rng_below(&r, 4) == 0;

			tensor_set(&s.labels, k, positive);
			tensor_set(&s.outputs[0], k, rng_normal(&r) + positive);
		}
		squeeze(&s, rows[i].centre, rows[i].width);
		metric_reset(m);
		assert_ok(add(m, &s, &err), err);
		assert_ok(metric_value(m, &value, &err), err);
		check_close(rows[i].why, value, sorted_auc(&s), 1e-4);

		metric_reset(m);
		for (k = N; k; k -= N / 10) {
			struct set part = set_slice(&s, k - N / 10, N / 10);

			assert_ok(add(m, &part, &err), err);
			/* looking on the way does not change the end; early on it is also another value */
			assert_ok(metric_value(m, &again, &err), err);
			set_release(&part);
		}
		if (!same_bits(value, again))
			fail_msg("%s: %.17g in order, %.17g in reverse", rows[i].why, value, again);
		set_release(&s);
	}
	metric_free(m);
}

/* one row of a table: up to three rows of outputs, labels, and what comes of them */
struct edge {
	const char *why, *metric;
	struct tensor out;
	float x[12];
	struct tensor labels;
	float y[12];
	double want;         /* unless: */
	const char *message; /* part of the error */
};

#define F(r, ...)                                                                                            \
	{                                                                                                    \
		.dtype = DT_F32, .rank = (r), .dims = { __VA_ARGS__ }                                        \
	}
#define INF INFINITY

/* clang-format off */
static const struct edge edges[] = {
	{ "of equals the lowest class wins", "top1", F(2, 1, 3), { 1, 1, 0 }, F(1, 1), { 0 }, 1, NULL },
	{ "and the other does not", "top1", F(2, 1, 3), { 1, 1, 0 }, F(1, 1), { 1 }, 0, NULL },
	{ "but it is second", "topk:2", F(2, 1, 3), { 1, 1, 0 }, F(1, 1), { 1 }, 1, NULL },
	{ "a third equal is not", "topk:2", F(2, 1, 3), { 1, 1, 1 }, F(1, 1), { 2 }, 0, NULL },
	{ "NaN does not win", "top1", F(2, 1, 3), { NAN, 1, 2 }, F(1, 1), { 2 }, 1, NULL },
	{ "NaN is never right", "top1", F(2, 1, 3), { NAN, NAN, NAN }, F(1, 1), { 0 }, 0, NULL },
	{ "not even with as many places as classes",
	  "topk:3", F(2, 1, 3), { NAN, 1, 2 }, F(1, 1), { 0 }, 0, NULL },
	{ "minus infinity can win", "top1", F(2, 1, 2), { -INF, -INF }, F(1, 1), { 0 }, 1, NULL },
	{ "over NaN too", "top1", F(2, 1, 2), { NAN, -INF }, F(1, 1), { 1 }, 1, NULL },
	{ "one-hot labels", "top1", F(2, 1, 3), { 1, 2, 0 }, F(2, 1, 3), { 0, 1, 0 }, 1, NULL },
	{ "a class number in a column", "top1", F(2, 2, 2), { 1, 2, 2, 1 }, F(2, 2, 1), { 1, 1 }, 0.5, NULL },
	{ "label past the classes", "top1", F(2, 2, 3), { 0 }, F(1, 2), { 0, 3 }, 0,
	  "sample 1 is 3, need a class number below 3" },
	{ "negative label", "top1", F(2, 1, 3), { 0 }, F(1, 1), { -1 }, 0, "sample 0 is -1" },
	{ "-100 counts among tokens only", "top1", F(2, 1, 3), { 0 }, F(1, 1), { -100 }, 0,
	  "sample 0 is -100" },
	{ "label between two classes", "top1", F(2, 1, 3), { 0 }, F(1, 1), { 0.5 }, 0, "sample 0 is 0.5" },
	{ "NaN label", "top1", F(2, 1, 3), { 0 }, F(1, 1), { NAN }, 0, "nan" },
	{ "NaN labels", "top1", F(2, 1, 2), { 0 }, F(2, 1, 2), { NAN, NAN }, 0, "all NaN" },
	{ "both shapes are named", "top1", F(2, 1, 3), { 0 }, F(2, 1, 2), { 0 }, 0,
	  "outputs [1,3], labels [1,2]" },
	{ "fewer labels than samples", "top1", F(2, 2, 3), { 0 }, F(1, 1), { 0 }, 0,
	  "outputs [2,3], labels [1]" },
	{ "more places than classes", "top5", F(2, 1, 3), { 0 }, F(1, 1), { 0 }, 0,
	  "3 classes, need at least 5" },
	{ "one score is no choice", "top1", F(2, 1, 1), { 0 }, F(1, 1), { 0 }, 0,
	  "need at least 2 classes; auc or f1:binary" },
	{ "nor without columns", "top1", F(1, 1), { 0 }, F(1, 1), { 0 }, 0,
	  "need at least 2 classes; auc or f1:binary" },
	{ "one label for many pixels", "top1", F(4, 1, 2, 2, 2), { 0 }, F(1, 1), { 0 }, 0,
	  "need [N,H,W] or [N,1,H,W]" },
	/* class 1 is higher at the last two of three pixels */
	{ "pixels are averaged", "f1:micro", F(4, 1, 2, 1, 3), { 1, 0, 0, 0, 1, 1 }, F(3, 1, 1, 3), { 0, 1, 0 },
	  2.0 / 3, NULL },
	{ "with a channel of their own", "top1", F(4, 1, 2, 1, 3), { 1, 0, 0, 0, 1, 1 }, F(4, 1, 1, 1, 3),
	  { 0, 1, 0 }, 2.0 / 3, NULL },
	{ "void ones are not", "top1", F(4, 1, 2, 1, 3), { 1, 0, 0, 0, 1, 1 }, F(3, 1, 1, 3), { 0, 255, -100 }, 1,
	  NULL },
	{ "nor is what is no class", "top1", F(4, 1, 2, 1, 3), { 1, 0, 0, 0, 1, 1 }, F(3, 1, 1, 3), { 0, 2, 0 }, 0,
	  "is 2, need a class number below 2" },
	{ "pixels of another size", "top1", F(4, 1, 2, 2, 2), { 0 }, F(3, 1, 2, 3), { 0 }, 0,
	  "outputs [1,2,2,2], labels [1,2,3]" },
	{ "no labels at all", "top1", F(2, 1, 3), { 0 }, { 0 }, { 0 }, 0, "no labels" },
	{ "tokens are averaged", "top1", F(3, 1, 2, 2), { 1, 0, 1, 0 }, F(2, 1, 2), { 0, 1 }, 0.5, NULL },
	{ "an ignored one is not", "top1", F(3, 1, 2, 2), { 1, 0, 1, 0 }, F(2, 1, 2), { 0, -100 }, 1, NULL },
	{ "each sample weighs the same",
	  "top1", F(3, 2, 2, 2), { 1, 0, 1, 0, 1, 0, 1, 0 }, F(2, 2, 2), { 0, -100, 0, 1 }, 0.75, NULL },
	{ "all tokens ignored", "top1", F(3, 1, 2, 2), { 0 }, F(2, 1, 2), { -100, -100 }, 0,
	  "sample 0 has no token" },
	{ "one label for many tokens", "top1", F(3, 1, 2, 2), { 0 }, F(1, 1), { 0 }, 0,
	  "outputs [1,2,2], labels [1]" },
	{ "the threshold is not above itself",
	  "f1:binary", F(1, 3), { 0.5, 0.6, 0.9 }, F(1, 3), { 1, 1, 0 }, 0.5, NULL },
	{ "columns of scores", "f1:binary", F(2, 2, 1), { 0.4, 0.6 }, F(2, 2, 1), { 0, 1 }, 1, NULL },
	{ "nothing found and nothing to find", "f1:binary", F(1, 1), { 0 }, F(1, 1), { 0 }, 0, NULL },
	{ "classes that do not occur do not count",
	  "f1", F(2, 1, 4), { 0, 1, 0, 0 }, F(1, 1), { 1 }, 1, NULL },
	{ "NaN predicts no class", "f1:micro", F(1, 2), { NAN, 1 }, F(1, 2), { 0, 1 }, 2 / 3.0, NULL },
	{ "binary is for two classes", "f1:binary", F(2, 1, 3), { 0 }, F(1, 1), { 0 }, 0,
	  "3 classes, need 2" },
	{ "f1 checks labels", "f1", F(2, 1, 3), { 0 }, F(1, 1), { 7 }, 0, "sample 0 is 7" },
	{ "nothing counts", "f1", F(3, 1, 1, 2), { 0 }, F(2, 1, 1), { -100 }, 0, "every label is -100" },
	{ "ties are worth half", "auc", F(1, 2), { 1, 1 }, F(1, 2), { 0, 1 }, 0.5, NULL },
	{ "zero has no sign", "auc", F(1, 2), { 0.f, -0.f }, F(1, 2), { 0, 1 }, 0.5, NULL },
	{ "negative scores in order", "auc", F(1, 3), { -2, -1, 3 }, F(1, 3), { 0, 1, 1 }, 1, NULL },
	{ "infinite scores too", "auc", F(1, 3), { -INF, 2, INF }, F(1, 3), { 0, 0, 1 }, 1, NULL },
	{ "NaN stays", "auc", F(1, 2), { NAN, 1 }, F(1, 2), { 0, 1 }, NAN, NULL },
	{ "two columns and one-hot labels",
	  "auc", F(2, 2, 2), { 1, 2, 5, 4 }, F(2, 2, 2), { 0, 1, 1, 0 }, 1, NULL },
	{ "one class only", "auc", F(1, 2), { 0, 1 }, F(1, 2), { 1, 1 }, 0, "all 2 labels are 1" },
	{ "three classes", "auc", F(2, 1, 3), { 0 }, F(1, 1), { 0 }, 0,
	  "outputs [1,3], need [N], [N,1] or [N,2]" },
	{ "no tokens", "auc", F(3, 1, 1, 2), { 0 }, F(2, 1, 1), { 0 }, 0, "outputs [1,1,2], need [N]" },
	{ "labels of 0 and 1", "auc", F(1, 1), { 0 }, F(1, 1), { 2 }, 0, "sample 0 is 2" },
	{ "both zero are alike", "cosine", F(2, 1, 2), { 0, 0 }, F(2, 1, 2), { 0, 0 }, 1, NULL },
	{ "one zero is not", "cosine", F(2, 1, 2), { 0, 0 }, F(2, 1, 2), { 1, 0 }, 0, NULL },
	{ "opposite", "cosine", F(2, 1, 2), { 1, 3 }, F(2, 1, 2), { -1, -3 }, -1, NULL },
	{ "the same is exactly one",
	  "cosine", F(2, 1, 3), { 0.1f, 0.7f, 3 }, F(2, 1, 3), { 0.1f, 0.7f, 3 }, 1, NULL },
	{ "NaN against zero is NaN", "cosine", F(2, 1, 2), { NAN, 0 }, F(2, 1, 2), { 0, 0 }, NAN, NULL },
	{ "identical is capped", "sqnr", F(1, 2), { 1, 2 }, F(1, 2), { 1, 2 }, 200, NULL },
	{ "also when zero", "sqnr", F(1, 1), { 0 }, F(1, 1), { 0 }, 200, NULL },
	{ "no signal", "sqnr", F(1, 1), { 1 }, F(1, 1), { 0 }, -INF, NULL },
	{ "NaN is not capped", "sqnr", F(1, 1), { NAN }, F(1, 1), { 1 }, NAN, NULL },
	{ "nor is infinity", "sqnr", F(1, 1), { INF }, F(1, 1), { INF }, NAN, NULL },
	{ "20 dB", "sqnr", F(1, 1), { 11 }, F(1, 1), { 10 }, 20, NULL },
	{ "close to identical is capped", "sqnr", F(1, 2), { 1e-30f, 1 }, F(1, 2), { 0, 1 }, 200, NULL },
	{ "identical is capped", "psnr", F(1, 2), { 1, 2 }, F(1, 2), { 1, 2 }, 200, NULL },
	{ "the range is the reference's",
	  "psnr", F(1, 2), { 0, 11 }, F(1, 2), { 1, 11 }, 20 + 3.0102999566398120, NULL },
	{ "a constant reference has no range", "psnr", F(1, 1), { 1 }, F(1, 1), { 2 }, -INF, NULL },
	{ "identical", "ssim", F(1, 3), { 1, 2, 4 }, F(1, 3), { 1, 2, 4 }, 1, NULL },
	{ "a constant is like itself", "ssim", F(1, 2), { 3, 3 }, F(1, 2), { 3, 3 }, 1, NULL },
	{ "NaN stays", "ssim", F(1, 2), { NAN, 1 }, F(1, 2), { 1, 2 }, NAN, NULL },
	{ "NaN is not capped", "psnr", F(1, 1), { NAN }, F(1, 1), { 1 }, NAN, NULL },
	{ "NaN stays", "mse", F(1, 2), { NAN, 1 }, F(1, 2), { 1, 1 }, NAN, NULL },
	{ "a column is a row", "mae", F(2, 2, 1), { 1, 2 }, F(1, 2), { 2, 4 }, 1.5, NULL },
	{ "the root of the whole mean", "rmse", F(1, 2), { 0, 0 }, F(1, 2), { 1, 7 }, 5, NULL },
	{ "norms are averaged over samples", "l1", F(2, 2, 2), { 0 }, F(2, 2, 2), { 1, 2, 3, 4 }, 5, NULL },
	{ "norms are averaged over samples", "l2", F(2, 2, 2), { 0 }, F(2, 2, 2), { 3, 4, 6, 8 }, 7.5, NULL },
	{ "both shapes are named", "mse", F(2, 1, 3), { 0 }, F(1, 1), { 0 }, 0, "outputs [1,3], labels [1]" },
	{ "a transposed shape is another", "mse", F(3, 1, 2, 3), { 0 }, F(3, 1, 3, 2), { 0 }, 0,
	  "outputs [1,2,3], labels [1,3,2]" },
	{ "too few labels", "mse", F(2, 2, 1), { 0 }, F(1, 1), { 0 }, 0, "labels [1], need 2 rows" },
	{ "nothing to compare with", "mse", F(1, 1), { 0 }, { 0 }, { 0 }, 0,
	  "no labels and no fp32 outputs" },
	{ "no elements", "mse", F(2, 1, 0), { 0 }, F(2, 1, 0), { 0 }, 0, "no elements" },
	{ "an output without rows", "mse", F(0, 0), { 0 }, F(0, 0), { 0 }, 0, "outputs []" },
	{ "needs the reference", "agreement", F(2, 1, 3), { 0 }, F(1, 1), { 0 }, 0, "no fp32 outputs" },
};
/* clang-format on */

static void edge_cases(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(edges); i++) {
		const struct edge *e = &edges[i];
		struct tensor out = e->out, labels = e->labels;
		struct metric *m = make(e->metric);
		struct err err = ERR_INIT;
		enum fettle_status st;
		double got = 0;

		out.data = (void *)e->x;
		labels.data = (void *)e->y;
		st = metric_add(m, &out, 1, labels.dtype ? &labels : NULL, NULL,
				out.rank ? (size_t)out.dims[0] : 1, &err);
		if (!st)
			st = metric_value(m, &got, &err);
		if (e->message && (st != FETTLE_INVALID || !strstr(err.msg, e->message)))
			fail_msg("%s: %s: status %d, '%s', want '%s'", e->metric, e->why, (int)st, err.msg,
				 e->message);
		if (!e->message && st)
			fail_msg("%s: %s: %s", e->metric, e->why, err.msg);
		if (!e->message &&
		    !(isnan(e->want) ? isnan(got) : got == e->want || fabs(got - e->want) < 1e-12))
			fail_msg("%s: %s: %.17g, want %.17g", e->metric, e->why, got, e->want);
		metric_free(m);
	}
}

static void agreement_knows_nan_and_shapes(void **state)
{
	float a[] = { 1, 2, NAN, NAN, 3, 1, NAN, 1 }, b[] = { 0, 1, NAN, NAN, 1, 3, 0, 5 };
	struct tensor out = F(2, 4, 2), ref = F(2, 4, 2);
	struct metric *m = make("agreement");
	struct err err = ERR_INIT;
	double got;

	(void)state;
	out.data = a;
	ref.data = b;
	assert_ok(metric_add(m, &out, 1, NULL, &ref, 4, &err), err);
	assert_ok(metric_value(m, &got, &err), err);
	assert_true(got == 0.5); /* rows 0 and 3; NaN agrees with nothing, not even NaN */
	ref.dims[0] = 2;
	ref.dims[1] = 4;
	assert_int_equal(metric_add(m, &out, 1, NULL, &ref, 2, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "outputs [4,2], reference [2,4]"));
	metric_free(m);
}

/* class numbers cannot be compared with a vector of scores: then the reference is what counts */
static void either_prefers_labels_that_fit(void **state)
{
	float a[] = { 1, 2 }, b[] = { 1, 4 }, y[] = { 5, 2 };
	struct tensor out = F(2, 1, 2), ref = F(2, 1, 2), fits = F(2, 1, 2), odd = F(1, 1);
	struct metric *m = make("mae"), *top1 = make("top1"), *agreement = make("agreement");
	struct err err = ERR_INIT;
	double got;

	(void)state;
	out.data = a;
	ref.data = b;
	fits.data = odd.data = y;
	assert_false(metric_uses_reference(m, &out, &fits));
	assert_true(metric_uses_reference(m, &out, &odd));
	assert_true(metric_uses_reference(m, &out, NULL));
	assert_false(metric_uses_reference(top1, &out, NULL));
	assert_true(metric_uses_reference(agreement, &out, &fits));
	assert_ok(metric_add(m, &out, 1, &fits, &ref, 1, &err), err);
	assert_ok(metric_value(m, &got, &err), err);
	assert_true(got == 2);
	assert_int_equal(metric_add(m, &out, 1, &odd, &ref, 1, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "from sample 1 on"));
	metric_reset(m);
	assert_ok(metric_add(m, &out, 1, &odd, &ref, 1, &err), err);
	assert_ok(metric_value(m, &got, &err), err);
	assert_true(got == 1);
	metric_free(m);
	metric_free(top1);
	metric_free(agreement);
}

static void samples_are_numbered_over_batches(void **state)
{
	float x[6] = { 0 };
	int64_t good[] = { 0, 1, 2 }, bad[] = { 0, 9, 0 };
	struct tensor out = F(2, 3, 2), labels = T(DT_S64, 1, 3);
	struct metric *m = make("top1");
	struct err err = ERR_INIT;

	(void)state;
	out.data = x;
	labels.data = good;
	assert_ok(metric_add(m, &out, 1, &labels, NULL, 2, &err),
		  err); /* row 2 is out of range, and padding */
	labels.data = bad;
	assert_int_equal(metric_add(m, &out, 1, &labels, NULL, 3, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "sample 3 is 9"));
	assert_int_equal(metric_samples(m), 2);
	metric_free(m);
}

/* rounding must not make a vector more, or less, like itself */
static void cosine_keeps_its_bounds(void **state)
{
	struct metric *m = make("cosine");
	struct err err = ERR_INIT;
	struct rng r;
	int i, k;

	(void)state;
	rng_seed(&r, 5);
	for (i = 0; i < 2000; i++) {
		float a[5], b[5], scale = (float)rng_normal(&r);
		struct tensor out = F(2, 1, 5), ref = F(2, 1, 5);
		const double *score;

		for (k = 0; k < 5; k++) {
			a[k] = (float)rng_normal(&r);
			b[k] = a[k] * scale;
		}
		out.data = a;
		ref.data = b;
		assert_ok(metric_add(m, &out, 1, NULL, &out, 1, &err), err);
		score = metric_last_scores(m);
		assert_true(*score == 1);
		assert_ok(metric_add(m, &out, 1, NULL, &ref, 1, &err), err);
		score = metric_last_scores(m);
		assert_true(*score >= -1 && *score <= 1 && fabs(fabs(*score) - 1) < 1e-9);
	}
	metric_free(m);
}

/* every metric, fed batch by batch, notices when a later batch does not fit */
static void later_batches_must_fit(void **state)
{
	float x[12] = { 0 };
	struct tensor two = F(2, 1, 2), three = F(2, 3, 3), label = F(1, 3),
		      outputs[2] = { F(2, 1, 2), F(2, 1, 2) }, reference[2] = { F(2, 1, 2), F(2, 1, 3) };
	struct metric *f1 = make("f1"), *top1 = make("top1"), *mse = make("mse");
	struct err err = ERR_INIT;

	(void)state;
	two.data = three.data = label.data = x;
	outputs[0].data = outputs[1].data = reference[0].data = reference[1].data = x;
	assert_ok(metric_add(f1, &two, 1, &label, NULL, 1, &err), err);
	assert_int_equal(metric_add(f1, &three, 1, &label, NULL, 3, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "3 classes from sample 1 on, 2 before"));
	/* but a larger batch does */
	assert_ok(metric_add(top1, &two, 1, &label, NULL, 1, &err), err);
	assert_ok(metric_add(top1, &three, 1, &label, NULL, 3, &err), err);
	assert_ok(metric_add(mse, outputs, 1, NULL, reference, 1, &err), err);
	assert_int_equal(metric_add(mse, outputs, 2, NULL, reference, 1, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "outputs [1,2], reference [1,3]"));
	metric_free(f1);
	metric_free(top1);
	metric_free(mse);
}

static void names_are_found(void **state)
{
	static const struct {
		const char *why, *name, *want; /* NULL: an error with */
		const char *message;
	} rows[] = {
		{ "plain", "top1", "top1", NULL },
		{ "in capitals", "MSE", "mse", NULL },
		{ "mixed", "Accuracy", "top1", NULL },
		{ "topk alone is top1", "topk", "top1", NULL },
		{ "so is topk:1", "topk:1", "top1", NULL },
		{ "topk:5 is top5", "topk:5", "top5", NULL },
		{ "other numbers stay", "TopK:3", "topk:3", NULL },
		{ "f1 is macro", "F1:Macro", "f1", NULL },
		{ "micro", "f1:MICRO", "f1:micro", NULL },
		{ "binary", "f1:binary", "f1:binary", NULL },
		{ "nearest", "cosin", NULL, "did you mean 'cosine'" },
		{ "an alias can be the nearest", "acuracy", NULL, "did you mean 'accuracy'" },
		{ "far from all", "wibble-wobble", NULL, "need one of top1, top5, topk, f1, " },
		{ "empty", "", NULL, "unknown" },
		{ "zero places", "topk:0", NULL, "'topk:0'" },
		{ "negative places", "topk:-1", NULL, "'topk:-1'" },
		{ "no number", "topk:", NULL, "'topk:'" },
		{ "half a number", "topk:3x", NULL, "'topk:3x'" },
		{ "far too many places", "topk:99999999999999999999999", NULL, "need a number" },
		{ "an average we do not know", "f1:weighted", NULL, "need f1:macro" },
		{ "takes no parameter", "auc:2", NULL, "auc takes no parameter" },
		{ "compared with what", "mse:2", NULL, "need mse:labels or mse:reference" },
		{ "compared with labels", "MAE:Labels", "mae:labels", NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct metric *m = NULL;
		enum fettle_status st = metric_new(&m, rows[i].name, &err);

		if (rows[i].want && (st || strcmp(metric_name(m), rows[i].want)))
			fail_msg("%s: %s", rows[i].why, m ? metric_name(m) : err.msg);
		if (!rows[i].want && (st != FETTLE_INVALID || m || !strstr(err.msg, rows[i].message)))
			fail_msg("%s: '%s', want '%s'", rows[i].why, err.msg, rows[i].message);
		metric_free(m);
	}
}

/* what every member of the list must satisfy */
static void the_list_is_sound(void **state)
{
	const struct metric_type *type;
	size_t i;

	(void)state;
	for (i = 0; (type = metric_type_at(i)); i++) {
		struct err err = ERR_INIT;
		struct metric *m = make(type->name);
		struct tensor words = T(DT_STRING, 2, 1, 2), nothing = F(2, 0, 2);
		double value;

		assert_ptr_equal(metric_type(m), type);
		assert_int_equal(metric_needs(m), type->needs);
		assert_int_equal(metric_higher_is_better(m), type->higher_is_better);
		assert_true(type->summary && (type->needs || strcmp(type->name, "loss") == 0));
		assert_true(type->is_mean ? type->scores && type->score_min < type->score_max
					  : type->add && type->value);
		if (type->bounded)
			assert_true(type->is_mean && isfinite(type->score_min) && isfinite(type->score_max));
		assert_ok(metric_add(m, &nothing, 1, NULL, NULL, 0, &err), err);
		assert_int_equal(metric_value(m, &value, &err), FETTLE_INVALID);
		assert_non_null(strstr(err.msg, "no samples"));
		assert_int_equal(metric_add(m, &words, 1, &words, &words, 1, &err), FETTLE_INVALID);
		assert_true(type->whole_answer || strstr(err.msg, "string"));
		assert_int_equal(metric_add(m, NULL, 0, NULL, NULL, 1, &err), FETTLE_INVALID);
		assert_int_equal(metric_value(m, &value, NULL), FETTLE_INVALID);
		metric_free(m);
	}
	assert_true(i > 0);
}

/* Looking at some of the outputs is as good as having no others. */
static void outputs_can_be_chosen(void **state)
{
	float wrong[] = { 0, 1, 0, 1 }, right[] = { 1, 0, 0, 1 };
	int64_t classes[] = { 0, 1 };
	struct tensor out[] = { T(DT_F32, 2, 2, 2), T(DT_F32, 2, 2, 2), T(DT_F32, 2, 2, 2) },
		      labels = T(DT_S64, 1, 2);
	struct metric *m = make("top1"), *twin, *mse = make("mse");
	struct err err = ERR_INIT;
	double value = 0;

	(void)state;
	out[0].data = wrong;
	out[1].data = right;
	out[2].data = wrong;
	labels.data = classes;
	assert_ok(metric_add(m, out, 3, &labels, NULL, 2, &err), err);
	assert_ok(metric_value(m, &value, &err), err);
	assert_true(value == 0.5);
	metric_select(m, (size_t[]){ 1 }, 1);
	assert_true(metric_looks_at(m, 1) && !metric_looks_at(m, 0) && metric_first_output(m) == 1);
	twin = metric_twin(m);
	assert_ok(metric_add(twin, out, 3, &labels, NULL, 2, &err), err);
	assert_ok(metric_value(twin, &value, &err), err);
	assert_true(value == 1);
	assert_true(metric_last_scores(twin)[0] == 1 && metric_last_scores(twin)[1] == 1);
	assert_true(metric_chance(twin, &out[1]) == 0.5);
	assert_int_equal(metric_add(twin, out, 1, &labels, NULL, 2, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "output number 2, there are 1"));
	/* of the reference, the same */
	metric_select(mse, (size_t[]){ 2, 0 }, 2);
	assert_ok(metric_add(mse, out, 3, NULL, (struct tensor[]){ out[2], out[1], out[0] }, 2, &err), err);
	assert_ok(metric_value(mse, &value, &err), err);
	assert_true(value == 0 && isnan(metric_chance(mse, &out[0])));
	metric_free(m);
	metric_free(twin);
	metric_free(mse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_match_naive_loops),
		cmocka_unit_test(many_classes),
		cmocka_unit_test(numbers_match_naive_loops),
		cmocka_unit_test(ssim_matches_a_naive_loop),
		cmocka_unit_test(auc_matches_the_pairs),
		cmocka_unit_test(auc_of_many_scores),
		cmocka_unit_test(edge_cases),
		cmocka_unit_test(agreement_knows_nan_and_shapes),
		cmocka_unit_test(either_prefers_labels_that_fit),
		cmocka_unit_test(samples_are_numbered_over_batches),
		cmocka_unit_test(cosine_keeps_its_bounds),
		cmocka_unit_test(later_batches_must_fit),
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(the_list_is_sound),
		cmocka_unit_test(outputs_can_be_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
