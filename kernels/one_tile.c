/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/one_tile.c: runs a tile of a product, whose last panel may have fewer
 * columns, and says which weights it prefetches. */
#include "kernels/conv.h"

#include <string.h>

/* Run a tile whose last panel has more columns than y. */
static void run_partial(byi_f32_tile_fn *tile, struct byi_f32_tile *t, int rows,
                        int64_t columns)
{
    float sums[BYI_F32_ROWS * BYI_F32_COLUMNS];
    float add[BYI_F32_ROWS * BYI_F32_COLUMNS] = {0};
    const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
    const int64_t ld = panels * BYI_F32_PANEL;
    float *const y = t->y;
    const int64_t ldy = t->ldy, ldadd = t->ldadd;
    for (int r = 0; t->add && r < rows; r++)
        memcpy(add + r * ld, t->add + r * t->ldadd,
               (size_t)columns * sizeof *add);
    t->add = t->add ? add : NULL;
    t->y = sums;
    t->last = 0;
    t->ldadd = t->ldy = ld;
    tile(t);
    for (int r = 0; r < rows; r++)
        memcpy(y + r * ldy, sums + r * ld, (size_t)columns * sizeof *y);
    t->ldy = ldy;
    t->ldadd = ldadd;
}

void byi_f32_tile_run_with(const struct byi_f32_kernels *kernels,
                           byi_f32_tile_fn *tile, struct byi_f32_tile *t,
                           int rows, int64_t columns)
{
    t->last = columns % BYI_F32_PANEL;
    if (t->last && (!kernels->partial || t->last % kernels->partial))
        run_partial(tile, t, rows, columns);
    else
        tile(t);
}

void byi_f32_tile_run(const struct byi_f32_kernels *kernels,
                      struct byi_f32_tile *t, int rows, int64_t columns)
{
    const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
    byi_f32_tile_run_with(kernels, kernels->tile[panels - 1][rows], t, rows,
                          columns);
}

void byi_f32_fetch(struct byi_f32_tile *t, int64_t i, int64_t n,
                   const float *prefetch)
{
    const int64_t fetch = byi_ceil_div(BYI_F32_FETCH_STEP, n);
    const int64_t steps = t->n_pieces * (t->length / BYI_F32_FETCH_STEP);
    const int64_t from = i * steps * fetch;
    if (from >= t->n_pieces * t->length)
        return;
    t->prefetch = prefetch + from * BYI_F32_PANEL;
    t->fetch = fetch;
}
