#include "tune/values.h"

#include <math.h>
#include <stdlib.h>

#include "base/str.h"

static char *key_of(size_t trial)
{
	return xstrfmt("metrics of trial %zu", trial);
}

enum fettle_status values_write(struct history *h, size_t trial, const double *v, size_t n, struct err *err)
{
	struct str text = STR_INIT;
	char *key = key_of(trial);
	enum fettle_status st = FETTLE_OK;
	size_t i;

	for (i = 0; i < n; i++)
		str_addf(&text, "%s%.17g", i ? " " : "", v[i]);
	if (n && !isnan(v[0])) /* of an evaluation that ended early there are none */
		st = history_set_meta(h, key, text.s, err);
	str_release(&text);
	free(key);
	return st;
}

size_t values_read(struct history *h, size_t trial, double v[METRICS_MAX])
{
	char *key = key_of(trial), *text = NULL, *at, *end;
	size_t n = 0;

	if (!history_meta(h, key, &text, NULL) && text)
		for (at = text; n < METRICS_MAX; at = end) {
			v[n] = strtod(at, &end);
			if (end == at)
				break;
			n++;
		}
	free(text);
	free(key);
	return n;
}
