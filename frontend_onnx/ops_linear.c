/* SPDX-License-Identifier: Apache-2.0 */
/* ops_linear.c: converts matrix products.
 *
 * Gemm(a, b, c, transB=1) -> add(nn.dense(%a, %b), %c): weights are (N, K)
 * Gemm(a, b, alpha=0.5)   -> multiply(nn.matmul(%a, %b), 0.5)
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>

static byi_id emit_gemm(struct byi_import *o)
{
    const byi_id a = byi_import_in(o, 0), b = byi_import_in(o, 1),
                 c = byi_import_in(o, 2);
    const bool transpose_a = byi_import_int(o, "transA", 0) != 0;
    const bool transpose_b = byi_import_int(o, "transB", 0) != 0;
    const double alpha = byi_import_float(o, "alpha", 1.0);
    const double beta = byi_import_float(o, "beta", 1.0);
    byi_id y;

    byi_import_int(o, "broadcast", 0); /* before opset 7; c broadcasts anyway */
    if (byi_import_ok(o) && byi_import_rank(o, a) != 2)
        byi_import_fail(o, BYOC_ETYPE, "a has rank %u, expected 2",
                        byi_import_rank(o, a));
    if (byi_import_ok(o) && byi_import_rank(o, b) != 2)
        byi_import_fail(o, BYOC_ETYPE, "b has rank %u, expected 2",
                        byi_import_rank(o, b));
    if (transpose_b && !transpose_a && alpha == 1.0)
        y = byi_import_call(o, BYI_OP_NN_DENSE, a, b);
    else
        y = byi_import_scale(
            o,
            byi_import_emit(o, BYI_OP_NN_MATMUL, ARGS(a, b),
                            ATTRS(A_BOOL("transpose_a", transpose_a),
                                  A_BOOL("transpose_b", transpose_b))),
            alpha);
    if (c != BYI_NO_ID && beta != 0.0)
        y = byi_import_call(o, BYI_OP_ADD, y, byi_import_scale(o, c, beta));
    return y;
}

static void convert_gemm(struct byi_import *o)
{
    o->out[0] = emit_gemm(o);
}

/* --- com.microsoft -------------------------------------------------------- */

static void convert_fused_gemm(struct byi_import *o)
{
    const double numbers[] = {byi_import_float(o, "activation_alpha", NAN),
                              byi_import_float(o, "activation_beta", NAN),
                              byi_import_float(o, "activation_gamma", NAN)};
    const char *name = byi_import_string(o, "activation", "");
    uint32_t n = 0;

    while (n < BYI_N(numbers) && !isnan(numbers[n]))
        n++;
    o->out[0] = byi_import_activation(o, emit_gemm(o), name, numbers, n);
}

/* If `enabled`, move axis 0 to a place after the batch axes: (a, b, c, n)
 * becomes (b, c, a, n). */
static byi_id move_batch_first(struct byi_import *o, byi_id x, bool enabled)
{
    const uint32_t rank = byi_import_rank(o, x);

    return enabled && rank >= 3 ? byi_import_move_axis(o, x, 0, rank - 2) : x;
}

/* FusedMatMul(a, b, transB=1, alpha=2)
 *   -> multiply(nn.matmul(%a, %b, transpose_b=true), 2)
 * The transposition of a vector is ignored. */
static void convert_fused_matmul(struct byi_import *o)
{
    const byi_id a = move_batch_first(o, byi_import_in(o, 0),
                                      byi_import_int(o, "transBatchA", 0) != 0);
    const byi_id b = move_batch_first(o, byi_import_in(o, 1),
                                      byi_import_int(o, "transBatchB", 0) != 0);
    const bool transpose_a =
        byi_import_int(o, "transA", 0) && byi_import_rank(o, a) > 1;
    const bool transpose_b =
        byi_import_int(o, "transB", 0) && byi_import_rank(o, b) > 1;
    const byi_id y = byi_import_emit(o, BYI_OP_NN_MATMUL, ARGS(a, b),
                                     ATTRS(A_BOOL("transpose_a", transpose_a),
                                           A_BOOL("transpose_b", transpose_b)));

    o->out[0] = byi_import_scale(o, y, byi_import_float(o, "alpha", 1.0));
}

/* CDist(a, b): the distances of the rows of a (m, k) to those of b (n, k), by
 * |a - b|^2 = |a|^2 - 2 a b + |b|^2. Rounding can make this negative; it is
 * then replaced by 0. */
static void convert_cdist(struct byi_import *o)
{
    static const char text[] =
        "fn (%a, %b) {"
        "  %aa = sum(multiply(%a, %a), axis=[1], keepdims=true);"
        "  %bb = sum(multiply(%b, %b), axis=[1], keepdims=false);"
        "  %ab = nn.matmul(%a, %b, transpose_b=true);"
        "  maximum(add(subtract(%aa, multiply(%ab, 2)), %bb), 0)"
        "}";
    const char *metric = byi_import_string(o, "metric", "sqeuclidean");
    const bool root = strcmp(metric, "euclidean") == 0;

    if (!root && strcmp(metric, "sqeuclidean") != 0)
        byi_import_refuse(
            o, "metric is '%s', expected 'euclidean' or 'sqeuclidean'", metric);
    for (uint32_t i = 0; i < 2 && byi_import_ok(o); i++)
        if (byi_import_rank(o, byi_import_in(o, i)) != 2)
            byi_import_fail(o, BYOC_ETYPE, "%c has rank %u, expected 2",
                            "ab"[i], byi_import_rank(o, byi_import_in(o, i)));
    const byi_id y = byi_import_template(
        o, text, ARGS(byi_import_in(o, 0), byi_import_in(o, 1)), NO_ATTRS);
    o->out[0] = root ? byi_import_call(o, BYI_OP_SQRT, y) : y;
}

/* MatMulInteger16: the product of int16 numbers, in int32. */
static void convert_matmul_integer_16(struct byi_import *o)
{
    o->out[0] = byi_import_call(
        o, BYI_OP_NN_MATMUL, byi_import_cast(o, byi_import_in(o, 0), BYOC_I32),
        byi_import_cast(o, byi_import_in(o, 1), BYOC_I32));
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_linear, BYI_ONNX,
    {"Einsum", 12, 1, BYI_MAX_ARGS, byi_import_convert_same, BYI_OP_EINSUM},
    {"Det", 11, 1, 1, byi_import_convert_same, BYI_OP_DET},
    {"Gemm", 1, 3, 3, convert_gemm, BYI_OP_NONE},
    {"Gemm", 11, 2, 3, convert_gemm, BYI_OP_NONE},
    {"MatMul", 1, 2, 2, byi_import_convert_same, BYI_OP_NN_MATMUL})

BYI_ONNX_ROWS(microsoft_linear, BYI_MICROSOFT,
    {"CDist", 1, 2, 2, convert_cdist, BYI_OP_NONE},
    {"FusedGemm", 1, 2, 3, convert_fused_gemm, BYI_OP_NONE},
    {"FusedMatMul", 1, 2, 2, convert_fused_matmul, BYI_OP_NONE},
    {"Inverse", 1, 1, 1, byi_import_convert_same, BYI_OP_INVERSE},
    {"MatMulInteger16", 1, 2, 2, convert_matmul_integer_16, BYI_OP_NONE},
    {"TransposeMatMul", 1, 2, 2, convert_fused_matmul, BYI_OP_NONE})
/* clang-format on */
