/* Constants in integers: quantized once per (tensor, setting), kept for all plans. */
#ifndef QUANTIZE_WEIGHTS_H
#define QUANTIZE_WEIGHTS_H

#include "space/qplan.h"

struct qweight {
	struct tensor q;     /* the integers, same shape as the weight (or transposed) */
	struct tensor scale; /* float: scalar, or one per channel */
	struct tensor zero;  /* of q's type, shaped like scale */
	int axis;            /* of the channels; -1: per tensor */
	bool is_symmetric;
};

struct weight_cache;
struct weight_cache *weight_cache_new(struct model *m);
void weight_cache_free(struct weight_cache *c);

/*
 * The constant under a setting, with channels along `axis` (ignored per tensor). With `min_scale` (one
 * per channel), no scale is smaller than that: the bias must fit 32 bits. `transpose`: a matrix is
 * stored the other way round, and axis means the stored one.
 */
enum fettle_status weight_get(struct weight_cache *c, const char *name, const struct qsetting *s, int axis,
			      bool transpose, const float *min_scale, const struct qweight **out,
			      struct err *err);

/* Quantizes a float tensor into `out` (as many elements of s->dtype), channels along axis; nothing is kept. */
enum fettle_status quantize_tensor(const struct tensor *t, const struct qsetting *s, int axis, void *out,
				   struct err *err);

/* The squared distance between a float tensor and its quantized self. */
enum fettle_status quantization_error(const struct tensor *t, const struct qsetting *s, int axis, double *out,
				      struct err *err);

#endif
