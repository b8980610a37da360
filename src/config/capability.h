/* INC's capability files, such as its onnxrt.yaml. */
#ifndef CONFIG_CAPABILITY_H
#define CONFIG_CAPABILITY_H

#include "config/yaml.h"

/*
 * Such a file is a list with an entry per version of the runtime: of it, the entry `default`, else the last, as a configuration with
 * quantization.op_type_wise. Everything may stay in fp32, which these files leave out. Anything else is returned as it is.
 */
struct yaml *capability_tree(struct arena *arena, struct yaml *root);

#endif
