/* The algorithms; BLOCK(ID, id) is defined by who includes this. No include guard. */
BLOCK(RTN, rtn)
