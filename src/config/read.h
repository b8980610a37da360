/* Reading YAML by the schema; for the files of this folder. */
#ifndef CONFIG_READ_H
#define CONFIG_READ_H

#include "base/locale.h"
#include "config/schema.h"

struct field_origin {
	size_t offset; /* in struct config */
	struct config_origin at;
	const char *yields; /* the name of a key that another name of it overrules; NULL: none does */
};

struct config_state {
	struct arena arena;
	VEC(struct field_origin) origins;
	VEC(struct config_note) notes;
	const struct key *keys[KEY_MAKERS]; /* of key_table() */
	struct config *defaults;            /* as config_defaults() leaves it */
	struct config_source from;
};

/* Is it a key of a dataset that names a file it reads beside its root? */
bool config_is_data_file(const char *key);

/* What follows from the settings together: implied values, notes, and errors where they contradict. */
enum fettle_status config_finish(struct config *c, struct err *err);

/* One text being read: a file, or the value of a flag. */
struct reader {
	struct config *c;
	const char *source;     /* one pointer per reading, so that it also distinguishes readings */
	bool is_file;           /* positions mean something, and paths are relative to it */
	const char *path;       /* dotted name of what is being read */
	const struct yaml *key; /* the key itself; NULL in a flag */
	struct err *err;
};

/* The key of that name, or NULL; then *nearest is one like it, or NULL. */
const struct key *find_key(const struct key *keys, const char *name, const char **nearest);

/* The value of a key whose table starts at `base`. */
enum fettle_status read_key(struct reader *r, const struct key *k, void *base, const struct yaml *y);
/* All keys of a map. */
enum fettle_status read_map(struct reader *r, const struct key *keys, void *base, const struct yaml *y);

struct config_origin origin_of(const struct reader *r, const struct yaml *y);
/* "FILE:LINE:COLUMN: cannot set PATH: …" */
enum fettle_status fail_value(const struct reader *r, const struct yaml *y, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts the position before the message that is already in r->err. */
enum fettle_status fail_here(const struct reader *r, const struct yaml *y, enum fettle_status st);
/* Records that a member of struct config was set; an error when this reading had set it before. */
enum fettle_status mark(struct reader *r, const void *field, const struct yaml *y);
void add_note(struct config *c, const struct config_origin *at, bool derived, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* "a.b" + "." + "c" */
const char *path_add(struct reader *r, const char *key);

/* INC's first versions left the dashes of lists out: `- name: x` and `- framework: y` are one map. Others come back as they are. */
enum fettle_status as_map(struct reader *r, const struct yaml **y);

/* The scalars of a list, of a text with commas, or the one there is; each with its position. */
struct items {
	struct yaml **v;
	size_t n;
};
enum fettle_status read_items(struct reader *r, const struct yaml *y, struct items *out);
bool parse_number(const char *text, double *out); /* finite */
/* Within the limits of the key; `whole`: no fraction. */
enum fettle_status read_number(struct reader *r, const struct key *k, const struct yaml *y, bool whole,
			       double *out);
enum fettle_status read_text(struct reader *r, const struct yaml *y, const char **out);
enum fettle_status read_path(struct reader *r, const struct yaml *y, const char **out);
/* How a value looks in a message: a short text, "a list" or "a map". */
const char *describe(const struct reader *r, const struct yaml *y);

#endif
