/* What a caller has registered with a handle: strategies and metrics of its own, and plug-ins that brought some. */
#ifndef API_OWN_H
#define API_OWN_H

#include "api/internal.h"
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
/* Forgets all but the first so many. */
void own_truncate(struct fettle *f, size_t strategies, size_t metrics);
void own_release(struct fettle *f);

/* Copies what the caller's version of a struct has, which begins with its size. */
enum fettle_status own_copy(void *to, size_t size, const void *from, const char *what, struct err *err);

#endif
