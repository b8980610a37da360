#include "report/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *json_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *json_names(const char *list)
{
	json_t *all = json_array();
	size_t n;

	for (; *list; list += n + strspn(list + n, ", ")) {
		n = strcspn(list, ",");
		json_array_append_new(all, json_stringn(list, n));
	}
	return all;
}

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

void json_add_values(json_t *j, const char *metric, const struct fettle_values *values)
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

void json_add_remarks(json_t *j, const struct context *cx)
{
	json_t *warnings = json_array(), *fed = json_array();
	const struct fettle_scoring *s = &cx->scoring;
	size_t i;

	for (i = 0; i < cx->fed.n; i++) {
		const struct fettle_fed *d = &cx->fed.v[i];

		json_array_append_new(
			fed, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:I, s:s*, s:s*, s:s*}",
				       "purpose", d->purpose, "data", d->data, "array", d->array, "input",
				       d->input, "stored", d->stored, "dtype", d->dtype, "min", d->min, "max",
				       d->max, "samples", (json_int_t)d->samples, "made", d->made, "shape",
				       d->shape, "transforms", d->transforms));
	}
	for (i = 0; i < cx->warnings.n; i++)
		json_array_append_new(warnings, json_string(cx->warnings.v[i]));
	json_object_set_new(j, "fed", fed);
	if (s->metric)
		json_object_set_new(j, "scoring",
				    json_pack("{s:s, s:s, s:s?, s:s?}", "metric", s->metric, "outputs",
					      s->outputs, "why_metric", s->why_metric, "why_outputs",
					      s->why_outputs));
	json_object_set_new(j, "warnings", warnings);
}

json_t *json_of_fp32(const struct context *cx)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < cx->fp32_ops.n; i++) {
		const struct fettle_fp32_op *o = &cx->fp32_ops.v[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:f}", "name", o->name, "type", o->type,
						"reason", o->reason, "why", o->why, "share", o->share));
	}
	return list;
}

char *report_text(json_t *j)
{
	char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(10));

	json_decref(j);
	return text;
}
