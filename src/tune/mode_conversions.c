/* What it takes to convert values: lines through what profiles show, of a small model with nothing but conversions to begin with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "runtime/profile.h"
#include "tune/modes_impl.h"

/* The small model's values: as large as the largest of the real model's, up to this, and about a sixteenth of that. */
#define MOST_ELEMENTS (1 << 18)
enum {
	CHANNELS = 32,
	FEW_CHANNELS = 3,
	IMAGE_CHANNELS = 4,
	LEAST_ELEMENTS = 1 << 10,
	SIZES = 2,
	SMALLER = 4
};
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

bool has_few_channels(int64_t channels)
{
	return channels <= IMAGE_CHANNELS;
}

int conversion_of(const char *op, const void *shapes)
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

	for (i = 0; i < ARRAY_LEN(known) && strcmp(known[i].op, op) != 0; i++)
		;
	if (i == ARRAY_LEN(known))
		return CONVERSIONS;
	return known[i].is == TO_LAST && has_few_channels(profile_least_dim(shapes)) ? FEW_TO_LAST
										     : known[i].is;
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
	return n;
}

/* Channels go last, as convolutions in integers want them, or first. */
static const char *transposed(struct small *s, const char *value, bool last)
{
	static const int64_t to_last[] = { 0, 2, 3, 1 }, to_first[] = { 0, 3, 1, 2 };
	struct node *n = add_node(s, "Transpose", "", value, NULL, NULL);

	node_set_ints(s->m, n, "perm", last ? to_last : to_first, 4);
	return n->out[0];
}

/* How a value is laid out: of all that convolutions work on, one is typical. */
struct planes {
	int64_t channels, height, width;
};

/* Each reads what the one before it has made, which is still in a cache, as in a real model: of an image, only the model's own is not. */
static void add_size(struct small *s, const struct planes *p, bool blocks)
{
	static const char nchwc[] = "com.microsoft.nchwc";
	const int64_t dims[] = { 1, p->channels, p->height, p->width },
		      image[] = { 1, FEW_CHANNELS, p->height, p->width * p->channels / FEW_CHANNELS };
	const char *v = add_constant(s, DT_F32, dims, 4);
	struct node *n;

	v = add_node(s, "Add", "", v, v, NULL)->out[0];
	v = add_node(s, "QuantizeLinear", "", v, s->scale, s->zero)->out[0];
	v = transposed(s, transposed(s, v, true), false);
	v = add_node(s, "DequantizeLinear", "", v, s->scale, s->zero)->out[0];
	if (blocks) {
		model_need_domain(s->m, nchwc, 1);
		v = add_node(s, "ReorderInput", nchwc, v, NULL, NULL)->out[0];
		n = add_node(s, "ReorderOutput", nchwc, v, NULL, NULL);
		node_set_int(s->m, n, "channels", p->channels);
		v = n->out[0];
	}
	VEC_PUSH(&s->outputs, v);
	VEC_PUSH(&s->outputs, transposed(s, add_constant(s, DT_U8, image, 4), true));
}

static struct model *small_model(const struct model *base, struct planes p, bool blocks)
{
	struct small s = { .m = model_derive(base) };
	size_t i;

	s.scale = add_constant(&s, DT_F32, NULL, 0);
	s.zero = add_constant(&s, DT_U8, NULL, 0);
	for (i = 0; i < SIZES; i++) {
		add_size(&s, &p, blocks);
		p.height = p.height > SMALLER ? p.height / SMALLER : 1;
		p.width = p.width > SMALLER ? p.width / SMALLER : 1;
	}
	model_set_nodes(s.m, s.nodes.v, s.nodes.n);
	model_set_outputs(s.m, s.outputs.v, s.outputs.n);
	model_sweep(s.m);
	VEC_RELEASE(&s.nodes);
	VEC_RELEASE(&s.outputs);
	return s.m;
}

/*
 * How fast channels can be moved depends on how far apart they are: powers of two are slow. So the planes are those of the largest of
 * the model's values, up to so many elements; made up, if no convolution reads any.
 */
static struct planes typical_planes(const struct lab *l)
{
	const struct modes *m = l->modes;
	double most = 2 * LEAST_ELEMENTS, largest = 0;
	struct planes out;
	size_t i;

	for (i = 0; i < m->elements.n; i++)
		most = fmax(most, m->elements.v[i] * (double)m->rows);
	most = fmin(most, MOST_ELEMENTS);
	out = (struct planes){ CHANNELS, 8,
			       (int64_t)most / LEAST_ELEMENTS * LEAST_ELEMENTS / (8 * CHANNELS) };
	for (i = 0; i < m->names.n; i++) {
		const struct tensor *t = subject_shape(l->s, l->s->g.names[m->names.v[i]]);
		const double n = t && t->rank == 4 ? (double)(t->dims[1] * t->dims[2] * t->dims[3]) : 0;

		if (!m->layouts.v[i].image || m->layouts.v[i].few_channels || n < LEAST_ELEMENTS ||
		    n <= largest || n > MOST_ELEMENTS)
			continue;
		largest = n;
		out = (struct planes){ (t->dims[1] + CHANNELS - 1) / CHANNELS * CHANNELS, t->dims[2],
				       t->dims[3] };
	}
	return out;
}

static void take_node(void *self, const char *node, const char *type, double seconds, const void *shapes)
{
	struct modes *m = self;
	const int conversion = conversion_of(type, shapes);

	(void)node;
	if (conversion != CONVERSIONS)
		line_add(&m->lines[conversion], profile_elements(shapes), seconds);
	else if (strcmp(type, "Add") == 0)
		line_add(&m->alone, profile_elements(shapes), seconds);
}

enum fettle_status measure_conversions(struct lab *l, struct err *err)
{
	struct modes *m = l->modes;
	double plain;
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
	struct feed *feed = l->timed[l->o.deployed.compared];
	enum fettle_status st = feed ? feed_read(feed, 0, &b, err) : FETTLE_OK;
	size_t i;

	for (i = 0; i < l->s->m->nodes.n; i++)
		blocks |= m->blocked[i];
	small = small_model(l->s->m, typical_planes(l), blocks);
	o.inputs = feed ? b.inputs : NULL;
	if (!st)
		st = profile_model(l->rt, small, NULL, &o, take_node, m, err);
	feed_batch_release(&b);
	model_free(small);
	return st == FETTLE_BACKEND ? FETTLE_OK : st; /* then real profiles have to do */
}
