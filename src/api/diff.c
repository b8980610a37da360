#include <stdlib.h>

#include "api/internal.h"
#include "config/commands.h"

/* the result, with what it points to */
struct compared {
	struct fettle_diff pub;
	struct diff own;
	struct arena arena;
};

void fettle_diff_free(struct fettle_diff *pub)
{
	struct compared *c = (struct compared *)pub;

	if (!c)
		return;
	diff_release(&c->own);
	arena_release(&c->arena);
	free(c);
}

static const struct fettle_op_form *form(struct arena *a, const struct op_form *o)
{
	struct fettle_op_form *f = arena_alloc(a, sizeof(*f));

	*f = (struct fettle_op_form){ .size = sizeof(*f),
				      .type = o->type,
				      .precision = o->precision,
				      .scale = o->scale,
				      .zero_point = o->zero,
				      .input = o->input,
				      .weight = o->weight,
				      .bytes = o->bytes };
	return f;
}

static void publish(struct compared *c)
{
	const struct diff *d = &c->own;
	struct fettle_op_diff *ops = arena_alloc(&c->arena, (d->ops.n + 1) * sizeof(*ops));
	size_t i;

	c->pub = (struct fettle_diff){ .size = sizeof(c->pub),
				       .n = d->ops.n,
				       .size_a = d->bytes_a,
				       .size_b = d->bytes_b,
				       .samples = d->samples,
				       .output_sqnr_db = d->output_sqnr,
				       .parts_at = d->parts == SIZE_MAX ? NULL : d->ops.v[d->parts].name };
	for (i = 0; i < d->ops.n; i++) {
		const struct op_pair *p = &d->ops.v[i];

		ops[i] = (struct fettle_op_diff){ .name = p->name,
						  .a = form(&c->arena, &p->a),
						  .b = form(&c->arena, &p->b),
						  .differs = p->differs,
						  .sqnr_db = p->sqnr,
						  .rescaled = p->rescaled };
		c->pub.n_differ += p->differs;
	}
	c->pub.ops = sized_list(&c->arena, ops, d->ops.n, sizeof(*ops));
}

enum fettle_status fettle_diff(struct fettle *f, const struct fettle_diff_options *in,
			       struct fettle_diff **out)
{
	struct compared *c = xcalloc(1, sizeof(*c));
	const struct fettle_diff_options *given;
	struct options o;
	enum fettle_status st;

	api_clear(f);
	st = options_read(&o, &options_diff, in, &f->cx.err);
	given = o.given;
	if (!st && (!given->a || !given->b))
		st = fail(&f->cx.err, FETTLE_INVALID, "cannot compare models: need two");
	if (!st)
		st = request_diff(&f->cx, &o.o, given->a, given->b, &c->own);
	if (!st) {
		publish(c);
		*out = &c->pub;
	} else {
		fettle_diff_free(&c->pub);
	}
	options_release(&o);
	return st;
}
