/*
 * A plug-in with two strategies, one of each kind, and a metric. It uses fettle.h only.
 *
 *	cc -shared -fPIC -o strategy_plugin.so strategy_plugin.c $(pkg-config --cflags --libs fettle)
 *	fettle tune model.onnx --calib c.npz --eval e.npz --plugin ./strategy_plugin.so --strategy halving
 */
#include <fettle.h>

#include <stdlib.h>

/* the default plan with the first k ops of the order in fp32 */
static void fall_back(const struct fettle_search *s, const size_t *order, size_t k, unsigned char *plan)
{
	const struct fettle_param *p;
	size_t i;

	for (i = 0; (p = fettle_search_param(s, i)); i++)
		plan[i] = (unsigned char)p->first;
	for (i = 0; i < k; i++) {
		p = fettle_search_param(s, order[i]);
		if (p->fp32 >= 0)
			plan[order[i]] = (unsigned char)p->fp32;
	}
}

/*
 * traverse(): full control. Ops are ordered by how much quantization disturbs their outputs; then the number of
 * them that must fall back is found by halving. No global state: several runs may use this at once.
 */
static enum fettle_status halving(struct fettle_search *s, void *self)
{
	unsigned char *plan = malloc(fettle_search_n_params(s));
	size_t *order = malloc(sizeof(*order) * (fettle_search_n_ops(s) + 1));
	struct fettle_plan_score score = FETTLE_PLAN_SCORE_INIT;
	enum fettle_status st = FETTLE_OK;
	size_t n = 0, too_few = 0, enough;

	(void)self;
	if (!plan || !order) {
		st = fettle_search_fail(s, FETTLE_SYSTEM, "out of memory");
		goto out;
	}
	fettle_search_stage(s, "int8 throughout");
	fall_back(s, order, 0, plan);
	st = fettle_search_try(s, plan, &score);
	if (!st)
		st = fettle_search_rank_ops(s, plan, FETTLE_RANK_OUTPUT_ERROR, order, NULL, &n);
	fettle_search_stage(s, "halving");
	for (enough = n; !st && enough - too_few > 1;) {
		size_t middle = (too_few + enough) / 2;

		fall_back(s, order, middle, plan);
		st = fettle_search_try(s, plan, &score);
		if (score.met)
			enough = middle;
		else
			too_few = middle;
	}
out:
	free(order);
	free(plan);
	return st; /* FETTLE_STOP too goes up as it is */
}

/* next(): one plan after the other. Each op in turn is the only one in fp32; the trials so far tell whose turn it is. */
static enum fettle_status one_each(struct fettle_search *s, void *self, unsigned char *plan)
{
	size_t i, turn = fettle_search_n_trials(s);

	(void)self;
	for (i = 0; i < fettle_search_n_ops(s); i++) {
		const struct fettle_param *p = fettle_search_param(s, i);

		if (p->fp32 >= 0 && (size_t)p->fp32 != p->first && !turn--) {
			plan[i] = (unsigned char)p->fp32; /* the rest are the defaults already */
			return FETTLE_OK;
		}
	}
	return FETTLE_STOP;
}

/* A metric: 1 if at most one class scores higher than the label. */
static double top2(void *self, const struct fettle_tensor *outputs, size_t n_outputs,
		   const struct fettle_tensor *label)
{
	const float *x = outputs[0].data;
	int64_t right, i;
	int above = 0;

	(void)self;
	(void)n_outputs;
	if (!label || label->dtype != FETTLE_INT64 || outputs[0].dtype != FETTLE_FLOAT32 ||
	    outputs[0].rank != 1)
		return 0.0 / 0.0; /* NaN: it cannot be computed */
	right = *(const int64_t *)label->data;
	if (right < 0 || right >= outputs[0].dims[0])
		return 0.0 / 0.0;
	for (i = 0; i < outputs[0].dims[0]; i++)
		above += x[i] > x[right] || (x[i] == x[right] && i < right);
	return above < 2;
}

static const struct fettle_strategy strategies[] = {
	{ .size = sizeof(strategies[0]),
	  .name = "halving",
	  .summary = "halves the number of ops that fall back, most disturbed first",
	  .traverse = halving },
	{ .size = sizeof(strategies[0]),
	  .name = "one_each",
	  .summary = "every op in turn is the only one in fp32",
	  .next = one_each },
};

static const struct fettle_metric metrics[] = {
	{ .size = sizeof(metrics[0]), .name = "top2", .higher_is_better = true, .sample = top2 },
};

static const struct fettle_plugin plugin = {
	.size = sizeof(plugin),
	.abi = FETTLE_PLUGIN_ABI,
	.strategies = strategies,
	.n_strategies = sizeof(strategies) / sizeof(strategies[0]),
	.metrics = metrics,
	.n_metrics = sizeof(metrics) / sizeof(metrics[0]),
};

const struct fettle_plugin *fettle_plugin_entry(void)
{
	return &plugin;
}
