/* The tuning space of a model: what each option of each parameter means, and plans turned into what the
 * quantizer carries out. */
#ifndef SPACE_TUNING_H
#define SPACE_TUNING_H

#include "base/fingerprint.h"
#include "base/str.h"
#include "space/constraint.h"
#include "space/space.h"

/* One recipe as a parameter: its name, and the field of struct recipes that its options set. */
struct recipe_info {
	const char *name, *summary;
	size_t offset;    /* of a bool in struct recipes */
	bool on_is_field; /* does "on" (as documented) set the field, or clear it? */
	bool first;       /* documented value by default */
	bool apply;       /* the value that helps accuracy */
	bool keeps_fp32;  /* to apply it is to leave ops in fp32 */
	bool tuned;       /* tried by the search when the user has not fixed it */
	bool costly; /* it takes longer than a trial: tried alone, and only where the target is not met */
	enum recipe_kind {
		RECIPE_SWITCH,
		RECIPE_ALPHA, /* on comes with an alpha (recipes.smooth_alpha) */
		RECIPE_FINETUNE, /* on comes with an algorithm and more (recipes.finetune), in place of the bool */
	} kind;
};
extern const struct recipe_info recipe_infos[];
extern const size_t n_recipe_infos;
bool recipe_get(const struct recipes *r, const struct recipe_info *i); /* the documented value */
void recipe_set(struct recipes *r, const struct recipe_info *i, bool on);
/* Those that are not as by default, as the command takes them: "cle, smooth_quant=auto, finetune=gram". */
void recipes_text(const struct recipes *r, struct str *out);
const struct recipe_info *recipe_find(const char *name); /* NULL: there is none */

/* An option of a recipe's parameter. */
struct recipe_option {
	bool on; /* as documented */
	double alpha;
};

struct tuning {
	struct space space;
	struct arena arena;
	const struct op_list *ops;
	size_t *node;                          /* parameter -> node, for the first space.n_ops */
	struct op_choice **choices;            /* parameter -> its options */
	size_t *recipe;                        /* parameter - n_ops -> recipe_infos[] */
	struct recipe_option **recipe_options; /* likewise */
	size_t n_recipes;
	struct finetune finetune;
	int64_t *samples; /* options of the last parameter, if there are several */
	size_t n_samples;
	VEC(struct plan) roots; /* see tuning_remember() */
	struct qplan base;      /* what no parameter decides: moves, fixed recipes, format */
	/* a space whose options mean something else (space/settings_tuning.h) has its own way; NULL: as above */
	void (*own_qplan)(const struct tuning *t, const struct plan *p, struct qplan *out);
	char *(*own_text)(const struct tuning *t, const struct plan *p);
	void *own;
};

struct tuning_options {
	struct qplan_defaults defaults;
	const struct op_mask *masks; /* per node */
	struct recipes recipes;      /* as configured */
	const bool *recipe_fixed;    /* per recipe_infos[]: the user has set it, or it would do nothing */
	const double *alphas;        /* of smooth_quant, to be tuned; the first is the one to try first */
	size_t n_alphas;
	struct finetune finetune; /* what the recipe finetune is when a search switches it on */
	bool mixed;               /* ops can be in 16 bits, too: include_auto_mp */
	const int64_t *samples;   /* calibration sizes, ascending order not needed */
	size_t n_samples;
};

struct tuning *tuning_new(const struct op_list *ops, const struct graph_index *g,
			  const struct tuning_options *o);
/* There are only so many samples: sizes beyond that are one. false: nothing changed. For before the space is used. */
bool tuning_limit_samples(struct tuning *t, size_t there_are);
void tuning_free(struct tuning *t);
/* What constraints have taken away of the space without them, in words; NULL: nothing. free() it. */
char *tuning_taken_away(const struct tuning *with, const struct tuning *without);

/*
 * A plan that is tried. The recipe finetune rounds weights once for it and for all plans, tried later, that differ from it
 * only in which ops fell back to fp32 or 16 bits.
 */
void tuning_remember(struct tuning *t, const struct plan *p);
/* What an op in fp32 goes back to: the option that it fell back from, where that is remembered; else its default. */
uint8_t tuning_back(const struct tuning *t, const struct plan *p, size_t op);
/* The plan in full; qplan_release() it. */
void tuning_qplan(const struct tuning *t, const struct plan *p, struct qplan *out);
/* What the plan is, in words, where its space has words for it; else a copy of `otherwise`. free() it. */
char *tuning_text(const struct tuning *t, const struct plan *p, const char *otherwise);
int64_t tuning_samples(const struct tuning *t, const struct plan *p);
/* Of what every option means: the choices of a history's plans hold only for a space with the same one. */
void tuning_fingerprint(const struct tuning *t, char out[FINGERPRINT_LEN]);

#endif
