#include "base/locale.h"

struct plain_locale plain_locale_begin(void)
{
	struct plain_locale l = { .ours = newlocale(LC_ALL_MASK, "C", (locale_t)0) };

	l.before = uselocale(l.ours); /* without a locale of ours, this changes nothing */
	return l;
}

void plain_locale_end(struct plain_locale *l)
{
	uselocale(l->before);
	if (l->ours)
		freelocale(l->ours);
}
