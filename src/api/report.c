#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/file.h"
#include "config/analyse.h"
#include "report/report.h"

static const char *const formats[] = { "html", "markdown", "csv", "json" };

static enum fettle_status check_options(const struct fettle_report_options *o, size_t *format,
					struct err *err)
{
	const char *name = o->format ? o->format : formats[0];

	if (!o->n_workspaces)
		return fail(err, FETTLE_INVALID, "cannot report: need a workspace");
	for (*format = 0; *format < ARRAY_LEN(formats); ++*format)
		if (strcmp(name, formats[*format]) == 0)
			return FETTLE_OK;
	return fail(err, FETTLE_INVALID, "cannot report as '%s': need html, markdown, csv or json", name);
}

static char *as_text(const json_t *data, size_t format, size_t *n)
{
	char *text;

	if (format == 0)
		return report_html(data, n);
	text = format == 1   ? report_markdown(data)
	       : format == 2 ? report_csv(data)
			     : json_dumps(data, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	*n = strlen(text);
	return text;
}

enum fettle_status fettle_report(struct fettle *f, const struct fettle_report_options *in, char **text)
{
	const struct fettle_report_options *given;
	json_t *runs = json_array(), *run, *data = NULL;
	struct options o;
	char *made = NULL;
	size_t format = 0, n = 0, i;
	enum fettle_status st;

	api_clear(f);
	st = options_read(&o, &options_report, in, &f->cx.err);
	given = o.given;
	if (!st)
		st = check_options(given, &format, &f->cx.err);
	for (i = 0; !st && i < given->n_workspaces; i++) {
		const struct analysis_wanted wanted = { given->workspaces[i], &o.o, !given->no_sensitivity };

		st = report_run(given->workspaces[i], &run, &f->cx.err);
		if (st)
			break;
		json_array_append_new(runs, run);
		/* tables of trials show nothing of it */
		if (!given->no_analysis && (format == 0 || format == 3))
			st = request_analysis(&f->cx, &wanted, run);
	}
	if (!st) {
		data = report_data(json_incref(runs));
		if (given->refresh)
			json_object_set_new(data, "refresh", json_integer((json_int_t)given->refresh));
		made = as_text(data, format, &n);
	}
	if (!st && given->output)
		st = file_write(given->output, made, n, &f->cx.err);
	if (!st && text) {
		*text = made;
		made = NULL;
	}
	free(made);
	json_decref(data);
	json_decref(runs);
	options_release(&o);
	return st;
}
