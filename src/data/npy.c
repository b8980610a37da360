#include "data/npy.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "data/kind.h"

static const unsigned char MAGIC[] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
static const bool HOST_IS_LITTLE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

bool npy_is(struct bytes file)
{
	return file.n >= sizeof(MAGIC) && memcmp(file.p, MAGIC, sizeof(MAGIC)) == 0;
}

/* A reader of the header's text: one line of printable ASCII that does not end with a NUL. */
struct text {
	const char *p, *end;
};

static void skip_space(struct text *t)
{
	while (t->p < t->end && isspace((unsigned char)*t->p))
		t->p++;
}

static bool skip_to(struct text *t, char c)
{
	skip_space(t);
	if (t->p == t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool read_quoted(struct text *t, char *out, size_t n)
{
	char quote;
	size_t i;

	if (skip_to(t, '\''))
		quote = '\'';
	else if (skip_to(t, '"'))
		quote = '"';
	else
		return false;
	for (i = 0; t->p < t->end && *t->p != quote && *t->p >= ' ' && i + 1 < n; i++)
		out[i] = *t->p++;
	out[i] = '\0';
	return t->p < t->end && *t->p++ == quote;
}

static bool read_word(struct text *t, const char *word)
{
	size_t n = strlen(word);

	skip_space(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
		return false;
	t->p += n;
	return true;
}

static bool read_int(struct text *t, int64_t *out)
{
	int64_t v = 0;

	skip_space(t);
	if (t->p == t->end || !isdigit((unsigned char)*t->p))
		return false;
	for (; t->p < t->end && isdigit((unsigned char)*t->p); t->p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *t->p - '0', &v))
			return false;
	if (t->p < t->end && *t->p == 'L') /* as Python 2 wrote it */
		t->p++;
	*out = v;
	return true;
}

static enum fettle_status read_shape(struct text *t, struct tensor *shape, struct err *err)
{
	if (!skip_to(t, '('))
		goto bad;
	while (!skip_to(t, ')')) {
		if (shape->rank == TENSOR_RANK_MAX)
			return fail(err, FETTLE_UNSUPPORTED,
				    "more than %d dimensions, at most that are supported", TENSOR_RANK_MAX);
		if (!read_int(t, &shape->dims[shape->rank++]))
			goto bad;
		if (!skip_to(t, ',')) {
			if (!skip_to(t, ')'))
				goto bad;
			break;
		}
	}
	return FETTLE_OK;
bad:
	return fail(err, FETTLE_INVALID, "the header's shape is not a tuple of whole numbers");
}

static const struct {
	const char *code;
	enum dtype dtype;
} types[] = {
	{ "b1", DT_BOOL }, { "u1", DT_U8 },  { "u2", DT_U16 }, { "u4", DT_U32 },
	{ "u8", DT_U64 },  { "i1", DT_S8 },  { "i2", DT_S16 }, { "i4", DT_S32 },
	{ "i8", DT_S64 },  { "f2", DT_F16 }, { "f4", DT_F32 }, { "f8", DT_F64 },
};

static enum fettle_status read_descr(struct text *t, struct npy *out, struct err *err)
{
	const char *why = "need bool, int, uint or float of at most 8 bytes";
	char descr[32];
	size_t i;

	if (skip_to(t, '['))
		return fail(err, FETTLE_UNSUPPORTED, "a structured type, need plain numbers");
	if (!read_quoted(t, descr, sizeof(descr)))
		return fail(err, FETTLE_INVALID, "the header's descr is not a type");
	if (descr[0] == '\0' || !strchr("<>|=", descr[0]))
		return fail(err, FETTLE_INVALID, "type '%s' has no byte order", descr);
	out->swap = descr[0] == (HOST_IS_LITTLE ? '>' : '<');
	for (i = 0; i < ARRAY_LEN(types); i++) {
		if (strcmp(descr + 1, types[i].code) == 0) {
			out->shape.dtype = types[i].dtype;
			return FETTLE_OK;
		}
	}
	if (descr[1] == 'O')
		why = "arrays of Python objects cannot be read; save it as numbers";
	else if (descr[1] && strchr("SUa", descr[1]))
		why = "text cannot be fed to a model; save it as numbers";
	return fail(err, FETTLE_UNSUPPORTED, "type '%s', %s", descr, why);
}

static enum fettle_status read_key(struct text *t, const char *key, struct npy *out, unsigned *seen,
				   struct err *err)
{
	static const char *const keys[] = { "descr", "fortran_order", "shape" };
	enum fettle_status st = FETTLE_OK;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(keys) && strcmp(key, keys[i]) != 0; i++)
		;
	if (i == ARRAY_LEN(keys))
		return fail(err, FETTLE_INVALID,
			    "the header has a key '%s', need descr, fortran_order, shape", key);
	if (*seen & 1u << i)
		return fail(err, FETTLE_INVALID, "the header has the key '%s' twice", key);
	*seen |= 1u << i;
	if (i == 0)
		st = read_descr(t, out, err);
	else if (i == 2)
		st = read_shape(t, &out->shape, err);
	else if (read_word(t, "True"))
		out->fortran = true;
	else if (!read_word(t, "False"))
		st = fail(err, FETTLE_INVALID, "the header's fortran_order is neither True nor False");
	return st;
}

static enum fettle_status read_dict(struct text t, struct npy *out, struct err *err)
{
	char key[32];
	unsigned seen = 0;
	enum fettle_status st;
	const char *p;

	for (p = t.p; p < t.end; p++)
		if ((*p < ' ' || *p == 127) && !isspace((unsigned char)*p))
			return fail(err, FETTLE_INVALID, "the header is not ASCII text");
	if (!skip_to(&t, '{'))
		return fail(err, FETTLE_INVALID, "the header is not a dict");
	while (!skip_to(&t, '}')) {
		if (!read_quoted(&t, key, sizeof(key)) || !skip_to(&t, ':'))
			return fail(err, FETTLE_INVALID, "the header is not a dict");
		st = read_key(&t, key, out, &seen, err);
		if (st)
			return st;
		if (!skip_to(&t, ',') && (t.p == t.end || *t.p != '}'))
			return fail(err, FETTLE_INVALID, "the header is not a dict");
	}
	if (seen != 7)
		return fail(err, FETTLE_INVALID, "the header lacks one of descr, fortran_order, shape");
	return FETTLE_OK;
}

/* Offset and length of the header's text. */
static enum fettle_status find_header(struct bytes f, size_t *at, size_t *n, struct err *err)
{
	unsigned major;
	size_t i, bytes;

	if (!npy_is(f) || f.n < 10)
		return fail(err, FETTLE_INVALID, "not in NPY format");
	major = f.p[6];
	if (major < 1 || major > 3)
		return fail(err, FETTLE_UNSUPPORTED, "NPY version %u, need 1, 2 or 3", major);
	bytes = major == 1 ? 2 : 4;
	*at = 8 + bytes;
	*n = 0;
	if (f.n >= *at)
		for (i = 0; i < bytes; i++)
			*n |= (size_t)f.p[8 + i] << 8 * i;
	if (f.n < *at || *n > f.n - *at)
		return fail(err, FETTLE_INVALID, "a header of %zu bytes, there are only %zu bytes", *n, f.n);
	return FETTLE_OK;
}

enum fettle_status npy_parse(struct bytes file, struct npy *out, struct err *err)
{
	enum fettle_status st;
	char shape[128];
	int64_t count;
	size_t n = 0;

	*out = (struct npy){ .at = 0 };
	st = find_header(file, &out->at, &n, err);
	if (st)
		return st;
	st = read_dict((struct text){ (const char *)file.p + out->at, (const char *)file.p + out->at + n },
		       out, err);
	if (st)
		return st;
	out->at += n;
	count = tensor_count(&out->shape);
	tensor_shape_text(&out->shape, shape, sizeof(shape));
	if (count < 0)
		return fail(err, FETTLE_INVALID, "shape %s, more elements than can be", shape);
	if (tensor_bytes(&out->shape) != file.n - out->at)
		return fail(err, FETTLE_INVALID, "shape %s of %s is %zu bytes, but %zu are there", shape,
			    dtype_name(out->shape.dtype), tensor_bytes(&out->shape), file.n - out->at);
	return FETTLE_OK;
}

/* array[i] where the first index moves fastest: walk the others in row-major order. */
static void read_fortran(const struct npy *a, const unsigned char *elements, size_t i, unsigned char *dst)
{
	size_t stride[TENSOR_RANK_MAX], at[TENSOR_RANK_MAX] = { 0 }, size = dtype_size(a->shape.dtype);
	size_t left = 1, from = i;
	int k;

	stride[0] = 1;
	for (k = 1; k < a->shape.rank; k++) {
		stride[k] = stride[k - 1] * (size_t)a->shape.dims[k - 1];
		left *= (size_t)a->shape.dims[k];
	}
	while (left--) {
		memcpy(dst, elements + from * size, size);
		dst += size;
		for (k = a->shape.rank - 1; k > 0; k--) {
			from += stride[k];
			if (++at[k] < (size_t)a->shape.dims[k])
				break;
			from -= stride[k] * at[k];
			at[k] = 0;
		}
	}
}

void npy_read(const struct npy *a, const unsigned char *elements, size_t i, void *dst)
{
	size_t size = dtype_size(a->shape.dtype), n = 1;
	int k;

	for (k = 1; k < a->shape.rank; k++)
		n *= (size_t)a->shape.dims[k];
	if (a->fortran)
		read_fortran(a, elements, i, dst);
	else
		memcpy(dst, elements + i * n * size, n * size);
	if (a->swap)
		swap_elements(dst, n, size);
}
