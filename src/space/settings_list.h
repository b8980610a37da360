/*
 * The settings: SETTING(ID, name, type, first value, when it has a meaning). No include guard. One that others depend on
 * stands before them. A first value of 0 that is no bool leaves it to the recipe. `when` is ALWAYS or IF(other, values).
 */
#define ALWAYS SETTINGS, 0
#define IF(other, values) SET_##other, (values)
#define FT "extra_options.FastFinetune."
#define SGD IF(OPTIM_ALGORITHM, 1u << FINETUNE_ADAROUND | 1u << FINETUNE_ADAQUANT)
SETTING(METHOD, "calibrate_method", SETTING_METHOD, RANGE_MINMAX, ALWAYS)
SETTING(ACT_TYPE, "activation_type", SETTING_DTYPE, DT_U8, ALWAYS)
SETTING(WEIGHT_TYPE, "weight_type", SETTING_DTYPE, DT_S8, ALWAYS)
SETTING(CLE, "include_cle", SETTING_BOOL, 0, ALWAYS)
SETTING(SQ, "include_sq", SETTING_BOOL, 0, ALWAYS)
SETTING(AUTO_MP, "include_auto_mp", SETTING_BOOL, 0, ALWAYS)
SETTING(FAST_FT, "include_fast_ft", SETTING_BOOL, 0, ALWAYS)
SETTING(ACT_SYMMETRIC, "extra_options.ActivationSymmetric", SETTING_BOOL, 0, ALWAYS)
SETTING(WEIGHT_SYMMETRIC, "extra_options.WeightSymmetric", SETTING_BOOL, 1, ALWAYS)
SETTING(MOVING_AVERAGE, "extra_options.CalibMovingAverage", SETTING_BOOL, 0, IF(METHOD, 1u << RANGE_MINMAX))
SETTING(AVERAGING, "extra_options.CalibMovingAverageConstant", SETTING_NUMBER, 0.01,
	IF(MOVING_AVERAGE, 1u << 1))
SETTING(PERCENTILE, "extra_options.Percentile", SETTING_NUMBER, 99.999, IF(METHOD, 1u << RANGE_PERCENTILE))
SETTING(SMOOTH_ALPHA, "extra_options.SmoothAlpha", SETTING_ALPHA, 0.5, IF(SQ, 1u << 1))
SETTING(OPTIM_ALGORITHM, FT "OptimAlgorithm", SETTING_FINETUNE, FINETUNE_ADAROUND, IF(FAST_FT, 1u << 1))
SETTING(GRANULARITY, FT "Granularity", SETTING_GRANULARITY, GRANULARITY_LAYER, IF(FAST_FT, 1u << 1))
SETTING(DATA_SIZE, FT "DataSize", SETTING_INT, 0, IF(FAST_FT, 1u << 1))
SETTING(SELECTIVE, FT "SelectiveUpdate", SETTING_BOOL, 1, IF(FAST_FT, 1u << 1))
SETTING(BATCH_SIZE, FT "BatchSize", SETTING_INT, 32, SGD)
SETTING(ITERATIONS, FT "NumIterations", SETTING_INT, 1000, SGD)
SETTING(LEARNING_RATE, FT "LearningRate", SETTING_NUMBER, 0, SGD)
SETTING(SEED, FT "FixedSeed", SETTING_INT, 1, SGD)
SETTING(EARLY_STOP, FT "EarlyStop", SETTING_BOOL, 0, SGD)
#undef ALWAYS
#undef IF
#undef FT
#undef SGD
