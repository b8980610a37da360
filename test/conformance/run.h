/* One strategy on one synthetic space. Include after unit.h. */
#ifndef CONFORMANCE_RUN_H
#define CONFORMANCE_RUN_H

#include "conformance/service.h"
#include "conformance/synthetic.h"

/* one combination; `here` names it in messages */
struct outcome {
	enum fettle_status st;
	enum search_stop why;
	size_t n_trials, best; /* trial number, 0: none */
	struct plan best_plan;
	struct score best_score;
	bool says_untried, limited;
	double spent; /* fp32 passes */
	struct err err;
};

static char here[256];

static inline struct outcome run(struct world *w, const struct strategy *strategy, size_t max_trials)
{
	struct search_config config = world_config(w, max_trials);
	struct outcome o = { .best = 0 };
	struct search *s = NULL;
	struct fake_service service;

	fake_init(&service, w->seed);
	config.options.service = &service.service;
	snprintf(here, sizeof(here), "%s on %s, at most %zu trials, timeout %g", strategy->name, w->r->name,
		 max_trials, w->timeout);
	assert_ok(search_new(&s, &config, &o.err), o.err);
	o.st = search_run(s, strategy, &o.err);
	o.why = search_why(s);
	o.n_trials = search_n_trials(s);
	o.limited = search_limited(s);
	o.spent = search_spent(s);
	o.says_untried = *search_left_untried(s);
	if (search_best(s, &o.best_plan, &o.best_score))
		o.best = search_best_trial(s)->number;
	search_free(s);
	fake_release(&service, !o.st);
	return o;
}

#define check(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond))                                                                                 \
			fail_msg("%s: %s", here, #cond);                                                     \
	} while (0)

#endif
