/* Several metrics: their names are one text, "top1,f1" or "0.7*top1,0.3*f1"; their values a list in the same order. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

const char *values_text(const char *metric, const struct fettle_values *values, double value, char *buf,
			size_t n)
{
	char name[64], score[32];
	size_t i, used = 0;

	snprintf(buf, n, "%s", human_score(value, score, sizeof(score)));
	for (i = 0; i < values->n && used < n; i++)
		used += (size_t)snprintf(buf + used, n - used, "%s%s %s", i ? ", " : "",
					 fettle_value_name(metric, i, name, sizeof(name)),
					 human_score(values->v[i], score, sizeof(score)));
	return buf;
}
