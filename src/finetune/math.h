/* A layer's forward and backward passes, by oneDNN. No other file sees oneDNN. */
#ifndef FINETUNE_MATH_H
#define FINETUNE_MATH_H

#include "finetune/layer.h"

/* What a pass reads, wherever it lies. */
struct math_units {
	const float *x, *target; /* inputs, outputs as they should be: n units of each */
};

/* Plain buffers in the layer's layout, to be filled and read by the caller. */
struct layer_math {
	size_t n;       /* units per pass */
	float *x;       /* room for inputs and */
	float *target;  /* targets that do not lie together */
	float *y;       /* residuals */
	float *w, *b;   /* weights and biases, real numbers */
	float *dw, *db; /* gradients of half the sum of squared residuals */
	float *dx;      /* likewise; NULL unless asked for by math_want_dx() */
	double seconds; /* spent in oneDNN's primitives */
	struct math_primitives *p;
};

enum fettle_status math_new(struct layer_math **out, const struct layer *l, size_t n, struct err *err);
void math_free(struct layer_math *m);

/* y = w * x + b - target */
enum fettle_status math_residual(struct layer_math *m, const struct math_units *u, struct err *err);
enum fettle_status math_gradient(struct layer_math *m, struct err *err); /* after that: dw and db */
/* both n times over, with the same w and b: dw and db in all */
enum fettle_status math_learn(struct layer_math *m, const struct math_units *u, size_t n, struct err *err);

/* For layers with others before them: y's are then gradients, whatever they are of. */
enum fettle_status math_want_dx(struct layer_math *m, const struct layer *l, struct err *err);
enum fettle_status math_input_gradient(struct layer_math *m, struct err *err); /* dx, from y and w */

/* Two matrices, rows x inner and inner x columns, each as it lies or transposed. */
struct math_factors {
	size_t rows, columns, inner;
	const float *a, *b;
	bool a_turned, b_turned;
};
enum fettle_status math_product(const struct math_factors *f, float *c, struct err *err); /* c += a b */

/* out = f(in), for as many numbers as there are weights */
enum math_map { MAP_LOGISTIC, MAP_LOG, MAP_EXP, N_MATH_MAPS };
enum fettle_status math_map(struct layer_math *m, enum math_map f, float *in, float *out, struct err *err);

/* How many threads oneDNN uses from now on, in the calling thread; returns how many before. */
int math_threads(int n);

#endif
