/*
 * Names of ops as Neural Compressor's configurations write them: a name, or a regular expression of Python that matches the beginning of
 * names ("Postprocessor/.*", "[6-9]\d{2,}", "Conv_1$").
 */
#ifndef SPACE_OP_PATTERN_H
#define SPACE_OP_PATTERN_H

#include <regex.h>
#include <stdbool.h>

struct op_pattern {
	const char *name; /* borrowed */
	bool is_regex;
	regex_t re;
};

void op_pattern_init(struct op_pattern *p, const char *name);
void op_pattern_release(struct op_pattern *p);
/* `type`: of the op; INC cuts a Gemm X into X_MatMul and X_Add before it names anything. NULL: not known. */
bool op_pattern_matches(const struct op_pattern *p, const char *name, const char *type);

#endif
