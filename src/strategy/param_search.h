/*
 * The parameter search (AMD's Automatic Search): which settings to try, and in which order. It works on the space of
 * space/settings_tuning.h and is no strategy of tune's, so it is not in list.h; options.self is a struct param_search.
 */
#ifndef STRATEGY_PARAM_SEARCH_H
#define STRATEGY_PARAM_SEARCH_H

#include "space/settings_tuning.h"
#include "strategy/strategy.h"

struct param_search {
	struct space *space; /* the search's, which gets options for numbers as they come up */
	const struct settings_space *spaces;
	size_t n_spaces;
	const struct settings_list *list; /* settings_expand() of them */
	/* grid: all, cheap ones first; random: all, cheap ones likely first; or a sampler's name, which learns */
	const char *algorithm;
	bool two_stage; /* first without fine-tuning, then fine-tuning of the best */
	/* advanced_fastft_search: a study over two numbers, all else as in the only settings of the list */
	bool advanced;
	const char *sampler;
	size_t n_trials;
	double iterations[2], learning_rate[2]; /* bounds, of one at least; equal: not varied */
	/* What a plan comes to in full, to be freed: settings that come to the same are one candidate. NULL: all differ. */
	char *(*identity)(void *self, const struct plan *p);
	void *self;
};

extern const struct strategy strategy_param_search;
/* Is there any fine-tuning for a second stage? The first is all settings without it. */
bool param_search_has_stages(const struct settings_list *l);

#endif
