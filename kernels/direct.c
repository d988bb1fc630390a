/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/direct.c: convolution as a product whose rows are gathered through
 * pointers, one for each tap (Dukhan, arXiv 1907.02129), and plain products.
 */
#include "kernels/conv.h"

#include <string.h>

const float byi_f32_zeros[BYI_F32_PIECE];

/* The product of a run, cut into tiles of rows and blocks of columns. */
struct direct {
    const struct byi_f32_conv_run *run;
    const struct byi_f32_conv *conv;
    int64_t rows, tiles;  /* rows: positions of all images             */
    int64_t wide, blocks; /* wide: columns of a block                  */
    bool copies;          /* rows are copied first: see copies_rows()  */
};

/* Rows whose distance is a multiple of a page fall into the same sets of the
 * first cache, which has fewer ways than a tile has rows. */
static bool copies_rows(const struct byi_f32_conv *conv)
{
    return conv->size[0] * conv->size[1] == 1 && conv->channels >= 512 &&
           conv->channels * (int64_t)sizeof(float) % 2048 == 0 &&
           conv->outputs >= 64 &&
           conv->images * conv->out[0] * conv->out[1] > 1;
}

static int64_t copied_row(const struct byi_f32_conv *conv)
{
    return conv->channels + BYI_F32_PANEL;
}

uint64_t byi_f32_direct_scratch(const struct byi_f32_conv *conv, int threads)
{
    if (copies_rows(conv))
        return (uint64_t)(copied_row(conv) * BYI_F32_ROWS) * (uint64_t)threads *
               sizeof(float);
    return 0;
}

/* The first row of a tile: all tiles have about the same number of rows. */
static int64_t first_row(const struct direct *d, int64_t tile)
{
    const int64_t more = d->rows % d->tiles; /* tiles have one row more */
    return d->rows / d->tiles * tile + byi_min(tile, more);
}

/* The pieces of a window whose first tap is at (top, left); some are outside.
 */
static void find_border(const struct byi_f32_conv *conv, const float *image,
                        int64_t top, int64_t left, const float **piece)
{
    for (int64_t i = 0; i < conv->size[0]; i++) {
        const int64_t h = top + i * conv->dilation[0];
        for (int64_t j = 0; j < conv->size[1]; j++, piece += BYI_F32_ROWS) {
            const int64_t w = left + j * conv->dilation[1];
            const bool inside =
                h >= 0 && h < conv->in[0] && w >= 0 && w < conv->in[1];
            *piece = inside ? image + (h * conv->in[1] + w) * conv->channels
                            : byi_f32_zeros;
        }
    }
}

void byi_f32_rows_find(const struct byi_f32_conv_run *run, int64_t row,
                       int64_t n, const float **to)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t positions = conv->out[0] * conv->out[1];
    const int64_t reach[2] = {(conv->size[0] - 1) * conv->dilation[0],
                              (conv->size[1] - 1) * conv->dilation[1]};
    int64_t h = row % positions / conv->out[1], w = row % conv->out[1];
    const float *image =
        run->x + row / positions * conv->in[0] * conv->in[1] * conv->channels;
    for (int64_t r = 0; r < n; r++) {
        const int64_t top = h * conv->stride[0] - conv->pad[0];
        const int64_t left = w * conv->stride[1] - conv->pad[1];
        const float **piece = to + r;
        if (top < 0 || left < 0 || top + reach[0] >= conv->in[0] ||
            left + reach[1] >= conv->in[1]) {
            find_border(conv, image, top, left, piece);
        } else {
            const float *first =
                image + (top * conv->in[1] + left) * conv->channels;
            for (int64_t i = 0; i < conv->size[0]; i++)
                for (int64_t j = 0; j < conv->size[1];
                     j++, piece += BYI_F32_ROWS)
                    *piece = first + (i * conv->dilation[0] * conv->in[1] +
                                      j * conv->dilation[1]) *
                                         conv->channels;
        }
        if (++w == conv->out[1]) {
            w = 0;
            if (++h == conv->out[0]) {
                h = 0;
                image += conv->in[0] * conv->in[1] * conv->channels;
            }
        }
    }
}

/* Copy the rows to memory where they do not collide. */
static void copy_rows(const struct direct *d, const float **rows, int64_t n,
                      float *to)
{
    const struct byi_f32_conv *conv = d->conv;
    for (int64_t r = 0; r < n; r++, to += copied_row(conv)) {
        memcpy(to, rows[r], (size_t)conv->channels * sizeof *to);
        rows[r] = to;
    }
}

/* A tile whose last panel has columns that y does not. */
static void run_partial(const struct direct *d, struct byi_f32_tile *t,
                        int rows, int64_t columns)
{
    float sums[BYI_F32_ROWS * BYI_F32_COLUMNS];
    float add[BYI_F32_ROWS * BYI_F32_COLUMNS] = {0};
    const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
    const int64_t ld = panels * BYI_F32_PANEL;
    float *y = t->y;
    const int64_t ldy = t->ldy;
    for (int r = 0; t->add && r < rows; r++)
        memcpy(add + r * ld, t->add + r * t->ldadd,
               (size_t)columns * sizeof *add);
    t->add = t->add ? add : NULL;
    t->y = sums;
    t->ldadd = t->ldy = ld;
    d->conv->kernels->tile[panels - 1][rows](t);
    for (int r = 0; r < rows; r++)
        memcpy(y + r * ldy, sums + r * ld, (size_t)columns * sizeof *y);
}

void byi_f32_fetch(struct byi_f32_tile *t, int64_t i, int64_t n,
                   const float *ahead)
{
    const int64_t fetch = byi_ceil_div(BYI_F32_STEP, n);
    const int64_t steps = t->segments * byi_ceil_div(t->run, BYI_F32_STEP);
    const int64_t from = i * steps * fetch;
    if (from >= t->segments * t->run)
        return;
    t->ahead = ahead + from * BYI_F32_PANEL;
    t->fetch = fetch;
}

/* Rows of tiles [begin, end) by the columns of a block. */
static void run_block(const struct direct *d, const float *const *rows,
                      int64_t begin, int64_t end, int64_t block)
{
    const struct byi_f32_conv *conv = d->conv;
    const int64_t segments = conv->size[0] * conv->size[1];
    const int64_t column = block * d->wide;
    const int64_t columns = byi_min(d->wide, conv->outputs - column);
    const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
    const int64_t panel = segments * conv->channels * BYI_F32_PANEL;
    float room[BYI_F32_COLUMNS];
    for (int64_t i = begin; i < end; i++, rows += segments * BYI_F32_ROWS) {
        const int64_t row = first_row(d, i);
        const int n = (int)(first_row(d, i + 1) - row);
        const struct byi_f32_epilogue e =
            byi_f32_epilogue_at(d->run, row, column, columns, room);
        struct byi_f32_tile t = {
            .x = rows,
            .segments = segments,
            .run = conv->channels,
            .weights = d->run->weights + column / BYI_F32_PANEL * panel,
            .next = panel,
            .bias = e.bias,
            .add = e.add,
            .ldadd = conv->outputs,
            .low = e.low,
            .high = e.high,
            .y = d->run->y + row * conv->outputs + column,
            .ldy = conv->outputs,
            .splits = true, /* its rows do not depend on the threads */
        };
        if (end - begin > 1 && block + 1 < d->blocks)
            byi_f32_fetch(&t, i - begin, end - begin,
                          t.weights + conv->kernels->panels * panel);
        if (columns % BYI_F32_PANEL)
            run_partial(d, &t, n, columns);
        else
            conv->kernels->tile[panels - 1][n](&t);
        byi_f32_posts_run(d->run, conv->next, row, n, column, columns);
    }
}

/* Tiles [begin, end) of rows by blocks [first, last) of columns. The pointers
 * of as many tiles as fit are found once for all columns; the weights of a
 * block stay in the cache while its tiles are computed. */
static void run_part(const struct direct *d, int64_t begin, int64_t end,
                     int64_t first, int64_t last, float *scratch)
{
    const float *rows[BYI_F32_TAPS * BYI_F32_ROWS];
    const struct byi_f32_conv *conv = d->conv;
    const int64_t segments = conv->size[0] * conv->size[1];
    const int64_t most = d->copies ? 1 : BYI_F32_TAPS / segments;
    for (int64_t next; begin < end; begin = next) {
        next = byi_min(end, begin + most);
        for (int64_t i = begin; i < next; i++) {
            const int64_t row = first_row(d, i);
            const int64_t n = first_row(d, i + 1) - row;
            const float **to = rows + (i - begin) * segments * BYI_F32_ROWS;
            byi_f32_rows_find(d->run, row, n, to);
            if (d->copies)
                copy_rows(d, to, n, scratch);
        }
        for (int64_t block = first; block < last; block++)
            run_block(d, rows, begin, next, block);
    }
}

void byi_f32_direct_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    struct direct d = {
        .run = run,
        .conv = conv,
        .rows = conv->images * conv->out[0] * conv->out[1],
        .wide = conv->kernels->panels * BYI_F32_PANEL,
        .copies = copies_rows(conv),
    };
    d.tiles = byi_ceil_div(d.rows, conv->kernels->rows);
    d.blocks = byi_ceil_div(conv->outputs, d.wide);
    const int64_t n = run->threads;
    const bool by_rows = d.tiles >= 2 * n || d.tiles >= d.blocks;
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++) {
        float *scratch = (float *)run->scratch +
                         (d.copies ? i * copied_row(conv) * BYI_F32_ROWS : 0);
        if (by_rows)
            run_part(&d, d.tiles * i / n, d.tiles * (i + 1) / n, 0, d.blocks,
                     scratch);
        else
            run_part(&d, 0, d.tiles, d.blocks * i / n, d.blocks * (i + 1) / n,
                     scratch);
    }
}
