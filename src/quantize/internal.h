/* What the files of this folder share while one plan is carried out. */
#ifndef QUANTIZE_INTERNAL_H
#define QUANTIZE_INTERNAL_H

#include "quantize/quantize.h"
#include "quantize/weights.h"

struct quantizer {
	struct model *base;
	const struct graph_index *g;
	const struct op_list *ops;
	struct range_source ranges;
	bool has_ranges;
	struct weight_cache *weights;
};

/* A QuantizeLinear/DequantizeLinear pair on a value. */
struct qpair {
	struct qsetting setting;
	struct qparams q;
	const char *scale, *zero;            /* names of the constants */
	const char *quantized, *float_again; /* what Q and DQ write; NULL until emitted */
	const char *barrier;                 /* a second DQ, for readers that must stay in fp32 */
	struct qpair *next;                  /* dedicated to readers with another setting */
};

/* What is decided of each value (numbered as in the graph index). */
struct qvalue {
	bool direct; /* a quantized op reads it as an activation */
	bool want;   /* direct, or so through ops that only move data */
	bool quantized;
	bool from_int; /* made by a quantized op, so readers must take it behind the DQ */
	bool absorbed; /* between an op and the Relu or Clip that the runtime fuses into it */
	size_t root;   /* whose parameters it shares */
	struct qpair *pair;
};

struct job {
	struct quantizer *z;
	const struct qplan *plan;
	const struct graph_index *g; /* of the base: value and node numbers */
	struct model *m;             /* being made */
	struct qvalue *values;
	VEC(struct node *) nodes;
	const char *qdq_domain;
	struct map made;    /* constants already added: name -> 1 */
	struct map dynamic; /* value -> index of its DynamicQuantizeLinear in nodes */
};

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

/* decide.c: fills values; which get a pair, with which parameters */
enum fettle_status decide(struct job *j, struct err *err);
/* emit.c: writes the nodes in QDQ format */
enum fettle_status emit(struct job *j, struct err *err);
const char *emit_const(struct job *j, const char *name, const struct tensor *t); /* borrows the data */
const char *emit_scalar(struct job *j, const char *name, enum dtype t, double x);
/* dynamic.c */
enum fettle_status emit_dynamic(struct job *j, size_t node, struct err *err);
/* qoperator.c: from QDQ to integer operators; `ops` are the nodes of the plan's ops */
void to_qoperator(struct job *j, struct node *const *ops);

#endif
