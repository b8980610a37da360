/*
 * A space: parameters, each with named options and the condition under which it has a meaning. A plan is one option of every
 * parameter. tune's space has one parameter per op, then recipes, then the number of calibration samples; that of a parameter
 * search has ops, then settings. Nothing here knows of models: what an option means is for who made the space.
 *
 * A plan is known by its canonical text, plan_text(), and by the hash of that, plan_hash(). The history, files, caches and the
 * check for duplicates know it by nothing else.
 */
#ifndef SPACE_SPACE_H
#define SPACE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fingerprint.h"
#include "base/mem.h"

enum param_kind { PARAM_OP, PARAM_RECIPE, PARAM_SAMPLES, PARAM_SETTING };
enum option_mode {
	OPTION_FP32,
	OPTION_STATIC,
	OPTION_DYNAMIC,
	OPTION_WIDE,
	OPTION_WEIGHT,
}; /* of an op; WIDE: in 16 bits, WEIGHT: weight-only */
enum { NO_OPTION = UINT16_MAX, SPACE_OPTIONS_MAX = 200 };

struct param_option {
	enum option_mode mode;
	unsigned setting; /* ops of one type: equal numbers mean equal settings; ordered by preference */
	uint16_t alike;   /* the first option of this op that runs the same kernels, on other numbers */
	double bytes;     /* that its weight takes up; 0: not known */
	uint16_t part
		[2]; /* of the setting: how activations and how weights are quantized; the preferred first */
	/* of a weight-only option: see struct block_setting */
	unsigned bits, block, algorithm;
};

struct param {
	enum param_kind kind;
	const char *name;         /* the op's, the recipe's, "samples" */
	const char *const *names; /* of the options, each as canonical JSON; NULL: their numbers */
	/* It has a meaning only where the parameter `when`, which comes before it, has a meaning and one of these options, as
	 * bits. No bits: always. */
	size_t when;
	uint64_t when_options;
	bool open; /* space_option() adds options: a number out of a range, say */
	uint16_t n_options;
	uint16_t first;    /* the default's */
	uint16_t fallback; /* ops: the fp32 option; NO_OPTION when the user does not allow it */
	uint16_t apply;    /* recipes: the option that applies it; NO_OPTION when the user has fixed it */
	bool keeps_fp32;   /* recipes: to apply it is to leave ops in fp32 */
	bool costly;       /* recipes: to apply it takes longer than a trial */
	bool corrects;     /* recipes: only weights and biases, by what one sweep over the samples shows */
	bool rewrites;     /* recipes: the fp32 model, of which more has to be observed */
	double spares;     /* recipes: share of the multiply-adds in ops that it has no effect on */
	bool rounds;       /* recipes: to apply it is to round weights for the plan; see plan_root() */
	const struct param_option *options; /* ops only */
	const char *type;                   /* ops: "Conv" */
	unsigned type_id;                   /* index in space.types */
	int block;                          /* ops: transformer block, or -1 */
	bool compute;                       /* ops: conv-like or matmul-like, what int8 is for */
	double gain; /* ops: share of the model's time that int8 saves, as far as known; >= 0 */
};

bool option_is_int8(const struct param_option *o); /* in 8 bits, or weight-only */
/* The first option of an op in a mode; NO_OPTION: there is none. */
unsigned param_option_in(const struct param *p, enum option_mode mode);

/* A plan. choice[i] is an option of space->v[i]. */
struct plan {
	uint16_t *choice;
	size_t n;
};
#define PLAN_INIT                                                                                            \
	{                                                                                                    \
		NULL, 0                                                                                      \
	}

/* What no parameter decides, but a plan's text says: "format" at the top, "cle" among the recipes. */
struct space_fixed {
	const char *section; /* "ops", "recipes"; "": at the top */
	const char *name, *value;
};

struct space {
	struct param *v;
	size_t n, n_ops; /* the first n_ops are ops */
	const char **types;
	size_t n_types;
	int n_blocks;
	bool prefer_static; /* approach auto: static first, dynamic when no static combination is good enough */
	bool rounds;        /* every plan rounds weights, because the user has fixed that recipe */
	VEC(struct space_fixed) fixed;
	VEC(struct plan) roots; /* see plan_root() */
	struct arena arena;     /* of names */
};
void space_release(struct space *s); /* what it has allocated itself; v and types are their maker's */

/* The option of that name, which an open parameter gets if it has none; NO_OPTION: there is none, or no room. */
unsigned space_option(struct space *s, size_t param, const char *name);
/* Of all parameters, options and conditions: does a strategy see the same space? */
void space_hash(const struct space *s, char out[FINGERPRINT_LEN]);
/* log10 of the number of plans; with `ops_only`, without fp32 options, recipes and samples */
double space_size_log10(const struct space *s, bool ops_only);

void plan_init(struct plan *p, const struct space *s);    /* every parameter's default */
void plan_copy(struct plan *to, const struct plan *from); /* releases what `to` had */
void plan_release(struct plan *p);
/* Has parameter i a meaning in this plan? */
bool plan_uses(const struct plan *p, const struct space *s, size_t i);

/*
 * The plan as JSON, in one form: members in the order of their names' bytes, no blanks, the shortest numbers that read back
 * exactly. Parameters without a meaning are left out, so plans that differ only in those are the same plan. free() it.
 */
char *plan_text(const struct plan *p, const struct space *s);
void plan_hash(const struct plan *p, const struct space *s, char out[FINGERPRINT_LEN]);
void plan_text_hash(const char *text, char out[FINGERPRINT_LEN]); /* of such a text */
/* Are their texts the same? */
bool plan_equal(const struct plan *a, const struct plan *b, const struct space *s);
/* The plan of such a text; FETTLE_INVALID when it is none of this space. `where` names the text in messages. */
enum fettle_status plan_read(struct plan *out, struct space *s, const char *text, const char *where,
			     struct err *err);
/* The plan that stands for all that run the same kernels: its speed and size are theirs. */
void plan_alike(const struct plan *p, const struct space *s, struct plan *out);

/*
 * With a recipe that rounds weights, they are rounded once for a plan and for all plans, tried later, that differ from it only
 * in which ops fell back to fp32 or 16 bits: it is their root. Plans that are tried are remembered for that; the text of a plan
 * says what the ops that fell back were like before. NULL: the plan has no root, or none is remembered.
 */
void space_remember(struct space *s, const struct plan *p);
const struct plan *plan_root(const struct plan *p, const struct space *s);

bool plan_is_quantized(const struct plan *p, const struct space *s, size_t op); /* not at its fp32 option */
size_t plan_n_quantized(const struct plan *p, const struct space *s);
double plan_gain(const struct plan *p, const struct space *s); /* what int8 saves, as far as is known */
/* Is every op quantized that the default plan quantizes? */
bool plan_is_whole(const struct plan *p, const struct space *s);
/* Can op i fall back (it is quantized and has an fp32 option)? */
bool plan_can_fall_back(const struct plan *p, const struct space *s, size_t op);

#endif
