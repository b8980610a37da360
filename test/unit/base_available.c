/* The memory that there is, by files of a made-up system. */
#include "unit/unit.h"

#include <string.h>

#include "unit/tree.h"

static void put(const char *root, const char *path, const char *text)
{
	char *full = xstrfmt("%s%s", root, path), *p;

	for (p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(full, 0700);
		*p = '/';
	}
	write_bytes(full, text, strlen(text));
	free(full);
}

enum { FILES_MAX = 10 };

static void the_lowest_limit_counts(void **state)
{
	static const struct {
		const char *what;
		const char *files[FILES_MAX][2];
		size_t is;
	} cases[] = {
		{ "nothing is known", { { NULL } }, 0 },
		{ "no groups",
		  { { "/proc/meminfo", "MemTotal: 9 kB\nMemFree: 7 kB\nMemAvailable:  8 kB\n" } },
		  8192 },
		{ "version 2 in a container",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" },
		    { "/proc/self/cgroup", "0::/\n" },
		    { "/sys/fs/cgroup/memory.max", "5000\n" },
		    { "/sys/fs/cgroup/memory.current", "2000\n" } },
		  3000 },
		{ "files that were only read are given up",
		  { { "/proc/self/cgroup", "0::/\n" },
		    { "/sys/fs/cgroup/memory.max", "5000\n" },
		    { "/sys/fs/cgroup/memory.current", "2000\n" },
		    { "/sys/fs/cgroup/memory.stat", "active_file 7\ninactive_file 1500\n" } },
		  4500 },
		{ "a group in a group: the outer is tighter",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" },
		    { "/proc/self/cgroup", "0::/a/b\n" },
		    { "/sys/fs/cgroup/a/b/memory.max", "max\n" },
		    { "/sys/fs/cgroup/a/b/memory.current", "1\n" },
		    { "/sys/fs/cgroup/a/memory.max", "4000\n" },
		    { "/sys/fs/cgroup/a/memory.current", "1000\n" } },
		  3000 },
		{ "no limit in version 2",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" },
		    { "/proc/self/cgroup", "0::/a\n" },
		    { "/sys/fs/cgroup/a/memory.max", "max\n" } },
		  8192 },
		{ "version 1, whose path is the host's",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" },
		    { "/proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n" },
		    { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n" },
		    { "/sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n" },
		    { "/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n" } },
		  4000 },
		{ "no limit in version 1",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" },
		    { "/proc/self/cgroup", "4:memory:/\n" },
		    { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n" } },
		  8192 },
		{ "all is in use: next to nothing, which is not unknown",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" },
		    { "/proc/self/cgroup", "0::/\n" },
		    { "/sys/fs/cgroup/memory.max", "5000\n" },
		    { "/sys/fs/cgroup/memory.current", "5000\n" } },
		  1 },
		{ "lines that say nothing",
		  { { "/proc/meminfo", "MemAvailable: 8 kB\n" }, { "/proc/self/cgroup", "\nno\n0:\n:::\n" } },
		  8192 },
	};
	size_t i, k, is;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		char *root = temp_tree();

		for (k = 0; k < FILES_MAX && cases[i].files[k][0]; k++)
			put(root, cases[i].files[k][0], cases[i].files[k][1]);
		is = mem_available_in(root);
		if (is != cases[i].is)
			fail_msg("%s: %zu bytes, not %zu", cases[i].what, is, cases[i].is);
		remove_tree(root);
	}
}

static void here_some_is_available(void **state)
{
	(void)state;
	assert_true(mem_available() > 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_lowest_limit_counts),
					    cmocka_unit_test(here_some_is_available) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
