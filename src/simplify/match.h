/* What rewritings share: finding patterns, and replacing them. */
#ifndef SIMPLIFY_MATCH_H
#define SIMPLIFY_MATCH_H

#include "simplify/simplify.h"

/* Is the value known to be float32? */
bool is_f32(const struct simplifying *s, const char *value);
int rank_of(const struct simplifying *s, const char *value); /* -1: not known */
/*
 * Is `name` a float32 constant of one element, that an operation with `with` does not change the shape of? (One of more
 * dimensions than the other operand adds dimensions.)
 */
bool is_scalar(const struct simplifying *s, const char *name, const char *with, double *value);
bool about(double a, double b); /* equal but for the rounding of a float32 */

/* The node that makes a value which only one node reads, once, and which is no output; NULL: there is none. */
struct node *inner(const struct simplifying *s, const char *value);
/* The same, if it is this op. */
struct node *inner_is(const struct simplifying *s, const char *value, const char *op);
/* The operand of a node of two that is not this one; NULL: this is none. */
const char *other_operand(const struct node *n, const char *one);
/* Of an Add or Mul: the operand that is a constant scalar goes to *value; returns the other one, or NULL. */
const char *scalar_operand(const struct simplifying *s, const struct node *n, double *value);

/* A product taken apart: a constant times values, however it is written with Mul, Div and Pow. */
enum { FACTORS_MAX = 6 };
struct product {
	double constant;
	const char *of[FACTORS_MAX];
	size_t n; /* more than FACTORS_MAX: too many */
};
/* Of what the node makes. What is read elsewhere too is not taken apart. */
void product_of(const struct simplifying *s, const struct node *n, struct product *out);
void product_of_value(const struct simplifying *s, const char *value, struct product *out);
size_t product_count(const struct product *p, const char *value); /* how often it is a factor */
/* The last node of the largest product of `value`, `times` (NULL: none) and constants; NULL: it is in none. */
struct node *product_around(const struct simplifying *s, const char *value, const char *times,
			    struct product *out);

/* A new node with one output, before another in the order; its name is made from that one's. */
struct node *put_before(struct simplifying *s, const struct node *before, const char *op, const char *a,
			const char *b);
/* n computes something else from now on; its name and output stay. b may be NULL. */
void become(struct simplifying *s, struct node *n, const char *op, const char *a, const char *b);
const char *new_scalar(struct simplifying *s, const struct node *n, double value);
/* All that read `from` read `to`. `from` must not be an output of the graph, nor be read by a subgraph. */
bool can_redirect(const struct simplifying *s, const char *from);
void redirect(struct simplifying *s, const char *from, const char *to);

/* infer.c: says what shape the node's output has, as far as more can be known of it than before. */
void infer_output(struct simplifying *s, const struct node *n);

#endif
