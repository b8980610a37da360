#include "unit/unit.h"

#include <fcntl.h>

#include "base/file.h"
#include "base/fingerprint.h"
#include "base/rng.h"
#include "unit/tree.h"

static void known_values(void **state)
{
	/* as other implementations of MurmurHash3_x64_128 print them, seed 0 */
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "00000000000000000000000000000000" },
		{ "The quick brown fox jumps over the lazy dog", "e34bbc7bbc071b6c7a433ca9c49a9347" },
		{ "hello", "cbd8a7b341bd9b025b1e906a48ae1d19" },
		{ "hello, world", "342fac623a5ebc8e4cdcbc079642414d" },
	};
	char out[FINGERPRINT_LEN];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fingerprint_bytes(rows[i].text, strlen(rows[i].text), out);
		assert_string_equal(out, rows[i].want);
	}
}

static void one_changed_byte_changes_it(void **state)
{
	unsigned char bytes[100] = { 0 };
	char whole[FINGERPRINT_LEN], out[FINGERPRINT_LEN];
	size_t n, i, bit;

	(void)state;
	for (n = 1; n <= sizeof(bytes); n++) {
		fingerprint_bytes(bytes, n, whole);
		for (i = 0; i < n; i++) {
			for (bit = 0; bit < 8; bit++) {
				bytes[i] = (unsigned char)(bytes[i] ^ 1u << bit);
				fingerprint_bytes(bytes, n, out);
				assert_string_not_equal(out, whole);
				bytes[i] = (unsigned char)(bytes[i] ^ 1u << bit);
			}
		}
		fingerprint_bytes(bytes, n - 1, out); /* zeroes at the end count too */
		assert_string_not_equal(out, whole);
	}
}

static void a_file_is_its_content(void **state)
{
	enum { N = 3 * (1 << 18) + 5 }; /* more than one read, not a multiple of a block */
	char *dir = temp_tree(), *a = xstrfmt("%s/a", dir), *b = xstrfmt("%s/b", dir);
	char whole[FINGERPRINT_LEN], out[FINGERPRINT_LEN];
	unsigned char *bytes = xmalloc(N);
	struct err err = ERR_INIT;
	struct rng rng;
	size_t i;
	int fd;

	(void)state;
	rng_seed(&rng, 1);
	for (i = 0; i < N; i++)
		bytes[i] = (unsigned char)rng_next(&rng);
	write_bytes(a, bytes, N);
	write_bytes(b, bytes, N);
	fingerprint_bytes(bytes, N, whole);
	assert_ok(fingerprint_file(a, out, &err), err);
	assert_string_equal(out, whole);
	assert_ok(fingerprint_file(b, out, &err), err);
	assert_string_equal(out, whole);
	fd = open(b, O_WRONLY);
	for (i = 0; i < 60; i++) {
		size_t at = i < 20 ? i : i < 40 ? N - 1 - (i - 20) : (size_t)rng_below(&rng, N);
		unsigned char changed = (unsigned char)(bytes[at] ^ (1 + rng_below(&rng, 255)));

		assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
		assert_ok(fingerprint_file(b, out, &err), err);
		assert_string_not_equal(out, whole);
		assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
	}
	assert_ok(fingerprint_file(b, out, &err), err);
	assert_string_equal(out, whole);
	close(fd);
	write_bytes(b, bytes, 0);
	assert_ok(fingerprint_file(b, out, &err), err);
	assert_string_equal(out, "00000000000000000000000000000000");
	free(bytes);
	free(a);
	free(b);
	remove_tree(dir);
}

static void a_folder_is_what_lies_in_it(void **state)
{
	char *dir = temp_tree(), *sub = xstrfmt("%s/cat", dir), *file = xstrfmt("%s/cat/1", dir);
	char *other = xstrfmt("%s/cat/2", dir), *loop = xstrfmt("%s/cat/loop", dir);
	char first[FINGERPRINT_LEN], last[FINGERPRINT_LEN], out[FINGERPRINT_LEN];
	struct timespec times[2] = { { 1000, 1 }, { 1000, 1 } };
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(fingerprint_file(dir, last, &err), err);
	assert_int_equal(mkdir(sub, 0777), 0);
	write_bytes(file, "x", 1);
	utimensat(AT_FDCWD, file, times, 0);
	assert_ok(fingerprint_file(dir, first, &err), err);
	assert_string_not_equal(first, last);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_equal(out, first);

	times[1].tv_nsec++; /* a copy may have another date */
	utimensat(AT_FDCWD, file, times, 0);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_equal(out, first);
	times[1].tv_nsec--;

	write_bytes(file, "y", 1); /* a content of the same size and date */
	utimensat(AT_FDCWD, file, times, 0);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_not_equal(out, first);

	write_bytes(file, "xy", 2); /* a size */
	utimensat(AT_FDCWD, file, times, 0);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_not_equal(out, first);

	write_bytes(file, "x", 1); /* a name */
	utimensat(AT_FDCWD, file, times, 0);
	assert_int_equal(rename(file, other), 0);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_not_equal(out, first);
	assert_int_equal(rename(other, file), 0);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_equal(out, first);

	assert_int_equal(symlink("..", loop), 0); /* ends */
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_not_equal(out, first);
	free(sub);
	free(file);
	free(other);
	free(loop);
	remove_tree(dir);
}

/* More than a gigabyte, most of it holes: pieces of each file are looked at, whatever their dates. */
static void a_large_folder_is_pieces_of_its_files(void **state)
{
	enum { LARGE = 1100 << 20 };
	static const long long at[] = { 100, LARGE / 2 + 10, LARGE - 1 };
	char *dir = temp_tree(), *large = xstrfmt("%s/large", dir), *small = xstrfmt("%s/small", dir);
	char first[FINGERPRINT_LEN], out[FINGERPRINT_LEN];
	struct err err = ERR_INIT;
	size_t i;
	int fd;

	(void)state;
	write_bytes(small, "small", 5);
	fd = open(large, O_RDWR | O_CREAT, 0666);
	assert_int_equal(ftruncate(fd, LARGE), 0);
	assert_ok(fingerprint_file(dir, first, &err), err);
	for (i = 0; i < ARRAY_LEN(at); i++) {
		assert_int_equal(pwrite(fd, "x", 1, at[i]), 1);
		assert_ok(fingerprint_file(dir, out, &err), err);
		assert_string_not_equal(out, first);
		assert_int_equal(pwrite(fd, "", 1, at[i]), 1);
	}
	write_bytes(small, "smaLl", 5);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_not_equal(out, first);
	write_bytes(small, "small", 5);
	assert_ok(fingerprint_file(dir, out, &err), err);
	assert_string_equal(out, first);
	close(fd);
	free(large);
	free(small);
	remove_tree(dir);
}

static void what_cannot_be_read_is_an_error(void **state)
{
	char *dir = temp_tree(), *none = xstrfmt("%s/none", dir), *pipe_path = xstrfmt("%s/pipe", dir);
	char out[FINGERPRINT_LEN];
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(fingerprint_file(none, out, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, none));
	assert_int_equal(mkfifo(pipe_path, 0666), 0);
	assert_int_equal(fingerprint_file(pipe_path, out, &err), FETTLE_INVALID);
	assert_non_null(strstr(err.msg, "neither a file nor a folder"));
	free(none);
	free(pipe_path);
	remove_tree(dir);
}

static void folders_are_made_with_those_above(void **state)
{
	char *dir = temp_tree(), *deep = xstrfmt("%s/a//b/c/", dir), *file = xstrfmt("%s/a/f", dir);
	char *under = xstrfmt("%s/a/f/g", dir), now[CLOCK_UTC_LEN];
	struct err err = ERR_INIT;

	(void)state;
	assert_ok(dir_make(deep, &err), err);
	assert_true(path_is_dir(deep));
	assert_ok(dir_make(deep, &err), err);
	assert_ok(dir_make("/", &err), err);
	write_bytes(file, "", 0);
	assert_int_equal(dir_make(file, &err), FETTLE_SYSTEM);
	assert_non_null(strstr(err.msg, "a file has that name"));
	assert_int_equal(dir_make(under, &err), FETTLE_SYSTEM);
	assert_int_equal(dir_make("", &err), FETTLE_SYSTEM);
	clock_utc(now);
	assert_int_equal(strlen(now), strlen("2025-01-31T23:59:59Z"));
	free(deep);
	free(file);
	free(under);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(one_changed_byte_changes_it),
		cmocka_unit_test(a_file_is_its_content),
		cmocka_unit_test(a_folder_is_what_lies_in_it),
		cmocka_unit_test(a_large_folder_is_pieces_of_its_files),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
		cmocka_unit_test(folders_are_made_with_those_above),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
