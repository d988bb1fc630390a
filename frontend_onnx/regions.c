/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c: copies a model with the regions of a partition as model-local
 * functions.
 *
 *     Conv -> Relu -> NonZero -> Conv      dnnl_0 -> NonZero -> dnnl_1
 *
 * The file is unpacked without its large weights; messages that change are
 * copied, and the packed copy has the weights again. FunctionProto.value_info
 * is new in ONNX 1.16; older readers skip the unknown field.
 */
#include "frontend_onnx/parts.h"
#include "core/base/names.h"
#include "frontend_onnx/import.h"
#include "frontend_onnx/wire.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    FUNCTIONS_SINCE = 8,       /* ONNX's first ir_version with functions */
    FIELD_FUNCTION_VALUES = 12 /* FunctionProto.value_info */
};

/* A name that the graph being copied or a graph around it defines. */
struct copied_value {
    uint32_t depth;    /* of the graph that defines it, from 1; 0: none */
    uint32_t producer; /* in its graph: 1 + the node; 0: an input, a constant */
    bool result;       /* it is an output of its graph */
    Onnx__ValueInfoProto *info; /* its type, or NULL */
};

/* The state of copying a model whose regions become functions. */
struct model_copy {
    const char *from; /* path of the model */
    struct byi_arena *arena;
    struct byi_onnx_placement *placements;
    uint32_t n_placements;
    uint32_t n_nodes; /* placements before those of nodes in functions */
    uint32_t next;    /* the placement of the next node to be copied */
    struct byi_name_table names;
    struct byi_name_table functions;     /* "DOMAIN\nNAME" */
    BYI_VEC(struct copied_value) values; /* indexed by name */
    BYI_VEC(Onnx__FunctionProto *) part_functions;
    uint32_t depth; /* of the graph being copied, from 1 */
    struct byoc_error *err;
};

/* One graph with the values that its nodes read: node i reads
 * reads.at[first[i]] .. reads.at[first[i + 1] - 1], indices of
 * model_copy.values. */
struct graph_copy {
    Onnx__GraphProto *graph;
    uint32_t n;
    struct byi_onnx_placement **placements;
    uint32_t *first;
    uint32_t *region; /* of each node, from 1; 0: none */
    BYI_VEC(uint32_t) reads;
    BYI_VEC(struct byi_node_edge) edges;
};

/* Returns the entry of the name, which is added if it is new. Valid until the
 * next call. */
static struct copied_value *intern_value(struct model_copy *copy,
                                         const char *name)
{
    const uint32_t i = byi_name_intern(&copy->names, copy->arena, name);
    while (copy->values.n <= i)
        BYI_PUSH(&copy->values, (struct copied_value){0});
    return &copy->values.at[i];
}

/* --- types ---------------------------------------------------------------- */

/* Parse a dim of n characters: a number, a symbol, or ? or a quoted expression,
 * which become an unknown dim. */
static Onnx__TensorShapeProto__Dimension *read_dim(struct model_copy *copy,
                                                   const char *text, size_t n)
{
    Onnx__TensorShapeProto__Dimension *dim =
        byi_arena_alloc(copy->arena, sizeof *dim);
    onnx__tensor_shape_proto__dimension__init(dim);
    if (byi_is_digit(*text)) {
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dim->dim_value = strtoll(text, NULL, 10);
    } else if (*text != '?' && *text != '"') {
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dim->dim_param = byi_arena_strn(copy->arena, text, n);
    }
    return dim;
}

/* Parse "1, 3, N", which ends at `end`. */
static Onnx__TensorShapeProto *read_shape(struct model_copy *copy,
                                          const char *text, const char *end)
{
    Onnx__TensorShapeProto *shape = byi_arena_alloc(copy->arena, sizeof *shape);
    onnx__tensor_shape_proto__init(shape);
    shape->dim =
        byi_arena_calloc(copy->arena, BYI_MAX_RANK, sizeof(*shape->dim));
    while (text < end && shape->n_dim < BYI_MAX_RANK) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        shape->dim[shape->n_dim++] =
            read_dim(copy, text, (size_t)(stop - text));
        text = comma ? comma + 2 : end;
    }
    return shape;
}

/* Convert a tensor's type in the text form to a ValueInfoProto called `name`;
 * NULL for other types. */
static Onnx__ValueInfoProto *read_type(struct model_copy *copy, char *name,
                                       const char *text)
{
    static const char head[] = "Tensor[(";
    const size_t n = strlen(head);
    const char *end = strncmp(text, head, n) == 0 ? strchr(text, ')') : NULL;
    const char *close =
        end && strncmp(end, "), ", 3) == 0 ? strchr(end, ']') : NULL;
    if (!close || close[1])
        return NULL;
    const enum byoc_dtype dtype =
        byi_dtype_of_name(end + 3, (size_t)(close - end - 3));
    Onnx__TypeProto__Tensor *tensor =
        byi_arena_alloc(copy->arena, sizeof *tensor);
    Onnx__TypeProto *type = byi_arena_alloc(copy->arena, sizeof *type);
    Onnx__ValueInfoProto *info = byi_arena_alloc(copy->arena, sizeof *info);
    onnx__type_proto__tensor__init(tensor);
    onnx__type_proto__init(type);
    onnx__value_info_proto__init(info);
    tensor->has_elem_type = true;
    tensor->elem_type = (int32_t)dtype;
    tensor->shape = read_shape(copy, text + n, end);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = name;
    info->type = type;
    return dtype == BYOC_NONE ? NULL : info;
}

/* --- names of a graph ----------------------------------------------------- */

/* Define the name in the current graph, unless a graph around it defines it. */
static void define_name(struct model_copy *copy, const char *name,
                        uint32_t producer)
{
    struct copied_value *value = *name ? intern_value(copy, name) : NULL;
    if (!value || (value->depth && value->depth != copy->depth))
        return;
    value->depth = copy->depth;
    value->producer = producer;
}

static void define_names(struct model_copy *copy, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_input; i++)
        define_name(copy, byi_text_or(g->input[i]->name, ""), 0);
    for (size_t i = 0; i < g->n_initializer; i++)
        define_name(copy, byi_text_or(g->initializer[i]->name, ""), 0);
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        define_name(copy, byi_onnx_sparse_name(g->sparse_initializer[i]), 0);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            define_name(copy, g->node[i]->output[k], (uint32_t)i + 1);
    for (size_t i = 0; i < g->n_value_info; i++)
        intern_value(copy, byi_text_or(g->value_info[i]->name, ""))->info =
            g->value_info[i];
    for (size_t i = 0; i < g->n_output; i++) {
        struct copied_value *value =
            intern_value(copy, byi_text_or(g->output[i]->name, ""));
        value->result = value->result || value->depth == copy->depth;
    }
}

/* Forget the names that the graph defines. They are unique in the graph and in
 * the graphs inside it, but another branch of an If may define them too. */
static void forget_names(struct model_copy *copy)
{
    for (uint32_t i = 0; i < copy->values.n; i++)
        if (copy->values.at[i].depth == copy->depth)
            copy->values.at[i] = (struct copied_value){0};
}

/* Add the value to the values that the node reads, once. */
static void add_read(struct model_copy *copy, struct graph_copy *g,
                     uint32_t node, const char *name)
{
    if (!*name)
        return;
    const struct copied_value *value = intern_value(copy, name);
    const uint32_t number = (uint32_t)(value - copy->values.at);
    for (uint32_t i = g->first[node]; i < g->reads.n; i++)
        if (g->reads.at[i] == number)
            return;
    if (value->depth)
        BYI_PUSH(&g->reads, number);
    if (value->depth == copy->depth && value->producer)
        BYI_PUSH(&g->edges,
                 ((struct byi_node_edge){value->producer - 1, node}));
}

/* Add the values that the node or a graph inside reads; names that a graph
 * inside defines are unknown here. */
static void add_reads(struct model_copy *copy, struct graph_copy *g,
                      uint32_t node, const Onnx__NodeProto *proto)
{
    for (size_t i = 0; i < proto->n_input; i++)
        add_read(copy, g, node, proto->input[i]);
    for (size_t a = 0; a < proto->n_attribute; a++) {
        const Onnx__GraphProto *inner = proto->attribute[a]->g;
        for (size_t i = 0; inner && i < inner->n_node; i++)
            add_reads(copy, g, node, inner->node[i]);
        for (size_t i = 0; inner && i < inner->n_output; i++)
            add_read(copy, g, node, byi_text_or(inner->output[i]->name, ""));
    }
}

/* --- regions of a graph --------------------------------------------------- */

/* Number the regions of the graph's nodes from 1. Returns the number of
 * regions. */
static uint32_t number_regions(struct model_copy *copy, struct graph_copy *g)
{
    struct byi_name_table regions = {0};
    byi_name_intern(&regions, copy->arena, "");
    for (uint32_t i = 0; i < g->n; i++)
        g->region[i] =
            byi_name_intern(&regions, copy->arena, g->placements[i]->region);
    return regions.n - 1;
}

/* Put each idle node (folded or removed) whose readers are all in one region
 * into that region. Readers are visited before producers. */
static void join_idle(struct model_copy *copy, struct graph_copy *g)
{
    enum { NO_READER = UINT32_MAX };
    /* for each node: the region of all its readers; 0: none, or several */
    uint32_t *readers_in =
        byi_arena_calloc(copy->arena, g->n, sizeof *readers_in);
    for (uint32_t i = 0; i < g->n; i++)
        readers_in[i] = NO_READER;
    for (uint32_t i = g->n, e = g->edges.n; i-- > 0;) {
        for (size_t k = 0; k < g->graph->node[i]->n_output; k++)
            if (intern_value(copy, g->graph->node[i]->output[k])->result)
                readers_in[i] = 0;
        if (g->placements[i]->idle && readers_in[i] != NO_READER)
            g->region[i] = readers_in[i];
        for (; e > 0 && g->edges.at[e - 1].to == i; e--) {
            uint32_t *readers = &readers_in[g->edges.at[e - 1].from];
            *readers = *readers == NO_READER || *readers == g->region[i]
                           ? g->region[i]
                           : 0;
        }
    }
}

/* --- parts as functions --------------------------------------------------- */

static Onnx__OperatorSetIdProto *make_opset(struct model_copy *copy,
                                            char *domain)
{
    Onnx__OperatorSetIdProto *opset =
        byi_arena_alloc(copy->arena, sizeof *opset);
    onnx__operator_set_id_proto__init(opset);
    opset->domain = domain;
    opset->has_version = true;
    opset->version = 1;
    return opset;
}

/* Returns a function name that is unique in its domain: the region's, followed
 * by a number if that name is taken. */
static char *make_function_name(struct model_copy *copy, const char *domain,
                                const char *region)
{
    char *name = byi_arena_str(copy->arena, region);
    for (uint32_t i = 2;; i++) {
        const uint32_t n = copy->functions.n;
        const char *key = byi_arena_printf(copy->arena, "%s\n%s", domain, name);
        if (byi_name_intern(&copy->functions, copy->arena, key) == n)
            return name;
        name = byi_arena_printf(copy->arena, "%s_%u", region, i);
    }
}

/* Add `info` to the function's value_info, as an unknown field, since this
 * program's onnx.proto may not have that field. */
static void add_value_info(struct model_copy *copy, Onnx__FunctionProto *f,
                           const Onnx__ValueInfoProto *info)
{
    const size_t n = onnx__value_info_proto__get_packed_size(info);
    struct byi_text head = {0};
    byi_wire_head(&head, FIELD_FUNCTION_VALUES, n);
    const size_t before = head.n - 1; /* without the tag, of one byte */
    uint8_t *data = byi_arena_alloc(copy->arena, before + n);
    memcpy(data, head.at + 1, before);
    onnx__value_info_proto__pack(info, data + before);
    byi_text_free(&head);
    f->base.unknown_fields[f->base.n_unknown_fields++] =
        (ProtobufCMessageUnknownField){.tag = FIELD_FUNCTION_VALUES,
                                       .wire_type =
                                           PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                       .len = before + n,
                                       .data = data};
}

/* Returns an array indexed by value: whether another part reads the value, or
 * it is a result of the graph. */
static bool *mark_outside(struct model_copy *copy, const struct graph_copy *g,
                          const uint32_t *part_of)
{
    bool *outside =
        byi_arena_calloc(copy->arena, copy->values.n, sizeof *outside);
    for (uint32_t i = 0; i < copy->values.n; i++)
        outside[i] = copy->values.at[i].depth == copy->depth &&
                     copy->values.at[i].result;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++) {
            const struct copied_value *value = &copy->values.at[g->reads.at[k]];
            if (value->depth == copy->depth && value->producer &&
                part_of[value->producer - 1] != part_of[i])
                outside[g->reads.at[k]] = true;
        }
    return outside;
}

/* Set the inputs of the part's function: values that the part reads and does
 * not compute. */
static void list_inputs(struct model_copy *copy, const struct graph_copy *g,
                        const struct byi_model_part *part,
                        const uint32_t *part_of, Onnx__FunctionProto *f)
{
    const uint32_t part_index = part_of[part->nodes[0]];
    struct byi_name_table seen = {0};
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < part->n; i++)
        capacity += g->first[part->nodes[i] + 1] - g->first[part->nodes[i]];
    f->input = byi_arena_calloc(copy->arena, capacity, sizeof(*f->input));
    for (uint32_t i = 0; i < part->n; i++) {
        const uint32_t node = part->nodes[i];
        for (uint32_t k = g->first[node]; k < g->first[node + 1]; k++) {
            const char *name = copy->names.at[g->reads.at[k]];
            const struct copied_value *value = &copy->values.at[g->reads.at[k]];
            const bool inside = value->depth == copy->depth &&
                                value->producer &&
                                part_of[value->producer - 1] == part_index;
            if (!inside &&
                byi_name_intern(&seen, copy->arena, name) == f->n_input)
                f->input[f->n_input++] = byi_arena_str(copy->arena, name);
        }
    }
}

/* Set the function's nodes and its outputs, the results that are read outside
 * the part; add the types of the other results as unknown fields. */
static void list_nodes(struct model_copy *copy, const struct graph_copy *g,
                       const struct byi_model_part *part, const bool *outside,
                       Onnx__FunctionProto *f)
{
    size_t n = 0;
    for (uint32_t i = 0; i < part->n; i++)
        n += g->graph->node[part->nodes[i]]->n_output;
    f->node = byi_arena_calloc(copy->arena, part->n, sizeof(*f->node));
    f->output = byi_arena_calloc(copy->arena, n, sizeof(*f->output));
    f->base.unknown_fields =
        byi_arena_calloc(copy->arena, n, sizeof(*f->base.unknown_fields));
    for (uint32_t i = 0; i < part->n; i++) {
        Onnx__NodeProto *node = g->graph->node[part->nodes[i]];
        f->node[f->n_node++] = node;
        for (size_t k = 0; k < node->n_output; k++) {
            const struct copied_value *value =
                intern_value(copy, node->output[k]);
            if (outside[value - copy->values.at])
                f->output[f->n_output++] = node->output[k];
            else if (value->info)
                add_value_info(copy, f, value->info);
        }
    }
}

static Onnx__NodeProto *make_call(struct model_copy *copy,
                                  const Onnx__FunctionProto *f)
{
    Onnx__NodeProto *call = byi_arena_alloc(copy->arena, sizeof *call);
    onnx__node_proto__init(call);
    call->name = f->name;
    call->op_type = f->name;
    call->domain = f->domain;
    call->doc_string = f->doc_string;
    call->n_input = f->n_input;
    call->input = f->input;
    call->n_output = f->n_output;
    call->output = f->output;
    return call;
}

/* Add the function of a part to copy->part_functions. Returns its call; NULL if
 * nothing outside reads the part's results, or if all its nodes are idle. */
static Onnx__NodeProto *make_function(struct model_copy *copy,
                                      const struct graph_copy *g,
                                      const struct byi_model_part *part,
                                      const uint32_t *part_of,
                                      const bool *outside)
{
    const struct byi_onnx_placement *placement = NULL;
    for (uint32_t i = 0; i < part->n && !placement; i++)
        if (*g->placements[part->nodes[i]]->region)
            placement = g->placements[part->nodes[i]];
    Onnx__FunctionProto *f = byi_arena_alloc(copy->arena, sizeof *f);
    onnx__function_proto__init(f);
    list_inputs(copy, g, part, part_of, f);
    list_nodes(copy, g, part, outside, f);
    if (!f->n_output || !placement)
        return NULL;
    f->domain = byi_arena_printf(copy->arena, "byoc.%s", placement->backend);
    f->name = make_function_name(copy, f->domain, placement->region);
    f->doc_string = byi_arena_printf(
        copy->arena, "Region %s of backend %s: %u node%s", placement->region,
        placement->backend, part->n, byi_plural(part->n));
    BYI_PUSH(&copy->part_functions, f);
    return make_call(copy, f);
}

/* Replace the graph's nodes by the parts, and drop the types of values that
 * only a function contains now. */
static void build_graph(struct model_copy *copy, struct graph_copy *g,
                        const struct byi_model_part *parts, uint32_t n_parts)
{
    Onnx__GraphProto *graph = g->graph;
    uint32_t *part_of = byi_arena_calloc(copy->arena, g->n, sizeof *part_of);
    Onnx__NodeProto **nodes =
        byi_arena_calloc(copy->arena, g->n, sizeof *nodes);
    size_t n = 0, n_values = 0;
    for (uint32_t i = 0; i < n_parts; i++)
        for (uint32_t k = 0; k < parts[i].n; k++)
            part_of[parts[i].nodes[k]] = i;
    const bool *outside = mark_outside(copy, g, part_of);
    Onnx__ValueInfoProto **values =
        byi_arena_calloc(copy->arena, copy->values.n, sizeof *values);
    for (uint32_t i = 0; i < n_parts; i++) {
        const struct byi_model_part *part = &parts[i];
        Onnx__NodeProto *call =
            part->region ? make_function(copy, g, part, part_of, outside)
                         : NULL;
        if (call)
            nodes[n++] = call;
        for (uint32_t k = 0; !call && k < part->n; k++)
            nodes[n++] = graph->node[part->nodes[k]];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_output; k++) {
            const struct copied_value *value =
                intern_value(copy, nodes[i]->output[k]);
            if (value->info && !value->result)
                values[n_values++] = value->info;
        }
    graph->node = nodes;
    graph->n_node = n;
    graph->value_info = values;
    graph->n_value_info = n_values;
}

/* --- graphs --------------------------------------------------------------- */

static enum byoc_status copy_graph(struct model_copy *copy,
                                   const Onnx__GraphProto *from,
                                   Onnx__GraphProto **to);

static enum byoc_status copy_node(struct model_copy *copy,
                                  const Onnx__NodeProto *from,
                                  struct byi_onnx_placement **placement,
                                  Onnx__NodeProto **to)
{
    const char *op = byi_text_or(from->op_type, "(none)");
    const char *expected = copy->next < copy->n_nodes
                               ? copy->placements[copy->next].op
                               : "no further node";
    if (copy->next >= copy->n_nodes || strcmp(op, expected) != 0)
        return byi_fail(copy->err, BYOC_EINVAL,
                        "%s: node %u is %.60s, expected %.60s, as in the "
                        "ledger; the file has changed since the import",
                        copy->from, copy->next, op, expected);
    Onnx__NodeProto *node = byi_arena_copy(copy->arena, from, sizeof *from);
    *placement = &copy->placements[copy->next++];
    node->attribute = byi_arena_copy(copy->arena, from->attribute,
                                     from->n_attribute * sizeof(void *));
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (!node->attribute[i]->g)
            continue;
        node->attribute[i] = byi_arena_copy(copy->arena, node->attribute[i],
                                            sizeof(**node->attribute));
        BYI_TRY(
            copy_graph(copy, node->attribute[i]->g, &node->attribute[i]->g));
    }
    *to = node;
    return BYOC_OK;
}

/* Copy the nodes, sorted topologically. Placements are in the order of the
 * file, so the nodes are copied in that order before they are sorted. */
static enum byoc_status copy_nodes(struct model_copy *copy,
                                   struct graph_copy *g,
                                   const Onnx__GraphProto *from)
{
    const size_t *order = byi_import_order(copy->arena, from);
    Onnx__NodeProto **nodes =
        byi_arena_calloc(copy->arena, g->n, sizeof *nodes);
    struct byi_onnx_placement **placements =
        byi_arena_calloc(copy->arena, g->n, sizeof *placements);
    for (uint32_t i = 0; i < g->n; i++)
        BYI_TRY(copy_node(copy, from->node[i], &placements[i], &nodes[i]));
    g->graph->node = byi_arena_calloc(copy->arena, g->n, sizeof *nodes);
    for (uint32_t i = 0; i < g->n; i++) {
        const size_t at = order ? order[i] : i;
        g->graph->node[i] = nodes[at];
        g->placements[i] = placements[at];
    }
    return BYOC_OK;
}

/* Give each value without a type the type that its node's placement lists. */
static void add_types(struct model_copy *copy, const struct graph_copy *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const Onnx__NodeProto *node = g->graph->node[i];
        const struct byi_onnx_placement *placement = g->placements[i];
        for (size_t k = 0; k < node->n_output && k < placement->n_outputs;
             k++) {
            struct copied_value *value =
                *node->output[k] ? intern_value(copy, node->output[k]) : NULL;
            if (value && !value->info && !value->result)
                value->info =
                    read_type(copy, node->output[k], placement->outputs[k]);
        }
    }
}

/* Cut the copied graph into parts, and rebuild it from them. */
static void cut_graph(struct model_copy *copy, struct graph_copy *g)
{
    uint32_t n_parts;
    for (uint32_t i = 0; i < g->n; i++) {
        add_reads(copy, g, i, g->graph->node[i]);
        g->first[i + 1] = g->reads.n;
    }
    add_types(copy, g);
    const uint32_t n_regions = number_regions(copy, g);
    join_idle(copy, g);
    const struct byi_model_part *parts =
        byi_cut_model(copy->arena, g->n, g->region, n_regions, g->edges.n,
                      g->edges.at, &n_parts);
    build_graph(copy, g, parts, n_parts);
}

/* Recurses once per nested graph; byi_wire_walk bounds the nesting. */
static enum byoc_status copy_graph(struct model_copy *copy,
                                   const Onnx__GraphProto *from,
                                   Onnx__GraphProto **to)
{
    const uint32_t n = (uint32_t)from->n_node;
    struct graph_copy g = {
        .graph = byi_arena_copy(copy->arena, from, sizeof *from),
        .n = n,
        .placements = byi_arena_calloc(copy->arena, n, sizeof(*g.placements)),
        .first = byi_arena_calloc(copy->arena, (size_t)n + 1, sizeof *g.first),
        .region = byi_arena_calloc(copy->arena, n, sizeof *g.region)};
    *to = g.graph;
    copy->depth++;
    define_names(copy, from);
    BYI_TRY(copy_nodes(copy, &g, from));
    define_names(copy, g.graph); /* producers are indices in the new order */
    cut_graph(copy, &g);
    forget_names(copy);
    copy->depth--;
    byi_vec_free(g.reads.at);
    byi_vec_free(g.edges.at);
    return BYOC_OK;
}

/* --- the model ------------------------------------------------------------ */

/* Give the call the region of `inner`, a node of the called function; a call
 * with nodes in several regions gets none. *n_busy counts the call's nodes that
 * are not idle. */
static void set_call_region(struct byi_onnx_placement *call,
                            const struct byi_onnx_placement *inner,
                            uint32_t *n_busy)
{
    if (inner->idle)
        return;
    if (!*n_busy)
        call->region = inner->region, call->backend = inner->backend;
    else if (strcmp(call->region, inner->region) != 0 ||
             strcmp(call->backend, inner->backend) != 0)
        call->region = call->backend = "";
    call->idle = false;
    ++*n_busy;
}

/* Set the region of each call of a model-local function. The placements of the
 * nodes in functions, called "CALL/NODE", come after all placements of the
 * graph's nodes. */
static void set_call_regions(struct model_copy *copy)
{
    struct byi_name_table calls = {0};
    uint32_t *n_busy =
        byi_arena_calloc(copy->arena, copy->n_nodes, sizeof *n_busy);
    for (uint32_t i = 0; i < copy->n_nodes; i++)
        byi_name_intern(&calls, copy->arena, copy->placements[i].name);
    for (uint32_t i = copy->n_nodes; i < copy->n_placements; i++) {
        const char *name = copy->placements[i].name, *slash = name;
        while ((slash = strchr(slash, '/'))) {
            const uint32_t call =
                byi_name_find(&calls, byi_arena_strn(copy->arena, name,
                                                     (size_t)(slash++ - name)));
            if (call < copy->n_nodes)
                set_call_region(&copy->placements[call], &copy->placements[i],
                                &n_busy[call]);
        }
    }
}

/* Add the graph's large weights, which byi_onnx_open left out. */
static void add_weights(struct model_copy *copy,
                        const struct byi_onnx_file *file,
                        Onnx__GraphProto *graph)
{
    const size_t n = graph->n_initializer;
    graph->initializer = byi_arena_copy(copy->arena, graph->initializer,
                                        n * sizeof(*graph->initializer));
    for (size_t i = 0; i < n; i++) {
        if (!file->raw.at[i].at)
            continue;
        Onnx__TensorProto *t = byi_arena_copy(
            copy->arena, graph->initializer[i], sizeof(**graph->initializer));
        t->has_raw_data = true;
        t->raw_data.data = (uint8_t *)(uintptr_t)file->raw.at[i].at;
        t->raw_data.len = file->raw.at[i].n;
        graph->initializer[i] = t;
    }
}

/* Add the functions, and their domains to every list of opsets. */
static void add_functions(struct model_copy *copy, Onnx__ModelProto *model)
{
    const size_t n = model->n_opset_import;
    struct byi_name_table domains = {0};
    Onnx__FunctionProto **functions = byi_arena_calloc(
        copy->arena, model->n_functions + copy->part_functions.n,
        sizeof *functions);
    Onnx__OperatorSetIdProto **sets = byi_arena_calloc(
        copy->arena, n + copy->part_functions.n + 1, sizeof *sets);
    if (n)
        memcpy(sets, model->opset_import, n * sizeof *sets);
    if (model->n_functions)
        memcpy(functions, model->functions,
               model->n_functions * sizeof *functions);
    model->opset_import = sets;
    model->functions = functions;
    if (!n) /* before IR version 3 there was one opset */
        sets[model->n_opset_import++] = make_opset(copy, NULL);
    for (size_t i = 0; i < n; i++)
        byi_name_intern(&domains, copy->arena,
                        byi_text_or(sets[i]->domain, ""));
    for (uint32_t i = 0; i < copy->part_functions.n; i++) {
        const uint32_t n_domains = domains.n;
        char *domain = copy->part_functions.at[i]->domain;
        if (byi_name_intern(&domains, copy->arena, domain) == n_domains)
            sets[model->n_opset_import++] = make_opset(copy, domain);
        functions[model->n_functions++] = copy->part_functions.at[i];
    }
    for (uint32_t i = 0; i < copy->part_functions.n; i++) {
        copy->part_functions.at[i]->n_opset_import = model->n_opset_import;
        copy->part_functions.at[i]->opset_import = sets;
    }
    if (copy->part_functions.n && model->ir_version < FUNCTIONS_SINCE)
        model->ir_version = FUNCTIONS_SINCE;
}

static enum byoc_status write_model(struct model_copy *copy, const char *to,
                                    const Onnx__ModelProto *model)
{
    const size_t n = onnx__model_proto__get_packed_size(model);
    if (n > INT_MAX)
        return byi_fail(copy->err, BYOC_ELIMIT,
                        "%s: found a copy of %zu bytes, expected less than 2 "
                        "GiB, the limit of an ONNX file; export the model "
                        "with external weights",
                        to, n);
    uint8_t *data = byi_arena_alloc(copy->arena, n);
    onnx__model_proto__pack(model, data);
    return byi_file_write(to, data, n, copy->err);
}

static enum byoc_status copy_model(struct model_copy *copy, const char *to,
                                   const struct byi_onnx_file *file)
{
    Onnx__ModelProto model = *file->model;
    copy->n_nodes = (uint32_t)byi_onnx_count_nodes(model.graph);
    if (copy->n_nodes > copy->n_placements ||
        (!model.n_functions && copy->n_nodes != copy->n_placements))
        return byi_fail(copy->err, BYOC_EINVAL,
                        "%s: found %u nodes, expected %s%u, as in the ledger; "
                        "the file has changed since the import",
                        copy->from, copy->n_nodes,
                        model.n_functions ? "at most " : "",
                        copy->n_placements);
    for (size_t i = 0; i < model.n_functions; i++)
        byi_name_intern(
            &copy->functions, copy->arena,
            byi_arena_printf(copy->arena, "%s\n%s",
                             byi_text_or(model.functions[i]->domain, ""),
                             byi_text_or(model.functions[i]->name, "")));
    set_call_regions(copy);
    BYI_TRY(copy_graph(copy, model.graph, &model.graph));
    add_weights(copy, file, model.graph);
    add_functions(copy, &model);
    return write_model(copy, to, &model);
}

enum byoc_status byi_onnx_regions(const char *from, const char *to,
                                  uint32_t n_placements,
                                  const struct byi_onnx_placement *placements,
                                  struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_onnx_file file = {.arena = arena};
    struct model_copy copy = {
        .from = from,
        .arena = arena,
        .placements = byi_arena_copy(arena, placements,
                                     n_placements * sizeof *placements),
        .n_placements = n_placements,
        .err = err};
    const void *data = NULL;
    size_t n = 0;

    enum byoc_status status = byi_map_file(from, &data, &n, err);
    if (status == BYOC_OK) {
        status = byi_onnx_check_copy(from, to, data, n, err);
        byi_unmap(data, n);
    }
    if (status == BYOC_OK)
        status = byi_onnx_open(from, arena, &file, err);
    if (status == BYOC_OK)
        status = copy_model(&copy, to, &file);
    byi_onnx_close(&file);
    byi_vec_free(copy.values.at);
    byi_vec_free(copy.part_functions.at);
    byi_arena_free(&arena);
    return status;
}
