/* Brings every channel to the mean and spread a model was trained with. */
#include <string.h>

#include "data/transform_kind.h"

enum { CHANNELS_MAX = 64 };

struct normalize {
	double mean[CHANNELS_MAX], std[CHANNELS_MAX];
	size_t n_mean, n_std;
	double rescale[2]; /* INC's for TensorFlow: then divided by the first, less the second */
};
TRANSFORM_FITS(struct normalize);

static void normalize_init(struct transform *t)
{
	struct normalize *own = TRANSFORM_OWN(struct normalize, t);

	own->n_mean = own->n_std = 1;
	own->std[0] = own->rescale[0] = 1;
}

static enum fettle_status normalize_set(struct transform *t, const char *key,
					const struct transform_value *value, struct err *err)
{
	struct normalize *own = TRANSFORM_OWN(struct normalize, t);
	bool is_mean = strcmp(key, "mean") == 0;
	bool is_rescale = strcmp(key, "rescale") == 0;
	enum fettle_status st =
		transform_numbers(value, is_rescale ? 2 : 1, is_rescale ? 2 : CHANNELS_MAX, err);
	size_t i;

	if (st)
		return st;
	if (is_rescale) {
		if (value->v[0] == 0)
			return fail(err, FETTLE_INVALID, "0, need another number to divide by");
		memcpy(own->rescale, value->v, sizeof(own->rescale));
		return FETTLE_OK;
	}
	for (i = 0; i < value->n && !is_mean; i++)
		if (!(value->v[i] > 0))
			return fail(err, FETTLE_INVALID, "%g, need a positive number", value->v[i]);
	memcpy(is_mean ? own->mean : own->std, value->v, value->n * sizeof(*value->v));
	*(is_mean ? &own->n_mean : &own->n_std) = value->n;
	return FETTLE_OK;
}

static const char *normalize_lacks(const struct transform *t)
{
	const struct normalize *own = TRANSFORM_READ(struct normalize, t);

	if (own->n_mean != own->n_std && own->n_mean != 1 && own->n_std != 1)
		return "mean and std differ in length, need one number per channel in both";
	return NULL;
}

static int64_t channels_of(const struct transform *t)
{
	const struct normalize *own = TRANSFORM_READ(struct normalize, t);

	return (int64_t)(own->n_mean > own->n_std ? own->n_mean : own->n_std);
}

/* Which dimension holds the channels; -1: none does. One number serves any. */
static int channel_axis(const struct transform *t, const struct tensor *shape)
{
	int64_t n = channels_of(t);
	int last = shape->rank - 1;

	if (n == 1)
		return 0;
	if (last >= 0 && shape->dims[last] == n)
		return last;
	if (last >= 0 && shape->dims[0] == n)
		return 0;
	return -1;
}

static bool may_fit(const struct transform *t, const struct tensor *shape)
{
	return channel_axis(t, shape) >= 0 ||
	       (shape->rank > 0 && (shape->dims[0] < 0 || shape->dims[shape->rank - 1] < 0));
}

static enum fettle_status normalize_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	char text[128];

	if (!may_fit(t, shape))
		return fail(err, FETTLE_INVALID,
			    "cannot apply Normalize: shape %s, need %lld channels first or last, for that "
			    "many means "
			    "were given",
			    tensor_shape_text(shape, text, sizeof(text)), (long long)channels_of(t));
	shape->dtype = DT_F32;
	return FETTLE_OK;
}

static enum fettle_status normalize_apply(const struct transform *t, const struct tensor *src,
					  struct buffer *dst, struct err *err)
{
	const struct normalize *own = TRANSFORM_READ(struct normalize, t);
	int axis = channel_axis(t, src), k;
	size_t n = (size_t)tensor_count(src), channels = (size_t)channels_of(t), inner = 1, i;
	float *to = dst->t.data;

	(void)err;
	for (k = axis + 1; k < src->rank; k++)
		inner *= (size_t)src->dims[k];
	if (channels == 1)
		inner = n ? n : 1;
	for (i = 0; i < n; i++) {
		size_t c = i / inner % channels;
		float mean = (float)own->mean[own->n_mean == 1 ? 0 : c],
		      std = (float)own->std[own->n_std == 1 ? 0 : c];

		to[i] = ((float)tensor_get(src, i) - mean) / std;
		if (own->rescale[0] != 1 || own->rescale[1] != 0)
			to[i] = (float)(to[i] / own->rescale[0] - own->rescale[1]);
	}
	return FETTLE_OK;
}

const struct transform_kind transform_normalize = {
	.name = "Normalize",
	.summary = "(x - mean) / std, one number or one for each channel; rescale: [a, b]: then divided by "
		   "a, less b",
	.keys = { "mean", "std", "rescale" },
	.init = normalize_init,
	.set = normalize_set,
	.lacks = normalize_lacks,
	.shape = normalize_shape,
	.apply = normalize_apply,
};
