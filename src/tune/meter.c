/* What a plan's model costs: latency, size, memory, and the share of it that runs in integers. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "quantize/precision.h"
#include "runtime/probe.h"
#include "tune/lab.h"

/* Plans that run the same kernels are measured once. */
struct meter {
	struct map objectives; /* kernels_hash() of a plan -> index into measured */
	VEC(double) measured;  /* objective, latency and memory of each */
	struct map shares;     /* kernels_hash() of a plan -> index into int8_shares */
	VEC(double) int8_shares;
	struct arena names;
	double baseline_latency;
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

/* a sample, or what looks like one where there is no data */
static enum fettle_status timing_inputs(struct lab *l, struct feed_batch *b, struct tensor **made_up,
					struct err *err)
{
	if (l->one)
		return feed_read(l->one, 0, b, err);
	*made_up = xcalloc(session_n_inputs(l->fp32), sizeof(**made_up));
	return fake_inputs(l->fp32, 1, 1, true, *made_up, err);
}

enum fettle_status lab_latency(struct lab *l, const struct plan *p, double seconds, struct latency times[2],
			       struct err *err)
{
	struct feed_batch b = FEED_BATCH_INIT;
	struct session_options so = { .threads = l->o.threads, .level = l->o.level };
	struct session *pair[2] = { l->fp32, NULL }, *own = NULL;
	struct model *m;
	struct tensor *inputs[2], *made_up = NULL;
	size_t i;
	double start;
	enum fettle_status st;

	if (lab_threads(l) == l->o.threads) {
		st = lab_session(l, p, WEIGHTS_AS_PLANNED, &pair[1], err);
	} else { /* on as many threads as the user will have */
		st = lab_model(l, p, WEIGHTS_AS_PLANNED, &m, err);
		if (!st)
			st = session_new(&own, l->rt, m, &so, err);
		pair[1] = own;
	}
	start = clock_now();
	if (!st)
		st = timing_inputs(l, &b, &made_up, err);
	if (!st) {
		inputs[0] = inputs[1] = made_up ? made_up : b.inputs;
		st = evaluate_latency(pair, inputs, 2, seconds, lab_go_on_uncounted, l, times, err);
	}
	for (i = 0; i < 2 && !st; i++)
		times[i].median /= (double)(b.n ? b.n : 1);
	for (i = 0; made_up && i < session_n_inputs(l->fp32); i++)
		tensor_free(&made_up[i]);
	free(made_up);
	feed_batch_release(&b);
	session_free(own);
	l->times.latency += clock_now() - start;
	return st;
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

	st = lab_model(l, p, WEIGHTS_AS_PLANNED, &m, err);
	if (!st)
		st = model_save(m, path, err);
	if (!st)
		st = evaluate_footprint(l->o.helper, path, NULL, 1, l->o.threads, bytes, err);
	unlink(path);
	free(path);
	return st;
}

/* a twentieth of an evaluation: enough to be worth something, too little to be felt */
static double latency_budget(const struct lab *l)
{
	return fmin(fmax(0.05 * l->pass_seconds, 0.03), 0.5);
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
		st = lab_model(l, p, WEIGHTS_AS_PLANNED, &q, err);
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

static enum fettle_status measure(struct lab *l, struct trial *t, double *value, struct err *err)
{
	struct meter *m = meter_of(l);
	const struct plan *p = &t->plan;
	const double *w = l->o.weights;
	bool only_latency = !w[LAB_SIZE] && !w[LAB_FOOTPRINT] && !w[LAB_ACCURACY];
	double plan, sum = 0;
	struct latency times[2];
	size_t bytes = 0;
	struct model *q;
	enum fettle_status st = FETTLE_OK;

	if (only_latency || w[LAB_LATENCY] > 0) {
		st = lab_latency(l, p, latency_budget(l), times, err);
		if (st)
			return st;
		if (!m->baseline_latency)
			m->baseline_latency = times[0].median;
		plan = 1 / times[1].speedup.value; /* in units of fp32 */
		sum += w[LAB_LATENCY] > 0 ? judged(l, LAB_LATENCY, plan, 1) : plan;
		t->latency = plan * m->baseline_latency;
	}
	if (w[LAB_SIZE] > 0) {
		st = lab_model(l, p, WEIGHTS_AS_PLANNED, &q, err);
		if (!st)
			st = lab_size(q, &bytes, err);
		sum += judged(l, LAB_SIZE, (double)bytes, (double)(l->baseline_size ? l->baseline_size : 1));
	}
	if (!st && w[LAB_FOOTPRINT] > 0) {
		if (!m->baseline_footprint)
			st = evaluate_footprint(l->o.helper, l->o.model, NULL, 1, l->o.threads,
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

/* Once for all plans that run the same kernels. */
enum fettle_status lab_objective(void *self, struct trial *t, double *value, struct err *err)
{
	struct lab *l = self;
	struct meter *m = meter_of(l);
	char key[FINGERPRINT_LEN];
	size_t known;
	double start = clock_now();
	enum fettle_status st = FETTLE_OK;

	kernels_hash(l, &t->plan, key);
	known = map_get(&m->objectives, key);
	if (known != MAP_NONE) {
		*value = m->measured.v[known];
		if (m->baseline_latency)
			t->latency = m->measured.v[known + 1];
		t->footprint_bytes = (size_t)m->measured.v[known + 2];
	} else {
		st = measure(l, t, value, err);
		if (!st) {
			map_set(&m->objectives, arena_strdup(&m->names, key), m->measured.n);
			VEC_PUSH(&m->measured, *value);
			VEC_PUSH(&m->measured, t->latency);
			VEC_PUSH(&m->measured, (double)t->footprint_bytes);
		}
	}
	t->measure_s += clock_now() - start;
	return st;
}
