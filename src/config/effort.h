#ifndef CONFIG_EFFORT_H
#define CONFIG_EFFORT_H

#include "config/run.h"

/* Options -> lab options; before the data are opened. */
enum fettle_status effort_read(struct run *u);
/* What of that does not go with this data and metric is said and left. */
void effort_restrict(struct run *u);
#define CACHE_DEFAULT ((size_t)1 << 30)
/* "2G" */
enum fettle_status parse_size(const char *text, size_t *out, struct err *err);
/* A share of `whole`, "0.3", or bytes, "300MB". */
enum fettle_status parse_budget(const char *text, size_t whole, size_t *out, struct err *err);

#endif
