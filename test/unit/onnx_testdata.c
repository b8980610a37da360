/*
 * The models that ONNX publishes with inputs and outputs (Debian's libonnx-testdata): each must load and
 * save, and what the runtime computes must be the same from the original file, from ours and from memory.
 */
#include "unit/unit.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "data/tensor_pb.h"
#include "model/index.h"
#include "model/opset.h"
#include "runtime/prepare.h"

/* what ONNX Runtime 1.30 reaches with libonnx-testdata 1.12 */
enum { MODELS = 1072, MATCHED_MIN = 848, TENSORS_MAX = 32 };

static const char *const folders[] = { "/usr/include/onnx/backend/test/data",
				       "/usr/share/libonnx-testdata/data" };

enum outcome { MATCHES, RANDOM, DIFFERS, NO_TENSOR, REFUSED, TOO_OLD, N_OUTCOMES };
static const char *const outcomes[] = {
	[MATCHES] = "runs and matches (before and after bit for bit; after prepare(), too)",
	[RANDOM] = "runs, and is random by design",
	[DIFFERS] = "output differs from published (before and after alike)",
	[NO_TENSOR] = "needs strings/sequences/maps/optional (no tensor)",
	[REFUSED] = "runtime does not support it",
	[TOO_OLD] = "opset too old",
};

struct walk {
	struct runtime *rt;
	char *saved, *split, *data; /* ours, in one file; ours, with the weights beside it */
	size_t models, saves, count[N_OUTCOMES], raised, unraised, rewritten;
};

struct tensors {
	struct tensor v[TENSORS_MAX];
	size_t n;
};

static void tensors_release(struct tensors *t)
{
	while (t->n)
		free(t->v[--t->n].data);
}

/* copies what borrowed memory holds; false if one is no tensor of numbers */
static bool tensors_add(struct tensors *to, const struct tensor *shape, const void *data)
{
	struct tensor *t = &to->v[to->n];
	struct err err = ERR_INIT;

	assert_true(to->n < TENSORS_MAX);
	*t = *shape;
	if (!dtype_size(t->dtype))
		return false;
	assert_ok(tensor_alloc(t, "test data", &err), err);
	if (tensor_bytes(t))
		memcpy(t->data, data, tensor_bytes(t));
	to->n++;
	return true;
}

/* input_0.pb, input_1.pb, …; false if one is not a tensor */
static bool read_set(struct tensors *to, const char *set, const char *what)
{
	struct err err = ERR_INIT;
	bool ok = true;

	while (ok && to->n < TENSORS_MAX) {
		char *path = xstrfmt("%s/%s_%zu.pb", set, what, to->n);
		struct bytes file = BYTES_INIT;
		struct tensor_pb pb = { .elements = NULL };
		struct stat sb;
		bool more = stat(path, &sb) == 0;

		if (more) {
			/* an empty file is an optional that holds nothing */
			ok = sb.st_size && !file_map(path, &file, &err) && !tensor_pb_parse(file, &pb, &err);
			ok = ok && tensors_add(to, &pb.shape, pb.elements);
		}
		tensor_pb_release(&pb);
		bytes_release(&file);
		free(path);
		if (!more)
			break;
	}
	return ok;
}

/* FETTLE_UNSUPPORTED without a message: something is no tensor */
static enum fettle_status run(struct session *s, const struct tensors *in, struct tensors *out,
			      struct err *err)
{
	struct tensor results[TENSORS_MAX];
	enum fettle_status st;
	size_t i;

	assert_true(session_n_outputs(s) <= TENSORS_MAX);
	if (session_n_inputs(s) != in->n)
		return fail(err, FETTLE_UNSUPPORTED, "inputs do not match");
	st = session_run(s, in->v, results, err);
	for (i = 0; !st && i < session_n_outputs(s); i++)
		if (!tensors_add(out, &results[i], results[i].data))
			st = fail(err, FETTLE_UNSUPPORTED, "%s", "");
	return st;
}

static bool same_bits(const struct tensors *a, const struct tensors *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (a->v[i].dtype != b->v[i].dtype || !tensor_same_shape(&a->v[i], &b->v[i]) ||
		    memcmp(a->v[i].data, b->v[i].data, tensor_bytes(&a->v[i])) != 0)
			return false;
	return true;
}

static bool close_to(const struct tensors *got, const struct tensors *want)
{
	size_t i, k;

	for (i = 0; i < want->n; i++) {
		const struct tensor *g = &got->v[i], *w = &want->v[i];

		if (i >= got->n || g->dtype != w->dtype || !tensor_same_shape(g, w))
			return false;
		for (k = 0; k < (size_t)tensor_count(w); k++) {
			double a = tensor_get(g, k), b = tensor_get(w, k);

			if (!(a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-5 + 1e-3 * fabs(b)))
				return false;
		}
	}
	return true;
}

static enum fettle_status run_model(struct walk *w, struct model *m, const struct tensors *in,
				    struct tensors *out, struct err *err)
{
	struct session_options so = { .threads = 1 };
	struct session *s = NULL;
	enum fettle_status st = session_new(&s, w->rt, m, &so, err);

	if (!st)
		st = run(s, in, out, err);
	session_free(s);
	return st;
}

static enum fettle_status run_file(struct walk *w, const char *path, const struct tensors *in,
				   struct tensors *out, struct err *err)
{
	struct session_options so = { .threads = 1 };
	struct session *s = NULL;
	enum fettle_status st = session_open(&s, w->rt, path, &so, err);

	if (!st)
		st = run(s, in, out, err);
	session_free(s);
	return st;
}

static void check_prepared(struct walk *w, const char *path, const struct tensors *in,
			   const struct tensors *want)
{
	struct tensors got = { .n = 0 };
	struct simplified did;
	struct err err = ERR_INIT;
	struct model *m = NULL;

	assert_ok(prepare_rewritten(&m, w->rt, path, &did, &err), err);
	assert_ok(run_model(w, m, in, &got, &err), err);
	if (!close_to(&got, want))
		fail_msg("%s: prepare() changed what it computes", path);
	w->rewritten += simplified_total(&did);
	tensors_release(&got);
	model_free(m);
}

/* at every later opset that it can be raised to, the same bits must come out */
static void check_raised(struct walk *w, const char *path, const struct tensors *in,
			 const struct tensors *want)
{
	struct opset_obstacle o = { .op = NULL };
	struct err err = ERR_INIT;
	struct model *m = NULL;
	int to;

	assert_ok(model_load(&m, path, &err), err);
	for (to = m->opset + 1; m->opset && to <= OPSET_RAISE_MAX && !o.op; to++) {
		struct model *raised = model_raise(m, to, &o);
		struct tensors got = { .n = 0 };

		if (!raised)
			continue;
		assert_ok(run_model(w, raised, in, &got, &err), err);
		if (!same_bits(&got, want))
			fail_msg("%s: opset %d gives other bits than opset %d", path, to, m->opset);
		tensors_release(&got);
		model_free(raised);
		w->raised++;
	}
	if (o.op)
		print_message("%s: %s has no conversion to opset %d: %s\n", path, o.op, o.version, o.why);
	w->unraised += o.op != NULL;
	model_free(m);
}

static enum outcome check_set(struct walk *w, struct model *m, const char *path, const char *set)
{
	struct tensors in = { .n = 0 }, want = { .n = 0 }, before = { .n = 0 }, file = { .n = 0 },
		       memory = { .n = 0 }, again = { .n = 0 };
	struct err err = ERR_INIT, err_file = ERR_INIT, err_memory = ERR_INIT;
	enum outcome result = MATCHES;
	enum fettle_status st;

	if (!read_set(&in, set, "input") || !read_set(&want, set, "output")) {
		result = NO_TENSOR;
		goto out;
	}
	st = run_file(w, path, &in, &before, &err);
	if (st != run_file(w, w->saved, &in, &file, &err_file) ||
	    st != run_model(w, m, &in, &memory, &err_memory))
		fail_msg("%s: the original gives status %d (%s), saved '%s', from memory '%s'", path, st,
			 err.msg, err_file.msg, err_memory.msg);
	if (st) {
		result = *err.msg ? REFUSED : NO_TENSOR;
		if (getenv("VERBOSE"))
			print_message("%s: %s\n", path, err.msg);
	} else if (!same_bits(&before, &file) || !same_bits(&before, &memory)) {
		/* only a random op may do that; then the original does it, too */
		assert_ok(run_file(w, path, &in, &again, &err), err);
		if (same_bits(&before, &again))
			fail_msg("%s: results differ before and after saving", path);
		result = RANDOM;
	} else if (!close_to(&before, &want)) {
		result = DIFFERS;
	}
	if (result == MATCHES) {
		check_prepared(w, path, &in, &want);
		check_raised(w, path, &in, &before);
	}
out:
	tensors_release(&in);
	tensors_release(&want);
	tensors_release(&before);
	tensors_release(&file);
	tensors_release(&memory);
	tensors_release(&again);
	return result;
}

/* saving what was saved changes nothing any more; *m is then what was saved in two files */
static void check_saved_again(struct walk *w, struct model **m)
{
	struct bytes first = BYTES_INIT, second = BYTES_INIT;
	struct model *reloaded = NULL;
	struct err err = ERR_INIT;

	assert_ok(file_map(w->saved, &first, &err), err);
	assert_ok(model_load(&reloaded, w->saved, &err), err);
	assert_ok(model_save(reloaded, w->saved, &err), err);
	assert_ok(file_map(w->saved, &second, &err), err);
	assert_int_equal(first.n, second.n);
	assert_memory_equal(first.p, second.p, first.n);
	bytes_release(&first);
	bytes_release(&second);
	model_free(reloaded);
	reloaded = NULL;
	assert_ok(model_save_split(*m, w->split, 0, &err), err);
	assert_ok(model_load(&reloaded, w->split, &err), err);
	model_free(*m);
	*m = reloaded;
}

static void check_model(struct walk *w, const char *dir)
{
	char *path = xstrfmt("%s/model.onnx", dir);
	struct model *m = NULL;
	struct graph_index g;
	struct err err = ERR_INIT;
	enum fettle_status st;
	enum outcome worst = MATCHES;
	unsigned k;

	if (access(path, R_OK) != 0)
		goto out;
	w->models++;
	st = model_load(&m, path, &err);
	if (st == FETTLE_UNSUPPORTED && strstr(err.msg, "need 7 or later")) {
		w->count[TOO_OLD]++;
		goto out;
	}
	if (st)
		fail_msg("%s", err.msg);
	assert_ok(model_save(m, w->saved, &err), err);
	check_saved_again(w, &m);
	w->saves++;
	assert_ok(graph_sort(m, &err), err);
	graph_index_init(&g, m);
	graph_index_release(&g);
	for (k = 0;; k++) {
		char *set = xstrfmt("%s/test_data_set_%u", dir, k);
		bool more = path_is_dir(set);
		enum outcome o = more ? check_set(w, m, path, set) : MATCHES;

		worst = o > worst ? o : worst;
		free(set);
		if (!more)
			break;
	}
	assert_true(k > 0);
	w->count[worst]++;
	if (worst == DIFFERS)
		print_message("%s: differs from what is published\n", path);
out:
	model_free(m);
	free(path);
}

static void each_folder(const char *dir, struct walk *w, void (*visit)(struct walk *, const char *))
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort), i;

	for (i = 0; i < n; i++) {
		char *path = xstrfmt("%s/%s", dir, names[i]->d_name);

		if (names[i]->d_name[0] != '.' && path_is_dir(path))
			visit(w, path);
		free(path);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static void check_group(struct walk *w, const char *dir)
{
	each_folder(dir, w, check_model);
}

static void published_models_survive(void **state)
{
	char dir[] = "/tmp/fettle-test.XXXXXX";
	struct walk w = { .models = 0 };
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	assert_ok(runtime_new(&w.rt, &err), err);
	assert_non_null(mkdtemp(dir));
	w.saved = xstrfmt("%s/model.onnx", dir);
	w.split = xstrfmt("%s/split.onnx", dir);
	w.data = xstrfmt("%s.data", w.split);
	for (i = 0; i < ARRAY_LEN(folders) && !w.models; i++)
		each_folder(folders[i], &w, check_group);
	unlink(w.saved);
	unlink(w.split);
	unlink(w.data);
	rmdir(dir);
	free(w.saved);
	free(w.split);
	free(w.data);
	runtime_free(w.rt);
	if (!w.models) {
		print_message("SKIPPED: no %s: install libonnx-testdata\n", folders[0]);
		skip();
	}
	print_message("%6zu  models, ONNX Runtime %s\n%6zu  loads+saves\n", w.models, runtime_version(),
		      w.saves);
	for (i = 0; i < N_OUTCOMES; i++)
		print_message("%6zu  %s\n", w.count[i], outcomes[i]);
	print_message("%6zu  times raised to a later opset, bit for bit the same; %zu models cannot be\n",
		      w.raised, w.unraised);
	print_message("%6zu  rewritings of their graphs\n", w.rewritten);
	assert_int_equal(w.saves + w.count[TOO_OLD], w.models);
	assert_true(w.models < MODELS || w.count[MATCHES] >= MATCHED_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(published_models_survive) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
