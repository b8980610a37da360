/*
 * Recipes: changes to how a whole model is quantized. A recipe is one file and one line in list.h. Its file says what it is
 * called in YAML, in plans and on the command line, what it may be set to, whether a search tries it, and what it does:
 * a pass below, or its member of struct recipes, which the quantizer reads where that pass belongs.
 *
 *	const struct recipe recipe_keep_matmul = {
 *		.name = "keep_matmul",
 *		.summary = "every MatMul stays in fp32",
 *		RECIPE_SWITCH(keep_matmul),
 *		.keep = keep_matmul,
 *	};
 */
#ifndef RECIPE_RECIPE_H
#define RECIPE_RECIPE_H

#include "base/str.h"
#include "ops/rules.h"
#include "recipe/finetune.h"

enum { NO_OUTPUT_MAX = 64 };

/* The recipes of a plan. A zeroed struct is the default. */
struct recipes {
#define RECIPE(id, members) members;
#include "recipe/list.h"
#undef RECIPE
	const char *no_output[NO_OUTPUT_MAX]; /* optypes_to_exclude_output_quant; names in op_rules[] */
	size_t n_no_output;
};

/* Their places in recipe_list. */
enum recipe_id {
#define RECIPE(id, members) RECIPE_##id,
#include "recipe/list.h"
#undef RECIPE
	RECIPES
};

/* A key that is read and does nothing. The table ends without a name. */
struct recipe_unused {
	const char *name, *why;
};

/* A number that comes with "on". */
struct recipe_number {
	const char *map, *key; /* in YAML: "smooth_quant_args" and "alpha" */
	const char *summary;   /* what it means */
	size_t offset;         /* of the double in struct recipes */
	double min, max;
	double by_default;   /* of an "on" without a number */
	const char *word;    /* may replace the number; NULL: none */
	double word_value;   /* and means this, outside the limits */
	const double *tried; /* what a search tries unless told otherwise, in order */
	size_t n_tried;
	const struct recipe_unused *unused; /* further keys of the map; NULL: none */
};

/* A setting of a recipe, beside its being on. The table ends without a name. */
struct recipe_key {
	const char *name, *summary;
	enum recipe_key_type {
		RECIPE_COUNT, /* size_t */
		RECIPE_SEED,  /* uint64_t */
		RECIPE_REAL,  /* double */
		RECIPE_PAIR,  /* double[2] */
		RECIPE_BOOL,  /* bool */
		RECIPE_WORD,  /* enum, from 0: an index in words */
	} type;
	size_t offset; /* in struct recipes */
	double min, max;
	const char *const *words;
	size_t n_words;
	bool newer;      /* a plan does not say it while it is 0: older plans have the same text */
	bool searched;   /* 'fettle search' may vary it */
	bool brief;      /* of a word: may follow the recipe's own on the command line, "gram:block" */
	unsigned ways;   /* bits of the recipe's words: it has an effect with these only; 0: with all */
	const char *why; /* and says so of the others: "only adaround has it" */
};

struct recipe {
	const char *name, *summary;
	const char *alias;   /* another name, in YAML and on the command line; NULL: none */
	const char *values;  /* as the command takes them; NULL: "on, off" */
	size_t offset, size; /* of its member in struct recipes */
	bool usual;          /* on by default, and its member says that it is off */
	bool tuned;          /* tried by the search when the user has not fixed it */
	bool costly;     /* it takes longer than a trial: tried alone, and only where the target is not met */
	bool keeps_fp32; /* to apply it is to leave ops in fp32 */
	bool changes_numbers; /* that is all it does: the runtime makes the same of the model without it */
	bool rewrites;        /* the fp32 model, of which more has to be observed */
	bool matrix_only;     /* it has an effect on MatMul and Gemm only */
	bool needs_data;      /* there is nothing to go by where nothing is calibrated */
	bool newer;           /* a plan does not say that it is off: older plans have the same text */
	bool pairs_only;      /* it is about Q/DQ pairs, which the QOperator format does not have */
	const struct recipe_number *number; /* NULL: none */
	/* several ways to be on, with settings; its member is a struct that starts with an enum: an index in words, of which
	 * the first is off */
	const char *const *words;
	size_t n_words;
	const char *map; /* the key of the settings in YAML */
	const struct recipe_key *keys;
	int usual_way;   /* which "on" stands for */
	const char *off; /* with a number or settings: why they do nothing when it is off */

	/* What it does where it is applied; any may be NULL. */
	void (*start)(struct recipes *r, int way); /* its settings by default */
	void (*keep)(const struct recipes *r, const struct op_list *ops,
		     bool *in_fp32); /* sets it for ops that stay in fp32 */
	const char *why_kept;        /* "recipe NAME=off": for reports */
	bool (*own_range)(const struct recipes *r,
			  const struct node *n); /* has such an op's output a range of its own? */
};
#define RECIPE_MEMBER(member)                                                                                \
	.offset = offsetof(struct recipes, member), .size = sizeof(((struct recipes *)0)->member)
#define RECIPE_SWITCH(member) RECIPE_MEMBER(member)
/* on by default; the member, when true, turns it off */
#define RECIPE_USUAL(member) RECIPE_MEMBER(member), .usual = true

#define RECIPE(id, members) extern const struct recipe recipe_##id;
#include "recipe/list.h"
#undef RECIPE
extern const struct recipe *const recipe_list[RECIPES];
const struct recipe *recipe_find(const char *name); /* or its alias; NULL: there is none */

bool recipe_get(const struct recipes *r, const struct recipe *i); /* the documented value */
void recipe_set(struct recipes *r, const struct recipe *i, bool on);
/* Is it not as by default? Then its pass is run. */
bool recipe_applies(const struct recipes *r, const struct recipe *i);
double *recipe_number(struct recipes *r, const struct recipe *i); /* of one that has a number */
int recipe_way(const struct recipes *r, const struct recipe *i);  /* of one that has words */
/* The recipe as it is in the other, with its settings. */
void recipe_copy(struct recipes *to, const struct recipes *from, const struct recipe *i);
/* One setting as it is in the other. */
void recipe_copy_key(struct recipes *to, const struct recipes *from, const struct recipe_key *k);
/* Those that are not as by default, as the command takes them: "cle, smooth_quant=auto, finetune=gram". */
void recipes_text(const struct recipes *r, struct str *out);
/* What there is, for the user; auto_mp, which no plan has, comes last. False past the end. */
bool recipe_describe(size_t i, struct fettle_recipe *out);
/* Adds a type to no_output, once, if any op of it can be quantized. */
void recipes_leave_output(struct recipes *r, const char *type);

/* keep_first.c: the first and the last compute op, in the order of the nodes; false: there is none */
bool compute_ends(const struct op_list *ops, size_t *first, size_t *last);

#define SMOOTH_AUTO (-1.0) /* smooth_alpha: each layer has an alpha of its own */

#endif
