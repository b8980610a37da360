/* YAML as a tree of nodes with positions; no other file sees libfyaml. */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum yaml_type { YAML_SCALAR, YAML_LIST, YAML_MAP };

/* An alias is its anchor's node: the tree may share parts, but has no cycles. */
struct yaml {
	enum yaml_type type;
	int line, column;  /* from 1 */
	const char *text;  /* of a scalar; never NULL there */
	bool quoted;       /* it was; then it is no null */
	struct yaml **v;   /* items of a list, values of a map */
	struct yaml **key; /* of a map: scalars, all different */
	size_t n;
	size_t size; /* nodes below and including this one, shared ones counted each time */
};

enum { YAML_NODES_MAX = 50000, YAML_DEPTH_MAX = 50, YAML_BYTES_MAX = 1 << 20 };

/*
 * The one document in text[0..n), or *out = NULL when there is none. Nodes live in the arena. `name` stands
 * before ":LINE:COLUMN: " in messages. Duplicate keys, tags, several documents and trees above the limits
 * are errors, so that a few aliases cannot stand for more than YAML_NODES_MAX nodes.
 */
enum fettle_status yaml_parse(struct yaml **out, struct arena *arena, const char *text, size_t n,
			      const char *name, struct err *err);

struct yaml *yaml_scalar(struct arena *arena, const char *text, bool quoted);

bool yaml_is_null(const struct yaml *y); /* empty, ~ or null; also y == NULL */
bool yaml_is_text(const struct yaml *y); /* a scalar that is not null */

/* Writes it in flow style, on one line, so that it reads the same again. */
void yaml_print(const struct yaml *y, struct str *out);
void yaml_print_text(const char *text, struct str *out); /* a string, quoted where it must be */

#endif
