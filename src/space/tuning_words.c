/* A tuning space as text: to tell whether it is still the one that a history's plans were made for. */
#include "base/fingerprint.h"
#include "space/tuning.h"

static void add_setting(struct str *s, const struct qsetting *q)
{
	str_addf(s, " %d/%d/%d%d/%d/%g", (int)q->dtype, (int)q->scheme, q->per_channel, q->narrow,
		 (int)q->algorithm, q->parameter);
}

static void add_option(struct str *s, const struct tuning *t, size_t i, size_t k)
{
	if (i >= t->space.n_ops) {
		if (t->recipe_options && i - t->space.n_ops < t->n_recipes)
			str_addf(s, " %d:%g", t->recipe_options[i - t->space.n_ops][k].on,
				 t->recipe_options[i - t->space.n_ops][k].number);
		return;
	}
	str_addf(s, " %d", (int)t->space.v[i].options[k].mode);
	if (!t->choices)
		return;
	add_setting(s, &t->choices[i][k].act);
	add_setting(s, &t->choices[i][k].weight);
}

void tuning_fingerprint(const struct tuning *t, char out[FINGERPRINT_LEN])
{
	struct str s = STR_INIT;
	size_t i, k;

	for (i = 0; i < t->space.n; i++) {
		const struct param *p = &t->space.v[i];

		str_addf(&s, "%d %s %d %d %d", (int)p->kind, p->name, p->first, p->fallback, p->apply);
		for (k = 0; k < p->n_options; k++)
			add_option(&s, t, i, k);
		str_addf(&s, "\n");
	}
	for (i = 0; i < t->n_samples; i++)
		str_addf(&s, "%lld\n", (long long)t->samples[i]);
	fingerprint_bytes(s.s ? s.s : "", s.n, out);
	str_release(&s);
}
