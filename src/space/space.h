/*
 * The tuning space as a search sees it: parameters, each with a few options. The ops come first, one parameter
 * each, then recipes, then the number of calibration samples. A plan is one option for every parameter.
 * Nothing here knows of models: what an option means is for who made the space.
 */
#ifndef SPACE_SPACE_H
#define SPACE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum param_kind { PARAM_OP, PARAM_RECIPE, PARAM_SAMPLES };
enum option_mode {
	OPTION_FP32,
	OPTION_STATIC,
	OPTION_DYNAMIC,
	OPTION_WIDE
}; /* of an op; the last in 16 bits */
enum { NO_OPTION = 255, SPACE_OPTIONS_MAX = 200 };

struct param_option {
	enum option_mode mode;
	unsigned setting; /* ops of one type: equal numbers mean equal settings; ordered by preference */
};

struct param {
	enum param_kind kind;
	const char *name; /* the op's, the recipe's, "samples" */
	uint8_t n_options;
	uint8_t first;    /* the default's */
	uint8_t fallback; /* ops: the fp32 option; NO_OPTION when the user does not allow it */
	uint8_t apply;    /* recipes: the option that applies it; NO_OPTION when the user has fixed it */
	bool keeps_fp32;  /* recipes: to apply it is to leave ops in fp32 */
	bool costly;      /* recipes: to apply it takes longer than a trial */
	const struct param_option *options; /* ops only */
	const char *type;                   /* ops: "Conv" */
	unsigned type_id;                   /* index in space.types */
	int block;                          /* ops: transformer block, or -1 */
	bool compute;                       /* ops: conv-like or matmul-like, what int8 is for */
	double gain; /* ops: share of the model's time that int8 saves, as far as known; >= 0 */
};

bool option_is_int8(const struct param_option *o);
/* The first option of an op in a mode; NO_OPTION: there is none. */
unsigned param_option_in(const struct param *p, enum option_mode mode);

struct space {
	struct param *v;
	size_t n, n_ops; /* the first n_ops are ops */
	const char **types;
	size_t n_types;
	int n_blocks;
	bool prefer_static; /* approach auto: static first, dynamic when no static combination will do */
};

/* A plan. choice[i] is an option of space->v[i]. */
struct plan {
	uint8_t *choice;
	size_t n;
};
#define PLAN_INIT                                                                                            \
	{                                                                                                    \
		NULL, 0                                                                                      \
	}

void plan_init(struct plan *p, const struct space *s);    /* every parameter's default */
void plan_copy(struct plan *to, const struct plan *from); /* releases what `to` had */
void plan_release(struct plan *p);
bool plan_equal(const struct plan *a, const struct plan *b);
uint64_t plan_hash(const struct plan *p);
bool plan_is_quantized(const struct plan *p, const struct space *s, size_t op); /* not at its fp32 option */
size_t plan_n_quantized(const struct plan *p, const struct space *s);
/* Is every op quantized that the default plan quantizes? */
bool plan_is_whole(const struct plan *p, const struct space *s);
/* Can op i fall back (it is quantized and has an fp32 option)? */
bool plan_can_fall_back(const struct plan *p, const struct space *s, size_t op);
/* log10 of the number of plans; with `ops_only`, without fp32 options, recipes and samples */
double space_size_log10(const struct space *s, bool ops_only);

#endif
