/* What the runtime's profile of a model says of each op of the base, and of conversions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "quantize/precision.h"
#include "runtime/profile.h"
#include "tune/deployed.h"
#include "tune/modes_impl.h"

enum { RUNS = 60 };       /* of a profile, at most */
enum { PLAIN_LEAST = 2 }; /* runs without a profile */
/* Seconds for the runs of a profile: a share of an evaluation, and more than a small model's noise. */
#define PROFILE_SHARE 0.05
#define PROFILE_SECONDS 0.02
/* What takes so many times as long as fp32 is not timed in turns with it. */
#define CLEARLY_SLOWER 1.25

struct profile_of {
	struct lab *l;
	const struct graph_index
		*g; /* of the model that is run: its values have the names that its nodes have made */
	struct mode_profile *out;
	struct line *lines;
	size_t last; /* the op of the node before, in order of execution; MAP_NONE: none yet */
};

static void note_blocked(const struct profile_of *p, size_t op)
{
	if (p->l->modes->profiles_fp32)
		p->l->modes->blocked[op] = true;
}

/* The convolution that the runtime names after what it was fused with: the sum, the Relu. */
static size_t fused_into(const struct profile_of *p, size_t op, int depth)
{
	const struct graph_index *g = &p->l->s->g;
	const struct node *n = g->m->nodes.v[op];
	size_t k, v, found;

	if (op_convolves(n))
		return op;
	for (k = 0; k < n->n_in && depth; k++) {
		v = graph_value(g, n->in[k]);
		if (v == MAP_NONE || g->producer[v] == NO_NODE)
			continue;
		found = fused_into(p, (size_t)g->producer[v], depth - 1);
		if (found != MAP_NONE && !(p->out->seconds[found] > 0)) {
			note_blocked(p, op);
			return found;
		}
	}
	return MAP_NONE;
}

/* The op of the base that a node of the runtime stands for; MAP_NONE: none. */
static size_t op_of(const struct profile_of *p, const char *node, const char *type)
{
	/* such nodes are named after their output; a BatchNormalization is a Conv then */
	static const char blocked[] = "_nchwc", norm[] = "_bn_nchwc";
	const char *at = node, *end = strstr(node, norm) ? strstr(node, norm) : strstr(node, blocked);
	size_t op, v, fused;
	char *value;

	if (next_mark(&at, &op))
		return op;
	if (!end)
		return MAP_NONE;
	value = xstrfmt("%.*s", (int)(end - node), node);
	v = graph_value(p->g, value);
	at = v == MAP_NONE || p->g->producer[v] == NO_NODE ? "" : p->g->m->nodes.v[p->g->producer[v]]->name;
	free(value);
	if (!next_mark(&at, &op))
		return MAP_NONE;
	fused = strcmp(type, "Conv") == 0 && !strstr(node, norm) ? fused_into(p, op, 4) : op;
	note_blocked(p, op);
	if (fused == MAP_NONE)
		return op;
	note_blocked(p, fused);
	return fused;
}

/* The value that a node quantizes at run time. */
static void note_apart(const struct profile_of *p, const char *node)
{
	const struct model *m = p->g->m;
	size_t i, v;

	for (i = 0; i < m->nodes.n; i++) {
		const struct node *n = m->nodes.v[i];

		if (strcmp(n->name, node) != 0)
			continue;
		v = graph_value(&p->l->s->g, n->in[0]);
		if (v != MAP_NONE)
			p->l->modes->apart[v] = true;
	}
}

static void take_node(void *self, const char *node, const char *type, double seconds, const void *shapes)
{
	struct profile_of *p = self;
	size_t op = op_of(p, node, type);
	int conversion = conversion_of(type, shapes);

	if (op != MAP_NONE && conversion != TO_INT && conversion != TO_FLOAT && conversion != AT_RUN_TIME) {
		p->out->seconds[op] += seconds;
		p->last = op;
	} else if (conversion != CONVERSIONS) {
		if (conversion == AT_RUN_TIME)
			note_apart(p, node);
		line_add(&p->lines[conversion], profile_elements(shapes), seconds);
		p->out->converting[conversion] += seconds;
	} else if (p->last != MAP_NONE && strstr(type, "Gelu")) {
		/* The runtime has made it of several nodes, and named it. It adds the bias as well (BiasGelu) unless the matrix before it
		 * does: what it takes depends on that one's mode. */
		p->out->seconds[p->last] += seconds;
	}
}

static double profile_seconds(const struct lab *l)
{
	return fmax(PROFILE_SHARE * l->pass_seconds, PROFILE_SECONDS);
}

double mode_converting(const struct lab *l, const struct mode_profile *p)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < CONVERSIONS; i++)
		sum += p->converting[i] - l->modes->fp32.converting[i];
	return fmax(sum, 0);
}

/* Does the runtime make the same of the user's file as of the prepared model? */
static bool is_as_given(const struct lab *l)
{
	return !simplified_total(&l->s->rewritten) && !l->s->m->raised_from && !l->s->m->notes[2];
}

/* The shortest of a few runs without a profile, of a session that has run before; no more of them after so many seconds. */
static enum fettle_status run_plainly(struct lab *l, struct session *s, double seconds, double *least,
				      struct err *err)
{
	struct feed_batch b = FEED_BATCH_INIT;
	struct tensor *out = xcalloc(session_n_outputs(s), sizeof(*out));
	enum fettle_status st = feed_read(l->timed[l->o.deployed.compared], 0, &b, err);
	double one, spent = 0;
	size_t i;

	*least = INFINITY;
	for (i = 0;
	     ((i < PLAIN_LEAST && !(i && spent > profile_seconds(l))) || (i < RUNS && spent < seconds)) &&
	     !st;
	     i++) {
		st = session_run_timed(s, b.inputs, out, &one, err);
		*least = fmin(*least, one);
		spent += one;
	}
	feed_batch_release(&b);
	free(out);
	return st;
}

enum fettle_status time_original(struct lab *l, double *seconds, struct err *err)
{
	struct session *s;
	enum fettle_status st;

	*seconds = l->modes->fp32.total * rewritten_speedup(l);
	if (!l->timed[l->o.deployed.compared] || is_as_given(l) || rewritten_speedup(l) != 1)
		return FETTLE_OK;
	st = deployed_fp32(l, &s, err);
	/* as long as what it is compared with is run without a profile */
	return st ? st : run_plainly(l, s, profile_seconds(l) / 3, seconds, err);
}

/*
 * Other processes slow a machine down for a while, and profiles are taken one after the other: a plan's time is what it takes in
 * turns with the user's model, as it will be measured in the end. A plan that is much slower than fp32 is no candidate, whatever its
 * time is precisely.
 */
static enum fettle_status time_profiled(void *lab, struct session *s, double *plain, struct err *err)
{
	struct lab *l = lab;
	struct modes *m = l->modes;
	enum fettle_status st;

	if (m->profiles_fp32)
		return is_as_given(l) ? FETTLE_OK : time_rewritten_with(l, s, plain, err);
	st = time_beside_fp32(l, s, profile_seconds(l) / 2, CLEARLY_SLOWER * m->fp32.total / m->original,
			      &m->ratio, err);
	if (!st && m->ratio > 0 && m->original > 0)
		*plain = m->ratio * m->original;
	return st;
}

enum fettle_status mode_profile(struct lab *l, struct model *m, struct mode_profile *out,
				struct session **keep, struct err *err)
{
	const struct deployed *d = &l->o.deployed;
	struct feed *feed = l->timed[d->compared];
	struct graph_index g;
	struct profile_of p = { l, &g, out, l->modes->lines, MAP_NONE };
	struct profile_options o = {
		.session = { .threads = d->threads, .deployed = true, .level = l->o.level },
		.batch = deployed_batch(d, d->compared),
		.runs = RUNS,
		.seconds = profile_seconds(l),
		.plain = &out->total,
		.also = time_profiled,
		.also_self = l,
		.keep = keep
	};
	struct model *marked = marked_model(m, &l->s->ops);
	struct feed_batch b = FEED_BATCH_INIT;
	enum fettle_status st = feed ? feed_read(feed, 0, &b, err) : FETTLE_OK;

	l->modes->profiles_fp32 = m == l->s->m;
	l->modes->ratio = NAN;
	graph_index_init(&g, marked);
	o.inputs = feed ? b.inputs : NULL;
	l->modes->rows = feed && b.n ? b.n : 1;
	*out = (struct mode_profile){ .seconds = xcalloc(l->s->ops.n + 1, sizeof(*out->seconds)) };
	if (!st)
		st = profile_model(l->rt, marked, NULL, &o, take_node, &p, err);
	feed_batch_release(&b);
	graph_index_release(&g);
	model_free(marked);
	return st;
}
