/*
 * Transforms: what is done to every sample before a model sees it. They are made by name and filled
 * key by key, so that a configuration reader needs to know none of them:
 *
 *	st = transform_init(&t, "Resize", err);
 *	st = transform_set(&t, "size", (double[]){ 256 }, 1, NULL, err);
 *	st = transform_set(&t, "interpolation", NULL, 0, "bicubic", err);
 *	st = transform_check(&t, err);		all that is required was given
 *
 * A struct transform is a plain value: copied by assignment, with nothing to release.
 *
 *   Resize      size: [h, w], or one number: both for ONNX Runtime and TensorFlow, else the shorter side
 *               (the other keeps the aspect, rounded down); interpolation: bilinear (default), nearest,
 *               bicubic, area. Sample positions are pixel centres, no antialiasing (as OpenCV does).
 *               Integers stay integers, rounded.
 *   CenterCrop  size: [h, w], or one number for both. Offsets are rounded down.
 *   Normalize   mean (default 0), std (default 1): one number or one per channel: (x - mean) / std, as
 *               float32; rescale: [a, b]: then divided by a, less b
 *   Rescale     scale (default 1/255), offset (default 0): x * scale + offset, as float32
 *   Transpose   perm: default [2, 0, 1], from [h, w, c] to [c, h, w]
 *   Cast        dtype (default float32): any numeric type; to an integer, it cuts towards zero and saturates
 *
 * Of INC:
 *
 *   ResizeCropImagenet     the shorter side to resize_side (256) by resize_method, the middle of height and width;
 *                          subpixels: RGB (default) or BGR; random_crop, random_flip_left_right.
 *                          (x / 255 - mean_value) / std_value * scale as [c, h, w], std_value being ImageNet's by
 *                          default; for TensorFlow (x - mean_value) * scale as [h, w, c]
 *   BilinearImagenet       the middle central_fraction (0.875) of both sides, resized to height and width;
 *                          (2 x / 255 - 1 - mean_value) * scale as [h, w, c]
 *   ResizeWithAspectRatio  so that height and width are scale (87.5) percent; inter_pol: area by default
 *   PaddedCenterCrop       the middle square of size / (size + crop_padding) of the shorter side
 *   CropToBoundingBox      offset_height, offset_width, target_height, target_width
 *   CropResize             x, y, width, height; then as Resize with size: [h, w], interpolation
 *   AlignImageChannel      dim (3): grey is spread, colour becomes grey, alpha is dropped
 *   ToTensor               [c, h, w]; pixels from 0 to 1
 *   ResizeWithRatio        larger until the shorter side has min_dim (800), the longer at most max_dim (1365); padding: then
 *                          a border of constant_value up to [max_dim, max_dim], which moves the boxes of labels along
 *   Pad                    padding: all sides, [columns, rows] or [left, top, right, bottom]; fill; padding_mode: constant
 *                          (default), edge, reflect, symmetric
 *   QuantizedInput         dtype: int8 or uint8; scale (1): rounded and saturated
 *   KerasRescale           rescale: [127.5, 1]: divided by the first, less the second
 *   ColorJitter            brightness, contrast, saturation, hue: each a number or [lowest, highest]
 *   RandomCrop, RandomResizedCrop, RandomHorizontalFlip, RandomVerticalFlip
 *   ParseDecodeImagenet, ParseDecodeCoco, ParseDecodeVoc, DecodeImage, ToArray, ToNDArray, ToPILImage: nothing is left to do
 *
 * Those of images take [h, w, c] or [h, w]. Channels of Normalize are the last dimension when its size fits,
 * else the first.
 */
#ifndef DATA_TRANSFORM_H
#define DATA_TRANSFORM_H

#include "data/buffer.h"

enum { TRANSFORM_OWN_MAX = 1152 };

/* Whose transforms they are: where frameworks differ, INC gives a name the meaning that it has in the framework. */
enum transform_dialect { DIALECT_NONE, DIALECT_ONNXRT, DIALECT_TENSORFLOW, DIALECT_PYTORCH };

struct transform {
	const struct transform_kind *kind;
	enum transform_dialect dialect;
	uint64_t seed;                                    /* of those that are random */
	_Alignas(8) unsigned char own[TRANSFORM_OWN_MAX]; /* the kind's parameters: a struct of its file */
};

enum fettle_status transform_init(struct transform *t, const char *name, struct err *err);
/* The value of a key: n numbers, or a text (then values is NULL and n is 0). */
enum fettle_status transform_set(struct transform *t, const char *key, const double *values, size_t n,
				 const char *text, struct err *err);
enum fettle_status transform_check(const struct transform *t, struct err *err);
const char *transform_name(const struct transform *t);
bool transform_is_random(const struct transform *t); /* good for calibration, not for scores */

bool transform_moves_boxes(const struct transform *t);
/* The box of an object in an image of this shape, in place. */
void transform_box(const struct transform *t, const struct tensor *shape, double box[4]);

/* What becomes of a sample's type and shape, in place; -1 is a dimension not known yet. */
enum fettle_status transform_shape(const struct transform *t, struct tensor *shape, struct err *err);
/* Thread-safe. src is not dst's tensor. */
enum fettle_status transform_apply(const struct transform *t, const struct tensor *src, struct buffer *dst,
				   struct err *err);

#endif
