/* What a kind of dataset provides; seen only by dataset.c and the kinds. One file each, and a line in list.h. */
#ifndef DATA_KIND_H
#define DATA_KIND_H

#include "data/dataset.h"

struct dataset_kind {
	const char *name; /* in a configuration; case does not matter */
	const char *summary;
	const char *const *keys; /* that a configuration may give beside root; ends with NULL; NULL: none */
	const struct idle_key *idle; /* those of the keys that do nothing here; NULL: none */
	/* Is this path mine, where no kind is named? It exists. NULL: no. */
	bool (*probe)(const char *path);
	bool finds_path; /* the path may also be a pattern of files: open() looks */
	bool rootless;   /* it needs no path */
	bool decodes;    /* reading a sample takes work: it is worth a thread of its own (data/ahead.h) */
	/* Fills n, fields and state, which keeps what it needs of the options; on failure, close() is called on what there is. */
	enum fettle_status (*open)(struct dataset *d, const struct dataset_options *opt, struct err *err);
	/* One sample of one field, shaped and typed as stored, in row-major order and host byte order. */
	enum fettle_status (*read)(const struct dataset *d, size_t field, size_t i, struct buffer *out,
				   struct err *err);
	/* Optional: what an error calls sample i; "PATH: sample I" without it. free() it. */
	char *(*sample_name)(const struct dataset *d, size_t i);
	void (*close)(struct dataset *d); /* releases state */
};

#define DATASET(id) extern const struct dataset_kind dataset_##id;
#include "data/list.h"
#undef DATASET

extern const struct dataset_kind dataset_callback;

/* The field called `y`, `label` or `labels` (the first of these that exists) holds the labels. */
void dataset_find_labels(struct dataset *d);
extern const char *const dataset_label_names[]; /* these; ends with NULL */
/* Appends a field, its name copied; the pointer holds until the next one is added. */
struct field *dataset_add_field(struct dataset *d, const char *name, enum field_role role, enum dtype dtype,
				int rank, const int64_t *dims);

/* Reverses the bytes of each of n elements, which may be anywhere. */
void swap_elements(void *p, size_t n, size_t size);

#endif
