#include "calibrate/range.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

const struct range_method *const range_methods[RANGE_ALGORITHMS] = {
#define RANGE(ID, id) &range_##id,
#include "calibrate/list.h"
#undef RANGE
};

enum range_algorithm range_preferred(size_t k)
{
	unsigned rank;
	int i;

	for (rank = 1; rank <= RANGE_ALGORITHMS + 1; rank++)
		for (i = 0; i < RANGE_ALGORITHMS; i++)
			if (range_methods[i]->tried == (rank <= RANGE_ALGORITHMS ? rank : 0) && !k--)
				return (enum range_algorithm)i;
	return RANGE_MINMAX; /* there are not so many */
}

static const char *without_prefix(const char *name)
{
	static const char *const prefixes[] = { "CalibrationMethod.", "ExtendedCalibrationMethod.",
						"PowerOfTwoMethod." };
	size_t i;

	for (i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return name + strlen(prefixes[i]);
	return name;
}

static bool same_name(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (*a == '_' || *a == '-')
			a++;
		while (*b == '_' || *b == '-')
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
	}
}

static bool is_called(const struct range_method *m, const char *name)
{
	size_t i;

	if (same_name(name, m->name))
		return true;
	for (i = 0; i < ARRAY_LEN(m->aliases) && m->aliases[i]; i++)
		if (same_name(name, m->aliases[i]))
			return true;
	return false;
}

enum fettle_status range_parse(const char *name, enum range_algorithm *out, struct err *err)
{
	const char *names[RANGE_ALGORITHMS], *nearest;
	int i;

	for (i = 0; i < RANGE_ALGORITHMS; i++) {
		if (is_called(range_methods[i], without_prefix(name))) {
			*out = (enum range_algorithm)i;
			return FETTLE_OK;
		}
		names[i] = range_methods[i]->name;
	}
	nearest = str_nearest(without_prefix(name), names, ARRAY_LEN(names));
	if (nearest)
		return fail(err, FETTLE_INVALID,
			    "cannot use calibration algorithm %s: unknown name, did you mean %s", name,
			    nearest);
	return fail(err, FETTLE_INVALID, "cannot use calibration algorithm %s: unknown name, must be one of "
#define RANGE(ID, id) " " #id
#include "calibrate/list.h"
#undef RANGE
		    ,
		    name);
}

int32_t range_steps(const struct range_options *opt)
{
	return (int32_t)rint(1 / (double)quant_params(0, 1, opt->dtype, opt->scheme, false).scale);
}

static enum fettle_status check_options(const struct observer *o, const struct range_options *opt,
					struct err *err)
{
	if (!o->count)
		return fail(err, FETTLE_INVALID, "cannot calibrate tensor %s: no samples, need at least one",
			    o->name);
	if ((unsigned)opt->algorithm >= RANGE_ALGORITHMS)
		return fail(err, FETTLE_INVALID, "cannot calibrate tensor %s: algorithm %d, must be below %d",
			    o->name, (int)opt->algorithm, RANGE_ALGORITHMS);
	if (opt->dtype != DT_U8 && opt->dtype != DT_S8 && opt->dtype != DT_U16 && opt->dtype != DT_S16)
		return fail(err, FETTLE_INVALID,
			    "cannot calibrate tensor %s: type %s, must be an integer of 8 or 16 bits",
			    o->name, dtype_name(opt->dtype));
	return FETTLE_OK;
}

static float to_float(double x)
{
	return (float)fmin(fmax(x, -FLT_MAX), FLT_MAX);
}

enum fettle_status range_compute(const struct observer *o, const struct range_options *opt, struct range *out,
				 struct err *err)
{
	struct range r = { 0, 0 };
	enum fettle_status st;

	st = check_options(o, opt, err);
	if (st)
		return st;
	st = range_methods[opt->algorithm]->find(o, opt, &r, err);
	if (st)
		return st;
	out->min = to_float(fmin(r.min, 0));
	out->max = to_float(fmax(r.max, 0));
	return FETTLE_OK;
}
