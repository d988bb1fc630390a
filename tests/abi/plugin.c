/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c: a backend for the ABI matrix: float32 nn.relu. It is built with
 * every released version of byoc/backend.h, and with possible future ones, and
 * uses what all of them have.
 */
#include <byoc/backend.h>

#include <string.h>

enum { FLOAT32 = 1 };

static const char *accept(const struct byoc_host *host,
                          const struct byoc_match *m)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    if (!host->match_type(m, "x", &dtype, &rank, &dims) || dtype != FLOAT32)
        return "expected float32";
    return NULL;
}

static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result)
{
    if (!graph->json_bytes || graph->n_consts)
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "found constants or no region, expected a region "
                          "without constants");
    strcpy(result->impl, "plain");
    return NULL;
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    (void)region;
    *compiled = host->acquire(host->ctx, 64);
    return *compiled
               ? NULL
               : host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
}

static void unload(const struct byoc_host *host, void *compiled)
{
    host->release(host->ctx, compiled);
}

static struct byoc_fail *state_new(const struct byoc_host *host, void *compiled,
                                   void **state)
{
    (void)compiled;
    *state = host->acquire(host->ctx, 64);
    return *state ? NULL
                  : host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
}

static void state_free(const struct byoc_host *host, void *compiled,
                       void *state)
{
    (void)compiled;
    host->release(host->ctx, state);
}

static void relu(void *arg, uint32_t part)
{
    const struct byoc_run_args *args = arg;
    const float *in = args->inputs[0].data;
    float *out = args->outputs[0].data;
    const uint64_t n = args->outputs[0].bytes / sizeof *out;
    for (uint64_t i = part; i < n; i += 2)
        out[i] = in[i] < 0 ? 0 : in[i];
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    struct byoc_run_args copy = {0};
    (void)compiled, (void)state;
    if (args->n_inputs != 1 || args->n_outputs != 1)
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "expected one input and one output");
    copy.inputs = args->inputs;
    copy.outputs = args->outputs;
    host->parallel_for(host->ctx, 2, relu, &copy);
    return NULL;
}

static void quiesce(const struct byoc_host *host)
{
    (void)host;
}

static const struct byoc_pattern patterns[] = {
    {.name = "abi.relu", .pattern = "nn.relu(%x)", .accept = accept},
};

#ifdef NEWER /* an extension that no host knows */
static const struct byoc_ext extension = {0xabcd, sizeof extension, NULL};
#endif

static const struct byoc_backend backend = {
#ifdef BYOC_BACKEND_DEFINE
    .struct_size = sizeof(struct byoc_backend),
#else
    .struct_size = BYOC_STRUCT_SIZE(struct byoc_backend, quiesce),
    .abi = BYOC_BACKEND_ABI,
#endif
#ifdef NEWER
    .ext = &extension,
    .newer = 77,
#endif
    .name = "abi",
    .version = "1",
    .compat = "abi-1",
    .patterns = patterns,
    .n_patterns = 1,
    .probe = probe,
    .load = load,
    .unload = unload,
    .state_new = state_new,
    .state_free = state_free,
    .run = run,
    .quiesce = quiesce,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}

#ifdef BYOC_BACKEND_DEFINE
BYOC_BACKEND_DEFINE(query)
#else
__attribute__((visibility("default"))) const struct byoc_backend *
byoc_backend_query_v1(const struct byoc_host *host, char *why,
                      uint32_t why_bytes);

const struct byoc_backend *byoc_backend_query_v1(const struct byoc_host *host,
                                                 char *why, uint32_t why_bytes)
{
    return query(host, why, why_bytes);
}
#endif
