/* SPDX-License-Identifier: Apache-2.0 */
/* transform/scope.h: the scopes of values. A scope is the body of a function or
 * a branch of an `if`. A value belongs to the lowest scope that contains all
 * its readers. A function literal that is not a branch is a separate scope,
 * which values of other scopes never enter, since it may be called many times.
 */
#ifndef BYI_SCOPE_H
#define BYI_SCOPE_H

#include "call_graph.h"

struct byi_scopes;

/* Prepare to find the scopes of m's values; m must not change while the result,
 * which is in `scratch`, is in use. */
struct byi_scopes *byi_scopes_new(const struct byi_module *m,
                                  struct byi_arena *scratch);
/* Whether `func` is the root of a tree of scopes: it exists, may be changed and
 * is not a branch. byi_scopes_assign handles a root and its branches together.
 */
bool byi_scopes_is_root(const struct byi_scopes *s, uint32_t func);
/* Returns the named function that contains `func`, or is `func`. */
uint32_t byi_scopes_holder(const struct byi_scopes *s, uint32_t func);
/* Find the scopes of the values of `func`, which must be a root, and of its
 * branches. */
void byi_scopes_assign(struct byi_scopes *s, uint32_t func);

/* A value that is not in the scope to which it belongs. */
struct byi_misplaced_value {
    uint32_t func; /* the function that has it */
    byi_id id;
    uint32_t into; /* the branch to which it belongs */
};
/* Find the first misplaced value of the function that byi_scopes_assign handled
 * last. Returns false if there is none. */
bool byi_scopes_find_misplaced(const struct byi_scopes *s,
                               struct byi_misplaced_value *out);

/* Which values become lets. */
enum byi_let {
    BYI_LET_SHARED, /* values that functions and branches capture become lets */
    BYI_LET_ALL     /* every value except constants and globals */
};
/* Rebuild every function of m with every value in its scope. Values without
 * readers are dropped; types are unchanged. Constants and globals move with
 * their readers. A function in which a branch would capture more than
 * BYI_MAX_ARGS values is unchanged. The run_module of a pass whose data are an
 * enum byi_let. */
enum byoc_status byi_scopes_normalize(struct byi_module *m,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err);

#endif
