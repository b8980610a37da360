/*
 * From what an observer has seen to the range that will be quantized: one file per algorithm, listed in
 * calibrate/list.h. All work at the end, from the histogram; none needs the data again.
 */
#ifndef CALIBRATE_RANGE_H
#define CALIBRATE_RANGE_H

#include "calibrate/observer.h"
#include "tensor/quant.h"

enum range_algorithm {
#define RANGE(ID, id) RANGE_##ID,
#include "calibrate/list.h"
#undef RANGE
	RANGE_ALGORITHMS
};

struct range_options {
	enum range_algorithm algorithm;
	double parameter;   /* the algorithm's, if it has one */
	enum dtype dtype;   /* DT_U8, DT_S8, DT_U16 or DT_S16; kl, mse and the powers of two depend on */
	enum scheme scheme; /* how many levels there are, and where */
};
#define RANGE_OPTIONS_INIT                                                                                   \
	{                                                                                                    \
		.algorithm = RANGE_MINMAX, .dtype = DT_U8, .scheme = SCHEME_ASYM                             \
	}

struct range {
	float min, max; /* finite, and min <= 0 <= max */
};

/* What a member of the list is. `find` is called with at least one value seen; its range may be off zero. */
struct range_method {
	const char *name, *summary;
	const char *aliases[3]; /* what other tools call it */
	const char *documented; /* its name as a value of calibrate_method; NULL: as above */
	const char *family;     /* the enum it belongs to there: "CalibrationMethod"; NULL: none */
	bool by_switch;         /* it is no value of calibrate_method, but has a setting of its own there */
	unsigned tried;         /* by a search, 1 before 2; 0: where the user allows it only */
	bool for_weights;       /* weights have it, too */
	bool power_of_two;      /* its scale is a power of two */
	struct {
		const char *key; /* in plans; NULL: it has none */
		double min, max, by_default;
	} parameter;
	enum fettle_status (*find)(const struct observer *o, const struct range_options *opt,
				   struct range *out, struct err *err);
};
#define RANGE(ID, id) extern const struct range_method range_##id;
#include "calibrate/list.h"
#undef RANGE
extern const struct range_method *const range_methods[RANGE_ALGORITHMS]; /* by enum range_algorithm */

/* The k-th algorithm in order of preference: those that a search tries first. */
enum range_algorithm range_preferred(size_t k);

/* FETTLE_INVALID when the observer has seen no values or an option is out of its bounds. */
enum fettle_status range_compute(const struct observer *o, const struct range_options *opt, struct range *out,
				 struct err *err);

/*
 * The algorithm of that name or alias; case, '_', '-' and the prefixes of other tools' enums
 * ("CalibrationMethod.", "PowerOfTwoMethod.") do not matter. FETTLE_INVALID names the nearest.
 */
enum fettle_status range_parse(const char *name, enum range_algorithm *out, struct err *err);

/* For the members: how many steps the type has over [min, max] (asymmetric) or [0, max] (symmetric). */
int32_t range_steps(const struct range_options *opt);

#endif
