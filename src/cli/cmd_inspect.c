#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int run(int argc, char **argv);

const struct command cmd_inspect = {
	.name = "inspect",
	.args = "MODEL [OPTION...]",
	.summary = "a model's ops: what can be quantized, what cannot and why",
	.run = run,
};

static const char *reason(const struct fettle_op *o)
{
	return o->why_fp32 ? o->why_fp32 : "";
}

static void list_ops(const struct fettle_inspection *x)
{
	static const char *const head[] = { "op", "type", "default", "multiply-adds", "block", "why not" };
	struct table t;
	char buf[32];
	size_t i;

	table_begin(&t, head, 6, 0x18);
	for (i = 0; i < x->n_ops; i++) {
		const struct fettle_op *o = x->ops[i];

		table_cell(&t, "%s", o->name);
		table_cell(&t, "%s", o->type);
		table_cell(&t, "%s", o->by_default);
		table_cell(&t, "%s", o->macs > 0 ? human_count(o->macs, buf, sizeof(buf)) : "");
		if (o->block >= 0)
			table_cell(&t, "%d", o->block);
		else
			table_cell(&t, "%s", "");
		table_cell(&t, "%s", reason(o));
	}
	table_print(&t);
}

static void list_space(const struct fettle_inspection *x)
{
	static const char *const head[] = { "op", "type", "options", "what they are" };
	char recipes[1024];
	size_t i, used = 0;
	struct table t;

	table_begin(&t, head, 4, 0x4);
	for (i = 0; i < x->n_ops; i++) {
		if (!x->ops[i]->n_options)
			continue;
		table_cell(&t, "%s", x->ops[i]->name);
		table_cell(&t, "%s", x->ops[i]->type);
		table_cell(&t, "%zu", x->ops[i]->n_options);
		table_cell(&t, "%s", x->ops[i]->options);
	}
	table_print(&t);
	for (i = 0; i < x->n_recipes; i++)
		used += (size_t)snprintf(recipes + used, used < sizeof(recipes) ? sizeof(recipes) - used : 0,
					 "%s %s", i ? "," : "", x->recipes[i]);
	putchar('\n');
	print_wrapped(stdout, "recipes that are tried:%s", x->n_recipes ? recipes : " none");
}

static bool is_weight_only(const struct fettle_op *o)
{
	return strncmp(o->by_default, "weight-only", 11) == 0;
}

/* one line per op type (and reason): what becomes of how many */
static void list_types(const struct fettle_inspection *x)
{
	static const char *const plain[] = { "type", "ops",           "int8",   "dynamic",
					     "fp32", "multiply-adds", "why not" };
	static const char *const with_weights[] = { "type",    "ops",  "weight-only",   "int8",
						    "dynamic", "fp32", "multiply-adds", "why not" };
	bool any = false;
	struct table t;
	char buf[32];
	size_t i, k;

	for (i = 0; i < x->n_ops; i++)
		any |= is_weight_only(x->ops[i]);
	if (any)
		table_begin(&t, with_weights, 8, 0x7e);
	else
		table_begin(&t, plain, 7, 0x3e);
	for (i = 0; i < x->n_ops; i++) {
		const struct fettle_op *o = x->ops[i];
		size_t all = 0, int8 = 0, dynamic = 0, weight = 0;
		double macs = 0;

#define SAME(a, b) (strcmp((a)->type, (b)->type) == 0 && strcmp(reason(a), reason(b)) == 0)
		for (k = 0; k < i && !SAME(o, x->ops[k]); k++)
			;
		if (k < i)
			continue; /* listed already */
		for (k = i; k < x->n_ops; k++) {
			if (!SAME(o, x->ops[k]))
				continue;
			all++;
			int8 += strcmp(x->ops[k]->by_default, "int8") == 0;
			dynamic += strcmp(x->ops[k]->by_default, "dynamic") == 0;
			weight += is_weight_only(x->ops[k]);
			macs += x->ops[k]->macs;
		}
#undef SAME
		table_cell(&t, "%s", o->type);
		table_cell(&t, "%zu", all);
		if (any)
			table_cell(&t, "%zu", weight);
		table_cell(&t, "%zu", int8);
		table_cell(&t, "%zu", dynamic);
		table_cell(&t, "%zu", all - int8 - dynamic - weight);
		table_cell(&t, "%s", macs > 0 ? human_count(macs, buf, sizeof(buf)) : "");
		table_cell(&t, "%s", int8 || dynamic || weight ? "" : reason(o));
	}
	table_print(&t);
}

/* in more than the number of samples */
static bool is_open(const struct fettle_inspection *x)
{
	size_t i;

	for (i = 0; i < x->n_inputs; i++)
		if (strstr(x->inputs[i]->shape, ",-1"))
			return true;
	return false;
}

static void show(const struct fettle_inspection *x, const char *model, bool all, bool space)
{
	char bytes[32], macs[32], work[96], raised[32] = "";
	size_t i;

	if (x->opset != x->opset_of_file)
		snprintf(raised, sizeof(raised), " (raised from %d)", x->opset_of_file);
	snprintf(work, sizeof(work), ", %s multiply-adds per sample%s",
		 human_count(x->total_macs, macs, sizeof(macs)),
		 is_open(x) ? " (with 1 for each -1 of an input)" : "");
	print_wrapped(stdout, "%s: opset %d%s, %zu ops after folding and fusing, %s of weights%s", model,
		      x->opset, raised, x->n_ops, human_bytes((double)x->weight_bytes, bytes, sizeof(bytes)),
		      x->total_macs > 0 ? work : "");
	for (i = 0; i < x->n_inputs; i++)
		printf("input   %s: %s %s\n", x->inputs[i]->name, x->inputs[i]->dtype, x->inputs[i]->shape);
	for (i = 0; i < x->n_outputs; i++)
		printf("output  %s: %s %s\n", x->outputs[i]->name, x->outputs[i]->dtype,
		       x->outputs[i]->shape);
	if (x->n_blocks)
		printf("blocks  %zu transformer blocks\n", x->n_blocks);
	printf("cuts    %zu points where all data passes through one value\n\n", x->n_cuts);
	if (space)
		list_space(x);
	else if (all)
		list_ops(x);
	else
		list_types(x);
	putchar('\n');
	if (x->total_macs > 0)
		snprintf(work, sizeof(work), "The default plan puts %.0f %% of the multiply-adds into int8.",
			 100 * x->int8_share);
	else
		snprintf(work, sizeof(work), "%s",
			 is_open(x) ? "How many multiply-adds there are, only data can tell."
				    : "It has no multiply-adds.");
	print_wrapped(stdout, "%s%s", work, all ? "" : " --ops lists every op.");
	printf("The tuning space has %s%.*f plans; --space shows each op's options.\n",
	       x->log10_plans > 6 ? "10^" : "", x->log10_plans > 6 ? 1 : 0,
	       x->log10_plans > 6 ? x->log10_plans : pow(10, x->log10_plans));
}

static int list_recipes(void)
{
	static const char *const head[] = { "recipe", "default", "values", "search",
					    "what is so when it is on" };
	struct fettle_recipe r = FETTLE_RECIPE_INIT;
	struct table t;
	size_t i;

	table_begin(&t, head, 5, 0);
	for (i = 0; fettle_recipe(i, &r); i++) {
		table_cell(&t, "%s", r.name);
		table_cell(&t, "%s", r.by_default);
		table_cell(&t, "%s", r.values);
		table_cell(&t, "%s", r.tuned ? "tries it" : "");
		table_cell(&t, "%s", r.summary);
	}
	table_print(&t);
	putchar('\n');
	print_wrapped(stdout, "'fettle quantize --recipe RECIPE[=VALUE]' applies one. A search tries those "
			      "that are marked, "
			      "where the model has something for them to work on and the configuration has "
			      "not fixed them.");
	return 0;
}

static int list_cpus(void)
{
	static const char *const head[] = { "cpu", "", "int8 weights", "which" };
	struct fettle_cpu_kind k = FETTLE_CPU_KIND_INIT;
	struct table t;
	size_t i;

	table_begin(&t, head, 4, 0);
	for (i = 0; fettle_cpu_kind(i, &k); i++) {
		table_cell(&t, "%s", k.name);
		table_cell(&t, "%s", strcmp(k.name, fettle_cpu(NULL)) == 0 ? "this one" : "");
		table_cell(&t, "%s", k.saturates ? "7 bits" : "8 bits");
		table_cell(&t, "%s", k.summary);
	}
	table_print(&t);
	return 0;
}

static int run(int argc, char **argv)
{
	struct fettle_inspect_options o = FETTLE_INSPECT_OPTIONS_INIT;
	bool json = false, ops = false, space = false, capability = false, recipes = false, cpus = false,
	     keys = false;
	const struct cli_option options[] = {
		{ "ops", NULL, "every op by name, not only by type", .flag = &ops },
		{ "space", NULL, "what a search may choose from, op by op", .flag = &space },
		{ "capability", NULL,
		  "print the table of what can be quantized to what (no model needed; 'tune --capability' "
		  "reads one)",
		  .flag = &capability },
		{ "recipes", NULL, "list the recipes there are (no model needed)", .flag = &recipes },
		{ "keys", NULL, "list every key of a configuration, in Markdown (no model needed)",
		  .flag = &keys },
		{ "config", "YAML", "configuration whose constraints apply", .text = &o.config,
		  .letter = 'c' },
		{ "approach", "static|dynamic|auto", "show the default plan of this approach",
		  .text = &o.approach },
		{ "keep-fp32", "OPS", "show the plan with these ops left alone", .text = &o.keep_fp32 },
		{ "quantize", "OPS", "show the plan with these ops quantized too", .text = &o.quantize },
		{ "cpu", "CPU", "plan for another kind of CPU ('fettle inspect --cpus' lists them; this one)",
		  .text = &o.cpu },
		{ "cpus", NULL, "list the kinds of CPU there are (no model needed)", .flag = &cpus },
		{ "json", NULL, "print the result as JSON", .flag = &json },
	};
	const char *rest[64];
	struct fettle_inspection *x;
	struct progress p;
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 64)
		return usage_error(&cmd_inspect, "too many arguments");
	n = args_read(&cmd_inspect, options, sizeof(options) / sizeof(options[0]), NULL, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (capability || keys) {
		char *text = capability ? fettle_capability() : fettle_config_keys();

		fputs(text, stdout);
		free(text);
		return 0;
	}
	if (recipes)
		return json ? print_list("recipes") : list_recipes();
	if (cpus)
		return json ? print_list("cpus") : list_cpus();
	if (n != 1)
		return usage_error(&cmd_inspect, n ? "one model at a time" : "which model?");
	o.model = rest[0];
	f = fettle_new();
	progress_begin(&p, f, false);
	st = fettle_inspect(f, &o, &x);
	progress_end(&p);
	if (st) {
		code = library_error(f, st);
	} else {
		if (json)
			code = print_json(fettle_inspection_json(f, x));
		else
			show(x, o.model, ops, space);
		fettle_inspection_free(x);
	}
	fettle_free(f);
	return code;
}
