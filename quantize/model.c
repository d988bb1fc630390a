/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: unpacks an ONNX model into an arena, indexes its tensors, and packs
 * it again.
 */
#include "quantize/model.h"

#include <string.h>

#include "frontend_onnx/wire.h"

static void *arena_alloc(void *arena, size_t n)
{
    return byi_arena_alloc(arena, n ? n : 1);
}

static void arena_free(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

/* --- tensors -------------------------------------------------------------- */

struct quant_value *byi_quant_value(struct quant_model *m, const char *name)
{
    if (!name || !*name)
        return NULL;
    const uint32_t i = byi_name_intern(&m->names, m->arena, name);
    return i < m->n_values ? &m->values[i] : NULL;
}

/* Number all names, and allocate m->values, which never moves afterwards. */
static void number_names(struct quant_model *m)
{
    const Onnx__GraphProto *g = m->graph;
    for (size_t i = 0; i < g->n_input; i++)
        byi_name_intern(&m->names, m->arena, g->input[i]->name);
    for (size_t i = 0; i < g->n_initializer; i++)
        byi_name_intern(&m->names, m->arena, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_output; i++)
        byi_name_intern(&m->names, m->arena, g->output[i]->name);
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *node = g->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            byi_name_intern(&m->names, m->arena, node->input[k]);
        for (size_t k = 0; k < node->n_output; k++)
            byi_name_intern(&m->names, m->arena, node->output[k]);
    }
    m->n_values = m->names.n;
    m->values = byi_arena_calloc(m->arena, m->n_values, sizeof *m->values);
    for (uint32_t i = 0; i < m->n_values; i++)
        m->values[i].name = m->names.at[i];
}

/* Returns the tensor of a Constant node, or NULL. */
static const Onnx__TensorProto *constant_of(const Onnx__NodeProto *node)
{
    if (strcmp(node->op_type, "Constant") != 0 || node->n_attribute != 1)
        return NULL;
    return node->attribute[0]->t;
}

/* Whether the node selects elements by their values. */
static bool selects(const Onnx__NodeProto *node)
{
    static const char *const types[] = {"NonMaxSuppression", "NonZero", "TopK"};
    for (size_t i = 0; i < BYI_COUNT(types); i++)
        if (strcmp(node->op_type, types[i]) == 0)
            return true;
    return false;
}

static void index_node(struct quant_model *m, Onnx__NodeProto *node)
{
    bool selected = selects(node);
    for (size_t k = 0; k < node->n_input; k++) {
        struct quant_value *v = byi_quant_value(m, node->input[k]);
        if (v) {
            v->reader = node;
            v->n_readers++;
            selected |= v->selected;
        }
    }
    for (size_t k = 0; k < node->n_output; k++) {
        struct quant_value *v = byi_quant_value(m, node->output[k]);
        if (v) {
            v->producer = node;
            v->constant = constant_of(node);
            v->selected = selected;
        }
    }
}

static void index_graph(struct quant_model *m)
{
    const Onnx__GraphProto *g = m->graph;
    number_names(m);
    for (size_t i = 0; i < g->n_input; i++)
        m->values[byi_name_intern(&m->names, m->arena, g->input[i]->name)]
            .input = true;
    for (size_t i = 0; i < g->n_initializer; i++) {
        struct quant_value *v = byi_quant_value(m, g->initializer[i]->name);
        if (v && !v->input)
            v->constant = g->initializer[i];
    }
    for (size_t i = 0; i < g->n_output; i++)
        m->values[byi_name_intern(&m->names, m->arena, g->output[i]->name)]
            .output = true;
    for (size_t i = 0; i < g->n_node; i++)
        index_node(m, g->node[i]);
}

/* --- reading -------------------------------------------------------------- */

static bool is_external(const Onnx__TensorProto *t)
{
    return t->has_data_location &&
           t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* Fail if `text`, member `member` of entry `number` of a list of the graph, is
 * missing. */
static enum byoc_status check_text(const struct quant_model *m,
                                   const char *text, const char *list,
                                   size_t number, const char *member,
                                   struct byoc_error *err)
{
    return text ? BYOC_OK
                : byi_fail(err, BYOC_EPARSE,
                           "%s: found no %s in %s %zu of the graph, expected a "
                           "valid ONNX model; check it with onnx.checker",
                           m->path, member, list, number);
}

/* Check that the model has every name that other files of quantize/ read. */
static enum byoc_status check_names(const struct quant_model *m,
                                    struct byoc_error *err)
{
    const Onnx__GraphProto *g = m->graph;
    for (size_t i = 0; i < g->n_node; i++)
        BYI_TRY(check_text(m, g->node[i]->op_type, "node", i, "op_type", err));
    for (size_t i = 0; i < g->n_input; i++)
        BYI_TRY(check_text(m, g->input[i]->name, "input", i, "name", err));
    for (size_t i = 0; i < g->n_output; i++)
        BYI_TRY(check_text(m, g->output[i]->name, "output", i, "name", err));
    for (size_t i = 0; i < g->n_initializer; i++)
        BYI_TRY(check_text(m, g->initializer[i]->name, "initializer", i, "name",
                           err));
    return BYOC_OK;
}

/* Drop the inputs that are also initializers, and raise the IR version to at
 * least 4. Before IR version 4 every initializer is an input. Later it may be
 * one, and is then the input's default, which callers can no longer override
 * once the input is dropped. */
static void separate_inputs(struct quant_model *m)
{
    enum { SEPARATE = 4 };
    Onnx__GraphProto *g = m->graph;
    struct byi_name_table names = {0};
    size_t n = 0;
    m->proto->has_ir_version = true;
    if (m->proto->ir_version < SEPARATE)
        m->proto->ir_version = SEPARATE;
    for (size_t i = 0; i < g->n_initializer; i++)
        byi_name_intern(&names, m->arena, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_input; i++)
        if (byi_name_find(&names, g->input[i]->name) == UINT32_MAX)
            g->input[n++] = g->input[i];
    g->n_input = n;
}

/* Set m->opset. Check that names exist and that the weights are in the file. */
static enum byoc_status check_model(struct quant_model *m,
                                    struct byoc_error *err)
{
    const Onnx__ModelProto *p = m->proto;
    for (size_t i = 0; i < p->n_opset_import; i++) {
        if (byi_quant_is_standard(p->opset_import[i]->domain))
            m->opset = p->opset_import[i]->version;
    }
    BYI_TRY(check_names(m, err));
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (is_external(m->graph->initializer[i]))
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "%s: initializer '%s' is in another file, expected "
                            "weights in the model; save it without external "
                            "data",
                            m->path, m->graph->initializer[i]->name);
    return BYOC_OK;
}

enum byoc_status byi_quant_read(const char *path, struct byi_arena *arena,
                                struct quant_model *m, struct byoc_error *err)
{
    ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
    const void *data;
    size_t n;
    *m = (struct quant_model){.arena = arena, .path = path};
    BYI_TRY(byi_map_file(path, &data, &n, err));
    enum byoc_status status =
        byi_wire_check(data, n, &onnx__model_proto__descriptor, path, err);
    if (status == BYOC_OK)
        m->proto = onnx__model_proto__unpack(&allocator, n, data);
    byi_unmap(data, n);
    BYI_TRY(status);
    if (!m->proto)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found bytes that protobuf cannot unpack, expected "
                        "an ONNX model; export the model again",
                        path);
    if (!m->proto->graph)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found a file without a graph, expected an ONNX "
                        "model; export the model again",
                        path);
    m->graph = m->proto->graph;
    m->bytes = n;
    BYI_TRY(check_model(m, err));
    separate_inputs(m);
    BYI_TRY(byi_quant_upgrade(m, err));
    index_graph(m);
    return BYOC_OK;
}

const void *byi_quant_pack(const struct quant_model *m, size_t *n)
{
    *n = onnx__model_proto__get_packed_size(m->proto);
    void *bytes = byi_arena_alloc(m->arena, *n ? *n : 1);
    onnx__model_proto__pack(m->proto, bytes);
    return bytes;
}

/* --- constants and attributes --------------------------------------------- */

/* Casting raw_data is valid: the arena aligns all bytes that protobuf-c unpacks
 * into it. */
const float *byi_quant_floats(const Onnx__TensorProto *t, int64_t *n)
{
    if (t->n_dims > BYI_MAX_RANK || t->data_type != BYOC_F32 || is_external(t))
        return NULL;
    *n = byi_elements((uint32_t)t->n_dims, t->dims);
    if (*n <= 0)
        return NULL;
    if (t->has_raw_data && t->raw_data.len == (size_t)*n * sizeof(float))
        return (const float *)(const void *)t->raw_data.data;
    return t->n_float_data == (size_t)*n ? t->float_data : NULL;
}
