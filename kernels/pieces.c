/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/pieces.c: products of float32 on AMX's tiles, which multiply numbers
 * of bfloat16 16 times as fast as vectors do those of float32. A number is the
 * sum of three of bfloat16 (Henry, Tang, Heinecke: "Leveraging the bfloat16
 * artificial intelligence datatype for higher-precision computations", 2019):
 *
 *     x w  =  (x0 + x1 + x2) (w0 + w1 + w2)
 *          ~  x0 w0 + x0 w1 + x1 w0 + x0 w2 + x1 w1 + x2 w0
 *
 * The products that are left out are 2^-24 of the whole on average, so sums
 * are as exact as those of float32. The processor takes subnormal numbers for
 * 0. Infinite numbers have no such pieces: other kernels multiply them.
 *
 * Rows are divided into groups and elements into slices, so that the pieces of
 * both stay in the second-level cache:
 *
 *     for each group, for each slice:
 *         cut the rows of the group
 *         for each two panels:
 *             cut them, and add their products to y
 */
#include "kernels/conv.h"
#include "kernels/i8.h"

#include <math.h>
#include <string.h>

enum {
    DEPTH = 768,      /* most elements of a slice */
    LEAST_ROWS = 128, /* with fewer, cutting weights takes too long */
    LEAST_SIZE = 256, /* least channels and outputs */
    TILE = 32         /* elements of a row of a tile */
};

bool byi_f32_pieces_suit(const struct byi_f32_conv *conv)
{
    return !conv->exact && conv->parts == 1 &&
           byi_f32_product_of(conv->size) == 1 &&
           byi_f32_product_of(conv->in) == 1 &&
           byi_f32_product_of(conv->out) == 1 && !conv->gathers &&
           !conv->scales && !conv->type && !conv->x_type &&
           !conv->weight_type && !conv->in_strips && conv->run >= LEAST_SIZE &&
           conv->columns >= LEAST_SIZE && byi_i8_kernels()->block;
}

/* Whether there are enough rows. */
static bool pays(const struct byi_f32_conv *conv)
{
    return conv->images >= LEAST_ROWS;
}

const char *byi_f32_pieces_name(const struct byi_f32_conv *conv)
{
    return pays(conv) ? "pieces:avx512_amx" : NULL;
}

/* A run, divided as above. */
struct pieces {
    const struct byi_f32_conv_run *run;
    const struct byi_i8_kernels *kernels;
    int64_t depth, slices; /* depth: elements of a slice, in whole tiles */
    int64_t high;          /* rows of a group */
};

static struct pieces divide(const struct byi_f32_conv *conv)
{
    struct pieces p = {.kernels = byi_i8_kernels(),
                       .slices = byi_ceil_div(conv->run, DEPTH)};
    const int64_t bytes = BYI_I8_N_PIECES * (int64_t)sizeof(uint16_t);
    p.depth = byi_ceil_div(byi_ceil_div(conv->run, p.slices), TILE) * TILE;
    p.slices = byi_ceil_div(conv->run, p.depth);
    p.high = conv->cache / 8 * 5 / (bytes * p.depth) / TILE * TILE;
    p.high = byi_max(p.high, TILE);
    return p;
}

/* Bytes of the pieces of a group's rows, and of two panels. */
static uint64_t rows_bytes(const struct pieces *p)
{
    return byi_align_bytes((uint64_t)(BYI_I8_N_PIECES * p->depth * p->high) *
                           sizeof(uint16_t));
}

static uint64_t lane_of(const struct pieces *p)
{
    return rows_bytes(p) + (uint64_t)(BYI_I8_N_PIECES * p->depth) *
                               BYI_F32_COLUMNS * sizeof(uint16_t);
}

uint64_t byi_f32_pieces_scratch(const struct byi_f32_conv *conv, int threads)
{
    const struct pieces p = divide(conv);
    return BYI_ALIGN + (uint64_t)threads * lane_of(&p);
}

/* A slice of a group: rows [begin, end), elements [from, from + n). */
struct piece_group {
    int64_t begin, end, from, n;
    uint16_t *rows;
    uint32_t *panels;
};

/* The addend of two panels: the bias in the first slice, then 0. */
static const float *find_bias(const struct byi_f32_conv_run *run, bool first,
                              int64_t column, int64_t columns, float *room)
{
    memset(room, 0, BYI_F32_COLUMNS * sizeof *room);
    if (run->bias && first)
        memcpy(room, run->bias + column, (size_t)columns * sizeof *room);
    return room;
}

/* Add the products of a slice of a group by two panels to y. */
static void run_panels(const struct pieces *p, const struct piece_group *g,
                       int64_t block)
{
    const struct byi_f32_conv_run *run = p->run;
    const struct byi_f32_conv *conv = run->conv;
    const int64_t column = block * BYI_F32_COLUMNS, ld = conv->outputs;
    const int64_t columns = byi_min(BYI_F32_COLUMNS, conv->columns - column);
    const int64_t words = BYI_I8_N_PIECES * p->depth / 2;
    float bias[BYI_F32_COLUMNS], *y = run->y + g->begin * ld + column;
    for (int64_t i = 0; i * BYI_F32_PANEL < columns; i++)
        p->kernels->piece_panel(
            run->weights + (column + i * BYI_F32_PANEL) * conv->run +
                g->from * BYI_F32_PANEL,
            g->n, p->depth, g->panels + i * words * BYI_F32_PANEL);
    const float *other = g->from > 0 ? y : NULL;
    if (conv->adds && g->from == 0)
        other = run->operands[conv->posts[0].operand] + g->begin * ld + column;
    const struct byi_i8_block b = {
        .x = (const uint8_t *)g->rows,
        .ldx = 4 * words,
        .all = byi_max(g->end - g->begin, BYI_I8_BLOCK),
        .rows = g->end - g->begin,
        .words = words,
        .columns = columns,
        .weights = g->panels,
        .values = BYI_I8_PIECES,
        .tap_words = words,
        .e = {.result = BYI_I8_FLOATS,
              .add = (const int32_t *)(const void *)find_bias(
                  run, g->from == 0, column, columns, bias),
              .low = -INFINITY,
              .high = INFINITY,
              .other = {.at = (const uint8_t *)other}},
        .y = (char *)y,
        .ldy = ld * (int64_t)sizeof *y};
    p->kernels->block(&b);
    if (g->from + g->n == conv->run)
        byi_f32_posts_run(run, conv->adds, g->begin, g->end - g->begin, column,
                          columns);
}

/* Compute rows [begin, end) by blocks [first, last) of two panels. */
static void run_share(const struct pieces *p, int64_t begin, int64_t end,
                      int64_t first, int64_t last, char *lane)
{
    const struct byi_f32_conv *conv = p->run->conv;
    const int64_t groups = byi_ceil_div(end - begin, p->high);
    struct piece_group g = {.rows = (uint16_t *)(void *)lane,
                            .panels =
                                (uint32_t *)(void *)(lane + rows_bytes(p))};
    for (int64_t i = 0; i < groups; i++) {
        g.begin = begin + (end - begin) * i / groups;
        g.end = begin + (end - begin) * (i + 1) / groups;
        for (g.from = 0; g.from < conv->run; g.from += g.n) {
            g.n = byi_min(p->depth, conv->run - g.from);
            p->kernels->piece_rows(p->run->x + g.begin * conv->run + g.from,
                                   conv->run, g.end - g.begin, g.n, p->depth,
                                   g.rows);
            for (int64_t at = first; at < last; at++)
                run_panels(p, &g, at);
        }
    }
}

bool byi_f32_pieces_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t rows = conv->images;
    const int64_t blocks = byi_ceil_div(conv->columns, BYI_F32_COLUMNS);
    const int64_t tiles = byi_ceil_div(rows, TILE), n = run->threads;
    const bool by_rows = tiles >= blocks;
    struct pieces p = divide(conv);
    p.run = run;
    if (!pays(conv) || !p.kernels->finite(run->x, rows * conv->run))
        return false;
    char *lanes = (char *)(uintptr_t)byi_align_bytes((uintptr_t)run->scratch);
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++) {
        char *lane = lanes + (uint64_t)i * lane_of(&p);
        if (by_rows)
            run_share(&p, byi_min(tiles * i / n * TILE, rows),
                      byi_min(tiles * (i + 1) / n * TILE, rows), 0, blocks,
                      lane);
        else
            run_share(&p, 0, rows, blocks * i / n, blocks * (i + 1) / n, lane);
    }
    return true;
}
