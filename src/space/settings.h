/*
 * The settings that a parameter search varies (AMD's Automatic Search), under their documented names. A space gives each
 * a few values; settings are one value of each, NAN for those without meaning under the others, such as a percentile
 * where the method is not that. So settings that come to the same are equal, and each is in a list once.
 *
 *	settings_expand(&list, spaces, n, err);		all of them, the cheap ones first
 *	settings_text(&list.v[0], &list, &text);	"calibrate_method: MinMax, activation_type: QInt8"
 *	settings_list_release(&list);
 */
#ifndef SPACE_SETTINGS_H
#define SPACE_SETTINGS_H

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "space/qplan.h"

enum setting {
#define SETTING(ID, ...) SET_##ID,
#include "space/settings_list.h"
#undef SETTING
	SETTINGS
};

enum setting_type {
	SETTING_BOOL,
	SETTING_INT,
	SETTING_NUMBER,
	SETTING_METHOD,
	SETTING_DTYPE,
	SETTING_ALPHA, /* a number, or SMOOTH_AUTO */
	SETTING_FINETUNE,
	SETTING_GRANULARITY
};

/* A row of settings_list.h. A setting has a meaning only where another has one of these values. */
struct setting_info {
	const char *name; /* "extra_options.FastFinetune.DataSize" */
	enum setting_type type;
	double first;      /* where a space does not name it */
	enum setting when; /* SETTINGS: always */
	unsigned values;   /* of that other: bits of whole numbers */
};
extern const struct setting_info setting_infos[SETTINGS];

struct settings {
	double v[SETTINGS]; /* NAN: without meaning */
};

/* Values of each; none: the default. Pairs, of NumIterations and LearningRate, replace those two. */
struct settings_space {
	struct setting_values {
		const double *v;
		size_t n;
	} list[SETTINGS];
	const double (*pairs)[2];
	size_t n_pairs;
};

struct settings_list {
	struct settings *v;
	size_t n, cap;
	struct map places; /* by what the settings are called */
	struct arena names;
	bool varies[SETTINGS]; /* are there several values? */
};
#define SETTINGS_LIST_INIT                                                                                   \
	{                                                                                                    \
		.n = 0                                                                                       \
	}
enum { SETTINGS_MAX = 100000 };

/* Every setting in a space that makes a difference, once, in order of settings_cost(). More than SETTINGS_MAX are
 * refused. */
enum fettle_status settings_expand(struct settings_list *out, const struct settings_space *spaces, size_t n,
				   struct err *err);
void settings_list_release(struct settings_list *l);
/* Adds one unless the list has it; false: it has. */
bool settings_add(struct settings_list *l, const struct settings *s);

bool settings_active(const struct settings *s, enum setting which); /* by the values of those before it */
struct settings settings_default(void);                             /* every first value */
/* Gives every setting without meaning NAN, and every other that is NAN its first value. */
void settings_normalise(struct settings *s);
bool settings_equal(const struct settings *a, const struct settings *b);
/* What a trial of it will take, in trials of the plainest kind: for the order, so it need not be right. */
double settings_cost(const struct settings *s);
bool settings_on(const struct settings *s, enum setting which); /* a bool, and true */

/* What a value of a setting is called, as canonical JSON, which says it exactly; and the value, NAN for what is none. */
void setting_name(enum setting which, double value, struct str *out);
double setting_value(enum setting which, const char *name);
/* How many values it can have, and one of them; 0: any number. */
size_t setting_n_values(enum setting which);
double setting_at(enum setting which, size_t i);

/* In words: what varies in the list, but for switches that are as by default; all that have a meaning where there is
 * no list. */
void settings_text(const struct settings *s, const struct settings_list *l, struct str *out);
/* What activations, weights and recipes become; what is no setting stays as it is. */
void settings_apply(const struct settings *s, struct qplan_defaults *d, struct recipes *r);

#endif
