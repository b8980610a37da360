/* Minimum cuts of a network with capacities: the cheapest set of edges that separates the source from the sink. */
#ifndef TUNE_MINCUT_H
#define TUNE_MINCUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUT_SOURCE, CUT_SINK, CUT_NODES }; /* the caller's nodes are numbered from CUT_NODES */
#define CUT_NEVER (INT64_MAX / 4)         /* the capacity of an edge that must not be cut */

struct mincut;
struct mincut *mincut_new(void);
void mincut_free(struct mincut *c);
size_t mincut_node(struct mincut *c); /* a new one */
/* Costs `capacity` when `from` ends up on the source's side and `to` on the sink's. */
void mincut_edge(struct mincut *c, size_t from, size_t to, int64_t capacity);
void mincut_solve(struct mincut *c);
bool mincut_at_source(const struct mincut *c, size_t node); /* after mincut_solve() */

#endif
