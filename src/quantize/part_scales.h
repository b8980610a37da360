/*
 * awq's input scales for a model that is run part by part (by_parts.h): as scale_inputs() has them, but only where the division can
 * go into a normalisation, or a Mul or Add with a constant, which are small. Weights are multiplied as they are quantized
 * (block_seen.input_scales). Parts to come run as if nothing was scaled: the constants change when all are done.
 */
#ifndef QUANTIZE_PART_SCALES_H
#define QUANTIZE_PART_SCALES_H

#include "quantize/blocks.h"
#include "quantize/subject.h"

struct part_scales;
struct part_scales *part_scales_new(struct subject *s, const struct qplan *plan);
void part_scales_free(struct part_scales *p);
/* Could what this op reads be scaled, and is not decided on yet? */
bool part_scales_open(const struct part_scales *p, size_t node);
bool part_scales_alike(const struct part_scales *p, size_t a,
		       size_t b); /* do both ops read the same input? */
/* Chooses scales for these ops, and all that read the same input, by their weights as [outputs, inputs] and what was seen of it. */
enum fettle_status part_scales_choose(struct part_scales *p, size_t node, const struct block_reader *readers,
				      size_t n, const struct block_seen *seen, struct err *err);
/* What the op's input is to be divided by; NULL: nothing. */
const float *part_scales_of(const struct part_scales *p, size_t node);
/* Divides. The subject's constants are other ones from here on. */
enum fettle_status part_scales_apply(struct part_scales *p, struct err *err);

#endif
