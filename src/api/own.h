/* What a caller has registered with a handle: strategies, metrics, losses and datasets, and plug-ins that brought some. */
#ifndef API_OWN_H
#define API_OWN_H

#include "api/internal.h"
#include "config/config.h"
#include "data/dataset.h"
#include "strategy/strategy.h"

struct own_strategy {
	struct strategy type; /* as the search sees it; strategy_options.self leads back here */
	struct fettle_strategy def;
};
struct own_metric {
	struct metric_type type; /* first, so that a metric's type leads here */
	struct fettle_metric def;
};

struct own_strategy *own_strategy_new(const struct fettle_strategy *def);
void own_strategy_free(struct own_strategy *s);
struct own_metric *own_metric_new(const struct fettle_metric *def);
void own_metric_free(struct own_metric *m);

struct own_strategy *own_strategy_find(const struct fettle *f, const char *name); /* NULL: not one of these */
/* Registered or built in. */
enum fettle_status own_metric_open(const struct fettle *f, const char *name, struct metric **out,
				   struct err *err);
/* One row of a batch's tensor, as those who register functions see it. */
struct fettle_tensor own_sample(const struct tensor *t, size_t i);

const struct fettle_loss *own_loss_find(const struct fettle *f, const char *name);
/* A hawq loss as the lab calls it; self is the struct fettle_loss. */
double own_loss(void *self, const struct tensor *outputs, const struct tensor *reference, size_t n_outputs,
		const struct tensor *labels, size_t valid);

const struct fettle_dataset *own_dataset_find(const struct fettle *f, const char *name);
/* Of "NAME:ROOT"; *root is what follows the colon. NULL: it begins with no such name. */
const struct fettle_dataset *own_dataset_named(const struct fettle *f, const char *data, const char **root);
enum fettle_status own_dataset_open(const struct fettle_dataset *def, const struct config_dataset *d,
				    const struct dataset_options *o, struct dataset **out, struct err *err);

/* How many there are of each; own_truncate() forgets those registered since. */
struct own_counts {
	size_t strategies, metrics, losses, datasets;
};
struct own_counts own_count(const struct fettle *f);
void own_truncate(struct fettle *f, const struct own_counts *keep);
void own_release(struct fettle *f);

/* Copies what the caller's version of a struct has, which begins with its size. */
enum fettle_status own_copy(void *to, size_t size, const void *from, const char *what, struct err *err);

#endif
