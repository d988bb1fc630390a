/* SPDX-License-Identifier: Apache-2.0 */
/* import.c: converts an unpacked model to @main.
 *
 *   inputs        parameters; a dim_param is a symbol, params may fix it
 *   initializers  constants, made when a node first reads them
 *   nodes         converted in topological order (order.c), each by its row in
 *                 the tables of ops_*.c
 *   outputs       the result
 * The file's inferred shapes (value_info) are ignored: the operators' type
 * rules are authoritative.
 */
#include "frontend_onnx/import.h"

#include <string.h>

enum { MIN_OPSET = 1, MAX_OPSET = 27 };

/* The initializers of a graph, sparse ones last. */
static size_t count_initializers(const Onnx__GraphProto *graph)
{
    return graph->n_initializer + graph->n_sparse_initializer;
}

static const char *initializer_name(const Onnx__GraphProto *graph, size_t i)
{
    return i < graph->n_initializer
               ? byi_text_or(graph->initializer[i]->name, "")
               : byi_onnx_sparse_name(
                     graph->sparse_initializer[i - graph->n_initializer]);
}

enum byoc_status byi_scope_open(struct byi_import *o, struct byi_scope *scope)
{
    const Onnx__GraphProto *graph = scope->graph;

    scope->names = byi_names_new(o->scratch);
    for (size_t i = 0; i < count_initializers(graph); i++) {
        const char *name = initializer_name(graph, i);
        if (*name == '\0')
            return byi_fail(&o->err, BYOC_EPARSE,
                            "initializer %zu has no name, expected a name", i);
        struct byi_name *entry = byi_names_add(&scope->names, name);
        if (!entry)
            return byi_fail(&o->err, BYOC_EPARSE,
                            "initializer '%s': the name is already defined, "
                            "expected a new one",
                            name);
        entry->index = (uint32_t)i;
    }
    return BYOC_OK;
}

/* --- nodes ---------------------------------------------------------------- */

static byi_id decode_initializer(struct byi_import *o,
                                 const struct byi_scope *scope,
                                 uint32_t initializer)
{
    const Onnx__GraphProto *graph = scope->graph;
    const size_t dense = graph->n_initializer;
    struct byi_tensor t = {0};

    if (initializer >= dense)
        o->status = byi_onnx_decode_sparse(
            o->file, graph->sparse_initializer[initializer - dense], &t,
            &o->err);
    else
        o->status = byi_onnx_decode(
            o->file, graph->initializer[initializer],
            scope->raw ? &scope->raw[initializer] : NULL, &t, &o->err);
    return byi_import_ok(o) ? byi_import_const(o, &t, true) : BYI_NO_ID;
}

byi_id byi_import_read(struct byi_import *o, const char *text,
                       const char *reader)
{
    struct byi_scope *scope = o->scope;
    struct byi_name *entry = byi_names_find(&scope->names, text);

    while (!entry && scope->outer) {
        scope = scope->outer;
        entry = byi_names_find(&scope->names, text);
    }
    if (!entry && !reader)
        reader = byi_arena_printf(o->scratch, "node %.200s (%.100s)", o->name,
                                  o->node->op_type);
    if (!entry) {
        o->status = byi_fail(&o->err, BYOC_EPARSE,
                             "%s: value '%s' is not defined, expected an "
                             "input, an initializer or the output of a node "
                             "that does not depend on this one",
                             reader, text);
        return BYI_NO_ID;
    }
    if (entry->producer) {
        o->status = byi_fail(&o->err, BYOC_EUNSUPPORTED,
                             "%s: output '%s' is not supported, expected no "
                             "node that reads it",
                             entry->producer, text);
        return BYI_NO_ID;
    }
    if (entry->id == BYI_NO_ID && entry->index != UINT32_MAX)
        entry->id = decode_initializer(o, scope, entry->index);
    return entry->id;
}

static int64_t opset_of(const struct byi_import *o, const char *domain)
{
    const Onnx__ModelProto *model = o->file->model;
    const Onnx__FunctionProto *f = o->expansion ? o->expansion->function : NULL;
    const size_t n = f ? f->n_opset_import : model->n_opset_import;

    for (size_t i = 0; i < n; i++) {
        const Onnx__OperatorSetIdProto *opset =
            f ? f->opset_import[i] : model->opset_import[i];
        if (strcmp(byi_onnx_domain(opset->domain), domain) == 0)
            return opset->version;
    }
    /* before IR version 3 there was one opset and no need to name it */
    return strcmp(domain, BYI_ONNX) == 0 && model->ir_version < 3 ? 1 : 0;
}

size_t byi_onnx_count_nodes(const Onnx__GraphProto *graph)
{
    size_t n = graph->n_node;

    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t a = 0; a < graph->node[i]->n_attribute; a++)
            if (graph->node[i]->attribute[a]->g)
                n += byi_onnx_count_nodes(graph->node[i]->attribute[a]->g);
    return n;
}

/* The source of a node in the IR. */
struct node_source {
    const Onnx__NodeProto *node;
    uint32_t call; /* source of the function's call, or UINT32_MAX */
    uint32_t source;
};

/* The sources of the nodes visited so far. A graph that is converted again
 * (loop.c) reuses its sources. */
struct byi_node_sources {
    BYI_VEC(struct node_source) list;
    struct byi_index index;
};

static void free_sources(void *arg)
{
    struct byi_node_sources *sources = arg;

    byi_vec_free(sources->list.at);
}

static struct byi_node_sources *node_sources_new(struct byi_arena *arena)
{
    struct byi_node_sources *sources =
        byi_arena_calloc(arena, 1, sizeof *sources);

    sources->index.arena = arena;
    byi_arena_defer(arena, free_sources, sources);
    return sources;
}

uint32_t byi_import_source(struct byi_import *o, size_t index,
                           const Onnx__NodeProto *node)
{
    const struct byi_expansion *e = o->expansion;
    const uint32_t call = e ? e->source : UINT32_MAX;
    const uint64_t hash = byi_hash(call, &node, sizeof node);
    struct byi_node_sources *visited = o->node_sources;

    BYI_INDEX_EACH (&visited->index, hash, i)
        if (visited->list.at[i].node == node &&
            visited->list.at[i].call == call)
            return visited->list.at[i].source;
    const char *type = byi_text_or(node->op_type, "(none)");
    const char *name = byi_text_or(node->name, "");
    if (*name == '\0')
        name = byi_arena_printf(o->scratch, "%s_%zu", type, index);
    if (e)
        name = byi_arena_printf(o->scratch, "%s/%s", e->name, name);
    const uint32_t source = byi_source_new(o->m, name, type);
    byi_index_add(&visited->index, hash, visited->list.n);
    BYI_PUSH(&visited->list, ((struct node_source){node, call, source}));
    return source;
}

/* Set the fields of `o` that describe one node. Returns its source. */
static uint32_t begin_node(struct byi_import *o, size_t index,
                           const Onnx__NodeProto *node)
{
    const char *type = byi_text_or(node->op_type, "(none)");
    const char *domain = byi_onnx_domain(node->domain);
    const uint32_t source = byi_import_source(o, index, node);

    o->node = node;
    o->name = o->m->sources.at[source].name;
    o->sources = byi_sources_one(o->m, source);
    o->opset = opset_of(o, domain);
    o->seen = 0;
    o->row = byi_onnx_find(domain, type, o->opset);
    o->node = byi_function_node(o, node);
    return source;
}

static void read_operands(struct byi_import *o)
{
    const Onnx__NodeProto *node = o->node;

    o->n_in = (uint32_t)node->n_input;
    o->in = byi_arena_calloc(o->scratch, node->n_input + 1, sizeof *o->in);
    for (uint32_t i = 0; i < o->n_in; i++)
        o->in[i] = BYI_NO_ID;
    for (uint32_t i = 0; i < o->n_in && byi_import_ok(o); i++)
        if (*node->input[i])
            o->in[i] = byi_import_read(o, node->input[i], NULL);
    for (uint32_t i = 0; o->row && i < o->row->min_in && byi_import_ok(o); i++)
        if (o->in[i] == BYI_NO_ID)
            byi_import_fail(o, BYOC_EPARSE,
                            "input %u is omitted by the call of the enclosing "
                            "function, expected a value",
                            i);
    o->n_out = (uint32_t)node->n_output;
    o->out = byi_arena_calloc(o->scratch, node->n_output + 1, sizeof *o->out);
    for (uint32_t i = 0; i < o->n_out; i++)
        o->out[i] = BYI_NO_ID;
}

/* Check the numbers of inputs, outputs and attributes. Returns false after an
 * error. */
static bool check_arity(struct byi_import *o)
{
    const struct byi_onnx_op *row = o->row;

    if (o->node->n_input > row->max_in || o->node->n_input < row->min_in) {
        byi_import_fail(o, BYOC_EPARSE, "found %zu inputs, expected %u to %u",
                        o->node->n_input, row->min_in, row->max_in);
        return false;
    }
    for (uint32_t i = 0; i < row->min_in; i++)
        if (*o->node->input[i] == '\0') {
            byi_import_fail(o, BYOC_EPARSE,
                            "input %u is omitted, expected a value", i);
            return false;
        }
    if (o->node->n_output == 0)
        byi_import_fail(o, BYOC_EPARSE,
                        "found no outputs, expected at least one");
    if (o->node->n_attribute > 64) /* bits of o->seen */
        byi_import_fail(o, BYOC_ELIMIT,
                        "found %zu attributes, expected at most 64",
                        o->node->n_attribute);
    return byi_import_ok(o);
}

/* Refuse attributes that the converter did not read: ignoring one could change
 * the result. */
static void check_attributes(struct byi_import *o)
{
    for (size_t i = 0; i < o->node->n_attribute; i++) {
        const char *name = byi_text_or(o->node->attribute[i]->name, "");
        if (o->seen >> i & 1 || strcmp(name, "consumed_inputs") == 0)
            continue;
        byi_import_refuse(
            o, "attribute '%s' is unknown, expected the operator's attributes",
            name);
    }
}

static void bind_outputs(struct byi_import *o)
{
    for (uint32_t i = 0; i < o->n_out && byi_import_ok(o); i++) {
        const char *text = o->node->output[i];
        if (*text == '\0')
            continue;
        struct byi_name *entry = byi_names_add(&o->scope->names, text);
        if (!entry) {
            byi_import_fail(
                o, BYOC_EPARSE,
                "output '%s' is defined twice, expected one definition", text);
            return;
        }
        entry->id = o->out[i];
        if (entry->id == BYI_NO_ID)
            entry->producer = byi_arena_printf(
                o->scratch,
                "node %.200s (operator %.100s, domain %.100s, opset %lld)",
                o->name, byi_text_or(o->node->op_type, "(none)"),
                byi_onnx_domain(o->node->domain), (long long)o->opset);
    }
}

static bool is_training(const Onnx__NodeProto *node)
{
    return strcmp(byi_text_or(node->domain, ""), "ai.onnx.preview.training") ==
           0;
}

static enum byoc_status convert_node(struct byi_import *o, size_t index,
                                     const Onnx__NodeProto *node)
{
    const uint32_t source = begin_node(o, index, node);
    if (o->expansion)
        byi_function_check_limits(o);
    const Onnx__FunctionProto *function = byi_function_find(o, node);

    if (function) {
        o->row = NULL;
        read_operands(o);
        if (byi_import_ok(o))
            byi_function_expand(o, function, source);
        if (byi_import_ok(o))
            bind_outputs(o);
        byi_import_describe(o, source);
        return o->status;
    }
    if (!o->row && byi_import_ok(o) && !byi_import_find_custom(o))
        byi_import_refuse(
            o, is_training(node)
                   ? "it is a training operator; export the model for inference"
                   : "give a library that has it with --plugin");
    if (byi_import_ok(o) && check_arity(o))
        read_operands(o);
    if (byi_import_ok(o))
        o->row->convert(o);
    if (byi_import_ok(o))
        check_attributes(o);
    if (byi_import_ok(o))
        bind_outputs(o);
    byi_import_describe(o, source);
    return o->status;
}

enum byoc_status byi_onnx_nodes(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->scope->graph;

    const size_t *order = byi_import_order(o->scratch, graph);

    for (size_t i = 0; i < graph->n_node; i++) {
        const size_t at = order ? order[i] : i;
        BYI_TRY(convert_node(o, at, graph->node[at]));
    }
    return BYOC_OK;
}

/* --- the module ----------------------------------------------------------- */

/* Unwrap an optional that the file declares as a plain value; a run fails when
 * the optional is empty. */
static byi_id unwrap_as_declared(struct byi_import *o,
                                 const Onnx__TypeProto *type, byi_id id)
{
    const struct byi_op *op = byi_op(BYI_OP_OPT_GET);

    if (!type || o->f->nodes.at[id].type->kind != BYI_OPTIONAL ||
        type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE ||
        type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return id;
    o->status =
        byi_add_op(o->m, o->f, op->id, &id, 1, NULL, o->sources, &id, &o->err);
    return id;
}

static enum byoc_status add_result(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->scope->graph;
    const size_t n = graph->n_output;
    byi_id *ids = byi_arena_calloc(o->scratch, 2 * n + 1, sizeof *ids);
    uint32_t n_ids = 0;

    if (n == 0 || n > BYI_MAX_ARGS)
        return byi_fail(&o->err, BYOC_EPARSE,
                        "the graph has %zu outputs, expected 1 to %d", n,
                        BYI_MAX_ARGS);
    o->sources = byi_sources_none();
    for (size_t i = 0; i < n; i++) {
        const char *name = byi_text_or(graph->output[i]->name, "");
        const byi_id id = byi_import_read(o, name, "the graph's outputs");
        if (!byi_import_ok(o))
            return o->status;
        const bool is_map = byi_import_is_map(o, id);
        ids[n_ids++] = is_map
                           ? byi_import_map_values(o, id)
                           : unwrap_as_declared(o, graph->output[i]->type, id);
        BYI_PUSH(&o->f->result_names, byi_arena_str(o->m->arena, name));
        if (is_map) {
            ids[n_ids++] = byi_import_map_keys(o, id);
            BYI_PUSH(&o->f->result_names, byi_import_keys_name(o, name));
        }
        if (!byi_import_ok(o))
            return o->status;
    }
    if (n_ids > BYI_MAX_ARGS)
        return byi_fail(&o->err, BYOC_ELIMIT,
                        "the graph has %u outputs, including the keys of "
                        "maps, expected at most %d",
                        n_ids, BYI_MAX_ARGS);
    o->f->result =
        n_ids == 1 ? ids[0] : byi_add_tuple(o->m, o->f, ids, n_ids, o->sources);
    return BYOC_OK;
}

static enum byoc_status check_model(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file->model->graph;
    const int64_t opset = opset_of(o, BYI_ONNX);

    if (byi_onnx_count_nodes(graph) > UINT32_MAX / 16)
        return byi_fail(&o->err, BYOC_ELIMIT,
                        "the graph has %zu nodes, expected at most %u",
                        byi_onnx_count_nodes(graph), UINT32_MAX / 16);
    if (opset != 0 && (opset < MIN_OPSET || opset > MAX_OPSET))
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "the model uses opset %lld of ai.onnx, expected %d to "
                        "%d; export it with one of these",
                        (long long)opset, MIN_OPSET, MAX_OPSET);
    return BYOC_OK;
}

static enum byoc_status import_graph(struct byi_import *o, const char *path)
{
    const struct byi_onnx_params *p = o->params;
    if (p->data)
        BYI_TRY(byi_onnx_open_memory(p->data, p->bytes, path, o->m->arena,
                                     o->file, &o->err));
    else
        BYI_TRY(byi_onnx_open(path, o->m->arena, o->file, &o->err));
    byi_onnx_metadata(o->file->model, o->m);
    struct byi_scope scope = {.graph = o->file->model->graph,
                              .raw = o->file->raw.at};
    o->scope = &scope;
    BYI_TRY(check_model(o));
    o->node_sources = node_sources_new(o->scratch);
    BYI_TRY(byi_functions_open(o));
    const uint32_t main = byi_func_new(o->m, "main");
    o->f = o->m->funcs.at[main];
    o->sources = byi_sources_none();
    byi_import_number_sources(
        o, scope.graph); /* sources in the order of the file */
    BYI_TRY(byi_scope_open(o, &scope));
    BYI_TRY(byi_onnx_add_inputs(o));
    BYI_TRY(byi_onnx_nodes(o));
    return add_result(o);
}

enum byoc_status byi_onnx_import(const char *path,
                                 const struct byi_onnx_params *params,
                                 struct byi_module **module,
                                 struct byoc_error *err)
{
    static const struct byi_onnx_params defaults;
    struct byi_onnx_file file = {0};
    struct byi_import o = {
        .file = &file,
        .params = params ? params : &defaults,
        .m = byi_module_new(),
        .scratch = byi_arena_new(),
    };

    *module = NULL;
    const enum byoc_status status = import_graph(&o, path);
    byi_onnx_close(&file);
    byi_vec_free(o.items.at);
    byi_arena_free(&o.scratch);
    if (status != BYOC_OK) {
        byi_module_free(&o.m);
        if (err)
            *err = o.err;
        return status;
    }
    *module = o.m;
    return BYOC_OK;
}
