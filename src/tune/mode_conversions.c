/* What it takes to convert values: lines through what profiles show, of a small model with nothing but conversions to begin with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "runtime/profile.h"
#include "tune/modes_impl.h"

/* The small model's values: as large as the largest of the real model's, up to this, and a sixteenth of that. */
#define MOST_ELEMENTS (1 << 18)
enum { CHANNELS = 32, LEAST_ELEMENTS = 1 << 10, SIZES = 2 };
/* Its runs: enough for a mean, but few beside an evaluation. */
enum { RUNS = 60 };
#define SECONDS 0.004

void line_add(struct line *l, double x, double y)
{
	l->n += 1;
	l->x += x;
	l->y += y;
	l->xx += x * x;
	l->xy += x * y;
}

double line_at(const struct line *l, double x)
{
	double spread = l->n * l->xx - l->x * l->x, slope, start;

	if (!(l->n > 0) || !(l->x > 0))
		return 0;
	slope = spread > 1e-9 * l->n * l->xx ? (l->n * l->xy - l->x * l->y) / spread : l->y / l->x;
	start = (l->y - slope * l->x) / l->n;
	if (slope < 0 || start < 0) { /* no such thing: through the origin, then */
		slope = l->xy / l->xx;
		start = 0;
	}
	return start + slope * x;
}

int conversion_of(const char *op)
{
	static const struct {
		const char *op;
		int is;
	} known[] = {
		{ "QuantizeLinear", TO_INT },
		{ "DequantizeLinear", TO_FLOAT },
		{ "DynamicQuantizeLinear", AT_RUN_TIME },
		{ "Transpose", TO_LAST }, /* those that are no op's: convolutions in integers want channels last, */
		{ "ReorderInput", TO_BLOCKS }, /* in floats they want them in blocks */
		{ "ReorderOutput", TO_BLOCKS }
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].op, op) == 0)
			return known[i].is;
	return CONVERSIONS;
}

/* ---- the small model ---- */

/* Constants that its nodes read, and the nodes. */
struct small {
	struct model *m;
	VEC(struct node *) nodes;
	VEC(const char *) outputs;
	const char *scale, *zero;
};

static const char *add_constant(struct small *s, enum dtype type, const int64_t *dims, size_t rank)
{
	const char *name = model_fresh(s->m, "conversions");
	struct tensor t = { .dtype = type, .rank = (int)rank };
	size_t i;

	for (i = 0; i < rank; i++)
		t.dims[i] = dims[i];
	t.data = arena_alloc(&s->m->arena, tensor_bytes(&t));
	memset(t.data, 1, tensor_bytes(&t)); /* of floats, tiny numbers, but normal ones */
	model_add_init(s->m, name, &t);
	return name;
}

static struct node *add_node(struct small *s, const char *op, const char *domain, const char *a,
			     const char *b, const char *c)
{
	struct node *n = model_new_node(s->m, op, domain, op, c ? 3 : b ? 2 : 1, 1);

	n->in[0] = a;
	if (b)
		n->in[1] = b;
	if (c)
		n->in[2] = c;
	n->out[0] = model_fresh(s->m, "converted");
	VEC_PUSH(&s->nodes, n);
	VEC_PUSH(&s->outputs, n->out[0]);
	return n;
}

static void add_size(struct small *s, int64_t elements, bool blocks)
{
	static const char nchwc[] = "com.microsoft.nchwc";
	const int64_t image[] = { 1, CHANNELS, 8, elements / (8 * CHANNELS) },
		      matrix[] = { CHANNELS, elements / CHANNELS };
	const char *floats = add_constant(s, DT_F32, image, 4), *ints = add_constant(s, DT_U8, matrix, 2);

	add_node(s, "QuantizeLinear", "", floats, s->scale, s->zero);
	add_node(s, "DequantizeLinear", "", ints, s->scale, s->zero);
	add_node(s, "Transpose", "", ints, NULL, NULL);
	add_node(s, "Add", "", floats, floats, NULL);
	if (!blocks)
		return;
	model_need_domain(s->m, nchwc, 1);
	add_node(s, "ReorderInput", nchwc, floats, NULL, NULL);
	node_set_int(s->m, add_node(s, "ReorderOutput", nchwc, floats, NULL, NULL), "channels", CHANNELS);
}

static struct model *small_model(const struct model *base, int64_t largest, bool blocks)
{
	struct small s = { .m = model_derive(base) };
	size_t i;

	s.scale = add_constant(&s, DT_F32, NULL, 0);
	s.zero = add_constant(&s, DT_U8, NULL, 0);
	for (i = 0; i<SIZES; i++, largest = largest> 16 * LEAST_ELEMENTS ? largest / 16 : LEAST_ELEMENTS)
		add_size(&s, largest, blocks);
	model_set_nodes(s.m, s.nodes.v, s.nodes.n);
	model_set_outputs(s.m, s.outputs.v, s.outputs.n);
	model_sweep(s.m);
	VEC_RELEASE(&s.nodes);
	VEC_RELEASE(&s.outputs);
	return s.m;
}

static void take_node(void *self, const char *node, const char *type, double seconds, const void *shapes)
{
	struct modes *m = self;
	const int conversion = conversion_of(type);

	(void)node;
	if (conversion != CONVERSIONS)
		line_add(&m->lines[conversion], profile_elements(shapes), seconds);
	else if (strcmp(type, "Add") == 0)
		line_add(&m->alone, profile_elements(shapes), seconds);
}

enum fettle_status measure_conversions(struct lab *l, struct err *err)
{
	struct modes *m = l->modes;
	double plain, most = 0;
	struct feed_batch b = FEED_BATCH_INIT;
	struct profile_options o = {
		.session = { .threads = l->o.deployed.threads, .deployed = true, .level = OPT_NONE },
		.batch = 1,
		.runs = RUNS,
		.seconds = SECONDS,
		.plain = &plain
	};
	struct model *small;
	bool blocks = false;
	enum fettle_status st = l->one ? feed_read(l->one, 0, &b, err) : FETTLE_OK;
	size_t i;

	for (i = 0; i < m->elements.n; i++)
		most = fmax(most, m->elements.v[i] * (double)m->rows);
	for (i = 0; i < l->s->m->nodes.n; i++)
		blocks |= m->blocked[i];
	most = fmin(fmax(most, 2 * LEAST_ELEMENTS), MOST_ELEMENTS);
	small = small_model(l->s->m, (int64_t)most / LEAST_ELEMENTS * LEAST_ELEMENTS, blocks);
	o.inputs = l->one ? b.inputs : NULL;
	if (!st)
		st = profile_model(l->rt, small, NULL, &o, take_node, m, err);
	feed_batch_release(&b);
	model_free(small);
	return st == FETTLE_BACKEND ? FETTLE_OK : st; /* then real profiles have to do */
}
