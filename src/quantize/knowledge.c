#include "quantize/knowledge.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct channel_mean {
	const double *v;
	size_t n;
};

struct statistics {
	struct arena arena;
	struct map range_of; /* "value\tsetting" -> place in ranges */
	VEC(struct range) ranges;
	struct map means_of; /* "value\taxis" -> place in means */
	VEC(struct channel_mean) means;
};

struct statistics *statistics_new(void)
{
	return xcalloc(1, sizeof(struct statistics));
}

void statistics_free(struct statistics *s)
{
	if (!s)
		return;
	map_release(&s->range_of);
	VEC_RELEASE(&s->ranges);
	map_release(&s->means_of);
	VEC_RELEASE(&s->means);
	arena_release(&s->arena);
	free(s);
}

char *setting_key(const struct qsetting *s)
{
	return xstrfmt("%s %s %s %.10g", dtype_name(s->dtype), s->scheme == SCHEME_SYM ? "sym" : "asym",
		       range_methods[s->algorithm]->name,
		       range_methods[s->algorithm]->parameter.key ? s->parameter : 0);
}

static char *range_name(const char *value, const struct qsetting *setting)
{
	char *key = setting_key(setting), *name = xstrfmt("%s\t%s", value, key);

	free(key);
	return name;
}

void statistics_set_range(struct statistics *s, const char *value, const struct qsetting *setting,
			  struct range r)
{
	char *name = range_name(value, setting);

	map_set(&s->range_of, arena_strdup(&s->arena, name), s->ranges.n);
	VEC_PUSH(&s->ranges, r);
	free(name);
}

bool statistics_range(const struct statistics *s, const char *value, const struct qsetting *setting,
		      struct range *out)
{
	char *name = range_name(value, setting);
	size_t i = map_get(&s->range_of, name);

	free(name);
	if (i != MAP_NONE)
		*out = s->ranges.v[i];
	return i != MAP_NONE;
}

void statistics_set_means(struct statistics *s, const char *value, int axis, const double *means, size_t n)
{
	double *copy = arena_alloc(&s->arena, n * sizeof(*copy));

	memcpy(copy, means, n * sizeof(*copy));
	map_set(&s->means_of, arena_strfmt(&s->arena, "%s\t%d", value, axis), s->means.n);
	VEC_PUSH(&s->means, ((struct channel_mean){ copy, n }));
}

const double *statistics_means(const struct statistics *s, const char *value, int axis, size_t channels)
{
	char *name = xstrfmt("%s\t%d", value, axis);
	size_t i = map_get(&s->means_of, name);

	free(name);
	return i != MAP_NONE && s->means.v[i].n == channels ? s->means.v[i].v : NULL;
}
