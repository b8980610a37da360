/* Writes protobuf messages, field by field, to the end of a string. */
#ifndef TENSORBOARD_MESSAGE_H
#define TENSORBOARD_MESSAGE_H

#include <stdint.h>

#include "base/str.h"

void message_int(struct str *m, unsigned field, uint64_t value);
void message_double(struct str *m, unsigned field, double value);
void message_float(struct str *m, unsigned field, float value);
void message_text(struct str *m, unsigned field, const char *text);
void message_doubles(struct str *m, unsigned field, const double *v, size_t n); /* packed */
void message_inner(struct str *m, unsigned field, const struct str *inner);
/* The lowest `bytes` bytes, the lowest first. */
void message_fixed(struct str *m, uint64_t value, size_t bytes);

#endif
