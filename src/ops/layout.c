#include "ops/rules.h"

#include <math.h>

#include "base/mem.h"

enum weight_layout op_layout(const struct node *n)
{
	const struct op_rule *r = op_rule_find(n);

	return r ? r->layout : LAYOUT_NONE;
}

bool op_convolves(const struct node *n)
{
	const enum weight_layout l = op_layout(n);

	return l == LAYOUT_CONV || l == LAYOUT_DECONV;
}

bool op_weight_turned(const struct node *n)
{
	const struct op_rule *r = op_rule_find(n);

	return r && r->weight_turned && node_int(n, r->weight_turned, 0);
}

bool op_input_turned(const struct node *n)
{
	const struct op_rule *r = op_rule_find(n);

	return r && r->input_turned && node_int(n, r->input_turned, 0);
}

int op_weight_axis(const struct node *n)
{
	const struct op_rule *r = op_rule_find(n);

	if (!r)
		return -1;
	return r->weight_turned ? !op_weight_turned(n) : r->axis;
}

int op_channel_axis(const struct node *n, int rank)
{
	const struct op_rule *r = op_rule_find(n);

	return r && r->channels_last ? rank - 1 : 1;
}

enum op_channels op_channels(const struct node *n)
{
	static const struct {
		const char *type;
		enum op_channels way;
	} known[] = {
		{ "Relu", CHANNELS_KEPT },
		{ "LeakyRelu", CHANNELS_KEPT },
		{ "PRelu", CHANNELS_KEPT },
		{ "Identity", CHANNELS_KEPT },
		{ "Dropout", CHANNELS_KEPT },
		{ "Slice", CHANNELS_KEPT },
		{ "Pad", CHANNELS_KEPT },
		{ "Resize", CHANNELS_KEPT },
		{ "MaxPool", CHANNELS_KEPT_SECOND },
		{ "AveragePool", CHANNELS_KEPT_SECOND },
		{ "GlobalAveragePool", CHANNELS_KEPT_SECOND },
		{ "GlobalMaxPool", CHANNELS_KEPT_SECOND },
		{ "Reshape", CHANNELS_RESHAPED },
		{ "Flatten", CHANNELS_RESHAPED },
		{ "Squeeze", CHANNELS_RESHAPED },
		{ "Unsqueeze", CHANNELS_RESHAPED },
		{ "Transpose", CHANNELS_TURNED },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(known); i++)
		if (node_is(n, known[i].type))
			return known[i].way;
	return CHANNELS_LOST;
}

bool op_cuts_off(const struct node *n)
{
	return node_is(n, "Relu") || node_is(n, "Clip");
}

void op_cut_bounds(struct model *m, const struct node *n, float *lo, float *hi)
{
	float *bound[2] = { lo, hi };
	size_t k;

	*lo = node_is(n, "Relu") ? 0 : node_float(n, "min", -INFINITY);
	*hi = node_is(n, "Relu") ? INFINITY : node_float(n, "max", INFINITY);
	for (k = 1; k < 3; k++) {
		struct init *w = k < n->n_in && *n->in[k] ? model_init(m, n->in[k]) : NULL;

		if (w && !model_weight(m, w, NULL) && tensor_count(&w->t) == 1)
			*bound[k - 1] = (float)tensor_get(&w->t, 0);
	}
}
