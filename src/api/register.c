/* What a caller brings: members, plug-ins, arrays. */
#include "api/internal.h"
#include "data/arrays.h"

#define REGISTER(kind)                                                                                       \
	enum fettle_status fettle_register_##kind(struct fettle *f, const struct fettle_##kind *kind)        \
	{                                                                                                    \
		f->cx.err.msg[0] = '\0';                                                                     \
		return members_add_##kind(&f->cx.members, kind, &f->cx.err);                                 \
	}
REGISTER(strategy)
REGISTER(metric)
REGISTER(loss)
REGISTER(dataset)

enum fettle_status fettle_load_plugin(struct fettle *f, const char *path)
{
	f->cx.err.msg[0] = '\0';
	return members_load(&f->cx.members, path, &f->cx.err);
}

struct fettle_data *fettle_data_new(void)
{
	return arrays_new();
}

void fettle_data_free(struct fettle_data *d)
{
	arrays_free(d);
}

enum fettle_status fettle_data_add(struct fettle *f, struct fettle_data *d, const char *name,
				   enum fettle_dtype dtype, int rank, const int64_t *dims, const void *values)
{
	api_clear(f);
	return arrays_add(d, &(struct fettle_field){ name, dtype, rank, dims }, values, &f->cx.err);
}
