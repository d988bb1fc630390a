/* SPDX-License-Identifier: Apache-2.0 */
/* subgraph.c: imports graphs that are attributes of a node (If, Loop, Scan,
 * SequenceMap, FlexAttention), and the bodies of model-local functions.
 *
 * A subgraph may read values of the enclosing graphs. If it becomes a separate
 * function, these values become captures; parameters come first, so they are
 * collected before the first node is converted. Constants are not captured but
 * duplicated in the function, where folding and patterns can see them. An
 * inlined subgraph (the taken branch of an If, a graph of FlexAttention) is
 * converted into the current function and resolves names in the enclosing
 * scope.
 *
 * ONNX requires names to be unique in a graph and its subgraphs. So a name is
 * free in a subgraph if no node, input or initializer in it defines the name.
 * Recursion is bounded by the nesting of graphs, which byi_wire_check limits.
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* --- free names of a graph ------------------------------------------------ */

/* The names that a graph reads from enclosing graphs, while they are collected.
 */
struct free_names {
    struct byi_names defined;    /* defined in the graph or its subgraphs */
    struct byi_names seen;       /* those in `names` */
    BYI_VEC(const char *) names; /* the free names, in the order of the reads */
};

/* Add the names that the graph and its subgraphs define. */
static void collect_defined(const Onnx__GraphProto *graph,
                            struct byi_names *names)
{
    for (size_t i = 0; i < graph->n_input; i++)
        byi_names_add(names, byi_text_or(graph->input[i]->name, ""));
    for (size_t i = 0; i < graph->n_initializer; i++)
        byi_names_add(names, byi_text_or(graph->initializer[i]->name, ""));
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        byi_names_add(names,
                      byi_onnx_sparse_name(graph->sparse_initializer[i]));
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_output; k++)
            byi_names_add(names, node->output[k]);
        for (size_t a = 0; a < node->n_attribute; a++)
            if (node->attribute[a]->g)
                collect_defined(node->attribute[a]->g, names);
    }
}

/* Add the name to names->names, once, unless the graph defines it. */
static void add_if_free(struct free_names *names, const char *name)
{
    if (*name && !byi_names_find(&names->defined, name) &&
        byi_names_add(&names->seen, name))
        BYI_PUSH(&names->names, name);
}

static void collect_free(const Onnx__GraphProto *graph,
                         struct free_names *names)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            add_if_free(names, node->input[k]);
        for (size_t a = 0; a < node->n_attribute; a++)
            if (node->attribute[a]->g)
                collect_free(node->attribute[a]->g, names);
    }
    for (size_t i = 0; i < graph->n_output; i++)
        add_if_free(names, byi_text_or(graph->output[i]->name, ""));
}

/* Find the values of the enclosing function that the graph reads. Sets
 * body->outside, which the scratch arena owns; the members `inner` are unset.
 */
static void find_free_names(struct byi_import *o, const Onnx__GraphProto *graph,
                            struct byi_body *body)
{
    struct free_names found = {.defined = byi_names_new(o->scratch),
                               .seen = byi_names_new(o->scratch)};

    collect_defined(graph, &found.defined);
    collect_free(graph, &found);
    const char *reader =
        byi_arena_printf(o->scratch, "a graph of node %.200s (%.100s)", o->name,
                         byi_text_or(o->node->op_type, "(none)"));
    body->max_outside = found.names.n;
    body->outside = byi_arena_calloc(o->scratch, body->max_outside + 1,
                                     sizeof *body->outside);
    for (uint32_t i = 0; i < found.names.n && byi_import_ok(o); i++)
        body->outside[body->n_outside++] = (struct byi_outside){
            .name = found.names.at[i],
            .outer = byi_import_read(o, found.names.at[i], reader)};
    byi_vec_free(found.names.at);
}

/* --- a graph as a separate function --------------------------------------- */

void byi_import_body_open(struct byi_import *o, const Onnx__GraphProto *graph,
                          struct byi_body *body)
{
    *body = (struct byi_body){.graph = graph, .inner = *o};
    body->inner.items.at = NULL;
    body->inner.items.n = body->inner.items.cap = 0;
    find_free_names(o, graph, body);
    body->scope = (struct byi_scope){.graph = graph};
    body->inner.scope = &body->scope;
    body->func = byi_func_new(o->m, NULL);
    body->inner.f = o->m->funcs.at[body->func];
}

uint32_t byi_import_body_capture(struct byi_import *o, struct byi_body *body,
                                 byi_id outer)
{
    if (body->n_outside >= body->max_outside) {
        body->max_outside = 2 * body->n_outside + 16;
        struct byi_outside *larger =
            byi_arena_calloc(o->scratch, body->max_outside, sizeof *larger);
        if (body->n_outside)
            memcpy(larger, body->outside, body->n_outside * sizeof *larger);
        body->outside = larger;
    }
    body->outside[body->n_outside] = (struct byi_outside){.outer = outer};
    return body->n_outside++;
}

/* Pass the known elements of a captured shape vector on to the function, where
 * its value is `param`. */
static void copy_items(const struct byi_import *o, byi_id outer,
                       struct byi_import *inner, byi_id param)
{
    if (outer < o->items.n && o->items.at[outer])
        byi_import_set_items(inner, param, o->items.at[outer]);
}

/* Capture value `outer` of `o` as a parameter of inner's function, or add the
 * constant to that function. Returns the value inside. */
static byi_id capture_value(const struct byi_import *o, byi_id outer,
                            struct byi_import *inner)
{
    const struct byi_node *node = &o->f->nodes.at[outer];
    char name[16];

    if (node->kind == BYI_CONST)
        return byi_add_const(o->m, inner->f, node->index, node->sources);
    snprintf(name, sizeof name, "c%u", inner->f->n_captures++);
    const byi_id param = byi_add_param(
        o->m, inner->f, byi_arena_str(o->m->arena, name), node->type);
    copy_items(o, outer, inner, param);
    return param;
}

void byi_import_body_add_captures(struct byi_import *o, struct byi_body *body)
{
    struct byi_import *inner = &body->inner;
    uint32_t n = 0;

    if (!byi_import_ok(o))
        return;
    body->captures = byi_arena_calloc(o->scratch, body->n_outside + 1,
                                      sizeof *body->captures);
    o->status = byi_scope_open(inner, &body->scope);
    /* pass 0 adds the parameters, pass 1 the constants */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < body->n_outside && byi_import_ok(o); i++) {
            struct byi_outside *x = &body->outside[i];
            const bool absent = x->outer == BYI_NO_ID;
            const bool is_const =
                absent || o->f->nodes.at[x->outer].kind == BYI_CONST;
            if (is_const != (pass == 1))
                continue;
            x->inner = absent ? BYI_NO_ID : capture_value(o, x->outer, inner);
            if (x->name)
                byi_names_bind(&body->scope.names, x->name, x->inner);
            if (!is_const)
                body->captures[n++] = x->outer;
        }
    if (!byi_import_ok(o))
        o->err = inner->err;
}

byi_id byi_import_body_param(struct byi_import *o, struct byi_body *body,
                             const char *name, const struct byi_type *type)
{
    return byi_add_param(o->m, body->inner.f, byi_arena_str(o->m->arena, name),
                         type);
}

/* Bind an input of the graph to its value. */
static void bind_input(struct byi_import *o, struct byi_scope *scope,
                       uint32_t input, byi_id value)
{
    const char *name = byi_text_or(scope->graph->input[input]->name, "");
    const char *graph = byi_text_or(scope->graph->name, "");
    if (*name == '\0')
        byi_import_fail(
            o, BYOC_EPARSE,
            "input %u of its graph '%s' has no name, expected a name", input,
            graph);
    else if (!byi_names_bind(&scope->names, name, value))
        byi_import_fail(o, BYOC_EPARSE,
                        "input '%s' of its graph '%s': the name is already "
                        "defined, expected a new one",
                        name, graph);
}

/* Convert the nodes of inner's graph, which is an attribute of o's node or the
 * body of the function that it calls, and look up the graph's outputs. */
static void convert_graph(struct byi_import *o, struct byi_import *inner,
                          byi_id *outputs)
{
    const Onnx__GraphProto *graph = inner->scope->graph;
    const char *reader = byi_arena_printf(
        o->scratch, "the outputs of the body of node %.200s (%.100s)", o->name,
        byi_text_or(o->node->op_type, "(none)"));

    inner->status = byi_onnx_nodes(inner);
    for (size_t i = 0; i < graph->n_output && byi_import_ok(inner); i++) {
        const char *name = byi_text_or(graph->output[i]->name, "");
        outputs[i] = byi_import_read(inner, name, reader);
        if (byi_import_ok(inner) && outputs[i] == BYI_NO_ID)
            inner->status =
                byi_fail(&inner->err, BYOC_EPARSE,
                         "%s: found '%s', an omitted input, expected a value",
                         reader, name);
    }
    o->status = inner->status;
    if (!byi_import_ok(o))
        o->err = inner->err;
}

void byi_import_body_nodes(struct byi_import *o, struct byi_body *body,
                           const byi_id *inputs, uint32_t n_inputs,
                           byi_id *outputs)
{
    struct byi_import *inner = &body->inner;

    for (uint32_t i = 0; i < n_inputs && byi_import_ok(o); i++)
        bind_input(o, &body->scope, i, inputs[i]);
    if (!byi_import_ok(o))
        return;
    convert_graph(o, inner, outputs);
    /* later additions to the function have the node itself as their source */
    inner->node = o->node;
    inner->row = o->row;
    inner->name = o->name;
    inner->sources = o->sources;
}

byi_id byi_import_body_close(struct byi_import *o, struct byi_body *body,
                             byi_id result)
{
    if (byi_import_ok(o) && !byi_import_ok(&body->inner)) {
        o->status = body->inner.status;
        o->err = body->inner.err;
    }
    byi_vec_free(body->inner.items.at);
    if (!byi_import_ok(o) || result == BYI_NO_ID) {
        for (uint32_t i = body->func; i < o->m->funcs.n; i++)
            o->m->funcs.at[i]->dead = true;
        return BYI_NO_ID;
    }
    body->inner.f->result = result;
    return byi_add_fn(o->m, o->f, body->func, body->captures,
                      body->inner.f->n_captures, o->sources);
}

/* --- a graph inlined in place of its node --------------------------------- */

void byi_import_inline_scope(struct byi_import *o, struct byi_scope *scope,
                             const struct byi_expansion *expansion,
                             byi_id *outputs)
{
    struct byi_import inner = *o;

    if (!byi_import_ok(o))
        return;
    inner.scope = scope;
    inner.expansion = expansion;
    convert_graph(o, &inner, outputs);
    o->items = inner.items;
}

void byi_import_inline(struct byi_import *o, const Onnx__GraphProto *graph,
                       const byi_id *inputs, uint32_t n_inputs, byi_id *outputs)
{
    struct byi_scope scope = {.graph = graph, .outer = o->scope};

    o->status = byi_scope_open(o, &scope);
    for (uint32_t i = 0; i < n_inputs && byi_import_ok(o); i++)
        bind_input(o, &scope, i, inputs[i]);
    byi_import_inline_scope(o, &scope, o->expansion, outputs);
}

/* --- provenance of nested nodes ------------------------------------------- */

void byi_import_number_sources(struct byi_import *o,
                               const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        byi_import_source(o, i, node);
        for (size_t a = 0; a < node->n_attribute; a++)
            if (node->attribute[a]->g)
                byi_import_number_sources(o, node->attribute[a]->g);
    }
}
