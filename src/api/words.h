/* Words of the interface's enums, as JSON, the history and messages have them. */
#ifndef API_WORDS_H
#define API_WORDS_H

#include "fettle.h"

enum fettle_stop stop_of_word(const char *word); /* FETTLE_STOP_NONE: no such word, or NULL */

#endif
