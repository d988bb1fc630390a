/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c: a backend that adds a custom operator, Scale of "com.example"
 * (factor x), and runs it in regions: alone, and followed by a Relu.
 */
#include <byoc/custom.h>
#include <byoc/graph.h>

#include <stdlib.h>
#include <string.h>

/* --- the operator's native kernel ----------------------------------------- */

static struct byoc_fail *scale_shape(const struct byoc_host *host,
                                     const struct byoc_operator_call *call)
{
    const struct byoc_view *x = &call->inputs[0];
    struct byoc_result *y = &call->results[0];
    if (x->dtype != BYOC_F32)
        return host->fail(host->ctx, BYOC_FAIL_INVALID, "x is not float32");
    y->dtype = x->dtype;
    y->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++)
        y->dims[d] = x->dims[d];
    return NULL;
}

static struct byoc_fail *scale_run(const struct byoc_host *host,
                                   const struct byoc_operator_call *call)
{
    const float *x = call->inputs[0].data;
    const float factor = (float)call->attrs[0].floats[0];
    float *y = call->results[0].data;
    (void)host;
    for (uint64_t i = 0; i < call->results[0].bytes / sizeof *y; i++)
        y[i] = factor * x[i];
    return NULL;
}

static const struct byoc_attr_row scale_attrs[] = {
    {"factor", BYOC_ATTR_FLOAT, 0, NULL},
};
static const struct byoc_operator scale = {
    .struct_size = sizeof scale,
    .since = 1,
    .domain = "com.example",
    .name = "Scale",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_results = 1,
    .max_results = 1,
    .n_attrs = 1,
    .attrs = scale_attrs,
    .shape = scale_shape,
    .run = scale_run,
};
static const struct byoc_operator *const operator_list[] = {&scale};
static const struct byoc_operators operators = {
    {BYOC_EXT_OPERATORS, sizeof operators, NULL}, 1, 0, operator_list};

/* --- regions -------------------------------------------------------------- */

static const struct byoc_pattern patterns[] = {
    {"scale.scale_relu", "nn.relu(custom(%x) {op=\"scale.Scale@1\"})", NULL},
    {"scale.scale", "custom(%x) {op=\"scale.Scale@1\"}", NULL},
};

/* A loaded region. */
struct compiled {
    struct byoc_graph *graph;
    float factors[]; /* indexed by step; 0 for an nn.relu */
};

/* The factor of a call, whose attributes are JSON. */
static int read_factor(const struct byoc_graph_step *step, float *factor)
{
    const char *at =
        strstr(byoc_graph_string(step, "attributes", ""), "\"factor\":");
    if (at)
        *factor = strtof(at + strlen("\"factor\":"), NULL);
    return at != NULL;
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    struct byoc_graph *g;
    struct byoc_fail *fail = byoc_graph_read(host, region, &g);
    if (fail)
        return fail;
    struct compiled *c =
        host->acquire(host->ctx, sizeof *c + g->n_steps * sizeof c->factors[0]);
    if (!c)
        fail = host->fail(host->ctx, BYOC_FAIL_RESOURCE, NULL);
    for (uint32_t i = 0; !fail && i < g->n_steps; i++) {
        c->factors[i] = 0;
        if (strcmp(g->steps[i].name, "nn.relu") &&
            !read_factor(&g->steps[i], &c->factors[i]))
            fail = host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                              "found another step, expected Scale or nn.relu");
    }
    if (fail) {
        host->release(host->ctx, c);
        byoc_graph_free(host, g);
        return fail;
    }
    c->graph = g;
    *compiled = c;
    return NULL;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    struct compiled *c = compiled;
    byoc_graph_free(host, c->graph);
    host->release(host->ctx, c);
}

static uint64_t state_bytes(const struct byoc_host *host, const void *compiled)
{
    (void)host;
    return ((const struct compiled *)compiled)->graph->bytes;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    const struct compiled *c = compiled;
    const struct byoc_graph *g = c->graph;
    (void)host;
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const struct byoc_graph_step *s = &g->steps[i];
        const float *x = byoc_graph_data(g, s->args[0], state, args);
        float *y = byoc_graph_data(g, s->outs[0], state, args);
        const int relu = strcmp(s->name, "nn.relu") == 0;
        for (uint64_t k = 0; k < g->values[s->outs[0]].count; k++)
            y[k] = !relu ? c->factors[i] * x[k] : x[k] < 0 ? 0 : x[k];
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        memcpy(args->outputs[i].data,
               byoc_graph_data(g, g->outputs[i], state, args),
               g->values[g->outputs[i]].bytes);
    return NULL;
}

static const struct byoc_backend backend = {
    .struct_size = sizeof backend,
    .name = "scale",
    .version = "1",
    .compat = "scale 1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .load = load,
    .unload = unload,
    .state_bytes = state_bytes,
    .run = run,
    .ext = &operators.head,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
