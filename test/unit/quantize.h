/* What the tests of quantization share: calibration from one run, closeness, and looking into graphs. */
#ifndef UNIT_QUANTIZE_H
#define UNIT_QUANTIZE_H

#include "unit/unit.h"
#include "unit/build.h"
#include "unit/know.h"

#include <unistd.h>

#include "quantize/subject.h"
#include "runtime/prepare.h"
#include "runtime/probe.h"

/* Values of one run of the fp32 model, without the machinery of calibration. */
struct seen {
	struct map index;
	struct tensor *v;
	char **names;
	size_t n;
};

static inline enum fettle_status seen_range(void *self, const char *value, const struct qsetting *s,
					    struct range *out, struct err *err)
{
	struct seen *r = self;
	size_t i = map_get(&r->index, value), k, n;
	struct range_options o = {
		.algorithm = s->algorithm, .parameter = s->parameter, .dtype = s->dtype, .scheme = s->scheme
	};
	struct observer_scratch *scratch;
	struct observer *watch;
	enum fettle_status st;

	if (i == MAP_NONE)
		return fail(err, FETTLE_INVALID, "no range for %s", value);
	*out = (struct range){ 0, 0 };
	n = (size_t)tensor_count(&r->v[i]);
	for (k = 0; k < n; k++) {
		out->min = fminf(out->min, (float)tensor_get(&r->v[i], k));
		out->max = fmaxf(out->max, (float)tensor_get(&r->v[i], k));
	}
	if (s->algorithm == RANGE_MINMAX)
		return FETTLE_OK;
	watch = xcalloc(1, sizeof(*watch));
	scratch = observer_scratch_new();
	observer_init(watch, &(struct observer_options){ .name = value });
	st = observer_add(watch, scratch, r->v[i].data, 1, n, err);
	if (!st)
		st = range_compute(watch, &o, out, err);
	observer_release(watch);
	observer_scratch_free(scratch);
	free(watch);
	return st;
}

static inline enum fettle_status seen_mean(void *self, const char *value, int axis, size_t channels,
					   double *means, struct err *err)
{
	struct seen *r = self;
	size_t i = map_get(&r->index, value), n, inner = 1, k;
	int d;

	if (i == MAP_NONE)
		return fail(err, FETTLE_INVALID, "no means for %s", value);
	if (axis < 0)
		axis += r->v[i].rank;
	if (r->v[i].dims[axis] != (int64_t)channels)
		return fail(err, FETTLE_INVALID, "%s has other channels", value);
	n = (size_t)tensor_count(&r->v[i]);
	for (d = axis + 1; d < r->v[i].rank; d++)
		inner *= (size_t)r->v[i].dims[d];
	memset(means, 0, channels * sizeof(*means));
	for (k = 0; k < n; k++)
		means[k / inner % channels] += tensor_get(&r->v[i], k) * (double)channels / (double)n;
	return FETTLE_OK;
}

/* runs the model on made-up inputs and keeps these values; a value may be listed twice */
static inline void observe(struct seen *r, struct runtime *rt, struct subject *s, const char *const *values,
			   size_t n)
{
	struct observed o = OBSERVED_INIT;
	struct tensor in[4], *out = xcalloc(n + 1, sizeof(*out));
	struct err err = ERR_INIT;
	size_t i;

	r->v = xcalloc(n + 1, sizeof(*r->v));
	r->names = xcalloc(n + 1, sizeof(*r->names));
	for (i = 0; i < n; i++)
		if (map_get(&r->index, values[i]) == MAP_NONE) {
			r->names[r->n] = xstrdup(values[i]);
			map_set(&r->index, r->names[r->n], r->n);
			r->n++;
		}
	if (r->n) {
		assert_ok(observed_open(&o, rt, s->m, (const char *const *)r->names, r->n, 1, &err), err);
		assert_ok(fake_inputs(o.session, 2, 4, true, in, &err), err);
		assert_ok(session_run(o.session, in, out, &err), err);
		for (i = 0; i < session_n_inputs(o.session); i++)
			tensor_free(&in[i]);
	}
	for (i = 0; i < r->n; i++) {
		r->v[i] = out[i];
		assert_ok(tensor_alloc(&r->v[i], "value", &err), err);
		memcpy(r->v[i].data, out[i].data, tensor_bytes(&out[i]));
	}
	observed_close(&o);
	free(out);
}

static inline void seen_release(struct seen *r)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		tensor_free(&r->v[i]);
		free(r->names[i]);
	}
	map_release(&r->index);
	free(r->v);
	free(r->names);
}

/* signal-to-noise ratio in dB of b's outputs against a's, on the inputs that were observed */
static inline double compare(struct runtime *rt, struct model *a, struct model *b)
{
	struct session *sa = NULL, *sb = NULL;
	struct tensor in[4], oa[8], ob[8];
	struct err err = ERR_INIT;
	double signal = 0, noise = 0;
	size_t i, k;

	assert_ok(session_new(&sa, rt, a, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(session_new(&sb, rt, b, &(struct session_options){ .threads = 1 }, &err), err);
	assert_int_equal(session_n_outputs(sa), session_n_outputs(sb));
	assert_ok(fake_inputs(sa, 2, 4, true, in, &err), err);
	assert_ok(session_run(sa, in, oa, &err), err);
	assert_ok(session_run(sb, in, ob, &err), err);
	for (i = 0; i < session_n_outputs(sa); i++) {
		assert_string_equal(session_output(sa, i)->name, session_output(sb, i)->name);
		assert_true(tensor_same_shape(&oa[i], &ob[i]));
		for (k = 0; k < (size_t)tensor_count(&oa[i]); k++) {
			double x = tensor_get(&oa[i], k), d = tensor_get(&ob[i], k) - x;

			signal += x * x;
			noise += d * d;
		}
	}
	for (i = 0; i < session_n_inputs(sa); i++)
		tensor_free(&in[i]);
	session_free(sa);
	session_free(sb);
	return 10 * log10((signal + 1e-30) / (noise + 1e-30));
}

static inline size_t count_ops(const struct model *m, const char *op)
{
	size_t i, n = 0;

	for (i = 0; i < m->nodes.n; i++)
		n += strcmp(m->nodes.v[i]->op, op) == 0;
	return n;
}

static inline char *describe(const struct model *m)
{
	static char buf[512];
	size_t i, used = 0;

	for (i = 0; i < m->nodes.n && used < sizeof(buf) - 1; i++)
		used += (size_t)snprintf(buf + used, sizeof(buf) - used, " %s", m->nodes.v[i]->op);
	return buf;
}

#endif
