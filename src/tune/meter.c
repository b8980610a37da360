/* What a plan's model costs: latency, size, memory, and the share of it that runs in integers. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "quantize/precision.h"
#include "tune/deployed.h"
#include "tune/timing.h"

/* Plans that run the same kernels are measured once. */
struct meter {
	struct map objectives; /* kernels_hash() of a plan -> index into measured */
	VEC(double) measured;  /* objective, latency (in units of fp32) and memory of each */
	struct map shares;     /* kernels_hash() of a plan -> index into int8_shares */
	VEC(double) int8_shares;
	struct arena names;
	double baseline_latency; /* seconds */
	size_t baseline_footprint;
};

static struct meter *meter_of(struct lab *l)
{
	if (!l->meter)
		l->meter = xcalloc(1, sizeof(*l->meter));
	return l->meter;
}

void meter_free(struct meter *m)
{
	if (!m)
		return;
	map_release(&m->objectives);
	VEC_RELEASE(&m->measured);
	map_release(&m->shares);
	VEC_RELEASE(&m->int8_shares);
	arena_release(&m->names);
	free(m);
}

enum fettle_status lab_size(struct model *m, size_t *bytes, struct err *err)
{
	struct packed packed = PACKED_INIT;
	enum fettle_status st;
	size_t i;

	st = model_pack(m, 1024, &packed, err);
	if (st)
		return st;
	*bytes = packed.n;
	for (i = 0; i < packed.n_weights; i++)
		*bytes += tensor_bytes(&packed.weights[i]->t);
	packed_release(&packed);
	return FETTLE_OK;
}

static enum fettle_status model_footprint(struct lab *l, const struct plan *p, size_t *bytes, struct err *err)
{
	char *path = xstrfmt("%s/footprint.onnx", l->o.workspace);
	struct model *m;
	enum fettle_status st;

	st = lab_model(l, p, WEIGHTS_ANY, &m, err);
	if (!st)
		st = model_save(m, path, err);
	if (!st)
		st = evaluate_footprint(l->o.helper, path, NULL, 1, -1, l->o.threads, bytes, err);
	unlink(path);
	free(path);
	return st;
}

/*
 * What one comparison may take at most: a tenth of an evaluation, and less when comparisons have taken a third of one. Most
 * are decided long before. On a network whose evaluation takes next to no time, 0.03 s: the nine rounds that are the least
 * to decide anything.
 */
static struct latency_limits compare_limits(const struct lab *l)
{
	double share = l->times.latency < 0.33 * l->pass_seconds ? 0.1 : 0.02;

	return (struct latency_limits){ .seconds = fmin(fmax(share * l->pass_seconds, 0.03), 2),
					.equal = LATENCY_EQUAL };
}

/* What a plan's speed and size are known by: it shares them with plans that run the same kernels. */
static void kernels_hash(const struct lab *l, const struct plan *p, char out[FINGERPRINT_LEN])
{
	struct plan alike = PLAN_INIT;

	plan_alike(p, &l->t->space, &alike);
	plan_hash(&alike, &l->t->space, out);
	plan_release(&alike);
}

enum fettle_status lab_share(struct lab *l, const struct plan *p, double *share, struct err *err)
{
	struct meter *m = meter_of(l);
	bool *integer = xcalloc(l->s->ops.n + 1, sizeof(*integer));
	char key[FINGERPRINT_LEN];
	size_t known, i;
	struct model *q;
	enum fettle_status st = FETTLE_OK;

	kernels_hash(l, p, key);
	known = map_get(&m->shares, key);
	if (known == MAP_NONE) {
		st = lab_model(l, p, WEIGHTS_ANY, &q, err);
		if (!st)
			st = integer_ops(q, l->rt, &l->s->ops, integer, err);
		for (*share = i = 0; !st && i < l->s->ops.n; i++)
			*share += integer[i] ? l->s->ops.v[i].macs / l->s->ops.total_macs : 0;
		if (!st) {
			map_set(&m->shares, arena_strdup(&m->names, key), m->int8_shares.n);
			VEC_PUSH(&m->int8_shares, *share);
		}
	} else {
		*share = m->int8_shares.v[known];
	}
	free(integer);
	return st;
}

/* in units of the fp32 model's, so that objectives can be added; lower is better */
static double judged(const struct lab *l, enum lab_objective which, double value, double fp32)
{
	return l->o.weights[which] * (l->o.higher[which] ? fp32 / value : value / fp32);
}

bool lab_latency_alone(const struct lab *l)
{
	const double *w = l->o.weights;

	return !(w[LAB_SIZE] > 0) && !(w[LAB_FOOTPRINT] > 0) && !(w[LAB_ACCURACY] > 0);
}

/* The latency of a plan that was timed, in units of fp32; NaN: not known. */
static double known_latency(struct lab *l, const struct trial *t)
{
	const struct meter *m = meter_of(l);
	char key[FINGERPRINT_LEN];
	size_t known;

	kernels_hash(l, &t->plan, key);
	known = map_get(&m->objectives, key);
	if (known != MAP_NONE)
		return m->measured.v[known + 1];
	return lab_latency_alone(l) ? t->score.objective : NAN; /* as a history has it */
}

/* in units of the fp32 model's */
static enum fettle_status measure_latency(struct lab *l, const struct plan *p, const struct trial *against,
					  double *value, struct err *err)
{
	const struct latency_limits limits = compare_limits(l);
	double other = against ? known_latency(l, against) : 1;
	struct meter *m = meter_of(l);
	struct latency times[2];
	enum fettle_status st;

	if (!isfinite(other)) {
		against = NULL;
		other = 1;
	}
	st = against ? lab_time(l, p, &against->plan, l->o.deployed.compared, &limits, times, err)
		     : lab_time_to_report(l, p, l->o.deployed.compared, times, err);
	if (st)
		return st;
	if (!m->baseline_latency)
		m->baseline_latency = deployed_scale(&l->o.deployed) * times[0].median / other;
	*value = other / times[1].speedup.value;
	return FETTLE_OK;
}

static enum fettle_status measure(struct lab *l, struct trial *t, const struct trial *against, double *value,
				  double *latency, struct err *err)
{
	struct meter *m = meter_of(l);
	const struct plan *p = &t->plan;
	const double *w = l->o.weights;
	double sum = 0;
	size_t bytes = 0;
	struct model *q;
	enum fettle_status st = FETTLE_OK;

	*latency = NAN;
	if (lab_latency_alone(l) || w[LAB_LATENCY] > 0) {
		st = measure_latency(l, p, against, latency, err);
		if (st)
			return st;
		sum += w[LAB_LATENCY] > 0 ? judged(l, LAB_LATENCY, *latency, 1) : *latency;
		t->latency = *latency * m->baseline_latency;
	}
	if (w[LAB_SIZE] > 0) {
		st = lab_model(l, p, WEIGHTS_ANY, &q, err);
		if (!st)
			st = lab_size(q, &bytes, err);
		sum += judged(l, LAB_SIZE, (double)bytes, (double)(l->baseline_size ? l->baseline_size : 1));
	}
	if (!st && w[LAB_FOOTPRINT] > 0) {
		if (!m->baseline_footprint)
			st = evaluate_footprint(l->o.helper, l->o.model, NULL, 1, -1, l->o.threads,
						&m->baseline_footprint, err);
		if (!st)
			st = model_footprint(l, p, &bytes, err);
		if (!st)
			sum += judged(l, LAB_FOOTPRINT, (double)bytes, (double)m->baseline_footprint);
		t->footprint_bytes = st ? 0 : bytes;
	}
	*value = sum;
	return st;
}

static void keep_measured(struct meter *m, const char *key, double value, double latency, size_t footprint)
{
	map_set(&m->objectives, arena_strdup(&m->names, key), m->measured.n);
	VEC_PUSH(&m->measured, value);
	VEC_PUSH(&m->measured, latency);
	VEC_PUSH(&m->measured, (double)footprint);
}

void lab_recall(struct lab *l, const struct plan *p, double latency, double fp32_seconds)
{
	struct meter *m = meter_of(l);
	char key[FINGERPRINT_LEN];

	kernels_hash(l, p, key);
	if (!lab_latency_alone(l) || map_get(&m->objectives, key) != MAP_NONE)
		return;
	if (!m->baseline_latency)
		m->baseline_latency = deployed_scale(&l->o.deployed) * fp32_seconds;
	keep_measured(m, key, l->o.weights[LAB_LATENCY] > 0 ? judged(l, LAB_LATENCY, latency, 1) : latency,
		      latency, 0);
}

/* The first trial that meets the target is timed as precisely as is reported, which it then need not be again. */
static bool is_to_report(const struct lab *l, const struct trial *t, const struct trial *against)
{
	return t->score.met && !against && lab_latency_alone(l);
}

/* Once for all plans that run the same kernels. */
enum fettle_status lab_objective(void *self, struct trial *t, const struct trial *against, double *value,
				 struct err *err)
{
	struct lab *l = self;
	struct meter *m = meter_of(l);
	char key[FINGERPRINT_LEN];
	size_t known;
	double start = clock_now(), latency;
	enum fettle_status st = FETTLE_OK;

	kernels_hash(l, &t->plan, key);
	known = map_get(&m->objectives, key);
	if (known != MAP_NONE && !is_to_report(l, t, against)) {
		*value = m->measured.v[known];
		if (m->baseline_latency)
			t->latency = m->measured.v[known + 1] * m->baseline_latency;
		t->footprint_bytes = (size_t)m->measured.v[known + 2];
	} else {
		st = measure(l, t, against, value, &latency, err);
		if (!st)
			keep_measured(m, key, *value, latency, t->footprint_bytes);
	}
	t->measure_s += clock_now() - start;
	return st;
}
