/* SPDX-License-Identifier: Apache-2.0 */
/* timed.h: a backend for nn.relu and add whose runs take WAIT_US microseconds,
 * for tests of measuring. It computes nothing.
 */
#include <byoc/backend.h>

#include <stddef.h>
#include <time.h>

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    (void)host, (void)region;
    *compiled = NULL;
    return NULL;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host, (void)compiled;
}

static struct byoc_fail *state_new(const struct byoc_host *host, void *compiled,
                                   void **state)
{
    (void)host, (void)compiled, (void)state;
    return NULL;
}

static void state_free(const struct byoc_host *host, void *compiled,
                       void *state)
{
    (void)host, (void)compiled, (void)state;
}

/* The CPU time of this thread, which the tuner measures too. */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    (void)host, (void)compiled, (void)state, (void)args;
    const double until = now_us() + WAIT_US;
    while (now_us() < until)
        ;
    return NULL;
}

/* The estimate for every region is the time that run() waits. */
static struct byoc_fail *cost(const struct byoc_host *host,
                              const struct byoc_region *region,
                              uint64_t *nanoseconds)
{
    (void)host, (void)region;
    *nanoseconds = (uint64_t)(1000 * WAIT_US);
    return NULL;
}

static const struct byoc_pattern patterns[] = {
    {BACKEND ".relu", "nn.relu(%x)", NULL},
    {BACKEND ".add", "add(%a, %b)", NULL},
};

static const struct byoc_backend backend = {
    .struct_size = sizeof(struct byoc_backend),
    .name = BACKEND,
    .version = "1",
    .compat = "timed-1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .cost = cost,
    .load = load,
    .unload = unload,
    .state_new = state_new,
    .state_free = state_free,
    .run = run,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}

BYOC_BACKEND_DEFINE(query)
