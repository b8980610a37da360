/* What makes layers of oneDNN and what runs them share. */
#ifndef FINETUNE_MATH_IMPL_H
#define FINETUNE_MATH_IMPL_H

#include "finetune/dnnl2.h"
#include "finetune/math.h"

enum { MAX_ARGS = 5, MAX_STEPS = 4 };

/* One execution: a primitive with its arguments. */
struct step {
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[MAX_ARGS];
	int n;
};

/* What is run in one go: reorders, then the primitive itself, then reorders. */
struct sequence {
	struct step v[MAX_STEPS];
	int n;
};

struct math_primitives {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct sequence residual; /* weights in oneDNN's order, the pass */
	struct sequence gradient; /* the pass, gradients in ours */
	struct sequence more;     /* another pass, its gradients added to those in oneDNN's order; its db: */
	float *more_db;
	struct sequence input_gradient;
	struct step maps[N_MATH_MAPS];
	dnnl_memory_t x, target; /* their data are given with each call */
	size_t outputs;
	VEC(dnnl_memory_t) memories;
	VEC(void *) buffers;
};

/* Turns oneDNN's errors into ours: "cannot WHAT with oneDNN". */
enum fettle_status math_check(dnnl_status_t st, const char *what, struct err *err);

#endif
