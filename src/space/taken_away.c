/* What constraints take away from a space, in words. */
#include <stdlib.h>
#include <string.h>

#include "space/tuning.h"

enum { NAMES_SHOWN = 4 };

static size_t settings_of(const struct tuning *t, size_t param)
{
	const struct param *p = &t->space.v[param];

	return param == MAP_NONE ? 0 : p->n_options - (p->fallback != NO_OPTION);
}

static void add_part(struct str *out, const char *before)
{
	str_addf(out, "%s", out->n ? "; " : before);
}

/* "Conv 2 of 24 settings, Gemm 1 to 2 of 24" */
static void tell_settings(const struct tuning *with, const struct tuning *without, struct str *out)
{
	const struct space *s = &without->space;
	bool first = true;
	size_t t, i;

	for (t = 0; t < s->n_types; t++) {
		size_t all = 0, least = SIZE_MAX, most = 0, lost = 0;

		for (i = 0; i < s->n_ops; i++) {
			size_t left = settings_of(with, tuning_param(with, without->node[i]));

			if (s->v[i].type_id != t || !left)
				continue;
			lost += settings_of(without, i) - left;
			all = settings_of(without, i) > all ? settings_of(without, i) : all;
			least = left < least ? left : least;
			most = left > most ? left : most;
		}
		if (!lost)
			continue;
		str_addf(out, "%s%s ", first ? "constraints leave " : ", ", s->types[t]);
		str_addf(out, least < most ? "%zu to %zu" : "%zu", least, most);
		str_addf(out, " of %zu%s", all, first ? " settings" : "");
		first = false;
	}
}

static bool kept_fp32(const struct tuning *with, const struct tuning *without, size_t i)
{
	return settings_of(without, i) && !settings_of(with, tuning_param(with, without->node[i]));
}

static bool cannot_fall_back(const struct tuning *with, const struct tuning *without, size_t i)
{
	size_t p = tuning_param(with, without->node[i]);

	return settings_of(with, p) && without->space.v[i].fallback != NO_OPTION &&
	       with->space.v[p].fallback == NO_OPTION;
}

/* "2 ops stay in fp32: a, b" */
static void tell_ops(const struct tuning *with, const struct tuning *without,
		     bool (*which)(const struct tuning *, const struct tuning *, size_t), const char *one,
		     const char *several, struct str *out)
{
	size_t n = 0, i;
	struct str names = STR_INIT;

	for (i = 0; i < without->space.n_ops; i++)
		if (which(with, without, i) && n++ < NAMES_SHOWN)
			str_addf(&names, "%s%s", n > 1 ? ", " : "", without->space.v[i].name);
	if (n) {
		add_part(out, "by constraint, ");
		str_addf(out, n == 1 ? one : several, n);
		if (n == without->space.n_ops)
			str_addf(out, " (all)");
		else
			str_addf(out, ": %s%s", names.s, n > NAMES_SHOWN ? ", …" : "");
	}
	str_release(&names);
}

char *tuning_taken_away(const struct tuning *with, const struct tuning *without)
{
	struct str out = STR_INIT;

	tell_settings(with, without, &out);
	tell_ops(with, without, kept_fp32, "%zu op stays in fp32", "%zu ops stay in fp32", &out);
	tell_ops(with, without, cannot_fall_back, "%zu op cannot fall back to fp32",
		 "%zu ops cannot fall back to fp32", &out);
	return out.s;
}
