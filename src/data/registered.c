#include "data/registered.h"

#include <stdlib.h>

#include "base/mem.h"

/* one that is open; lives as long as its dataset */
struct opened {
	const struct fettle_dataset *def;
	struct fettle_data_source source;
};

static void close_opened(void *self)
{
	struct opened *o = self;

	if (o->def->close)
		o->def->close(o->def->self, &o->source);
	free(o);
}

enum fettle_status registered_dataset_open(const struct fettle_dataset *def, const char *root,
					   const struct fettle_setting *params, size_t n_params,
					   const struct dataset_options *opt, struct dataset **out,
					   struct err *err)
{
	struct opened *o = xcalloc(1, sizeof(*o));
	enum fettle_status st;
	const char *why;

	o->def = def;
	o->source.size = sizeof(o->source);
	why = def->open(def->self, root, params, n_params, &o->source);
	if (why) {
		st = fail(err, FETTLE_INVALID, "cannot read dataset %s %s: %s", def->name, root ? root : "",
			  why);
		free(o);
		return st;
	}
	if (!o->source.name)
		o->source.name = def->name;
	st = dataset_open_source(out, &o->source, opt, err);
	if (st)
		close_opened(o);
	else
		dataset_on_close(*out, close_opened, o);
	return st;
}
