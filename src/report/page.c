/* The page: src/report/page, joined when fettle is built, with the run's data in the one place for it. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "report/page.h"

/* In the text of a script element only "<" may end it; in JSON that stands in strings alone. */
static void add_escaped(struct str *out, const char *json)
{
	const char *end;

	for (; (end = strchr(json, '<')); json = end + 1) {
		str_add(out, json, (size_t)(end - json));
		str_addf(out, "\\u003c");
	}
	str_addf(out, "%s", json);
}

char *report_html(const json_t *data, size_t *n)
{
	const unsigned char *at = memmem(report_page, report_page_size, PAGE_DATA, strlen(PAGE_DATA)),
			    *after = at + strlen(PAGE_DATA);
	char *json = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(7));
	struct str out = STR_INIT;

	str_add(&out, report_page, (size_t)(at - report_page));
	add_escaped(&out, json);
	str_add(&out, after, (size_t)(report_page + report_page_size - after));
	free(json);
	*n = out.n;
	return out.s;
}
