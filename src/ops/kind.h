/* What a model is, where that limits what can be made of it; in words, which live in the arena. */
#ifndef OPS_KIND_H
#define OPS_KIND_H

#include "model/model.h"

/* Is it an op of a quantized model? */
bool is_quantized(const struct node *n);
/* Is it a QuantizeLinear, a DequantizeLinear, of any domain? n may be NULL. */
bool is_quantize_linear(const struct node *n);
bool is_dequantize_linear(const struct node *n);
/* Does it also compute with integers? */
bool computes_integers(const struct node *n);
/* "quantized already (3 QuantizeLinear, 5 DequantizeLinear)"; NULL: it is not */
const char *kind_quantized(const struct model *m, struct arena *a);
/* "If 'vad' holds 2 LSTM and 4 MatMul": what only a subgraph computes; NULL: nothing */
const char *kind_hidden(const struct model *m, struct arena *a);

#endif
