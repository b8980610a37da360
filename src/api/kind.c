/* What a model is, told to the user. */
#include <stdlib.h>

#include "api/request.h"
#include "base/str.h"

void api_note_kind(struct fettle *f, const struct subject *s)
{
	char *text = NULL;

	if (s->hidden && !s->quantized)
		text = xstrfmt("%s: only the main graph is quantized, and only its multiply-adds count",
			       s->hidden);
	if (text)
		api_note(f, text);
	free(text);
}

enum fettle_status api_nothing(struct fettle *f, const struct subject *s, const char *verb, const char *path)
{
	if (s->quantized)
		return fail(&f->err, FETTLE_INVALID,
			    "cannot %s %s: it is %s, need the float model it was made from", verb, path,
			    s->quantized);
	if (s->hidden)
		return fail(&f->err, FETTLE_INVALID,
			    "cannot %s %s: nothing in its main graph can be quantized (%s, and only the main "
			    "graph is quantized)",
			    verb, path, s->hidden);
	return fail(&f->err, FETTLE_INVALID,
		    "cannot %s %s: it has no op that can be quantized ('fettle inspect' says why)", verb,
		    path);
}
