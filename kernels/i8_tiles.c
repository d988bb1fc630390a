/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_tiles.c: multiplies tiles of rows of an 8-bit convolution by
 * panels of weights. */
#include "kernels/i8_job.h"

#include <string.h>

/* The first row of a tile. All tiles have about the same number of rows. */
static int64_t first_row(const struct i8_job *j, int64_t tile)
{
    return j->tile_rows * tile + byi_min(tile, j->larger_tiles);
}

/* Find or gather the rows of tiles [begin, end) for group `group`, and set
 * to[tile][piece][row]. `at` is memory for gathered rows. */
static void get_rows(const struct i8_job *j, int64_t group, int64_t begin,
                     int64_t end, char *at, const uint8_t **to)
{
    const int64_t first = first_row(j, begin);
    if (!j->in_place)
        i8_gather_rows(j, group, first, first_row(j, end) - first, at);
    for (int64_t i = begin, row = first, next; i < end; i++, row = next) {
        next = first_row(j, i + 1);
        if (j->in_place)
            i8_find_rows(j, group, row, next - row, to);
        for (int64_t r = row; !j->in_place && r < next; r++)
            to[r - row] = (const uint8_t *)at + (r - first) * j->ld;
        to += j->n_pieces * BYI_I8_ROWS;
    }
}

/* The kernel for tiles of `columns` columns. Sets *tile_columns to the columns
 * that it computes. */
static byi_i8_tile_fn *find_tile(const struct i8_job *j, int rows,
                                 int64_t columns, int64_t *tile_columns)
{
    const struct byi_i8_kernels *k = j->conv->kernels;
    const int64_t panels = byi_ceil_div(columns, BYI_I8_PANEL);
    *tile_columns = k->panels * BYI_I8_PANEL - BYI_I8_PANEL / 2;
    if (panels == k->panels && columns <= *tile_columns)
        return k->half_tile[j->form][rows];
    *tile_columns = panels * BYI_I8_PANEL;
    return k->tile[j->form][panels - 1][rows];
}

enum { APART_ROWS = 4 * BYI_I8_ROWS }; /* rows of results in the cache */

/* Run tiles, together `rows` rows, that are wider than y, `tile_columns`
 * columns, or whose results are activated. */
static void run_apart(const struct i8_job *j, const struct byi_i8_tile *tiles,
                      byi_i8_tile_fn *run, int64_t tile_columns, int64_t rows,
                      int64_t columns)
{
    const bool activated = j->conv->result == BYI_I8_ACTIVATED;
    _Alignas(64) float results[APART_ROWS * BYI_I8_COLUMNS];
    uint8_t summand[APART_ROWS * BYI_I8_COLUMNS];
    struct byi_i8_tile t = *tiles;
    t.y = (char *)results;
    t.ldy = tile_columns * (activated ? 4 : j->size);
    if (j->conv->result == BYI_I8_ADDED) {
        memset(summand, 0, (size_t)(rows * t.ldy));
        i8_copy_rows((char *)summand, t.ldy, (const char *)t.e.summand.at,
                     tiles->ldy, columns, rows);
        t.e.summand.at = summand;
        t.e.summand.ld = t.ldy;
    }
    run(&t);
    if (activated)
        i8_activate(j->run, results, tile_columns, rows, columns, tiles->y,
                    tiles->ldy);
    else
        i8_copy_rows(tiles->y, tiles->ldy, (const char *)results, t.ldy,
                     columns * j->size, rows);
}

/* Run `count` tiles of `n` rows, of `columns` columns. */
static void run_equal_tiles(const struct i8_job *j,
                            const struct byi_i8_tile *tile, int64_t count,
                            int n, int64_t columns)
{
    struct byi_i8_tile t = *tile;
    int64_t tile_columns;
    byi_i8_tile_fn *run = find_tile(j, n, columns, &tile_columns);
    if (columns == tile_columns && j->conv->result != BYI_I8_ACTIVATED) {
        t.tiles = count;
        run(&t);
        return;
    }
    for (int64_t i = 0; i < count; i += t.tiles) {
        t.tiles = byi_min(APART_ROWS / n, count - i);
        struct byi_i8_tile part = t;
        part.fetch += i < t.fetches ? i * t.next * 4 : 0;
        part.fetches = byi_max(t.fetches - i, 0);
        part.x += i * t.n_pieces * BYI_I8_ROWS;
        part.y += i * n * t.ldy;
        if (t.e.summand.at)
            part.e.summand.at += i * n * t.ldy;
        run_apart(j, &part, run, tile_columns, t.tiles * n, columns);
    }
}

/* Multiply tiles [begin, end) of rows by a column block of a group. */
static void run_column_block(const struct i8_job *j, const uint8_t *const *rows,
                             int64_t begin, int64_t end, int64_t group,
                             int64_t block)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t column = block * j->block_columns;
    const int64_t columns = byi_min(j->block_columns, j->outputs - column);
    const int64_t panels = byi_ceil_div(columns, BYI_I8_PANEL);
    const int64_t padded = group * i8_padded_outputs(conv) + column;
    const int64_t ldy = conv->outputs * j->size;
    struct byi_i8_tile t = {.n_pieces = j->n_pieces,
                            .words = j->words / j->n_pieces,
                            .weights = j->panels + padded * j->words,
                            .next = j->words * BYI_I8_PANEL,
                            .fetches = panels,
                            .e = j->e,
                            .ldy = ldy};
    t.e.add += padded;
    t.e.scale += padded;
    t.e.summand.ld = ldy;
    /* the first tiles prefetch the weights of the next block */
    t.fetch = (const char *)(t.weights + panels * t.next);
    /* first those that have one row more, then the others */
    for (int64_t i = begin, next; i < end; i = next) {
        const int64_t row = first_row(j, i);
        const int64_t at = row * ldy + (group * j->outputs + column) * j->size;
        next = i < j->larger_tiles ? byi_min(end, j->larger_tiles) : end;
        t.x = rows + (i - begin) * j->n_pieces * BYI_I8_ROWS;
        t.y = (char *)j->run->y + at;
        if (conv->result == BYI_I8_ADDED)
            t.e.summand.at = j->e.summand.at + at;
        run_equal_tiles(j, &t, next - i, (int)(first_row(j, i + 1) - row),
                        columns);
    }
}

/* Multiply tiles [begin, end) by column blocks [first, last), numbered
 * through all groups. The rows of as many tiles as fit are found or gathered
 * once for all columns of a group; the weights of a column block stay in the
 * cache while its tiles are computed. */
void i8_run_tiles(const struct i8_job *j, int64_t begin, int64_t end,
                  int64_t first, int64_t last, char *scratch)
{
    const uint8_t *rows[I8_PIECES * BYI_I8_ROWS];
    const int64_t most = byi_min(j->chunk_tiles, I8_PIECES);
    for (int64_t next; begin < end; begin = next) {
        next = byi_min(end, begin + most);
        for (int64_t b = first, stop; b < last; b = stop) {
            const int64_t group = b / j->column_blocks;
            stop = byi_min(last, (group + 1) * j->column_blocks);
            get_rows(j, group, begin, next, scratch, rows);
            for (; b < stop; b++)
                run_column_block(j, rows, begin, next, group,
                                 b % j->column_blocks);
        }
    }
}
