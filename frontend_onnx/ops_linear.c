/* ops_linear.c: matrix products.
 *
 * Gemm(a, b, c, transB=1) -> add(nn.dense(%a, %b), %c): weights are (N, K)
 * Gemm(a, b, alpha=0.5)   -> multiply(nn.matmul(%a, %b), 0.5)
 */
#include "frontend_onnx/import.h"

#include <math.h>

/* x * factor, in x's type. */
static byi_id scale(struct byi_import *o, byi_id x, double factor)
{
    const enum byoc_dtype dtype = byi_o_dtype(o, x);

    if (factor == 1.0)
        return x;
    if (!byi_dtype_is_float(dtype) && factor != rint(factor))
        byi_o_refuse(o, "a fraction as alpha or beta of an integer product");
    return byi_o_emit(o, BYI_OP_MULTIPLY,
                      ARGS(x, byi_o_scalar(o, dtype, factor)), NO_ATTRS);
}

static void convert_gemm(struct byi_import *o)
{
    const byi_id a = byi_o_in(o, 0), b = byi_o_in(o, 1), c = byi_o_in(o, 2);
    const bool flip_a = byi_o_int(o, "transA", 0) != 0;
    const bool flip_b = byi_o_int(o, "transB", 0) != 0;
    const double alpha = byi_o_float(o, "alpha", 1.0);
    const double beta = byi_o_float(o, "beta", 1.0);
    byi_id y;

    byi_o_int(o, "broadcast", 0); /* before opset 7; c broadcasts anyway */
    if (byi_o_ok(o) && (byi_o_rank(o, a) != 2 || byi_o_rank(o, b) != 2))
        byi_o_fail(o, BYOC_ETYPE, "a has rank %u, b %u, expected 2",
                   byi_o_rank(o, a), byi_o_rank(o, b));
    if (flip_b && !flip_a && alpha == 1.0)
        y = byi_o_emit(o, BYI_OP_NN_DENSE, ARGS(a, b), NO_ATTRS);
    else
        y = scale(o,
                  byi_o_emit(o, BYI_OP_NN_MATMUL, ARGS(a, b),
                             ATTRS(A_BOOL("transpose_a", flip_a),
                                   A_BOOL("transpose_b", flip_b))),
                  alpha);
    if (c != BYI_NO_ID && beta != 0.0)
        y = byi_o_emit(o, BYI_OP_ADD, ARGS(y, scale(o, c, beta)), NO_ATTRS);
    o->out[0] = y;
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"Einsum", 12, 1, BYI_MAX_ARGS, byi_o_convert_same, BYI_OP_EINSUM},
    {"Det", 11, 1, 1, byi_o_convert_same, BYI_OP_DET},
    {"Gemm", 1, 3, 3, convert_gemm, BYI_OP_NONE},
    {"Gemm", 11, 2, 3, convert_gemm, BYI_OP_NONE},
    {"MatMul", 1, 2, 2, byi_o_convert_same, BYI_OP_NN_MATMUL},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_linear = {rows, BYI_COUNT(rows)};
