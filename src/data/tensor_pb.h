/* ONNX's TensorProto, read without protobuf: only the fields that hold a dense tensor. */
#ifndef DATA_TENSOR_PB_H
#define DATA_TENSOR_PB_H

#include "base/file.h"
#include "tensor/tensor.h"

struct tensor_pb {
	struct tensor shape;           /* no data */
	const unsigned char *elements; /* little-endian, of any alignment; in the file, or `decoded` */
	void *decoded;                 /* elements that the file holds as varints or in pieces */
};

/* The elements are used where they are in the file, which must outlive out. Messages do not name it. */
enum fettle_status tensor_pb_parse(struct bytes file, struct tensor_pb *out, struct err *err);
void tensor_pb_release(struct tensor_pb *t);

#endif
