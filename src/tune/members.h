/* What a caller has registered: strategies, metrics, losses and datasets, and the plug-ins that brought some. */
#ifndef TUNE_MEMBERS_H
#define TUNE_MEMBERS_H

#include "base/mem.h"
#include "data/registered.h"
#include "evaluate/metric.h"
#include "evaluate/registered.h"
#include "strategy/registered.h"

struct plugin {
	void *library; /* of dlopen() */
	char *path;    /* absolute */
};

struct members {
	VEC(struct registered_strategy *) strategies;
	VEC(struct registered_metric *) metrics;
	VEC(struct fettle_loss) losses; /* names are its own, as are those below */
	VEC(struct fettle_dataset) datasets;
	VEC(struct plugin) plugins;
};

/* Each reads the caller's struct, of this version or an older one; texts are copied. */
enum fettle_status members_add_strategy(struct members *m, const struct fettle_strategy *in, struct err *err);
enum fettle_status members_add_metric(struct members *m, const struct fettle_metric *in, struct err *err);
enum fettle_status members_add_loss(struct members *m, const struct fettle_loss *in, struct err *err);
enum fettle_status members_add_dataset(struct members *m, const struct fettle_dataset *in, struct err *err);
/* plugin.c: loads a shared library, and adds all that it brings, or nothing. */
enum fettle_status members_load(struct members *m, const char *path, struct err *err);
/* The same unless it is loaded already; `path` is absolute. */
enum fettle_status members_load_once(struct members *m, const char *path, struct err *err);

/* How many there are of each; members_truncate() forgets those registered since. */
struct members_counts {
	size_t strategies, metrics, losses, datasets;
};
struct members_counts members_count(const struct members *m);
void members_truncate(struct members *m, const struct members_counts *keep);
void members_release(struct members *m); /* plug-ins are unloaded */

/* NULL: there is none of that name. */
struct registered_strategy *registered_strategy_find(const struct members *m, const char *name);
struct registered_metric *registered_metric_find(const struct members *m, const char *name);
const struct fettle_loss *registered_loss_find(const struct members *m, const char *name);
const struct fettle_dataset *registered_dataset_find(const struct members *m, const char *name);
/* Of "NAME:ROOT"; *root is what follows the colon. NULL: it begins with no such name. */
const struct fettle_dataset *registered_dataset_named(const struct members *m, const char *data,
						      const char **root);

/* Registered or built in. */
enum fettle_status registered_metric_open(const struct members *m, const char *name, struct metric **out,
					  struct err *err);
/* A hawq loss as the lab calls it; self is the struct fettle_loss. */
double registered_loss(void *self, const struct tensor *outputs, const struct tensor *reference,
		       size_t n_outputs, const struct tensor *labels, size_t valid);

#endif
