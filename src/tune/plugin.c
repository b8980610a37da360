/* Plug-ins: shared libraries that bring strategies, metrics, losses and kinds of data. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sized.h"
#include "base/str.h"
#include "tune/members.h"

/* the linker's message, which begins with the path that ours has named */
static const char *linker_message(const char *path)
{
	const char *text = dlerror();
	size_t n = strlen(path);

	if (!text)
		return "the linker does not say why";
	return strncmp(text, path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static enum fettle_status open_library(const char *path, void **out, struct err *err)
{
	/* a bare name is a file here, not one that the linker looks for elsewhere */
	char *file = xstrfmt("%s%s", strchr(path, '/') ? "" : "./", path);
	enum fettle_status st = FETTLE_OK;

	if (access(file, R_OK) != 0) {
		st = fail(err, FETTLE_INVALID, "cannot load plug-in %s: %s", path, strerror(errno));
	} else {
		*out = dlopen(file, RTLD_NOW | RTLD_LOCAL);
		if (!*out)
			st = fail(err, FETTLE_INVALID, "cannot load plug-in %s: %s, need a shared library",
				  path, linker_message(file));
	}
	free(file);
	return st;
}

static enum fettle_status read_entry(void *library, const char *path, struct fettle_plugin *out,
				     struct err *err)
{
	const struct fettle_plugin *(*entry)(void);
	const struct fettle_plugin *p;
	void *symbol = dlsym(library, "fettle_plugin_entry");

	if (!symbol)
		return fail(err, FETTLE_INVALID,
			    "cannot load plug-in %s: no function fettle_plugin_entry, need one", path);
	memcpy(&entry, &symbol, sizeof(entry)); /* ISO C knows no cast from data to function */
	p = entry();
	if (!p)
		return fail(err, FETTLE_INVALID,
			    "cannot load plug-in %s: fettle_plugin_entry gave NULL, need a struct "
			    "fettle_plugin",
			    path);
	if (p->abi != FETTLE_PLUGIN_ABI)
		return fail(err, FETTLE_INVALID, "cannot load plug-in %s: it has ABI %d, need %d", path,
			    p->abi, FETTLE_PLUGIN_ABI);
	return sized_read(out, sizeof(*out), p, "a plug-in", err);
}

static enum fettle_status add_all(struct members *m, const struct fettle_plugin *p, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

/* elements are as far apart as they were when the plug-in was compiled */
#define ADD(kind, list)                                                                                      \
	for (i = 0; i < p->n_##list && !st; i++)                                                             \
	st = members_add_##kind(m, (const void *)((const char *)p->list + i * p->list->size), err)
	ADD(strategy, strategies);
	ADD(metric, metrics);
	ADD(loss, losses);
	ADD(dataset, datasets);
#undef ADD
	return st;
}

enum fettle_status members_load(struct members *m, const char *path, struct err *err)
{
	const struct members_counts before = members_count(m);
	struct fettle_plugin p;
	void *library = NULL;
	enum fettle_status st;

	if (!path)
		return fail(err, FETTLE_INVALID, "cannot load a plug-in: no path is given");
	st = open_library(path, &library, err);
	if (st)
		return st;
	st = read_entry(library, path, &p, err);
	if (!st) {
		st = add_all(m, &p, err);
		if (st)
			fail_prefix(err, st, "cannot load plug-in %s", path);
	}
	if (st) {
		members_truncate(m, &before);
		dlclose(library);
		return st;
	}
	VEC_PUSH(&m->plugins, ((struct plugin){ library, path_absolute(path) }));
	return FETTLE_OK;
}

enum fettle_status members_load_once(struct members *m, const char *path, struct err *err)
{
	size_t i;

	for (i = 0; i < m->plugins.n; i++)
		if (strcmp(m->plugins.v[i].path, path) == 0)
			return FETTLE_OK;
	return members_load(m, path, err);
}
