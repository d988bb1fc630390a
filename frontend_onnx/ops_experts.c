/* SPDX-License-Identifier: Apache-2.0 */
/* ops_experts.c: converts com.microsoft's MoE and QMoE, mixtures of experts:
 * each row of x goes through k of many small networks (Shazeer et al.,
 * "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts
 * Layer", 2017).
 *
 *   %gates: (experts, rows), the weight of each expert in each row's result,
 *           which is 0 for all but k experts
 *   for each expert e:
 *     %rows = nonzero(%gates[e]);
 *     %sum[%rows] += %gates[e][%rows] * network e of %x[%rows]
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>

/* The inputs of one layer of the networks; 0: the operator has no such input.
 */
struct layer_inputs {
    uint32_t weights, scales, bias, zeros;
};

/* Layer 1, layer 2, and the layer whose result multiplies layer 1's. */
enum { FIRST, SECOND, GATE, N_LAYERS };

static const struct layer_inputs float_layers[N_LAYERS] = {
    {2, 0, 3, 0}, {4, 0, 5, 0}, {6, 0, 7, 0}};
static const struct layer_inputs quantized_layers[N_LAYERS] = {
    {2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};

/* A MoE or QMoE that is imported. */
struct experts {
    const struct layer_inputs *layers;
    int64_t n;
    int64_t bits, block_size; /* of quantised weights; block_size 0: a row */
    const char *activation;
    int64_t fusion; /* layer 1 has the gate's rows, too: 1 alternating with its
                       own, 2 after them */
    double alpha, beta, limit;
};

/* Returns the part of expert e of an input. That of a constant is a constant in
 * the same memory. */
static byi_id part_of_expert(struct byi_import *o, byi_id input, int64_t e)
{
    struct byi_tensor t;

    if (!byi_import_const_view(o, input, &t))
        return byi_import_take(o, input,
                               byi_import_scalar(o, BYOC_I64, (double)e), 0);
    t.rank--;
    memmove(t.dims, t.dims + 1, t.rank * sizeof *t.dims);
    t.data = (char *)t.data +
             e * byi_elements(t.rank, t.dims) * byoc_dtype_size(t.dtype);
    return byi_import_const(o, &t, true);
}

/* Emit x times an expert's quantised weights, (rows, bytes). */
static byi_id quantized_product(struct byi_import *o, const struct experts *m,
                                const struct layer_inputs *layer, int64_t e,
                                byi_id x)
{
    const byi_id weights =
        part_of_expert(o, byi_import_in(o, layer->weights), e);
    const byi_id zeros = byi_import_in(o, layer->zeros);
    const int64_t k = byi_import_dim(o, weights, 1) * 8 / m->bits;
    const struct byi_block_weights w = {
        .n = byi_import_dim(o, weights, 0),
        .k = k,
        .bits = m->bits,
        .block_size = m->block_size ? m->block_size : k,
        .codes = weights,
        .scales = part_of_expert(o, byi_import_in(o, layer->scales), e),
        .zeros = zeros == BYI_NO_ID ? zeros : part_of_expert(o, zeros, e),
        .block_of_column = BYI_NO_ID,
        .packs_rows = m->block_size == 0};

    return byi_import_block_product(o, x, &w);
}

/* Emit the layer's result for rows x of expert e. */
static byi_id emit_layer(struct byi_import *o, const struct experts *m,
                         const struct layer_inputs *layer, int64_t e, byi_id x)
{
    const byi_id bias = byi_import_in(o, layer->bias);
    byi_id y;

    if (layer->scales)
        y = quantized_product(o, m, layer, e, x);
    else
        y = byi_import_emit(
            o, BYI_OP_NN_MATMUL,
            ARGS(x, part_of_expert(o, byi_import_in(o, layer->weights), e)),
            ATTRS(A_BOOL("transpose_b", true)));
    return bias == BYI_NO_ID
               ? y
               : byi_import_call(o, BYI_OP_ADD, y, part_of_expert(o, bias, e));
}

/* Split layer 1's result into its own columns and those of the gate. */
static void split_gate(struct byi_import *o, const struct experts *m, byi_id y,
                       byi_id parts[2])
{
    static const char columns[] =
        "fn (%y) { strided_slice(%y, [from], [end], [1], [step]) }";
    const int64_t n = byi_import_known_dim(o, y, 1, "layer 1");

    for (int64_t i = 0; i < 2; i++) {
        const bool alternate = m->fusion == 1;
        parts[i] =
            byi_import_template(o, columns, ARGS(y),
                                ATTRS(AN_INT("from", alternate ? i : i * n / 2),
                                      AN_INT("end", alternate || i ? n : n / 2),
                                      AN_INT("step", alternate ? 2 : 1)));
    }
}

/* Emit y sigmoid(alpha y) (gate + beta), with y and gate clipped. */
static byi_id emit_swiglu(struct byi_import *o, const struct experts *m,
                          byi_id y, byi_id gate)
{
    static const char swiglu[] =
        "fn (%y, %gate) {"
        "  multiply(multiply(%y, sigmoid(multiply(%y, alpha))),"
        "           add(%gate, beta))"
        "}";

    if (isfinite(m->limit)) {
        y = byi_import_emit(o, BYI_OP_CLIP, ARGS(y),
                            ATTRS(A_FLOAT("a_max", m->limit)));
        gate = byi_import_emit(
            o, BYI_OP_CLIP, ARGS(gate),
            ATTRS(A_FLOAT("a_min", -m->limit), A_FLOAT("a_max", m->limit)));
    }
    return byi_import_template(
        o, swiglu, ARGS(y, gate),
        ATTRS(A_FLOAT("alpha", m->alpha), A_FLOAT("beta", m->beta)));
}

static byi_id emit_activation(struct byi_import *o, const char *name, byi_id y)
{
    if (strcmp(name, "gelu") == 0)
        return byi_import_emit(o, BYI_OP_NN_GELU, ARGS(y),
                               ATTRS(A_STRING("approximate", "tanh")));
    return strcmp(name, "relu") == 0   ? byi_import_call(o, BYI_OP_NN_RELU, y)
           : strcmp(name, "silu") == 0 ? byi_import_call(o, BYI_OP_NN_SILU, y)
                                       : y;
}

/* Emit the result of expert e's network for rows x. */
static byi_id emit_network(struct byi_import *o, const struct experts *m,
                           int64_t e, byi_id x)
{
    const bool has_gate =
        byi_import_in(o, m->layers[GATE].weights) != BYI_NO_ID;
    byi_id parts[] = {emit_layer(o, m, &m->layers[FIRST], e, x), BYI_NO_ID};

    if (has_gate)
        parts[1] = emit_layer(o, m, &m->layers[GATE], e, x);
    else if (m->fusion)
        split_gate(o, m, parts[0], parts);
    if (strcmp(m->activation, "swiglu") == 0)
        parts[0] = emit_swiglu(o, m, parts[0], parts[1]);
    else
        parts[0] = emit_activation(o, m->activation, parts[0]);
    if (has_gate && strcmp(m->activation, "swiglu") != 0)
        parts[0] = byi_import_call(o, BYI_OP_MULTIPLY, parts[0], parts[1]);
    return emit_layer(o, m, &m->layers[SECOND], e, parts[0]);
}

/* Emit the weight of each expert in each row, (experts, rows), in float32.
 * Those of QMoE always have the sum 1, as in ONNX Runtime. */
static byi_id emit_gates(struct byi_import *o)
{
    static const char scatter[] =
        "fn (%all, %best, %chosen) {"
        "  transpose(scatter_elements(multiply(%all, 0), %chosen, %best,"
        "                             axis=1), axes=[1, 0])"
        "}";
    static const char normal[] =
        "fn (%best) { divide(%best, sum(%best, axis=[1], keepdims=true)) }";
    const int64_t k = byi_import_int(o, "k", 1);
    const bool normalize =
        byi_import_int(o, "normalize_routing_weights", 0) != 0 ||
        *o->row->type == 'Q';
    const byi_id all =
        byi_import_emit(o, BYI_OP_NN_SOFTMAX,
                        ARGS(byi_import_cast(o, byi_import_in(o, 1), BYOC_F32)),
                        ATTRS(AN_INT("axis", 1)));
    const byi_id top =
        byi_import_call(o, BYI_OP_TOPK, all, byi_import_vector(o, 1, &k));
    byi_id best = byi_import_get(o, top, 0);

    if (normalize)
        best = byi_import_template(o, normal, ARGS(best), NO_ATTRS);
    return byi_import_template(
        o, scatter, ARGS(all, best, byi_import_get(o, top, 1)), NO_ATTRS);
}

static void read_experts(struct byi_import *o, struct experts *m)
{
    static const char *const names[] = {"relu", "gelu", "silu", "swiglu",
                                        "identity"};
    bool known = false;

    m->activation = byi_import_string(o, "activation_type", "relu");
    for (uint32_t i = 0; i < BYI_COUNT(names); i++)
        known = known || strcmp(m->activation, names[i]) == 0;
    m->fusion = byi_import_int(o, "swiglu_fusion", 0);
    m->alpha = byi_import_float(o, "activation_alpha", 1);
    m->beta = byi_import_float(o, "activation_beta", 0);
    m->limit = byi_import_float(o, "swiglu_limit", INFINITY);
    m->n = byi_import_known_dim(o, byi_import_in(o, 2), 0, "weights");
    const bool swiglu = strcmp(m->activation, "swiglu") == 0;
    const bool has_gate =
        byi_import_in(o, m->layers[GATE].weights) != BYI_NO_ID;
    if (byi_import_ok(o) && !known)
        byi_import_fail(o, BYOC_EPARSE,
                        "activation_type is '%s', expected relu, gelu, silu, "
                        "swiglu or identity",
                        m->activation);
    if (byi_import_int(o, "use_sparse_mixer", 0))
        byi_import_refuse(o, "use_sparse_mixer is 1, expected 0");
    if (!swiglu)
        m->fusion = 0;
    if (byi_import_ok(o) && swiglu && has_gate == (m->fusion != 0))
        byi_import_fail(o, BYOC_EPARSE,
                        "swiglu_fusion is %lld and fc3_experts_weights is %s, "
                        "expected 1 or 2 without them, or 0",
                        (long long)m->fusion, has_gate ? "given" : "omitted");
}

/* Check that the inputs of the layers have a part for each expert. */
static void check_layers(struct byi_import *o, const struct experts *m)
{
    for (uint32_t i = 0; i < N_LAYERS; i++) {
        const struct layer_inputs *layer = &m->layers[i];
        const uint32_t inputs[] = {layer->weights, layer->scales, layer->bias,
                                   layer->zeros};
        for (uint32_t k = 0; k < BYI_COUNT(inputs) && byi_import_ok(o); k++) {
            const byi_id id =
                inputs[k] ? byi_import_in(o, inputs[k]) : BYI_NO_ID;
            const bool needed = k < 2 && inputs[k] &&
                                byi_import_in(o, layer->weights) != BYI_NO_ID;
            if (id == BYI_NO_ID ? needed || (k == 0 && i != GATE)
                                : byi_import_rank(o, id) < 2 ||
                                      byi_import_dim(o, id, 0) != m->n)
                byi_import_fail(o, BYOC_ETYPE,
                                "input %u %s, expected a part for each of %lld "
                                "experts",
                                inputs[k],
                                id == BYI_NO_ID ? "is omitted"
                                                : "has another shape",
                                (long long)m->n);
        }
    }
    for (uint32_t i = 0; i < N_LAYERS && byi_import_ok(o); i++) {
        const byi_id weights = byi_import_in(o, m->layers[i].weights);
        if (weights == BYI_NO_ID)
            continue;
        if (byi_import_rank(o, weights) != 3)
            byi_import_fail(o, BYOC_ETYPE, "input %u has rank %u, expected 3",
                            m->layers[i].weights, byi_import_rank(o, weights));
        else if (m->layers[i].scales)
            byi_import_check_blocks(
                o, m->bits,
                m->block_size ? m->block_size
                              : byi_import_known_dim(o, weights, 2, "rows") *
                                    8 / (m->bits > 0 ? m->bits : 8));
    }
}

static void convert_experts(struct byi_import *o)
{
    static const char flat[] = "fn (%x) { reshape(%x, [-1, hidden]) }";
    static const char rows[] =
        "fn (%gate) { squeeze(nonzero(%gate), axis=[0]) }";
    static const char add[] =
        "fn (%sum, %rows, %gate, %y) {"
        "  scatter_nd(%sum, expand_dims(%rows, axis=[1]),"
        "             multiply(%y, expand_dims(take(%gate, %rows), axis=[1])),"
        "             reduction=\"add\")"
        "}";
    const bool quantized = *o->row->type == 'Q';
    struct experts m = {.layers = quantized ? quantized_layers : float_layers};
    const byi_id x = byi_import_in(o, 0);
    const enum byoc_dtype dtype = byi_import_dtype(o, x);

    if (quantized) {
        m.bits = byi_import_int(o, "expert_weight_bits", 4);
        m.block_size = byi_import_int(o, "block_size", 0);
    }
    read_experts(o, &m);
    check_layers(o, &m);
    if (!byi_import_ok(o))
        return;
    const int64_t hidden =
        byi_import_known_dim(o, x, byi_import_rank(o, x) - 1, "rows");
    const byi_id gates = emit_gates(o);
    const byi_id all =
        byi_import_template(o, flat, ARGS(x), ATTRS(AN_INT("hidden", hidden)));
    byi_id sum = byi_import_emit(o, BYI_OP_FULL,
                                 ARGS(byi_import_shape_of(o, all)), NO_ATTRS);
    for (int64_t e = 0; e < m.n && byi_import_ok(o); e++) {
        const byi_id gate = part_of_expert(o, gates, e);
        const byi_id at = byi_import_template(o, rows, ARGS(gate), NO_ATTRS);
        const byi_id y = emit_network(o, &m, e, byi_import_take(o, all, at, 0));
        sum = byi_import_template(
            o, add, ARGS(sum, at, gate, byi_import_cast(o, y, BYOC_F32)),
            NO_ATTRS);
    }
    const byi_id y = byi_import_cast(o, sum, dtype);
    o->out[0] = byi_import_reshape(o, y, byi_import_shape_of(o, x), true);
}

/* clang-format off */
BYI_ONNX_ROWS(microsoft_experts, BYI_MICROSOFT,
    {"MoE", 1, 3, 8, convert_experts, BYI_OP_NONE},
    {"QMoE", 1, 4, 14, convert_experts, BYI_OP_NONE})
/* clang-format on */
