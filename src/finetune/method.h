/* What the ways of rounding share. Each changes a layer's levels (adaquant: its scales, too). */
#ifndef FINETUNE_METHOD_H
#define FINETUNE_METHOD_H

#include "finetune/capture.h"
#include "finetune/math.h"

/* Loops over all weights in each iteration: compiled for wider vectors, too, where the compiler chooses at load time. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WIDE
#endif

static inline float clampf(float x, float least, float most)
{
	x = x < least ? least : x;
	return x > most ? most : x;
}

/* A layer at work. */
struct work {
	struct capture *c;
	struct layer *l;
	struct layer_math *m;
	const struct finetune *o;
	size_t node;   /* of the layer */
	uint64_t seed; /* of this layer */
	size_t run;    /* units that make up a sample */
	size_t passes; /* of m, for an iteration's samples */
	bool resume;   /* learning starts at the layer's levels, not at its fp32 weights */
};

enum fettle_status gram(struct work *w, struct err *err);
size_t gram_bytes(const struct layer *l); /* that it needs beside the samples */

/* Tells the user which op it is at; FETTLE_STOP: that is enough. Learning asks every few iterations. */
enum { ITERATIONS_BETWEEN = 16 };
enum fettle_status tell_progress(const struct finetune_source *s, size_t node, struct err *err);
/* The shift that takes the mean residual off, on the samples learned from. */
enum fettle_status fit_shift(struct work *w, struct err *err);
/* Error on batches first..end-1 of the layer as it is. */
enum fettle_status work_error(struct work *w, size_t first, size_t end, double *out, struct err *err);

/* train.c: stochastic gradient descent, whatever is learned */
struct learner {
	void *self;
	/* the real weights for the next iteration, outputs x patch */
	enum fettle_status (*weights)(void *self, size_t iteration, float *w, struct err *err);
	/* one step along the gradient with respect to those of the mean squared error, summed over outputs: that
	 * is `factor` times what is given */
	enum fettle_status (*step)(void *self, size_t iteration, const float *gradient, float factor,
				   struct err *err);
	/* writes what was learned to the layer */
	void (*store)(void *self);
	void (*close)(void *self);
};
/* `w` must outlive them; of it they use l, m, o and resume. */
struct learner adaround_open(struct work *w);
struct learner adaquant_open(struct work *w);
static inline struct learner learner_open(struct work *w)
{
	return w->o->algorithm == FINETUNE_ADAROUND ? adaround_open(w) : adaquant_open(w);
}
enum fettle_status train(struct work *w, const struct learner *f, struct err *err);

/*
 * Where `fit` of all batches fit the budget at once: how many iterations to learn on those before it is the next ones'
 * turn, so that none has the last word alone.
 */
size_t stretch_length(const struct finetune *o, size_t batches, size_t fit);

/* Numbers that fade away (moments of weights that no longer move) are taken for zero; the CPU is slow with what is nearly that. */
unsigned flush_tiny(void); /* returns what to set again: */
void flush_as(unsigned before);

/* Adam (arXiv:1412.6980) for n numbers. */
struct adam {
	float *mean, *square;
	size_t n, t;
};
void adam_init(struct adam *a, size_t n);
void adam_release(struct adam *a);
void adam_step(struct adam *a, float *x, const float *gradient, double rate);

#endif
