/* The words that keys take. */
#include "config/schema_impl.h"

const struct word approaches[] = {
	WORD("post_training_static_quant", APPROACH_STATIC),
	WORD("post_training_dynamic_quant", APPROACH_DYNAMIC),
	WORD("post_training_auto_quant", APPROACH_AUTO),
	WORD("static", APPROACH_STATIC),
	WORD("dynamic", APPROACH_DYNAMIC),
	WORD("auto", APPROACH_AUTO),
	WORD("weight_only", APPROACH_WEIGHT),
	WORD("post_training_weight_only", APPROACH_WEIGHT),
	WORD("all", APPROACH_ALL),
	{ "quant_aware_training", 0,
	  "fettle does not train: give it the trained model and say post_training_static_quant" },
	END,
};
/* The first name of a value is the one that is printed; the others are INC's of other times. */
const struct word frameworks[] = {
	WORD("onnxrt_qlinearops", FRAMEWORK_QLINEAR),
	WORD("onnxrt_integerops", FRAMEWORK_INTEGER),
	WORD("onnxrt_qdq", FRAMEWORK_QDQ),
	WORD("onnxruntime", FRAMEWORK_ONNXRT),
	WORD("onnxrt_qlinear", FRAMEWORK_QLINEAR),
	WORD("onnxrt_integer", FRAMEWORK_INTEGER),
	WORD("onnxrt_qdqops", FRAMEWORK_QDQ),
	WORD("onnxrt_qoperator", FRAMEWORK_QLINEAR),
	WORD("onnxrt", FRAMEWORK_ONNXRT),
	WORD("mxnet", FRAMEWORK_MXNET),
	WORD("tensorflow", FRAMEWORK_TENSORFLOW),
	WORD("inteltensorflow", FRAMEWORK_INTEL_TENSORFLOW),
	WORD("tensorflow_itex", FRAMEWORK_TENSORFLOW_ITEX),
	WORD("keras", FRAMEWORK_KERAS),
	WORD("pytorch", FRAMEWORK_PYTORCH),
	WORD("pytorch_fx", FRAMEWORK_PYTORCH_FX),
	WORD("pytorch_ipex", FRAMEWORK_PYTORCH_IPEX),
	WORD("engine", FRAMEWORK_ENGINE),
	WORD("NA", FRAMEWORK_NA),
	END,
};
const struct word formats[] = { WORD("QDQ", FORMAT_QDQ), WORD("QOperator", FORMAT_QOPERATOR), END };
const struct word device_words[] = {
	WORD("cpu", 0),
	{ "gpu", 0, "fettle runs on the cpu: say cpu or leave it out" },
	END,
};
#define OTHER_BACKEND "fettle runs on ONNX Runtime's cpu: say default or leave it out"
const struct word backends[] = {
	WORD("default", 0),
	WORD("onnxrt_cpu_ep", 0),
	{ "onnxrt_cuda_ep", 0, OTHER_BACKEND },
	{ "onnxrt_trt_ep", 0, OTHER_BACKEND },
	{ "onnxrt_dnnl_ep", 0, OTHER_BACKEND },
	{ "onnxrt_dml_ep", 0, OTHER_BACKEND },
	{ "ipex", 0, OTHER_BACKEND },
	{ "itex", 0, OTHER_BACKEND },
	END,
};
const struct word graph_levels[] = {
	WORD("default", GRAPH_DEFAULT),    WORD("DISABLE_ALL", GRAPH_DISABLE_ALL),
	WORD("ENABLE_BASIC", GRAPH_BASIC), WORD("ENABLE_EXTENDED", GRAPH_EXTENDED),
	WORD("ENABLE_ALL", GRAPH_ALL),     END,
};
const struct word granularities[] = {
	WORD("per_tensor", CONFIG_PER_TENSOR),
	WORD("per_channel", CONFIG_PER_CHANNEL),
	END,
};
const struct word schemes[] = {
	WORD("asym", 1 << SCHEME_ASYM),
	WORD("sym", 1 << SCHEME_SYM),
	WORD("asym_float", 1 << SCHEME_ASYM), /* PyTorch's: the zero point before it is rounded */
	END,
};
const struct word dtypes[] = {
	WORD("uint8", T_U8),
	WORD("int8", T_S8),
	WORD("uint16", T_U16),
	WORD("int16", T_S16),
	WORD("fp32", CONFIG_FP32),
	WORD("bf16", CONFIG_BF16),
	WORD("int", T_8), /* INC's, of weight-only weights; `bits` says how many */
	END,
};
const struct word algorithms[] = {
#define RANGE(ID, id) WORD(#id, 1 << RANGE_##ID),
#include "calibrate/list.h"
#undef RANGE
	WORD("entropy", 1 << RANGE_KL),
	WORD("placeholder", 1 << RANGE_MINMAX), /* PyTorch's, of activations whose range each batch gives */
	END,
};
const struct word weight_algorithms[] = {
#define RANGE(ID, id) WORD(#id, 1 << RANGE_##ID),
#include "calibrate/list.h"
#undef RANGE
#define BLOCK(ID, id) WORD(#id, 1 << CONFIG_BLOCK(BLOCK_##ID)),
#include "blockwise/list.h"
#undef BLOCK
	WORD("entropy", 1 << RANGE_KL),
	END,
};
const struct word bit_words[] = { WORD("2", 1 << 2), WORD("4", 1 << 4), WORD("8", 1 << 8), END };
const struct word group_words[] = { WORD("16", 16),   WORD("32", 32),   WORD("64", 64),
				    WORD("128", 128), WORD("256", 256), END };
const struct word level_words[] = { WORD("0", 1 << 0), WORD("1", 1 << 1), WORD("4", 1 << 4), END };
const struct word last_batches[] = {
	WORD("rollover", LAST_BATCH_ROLLOVER),
	WORD("discard", LAST_BATCH_DISCARD),
	END,
};
const struct word criteria[] = {
	WORD("relative", CRITERION_RELATIVE),
	WORD("absolute", CRITERION_ABSOLUTE),
	END,
};
const struct word objectives[] = {
	WORD("performance", OBJECTIVE_PERFORMANCE),
	WORD("modelsize", OBJECTIVE_MODELSIZE),
	WORD("footprint", OBJECTIVE_FOOTPRINT),
	WORD("accuracy", OBJECTIVE_ACCURACY),
	END,
};
const struct word quant_levels[] = {
	WORD("0", QUANT_LEVEL_0),  WORD("1", QUANT_LEVEL_1),  WORD("auto", QUANT_LEVEL_AUTO),
	WORD("O0", QUANT_LEVEL_0), WORD("O1", QUANT_LEVEL_1), END,
};

/* As documented, with and without the names of the Python enums. */
#define QTYPE(name, id) WORD(name, id), WORD("QuantType." name, id), WORD("ExtendedQuantType." name, id)
const struct word quant_types[] = {
	QTYPE("QInt8", DT_S8),    QTYPE("QUInt8", DT_U8), QTYPE("QInt16", DT_S16),
	QTYPE("QUInt16", DT_U16), WORD("int8", DT_S8),    WORD("uint8", DT_U8),
	WORD("int16", DT_S16),    WORD("uint16", DT_U16), END,
};
const struct word directions[] = {
	WORD("minimize", DIRECTION_MINIMIZE),
	WORD("maximize", DIRECTION_MAXIMIZE),
	END,
};
