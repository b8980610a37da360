/* The NPY format, versions 1 to 3: a header in the form of a Python dict, and an array after it. */
#ifndef DATA_NPY_H
#define DATA_NPY_H

#include "base/file.h"
#include "tensor/tensor.h"

struct npy {
	struct tensor shape; /* of the whole array; no data */
	bool swap;           /* bytes are in the order that is not this machine's */
	bool fortran;        /* the first index moves fastest */
	size_t at;           /* offset of the elements */
};

bool npy_is(struct bytes file);
/* Parses the header; file holds exactly the array it describes. Messages do not name the file. */
enum fettle_status npy_parse(struct bytes file, struct npy *out, struct err *err);
/* The elements of array[i], in row-major order and host byte order; first dimension > i. */
void npy_read(const struct npy *a, const unsigned char *elements, size_t i, void *dst);

#endif
