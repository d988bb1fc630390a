/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: decides which tensors to quantise. These are the tensors that
 * convolutions and products with constant weights read. If the result of
 * another operator that can compute on bytes is quantised, its operands are,
 * too.
 */
#include "quantize/model.h"

#include <string.h>

/* What an operator does with quantised tensors. */
enum quant_role {
    ROLE_NONE,  /* needs float32 operands                              */
    ROLE_LAYER, /* multiplies 8-bit data by 8-bit weights              */
    ROLE_CLAMP, /* backends fuse it into the operator before it        */
    ROLE_BYTES, /* computes on bytes; all its inputs are data          */
    ROLE_JOIN,  /* concatenates elements of its inputs                 */
    ROLE_MOVE   /* each element of the result is one of input 0        */
};

/* The operators with another role than ROLE_NONE. */
static const struct quant_op {
    const char *type;
    enum quant_role role;
} ops[] = {
    {"Conv", ROLE_LAYER},        {"Gemm", ROLE_LAYER},
    {"MatMul", ROLE_LAYER},      {"Relu", ROLE_CLAMP},
    {"Clip", ROLE_CLAMP},        {"Add", ROLE_BYTES},
    {"AveragePool", ROLE_BYTES}, {"GlobalAveragePool", ROLE_BYTES},
    {"Concat", ROLE_JOIN},       {"MaxPool", ROLE_MOVE},
    {"Flatten", ROLE_MOVE},      {"Reshape", ROLE_MOVE},
    {"Squeeze", ROLE_MOVE},      {"Unsqueeze", ROLE_MOVE},
    {"Transpose", ROLE_MOVE},
};

static enum quant_role role_of(const Onnx__NodeProto *node)
{
    const bool standard = byi_quant_is_standard(node->domain);
    for (size_t i = 0; standard && i < BYI_COUNT(ops); i++)
        if (strcmp(ops[i].type, node->op_type) == 0)
            return ops[i].role;
    return ROLE_NONE;
}

/* --- layers --------------------------------------------------------------- */

static struct quant_value *input_of(struct quant_model *m,
                                    const Onnx__NodeProto *node, size_t i)
{
    return i < node->n_input ? byi_quant_value(m, node->input[i]) : NULL;
}

/* An attribute of a node; if it is missing, one with integer 0 and float 1. */
static Onnx__AttributeProto attribute(const Onnx__NodeProto *node,
                                      const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name &&
            strcmp(node->attribute[i]->name, name) == 0)
            return *node->attribute[i];
    return (Onnx__AttributeProto){.f = 1};
}

/* Read a node as a layer. Returns false if its operands cannot be quantised. */
static bool read_layer(struct quant_model *m, Onnx__NodeProto *node,
                       struct quant_layer *layer)
{
    const bool gemm = strcmp(node->op_type, "Gemm") == 0;
    const bool conv = strcmp(node->op_type, "Conv") == 0;
    struct quant_value *x = input_of(m, node, 0), *w = input_of(m, node, 1),
                       *bias = input_of(m, node, 2);
    int64_t n;
    if (!x || !w || x->constant || !w->constant || node->n_output != 1 ||
        !byi_quant_floats(w->constant, &n))
        return false;
    const size_t rank = w->constant->n_dims;
    if (conv ? rank < 3 : rank != 2)
        return false;
    if (gemm &&
        (attribute(node, "transA").i || attribute(node, "alpha").f != 1 ||
         attribute(node, "beta").f != 1))
        return false;
    const int64_t axis = conv || (gemm && attribute(node, "transB").i) ? 0 : 1;
    const bool bias_fits = bias && bias->constant &&
                           bias->constant->n_dims == 1 &&
                           bias->constant->dims[0] == w->constant->dims[axis] &&
                           byi_quant_floats(bias->constant, &n);
    *layer = (struct quant_layer){.node = node,
                                  .x = x,
                                  .weights = w,
                                  .bias = bias_fits ? bias : NULL,
                                  .y = byi_quant_value(m, node->output[0]),
                                  .axis = axis};
    return layer->y != NULL;
}

/* --- nodes that stay float32 ---------------------------------------------- */

static bool has_name(const char *const *list, const char *name)
{
    for (; name && list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* Whether the user keeps the node in float32. */
static bool is_kept(const Onnx__NodeProto *node,
                    const struct byi_quantize_params *params)
{
    return has_name(params->keep, node->name) ||
           has_name(params->keep_type, node->op_type);
}

/* Check that each entry is the name, or type, of a node. */
static enum byoc_status check_kept(const struct quant_model *m,
                                   const char *const *list, bool type,
                                   struct byoc_error *err)
{
    const Onnx__GraphProto *g = m->graph;
    for (; list && *list; list++) {
        const char **names =
            byi_arena_calloc(m->arena, g->n_node + 1, sizeof *names);
        uint32_t n = 0;
        bool found = false;
        for (size_t i = 0; i < g->n_node; i++) {
            const char *name = type ? g->node[i]->op_type : g->node[i]->name;
            if (name)
                names[n++] = name;
            found |= name && strcmp(name, *list) == 0;
        }
        const char *nearest = found ? NULL : byi_nearest(*list, names, n);
        if (!found)
            return byi_fail(err, BYOC_EINVAL,
                            "%s: found no node of the %s '%s', expected %s of "
                            "the model%s%s%s",
                            m->path, type ? "operator" : "name", *list,
                            type ? "an operator" : "the name of a node",
                            nearest ? "; did you mean '" : "",
                            nearest ? nearest : "", nearest ? "'?" : "");
    }
    return BYOC_OK;
}

/* --- tensors -------------------------------------------------------------- */

/* Whether the result of the node, or of up to two clamps after it, is
 * quantised.
 */
static bool result_is_quantized(struct quant_model *m,
                                const Onnx__NodeProto *node)
{
    for (int clamps = 0; clamps < 3 && node->n_output > 0; clamps++) {
        const struct quant_value *y = byi_quant_value(m, node->output[0]);
        if (!y || y->to_quantize)
            return y != NULL;
        if (y->output || y->n_readers != 1 ||
            role_of(y->reader) != ROLE_CLAMP ||
            strcmp(y->reader->input[0], y->name) != 0)
            return false;
        node = y->reader;
    }
    return false;
}

/* Quantise the operands of an operator that computes on bytes, unless one of
 * them is constant or missing. */
static void mark_byte_operands(struct quant_model *m,
                               const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_input; k++)
        if (!input_of(m, node, k) || input_of(m, node, k)->constant)
            return;
    for (size_t k = 0; k < node->n_input; k++)
        input_of(m, node, k)->to_quantize = true;
}

/* Quantise the operands of a concatenation. An operand that no other node reads
 * gets the range of the result, so that the operator moves bytes without
 * requantising them. */
static void mark_joined_operands(struct quant_model *m,
                                 const Onnx__NodeProto *node)
{
    struct quant_value *y = byi_quant_value(m, node->output[0]);
    mark_byte_operands(m, node);
    for (size_t k = 0; k < node->n_input; k++) {
        struct quant_value *x = input_of(m, node, k);
        if (x && x->to_quantize && y && y->to_quantize && x->n_readers == 1 &&
            !x->input && !x->output && !x->range_of)
            x->range_of = y;
    }
}

/* Quantise the operand of an operator whose results are elements of it, and
 * give the result its range, so that the operator moves bytes without
 * requantising them. */
static void mark_moved_operand(struct quant_model *m,
                               const Onnx__NodeProto *node)
{
    struct quant_value *x = input_of(m, node, 0),
                       *y = byi_quant_value(m, node->output[0]);
    if (!x || x->constant || !y || !y->to_quantize)
        return;
    x->to_quantize = true;
    y->range_of = x;
}

/* Set `to_quantize` and `range_of` of all tensors, from the last node to the
 * first, so that readers come before producers. */
static void mark_tensors(struct quant_model *m,
                         const struct byi_quantize_params *params)
{
    const Onnx__GraphProto *g = m->graph;
    uint32_t next = m->n_layers;
    for (size_t i = g->n_node; i-- > 0;) {
        const Onnx__NodeProto *node = g->node[i];
        if (next > 0 && m->layers[next - 1].node == node) {
            next--;
            m->layers[next].x->to_quantize |= !m->layers[next].kept;
            continue;
        }
        const enum quant_role role = role_of(node);
        if (is_kept(node, params) || !result_is_quantized(m, node))
            continue;
        if (role == ROLE_BYTES)
            mark_byte_operands(m, node);
        else if (role == ROLE_JOIN)
            mark_joined_operands(m, node);
        else if (role == ROLE_MOVE)
            mark_moved_operand(m, node);
    }
}

enum byoc_status byi_quant_plan(struct quant_model *m,
                                const struct byi_quantize_params *params,
                                const bool *kept, struct byoc_error *err)
{
    const Onnx__GraphProto *g = m->graph;
    uint32_t n_quantized = 0;
    BYI_TRY(check_kept(m, params->keep, false, err));
    BYI_TRY(check_kept(m, params->keep_type, true, err));
    m->layers = byi_arena_calloc(m->arena, g->n_node + 1, sizeof *m->layers);
    for (size_t i = 0; i < g->n_node; i++) {
        struct quant_layer *layer = &m->layers[m->n_layers];
        if (role_of(g->node[i]) != ROLE_LAYER ||
            !read_layer(m, g->node[i], layer))
            continue;
        layer->kept =
            is_kept(g->node[i], params) || (kept && kept[m->n_layers]);
        n_quantized += !layer->kept;
        m->n_layers++;
    }
    if (!n_quantized)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found nothing to quantise, expected a Conv, Gemm "
                        "or MatMul with constant float32 weights that is not "
                        "kept in float32",
                        m->path);
    mark_tensors(m, params);
    return BYOC_OK;
}
