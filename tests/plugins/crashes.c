/* SPDX-License-Identifier: Apache-2.0 */
/* crashes.c: a backend that crashes, exits or hangs in the function that the
 * operator selects: tanh raises SIGSEGV in the predicate, exp hangs in the
 * probe, sqrt exhausts the memory in compile(), sigmoid, ceil and sin exit
 * in load(), abs aborts in unload(), floor aborts in run(), and cos ends the
 * process after all calls, when it writes its result. `negative` succeeds. The
 * backend computes nothing.
 */
#define _GNU_SOURCE /* memmem */
#include <byoc/backend.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char aborts_in_run; /* load() returns its address for floor */

/* Whether the region's JSON contains this text. */
static int has(const struct byoc_region *region, const char *op)
{
    return memmem(region->json, region->json_bytes, op, strlen(op)) != NULL;
}

static const char *accept_tanh(const struct byoc_host *host,
                               const struct byoc_match *m)
{
    if (strcmp(host->match_op(m, 0), "tanh") == 0)
        raise(SIGSEGV);
    return NULL;
}

static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result)
{
    (void)host, (void)result;
    while (has(graph, "\"exp\""))
        sleep(1);
    return NULL;
}

/* Allocate memory, and write to it without a check for NULL, until that
 * crashes.
 */
static void exhaust_memory(void)
{
    enum { PIECE = 1 << 24 };
    for (;;)
        memset(malloc(PIECE), 1, PIECE);
}

static struct byoc_fail *compile(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob)
{
    if (has(region, "\"sqrt\""))
        exhaust_memory();
    blob->data = host->acquire(host->ctx, region->json_bytes);
    blob->bytes = region->json_bytes;
    memcpy(blob->data, region->json, region->json_bytes);
    return NULL;
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    if (has(region, "\"sigmoid\""))
        exit(3);
    if (has(region, "\"ceil\""))
        _exit(0);
    if (has(region, "\"sin\""))
        quick_exit(0);
    if (has(region, "\"cos\"")) /* a signal ends a process that writes more */
        setrlimit(RLIMIT_FSIZE, &(const struct rlimit){64, 64});
    *compiled = has(region, "\"abs\"")     ? host->acquire(host->ctx, 1)
                : has(region, "\"floor\"") ? &aborts_in_run
                                           : NULL;
    return NULL;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host;
    if (compiled && compiled != &aborts_in_run)
        abort();
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    (void)state, (void)args;
    if (compiled == &aborts_in_run)
        abort();
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "this plug-in computes nothing");
}

static const struct byoc_pattern patterns[] = {
    {"crashes.any", "tanh|exp|sqrt|sigmoid|ceil|sin|abs|floor|cos|negative(%x)",
     accept_tanh},
};

static const struct byoc_backend backend = {
    .struct_size = sizeof(struct byoc_backend),
    .name = "crashes",
    .version = "1",
    .compat = "crashes-1",
    .patterns = patterns,
    .n_patterns = 1,
    .probe = probe,
    .compile = compile,
    .load = load,
    .unload = unload,
    .run = run,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}

BYOC_BACKEND_DEFINE(query)
