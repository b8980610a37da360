/*
 * Weight-only ops: each form is run by the runtime and compared with the fp32 op on the weights that its bits mean, unpacked
 * here one by one.
 */
#include "unit/quantize.h"

#include "quantize/precision.h"

static struct runtime *rt;
static char dir[] = "/tmp/fettle-test.XXXXXX";

static const struct row {
	const char *why, *inputs, *body;
	size_t ops;       /* MatMulNBits in the result */
	size_t constants; /* of codes: shared weights are there once */
} rows[] = {
	{ "MatMul", "x:?x6x64", "w = 64x24; y = MatMul(x, w)", 1, 1 },
	{ "MatMul of a matrix", "x:?x64", "w = 64x24; y = MatMul(x, w)", 1, 1 },
	{ "MatMul with four dimensions", "x:?x2x3x64", "w = 64x24; y = MatMul(x, w)", 1, 1 },
	{ "the last block is not full", "x:?x3x83", "w = 83x7; y = MatMul(x, w)", 1, 1 },
	{ "fewer inputs than a block", "x:?x3x17", "w = 17x5; y = MatMul(x, w)", 1, 1 },
	{ "Gemm", "x:?x64", "w = 64x24; b = 24; y = Gemm(x, w, b)", 1, 1 },
	{ "Gemm transposed", "x:?x64", "w = 24x64; b = 24; y = Gemm(x, w, b) transB=1", 1, 1 },
	{ "Gemm without bias", "x:?x64", "w = 24x64; y = Gemm(x, w) transB=1", 1, 1 },
	{ "Gemm with alpha and beta", "x:?x64", "w = 64x24; b = 24; y = Gemm(x, w, b) alpha=0.5 beta=-2.5", 1,
	  1 },
	{ "Gemm with a computed bias", "x:?x64,c:?x24", "w = 64x24; d = Relu(c); y = Gemm(x, w, d) beta=3.0",
	  1, 1 },
	{ "Gemm of a transposed input", "x:64x6", "w = 64x24; b = 24; y = Gemm(x, w, b) transA=1", 1, 1 },
	{ "two readers of one weight", "x:?x5x32,z:?x4x32",
	  "w = 32x32; a = MatMul(x, w); b = MatMul(z, w); y = Concat(a, b) axis=1", 2, 1 },
	{ "one weight both ways round", "x:?x32", "w = 32x32; a = Gemm(x, w); y = Gemm(a, w) transB=1", 2,
	  2 },
	{ "a chain", "x:?x6x64", "w = 64x32; a = MatMul(x, w); t = Relu(a); v = 32x48; y = MatMul(t, v)", 2,
	  2 },
};

/* the element of a row of packed codes: low bits first */
static int code_at(const uint8_t *row, int64_t i, int64_t bits)
{
	return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

/* The weight that a MatMulNBits node means, [n, k]. */
static float *unpacked(struct model *q, const struct node *n)
{
	const int64_t bits = node_int(n, "bits", 0), block = node_int(n, "block_size", 0);
	const int64_t inputs = node_int(n, "K", 0), outputs = node_int(n, "N", 0);
	const int64_t blocks = (inputs + block - 1) / block;
	struct init *codes = model_init(q, n->in[1]), *scales = model_init(q, n->in[2]),
		    *zeros = n->n_in > 3 ? model_init(q, n->in[3]) : NULL;
	struct err err = ERR_INIT;
	float *out = xcalloc((size_t)(inputs * outputs), sizeof(*out));
	int64_t row, i;

	assert_ok(model_weight(q, codes, &err), err);
	assert_ok(model_weight(q, scales, &err), err);
	if (zeros)
		assert_ok(model_weight(q, zeros, &err), err);
	assert_int_equal(codes->t.dtype, DT_U8);
	assert_int_equal(tensor_count(&codes->t), outputs * blocks * block * bits / 8);
	for (row = 0; row < outputs; row++)
		for (i = 0; i < inputs; i++) {
			const int64_t b = i / block;
			const uint8_t *c = (const uint8_t *)codes->t.data + row * blocks * block * bits / 8;
			const int zero = zeros ? code_at((const uint8_t *)zeros->t.data +
								 row * ((blocks * bits + 7) / 8),
							 b, bits)
					       : 1 << (bits - 1);

			out[row * inputs + i] = (float)(code_at(c, i, bits) - zero) *
						((const float *)scales->t.data)[row * blocks + b];
		}
	return out;
}

static const struct node *op_named(const struct model *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->nodes.n; i++)
		if (strcmp(m->nodes.v[i]->name, name) == 0)
			return m->nodes.v[i];
	return NULL;
}

/* The fp32 model with the weights that the quantized one has. free() what `data` lists. */
static struct model *with_weights_of(const struct subject *s, struct model *q, float **data)
{
	struct model *m = model_derive(s->m);
	size_t i;

	for (i = 0; i < s->ops.n; i++) {
		struct node *n = m->nodes.v[i];
		const struct node *by = op_named(q, s->ops.v[i].name);
		const float alpha = node_is(n, "Gemm") ? node_float(n, "alpha", 1) : 1;
		const int64_t k = by ? node_int(by, "K", 0) : 0, outputs = by ? node_int(by, "N", 0) : 0;
		struct tensor t = { .dtype = DT_F32, .rank = 2 };
		float *w;
		int64_t r, c;

		if (!by || strcmp(by->op, "MatMulNBits") != 0)
			continue;
		w = unpacked(q, by);
		data[i] = xcalloc((size_t)(k * outputs), sizeof(float));
		t.data = data[i];
		t.dims[0] = node_int(n, "transB", 0) ? outputs : k;
		t.dims[1] = node_int(n, "transB", 0) ? k : outputs;
		for (r = 0; r < outputs; r++)
			for (c = 0; c < k; c++)
				data[i][node_int(n, "transB", 0) ? r * k + c : c * outputs + r] =
					w[r * k + c] / alpha; /* which the node has still */
		n->in[1] = model_add_init(m, model_fresh(m, "unpacked"), &t)->name;
		free(w);
	}
	model_sweep(m);
	return m;
}

static size_t count_codes(const struct model *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->inits.n; i++)
		n += m->inits.v[i]->t.dtype == DT_U8 && m->inits.v[i]->t.rank == 3;
	return n;
}

static void weight_only(struct qplan *plan, const struct subject *s, const struct block_setting *how)
{
	struct qplan_defaults d = qplan_defaults(&s->cpu);

	d.approach = APPROACH_WEIGHT;
	d.blocks = *how;
	qplan_default(plan, &s->ops, &s->g, &d);
}

/* NULL, which is said: this runtime does not have the bits. */
static struct subject *open_row(const struct row *row, int opset, const struct block_setting *how,
				const char *what)
{
	struct subject *s = NULL;
	struct err err = ERR_INIT;
	char path[64];

	snprintf(path, sizeof(path), "%s/a.onnx", dir);
	build_model(path, opset, row->inputs, row->body, "y");
	assert_ok(subject_open(&s, rt, path, &err), err);
	if (runtime_weight_bits(s->m) >> how->format.bits & 1)
		return s;
	print_message("skipped: %s: this runtime does not have it\n", what);
	subject_free(s);
	return NULL;
}

static void run_case(const struct row *row, const struct block_setting *how)
{
	struct subject *s = NULL;
	struct model *q = NULL, *same;
	struct qplan plan = QPLAN_INIT;
	struct precisions is = PRECISIONS_INIT;
	struct err err = ERR_INIT;
	char what[128];
	float **data;
	double db;
	size_t i;

	snprintf(what, sizeof(what), "%s, %d bits, blocks of %d, %s, level %d", row->why, how->format.bits,
		 (int)how->format.block, how->format.symmetric ? "symmetric" : "asymmetric", how->level);
	s = open_row(row, 13, how, what);
	if (!s)
		return;
	weight_only(&plan, s, how);
	assert_ok(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err), err);
	if (count_ops(q, "MatMulNBits") != row->ops || count_codes(q) != row->constants)
		fail_msg("%s: %zu MatMulNBits with %zu codes, need %zu with %zu; ops:%s", what,
			 count_ops(q, "MatMulNBits"), count_codes(q), row->ops, row->constants, describe(q));
	data = xcalloc(s->ops.n, sizeof(*data));
	same = with_weights_of(s, q, data);
	db = compare(rt, same, q);
	if (db < (how->level == 4 ? 30 : 100))
		fail_msg("%s: %.1f dB from the unpacked weights", what, db);
	db = compare(rt, s->m, q);
	if (db < (how->format.bits == 8 ? 28 : how->format.bits == 4 ? 12 : 1))
		fail_msg("%s: %.1f dB from fp32", what, db);
	assert_ok(precisions_of(&is, rt, s, &(struct precisions_wanted){ APPROACH_WEIGHT, &plan, &plan, q },
				&err),
		  err);
	assert_int_equal(is.weight, row->ops);
	assert_true(is.int8_share == (how->level == 4 ? is.weight_share : 0));
	precisions_release(&is);
	for (i = 0; i < s->ops.n; i++)
		free(data[i]);
	free(data);
	model_free(same);
	model_free(q);
	qplan_release(&plan);
	subject_free(s);
}

/* all bits, blocks and schemes on one graph, and every graph with a few */
static void every_form_is_what_its_bits_mean(void **state)
{
	static const int bits[] = { 4, 8, 2 }, levels[] = { 0, 4, 1 };
	static const int64_t blocks[] = { 32, 16, 64, 128, 256 };
	size_t i, b, f, l, sym;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (b = 0; b < ARRAY_LEN(bits); b++)
			for (f = 0; f < (i == 0 || i == 3 ? ARRAY_LEN(blocks) : 1); f++)
				for (sym = 0; sym < 2; sym++)
					for (l = 0; l < (i ? 2 : 3); l++) {
						const struct block_setting how = {
							{ bits[b], blocks[f], sym }, BLOCK_RTN, levels[l]
						};

						if (!block_setting_check(&how, NULL))
							run_case(&rows[i], &how);
					}
}

/* What the DequantizeLinear of an op makes is what the bits of its MatMulNBits mean: nothing else is in the model then. */
static void check_dequantized(const char *what, struct model *q, struct model *nbits, const struct node *by)
{
	const int64_t k = node_int(by, "K", 0), n = node_int(by, "N", 0);
	const char *name = op_named(q, by->name)->in[1];
	struct model *m = model_derive(q);
	struct session *s = NULL;
	struct tensor in[4], out[1];
	struct err err = ERR_INIT;
	float *w = unpacked(nbits, by);
	int64_t r, c;
	size_t i;

	model_set_outputs(m, &name, 1);
	model_sweep(m);
	assert_ok(session_new(&s, rt, m, &(struct session_options){ .threads = 1 }, &err), err);
	assert_ok(fake_inputs(s, 2, 4, true, in, &err), err);
	assert_ok(session_run(s, in, out, &err), err);
	assert_true(out[0].rank == 2 && out[0].dims[0] == k && out[0].dims[1] == n);
	for (r = 0; r < k; r++)
		for (c = 0; c < n; c++)
			if (((const float *)out[0].data)[r * n + c] != w[c * k + r])
				fail_msg("%s: element %d, %d is %g, not %g", what, (int)r, (int)c,
					 (double)((const float *)out[0].data)[r * n + c],
					 (double)w[c * k + r]);
	for (i = 0; i < session_n_inputs(s); i++)
		tensor_free(&in[i]);
	session_free(s);
	model_free(m);
	free(w);
}

/* The QDQ form against the other: the same weights, and what a default session computes. */
static void run_pairs(const struct row *row, const struct block_setting *how)
{
	struct subject *s = NULL;
	struct model *q = NULL, *nbits = NULL;
	struct qplan plan = QPLAN_INIT;
	struct precisions is = PRECISIONS_INIT;
	struct err err = ERR_INIT;
	char what[128];
	double db;
	size_t i;

	snprintf(what, sizeof(what), "pairs: %s, %d bits, blocks of %d, %s", row->why, how->format.bits,
		 (int)how->format.block, how->format.symmetric ? "symmetric" : "asymmetric");
	s = open_row(row, 21, how, what);
	if (!s)
		return;
	weight_only(&plan, s, how);
	assert_ok(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &nbits, &err), err);
	plan.format = FORMAT_QDQ_WEIGHTS;
	assert_ok(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err), err);
	if (count_ops(q, "DequantizeLinear") != row->ops || count_ops(q, "MatMulNBits"))
		fail_msg("%s: ops:%s", what, describe(q));
	for (i = 0; i < s->ops.n; i++) {
		const struct node *by = op_named(nbits, s->ops.v[i].name);

		if (by && strcmp(by->op, "MatMulNBits") == 0)
			check_dequantized(what, q, nbits, by);
	}
	db = compare(rt, nbits, q);
	if (db < 30)
		fail_msg("%s: %.1f dB from the other form", what, db);
	assert_ok(precisions_of(&is, rt, s, &(struct precisions_wanted){ APPROACH_WEIGHT, &plan, &plan, q },
				&err),
		  err);
	assert_int_equal(is.weight, row->ops);
	precisions_release(&is);
	model_free(nbits);
	model_free(q);
	qplan_release(&plan);
	subject_free(s);
}

static void pairs_are_what_their_bits_mean(void **state)
{
	static const int bits[] = { 4, 8 };
	static const int64_t blocks[] = { 32, 16, 128 };
	size_t i, b, f, sym;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (b = 0; b < ARRAY_LEN(bits); b++)
			for (f = 0; f < (i == 0 || i == 3 ? ARRAY_LEN(blocks) : 1); f++)
				for (sym = 0; sym < 2; sym++) {
					const struct block_setting how = { { bits[b], blocks[f], sym },
									   BLOCK_RTN,
									   4 };

					run_pairs(&rows[i], &how);
				}
}

static void what_pairs_cannot_say_is_refused(void **state)
{
	static const struct {
		int opset;
		struct block_setting how;
		const char *why;
	} bad[] = {
		{ 20, { { 4, 32, false }, BLOCK_RTN, 4 }, "needs opset 21, the model has 20" },
		{ 21, { { 2, 32, false }, BLOCK_RTN, 4 }, "has 2 bits, need 4 or 8" },
		{ 21, { { 4, 32, false }, BLOCK_RTN, 0 }, "accuracy_level 0, need 4" },
	};
	struct err err = ERR_INIT;
	char path[64];
	size_t i;

	(void)state;
	snprintf(path, sizeof(path), "%s/n.onnx", dir);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct qplan plan = QPLAN_INIT;
		struct subject *s = NULL;
		struct model *q = NULL;

		build_model(path, bad[i].opset, "x:?x64", "w = 64x24; y = MatMul(x, w)", "y");
		assert_ok(subject_open(&s, rt, path, &err), err);
		weight_only(&plan, s, &bad[i].how);
		plan.format = FORMAT_QDQ_WEIGHTS;
		assert_int_equal(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err),
				 FETTLE_UNSUPPORTED);
		assert_non_null(strstr(err.msg, bad[i].why));
		qplan_release(&plan);
		subject_free(s);
	}
}

/* Embedding tables: rows are what their bits mean, and one constant serves a head that is tied to them. */
static void tables_are_what_their_bits_mean(void **state)
{
	static const struct {
		const char *why, *body;
		size_t codes, reshapes;
	} tables[] = {
		{ "a table", "w = 40x64; e = Gather(w, i); v = 64x8; y = MatMul(e, v)", 1, 0 },
		{ "tied to a Gemm",
		  "w = 40x64; e = Gather(w, i); k = [-1,64]; r = Reshape(e, k); y = Gemm(r, w) transB=1", 1,
		  1 },
		{ "tied to a MatMul",
		  "w = 40x64; e = Gather(w, i); t = Transpose(w) perm=1,0; y = MatMul(e, t)", 1, 1 },
	};
	static const int bits[] = { 4, 8 };
	static const int64_t blocks[] = { 16, 32, 64 };
	struct err err = ERR_INIT;
	size_t t, b, f, sym, i;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/d.onnx", dir);
	for (t = 0; t < ARRAY_LEN(tables); t++)
		for (b = 0; b < 2; b++)
			for (f = 0; f < 3; f++)
				for (sym = 0; sym < 2; sym++) {
					const struct block_setting how = { { bits[b], blocks[f], sym },
									   BLOCK_RTN,
									   4 };
					struct subject *s = NULL;
					struct model *q = NULL;
					struct qplan plan = QPLAN_INIT;
					size_t codes = 0;
					double db;

					build_model(path, 13, "i:#?x5", tables[t].body, "y");
					assert_ok(subject_open(&s, rt, path, &err), err);
					if (!runtime_table_bits(s->m)) {
						print_message("skipped: this runtime has no such tables\n");
						subject_free(s);
						return;
					}
					weight_only(&plan, s, &how);
					for (i = 0; i < s->ops.n; i++)
						if (node_is(s->m->nodes.v[i], "Gather"))
							plan.ops[i].mode = OP_WEIGHT;
					assert_ok(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan,
							   &q, &err),
						  err);
					db = compare(rt, s->m, q);
					for (i = 0; i < q->inits.n; i++)
						codes += q->inits.v[i]->t.dtype == DT_U8 &&
							 tensor_count(&q->inits.v[i]->t) ==
								 40 * 64 * bits[b] / 8;
					if (db < (bits[b] == 8 ? 28 : 10) || codes != tables[t].codes ||
					    count_ops(q, "GatherBlockQuantized") != 1 ||
					    count_ops(q, "Reshape") < tables[t].reshapes)
						fail_msg("%s, %d bits, blocks of %d, %s: %.1f dB, %zu "
							 "constants; ops:%s",
							 tables[t].why, bits[b], (int)blocks[f],
							 sym ? "symmetric" : "asymmetric", db, codes,
							 describe(q));
					model_free(q);
					qplan_release(&plan);
					subject_free(s);
				}
}

static void what_unpacks_at_each_call_is_refused(void **state)
{
	static const struct {
		struct block_setting how;
		const char *why;
	} bad[] = {
		{ { { 8, 32, false }, BLOCK_RTN, 0 }, "unpack" },
		{ { { 8, 32, false }, BLOCK_RTN, 1 }, "unpack" },
		{ { { 3, 32, false }, BLOCK_RTN, 4 }, "bits" },
		{ { { 4, 48, false }, BLOCK_RTN, 4 }, "block size" },
		{ { { 4, 32, false }, BLOCK_RTN, 2 }, "accuracy_level" },
	};
	struct subject *s = NULL;
	struct err err = ERR_INIT;
	char path[64];
	size_t i;

	(void)state;
	snprintf(path, sizeof(path), "%s/b.onnx", dir);
	build_model(path, 13, "x:?x64", "w = 64x24; y = MatMul(x, w)", "y");
	assert_ok(subject_open(&s, rt, path, &err), err);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct qplan plan = QPLAN_INIT;
		struct model *q = NULL;

		weight_only(&plan, s, &bad[i].how);
		assert_int_equal(quantize(s->z, &(struct knowledge){ .values = NULL }, &plan, &q, &err),
				 FETTLE_INVALID);
		assert_non_null(strstr(err.msg, bad[i].why));
		qplan_release(&plan);
	}
	subject_free(s);
}

/* ops in fp32, static, dynamic and weight-only in one model */
static void check_modes(enum quant_format format)
{
	static const enum op_mode modes[] = { OP_FP32, OP_STATIC, OP_DYNAMIC, OP_WEIGHT };
	struct subject *s = NULL;
	struct err err = ERR_INIT;
	char path[64];
	size_t i, k;

	snprintf(path, sizeof(path), "%s/c.onnx", dir);
	build_model(path, format == FORMAT_QDQ ? 13 : 21, "x:?x32",
		    "u = 32x32; a = 32; p = Gemm(x, u, a); q = Relu(p); v = 32x32; b = 32; r = Gemm(q, v, "
		    "b); w = "
		    "32x32; y = MatMul(r, w)",
		    "y");
	assert_ok(subject_open(&s, rt, path, &err), err);
	for (k = 0; k < 64; k++) {
		struct qplan plan = QPLAN_INIT;
		struct model *q = NULL;
		struct seen seen = { .n = 0 };
		struct precisions is = PRECISIONS_INIT;
		const char **values;
		size_t n = 0, weight = 0, op = k;
		const bool has_8 = runtime_weight_bits(s->m) >> 8 & 1;

		weight_only(&plan, s, &(struct block_setting){ { has_8 ? 8 : 4, 32, false }, BLOCK_RTN, 4 });
		for (i = 0; i < s->ops.n; i++)
			if (s->ops.v[i].modes & MODE_WEIGHT) {
				plan.ops[i].mode = modes[op % 4];
				weight += op % 4 == 3;
				op /= 4;
			}
		n = quantizer_values(&s->g, &s->ops, &plan, &values);
		observe(&seen, rt, s, values, n);
		plan.format = format;
		assert_ok(quantize_by(s, &plan, seen_range, NULL, &seen, &q, &err), err);
		assert_int_equal(count_ops(q, "MatMulNBits"), format == FORMAT_QDQ ? weight : 0);
		if (compare(rt, s->m, q) < (has_8 ? 25 : 12))
			fail_msg("combination %zu: %.1f dB; ops:%s", k, compare(rt, s->m, q), describe(q));
		assert_ok(precisions_of(&is, rt, s,
					&(struct precisions_wanted){ APPROACH_ALL, &plan, &plan, q }, &err),
			  err);
		assert_int_equal(is.weight, weight);
		for (i = 0; i < s->ops.n; i++) /* what stays in fp32 really does */
			if (s->ops.v[i].modes & MODE_WEIGHT && plan.ops[i].mode == OP_FP32)
				assert_int_equal(is.v[i].is, PRECISION_FP32);
		precisions_release(&is);
		seen_release(&seen);
		free(values);
		model_free(q);
		qplan_release(&plan);
	}
	subject_free(s);
}

static void all_modes_live_in_one_model(void **state)
{
	(void)state;
	check_modes(FORMAT_QDQ);
}

static void all_modes_live_in_one_model_of_pairs(void **state)
{
	(void)state;
	check_modes(FORMAT_QDQ_WEIGHTS);
}

static int begin(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	return !mkdtemp(dir) || runtime_new(&rt, &err) != FETTLE_OK;
}

static int end(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	runtime_free(rt);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_what_its_bits_mean),
		cmocka_unit_test(pairs_are_what_their_bits_mean),
		cmocka_unit_test(what_pairs_cannot_say_is_refused),
		cmocka_unit_test(tables_are_what_their_bits_mean),
		cmocka_unit_test(what_unpacks_at_each_call_is_refused),
		cmocka_unit_test(all_modes_live_in_one_model),
		cmocka_unit_test(all_modes_live_in_one_model_of_pairs),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
