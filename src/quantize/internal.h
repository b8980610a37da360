/* What the files of this folder share while one plan is carried out. */
#ifndef QUANTIZE_INTERNAL_H
#define QUANTIZE_INTERNAL_H

#include "quantize/quantize.h"
#include "quantize/weights.h"

struct quantizer {
	struct model *base;
	const struct graph_index *g;
	const struct op_list *ops;
	struct weight_cache *weights;
	struct block_store *blocks;     /* weight-only, of algorithms that need no data */
	VEC(struct late_blocks *) late; /* of weights that are not read before the model is saved */
};

/* A QuantizeLinear/DequantizeLinear pair on a value. */
struct qpair {
	struct qsetting setting;
	struct qparams q;
	const char *scale, *zero;            /* names of the constants */
	const char *quantized, *float_again; /* what Q and DQ write; NULL until emitted */
	const char *barrier;                 /* a second DQ, for readers that must stay in fp32 */
	bool taken;                          /* has a reader; with dedicated_qdq_pair it is the only one */
	struct qpair *next;                  /* dedicated to readers with another setting */
};

/* What is decided of each value (numbered as in the graph index). */
struct qvalue {
	bool direct; /* a quantized op reads it as an activation */
	bool want;   /* direct, or so through ops that only move data */
	bool quantized;
	bool from_int; /* made by a quantized op, so readers must read the DQ */
	bool absorbed; /* between an op and the Relu or Clip that the runtime fuses into it */
	size_t root;   /* whose parameters it shares */
	struct qpair *pair;
	const char *source; /* the float that its Q reads, once emitted */
};

struct job {
	struct quantizer *z;
	const struct knowledge *known;
	struct arena *arena;         /* of the decisions; lives as long as the job */
	const struct qplan *plan;    /* with the modes that are in effect */
	const struct graph_index *g; /* of the base: value and node numbers */
	struct model *m;             /* being made */
	struct qvalue *values;
	VEC(struct node *) nodes;
	const char *qdq_domain;
	struct map made;                    /* constants already added: name -> 1 */
	struct trace *traces;               /* may be NULL */
	const struct quantize_watch *watch; /* may be NULL */
	struct map dynamic;                 /* value -> index of its DynamicQuantizeLinear in nodes */
};

static inline const struct rounded *job_rounded(const struct job *j, size_t node)
{
	return j->known->rounding ? j->known->rounding->v[node] : NULL;
}

static inline void job_tell_weight(const struct job *j, size_t node, size_t input, const struct qweight *w)
{
	if (j->watch)
		j->watch->weight(j->watch->self, &j->z->ops->v[node], input, w);
}

static inline enum op_mode job_mode(const struct job *j, size_t node)
{
	return j->z->ops->v[node].rule ? j->plan->ops[node].mode : OP_FP32;
}

/* a static compute or element-wise op */
static inline bool job_quantizes(const struct job *j, size_t node)
{
	const struct op_rule *r = j->z->ops->v[node].rule;

	return r && j->plan->ops[node].mode == OP_STATIC && (r->kind == OP_COMPUTE || r->kind == OP_ELEMENT);
}

static inline bool job_moves(const struct job *j, size_t node)
{
	const struct op_rule *r = j->z->ops->v[node].rule;

	return r && j->plan->ops[node].mode == OP_STATIC && r->kind == OP_MOVE;
}

/* does it round to 16 bits? */
static inline bool choice_is_wide(const struct op_choice *c, const struct op_rule *r)
{
	return dtype_size(c->act.dtype) == 2 || (r->weight >= 0 && dtype_size(c->weight.dtype) == 2);
}

/* recipes.c: the plan with the modes that its recipes leave; qplan_release() it */
struct qplan effective_plan(const struct qplan *p, const struct op_list *ops);
/* is the output of such an op left to its readers (recipe no_output)? */
bool leaves_output(const struct recipes *r, const struct node *n);
/* does the output of such an op that moves data not share its input's range? */
bool has_own_range(const struct recipes *r, const struct node *n);
/* why_kept of the first recipe that leaves the op in fp32; NULL: none does */
const char *recipe_that_keeps(const struct recipes *r, const struct op_list *ops, size_t op);

/* decide.c: fills values; which get a pair with which setting, and then also with which parameters */
void decide_pairs(struct job *j);
enum fettle_status decide(struct job *j, struct err *err);
/* would the runtime drop the Relu or Clip that makes this value (true, too, if nothing such does) before a Q so? */
bool absorbs_activation(const struct job *j, size_t value, const struct qpair *p);
/* concat.c: the inputs of a Concat take its output's parameters */
void share_concats(struct job *j);

/* emit.c: writes the nodes in QDQ format */
enum fettle_status emit(struct job *j, struct err *err);
const char *emit_const(struct job *j, const char *name, const struct tensor *t); /* borrows the data */
const char *emit_scalar(struct job *j, const char *name, enum dtype t, double x);
struct node *emit_qdq(struct job *j, const char *op, const char *in, const char *scale, const char *zero,
		      const char *out);
/* what an op in fp32 reads: the float where there is one, else a DQ's output */
const char *float_input(struct job *j, const char *name, bool in_weights_path);
/* emit_weights.c: the weight and the bias of a static op. If a recipe makes `n` a MatMul, *added is the Add. */
enum fettle_status emit_weights(struct job *j, size_t node, struct node *n, float input_scale,
				struct node **added, struct err *err);
const char *emit_weight_dq(struct job *j, const char *name, const struct qweight *w, const char *out_base);
/* emit_block_pairs.c: a weight as floats again, by a blocked DequantizeLinear; `base` begins the names of its constants. */
struct block_packed;
enum fettle_status check_block_pairs(const struct model *m, const struct op *op,
				     const struct block_setting *s, struct err *err);
enum fettle_status emit_block_pairs(struct job *j, const char *base, const char *op,
				    const struct block_packed *w, float alpha, const char **out,
				    struct err *err);
/* emit_blocks.c: a weight-only op */
enum fettle_status emit_blocks(struct job *j, size_t node, struct err *err);
/* dynamic.c */
enum fettle_status emit_dynamic(struct job *j, size_t node, struct err *err);
/* qoperator.c: from QDQ to integer operators; `ops` are the nodes of the plan's ops */
void to_qoperator(struct job *j, struct node *const *ops);

/*
 * correct.c: the bias of a static op with a constant weight, with what the recipes add to it because the
 * weight has become `w` (in the float weight's layout). No data: there is no bias, and none is needed.
 */
enum fettle_status corrected_bias(struct job *j, size_t node, const struct qweight *w, struct tensor *out,
				  struct err *err);
/* the same for a MatMul, whose bias is the constant of the Add after it: rewrites that */
enum fettle_status correct_matmul(struct job *j, size_t node, const struct qweight *w, struct err *err);
/* has such an op a bias, or can it be given one? */
bool takes_shift(const struct job *j, size_t node);
/* A weight in groups, as [group][first][second][inner], inputs or outputs first. */
struct layout {
	size_t groups, first, second, inner;
	bool inputs_first;
	double share; /* of the kernel positions that one output sees */
};
struct layout layout_of(const struct node *n, const struct tensor *w);
size_t layout_inputs(const struct layout *l);
size_t layout_outputs(const struct layout *l);
/* where the channels lie that the op's weight is applied to */
struct channel_axis weighted_axis(const struct model *m, const struct op *op, const struct node *n);

#endif
