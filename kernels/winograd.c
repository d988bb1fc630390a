/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/winograd.c: convolution of stride 1 by Winograd's algorithm (Lavin
 * and Gray, arXiv 1509.09308). A tile of m x m outputs is
 *
 *     A' [ sum over channels of (G g G') * (B' d B) ] A
 *
 * with * elementwise, so that all tiles together are n^2 products, where
 * n = m + r - 1 for r x r taps, of tiles x channels by channels x outputs, one
 * for each point of the tile:
 *
 *     V[point][tile][channel]             transformed inputs
 *     U[panel][point][channel][16]        transformed weights, packed once
 *     M[point][tile][32]                  products of one block of columns
 *
 * V of a block of tiles stays in the second-level cache while all columns are
 * computed. For r taps along one axis, a tile is m outputs along it and has n
 * points. With a dilation of d along an axis, the inputs and outputs of a tile
 * are d positions apart, and d tiles interleave. */
#include "kernels/conv.h"

#include <math.h>
#include <string.h>

/* A run of the algorithm. */
struct winograd {
    const struct byi_f32_conv_run *run;
    int64_t group;  /* the merged group whose columns are computed */
    int m[2], n[2]; /* outputs and inputs of a tile along each axis */
    int64_t points; /* n[0] n[1] */
    int64_t tile_rows, tile_columns; /* of an image               */
    int64_t tiles;                   /* tiles of all images */
    int64_t block;                   /* tiles whose V exists at a time */
    int64_t ldv;     /* floats of a row of V                            */
    int64_t columns; /* columns of M */
    /* threads compute whole blocks of tiles; otherwise all threads share one
     * block at a time */
    bool whole;
};

/* --- weights -------------------------------------------------------------- */

/* F(m x m, r x r), or F(m, r) along one axis */
static const struct form {
    int m, r;
    bool one_axis;
} forms[BYI_F32_WINOGRAD_FORMS] = {
    {2, 3, false}, {4, 3, false}, {6, 3, false}, {4, 5, false},
    {4, 3, true},  {4, 5, true},  {2, 7, true},
};

static int form_index(const struct byi_f32_conv *conv)
{
    return (int)conv->algorithm - BYI_F32_WINOGRAD_2;
}

/* Whether the algorithm runs along one axis, and a tile is a column of outputs.
 */
static bool is_upright(const struct byi_f32_conv *conv)
{
    return forms[form_index(conv)].one_axis && conv->size[1] > 1;
}

static int points_of(const struct byi_f32_conv *conv)
{
    const struct form *form = &forms[form_index(conv)];
    const int n = form->m + form->r - 1;
    return form->one_axis ? n : n * n;
}

/* Compute G. Row i belongs to point p of the polynomial: the powers of p,
 * divided by the product of its differences from the other points. The last row
 * belongs to infinity. f32_winograd.inc has the other two matrices. */
static void compute_g(const struct form *form,
                      double g[][BYI_F32_WINOGRAD_SIZE])
{
    static const double points[] = {0, 1, -1, 2, -2, 0.5, -0.5};
    const int last = form->m + form->r - 2;
    for (int i = 0; i < last; i++) {
        double power = 1;
        for (int j = 0; j < last; j++)
            power /= j == i ? 1 : points[i] - points[j];
        for (int k = 0; k < form->r; k++, power *= points[i])
            g[i][k] = power;
    }
    for (int k = 0; k < form->r; k++)
        g[last][k] = k == form->r - 1;
}

int64_t byi_f32_winograd_floats(const struct byi_f32_conv *conv)
{
    return byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL) * BYI_F32_PANEL *
           points_of(conv) * conv->merged_channels;
}

/* Gather the taps of channel `channel` for outputs [column, end), at most one
 * panel. Taps of outputs of other groups, and from `end` on, are 0. */
static void gather_taps(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, int64_t column,
                        int64_t end, int64_t channel,
                        float taps[][BYI_F32_PANEL])
{
    const int64_t across = conv->size[2], n = conv->size[1] * across;
    const int64_t outputs = conv->outputs / conv->groups;
    const int64_t channels = conv->channels / conv->groups;
    const int64_t group = channel / channels;
    const float *from = weights->at + group * weights->group +
                        channel % channels * weights->channel;
    memset(taps, 0, (size_t)n * sizeof *taps);
    for (int64_t o = column; o < end; o++)
        for (int64_t i = 0; o / outputs == group && i < n; i++)
            taps[i][o - column] = from[o % outputs * weights->output +
                                       i / across * weights->tap[1] +
                                       i % across * weights->tap[2]];
}

/* gather_taps() for channels [c, c + n) of a merged group that is one group.
 * The taps of adjacent channels must be adjacent, as in OIHW. */
static void gather_strip(const struct byi_f32_conv *conv,
                         const struct byi_f32_weights *weights, int64_t column,
                         int64_t end, int64_t c, int64_t n,
                         float taps[][BYI_F32_PANEL])
{
    const int64_t rows = n * byi_f32_product_of(conv->size);
    const float *from =
        weights->at + column / conv->merged_outputs * weights->group +
        column % conv->merged_outputs * weights->output + c * weights->channel;
    if (end - column < BYI_F32_PANEL)
        memset(taps, 0, (size_t)rows * sizeof *taps);
    byi_f32_gather(conv->kernels, from, weights->output, 1, end - column, rows,
                   &taps[0][0], BYI_F32_PANEL);
}

/* Transform the weights of a panel, of outputs [column, end). */
static void pack_panel(const struct byi_f32_conv *conv,
                       const struct byi_f32_weights *weights, int64_t column,
                       int64_t end, float *to)
{
    enum { STRIP = 16 };
    float taps[STRIP * BYI_F32_WINOGRAD_TAPS][BYI_F32_PANEL];
    double g[BYI_F32_WINOGRAD_SIZE][BYI_F32_WINOGRAD_SIZE];
    const int64_t group = column / conv->merged_outputs;
    const int64_t n = byi_f32_product_of(conv->size);
    const bool adjacent =
        conv->merged_groups == conv->groups && weights->channel == n &&
        weights->tap[1] == conv->size[2] && weights->tap[2] == 1;
    compute_g(&forms[form_index(conv)], g);
    for (int64_t c = 0; c < conv->merged_channels; c++) {
        const int64_t at = adjacent ? c % STRIP : 0;
        if (!adjacent)
            gather_taps(conv, weights, column, end,
                        group * conv->merged_channels + c, taps);
        else if (at == 0)
            gather_strip(conv, weights, column, end, c,
                         byi_min(STRIP, conv->merged_channels - c), taps);
        conv->kernels->winograd[form_index(conv)].weights(
            (const double(*)[BYI_F32_WINOGRAD_SIZE])g,
            (const float(*)[BYI_F32_PANEL])(taps + at * n),
            to + c * BYI_F32_PANEL, conv->merged_channels * BYI_F32_PANEL);
    }
}

void byi_f32_winograd_pack(const struct byi_f32_conv *conv,
                           const struct byi_f32_weights *weights, float *to)
{
    for (int64_t group = 0; group < conv->merged_groups; group++)
        for (int64_t o = 0; o < conv->merged_outputs; o += BYI_F32_PANEL) {
            const int64_t column = group * conv->merged_outputs + o;
            pack_panel(conv, weights, column,
                       column +
                           byi_min(BYI_F32_PANEL, conv->merged_outputs - o),
                       to + group * byi_f32_winograd_floats(conv) +
                           o * points_of(conv) * conv->merged_channels);
        }
}

/* --- blocks --------------------------------------------------------------- */

/* Choose the number of tiles of a block. Their V should fill half of the
 * second-level cache. But every block reads all weights; if there are few
 * tiles, that costs more than a V that does not fit the cache. Such a V is read
 * and written back when it is computed, and read for every block of columns.
 * Each thread computes whole blocks if there are enough tiles: reading all
 * weights takes less time than reading inputs that another thread transformed.
 */
static struct winograd plan(const struct byi_f32_conv_run *run,
                            const struct byi_f32_conv *conv, int threads)
{
    const struct form *form = &forms[form_index(conv)];
    struct winograd w = {
        .run = run, .m = {1, 1}, .n = {1, 1}, .points = points_of(conv)};
    for (int i = 0; i < 2; i++)
        if (conv->size[1 + i] > 1) {
            w.m[i] = form->m;
            w.n[i] = form->m + form->r - 1;
        }
    w.tile_rows = byi_f32_winograd_tiles(conv, 1, w.m[0]);
    w.tile_columns = byi_f32_winograd_tiles(conv, 2, w.m[1]);
    w.tiles = conv->images * conv->out[0] * w.tile_rows * w.tile_columns;
    w.ldv = byi_ceil_div(conv->merged_channels, BYI_F32_PANEL) * BYI_F32_PANEL +
            BYI_F32_PANEL;
    w.columns = conv->kernels->panels * BYI_F32_PANEL;
    const int64_t tile =
        w.points * (w.ldv + w.columns) * (int64_t)sizeof(float);
    const int64_t rows = conv->kernels->rows;
    int64_t fits = conv->cache / 2 / tile / rows * rows;
    fits = fits < rows ? rows : fits;
    const int64_t weights =
        byi_f32_winograd_floats(conv) * (int64_t)sizeof(float);
    const int64_t repeats = byi_ceil_div(w.tiles, fits) - 1;
    const int64_t columns = byi_ceil_div(conv->merged_outputs, w.columns);
    w.block =
        repeats * weights > w.tiles * tile * (2 + columns) ? w.tiles : fits;
    int64_t blocks = byi_ceil_div(w.tiles, w.block);
    w.whole = threads > 1 && w.tiles >= threads &&
              (w.tiles >= threads * BYI_F32_ROWS || columns < 2 * threads);
    if (w.whole) /* the same number for each thread */
        blocks = byi_ceil_div(blocks, threads) * threads;
    w.block = byi_ceil_div(w.tiles, blocks);
    return w;
}

/* Floats of V. */
static int64_t inputs_floats(const struct winograd *w)
{
    return w->points * w->block * w->ldv;
}

/* Floats of M. */
static int64_t products_floats(const struct winograd *w)
{
    return w->points * w->block * w->columns;
}

uint64_t byi_f32_winograd_scratch(const struct byi_f32_conv *conv, int threads)
{
    uint64_t most = 0;
    for (int n = 1; n <= threads; n++) { /* a run may have fewer threads */
        const struct winograd w = plan(NULL, conv, n);
        const int64_t floats =
            w.whole ? n * (inputs_floats(&w) + products_floats(&w))
                    : inputs_floats(&w) + n * products_floats(&w);
        if ((uint64_t)floats > most)
            most = (uint64_t)floats;
    }
    return most * sizeof(float);
}

/* --- running -------------------------------------------------------------- */

/* The first output along an axis of tile `tile` of that axis. It may be beyond
 * the last output, since all d offsets of a dilation d have the same number of
 * tiles. */
static int64_t first_output(const struct byi_f32_conv *conv, int axis,
                            int64_t tile, int64_t m)
{
    const int64_t d = conv->dilation[axis];
    return tile / d * d * m + tile % d;
}

/* Set at[] to the row and column of a tile in its image; returns the image. */
static int64_t locate(const struct winograd *w, int64_t tile, int64_t at[2])
{
    const struct byi_f32_conv *conv = w->run->conv;
    at[0] =
        first_output(conv, 1, tile / w->tile_columns % w->tile_rows, w->m[0]);
    at[1] = first_output(conv, 2, tile % w->tile_columns, w->m[1]);
    return tile / w->tile_columns / w->tile_rows;
}

/* Swap rows and columns: the transforms of one axis run along rows. */
static void swap_patch_axes(struct byi_f32_patch *p)
{
    const struct byi_f32_patch upright = *p;
    p->ldrow = upright.ldcol, p->ldcol = upright.ldrow;
    p->top = upright.left, p->left = upright.top;
    p->bottom = upright.right, p->right = upright.bottom;
}

static void swap_output_axes(struct byi_f32_outputs *o)
{
    const struct byi_f32_outputs upright = *o;
    o->rows = upright.columns, o->columns = upright.rows;
    o->ldrow = upright.ldcol, o->ldcol = upright.ldrow;
}

/* How many of the n inputs or outputs of a tile along an axis, which are
 * `dilation` positions apart, are before position `end`, counted from the first
 * one. */
static int count_before(int64_t end, int64_t dilation, int n)
{
    return end <= 0 ? 0 : (int)byi_min(byi_ceil_div(end, dilation), n);
}

/* Compute V of tiles [begin, end) of the block that begins with tile `first`.
 */
static void transform_inputs(const struct winograd *w, float *v, int64_t first,
                             int64_t begin, int64_t end)
{
    const struct byi_f32_conv *conv = w->run->conv;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t at[2];
        const int64_t image = locate(w, tile, at);
        const int64_t top = at[0] - conv->pad[1], left = at[1] - conv->pad[2];
        const int64_t *d = &conv->dilation[1];
        struct byi_f32_patch patch = {
            .x = w->run->x +
                 ((image * conv->in[1] + top) * conv->in[2] + left) *
                     conv->channels +
                 w->group * conv->merged_channels,
            .ldrow = d[0] * conv->in[2] * conv->channels,
            .ldcol = d[1] * conv->channels,
            .top = count_before(-top, d[0], w->n[0]),
            .left = count_before(-left, d[1], w->n[1]),
            .bottom = count_before(conv->in[1] - top, d[0], w->n[0]),
            .right = count_before(conv->in[2] - left, d[1], w->n[1]),
            .channels = conv->merged_channels,
            .v = v + (tile - first) * w->ldv,
            .point = w->block * w->ldv,
        };
        if (is_upright(conv))
            swap_patch_axes(&patch);
        conv->kernels->winograd[form_index(conv)].input(&patch);
    }
}

/* Compute M = V U for `tiles` tiles and one block of columns. */
static void multiply(const struct winograd *w, const float *v, float *m,
                     int64_t tiles, int64_t column, int64_t panels)
{
    const struct byi_f32_conv *conv = w->run->conv;
    const int64_t point = conv->merged_channels * BYI_F32_PANEL;
    const int64_t chunks = byi_ceil_div(tiles, conv->kernels->rows);
    const float *rows[BYI_F32_ROWS];
    for (int64_t p = 0; p < w->points; p++) {
        const float *weights = w->run->weights +
                               w->group * byi_f32_winograd_floats(conv) +
                               (column / BYI_F32_PANEL * w->points + p) * point;
        /* weights of the next point or, after the last point, of the next
         * columns */
        const float *next =
            weights +
            (p + 1 < w->points
                 ? point
                 : (conv->kernels->panels - 1) * w->points * point + point);
        for (int64_t i = 0; i < chunks; i++) {
            const int64_t row = tiles * i / chunks;
            const int64_t n = tiles * (i + 1) / chunks - row;
            for (int64_t r = 0; r < n; r++)
                rows[r] = v + (p * w->block + row + r) * w->ldv;
            struct byi_f32_tile t = {
                .x = rows,
                .n_pieces = 1,
                .length = conv->merged_channels,
                .weights = weights,
                .next = w->points * point,
                .low = -INFINITY,
                .high = INFINITY,
                .y = m + (p * w->block + row) * w->columns,
                .ldy = w->columns,
            };
            byi_f32_fetch(&t, i, chunks, next);
            conv->kernels->tile[panels - 1][n](&t);
        }
    }
}

/* Compute the outputs of one tile for one panel of the merged group's columns.
 */
static void transform_output(const struct winograd *w, const float *m,
                             int64_t tile, int64_t first)
{
    const struct byi_f32_conv *conv = w->run->conv;
    const int64_t columns =
        byi_min(BYI_F32_PANEL, conv->merged_outputs - first);
    const int64_t column = w->group * conv->merged_outputs + first;
    float buffer[BYI_F32_COLUMNS];
    int64_t at[2];
    const int64_t image = locate(w, tile, at);
    const int64_t row = (image * conv->out[1] + at[0]) * conv->out[2] + at[1];
    const int64_t *d = &conv->dilation[1];
    const int out_rows = count_before(conv->out[1] - at[0], d[0], w->m[0]);
    const int out_columns = count_before(conv->out[2] - at[1], d[1], w->m[1]);
    if (out_rows == 0 || out_columns == 0)
        return;
    const struct byi_f32_epilogue e =
        byi_f32_epilogue_at(w->run, row, column, columns, buffer);
    struct byi_f32_outputs o = {
        .m = m,
        .point = w->block * w->columns,
        .rows = out_rows,
        .columns = out_columns,
        .channels = (int)columns,
        .bias = e.bias,
        .add = e.add,
        .low = e.low,
        .high = e.high,
        .y = w->run->y + row * conv->outputs + column,
        .ldrow = d[0] * conv->out[2] * conv->outputs,
        .ldcol = d[1] * conv->outputs,
    };
    if (is_upright(conv))
        swap_output_axes(&o);
    conv->kernels->winograd[form_index(conv)].output(&o);
    if (conv->next == conv->n_epilogue)
        return;
    const int adjacent = d[1] == 1 ? out_columns : 1;
    for (int64_t i = 0; i < out_rows; i++)
        for (int64_t j = 0; j < out_columns; j += adjacent)
            byi_f32_epilogue_run(w->run, conv->next,
                                 row + i * d[0] * conv->out[2] + j * d[1],
                                 adjacent, column, columns);
}

/* Compute blocks [begin, end) of columns for the tiles from `first` on. */
static void run_columns(const struct winograd *w, const float *v, float *m,
                        int64_t first, int64_t tiles, int64_t begin,
                        int64_t end)
{
    const struct byi_f32_conv *conv = w->run->conv;
    for (int64_t block = begin; block < end; block++) {
        const int64_t column = block * w->columns;
        const int64_t columns =
            byi_min(w->columns, conv->merged_outputs - column);
        const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
        multiply(w, v, m, tiles, column, panels);
        for (int64_t tile = 0; tile < tiles; tile++)
            for (int64_t p = 0; p < panels; p++)
                transform_output(w, m + tile * w->columns + p * BYI_F32_PANEL,
                                 first + tile, column + p * BYI_F32_PANEL);
    }
}

static void run_group(struct winograd w)
{
    const struct byi_f32_conv_run *run = w.run;
    const int64_t n = run->threads, blocks = byi_ceil_div(w.tiles, w.block);
    const int64_t columns = byi_ceil_div(run->conv->merged_outputs, w.columns);
    float *scratch = run->scratch;
    if (w.whole) {
#pragma omp parallel for num_threads(run->threads) schedule(static)
        for (int64_t i = 0; i < n; i++) {
            float *v = scratch + i * (inputs_floats(&w) + products_floats(&w));
            float *m = v + inputs_floats(&w);
            for (int64_t b = blocks * i / n; b < blocks * (i + 1) / n; b++) {
                const int64_t first = b * w.block;
                const int64_t tiles = byi_min(w.block, w.tiles - first);
                transform_inputs(&w, v, first, first, first + tiles);
                run_columns(&w, v, m, first, tiles, 0, columns);
            }
        }
        return;
    }
    for (int64_t first = 0; first < w.tiles; first += w.block) {
        const int64_t tiles = byi_min(w.block, w.tiles - first);
#pragma omp parallel for num_threads(run->threads) if (n > 1) schedule(static)
        for (int64_t i = 0; i < n; i++)
            transform_inputs(&w, scratch, first, first + tiles * i / n,
                             first + tiles * (i + 1) / n);
#pragma omp parallel for num_threads(run->threads) if (n > 1) schedule(static)
        for (int64_t i = 0; i < n; i++)
            run_columns(&w, scratch,
                        scratch + inputs_floats(&w) + i * products_floats(&w),
                        first, tiles, columns * i / n, columns * (i + 1) / n);
    }
}

void byi_f32_winograd_run(const struct byi_f32_conv_run *run)
{
    struct winograd w = plan(run, run->conv, run->threads);
    for (; w.group < run->conv->merged_groups; w.group++)
        run_group(w);
}
