/* The options of each call of fettle.h, as tables. */
#ifndef API_OPTIONS_H
#define API_OPTIONS_H

#include "config/options.h"

extern const struct options_type options_tune, options_search, options_resume, options_quantize, options_eval,
	options_bench, options_sensitivity, options_recover, options_report, options_diff, options_inspect;

#endif
