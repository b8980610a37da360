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

/* Keeps model_fresh() from giving this name (which may be NULL) away. It must outlive m. */
void model_use_name(struct model *m, const char *name);

/* Parts of a graph as plain structs, and a node back as a message. They share what they point to. */
struct value read_value(Onnx__ValueInfoProto *v);
struct node *read_node(struct model *m, Onnx__NodeProto *p);
Onnx__NodeProto *node_proto(struct arena *a, const struct node *n);

/* Fills n->captured from its attributes' subgraphs. */
void read_captured(struct model *m, struct node *n);

/* Turns external data of tensors that are not the graph's own constants (in attributes, subgraphs, functions,
 * sparse ones) into plain data, so that the model can be written anywhere. */
enum fettle_status resolve_external(struct model *m, Onnx__ModelProto *p, struct err *err);

/* Fetches what w holds even if its type is none that fettle computes with; strings have nothing to fetch. */
enum fettle_status fetch_bytes(struct model *m, struct init *w, struct err *err);

#endif
