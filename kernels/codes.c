/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/codes.c: packs weights of 4 and 8 bits, and multiplies by them
 * (kernels/codes.h): in registers if there are few rows, otherwise as a product
 * (kernels/direct.c) that expands blocks of weights. */
#include "kernels/codes.h"

#include <string.h>

static int64_t blocks_of(const struct byi_f32_codes *c)
{
    return byi_ceil_div(c->k, c->block);
}

static int64_t panels_of(const struct byi_f32_codes *c)
{
    return byi_ceil_div(c->n, BYI_F32_PANEL);
}

/* Bytes of a block of a panel. */
static int64_t block_bytes(const struct byi_f32_codes *c)
{
    return BYI_F32_CODES_HEADER + BYI_F32_PANEL * c->block * c->bits / 8;
}

static int64_t panel_bytes(const struct byi_f32_codes *c)
{
    return blocks_of(c) * block_bytes(c);
}

uint64_t byi_f32_codes_packed(const struct byi_f32_codes *c)
{
    return (uint64_t)(panels_of(c) * panel_bytes(c));
}

static float scale_at(const struct byi_f32_codes_from *from, int64_t at)
{
    switch (from->type) {
    case BYI_F32_F16:
        return byi_f16_to_f32(((const uint16_t *)from->scales)[at]);
    case BYI_F32_BF16:
        return byi_bf16_to_f32(((const uint16_t *)from->scales)[at]);
    default:
        return ((const float *)from->scales)[at];
    }
}

/* Pack block b of row j. `to` is that block of the row's panel: its header
 * has the scales and zero points of all rows of the panel, and is followed by
 * the words. */
static void pack_block(const struct byi_f32_codes *c,
                       const struct byi_f32_codes_from *from, int64_t j,
                       int64_t b, uint8_t *to)
{
    const int64_t blocks = blocks_of(c), bytes = c->block * c->bits / 8;
    const int64_t lane = j % BYI_F32_PANEL, at = j * blocks + b;
    const uint8_t *codes = from->codes + at * bytes;
    const uint8_t zero = from->zeros ? from->zeros[at] : from->zero;
    uint8_t *words = to + BYI_F32_CODES_HEADER + lane * 4;
    const float scale = scale_at(from, at);
    memcpy(to + lane * (int64_t)sizeof scale, &scale, sizeof scale);
    to[BYI_F32_PANEL * (int64_t)sizeof scale + lane] = zero;
    for (int64_t i = 0; i < bytes; i += 4, words += BYI_F32_PANEL * 4)
        memcpy(words, codes + i, 4);
}

void byi_f32_codes_pack(const struct byi_f32_codes *c,
                        const struct byi_f32_codes_from *from, void *to)
{
    memset(to, 0, byi_f32_codes_packed(c));
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t b = 0; b < blocks_of(c); b++)
            pack_block(c, from, j, b,
                       (uint8_t *)to + j / BYI_F32_PANEL * panel_bytes(c) +
                           b * block_bytes(c));
}

/* --- few rows ------------------------------------------------------------- */

/* Floats of a padded row: a row of x, padded with zeros to whole blocks, and
 * then the sum of each block. */
static int64_t row_floats(const struct byi_f32_codes *c)
{
    return blocks_of(c) * (c->block + 1) + BYI_F32_PANEL;
}

/* Sum n elements, a multiple of 4. */
static float sum_of(const float *x, int64_t n)
{
    float sum[4] = {0};
    for (int64_t i = 0; i < n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += x[i + j];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Divide each element by the factor that its code has in its word. */
static void divide(float *x, int64_t n, int bits)
{
    float factors[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int per_word = 32 / bits;
    for (int j = 1; j < per_word - 1; j++)
        factors[j] = factors[j - 1] / (float)(1 << bits);
    for (int64_t i = 0; i < n; i += per_word)
        for (int j = 0; j < per_word; j++)
            x[i + j] *= factors[j];
}

static void pad_row(const struct byi_f32_codes *c, const float *x, float *to)
{
    const int64_t blocks = blocks_of(c), padded_size = blocks * c->block;
    memcpy(to, x, (size_t)c->k * sizeof *to);
    memset(to + c->k, 0, (size_t)(padded_size - c->k) * sizeof *to);
    for (int64_t b = 0; b < blocks; b++)
        to[padded_size + b] = sum_of(to + b * c->block, c->block);
    divide(to, padded_size, c->bits);
}

/* A product of few rows. */
struct codes_rows {
    const struct byi_f32_codes *codes;
    const uint8_t *packed;
    int64_t m;
    const float *x; /* padded rows, then rows of zeros to a whole tile */
    float *y;
};

/* Rows of a tile that begins with row i: one or BYI_F32_CODES_ROWS. */
static int64_t tile_rows(int64_t m, int64_t i)
{
    return m - i == 1 ? 1 : BYI_F32_CODES_ROWS;
}

/* Multiply the rows of the tile that begins with row i by `panels` panels, from
 * panel p on. */
static void run_tile(const struct codes_rows *r, int64_t i, int64_t p,
                     int64_t panels)
{
    const struct byi_f32_codes *c = r->codes;
    float results[BYI_F32_CODES_ROWS * BYI_F32_CODES_PANELS * BYI_F32_PANEL];
    const int64_t first = p * BYI_F32_PANEL, rows = tile_rows(r->m, i);
    const int64_t n = byi_min(panels * BYI_F32_PANEL, c->n - first);
    const float *x = r->x + i * row_floats(c);
    const struct byi_f32_codes_tile tile = {.x = x,
                                            .sums = x + blocks_of(c) * c->block,
                                            .ldx = row_floats(c),
                                            .blocks = blocks_of(c),
                                            .block = c->block,
                                            .panel =
                                                r->packed + p * panel_bytes(c),
                                            .next = panel_bytes(c),
                                            .y = results,
                                            .ldy = panels * BYI_F32_PANEL};
    c->kernels->codes_tile[c->bits == 8][rows > 1][panels > 1](&tile);
    for (int64_t row = i; row < byi_min(i + rows, r->m); row++)
        memcpy(r->y + row * c->n + first, results + (row - i) * tile.ldy,
               (size_t)n * sizeof *r->y);
}

/* Multiply all rows by panels [begin, end). */
static void run_panels(const struct codes_rows *r, int64_t begin, int64_t end)
{
    const int64_t most = r->codes->kernels->codes_panels;
    for (int64_t p = begin, panels; p < end; p += panels) {
        panels = end - p < most ? 1 : most;
        for (int64_t i = 0; i < r->m; i += tile_rows(r->m, i))
            run_tile(r, i, p, panels);
    }
}

static void run_few_rows(const struct byi_f32_codes *c, const void *packed,
                         int64_t m, const float *x, float *y, float *padded,
                         int threads)
{
    const struct codes_rows rows = {c, packed, m, padded, y};
    const int64_t floats = row_floats(c), panels = panels_of(c);
    const int64_t step = c->kernels->codes_panels;
    const int64_t most = m * c->n * c->k >> 17; /* 2^17 products a thread */
    const int team = (int)byi_max(byi_min(threads, most), 1);
    for (int64_t i = 0; i < m; i++)
        pad_row(c, x + i * c->k, padded + i * floats);
    if (m > 1)
        memset(padded + m * floats, 0,
               (size_t)(-m & (BYI_F32_CODES_ROWS - 1)) * (size_t)floats *
                   sizeof *padded);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < team; i++)
        run_panels(&rows, panels / step * i / team * step,
                   i + 1 == team ? panels
                                 : panels / step * (i + 1) / team * step);
}

/* --- many rows ------------------------------------------------------------ */

/* The matrix that expand() reads. */
struct codes_matrix {
    const struct byi_f32_codes *codes;
    const uint8_t *packed;
};

/* Write a block of the matrix as panels of float32 (see byi_f32_expand_fn). */
static void expand(const void *matrix, int64_t k, int64_t depth, int64_t first,
                   int64_t n, float *to)
{
    const struct codes_matrix *p = matrix;
    const struct byi_f32_codes *c = p->codes;
    for (int64_t j = first; j < first + n;
         j += BYI_F32_PANEL, to += depth * BYI_F32_PANEL)
        c->kernels->codes_expand[c->bits == 8](
            p->packed + j / BYI_F32_PANEL * panel_bytes(c), c->block, k, depth,
            c->kernels->panels * panel_bytes(c), to);
}

/* The product by m rows of x, as a planned convolution. */
static struct byi_f32_conv product_of(const struct byi_f32_codes *c, int64_t m)
{
    struct byi_f32_conv conv = {.images = m,
                                .in = {1, 1, 1},
                                .out = {1, 1, 1},
                                .channels = c->k,
                                .outputs = c->n,
                                .groups = 1,
                                .size = {1, 1, 1},
                                .stride = {1, 1, 1},
                                .dilation = {1, 1, 1},
                                .kernels = c->kernels,
                                .expand = expand};
    byi_f32_conv_plan(&conv, true);
    return conv;
}

uint64_t byi_f32_codes_scratch(const struct byi_f32_codes *c, int threads)
{
    const uint64_t row_bytes =
        (uint64_t)(c->kernels->codes_rows * row_floats(c)) * sizeof(float);
    /* the scratch of two rows suffices for any number of rows */
    const struct byi_f32_conv conv = product_of(c, 2);
    const uint64_t product = byi_f32_direct_scratch(&conv, threads);
    return row_bytes > product ? row_bytes : product;
}

void byi_f32_codes_run(const struct byi_f32_codes *c, const void *packed,
                       int64_t m, const float *x, float *y, void *scratch,
                       int threads)
{
    if (m <= c->kernels->codes_rows) {
        run_few_rows(c, packed, m, x, y, scratch, threads);
        return;
    }
    const struct codes_matrix matrix = {c, packed};
    const struct byi_f32_conv conv = product_of(c, m);
    const struct byi_f32_conv_run run = {.conv = &conv,
                                         .x = x,
                                         .matrix = &matrix,
                                         .y = y,
                                         .scratch = scratch,
                                         .threads =
                                             byi_f32_conv_team(&conv, threads)};
    byi_f32_direct_run(&run);
}
