/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/codes.c: packs weights of 4 and 8 bits, and multiplies by them
 * (kernels/codes.h): row by row if there are few rows, otherwise as a product
 * whose `pack` function expands codes. */
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
    return BYI_F32_CODES_HEAD + BYI_F32_PANEL * c->block * c->bits / 8;
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

/* Pack block b of row j. `to` is that block of the row's panel: its head has
 * the scales and zero points of all rows of the panel, and is followed by the
 * words. */
static void pack_block(const struct byi_f32_codes *c,
                       const struct byi_f32_codes_from *from, int64_t j,
                       int64_t b, uint8_t *to)
{
    const int64_t blocks = blocks_of(c), bytes = c->block * c->bits / 8;
    const int64_t lane = j % BYI_F32_PANEL, at = j * blocks + b;
    const uint8_t *codes = from->codes + at * bytes;
    const uint8_t zero = from->zeros ? from->zeros[at] : from->zero;
    uint8_t *words = to + BYI_F32_CODES_HEAD + lane * 4;
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

static void pad_row(const struct byi_f32_codes *c, const float *x, float *to)
{
    const int64_t blocks = blocks_of(c), all = blocks * c->block;
    memcpy(to, x, (size_t)c->k * sizeof *to);
    memset(to + c->k, 0, (size_t)(all - c->k) * sizeof *to);
    for (int64_t b = 0; b < blocks; b++) {
        float sum = 0;
        for (int64_t i = 0; i < c->block; i++)
            sum += to[b * c->block + i];
        to[all + b] = sum;
    }
}

/* Multiply a padded row of x by panels [begin, end) of w. */
static void run_panels(const struct byi_f32_codes *c, const uint8_t *packed,
                       const float *x, int64_t begin, int64_t end, float *y)
{
    const int most = c->kernels->codes_panels;
    for (int64_t p = begin, some; p < end; p += some) {
        float results[BYI_F32_CODES_PANELS * BYI_F32_PANEL];
        some = end - p < most ? 1 : most;
        const int64_t n =
            byi_min(some * BYI_F32_PANEL, c->n - p * BYI_F32_PANEL);
        const struct byi_f32_codes_part part = {
            .x = x,
            .sums = x + blocks_of(c) * c->block,
            .blocks = blocks_of(c),
            .block = c->block,
            .panel = packed + p * panel_bytes(c),
            .next = panel_bytes(c),
            .y = results};
        c->kernels->codes_vector[c->bits == 8][some > 1](&part);
        memcpy(y + p * BYI_F32_PANEL, results, (size_t)n * sizeof *y);
    }
}

static void run_row(const struct byi_f32_codes *c, const void *packed,
                    const float *x, float *y, float *padded, int threads)
{
    const int64_t panels = panels_of(c);
    const int64_t most = c->n * c->k >> 17;
    const int team = (int)byi_max(byi_min(threads, most), 1);
    pad_row(c, x, padded);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < team; i++)
        run_panels(c, packed, padded, panels * i / team,
                   panels * (i + 1) / team, y);
}

/* --- many rows ------------------------------------------------------------ */

struct codes_product {
    const struct byi_f32_codes *codes;
    const uint8_t *packed;
    const float *x;
    float *y;
};

static struct byi_f32_matrices matrices(const void *ctx, int64_t batch)
{
    const struct codes_product *p = ctx;
    (void)batch;
    return (struct byi_f32_matrices){.a = p->x, .c = p->y};
}

/* The `pack` of the product: writes columns [first, first + n) of rows [k, k +
 * depth) of w^T as panels. */
static void expand(const void *ctx, int64_t k, int64_t depth, int64_t first,
                   int64_t n, float *to)
{
    const struct codes_product *p = ctx;
    const struct byi_f32_codes *c = p->codes;
    for (int64_t j = first; j < first + n;
         j += BYI_F32_PANEL, to += depth * BYI_F32_PANEL)
        c->kernels->codes_expand[c->bits == 8](p->packed + j / BYI_F32_PANEL *
                                                               panel_bytes(c),
                                               c->block, k, depth, to);
}

uint64_t byi_f32_codes_scratch(const struct byi_f32_codes *c, int threads)
{
    const uint64_t row = (uint64_t)row_floats(c) * sizeof(float);
    const uint64_t product = byi_f32_product_scratch(threads);
    return row > product ? row : product;
}

void byi_f32_codes_run(const struct byi_f32_codes *c, const void *packed,
                       int64_t m, const float *x, float *y, void *scratch,
                       int threads)
{
    if (m <= BYI_F32_FEW_ROWS) {
        for (int64_t i = 0; i < m; i++)
            run_row(c, packed, x + i * c->k, y + i * c->n, scratch, threads);
        return;
    }
    const struct codes_product ctx = {c, packed, x, y};
    const struct byi_f32_product product = {.kernels = c->kernels,
                                            .batches = 1,
                                            .m = m,
                                            .n = c->n,
                                            .k = c->k,
                                            .a_rs = c->k,
                                            .a_cs = 1,
                                            .ldc = c->n,
                                            .at = matrices,
                                            .pack = expand,
                                            .ctx = &ctx};
    byi_f32_product_run(&product, threads, scratch);
}
