/* ops_quant.c: quantised operators. */
#include "frontend_onnx/import.h"

/* The zero point where it is left out: zeros of the scale's shape. */
static byi_id zero_point(struct byi_import *o, enum byoc_dtype dtype)
{
    const byi_id scale = byi_o_in(o, 1), given = byi_o_in(o, 2);

    if (given != BYI_NO_ID)
        return given;
    if (byi_o_rank(o, scale) == 0)
        return byi_o_scalar(o, dtype, 0);
    return byi_o_emit(o, BYI_OP_FULL, ARGS(byi_o_shape_of(o, scale)),
                      ATTRS(A_FLOAT("value", 0.0), A_DTYPE("dtype", dtype)));
}

static void quantize(struct byi_import *o, enum byoc_dtype dtype)
{
    const byi_id x = byi_o_in(o, 0), scale = byi_o_in(o, 1);
    const int64_t axis = byi_o_int(o, "axis", 1);

    o->out[0] = byi_o_emit(o, o->row->op, ARGS(x, scale, zero_point(o, dtype)),
                           ATTRS(AN_INT("axis", axis)));
}

static void convert_quantize(struct byi_import *o)
{
    quantize(o, BYOC_U8);
}

static void convert_dequantize(struct byi_import *o)
{
    quantize(o, byi_o_dtype(o, byi_o_in(o, 0)));
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"DequantizeLinear", 10, 2, 3, convert_dequantize, BYI_OP_DEQUANTIZE},
    {"QuantizeLinear", 10, 2, 3, convert_quantize, BYI_OP_QUANTIZE},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_quant = {rows, BYI_COUNT(rows)};
