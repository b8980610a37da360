/* A strategy that a caller has registered, as the search sees one. */
#ifndef STRATEGY_REGISTERED_H
#define STRATEGY_REGISTERED_H

#include "fettle.h"
#include "strategy/strategy.h"

struct registered_strategy {
	struct strategy type; /* strategy_options.self leads back here */
	struct fettle_strategy def;
};
struct registered_strategy *registered_strategy_new(const struct fettle_strategy *def);
void registered_strategy_free(struct registered_strategy *s);

#endif
