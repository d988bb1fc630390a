/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/by_cost.h: --partition-by=measured: times the nodes that backends can
 * run, places them, and compares the result with native execution and greedy
 * partitioning. --partition-by=estimated: asks backends for estimates.
 */
#ifndef BYI_BY_COST_H
#define BYI_BY_COST_H

#include "compile/image.h"

/* Zero-initialise, then set the members above the line; pointers are borrowed.
 */
struct byi_by_cost {
    const struct byi_found *found; /* the plug-ins */
    struct byi_arena *arena;       /* owns the assignment */
    struct byi_ledger *ledger;
    uint32_t threads;
    const char *plugins, *cc;
    const char *table; /* path of the cost table; NULL: the default */
    double seconds;    /* limit for timing parts; 0: 60 */
    /* called after each part, `done` of `of`; NULL: not called */
    void (*progress)(void *ctx, const char *what, uint32_t done, uint32_t of);
    void *progress_ctx;
    /* ------------------------------------------------------------------- */
    struct byi_text notes; /* lines for the user; the caller frees them */
    uint32_t n_timed;      /* parts and whole models that were timed */
};

/* The `decide` of struct byi_backends, with a struct byi_by_cost as context.
 * Errors: BYOC_EINVAL (a backend is not a plug-in), BYOC_ELIMIT (too many
 * backends), those of passes. */
enum byoc_status byi_by_cost(void *by_cost, struct byi_module *m,
                             struct byi_pass_context *ctx,
                             struct byoc_error *err);

/* by_estimate.c: the `decide` for --partition-by=estimated. A candidate that
 * several backends can run is assigned to the backend with the lowest cost(),
 * or to the first of these backends if that has no estimate. Errors:
 * BYOC_ELIMIT (too many backends), those of passes. */
enum byoc_status byi_by_estimate(void *by_cost, struct byi_module *m,
                                 struct byi_pass_context *ctx,
                                 struct byoc_error *err);

#endif
