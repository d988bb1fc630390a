/* SPDX-License-Identifier: Apache-2.0 */
/* minimal.c: a backend in one file: float32 add, multiply and relu. */
#include <byoc/backend.h>
#include <byoc/graph.h>

#include <string.h>

/* Return NULL to accept a match of a row, or the reason to refuse it. */
static const char *accept(const struct byoc_host *host,
                          const struct byoc_match *m)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    if (!host->match_type(m, NULL, &dtype, &rank, &dims) || dtype != BYOC_F32)
        return host->match_say(m, "found %s, expected float32",
                               host->match_show(m, NULL));
    return NULL;
}

/* The patterns that this backend supports, the most specific first. */
static const struct byoc_pattern patterns[] = {
    {"minimal.add_relu", "nn.relu(add(%a, %b))", accept},
    {"minimal.add", "add(%a, %b)", accept},
    {"minimal.multiply", "multiply(%a, %b)", accept},
    {"minimal.relu", "nn.relu(%a)", accept},
};

/* Whether a step is an operator of the patterns, with float32 operands that
 * broadcast to its result. A region's text may come from anywhere, so load()
 * checks it. */
static int is_known(const struct byoc_graph *g, const struct byoc_graph_step *s)
{
    int known = strcmp(s->name, "nn.relu") == 0 ? s->n_args == 1
                : strcmp(s->name, "add") && strcmp(s->name, "multiply")
                    ? 0
                    : s->n_args == 2;
    const struct byoc_graph_value *out = &g->values[s->outs[0]];
    for (uint32_t i = 0; known && i < s->n_args; i++) {
        const struct byoc_graph_value *in = &g->values[s->args[i]];
        known = in->dtype == BYOC_F32 && in->rank <= out->rank;
        for (uint32_t d = 1; known && d <= in->rank; d++)
            known = in->dims[in->rank - d] == 1 ||
                    in->dims[in->rank - d] == out->dims[out->rank - d];
    }
    return known && s->n_outs == 1 && out->dtype == BYOC_F32;
}

/* The object that load() returns is the graph itself. */
static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    struct byoc_graph *g;
    struct byoc_fail *fail = byoc_graph_read(host, region, &g);
    if (fail)
        return fail;
    for (uint32_t i = 0; !fail && i < g->n_steps; i++)
        if (!is_known(g, &g->steps[i]))
            fail = host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                              "found an unsupported operator, type or shape, "
                              "expected a float32 add, multiply or nn.relu");
    if (fail)
        byoc_graph_free(host, g);
    else
        *compiled = g;
    return fail;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    byoc_graph_free(host, compiled);
}

/* The size of the state, which holds the results of all steps. Runs at the same
 * time have different states. */
static uint64_t state_bytes(const struct byoc_host *host, const void *compiled)
{
    const struct byoc_graph *g = compiled;
    (void)host;
    return g->bytes;
}

/* The index of the element of `in` that broadcasts to element `at` of `out`. */
static uint64_t broadcast_index(const struct byoc_graph_value *in,
                                const struct byoc_graph_value *out, uint64_t at)
{
    uint64_t index = 0, stride = 1;
    for (uint32_t d = 1; d <= in->rank; d++) {
        uint64_t size = (uint64_t)in->dims[in->rank - d];
        uint64_t out_size = (uint64_t)out->dims[out->rank - d];
        index += size == 1 ? 0 : at % out_size * stride;
        stride *= size;
        at /= out_size;
    }
    return index;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    const struct byoc_graph *g = compiled;
    (void)host;
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const struct byoc_graph_step *s = &g->steps[i];
        const uint32_t a = s->args[0], b = s->args[s->n_args - 1];
        const struct byoc_graph_value *out = &g->values[s->outs[0]];
        const float *x = byoc_graph_data(g, a, state, args);
        const float *y = byoc_graph_data(g, b, state, args);
        float *z = byoc_graph_data(g, s->outs[0], state, args);
        for (uint64_t k = 0; k < out->count; k++) {
            float p = x[broadcast_index(&g->values[a], out, k)];
            float q = y[broadcast_index(&g->values[b], out, k)];
            z[k] = s->name[0] == 'a'   ? p + q
                   : s->name[0] == 'm' ? p * q
                   : p < 0             ? 0
                                       : p;
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        memcpy(args->outputs[i].data,
               byoc_graph_data(g, g->outputs[i], state, args),
               g->values[g->outputs[i]].bytes);
    return NULL;
}

static const struct byoc_backend backend = {
    .struct_size = sizeof backend,
    .name = "minimal",
    .version = "1",
    .compat = "minimal 1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .load = load,
    .unload = unload,
    .state_bytes = state_bytes,
    .run = run,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
