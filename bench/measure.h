/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h: measures the time per node on graphs of four sizes, each in a
 * separate process, and shows whether this time grows with the size.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_SIZES = 4, BENCH_MAX_STEPS = 8 };
extern const uint32_t bench_sizes[BENCH_SIZES]; /* 1e3 to 1e6 nodes */

/* The measurements of one process, which runs up to BENCH_MAX_STEPS steps.
 * Seconds are CPU time; bytes are the peak of resident memory minus the
 * resident memory before the step, which includes the module. */
struct bench_result {
    struct bench_step {
        double seconds;
        uint64_t nodes, bytes;
    } steps[BENCH_MAX_STEPS];
    bool failed;
    char why[200]; /* if failed: the reason */
};

/* Times a step over a graph of `nodes` nodes. bench_begin() first evicts the
 * caches. It touches as many free pages as a step may need, so that page faults
 * cost the same at every size. bench_end() sets the step's seconds and bytes.
 */
struct bench_start {
    double seconds;    /* CPU time */
    uint64_t resident; /* bytes */
};
struct bench_start bench_begin(uint64_t nodes);
void bench_end(const struct bench_start *start, struct bench_step *step);

/* Run `work`, with `arg` as its argument, on a graph of `size` nodes several
 * times. Each run is in a new process, so that small graphs, too, start with
 * cold caches. `shape` is passed on to `work`, which must set steps[0..n-1] of
 * *run with their nodes, or `failed` and `why`. Returns the medians of the n
 * steps, or the first run that failed. */
typedef void (*bench_work)(const void *arg, uint32_t shape, uint32_t size,
                           struct bench_result *run);
struct bench_result bench_measure(bench_work work, const void *arg,
                                  uint32_t shape, uint32_t size, uint32_t n);

/* Print the head of a table, and a row: the time per node for every size up to
 * `max`; the time per node at 1e6 nodes divided by that at 1e4 (marked if above
 * 2); and the memory per node and the seconds of the largest size up to `max`.
 * The row ends at the first size that failed, with the reason. */
void bench_head(const char *title);
void bench_row(const char *name, uint32_t max,
               const struct bench_result runs[BENCH_SIZES], uint32_t step);

#endif
