#include "data/feed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/convert.h"

struct feed {
	const struct dataset *d;
	struct input_spec *specs; /* names owned */
	size_t *bound;            /* input i is fed by field bound[i], or NONE: it is made, by rule made[i] */
	enum made_rule *made;
	size_t n_inputs;
	uint64_t want;  /* the fields that are read */
	size_t label;   /* field, or NONE */
	size_t tokens;  /* the input that holds token numbers, or NONE */
	size_t mask;    /* their attention mask, where the data has it, or NONE */
	bool of_tokens; /* labels are: feed_label_tokens() */
	size_t batch;
	bool fixed;    /* batches are exactly that big */
	size_t *order; /* NULL: 0, 1, 2, … */
	size_t n;      /* samples in a round */
	size_t next;   /* batch */
};

static const size_t NONE = SIZE_MAX;
static const int64_t BATCH_MAX = 1 << 24; /* more rows than this are not a batch */

static struct tensor spec_shape(const struct input_spec *s)
{
	struct tensor t = { .dtype = s->dtype, .rank = s->rank };

	memcpy(t.dims, s->dims, sizeof(t.dims));
	return t;
}

static enum fettle_status no_field(const struct feed *f, const struct input_spec *spec, struct err *err)
{
	struct str names = STR_INIT;
	size_t i;

	for (i = 0; i < f->d->n_fields; i++)
		str_addf(&names, "%s%s", i ? ", " : "", f->d->fields[i].name);
	if (f->d->ignored)
		str_addf(&names, ", %s", f->d->ignored);
	fail(err, FETTLE_INVALID, "cannot feed input '%s' from %s: no array of that name, there are: %.500s",
	     spec->name, f->d->path, names.s);
	str_release(&names);
	return FETTLE_INVALID;
}

/* The k-th field that is an input, or NULL; *n counts them all. */
static const struct field *input_field(const struct dataset *d, size_t k, size_t *n)
{
	const struct field *found = NULL;
	size_t i;

	for (i = 0, *n = 0; i < d->n_fields; i++)
		if (d->fields[i].role == FIELD_INPUT && (*n)++ == k)
			found = &d->fields[i];
	return found;
}

/* inputs that cannot be made */
static size_t n_given(const struct feed *f)
{
	size_t n = 0, i;

	for (i = 0; i < f->n_inputs; i++)
		n += !made_rule_of(&f->specs[i]);
	return n;
}

/* Finds a field, or none where the input can be made without. */
static enum fettle_status choose_field(const struct feed *f, size_t i, const struct field **out,
				       struct err *err)
{
	const struct dataset *d = f->d;
	size_t n;

	if (d->positional) {
		*out = input_field(d, i, &n);
		if (n != f->n_inputs)
			return fail(err, FETTLE_INVALID,
				    "cannot feed the model from %s: %zu inputs, need %zu", d->path, n,
				    f->n_inputs);
		return FETTLE_OK;
	}
	*out = dataset_field(d, f->specs[i].name);
	if (!*out && made_rule_of(&f->specs[i]))
		return FETTLE_OK;
	if (!*out && n_given(f) == 1) {
		*out = dataset_field(d, "x");
		if (!*out) {
			*out = input_field(d, 0, &n);
			if (n != 1)
				*out = NULL;
		}
	}
	return *out ? FETTLE_OK : no_field(f, &f->specs[i], err);
}

static enum fettle_status check_dtype(const struct feed *f, const struct field *field,
				      const struct input_spec *spec, struct err *err)
{
	if (convert_allowed(field->sample.dtype, spec->dtype))
		return FETTLE_OK;
	return fail(err, FETTLE_INVALID,
		    "cannot feed input '%s' from %s: array '%s' is %s, need %s (store it so, or add a Cast)",
		    spec->name, f->d->path, field->name, dtype_name(field->sample.dtype),
		    dtype_name(spec->dtype));
}

/* A batch's shape (-1: not known yet) against the input's. */
static enum fettle_status check_shape(const struct feed *f, size_t i, const struct tensor *batch,
				      struct err *err)
{
	const struct input_spec *spec = &f->specs[i];
	const struct field *field = &f->d->fields[f->bound[i]];
	struct tensor want = spec_shape(spec);
	bool fits = batch->rank == want.rank, image;
	char have[128], need[128];
	int k;

	for (k = 0; k < want.rank && fits; k++)
		fits = want.dims[k] < 0 || batch->dims[k] < 0 || want.dims[k] == batch->dims[k];
	if (fits)
		return FETTLE_OK;
	image = field->sample.dtype == DT_U8 && field->sample.rank == 3 && !f->d->n_transforms;
	return fail(err, FETTLE_INVALID, "cannot feed input '%s' from %s: array '%s' has shape %s, need %s%s",
		    spec->name, f->d->path, field->name, tensor_shape_text(batch, have, sizeof(have)),
		    tensor_shape_text(&want, need, sizeof(need)),
		    image ? " (-1 is any); add transforms such as Resize, CenterCrop, Rescale and Transpose"
			  : " (-1 is any)");
}

/* An input that is one number per run, such as a sampling rate: the data has one per sample. */
static bool is_single(const struct feed *f, size_t i)
{
	return f->bound[i] != NONE && !f->d->whole && !f->specs[i].rank &&
	       !f->d->fields[f->bound[i]].sample.rank;
}

/* What is known before any sample is read: the field's shape after the batch dimension. */
static enum fettle_status check_field(const struct feed *f, size_t i, struct err *err)
{
	const struct field *field = &f->d->fields[f->bound[i]];
	struct tensor shape = field->sample;
	enum fettle_status st;

	st = check_dtype(f, field, &f->specs[i], err);
	if (st || shape.rank < 0 || is_single(f, i))
		return st;
	if (!f->d->whole) {
		if (shape.rank == TENSOR_RANK_MAX)
			return fail(err, FETTLE_UNSUPPORTED,
				    "cannot feed input '%s': more than %d dimensions", f->specs[i].name,
				    TENSOR_RANK_MAX);
		memmove(shape.dims + 1, shape.dims, sizeof(shape.dims[0]) * (size_t)shape.rank);
		shape.dims[0] = -1;
		shape.rank++;
	}
	return check_shape(f, i, &shape, err);
}

static enum fettle_status bind(struct feed *f, struct err *err)
{
	const struct field *field = NULL, *label = dataset_labels(f->d);
	enum fettle_status st;
	size_t i;

	f->label = label ? (size_t)(label - f->d->fields) : NONE;
	for (i = 0; i < f->n_inputs; i++) {
		st = choose_field(f, i, &field, err);
		if (st)
			return st;
		f->bound[i] = NONE;
		f->made[i] = made_rule_of(&f->specs[i]);
		if (!field)
			continue;
		f->made[i] = MADE_NOT;
		f->bound[i] = (size_t)(field - f->d->fields);
		f->want |= UINT64_C(1) << f->bound[i];
		st = check_field(f, i, err);
		if (st)
			return st;
		if (field == label) /* the model calls an input so */
			f->label = NONE;
	}
	for (i = 0; i < f->d->n_fields; i++)
		if (i == f->label || f->d->fields[i].role == FIELD_OUTPUT)
			f->want |= UINT64_C(1) << i;
	return FETTLE_OK;
}

/* The tokens: `input_ids`, or the first input of two dimensions that holds whole numbers; and their mask. */
static enum fettle_status find_tokens(struct feed *f, struct err *err)
{
	size_t i;

	f->tokens = f->mask = NONE;
	for (i = 0; i < f->n_inputs; i++) {
		const struct input_spec *s = &f->specs[i];
		const bool ids = strcmp(s->name, "input_ids") == 0;

		if (f->bound[i] == NONE || s->rank != 2)
			continue;
		if (made_rule_of(s) == MADE_MASK)
			f->mask = i;
		if (!made_rule_of(s) && dtype_is_integer(s->dtype) && (f->tokens == NONE || ids))
			f->tokens = i;
	}
	for (i = 0; i < f->n_inputs && f->tokens == NONE; i++)
		if (f->made[i])
			return no_field(f, &f->specs[i], err);
	return FETTLE_OK;
}

/* Bytes that the inputs of one sample take, as far as that is known before one is read. */
static double sample_bytes(const struct feed *f)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < f->n_inputs; i++) {
		const struct tensor *sample = f->bound[i] == NONE ? NULL : &f->d->fields[f->bound[i]].sample;
		double bytes = (double)dtype_size(f->specs[i].dtype);
		int k;

		for (k = 0; sample && k < sample->rank; k++)
			bytes *= fabs((double)sample->dims[k]);
		sum += bytes;
	}
	return sum;
}

static void limit_bytes(struct feed *f, size_t most)
{
	const double fit = (double)most / sample_bytes(f);

	if (most && !f->d->whole && fit < (double)f->batch)
		feed_limit_batch(f, fit < 1 ? 1 : (size_t)fit);
}

static enum fettle_status choose_batch(struct feed *f, size_t asked, struct err *err)
{
	const struct input_spec *first = NULL;
	size_t i;

	f->batch = f->d->whole || !asked ? 1 : asked;
	for (i = 0; i < f->n_inputs && !f->d->whole; i++) {
		const struct input_spec *s = &f->specs[i];

		if (is_single(f, i) && !f->fixed)
			f->batch = 1; /* it may differ from sample to sample */
		if (!s->rank || s->dims[0] < 0 || f->made[i])
			continue;
		if (!s->dims[0] || s->dims[0] > BATCH_MAX || (first && first->dims[0] != s->dims[0]))
			return fail(err, FETTLE_UNSUPPORTED,
				    "cannot feed input '%s': its first dimension is %lld, need that of a "
				    "batch%s%s",
				    s->name, (long long)s->dims[0], first ? ", as in input " : "",
				    first ? first->name : "");
		first = s;
		f->fixed = true;
		f->batch = (size_t)s->dims[0];
	}
	return FETTLE_OK;
}

static enum fettle_status choose_samples(struct feed *f, const struct feed_options *opt, struct err *err)
{
	enum fettle_status st;
	struct rng rng;
	size_t i;

	f->n = opt->limit && opt->limit < f->d->n ? opt->limit : f->d->n;
	if (opt->whole > f->n)
		return fail(err, FETTLE_INVALID,
			    "cannot discard the last batch: %zu samples, need a whole batch of %zu", f->n,
			    opt->whole);
	if (opt->whole)
		f->n -= f->n % opt->whole;
	if (!opt->shuffle)
		return FETTLE_OK;
	st = mem_try(&f->order, f->d->n, sizeof(*f->order), "an order of samples", err);
	if (st)
		return st;
	for (i = 0; i < f->d->n; i++)
		f->order[i] = i;
	rng_seed(&rng, opt->seed);
	rng_shuffle(&rng, f->order, f->d->n);
	return FETTLE_OK;
}

enum fettle_status feed_open(struct feed **out, const struct dataset *d, const struct input_spec *specs,
			     size_t n, const struct feed_options *opt, struct err *err)
{
	static const struct feed_options defaults = { .batch = 1 };
	struct feed *f = xcalloc(1, sizeof(*f));
	enum fettle_status st;
	size_t i;

	if (!opt)
		opt = &defaults;
	f->d = d;
	f->n_inputs = n;
	f->bound = xcalloc(n, sizeof(*f->bound));
	f->made = xcalloc(n, sizeof(*f->made));
	f->specs = xcalloc(n, sizeof(*f->specs));
	for (i = 0; i < n; i++) {
		f->specs[i] = specs[i];
		f->specs[i].name = xstrdup(specs[i].name);
	}
	st = bind(f, err);
	if (!st)
		st = find_tokens(f, err);
	if (!st)
		st = choose_batch(f, opt->batch, err);
	if (!st)
		limit_bytes(f, opt->bytes);
	if (!st)
		st = choose_samples(f, opt, err);
	if (st) {
		feed_free(f);
		return st;
	}
	*out = f;
	return FETTLE_OK;
}

struct feed *feed_twin(const struct feed *f)
{
	struct feed *twin = xcalloc(1, sizeof(*twin));
	size_t i;

	*twin = *f;
	twin->next = 0;
	twin->specs = xcalloc(f->n_inputs, sizeof(*twin->specs));
	twin->bound = xcalloc(f->n_inputs, sizeof(*twin->bound));
	twin->made = xcalloc(f->n_inputs, sizeof(*twin->made));
	for (i = 0; i < f->n_inputs; i++) {
		twin->specs[i] = f->specs[i];
		twin->specs[i].name = xstrdup(f->specs[i].name);
		twin->bound[i] = f->bound[i];
		twin->made[i] = f->made[i];
	}
	if (f->order) {
		twin->order = xcalloc(f->n, sizeof(*twin->order));
		memcpy(twin->order, f->order, f->n * sizeof(*twin->order));
	}
	return twin;
}

void feed_free(struct feed *f)
{
	size_t i;

	if (!f)
		return;
	for (i = 0; i < f->n_inputs; i++)
		free((char *)(uintptr_t)f->specs[i].name);
	free(f->specs);
	free(f->bound);
	free(f->made);
	free(f->order);
	free(f);
}

void feed_limit_batch(struct feed *f, size_t most)
{
	if (!f->fixed && f->batch > most)
		f->batch = most;
	f->next = 0;
}

size_t feed_n_inputs(const struct feed *f)
{
	return f->n_inputs;
}

const struct input_spec *feed_input(const struct feed *f, size_t i)
{
	return &f->specs[i];
}

const struct field *feed_field(const struct feed *f, size_t i)
{
	return f->bound[i] == NONE ? NULL : &f->d->fields[f->bound[i]];
}

enum made_rule feed_made(const struct feed *f, size_t i)
{
	return f->made[i];
}

size_t feed_tokens(const struct feed *f)
{
	return f->tokens;
}

const struct dataset *feed_data(const struct feed *f)
{
	return f->d;
}

size_t feed_samples(const struct feed *f)
{
	return f->n;
}

size_t feed_batch_size(const struct feed *f)
{
	return f->batch;
}

size_t feed_batches(const struct feed *f)
{
	return f->n / f->batch + (f->n % f->batch != 0);
}

size_t feed_sample(const struct feed *f, size_t i)
{
	return f->order ? f->order[i] : i;
}

bool feed_has_labels(const struct feed *f)
{
	return f->label != NONE || f->of_tokens;
}

enum fettle_status feed_label_tokens(struct feed *f, struct err *err)
{
	if (f->label == NONE && f->tokens == NONE)
		return fail(err, FETTLE_INVALID,
			    "cannot take next tokens as labels: %s has no labels, and no input takes whole "
			    "numbers "
			    "[N,T]",
			    f->d->path);
	f->of_tokens = true;
	return FETTLE_OK;
}

void feed_rewind(struct feed *f)
{
	f->next = 0;
}

enum fettle_status feed_set_order(struct feed *f, const size_t *order, size_t n, struct err *err)
{
	size_t *copy = NULL, i;
	enum fettle_status st;

	if (!n)
		return fail(err, FETTLE_INVALID, "cannot order the samples of %s: none, need at least one",
			    f->d->path);
	for (i = 0; i < n; i++)
		if (order[i] >= f->d->n)
			return fail(err, FETTLE_INVALID,
				    "cannot order the samples of %s: number %zu, there are %zu", f->d->path,
				    order[i], f->d->n);
	st = mem_try(&copy, n, sizeof(*copy), "an order of samples", err);
	if (st)
		return st;
	memcpy(copy, order, n * sizeof(*copy));
	free(f->order);
	f->order = copy;
	f->n = n;
	f->next = 0;
	return FETTLE_OK;
}

enum fettle_status feed_next(struct feed *f, struct feed_batch *b, struct err *err)
{
	enum fettle_status st;

	if (f->next >= feed_batches(f))
		return FETTLE_STOP;
	st = feed_read(f, f->next, b, err);
	if (!st)
		f->next++;
	return st;
}

/* Room in b for what this feed delivers; b may come from another feed. */
static void prepare(const struct feed *f, struct feed_batch *b)
{
	size_t i;

	b->inputs = xrealloc(b->inputs, f->n_inputs, sizeof(*b->inputs));
	b->outputs = xrealloc(b->outputs, f->d->n_fields, sizeof(*b->outputs));
	if (b->n_converted < f->n_inputs) {
		b->converted = xrealloc(b->converted, f->n_inputs, sizeof(*b->converted));
		for (i = b->n_converted; i < f->n_inputs; i++)
			b->converted[i] = (struct buffer){ .cap = 0 };
		b->n_converted = f->n_inputs;
	}
	b->n_inputs = f->n_inputs;
	b->n_outputs = 0;
	b->labels = (struct tensor)TENSOR_INIT;
}

static void choose_indices(const struct feed *f, size_t k, struct feed_batch *b)
{
	size_t start = k * f->batch, left = f->n - start, i;

	b->valid = left < f->batch ? left : f->batch;
	b->n = f->fixed ? f->batch : b->valid;
	if (b->cap < b->n) {
		b->indices = xrealloc(b->indices, b->n, sizeof(*b->indices));
		b->cap = b->n;
	}
	b->index = b->indices;
	for (i = 0; i < b->n; i++) {
		size_t at = start + (i < b->valid ? i : b->valid - 1);

		b->indices[i] = feed_sample(f, at);
	}
}

/* one number for all of a batch */
static enum fettle_status to_single(const struct feed *f, size_t i, struct feed_batch *b, struct err *err)
{
	struct tensor *t = &b->raw.fields[f->bound[i]].t;
	size_t k;

	for (k = 1; k < b->n; k++)
		if (tensor_get(t, k) != tensor_get(t, 0))
			return fail(err, FETTLE_INVALID,
				    "cannot feed input '%s' from %s: %g and %g in one batch of %zu, need one "
				    "number",
				    f->specs[i].name, f->d->path, tensor_get(t, 0), tensor_get(t, k), b->n);
	t->rank = 0;
	return FETTLE_OK;
}

static enum fettle_status deliver_input(const struct feed *f, size_t i, struct feed_batch *b, struct err *err)
{
	struct tensor *raw = &b->raw.fields[f->bound[i]].t;
	struct buffer *buf = &b->converted[i];
	const struct field *field = &f->d->fields[f->bound[i]];
	enum fettle_status st;
	size_t bad = 0;

	st = is_single(f, i) ? to_single(f, i, b, err) : FETTLE_OK;
	if (!st)
		st = check_shape(f, i, raw, err);
	if (st)
		return st;
	if (raw->dtype == f->specs[i].dtype) {
		b->inputs[i] = *raw;
		return FETTLE_OK;
	}
	st = buffer_shape(buf, f->specs[i].dtype, raw->rank, raw->dims, field->name, err);
	if (st)
		return st;
	if (!convert(&buf->t, raw, &bad)) {
		size_t per_sample = is_single(f, i) ? 1 : (size_t)tensor_count(raw) / b->n;

		return fail(err, FETTLE_INVALID,
			    "cannot feed input '%s' from %s: array '%s' has %.17g in sample %zu, which %s "
			    "cannot hold",
			    f->specs[i].name, f->d->path, field->name, tensor_get(raw, bad),
			    b->indices[bad / per_sample], dtype_name(f->specs[i].dtype));
	}
	b->inputs[i] = buf->t;
	return FETTLE_OK;
}

static enum fettle_status make_input(const struct feed *f, size_t i, struct feed_batch *b, struct err *err)
{
	const struct tensor *tokens = &b->inputs[f->tokens];
	const struct made_size size = { tokens->dims[0], 0, tokens->dims[1] };
	enum fettle_status st = made_fill(&b->converted[i], f->made[i], &f->specs[i], &size,
					  f->mask == NONE ? NULL : &b->inputs[f->mask], err);

	b->inputs[i] = b->converted[i].t;
	return st;
}

/* A field's rows without those that are padding. */
static struct tensor valid_rows(const struct feed *f, size_t field, const struct feed_batch *b)
{
	struct tensor t = b->raw.fields[field].t;

	if (!f->d->whole)
		t.dims[0] = (int64_t)b->valid;
	return t;
}

static enum fettle_status deliver_labels(const struct feed *f, struct feed_batch *b, struct err *err)
{
	struct tensor raw = valid_rows(f, f->label, b);
	enum dtype dtype = dtype_is_integer(raw.dtype) ? DT_S64 : DT_F64;
	enum fettle_status st;

	st = buffer_shape(&b->converted_labels, dtype, raw.rank, raw.dims, "the labels", err);
	if (st)
		return st;
	tensor_convert(&b->converted_labels.t, &raw); /* saturates; the evaluator checks the range */
	b->labels = b->converted_labels.t;
	if (f->of_tokens && f->mask != NONE)
		made_mask_labels(&b->labels, &b->inputs[f->mask]);
	return FETTLE_OK;
}

static enum fettle_status make_labels(const struct feed *f, struct feed_batch *b, struct err *err)
{
	const struct tensor *tokens = &b->inputs[f->tokens];
	const struct tensor *mask = f->mask == NONE ? NULL : &b->inputs[f->mask];
	enum fettle_status st = made_labels(&b->converted_labels, tokens,
					    mask && tensor_same_shape(mask, tokens) ? mask : NULL,
					    f->d->whole ? (size_t)tokens->dims[0] : b->valid, err);

	b->labels = b->converted_labels.t;
	return st;
}

enum fettle_status feed_read(const struct feed *f, size_t k, struct feed_batch *b, struct err *err)
{
	enum fettle_status st;
	size_t i;

	if (k >= feed_batches(f))
		return FETTLE_STOP;
	prepare(f, b);
	choose_indices(f, k, b);
	b->raw.want = f->want;
	st = dataset_read(f->d, b->indices, b->n, &b->raw, err);
	for (i = 0; i < f->n_inputs && !st; i++)
		if (!f->made[i])
			st = deliver_input(f, i, b, err);
	for (i = 0; i < f->n_inputs && !st; i++)
		if (f->made[i])
			st = make_input(f, i, b, err);
	if (!st && f->label != NONE)
		st = deliver_labels(f, b, err);
	else if (!st && f->of_tokens)
		st = make_labels(f, b, err);
	for (i = 0; i < f->d->n_fields && !st; i++)
		if (f->d->fields[i].role == FIELD_OUTPUT)
			b->outputs[b->n_outputs++] = valid_rows(f, i, b);
	return st;
}

void feed_batch_release(struct feed_batch *b)
{
	size_t i;

	for (i = 0; i < b->n_converted; i++)
		buffer_release(&b->converted[i]);
	free(b->converted);
	buffer_release(&b->converted_labels);
	batch_release(&b->raw);
	free(b->inputs);
	free(b->outputs);
	free(b->indices);
	*b = (struct feed_batch)FEED_BATCH_INIT;
}
