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
    const struct byi_op *row = byi_op(op);
    if (row->layout != BYI_LAYOUT_SENSITIVE ||
        (row->cost != BYI_COST_CONV && row->cost != BYI_COST_CONV_TRANSPOSE))
        return false;
    const char *layout = byi_attr_string(attrs, "data_layout");
    return layout[strlen(layout) - 1] == 'C';
}

/* Whether the operand is one number, or one for each position of out's last
 * axis. */
static bool is_scalar_or_row(const struct byi_type *out,
                             const struct byi_type *operand)
{
    if (operand->rank > out->rank)
        return false;
    for (uint32_t i = 0; i + 1 < operand->rank; i++)
        if (operand->dims[i] != 1)
            return false;
    const int64_t last = operand->rank ? operand->dims[operand->rank - 1] : 1;
    return last == 1 || (last == out->dims[out->rank - 1] && last >= 0);
}

bool byi_epilogue_allows(enum byi_op_id op, const struct byi_type *out,
                         const struct byi_type *operand)
{
    if (!operand)
        return unary[op];
    return binary[op] && is_float32(operand) &&
           (byi_type_equal(out, operand) || is_scalar_or_row(out, operand));
}
