/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/by_cost.h: --partition-by=measured: time what vendors could take,
 * choose for the whole graph, and hold the result against all native and
 * greedy. --partition-by=estimated: ask vendors what it would take.
 */
#ifndef BYI_BY_COST_H
#define BYI_BY_COST_H

#include "compile/image.h"

/* Zero-initialise, then set what is above the line. */
struct byi_by_cost {
    const struct byi_found *found;
    struct byi_arena *arena; /* gets what the assignment is made of */
    struct byi_ledger *ledger;
    uint32_t threads;
    const char *plugins, *cc;
    const char *table; /* a file; NULL: the default */
    double seconds;    /* to spend on timing parts; 0: a minute */
    void (*progress)(void *ctx, const char *what, uint32_t done, uint32_t of);
    void *progress_ctx;
    /* ------------------------------------------------------------------- */
    struct byi_text notes; /* lines: what the user should know */
    uint32_t n_timed;      /* parts and wholes that were run to be timed */
};

/* The `decide` of struct byi_vendors; its context is a struct byi_by_cost. */
enum byoc_status byi_by_cost(void *by_cost, struct byi_module *m,
                             struct byi_pass_context *ctx,
                             struct byoc_error *err);

/* by_estimate.c: the same for --partition-by=estimated. Of what several vendors
 * take, another one than the first gets it where both their cost() answer, and
 * its answer is lower. Errors: BYOC_ELIMIT (vendors). */
enum byoc_status byi_by_estimate(void *by_cost, struct byi_module *m,
                                 struct byi_pass_context *ctx,
                                 struct byoc_error *err);

#endif
