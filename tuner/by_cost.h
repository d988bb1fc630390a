/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/by_cost.h: partitioning by times.
 * --partition-by=measured (by_measurement.c): times the nodes that backends can
 * run, places them, and compares the result with native execution and greedy
 * partitioning.
 * --partition-by=estimated (by_estimate.c): places nodes by the backends'
 * estimates.
 */
#ifndef BYI_BY_COST_H
#define BYI_BY_COST_H

#include "compile/image.h"

/* Zero-initialise, then set the members above the line; pointers are borrowed.
 */
struct byi_cost_partition {
    const struct byi_found_backends *found; /* the plug-ins */
    struct byi_arena *arena;                /* owns the assignment */
    struct byi_ledger *ledger;
    uint32_t threads;    /* of the timed runs, as in byoc_load_params */
    const char *plugins; /* where the timed artifacts find plug-ins, as in
                          * byoc_load_params; NULL: the default */
    const char *cc;      /* C compiler, or NULL */
    const char *table;   /* path of the cost table; NULL: the default */
    double seconds;      /* time limit of measuring workloads; 0: 60 */
    /* called after each workload (workloads.h): `done` of `total` workloads are
     * timed, `activity` is "measuring"; NULL: not called */
    void (*progress)(void *ctx, const char *activity, uint32_t done,
                     uint32_t total);
    void *progress_ctx;
    /* ------------------------------------------------------------------- */
    struct byi_text notes; /* lines for the user; the caller frees them */
    uint32_t n_timed;      /* workloads that were timed; + 1 for the
                              whole model */
};

/* The `decide` of struct byi_backends for --partition-by=measured: sets the
 * context's assignment by measured times. `by_cost` is a struct
 * byi_cost_partition. Errors: BYOC_EINVAL (a backend is not a plug-in),
 * BYOC_ELIMIT (too many backends), those of passes. */
enum byoc_status byi_decide_by_measurement(void *by_cost, struct byi_module *m,
                                           struct byi_pass_context *ctx,
                                           struct byoc_error *err);

/* by_estimate.c: the `decide` for --partition-by=estimated. A candidate that
 * several backends can run is assigned to the backend with the lowest cost().
 * A candidate stays with the first of these backends if that backend has no
 * estimate, since nothing can be compared with it.
 * Errors: BYOC_ELIMIT (too many backends), those of passes. */
enum byoc_status byi_decide_by_estimate(void *by_cost, struct byi_module *m,
                                        struct byi_pass_context *ctx,
                                        struct byoc_error *err);

#endif
