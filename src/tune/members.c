#include "tune/members.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sized.h"
#include "base/str.h"
#include "tune/lab.h"

struct registered_strategy *registered_strategy_find(const struct members *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->strategies.n; i++)
		if (strcasecmp(m->strategies.v[i]->def.name, name) == 0)
			return m->strategies.v[i];
	return NULL;
}

struct registered_metric *registered_metric_find(const struct members *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->metrics.n; i++)
		if (strcasecmp(m->metrics.v[i]->def.name, name) == 0)
			return m->metrics.v[i];
	return NULL;
}

static enum fettle_status open_part(void *m, const char *name, struct metric **out, struct err *err)
{
	return registered_metric_open(m, name, out, err);
}

enum fettle_status registered_metric_open(const struct members *m, const char *name, struct metric **out,
					  struct err *err)
{
	const struct registered_metric *own = registered_metric_find(m, name);

	if (!own && strchr(name, ','))
		return metric_join(out, name, open_part, (void *)(uintptr_t)m, err);
	if (!own)
		return metric_new(out, name, err);
	*out = metric_new_of(&own->type);
	return FETTLE_OK;
}

const struct fettle_loss *registered_loss_find(const struct members *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->losses.n; i++)
		if (strcasecmp(m->losses.v[i].name, name) == 0)
			return &m->losses.v[i];
	return NULL;
}

double registered_loss(void *self, const struct tensor *outputs, const struct tensor *reference,
		       size_t n_outputs, const struct tensor *labels, size_t valid)
{
	const struct fettle_loss *def = self;
	struct fettle_tensor *now = xcalloc(2 * n_outputs, sizeof(*now)), *fp32 = now + n_outputs, label;
	double sum = 0;
	size_t i, k;

	for (i = 0; i < valid; i++) {
		for (k = 0; k < n_outputs; k++) {
			now[k] = registered_sample(&outputs[k], i);
			fp32[k] = registered_sample(&reference[k], i);
		}
		if (labels)
			label = registered_sample(labels, i);
		sum += def->sample(def->self, now, fp32, n_outputs, labels ? &label : NULL);
	}
	free(now);
	return sum;
}

const struct fettle_dataset *registered_dataset_find(const struct members *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->datasets.n; i++)
		if (strcasecmp(m->datasets.v[i].name, name) == 0)
			return &m->datasets.v[i];
	return NULL;
}

const struct fettle_dataset *registered_dataset_named(const struct members *m, const char *data,
						      const char **root)
{
	size_t i, n;

	for (i = 0; i < m->datasets.n; i++) {
		n = strlen(m->datasets.v[i].name);
		if (strncasecmp(data, m->datasets.v[i].name, n) == 0 && data[n] == ':') {
			*root = data + n + 1;
			return &m->datasets.v[i];
		}
	}
	return NULL;
}

enum fettle_status members_add_strategy(struct members *m, const struct fettle_strategy *in, struct err *err)
{
	struct fettle_strategy def;
	enum fettle_status st = sized_read(&def, sizeof(def), in, "a strategy", err);

	if (st)
		return st;
	if (!def.name || !*def.name)
		return fail(err, FETTLE_INVALID, "cannot register a strategy: it has no name");
	if (!def.traverse == !def.next)
		return fail(err, FETTLE_INVALID,
			    "cannot register strategy '%s': it has %s, need either traverse or next",
			    def.name, def.next ? "both traverse and next" : "neither traverse nor next");
	if (strategy_find(def.name) || registered_strategy_find(m, def.name))
		return fail(err, FETTLE_INVALID,
			    "cannot register strategy '%s': the name is %s, need another", def.name,
			    strategy_find(def.name) ? "a built-in strategy's" : "registered already");
	VEC_PUSH(&m->strategies, registered_strategy_new(&def));
	return FETTLE_OK;
}

enum fettle_status members_add_metric(struct members *m, const struct fettle_metric *in, struct err *err)
{
	struct fettle_metric def;
	struct metric *taken = NULL;
	enum fettle_status st = sized_read(&def, sizeof(def), in, "a metric", err);

	if (st)
		return st;
	if (!def.name || !*def.name || strlen(def.name) >= METRIC_NAME_LEN || strpbrk(def.name, ":,*"))
		return fail(err, FETTLE_INVALID,
			    "cannot register metric '%.80s': need a name of less than %d characters without "
			    "a colon, comma or asterisk",
			    def.name ? def.name : "", METRIC_NAME_LEN);
	if (!def.sample)
		return fail(err, FETTLE_INVALID, "cannot register metric '%s': it has no sample()", def.name);
	if (!registered_metric_open(m, def.name, &taken, NULL)) {
		metric_free(taken);
		return fail(err, FETTLE_INVALID, "cannot register metric '%s': the name is %s, need another",
			    def.name,
			    registered_metric_find(m, def.name) ? "registered already"
								: "a built-in metric's");
	}
	VEC_PUSH(&m->metrics, registered_metric_new(&def));
	return FETTLE_OK;
}

enum fettle_status members_add_loss(struct members *m, const struct fettle_loss *in, struct err *err)
{
	struct fettle_loss def;
	enum fettle_status st = sized_read(&def, sizeof(def), in, "a loss", err);

	if (st)
		return st;
	if (!def.name || !*def.name)
		return fail(err, FETTLE_INVALID, "cannot register a loss: it has no name");
	if (!def.sample)
		return fail(err, FETTLE_INVALID, "cannot register loss '%s': it has no sample()", def.name);
	if (hawq_loss_find(def.name) || registered_loss_find(m, def.name))
		return fail(err, FETTLE_INVALID, "cannot register loss '%s': the name is %s, need another",
			    def.name, hawq_loss_find(def.name) ? "a built-in loss's" : "registered already");
	def.name = xstrdup(def.name);
	VEC_PUSH(&m->losses, def);
	return FETTLE_OK;
}

enum fettle_status members_add_dataset(struct members *m, const struct fettle_dataset *in, struct err *err)
{
	struct fettle_dataset def;
	enum fettle_status st = sized_read(&def, sizeof(def), in, "a dataset", err);

	if (st)
		return st;
	if (!def.name || !*def.name || strpbrk(def.name, ":/"))
		return fail(err, FETTLE_INVALID,
			    "cannot register dataset '%.80s': need a name without colon and slash",
			    def.name ? def.name : "");
	if (!def.open)
		return fail(err, FETTLE_INVALID, "cannot register dataset '%s': it has no open()", def.name);
	if (dataset_is_kind(def.name) || registered_dataset_find(m, def.name))
		return fail(err, FETTLE_INVALID, "cannot register dataset '%s': the name is %s, need another",
			    def.name,
			    dataset_is_kind(def.name) ? "a built-in dataset's" : "registered already");
	def.name = xstrdup(def.name);
	VEC_PUSH(&m->datasets, def);
	return FETTLE_OK;
}

struct members_counts members_count(const struct members *m)
{
	return (struct members_counts){ m->strategies.n, m->metrics.n, m->losses.n, m->datasets.n };
}

void members_truncate(struct members *m, const struct members_counts *keep)
{
	while (m->strategies.n > keep->strategies)
		registered_strategy_free(m->strategies.v[--m->strategies.n]);
	while (m->metrics.n > keep->metrics)
		registered_metric_free(m->metrics.v[--m->metrics.n]);
	while (m->losses.n > keep->losses)
		free((char *)(uintptr_t)m->losses.v[--m->losses.n].name);
	while (m->datasets.n > keep->datasets)
		free((char *)(uintptr_t)m->datasets.v[--m->datasets.n].name);
}

void members_release(struct members *m)
{
	members_truncate(m, &(struct members_counts){ 0 });
	VEC_RELEASE(&m->strategies);
	VEC_RELEASE(&m->metrics);
	VEC_RELEASE(&m->losses);
	VEC_RELEASE(&m->datasets);
	while (m->plugins.n) {
		m->plugins.n--;
		dlclose(m->plugins.v[m->plugins.n].library);
		free(m->plugins.v[m->plugins.n].path);
	}
	VEC_RELEASE(&m->plugins);
}
