#include "report/json.h"

static json_t *form_json(const struct fettle_op_form *f)
{
	if (!f->type)
		return json_null();
	return json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s?, s:I}", "type", f->type, "precision", f->precision,
			 "scale", json_number(f->scale), "zero_point",
			 f->input ? json_integer((json_int_t)f->zero_point) : json_null(), "input", f->input,
			 "weight", f->weight, "bytes", (json_int_t)f->bytes);
}

json_t *json_of_diff(const struct context *cx, const struct fettle_diff *d)
{
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; i < d->n; i++) {
		const struct fettle_op_diff *o = d->ops[i];

		json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:o, s:o, s:o}", "name", o->name,
						      "rescaled", o->rescaled, "differs", o->differs,
						      "sqnr_db", json_number(o->sqnr_db), "a",
						      form_json(o->a), "b", form_json(o->b)));
	}
	j = json_pack("{s:I, s:I, s:I, s:I, s:o, s:s?, s:o}", "differ", (json_int_t)d->n_differ,
		      "size_a_bytes", (json_int_t)d->size_a, "size_b_bytes", (json_int_t)d->size_b, "samples",
		      (json_int_t)d->samples, "output_sqnr_db", json_number(d->output_sqnr_db), "parts_at",
		      d->parts_at, "ops", list);
	json_add_remarks(j, cx);
	return j;
}
