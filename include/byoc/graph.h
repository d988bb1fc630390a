/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/graph.h: a region as plain structs.
 *
 * A region reaches a backend as JSON (docs/json.md). byoc_graph_read() makes
 * the host convert it to arrays (byoc/backend.h): values, the steps that
 * compute them, and the kernels that the steps belong to.
 *
 *     struct byoc_graph *g;
 *     struct byoc_fail *fail = byoc_graph_read(host, region, &g);
 *     for (uint32_t i = 0; !fail && i < g->n_steps; i++)
 *         ... g->steps[i].name, &g->values[g->steps[i].args[0]] ...
 *
 * The host checks each reference, operator, attribute and type, wherever the
 * text comes from. The backend must check whether it can run the operators. A
 * region with an `if`, which only patterns with an `if` match, is refused as
 * unsupported.
 *
 * All functions are inline: a plug-in links against no library. The host must
 * support version 1.2, which a backend requires (BYOC_BACKEND_NEEDS) if it
 * includes this header before byoc/backend.h. Threads: a graph does not change
 * once it is read.
 */
#ifndef BYOC_GRAPH_H
#define BYOC_GRAPH_H

#ifndef BYOC_BACKEND_NEEDS
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 2)
#endif
#include <byoc/backend.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BYOC_GRAPH_RANK 12 /* maximum rank of a value */

/* --- reading -------------------------------------------------------------- */

/* Read the region that load(), probe(), layout(), cost() or compile() receives.
 * *graph is NULL on failure; free it with byoc_graph_free(). Errors:
 * BYOC_FAIL_INVALID (the text names the node and its fault),
 * BYOC_FAIL_UNSUPPORTED (an `if`), BYOC_FAIL_RESOURCE, BYOC_FAIL_INCOMPATIBLE
 * (the host is older than 1.2). Threads: any. */
static inline struct byoc_fail *byoc_graph_read(
    const struct byoc_host *host, const struct byoc_region *region,
    struct byoc_graph **graph)
{
    *graph = NULL;
    if (!BYOC_HAS(host, byoc_host, graph_close))
        return (host->fail)(host->ctx, BYOC_FAIL_INCOMPATIBLE,
                            "found a host that cannot read regions, expected "
                            "one of version 1.2 or later; update byoc");
    return host->graph_open(host, region, graph);
}

/* Free a graph that this host has read; `graph` may be NULL. */
static inline void byoc_graph_free(const struct byoc_host *host,
                                   struct byoc_graph *g)
{
    if (g)
        host->graph_close(g);
}

/* --- values and operands -------------------------------------------------- */

/* The address of value `v` in a run. `memory` is the scratch memory or the
 * state: graph->bytes bytes, 64-byte aligned. It holds the results of steps,
 * each 64-byte aligned and followed by 64 bytes that may be read. Only results
 * of steps may be written. Outputs of the region also lie in `memory`: the
 * backend copies the values of graph->outputs to args->outputs. */
static inline void *byoc_graph_data(const struct byoc_graph *g, uint32_t v,
                                    void *memory,
                                    const struct byoc_run_args *args)
{
    const struct byoc_graph_value *value = &g->values[v];
    if (value->kind == BYOC_GRAPH_INPUT)
        return args->inputs[value->index].data;
    if (value->kind == BYOC_GRAPH_CONST)
        return (void *)(uintptr_t)value->data;
    return (char *)memory + value->at;
}

/* The value that the row calls %name; NULL: the match has no such operand. */
static inline const struct byoc_graph_value *byoc_graph_operand(
    const struct byoc_graph *g, const struct byoc_graph_kernel *k,
    const char *name)
{
    uint32_t i;
    for (i = 0; i < k->n_operands; i++)
        if (strcmp(k->operands[i].name, name) == 0)
            return &g->values[k->operands[i].value];
    return NULL;
}

/* --- attributes ----------------------------------------------------------- */

/* The attribute of that name; NULL: the step does not have it. */
static inline const struct byoc_graph_attr *byoc_graph_attr(
    const struct byoc_graph_step *s, const char *name)
{
    uint32_t i;
    for (i = 0; i < s->n_attrs; i++)
        if (strcmp(s->attrs[i].name, name) == 0)
            return &s->attrs[i];
    return NULL;
}

/* The integers of attribute `name`, in the graph's memory. NULL, with *n = 0,
 * if the step has no such attribute, or the attribute is empty or not of
 * integers. */
static inline const int64_t *byoc_graph_list(const struct byoc_graph_step *s,
                                             const char *name, uint32_t *n)
{
    const struct byoc_graph_attr *a = byoc_graph_attr(s, name);
    *n = a && a->ints ? a->n : 0;
    return *n ? a->ints : NULL;
}

/* Copy at most `max` integers of attribute `name` to `values`. Returns how many
 * integers the attribute has, which may be more than `max`; 0 if the step has
 * no such attribute. */
static inline uint32_t byoc_graph_ints(const struct byoc_graph_step *s,
                                       const char *name, int64_t *values,
                                       uint32_t max)
{
    uint32_t n;
    const int64_t *list = byoc_graph_list(s, name, &n);
    if (list)
        memcpy(values, list, (n < max ? n : max) * sizeof *values);
    return n;
}

/* The first entry of an attribute; `otherwise` if the step has no attribute of
 * that name and kind. byoc_graph_float also reads integers. */
static inline int64_t byoc_graph_int(const struct byoc_graph_step *s,
                                     const char *name, int64_t otherwise)
{
    uint32_t n;
    const int64_t *list = byoc_graph_list(s, name, &n);
    return list ? list[0] : otherwise;
}

static inline double byoc_graph_float(const struct byoc_graph_step *s,
                                      const char *name, double otherwise)
{
    const struct byoc_graph_attr *a = byoc_graph_attr(s, name);
    if (a && a->n && a->ints)
        return (double)a->ints[0];
    return a && a->n && a->floats ? a->floats[0] : otherwise;
}

static inline const char *byoc_graph_string(const struct byoc_graph_step *s,
                                            const char *name,
                                            const char *otherwise)
{
    const struct byoc_graph_attr *a = byoc_graph_attr(s, name);
    return a && a->n && a->strings ? a->strings[0] : otherwise;
}

/* Layouts, as attributes name them: an upper-case letter for each axis, as in
 * NHWC. A blocked axis adds its block size and the lower-case letter, as in
 * NCHW16c. */

/* The index of the axis of that letter; -1 if the layout has no such axis, or
 * has blocks. */
static inline int byoc_graph_axis(const char *layout, char letter)
{
    int i, at = -1;
    for (i = 0; layout[i]; i++) {
        if (layout[i] < 'A' || layout[i] > 'Z')
            return -1;
        if (layout[i] == letter)
            at = i;
    }
    return at;
}

/* Set axes[i] to the axis of layout `from` that is axis i of layout `to`.
 * Returns the number of axes; 0 if a layout has blocks, or if the two differ in
 * more than the order. */
static inline uint32_t byoc_graph_axes(const char *from, const char *to,
                                       uint32_t axes[BYOC_GRAPH_RANK])
{
    const size_t n = strlen(from);
    uint32_t i;
    if (n > BYOC_GRAPH_RANK || strlen(to) != n)
        return 0;
    for (i = 0; i < n; i++) {
        const int at = byoc_graph_axis(from, to[i]);
        if (at < 0 || strchr(to + i + 1, to[i]))
            return 0;
        axes[i] = (uint32_t)at;
    }
    return (uint32_t)n;
}

#ifdef __cplusplus
}
#endif
#endif
