/* What quantizing costs: the expected squared error of a range and step, from an observer's histogram. */
#ifndef CALIBRATE_LOSS_H
#define CALIBRATE_LOSS_H

#include "calibrate/observer.h"

struct loss;
struct loss *loss_new(const struct observer *o);
void loss_free(struct loss *l);

/*
 * The sum of squared errors when values are clipped to [lo, hi], which holds 0, and rounded to multiples of
 * step. All are in units of the observer's bin width, and so is the result, squared.
 */
double loss_of(const struct loss *l, double lo, double hi, double step);

#endif
