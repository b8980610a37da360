"""Names for what an op may be, in op_type_dict and op_name_dict."""

FP32 = {"weight": {"dtype": ["fp32"]}, "activation": {"dtype": ["fp32"]}}
INT8_SYM_MINMAX_PERCHANNEL = {"dtype": ["int8"], "scheme": ["sym"], "algorithm": ["minmax"], "granularity": ["per_channel"]}
INT8_SYM_MINMAX_PERTENSOR = {"dtype": ["int8"], "scheme": ["sym"], "algorithm": ["minmax"], "granularity": ["per_tensor"]}
INT8_SYM_KL_PERTENSOR = {"dtype": ["int8"], "scheme": ["sym"], "algorithm": ["kl"], "granularity": ["per_tensor"]}
UINT8_ASYM = {"dtype": ["uint8"], "scheme": ["asym"]}
