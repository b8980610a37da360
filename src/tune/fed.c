#include "tune/fed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

/* Enough to see what the data is like, and no more: images must be decoded. */
enum { LOOKS = 3 };

static size_t look_at(const struct feed *feed, size_t i)
{
	size_t n = feed_batches(feed);

	return i * (n - 1) / (LOOKS - 1);
}

struct span {
	double min, max;
};

/* in lanes, which the compiler vectorises; all are finite */
static void widen_floats(struct span *s, const float *x, size_t n)
{
	enum { LANES = 16 };
	float min[LANES], max[LANES];
	size_t i, k;

	for (k = 0; k < LANES; k++)
		min[k] = max[k] = n ? x[0] : 0;
	for (i = 0; i + LANES <= n; i += LANES)
		for (k = 0; k < LANES; k++) {
			min[k] = x[i + k] < min[k] ? x[i + k] : min[k];
			max[k] = x[i + k] > max[k] ? x[i + k] : max[k];
		}
	for (k = 0; n && k < LANES; k++) {
		s->min = fmin(s->min, min[k]);
		s->max = fmax(s->max, max[k]);
	}
	for (; i < n; i++) {
		s->min = fmin(s->min, x[i]);
		s->max = fmax(s->max, x[i]);
	}
}

static void widen(struct span *s, const struct tensor *t)
{
	size_t n = dtype_size(t->dtype) ? (size_t)tensor_count(t) : 0, i;

	if (t->dtype == DT_F32) {
		widen_floats(s, t->data, n);
		return;
	}
	for (i = 0; i < n; i++) {
		s->min = fmin(s->min, tensor_get(t, i));
		s->max = fmax(s->max, tensor_get(t, i));
	}
}

/* One-hot, probabilities: rows of numbers from 0 to 1 that add up to 1. */
static bool are_shares(const struct tensor *t)
{
	size_t width = t->rank > 1 ? (size_t)t->dims[t->rank - 1] : 1, n = (size_t)tensor_count(t), i, k;

	for (i = 0; width > 1 && i < n; i += width) {
		double sum = 0;

		for (k = 0; k < width; k++) {
			double x = tensor_get(t, i + k);

			if (!(x >= 0 && x <= 1))
				return false;
			sum += x;
		}
		if (fabs(sum - 1) > 1e-3)
			return false;
	}
	return width > 1;
}

static void look_at_labels(struct looked *l, const struct tensor *t)
{
	struct span s = { l->min, l->max };
	size_t i;

	if (!t->data)
		return;
	if (!l->has_labels) {
		*l = (struct looked){ .has_labels = true, .integral = true, .shares = true };
		s = (struct span){ INFINITY, -INFINITY };
	}
	widen(&s, t);
	l->min = s.min;
	l->max = s.max;
	for (i = 0; i < (size_t)tensor_count(t) && l->integral; i++)
		l->integral = tensor_get(t, i) == floor(tensor_get(t, i));
	l->shares = l->shares && are_shares(t);
}

/* Inputs that are made by the rule of input i, from i on; 0 if an earlier one has said so. */
static size_t made_alike(const struct feed *feed, size_t i)
{
	size_t n = 0, k;

	for (k = 0; k < feed_n_inputs(feed); k++) {
		if (feed_made(feed, k) != feed_made(feed, i))
			continue;
		if (k < i)
			return 0;
		n++;
	}
	return n;
}

/* "[8,3,224,224]" */
static const char *shape_text(const struct tensor *t, struct arena *a)
{
	struct str s = STR_INIT;
	const char *copy;
	int i;

	for (i = 0; i < t->rank; i++)
		str_addf(&s, "%s%lld", i ? "," : "", (long long)t->dims[i]);
	copy = arena_strfmt(a, "[%s]", s.n ? s.s : "");
	str_release(&s);
	return copy;
}

static const char *transforms_text(const struct dataset *d, struct arena *a)
{
	struct str s = STR_INIT;
	const char *copy;
	size_t i;

	for (i = 0; i < d->n_transforms; i++)
		str_addf(&s, "%s%s", i ? ", " : "", transform_name(&d->transforms[i]));
	copy = s.n ? arena_strdup(a, s.s) : NULL;
	str_release(&s);
	return copy;
}

static void tell(struct context *cx, const char *purpose, const struct feed *feed, size_t i, struct span s,
		 const char *shape)
{
	const struct field *field = feed_field(feed, i);
	const struct input_spec *input = feed_input(feed, i);
	const size_t alike = field ? 1 : made_alike(feed, i);
	struct fettle_fed fed = { .purpose = purpose,
				  .data = arena_strdup(&cx->told, feed_data(feed)->path),
				  .array = field ? arena_strdup(&cx->told, field->name) : "",
				  .input = arena_strdup(&cx->told, input->name),
				  .stored = dtype_name(field ? field->sample.dtype : input->dtype),
				  .dtype = dtype_name(input->dtype),
				  .min = s.min <= s.max ? s.min : 0,
				  .max = s.min <= s.max ? s.max : 0,
				  .samples = feed_samples(feed),
				  .made = field ? NULL : made_text(feed_made(feed, i)),
				  .shape = shape,
				  .transforms = field ? transforms_text(feed_data(feed), &cx->told) : NULL };

	if (alike > 1)
		fed.input = arena_strfmt(&cx->told, "%s and %zu more", input->name, alike - 1);
	if (alike)
		VEC_PUSH(&cx->fed, fed);
}

enum fettle_status fed_tell(struct context *cx, const char *purpose, const struct source *s,
			    struct looked *out)
{
	size_t n = s->feed ? feed_n_inputs(s->feed) : 0, i, k;
	struct span *spans = xcalloc(n + 1, sizeof(*spans));
	const char **shapes = xcalloc(n + 1, sizeof(*shapes));
	struct feed_batch b = FEED_BATCH_INIT;
	struct looked looked = { .has_labels = false };
	enum fettle_status st = FETTLE_OK;

	for (i = 0; i < n; i++)
		spans[i] = (struct span){ INFINITY, -INFINITY };
	for (k = 0; n && k < LOOKS && !st; k++) {
		if (k && look_at(s->feed, k) == look_at(s->feed, k - 1))
			continue;
		st = feed_read(s->feed, look_at(s->feed, k), &b, &cx->err);
		for (i = 0; i < n && !st; i++)
			widen(&spans[i], &b.inputs[i]);
		for (i = 0; !k && i < n && !st; i++)
			shapes[i] = shape_text(&b.inputs[i], &cx->told);
		if (!st)
			look_at_labels(&looked, &b.labels);
	}
	for (i = 0; i < n && !st; i++)
		tell(cx, purpose, s->feed, i, spans[i], shapes[i]);
	if (out)
		*out = looked;
	feed_batch_release(&b);
	free(shapes);
	free(spans);
	return st;
}

/* the samples that both begin with are the same */
static enum fettle_status begin_alike(const struct feed *a, const struct feed *b, bool *same, struct err *err)
{
	struct feed_batch x = FEED_BATCH_INIT, y = FEED_BATCH_INIT;
	enum fettle_status st = feed_read(a, 0, &x, err);
	size_t i;

	if (!st)
		st = feed_read(b, 0, &y, err);
	*same = !st && x.n_inputs;
	for (i = 0; !st && i < x.n_inputs && *same; i++) {
		struct tensor t = x.inputs[i], u = y.inputs[i];

		t.dims[0] = u.dims[0] = t.dims[0] < u.dims[0] ? t.dims[0] : u.dims[0];
		*same = t.rank && tensor_same_shape(&t, &u) && memcmp(t.data, u.data, tensor_bytes(&t)) == 0;
	}
	feed_batch_release(&x);
	feed_batch_release(&y);
	return st;
}

enum fettle_status fed_compare(struct context *cx, const char *what, const struct source *a,
			       const char *other, const struct source *b)
{
	enum fettle_status st = FETTLE_OK;
	bool same;

	if (!a->feed || !b->feed)
		return FETTLE_OK;
	same = path_same(a->data->path, b->data->path);
	if (!same)
		st = begin_alike(a->feed, b->feed, &same, &cx->err);
	if (!st && same)
		context_warn(cx,
			     "the %s data is the %s data (%s): what is chosen on samples does well on those "
			     "samples",
			     what, other, b->data->path);
	return st;
}
