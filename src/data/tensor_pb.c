#include "data/tensor_pb.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/wire.h"

/* the numbers of TensorProto's fields, from onnx.proto */
enum {
	DIMS = 1,
	DATA_TYPE = 2,
	SEGMENT = 3, /* in SequenceProto and OptionalProto: their tensors */
	FLOAT_DATA = 4,
	INT32_DATA = 5,
	INT64_DATA = 7,
	RAW_DATA = 9,
	DOUBLE_DATA = 10,
	UINT64_DATA = 11,
	DATA_LOCATION = 14,
};

struct parse {
	struct tensor_pb *out;
	struct wire raw;
	bool has_raw;
	uint64_t type, location;
};

static enum fettle_status damaged(struct err *err)
{
	return fail(err, FETTLE_INVALID, "not a tensor in protobuf format, or truncated");
}

static enum fettle_status add_dim(struct tensor *shape, uint64_t value, struct err *err)
{
	if (shape->rank == TENSOR_RANK_MAX)
		return fail(err, FETTLE_UNSUPPORTED, "more than %d dimensions, at most that are supported",
			    TENSOR_RANK_MAX);
	shape->dims[shape->rank++] = (int64_t)value;
	return FETTLE_OK;
}

static enum fettle_status add_dims(struct tensor *shape, struct wire_field *f, struct err *err)
{
	enum fettle_status st = FETTLE_OK;
	uint64_t value;

	if (f->type == WIRE_VARINT)
		return add_dim(shape, f->value, err);
	if (f->type != WIRE_BYTES)
		return damaged(err);
	while (f->bytes.p < f->bytes.end && !st) {
		if (!wire_varint(&f->bytes, &value))
			return damaged(err);
		st = add_dim(shape, value, err);
	}
	return st;
}

static enum fettle_status take(struct parse *p, struct wire_field *f, struct err *err)
{
	switch (f->number) {
	case DIMS:
		return add_dims(&p->out->shape, f, err);
	case DATA_TYPE:
		p->type = f->value;
		return f->type == WIRE_VARINT ? FETTLE_OK : damaged(err);
	case DATA_LOCATION:
		p->location = f->value;
		return FETTLE_OK;
	case SEGMENT:
		return fail(err, FETTLE_UNSUPPORTED,
			    "a sequence, an optional or a segment, need one plain tensor");
	case RAW_DATA:
		p->raw = f->bytes;
		p->has_raw = true;
		return f->type == WIRE_BYTES ? FETTLE_OK : damaged(err);
	default:
		return FETTLE_OK;
	}
}

/* Which field holds a type's elements when they are not raw, and how many bytes each takes there; 0: a
 * varint. */
static uint32_t typed_field(enum dtype t, size_t *width)
{
	*width = 0;
	switch (t) {
	case DT_F32:
		*width = 4;
		return FLOAT_DATA;
	case DT_F64:
		*width = 8;
		return DOUBLE_DATA;
	case DT_S64:
		return INT64_DATA;
	case DT_U32:
	case DT_U64:
		return UINT64_DATA;
	default: /* 16-bit floats, too, as their bits */
		return INT32_DATA;
	}
}

/* The elements of one occurrence of the field: a single one, or packed ones. */
static bool take_elements(struct wire_field *f, size_t width, size_t size, unsigned char **to,
			  const unsigned char *end)
{
	uint64_t value = f->value;
	bool single = f->type == WIRE_VARINT;
	size_t i;

	if (single != (width == 0) && f->type != WIRE_BYTES)
		return false;
	while (single || f->bytes.p < f->bytes.end) {
		if ((size_t)(end - *to) < size)
			return false;
		if (width) {
			if ((size_t)(f->bytes.end - f->bytes.p) < width)
				return false;
			memcpy(*to, f->bytes.p, size);
			f->bytes.p += width;
		} else {
			if (!single && !wire_varint(&f->bytes, &value))
				return false;
			for (i = 0; i < size; i++)
				(*to)[i] = (unsigned char)(value >> 8 * i);
		}
		*to += size;
		if (single)
			break;
	}
	return true;
}

static enum fettle_status decode(struct bytes file, struct tensor_pb *out, struct err *err)
{
	size_t bytes = tensor_bytes(&out->shape), size = dtype_size(out->shape.dtype), width;
	uint32_t number = typed_field(out->shape.dtype, &width);
	struct wire w = { file.p, file.p + file.n };
	struct wire_field f;
	unsigned char *to;
	enum fettle_status st;

	if (bytes / size > file.n) /* each takes at least a byte: do not allocate for a lie */
		return fail(err, FETTLE_INVALID, "%zu elements in a file of %zu bytes", bytes / size, file.n);
	st = mem_try(&out->decoded, bytes, 1, "a tensor", err);
	if (st)
		return st;
	to = out->decoded;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return damaged(err);
		if (f.number == number &&
		    !take_elements(&f, width, size, &to, (unsigned char *)out->decoded + bytes))
			return fail(err, FETTLE_INVALID, "its elements do not fit its shape");
	}
	if (to != (unsigned char *)out->decoded + bytes)
		return fail(err, FETTLE_INVALID, "%zu elements, need %zu for its shape",
			    (size_t)(to - (unsigned char *)out->decoded) / size, bytes / size);
	out->elements = out->decoded;
	return FETTLE_OK;
}

static enum fettle_status check(const struct parse *p, struct err *err)
{
	struct tensor *shape = &p->out->shape;
	char text[128];

	if (p->location)
		return fail(err, FETTLE_UNSUPPORTED, "its data is in another file, need it inside");
	shape->dtype = p->type <= DT_BF16 ? (enum dtype)p->type : DT_NONE;
	if (!dtype_size(shape->dtype))
		return fail(err, FETTLE_UNSUPPORTED, "element type %llu (%s), need a number type",
			    (unsigned long long)p->type, dtype_name(shape->dtype));
	if (tensor_count(shape) < 0)
		return fail(err, FETTLE_INVALID, "shape %s, more elements than can be",
			    tensor_shape_text(shape, text, sizeof(text)));
	if (p->has_raw && (size_t)(p->raw.end - p->raw.p) != tensor_bytes(shape))
		return fail(err, FETTLE_INVALID, "shape %s of %s is %zu bytes, but %zu are there",
			    tensor_shape_text(shape, text, sizeof(text)), dtype_name(shape->dtype),
			    tensor_bytes(shape), (size_t)(p->raw.end - p->raw.p));
	return FETTLE_OK;
}

enum fettle_status tensor_pb_parse(struct bytes file, struct tensor_pb *out, struct err *err)
{
	struct wire w = { file.p, file.p + file.n };
	struct parse p = { .out = out };
	struct wire_field f;
	enum fettle_status st;

	*out = (struct tensor_pb){ .elements = NULL };
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return damaged(err);
		st = take(&p, &f, err);
		if (st)
			return st;
	}
	st = check(&p, err);
	if (st)
		return st;
	out->elements = p.raw.p;
	return p.has_raw ? FETTLE_OK : decode(file, out, err);
}

void tensor_pb_release(struct tensor_pb *t)
{
	free(t->decoded);
	*t = (struct tensor_pb){ .elements = NULL };
}
