/* The tuning space of a model: what each option of each parameter means, and plans turned into what the
 * quantizer carries out. */
#ifndef SPACE_TUNING_H
#define SPACE_TUNING_H

#include "base/fingerprint.h"
#include "base/str.h"
#include "space/constraint.h"
#include "space/space.h"

/* An option of a recipe's parameter. */
struct recipe_option {
	bool on; /* as documented */
	double number;
};

struct tuning {
	struct space space;
	struct arena arena;
	const struct op_list *ops;
	size_t *node;                          /* parameter -> node, for the first space.n_ops */
	struct op_choice **choices;            /* parameter -> its options */
	size_t *recipe;                        /* parameter - n_ops -> recipe_list[] */
	struct recipe_option **recipe_options; /* likewise */
	size_t n_recipes;
	struct recipes when_on;
	int64_t *samples; /* options of the last parameter, if there are several */
	size_t n_samples;
	struct qplan base; /* what no parameter decides: moves, fixed recipes, format */
	/* a space whose options mean something else (space/settings_tuning.h) has its own way; NULL: as above */
	void (*own_qplan)(const struct tuning *t, const struct plan *p, struct qplan *out);
	char *(*own_text)(const struct tuning *t, const struct plan *p);
	void *own;
};

struct tuning_options {
	struct qplan_defaults defaults;
	const struct op_mask *masks; /* per node */
	struct recipes recipes;      /* as configured */
	const bool *recipe_fixed;    /* per recipe_list[]: the user has set it, or it would do nothing */
	/* per recipe_list[]: what is tried of a number that comes with on; the first is the one to try first.
	 * NULL: nothing */
	const struct recipe_numbers {
		const double *v;
		size_t n;
	} * numbers;
	struct recipes when_on; /* the settings of those with words, when a search switches them on */
	bool mixed;             /* ops can be in 16 bits, too: include_auto_mp */
	const int64_t *samples; /* calibration sizes, ascending order not needed */
	size_t n_samples;
};

struct tuning *tuning_new(const struct op_list *ops, const struct graph_index *g,
			  const struct tuning_options *o);
/* There are only so many samples: sizes beyond that are one. false: nothing changed. For before the space is used. */
bool tuning_limit_samples(struct tuning *t, size_t there_are);
/* What ops gain, once more is known of what they cost. */
void tuning_weigh(struct tuning *t);
void tuning_free(struct tuning *t);
/* The parameter of a node; MAP_NONE: it has none. */
size_t tuning_param(const struct tuning *t, size_t node);
/* What constraints have taken away of the space without them, in words; NULL: nothing. free() it. */
char *tuning_taken_away(const struct tuning *with, const struct tuning *without);

/* What an op in fp32 goes back to: the option that it fell back from, where that is remembered; else its default. */
uint16_t tuning_back(const struct tuning *t, const struct plan *p, size_t op);
/* The plan in full; qplan_release() it. */
void tuning_qplan(const struct tuning *t, const struct plan *p, struct qplan *out);
/* What the plan is, in words, where its space has words for it; else a copy of `otherwise`. free() it. */
char *tuning_text(const struct tuning *t, const struct plan *p, const char *otherwise);
int64_t tuning_samples(const struct tuning *t, const struct plan *p);

#endif
