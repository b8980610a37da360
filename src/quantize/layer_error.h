/*
 * What integers make of a few matrix ops that read the same channels, if channel i of those is scaled by s_i: measured, on
 * rows of what the ops really read. For op k, with rows X and weight W,
 *
 *	error = sum over k of |Q(X diag(s)) Q(diag(1/s) W) - X W|^2 / |X W|^2
 *
 * Q is what a plan does to them; activations have the range of all that was calibrated, not only of these rows.
 */
#ifndef QUANTIZE_LAYER_ERROR_H
#define QUANTIZE_LAYER_ERROR_H

#include "quantize/rewrite.h"

struct layer_error {
	const struct op_choice *q;
	struct layer_sample *v;
	size_t n;
};

/* One op; each channel is `repeat` of its inputs. */
enum fettle_status layer_error_add(struct layer_error *l, struct rewrite *w, size_t node, size_t repeat,
				   struct err *err);
void layer_error_release(struct layer_error *l);
enum fettle_status layer_error_of(const struct layer_error *l, const double *s, double *out, struct err *err);

#endif
