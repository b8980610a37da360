#include "api/own.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/request.h"
#include "base/file.h"
#include "tune/lab.h"

enum fettle_status own_copy(void *to, size_t size, const void *from, const char *what, struct err *err)
{
	size_t given = 0;

	if (from)
		memcpy(&given, from, sizeof(given));
	memset(to, 0, size);
	if (given < sizeof(given) || given > size)
		return fail(err, FETTLE_INVALID,
			    "cannot read %s: size %zu, need that of this version's struct (%zu) or an older "
			    "one's",
			    what, given, size);
	memcpy(to, from, given);
	return FETTLE_OK;
}

struct own_strategy *own_strategy_find(const struct fettle *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->strategies.n; i++)
		if (strcasecmp(f->strategies.v[i]->def.name, name) == 0)
			return f->strategies.v[i];
	return NULL;
}

static struct own_metric *find_metric(const struct fettle *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->metrics.n; i++)
		if (strcasecmp(f->metrics.v[i]->def.name, name) == 0)
			return f->metrics.v[i];
	return NULL;
}

static enum fettle_status open_part(void *f, const char *name, struct metric **out, struct err *err)
{
	return own_metric_open(f, name, out, err);
}

enum fettle_status own_metric_open(const struct fettle *f, const char *name, struct metric **out,
				   struct err *err)
{
	const struct own_metric *own = find_metric(f, name);

	if (!own && strchr(name, ','))
		return metric_join(out, name, open_part, (void *)(uintptr_t)f, err);
	if (!own)
		return metric_new(out, name, err);
	*out = metric_new_of(&own->type);
	return FETTLE_OK;
}

static enum fettle_status register_strategy(struct fettle *f, const struct fettle_strategy *in)
{
	struct fettle_strategy def;
	enum fettle_status st = own_copy(&def, sizeof(def), in, "a strategy", &f->err);

	if (st)
		return st;
	if (!def.name || !*def.name)
		return fail(&f->err, FETTLE_INVALID, "cannot register a strategy: it has no name");
	if (!def.traverse == !def.next)
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register strategy '%s': it has %s, need either traverse or next",
			    def.name, def.next ? "both traverse and next" : "neither traverse nor next");
	if (strategy_find(def.name) || own_strategy_find(f, def.name))
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register strategy '%s': the name is %s, need another", def.name,
			    strategy_find(def.name) ? "a built-in strategy's" : "registered already");
	VEC_PUSH(&f->strategies, own_strategy_new(&def));
	return FETTLE_OK;
}

static enum fettle_status register_metric(struct fettle *f, const struct fettle_metric *in)
{
	struct fettle_metric def;
	struct metric *taken = NULL;
	enum fettle_status st = own_copy(&def, sizeof(def), in, "a metric", &f->err);

	if (st)
		return st;
	if (!def.name || !*def.name || strlen(def.name) >= METRIC_NAME_LEN || strpbrk(def.name, ":,*"))
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register metric '%.80s': need a name of less than %d characters without "
			    "a colon, comma or asterisk",
			    def.name ? def.name : "", METRIC_NAME_LEN);
	if (!def.sample)
		return fail(&f->err, FETTLE_INVALID, "cannot register metric '%s': it has no sample()",
			    def.name);
	if (!own_metric_open(f, def.name, &taken, NULL)) {
		metric_free(taken);
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register metric '%s': the name is %s, need another", def.name,
			    find_metric(f, def.name) ? "registered already" : "a built-in metric's");
	}
	VEC_PUSH(&f->metrics, own_metric_new(&def));
	return FETTLE_OK;
}

static enum fettle_status register_loss(struct fettle *f, const struct fettle_loss *in)
{
	struct fettle_loss def;
	enum fettle_status st = own_copy(&def, sizeof(def), in, "a loss", &f->err);

	if (st)
		return st;
	if (!def.name || !*def.name)
		return fail(&f->err, FETTLE_INVALID, "cannot register a loss: it has no name");
	if (!def.sample)
		return fail(&f->err, FETTLE_INVALID, "cannot register loss '%s': it has no sample()",
			    def.name);
	if (hawq_loss_find(def.name) || own_loss_find(f, def.name))
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register loss '%s': the name is %s, need another", def.name,
			    hawq_loss_find(def.name) ? "a built-in loss's" : "registered already");
	def.name = xstrdup(def.name);
	VEC_PUSH(&f->losses, def);
	return FETTLE_OK;
}

static enum fettle_status register_dataset(struct fettle *f, const struct fettle_dataset *in)
{
	struct fettle_dataset def;
	enum fettle_status st = own_copy(&def, sizeof(def), in, "a dataset", &f->err);

	if (st)
		return st;
	if (!def.name || !*def.name || strpbrk(def.name, ":/"))
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register dataset '%.80s': need a name without colon and slash",
			    def.name ? def.name : "");
	if (!def.open)
		return fail(&f->err, FETTLE_INVALID, "cannot register dataset '%s': it has no open()",
			    def.name);
	if (dataset_is_kind(def.name) || own_dataset_find(f, def.name))
		return fail(&f->err, FETTLE_INVALID,
			    "cannot register dataset '%s': the name is %s, need another", def.name,
			    dataset_is_kind(def.name) ? "a built-in dataset's" : "registered already");
	def.name = xstrdup(def.name);
	VEC_PUSH(&f->datasets, def);
	return FETTLE_OK;
}

enum fettle_status fettle_register_strategy(struct fettle *f, const struct fettle_strategy *strategy)
{
	f->err.msg[0] = '\0';
	return register_strategy(f, strategy);
}

enum fettle_status fettle_register_metric(struct fettle *f, const struct fettle_metric *metric)
{
	f->err.msg[0] = '\0';
	return register_metric(f, metric);
}

enum fettle_status fettle_register_loss(struct fettle *f, const struct fettle_loss *loss)
{
	f->err.msg[0] = '\0';
	return register_loss(f, loss);
}

enum fettle_status fettle_register_dataset(struct fettle *f, const struct fettle_dataset *dataset)
{
	f->err.msg[0] = '\0';
	return register_dataset(f, dataset);
}

struct own_counts own_count(const struct fettle *f)
{
	return (struct own_counts){ f->strategies.n, f->metrics.n, f->losses.n, f->datasets.n };
}

void own_truncate(struct fettle *f, const struct own_counts *keep)
{
	while (f->strategies.n > keep->strategies)
		own_strategy_free(f->strategies.v[--f->strategies.n]);
	while (f->metrics.n > keep->metrics)
		own_metric_free(f->metrics.v[--f->metrics.n]);
	while (f->losses.n > keep->losses)
		free((char *)(uintptr_t)f->losses.v[--f->losses.n].name);
	while (f->datasets.n > keep->datasets)
		free((char *)(uintptr_t)f->datasets.v[--f->datasets.n].name);
}

void own_release(struct fettle *f)
{
	own_truncate(f, &(struct own_counts){ 0 });
	VEC_RELEASE(&f->strategies);
	VEC_RELEASE(&f->metrics);
	VEC_RELEASE(&f->losses);
	VEC_RELEASE(&f->datasets);
	while (f->plugins.n) {
		f->plugins.n--;
		dlclose(f->plugins.v[f->plugins.n].library);
		free(f->plugins.v[f->plugins.n].path);
	}
	VEC_RELEASE(&f->plugins);
}

/* ---- plug-ins ---- */

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
	return own_copy(out, sizeof(*out), p, "a plug-in", err);
}

static enum fettle_status register_all(struct fettle *f, const struct fettle_plugin *p)
{
	enum fettle_status st = FETTLE_OK;
	size_t i;

/* elements are as far apart as they were when the plug-in was compiled */
#define REGISTER(kind, list)                                                                                 \
	for (i = 0; i < p->n_##list && !st; i++)                                                             \
	st = register_##kind(f, (const void *)((const char *)p->list + i * p->list->size))
	REGISTER(strategy, strategies);
	REGISTER(metric, metrics);
	REGISTER(loss, losses);
	REGISTER(dataset, datasets);
#undef REGISTER
	return st;
}

enum fettle_status fettle_load_plugin(struct fettle *f, const char *path)
{
	const struct own_counts before = own_count(f);
	struct fettle_plugin p;
	void *library = NULL;
	enum fettle_status st;

	f->err.msg[0] = '\0';
	if (!path)
		return fail(&f->err, FETTLE_INVALID, "cannot load a plug-in: no path is given");
	st = open_library(path, &library, &f->err);
	if (st)
		return st;
	st = read_entry(library, path, &p, &f->err);
	if (!st) {
		st = register_all(f, &p);
		if (st)
			fail_prefix(&f->err, st, "cannot load plug-in %s", path);
	}
	if (st) {
		own_truncate(f, &before);
		dlclose(library);
		return st;
	}
	VEC_PUSH(&f->plugins, ((struct plugin){ library, path_absolute(path) }));
	return FETTLE_OK;
}
