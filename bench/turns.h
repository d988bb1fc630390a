/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h: compiles and runs several models, for benchmarks that alternate
 * between them in one process, so that other load disturbs all of them alike.
 * The functions are not thread-safe.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <byoc/byoc.h>

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* A loaded model with its inputs and outputs. Inputs of equal types have equal
 * data. After a run, `out` points into the state, until the next run. */
struct bench_side {
    struct byoc_model *model;
    struct byoc_state *state;
    DLTensor *in, *out;
};

/* The clock of bench_now(): CLOCK_MONOTONIC unless a program sets it. With one
 * thread, CLOCK_THREAD_CPUTIME_ID excludes the time of other processes. */
extern clockid_t bench_clock;
/* The time in seconds. */
double bench_now(void);
/* The median of n > 0 numbers, the upper one if n is even; sorts the list. */
double bench_median(double *list, size_t n);

/* A temporary folder for models and texts, which the first call creates. If
 * that fails, the program ends with status 2. */
const char *bench_folder(void);
/* Remove the folder, which must be empty. */
void bench_folder_remove(void);

/* Compile a model, write NAME.so to the folder, load it and remove the file.
 * Symbolic dims of its inputs become 1. Inputs get pseudo-random values.
 * threads is that of struct byoc_load_params.
 * Returns false, with nothing to close, if a gate of the params fails. Any
 * other failure ends the program with status 2, and the reason on stderr. */
bool bench_open(const char *path, const char *name,
                const struct byoc_compile_params *params, uint32_t threads,
                struct bench_side *side);
/* Like bench_open, for the text of a module. */
bool bench_open_text(const char *text, const char *name,
                     const struct byoc_compile_params *params, uint32_t threads,
                     struct bench_side *side);
/* Free the model, its state, its inputs and its outputs. */
void bench_close(struct bench_side *side);
/* Run once. Returns the time in seconds. A failure ends the program with status
 * 2. */
double bench_run(struct bench_side *side);

/* The largest difference of float32 outputs, relative to the largest absolute
 * value of b's; NaN if an element is NaN in either. Both must have run. */
double bench_difference(const struct bench_side *a, const struct bench_side *b);

#endif
