/* SPDX-License-Identifier: Apache-2.0 */
/* region.c: converts a region's JSON to a module of plain operators, the
 * inverse of codegen_json/write.c.
 */
#include "extract.h"

#include "region/graph.h"

#include <string.h>

/* The state of byi_region_module. */
struct region_import {
    const struct byi_graph *graph;
    struct byi_module *m;
    struct byi_func *f; /* @main */
    struct byi_arena *arena;
    byi_id **value; /* indexed by node of the graph and output */
    struct byoc_error *err;
};

const struct byi_attrs *byi_attrs_copy(struct byi_arena *arena,
                                       const struct byi_attrs *attrs)
{
    struct byi_attr *at = byi_arena_calloc(arena, attrs->n, sizeof *at);
    for (uint32_t i = 0; i < attrs->n; i++) {
        at[i] = attrs->at[i];
        if (at[i].kind == BYI_ATTR_STRING)
            at[i].s = byi_arena_str(arena, at[i].s);
        else if (at[i].kind == BYI_ATTR_INTS)
            at[i].ints =
                byi_arena_copy(arena, at[i].ints, at[i].n * sizeof *at[i].ints);
        else if (at[i].kind == BYI_ATTR_FLOATS)
            at[i].floats = byi_arena_copy(arena, at[i].floats,
                                          at[i].n * sizeof *at[i].floats);
        else if (at[i].kind == BYI_ATTR_STRINGS) {
            const char **list = byi_arena_calloc(arena, at[i].n, sizeof *list);
            for (uint32_t k = 0; k < at[i].n; k++)
                list[k] = byi_arena_str(arena, at[i].strings[k]);
            at[i].strings = list;
        }
    }
    return byi_arena_copy(arena,
                          &(const struct byi_attrs){.n = attrs->n, .at = at},
                          sizeof *attrs);
}

static enum byoc_status read_const(struct region_import *r, uint32_t node,
                                   const struct byi_tensor *consts,
                                   uint32_t n_consts)
{
    const struct byi_graph_node *n = &r->graph->nodes[node];
    if (n->data >= n_consts)
        return byi_fail(r->err, BYOC_EPARSE,
                        "nodes[%u].data: found constant %u, expected less "
                        "than %u, the number of constants",
                        node, n->data, n_consts);
    const struct byi_tensor *t = &consts[n->data];
    const struct byi_type *type = byi_type_tensor(
        r->m->arena, n->out[0]->dtype, n->out[0]->rank, n->out[0]->dims);
    if (byi_type_bytes(type) != byi_tensor_bytes(t))
        return byi_fail(r->err, BYOC_EPARSE,
                        "nodes[%u]: found a constant of %llu bytes, expected "
                        "%llu for its type",
                        node, (unsigned long long)byi_tensor_bytes(t),
                        (unsigned long long)byi_type_bytes(type));
    r->value[node][0] = byi_add_const(
        r->m, r->f, byi_const_add(r->m, type, t->data, false), NULL);
    return BYOC_OK;
}

/* Find the value of an operand of a step. */
static enum byoc_status find_arg(struct region_import *r,
                                 const struct byi_graph_node *k,
                                 const struct byi_graph_arg *arg,
                                 const byi_id *steps, byi_id *id)
{
    if (!arg->is_step) {
        const struct byi_graph_ref ref = k->operands[arg->index].ref;
        *id = r->value[ref.node][ref.output];
        return BYOC_OK;
    }
    *id = steps[arg->index];
    return arg->is_field
               ? byi_add_get(r->m, r->f, *id, arg->field, NULL, id, r->err)
               : BYOC_OK;
}

static enum byoc_status read_kernel(struct region_import *r, uint32_t node)
{
    const struct byi_graph_node *k = &r->graph->nodes[node];
    byi_id *steps = byi_arena_calloc(r->arena, k->n_steps, sizeof *steps);
    for (uint32_t i = 0; i < k->n_steps; i++) {
        const struct byi_graph_step *s = &k->steps[i];
        byi_id *args = byi_arena_calloc(r->arena, s->n_args, sizeof *args);
        for (uint32_t a = 0; a < s->n_args; a++)
            BYI_TRY(find_arg(r, k, &s->args[a], steps, &args[a]));
        if (s->op->id != BYI_OP_NONE)
            BYI_TRY(byi_add_op(r->m, r->f, s->op->id, args, s->n_args,
                               byi_attrs_copy(r->m->arena, s->attrs), NULL,
                               &steps[i], r->err));
        else if (strcmp(s->op->name, "tuple") == 0)
            steps[i] = byi_add_tuple(r->m, r->f, args, s->n_args, NULL);
        else
            return byi_fail(r->err, BYOC_EUNSUPPORTED,
                            "nodes[%u]: found an `if`, expected operators and "
                            "tuples; extract a region in one of its branches",
                            node);
    }
    const byi_id last = steps[k->last];
    const bool tuple = r->f->nodes.at[last].type->kind == BYI_TUPLE;
    for (uint32_t i = 0; i < k->n_out; i++)
        if (tuple)
            BYI_TRY(byi_add_get(r->m, r->f, last, i, NULL, &r->value[node][i],
                                r->err));
        else
            r->value[node][i] = last;
    return BYOC_OK;
}

static enum byoc_status read_nodes(struct region_import *r,
                                   const struct byi_tensor *consts,
                                   uint32_t n_consts)
{
    const struct byi_graph *g = r->graph;
    r->value = byi_arena_calloc(r->arena, g->n_nodes, sizeof *r->value);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        r->value[i] =
            byi_arena_calloc(r->arena, g->nodes[i].n_out + 1, sizeof(byi_id));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const struct byi_graph_node *n = &g->nodes[g->inputs[i]];
        const struct byi_type *type = byi_type_tensor(
            r->m->arena, n->out[0]->dtype, n->out[0]->rank, n->out[0]->dims);
        char name[24];
        snprintf(name, sizeof name, "input%u", i);
        r->value[g->inputs[i]][0] =
            byi_add_param(r->m, r->f, byi_arena_str(r->m->arena, name), type);
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].kind == BYI_GRAPH_CONST)
            BYI_TRY(read_const(r, i, consts, n_consts));
        else if (g->nodes[i].kind == BYI_GRAPH_KERNEL)
            BYI_TRY(read_kernel(r, i));
    }
    return BYOC_OK;
}

static void set_result(struct region_import *r)
{
    const struct byi_graph *g = r->graph;
    byi_id *out = byi_arena_calloc(r->arena, g->n_outputs, sizeof *out);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        out[i] = r->value[g->outputs[i].node][g->outputs[i].output];
    r->f->result = g->n_outputs == 1
                       ? out[0]
                       : byi_add_tuple(r->m, r->f, out, g->n_outputs, NULL);
}

enum byoc_status byi_region_module(const char *json, size_t n,
                                   const struct byi_tensor *consts,
                                   uint32_t n_consts, struct byi_module **m,
                                   struct byoc_error *err)
{
    struct byi_graph *graph = NULL;
    *m = NULL;
    BYI_TRY(byi_graph_read_varying(json, n, &graph, err));
    if (graph->n_symbols) {
        const enum byoc_status status = byi_fail(
            err, BYOC_EINVAL,
            "the region has the symbolic dim '%s', expected sizes; extract it "
            "from the model, with --dim %s=1 or --shape",
            graph->symbols[0], graph->symbols[0]);
        byi_graph_free(&graph);
        return status;
    }
    struct region_import r = {.graph = graph,
                              .m = byi_module_new(),
                              .arena = byi_arena_new(),
                              .err = err};
    const uint32_t func = byi_func_new(r.m, "main");
    r.f = r.m->funcs.at[func];
    const enum byoc_status status = read_nodes(&r, consts, n_consts);
    if (status == BYOC_OK)
        set_result(&r);
    byi_arena_free(&r.arena);
    byi_graph_free(&graph);
    *m = r.m;
    if (status != BYOC_OK)
        byi_module_free(m);
    return status;
}

void byi_extract_free(struct byi_extract *x)
{
    byi_module_free(&x->m);
    byi_arena_free(&x->arena);
    *x = (struct byi_extract){0};
}
