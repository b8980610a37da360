#include "cli/cli.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int run(int argc, char **argv);
static int run_footprint(int argc, char **argv);

const struct command cmd_bench = {
	.name = "bench",
	.args = "MODEL... [--data DATA] [OPTION...]",
	.summary = "latency, size and memory of models, timed in turns",
	.run = run,
};

/* what `bench` starts for each model, so that one model's memory is not another's */
const struct command cmd_footprint = {
	.name = "measure-footprint",
	.args = "MODEL BATCH THREADS PAST [DATA]",
	.summary = "peak memory of one run, in bytes",
	.run = run_footprint,
	.hidden = true,
};

static const char details[] =
	"Without DATA the inputs are made up: random numbers, zeros for integers.\n"
	"Models take turns, so that whatever disturbs the machine disturbs all alike. The\n"
	"speed-up is the median of the ratios of each turn, with an interval that holds it with\n"
	"99 % confidence. What other processes take counts in p90 only.\n"
	"--decode is for language models that take their past (past_key_values): it times what the\n"
	"generation of one token takes, after a past of N tokens.\n";

/* n rows, `each` for one batch */
static void as_table(const char *const *models, size_t n, size_t each, const struct fettle_timing *t)
{
	static const char *const head[] = { "model",     "batch", "latency", "p90",     "speed-up",
					    "99 % sure", "size",  "memory",  "tokens/s" };
	const bool decode = n && t[0].tokens_per_s > 0;
	struct table table;
	char buf[32];
	size_t i;

	table_begin(&table, head, decode ? 9 : 8, 0x1fe);
	for (i = 0; i < n; i++) {
		table_cell(&table, "%s", models[i]);
		table_cell(&table, "%zu", t[i].batch);
		table_cell(&table, "%.3f ms", t[i].latency_ms);
		table_cell(&table, "%.3f ms", t[i].p90_ms);
		table_cell(&table, "%.2fx", t[i].speedup);
		table_cell(&table, i % each && isfinite(t[i].speedup_high) ? "%.2f-%.2f" : "-",
			   t[i].speedup_low, t[i].speedup_high);
		table_cell(&table, "%s", human_bytes((double)t[i].size_bytes, buf, sizeof(buf)));
		table_cell(&table, "%s", human_bytes((double)t[i].footprint_bytes, buf, sizeof(buf)));
		if (decode)
			table_cell(&table, "%.2f", t[i].tokens_per_s);
	}
	table_print(&table);
}

/* two models side by side, by op type: what gains and what loses */
static int show_profile(struct fettle *f, const struct fettle_bench_options *all)
{
	static const char *const head[] = { "op", "nodes", "ms per run", "share" };
	struct fettle_bench_options o = *all;
	enum fettle_status st;
	size_t i, k;

	o.n_models = 1;
	for (i = 0; i < all->n_models; i++) {
		struct fettle_profile *p;
		struct table table;
		double total = 0;

		o.models = all->models + i;
		st = fettle_profile(f, &o, &p);
		if (st)
			return library_error(f, st);
		for (k = 0; k < p->n; k++)
			total += p->rows[k]->ms;
		printf("\n%s\n", o.models[0]);
		table_begin(&table, head, 4, 0xe);
		for (k = 0; k < p->n; k++) {
			table_cell(&table, "%s", p->rows[k]->op);
			table_cell(&table, "%zu", p->rows[k]->count);
			table_cell(&table, "%.3f", p->rows[k]->ms);
			table_cell(&table, "%.1f %%", total > 0 ? 100 * p->rows[k]->ms / total : 0);
		}
		table_print(&table);
		fettle_profile_free(p);
	}
	return 0;
}

enum { BATCHES_MAX = 16 };

/* "1,32"; 0: it is no such list */
static size_t read_batches(const char *text, size_t out[BATCHES_MAX])
{
	size_t n = 0;
	char *end;

	for (;; text = end + 1) {
		out[n] = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
		if (!out[n] || out[n++] > 1 << 20 || (*end && (*end != ',' || n == BATCHES_MAX)))
			return 0;
		if (!*end)
			return n;
	}
}

static int run(int argc, char **argv)
{
	struct fettle_bench_options o = FETTLE_BENCH_OPTIONS_INIT, all;
	size_t batches[BATCHES_MAX] = { 1 }, n_batches = 1, b;
	size_t past = SIZE_MAX;
	const char *batch = NULL, **models;
	bool json = false, quiet = false, profile = false;
	const struct cli_option options[] = {
		{ "data", "DATA", "take the inputs from the first samples of this", .text = &o.data },
		{ "batch", "N[,N...]", "samples per run; several are timed one after the other (1)",
		  .text = &batch },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "instances", "N", "sessions of a model that run at once, each with so many threads (1)",
		  .number = &o.instances },
		{ "seconds", "S", "time spent on each model (1)", .real = &o.seconds },
		{ "decode", NULL, "time one token after a past, in tokens per second", .flag = &o.decode },
		{ "past", "N", "with --decode: the length of the past (128)", .number = &past },
		{ "profile", NULL, "also where the time goes, by op type", .flag = &profile },
		{ "json", NULL, "print the result as JSON", .flag = &json },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	const char *rest[256];
	struct fettle_timing *t;
	struct progress p;
	enum fettle_status st = FETTLE_OK;
	struct fettle *f;
	int n, code = 0;
	size_t i;

	if (argc > 256)
		return usage_error(&cmd_bench, "too many arguments");
	n = args_read(&cmd_bench, options, sizeof(options) / sizeof(options[0]), details, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (!n)
		return usage_error(&cmd_bench, "which models?");
	if (batch && !(n_batches = read_batches(batch, batches)))
		return usage_error(&cmd_bench, "--batch %s: need a number of samples, or several as 1,32",
				   batch);
	if (past != SIZE_MAX && !o.decode)
		return usage_error(&cmd_bench, "--past %zu: need --decode", past);
	if (o.decode && o.data)
		return usage_error(&cmd_bench, "--decode makes up its inputs: drop --data");
	if (o.decode && profile)
		return usage_error(&cmd_bench, "--profile does not show --decode: drop one of them");
	o.past = past == SIZE_MAX ? 128 : past;
	o.helper = "/proc/self/exe";
	o.models = rest;
	o.n_models = (size_t)n;
	all = o;
	all.n_models = n_batches * o.n_models;
	t = calloc(all.n_models, sizeof(*t));
	models = calloc(all.n_models, sizeof(*models));
	if (!t || !models)
		abort();
	all.models = models;
	for (i = 0; i < all.n_models; i++) {
		t[i].size = sizeof(*t);
		models[i] = rest[i % o.n_models];
	}
	f = fettle_new();
	progress_begin(&p, f, quiet);
	for (b = 0; b < n_batches && !st; b++) {
		o.batch = batches[b];
		st = fettle_bench(f, &o, t + b * o.n_models);
	}
	progress_end(&p);
	if (st)
		code = library_error(f, st);
	else if (json)
		code = print_json(fettle_timings_json(&all, t));
	else
		as_table(models, all.n_models, o.n_models, t);
	if (!code && profile && !json)
		code = show_profile(f, &o);
	free(models);
	free(t);
	fettle_free(f);
	return code;
}

static int run_footprint(int argc, char **argv)
{
	struct fettle_bench_options o = FETTLE_BENCH_OPTIONS_INIT;
	enum fettle_status st;
	struct fettle *f;
	size_t bytes;
	int code = 0;

	if (argc < 4)
		return usage_error(&cmd_footprint, "four arguments or five");
	o.models = (const char *const *)argv;
	o.n_models = 1;
	o.batch = strtoull(argv[1], NULL, 10);
	o.threads = atoi(argv[2]);
	o.decode = atol(argv[3]) >= 0; /* -1: on data */
	o.past = o.decode ? (size_t)atol(argv[3]) : 0;
	o.data = argc > 4 ? argv[4] : NULL;
	f = fettle_new();
	st = fettle_footprint(f, &o, &bytes);
	if (st)
		code = library_error(f, st);
	else
		printf("%zu\n", bytes);
	fettle_free(f);
	return code;
}
