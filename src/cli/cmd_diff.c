#include "cli/cli.h"

#include <math.h>
#include <string.h>

static int run(int argc, char **argv);

const struct command cmd_diff = {
	.name = "diff",
	.args = "A.onnx B.onnx [--data DATA] [OPTION...]",
	.summary = "two models op by op: what differs in precision, scale and size, and where values part",
	.run = run,
};

static const char details[] =
	"Ops are matched by their names, so the models should stem from one. 'scale' "
	"is that of what the op reads.\n"
	"With --data both run on the first samples, and 'error' is what B makes "
	"against what A makes, in dB (higher\n"
	"is better; * after its channels were scaled to fit, for recipes such as cle scale them); "
	"intermediate values are read for that, which may keep the runtime "
	"from fusing some ops.\n";

/* "fp32 -> int8", or the one word that both have */
static void change_cell(struct table *t, const char *a, const char *b)
{
	a = a ? a : "-";
	b = b ? b : "-";
	if (strcmp(a, b) == 0)
		table_cell(t, "%s", a);
	else
		table_cell(t, "%s -> %s", a, b);
}

static const char *scale_text(const struct fettle_op_form *f, char *buf, size_t n)
{
	if (isnan(f->scale))
		return "-";
	snprintf(buf, n, "%.3g", f->scale);
	return buf;
}

static void show(const struct fettle_diff *d, bool all)
{
	static const char *const head[] = { "op", "type", "precision", "scale", "weights", "bytes", "error" };
	char a[64], b[64];
	struct table t;
	size_t i;

	table_begin(&t, head, d->samples ? 7 : 6, 0x60);
	for (i = 0; i < d->n; i++) {
		const struct fettle_op_diff *o = d->ops[i];

		if (!o->differs && !all && !(d->parts_at && strcmp(o->name, d->parts_at) == 0))
			continue;
		table_cell(&t, "%s", o->name);
		change_cell(&t, o->a->type, o->b->type);
		change_cell(&t, o->a->precision, o->b->precision);
		change_cell(&t, scale_text(o->a, a, sizeof(a)), scale_text(o->b, b, sizeof(b)));
		change_cell(&t, o->a->weight, o->b->weight);
		snprintf(a, sizeof(a), "%zu", o->a->bytes);
		snprintf(b, sizeof(b), "%zu", o->b->bytes);
		change_cell(&t, a, b);
		if (d->samples)
			table_cell(&t, isfinite(o->sqnr_db) ? "%.1f dB%s" : "-", o->sqnr_db,
				   o->rescaled ? " *" : "");
	}
	table_print(&t);
	print_wrapped(stdout, "\n%zu of %zu ops differ; %s -> %s", d->n_differ, d->n,
		      human_bytes((double)d->size_a, a, sizeof(a)),
		      human_bytes((double)d->size_b, b, sizeof(b)));
	if (d->samples && isfinite(d->output_sqnr_db))
		print_wrapped(stdout, "error of the outputs on %zu samples: %.1f dB%s", d->samples,
			      d->output_sqnr_db, d->output_sqnr_db >= 200 ? " (equal)" : "");
	if (d->parts_at)
		print_wrapped(stdout, "their values part at %s", d->parts_at);
}

static int run(int argc, char **argv)
{
	struct fettle_diff_options o = FETTLE_DIFF_OPTIONS_INIT;
	bool json = false, quiet = false, all = false;
	const struct cli_option options[] = {
		{ "data", "DATA", "samples to compare the values of both on", .text = &o.data },
		{ "samples", "N", "only the first N samples (32)", .number = &o.samples },
		{ "all", NULL, "list the ops that do not differ, too", .flag = &all },
		{ "threads", "N", "threads for the runtime (all cores)", .integer = &o.threads },
		{ "json", NULL, "print the result as JSON", .flag = &json },
		{ "quiet", NULL, "no progress", .flag = &quiet },
	};
	struct fettle_diff *d = NULL;
	const char *rest[32];
	struct progress p;
	enum fettle_status st;
	struct fettle *f;
	int n, code = 0;

	if (argc > 32)
		return usage_error(&cmd_diff, "too many arguments");
	n = args_read(&cmd_diff, options, sizeof(options) / sizeof(options[0]), details, argc, argv, rest);
	if (n < 0)
		return args_exit(n);
	if (n != 2)
		return usage_error(&cmd_diff, "two models are compared: fettle diff A.onnx B.onnx");
	o.a = rest[0];
	o.b = rest[1];
	f = fettle_new();
	progress_begin(&p, f, quiet);
	st = fettle_diff(f, &o, &d);
	progress_end(&p);
	if (st)
		code = library_error(f, st);
	else if (json)
		code = print_json(fettle_diff_json(f, d));
	else
		show(d, all);
	fettle_diff_free(d);
	fettle_free(f);
	return code;
}
