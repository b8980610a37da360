/* The conversions of element types that are made without being asked for, because no value is lost. */
#ifndef DATA_CONVERT_H
#define DATA_CONVERT_H

#include "tensor/tensor.h"

bool dtype_is_integer(enum dtype t); /* bool counts */
/* The same type, float64 or uint8 to float32, integers to int32 and int64. */
bool convert_allowed(enum dtype from, enum dtype to);
/* Converts all of src into dst's buffer; false, and the element's number, when one does not fit. Not for
 * equal types. */
bool convert(struct tensor *dst, const struct tensor *src, size_t *bad);

#endif
