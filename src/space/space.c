#include "space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void plan_init(struct plan *p, const struct space *s)
{
	size_t i;

	p->n = s->n;
	p->choice = xcalloc(s->n, sizeof(*p->choice));
	for (i = 0; i < s->n; i++)
		p->choice[i] = s->v[i].first;
}

void plan_copy(struct plan *to, const struct plan *from)
{
	uint16_t *fresh = xcalloc(from->n, sizeof(*fresh));

	if (from->n)
		memcpy(fresh, from->choice, from->n * sizeof(*fresh));
	plan_release(to);
	to->choice = fresh;
	to->n = from->n;
}

void plan_release(struct plan *p)
{
	free(p->choice);
	*p = (struct plan)PLAN_INIT;
}

bool plan_uses(const struct plan *p, const struct space *s, size_t i)
{
	const struct param *x = &s->v[i];

	while (x->when_options) {
		if (!(x->when_options >> p->choice[x->when] & 1))
			return false;
		x = &s->v[x->when];
	}
	return true;
}

bool plan_equal(const struct plan *a, const struct plan *b, const struct space *s)
{
	size_t i;

	if (a->n != b->n || a->n != s->n)
		return false;
	for (i = 0; i < a->n; i++) /* as long as they agree, they use the same parameters */
		if (a->choice[i] != b->choice[i] && plan_uses(a, s, i))
			return false;
	return true;
}

void plan_alike(const struct plan *p, const struct space *s, struct plan *out)
{
	size_t i;

	plan_copy(out, p);
	for (i = 0; i < s->n; i++)
		if (s->v[i].kind == PARAM_OP)
			out->choice[i] = s->v[i].options[p->choice[i]].alike;
		else if (s->v[i].kind == PARAM_SAMPLES)
			out->choice[i] = s->v[i].first;
}

/* ---- plans whose weights are rounded ---- */

static bool rounds(const struct plan *p, const struct space *s)
{
	size_t i;

	if (s->rounds)
		return true;
	for (i = s->n_ops; i < s->n; i++)
		if (s->v[i].rounds && p->choice[i] == s->v[i].apply)
			return true;
	return false;
}

/* is it the other, but for ops that fell back? */
static bool comes_from(const struct plan *p, const struct plan *root, const struct space *s)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->choice[i] != root->choice[i] &&
		    (i >= s->n_ops || option_is_int8(&s->v[i].options[p->choice[i]])))
			return false;
	return true;
}

const struct plan *plan_root(const struct plan *p, const struct space *s)
{
	size_t i;

	for (i = 0; i < s->roots.n; i++)
		if (comes_from(p, &s->roots.v[i], s))
			return &s->roots.v[i];
	return NULL;
}

void space_remember(struct space *s, const struct plan *p)
{
	struct plan copy = PLAN_INIT;

	if (!rounds(p, s) || plan_root(p, s))
		return;
	plan_copy(&copy, p);
	VEC_PUSH(&s->roots, copy);
}

/* ---- options ---- */

unsigned space_option(struct space *s, size_t param, const char *name)
{
	struct param *p = &s->v[param];
	const char **grown;
	unsigned k;

	for (k = 0; k < p->n_options; k++)
		if (strcmp(p->names[k], name) == 0)
			return k;
	if (!p->open || k == NO_OPTION)
		return NO_OPTION;
	if (!(k & (k - 1))) { /* full: a power of two */
		grown = arena_alloc(&s->arena, (k ? 2 * k : 1) * sizeof(*grown));
		if (k)
			memcpy(grown, p->names, k * sizeof(*grown));
		p->names = grown;
	}
	((const char **)(uintptr_t)p->names)[k] = arena_strdup(&s->arena, name);
	p->n_options++;
	return k;
}

void space_release(struct space *s)
{
	size_t i;

	for (i = 0; i < s->roots.n; i++)
		plan_release(&s->roots.v[i]);
	VEC_RELEASE(&s->roots);
	VEC_RELEASE(&s->fixed);
	arena_release(&s->arena);
}

bool option_is_int8(const struct param_option *o)
{
	return o->mode == OPTION_STATIC || o->mode == OPTION_DYNAMIC || o->mode == OPTION_WEIGHT;
}

unsigned param_option_in(const struct param *p, enum option_mode mode)
{
	unsigned k;

	for (k = 0; k < p->n_options; k++)
		if (p->options[k].mode == mode)
			return k;
	return NO_OPTION;
}

bool plan_is_quantized(const struct plan *p, const struct space *s, size_t op)
{
	return s->v[op].options[p->choice[op]].mode != OPTION_FP32;
}

double plan_gain(const struct plan *p, const struct space *s)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->n_ops; i++)
		if (plan_is_quantized(p, s, i))
			sum += s->v[i].gain;
	return sum;
}

size_t plan_n_quantized(const struct plan *p, const struct space *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->n_ops; i++)
		n += plan_is_quantized(p, s, i);
	return n;
}

bool plan_is_whole(const struct plan *p, const struct space *s)
{
	size_t i;

	for (i = 0; i < s->n_ops; i++)
		if (!plan_is_quantized(p, s, i) && s->v[i].options[s->v[i].first].mode != OPTION_FP32)
			return false;
	return true;
}

bool plan_can_fall_back(const struct plan *p, const struct space *s, size_t op)
{
	return s->v[op].fallback != NO_OPTION && plan_is_quantized(p, s, op);
}

double space_size_log10(const struct space *s, bool ops_only)
{
	double sum = 0;
	size_t i, k;

	for (i = 0; i < (ops_only ? s->n_ops : s->n); i++) {
		unsigned n = s->v[i].n_options;

		if (ops_only) {
			for (n = 0, k = 0; k < s->v[i].n_options; k++)
				n += option_is_int8(&s->v[i].options[k]);
			n = n ? n : 1; /* an op that can only be fp32 */
		}
		sum += log10(n);
	}
	return sum;
}
