/* SPDX-License-Identifier: Apache-2.0 */
/* cli/clients.h: runs a model from several client threads at once, for
 * `byoc bench --clients N --rate R`.
 */
#ifndef BYI_CLI_CLIENTS_H
#define BYI_CLI_CLIENTS_H

#include "cli.h"

#include "core/base/clock.h"
#include "driver/feed.h"

/* The maximum number of runs of a bench: their times take 128 MiB. */
enum { BYI_BENCH_MAX_RUNS = 1 << 24 };

/* The parameters and results of byi_clients_run. */
struct byi_bench_clients {
    const struct byoc_model *model;
    const struct byi_feed *in; /* inputs of every run */
    uint32_t clients;          /* number of client threads */
    uint32_t min_runs;         /* minimum number of runs of all clients */
    /* runs of all clients that are due per second; 0: each client starts its
     * next run when its last one ends */
    double rate;
    double seconds; /* minimum duration */
    /* Results: the latencies of n runs in seconds, from the time a run was due
     * to its end. The caller frees `latency` with byi_vec_free. */
    double *latency;
    uint32_t n;
    /* seconds from the start of the first run to the end of the last one */
    double elapsed;
};

/* Run until both the number of runs and the time are reached, or after
 * BYI_BENCH_MAX_RUNS. If the clients cannot keep up with the rate, runs that
 * have not begun when the time is over are dropped. Each client has its own
 * state, which it runs once before the clock starts. Results are set on success
 * only. Errors: BYOC_ENOMEM, BYOC_ELIMIT (too many threads), and the errors of
 * byoc_run. */
enum byoc_status byi_clients_run(struct byi_bench_clients *bench,
                                 struct byi_arena *arena,
                                 struct byoc_error *err);

#endif
