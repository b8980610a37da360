/* Why a run ended, as JSON, the history and messages have it. */
#ifndef TUNE_STOP_WORDS_H
#define TUNE_STOP_WORDS_H

#include "fettle.h"

const char *stop_word(enum fettle_stop why);     /* NULL: it has not ended */
enum fettle_stop stop_of_word(const char *word); /* FETTLE_STOP_NONE: no such word, or NULL */

#endif
