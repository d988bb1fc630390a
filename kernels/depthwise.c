/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/depthwise.c: depthwise convolution. A tile is a few positions by all
 * channels, whose taps are gathered through pointers as in direct.c.
 */
#include "kernels/conv.h"

/* Rows [begin, end) of the result. */
static void run_rows(const struct byi_f32_conv_run *run, int64_t begin,
                     int64_t end, const float **rows)
{
    const struct byi_f32_conv *conv = run->conv;
    for (int64_t row = begin, n; row < end; row += n) {
        n = byi_min(BYI_F32_POSITIONS, end - row);
        byi_f32_rows_find(run, conv->size, row, n, rows);
        /* the bias needs no padding: the kernel loads no more than exist */
        const struct byi_f32_epilogue e =
            byi_f32_epilogue_at(run, row, 0, BYI_F32_PANEL, NULL);
        const struct byi_f32_tile t = {
            .x = rows,
            .segments = byi_f32_product_of(conv->size),
            .run = conv->channels,
            .weights = run->weights,
            .next = conv->channels,
            .bias = e.bias,
            .add = e.add,
            .ldadd = conv->channels,
            .low = e.low,
            .high = e.high,
            .y = run->y + row * conv->channels,
            .ldy = conv->channels,
        };
        conv->kernels->depthwise[n](&t);
        byi_f32_posts_run(run, conv->next, row, n, 0, conv->channels);
    }
}

void byi_f32_depthwise_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t n = run->threads;
    const uint64_t lane = byi_f32_pointers(byi_f32_product_of(conv->size));
    const int64_t rows = conv->images * byi_f32_product_of(conv->out);
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        run_rows(run, rows * i / n, rows * (i + 1) / n,
                 (void *)((char *)run->scratch + (uint64_t)i * lane));
}
