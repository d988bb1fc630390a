/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c: decides which operators can be in the epilogue of a native kernel
 * (epilogue.h). */
#include "epilogue.h"

#include <string.h>

/* Unary operators with a float32 loop for every instruction set. */
static const bool unary[BYI_N_OPS] = {
#define UNARY(id, wide, single) [BYI_OP_##id] = true,
#define UNARY_FLOAT32(id, wide, single) [BYI_OP_##id] = true,
#define UNARY_CHOICE(id, wide, single, other) [BYI_OP_##id] = true,
#include "unary.def"
};

static const bool binary[BYI_N_OPS] = {
    [BYI_OP_ADD] = true,
    [BYI_OP_SUBTRACT] = true,
    [BYI_OP_MULTIPLY] = true,
    [BYI_OP_DIVIDE] = true,
};

bool byi_epilogue_is_binary(enum byi_op_id op)
{
    return binary[op];
}

static bool is_float32(const struct byi_type *type)
{
    return type->kind == BYI_TENSOR && type->dtype == BYOC_F32;
}

static bool is_convolution(enum byi_op_id op)
{
    const struct byi_op *row = byi_op(op);
    return row->layout == BYI_LAYOUT_SENSITIVE &&
           (row->cost == BYI_COST_CONV || row->cost == BYI_COST_CONV_TRANSPOSE);
}

bool byi_epilogue_is_supported(enum byi_op_id op, const struct byi_attrs *attrs,
                               uint32_t n_args, const struct byi_type *weights,
                               const struct byi_type *out)
{
    enum { SCALED = 6 }; /* operands of a qnn.matmul with a float result */
    if (!is_float32(out) || out->rank == 0)
        return false;
    if (op == BYI_OP_QNN_MATMUL)
        return n_args == SCALED && weights->rank == 2;
    if (n_args != 2 || !is_float32(weights))
        return false;
    if (op == BYI_OP_NN_DENSE || op == BYI_OP_NN_MATMUL)
        return weights->rank == 2;
    return is_convolution(op) &&
           strlen(byi_attr_string(attrs, "data_layout")) == out->rank;
}

uint32_t byi_epilogue_axis(enum byi_op_id op, const struct byi_attrs *attrs,
                           uint32_t rank)
{
    if (!is_convolution(op))
        return rank - 1;
    const char *layout = byi_attr_string(attrs, "data_layout");
    return (uint32_t)(strchr(layout, 'C') - layout);
}

bool byi_epilogue_is_row(uint32_t rank, const int64_t *dims, uint32_t out_rank,
                         const int64_t *out_dims, uint32_t axis)
{
    if (rank > out_rank)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        const bool is_channel = i + (out_rank - rank) == axis;
        if (dims[i] != 1 &&
            (!is_channel || dims[i] != out_dims[axis] || dims[i] < 0))
            return false;
    }
    return true;
}

bool byi_epilogue_allows(enum byi_op_id op, const struct byi_type *out,
                         uint32_t axis, const struct byi_type *operand)
{
    if (!operand)
        return unary[op];
    return binary[op] && is_float32(operand) &&
           ((axis + 1 == out->rank && byi_type_equal(out, operand)) ||
            byi_epilogue_is_row(operand->rank, operand->dims, out->rank,
                                out->dims, axis));
}
