/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/depthwise.c: depthwise convolution. A tile is a few positions by all
 * channels, whose taps are gathered through pointers as in direct.c.
 */
#include "kernels/conv.h"

/* Positions whose taps are found at a time: whole tiles. */
enum { GROUP = BYI_F32_ROWS / BYI_F32_POSITIONS * BYI_F32_POSITIONS };

/* Are the taps of n positions from column `at` on adjacent, all inside of a
 * line? */
static bool slides(const struct byi_f32_conv *conv, int64_t at, int64_t n)
{
    const int64_t from = at - conv->pad[2];
    return conv->size[2] == 3 && conv->stride[2] == 1 &&
           conv->dilation[2] == 1 && at + n <= conv->out[2] && from >= 0 &&
           from + n + 2 <= conv->in[2] &&
           (n + 2) * conv->channels <= BYI_F32_PIECE; /* of padding */
}

/* n positions from `row` on, which is in column `at`. */
static void run_tile(const struct byi_f32_conv_run *run, int64_t row, int64_t n,
                     int64_t at, const float *const *x)
{
    const struct byi_f32_conv *conv = run->conv;
    /* the bias needs no padding: the kernel loads no more than exist */
    const struct byi_f32_epilogue e =
        byi_f32_epilogue_at(run, row, 0, BYI_F32_PANEL, NULL);
    const struct byi_f32_tile t = {
        .x = x,
        .segments = byi_f32_product_of(conv->size),
        .run = conv->channels,
        .weights = run->weights,
        .next = conv->channels,
        .bias = e.bias,
        .add = e.add,
        .ldadd = conv->channels,
        .low = e.low,
        .high = e.high,
        .slides = slides(conv, at, n),
        .y = run->y + row * conv->channels,
        .ldy = conv->channels,
    };
    conv->kernels->depthwise[conv->x_type][n](&t);
    byi_f32_posts_run(run, conv->next, row, n, 0, conv->channels);
}

/* Rows [begin, end) of the result. */
static void run_rows(const struct byi_f32_conv_run *run, int64_t begin,
                     int64_t end, const float **rows)
{
    const struct byi_f32_conv *conv = run->conv;
    int64_t at = begin % conv->out[2];
    for (int64_t row = begin, n; row < end; row += n) {
        n = byi_min(GROUP, end - row);
        byi_f32_rows_find(run, conv->size, row, n, rows);
        for (int64_t i = 0, some; i < n; i += some) {
            /* the rest of a line may be narrower than a tile */
            const int64_t rest = conv->out[2] - at;
            some = byi_min(BYI_F32_POSITIONS, n - i);
            if (some > rest && conv->size[2] == 3)
                some = rest;
            run_tile(run, row + i, some, at, rows + i);
            at = (at + some) % conv->out[2];
        }
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
