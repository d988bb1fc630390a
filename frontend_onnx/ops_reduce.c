/* SPDX-License-Identifier: Apache-2.0 */
/* ops_reduce.c: converts reductions over axes. The axes are an attribute, or
 * from some opset on an input; if this input is not constant, the node becomes
 * a dyn.reduce.
 *
 * ReduceMean(x, axes=[-1], keepdims=0) -> mean(%x, axis=[2], keepdims=false)
 * ReduceMean(x, axes) -> dyn.reduce(%x, %axes, function="mean")
 */
#include "frontend_onnx/import.h"

/* Reduce x over n axes. If n is 0, reduce it over all axes or, if `noop`, over
 * none: ReduceL1 is then |x|. */
static void emit_reduce(struct byi_import *o, const int64_t *axes, uint32_t n,
                        bool noop)
{
    const byi_id x = byi_import_in(o, 0);

    axes = byi_import_axes(o, axes, n, byi_import_rank(o, x));
    o->out[0] = byi_import_same(o, o->row->op, ARGS(x),
                                ATTRS(SOME_INTS("axis", n, axes),
                                      A_BOOL("noop_empty", n == 0 && noop)));
}

static void convert_reduce(struct byi_import *o)
{
    uint32_t n = 0;
    const int64_t *axes = byi_import_ints(o, "axes", &n);

    emit_reduce(o, axes, n, false);
}

static void emit_dynamic_reduce(struct byi_import *o, bool noop)
{
    const byi_id axes = byi_import_cast(o, byi_import_in(o, 1), BYOC_I64);

    o->out[0] =
        byi_import_same(o, BYI_OP_DYN_REDUCE, ARGS(byi_import_in(o, 0), axes),
                        ATTRS(A_STRING("function", byi_op(o->row->op)->name),
                              A_BOOL("noop_empty", noop)));
}

static void convert_reduce_input(struct byi_import *o)
{
    const bool noop = byi_import_int(o, "noop_with_empty_axes", 0) != 0;
    uint32_t n = 0;
    const int64_t *axes = NULL;

    if (byi_import_in(o, 1) != BYI_NO_ID && !byi_import_is_const(o, 1)) {
        emit_dynamic_reduce(o, noop);
        return;
    }
    if (byi_import_in(o, 1) != BYI_NO_ID)
        axes = byi_import_const_ints(o, 1, "axes", &n);
    emit_reduce(o, axes, n, noop);
}

/* ReduceMax and ReduceMin compute on bools as 0 and 1. */
static void convert_reduce_bool(struct byi_import *o)
{
    const bool is_bool = byi_import_dtype(o, byi_import_in(o, 0)) == BYOC_BOOL;

    if (is_bool)
        o->in[0] = byi_import_cast(o, o->in[0], BYOC_U8);
    convert_reduce_input(o);
    if (is_bool)
        o->out[0] = byi_import_cast(o, o->out[0], BYOC_BOOL);
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_reduce, BYI_ONNX,
    {"ArgMax", 1, 1, 1, byi_import_convert_same, BYI_OP_ARGMAX},
    {"ArgMin", 1, 1, 1, byi_import_convert_same, BYI_OP_ARGMIN},
    {"ReduceL1", 1, 1, 1, convert_reduce, BYI_OP_L1},
    {"ReduceL1", 18, 1, 2, convert_reduce_input, BYI_OP_L1},
    {"ReduceL2", 1, 1, 1, convert_reduce, BYI_OP_L2},
    {"ReduceL2", 18, 1, 2, convert_reduce_input, BYI_OP_L2},
    {"ReduceLogSum", 1, 1, 1, convert_reduce, BYI_OP_LOG_SUM},
    {"ReduceLogSum", 18, 1, 2, convert_reduce_input, BYI_OP_LOG_SUM},
    {"ReduceLogSumExp", 1, 1, 1, convert_reduce, BYI_OP_LOG_SUM_EXP},
    {"ReduceLogSumExp", 18, 1, 2, convert_reduce_input, BYI_OP_LOG_SUM_EXP},
    {"ReduceMax", 1, 1, 1, convert_reduce, BYI_OP_MAX},
    {"ReduceMax", 18, 1, 2, convert_reduce_input, BYI_OP_MAX},
    {"ReduceMax", 20, 1, 2, convert_reduce_bool, BYI_OP_MAX},
    {"ReduceMean", 1, 1, 1, convert_reduce, BYI_OP_MEAN},
    {"ReduceMean", 18, 1, 2, convert_reduce_input, BYI_OP_MEAN},
    {"ReduceMin", 1, 1, 1, convert_reduce, BYI_OP_MIN},
    {"ReduceMin", 18, 1, 2, convert_reduce_input, BYI_OP_MIN},
    {"ReduceMin", 20, 1, 2, convert_reduce_bool, BYI_OP_MIN},
    {"ReduceProd", 1, 1, 1, convert_reduce, BYI_OP_PROD},
    {"ReduceProd", 18, 1, 2, convert_reduce_input, BYI_OP_PROD},
    {"ReduceSum", 1, 1, 1, convert_reduce, BYI_OP_SUM},
    {"ReduceSum", 13, 1, 2, convert_reduce_input, BYI_OP_SUM},
    {"ReduceSumSquare", 1, 1, 1, convert_reduce, BYI_OP_SUM_SQUARE},
    {"ReduceSumSquare", 18, 1, 2, convert_reduce_input, BYI_OP_SUM_SQUARE})
/* clang-format on */
