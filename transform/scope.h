/* SPDX-License-Identifier: Apache-2.0 */
/* transform/scope.h: where values belong. A scope is the body of a function or
 * a branch of an `if`; a value belongs to the lowest scope that holds all who
 * read it. Literals that are no branches are scopes of their own, which no
 * value of another enters: they could be called many times.
 */
#ifndef BYI_SCOPE_H
#define BYI_SCOPE_H

#include "call_graph.h"

struct byi_scopes;

/* Prepare for the functions of m as they are now. In `scratch`. */
struct byi_scopes *byi_scopes_new(const struct byi_module *m,
                                  struct byi_arena *scratch);
/* Function `func` is there, may be touched, and is no branch: it and the
 * branches in it are settled together. */
bool byi_scopes_is_root(const struct byi_scopes *s, uint32_t func);
/* The function with a name that holds `func`, or is it. */
uint32_t byi_scopes_holder(const struct byi_scopes *s, uint32_t func);
/* Find where the values of `func` and the branches in it belong. */
void byi_scopes_settle(struct byi_scopes *s, uint32_t func);

/* A value that is not where it belongs. */
struct byi_stray {
    uint32_t func; /* where it is */
    byi_id id;
    uint32_t into; /* the branch to which it belongs */
};
/* The first one of what byi_scopes_settle looked at; false when none. */
bool byi_scopes_stray(const struct byi_scopes *s, struct byi_stray *out);

enum byi_let {
    BYI_LET_SHARED, /* what functions and branches capture becomes a let */
    BYI_LET_ALL     /* every value does, but for constants and globals */
};
/* Rebuild every function of m, every value where it belongs. Values that nobody
 * reads are dropped; types stay as they are. A constant or a global goes along
 * with its readers. A function where a branch would capture more than
 * BYI_MAX_ARGS values stays as it is. */
void byi_scopes_normalize(struct byi_module *m, struct byi_arena *scratch,
                          enum byi_let let);

#endif
