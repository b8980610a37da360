#include "tune/stop_words.h"

#include <string.h>

#include "base/mem.h"

static const char *const stop_words[] = {
	[FETTLE_STOP_ACCURACY_MET] = "accuracy_met", [FETTLE_STOP_MAX_TRIALS] = "max_trials",
	[FETTLE_STOP_TIMEOUT] = "timeout",           [FETTLE_STOP_EXHAUSTED] = "exhausted",
	[FETTLE_STOP_INTERRUPTED] = "interrupted",
};

const char *stop_word(enum fettle_stop why)
{
	return (unsigned)why < ARRAY_LEN(stop_words) ? stop_words[why] : NULL;
}

enum fettle_stop stop_of_word(const char *word)
{
	size_t i;

	for (i = FETTLE_STOP_NONE + 1; word && i < ARRAY_LEN(stop_words); i++)
		if (strcmp(stop_words[i], word) == 0)
			return (enum fettle_stop)i;
	return FETTLE_STOP_NONE;
}
