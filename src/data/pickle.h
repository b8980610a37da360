/*
 * Enough of Python's pickle format, protocols 2 to 4, to read what is nothing but lists, maps, numbers, texts and numpy arrays, such as
 * CIFAR's batches. Nothing in a file is ever called: an object is kept as the name of its class and what it was to be made from.
 */
#ifndef DATA_PICKLE_H
#define DATA_PICKLE_H

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum pickle_type {
	PICKLE_NONE,   /* also what is not looked at, such as floats */
	PICKLE_INT,    /* bools too */
	PICKLE_BYTES,  /* texts too */
	PICKLE_LIST,   /* tuples too */
	PICKLE_MAP,    /* keys and values in turn */
	PICKLE_GLOBAL, /* a class: its module and its name, in turn */
	PICKLE_OBJECT, /* its class, what it was made from, its state (or NULL) */
};

struct pickle {
	enum pickle_type type;
	int64_t number;
	struct bytes bytes; /* in the file */
	struct pickle **v;
	size_t n, cap;
};

/* What the file holds; nodes are the arena's, bytes the file's. Messages do not name the file. */
enum fettle_status pickle_parse(struct bytes file, struct arena *arena, const struct pickle **out,
				struct err *err);
/* The value of a map's key; NULL: there is none, or it is no map. */
const struct pickle *pickle_find(const struct pickle *map, const char *key);
/* The bytes of a numpy array of uint8 with these two dimensions. */
bool pickle_array(const struct pickle *p, int64_t *rows, int64_t *columns, struct bytes *out);

#endif
