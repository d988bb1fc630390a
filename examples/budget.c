/* SPDX-License-Identifier: Apache-2.0 */
/* A host program that gives byoc an allocator, a parallel loop and a log, which
 * two models share, and a limit on the memory of each model.
 *     budget MODEL.so BYTES               (limit for each model; 0: no limit)
 *     cc budget.c $(pkg-config --cflags --libs byoc-runtime)
 * Exits with 1 if byoc has not released all memory, 2 on an error. */
#include <byoc/runtime.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct host {
    _Atomic int64_t bytes;  /* bytes that byoc has allocated */
    _Atomic uint32_t parts; /* parts of loops that parallel_for has run */
};

static void *allocate(void *ctx, uint64_t bytes, uint64_t alignment)
{
    struct host *host = ctx;
    void *at = NULL;
    if (posix_memalign(&at, alignment, bytes))
        return NULL;
    atomic_fetch_add(&host->bytes, (int64_t)bytes);
    return at;
}

static void release(void *ctx, void *memory, uint64_t bytes)
{
    struct host *host = ctx;
    atomic_fetch_sub(&host->bytes, (int64_t)bytes);
    free(memory);
}

/* A real host would run the parts on its threads. */
static void parallel_for(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                         void *arg)
{
    struct host *host = ctx;
    for (uint32_t i = 0; i < n; i++)
        fn(arg, i);
    atomic_fetch_add(&host->parts, n);
}

static void print_line(void *ctx, enum byoc_severity severity, const char *line)
{
    static const char *const names[] = {"?", "debug", "info", "warning",
                                        "error"};
    (void)ctx;
    const char *tag = byoc_log_tag();
    printf("[%s%s%s] %s\n", names[severity], tag ? " " : "", tag ? tag : "",
           line);
}

/* Run the model once, on zeros. Returns 0 on success. */
static int run(const struct byoc_model *model, struct byoc_error *err)
{
    const struct byoc_io *io = byoc_model_input(model, 0);
    struct byoc_state *state = NULL;
    size_t n = 1;
    for (uint32_t i = 0; i < io->rank; i++)
        n *= (size_t)io->dims[i];
    DLTensor in = {.data = calloc(n, byoc_dtype_size(io->dtype)),
                   .device = {kDLCPU, 0},
                   .ndim = (int)io->rank,
                   .dtype = byoc_dtype_dlpack(io->dtype),
                   .shape = (int64_t *)io->dims};
    DLTensor out = {0};
    const int failed = byoc_state_new(model, &state, err) ||
                       byoc_run(state, &in, 1, &out, 1, err);
    byoc_state_free(&state);
    free(in.data);
    return failed;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {BYOC_EINVAL, "usage: budget MODEL.so BYTES"};
    struct byoc_model *models[2] = {NULL, NULL};
    struct host host = {0};
    uint64_t peak = 0;
    struct byoc_load_params params = {
        .struct_size = sizeof params,
        .threads = 2,
        .parallel_for = parallel_for,
        .parallel_ctx = &host,
        .log = print_line,
        .log_severity = BYOC_INFO,
        .allocate = allocate,
        .release = release,
        .allocate_ctx = &host,
        .memory_bytes = argc == 3 ? strtoull(argv[2], NULL, 10) : 0};
    int failed = argc != 3;
    for (int i = 0; i < 2 && !failed; i++)
        failed = byoc_model_load(argv[1], &params, &models[i], &err) ||
                 run(models[i], &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", byoc_status_text(err.status), err.text);
    else
        byoc_model_memory(models[0], &peak);
    byoc_model_free(&models[0]);
    byoc_model_free(&models[1]);
    if (!failed)
        printf("peak %llu bytes for each model, parallel_for ran %u parts, "
               "%lld bytes not released\n",
               (unsigned long long)peak, atomic_load(&host.parts),
               (long long)atomic_load(&host.bytes));
    return failed ? 2 : atomic_load(&host.bytes) != 0;
}
