/* How much memory there is: Linux's own figure, then the limits of control groups, versions 1 and 2, and of the address space. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"

enum { LINE = 4096 };

/* The number after a word at the beginning of a line ("" : of the first line); false: there is none, as in "max". */
static bool read_number(const char *path, const char *word, uint64_t *out)
{
	FILE *f = fopen(path, "re");
	char line[LINE];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		if (strncmp(line, word, strlen(word)) == 0)
			found = sscanf(line + strlen(word), "%" SCNu64, out) == 1;
	if (f)
		fclose(f);
	return found;
}

/* What the files of a group are called. */
struct cgroup_files {
	const char *folder, *limit, *used, *cached; /* the last: a line of memory.stat */
};

static void lower(size_t *most, uint64_t limit)
{
	if (!*most || limit < *most)
		*most = limit ? (size_t)limit : 1;
}

/* One group: its limit without what is in use. Files that were read only are given up when memory is short. */
static void lower_by_group(const char *root, const struct cgroup_files *g, const char *path, size_t *most)
{
	char *folder = xstrfmt("%s%s%s", root, g->folder, path), *limit = xstrfmt("%s/%s", folder, g->limit),
	     *used = xstrfmt("%s/%s", folder, g->used), *stat = xstrfmt("%s/memory.stat", folder);
	uint64_t max, now = 0, cached = 0;

	if (read_number(limit, "", &max)) {
		read_number(used, "", &now);
		read_number(stat, g->cached, &cached);
		now -= cached < now ? cached : now;
		lower(most, now < max ? max - now : 0);
	}
	free(folder);
	free(limit);
	free(used);
	free(stat);
}

/* The process's group and those it is in. In a container the path may be that of the host, which is not here: then the last. */
static void lower_by_groups(const char *root, const struct cgroup_files *g, char *path, size_t *most)
{
	char *slash;

	do {
		lower_by_group(root, g, path, most);
		slash = strrchr(path, '/');
		if (slash)
			*slash = 0;
	} while (slash);
}

static void lower_by_cgroups(const char *root, size_t *most)
{
	static const struct cgroup_files v1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
						"memory.usage_in_bytes", "total_inactive_file " },
					 v2 = { "/sys/fs/cgroup", "memory.max", "memory.current",
						"inactive_file " };
	char *path = xstrfmt("%s/proc/self/cgroup", root), line[LINE];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f)) { /* 4:memory:/user or 0::/user */
		char *kind = strchr(line, ':'), *at = kind ? strchr(kind + 1, ':') : NULL;

		if (!at)
			continue;
		line[strcspn(line, "\n")] = 0;
		*at++ = 0;
		if (!kind[1])
			lower_by_groups(root, &v2, at, most);
		else if (strcmp(kind + 1, "memory") == 0)
			lower_by_groups(root, &v1, at, most);
	}
	if (f)
		fclose(f);
	free(path);
}

size_t mem_available_in(const char *root)
{
	char *path = xstrfmt("%s/proc/meminfo", root);
	uint64_t kb = 0;
	size_t n;

	read_number(path, "MemAvailable:", &kb);
	n = (size_t)kb << 10;
	lower_by_cgroups(root, &n);
	free(path);
	return n;
}

size_t mem_available(void)
{
	size_t n = mem_available_in("");
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		lower(&n, limit.rlim_cur);
	return n;
}
