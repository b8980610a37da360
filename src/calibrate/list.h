/* The calibration algorithms; RANGE(ID, id) is defined by who includes this. No include guard. */
RANGE(MINMAX, minmax)
RANGE(MOVING_AVERAGE, moving_average)
RANGE(PERCENTILE, percentile)
RANGE(KL, kl)
RANGE(MSE, mse)
RANGE(NONOVERFLOW, nonoverflow)
RANGE(MINMSE, minmse)
