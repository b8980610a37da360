/*
 * What the user allows: constraints only ever remove options. The narrower wins, field by field: an op's name
 * over its type over the whole model. The lists of weight and activation are crossed: a pair of integer types is int8, and a
 * pair with fp32 on either side is fp32, so one side that lists it is enough to allow the fallback.
 */
#ifndef SPACE_CONSTRAINT_H
#define SPACE_CONSTRAINT_H

#include "space/qplan.h"

/* Allowed values as bits; 0: anything. */
struct side_mask {
	unsigned granularity; /* MASK_PER_* */
	unsigned scheme;      /* 1 << SCHEME_* */
	unsigned dtype;       /* T_*, MASK_FP32 */
	unsigned algorithm;   /* 1 << RANGE_* */
	/* of weight-only weights; their scheme is the one above */
	unsigned bits;   /* 1 << 4: 4 bits */
	unsigned group;  /* sums of block sizes, each of which is a power of two */
	unsigned method; /* 1 << BLOCK_* */
	unsigned level;  /* 1 << 4: accuracy_level 4 */
};
enum { MASK_PER_TENSOR = 1, MASK_PER_CHANNEL = 2 };
enum { MASK_FP32 = T_ALL + 1 };

struct op_mask {
	struct side_mask weight, act;
	bool named; /* to be quantized, by its name or type: on offer even if the default plan leaves it in fp32 */
};

enum constraint_scope { CONSTRAIN_MODEL, CONSTRAIN_TYPE, CONSTRAIN_OP };
struct constraint {
	enum constraint_scope scope;
	const char *name;  /* an op type; an op's name or a regular expression, see space/op_pattern.h */
	const char *where; /* "conf.yaml:3:5", for messages */
	struct op_mask mask;
};

/* Who is told of what has no effect; NULL: it is an error. */
struct constraint_notes {
	void (*note)(void *self, const char *text);
	void *self;
};
/* What is allowed for each op (as many as ops->n). A constraint that matches no op is an error naming the nearest; where none is near, and
 * there is someone to be told (notes may be NULL), it does nothing. */
enum fettle_status constraints_apply(const struct constraint *v, size_t n, const struct op_list *ops,
				     const struct model *m, const struct constraint_notes *notes,
				     struct op_mask *out, struct err *err);

/* Types and schemes that there are kernels for, the preferred ones first. */
struct form {
	enum dtype dtype;
	enum scheme scheme;
};
enum { N_ACT_FORMS = 6, N_WEIGHT_FORMS = 3 };
extern const struct form act_forms[N_ACT_FORMS], weight_forms[N_WEIGHT_FORMS];

/*
 * Replaces what the runtime does not have on this CPU (int8 activations on x86-64, say) by the nearest it has. Tells `note` once
 * what was replaced, and of how many ops.
 */
void constraints_resolve(struct op_mask *masks, const struct op_list *ops, const struct cpu *cpu,
			 void (*note)(void *self, const char *text), void *self);

bool mask_allows_fp32(const struct op_mask *m, const struct op *op);
bool mask_allows_int(const struct op_mask *m, const struct op *op);
/* Weight-only in any form; that form. */
bool mask_allows_blocks(const struct op_mask *m, const struct op *op);
bool mask_allows_block(const struct op_mask *m, const struct op *op, const struct block_setting *s);
bool mask_allows(const struct op_mask *m, const struct op *op, const struct op_choice *c);
/* Changes a choice to the nearest allowed one; fp32 when nothing else is allowed. */
void mask_fit(const struct op_mask *m, const struct op *op, const struct qplan_defaults *d,
	      struct op_choice *c);

/* Only what both allow. */
void mask_intersect(struct op_mask *to, const struct op_mask *with);

unsigned dtype_bit(enum dtype t); /* T_* */

#endif
