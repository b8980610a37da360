/* Finds and loads the plug-in library that ranks talk through. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tune/ranks.h"
#include "tune/transport.h"

#define PLUGIN "fettle_mpi.so"

/* in the folder of this library, or of the program that it is part of, or in fettle/ there; NULL: in neither */
static char *beside_library(void)
{
	static const char *const folders[] = { "", "fettle/" };
	Dl_info here;
	size_t i;

	for (i = 0; dladdr(PLUGIN, &here) && i < ARRAY_LEN(folders); i++) {
		char *name = xstrfmt("%s" PLUGIN, folders[i]), *path = path_beside(here.dli_fname, name);

		free(name);
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static enum fettle_status load(const char *path, const struct transport **out, struct err *err)
{
	/* MPI loads parts of itself, which must find its symbols */
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL), *symbol;
	const char *why = "";
	transport_entry *entry;

	if (!library)
		return fail(err, FETTLE_INVALID, "cannot run as one of several ranks: %s", dlerror());
	symbol = dlsym(library, TRANSPORT_ENTRY);
	if (!symbol)
		return fail(err, FETTLE_INVALID,
			    "cannot run as one of several ranks: %s has no function " TRANSPORT_ENTRY
			    ", need one",
			    path);
	memcpy(&entry, &symbol, sizeof(entry)); /* ISO C knows no cast from data to function */
	*out = entry(TRANSPORT_ABI, &why);
	return *out ? FETTLE_OK
		    : fail(err, FETTLE_SYSTEM, "cannot run as one of several ranks: %s: %s", path, why);
}

enum fettle_status transport_load(const struct transport **out, struct err *err)
{
	const char *named = getenv("FETTLE_MPI_PLUGIN");
	char *path = named && *named ? xstrdup(named) : beside_library();
	enum fettle_status st;

	if (!path)
		return fail(err, FETTLE_INVALID,
			    "cannot run as one of several ranks: there is no " PLUGIN
			    "; build it with 'make mpi' (it needs mpicc), or name it in FETTLE_MPI_PLUGIN");
	st = load(path, out, err);
	free(path);
	return st;
}
