/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/epilogue.c: applies the operations after a convolution or product to
 * the part of the result that was just computed and is still in the cache. */
#include "kernels/conv.h"

#include <math.h>
#include <string.h>

struct byi_f32_epilogue byi_f32_epilogue_at(const struct byi_f32_conv_run *run,
                                            int64_t row, int64_t column,
                                            int64_t columns, float *buffer)
{
    const struct byi_f32_conv *conv = run->conv;
    struct byi_f32_epilogue e = {.low = -INFINITY, .high = INFINITY};
    if (run->bias && columns % BYI_F32_PANEL == 0) {
        e.bias = run->bias + column;
    } else if (run->bias) {
        memset(buffer, 0, BYI_F32_COLUMNS * sizeof *buffer);
        e.bias = memcpy(buffer, run->bias + column,
                        (size_t)columns * sizeof *buffer);
    }
    if (conv->adds)
        e.add = run->operands[conv->epilogue[0].operand] +
                row * conv->epilogue[0].row + column;
    if (conv->clamps) {
        const struct byi_f32_epilogue_op *clamp =
            &conv->epilogue[conv->next - 1];
        e.low = clamp->p0;
        e.high = clamp->p1;
    }
    return e;
}

/* Apply a binary operation whose operand changes every `repeat` rows. */
static void run_repeated(const struct byi_f32_epilogue_op *op,
                         const struct byi_f32_block *block, int64_t row,
                         const float *operand)
{
    struct byi_f32_block repeated = *block;
    for (int64_t first = 0; first < block->rows; first += repeated.rows) {
        const int64_t at = (row + first) / op->repeat;
        repeated.y = block->y + first * block->ld;
        repeated.rows =
            byi_min(block->rows - first, (at + 1) * op->repeat - row - first);
        op->binary(&repeated, operand + at * op->row, 0, op->column);
    }
}

void byi_f32_epilogue_run(const struct byi_f32_conv_run *run, uint32_t next,
                          int64_t row, int64_t rows, int64_t column,
                          int64_t columns)
{
    const struct byi_f32_conv *conv = run->conv;
    const struct byi_f32_block block = {.y = run->y + row * conv->outputs +
                                             column,
                                        .ld = conv->outputs,
                                        .rows = rows,
                                        .n = columns};
    for (uint32_t i = next; i < conv->n_epilogue; i++) {
        const struct byi_f32_epilogue_op *op = &conv->epilogue[i];
        const float *operand =
            op->unary ? NULL : run->operands[op->operand] + column * op->column;
        if (op->unary)
            op->unary(&block, op->p0, op->p1);
        else if (op->repeat == 1)
            op->binary(&block, operand + row * op->row, op->row, op->column);
        else
            run_repeated(op, &block, row, operand);
    }
}
