/*
 * For oneDNN 2 (Debian 12): what math.c uses of oneDNN 3's interface (Debian 13). There a memory descriptor is a
 * handle, and a primitive descriptor is made in one call. Includes dnnl.h.
 */
#ifndef FINETUNE_DNNL2_H
#define FINETUNE_DNNL2_H

#include <dnnl.h>
#include <dnnl_debug.h>

#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t memory_desc;
typedef const_dnnl_memory_desc_t const_memory_desc;

#else

#include "base/mem.h"

#include <stdlib.h>

typedef dnnl_memory_desc_t *memory_desc;
typedef const dnnl_memory_desc_t *const_memory_desc;

static inline dnnl_status_t dnnl_memory_desc_create_with_strides(memory_desc *out, int rank,
								 const dnnl_dims_t dims,
								 dnnl_data_type_t type,
								 const dnnl_dims_t strides)
{
	*out = xcalloc(1, sizeof(**out));
	return dnnl_memory_desc_init_by_strides(*out, rank, dims, type, strides);
}

static inline dnnl_status_t dnnl_memory_desc_create_with_tag(memory_desc *out, int rank,
							     const dnnl_dims_t dims, dnnl_data_type_t type,
							     dnnl_format_tag_t tag)
{
	*out = xcalloc(1, sizeof(**out));
	return dnnl_memory_desc_init_by_tag(*out, rank, dims, type, tag);
}

static inline void dnnl_memory_desc_destroy(memory_desc d)
{
	free(d);
}

#define dnnl_post_ops_append_sum(post, scale, zero_point, type) dnnl_post_ops_append_sum(post, scale)

/* INIT fills d, an op descriptor of oneDNN 2; the result is the primitive descriptor made of it */
#define MADE_OF(op, hint, init)                                                                              \
	do {                                                                                                 \
		dnnl_##op##_desc_t d;                                                                        \
		dnnl_status_t st = (init);                                                                   \
                                                                                                             \
		return st ? st : dnnl_primitive_desc_create(out, &d, attr, engine, hint);                    \
	} while (0)

static inline dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind, dnnl_alg_kind_t alg,
	const_memory_desc x, const_memory_desc w, const_memory_desc b, const_memory_desc y,
	const dnnl_dims_t stride, const dnnl_dims_t dilate, const dnnl_dims_t pad, const dnnl_dims_t pad_end,
	const_dnnl_primitive_attr_t attr)
{
	MADE_OF(convolution, NULL,
		dnnl_dilated_convolution_forward_desc_init(&d, kind, alg, x, w, b, y, stride, dilate, pad,
							   pad_end));
}

static inline dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg, const_memory_desc x,
	const_memory_desc dw, const_memory_desc db, const_memory_desc dy, const dnnl_dims_t stride,
	const dnnl_dims_t dilate, const dnnl_dims_t pad, const dnnl_dims_t pad_end,
	const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
	MADE_OF(convolution, forward,
		dnnl_dilated_convolution_backward_weights_desc_init(&d, alg, x, dw, db, dy, stride, dilate,
								    pad, pad_end));
}

static inline dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg, const_memory_desc dx,
	const_memory_desc w, const_memory_desc dy, const dnnl_dims_t stride, const dnnl_dims_t dilate,
	const dnnl_dims_t pad, const dnnl_dims_t pad_end, const_dnnl_primitive_desc_t forward,
	const_dnnl_primitive_attr_t attr)
{
	MADE_OF(convolution, forward,
		dnnl_dilated_convolution_backward_data_desc_init(&d, alg, dx, w, dy, stride, dilate, pad,
								 pad_end));
}

static inline dnnl_status_t dnnl_inner_product_forward_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind, const_memory_desc x,
	const_memory_desc w, const_memory_desc b, const_memory_desc y, const_dnnl_primitive_attr_t attr)
{
	MADE_OF(inner_product, NULL, dnnl_inner_product_forward_desc_init(&d, kind, x, w, b, y));
}

static inline dnnl_status_t dnnl_inner_product_backward_weights_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, const_memory_desc x, const_memory_desc dw,
	const_memory_desc db, const_memory_desc dy, const_dnnl_primitive_desc_t forward,
	const_dnnl_primitive_attr_t attr)
{
	MADE_OF(inner_product, forward, dnnl_inner_product_backward_weights_desc_init(&d, x, dw, db, dy));
}

static inline dnnl_status_t dnnl_inner_product_backward_data_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, const_memory_desc dx, const_memory_desc w,
	const_memory_desc dy, const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
	MADE_OF(inner_product, forward, dnnl_inner_product_backward_data_desc_init(&d, dx, w, dy));
}

static inline dnnl_status_t dnnl_binary_primitive_desc_create(dnnl_primitive_desc_t *out,
							      dnnl_engine_t engine, dnnl_alg_kind_t alg,
							      const_memory_desc a, const_memory_desc b,
							      const_memory_desc y,
							      const_dnnl_primitive_attr_t attr)
{
	MADE_OF(binary, NULL, dnnl_binary_desc_init(&d, alg, a, b, y));
}

/* x and y have one descriptor */
static inline dnnl_status_t dnnl_eltwise_forward_primitive_desc_create(
	dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t kind, dnnl_alg_kind_t alg,
	const_memory_desc x, const_memory_desc y, float alpha, float beta, const_dnnl_primitive_attr_t attr)
{
	(void)y;
	MADE_OF(eltwise, NULL, dnnl_eltwise_forward_desc_init(&d, kind, alg, x, alpha, beta));
}

#undef MADE_OF
#endif
#endif
