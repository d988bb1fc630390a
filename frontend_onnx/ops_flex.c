/* SPDX-License-Identifier: Apache-2.0 */
/* ops_flex.c: converts FlexAttention of ai.onnx.preview, attention whose scores
 * and probabilities are modified by graphs. */
#include "frontend_onnx/attention.h"

#include <math.h>

/* Apply the graph of attribute `name`, if there is one, to the scores or
 * probabilities, which it takes as (b, n, s, t). */
static byi_id apply_modifier(struct byi_import *o,
                             const struct byi_attention *a, const char *name,
                             byi_id x)
{
    char found[128], expected[128];
    byi_id y = BYI_NO_ID;

    if (!byi_import_ok(o) || !byi_import_has_attr(o, name))
        return x;
    const Onnx__GraphProto *graph = byi_import_graph(o, name);
    if (byi_import_ok(o) && (graph->n_input != 1 || graph->n_output != 1))
        byi_import_fail(o, BYOC_EPARSE,
                        "%s has %zu inputs and %zu outputs, expected 1 and 1",
                        name, graph->n_input, graph->n_output);
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    x = byi_join_groups(o, a, x);
    byi_import_inline(o, graph, &x, 1, &y);
    if (byi_import_ok(o) &&
        !byi_type_may_equal(o->f->nodes.at[y].type, o->f->nodes.at[x].type))
        byi_import_fail(
            o, BYOC_ETYPE,
            "%s gives %s, expected the type of its input, %s; change the graph "
            "so that it keeps the element type and the shape",
            name, byi_type_text(found, sizeof found, o->f->nodes.at[y].type),
            byi_type_text(expected, sizeof expected, o->f->nodes.at[x].type));
    return byi_group_scores(o, a, y);
}

static void read_flex(struct byi_import *o, struct byi_attention *a)
{
    for (uint32_t i = 0; i < 3; i++)
        if (byi_import_ok(o) && byi_import_rank(o, byi_import_in(o, i)) != 4)
            byi_import_fail(o, BYOC_ETYPE, "input %u has rank %u, expected 4",
                            i, byi_import_rank(o, byi_import_in(o, i)));
    a->q = byi_import_in(o, 0);
    a->k = byi_import_in(o, 1);
    a->v = byi_import_in(o, 2);
    if (!byi_import_ok(o))
        return;
    a->heads = byi_import_dim(o, a->q, 1);
    a->kv_heads = byi_import_dim(o, a->k, 1);
    byi_check_heads(o, a, byi_import_dim(o, a->v, 1));
    if (!byi_import_has_attr(o, "scale") &&
        BYI_IS_SYMBOL(byi_import_dim(o, a->q, 3)))
        byi_import_refuse(o, "found heads of symbolic size, expected a known "
                             "size or attribute scale");
}

/* FlexAttention: query, key and value, and graphs that modify the scores and
 * the probabilities, which have the type softmax_precision. */
static void convert_flex(struct byi_import *o)
{
    struct byi_attention a = {
        .bias = BYI_NO_ID, .mask = BYI_NO_ID, .sink = BYI_NO_ID};

    read_flex(o, &a);
    if (!byi_import_ok(o))
        return;
    const enum byoc_dtype type = byi_import_dtype(o, a.q);
    const int64_t precision = byi_import_int(
        o, "softmax_precision", type == BYOC_F64 ? BYOC_F64 : BYOC_F32);
    const double scale = byi_import_has_attr(o, "scale")
                             ? byi_import_float(o, "scale", 0)
                             : 1.0 / sqrt((double)byi_import_dim(o, a.q, 3));
    if (precision != BYOC_F16 && precision != BYOC_BF16 &&
        precision != BYOC_F32 && precision != BYOC_F64)
        byi_import_fail(o, BYOC_EPARSE,
                        "softmax_precision is %lld, expected 1 (float32), 10 "
                        "(float16), 11 (float64) or 16 (bfloat16)",
                        (long long)precision);
    byi_attention_widen(o, &a);
    if (a.heads != a.kv_heads) {
        a.q = byi_group_heads(o, &a, a.q, 1);
        a.k = byi_import_add_axes(o, a.k, 2, 1);
        a.v = byi_import_add_axes(o, a.v, 2, 1);
    }
    if (!byi_import_ok(o))
        return;
    byi_id x = byi_import_emit(o, BYI_OP_NN_MATMUL, ARGS(a.q, a.k),
                               ATTRS(A_BOOL("transpose_b", true)));
    x = byi_import_cast(o, byi_import_scale(o, x, scale),
                        (enum byoc_dtype)precision);
    x = byi_import_call(o, BYI_OP_NN_SOFTMAX,
                        apply_modifier(o, &a, "score_mod", x));
    x = byi_import_cast(o, apply_modifier(o, &a, "prob_mod", x),
                        byi_import_dtype(o, a.v));
    x = byi_import_call(o, BYI_OP_NN_MATMUL, x, a.v);
    o->out[0] = byi_import_cast(o, byi_join_groups(o, &a, x), type);
}

/* clang-format off */
BYI_ONNX_ROWS(preview_attention, BYI_PREVIEW,
    {"FlexAttention", 1, 3, 3, convert_flex, BYI_OP_NONE})
/* clang-format on */
