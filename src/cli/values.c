/* Several metrics: their names are one text, "top1,f1" or "0.7*top1,0.3*f1"; their values a list in the same order. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

const char *value_name(const char *metric, size_t i, char *buf, size_t n)
{
	size_t len, weight;

	for (; i && strchr(metric, ','); i--)
		metric = strchr(metric, ',') + 1;
	len = strcspn(metric, ",");
	weight = strcspn(metric, "*,");
	if (weight < len) {
		metric += weight + 1;
		len -= weight + 1;
	}
	snprintf(buf, n, "%.*s", (int)len, metric);
	return buf;
}

void add_values(json_t *j, const char *metric, const struct fettle_values *values)
{
	json_t *all = json_object();
	char name[64];
	size_t i;

	for (i = 0; i < values->n; i++)
		json_object_set_new(all, value_name(metric, i, name, sizeof(name)),
				    isfinite(values->v[i]) ? json_real(values->v[i]) : json_null());
	if (values->n)
		json_object_set(j, "metrics", all);
	json_decref(all);
}

const char *values_text(const char *metric, const struct fettle_values *values, double value, char *buf,
			size_t n)
{
	char name[64], score[32];
	size_t i, used = 0;

	snprintf(buf, n, "%s", human_score(value, score, sizeof(score)));
	for (i = 0; i < values->n && used < n; i++)
		used += (size_t)snprintf(buf + used, n - used, "%s%s %s", i ? ", " : "",
					 value_name(metric, i, name, sizeof(name)),
					 human_score(values->v[i], score, sizeof(score)));
	return buf;
}
