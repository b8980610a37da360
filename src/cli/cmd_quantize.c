#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int run(int argc, char **argv);

const struct command cmd_quantize = {
	.name = "quantize",
	.args = "MODEL --calib DATA -o OUT.onnx [OPTION...]",
	.summary = "quantizes a model by one plan, without a search",
	.run = run,
};

static const char details[] =
	"DATA is a .npz (arrays named as the model's inputs, or x; labels y), a folder of class folders "
	"with\n"
	"images, or a folder of test_data_set_* as ONNX publishes them.\n"
	"OPS is a comma-separated list of op names, op types or /regular expressions/;\n"
	"'fettle inspect MODEL' lists them.\n";

static int larger_first(const void *a, const void *b)
{
	const struct fettle_finetuned *x = a, *y = b;

	return x->after > y->after ? -1 : x->after < y->after;
}

/* the tuned ops whose outputs are still furthest off */
static void show_worst(const struct fettle *f, size_t n)
{
	enum { WORST = 5 };
	static const char *const head[] = { "largest errors", "was", "is" };
	struct fettle_finetuned *v = calloc(n, sizeof(*v)), op = FETTLE_FINETUNED_INIT;
	struct table t;
	size_t i, k = 0;

	if (!v)
		abort();
	for (i = 0; fettle_finetuned(f, i, &op); i++)
		if (!op.left && !op.kept)
			v[k++] = op;
	qsort(v, k, sizeof(*v), larger_first);
	table_begin(&t, head, 3, 6);
	for (i = 0; i < k && i < WORST; i++) {
		table_cell(&t, "%s", v[i].name);
		table_cell(&t, "%.2e", v[i].before);
		table_cell(&t, "%.2e", v[i].after);
	}
	table_print(&t);
	free(v);
}

static void show_left(const struct fettle *f)
{
	static const char *const head[] = { "left at nearest rounding", "because" };
	struct fettle_finetuned op = FETTLE_FINETUNED_INIT;
	struct table t;
	size_t i;

	table_begin(&t, head, 2, 0);
	for (i = 0; fettle_finetuned(f, i, &op); i++)
		if (op.left) {
			table_cell(&t, "%s", op.name);
			table_cell(&t, "%s", op.left);
		}
	table_print(&t);
}

static void show_tuned(const struct fettle *f, const struct fettle_quantized *q)
{
	printf("fine-tuned %zu ops", q->finetuned);
	if (q->finetuned)
		printf(": squared error of their outputs on samples held out %.2e, was %.2e (mean)",
		       q->finetune_after, q->finetune_before);
	if (q->finetune_kept)
		printf("; for %zu nothing better was found", q->finetune_kept);
	printf("\n");
	if (q->finetuned)
		show_worst(f, q->finetuned);
	if (q->finetune_left)
		show_left(f);
}

static int report(const struct fettle *f, const struct fettle_quantize_options *o,
		  const struct fettle_quantized *q, bool json)
{
	char before[32], after[32], data[512];
	struct fettle_finetuned op = FETTLE_FINETUNED_INIT;
	const bool tuned = fettle_finetuned(f, 0, &op);

	if (json)
		return print_json(fettle_quantized_json(f, q));
	printf("wrote %s: %s, was %s\n", o->output, human_bytes((double)q->size_after, after, sizeof(after)),
	       human_bytes((double)q->size_before, before, sizeof(before)));
	if (q->ops_weight_only)
		printf("%zu op%s weight-only (%.0f %% of the multiply-adds), ", q->ops_weight_only,
		       q->ops_weight_only == 1 ? "" : "s", 100 * q->weight_only_share);
	printf("%zu op%s in int8", q->ops_int8, q->ops_int8 == 1 ? "" : "s");
	if (q->ops_int16)
		printf(", %zu in 16 bits", q->ops_int16);
	if (q->ops_dynamic)
		printf(", %zu dynamic", q->ops_dynamic);
	printf(", %zu left in fp32; %.0f %% of the multiply-adds in int8\n", q->ops_fp32,
	       100 * q->int8_share);
	if (q->calib_samples)
		printf("calibrated on %zu samples in %.1f s\n", q->calib_samples, q->seconds_calibrate);
	if (tuned)
		show_tuned(f, q);
	show_fp32(f);
	printf("\nnext: fettle eval %s --data DATA; fettle bench %s %s%s\n", o->output, o->model, o->output,
	       bench_data(f, data, sizeof(data)));
	return 0;
}

/* for the help: every name; a number may follow, as in percentile:99.9 */
static void list_algorithms(char *out, size_t size)
{
	const char *name, *summary;
	size_t n, i;

	n = (size_t)snprintf(out, size, "range of activations, e.g. percentile:99.9 (minmax):");
	for (i = 0; n < size && (name = fettle_algorithm_name(i, &summary)); i++)
		n += (size_t)snprintf(out + n, size - n, "%s %s", i ? "," : "", name);
	for (i = 0; n < size && (name = fettle_block_algorithm_name(i, &summary)); i++)
		n += (size_t)snprintf(out + n, size - n, "%s %s", i ? "," : "; weight_only (rtn):", name);
}

static int run(int argc, char **argv)
{
	char algorithms[512];
	struct fettle_quantize_options o = FETTLE_QUANTIZE_OPTIONS_INIT;
	struct text_list recipes = { .n = 0 };
	bool json = false, quiet = false;
	const struct cli_option options[] = {
		{ "calib", "DATA", "samples to calibrate on", .text = &o.calib },
		{ "output", "FILE", "where to write the quantized model", .text = &o.output, .letter = 'o' },
		{ "config", "YAML", "configuration; options override it", .text = &o.config, .letter = 'c' },
		{ "samples", "N", "how many samples to calibrate on (100)", .number = &o.samples },
		{ "seed", "N", "choose them at random by this seed (the first ones)", .seed = &o.seed },
		{ "batch", "N", "samples per run of the model, fewer if they need much memory (8)",
		  .number = &o.batch },
		{ "approach", "static|dynamic|auto|weight_only",
		  "auto: static where possible; weight_only: weights in few bits, floats elsewhere (static)",
		  .text = &o.approach },
		{ "format", "qdq|qoperator", "(qdq); if given, weight-only ops become pairs too",
		  .text = &o.format },
		{ "algorithm", "ALGORITHM", algorithms, .text = &o.algorithm },
		{ "activation-type", "uint8|int8|uint16|int16", "(uint8)", .text = &o.activation_type },
		{ "activation-scheme", "asym|sym", "(asym)", .text = &o.activation_scheme },
		{ "weight-type", "int8|uint8|int16|uint16", "(int8)", .text = &o.weight_type },
		{ "weight-scheme", "sym|asym", "(sym)", .text = &o.weight_scheme },
		{ "granularity", "per_channel|per_tensor", "of weights (per_channel)",
		  .text = &o.granularity },
		{ "reduce-range", "on|off|auto",
		  "7-bit weights; auto: on a CPU whose products saturate (auto)", .text = &o.reduce_range },
		{ "bits", "2|4|8", "weight_only: of a weight (4)", .text = &o.bits },
		{ "group-size", "16|32|64|128|256", "weight_only: weights that share a scale (32)",
		  .text = &o.group_size },
		{ "scheme", "asym|sym", "weight_only: with or without a zero point for each group (asym)",
		  .text = &o.scheme },
		{ "accuracy-level", "0|1|4",
		  "weight_only: the runtime computes in floats (0, 1) or in int8 (4); 8 bits need 4 (4)",
		  .text = &o.accuracy_level },
		{ "plan", "JSON", "apply this plan, as 'tune' writes it", .text = &o.plan },
		{ "recipe", "RECIPE[=VALUE]",
		  "apply a recipe ('fettle inspect --recipes' lists them), such as cle, smooth_quant=0.6, "
		  "weight_correction=off, finetune=gram:block; may be given several times",
		  .list = &recipes },
		{ "cache", "SIZE", "memory that the recipe finetune keeps samples in (1G)",
		  .text = &o.cache },
		{ "keep-fp32", "OPS", "leave these ops alone", .text = &o.keep_fp32 },
		{ "quantize", "OPS", "quantize these ops too, which are not by default",
		  .text = &o.quantize },
		{ "cpu", "CPU", "plan for another kind of CPU ('fettle inspect --cpus' lists them; this one)",
		  .text = &o.cpu },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "json", NULL, "print the result as JSON", .flag = &json },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	const char *rest[64];
	struct fettle_quantized q = FETTLE_QUANTIZED_INIT;
	struct progress p;
	enum fettle_status st;
	struct fettle *f;
	int n, code;

	list_algorithms(algorithms, sizeof(algorithms));
	if (argc > 64)
		return usage_error(&cmd_quantize, "too many arguments");
	n = args_read(&cmd_quantize, options, sizeof(options) / sizeof(options[0]), details, argc, argv,
		      rest);
	if (n < 0)
		return args_exit(n);
	if (n != 1)
		return usage_error(&cmd_quantize, n ? "one model at a time" : "which model?");
	if (!o.output)
		return usage_error(&cmd_quantize, "where to? give -o OUT.onnx");
	o.model = rest[0];
	o.recipes = recipes.v;
	o.n_recipes = recipes.n;
	f = fettle_new();
	progress_begin(&p, f, quiet);
	st = fettle_quantize(f, &o, &q);
	progress_end(&p);
	code = st ? library_error(f, st) : report(f, &o, &q, json);
	fettle_free(f);
	return code;
}
