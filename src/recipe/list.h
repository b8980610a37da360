/*
 * Every recipe, in the order in which plans list them: RECIPE(id, what struct recipes holds of it) stands for recipe_id.
 * RECIPE() is defined by who includes this. No include guard. All bits zero must mean what the quantizer does by itself.
 */
RECIPE(keep_first, bool keep_first)
RECIPE(keep_last, bool keep_last)
RECIPE(keep_ends, bool keep_ends)
RECIPE(own_pool_scale, bool own_pool_scale)
RECIPE(own_concat_scale, bool own_concat_scale)
RECIPE(gemm_to_matmul, bool gemm_to_matmul)
RECIPE(dedicated_qdq_pair, bool dedicated_qdq_pair)
RECIPE(qdq_pair_on_weights, bool qdq_pair_on_weights)
RECIPE(fast_bias_correction, bool fast_bias_correction)
RECIPE(weight_correction, bool weight_correction)
RECIPE(cle, bool cle)
RECIPE(smooth_quant, bool smooth_quant; double smooth_alpha)
RECIPE(finetune, struct finetune finetune)
RECIPE(true_sequential, bool true_sequential)
