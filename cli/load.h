/* SPDX-License-Identifier: Apache-2.0 */
/* cli/load.h: runs of several clients at once: `byoc bench --clients --rate`.
 */
#ifndef BYI_CLI_LOAD_H
#define BYI_CLI_LOAD_H

#include "cli.h"

#include "driver/feed.h"

double byi_clock(void); /* seconds, of CLOCK_MONOTONIC */

struct byi_bench_load {
    const struct byoc_model *model;
    const struct byi_feed *in; /* of every run */
    uint32_t clients, least;   /* threads; runs of all of them */
    /* runs that are due in a second; 0: each client begins a run when its last
     * one ends */
    double rate;
    double seconds;
    /* results */
    /* of each run in seconds, from when it was due; the caller frees it with
     * byi_vec_free */
    double *latency;
    uint32_t n;
    double elapsed; /* seconds, of all runs together */
};

/* Run until both the number of runs and the time are reached. At a rate that
 * the clients cannot keep up with, runs that are due and have not begun when
 * the time is over are left out. Each client has a state of its own, with one
 * run before the time begins. Results are set on success only. */
enum byoc_status byi_load_run(struct byi_bench_load *load,
                              struct byi_arena *arena, struct byoc_error *err);

#endif
