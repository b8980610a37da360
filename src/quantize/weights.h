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

/* How a constant is wanted, beside its setting. Zeroed: as it is stored, per tensor or along axis 0. */
struct weight_form {
	int axis;               /* of the channels; ignored per tensor */
	bool transpose;         /* a matrix is stored the other way round, and axis means the stored one */
	bool match_variance;    /* recipe weight_correction, see correct.c */
	const float *min_scale; /* NULL, or what each channel's scale must reach: the bias must fit 32 bits */
};

/* The constant under a setting. What is given lives as long as the cache. */
enum fettle_status weight_get(struct weight_cache *c, const char *name, const struct qsetting *s,
			      const struct weight_form *form, const struct qweight **out, struct err *err);

/* The numbers that the integers mean; as many floats as w->q has elements. */
void qweight_floats(const struct qweight *w, float *out);

/* A matrix the other way round, in the arena. */
const struct qweight *qweight_transposed(struct arena *a, const struct qweight *w);

/* What a float tensor becomes, as floats again, channels along axis; nothing is kept. */
enum fettle_status quantized_floats(const struct tensor *t, const struct qsetting *s, int axis, float *out,
				    struct err *err);

/* Quantizes a float tensor into `out` (as many elements of s->dtype), channels along axis; nothing is kept. */
enum fettle_status quantize_tensor(const struct tensor *t, const struct qsetting *s, int axis, void *out,
				   struct err *err);

/* The squared distance between a float tensor and its quantized self. */
enum fettle_status quantization_error(const struct tensor *t, const struct qsetting *s, int axis, double *out,
				      struct err *err);

#endif
