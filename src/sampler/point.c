#include "sampler/point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* 0 stands for too many, and stays that. */
static uint64_t times(uint64_t a, uint64_t b)
{
	return a && b && a <= (UINT64_MAX >> 1) / b ? a * b : 0;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a && b && a <= (UINT64_MAX >> 1) - b ? a + b : 0;
}

/* ---- one parameter ---- */

static double scale(const struct point_param *p, double value)
{
	return p->log ? log(value) : value;
}

static void param_init(struct point_param *p, const struct sampler_param *from, unsigned levels)
{
	*p = (struct point_param){
		.kind = from->kind,
		.levels = from->options,
		.low = from->low,
		.high = from->high,
		.step = from->step,
		.log = from->log,
		.parent = from->when ? from->when->param : POINT_NONE,
		.child = POINT_NONE,
		.sibling = POINT_NONE,
	};
	if (!param_is_number(p))
		return;
	p->levels = 0;
	if (p->kind == SAMPLER_INTEGER && !(p->step > 0))
		p->step = 1;
	if (p->step > 0) {
		p->levels = (uint64_t)floor((p->high - p->low) / p->step + 1e-9) + 1;
		p->high = p->low + (double)(p->levels - 1) * p->step;
		p->from = scale(p, p->low - p->step / 2);
		p->to = scale(p, p->high + p->step / 2);
		return;
	}
	p->from = scale(p, p->low);
	p->to = scale(p, p->high);
	if (!(p->to > p->from)) {
		p->levels = 1;
		p->to = p->from + 1;
	} else if (levels) {
		p->levels = levels;
	}
}

/* Of levels that are evenly spread on the scale the first is low and the last high. */
double param_value(const struct point_param *p, double x)
{
	double t;

	if (!param_is_number(p) || !p->levels)
		return x;
	if (p->step > 0)
		return p->low + x * p->step;
	if (x == 0 || x == (double)(p->levels - 1))
		return x == 0 ? p->low : p->high;
	t = p->from + (p->to - p->from) * x / (double)(p->levels - 1);
	return p->log ? exp(t) : t;
}

bool param_find(const struct point_param *p, double value, double *x)
{
	double level;

	if (param_is_number(p) && !p->levels) {
		*x = value + 0.0; /* there is one zero only */
		return value >= p->low && value <= p->high;
	}
	if (!param_is_number(p))
		level = value;
	else if (p->step > 0)
		level = (value - p->low) / p->step;
	else if (p->levels == 1)
		level = value - p->low;
	else
		level = (scale(p, value) - p->from) / (p->to - p->from) * (double)(p->levels - 1);
	*x = round(level) + 0.0;
	return *x >= 0 && *x < (double)p->levels && fabs(level - *x) <= (p->kind == SAMPLER_FLOAT ? 1e-6 : 0);
}

double param_unit(const struct point_param *p, double x)
{
	if (p->levels && !(p->step > 0))
		return (x + 0.5) / (double)p->levels;
	return (scale(p, param_value(p, x)) - p->from) / (p->to - p->from);
}

double param_from_unit(const struct point_param *p, double u)
{
	double value;

	u = fmin(fmax(u, 0), 1);
	if (p->levels && !(p->step > 0))
		return fmin(floor(u * (double)p->levels), (double)(p->levels - 1));
	value = p->from + u * (p->to - p->from);
	value = p->log ? exp(value) : value;
	if (p->levels)
		return fmin(fmax(round((value - p->low) / p->step), 0), (double)(p->levels - 1)) + 0.0;
	return fmin(fmax(value, p->low), p->high) + 0.0;
}

void param_cell(const struct point_param *p, double x, double *lo, double *hi)
{
	if (p->step > 0) {
		double value = param_value(p, x);

		*lo = (scale(p, value - p->step / 2) - p->from) / (p->to - p->from);
		*hi = (scale(p, value + p->step / 2) - p->from) / (p->to - p->from);
	} else {
		*lo = x / (double)p->levels;
		*hi = (x + 1) / (double)p->levels;
	}
}

double param_draw(const struct point_param *p, struct rng *rng)
{
	if (p->levels && !p->log)
		return (double)rng_below(rng, p->levels);
	return param_from_unit(p, rng_unit(rng));
}

/* ---- the space ---- */

/* Ways to fill the children that option o of the parameter brings about. */
static uint64_t ways_below(const struct point_space *s, const struct point_param *p, size_t o)
{
	uint64_t ways = 1;
	size_t c;

	for (c = p->child; c != POINT_NONE; c = s->params[c].sibling)
		if (s->params[c].when[o])
			ways = times(ways, s->params[c].count);
	return ways;
}

static uint64_t count_ways(const struct point_space *s, const struct point_param *p)
{
	uint64_t ways;
	size_t o;

	if (p->child == POINT_NONE)
		return p->levels <= UINT64_MAX >> 1 ? p->levels : 0;
	ways = ways_below(s, p, 0);
	for (o = 1; o < p->levels; o++)
		ways = plus(ways, ways_below(s, p, o));
	return ways;
}

void point_space_init(struct point_space *s, const struct sampler_param *params, size_t n, unsigned levels)
{
	size_t i, k;

	*s = (struct point_space){ .n = n, .last_root = POINT_NONE, .size = 1, .even = true };
	s->params = xcalloc(n, sizeof(*s->params));
	for (i = 0; i < n; i++) {
		struct point_param *p = &s->params[i];
		const struct sampler_condition *when = params[i].when;
		size_t *last = when ? &s->params[when->param].child : &s->last_root;

		param_init(p, &params[i], levels);
		p->sibling = *last;
		*last = i;
		s->even = s->even && !when && !p->log;
		if (!when)
			continue;
		p->when = xcalloc(s->params[p->parent].levels, sizeof(*p->when));
		for (k = 0; k < when->n_options; k++)
			p->when[when->options[k]] = true;
	}
	for (i = n; i-- > 0;) { /* children come after their parents */
		s->params[i].count = count_ways(s, &s->params[i]);
		if (s->params[i].parent == POINT_NONE)
			s->size = times(s->size, s->params[i].count);
	}
}

void point_space_release(struct point_space *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		free(s->params[i].when);
	free(s->params);
}

bool point_has_numbers(const struct point_space *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (param_is_number(&s->params[i]))
			return true;
	return false;
}

/* Of a chain of siblings, those below them included; the last is the lowest digit. */
static uint64_t chain_index(const struct point_space *s, size_t last, const double *point)
{
	uint64_t index = 0, weight = 1;
	size_t i, o;

	for (i = last; i != POINT_NONE; i = s->params[i].sibling) {
		const struct point_param *p = &s->params[i];
		uint64_t own;

		if (isnan(point[i]))
			continue;
		own = (uint64_t)point[i];
		if (p->child != POINT_NONE) {
			own = chain_index(s, p->child, point);
			for (o = 0; o < (size_t)point[i]; o++)
				own += ways_below(s, p, o);
		}
		index += weight * own;
		weight *= p->count;
	}
	return index;
}

static void chain_at(const struct point_space *s, size_t last, uint64_t index, double *point)
{
	size_t i;

	for (i = last; i != POINT_NONE; i = s->params[i].sibling) {
		const struct point_param *p = &s->params[i];
		uint64_t own, ways;
		size_t o;

		point[i] = NAN;
		if (p->parent != POINT_NONE && !point_active(s, point, i)) {
			chain_at(s, p->child, 0, point);
			continue;
		}
		own = index % p->count;
		index /= p->count;
		point[i] = (double)own;
		if (p->child == POINT_NONE)
			continue;
		for (o = 0; own >= (ways = ways_below(s, p, o)); o++)
			own -= ways;
		point[i] = (double)o;
		chain_at(s, p->child, own, point);
	}
}

uint64_t point_index(const struct point_space *s, const double *point)
{
	return chain_index(s, s->last_root, point);
}

void point_at(const struct point_space *s, uint64_t index, double *point)
{
	chain_at(s, s->last_root, index, point);
}

static void first_from(const struct point_space *s, double *point, size_t i)
{
	for (; i < s->n; i++)
		point[i] = point_active(s, point, i) ? 0 : NAN;
}

void point_first(const struct point_space *s, double *point)
{
	first_from(s, point, 0);
}

bool point_step(const struct point_space *s, double *point)
{
	size_t i;

	for (i = s->n; i-- > 0;)
		if (point[i] + 1 < (double)s->params[i].levels) { /* not when it is inactive: NAN */
			point[i]++;
			first_from(s, point, i + 1);
			return true;
		}
	return false;
}

int point_compare(const double *a, const double *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) /* as far as they are equal the same parameters are active */
		if (a[i] < b[i] || a[i] > b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

void point_draw(const struct point_space *s, struct rng *rng, double *point)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		point[i] = point_active(s, point, i) ? param_draw(&s->params[i], rng) : NAN;
}

void point_canonical(const struct point_space *s, struct rng *rng, double *point)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (!point_active(s, point, i))
			point[i] = NAN;
		else if (isnan(point[i]))
			point[i] = param_draw(&s->params[i], rng);
}

/* ---- sets ---- */

void point_set_init(struct point_set *s, size_t width)
{
	memset(s, 0, sizeof(*s));
	s->width = width;
}

void point_set_release(struct point_set *s)
{
	VEC_RELEASE(&s->values);
	free(s->slots);
	s->slots = NULL;
	s->n = s->cap = 0;
}

const double *point_set_get(const struct point_set *s, size_t number)
{
	return s->values.v + number * s->width;
}

/* The slot that holds the point, or the empty one where it belongs. */
static uint32_t *slot_of(const struct point_set *s, const double *point)
{
	size_t bytes = s->width * sizeof(*point), i = hash_bytes(point, bytes, 0) & (s->cap - 1);

	while (s->slots[i] && memcmp(point_set_get(s, s->slots[i] - 1), point, bytes) != 0)
		i = (i + 1) & (s->cap - 1);
	return &s->slots[i];
}

size_t point_set_find(const struct point_set *s, const double *point)
{
	uint32_t *slot;

	if (!s->n)
		return POINT_NONE;
	slot = slot_of(s, point);
	return *slot ? *slot - 1 : POINT_NONE;
}

static void rehash(struct point_set *s)
{
	size_t i;

	free(s->slots);
	s->cap = s->cap ? s->cap * 2 : 64;
	s->slots = xcalloc(s->cap, sizeof(*s->slots));
	for (i = 0; i < s->n; i++)
		*slot_of(s, point_set_get(s, i)) = (uint32_t)i + 1;
}

size_t point_set_add(struct point_set *s, const double *point)
{
	uint32_t *slot;
	size_t i;

	if (s->n >= s->cap / 2)
		rehash(s);
	slot = slot_of(s, point);
	if (*slot)
		return *slot - 1;
	for (i = 0; i < s->width; i++)
		VEC_PUSH(&s->values, point[i]);
	*slot = (uint32_t)++s->n;
	return s->n - 1;
}
