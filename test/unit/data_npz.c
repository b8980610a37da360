#include "unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "data/unpack.h"
#include "unit/data_files.h"

static void check_sample_npz(struct dataset *d, size_t n)
{
	const size_t index[] = { n - 1, 0, 2 };
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	const struct tensor *x, *y;
	size_t i, j;

	assert_int_equal(d->n, n);
	assert_string_equal(d->fields[0].name, "x");
	assert_ptr_equal(dataset_labels(d), &d->fields[1]);
	assert_ok(dataset_read(d, index, 3, &b, &err), err);
	x = &b.fields[0].t;
	y = &b.fields[1].t;
	assert_int_equal(x->rank, 3);
	assert_int_equal(x->dims[0], 3);
	assert_int_equal(x->dims[2], 3);
	assert_int_equal(y->rank, 1);
	for (i = 0; i < 3; i++) {
		for (j = 0; j < 6; j++)
			assert_true(tensor_get(x, i * 6 + j) == (double)(index[i] * 6 + j));
		assert_int_equal(tensor_get(y, i), index[i] % 3);
	}
	batch_release(&b);
}

static void samples_are_read_by_number(void **state)
{
	static const struct {
		const char *why;
		bool deflate, zip64;
		size_t memory_max;
	} rows[] = {
		{ "stored arrays are used in the file", false, false, 0 },
		{ "deflated arrays fit into memory", true, false, 0 },
		{ "deflated arrays go to a file when they do not fit", true, false, 100 },
		{ "64-bit sizes", false, true, 0 },
		{ "64-bit sizes, deflated", true, true, 0 },
	};
	char *dir = temp_tree();
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str b = sample_npz(100, rows[i].deflate, rows[i].zip64);
		char *path = put_file(dir, "d.npz", &b);
		struct dataset_options opt = { .memory_max = rows[i].memory_max };
		struct dataset *d = NULL;

		if (dataset_open(&d, path, &opt, &err))
			fail_msg("%s: %s", rows[i].why, err.msg);
		check_sample_npz(d, 100);
		dataset_free(d);
		free(path);
	}
	remove_tree(dir);
}

static void archives_are_inflated_ahead(void **state)
{
	char *dir = temp_tree(), *path;
	struct str b = sample_npz(1000, true, false);
	struct unpacking *begun, *unused;
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	(void)state;
	path = put_file(dir, "d.npz", &b);
	begun = unpacking_begin(path);
	unused = unpacking_begin(path);
	assert_non_null(begun);
	assert_ok(dataset_open(&d, path, &(struct dataset_options){ .begun = &begun }, &err), err);
	assert_null(begun); /* taken */
	check_sample_npz(d, 1000);
	dataset_free(d);
	unpacking_free(unused);
	free(path);
	b = sample_npz(10, false, false);
	path = put_file(dir, "stored.npz", &b);
	assert_null(unpacking_begin(path)); /* nothing to inflate */
	assert_null(unpacking_begin(dir));
	assert_null(unpacking_begin("no such file"));
	free(path);
	remove_tree(dir);
}

/* every type, order, byte order and compression that numpy writes */
static const char numpy_script[] =
	"import sys, numpy as np\n"
	"d = sys.argv[1]\n"
	"base = np.arange(60).reshape(5, 3, 4) * 3 % 120\n"
	"types = 'b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8'.split()\n"
	"def values(t):\n"
	"    if t[0] == 'b': return base % 2\n"
	"    if t[0] == 'i': return base - 20\n"
	"    return base / 4 if t[0] == 'f' else base\n"
	"for t in types:\n"
	"    for order in 'CF':\n"
	"        for e in '<>':\n"
	"            a = np.array(values(t), dtype=e + t, order=order)\n"
	"            np.savez(f'{d}/{t}-0.{order}{ord(e)}.npz', inp=a, y=np.arange(5))\n"
	"            np.savez_compressed(f'{d}/{t}-1.{order}{ord(e)}.npz', inp=a, y=np.arange(5))\n"
	"            for v in 1, 2, 3:\n"
	"                with open(f'{d}/{t}-{v}.{order}{ord(e)}.npy', 'wb') as f:\n"
	"                    np.lib.format.write_array(f, a, version=(v, 0))\n";

static double numpy_value(const char *type, size_t i)
{
	double base = (double)(i * 3 % 120);

	switch (type[0]) {
	case 'b':
		return (double)((int)base % 2);
	case 'i':
		return base - 20;
	case 'f':
		return base / 4;
	default:
		return base;
	}
}

static int files_compared;

static int compare_file(const char *path, const struct stat *sb, int kind, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	size_t i, j;

	(void)sb;
	if (kind != FTW_F || !(str_ends(name, ".npz") || str_ends(name, ".npy")))
		return 0;
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	assert_int_equal(d->n, 5);
	for (i = 0; i < 5; i++) {
		const struct tensor *t;

		assert_ok(dataset_read(d, &i, 1, &b, &err), err);
		t = &b.fields[0].t;
		assert_int_equal(tensor_count(t), 12);
		for (j = 0; j < 12; j++)
			if (tensor_get(t, j) != numpy_value(name, i * 12 + j))
				fail_msg("%s: sample %zu element %zu is %g, numpy says %g", name, i, j,
					 tensor_get(t, j), numpy_value(name, i * 12 + j));
	}
	batch_release(&b);
	dataset_free(d);
	files_compared++;
	return 0;
}

static void numpy_agrees(void **state)
{
	char *dir = temp_tree(), *script, *command;
	struct str b = STR_INIT;
	FILE *python;

	(void)state;
	if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
		print_message("SKIPPED: /usr/bin/python3 has no numpy, so nothing was compared with it\n");
		remove_tree(dir);
		skip();
	}
	str_addf(&b, "%s", numpy_script);
	script = put_file(dir, "write.py", &b);
	command = xstrfmt("/usr/bin/python3 -W ignore %s %s", script, dir);
	python = popen(command, "r");
	assert_non_null(python);
	assert_int_equal(pclose(python), 0);
	nftw(dir, compare_file, 16, FTW_PHYS);
	assert_int_equal(files_compared, 12 * 2 * 2 * 5);
	free(command);
	free(script);
	remove_tree(dir);
}

static struct str one_array(const char *name, struct str npy)
{
	struct zip_out z = { .n = 0 };

	zip_add(&z, name, npy, false);
	return zip_end(&z);
}

/* two arrays: x of 2 float32, and another */
static struct str two_arrays(const char *name, const char *descr, const char *shape, size_t bytes)
{
	static const float x[2] = { 1, 2 };
	static const char zeros[64];
	struct zip_out z = { .n = 0 };

	zip_add(&z, "x.npy", npy_of("<f4", false, "(2,)", x, sizeof(x)), false);
	zip_add(&z, name, npy_of(descr, false, shape, zeros, bytes), true);
	return zip_end(&z);
}

static struct str text(const char *s)
{
	struct str b = STR_INIT;

	str_addf(&b, "%s", s);
	return b;
}

/* sample_npz() with one byte replaced, counted from the end when negative */
static struct str patched(long at, unsigned char byte, bool deflate)
{
	struct str b = sample_npz(4, deflate, false);

	b.s[at < 0 ? b.n + (size_t)at : (size_t)at] = (char)byte;
	return b;
}

static struct str shortened(size_t by)
{
	struct str b = sample_npz(4, false, false);

	b.n -= by;
	return b;
}

static void errors_name_array_value_and_rule(void **state)
{
	const struct {
		struct str bytes;
		enum fettle_status status;
		const char *words;
	} rows[] = {
		{ text("hello"), FETTLE_INVALID, "neither .npz nor .npy" },
		{ text(""), FETTLE_INVALID, "the file is empty" },
		{ text("PK and nothing else"), FETTLE_INVALID, "no end of a zip archive" },
		{ shortened(5), FETTLE_INVALID, "no end of a zip archive" },
		{ zip_end(&(struct zip_out){ .n = 0 }), FETTLE_INVALID, "no arrays, need at least one" },
		{ one_array("x", npy_of("<f4", 0, "(1,)", "1234", 4)), FETTLE_INVALID,
		  "member 'x' is not an array" },
		{ one_array("x.npy", text("rubbish that is long enough")), FETTLE_INVALID,
		  "array 'x': not in NPY format" },
		{ two_arrays("x.npy", "<i4", "(2,)", 8), FETTLE_INVALID, "two arrays are called 'x'" },
		{ two_arrays("w.npy", "<i4", "(3,)", 12), FETTLE_INVALID,
		  "array 'w': 3 samples, but array 'x' has 2" },
		{ two_arrays("w.npy", "|O", "(2,)", 16), FETTLE_UNSUPPORTED,
		  "array 'w': type '|O', arrays of Python objects" },
		{ two_arrays("w.npy", "<U5", "(2,)", 40), FETTLE_UNSUPPORTED, "array 'w': type '<U5', text" },
		{ two_arrays("w.npy", "<c8", "(2,)", 16), FETTLE_UNSUPPORTED, "array 'w': type '<c8', need" },
		{ two_arrays("w.npy", "<i4", "()", 4), FETTLE_INVALID, "array 'w': a single number" },
		{ two_arrays("w.npy", "<i4", "(2, 0)", 0), FETTLE_INVALID, "shape [2,0] is empty" },
		{ two_arrays("w.npy", "<i4", "(0, 2)", 0), FETTLE_INVALID, "need at least one sample" },
		{ two_arrays("w.npy", "<i4", "(2, 9)", 8), FETTLE_INVALID, "is 72 bytes, but 8 are there" },
		{ two_arrays("w.npy", "<i4", "(4294967296, 4294967296)", 8), FETTLE_INVALID,
		  "more elements than can be" },
		{ two_arrays("w.npy", "<i4", "(99999999999999999999,)", 8), FETTLE_INVALID,
		  "not a tuple of whole numbers" },
		{ two_arrays("w.npy", "<i4", "(1,1,1,1,1,1,1,1,1,1,1,1,1)", 4), FETTLE_UNSUPPORTED,
		  "more than 12 dimensions" },
		{ two_arrays("w.npy", "<i4", "(-2,)", 8), FETTLE_INVALID, "not a tuple" },
		{ two_arrays("w.npy", "i4", "(2,)", 8), FETTLE_INVALID, "no byte order" },
		{ one_array("x.npy", npy_raw("{'descr': '<f4', 'shape': (1,)}", "1234", 4)), FETTLE_INVALID,
		  "lacks one of" },
		{ one_array("x.npy", npy_raw("{'descr': [('a', '<f4')]}", "1234", 4)), FETTLE_UNSUPPORTED,
		  "a structured type" },
		{ one_array("x.npy", npy_raw("{'shape': (1,), 'shape': (2,)}", "1234", 4)), FETTLE_INVALID,
		  "'shape' twice" },
		{ one_array("x.npy", npy_raw("{'colour': 3}", "1234", 4)), FETTLE_INVALID, "a key 'colour'" },
		{ one_array("x.npy", npy_raw("{'descr': '<f4', 'fortran_order': No}", "", 0)), FETTLE_INVALID,
		  "neither True nor False" },
		{ one_array("x.npy", npy_raw("{'fortran_\norder': False}", "", 0)), FETTLE_INVALID,
		  "not a dict" },
		{ one_array("x.npy", npy_raw("[1, 2]", "", 0)), FETTLE_INVALID, "not a dict" },
		{ one_array("x\n.npy", npy_of("<f4", 0, "(1,)", "1234", 4)), FETTLE_INVALID,
		  "entry 0 of the directory is damaged" },
		{ patched(200, 77, false), FETTLE_INVALID, "has CRC" },
		{ patched(60, 77, true), FETTLE_INVALID, "it is damaged" },
		{ patched(0, 'Q', false), FETTLE_INVALID, "neither .npz nor .npy" },
		{ patched(2, 9, false), FETTLE_INVALID, "member 'x.npy' is not at byte 0" },
		{ patched(-3, 0x7f, false), FETTLE_INVALID, "it is truncated" },
		{ patched(-12, 200, false), FETTLE_INVALID, "200 members, at most 64" },
	};
	char *dir = temp_tree();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str b = rows[i].bytes;
		char *path = put_file(dir, "bad.npz", &b);
		struct unpacking *begun;
		struct dataset *d = NULL;
		struct err err = ERR_INIT;

		assert_fails(dataset_open(&d, path, NULL, &err), rows[i].status, err, rows[i].words);
		if (!strstr(err.msg, path) || strchr(err.msg, '\n'))
			fail_msg("row %zu: '%s' does not name the file in one line", i, err.msg);
		begun = unpacking_begin(path); /* says the same */
		assert_fails(dataset_open(&d, path, &(struct dataset_options){ .begun = &begun }, &err),
			     rows[i].status, err, rows[i].words);
		assert_null(begun);
		free(path);
	}
	remove_tree(dir);
}

static void missing_files_and_odd_kinds_are_refused(void **state)
{
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	(void)state;
	assert_fails(dataset_open(&d, "/nonexistent.npz", NULL, &err), FETTLE_INVALID, err,
		     "cannot read data /nonexistent.npz: No such file");
	assert_fails(dataset_open(&d, "/dev/null", NULL, &err), FETTLE_INVALID, err, "not a regular file");
	assert_fails(dataset_open(&d, "/tmp", &(struct dataset_options){ .channels = 2 }, &err),
		     FETTLE_INVALID, err, "2 channels, need 1 or 3");
	/* a kind that is named is not guessed */
	assert_fails(dataset_open(&d, "/dev/null", &(struct dataset_options){ .kind = "imagefolder" }, &err),
		     FETTLE_INVALID, err, "cannot read");
	assert_null(strstr(err.msg, "not a regular file"));
	assert_true(dataset_is_kind("ImageFolder") && dataset_is_kind("npz") && !dataset_is_kind("images"));
}

static void values_that_are_not_finite_are_found(void **state)
{
	const struct {
		const char *name, *descr;
		const void *bytes;
		size_t n;
		const char *words;
	} rows[] = {
		{ "x.npy", "<f4", (float[]){ 1, 2, 3, NAN }, 16, "sample 1: array 'x' has nan at element 1" },
		{ "q.npy", "<f8", (double[]){ 1, 2, -INFINITY, 4 }, 32,
		  "sample 1: array 'q' has -inf at element 0" },
		{ "x.npy", "<f2", (uint16_t[]){ 0, 0, 0, 0x7c00 }, 8, "sample 1: array 'x' has inf" },
		{ "y.npy", "<f4", (float[]){ 1, 2, 3, NAN }, 16, NULL }, /* labels may */
	};
	char *dir = temp_tree();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct str b = one_array(rows[i].name,
					 npy_of(rows[i].descr, false, "(2, 2)", rows[i].bytes, rows[i].n));
		char *path = put_file(dir, "nan.npz", &b);
		struct err err = ERR_INIT;

		if (rows[i].words)
			assert_fails(read_all(path, NULL, &err), FETTLE_INVALID, err, rows[i].words);
		else
			assert_ok(read_all(path, NULL, &err), err);
		free(path);
	}
	remove_tree(dir);
}

static void no_room_to_inflate_is_an_error(void **state)
{
	char *dir = temp_tree(), *path, *old = getenv("TMPDIR") ? xstrdup(getenv("TMPDIR")) : NULL;
	struct str b = sample_npz(1000, true, false);
	struct dataset_options opt = { .memory_max = 100 };
	struct rlimit was, small = { 4096, 4096 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;

	(void)state;
	path = put_file(dir, "d.npz", &b);
	setenv("TMPDIR", "/nonexistent", 1);
	assert_fails(dataset_open(&d, path, &opt, &err), FETTLE_SYSTEM, err,
		     "temporary file in /nonexistent");

	/* a disk that is full after 4096 bytes */
	setenv("TMPDIR", dir, 1);
	getrlimit(RLIMIT_FSIZE, &was);
	small.rlim_max = was.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	assert_fails(dataset_open(&d, path, &opt, &err), FETTLE_SYSTEM, err,
		     "do not fit into a temporary file");
	setrlimit(RLIMIT_FSIZE, &was);
	signal(SIGXFSZ, SIG_DFL);
	if (old)
		setenv("TMPDIR", old, 1);
	else
		unsetenv("TMPDIR");
	free(old);
	free(path);
	remove_tree(dir);
}

static void a_batch_says_what_is_wrong_with_it(void **state)
{
	char *dir = temp_tree(), *path;
	struct str s = sample_npz(4, false, false);
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;

	(void)state;
	path = put_file(dir, "d.npz", &s);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	assert_fails(dataset_read(d, (size_t[]){ 4 }, 1, &b, &err), FETTLE_INVALID, err,
		     "sample 4, there are 4");
	assert_fails(dataset_read(d, NULL, 0, &b, &err), FETTLE_INVALID, err, "a batch of 0 samples");
	b.want = 2; /* only the labels */
	assert_ok(dataset_read(d, (size_t[]){ 3 }, 1, &b, &err), err);
	assert_null(b.fields[0].t.data);
	assert_non_null(b.fields[1].t.data);
	batch_release(&b);
	dataset_free(d);
	free(path);
	remove_tree(dir);
}

static void what_no_input_takes_is_ignored(void **state)
{
	const float four[4] = { 1, 2, 3, 4 };
	const char *const wanted[] = { "in" }, *const both[] = { "in", "table" };
	struct dataset_options one = { .wanted = wanted, .n_wanted = 1 },
			       two = { .wanted = both, .n_wanted = 2 };
	char *dir = temp_tree(), *path;
	struct zip_out z = { 0 };
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	struct str s;

	(void)state;
	zip_add(&z, "names.npy", npy_of("<U2", false, "(2,)", "a\0\0\0b\0\0\0c\0\0\0d\0\0\0", 16), false);
	zip_add(&z, "table.npy", npy_of("<f4", false, "(4,)", four, sizeof(four)), true);
	zip_add(&z, "in.npy", npy_of("<f4", false, "(2, 2)", four, sizeof(four)), true);
	zip_add(&z, "y.npy", npy_of("<f4", false, "(2,)", four, 8), false);
	zip_add(&z, "labels.npy", npy_of("<f4", false, "(1,)", four, 4), false);
	s = zip_end(&z);
	path = put_file(dir, "d.npz", &s);
	assert_ok(dataset_open(&d, path, &one, &err), err);
	assert_string_equal(d->ignored, "names, table, labels");
	assert_true(d->n == 2 && d->n_fields == 2 && dataset_labels(d) == dataset_field(d, "y"));
	dataset_free(d);
	/* what is taken must agree, and nothing is ignored where nothing says what is */
	assert_fails(dataset_open(&d, path, &two, &err), FETTLE_INVALID, err,
		     "2 samples, but array 'table' has 4");
	assert_fails(dataset_open(&d, path, NULL, &err), FETTLE_UNSUPPORTED, err, "array 'names'");
	free(path);
	remove_tree(dir);
}

static long resident_kb(void)
{
	long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &total, &resident), 2);
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* 32 MB of samples, stored and deflated, leave no more than a little of it behind in memory */
static void memory_does_not_grow_with_samples(void **state)
{
	char *dir = temp_tree(), *path;
	struct err err = ERR_INIT;
	int deflate;

	(void)state;
	for (deflate = 0; deflate < 2; deflate++) {
		struct str s = sample_npz(1000000, deflate, false);
		struct dataset_options opt = { .memory_max = 1 << 20 };
		struct dataset *d = NULL;
		struct batch b = BATCH_INIT;
		long before, after;
		size_t i;

		path = put_file(dir, "big.npz", &s);
		before = resident_kb();
		assert_ok(dataset_open(&d, path, &opt, &err), err);
		for (i = 0; i < d->n; i += 16)
			assert_ok(dataset_read(d, &i, 1, &b, &err), err);
		after = resident_kb();
		if (after - before > 8 << 10)
			fail_msg("%s: %ld KB more", deflate ? "deflated" : "stored", after - before);
		batch_release(&b);
		dataset_free(d);
		free(path);
	}
	remove_tree(dir);
}

/* a file that shrinks under our hands is an error, not a signal */
static void a_file_cut_off_is_an_error(void **state)
{
	char *dir = temp_tree(), *path;
	struct str s = sample_npz(10000, false, false);
	struct dataset *d = NULL;
	struct batch b = BATCH_INIT;
	struct err err = ERR_INIT;
	size_t i = 9999;

	(void)state;
	path = put_file(dir, "d.npz", &s);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	assert_int_equal(truncate(path, 1000), 0);
	assert_fails(dataset_read(d, &i, 1, &b, &err), FETTLE_SYSTEM, err, "cut off while it was in use");
	batch_release(&b);
	dataset_free(d);
	free(path);
	remove_tree(dir);
}

static void *read_many(void *arg)
{
	const struct dataset *d = arg;
	struct batch b = BATCH_INIT;
	struct rng r;
	size_t wrong = 0, k, index[3];

	rng_seed(&r, (uint64_t)(uintptr_t)&b);
	for (k = 0; k < 2000; k++) {
		size_t n = 1 + rng_below(&r, 3), i;

		for (i = 0; i < n; i++)
			index[i] = rng_below(&r, d->n);
		if (dataset_read(d, index, n, &b, NULL))
			wrong++;
		else
			for (i = 0; i < n; i++)
				wrong += tensor_get(&b.fields[0].t, 6 * i + 5) != (double)(index[i] * 6 + 5);
	}
	batch_release(&b);
	return (void *)wrong;
}

static void threads_share_a_dataset(void **state)
{
	char *dir = temp_tree(), *path;
	struct str s = sample_npz(500, true, false);
	struct dataset *d = NULL;
	struct err err = ERR_INIT;
	pthread_t threads[4];
	void *wrong;
	size_t i;

	(void)state;
	path = put_file(dir, "d.npz", &s);
	assert_ok(dataset_open(&d, path, NULL, &err), err);
	for (i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_many, d), 0);
	for (i = 0; i < ARRAY_LEN(threads); i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	dataset_free(d);
	free(path);
	remove_tree(dir);
}

static void damaged_files_never_crash(void **state)
{
	char *dir = temp_tree();
	struct rng r;
	int i, refused = 0;

	(void)state;
	rng_seed(&r, 7);
	for (i = 0; i < 2000; i++) {
		struct str good = sample_npz(3, i & 1, i & 2), bad = mutated(&good, &r);
		char *path = put_file(dir, "m.npz", &bad);
		struct err err = ERR_INIT;

		refused += read_all(path, &(struct dataset_options){ .memory_max = 1000 }, &err) != FETTLE_OK;
		str_release(&good);
		free(path);
	}
	assert_true(refused > 1000); /* the CRC sees most of it */
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_read_by_number),
		cmocka_unit_test(archives_are_inflated_ahead),
		cmocka_unit_test(numpy_agrees),
		cmocka_unit_test(errors_name_array_value_and_rule),
		cmocka_unit_test(missing_files_and_odd_kinds_are_refused),
		cmocka_unit_test(values_that_are_not_finite_are_found),
		cmocka_unit_test(no_room_to_inflate_is_an_error),
		cmocka_unit_test(a_batch_says_what_is_wrong_with_it),
		cmocka_unit_test(what_no_input_takes_is_ignored),
		cmocka_unit_test(memory_does_not_grow_with_samples),
		cmocka_unit_test(a_file_cut_off_is_an_error),
		cmocka_unit_test(threads_share_a_dataset),
		cmocka_unit_test(damaged_files_never_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
