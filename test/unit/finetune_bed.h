/* A small model, samples and all that finetune() takes. Tests have begin() and end() around them. */
#ifndef FINETUNE_BED_H
#define FINETUNE_BED_H

#include "unit/unit.h"
#include "unit/build.h"
#include "unit/data_files.h"
#include "unit/know.h"

#include "finetune/finetune.h"
#include "runtime/prepare.h"

static char *dir;

struct bed {
	struct runtime *rt;
	struct subject *s;
	struct dataset *set;
	struct feed *feed;
	struct calibration *c;
	struct statistics *values; /* that the plan needs; bed_learn() adds what a changed one does */
	struct qplan plan;
	struct finetune_source source;
};

/* pictures of few patterns: neighbours go together, as they do in real ones */
static inline char *make_data(size_t n, size_t side)
{
	struct zip_out z = { .zip64 = false };
	size_t size = 3 * side * side, i, k;
	float *x = xcalloc(n * size, sizeof(*x));
	struct rng r;
	struct str npz;
	char shape[64];

	rng_seed(&r, 5);
	for (i = 0; i < n; i++) {
		double a = rng_normal(&r), b = rng_normal(&r), phase = 6 * rng_unit(&r);

		for (k = 0; k < size; k++)
			x[i * size + k] =
				(float)(a + b * sin(0.3 * (double)(k % side) + phase) + 0.3 * rng_normal(&r));
	}
	snprintf(shape, sizeof(shape), "(%zu, 3, %zu, %zu)", n, side, side);
	zip_add(&z, "x.npy", npy_of("<f4", false, shape, x, n * size * sizeof(*x)), false);
	npz = zip_end(&z);
	free(x);
	return put_file(dir, "x.npz", &npz);
}

static inline enum fettle_status find_range(void *self, const char *value, const struct qsetting *s,
					    struct range *out, struct err *err)
{
	struct range_options o = { s->algorithm, s->parameter, s->dtype, s->scheme };

	return range_compute(calibration_find(self, value), &o, out, err);
}

/* what the plan, as it is now, needs to be known */
static inline void bed_learn(struct bed *b)
{
	struct err err = ERR_INIT;

	assert_ok(know(b->values, b->s->z, &b->plan, find_range, NULL, b->c, &err), err);
}

/* a model and samples from files; the first are taken, as many as `limit` says (0: all) */
static inline void bed_load(struct bed *b, const char *path, const char *data, size_t limit)
{
	struct feed_options o = { .batch = 8, .limit = limit };
	struct input_spec spec = { .dtype = DT_F32 };
	const struct value *in;
	struct qplan_defaults d;
	struct err err = ERR_INIT;

	*b = (struct bed){ .plan = QPLAN_INIT };
	assert_ok(runtime_new(&b->rt, &err), err);
	assert_ok(subject_open(&b->s, b->rt, path, &err), err);
	in = &b->s->m->inputs[0];
	spec.name = in->name;
	spec.rank = in->type.rank;
	memcpy(spec.dims, in->type.dims, sizeof(spec.dims));
	assert_ok(dataset_open(&b->set, data, NULL, &err), err);
	assert_ok(feed_open(&b->feed, b->set, &spec, 1, &o, &err), err);
	assert_ok(subject_calibrate(b->s, b->rt, NULL, b->feed, &(struct calibrate_options){ .threads = 1 },
				    &b->c, &err),
		  err);
	d = qplan_defaults(&b->s->cpu);
	qplan_default(&b->plan, &b->s->ops, &b->s->g, &d);
	b->values = statistics_new();
	bed_learn(b);
	b->source = (struct finetune_source){
		.rt = b->rt, .s = b->s, .values = b->values, .feed = b->feed, .threads = 1
	};
}

/* a model of `graph`, from x to y, and pictures for it */
static inline void bed_open(struct bed *b, size_t samples, size_t side, const char *graph)
{
	char *path = xstrfmt("%s/m.onnx", dir), *data = make_data(samples, side), *in;

	in = xstrfmt("x:?x3x%zux%zu", side, side);
	build_model(path, 13, in, graph, "y");
	bed_load(b, path, data, 0);
	free(path);
	free(data);
	free(in);
}

static inline void bed_close(struct bed *b)
{
	statistics_free(b->values);
	qplan_release(&b->plan);
	calibration_free(b->c);
	feed_free(b->feed);
	dataset_free(b->set);
	subject_free(b->s);
	runtime_free(b->rt);
}

static inline struct rounding *tune(struct bed *b, const struct finetune *o, struct finetune_report *report)
{
	struct rounding *r = NULL;
	struct err err = ERR_INIT;

	b->plan.recipes.finetune = *o;
	assert_ok(finetune(&b->plan, &b->source, &r, report, &err), err);
	return r;
}

static inline size_t differences(const struct rounding *a, const struct rounding *b)
{
	size_t i, k, n = 0;

	for (i = 0; i < a->n; i++) {
		assert_int_equal(!a->v[i], !b->v[i]);
		for (k = 0; a->v[i] && k < (size_t)tensor_count(&a->v[i]->w.q); k++)
			n += tensor_get(&a->v[i]->w.q, k) != tensor_get(&b->v[i]->w.q, k);
		for (k = 0; a->v[i] && k < a->v[i]->n_shift; k++)
			n += a->v[i]->shift && a->v[i]->shift[k] != b->v[i]->shift[k];
	}
	return n;
}

static inline int begin(void **state)
{
	(void)state;
	dir = temp_tree();
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	remove_tree(dir);
	return 0;
}

#endif
