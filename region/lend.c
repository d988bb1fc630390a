/* SPDX-License-Identifier: Apache-2.0 */
/* lend.c: converts a region's graph to the structs of byoc/backend.h, which
 * backends read. The structs point into the graph's arena.
 */
#include "core/base/guard.h"
#include "region/graph.h"

#include <string.h>

/* The host's record of a graph that it lends to a backend. `graph` is the first
 * member, so that it has the record's address. */
struct lent_graph {
    struct byoc_graph graph;
    struct byi_graph *source; /* from the JSON; owns the memory of both */
};

/* The results of a node or step, as indices of values. */
struct lent_outs {
    const uint32_t *at;
    uint32_t n;
};

/* The state of converting a graph to the form that backends read. */
struct lender {
    const struct byi_graph *from;
    const struct byoc_region *region;
    struct byi_arena *arena;
    struct byoc_graph *to;
    struct byoc_graph_value *values;
    struct byoc_graph_step *steps;
    struct byoc_graph_kernel *kernels;
    struct lent_outs *nodes; /* the results of each node */
    uint32_t node;           /* the current one, for messages */
    struct byoc_error *err;
};

static uint32_t count_results(const struct byi_type *type)
{
    return type->kind == BYI_TUPLE ? type->n_fields : 1;
}

static enum byoc_status lend_value(struct lender *l,
                                   const struct byi_type *type,
                                   enum byoc_graph_kind kind, uint32_t index)
{
    /* rounds up to 64 bytes, and adds 64 that vectors may read after the value
     */
    const uint64_t padding = 127;
    struct byoc_graph_value *v = &l->values[l->to->n_values++];
    if (type->kind != BYI_TENSOR)
        return byi_fail(l->err, BYOC_EUNSUPPORTED,
                        "nodes[%u]: found a tuple or sequence, expected a "
                        "tensor",
                        l->node);
    if (byoc_dtype_size(type->dtype) == 0)
        return byi_fail(l->err, BYOC_EUNSUPPORTED,
                        "nodes[%u]: found elements of type %s, which have no "
                        "fixed size, expected numbers or bools",
                        l->node, byoc_dtype_name(type->dtype));
    *v = (struct byoc_graph_value){
        .kind = kind,
        .index = index,
        .dtype = type->dtype,
        .rank = type->rank,
        .dims = type->dims,
        .count = (uint64_t)byi_elements(type->rank, type->dims),
        .bytes = byi_type_bytes(type),
        .at = kind == BYOC_GRAPH_RESULT ? l->to->bytes : 0};
    if (kind == BYOC_GRAPH_RESULT)
        l->to->bytes += (v->bytes + padding) & ~UINT64_C(63);
    return BYOC_OK;
}

/* Add the values of a result: one for a tensor, one for each field of a tuple.
 */
static enum byoc_status lend_values(struct lender *l,
                                    const struct byi_type *type,
                                    enum byoc_graph_kind kind, uint32_t index,
                                    struct lent_outs *outs)
{
    outs->n = count_results(type);
    uint32_t *at = byi_arena_calloc(l->arena, outs->n, sizeof *at);
    outs->at = at;
    for (uint32_t i = 0; i < outs->n; i++) {
        at[i] = l->to->n_values;
        BYI_TRY(lend_value(l, type->kind == BYI_TUPLE ? type->fields[i] : type,
                           kind, index));
    }
    return BYOC_OK;
}

static const struct byoc_graph_attr *lend_attrs(struct lender *l,
                                                const struct byi_attrs *attrs)
{
    struct byoc_graph_attr *to =
        byi_arena_calloc(l->arena, attrs->n, sizeof *to);
    for (uint32_t i = 0; i < attrs->n; i++) {
        const struct byi_attr *a = &attrs->at[i];
        const bool list = a->kind == BYI_ATTR_INTS ||
                          a->kind == BYI_ATTR_FLOATS ||
                          a->kind == BYI_ATTR_STRINGS;
        to[i].name = a->name;
        to[i].n = list ? a->n : 1;
        if (a->kind == BYI_ATTR_STRINGS || a->kind == BYI_ATTR_STRING)
            to[i].strings = list ? a->strings : &a->s;
        else if (a->kind == BYI_ATTR_FLOATS || a->kind == BYI_ATTR_FLOAT)
            to[i].floats = list ? a->floats : &a->f;
        else
            to[i].ints = list ? a->ints : &a->i;
    }
    return to;
}

/* Add step `at` of kernel k. Making a tuple adds no step: its results are its
 * arguments. */
static enum byoc_status lend_step(struct lender *l,
                                  const struct byi_graph_node *k, uint32_t at,
                                  struct lent_outs *outs)
{
    const struct byi_graph_step *from = &k->steps[at];
    struct byoc_graph_step *to = &l->steps[l->to->n_steps];
    uint32_t *args = byi_arena_calloc(l->arena, from->n_args, sizeof *args);
    if (strcmp(from->op->name, "if") == 0)
        return byi_fail(l->err, BYOC_EUNSUPPORTED,
                        "nodes[%u]: found an 'if', expected only operators",
                        l->node);
    for (uint32_t i = 0; i < from->n_args; i++) {
        const struct byi_graph_arg arg = from->args[i];
        if (!arg.is_step) {
            const struct byi_graph_ref ref = k->operands[arg.index].ref;
            args[i] = l->nodes[ref.node].at[ref.output];
            continue;
        }
        if (!arg.is_field && k->steps[arg.index].type->kind == BYI_TUPLE)
            return byi_fail(l->err, BYOC_EUNSUPPORTED,
                            "nodes[%u]: found a tuple as an argument, expected "
                            "a tensor",
                            l->node);
        args[i] = outs[arg.index].at[arg.is_field ? arg.field : 0];
    }
    outs[at] = (struct lent_outs){.at = args, .n = from->n_args};
    if (from->op->id == BYI_OP_NONE)
        return BYOC_OK;
    BYI_TRY(lend_values(l, from->type, BYOC_GRAPH_RESULT, l->to->n_steps,
                        &outs[at]));
    *to = (struct byoc_graph_step){.name = from->op->name,
                                   .n_args = from->n_args,
                                   .n_outs = outs[at].n,
                                   .args = args,
                                   .outs = outs[at].at,
                                   .kernel = l->to->n_kernels,
                                   .n_attrs = from->attrs->n,
                                   .attrs = lend_attrs(l, from->attrs)};
    l->to->n_steps++;
    return BYOC_OK;
}

static const char *join_sources(struct lender *l,
                                const struct byi_graph_node *k)
{
    if (k->n_sources <= 1)
        return k->n_sources ? k->sources[0] : "";
    struct byi_text text = {0};
    for (uint32_t i = 0; i < k->n_sources; i++)
        byi_text_addf(&text, "%s%s", i ? "," : "", k->sources[i]);
    const char *joined = byi_arena_str(l->arena, text.at);
    byi_text_free(&text);
    return joined;
}

static enum byoc_status lend_kernel(struct lender *l,
                                    const struct byi_graph_node *k,
                                    struct lent_outs *outs)
{
    struct byoc_graph_kernel *to = &l->kernels[l->to->n_kernels];
    struct byoc_graph_operand *operands =
        byi_arena_calloc(l->arena, k->n_operands, sizeof *operands);
    struct lent_outs *steps =
        byi_arena_calloc(l->arena, k->n_steps, sizeof *steps);
    for (uint32_t i = 0; i < k->n_operands; i++) {
        const struct byi_graph_ref ref = k->operands[i].ref;
        operands[i].name = k->operands[i].name;
        operands[i].value = l->nodes[ref.node].at[ref.output];
    }
    const uint32_t first = l->to->n_steps;
    for (uint32_t i = 0; i < k->n_steps; i++)
        BYI_TRY(lend_step(l, k, i, steps));
    *outs = steps[k->last];
    *to = (struct byoc_graph_kernel){.pattern = k->pattern,
                                     .first = first,
                                     .n_steps = l->to->n_steps - first,
                                     .n_operands = k->n_operands,
                                     .n_outs = outs->n,
                                     .operands = operands,
                                     .outs = outs->at,
                                     .exact = k->exact,
                                     .source = join_sources(l, k)};
    l->to->n_kernels++;
    return BYOC_OK;
}

static enum byoc_status lend_const(struct lender *l,
                                   const struct byi_graph_node *n,
                                   struct lent_outs *outs)
{
    BYI_TRY(lend_values(l, n->out[0], BYOC_GRAPH_CONST, n->data, outs));
    struct byoc_graph_value *v = &l->values[outs->at[0]];
    const struct byoc_view *view =
        n->data < l->region->n_consts ? &l->region->consts[n->data] : NULL;
    if (!view)
        return byi_fail(l->err, BYOC_EINVAL,
                        "nodes[%u].data: found constant %u, expected less than "
                        "%u",
                        l->node, n->data, l->region->n_consts);
    if (view->dtype != v->dtype || view->bytes != v->bytes)
        return byi_fail(
            l->err, BYOC_EINVAL,
            "nodes[%u].data: found constant %u of %llu bytes of %s, "
            "expected %llu bytes of %s",
            l->node, n->data, (unsigned long long)view->bytes,
            byoc_dtype_name((enum byoc_dtype)view->dtype),
            (unsigned long long)v->bytes,
            byoc_dtype_name((enum byoc_dtype)v->dtype));
    v->data = view->data;
    return BYOC_OK;
}

static enum byoc_status lend_node(struct lender *l,
                                  const struct byi_graph_node *n,
                                  struct lent_outs *outs)
{
    if (n->kind == BYI_GRAPH_KERNEL)
        return lend_kernel(l, n, outs);
    if (n->kind == BYI_GRAPH_CONST)
        return lend_const(l, n, outs);
    return lend_values(l, n->out[0], BYOC_GRAPH_INPUT, 0, outs);
}

/* Allocate all values, steps and kernels. */
static void alloc_lent(struct lender *l)
{
    uint32_t values = 0, steps = 0, kernels = 0;
    for (uint32_t i = 0; i < l->from->n_nodes; i++) {
        const struct byi_graph_node *n = &l->from->nodes[i];
        values += n->kind != BYI_GRAPH_KERNEL;
        kernels += n->kind == BYI_GRAPH_KERNEL;
        steps += n->n_steps;
        for (uint32_t s = 0; s < n->n_steps; s++)
            values += count_results(n->steps[s].type);
    }
    l->nodes = byi_arena_calloc(l->arena, l->from->n_nodes, sizeof *l->nodes);
    l->values = byi_arena_calloc(l->arena, values, sizeof *l->values);
    l->steps = byi_arena_calloc(l->arena, steps, sizeof *l->steps);
    l->kernels = byi_arena_calloc(l->arena, kernels, sizeof *l->kernels);
}

static enum byoc_status lend_graph(struct lender *l)
{
    const struct byi_graph *g = l->from;
    uint32_t *inputs = byi_arena_calloc(l->arena, g->n_inputs, sizeof *inputs);
    uint32_t *outputs =
        byi_arena_calloc(l->arena, g->n_outputs, sizeof *outputs);
    alloc_lent(l);
    for (l->node = 0; l->node < g->n_nodes; l->node++)
        BYI_TRY(lend_node(l, &g->nodes[l->node], &l->nodes[l->node]));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        inputs[i] = l->nodes[g->inputs[i]].at[0];
        l->values[inputs[i]].index = i;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        outputs[i] = l->nodes[g->outputs[i].node].at[g->outputs[i].output];
    l->to->struct_size = sizeof *l->to;
    l->to->symbol = g->symbol;
    l->to->n_inputs = g->n_inputs;
    l->to->n_outputs = g->n_outputs;
    l->to->inputs = inputs;
    l->to->outputs = outputs;
    l->to->values = l->values;
    l->to->steps = l->steps;
    l->to->kernels = l->kernels;
    return BYOC_OK;
}

static enum byoc_status read_and_lend(const struct byoc_region *region,
                                      struct byoc_graph **graph,
                                      struct byoc_error *err)
{
    BYI_BORDER(err);
    struct byi_graph *source = NULL;
    BYI_TRY(byi_graph_read(region->json, region->json_bytes, &source, err));
    struct lent_graph *to = byi_arena_calloc(source->arena, 1, sizeof *to);
    struct lender l = {.from = source,
                       .region = region,
                       .arena = source->arena,
                       .to = &to->graph,
                       .err = err};
    const enum byoc_status status = lend_graph(&l);
    to->source = source;
    if (status == BYOC_OK)
        *graph = &to->graph;
    else
        byi_graph_free(&source);
    return status;
}

struct byoc_fail *byi_graph_open(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_graph **graph)
{
    static const uint32_t codes[] = {
        [BYOC_EUNSUPPORTED] = BYOC_FAIL_UNSUPPORTED,
        [BYOC_ENOMEM] = BYOC_FAIL_RESOURCE,
        [BYOC_ELIMIT] = BYOC_FAIL_RESOURCE,
        [BYOC_EINCOMPATIBLE] = BYOC_FAIL_INCOMPATIBLE,
    };
    struct byoc_error err = {0};
    *graph = NULL;
    const enum byoc_status status = read_and_lend(region, graph, &err);
    if (status == BYOC_OK)
        return NULL;
    const uint32_t code = (size_t)status < BYI_COUNT(codes) ? codes[status] : 0;
    return host->fail(host->ctx, code ? code : BYOC_FAIL_INVALID, err.text);
}

void byi_graph_close(struct byoc_graph *graph)
{
    if (graph)
        byi_graph_free(&((struct lent_graph *)graph)->source);
}
