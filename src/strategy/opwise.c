#include "strategy/opwise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static unsigned list_options(const struct param *op, uint16_t *out)
{
	unsigned k, n = 0;
	bool quantized;

	if (op->kind != PARAM_OP) { /* all of them, the default first */
		out[n++] = op->first;
		for (k = 0; k < op->n_options; k++)
			if (k != op->first)
				out[n++] = (uint16_t)k;
		return n;
	}
	quantized = option_is_int8(&op->options[op->first]);
	if (quantized)
		out[n++] = op->first;
	for (k = 0; k < op->n_options; k++)
		if (option_is_int8(&op->options[k]) && !(quantized && k == op->first))
			out[n++] = (uint16_t)k;
	if (!n)
		out[n++] = op->first;
	return n;
}

void opwise_init(struct opwise *x, const struct space *space)
{
	size_t i;

	x->n = 0;
	x->param = xcalloc(space->n, sizeof(*x->param));
	x->option = xcalloc(space->n, sizeof(*x->option));
	x->n_options = xcalloc(space->n, sizeof(*x->n_options));
	for (i = 0; i < space->n; i++) {
		if (space->v[i].kind == PARAM_RECIPE)
			continue;
		x->param[x->n] = i;
		x->n_options[x->n] = list_options(&space->v[i], x->option[x->n]);
		x->n++;
	}
}

void opwise_release(struct opwise *x)
{
	free(x->param);
	free(x->option);
	free(x->n_options);
}

bool opwise_can_quantize(const struct space *space)
{
	size_t i, k;

	for (i = 0; i < space->n_ops; i++)
		for (k = 0; k < space->v[i].n_options; k++)
			if (option_is_int8(&space->v[i].options[k]))
				return true;
	return false;
}

void opwise_begin(struct search *s)
{
	double size = space_size_log10(search_space(s), true);
	char stage[64];

	if (size < 6)
		snprintf(stage, sizeof(stage), "%.0f plans", pow(10, size));
	else
		snprintf(stage, sizeof(stage), "10^%.0f plans", size);
	search_stage(s, stage);
	search_untried(s, "recipes, and ops in fp32");
}
