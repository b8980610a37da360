/* What an evaluator prints. */
#ifndef EVALUATE_ANSWER_H
#define EVALUATE_ANSWER_H

#include "base/err.h"

/*
 * The score in what a program printed: either all of it is one JSON object, or exactly one of its lines is a number or
 * a JSON object and nothing else. An object has its score as one of `value`, `accuracy` or `score`. Everything else is
 * an error that quotes it.
 */
enum fettle_status answer_read(const char *text, const char *command, double *value, struct err *err);

#endif
