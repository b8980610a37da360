/* Printing by the schema; for the files of this folder. */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include "config/schema.h"

struct print_line {
	char *text, *comment; /* comment may be NULL */
};

struct printer {
	const struct config *c;
	VEC(struct print_line) lines;
	int depth;
	struct str *identity; /* for config_identity(): gets "dotted.name: value" lines instead */
	VEC(const char *) path;
};

/* "key: value   # origin"; at NULL: the default. The value is YAML already. */
void print_line(struct printer *p, const char *key, const char *value, const struct config_origin *at);
/* "key:", and what follows belongs to it; print_close() takes back a key that nothing followed. */
void print_open(struct printer *p, const char *key);
void print_close(struct printer *p);
void print_keys(struct printer *p, const struct key *keys, const void *base);
/* A value as YAML; not of maps, custom keys and KEY_ALLOWED. */
void print_value_text(struct str *s, const struct key *k, const void *field);
void print_numbers(struct printer *p, const struct key *k, const struct config_numbers *list);

#endif
