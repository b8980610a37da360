/*
 * An ONNX model in memory: the graph as plain structs to read and edit, everything else (metadata,
 * functions, unknown fields, subgraphs) carried along untouched and written back as it came.
 *
 * Everything a model points to lives in its arena or in files it has mapped, and dies with it.
 * Editing means replacing pointers: weight bytes are never copied. model_derive() makes a second
 * model on top of a first, sharing its bytes; the first must outlive it.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"
#include "tensor/tensor.h"

enum { MODEL_OPSET_MIN = 7 };

/* An input, an output or an intermediate value of known type. */
struct value {
	const char *name;
	/* dims are -1 where symbolic; rank -1 where unknown; dtype DT_NONE if not a tensor */
	struct tensor type;
	const char *batch; /* what an open first dimension is called; NULL: nothing */
	void *proto;
};

/* Bytes that are made while a model is saved, so that they are never in memory all at once. */
struct late {
	enum fettle_status (*write)(void *self, FILE *f, struct err *err); /* as many as the shape needs */
	void *self;
};

/* A constant of the graph. Its bytes are fetched by model_weight(). */
struct init {
	const char *name;
	struct tensor t; /* data is NULL until fetched */
	/* the bytes of a type that fettle only carries along (4-bit, float8, complex), once fetched */
	const void *opaque;
	size_t n_opaque;
	struct late late; /* write is NULL but for one that model_save() makes */
	void *proto;
};

struct node {
	const char *op, *domain, *name; /* domain is "" for ONNX's own; name may be "" */
	const char **in, **out;         /* "" for one that is left out */
	size_t n_in, n_out;
	const char **captured; /* outer values that the node's subgraphs read */
	size_t n_captured;
	void **attrs; /* AttributeProto: use the node_* functions below */
	size_t n_attrs;
	void *proto; /* where it came from, NULL for a node we made */
};

struct model {
	struct arena arena;
	void *proto;
	char *path;           /* of the file it came from, or NULL */
	int opset;            /* of ONNX's own domain */
	int runtime;          /* 30 if ONNX Runtime 1.30 prepared it; 0: not known, a recent one */
	int raised_from;      /* the opset of the file, if prepare() raised it; else 0 */
	const char *notes[3]; /* what else prepare() has to say of that, and of inputs; NULL: nothing */

	VEC(const char *) gone; /* names and types of ops that prepare_rewritten() left nothing of */

	VEC(struct node *) nodes;
	VEC(struct init *) inits;
	struct value *inputs, *outputs; /* inputs without those that are only defaults of initializers */
	size_t n_inputs, n_outputs;

	/* what the file declares of intermediate values; a derived model asks its base */
	VEC(struct value) values;
	struct map names; /* every name in use here and not in the base, for model_fresh() */
	struct map value_index, init_index; /* name -> values.v[], inits.v[] */
	struct map sparse;                  /* names of sparse constants, which only pass through */
	VEC(struct ext_file *) files;
	const struct model *base; /* what this one was derived from */
	unsigned fresh;
};

/* Reading. The messages begin "cannot load PATH: ". */
enum fettle_status model_load(struct model **out, const char *path, struct err *err);
/* The bytes may go once this returns. `path` is only where external data is looked for; may be NULL. */
enum fettle_status model_decode(struct model **out, const void *bytes, size_t n, const char *path,
				struct err *err);
void model_free(struct model *m);
/* Its mapped weights, and its base's, need not stay in memory: they are not read for a while. */
void model_rest(const struct model *m);
/* A copy of the graph whose nodes and lists can be edited without touching m. */
struct model *model_derive(const struct model *m);

/*
 * Writing. A model of more than MODEL_INLINE_MAX bytes keeps its weights in PATH.data beside it. What then
 * still is too large for one protobuf message is refused. Neither file appears unless both are complete.
 */
#define MODEL_INLINE_MAX ((size_t)1 << 30)
/* With late constants it always does, and what lies in files is copied piece by piece. */
enum fettle_status model_save(struct model *m, const char *path, struct err *err);
enum fettle_status model_save_split(struct model *m, const char *path, size_t inline_max, struct err *err);
size_t model_file_size(const char *path); /* the file and the external data it refers to; 0 if unreadable */

/*
 * The model as bytes for a session. Weights of `split` bytes or more are left out: they are listed in
 * *weights (n of them, their data fetched), to be handed to the runtime as they lie in memory.
 */
struct packed {
	void *bytes;
	size_t n;
	const struct init **weights;
	size_t n_weights;
};
#define PACKED_INIT                                                                                          \
	{                                                                                                    \
		NULL, 0, NULL, 0                                                                             \
	}
enum fettle_status model_pack(struct model *m, size_t split, struct packed *out, struct err *err);
void packed_release(struct packed *p);

/* Constants */
struct init *model_init(const struct model *m, const char *name); /* NULL when not a constant */
enum fettle_status model_weight(struct model *m, struct init *w, struct err *err); /* fetches w->t.data */
/* Does it lie in a file, of which nothing was fetched yet? */
bool init_is_outside(const struct init *w);
/* Is it at an address in the runtime's memory? So ONNX Runtime 1.21 writes what it has made itself into its optimised graph. */
bool init_is_lost(const struct init *w);
/* Reads such a constant in pieces, without mapping the file; one that is in memory, too. */
struct weight_reader {
	int fd;
	const char *bytes; /* NULL: read from the file */
	size_t start, n;
	const char *name;
};
enum fettle_status weight_open(struct weight_reader *r, const struct model *m, const struct init *w,
			       struct err *err);
enum fettle_status weight_read(const struct weight_reader *r, size_t at, void *to, size_t n, struct err *err);
void weight_close(struct weight_reader *r);
/* The bytes as they lie in memory, of whatever type; NULL for strings and for what is not fetched yet. */
const void *init_bytes(const struct init *w, size_t *n);
/* Adds a constant. `name` must be fresh; the data are borrowed. */
struct init *model_add_init(struct model *m, const char *name, const struct tensor *t);

/* Editing */
const char *model_fresh(struct model *m, const char *base); /* a name nothing else has */
struct node *model_new_node(struct model *m, const char *op, const char *domain, const char *name,
			    size_t n_in, size_t n_out); /* not yet in m->nodes */
void model_set_nodes(struct model *m, struct node *const *nodes, size_t n);
void model_need_domain(struct model *m, const char *domain, int version);
int model_domain_version(const struct model *m, const char *domain); /* 0 when not imported */
void model_need_ir(struct model *m, int version); /* raises the IR version to this one, if it is lower */
/* Says that ONNX's own ops are of this version, and raises the IR version to the one that came with it. */
void model_set_opset(struct model *m, int opset);
/*
 * Constants that are inputs too (in files before IR version 4 all must be) are no inputs any more: the runtime folds and
 * fuses nothing that a caller may override. Returns how many could be. Only for a model nobody has derived from.
 */
size_t model_fix_constants(struct model *m);
/* Drops constants nothing reads, and imports of domains no node uses. */
void model_sweep(struct model *m);
/*
 * Drops constants of subgraphs that repeat one of the same name: ONNX Runtime writes those that it folded
 * twice, and then refuses its own file. Only for a model nobody has derived from.
 */
void model_drop_repeats(struct model *m);
/* The declared type of an input, an output or an intermediate value; NULL when there is none. */
const struct value *model_value(const struct model *m, const char *name);
/* A constant becomes an input of the graph, the last one: to be fed at run time. */
void model_init_to_input(struct model *m, const char *name);
/*
 * The other way: a constant of another model, which lies in a file, takes the place of m's input of that name. Only for a
 * model nobody has derived from; model_fix_constants() when done with all.
 */
void model_input_to_init(struct model *m, const struct init *w);
/* These values become inputs, and what is needed only to compute them goes. For a model nobody has derived from. */
void model_cut(struct model *m, const struct value *at, size_t n);
struct value typed_input(struct model *m, const struct value *like);
/* Says what an intermediate value's type is. Its names must outlive m. */
void model_declare(struct model *m, const struct value *v);
/*
 * What is float16 in float32, but that inputs, outputs and constants keep their types, which Casts change. It is derived from m, whose
 * values have types. NULL: it cannot be done, because of subgraphs.
 */
struct model *model_widen(const struct model *m);
/* Makes these the graph's outputs. Their types are left for the runtime to infer where the file has none. */
void model_set_outputs(struct model *m, const char *const *names, size_t n);

/* Attributes */
bool node_has_attr(const struct node *n, const char *name);
int64_t node_int(const struct node *n, const char *name, int64_t otherwise);
float node_float(const struct node *n, const char *name, float otherwise);
/* NULL when absent */
const char *node_str(const struct node *n, const char *name);
const int64_t *node_ints(const struct node *n, const char *name, size_t *count); /* NULL when absent */
const float *node_floats(const struct node *n, const char *name, size_t *count);
bool node_has_subgraph(const struct node *n);
size_t node_count_inside(const struct node *n, const char *op); /* nodes of that type in its subgraphs */
void node_set_int(struct model *m, struct node *n, const char *name, int64_t v);
void node_set_ints(struct model *m, struct node *n, const char *name, const int64_t *v, size_t count);
void node_set_float(struct model *m, struct node *n, const char *name, float v);
void node_set_str(struct model *m, struct node *n, const char *name, const char *v);
void node_copy_attr(struct model *m, struct node *to, const struct node *from, const char *name);
void node_drop_attr(struct node *n, const char *name);
/* Is it a name or type of an op that was rewritten away? Who names it is not mistaken. */
bool model_gone(const struct model *m, const char *name);
bool node_is(const struct node *n, const char *op); /* of ONNX's own domain */

#endif
