#include "base/why.h"

#include <stdio.h>

#include "fettle.h"

/* A global per thread, because a plug-in's function knows no handle. */
static _Thread_local char why[256];

void fettle_callback_failed(const char *message)
{
	snprintf(why, sizeof(why), ": %s", message && *message ? message : "no reason given");
}

void why_forget(void)
{
	why[0] = '\0';
}

const char *why_text(void)
{
	return why;
}
