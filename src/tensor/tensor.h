/* Element types and dense tensors. Type numbers are ONNX's (TensorProto.DataType), which are also
 * ONNX Runtime's. */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum dtype {
	DT_NONE = 0,
	DT_F32 = 1,
	DT_U8 = 2,
	DT_S8 = 3,
	DT_U16 = 4,
	DT_S16 = 5,
	DT_S32 = 6,
	DT_S64 = 7,
	DT_STRING = 8,
	DT_BOOL = 9,
	DT_F16 = 10,
	DT_F64 = 11,
	DT_U32 = 12,
	DT_U64 = 13,
	DT_BF16 = 16,
	DT_U4 = 21, /* these two are only carried along, as bytes: see struct init */
	DT_S4 = 22,
};

bool dtype_is_float(enum dtype t);
size_t dtype_size(enum dtype t);       /* bytes per element; 0 for strings and types we do not know */
const char *dtype_name(enum dtype t);  /* "float32", "uint8", … */
enum dtype dtype_parse(const char *s); /* the reverse, also "u8", "fp32", "int8"; DT_NONE if unknown */

enum { TENSOR_RANK_MAX = 12 };

/* A tensor in row-major order. `data` is borrowed unless the holder says otherwise. */
struct tensor {
	enum dtype dtype;
	int rank;
	int64_t dims[TENSOR_RANK_MAX];
	void *data;
};
#define TENSOR_INIT                                                                                          \
	{                                                                                                    \
		DT_NONE, 0, { 0 }, NULL                                                                      \
	}

/* Number of elements, or -1 when a dimension is negative or the product (or its bytes) overflows. */
int64_t tensor_count(const struct tensor *t);
size_t tensor_bytes(const struct tensor *t); /* of a tensor whose count is valid */
/* Gives it a first dimension of 1 unless it has one, or the most dimensions there are. */
void tensor_as_row(struct tensor *t);
bool tensor_is_open(const struct tensor *t); /* is a dimension other than the first not known? */
bool tensor_same_shape(const struct tensor *a, const struct tensor *b);

/* Allocates data for the shape and type that t has; tensor_free() releases it. */
enum fettle_status tensor_alloc(struct tensor *t, const char *what, struct err *err);
void tensor_free(struct tensor *t);

double tensor_get(const struct tensor *t, size_t i); /* element i as a double, any numeric type */
void tensor_set(struct tensor *t, size_t i, double x);
/* Converts all elements of src into dst, whose shape is ignored and whose buffer must be big enough. */
void tensor_convert(struct tensor *dst, const struct tensor *src);

char *tensor_shape_text(const struct tensor *t, char *buf, size_t n); /* "[1,3,32,32]" */

#endif
