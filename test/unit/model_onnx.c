/* Reading ONNX: every place data can be in, everything we do not understand, everything that is wrong. */
#include "unit/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/index.h"
#include "unit/proto.h"

static char folder[] = "/tmp/fettle-test.XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static char *in_folder(const char *name)
{
	return xstrfmt("%s/%s", folder, name);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* a model whose one output is its one constant */
static Onnx__TensorProto *one_constant(struct build *b, enum dtype t, const int64_t *dims, size_t rank,
				       const void *raw, size_t n)
{
	build_init(b, 13);
	build_output(b, "w", t, dims, rank);
	return build_weight(b, "w", t, dims, rank, raw, n);
}

/* the bytes that the model's constant w has */
static enum fettle_status fetch(struct build *b, const char *path, void *to, size_t n, struct err *err)
{
	struct model *m = NULL;
	enum fettle_status st = build_decode(b, &m, path, err);

	if (!st)
		st = model_weight(m, model_init(m, "w"), err);
	if (!st) {
		assert_int_equal(tensor_bytes(&model_init(m, "w")->t), n);
		memcpy(to, model_init(m, "w")->t.data, n);
	}
	model_free(m);
	return st;
}

static const struct {
	enum dtype t;
	size_t size;
} dtypes[] = {
	{ DT_F32, 4 }, { DT_U8, 1 },  { DT_S8, 1 },   { DT_U16, 2 }, { DT_S16, 2 },
	{ DT_S32, 4 }, { DT_S64, 8 }, { DT_BOOL, 1 }, { DT_F16, 2 }, { DT_F64, 8 },
	{ DT_U32, 4 }, { DT_U64, 8 }, { DT_BF16, 2 },
};

static void raw_data_of_every_type(void **state)
{
	unsigned char raw[3 * 8], got[sizeof(raw)];
	struct err err = ERR_INIT;
	struct build b;
	size_t i, k;

	(void)state;
	for (k = 0; k < sizeof(raw); k++)
		raw[k] = (unsigned char)(37 * k + 1);
	for (i = 0; i < ARRAY_LEN(dtypes); i++) {
		one_constant(&b, dtypes[i].t, DIMS(3), raw, 3 * dtypes[i].size);
		assert_ok(fetch(&b, NULL, got, 3 * dtypes[i].size, &err), err);
		assert_memory_equal(raw, got, 3 * dtypes[i].size);
		build_release(&b);
	}
}

/* puts the elements into the field that onnx.proto prescribes for the type */
static void set_typed(struct build *b, Onnx__TensorProto *p, const void *v, size_t n)
{
	struct tensor t = { .dtype = (enum dtype)p->data_type,
			    .rank = 1,
			    .dims = { (int64_t)n },
			    .data = (void *)(uintptr_t)v };
	size_t i;

	for (i = 0; i < n; i++) {
		switch (p->data_type) {
		case DT_F32:
			BUILD_PUSH(b, p->float_data, p->n_float_data, ((const float *)v)[i]);
			break;
		case DT_F64:
			BUILD_PUSH(b, p->double_data, p->n_double_data, ((const double *)v)[i]);
			break;
		case DT_S64:
			BUILD_PUSH(b, p->int64_data, p->n_int64_data, ((const int64_t *)v)[i]);
			break;
		case DT_U32:
			BUILD_PUSH(b, p->uint64_data, p->n_uint64_data, ((const uint32_t *)v)[i]);
			break;
		case DT_U64:
			BUILD_PUSH(b, p->uint64_data, p->n_uint64_data, ((const uint64_t *)v)[i]);
			break;
		case DT_F16:
		case DT_BF16:
			BUILD_PUSH(b, p->int32_data, p->n_int32_data, ((const uint16_t *)v)[i]);
			break;
		default:
			BUILD_PUSH(b, p->int32_data, p->n_int32_data, (int32_t)tensor_get(&t, i));
		}
	}
}

static void typed_fields_of_every_type(void **state)
{
	/* bits that are not the same in any two bytes, and no NaN */
	_Alignas(8) unsigned char want[3 * 8], got[sizeof(want)];
	struct err err = ERR_INIT;
	Onnx__TensorProto *p;
	struct build b;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_LEN(dtypes); i++) {
		size_t n = 3 * dtypes[i].size;

		for (k = 0; k < n; k++)
			want[k] = dtypes[i].t == DT_BOOL ? k & 1 : (unsigned char)(29 * k + 0x3a);
		p = one_constant(&b, dtypes[i].t, DIMS(3), NULL, 0);
		set_typed(&b, p, want, 3);
		assert_ok(fetch(&b, NULL, got, n, &err), err);
		assert_memory_equal(want, got, n);
		build_release(&b);

		p = one_constant(&b, dtypes[i].t, DIMS(3), NULL, 0);
		set_typed(&b, p, want, 2);
		assert_int_equal(fetch(&b, NULL, got, n, &err), FETTLE_INVALID);
		assert_string_equal(err.msg, "constant 'w' has 2 values, its shape needs 3");
		build_release(&b);

		one_constant(&b, dtypes[i].t, DIMS(0, 7), NULL, 0);
		assert_ok(fetch(&b, NULL, got, 0, &err), err);
		build_release(&b);
	}
}

static void external_data_is_checked(void **state)
{
	static const struct {
		const char *why, *location, *offset, *length;
		enum fettle_status want;
		const char *says;
	} rows[] = {
		{ "the whole file", "w.bin", NULL, NULL, FETTLE_OK, "" },
		{ "a part", "w.bin", "8", "8", FETTLE_OK, "" },
		{ "an offset that no type is aligned at", "w.bin", "3", "8", FETTLE_OK, "" },
		{ "the last bytes", "w.bin", "56", "8", FETTLE_OK, "" },
		{ "a dot is this folder", "./w.bin", "0", "8", FETTLE_OK, "" },
		{ "one byte too far", "w.bin", "57", "8", FETTLE_INVALID, "needs 8 bytes at 57" },
		{ "an offset past the end", "w.bin", "65", "8", FETTLE_INVALID, "at 65" },
		{ "an offset that wraps", "w.bin", "18446744073709551612", "8", FETTLE_INVALID, "at 184467" },
		{ "an offset above 64 bits", "w.bin", "98446744073709551612", "8", FETTLE_INVALID,
		  "at 184467" },
		{ "a length that is not the shape's", "w.bin", "0", "4", FETTLE_INVALID, "entry says 4" },
		{ "a longer one", "w.bin", "0", "64", FETTLE_INVALID, "entry says 64" },
		{ "a negative offset", "w.bin", "-8", "8", FETTLE_INVALID, "is no number" },
		{ "an offset in hexadecimal", "w.bin", "0x8", "8", FETTLE_INVALID, "is no number" },
		{ "an empty length", "w.bin", "0", "", FETTLE_INVALID, "is no number" },
		{ "no location", NULL, "0", "8", FETTLE_INVALID, "inside the model's folder" },
		{ "an empty location", "", "0", "8", FETTLE_INVALID, "inside the model's folder" },
		{ "up and out", "../w.bin", "0", "8", FETTLE_INVALID, "inside the model's folder" },
		{ "out by a detour", "a/../../w.bin", "0", "8", FETTLE_INVALID, "inside the model's folder" },
		{ "up at the end", "a/..", "0", "8", FETTLE_INVALID, "inside the model's folder" },
		{ "an absolute path", "/etc/passwd", "0", "8", FETTLE_INVALID, "inside the model's folder" },
		{ "two dots may begin a name", "..w.bin", "0", "8", FETTLE_INVALID, "No such file" },
		{ "no such file", "gone.bin", "0", "8", FETTLE_INVALID, "No such file" },
		{ "a folder", ".", "0", "8", FETTLE_INVALID, "a folder" },
	};
	unsigned char file[64], got[8];
	char *path = in_folder("m.onnx"), *data = in_folder("w.bin");
	struct err err = ERR_INIT;
	struct build b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(file); i++)
		file[i] = (unsigned char)(i * 7 + 1);
	write_file(data, file, sizeof(file));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		Onnx__TensorProto *p = one_constant(&b, DT_F32, DIMS(2), NULL, 0);
		enum fettle_status st;

		build_external(&b, p, rows[i].location, rows[i].offset, rows[i].length);
		st = fetch(&b, path, got, sizeof(got), &err);
		if (st != rows[i].want || (st && !strstr(err.msg, rows[i].says)))
			fail_msg("%s: status %d, %s", rows[i].why, (int)st, err.msg);
		if (!st)
			assert_memory_equal(got, file + (rows[i].offset ? atoi(rows[i].offset) : 0), 8);
		build_release(&b);
	}
	unlink(data);
	free(path);
	free(data);
}

/* a type we cannot compute with still is loaded, saved and moved between files */
static void unknown_types_pass_through(void **state)
{
	enum { INT4 = 22 };
	char *path = in_folder("m.onnx"), *data = in_folder("w.bin"), *to = in_folder("n.onnx"),
	     *to_data = in_folder("n.onnx.data");
	unsigned char file[2048];
	struct err err = ERR_INIT;
	struct model *m = NULL, *again = NULL;
	struct packed p = PACKED_INIT;
	struct build b;
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(file); i++)
		file[i] = (unsigned char)(i * 11);
	write_file(data, file, sizeof(file));
	build_external(&b, one_constant(&b, (enum dtype)INT4, DIMS(64, 64), NULL, 0), "w.bin", "0", "2048");
	assert_ok(build_decode(&b, &m, path, &err), err);
	assert_int_equal(model_weight(m, m->inits.v[0], &err), FETTLE_UNSUPPORTED);
	assert_ok(model_save_split(m, to, 0, &err), err);
	model_free(m);
	unlink(data);
	assert_ok(model_load(&again, to, &err), err);
	assert_ok(model_pack(again, 1, &p, &err), err);
	assert_int_equal(p.n_weights, 1);
	assert_memory_equal(init_bytes(p.weights[0], &n), file, sizeof(file));
	assert_int_equal(n, sizeof(file));
	packed_release(&p);
	model_free(again);
	build_release(&b);
	unlink(to);
	unlink(to_data);
	free(path);
	free(data);
	free(to);
	free(to_data);
}

/* external data of a Constant node, of a subgraph's constant and of a function's: brought inside */
static void data_inside_attributes_is_resolved(void **state)
{
	static const float pi[1] = { 3.14159f };
	char *path = in_folder("m.onnx"), *data = in_folder("w.bin"), *elsewhere = in_folder("n.onnx");
	Onnx__FunctionProto function = ONNX__FUNCTION_PROTO__INIT, *functions[] = { &function };
	struct bytes saved = BYTES_INIT;
	struct err err = ERR_INIT;
	Onnx__NodeProto *n, *inner;
	Onnx__GraphProto *sub;
	Onnx__ModelProto *back;
	Onnx__TensorProto *t;
	struct model *m = NULL;
	struct build b;

	(void)state;
	write_file(data, pi, sizeof(pi));
	build_init(&b, 13);
	n = build_node(&b, "Constant", "", "c");
	t = build_attr(&b, n, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
		build_tensor(&b, "", DT_F32, NULL, 0, NULL, 0);
	build_external(&b, t, "w.bin", "0", "4");
	sub = build_graph(&b, "body");
	t = build_tensor(&b, "k", DT_F32, NULL, 0, NULL, 0);
	build_external(&b, t, "w.bin", "0", "4");
	BUILD_PUSH(&b, sub->initializer, sub->n_initializer, t);
	build_attr_graph(&b, build_node(&b, "If", "cond", "r"), "then_branch", sub);
	sub = build_graph(&b, "f"); /* only to hold the function's node */
	inner = build_node_in(&b, sub, "Constant", "", "z");
	t = build_attr(&b, inner, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
		build_tensor(&b, "", DT_F32, NULL, 0, NULL, 0);
	build_external(&b, t, "w.bin", "0", "4");
	function.n_node = 1;
	function.node = sub->node;
	b.m->n_functions = 1;
	b.m->functions = functions;
	build_input(&b, "cond", DT_BOOL, NULL, 0);
	assert_ok(build_decode(&b, &m, path, &err), err);
	unlink(data);
	assert_ok(model_save(m, elsewhere, &err), err);
	assert_ok(file_map(elsewhere, &saved, &err), err);
	back = onnx__model_proto__unpack(NULL, saved.n, saved.p);
	assert_non_null(back);
	assert_memory_equal(back->graph->node[0]->attribute[0]->t->raw_data.data, pi, 4);
	assert_memory_equal(back->graph->node[1]->attribute[0]->g->initializer[0]->raw_data.data, pi, 4);
	assert_memory_equal(back->functions[0]->node[0]->attribute[0]->t->raw_data.data, pi, 4);
	assert_int_equal(back->graph->node[0]->attribute[0]->t->n_external_data, 0);
	onnx__model_proto__free_unpacked(back, NULL);
	bytes_release(&saved);
	model_free(m);
	build_release(&b);
	unlink(elsewhere);
	free(path);
	free(data);
	free(elsewhere);
}

static bool captures(const struct node *n, const char *name)
{
	size_t i;

	for (i = 0; i < n->n_captured; i++)
		if (strcmp(n->captured[i], name) == 0)
			return true;
	return false;
}

static void subgraphs_capture_outer_values(void **state)
{
	Onnx__GraphProto *then_branch, *else_branch, *deep;
	struct err err = ERR_INIT;
	struct model *m = NULL;
	const struct node *n;
	Onnx__NodeProto *p, *inner;
	struct build b;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "cond", DT_BOOL, NULL, 0);
	build_input(&b, "x", DT_F32, DIMS(2));
	build_output(&b, "y", DT_F32, DIMS(2));
	then_branch = build_graph(&b, "then");
	build_node_in(&b, then_branch, "Add", "x,bias", "t");
	BUILD_PUSH(&b, then_branch->output, then_branch->n_output, build_value(&b, "t", DT_F32, DIMS(2)));
	else_branch = build_graph(&b, "else");
	/* what the other branch defines is not defined here */
	inner = build_node_in(&b, else_branch, "If", "cond", "e");
	deep = build_graph(&b, "deep");
	BUILD_PUSH(&b, deep->input, deep->n_input, build_value(&b, "mine", DT_F32, DIMS(2)));
	build_node_in(&b, deep, "Mul", "mine,t,outer", "d");
	BUILD_PUSH(&b, deep->output, deep->n_output, build_value(&b, "straight", DT_F32, DIMS(2)));
	build_attr_graph(&b, inner, "then_branch", deep);
	p = build_node(&b, "If", "cond", "y");
	build_attr_graph(&b, p, "then_branch", then_branch);
	build_attr_graph(&b, p, "else_branch", else_branch);
	assert_ok(build_decode(&b, &m, NULL, &err), err);
	n = m->nodes.v[0];
	assert_true(captures(n, "x") && captures(n, "bias") && captures(n, "outer"));
	assert_true(captures(n, "t"));        /* of the else branch */
	assert_true(captures(n, "straight")); /* returned as it is */
	assert_true(captures(n, "cond"));
	assert_int_equal(n->n_captured, 6);
	/* a fresh name must not be one that a subgraph uses inside: it would be shadowed there */
	assert_string_not_equal(model_fresh(m, "mine"), "mine");
	assert_string_not_equal(model_fresh(m, "d"), "d");
	model_free(m);
	build_release(&b);
}

/* field `tag` with this payload, wherever it is in the bytes */
static bool holds(const uint8_t *p, size_t n, const char *payload)
{
	return memmem(p, n, payload, strlen(payload)) != NULL;
}

static void what_we_do_not_know_is_kept(void **state)
{
	static const char *const kept[] = { "?model", "?graph",    "?node",     "?tensor", "?attribute",
					    "?value", "?function", "?subgraph", "?opset" };
	float w[600] = { 1 };
	char *path = in_folder("m.onnx"), *data = in_folder("m.onnx.data");
	Onnx__FunctionProto function = ONNX__FUNCTION_PROTO__INIT, *functions[] = { &function };
	Onnx__StringStringEntryProto meta = ONNX__STRING_STRING_ENTRY_PROTO__INIT, *metas[] = { &meta };
	struct bytes raw = BYTES_INIT;
	Onnx__ModelProto *back;
	struct err err = ERR_INIT;
	Onnx__GraphProto *sub;
	Onnx__NodeProto *n;
	struct model *m = NULL, *d;
	struct build b;
	size_t i, split;

	(void)state;
	build_init(&b, 4711);
	b.m->ir_version = 99;
	build_opset(&b, "com.example", 3);
	function.name = (char *)(uintptr_t) "F";
	function.domain = (char *)(uintptr_t) "com.example";
	b.m->n_functions = 1;
	b.m->functions = functions;
	meta.key = (char *)(uintptr_t) "key";
	meta.value = (char *)(uintptr_t) "val";
	b.m->n_metadata_props = 1;
	b.m->metadata_props = metas;
	build_input(&b, "x", DT_F32, DIMS(-1, 600));
	build_output(&b, "y", DT_F32, DIMS(-1, 600));
	build_weight(&b, "w", DT_F32, DIMS(600), w, sizeof(w));
	n = build_node(&b, "F", "x,w", "y");
	n->domain = function.domain;
	build_attr_int(&b, n, "axis", 1);
	sub = build_graph(&b, "sub");
	build_attr_graph(&b, n, "body", sub);
	build_unknown(&b, &b.m->base, 1001, "?model");
	build_unknown(&b, &b.g->base, 1002, "?graph");
	build_unknown(&b, &n->base, 1003, "?node");
	build_unknown(&b, &b.g->initializer[0]->base, 1004, "?tensor");
	build_unknown(&b, &n->attribute[0]->base, 1005, "?attribute");
	build_unknown(&b, &b.g->input[0]->base, 1006, "?value");
	build_unknown(&b, &function.base, 1007, "?function");
	build_unknown(&b, &sub->base, 1008, "?subgraph");
	build_unknown(&b, &b.m->opset_import[0]->base, 1009, "?opset");
	assert_ok(build_decode(&b, &m, NULL, &err), err);
	assert_int_equal(m->opset, 4711);
	d = model_derive(m);
	for (split = 0; split < 2; split++) { /* in one file, and in two */
		assert_ok(model_save_split(d, path, split ? 0 : MODEL_INLINE_MAX, &err), err);
		assert_ok(file_map(path, &raw, &err), err);
		for (i = 0; i < ARRAY_LEN(kept); i++)
			if (!holds(raw.p, raw.n, kept[i]))
				fail_msg("%s is lost", kept[i]);
		back = onnx__model_proto__unpack(NULL, raw.n, raw.p);
		assert_int_equal(back->ir_version, 99);
		assert_int_equal(back->opset_import[0]->version, 4711);
		assert_string_equal(back->functions[0]->name, "F");
		assert_string_equal(back->metadata_props[0]->value, "val");
		if (!split) /* nothing more, nothing less: fields in order of their tags, unknown ones last */
			assert_int_equal(raw.n, onnx__model_proto__get_packed_size(b.m));
		onnx__model_proto__free_unpacked(back, NULL);
		bytes_release(&raw);
	}
	model_free(d);
	model_free(m);
	build_release(&b);
	unlink(path);
	unlink(data);
	free(path);
	free(data);
}

static void strings_end(void **state)
{
	/* sixteen bytes fill an arena's unit: only a NUL of our own ends them */
	static const char text[] = "0123456789abcdef";
	struct err err = ERR_INIT;
	Onnx__AttributeProto *a;
	struct model *m = NULL;
	struct build b;
	size_t len;

	(void)state;
	for (len = 0; len < sizeof(text); len++) {
		build_init(&b, 13);
		a = build_attr(&b, build_node(&b, "Pad", "", ""), "mode",
			       ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
		a->has_s = 1;
		a->s.data = (uint8_t *)(uintptr_t)text;
		a->s.len = len;
		assert_ok(build_decode(&b, &m, NULL, &err), err);
		assert_int_equal(strlen(node_str(m->nodes.v[0], "mode")), len);
		assert_null(node_str(m->nodes.v[0], "other"));
		model_free(m);
		build_release(&b);
	}
}

static void bad_models_are_refused(void **state)
{
	struct err err = ERR_INIT;
	struct model *m = NULL;
	struct build b;

	(void)state;
	build_init(&b, 6);
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_UNSUPPORTED);
	assert_string_equal(err.msg, "cannot load X: opset 6, need 7 or later");
	b.m->opset_import[0]->version = 0;
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_UNSUPPORTED);
	b.m->opset_import[0]->version = -1;
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_UNSUPPORTED);
	b.m->opset_import[0]->version = (int64_t)13 << 32; /* 0 in 32 bits: but surely not too old */
	assert_ok(build_decode(&b, &m, "X", &err), err);
	assert_true(m->opset > 1000);
	model_free(m);
	b.m->n_opset_import = 0;
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_UNSUPPORTED);
	assert_string_equal(err.msg, "cannot load X: opset 1, need 7 or later");
	build_release(&b);

	one_constant(&b, DT_F32, DIMS(1), "abcd", 4);
	build_weight(&b, "w", DT_F32, DIMS(1), "efgh", 4);
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_INVALID);
	assert_string_equal(err.msg, "cannot load X: two constants are named 'w'");
	build_release(&b);

	one_constant(&b, DT_F32, DIMS(-1), "abcd", 4);
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_INVALID);
	assert_string_equal(err.msg, "cannot load X: constant 'w' has an impossible shape");
	build_release(&b);

	one_constant(&b, DT_F32, DIMS(INT64_MAX, INT64_MAX), "abcd", 4);
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_INVALID);
	build_release(&b);

	one_constant(&b, DT_F32, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), "abcd", 4);
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_UNSUPPORTED);
	build_release(&b);

	build_init(&b, 13);
	b.m->graph = NULL;
	assert_int_equal(build_decode(&b, &m, "X", &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "no graph"));
	build_release(&b);
	assert_int_equal(model_decode(&m, "", 0, "X", &err), FETTLE_INVALID);
	assert_int_equal(model_decode(&m, "\xff\xff\xff\xff", 4, NULL, &err), FETTLE_INVALID);
	assert_int_equal(model_load(&m, "/nowhere/x.onnx", &err), FETTLE_INVALID);
	assert_int_equal(model_load(&m, "/tmp", &err), FETTLE_INVALID);
}

/* length-delimited fields around each other, from the inside out; 100,000 of them would be 100,000 stack frames */
static void deep_nesting_is_refused(void **state)
{
	static const unsigned char tags[] = { 1 << 3 | 2, 6 << 3 | 2, 5 << 3 | 2 };
	/* graph.node, attribute.g, node.attribute */
	enum { LEVELS = 100000, ROOM = LEVELS * 8 };
	unsigned char *buf = malloc(ROOM), *p = buf + ROOM;
	struct err err = ERR_INIT;
	struct model *m = NULL;
	int i;

	(void)state;
	for (i = 0; i <= LEVELS; i++) {
		size_t n = (size_t)(buf + ROOM - p);
		unsigned char len[10], k = 0;

		do
			len[k++] = (unsigned char)((n & 127) | (n > 127 ? 128 : 0));
		while (n >>= 7);
		p -= k;
		memcpy(p, len, k);
		*--p = i == LEVELS ? 7 << 3 | 2 : tags[i % 3]; /* the last is model.graph */
	}
	assert_int_equal(model_decode(&m, p, (size_t)(buf + ROOM - p), "X", &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "nested too deep"));
	free(buf);
}

/* each repetition of `graph` merges with all before it: quadratic memory unless it is limited */
static void repeated_fields_do_not_blow_up(void **state)
{
	enum { TIMES = 200000 };
	static const unsigned char one[] = { 7 << 3 | 2, 2, 1 << 3 | 2, 0 };
	unsigned char *buf = malloc(TIMES * sizeof(one));
	struct err err = ERR_INIT;
	struct model *m = NULL;
	int i;

	(void)state;
	for (i = 0; i < TIMES; i++)
		memcpy(buf + (size_t)i * sizeof(one), one, sizeof(one));
	assert_int_equal(model_decode(&m, buf, TIMES * sizeof(one), "X", &err), FETTLE_INVALID);
	free(buf);
}

/* everything a model is put through, whatever is in it */
static void exercise(const uint8_t *bytes, size_t n, size_t *loaded)
{
	struct err err = ERR_INIT;
	struct model *m = NULL, *d;
	struct packed p = PACKED_INIT;
	struct graph_index g;
	struct block *blocks;
	struct cuts c;

	if (model_decode(&m, bytes, n, NULL, &err))
		return;
	++*loaded;
	if (!graph_sort(m, &err)) {
		graph_index_init(&g, m);
		graph_cuts(&g, false, &c);
		cuts_release(&c);
		graph_blocks(&g, &blocks);
		free(blocks);
		graph_index_release(&g);
	}
	d = model_derive(m);
	model_sweep(d);
	if (!model_pack(d, 16, &p, &err))
		packed_release(&p);
	model_free(d);
	model_free(m);
}

static void mutants_do_no_harm(void **state)
{
	enum { MUTANTS = 20000 };
	static const float w[8] = { 1, 2, 3 };
	struct build b;
	struct rng r;
	uint8_t *bytes, *mutant;
	size_t n, i, k, loaded = 0;
	Onnx__GraphProto *sub;

	(void)state;
	build_init(&b, 13);
	build_input(&b, "x", DT_F32, DIMS(-1, 8));
	build_output(&b, "y", DT_F32, DIMS(-1, 8));
	build_weight(&b, "w", DT_F32, DIMS(8), w, sizeof(w));
	set_typed(&b, build_weight(&b, "v", DT_S8, DIMS(4), NULL, 0), "abcd", 4);
	build_node(&b, "Add", "x,w", "a");
	build_node(&b, "Mul", "a,,v", "c,");
	sub = build_graph(&b, "s");
	build_node_in(&b, sub, "Add", "a,c", "q");
	build_attr_graph(&b, build_node(&b, "If", "c", "y"), "then_branch", sub);
	bytes = build_pack(&b, &n);
	mutant = arena_alloc(&b.a, n + 64);
	rng_seed(&r, 7);
	for (i = 0; i < MUTANTS; i++) {
		size_t m = n, at, edits = 1 + rng_below(&r, 4);

		memcpy(mutant, bytes, n);
		for (k = 0; k < edits; k++) {
			at = rng_below(&r, m);
			switch (rng_below(&r, 4)) {
			case 0: /* one bit */
				mutant[at] ^= (uint8_t)(1 << rng_below(&r, 8));
				break;
			case 1: /* one byte */
				mutant[at] = (uint8_t)rng_next(&r);
				break;
			case 2: /* one byte less */
				memmove(mutant + at, mutant + at + 1, m - at - 1);
				m -= m > 1;
				break;
			default: /* one more */
				memmove(mutant + at + 1, mutant + at, m - at);
				mutant[at] = (uint8_t)rng_next(&r);
				m++;
			}
		}
		exercise(mutant, m, &loaded);
	}
	/* the test is of use only if mutants reach the code after the decoder */
	assert_true(loaded > MUTANTS / 20 && loaded < MUTANTS);
	for (i = 0; i < n; i++)
		exercise(bytes, i, &loaded); /* cut short anywhere */
	build_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_data_of_every_type),
		cmocka_unit_test(typed_fields_of_every_type),
		cmocka_unit_test(external_data_is_checked),
		cmocka_unit_test(unknown_types_pass_through),
		cmocka_unit_test(data_inside_attributes_is_resolved),
		cmocka_unit_test(subgraphs_capture_outer_values),
		cmocka_unit_test(what_we_do_not_know_is_kept),
		cmocka_unit_test(strings_end),
		cmocka_unit_test(bad_models_are_refused),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(repeated_fields_do_not_blow_up),
		cmocka_unit_test(mutants_do_no_harm),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
