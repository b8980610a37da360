#include "space/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const struct setting_info setting_infos[SETTINGS] = {
#define SETTING(ID, ...) { __VA_ARGS__ },
#include "space/settings_list.h"
#undef SETTING
};

bool settings_active(const struct settings *s, enum setting which)
{
	const struct setting_info *i = &setting_infos[which];

	return i->when == SETTINGS || (!isnan(s->v[i->when]) && i->values >> (unsigned)s->v[i->when] & 1);
}

void settings_normalise(struct settings *s)
{
	int i;

	for (i = 0; i < SETTINGS; i++)
		if (!settings_active(s, (enum setting)i))
			s->v[i] = NAN;
		else if (isnan(s->v[i]))
			s->v[i] = setting_infos[i].first;
}

struct settings settings_default(void)
{
	struct settings s;
	int i;

	for (i = 0; i < SETTINGS; i++)
		s.v[i] = NAN;
	settings_normalise(&s);
	return s;
}

bool settings_equal(const struct settings *a, const struct settings *b)
{
	int i;

	for (i = 0; i < SETTINGS; i++)
		if (a->v[i] != b->v[i] && !(isnan(a->v[i]) && isnan(b->v[i])))
			return false;
	return true;
}

bool settings_on(const struct settings *s, enum setting which)
{
	return s->v[which] == 1;
}

/* ---- lists ---- */

bool settings_add(struct settings_list *l, const struct settings *s)
{
	struct str name = STR_INIT;
	bool has;
	int i;

	for (i = 0; i < SETTINGS; i++) {
		if (!isnan(s->v[i]))
			setting_name((enum setting)i, s->v[i], &name);
		str_addf(&name, " ");
	}
	has = map_get(&l->places, name.s) != MAP_NONE;
	if (!has) {
		map_set(&l->places, arena_strdup(&l->names, name.s), l->n);
		VEC_PUSH(l, *s);
	}
	str_release(&name);
	return !has;
}

void settings_list_release(struct settings_list *l)
{
	VEC_RELEASE(l);
	map_release(&l->places);
	arena_release(&l->names);
	*l = (struct settings_list)SETTINGS_LIST_INIT;
}

/* ---- all settings of a space ---- */

static void expand(struct settings_list *out, const struct settings_space *space, struct settings *s,
		   int which)
{
	const struct setting_values *list = &space->list[which];
	bool paired = space->n_pairs && (which == SET_ITERATIONS || which == SET_LEARNING_RATE);
	size_t n, i;

	if (out->n > SETTINGS_MAX)
		return;
	if (which == SETTINGS) {
		settings_add(out, s);
		return;
	}
	if (!settings_active(s, (enum setting)which)) {
		s->v[which] = NAN;
		expand(out, space, s, which + 1);
		return;
	}
	if (paired && which == SET_LEARNING_RATE) { /* was set with its partner */
		expand(out, space, s, which + 1);
		return;
	}
	n = paired ? space->n_pairs : list->n ? list->n : 1;
	for (i = 0; i < n; i++) {
		s->v[which] = paired ? space->pairs[i][0] : list->n ? list->v[i] : setting_infos[which].first;
		if (paired)
			s->v[SET_LEARNING_RATE] = space->pairs[i][1];
		expand(out, space, s, which + 1);
	}
}

double settings_cost(const struct settings *s)
{
	enum dtype act = (enum dtype)s->v[SET_ACT_TYPE], weight = (enum dtype)s->v[SET_WEIGHT_TYPE];
	double cost = 1;

	/* there is no kernel for sixteen bits: such a model computes in fp32, and converts */
	if (dtype_size(act) == 2 || dtype_size(weight) == 2)
		cost += 2;
	if (s->v[SET_METHOD] != RANGE_MINMAX)
		cost += 0.1;
	if (settings_on(s, SET_CLE))
		cost += 0.2;
	if (settings_on(s, SET_SQ)) /* calibrates anew */
		cost += 0.5;
	if (settings_on(s, SET_FAST_FT))
		cost += isnan(s->v[SET_ITERATIONS]) ? 2 : 2 + 0.02 * s->v[SET_ITERATIONS];
	if (s->v[SET_GRANULARITY] == GRANULARITY_BLOCK) /* each op chooses again, by its block */
		cost += 2;
	if (settings_on(s, SET_AUTO_MP)) /* bisects over the ops, twice at worst */
		cost *= 10;
	return cost;
}

struct ranked {
	double cost;
	size_t at;
};

static int by_cost(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->at < y->at ? -1 : 1; /* as they were written */
}

static void sort_by_cost(struct settings_list *l)
{
	struct ranked *order = xcalloc(l->n, sizeof(*order));
	struct settings *v = xcalloc(l->n, sizeof(*v));
	size_t i;

	for (i = 0; i < l->n; i++)
		order[i] = (struct ranked){ settings_cost(&l->v[i]), i };
	qsort(order, l->n, sizeof(*order), by_cost);
	for (i = 0; i < l->n; i++)
		v[i] = l->v[order[i].at];
	free(order);
	free(l->v);
	l->v = v;
	l->cap = l->n;
}

static void find_varying(struct settings_list *l)
{
	struct settings first = l->v[0];
	size_t i;
	int k;

	for (i = 1; i < l->n; i++)
		for (k = 0; k < SETTINGS; k++) {
			if (isnan(first.v[k]))
				first.v[k] = l->v[i].v[k];
			l->varies[k] |= !isnan(l->v[i].v[k]) && l->v[i].v[k] != first.v[k];
		}
}

enum fettle_status settings_expand(struct settings_list *out, const struct settings_space *spaces, size_t n,
				   struct err *err)
{
	struct settings s = settings_default();
	size_t i;

	settings_list_release(out);
	for (i = 0; i < n; i++)
		expand(out, &spaces[i], &s, 0);
	if (out->n > SETTINGS_MAX)
		return fail(err, FETTLE_INVALID,
			    "cannot search: the spaces have more than %d candidates, give fewer values",
			    SETTINGS_MAX);
	sort_by_cost(out);
	find_varying(out);
	return FETTLE_OK;
}

/* ---- what they mean ---- */

static const char *method_name(enum range_algorithm a)
{
	return range_methods[a]->documented ? range_methods[a]->documented : range_methods[a]->name;
}

static const char *type_name(enum dtype t)
{
	return t == DT_U8 ? "QUInt8" : t == DT_S8 ? "QInt8" : t == DT_U16 ? "QUInt16" : "QInt16";
}

static const enum dtype types[] = { DT_U8, DT_S8, DT_U16, DT_S16 };

size_t setting_n_values(enum setting which)
{
	static const size_t n[] = { [SETTING_BOOL] = 2,
				    [SETTING_METHOD] = RANGE_ALGORITHMS,
				    [SETTING_DTYPE] = ARRAY_LEN(types),
				    [SETTING_FINETUNE] = N_FINETUNE_ALGORITHMS,
				    [SETTING_GRANULARITY] = N_FINETUNE_GRANULARITIES };
	enum setting_type type = setting_infos[which].type;

	return type < ARRAY_LEN(n) ? n[type] : 0;
}

double setting_at(enum setting which, size_t i)
{
	return setting_infos[which].type == SETTING_DTYPE ? (double)types[i] : (double)i;
}

static void add_value(struct str *out, enum setting_type type, double v)
{
	switch (type) {
	case SETTING_BOOL:
		str_addf(out, "%s", v == 1 ? "true" : "false");
		break;
	case SETTING_METHOD:
		str_addf(out, "%s", method_name((enum range_algorithm)v));
		break;
	case SETTING_DTYPE:
		str_addf(out, "%s", type_name((enum dtype)v));
		break;
	case SETTING_FINETUNE:
		str_addf(out, "%s", finetune_algorithms[(int)v]);
		break;
	case SETTING_GRANULARITY:
		str_addf(out, "%s", finetune_granularities[(int)v]);
		break;
	case SETTING_ALPHA:
		if (v == SMOOTH_AUTO) {
			str_addf(out, "auto");
			break;
		}
		/* fallthrough */
	default:
		str_addf(out, "%.10g", v);
	}
}

void setting_name(enum setting which, double value, struct str *out)
{
	enum setting_type type = setting_infos[which].type;
	bool number = !setting_n_values(which) && !(type == SETTING_ALPHA && value == SMOOTH_AUTO),
	     quoted = !number && type != SETTING_BOOL;

	str_addf(out, "%s", quoted ? "\"" : "");
	if (number)
		str_add_number(out, value);
	else
		add_value(out, type, value);
	str_addf(out, "%s", quoted ? "\"" : "");
}

static bool is_called(enum setting which, double value, const char *name)
{
	struct str text = STR_INIT;
	bool same;

	setting_name(which, value, &text);
	same = strcmp(text.s, name) == 0;
	str_release(&text);
	return same;
}

double setting_value(enum setting which, const char *name)
{
	size_t n = setting_n_values(which), i;
	double value;

	for (i = 0; i < n; i++)
		if (is_called(which, setting_at(which, i), name))
			return setting_at(which, i);
	if (setting_infos[which].type == SETTING_ALPHA && is_called(which, SMOOTH_AUTO, name))
		return SMOOTH_AUTO;
	value = n ? NAN : str_number(name);
	return !isnan(value) && is_called(which, value, name) ? value : NAN;
}

void settings_text(const struct settings *s, const struct settings_list *l, struct str *out)
{
	size_t before = out->n;
	int i;

	for (i = 0; i < SETTINGS; i++) {
		const struct setting_info *info = &setting_infos[i];
		const char *dot = strrchr(info->name, '.');

		if (isnan(s->v[i]) || (l && !l->varies[i]))
			continue;
		if (l && info->type == SETTING_BOOL && s->v[i] == info->first)
			continue; /* what is switched as it always is goes without saying */
		str_addf(out, "%s%s: ", out->n > before ? ", " : "", dot ? dot + 1 : info->name);
		add_value(out, info->type, s->v[i]);
	}
	if (out->n == before)
		str_addf(out, "the defaults");
}

/* what is no setting is as in `base`, if that is of the same algorithm */
static struct finetune finetune_of(const struct settings *s, const struct finetune *base)
{
	enum finetune_algorithm a = (enum finetune_algorithm)s->v[SET_OPTIM_ALGORITHM];
	struct finetune f = base->algorithm == a ? *base : finetune_defaults(a);

	f.granularity = (enum finetune_granularity)s->v[SET_GRANULARITY];
	f.data_size = (size_t)s->v[SET_DATA_SIZE];
	f.selective_update = settings_on(s, SET_SELECTIVE);
	if (isnan(s->v[SET_ITERATIONS]))
		return f;
	f.batch_size = (size_t)s->v[SET_BATCH_SIZE];
	f.iterations = (size_t)s->v[SET_ITERATIONS];
	if (s->v[SET_LEARNING_RATE] > 0)
		f.learning_rate = s->v[SET_LEARNING_RATE];
	f.seed = (uint64_t)s->v[SET_SEED];
	f.early_stop = settings_on(s, SET_EARLY_STOP);
	return f;
}

void settings_apply(const struct settings *s, struct qplan_defaults *d, struct recipes *r)
{
	qsetting_use(&d->act, (enum range_algorithm)s->v[SET_METHOD]);
	if (settings_on(s, SET_MOVING_AVERAGE)) {
		d->act.algorithm = RANGE_MOVING_AVERAGE;
		d->act.parameter = s->v[SET_AVERAGING];
	}
	if (d->act.algorithm == RANGE_PERCENTILE)
		d->act.parameter = s->v[SET_PERCENTILE];
	d->weight.algorithm = qsetting_is_pow2(&d->act) ? d->act.algorithm : RANGE_MINMAX;
	d->act.dtype = (enum dtype)s->v[SET_ACT_TYPE];
	d->act.scheme = settings_on(s, SET_ACT_SYMMETRIC) ? SCHEME_SYM : SCHEME_ASYM;
	d->weight.dtype = (enum dtype)s->v[SET_WEIGHT_TYPE];
	d->weight.scheme = settings_on(s, SET_WEIGHT_SYMMETRIC) ? SCHEME_SYM : SCHEME_ASYM;
	r->cle = settings_on(s, SET_CLE);
	r->smooth_quant = settings_on(s, SET_SQ);
	r->smooth_alpha = r->smooth_quant ? s->v[SET_SMOOTH_ALPHA] : 0;
	r->finetune = settings_on(s, SET_FAST_FT) ? finetune_of(s, &r->finetune)
						  : (struct finetune){ .algorithm = FINETUNE_OFF };
}
