/*
 * Datasets: numbered samples, read by number, from
 * - a .npz or .npy file. Arrays share their first dimension, the number of samples. An array called
 *   `y`, `label` or `labels` (the first of these that exists) holds the labels. The array of a .npy
 *   is called `x`;
 * - a folder of class folders of JPEG and PNG images. A class is the index of its folder in byte order
 *   of their names; samples run through the classes in that order, then by file name. A folder that
 *   holds only images is the same without labels. Images come out as uint8 [height, width, channels];
 * - what the other kinds of list.h read, where a configuration names one;
 * - a folder of `test_data_set_*` folders with `input_N.pb` and `output_N.pb`, as ONNX publishes them,
 *   or one such folder. Where all tensors of a set share their first dimension, and all sets agree in
 *   the others, every row is a sample. Otherwise every *set* is one sample (`whole`).
 *
 *	st = dataset_open(&d, "val.npz", NULL, err);
 *	st = dataset_read(d, index, n, &batch, err);	(again and again, from any number of threads)
 *	batch_release(&batch);
 *	dataset_free(d);
 *
 * Memory does not grow with the number of samples: they are read when asked for. What is compressed is
 * inflated once, into memory when small and into an unlinked file in $TMPDIR when not. (Only arrays in
 * Fortran order are used through a mapping, for there a sample is spread all over the file.)
 */
#ifndef DATA_DATASET_H
#define DATA_DATASET_H

#include "base/fingerprint.h"
#include "data/buffer.h"
#include "data/transform.h"

enum field_role {
	FIELD_INPUT,
	FIELD_LABEL,  /* at most one per dataset */
	FIELD_OUTPUT, /* what the model is expected to answer; test sets only */
};

/* One array of a dataset, as it comes out of dataset_read(): after the transforms. */
struct field {
	char *name;
	enum field_role role;
	/* Shape and type of one sample; no data. A dimension is -1 where samples differ, the rank where
	 * even their ranks do. */
	struct tensor sample;
};

enum { DATASET_FIELDS_MAX = 64 };

/* To be read, not written, by its users. */
struct dataset {
	const struct dataset_kind *kind;
	char *path;
	size_t n; /* samples; at least one */
	struct field *fields;
	size_t n_fields;
	bool positional; /* fields feed the model's inputs by position: their names say nothing */
	bool whole;      /* a sample is a whole batch: it is read alone, and gets no leading dimension */

	bool objects;        /* labels are those of data/objects.h */
	int64_t label_shift; /* labels come out less this; of objects, their classes */
	size_t *kept;        /* [n]: the kind's numbers of the samples that a filter has left; NULL: all */
	struct squad *squad; /* the questions that samples are features of (data/squad.h); NULL: none */
	struct vocabulary *vocabulary; /* what its tokens are as text (data/vocabulary.h); NULL: not known */
	size_t numbers;                /* the field that has the samples' own numbers, from 1; 0: none has */
	char *note;                    /* what the user should know of it; NULL: nothing */
	char *ignored;                 /* names of arrays, with commas; NULL: none */
	struct transform *transforms;  /* applied to the field `transformed` */
	size_t n_transforms, transformed;
	void *state;                /* the kind's */
	void (*closed)(void *self); /* of dataset_on_close() */
	void *closed_self;
};

/* A parameter of the kind, as a configuration gives it. */
struct dataset_param {
	const char *key, *value;
};

struct dataset_options {
	const char *kind; /* NULL: the first that says that the path is its */
	const struct dataset_param *params;
	size_t n_params;
	const struct transform *transforms; /* copied; applied to the array `x`, or the only input */
	size_t n_transforms;
	int64_t label_shift; /* is subtracted from labels */
	size_t objects;      /* only images with so many objects (INC's LabelBalance); 0: any number */
	const struct squad_files
		*squad;         /* samples are features of its questions, labels their numbers; NULL: no */
	const char *vocabulary; /* the file; NULL: none */
	int channels;           /* of images: 1 or 3; 0: 3 */
	/* What is wanted of a .npz: these arrays, or `x` (n = 1), and labels. If it has one of them, arrays of other names are
	 * ignored, whatever they hold. NULL: all are wanted. */
	const char *const *wanted;
	size_t n_wanted;
	size_t memory_max; /* inflate into memory up to this many bytes; 0: 256 MB */
	struct unpacking *
		*begun; /* of this archive (data/unpack.h); taken, and NULL then. NULL: none is begun */
};

/* opt may be NULL. */
enum fettle_status dataset_open(struct dataset **out, const char *path, const struct dataset_options *opt,
				struct err *err);
/* Is there a kind of that name? */
bool dataset_is_kind(const char *name);
bool dataset_needs_path(const char *kind); /* or is there no file? */
/* Does that kind take such a parameter? Where not, *others are those that it takes; free() them. */
bool dataset_takes(const char *kind, const char *key, char **others);
/* Why a parameter of that kind does nothing; NULL: it does something. */
const char *dataset_idle(const char *kind, const char *key);
/* "ImageFolder, Npz or TestDataSet"; free() it. *near is the one that was meant, or NULL. */
char *dataset_kinds_text(const char *name, const char **near);
/* The i-th kind: its name, what it reads and its keys, which end with NULL (or are NULL). NULL past the end. */
const char *dataset_kind_name(size_t i, const char **summary, const char *const **keys);
/* Data from callbacks; what the source points to must outlive the dataset. One thread at a time. */
enum fettle_status dataset_open_source(struct dataset **out, const struct fettle_data_source *source,
				       const struct dataset_options *opt, struct err *err);
/* For one of those: called when it is freed, after the last read. */
void dataset_on_close(struct dataset *d, void (*call)(void *self), void *self);
void dataset_free(struct dataset *d);

/* Of its description and of some samples spread over all of it: reading everything may cost too much. */
enum fettle_status dataset_fingerprint(const struct dataset *d, char out[FINGERPRINT_LEN], struct err *err);

/* The field of that name, or NULL. */
const struct field *dataset_field(const struct dataset *d, const char *name);
/* The field that holds the labels, or NULL. */
const struct field *dataset_labels(const struct dataset *d);
/* Does reading take work that is worth a thread of its own? */
bool dataset_decodes(const struct dataset *d);

/* Samples read together. Start with BATCH_INIT; the buffers are kept from one read to the next. */
struct batch {
	uint64_t want; /* bit i: read field i; 0: all of them */
	size_t n;      /* samples */
	/* Parallel to dataset.fields; field i's shape is [n, its sample's…], or just the sample's shape
	 * in a `whole` dataset. */
	struct buffer *fields;
	size_t n_fields;
	struct buffer scratch[2];
};
#define BATCH_INIT                                                                                           \
	{                                                                                                    \
		.want = 0                                                                                    \
	}

/*
 * Reads samples index[0..n) into b. Thread-safe for one dataset and different batches. NaN and
 * infinities in inputs are errors; labels and expected outputs may hold them.
 */
enum fettle_status dataset_read(const struct dataset *d, const size_t *index, size_t n, struct batch *b,
				struct err *err);
void batch_release(struct batch *b);

#endif
