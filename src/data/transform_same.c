/* Steps between libraries that have nothing to do here: images are decoded when they are read, and are arrays from then on. */
#include <string.h>

#include "data/transform_kind.h"

static enum fettle_status same_shape(const struct transform *t, struct tensor *shape, struct err *err)
{
	(void)t;
	(void)shape;
	(void)err;
	return FETTLE_OK;
}

/* floats would have to be scaled */
static enum fettle_status image_shape_of(const struct transform *t, struct tensor *shape, struct err *err)
{
	if (shape->dtype == DT_U8)
		return transform_need_image(t, shape, err);
	return fail(err, FETTLE_INVALID, "cannot apply %s: %s, need uint8 pixels", t->kind->name,
		    dtype_name(shape->dtype));
}

static enum fettle_status same_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				     struct err *err)
{
	(void)t;
	(void)err;
	memcpy(dst->t.data, src->data, tensor_bytes(src));
	return FETTLE_OK;
}

#define SAME(id, word, shape_of)                                                                             \
	const struct transform_kind transform_##id = {                                                       \
		.name = (word),                                                                              \
		.summary = "nothing is left to do: images are decoded as they are read",                     \
		.shape = (shape_of),                                                                         \
		.apply = same_apply                                                                          \
	};

SAME(parse_imagenet, "ParseDecodeImagenet", same_shape)
SAME(parse_coco, "ParseDecodeCoco", same_shape)
SAME(parse_voc, "ParseDecodeVoc", same_shape)
SAME(decode_image, "DecodeImage", same_shape)
SAME(to_array, "ToArray", same_shape)
SAME(to_ndarray, "ToNDArray", same_shape)
SAME(to_pil_image, "ToPILImage", image_shape_of)
