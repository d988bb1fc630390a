/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/depthwise.c: depthwise convolutions. Computes one part of a line of
 * the result at a time, for a block of channels. */
#include "kernels/conv.h"

enum {
    PART_FLOATS = 2048, /* floats that stay in the first-level cache until their
                         * epilogue */
    LINE_FLOATS = 6144, /* floats of lines of x that stay in this cache, too */
    MIN_BLOCK = 128,    /* channels */
    POSITIONS = 4       /* positions that the kernel computes together */
};

/* Find the lines of x inside the image that the result's line with position
 * `row` reads, and the line of weights for each of them. Returns their number.
 */
static int64_t find_lines(const struct byi_f32_conv_run *run, int64_t row,
                          const float **x, const float **weights)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t *in = conv->in, *size = conv->size, *out = conv->out;
    const int64_t line = in[2] * conv->channels;
    const int64_t at[2] = {
        row / out[2] / out[1] % out[0] * conv->stride[0] - conv->pad[0],
        row / out[2] % out[1] * conv->stride[1] - conv->pad[1]};
    const int64_t image = row / byi_f32_product_of(out) * in[0];
    int64_t n = 0;
    for (int64_t i = 0; i < size[0]; i++)
        for (int64_t j = 0; j < size[1]; j++) {
            const int64_t d = at[0] + i * conv->dilation[0];
            const int64_t h = at[1] + j * conv->dilation[1];
            if (d < 0 || d >= in[0] || h < 0 || h >= in[1])
                continue;
            const int64_t at_line = conv->ring
                                        ? (conv->ring_first + h) % conv->ring
                                        : (image + d) * in[1] + h;
            x[n] = byi_f32_element(conv, run->x, at_line * line);
            weights[n++] =
                run->weights + (i * size[1] + j) * size[2] * conv->channels;
        }
    return n;
}

/* Compute positions [row, row + n), which are in one line. */
static void run_part(const struct byi_f32_conv_run *run, const float *add,
                     int64_t row, int64_t n, struct byi_f32_line *line)
{
    const struct byi_f32_conv *conv = run->conv;
    line->column = row % conv->out[2] * conv->stride[2] - conv->pad[2];
    line->n = n;
    line->add = add ? add + row * conv->channels : NULL;
    line->y = run->y + row * conv->channels;
    conv->kernels->depthwise[conv->x_type](line);
    byi_f32_epilogue_run(run, conv->next, row, n, line->first,
                         line->end - line->first);
}

/* Channels of a block. The lines of x that a line of the result reads stay in
 * the first-level cache until the next line of the result has read them. If
 * this limit is below MIN_BLOCK, or half of it if the image fits the
 * second-level cache, a block has all channels, since shorter sequences are
 * slow to read. */
static int64_t block_of(const struct byi_f32_conv *conv)
{
    const int64_t lines = conv->size[0] * conv->size[1];
    const int64_t fit =
        LINE_FLOATS / byi_max(lines * conv->in[2], 1) / BYI_F32_COLUMNS;
    const int64_t image = byi_f32_product_of(conv->in) * conv->channels;
    const bool fits_cache = image * (int64_t)sizeof(float) <= conv->cache;
    return fit * BYI_F32_COLUMNS >= (fits_cache ? MIN_BLOCK / 2 : MIN_BLOCK)
               ? fit * BYI_F32_COLUMNS
               : conv->channels;
}

/* Compute channels [first, last) of rows [begin, end) of the result. */
static void run_block(const struct byi_f32_conv_run *run, int64_t begin,
                      int64_t end, int64_t first, int64_t last,
                      const float **pointers)
{
    const struct byi_f32_conv *conv = run->conv;
    const float **weights = pointers + conv->size[0] * conv->size[1];
    const int64_t most =
        byi_max(PART_FLOATS / (last - first) / POSITIONS, 1) * POSITIONS;
    /* the bias needs no padding: the kernel loads only elements that exist */
    const struct byi_f32_epilogue e =
        byi_f32_epilogue_at(run, 0, 0, BYI_F32_PANEL, NULL);
    struct byi_f32_line line = {.bias = e.bias,
                                .low = e.low,
                                .high = e.high,
                                .x = pointers,
                                .weights = weights,
                                .channels = conv->channels,
                                .first = first,
                                .end = last,
                                .columns = conv->in[2],
                                .taps = conv->size[2],
                                .stride = conv->stride[2],
                                .dilation = conv->dilation[2]};
    for (int64_t row = begin, n; row < end; row += n) {
        const int64_t at = row % conv->out[2];
        if (row == begin || at == 0)
            line.lines = find_lines(run, row, pointers, weights);
        n = byi_min(conv->out[2] - at, end - row);
        if (n >= most + POSITIONS)
            n = most;
        run_part(run, e.add, row, n, &line);
    }
}

/* Compute channels [first, last) of rows [begin, end) of the result, in blocks
 * of channels. */
static void run_blocks(const struct byi_f32_conv_run *run, int64_t begin,
                       int64_t end, int64_t first, int64_t last,
                       const float **pointers)
{
    const int64_t block = block_of(run->conv);
    for (; first < last; first += block)
        run_block(run, begin, end, first, byi_min(first + block, last),
                  pointers);
}

/* Whether to divide channels, not rows, among threads. direct.c divides the
 * columns of the 1 x 1 convolution that computes x if the image is this small
 * and the convolution has six times as many outputs as channels. Each thread
 * then reads the channels that it has written. */
static bool divides_channels(const struct byi_f32_conv *conv)
{
    return conv->channels > 7 * conv->images * byi_f32_product_of(conv->in);
}

/* Compute share i of n shares. */
static void run_thread(const struct byi_f32_conv_run *run, int64_t i, int64_t n,
                       const float **pointers)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t rows = conv->images * byi_f32_product_of(conv->out);
    const int64_t line = conv->out[2], channels = conv->channels;
    if (divides_channels(conv)) {
        const int64_t blocks = byi_ceil_div(channels, BYI_F32_COLUMNS);
        run_blocks(run, 0, rows, blocks * i / n * BYI_F32_COLUMNS,
                   byi_min(blocks * (i + 1) / n * BYI_F32_COLUMNS, channels),
                   pointers);
        return;
    }
    /* give threads whole lines if there are enough */
    const int64_t unit = rows / line >= 3 * n ? line : 1;
    run_blocks(run, rows / unit * i / n * unit,
               rows / unit * (i + 1) / n * unit, 0, channels, pointers);
}

void byi_f32_depthwise_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t n = run->threads;
    const uint64_t per_thread =
        byi_f32_pointer_bytes(byi_f32_product_of(conv->size));
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        run_thread(run, i, n,
                   (void *)((char *)run->scratch + (uint64_t)i * per_thread));
}
