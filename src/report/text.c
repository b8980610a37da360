/* The trials of runs as tables for other programs: CSV and Markdown. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static double number_of(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* "" of what is not known */
static const char *number_text(double x, int digits, char *buf, size_t n)
{
	buf[0] = '\0';
	if (isfinite(x))
		snprintf(buf, n, "%.*g", digits, x);
	return buf;
}

static size_t run_of(const json_t *data, size_t i, const json_t **run)
{
	*run = json_array_get(json_object_get(data, "runs"), i);
	return json_array_size(json_object_get(*run, "trials"));
}

/* ---- CSV ---- */

/* RFC 4180: quoted where it must be */
static void add_field(struct str *out, const char *text)
{
	const char *p;

	if (!text[strcspn(text, ",\"\r\n")]) {
		str_addf(out, "%s", text);
		return;
	}
	str_addf(out, "\"");
	for (p = text; *p; p++)
		str_addf(out, *p == '"' ? "\"\"" : "%c", *p);
	str_addf(out, "\"");
}

static void add_csv_row(struct str *out, const json_t *run, const json_t *t)
{
	static const char *const numbers[] = { "accuracy",   "accuracy_low", "accuracy_high", "loss",
					       "latency_ms", "size_bytes",   "samples",       "seconds" };
	static const char *const flags[] = { "met", "failed", "pareto" };
	char buf[64];
	size_t i;

	add_field(out, text_of(run, "workspace"));
	str_addf(out, ",%lld,", (long long)json_integer_value(json_object_get(t, "trial")));
	add_field(out, text_of(t, "stage"));
	for (i = 0; i < ARRAY_LEN(numbers); i++)
		str_addf(out, ",%s", number_text(number_of(t, numbers[i]), 10, buf, sizeof(buf)));
	for (i = 0; i < ARRAY_LEN(flags); i++)
		str_addf(out, ",%s", json_is_true(json_object_get(t, flags[i])) ? "true" : "false");
	str_addf(out, ",%s,", text_of(t, "finished"));
	add_field(out, text_of(t, "changed"));
	str_addf(out, ",");
	add_field(out, text_of(t, "why"));
	str_addf(out, "\r\n");
}

char *report_csv(const json_t *data)
{
	struct str out = STR_INIT;
	const json_t *run;
	size_t i, k, n;

	str_addf(&out, "workspace,trial,stage,accuracy,accuracy_low,accuracy_high,loss,latency_ms,size_bytes,"
		       "samples,seconds,met,failed,pareto,finished,changed,why\r\n");
	for (i = 0; i < json_array_size(json_object_get(data, "runs")); i++)
		for (k = 0, n = run_of(data, i, &run); k < n; k++)
			add_csv_row(&out, run, json_array_get(json_object_get(run, "trials"), k));
	return out.s;
}

/* ---- Markdown ---- */

/* a cell of a table: one line, no bar, nothing that starts markup */
static void add_cell(struct str *out, const char *text)
{
	const char *p;

	str_addf(out, " ");
	for (p = text; *p; p++)
		if (strchr("|*_`<[\\", *p))
			str_addf(out, "\\%c", *p);
		else
			str_addf(out, "%c", *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addf(out, " |");
}

static void add_number(struct str *out, double x, int digits)
{
	char buf[64];

	number_text(x, digits, buf, sizeof(buf));
	add_cell(out, *buf ? buf : "-");
}

static void add_accuracy(struct str *out, const json_t *t)
{
	double exact = number_of(t, "accuracy"), low = number_of(t, "accuracy_low"),
	       high = number_of(t, "accuracy_high");
	char buf[64];

	if (isfinite(exact) || !isfinite(low) || !isfinite(high)) {
		add_number(out, exact, 5);
		return;
	}
	snprintf(buf, sizeof(buf), "%.4g to %.4g", low, high);
	add_cell(out, buf);
}

static void add_model_row(struct str *out, const char *name, const json_t *m)
{
	char buf[64];
	double low = number_of(m, "speedup_low"), high = number_of(m, "speedup_high");

	str_addf(out, "|");
	add_cell(out, name);
	add_number(out, number_of(m, "accuracy"), 5);
	add_number(out, number_of(m, "latency_ms"), 4);
	add_number(out, number_of(m, "size_bytes") / 1e6, 4);
	if (isfinite(low) && isfinite(high) && low < high)
		snprintf(buf, sizeof(buf), "%.2fx (%.2f to %.2f)", number_of(m, "speedup"), low, high);
	else if (isfinite(number_of(m, "speedup")))
		snprintf(buf, sizeof(buf), "%.2fx", number_of(m, "speedup"));
	else
		snprintf(buf, sizeof(buf), "-");
	add_cell(out, buf);
	add_number(out, 100 * number_of(m, "int8_share"), 3);
	str_addf(out, "\n");
}

static void add_verdict(struct str *out, const json_t *run)
{
	const json_t *result = json_object_get(run, "result");
	char buf[64];

	str_addf(out, "Model `%s`, strategy %s, CPU %s, started %s, %s%s.\n\n", text_of(run, "model"),
		 text_of(run, "strategy"), text_of(run, "cpu"), text_of(run, "started"),
		 *text_of(run, "stop") ? "ended: " : "not ended", text_of(run, "stop"));
	str_addf(out, "%s %s %s of fp32, ",
		 json_is_true(json_object_get(run, "met")) ? "**Target met**:" : "**Target not met**:",
		 text_of(run, "metric"), number_text(number_of(run, "baseline"), 5, buf, sizeof(buf)));
	str_addf(out, "%s to be reached.\n\n", number_text(number_of(run, "target"), 5, buf, sizeof(buf)));
	if (!json_is_object(result))
		return;
	str_addf(out, "| model | accuracy | latency, ms | size, MB | speed-up | int8, %% of multiply-adds |\n"
		      "|---|--:|--:|--:|--:|--:|\n");
	add_model_row(out, "fp32", json_object_get(result, "baseline"));
	add_model_row(out, "best", json_object_get(result, "best"));
	str_addf(out, "\n");
}

static void add_trials(struct str *out, const json_t *run)
{
	const json_t *t;
	size_t i;

	str_addf(out, "| trial | stage | accuracy | loss | latency, ms | size, MB | seconds | | changed |\n"
		      "|--:|---|--:|--:|--:|--:|--:|---|---|\n");
	json_array_foreach(json_object_get(run, "trials"), i, t)
	{
		const json_t *number = json_object_get(t, "trial");
		const bool best = json_equal(number, json_object_get(run, "best")),
			   met = json_is_true(json_object_get(t, "met"));

		str_addf(out, "|");
		add_number(out, json_number_value(number), 10);
		add_cell(out, text_of(t, "stage"));
		add_accuracy(out, t);
		add_number(out, number_of(t, "loss"), 3);
		add_number(out, number_of(t, "latency_ms"), 4);
		add_number(out, number_of(t, "size_bytes") / 1e6, 4);
		add_number(out, number_of(t, "seconds"), 3);
		add_cell(out, best && met ? "met, best" : best ? "best" : met ? "met" : text_of(t, "why"));
		add_cell(out, text_of(t, "changed"));
		str_addf(out, "\n");
	}
	str_addf(out, "\n");
}

char *report_markdown(const json_t *data)
{
	struct str out = STR_INIT;
	const json_t *run;
	size_t i;

	json_array_foreach(json_object_get(data, "runs"), i, run)
	{
		str_addf(&out, "# fettle: %s\n\n", text_of(run, "workspace"));
		add_verdict(&out, run);
		add_trials(&out, run);
		str_addf(&out, "```\n%s\n```\nSeed %lld, fettle %s, ONNX Runtime %s.\n\n",
			 text_of(run, "command"), (long long)json_integer_value(json_object_get(run, "seed")),
			 text_of(run, "fettle_version"), text_of(run, "runtime_version"));
	}
	return out.s ? out.s : xstrdup("");
}
