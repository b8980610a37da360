/*
 * Every rewriting of the fp32 graph, in the order in which they are tried: SIMPLIFICATION(id) stands for simplification_id,
 * in the file of that name. SIMPLIFICATION() is defined by who includes this. No include guard.
 */
SIMPLIFICATION(constant_shapes)
SIMPLIFICATION(constant_operand)
SIMPLIFICATION(hard_swish)
SIMPLIFICATION(gelu)
SIMPLIFICATION(layer_norm)
SIMPLIFICATION(fold_scale)
SIMPLIFICATION(skip_norm)
