/* What the files of this folder share: the protobuf side of struct model. */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "base/file.h"
#include "model/model.h"
#include "onnx.pb-c.h"

/* an external data file, mapped when first needed */
struct ext_file {
	char *location;
	struct bytes bytes;
};

void *dup_array(struct arena *a, const void *src, size_t n, size_t size);
/* A ModelProto of m's own, so that imports can be added without touching the base's. */
void *derive_proto(struct model *m, const void *proto);

/* Turns external data of tensors inside attributes and subgraphs into plain data, so that the model can be
 * written anywhere. */
enum fettle_status resolve_attributes(struct model *m, Onnx__GraphProto *g, struct err *err);

#endif
