/* Models whose weights stay in the file beside them: what is made of them while saving is, bit for bit, what is made in memory. */
#include "unit/quantize.h"

#include <dirent.h>
#include <sys/stat.h>

#include "quantize/by_parts.h"
#include "quantize/grams.h"
#include "quantize/precision.h"
#include "unit/data_files.h"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";

/* v takes two bands; e is a table, and t, which is small, is read at once */
static const char body[] = "e = 3000x32; i = Cast(x) to=7; g = Gather(e, i); w = 32x3072; a = MatMul(g, w); "
			   "b = 3072; c = Add(a, b); "
			   "d = Relu(c); v = 3072x3000; f = MatMul(d, v); h = Reshape(f, s); s = [-1,3000]; "
			   "u = 20x3000; k = 20; "
			   "l = Gemm(h, u, k) transB=1; t = 20x16; y = MatMul(l, t)";

static void weight_only(struct qplan *plan, const struct subject *s, bool symmetric,
			enum block_algorithm algorithm)
{
	struct qplan_defaults d = qplan_defaults(&s->cpu);

	d.approach = APPROACH_WEIGHT;
	d.blocks = (struct block_setting){ { 4, 32, symmetric }, algorithm, 4 };
	qplan_default(plan, &s->ops, &s->g, &d);
}

/* MatMuls one after the other and beside each other, and a sum that skips some */
static const char two_blocks[] =
	"w = 128x160; a = MatMul(x, w); b = Relu(a); v = 160x128; c = MatMul(b, v); e = Add(c, x); "
	"u = 128x160; f = MatMul(e, u); t = 128x160; h = MatMul(e, t); i = Mul(f, h); y = Add(i, a)";

/* A model whose weights are in a file of their own. */
static void build_split_at(int opset, const char *path, const char *inputs, const char *lines)
{
	struct model *m = NULL;
	struct err err = ERR_INIT;
	char plain[64];

	snprintf(plain, sizeof(plain), "%s/plain.onnx", dir);
	build_model(plain, opset, inputs, lines, "y");
	assert_ok(model_load(&m, plain, &err), err);
	assert_ok(model_save_split(m, path, 0, &err), err);
	model_free(m);
}

static void build_split(const char *path, const char *inputs, const char *lines)
{
	build_split_at(13, path, inputs, lines);
}

static struct subject *open_model(const char *path, bool outside)
{
	struct subject *s = NULL;
	struct err err = ERR_INIT;

	if (outside)
		assert_ok(subject_open_outside(&s, rt, path, true, &err), err);
	else
		assert_ok(subject_open(&s, rt, path, &err), err);
	return s;
}

static void make(struct subject *s, bool symmetric, const char *out)
{
	struct qplan plan = QPLAN_INIT;
	struct precisions is = PRECISIONS_INIT;
	struct model *q = NULL;
	struct err err = ERR_INIT;

	weight_only(&plan, s, symmetric, BLOCK_RTN);
	assert_ok(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err), err);
	assert_ok(precisions_of(&is, rt, s, &(struct precisions_wanted){ APPROACH_WEIGHT, &plan, &plan, q },
				&err),
		  err);
	assert_int_equal(is.weight, 4);
	assert_true(is.int8_share > 0.99 && is.int8_share <= 1);
	assert_ok(model_save(q, out, &err), err);
	precisions_release(&is);
	model_free(q);
	qplan_release(&plan);
}

static void same_constants(const char *a_path, const char *b_path)
{
	struct model *a = NULL, *b = NULL;
	struct err err = ERR_INIT;
	size_t i, compared = 0;

	assert_ok(model_load(&a, a_path, &err), err);
	assert_ok(model_load(&b, b_path, &err), err);
	assert_int_equal(a->nodes.n, b->nodes.n);
	assert_int_equal(a->n_inputs, b->n_inputs);
	for (i = 0; i < a->inits.n; i++) {
		struct init *x = a->inits.v[i], *y = model_init(b, x->name);

		if (!y)
			fail_msg("%s: not in the other model", x->name);
		assert_ok(model_weight(a, x, &err), err);
		assert_ok(model_weight(b, y, &err), err);
		if (!tensor_same_shape(&x->t, &y->t) ||
		    memcmp(x->t.data, y->t.data, tensor_bytes(&x->t)) != 0)
			fail_msg("%s: another value", x->name);
		compared++;
	}
	assert_int_equal(compared, b->inits.n);
	model_free(a);
	model_free(b);
}

static void same_as_in_memory(void **state)
{
	char split[64], data[64], by_memory[64], by_file[64];
	struct subject *s;
	struct err err = ERR_INIT;
	struct stat sb;
	int symmetric;
	size_t i, outside = 0;

	(void)state;
	snprintf(split, sizeof(split), "%s/split.onnx", dir);
	snprintf(by_memory, sizeof(by_memory), "%s/memory.onnx", dir);
	snprintf(by_file, sizeof(by_file), "%s/file.onnx", dir);
	build_split(split, "x:?x4", body);
	for (symmetric = 0; symmetric < 2; symmetric++) {
		s = open_model(split, false);
		make(s, symmetric, by_memory);
		subject_free(s);
		s = open_model(split, true);
		for (i = 0; i < s->m->inits.n; i++)
			outside += init_is_outside(s->m->inits.v[i]);
		assert_int_equal(outside, 4); /* e, w, v, u */
		outside = 0;
		assert_int_equal(s->m->n_inputs, 1);
		make(s, symmetric, by_file);
		for (i = 0; i < s->m->inits.n; i++) /* and still nothing was fetched */
			outside += init_is_outside(s->m->inits.v[i]);
		assert_int_equal(outside, 4);
		outside = 0;
		subject_free(s);
		same_constants(by_memory, by_file);
	}
	/* the weight of a model that has shrunk in the meantime */
	s = open_model(split, true);
	snprintf(data, sizeof(data), "%s/split.onnx.data", dir);
	assert_int_equal(stat(data, &sb), 0);
	assert_int_equal(truncate(data, sb.st_size / 2), 0);
	{
		struct qplan plan = QPLAN_INIT;
		struct model *q = NULL;
		DIR *d;
		struct dirent *e;
		size_t files = 0;

		weight_only(&plan, s, false, BLOCK_RTN);
		assert_ok(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err), err);
		snprintf(by_file, sizeof(by_file), "%s/not.onnx", dir);
		assert_int_equal(model_save(q, by_file, &err), FETTLE_INVALID);
		assert_non_null(strstr(err.msg, "cannot save"));
		assert_non_null(strstr(err.msg, "bytes at"));
		for (d = opendir(dir); (e = readdir(d));)
			files += strncmp(e->d_name, "not.onnx", 8) == 0;
		closedir(d);
		assert_int_equal(files, 0);
		model_free(q);
		qplan_release(&plan);
	}
	subject_free(s);
}

typedef VEC(float *) VEC_OF_FLOATS;

/* Samples for one input, x. */
static struct dataset *samples(void)
{
	enum { SAMPLES = 12, TOKENS = 6, WIDE = 128 };
	float *x = xcalloc(SAMPLES * TOKENS * WIDE, sizeof(*x));
	struct zip_out z = { .n = 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	struct str b;
	struct rng r;
	char *path;
	size_t i;

	rng_seed(&r, 1);
	for (i = 0; i < SAMPLES * TOKENS * WIDE; i++)
		x[i] = (float)(rng_normal(&r) * (i % WIDE < 8 ? 5 : 1));
	zip_add(&z, "x.npy", npy_of("<f4", false, "(12, 6, 128)", x, SAMPLES * TOKENS * WIDE * sizeof(*x)),
		false);
	b = zip_end(&z);
	path = put_file(dir, "x.npz", &b);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	free(path);
	free(x);
	return d;
}

/* bytes: of the weights of a part; 0: by default */
static void in_parts(struct block_store *blocks, struct subject *s, const struct qplan *plan,
		     struct feed *feed, size_t bytes)
{
	const struct parts p = { .rt = rt, .s = s, .plan = plan, .feed = feed, .bytes = bytes, .threads = 1 };
	struct err err = ERR_INIT;

	assert_ok(blocks_by_parts(blocks, &p, &err), err);
}

static void save_known(struct subject *s, const struct qplan *plan, const struct block_store *blocks,
		       const char *path)
{
	struct model *q = NULL;
	struct err err = ERR_INIT;

	assert_ok(quantize(s->z, &(struct knowledge){ .blocks = blocks }, plan, &q, &err), err);
	assert_ok(model_save(q, path, &err), err);
	model_free(q);
}

/* bytes of codes that differ, as a share */
static double different(const char *a_path, const char *b_path)
{
	struct model *a = NULL, *b = NULL;
	struct err err = ERR_INIT;
	size_t i, k, n = 0, differ = 0;

	assert_ok(model_load(&a, a_path, &err), err);
	assert_ok(model_load(&b, b_path, &err), err);
	for (i = 0; i < a->inits.n; i++) {
		struct init *x = a->inits.v[i], *y = model_init(b, x->name);

		if (x->t.dtype != DT_U8 || x->t.rank != 3)
			continue;
		if (!y) { /* the name says by which algorithm */
			char *name =
				xstrfmt("%.*srtn_codes", (int)(strstr(x->name, "gptq") - x->name), x->name);

			y = model_init(b, name);
			free(name);
		}
		assert_non_null(y);
		assert_ok(model_weight(a, x, &err), err);
		assert_ok(model_weight(b, y, &err), err);
		for (k = 0; k < tensor_bytes(&x->t); k++, n++)
			differ += ((uint8_t *)x->t.data)[k] != ((uint8_t *)y->t.data)[k];
	}
	model_free(a);
	model_free(b);
	assert_true(n == (128 * 160 * 3 + 160 * 128) / 2 || n == 160 * 128 + 160 * 128 / 2);
	return (double)differ / (double)n;
}

/* the model with the weights of ops before `end` as they have become */
static struct model *half_done(struct subject *s, const struct qplan *plan, const struct block_store *blocks,
			       size_t end, VEC_OF_FLOATS *own)
{
	struct model *m = model_derive(s->m);
	struct err err = ERR_INIT;
	size_t i;
	int64_t r, c;

	for (i = 0; i < end; i++) {
		struct node *n = m->nodes.v[i];
		const struct block_packed *w;
		struct tensor t;
		float *rows = NULL, *floats;
		char *key;

		if (plan->ops[i].mode != OP_WEIGHT)
			continue;
		key = block_key(s->m->nodes.v[i], &plan->ops[i].blocks);
		w = block_store_find(blocks, key);
		free(key);
		assert_ok(block_packed_floats(w, "a test", &rows, &err), err);
		t = model_init(m, n->in[1])->t;
		t.data = floats = xcalloc((size_t)tensor_count(&t), sizeof(float));
		for (r = 0; r < w->outputs; r++)
			for (c = 0; c < w->inputs; c++)
				floats[c * w->outputs + r] = rows[r * w->inputs + c];
		free(rows);
		VEC_PUSH(own, floats);
		n->in[1] = model_add_init(m, model_fresh(m, "now"), &t)->name;
	}
	model_sweep(m);
	return m;
}

/* Op by op, each seen in a model that is run for it alone. */
static void one_by_one(struct subject *s, struct feed *feed, const struct qplan *plan,
		       struct block_store *blocks)
{
	struct err err = ERR_INIT;
	size_t i, k;

	for (i = 0; i < s->ops.n; i++) {
		const struct node *n = s->m->nodes.v[i];
		const struct gram_input in = { n->in[0], s->ops.v[i].inputs, false };
		VEC_OF_FLOATS own = { NULL, 0, 0 };
		struct grams *grams = NULL;
		struct model *m;
		char *key;
		bool known;

		if (plan->ops[i].mode != OP_WEIGHT)
			continue;
		key = block_key(n, &plan->ops[i].blocks);
		known = block_store_find(blocks, key) != NULL;
		free(key);
		if (known)
			continue;
		m = half_done(s, plan, blocks, plan->recipes.true_sequential ? i : 0, &own);
		assert_ok(grams_observe(&grams, &(struct calibrate_on){ rt, m, feed }, &in, 1,
					&(struct calibrate_options){ .threads = 1 }, &err),
			  err);
		assert_ok(
			block_store_make(blocks, s->m, n, &plan->ops[i].blocks, grams_find(grams, &in), &err),
			err);
		grams_free(grams);
		model_free(m);
		for (k = 0; k < own.n; k++)
			free(own.v[k]);
		VEC_RELEASE(&own);
	}
}

/* In sequence: parts, in memory or not, come to what models that are quantized up to each op come to. */
static void a_sequence_sees_what_is_quantized(void **state)
{
	static const struct input_spec x = { "x", DT_F32, 3, { -1, 6, 128 } };
	char split[64], naive[64], parts[64];
	struct dataset *d = samples();
	struct feed *feed = NULL;
	struct qplan plan = QPLAN_INIT;
	struct block_store *blocks;
	struct subject *s;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	snprintf(split, sizeof(split), "%s/split2.onnx", dir);
	snprintf(naive, sizeof(naive), "%s/naive.onnx", dir);
	snprintf(parts, sizeof(parts), "%s/parts2.onnx", dir);
	build_split(split, "x:?x6x128", two_blocks);
	assert_ok(feed_open(&feed, d, &x, 1, &(struct feed_options){ .batch = 5 }, &err), err);
	for (i = 0; i < 4;
	     i++) { /* in memory; then part by part, whatever their size; at last out of sequence */
		s = open_model(split, i == 1 || i == 2);
		weight_only(&plan, s, false, BLOCK_GPTQ);
		plan.recipes.true_sequential = i < 3;
		blocks = block_store_new();
		in_parts(blocks, s, &plan, feed, i == 2 ? 1 : 0);
		save_known(s, &plan, blocks, parts);
		block_store_free(blocks);
		qplan_release(&plan);
		subject_free(s);

		s = open_model(split, false);
		weight_only(&plan, s, false, BLOCK_GPTQ);
		plan.recipes.true_sequential = true;
		blocks = block_store_new();
		one_by_one(s, feed, &plan, blocks);
		save_known(s, &plan, blocks, naive);
		if (i < 3)
			assert_true(different(naive, parts) < 0.01);
		else
			assert_true(different(naive, parts) > 0.03);
		block_store_free(blocks);
		qplan_release(&plan);
		subject_free(s);
	}
	feed_free(feed);
	dataset_free(d);
}

/* A weight that two ops share goes by what both read, whichever parts they are in. */
static void shared_weights_go_by_all_readers(void **state)
{
	static const struct input_spec x = { "x", DT_F32, 3, { -1, 6, 128 } };
	static const size_t sizes[] = { 1, 0 };
	char split[64], naive[64], parts[64];
	struct dataset *d = samples();
	struct feed *feed = NULL;
	struct qplan plan = QPLAN_INIT;
	struct err err = ERR_INIT;
	struct subject *s;
	size_t i, c, op = 0;

	(void)state;
	snprintf(split, sizeof(split), "%s/split3.onnx", dir);
	snprintf(naive, sizeof(naive), "%s/naive3.onnx", dir);
	snprintf(parts, sizeof(parts), "%s/parts3.onnx", dir);
	build_split(split, "x:?x6x128",
		    "w = 128x160; a = MatMul(x, w); b = Relu(a); v = 160x128; c = MatMul(b, v); u = 160x128; "
		    "e = MatMul(b, u); g = Mul(c, e); f = MatMul(g, w); y = Tanh(f)");
	assert_ok(feed_open(&feed, d, &x, 1, &(struct feed_options){ .batch = 5 }, &err), err);
	for (i = 0; i < 2; i++) {
		struct block_store *blocks = block_store_new(), *all = block_store_new();
		const struct gram_input in[] = { { "x", 128, false }, { "g", 128, false } };
		float *gram = xcalloc(128 * 128, sizeof(*gram));
		struct grams *grams = NULL;
		struct block_seen both;

		s = open_model(split, true);
		weight_only(&plan, s, false, BLOCK_GPTQ);
		in_parts(blocks, s, &plan, feed, sizes[i]);
		save_known(s, &plan, blocks, parts);
		qplan_release(&plan);
		subject_free(s);

		s = open_model(split, false);
		weight_only(&plan, s, false, BLOCK_GPTQ);
		assert_ok(grams_observe(&grams, &(struct calibrate_on){ rt, s->m, feed }, in, 2,
					&(struct calibrate_options){ .threads = 1 }, &err),
			  err);
		both = *grams_find(grams, &in[0]);
		for (c = 0; c < 128 * 128; c++)
			gram[c] = (both.gram[c] + grams_find(grams, &in[1])->gram[c]) / 2;
		both.gram = gram;
		both.rows *= 2;
		for (op = 0; strcmp(s->m->nodes.v[op]->in[0], "x") != 0;)
			op++;
		assert_ok(block_store_make(all, s->m, s->m->nodes.v[op], &plan.ops[op].blocks, &both, &err),
			  err);
		one_by_one(s, feed, &plan, all); /* what is there already stays */
		save_known(s, &plan, all, naive);
		assert_true(different(naive, parts) < 0.02);
		grams_free(grams);
		free(gram);
		block_store_free(all);
		block_store_free(blocks);
		qplan_release(&plan);
		subject_free(s);
	}
	feed_free(feed);
	dataset_free(d);
}

/* A part for each weight, or all in one: gptq comes to what it comes to in memory, and not to what rtn does. */
static void parts_see_what_the_whole_sees(void **state)
{
	static const struct input_spec x = { "x", DT_F32, 3, { -1, 6, 128 } };
	static const size_t sizes[] = { 1, 200000, 0 };
	char split[64], by_memory[64], by_parts[64];
	struct dataset *d = samples();
	struct feed *feed = NULL;
	struct qplan plan = QPLAN_INIT;
	struct block_store *blocks = block_store_new();
	struct subject *s;
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	snprintf(split, sizeof(split), "%s/split.onnx", dir);
	snprintf(by_memory, sizeof(by_memory), "%s/memory.onnx", dir);
	snprintf(by_parts, sizeof(by_parts), "%s/parts.onnx", dir);
	build_split(split, "x:?x6x128", two_blocks);
	assert_ok(feed_open(&feed, d, &x, 1, &(struct feed_options){ .batch = 5 }, &err), err);

	s = open_model(split, false);
	weight_only(&plan, s, false, BLOCK_GPTQ);
	one_by_one(s, feed, &plan, blocks);
	save_known(s, &plan, blocks, by_memory);
	block_store_free(blocks);
	qplan_release(&plan);
	subject_free(s);

	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		s = open_model(split, true);
		blocks = block_store_new();
		weight_only(&plan, s, false, BLOCK_GPTQ);
		assert_true(parts_needed(&plan));
		in_parts(blocks, s, &plan, feed, sizes[i]);
		save_known(s, &plan, blocks, by_parts);
		assert_true(different(by_memory, by_parts) <
			    0.01); /* sums of floats differ in their last bits */
		block_store_free(blocks);
		qplan_release(&plan);
		weight_only(&plan, s, false, BLOCK_RTN);
		assert_true(!parts_needed(&plan));
		save_known(s, &plan, NULL, by_parts);
		assert_true(different(by_memory, by_parts) > 0.05);
		qplan_release(&plan);
		subject_free(s);
	}
	feed_free(feed);
	dataset_free(d);
}

enum { VOCABULARY = 3000, WIDTH = 32, IDS = 5 };

/* What a model in a file makes of an input. free() it. */
static float *run_file(const char *path, struct tensor in, size_t *n)
{
	struct tensor out;
	struct session *s = NULL;
	struct model *m = NULL;
	struct err err = ERR_INIT;
	float *y;

	assert_ok(model_load(&m, path, &err), err);
	assert_ok(session_new(&s, rt, m, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(session_run(s, &in, &out, &err), err);
	*n = (size_t)tensor_count(&out);
	y = xcalloc(*n, sizeof(*y));
	memcpy(y, out.data, tensor_bytes(&out));
	session_free(s);
	model_free(m);
	return y;
}

/* how close what a model in a file makes is to other numbers, in dB */
static double close_to(const char *path, struct tensor in, const float *than)
{
	size_t i, n;
	float *y = run_file(path, in, &n);
	double noise = 0, signal = 0;

	for (i = 0; i < n; i++) {
		noise += (double)(y[i] - than[i]) * (double)(y[i] - than[i]);
		signal += (double)than[i] * (double)than[i];
	}
	free(y);
	return noise > 0 ? 10 * log10(signal / noise) : 200;
}

static struct tensor few_tokens(void)
{
	static int64_t ids[IDS] = { 0, 7, 2999, 1500, 42 };

	return (struct tensor){ .dtype = DT_S64, .rank = 2, .dims = { 1, IDS }, .data = ids };
}

static double closeness(const char *path, const float *than)
{
	return close_to(path, few_tokens(), than);
}

static float *logits_of(const char *path)
{
	size_t n;
	float *y = run_file(path, few_tokens(), &n);

	assert_int_equal(n, IDS * VOCABULARY);
	return y;
}

static size_t count_type(const char *path, const char *type)
{
	struct model *m = NULL;
	struct err err = ERR_INIT;
	size_t i, n = 0;

	assert_ok(model_load(&m, path, &err), err);
	for (i = 0; i < m->nodes.n; i++)
		n += strcmp(m->nodes.v[i]->op, type) == 0;
	model_free(m);
	return n;
}

static struct dataset *tokens(void)
{
	static int64_t ids[12 * IDS];
	struct zip_out z = { .n = 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	struct str b;
	char *path;
	size_t i;

	for (i = 0; i < 12 * IDS; i++)
		ids[i] = (int64_t)(i * 7919 % VOCABULARY);
	zip_add(&z, "i.npy", npy_of("<i8", false, "(12, 5)", ids, sizeof(ids)), false);
	b = zip_end(&z);
	path = put_file(dir, "i.npz", &b);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	free(path);
	return d;
}

/* A head that is the table, transposed: in memory the runtime folds that; here it is quantized all the same. */
static void a_tied_head_is_quantized(void **state)
{
	static const struct input_spec i_spec = { "i", DT_S64, 2, { -1, IDS } };
	static const enum block_algorithm by[] = { BLOCK_RTN, BLOCK_GPTQ };
	char split[64], memory[64], file[64];
	struct dataset *d = tokens();
	struct feed *feed = NULL;
	struct err err = ERR_INIT;
	float *fp32;
	size_t a, k, table;
	int outside;

	(void)state;
	snprintf(split, sizeof(split), "%s/tied.onnx", dir);
	snprintf(memory, sizeof(memory), "%s/tied_memory.onnx", dir);
	snprintf(file, sizeof(file), "%s/tied_file.onnx", dir);
	build_split(
		split, "i:#?x5",
		"e = 3000x32; g = Gather(e, i); h = Tanh(g); t = Transpose(e) perm=1,0; y = MatMul(h, t)");
	assert_ok(feed_open(&feed, d, &i_spec, 1, &(struct feed_options){ .batch = 5 }, &err), err);
	fp32 = logits_of(split);
	for (a = 0; a < ARRAY_LEN(by); a++)
		for (table = 0; table < 2; table++) {
			for (outside = by[a] == BLOCK_GPTQ; outside < 2; outside++) {
				struct subject *s = open_model(split, outside);
				struct block_store *blocks = block_store_new();
				struct qplan plan = QPLAN_INIT;

				weight_only(&plan, s, false, by[a]);
				for (k = 0; k < s->ops.n; k++)
					if (s->ops.v[k].rule && s->ops.v[k].rule->kind == OP_TABLE && table &&
					    runtime_table_bits(s->m)) {
						plan.ops[k].mode = OP_WEIGHT;
						plan.ops[k].blocks.algorithm = BLOCK_RTN;
					}
				if (parts_needed(&plan))
					in_parts(blocks, s, &plan, feed, 0);
				save_known(s, &plan, blocks, outside ? file : memory);
				block_store_free(blocks);
				qplan_release(&plan);
				subject_free(s);
			}
			assert_int_equal(count_type(file, "MatMulNBits"), 1);
			assert_int_equal(count_type(file, "FusedMatMul") + count_type(file, "Transpose"), 0);
			if (closeness(file, fp32) < 15)
				fail_msg("%s, table %zu: %.1f dB from fp32", block_methods[by[a]]->name,
					 table, closeness(file, fp32));
			if (by[a] == BLOCK_RTN) {
				float *y = logits_of(memory);

				if (closeness(file, y) < 100)
					fail_msg("table %zu: %.1f dB from what is made in memory", table,
						 closeness(file, y));
				free(y);
			}
		}
	free(fp32);
	feed_free(feed);
	dataset_free(d);
}

/* In the QDQ form what was spilled comes back: the same model as with weights that stayed in memory. */
static void parts_in_the_qdq_form(void **state)
{
	static const struct input_spec x = { "x", DT_F32, 3, { -1, 6, 128 } };
	char split[64], saved[2][64];
	struct dataset *d = samples();
	struct tensor in = { .dtype = DT_F32, .rank = 3, .dims = { 3, 6, 128 } };
	struct feed *feed = NULL;
	struct feed_batch b = FEED_BATCH_INIT;
	struct err err = ERR_INIT;
	int symmetric, outside;
	float *fp32, *y;
	size_t n;

	(void)state;
	snprintf(split, sizeof(split), "%s/split4.onnx", dir);
	build_split_at(21, split, "x:?x6x128", two_blocks);
	assert_ok(feed_open(&feed, d, &x, 1, &(struct feed_options){ .batch = 3 }, &err), err);
	assert_ok(feed_read(feed, 0, &b, &err), err);
	in.data = b.inputs[0].data;
	fp32 = run_file(split, in, &n);
	for (symmetric = 0; symmetric < 2; symmetric++) {
		for (outside = 0; outside < 2; outside++) {
			struct subject *s = open_model(split, outside);
			struct block_store *blocks = block_store_new();
			struct qplan plan = QPLAN_INIT;

			snprintf(saved[outside], sizeof(saved[outside]), "%s/pairs%d.onnx", dir, outside);
			weight_only(&plan, s, symmetric, BLOCK_GPTQ);
			plan.format = FORMAT_QDQ_WEIGHTS;
			in_parts(blocks, s, &plan, feed, 0);
			save_known(s, &plan, blocks, saved[outside]);
			block_store_free(blocks);
			qplan_release(&plan);
			subject_free(s);
		}
		y = run_file(saved[0], in, &n);
		assert_int_equal(count_type(saved[1], "DequantizeLinear"), 4);
		if (close_to(saved[1], in, y) < 100 || close_to(saved[1], in, fp32) < 15)
			fail_msg("%.1f dB from what stayed in memory, %.1f dB from fp32",
				 close_to(saved[1], in, y), close_to(saved[1], in, fp32));
		free(y);
	}
	free(fp32);
	feed_batch_release(&b);
	feed_free(feed);
	dataset_free(d);
}

/* awq's scales go into the constant of the Mul that makes the input, whichever parts its readers are in. */
static void parts_scale_inputs(void **state)
{
	static const struct input_spec spec = { "x", DT_F32, 3, { -1, 6, 128 } };
	static const struct {
		enum block_algorithm by;
		size_t part;
		bool sequence;
	} ways[] = { { BLOCK_RTN, 0, false },
		     { BLOCK_AWQ, 0, false },
		     { BLOCK_AWQ, 1, false },
		     { BLOCK_AWQ, 0, true } };
	struct tensor x = { .dtype = DT_F32, .rank = 3, .dims = { 3, 6, 128 } };
	char split[64], saved[64];
	struct dataset *d = samples();
	struct feed *feed = NULL;
	struct feed_batch b = FEED_BATCH_INIT;
	struct err err = ERR_INIT;
	double db[ARRAY_LEN(ways)];
	float *fp32;
	size_t i, n;

	(void)state;
	snprintf(split, sizeof(split), "%s/scaled.onnx", dir);
	snprintf(saved, sizeof(saved), "%s/scaled_saved.onnx", dir);
	build_split(split, "x:?x6x128",
		    "g = 128; a = Mul(x, g); w = 128x160; b = MatMul(a, w); v = 128x160; c = MatMul(a, v); y "
		    "= Add(b, c)");
	assert_ok(feed_open(&feed, d, &spec, 1, &(struct feed_options){ .batch = 3 }, &err), err);
	assert_ok(feed_read(feed, 3, &b, &err), err);
	x.data = b.inputs[0].data;
	fp32 = run_file(split, x, &n);
	for (i = 0; i < ARRAY_LEN(ways); i++) {
		struct subject *s = open_model(split, true);
		struct block_store *blocks = block_store_new();
		struct qplan plan = QPLAN_INIT;

		weight_only(&plan, s, false, ways[i].by);
		plan.recipes.true_sequential = ways[i].sequence;
		for (n = 0; n < s->ops.n; n++)
			plan.ops[n].blocks.level = 0;
		if (parts_needed(&plan))
			in_parts(blocks, s, &plan, feed, ways[i].part);
		save_known(s, &plan, blocks, saved);
		db[i] = close_to(saved, x, fp32);
		block_store_free(blocks);
		qplan_release(&plan);
		subject_free(s);
	}
	if (!(db[1] > db[0] + 1 && db[2] > db[0] + 1 && db[1] > db[3] + 0.5))
		fail_msg("rtn %.1f dB, awq %.1f dB, in two parts %.1f dB, without scales %.1f dB", db[0],
			 db[1], db[2], db[3]);
	free(fp32);
	feed_batch_release(&b);
	feed_free(feed);
	dataset_free(d);
}

static int setup(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return !mkdtemp(dir) || runtime_new(&rt, &err);
}

static int teardown(void **state)
{
	char *command = xstrfmt("rm -rf %s", dir);
	int code = system(command);

	(void)state;
	free(command);
	runtime_free(rt);
	return code;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_in_memory),
					    cmocka_unit_test(parts_see_what_the_whole_sees),
					    cmocka_unit_test(a_sequence_sees_what_is_quantized),
					    cmocka_unit_test(shared_weights_go_by_all_readers),
					    cmocka_unit_test(parts_in_the_qdq_form),
					    cmocka_unit_test(a_tied_head_is_quantized),
					    cmocka_unit_test(parts_scale_inputs) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
