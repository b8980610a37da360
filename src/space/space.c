#include "space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
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
	uint8_t *fresh = xcalloc(from->n, sizeof(*fresh));

	if (from->n)
		memcpy(fresh, from->choice, from->n);
	plan_release(to);
	to->choice = fresh;
	to->n = from->n;
}

void plan_release(struct plan *p)
{
	free(p->choice);
	*p = (struct plan)PLAN_INIT;
}

bool plan_equal(const struct plan *a, const struct plan *b)
{
	return a->n == b->n && (!a->n || memcmp(a->choice, b->choice, a->n) == 0);
}

uint64_t plan_hash(const struct plan *p)
{
	return hash_bytes(p->choice, p->n, p->n);
}

bool option_is_int8(const struct param_option *o)
{
	return o->mode == OPTION_STATIC || o->mode == OPTION_DYNAMIC;
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
