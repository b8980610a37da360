/* Sessions: from memory as from a file, weights shared, every shape and type, and prepare(). */
#include "unit/unit.h"

#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/index.h"
#include "runtime/prepare.h"
#include "runtime/profile.h"
#include "unit/proto.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

static struct runtime *rt;
static char folder[] = "/tmp/fettle-test.XXXXXX";

static int start(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return runtime_new(&rt, &err) || !mkdtemp(folder) ? -1 : 0;
}

static int stop(void **state)
{
	(void)state;
	runtime_free(rt);
	return rmdir(folder);
}

static struct model *decode(struct build *b)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;

	assert_ok(build_decode(b, &m, NULL, &err), err);
	return m;
}

static struct session *from_memory(struct model *m)
{
	struct session_options so = { .threads = 1 };
	struct err err = ERR_INIT;
	struct session *s = NULL;

	assert_ok(session_new(&s, rt, m, &so, &err), err);
	return s;
}

/* y = relu(x @ w + b), with w large enough to be shared and not written into the model */
enum { IN = 24, OUT = 20 };

static void build_dense(struct build *b)
{
	float w[IN * OUT], bias[OUT];
	struct rng r;
	size_t i;

	rng_seed(&r, 1);
	for (i = 0; i < IN * OUT; i++)
		w[i] = (float)rng_normal(&r);
	for (i = 0; i < OUT; i++)
		bias[i] = (float)rng_normal(&r);
	build_init(b, 13);
	build_input(b, "x", DT_F32, DIMS(-1, IN));
	build_output(b, "y", DT_F32, DIMS(-1, OUT));
	build_weight(b, "w", DT_F32, DIMS(IN, OUT), w, sizeof(w));
	build_weight(b, "b", DT_F32, DIMS(OUT), bias, sizeof(bias));
	build_node(b, "MatMul", "x,w", "h");
	build_node(b, "Add", "h,b", "a");
	build_node(b, "Relu", "a", "y");
}

static void fill(float *x, size_t n, uint64_t seed)
{
	struct rng r;
	size_t i;

	rng_seed(&r, seed);
	for (i = 0; i < n; i++)
		x[i] = (float)rng_normal(&r);
}

static void memory_equals_file(void **state)
{
	static const size_t batches[] = { 3, 1, 7, 0 }; /* dynamic: each run may have another */
	struct session_options so = { .threads = 1 };
	char *path = xstrfmt("%s/m.onnx", folder);
	struct session *a, *b = NULL;
	struct err err = ERR_INIT;
	float x[7 * IN];
	struct model *m;
	struct build bld;
	size_t i;

	(void)state;
	build_dense(&bld);
	m = decode(&bld);
	assert_ok(model_save(m, path, &err), err);
	a = from_memory(m);
	assert_ok(session_open(&b, rt, path, &so, &err), err);
	assert_int_equal(session_n_inputs(a), 1);
	assert_int_equal(session_n_outputs(a), 1);
	assert_string_equal(session_input(a, 0)->name, "x");
	assert_int_equal(session_input(a, 0)->type.dtype, DT_F32);
	assert_int_equal(session_input(a, 0)->type.dims[0], -1);
	assert_int_equal(session_output(b, 0)->type.dims[1], OUT);
	fill(x, ARRAY_LEN(x), 2);
	for (i = 0; i < ARRAY_LEN(batches); i++) {
		struct tensor in = { DT_F32, 2, { (int64_t)batches[i], IN }, x }, ya, yb;

		assert_ok(session_run(a, &in, &ya, &err), err);
		assert_ok(session_run(b, &in, &yb, &err), err);
		assert_int_equal(ya.dims[0], batches[i]);
		assert_int_equal(ya.dims[1], OUT);
		assert_true(tensor_same_shape(&ya, &yb));
		if (tensor_bytes(&ya))
			assert_memory_equal(ya.data, yb.data, tensor_bytes(&ya));
	}
	session_free(a);
	session_free(b);
	model_free(m);
	build_release(&bld);
	unlink(path);
	free(path);
}

/*
 * The runtime's transpose optimizer rewrites a constant in place, under the same name. The weight is square,
 * so that nothing but the result would tell if the session then used the bytes we had given it.
 */
static void rewritten_weights_are_the_sessions_own(void **state)
{
	enum { N = 16 };
	struct session_options none = { .threads = 1, .level = OPT_NONE };
	float w[N * N], x[N * N], want[N * N];
	struct tensor in = { DT_F32, 3, { 1, N, N }, x }, out;
	struct err err = ERR_INIT;
	struct session *s = NULL;
	struct model *m;
	struct build b;
	const char *ends[][2] = { { "x", "t" }, { "p", "y" } };
	size_t i, k;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "x", DT_F32, DIMS(1, N, N));
	build_output(&b, "y", DT_F32, DIMS(1, N, N));
	fill(w, ARRAY_LEN(w), 6);
	fill(x, ARRAY_LEN(x), 7);
	build_weight(&b, "w", DT_F32, DIMS(1, N, N), w, sizeof(w));
	for (i = 0; i < 2; i++) {
		Onnx__AttributeProto *a;
		Onnx__NodeProto *n = build_node(&b, "Transpose", ends[i][0], ends[i][1]);

		a = build_attr(&b, n, "perm", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
		for (k = 0; k < 3; k++)
			BUILD_PUSH(&b, a->ints, a->n_ints, ((const int64_t[]){ 0, 2, 1 })[k]);
		if (!i)
			build_node(&b, "Mul", "t,w", "p");
	}
	m = decode(&b);
	assert_ok(session_new(&s, rt, m, &none, &err), err);
	assert_ok(session_run(s, &in, &out, &err), err);
	memcpy(want, out.data, sizeof(want));
	session_free(s);
	s = from_memory(m);
	assert_ok(session_run(s, &in, &out, &err), err);
	assert_memory_equal(out.data, want, sizeof(want));
	assert_memory_equal(model_init(m, "w")->t.data, w, sizeof(w)); /* and ours are untouched */
	session_free(s);
	model_free(m);
	build_release(&b);
}

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0, total = 0;

	assert_int_equal(fscanf(f, "%ld %ld", &total, &pages), 2);
	fclose(f);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Twenty sessions on one 32 MB weight. What holds of ONNX Runtime 1.30: each session keeps at most one copy of
 * its own, nothing is serialised, and a freed session gives back all it took.
 */
static void sessions_keep_one_copy_at_most(void **state)
{
	enum { ROWS = 8192, COLUMNS = 1024, SESSIONS = 20 };
	const size_t bytes = (size_t)ROWS * COLUMNS * sizeof(float);
	struct session *s[SESSIONS];
	struct err err = ERR_INIT;
	size_t before, i, n;
	struct model *m = NULL, *d[SESSIONS];
	uint8_t *packed;
	struct build b;
	float *w;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "i", DT_S64, DIMS(-1));
	build_output(&b, "y", DT_F32, DIMS(-1, COLUMNS));
	build_output(&b, "z", DT_F32, DIMS(ROWS, COLUMNS));
	build_input(&b, "one", DT_F32, DIMS(1));
	w = calloc(1, bytes);
	for (i = 0; i < ROWS; i++)
		w[i * COLUMNS] = (float)i;
	build_weight(&b, "w", DT_F32, DIMS(ROWS, COLUMNS), w, bytes);
	free(w);
	build_node(&b, "Gather", "w,i", "y");
	build_node(&b, "Add", "w,one", "z");
	packed = build_pack(&b, &n);
	assert_ok(model_decode(&m, packed, n, NULL, &err), err);
	session_free(from_memory(m)); /* what the first costs once */
	before = resident();
	for (i = 0; i < SESSIONS; i++) {
		d[i] = model_derive(m);
		assert_true(d[i]->arena.used < bytes / 100);
		s[i] = from_memory(d[i]);
		assert_ptr_equal(model_init(d[i], "w")->t.data, model_init(m, "w")->t.data);
	}
	/* 1.21 keeps another copy of each */
	assert_true(resident() < before + (runtime_minor() < 30 ? 2 : 1) * SESSIONS * bytes + bytes / 2);
	for (i = 0; i < SESSIONS; i++) {
		int64_t at[] = { 5, ROWS - 1 };
		struct tensor in[] = { { DT_S64, 1, { 2 }, at }, { DT_F32, 1, { 1 }, (float[]){ 1 } } },
			      out[2];

		assert_string_equal(session_input(s[i], 0)->name, "i");
		assert_ok(session_run(s[i], in, out, &err), err);
		assert_true(tensor_get(&out[0], 0) == 5 && tensor_get(&out[0], COLUMNS) == ROWS - 1);
		assert_true(tensor_get(&out[1], 7 * COLUMNS) == 8);
		session_free(s[i]);
		model_free(d[i]);
	}
	if (!SANITIZED) /* ASan keeps what is freed for a while; allocators may keep a copy or two of the twenty */
		assert_true(resident() < before + 2 * bytes);
	model_free(m);
	build_release(&b);
}

static void inputs_and_outputs_of_all_kinds(void **state)
{
	struct session *s;
	struct err err = ERR_INIT;
	struct model *m;
	struct build b;
	int64_t i64[] = { 1, -2, 3 };
	uint8_t u8[] = { 7, 8, 255 };
	uint8_t cond[] = { 1, 0, 1 };
	double f64[] = { 0.5, 1e300, -3 }, scalar = 42;
	struct tensor in[] = { { DT_S64, 1, { 3 }, i64 },
			       { DT_U8, 1, { 3 }, u8 },
			       { DT_BOOL, 1, { 3 }, cond },
			       { DT_F64, 1, { 3 }, f64 },
			       { DT_F64, 0, { 0 }, &scalar } },
		      out[4];

	(void)state;
	build_init(&b, 13);
	build_input(&b, "i64", DT_S64, DIMS(3));
	build_input(&b, "u8", DT_U8, DIMS(3));
	build_input(&b, "bool", DT_BOOL, DIMS(3));
	build_input(&b, "f64", DT_F64, DIMS(3));
	build_input(&b, "scalar", DT_F64, NULL, 0);
	build_node(&b, "Add", "i64,i64", "o0");
	build_node(&b, "Identity", "u8", "o1");
	build_node(&b, "Where", "bool,f64,scalar", "o2");
	build_node(&b, "Identity", "scalar", "o3");
	build_output(&b, "o0", DT_S64, DIMS(3));
	build_output(&b, "o1", DT_U8, DIMS(3));
	build_output(&b, "o2", DT_F64, DIMS(3));
	build_output(&b, "o3", DT_F64, NULL, 0);
	m = decode(&b);
	s = from_memory(m);
	assert_int_equal(session_n_inputs(s), 5);
	assert_int_equal(session_n_outputs(s), 4);
	assert_ok(session_run(s, in, out, &err), err);
	assert_memory_equal(out[0].data, ((int64_t[]){ 2, -4, 6 }), 24);
	assert_memory_equal(out[1].data, u8, 3);
	assert_memory_equal(out[2].data, ((double[]){ 0.5, 42, -3 }), 24);
	assert_int_equal(out[3].rank, 0);
	assert_true(tensor_get(&out[3], 0) == 42);
	session_free(s);
	model_free(m);
	build_release(&b);
}

static void wrong_inputs_are_errors(void **state)
{
	float x[2 * IN] = { 0 };
	const struct {
		const char *why;
		struct tensor in;
		enum fettle_status want;
	} rows[] = {
		{ "right", { DT_F32, 2, { 2, IN }, x }, FETTLE_OK },
		{ "another width", { DT_F32, 2, { 1, IN - 1 }, x }, FETTLE_INVALID },
		{ "another rank", { DT_F32, 1, { IN }, x }, FETTLE_INVALID },
		{ "another type", { DT_S32, 2, { 2, IN }, x }, FETTLE_INVALID },
		{ "no type", { DT_NONE, 2, { 2, IN }, x }, FETTLE_UNSUPPORTED },
		{ "strings", { DT_STRING, 2, { 2, IN }, x }, FETTLE_UNSUPPORTED },
		{ "no rank", { DT_F32, -1, { 0 }, x }, FETTLE_UNSUPPORTED },
		{ "a negative dimension", { DT_F32, 2, { -1, IN }, x }, FETTLE_INVALID },
		{ "right again", { DT_F32, 2, { 1, IN }, x }, FETTLE_OK },
	};
	struct session *s;
	struct model *m;
	struct build b;
	size_t i;

	(void)state;
	build_dense(&b);
	m = decode(&b);
	s = from_memory(m);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct tensor out;
		enum fettle_status st = session_run(s, &rows[i].in, &out, &err);

		if (st != rows[i].want || (st && !str_starts(err.msg, "cannot run the model: ")))
			fail_msg("%s: status %d, %s", rows[i].why, (int)st, err.msg);
	}
	session_free(s);
	model_free(m);
	build_release(&b);
}

static void unknown_ops_are_named(void **state)
{
	static const struct {
		const char *op, *domain;
	} rows[] = { { "Frobnicate", "com.example" },
		     { "Frobnicate", "" },
		     { "Frobnicate", "com.microsoft" } };
	struct session_options so = { .threads = 1 };
	struct session *s = NULL;
	struct model *m;
	struct build b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		enum fettle_status st;

		build_init(&b, 13);
		if (*rows[i].domain)
			build_opset(&b, rows[i].domain, 1);
		build_input(&b, "x", DT_F32, DIMS(2));
		build_output(&b, "y", DT_F32, DIMS(2));
		build_node(&b, rows[i].op, "x", "y")->domain = arena_strdup(&b.a, rows[i].domain);
		m = decode(&b);
		st = session_new(&s, rt, m, &so, &err);
		if ((st != FETTLE_UNSUPPORTED && st != FETTLE_INVALID) || !strstr(err.msg, rows[i].op))
			fail_msg("status %d, %s", (int)st, err.msg);
		model_free(m);
		build_release(&b);
	}
	{
		struct err err = ERR_INIT;

		assert_int_equal(session_open(&s, rt, "/nowhere/m.onnx", &so, &err), FETTLE_INVALID);
		assert_non_null(strstr(err.msg, "/nowhere/m.onnx"));
	}
}

static void profiles_are_written(void **state)
{
	char *prefix = xstrfmt("%s/profile", folder), *file = NULL;
	struct session_options so = { .threads = 1, .profile = prefix };
	struct session *s = NULL;
	struct err err = ERR_INIT;
	struct bytes json = BYTES_INIT;
	float x[IN] = { 0 };
	struct tensor in = { DT_F32, 2, { 1, IN }, x }, out;
	struct model *m;
	struct build b;

	(void)state;
	build_dense(&b);
	m = decode(&b);
	assert_ok(session_new(&s, rt, m, &so, &err), err);
	assert_ok(session_run(s, &in, &out, &err), err);
	assert_ok(session_end_profile(s, &file, &err), err);
	assert_true(str_starts(file, prefix));
	assert_ok(file_map(file, &json, &err), err);
	assert_non_null(memmem(json.p, json.n, "kernel_time", 11));
	bytes_release(&json);
	session_free(s);
	model_free(m);
	build_release(&b);
	unlink(file);
	free(file);
	free(prefix);
}

static void count_node(void *self, const char *node, const char *op, double seconds, const void *shapes)
{
	(void)node;
	(void)op;
	(void)shapes;
	assert_true(seconds >= 0);
	++*(size_t *)self;
}

/* It computes what another session computes. */
static void profiled_session_is_kept(void **state)
{
	struct build b;
	struct model *m;
	struct session *kept = NULL, *fresh;
	struct err err = ERR_INIT;
	float x[2 * IN];
	struct tensor in = { DT_F32, 2, { 2, IN }, x }, y, z;
	size_t nodes = 0;
	const struct profile_options o = {
		.session = { .threads = 1 }, .inputs = &in, .runs = PROFILE_LEAST, .keep = &kept
	};

	(void)state;
	build_dense(&b);
	m = decode(&b);
	fill(x, 2 * IN, 3);
	assert_ok(profile_model(rt, m, NULL, &o, count_node, &nodes, &err), err);
	assert_true(nodes > 0);
	assert_non_null(kept);
	fresh = from_memory(m);
	assert_ok(session_run(kept, &in, &y, &err), err);
	assert_ok(session_run(fresh, &in, &z, &err), err);
	assert_memory_equal(y.data, z.data, tensor_bytes(&z));
	session_free(fresh);
	session_free(kept);
	model_free(m);
	build_release(&b);
}

static void options_do_not_change_results(void **state)
{
	static const struct session_options rows[] = {
		{ .threads = 1 },
		{ .threads = 2 },
		{ .threads = 0 },
		{ .threads = 1, .low_memory = true },
		{ .threads = 1, .level = OPT_NONE },
		{ .threads = 1, .level = OPT_BASIC },
		{ .threads = 1, .level = OPT_ALL },
	};
	struct err err = ERR_INIT;
	float x[5 * IN], first[5 * OUT];
	struct tensor in = { DT_F32, 2, { 5, IN }, x }, out;
	struct model *m;
	struct build b;
	size_t i, k;

	(void)state;
	build_dense(&b);
	m = decode(&b);
	fill(x, ARRAY_LEN(x), 3);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct session *s = NULL;

		assert_ok(session_new(&s, rt, m, &rows[i], &err), err);
		assert_ok(session_run(s, &in, &out, &err), err);
		if (!i)
			memcpy(first, out.data, sizeof(first));
		for (k = 0; k < ARRAY_LEN(first); k++)
			assert_true(fabs(tensor_get(&out, k) - (double)first[k]) < 1e-4);
		session_free(s);
	}
	model_free(m);
	build_release(&b);
}

static void build_conv_bn(struct build *b)
{
	static const char *const bn[] = { "scale", "shift", "mean", "var" };
	float w[4 * 3 * 3 * 3], v[4];
	size_t i, k;

	build_init(b, 13);
	build_input(b, "x", DT_F32, DIMS(-1, 3, 8, 8));
	build_output(b, "y", DT_F32, DIMS(-1, 4, 6, 6));
	fill(w, ARRAY_LEN(w), 4);
	build_weight(b, "w", DT_F32, DIMS(4, 3, 3, 3), w, sizeof(w));
	for (i = 0; i < ARRAY_LEN(bn); i++) {
		for (k = 0; k < 4; k++)
			v[k] = 0.5f + (float)(i + k) / 4;
		build_weight(b, bn[i], DT_F32, DIMS(4), v, sizeof(v));
	}
	build_weight(b, "two", DT_F32, NULL, 0, (float[]){ 2 }, 4);
	build_weight(b, "three", DT_F32, NULL, 0, (float[]){ 3 }, 4);
	build_node(b, "Conv", "x,w", "c");
	build_node(b, "BatchNormalization", "c,scale,shift,mean,var", "n");
	build_node(b, "Mul", "two,three", "six");
	build_node(b, "Mul", "n,six", "y");
}

static bool has_op(const struct model *m, const char *op)
{
	size_t i;

	for (i = 0; i < m->nodes.n; i++)
		if (node_is(m->nodes.v[i], op))
			return true;
	return false;
}

static void prepare_folds(void **state)
{
	char *path = xstrfmt("%s/m.onnx", folder);
	struct err err = ERR_INIT;
	float x[2 * 3 * 8 * 8];
	struct tensor in = { DT_F32, 4, { 2, 3, 8, 8 }, x }, want, got;
	struct model *m, *p = NULL;
	struct session *a, *b;
	struct build bld;
	size_t i;

	(void)state;
	build_conv_bn(&bld);
	m = decode(&bld);
	assert_ok(model_save(m, path, &err), err);
	assert_ok(prepare(&p, rt, path, &err), err);
	assert_true(has_op(p, "Conv"));
	assert_false(has_op(p, "BatchNormalization"));
	assert_true(p->nodes.n <=
		    2); /* the product of constants is gone; its factor may be in the Conv, too */
	assert_string_equal(p->outputs[0].name, "y");
	for (i = 0; i < p->nodes.n; i++) {
		const struct value *v = model_value(p, p->nodes.v[i]->out[0]);

		assert_non_null(v);
		assert_int_equal(v->type.dtype, DT_F32);
		assert_int_equal(v->type.rank, 4);
	}
	unlink(path); /* nothing of the prepared model is in it */
	fill(x, ARRAY_LEN(x), 5);
	a = from_memory(m);
	b = from_memory(p);
	assert_ok(session_run(a, &in, &want, &err), err);
	assert_ok(session_run(b, &in, &got, &err), err);
	assert_true(tensor_same_shape(&want, &got));
	for (i = 0; i < (size_t)tensor_count(&want); i++)
		assert_true(fabs(tensor_get(&want, i) - tensor_get(&got, i)) < 1e-3);
	session_free(a);
	session_free(b);
	model_free(p);
	model_free(m);
	build_release(&bld);
	free(path);
}

/* a value that others read, too, keeps its BatchNorm where it is */
static void prepare_does_not_fold_what_it_may_not(void **state)
{
	char *path = xstrfmt("%s/m.onnx", folder);
	struct err err = ERR_INIT;
	struct model *m, *p = NULL;
	struct build b;

	(void)state;
	build_conv_bn(&b);
	build_output(&b, "c", DT_F32, DIMS(-1, 4, 6, 6));
	m = decode(&b);
	assert_ok(model_save(m, path, &err), err);
	assert_ok(prepare(&p, rt, path, &err), err);
	assert_true(has_op(p, "BatchNormalization"));
	assert_int_equal(p->n_outputs, 2);
	model_free(p);
	model_free(m);
	assert_int_equal(prepare(&p, rt, "/nowhere/m.onnx", &err), FETTLE_INVALID);
	build_release(&b);
	unlink(path);
	free(path);
}

/* weights in 4 bits are no type of ours, but the runtime knows them */
static void opaque_weights_reach_the_runtime(void **state)
{
	enum { INT4 = 22, ROWS = 32, COLUMNS = 64 };
	unsigned char w[ROWS * COLUMNS / 2];
	struct err err = ERR_INIT;
	float scale = 0.5f, one[ROWS] = { 0 };
	struct tensor in = { DT_F32, 2, { 1, ROWS }, one }, out;
	struct session *s;
	struct model *m;
	struct build b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(w); i++)
		w[i] = (unsigned char)(i % 8 | (7 - i % 8) << 4); /* the low half comes first */
	build_init(&b, 21);
	b.m->ir_version = 10;
	build_input(&b, "x", DT_F32, DIMS(-1, ROWS));
	build_output(&b, "y", DT_F32, DIMS(-1, COLUMNS));
	build_weight(&b, "w", (enum dtype)INT4, DIMS(ROWS, COLUMNS), w, sizeof(w));
	build_weight(&b, "s", DT_F32, NULL, 0, &scale, 4);
	build_node(&b, "DequantizeLinear", "w,s", "f");
	build_node(&b, "MatMul", "x,f", "y");
	m = decode(&b);
	s = from_memory(m);
	one[3] = 1;
	assert_ok(session_run(s, &in, &out, &err), err);
	for (i = 0; i < COLUMNS; i++) {
		size_t at = 3 * COLUMNS + i;
		int nibble = at % 2 ? w[at / 2] >> 4 : w[at / 2] & 15;

		assert_true(tensor_get(&out, i) == nibble * 0.5);
	}
	session_free(s);
	model_free(m);
	build_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_equals_file),
		cmocka_unit_test(rewritten_weights_are_the_sessions_own),
		cmocka_unit_test(sessions_keep_one_copy_at_most),
		cmocka_unit_test(inputs_and_outputs_of_all_kinds),
		cmocka_unit_test(wrong_inputs_are_errors),
		cmocka_unit_test(unknown_ops_are_named),
		cmocka_unit_test(profiles_are_written),
		cmocka_unit_test(profiled_session_is_kept),
		cmocka_unit_test(options_do_not_change_results),
		cmocka_unit_test(prepare_folds),
		cmocka_unit_test(prepare_does_not_fold_what_it_may_not),
		cmocka_unit_test(opaque_weights_reach_the_runtime),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
