/* Numbers are written and read as in C, whatever the program's locale, until plain_locale_end(). */
#ifndef BASE_LOCALE_H
#define BASE_LOCALE_H

#include <locale.h>

struct plain_locale {
	locale_t ours, before;
};
struct plain_locale plain_locale_begin(void);
void plain_locale_end(struct plain_locale *l);

#endif
