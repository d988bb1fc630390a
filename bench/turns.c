/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c: compiles, loads and runs models, for benchmarks that alternate
 * between several.
 */
#include "turns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/openmp.h"
#include "runtime/internal.h"

static void on_workers(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                       void *arg)
{
    (void)ctx;
    byoc_internal_parallel_for(n, fn, arg);
}

/* Parallel loops of the benchmarks run on byoc's threads. */
const struct byi_omp_host byi_omp_default_host = {on_workers, NULL, 1};

static char folder[] = "/tmp/byoc-bench-XXXXXX";
static bool folder_exists;

clockid_t bench_clock = CLOCK_MONOTONIC;

double bench_now(void)
{
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_median(double *list, size_t n)
{
    qsort(list, n, sizeof *list, byi_compare_doubles);
    return list[n / 2];
}

const char *bench_folder(void)
{
    if (!folder_exists && !mkdtemp(folder)) {
        perror("bench: cannot create a folder /tmp/byoc-bench-XXXXXX");
        exit(2);
    }
    folder_exists = true;
    return folder;
}

void bench_folder_remove(void)
{
    if (folder_exists)
        rmdir(folder);
    folder_exists = false;
}

static void check(enum byoc_status status, const struct byoc_error *err)
{
    if (status == BYOC_OK)
        return;
    fprintf(stderr, "bench: %s\n", err->text);
    bench_folder_remove();
    exit(2);
}

/* An array of n zeroed elements; the program ends if there is no memory. */
static void *new_array(uint32_t n, size_t size)
{
    void *at = calloc(n + 1u, size);
    if (!at) {
        fprintf(stderr, "bench: out of memory for %u inputs or outputs\n", n);
        bench_folder_remove();
        exit(2);
    }
    return at;
}

static DLTensor make_input(const struct byoc_io *io)
{
    int64_t *dims = calloc(io->rank + 1u, sizeof *dims), n = 1;
    for (uint32_t d = 0; d < io->rank; d++)
        n *= dims[d] = io->dims[d] < 0 ? 1 : io->dims[d];
    const uint32_t size = byoc_dtype_size(io->dtype);
    char *data = aligned_alloc(64, ((size_t)n * size + 4095) / 64 * 64);
    struct byi_tensor t = {.data = data, .dtype = io->dtype};
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        byi_tensor_set(&t, i,
                       byi_dtype_is_float(io->dtype)
                           ? (double)(state >> 8) / (1 << 24) - 0.5
                           : (double)(state >> 31));
    }
    return (DLTensor){.data = data,
                      .device = {kDLCPU, 0},
                      .ndim = (int)io->rank,
                      .dtype = byoc_dtype_dlpack(io->dtype),
                      .shape = dims};
}

bool bench_open(const char *path, const char *name,
                const struct byoc_compile_params *params, uint32_t threads,
                struct bench_side *side)
{
    const struct byoc_load_params load = {.threads = threads};
    struct byoc_compiled *c = NULL;
    struct byoc_error err;
    /* each library has a name of its own, by which dlopen identifies it */
    char so[128];
    snprintf(so, sizeof so, "%s/%s.so", bench_folder(), name);
    memset(side, 0, sizeof *side);
    check(byoc_compile(path, params, &c, &err), &err);
    const bool passed = !byoc_compiled_verdict(c);
    if (passed)
        check(byoc_compiled_write(c, so, &err), &err);
    byoc_compiled_free(&c);
    if (!passed)
        return false;
    const enum byoc_status status =
        byoc_model_load(so, &load, &side->model, &err);
    unlink(so);
    check(status, &err);
    check(byoc_state_new(side->model, &side->state, &err), &err);
    const uint32_t n_in = byoc_model_n_inputs(side->model);
    side->in = new_array(n_in, sizeof *side->in);
    side->out = new_array(byoc_model_n_outputs(side->model), sizeof *side->out);
    for (uint32_t i = 0; i < n_in; i++)
        side->in[i] = make_input(byoc_model_input(side->model, i));
    return true;
}

bool bench_open_text(const char *text, const char *name,
                     const struct byoc_compile_params *params, uint32_t threads,
                     struct bench_side *side)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.ir", bench_folder(), name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(2);
    }
    const bool passed = bench_open(path, name, params, threads, side);
    unlink(path);
    return passed;
}

void bench_close(struct bench_side *side)
{
    for (uint32_t i = 0; i < byoc_model_n_inputs(side->model); i++) {
        free(side->in[i].data);
        free(side->in[i].shape);
    }
    free(side->in);
    free(side->out);
    byoc_state_free(&side->state);
    byoc_model_free(&side->model);
}

double bench_run(struct bench_side *side)
{
    struct byoc_error err;
    const uint32_t n_out = byoc_model_n_outputs(side->model);
    memset(side->out, 0, n_out * sizeof *side->out);
    const double start = bench_now();
    check(byoc_run(side->state, side->in, byoc_model_n_inputs(side->model),
                   side->out, n_out, &err),
          &err);
    return bench_now() - start;
}

double bench_difference(const struct bench_side *a, const struct bench_side *b)
{
    double worst = 0, maximum = 1e-30;
    for (uint32_t o = 0; o < byoc_model_n_outputs(a->model); o++) {
        int64_t n = 1;
        for (int d = 0; d < a->out[o].ndim; d++)
            n *= a->out[o].shape[d];
        if (a->out[o].dtype.code != kDLFloat || a->out[o].dtype.bits != 32)
            continue;
        const float *x = a->out[o].data, *y = b->out[o].data;
        for (int64_t i = 0; i < n; i++) {
            const double d = fabs((double)(x[i] - y[i]));
            worst = d > worst || isnan(d) ? d : worst;
            maximum = fmax(maximum, fabs((double)y[i]));
        }
    }
    return worst / maximum;
}
