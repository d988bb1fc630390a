/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h: compiles models and runs them in turns in one process, so that other
 * load disturbs all of them alike.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <byoc/byoc.h>

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { BENCH_MAX_IO = 64 };

/* A model that is loaded, with inputs of its own: the same numbers for the
 * same shapes. */
struct bench_side {
    struct byoc_model *model;
    struct byoc_state *state;
    DLTensor in[BENCH_MAX_IO], out[BENCH_MAX_IO];
};

/* Seconds of `bench_clock`: CLOCK_MONOTONIC unless a program sets it. For one
 * thread CLOCK_THREAD_CPUTIME_ID excludes the time of other processes. */
extern clockid_t bench_clock;
double bench_now(void);
/* The median; sorts the list. */
double bench_median(double *list, size_t n);

/* A folder in /tmp for models and texts; created by the first call. */
const char *bench_folder(void);
void bench_folder_remove(void);

/* Compiles a model, writes NAME.so in the folder, and loads it. Returns false,
 * with nothing to close, if a gate of the params fails. Any other failure ends
 * the program with status 2, and the reason on stderr. */
bool bench_open(const char *path, const char *name,
                const struct byoc_compile_params *params, uint32_t threads,
                struct bench_side *side);
void bench_close(struct bench_side *side);
/* Runs once; returns the seconds. */
double bench_run(struct bench_side *side);

/* The largest difference of float32 outputs, relative to the largest value;
 * NaN if an element is NaN in only one of the two. Both must have run. */
double bench_difference(const struct bench_side *a, const struct bench_side *b);

#endif
