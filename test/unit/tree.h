/* Folders and files for a test to play with. */
#ifndef UNIT_TREE_H
#define UNIT_TREE_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* A folder of its own for every test; remove_tree() frees the name, too. */
static inline char *temp_tree(void)
{
	char *path = xstrdup("/tmp/fettle-test-XXXXXX");

	assert_non_null(mkdtemp(path));
	return path;
}

static inline int remove_entry(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
	(void)sb;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void remove_tree(char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

static inline void write_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *f;

	unlink(path); /* ext4 flushes a file that is overwritten, and that is slow */
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

#endif
