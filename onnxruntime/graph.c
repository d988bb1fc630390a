/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c: copies nodes and values out of a graph of ONNX Runtime. Each node is
 * written as a NodeProto once, so that the model of any subset of the nodes is
 * a concatenation of their bytes.
 */
#include "onnxruntime/provider.h"

#include <string.h>

enum {
    MAX_DEPTH = 32, /* of nested bodies, which put_node writes recursively */
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12
};

/* --- bodies of If, Loop and Scan ------------------------------------------ */

static enum byoc_status put_node(const OrtApi *ort, const OrtNode *node,
                                 unsigned depth, struct byi_ep_bytes *out,
                                 const char **refusal, struct byoc_error *err);

/* Append the names of values as strings; "" for omitted values. */
static enum byoc_status put_names(const OrtApi *ort, unsigned field,
                                  const OrtValueInfo *const *values, size_t n,
                                  struct byi_ep_bytes *out,
                                  struct byoc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = "";
        if (values[i])
            BYI_ORT(ort, GetValueInfoName(values[i], &name));
        byi_ep_put_string(out, field, name);
    }
    return BYOC_OK;
}

static enum byoc_status put_values(const OrtApi *ort, unsigned field,
                                   const OrtValueInfo *const *values, size_t n,
                                   struct byi_ep_bytes *out,
                                   struct byoc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *name;
        BYI_ORT(ort, GetValueInfoName(values[i], &name));
        BYI_TRY(byi_ep_put_value(ort, out, field, values[i], name, err));
    }
    return BYOC_OK;
}

/* Append the initializers of a graph as fields of its GraphProto. */
static enum byoc_status put_constants(const OrtApi *ort, const OrtGraph *graph,
                                      struct byi_ep_bytes *out,
                                      struct byoc_error *err)
{
    enum { RAW_DATA = 9 };
    size_t n;
    BYI_ORT(ort, Graph_GetNumInitializers(graph, &n));
    const OrtValueInfo **values =
        byi_arena_calloc(out->arena, n + 1, sizeof *values);
    BYI_ORT(ort, Graph_GetInitializers(graph, values, n));
    for (size_t i = 0; i < n; i++) {
        struct byi_ep_bytes tensor = {.arena = out->arena};
        const OrtValue *value;
        const char *name;
        const void *data;
        size_t bytes;
        BYI_ORT(ort, GetValueInfoName(values[i], &name));
        BYI_ORT(ort, ValueInfo_GetInitializerValue(values[i], &value));
        BYI_TRY(
            byi_ep_put_tensor(ort, value, name, &tensor, &data, &bytes, err));
        if (data)
            byi_ep_put_bytes(&tensor, RAW_DATA, data, bytes);
        byi_ep_put_bytes(out, GRAPH_INITIALIZER, tensor.at, tensor.n);
    }
    return BYOC_OK;
}

/* Append the inputs and outputs of a graph as fields of its GraphProto. */
static enum byoc_status put_inputs_and_outputs(const OrtApi *ort,
                                               const OrtGraph *graph,
                                               struct byi_ep_bytes *out,
                                               struct byoc_error *err)
{
    size_t n_in, n_out;
    BYI_ORT(ort, Graph_GetNumInputs(graph, &n_in));
    BYI_ORT(ort, Graph_GetNumOutputs(graph, &n_out));
    const OrtValueInfo **values =
        byi_arena_calloc(out->arena, n_in + n_out + 1, sizeof *values);
    BYI_ORT(ort, Graph_GetInputs(graph, values, n_in));
    BYI_ORT(ort, Graph_GetOutputs(graph, values + n_in, n_out));
    BYI_TRY(put_values(ort, GRAPH_INPUT, values, n_in, out, err));
    return put_values(ort, GRAPH_OUTPUT, values + n_in, n_out, out, err);
}

/* Append the fields of a GraphProto. */
static enum byoc_status put_graph(const OrtApi *ort, const OrtGraph *graph,
                                  unsigned depth, struct byi_ep_bytes *out,
                                  const char **refusal, struct byoc_error *err)
{
    const char *name;
    size_t n;
    BYI_ORT(ort, Graph_GetName(graph, &name));
    byi_ep_put_string(out, GRAPH_NAME, name);
    BYI_ORT(ort, Graph_GetNumNodes(graph, &n));
    const OrtNode **nodes = byi_arena_calloc(out->arena, n + 1, sizeof *nodes);
    BYI_ORT(ort, Graph_GetNodes(graph, nodes, n));
    for (size_t i = 0; i < n; i++) {
        struct byi_ep_bytes node = {.arena = out->arena};
        BYI_TRY(put_node(ort, nodes[i], depth + 1, &node, refusal, err));
        byi_ep_put_bytes(out, GRAPH_NODE, node.at, node.n);
    }
    BYI_TRY(put_constants(ort, graph, out, err));
    return put_inputs_and_outputs(ort, graph, out, err);
}

/* Append the bodies of a node as attributes of its NodeProto. */
static enum byoc_status put_bodies(const OrtApi *ort, const OrtNode *node,
                                   unsigned depth, struct byi_ep_bytes *out,
                                   const char **refusal, struct byoc_error *err)
{
    enum { ATTRIBUTE = 5, NAME = 1, GRAPH = 6, TYPE = 20, TYPE_GRAPH = 5 };
    size_t n;
    BYI_ORT(ort, Node_GetNumSubgraphs(node, &n));
    const OrtGraph **graphs =
        byi_arena_calloc(out->arena, n + 1, sizeof *graphs);
    const char **names = byi_arena_calloc(out->arena, n + 1, sizeof *names);
    if (n > 0)
        BYI_ORT(ort, Node_GetSubgraphs(node, graphs, n, names));
    if (n > 0 && depth >= MAX_DEPTH) {
        *refusal = "its bodies are nested deeper than 32";
        return BYOC_OK;
    }
    for (size_t i = 0; i < n; i++) {
        struct byi_ep_bytes graph = {.arena = out->arena};
        struct byi_ep_bytes attribute = {.arena = out->arena};
        BYI_TRY(put_graph(ort, graphs[i], depth, &graph, refusal, err));
        byi_ep_put_string(&attribute, NAME, names[i]);
        byi_ep_put_int(&attribute, TYPE, TYPE_GRAPH);
        byi_ep_put_bytes(&attribute, GRAPH, graph.at, graph.n);
        byi_ep_put_bytes(out, ATTRIBUTE, attribute.at, attribute.n);
    }
    return BYOC_OK;
}

/* --- nodes ---------------------------------------------------------------- */

/* The inputs and outputs of a node. */
struct byi_ep_ports {
    size_t n_in, n_implicit, n_out;
    /* in: n_in inputs, then n_implicit values that bodies read; an element is
     * NULL if the input or output is omitted */
    const OrtValueInfo **in, **out;
};

static enum byoc_status find_ports(const OrtApi *ort, const OrtNode *node,
                                   struct byi_arena *arena,
                                   struct byi_ep_ports *ports,
                                   struct byoc_error *err)
{
    BYI_ORT(ort, Node_GetNumInputs(node, &ports->n_in));
    BYI_ORT(ort, Node_GetNumImplicitInputs(node, &ports->n_implicit));
    BYI_ORT(ort, Node_GetNumOutputs(node, &ports->n_out));
    ports->in = byi_arena_calloc(arena, ports->n_in + ports->n_implicit + 1,
                                 sizeof *ports->in);
    ports->out = byi_arena_calloc(arena, ports->n_out + 1, sizeof *ports->out);
    BYI_ORT(ort, Node_GetInputs(node, ports->in, ports->n_in));
    if (ports->n_implicit > 0)
        BYI_ORT(ort, Node_GetImplicitInputs(node, ports->in + ports->n_in,
                                            ports->n_implicit));
    BYI_ORT(ort, Node_GetOutputs(node, ports->out, ports->n_out));
    return BYOC_OK;
}

static enum byoc_status put_node(const OrtApi *ort, const OrtNode *node,
                                 unsigned depth, struct byi_ep_bytes *out,
                                 const char **refusal, struct byoc_error *err)
{
    enum { INPUT = 1, OUTPUT = 2, NAME = 3, OP_TYPE = 4, DOMAIN_NAME = 7 };
    struct byi_ep_ports ports;
    const char *text;
    BYI_TRY(find_ports(ort, node, out->arena, &ports, err));
    BYI_TRY(put_names(ort, INPUT, ports.in, ports.n_in, out, err));
    BYI_TRY(put_names(ort, OUTPUT, ports.out, ports.n_out, out, err));
    BYI_ORT(ort, Node_GetName(node, &text));
    byi_ep_put_string(out, NAME, text);
    BYI_ORT(ort, Node_GetOperatorType(node, &text));
    byi_ep_put_string(out, OP_TYPE, text);
    BYI_ORT(ort, Node_GetDomain(node, &text));
    byi_ep_put_string(out, DOMAIN_NAME, text);
    BYI_TRY(byi_ep_put_attributes(ort, node, out, refusal, err));
    return put_bodies(ort, node, depth, out, refusal, err);
}

/* --- values --------------------------------------------------------------- */

/* Set v->rank and v->is_tensor. A tensor with elements of 4 or 2 bits cannot be
 * an input or output of a fused node. byoc stores each element in a byte, and
 * ONNX Runtime packs them. */
static enum byoc_status read_type(const OrtApi *ort, const OrtValueInfo *info,
                                  struct byi_ep_value *v,
                                  struct byoc_error *err)
{
    const OrtTypeInfo *type;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType element;
    ONNXType kind;
    v->rank = -1;
    BYI_ORT(ort, GetValueInfoTypeInfo(info, &type));
    if (!type)
        return BYOC_OK;
    BYI_ORT(ort, GetOnnxTypeFromTypeInfo(type, &kind));
    if (kind != ONNX_TYPE_TENSOR)
        return BYOC_OK;
    BYI_ORT(ort, CastTypeInfoToTensorInfo(type, &tensor));
    BYI_ORT(ort, GetTensorElementType(tensor, &element));
    BYI_TRY(byi_ep_read_rank(ort, tensor, &v->rank, err));
    switch (byi_ep_dtype(element)) {
    case BYOC_NONE:
    case BYOC_U4:
    case BYOC_I4:
    case BYOC_F4E2M1:
    case BYOC_U2:
    case BYOC_I2:
        return BYOC_OK;
    default:
        v->is_tensor = true;
        v->is_string = byi_ep_dtype(element) == BYOC_STRING;
        return BYOC_OK;
    }
}

/* Set *number to the index of a value in g->values, which this adds if it is
 * new; UINT32_MAX for an omitted input or output. */
static enum byoc_status add_value(struct byi_ep_graph *g,
                                  const OrtValueInfo *info, uint32_t *number,
                                  struct byoc_error *err)
{
    const OrtApi *ort = g->ort;
    const char *name = "";
    bool constant = false;
    *number = UINT32_MAX;
    if (info)
        BYI_ORT(ort, GetValueInfoName(info, &name));
    if (*name == '\0')
        return BYOC_OK;
    const uint32_t n_known = g->names.n;
    *number = byi_name_intern(&g->names, g->arena, name);
    if (*number < n_known)
        return BYOC_OK;
    if (n_known == g->cap_values)
        g->values = byi_arena_grow(g->arena, g->values, &g->cap_values,
                                   sizeof *g->values);
    struct byi_ep_value *v = &g->values[*number];
    *v = (struct byi_ep_value){
        .name = g->names.at[*number], .info = info, .producer = BYI_EP_NONE};
    BYI_TRY(read_type(ort, info, v, err));
    BYI_ORT(ort, ValueInfo_IsConstantInitializer(info, &constant));
    if (!constant)
        BYI_ORT(ort, ValueInfo_IsOptionalGraphInput(info, &v->is_input));
    if (constant ||
        (v->is_input && g->constant_inputs && v->is_tensor && !v->is_string))
        BYI_ORT(ort, ValueInfo_GetInitializerValue(info, &v->constant));
    return BYOC_OK;
}

static enum byoc_status read_node(struct byi_ep_graph *g, const OrtNode *from,
                                  uint32_t number, struct byoc_error *err)
{
    const OrtApi *ort = g->ort;
    struct byi_ep_node *node = &g->nodes[number];
    struct byi_ep_bytes proto = {.arena = g->arena};
    struct byi_ep_ports ports;
    node->node = from;
    BYI_ORT(ort, Node_GetName(from, &node->name));
    BYI_ORT(ort, Node_GetOperatorType(from, &node->op));
    BYI_ORT(ort, Node_GetDomain(from, &node->domain));
    BYI_TRY(find_ports(ort, from, g->arena, &ports, err));
    node->n_in = (uint32_t)(ports.n_in + ports.n_implicit);
    node->n_explicit = (uint32_t)ports.n_in;
    node->n_out = (uint32_t)ports.n_out;
    uint32_t *in = byi_arena_calloc(g->arena, node->n_in + 1, sizeof *in);
    uint32_t *out = byi_arena_calloc(g->arena, node->n_out + 1, sizeof *out);
    for (uint32_t i = 0; i < node->n_in; i++)
        BYI_TRY(add_value(g, ports.in[i], &in[i], err));
    for (uint32_t i = 0; i < node->n_out; i++) {
        BYI_TRY(add_value(g, ports.out[i], &out[i], err));
        if (out[i] != UINT32_MAX)
            g->values[out[i]].producer = (int32_t)number;
    }
    node->in = in;
    node->out = out;
    BYI_TRY(put_node(ort, from, 0, &proto, &node->refusal, err));
    node->proto = proto.at;
    node->n_proto = proto.n;
    return BYOC_OK;
}

/* Set g->model_header to the fields of the ModelProto before its graph. */
static enum byoc_status read_model_header(struct byi_ep_graph *g,
                                          const OrtGraph *graph,
                                          struct byoc_error *err)
{
    enum { IR_VERSION = 1, OPSET = 8, SET_DOMAIN = 1, SET_VERSION = 2 };
    const OrtApi *ort = g->ort;
    int64_t version;
    size_t n;
    g->model_header.arena = g->arena;
    BYI_ORT(ort, Graph_GetOnnxIRVersion(graph, &version));
    byi_ep_put_int(&g->model_header, IR_VERSION, (uint64_t)version);
    BYI_ORT(ort, Graph_GetNumOperatorSets(graph, &n));
    const char **domains = byi_arena_calloc(g->arena, n + 1, sizeof *domains);
    int64_t *versions = byi_arena_calloc(g->arena, n + 1, sizeof *versions);
    BYI_ORT(ort, Graph_GetOperatorSets(graph, domains, versions, n));
    for (size_t i = 0; i < n; i++) {
        struct byi_ep_bytes set = {.arena = g->arena};
        byi_ep_put_string(&set, SET_DOMAIN, domains[i]);
        byi_ep_put_int(&set, SET_VERSION, (uint64_t)versions[i]);
        byi_ep_put_bytes(&g->model_header, OPSET, set.at, set.n);
    }
    return BYOC_OK;
}

/* Mark the graph's outputs. They are read from the graph, which may be a view
 * of some nodes of another graph. ValueInfo_IsGraphOutput does not report the
 * outputs of such a view. */
static enum byoc_status mark_outputs(struct byi_ep_graph *g,
                                     const OrtGraph *graph,
                                     struct byoc_error *err)
{
    const OrtApi *ort = g->ort;
    size_t n;
    BYI_ORT(ort, Graph_GetNumOutputs(graph, &n));
    const OrtValueInfo **values =
        byi_arena_calloc(g->arena, n + 1, sizeof *values);
    BYI_ORT(ort, Graph_GetOutputs(graph, values, n));
    for (size_t i = 0; i < n; i++) {
        uint32_t number;
        BYI_TRY(add_value(g, values[i], &number, err));
        if (number != UINT32_MAX)
            g->values[number].is_output = true;
    }
    return BYOC_OK;
}

enum byoc_status byi_ep_graph_read(const OrtApi *ort, const OrtGraph *graph,
                                   const OrtNode *const *nodes, size_t n,
                                   struct byi_ep_graph *g,
                                   struct byoc_error *err)
{
    const bool all_nodes = !nodes;
    g->ort = ort;
    g->names.index.arena = g->arena;
    BYI_TRY(read_model_header(g, graph, err));
    if (all_nodes) {
        BYI_ORT(ort, Graph_GetNumNodes(graph, &n));
        const OrtNode **list = byi_arena_calloc(g->arena, n + 1, sizeof *list);
        BYI_ORT(ort, Graph_GetNodes(graph, list, n));
        nodes = list;
    }
    g->n_nodes = (uint32_t)n;
    g->nodes = byi_arena_calloc(g->arena, n + 1, sizeof *g->nodes);
    for (size_t i = 0; i < n; i++)
        BYI_TRY(read_node(g, nodes[i], (uint32_t)i, err));
    if (all_nodes)
        return mark_outputs(g, graph, err);
    for (uint32_t v = 0; v < g->names.n; v++)
        g->values[v].is_output = g->values[v].producer != BYI_EP_NONE;
    return BYOC_OK;
}
