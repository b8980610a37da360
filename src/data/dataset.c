#include "data/squad.h"
#include "data/vocabulary.h"
#include "data/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/convert.h"
#include "data/kind.h"

static const struct dataset_kind *const kinds[] = {
#define DATASET(id) &dataset_##id,
#include "data/list.h"
#undef DATASET
};

static const struct dataset_kind *find_kind(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcasecmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

bool dataset_is_kind(const char *name)
{
	return find_kind(name);
}

bool dataset_needs_path(const char *kind)
{
	return !find_kind(kind) || !find_kind(kind)->rootless;
}

bool dataset_takes(const char *kind, const char *key, char **others)
{
	const struct dataset_kind *k = find_kind(kind);
	struct str out = STR_INIT;
	const char *const *keys;
	bool found = false;

	str_addf(&out, "%sroot", k && k->keys ? "" : "only ");
	for (keys = k ? k->keys : NULL; keys && *keys; keys++) {
		found |= strcmp(*keys, key) == 0;
		str_addf(&out, "%s%s", keys[1] ? ", " : " or ", *keys);
	}
	if (found)
		str_release(&out);
	*others = out.s;
	return found;
}

const char *dataset_idle(const char *kind, const char *key)
{
	const struct dataset_kind *k = find_kind(kind);

	return k ? idle_key_why(k->idle, key) : NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *dataset_kinds_text(const char *name, const char **near)
{
	const char *names[ARRAY_LEN(kinds)];
	struct str out = STR_INIT;
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++)
		names[i] = kinds[i]->name;
	qsort(names, ARRAY_LEN(names), sizeof(*names), by_name);
	for (i = 0; i < ARRAY_LEN(kinds); i++)
		str_addf(&out, "%s%s", !i ? "" : i + 1 < ARRAY_LEN(kinds) ? ", " : " or ", names[i]);
	*near = str_nearest(name, names, ARRAY_LEN(names));
	return out.s;
}

const char *dataset_kind_name(size_t i, const char **summary, const char *const **keys)
{
	if (i >= ARRAY_LEN(kinds))
		return NULL;
	*summary = kinds[i]->summary;
	*keys = kinds[i]->keys;
	return kinds[i]->name;
}

static enum fettle_status choose_kind(const char *path, const char *name, const struct dataset_kind **out,
				      struct err *err)
{
	struct stat sb;
	size_t i;

	*out = name ? find_kind(name) : NULL;
	if (*out && ((*out)->finds_path || (*out)->rootless))
		return FETTLE_OK;
	if (stat(path, &sb) != 0)
		return fail(err, FETTLE_INVALID, "cannot read data %s: %s", path, strerror(errno));
	if (*out)
		return FETTLE_OK;
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i]->probe && kinds[i]->probe(path)) {
			*out = kinds[i];
			return FETTLE_OK;
		}
	}
	return fail(err, FETTLE_INVALID, "cannot read data %s: neither a file nor a folder", path);
}

struct field *dataset_add_field(struct dataset *d, const char *name, enum field_role role, enum dtype dtype,
				int rank, const int64_t *dims)
{
	struct field *f;

	d->fields = xrealloc(d->fields, d->n_fields + 1, sizeof(*d->fields));
	f = &d->fields[d->n_fields++];
	*f = (struct field){ .name = xstrdup(name),
			     .role = role,
			     .sample = { .dtype = dtype, .rank = rank } };
	if (rank > 0)
		memcpy(f->sample.dims, dims, sizeof(*dims) * (size_t)rank);
	return f;
}

const struct field *dataset_field(const struct dataset *d, const char *name)
{
	size_t i;

	for (i = 0; i < d->n_fields; i++)
		if (strcmp(d->fields[i].name, name) == 0)
			return &d->fields[i];
	return NULL;
}

const char *const dataset_label_names[] = { "y", "label", "labels", NULL };

void dataset_find_labels(struct dataset *d)
{
	const struct field *f = NULL;
	size_t i;

	for (i = 0; dataset_label_names[i] && !f; i++)
		f = dataset_field(d, dataset_label_names[i]);
	if (f)
		d->fields[f - d->fields].role = FIELD_LABEL;
}

bool dataset_decodes(const struct dataset *d)
{
	/* what a program brings is called from its own thread only */
	return d->kind->decodes || (d->n_transforms && d->kind != &dataset_callback);
}

const struct field *dataset_labels(const struct dataset *d)
{
	size_t i;

	for (i = 0; i < d->n_fields; i++)
		if (d->fields[i].role == FIELD_LABEL)
			return &d->fields[i];
	return NULL;
}

/* `x`, or the only input; NULL when that leaves a choice */
static const struct field *field_to_transform(const struct dataset *d)
{
	const struct field *x = dataset_field(d, "x"), *only = NULL;
	size_t i;

	if (x)
		return x;
	for (i = 0; i < d->n_fields; i++) {
		if (d->fields[i].role != FIELD_INPUT)
			continue;
		if (only)
			return NULL;
		only = &d->fields[i];
	}
	return only;
}

/* From here on, the field's shape is what comes out of the last transform. */
static enum fettle_status add_transforms(struct dataset *d, const struct dataset_options *opt,
					 struct err *err)
{
	const struct field *f = field_to_transform(d);
	enum fettle_status st;
	size_t i;

	if (!opt->n_transforms)
		return FETTLE_OK;
	if (!f || d->whole)
		return fail(err, FETTLE_INVALID, "cannot transform %s: %s", d->path,
			    f ? "each test set is one sample, need rows that are"
			      : "several inputs and none is called x, need one");
	d->transformed = (size_t)(f - d->fields);
	d->transforms = xcalloc(opt->n_transforms, sizeof(*d->transforms));
	for (i = 0; i < opt->n_transforms; i++) {
		d->transforms[i] = opt->transforms[i];
		st = transform_check(&d->transforms[i], err);
		if (!st)
			st = transform_shape(&d->transforms[i], &d->fields[d->transformed].sample, err);
		if (st)
			return fail_prefix(err, st, "%s: array '%s'", d->path, f->name);
	}
	d->n_transforms = opt->n_transforms;
	return FETTLE_OK;
}

/* Leaves only the images with so many objects. */
static enum fettle_status filter_by_objects(struct dataset *d, size_t objects, struct err *err)
{
	struct buffer label = { .cap = 0 };
	enum fettle_status st = FETTLE_OK;
	size_t i, n = 0, row, found;

	if (!objects)
		return FETTLE_OK;
	if (!d->objects)
		return fail(err, FETTLE_INVALID,
			    "cannot filter %s: LabelBalance, need images with objects such as COCORaw",
			    d->path);
	d->kept = xcalloc(d->n, sizeof(*d->kept));
	for (i = 0; i < d->n && !st; i++) {
		st = d->kind->read(d, (size_t)(dataset_labels(d) - d->fields), i, &label, err);
		for (row = found = 0; !st && row < (size_t)label.t.dims[0]; row++)
			found += tensor_get(&label.t, row * (size_t)label.t.dims[1]) >= 0;
		if (found == objects)
			d->kept[n++] = i;
	}
	buffer_release(&label);
	if (!st && !n)
		st = fail(err, FETTLE_INVALID,
			  "cannot filter %s: LabelBalance, none of %zu images has %zu object%s", d->path,
			  d->n, objects, objects == 1 ? "" : "s");
	d->n = n;
	return st;
}

/* Samples are features of a SQuAD file's questions, in its order unless they have labels. */
static enum fettle_status add_questions(struct dataset *d, const struct squad_files *files, struct err *err)
{
	enum fettle_status st = squad_open(&d->squad, files, err);

	if (st || dataset_labels(d))
		return st;
	if (d->n > squad_features(d->squad))
		return fail(err, FETTLE_INVALID,
			    "cannot score %s by %s: %zu samples, the file has %zu features of %d tokens",
			    d->path, files->label_file, d->n, squad_features(d->squad),
			    files->max_seq_length);
	dataset_add_field(d, "feature", FIELD_LABEL, DT_S64, 0, NULL);
	d->numbers = d->n_fields;
	return FETTLE_OK;
}

/* takes over `state` */
static enum fettle_status open_as(struct dataset **out, const struct dataset_kind *kind, const char *path,
				  void *state, const struct dataset_options *opt, struct err *err)
{
	struct dataset *d = xcalloc(1, sizeof(*d));
	enum fettle_status st;

	d->kind = kind;
	d->path = xstrdup(path);
	d->state = state;
	d->label_shift = opt->label_shift;
	st = kind->open(d, opt, err);
	if (st)
		goto out;
	st = filter_by_objects(d, opt->objects, err);
	if (!st)
		st = add_transforms(d, opt, err);
	if (!st && opt->squad)
		st = add_questions(d, opt->squad, err);
	if (!st && opt->vocabulary)
		st = vocabulary_open(&d->vocabulary, opt->vocabulary, err);
	if (st)
		goto out;
	if (d->label_shift && dataset_labels(d) && dtype_is_integer(dataset_labels(d)->sample.dtype))
		d->fields[dataset_labels(d) - d->fields].sample.dtype = DT_S64;
	*out = d;
	d = NULL; /* now the caller's */
out:
	dataset_free(d);
	return st;
}

enum fettle_status dataset_open(struct dataset **out, const char *path, const struct dataset_options *opt,
				struct err *err)
{
	static const struct dataset_options defaults = { .channels = 3 };
	const struct dataset_kind *kind = NULL;
	enum fettle_status st;

	if (!opt)
		opt = &defaults;
	if (opt->channels != 0 && opt->channels != 1 && opt->channels != 3)
		return fail(err, FETTLE_INVALID, "cannot read data %s: %d channels, need 1 or 3", path,
			    opt->channels);
	st = choose_kind(path, opt->kind, &kind, err);
	return st ? st : open_as(out, kind, path, NULL, opt, err);
}

enum fettle_status dataset_open_source(struct dataset **out, const struct fettle_data_source *source,
				       const struct dataset_options *opt, struct err *err)
{
	struct fettle_data_source *copy = xcalloc(1, sizeof(*copy));

	*copy = *source;
	return open_as(out, &dataset_callback, source->name ? source->name : "callback", copy, opt, err);
}

void dataset_free(struct dataset *d)
{
	size_t i;

	if (!d)
		return;
	d->kind->close(d);
	for (i = 0; i < d->n_fields; i++)
		free(d->fields[i].name);
	free(d->fields);
	free(d->transforms);
	squad_free(d->squad);
	vocabulary_free(d->vocabulary);
	free(d->kept);
	free(d->ignored);
	free(d->note);
	free(d->path);
	free(d);
}

void batch_release(struct batch *b)
{
	size_t i;

	for (i = 0; i < b->n_fields; i++)
		buffer_release(&b->fields[i]);
	free(b->fields);
	buffer_release(&b->scratch[0]);
	buffer_release(&b->scratch[1]);
	*b = (struct batch)BATCH_INIT;
}

static char *sample_name(const struct dataset *d, size_t i)
{
	if (d->kept)
		i = d->kept[i];
	return d->kind->sample_name ? d->kind->sample_name(d, i) : xstrfmt("%s: sample %zu", d->path, i);
}

/* Without a branch for each, so that the compiler does many at once. x - x is 0 of finite numbers, else not a number. */
static bool all_finite(const float *x, int64_t n)
{
	enum { LANES = 16 };
	float sums[LANES] = { 0 }, all = 0;
	int64_t i;
	int k;

	for (i = 0; i + LANES <= n; i += LANES)
		for (k = 0; k < LANES; k++)
			sums[k] += x[i + k] - x[i + k];
	for (; i < n; i++)
		all += x[i] - x[i];
	for (k = 0; k < LANES; k++)
		all += sums[k];
	return all == 0;
}

/* The first element that is not finite, or -1. */
static int64_t find_not_finite(const struct tensor *t)
{
	int64_t n = tensor_count(t), i;

	switch (t->dtype) {
	case DT_F32:
		if (all_finite(t->data, n))
			return -1;
		/* fall through */
	case DT_F64:
	case DT_F16:
	case DT_BF16:
		for (i = 0; i < n; i++)
			if (!isfinite(tensor_get(t, (size_t)i)))
				return i;
		return -1;
	default:
		return -1;
	}
}

static enum fettle_status check_finite(const struct dataset *d, size_t field, size_t i,
				       const struct tensor *t, const char *when, struct err *err)
{
	int64_t bad = d->fields[field].role == FIELD_INPUT ? find_not_finite(t) : -1;
	char *name;

	if (bad < 0)
		return FETTLE_OK;
	name = sample_name(d, i);
	fail(err, FETTLE_INVALID, "cannot use %s: array '%s' has %g at element %lld%s, need finite values",
	     name, d->fields[field].name, tensor_get(t, (size_t)bad), (long long)bad, when);
	free(name);
	return FETTLE_INVALID;
}

/* In a file, anything but 0 may mean true; a model wants 1. */
static void tidy_bools(struct tensor *t)
{
	unsigned char *p = t->data;
	size_t n = t->dtype == DT_BOOL ? (size_t)tensor_count(t) : 0, i;

	for (i = 0; i < n; i++)
		p[i] = p[i] != 0;
}

/* Integers become int64: an unsigned type has no room for what comes out. Of rows of `columns` numbers, the first is a class. */
static enum fettle_status shift_labels(const struct tensor *src, int64_t shift, size_t columns,
				       struct buffer *dst, struct err *err)
{
	enum dtype dtype = dtype_is_integer(src->dtype) ? DT_S64 : src->dtype;
	enum fettle_status st = buffer_shape(dst, dtype, src->rank, src->dims, "labels", err);
	size_t n = (size_t)tensor_count(src), i;

	for (i = 0; i < n && !st; i++)
		tensor_set(&dst->t, i,
			   tensor_get(src, i) - (columns < 2 || (i % columns == 0 && tensor_get(src, i) >= 0)
							 ? (double)shift
							 : 0));
	return st;
}

/* Transforms that move an image within a larger one move its objects too. The image is in the other scratch buffer. */
static enum fettle_status move_boxes(const struct dataset *d, size_t i, struct tensor *label,
				     struct buffer *image, struct err *err)
{
	const size_t columns = (size_t)label->dims[1];
	double *row = label->data;
	enum fettle_status st;
	struct tensor shape;
	size_t k, r;

	for (k = 0; k < d->n_transforms && !transform_moves_boxes(&d->transforms[k]); k++)
		;
	if (k == d->n_transforms)
		return FETTLE_OK;
	st = d->kind->read(d, d->transformed, d->kept ? d->kept[i] : i, image, err);
	shape = image->t;
	for (k = 0; k < d->n_transforms && !st; k++) {
		for (r = 0; r < (size_t)label->dims[0]; r++)
			if (row[r * columns] >= 0)
				transform_box(&d->transforms[k], &shape, row + r * columns + 1);
		st = transform_shape(&d->transforms[k], &shape, err);
	}
	return st;
}

/* Reads one sample, transformed, into one of the two scratch buffers, and says which. */
static enum fettle_status read_sample(const struct dataset *d, size_t field, size_t i, struct batch *b,
				      struct buffer **out, struct err *err)
{
	struct buffer *src = &b->scratch[0], *dst = &b->scratch[1], *swap;
	enum fettle_status st;
	size_t k;

	if (field + 1 == d->numbers) {
		st = buffer_shape(src, DT_S64, 0, NULL, "a number", err);
		if (!st)
			*(int64_t *)src->t.data = (int64_t)(d->kept ? d->kept[i] : i);
	} else {
		st = d->kind->read(d, field, d->kept ? d->kept[i] : i, src, err);
	}
	if (st)
		return st;
	tidy_bools(&src->t);
	st = check_finite(d, field, i, &src->t, "", err);
	if (st)
		return st;
	*out = src;
	if (d->objects && d->fields[field].role == FIELD_LABEL) {
		st = move_boxes(d, i, &src->t, dst, err);
		if (st)
			return st;
	}
	if (d->label_shift && d->fields[field].role == FIELD_LABEL) {
		*out = dst;
		return shift_labels(&src->t, d->label_shift, d->objects ? (size_t)src->t.dims[1] : 1, dst,
				    err);
	}
	if (!d->n_transforms || field != d->transformed)
		return FETTLE_OK;
	for (k = 0; k < d->n_transforms; k++) {
		st = transform_apply(&d->transforms[k], &src->t, dst, err);
		if (st) {
			char *name = sample_name(d, i);

			fail_prefix(err, st, "%s", name);
			free(name);
			return st;
		}
		swap = src;
		src = dst;
		dst = swap;
	}
	*out = src;
	return check_finite(d, field, i, &src->t, " after the transforms", err);
}

/* The batch's shape: the first sample's, with the number of samples in front. */
static enum fettle_status shape_field(const struct dataset *d, size_t field, const struct tensor *sample,
				      struct batch *b, struct err *err)
{
	int64_t dims[TENSOR_RANK_MAX + 1] = { (int64_t)b->n };
	int lead = !d->whole;

	memcpy(dims + lead, sample->dims, sizeof(dims[0]) * (size_t)sample->rank);
	return buffer_shape(&b->fields[field], sample->dtype, sample->rank + lead, dims,
			    d->fields[field].name, err);
}

static enum fettle_status differs(const struct dataset *d, size_t first, size_t other,
				  const struct tensor *first_shape, const struct tensor *t, struct err *err)
{
	char *a = sample_name(d, first), *b = sample_name(d, other), sa[128], sb[128];

	fail(err, FETTLE_INVALID,
	     "cannot put %s and %s into one batch: shapes %s and %s, need one shape (add Resize and "
	     "CenterCrop, or use batches of 1)",
	     a, b, tensor_shape_text(first_shape, sa, sizeof(sa)), tensor_shape_text(t, sb, sizeof(sb)));
	free(a);
	free(b);
	return FETTLE_INVALID;
}

static enum fettle_status read_field(const struct dataset *d, size_t field, const size_t *index,
				     struct batch *b, struct err *err)
{
	struct buffer *sample = NULL, *all = &b->fields[field];
	struct tensor first = TENSOR_INIT;
	enum fettle_status st;
	size_t k, bytes;

	for (k = 0; k < b->n; k++) {
		st = read_sample(d, field, index[k], b, &sample, err);
		if (st)
			return st;
		if (!k) {
			first = sample->t;
			st = shape_field(d, field, &first, b, err);
			if (st)
				return st;
		} else if (sample->t.dtype != first.dtype || !tensor_same_shape(&sample->t, &first)) {
			return differs(d, index[0], index[k], &first, &sample->t, err);
		}
		bytes = tensor_bytes(&sample->t);
		if (b->n == 1) { /* what was read need not be copied */
			buffer_swap_data(all, sample);
			continue;
		}
		memcpy((unsigned char *)all->t.data + k * bytes, sample->t.data, bytes);
	}
	return FETTLE_OK;
}

enum fettle_status dataset_read(const struct dataset *d, const size_t *index, size_t n, struct batch *b,
				struct err *err)
{
	enum fettle_status st;
	size_t i;

	if (!n || (d->whole && n != 1))
		return fail(err, FETTLE_INVALID, "cannot read %s: a batch of %zu samples, need %s", d->path,
			    n, d->whole ? "1, for each test set is one" : "at least 1");
	for (i = 0; i < n; i++)
		if (index[i] >= d->n)
			return fail(err, FETTLE_INVALID, "cannot read %s: sample %zu, there are %zu", d->path,
				    index[i], d->n);
	if (b->n_fields < d->n_fields) {
		b->fields = xrealloc(b->fields, d->n_fields, sizeof(*b->fields));
		memset(b->fields + b->n_fields, 0, (d->n_fields - b->n_fields) * sizeof(*b->fields));
		b->n_fields = d->n_fields;
	}
	b->n = n;
	for (i = 0; i < d->n_fields; i++) {
		if (b->want && !(b->want >> i & 1))
			continue;
		st = read_field(d, i, index, b, err);
		if (st)
			return st;
	}
	return FETTLE_OK;
}

void swap_elements(void *p, size_t n, size_t size)
{
	unsigned char *e = p, byte;
	size_t i, j;

	for (i = 0; i < n; i++, e += size) {
		for (j = 0; j < size / 2; j++) {
			byte = e[j];
			e[j] = e[size - 1 - j];
			e[size - 1 - j] = byte;
		}
	}
}
