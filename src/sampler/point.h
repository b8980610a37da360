/*
 * Points of a mixed space, and sets of them. A point has a number for each parameter: of the option or level when
 * the parameter is discrete, the value itself when it is not, NAN when it is inactive. Equal points are equal byte
 * by byte.
 */
#ifndef SAMPLER_POINT_H
#define SAMPLER_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sampler/sampler.h"

#define POINT_NONE SIZE_MAX

struct point_param {
	enum sampler_kind kind;
	uint64_t levels;  /* 0: continuous */
	double low, high; /* numbers */
	double step;      /* between levels; 0 when they are evenly spread on the scale, or continuous */
	bool log;         /* the scale is logarithmic */
	double from, to;  /* on the scale, what the parameter covers: half a step more than low to high */
	size_t parent;    /* POINT_NONE: always active */
	bool *when;       /* [levels of the parent]: active */
	size_t child, sibling; /* of a tree: the last child, the sibling before */
	uint64_t count;        /* ways to fill the parameter and all below it; 0: 2^63 or more */
};

struct point_space {
	size_t n;
	struct point_param *params;
	size_t last_root;
	uint64_t size; /* number of points, 0 when they are 2^63 or more: too many for an index */
	bool even;     /* every point is as likely as any other in a random draw */
};

/* Takes what sampler_new() has checked. Floats without a step are continuous when `levels` is 0. */
void point_space_init(struct point_space *s, const struct sampler_param *params, size_t n, unsigned levels);
void point_space_release(struct point_space *s);
bool point_has_numbers(const struct point_space *s);

static inline bool param_is_number(const struct point_param *p)
{
	return p->kind != SAMPLER_CATEGORICAL;
}

/* Between our numbers and the caller's; false when the value is none of the parameter's. */
double param_value(const struct point_param *p, double x);
bool param_find(const struct point_param *p, double value, double *x);

/* Numbers on their scale, 0 to 1; a level lies in the middle of its cell, whose ends are given as well. */
double param_unit(const struct point_param *p, double x);
double param_from_unit(const struct point_param *p, double u); /* the nearest; u may lie outside */
void param_cell(const struct point_param *p, double x, double *lo, double *hi);
double param_draw(const struct point_param *p, struct rng *rng);

/* Whether a parameter is active, given those before it. */
static inline bool point_active(const struct point_space *s, const double *point, size_t i)
{
	const struct point_param *p = &s->params[i];
	double above;

	if (p->parent == POINT_NONE)
		return true;
	above = point[p->parent];
	return above == above && p->when[(size_t)above]; /* not NAN */
}

/* Points in order, the last parameter changing fastest; index and point only where size is not 0. */
uint64_t point_index(const struct point_space *s, const double *point);
void point_at(const struct point_space *s, uint64_t index, double *point);

/* Points of discrete spaces in the order of their numbers. */
void point_first(const struct point_space *s, double *point);
bool point_step(const struct point_space *s, double *point); /* false when it was the last */
int point_compare(const double *a, const double *b, size_t n);

void point_draw(const struct point_space *s, struct rng *rng, double *point);
/* Inactive parameters become NAN, active ones that are NAN are drawn. */
void point_canonical(const struct point_space *s, struct rng *rng, double *point);

/* A set that numbers its points in the order they came. */
struct point_set {
	size_t width; /* numbers per point */
	size_t n;
	VEC(double) values;
	uint32_t *slots; /* hash table of number + 1; 0 is empty */
	size_t cap;
};

void point_set_init(struct point_set *s, size_t width);
size_t point_set_find(const struct point_set *s, const double *point); /* POINT_NONE when absent */
size_t point_set_add(struct point_set *s, const double *point);        /* its number, new or not */
const double *point_set_get(const struct point_set *s, size_t number); /* until the next is added */
void point_set_release(struct point_set *s);

#endif
