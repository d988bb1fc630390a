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
        e.add = run->operands[conv->posts[0].operand] +
                row * conv->posts[0].row + column;
    if (conv->clamps) {
        const struct byi_f32_post *clamp = &conv->posts[conv->next - 1];
        e.low = clamp->p0;
        e.high = clamp->p1;
    }
    return e;
}

/* Apply a binary operation whose operand changes every `repeat` rows. */
static void run_repeated(const struct byi_f32_post *post,
                         const struct byi_f32_part *part, int64_t row,
                         const float *operand)
{
    struct byi_f32_part piece = *part;
    for (int64_t done = 0; done < part->rows; done += piece.rows) {
        const int64_t at = (row + done) / post->repeat;
        piece.y = part->y + done * part->ld;
        piece.rows =
            byi_min(part->rows - done, (at + 1) * post->repeat - row - done);
        post->binary(&piece, operand + at * post->row, 0, post->column);
    }
}

void byi_f32_posts_run(const struct byi_f32_conv_run *run, uint32_t next,
                       int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    const struct byi_f32_conv *conv = run->conv;
    const struct byi_f32_part part = {.y =
                                          run->y + row * conv->outputs + column,
                                      .ld = conv->outputs,
                                      .rows = rows,
                                      .n = columns};
    for (uint32_t i = next; i < conv->n_posts; i++) {
        const struct byi_f32_post *post = &conv->posts[i];
        const float *operand =
            post->unary ? NULL
                        : run->operands[post->operand] + column * post->column;
        if (post->unary)
            post->unary(&part, post->p0, post->p1);
        else if (post->repeat == 1)
            post->binary(&part, operand + row * post->row, post->row,
                         post->column);
        else
            run_repeated(post, &part, row, operand);
    }
}
