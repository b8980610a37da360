/* The algorithms; BLOCK(ID, id) is defined by who includes this. No include guard. */
BLOCK(RTN, rtn)
BLOCK(RTN_CLIP, rtn_clip)
BLOCK(K_QUANT, k_quant)
BLOCK(HQQ, hqq)
BLOCK(GPTQ, gptq)
BLOCK(AWQ, awq)
BLOCK(GRAM, gram)
