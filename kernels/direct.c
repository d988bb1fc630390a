/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/direct.c: indirect convolution, a product whose rows are read through
 * pointers, one for each tap (Dukhan, arXiv 1907.02129), and products. */
#include "kernels/conv.h"
#include "kernels/inline.h"

#include <math.h>
#include <string.h>

enum {
    LONG_ROW = 256,       /* elements from which tiles prefetch their results */
    MIN_SLICE = 256,      /* fewest elements of a slice */
    SLICE = 768,          /* usual elements of a slice */
    EXPANDED_SLICE = 512, /* most elements of a slice if weights are expanded */
    SHORT_CHUNK = 16      /* most tiles of a chunk with one block of columns */
};

int64_t byi_f32_direct_floats(const struct byi_f32_conv *conv)
{
    return byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL) * BYI_F32_PANEL *
           byi_f32_product_of(conv->size) * conv->merged_channels;
}

void byi_f32_pack_tap(const struct byi_f32_conv *conv,
                      const struct byi_f32_weights *weights, const float *from,
                      int64_t panel, int64_t first, float *to)
{
    const int64_t columns = conv->outputs / conv->groups;
    const int64_t channels = conv->channels / conv->groups;
    for (int64_t o = 0, n; o < columns; o += n) {
        const int64_t at = first + o;
        n = byi_min(BYI_F32_PANEL - at % BYI_F32_PANEL, columns - o);
        byi_f32_gather(conv->kernels, from + o * weights->output,
                       weights->output, weights->channel, n, channels,
                       to + at / BYI_F32_PANEL * panel + at % BYI_F32_PANEL,
                       BYI_F32_PANEL);
    }
}

/* The products of a run, divided into tiles of rows and blocks of columns. */
struct direct {
    const struct byi_f32_conv_run *run;
    const struct byi_f32_conv *conv;
    int64_t rows, tiles;     /* rows: positions of all images */
    int64_t tile_rows;       /* rows of a tile, except larger ones */
    int64_t larger_tiles;    /* the first tiles, which have one row more */
    int64_t full_rows;       /* rows of a full tile */
    int64_t width, blocks;   /* columns of a block; blocks of a merged group */
    int64_t missing_columns; /* of the first block */
    int64_t whole_blocks; /* blocks before the first that lacks end columns */
    int64_t pieces[BYI_F32_AXES]; /* of a window, by axis */
    int64_t n_pieces, length;     /* pieces of a window; elements of each */
    int64_t slices;               /* of a piece, see choose_slices() */
    bool copies;                  /* rows are copied first: see copies_rows() */
    bool pointwise;               /* row i is position i of x */
    int64_t copy_ld;              /* floats from one copied row to the next */
    int64_t chunk;                /* tiles whose rows are found at a time */
    int64_t border;      /* floats for the pieces of a row at the border     */
    uint64_t per_thread; /* bytes of scratch of a thread        */
};

/* Whether every output depends on all channels. */
static bool reads_all_channels(const struct byi_f32_conv *conv)
{
    return conv->merged_channels == conv->channels;
}

/* Whether to copy rows: gathered rows, rows for expanded weights (see
 * slice_expanded()), and rows whose distance is a multiple of half a page. Rows
 * at such distances map to one or two sets of the first-level cache, and can
 * evict each other. */
static bool copies_rows(const struct byi_f32_conv *conv)
{
    if (conv->gathers || conv->expand)
        return true;
    return byi_f32_product_of(conv->size) == 1 && reads_all_channels(conv) &&
           conv->channels >= 512 &&
           conv->channels * (int64_t)sizeof(float) % 2048 == 0 &&
           conv->merged_outputs >= 64 &&
           conv->images * byi_f32_product_of(conv->out) > 1;
}

/* Whether every position of x is read once, in order. */
static bool reads_positions(const struct byi_f32_conv *conv)
{
    for (int i = 0; i < BYI_F32_AXES; i++)
        if (conv->size[i] != 1 || conv->stride[i] != 1 || conv->pad[i] != 0 ||
            conv->in[i] != conv->out[i])
            return false;
    return true;
}

/* Floats of the copies of a tile's rows. */
static int64_t tile_floats(const struct direct *d)
{
    return d->copy_ld * d->full_rows;
}

/* Number of tiles in a chunk; all columns of a chunk are computed before the
 * next chunk. If the weights stay in the second-level cache, a chunk is one
 * tile (or, with one block of columns, a few), so that whole rows of the result
 * are written; if there are several groups, also so that one call computes them
 * all. Otherwise the scratch's pointers limit the chunk. If a row is one piece,
 * the chunk's rows must also fit into about half of that cache: weights and
 * results pass through the other half. */
static int64_t choose_chunk(const struct direct *d)
{
    const struct byi_f32_conv *conv = d->conv;
    const int64_t size = sizeof(float);
    const int64_t groups = conv->merged_groups;
    const int64_t weights = groups * byi_f32_direct_floats(conv) * size;
    const int64_t most = byi_max(BYI_F32_PIECES / d->n_pieces, 1);
    const bool alone = d->blocks * groups == 1 && !d->copies && !d->border;
    if (weights <= conv->cache / (reads_all_channels(conv) ? 8 : 2))
        return alone ? byi_min(most, SHORT_CHUNK) : 1;
    if (d->n_pieces > 1)
        return most;
    return byi_min(conv->cache / 2 / size / tile_floats(d) + 1, most);
}

/* Number of slices of long rows. One slice of a chunk's rows and the weights of
 * two blocks stay in the second-level cache. Rows are then read from memory
 * once, not for every block; shorter slices than fit let more tiles share the
 * weights of a block. Rows whose pieces at the border are copied have no
 * slices, since more tiles would need more copies. */
static int64_t choose_slices(const struct direct *d)
{
    const struct byi_f32_conv *conv = d->conv;
    if (d->chunk == 1 || d->blocks == 1 || d->n_pieces > 1 || d->border > 0 ||
        !reads_all_channels(conv) || conv->gathers || conv->x_type)
        return 1;
    const int64_t rows = byi_min(d->tiles, d->chunk) * tile_floats(d);
    const int64_t bytes =
        (rows + 2 * d->width * d->length) * (int64_t)sizeof(float);
    const int64_t slices =
        byi_max(byi_ceil_div(bytes, conv->cache / 4 * 3), d->length / SLICE);
    return byi_max(byi_min(slices, d->length / MIN_SLICE), 1);
}

/* Whether all windows, whose dilation along the last axis is 1, are inside the
 * image along that axis. */
static bool fits_lines(const struct byi_f32_conv *conv)
{
    const int64_t last = BYI_F32_AXES - 1;
    return conv->pad[last] == 0 &&
           (conv->out[last] - 1) * conv->stride[last] + conv->size[last] <=
               conv->in[last];
}

/* Whether the taps of a line, which are adjacent in x, are one piece. If there
 * are few channels, this pays even if the pieces at the border have to be
 * copied, with their padding: otherwise the loop over a piece's elements is too
 * short. */
static bool joins_taps(const struct byi_f32_conv *conv)
{
    const int64_t last = BYI_F32_AXES - 1;
    return reads_all_channels(conv) && conv->dilation[last] == 1 &&
           conv->size[last] > 1 &&
           (fits_lines(conv) || conv->channels < BYI_F32_PANEL);
}

/* Divide rows into slices so that the expanded weights of a block and the rows
 * of a chunk stay in the second-level cache. */
static void slice_expanded(struct direct *d)
{
    const int64_t size = sizeof(float);
    d->slices = byi_ceil_div(d->length, EXPANDED_SLICE);
    d->copy_ld =
        byi_ceil_div(byi_ceil_div(d->length, d->slices), BYI_F32_PANEL) *
            BYI_F32_PANEL +
        BYI_F32_PANEL;
    d->chunk = byi_max(d->conv->cache / 2 / size / tile_floats(d), 1);
    d->chunk = byi_min(d->chunk, BYI_F32_PIECES);
    d->per_thread =
        byi_f32_pointer_bytes(1) + BYI_ALIGN +
        (uint64_t)(d->chunk * tile_floats(d) + d->width * d->copy_ld) *
            sizeof(float);
}

/* Columns by which the first block is smaller than the others. If the number of
 * panels is odd and the last one is at most half full, the first block has one
 * panel. The last block then has two: half a panel takes less time only beside
 * another. */
static int64_t count_missing_columns(const struct byi_f32_conv *conv)
{
    const int64_t last = conv->merged_outputs % BYI_F32_PANEL;
    const int64_t panels = byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL);
    const bool half = conv->kernels->partial && conv->kernels->panels == 2 &&
                      !conv->slim && last > 0 && last <= BYI_F32_PANEL / 2;
    return half && panels > 1 && panels % 2 ? BYI_F32_PANEL : 0;
}

/* The first column of a block of a merged group. */
static int64_t first_column(const struct direct *d, int64_t block)
{
    return byi_max(block * d->width - d->missing_columns, 0);
}

/* Divide the products of a convolution into tiles, chunks, slices and blocks.
 * The caller sets `run`. */
static struct direct describe(const struct byi_f32_conv *conv)
{
    struct direct d = {
        .conv = conv,
        .rows = conv->images * byi_f32_product_of(conv->out),
        .full_rows =
            conv->slim ? conv->kernels->slim_rows : conv->kernels->rows,
        .width = (conv->slim ? 1 : conv->kernels->panels) * BYI_F32_PANEL,
        .missing_columns = count_missing_columns(conv),
        .pieces = {conv->size[0], conv->size[1], conv->size[2]},
        .length = conv->merged_channels,
        .copies = copies_rows(conv),
        .pointwise = reads_positions(conv),
    };
    if (joins_taps(conv)) {
        d.length *= d.pieces[2];
        d.pieces[2] = 1;
    }
    d.n_pieces = byi_f32_product_of(d.pieces);
    if (d.pieces[2] < conv->size[2] && !fits_lines(conv))
        d.border = d.n_pieces * d.length;
    d.tiles = byi_ceil_div(d.rows, d.full_rows);
    d.tile_rows = d.rows / byi_max(d.tiles, 1);
    d.larger_tiles = d.rows % byi_max(d.tiles, 1);
    d.blocks = byi_ceil_div(conv->merged_outputs + d.missing_columns, d.width);
    d.whole_blocks = (conv->merged_outputs + d.missing_columns) / d.width;
    d.slices = 1;
    d.copy_ld = d.length + BYI_F32_PANEL;
    if (conv->expand) {
        slice_expanded(&d);
        return d;
    }
    d.chunk = choose_chunk(&d);
    const int64_t floats = d.chunk * tile_floats(&d);
    d.per_thread = byi_f32_pointer_bytes(d.n_pieces);
    if (d.copies)
        d.per_thread += (uint64_t)floats * sizeof(float);
    d.per_thread +=
        (uint64_t)(d.chunk * BYI_F32_ROWS * d.border) * sizeof(float);
    /* the scratch of a product does not depend on its number of rows, so slices
     * use the scratch of whole rows */
    d.slices = choose_slices(&d);
    if (d.slices > 1) {
        d.copy_ld = byi_ceil_div(d.length, d.slices) + BYI_F32_PANEL;
        d.chunk = byi_min(floats / tile_floats(&d), BYI_F32_PIECES);
    }
    return d;
}

uint64_t byi_f32_pointer_bytes(int64_t pieces)
{
    const int64_t most = pieces > BYI_F32_PIECES ? pieces : BYI_F32_PIECES;
    return (uint64_t)(most * BYI_F32_ROWS) * sizeof(float *);
}

/* Bytes of a thread's copy of the scaled weights. */
static uint64_t scaled_bytes(const struct byi_f32_conv *conv)
{
    return byi_align_bytes((uint64_t)byi_f32_direct_floats(conv) *
                           sizeof(float));
}

uint64_t byi_f32_direct_scratch(const struct byi_f32_conv *conv, int threads)
{
    if (!byi_f32_scales_weights(conv))
        return describe(conv).per_thread * (uint64_t)threads;
    const struct byi_f32_conv scaled = byi_f32_scaled_conv(conv);
    return BYI_ALIGN + (scaled_bytes(conv) + describe(&scaled).per_thread) *
                           (uint64_t)threads;
}

/* The first row of a tile. All tiles have about the same number of rows. */
static int64_t first_row(const struct direct *d, int64_t tile)
{
    return d->tile_rows * tile + byi_min(tile, d->larger_tiles);
}

/* Copy the taps of a line that begin at column `at`, some of them padding. */
static void copy_border(const struct byi_f32_conv *conv, const float *line,
                        int64_t at, float *to)
{
    const int64_t c = conv->channels, n = conv->size[2];
    const int64_t from = byi_min(byi_max(-at, 0), n);
    const int64_t end = byi_max(byi_min(conv->in[2] - at, n), from);
    memset(to, 0, (size_t)(n * c) * sizeof *to);
    memcpy(to + from * c, line + (at + from) * c,
           (size_t)((end - from) * c) * sizeof *to);
}

/* Find the pieces of a window that is partly outside of the image and whose
 * first tap is at `at`. If a piece is all taps of a line and lines are padded,
 * pieces of lines inside of the image are copied to `border`, with their
 * padding. */
static void find_border(const struct direct *d, const float *image,
                        const int64_t at[BYI_F32_AXES], const float **piece,
                        float *border)
{
    const struct byi_f32_conv *conv = d->conv;
    const float *const zeros = d->run->zeros;
    for (int64_t t = 0; t < d->pieces[0] * d->pieces[1]; t++) {
        const int64_t z = at[0] + t / d->pieces[1] * conv->dilation[0];
        const int64_t h = at[1] + t % d->pieces[1] * conv->dilation[1];
        const bool exists =
            z >= 0 && z < conv->in[0] && h >= 0 && h < conv->in[1];
        const int64_t line = (z * conv->in[1] + h) * conv->in[2];
        if (exists && d->border) {
            copy_border(conv, image + line * conv->channels, at[2], border);
            *piece = border;
            piece += BYI_F32_ROWS;
            border += d->length;
            continue;
        }
        for (int64_t k = 0; k < d->pieces[2]; k++, piece += BYI_F32_ROWS) {
            const int64_t w = at[2] + k * conv->dilation[2];
            *piece =
                exists && w >= 0 && w < conv->in[2]
                    ? byi_f32_element(conv, image, (line + w) * conv->channels)
                    : zeros;
        }
    }
}

/* Find the pieces of a window that is inside of the image. */
static void find_inside(const struct byi_f32_conv *conv, const float *image,
                        const int64_t pieces[BYI_F32_AXES],
                        const int64_t at[BYI_F32_AXES], const float **piece)
{
    const int64_t column = conv->dilation[2] * conv->channels;
    for (int64_t i = 0; i < pieces[0]; i++)
        for (int64_t j = 0; j < pieces[1]; j++) {
            const float *line = byi_f32_element(
                conv, image,
                (((at[0] + i * conv->dilation[0]) * conv->in[1] + at[1] +
                  j * conv->dilation[1]) *
                     conv->in[2] +
                 at[2]) *
                    conv->channels);
            for (int64_t k = 0; k < pieces[2]; k++, piece += BYI_F32_ROWS)
                *piece = byi_f32_element(conv, line, k * column);
        }
}

/* Find the pieces of the window of output `at`. If it is inside of the image,
 * returns how many windows to its right are inside, each stride[2] further;
 * otherwise 0. */
static int64_t find_row(const struct direct *d, const float *image,
                        const int64_t at[BYI_F32_AXES], const float **to,
                        float *border)
{
    const struct byi_f32_conv *conv = d->conv;
    int64_t from[BYI_F32_AXES], rest = 0;
    bool inside = true;
    for (int i = 0; i < BYI_F32_AXES; i++) {
        from[i] = at[i] * conv->stride[i] - conv->pad[i];
        rest =
            conv->in[i] - 1 - from[i] - (conv->size[i] - 1) * conv->dilation[i];
        inside &= from[i] >= 0 && rest >= 0;
    }
    if (!inside) {
        find_border(d, image, from, to, border);
        return 0;
    }
    find_inside(conv, image, d->pieces, from, to);
    return rest / conv->stride[2];
}

/* Find the pieces of rows [row, row + n): sets to[p * BYI_F32_ROWS + i] to the
 * address of piece p of row `row` + i. Pieces at the border may be copied to
 * `border` (see find_border). */
static void find_rows(const struct direct *d, int64_t row, int64_t n,
                      const float **to, float *border)
{
    const struct byi_f32_conv_run *run = d->run;
    const struct byi_f32_conv *conv = d->conv;
    const int64_t *out = conv->out;
    const int64_t image = byi_f32_product_of(conv->in) * conv->channels;
    const float *x =
        byi_f32_element(conv, run->x, row / byi_f32_product_of(out) * image);
    int64_t at[BYI_F32_AXES] = {row / out[2] / out[1] % out[0],
                                row / out[2] % out[1], row % out[2]};
    const int64_t step = conv->stride[2] * conv->channels;
    const int64_t pieces = d->n_pieces;
    for (int64_t r = 0, inside = -1; r < n; r++) {
        /* the next `inside` windows are inside of the image, too */
        if (inside-- > 0)
            for (int64_t t = 0; t < pieces; t++)
                to[t * BYI_F32_ROWS + r] =
                    byi_f32_element(conv, to[t * BYI_F32_ROWS + r - 1], step);
        else
            inside = find_row(d, x, at, to + r, border + r * d->border);
        int axis = BYI_F32_AXES - 1;
        while (axis >= 0 && ++at[axis] == out[axis])
            at[axis--] = 0;
        if (axis < BYI_F32_AXES - 1)
            inside = 0;
        if (axis < 0)
            x = byi_f32_element(conv, x, image);
    }
}

/* Copy elements [from, to) of the rows to where they map to several sets. */
static void copy_rows(const struct direct *d, const float **rows, int64_t n,
                      int64_t from, int64_t to, float *copy)
{
    for (int64_t r = 0; r < n; r++, copy += d->copy_ld) {
        memcpy(copy, rows[r] + from, (size_t)(to - from) * sizeof *copy);
        rows[r] = copy;
    }
}

/* Gather n rows of one image from `row` on. */
static void gather_image(const struct direct *d, int64_t row, int64_t n,
                         float *to)
{
    const struct byi_f32_conv_run *run = d->run;
    const struct byi_f32_conv *conv = d->conv;
    const int64_t image = row / byi_f32_product_of(conv->out);
    struct byi_f32_scale_shift a = {
        .scale = run->scale ? run->scale + image * conv->scale_image : NULL,
        .shift = run->shift,
        .rows = n,
        .ld = d->copy_ld,
        .rectify = conv->rectifies,
        .to = to};
    for (uint32_t i = 0; i < run->n_sources; i++, a.to += a.n) {
        a.n = run->sources[i].channels;
        a.x = run->sources[i].x + row * a.n;
        conv->kernels->scale_shift(&a);
        a.scale = a.scale ? a.scale + a.n : NULL;
        a.shift = a.shift ? a.shift + a.n : NULL;
    }
}

/* Gather n rows from `row` on. */
static void gather_rows(const struct direct *d, int64_t row, int64_t n,
                        const float **rows, float *to)
{
    const int64_t positions = byi_f32_product_of(d->conv->out);
    for (int64_t r = 0; r < n; r++)
        rows[r] = to + r * d->copy_ld;
    for (int64_t r = 0, count; r < n; r += count) {
        count = byi_min(n - r, positions - (row + r) % positions);
        gather_image(d, row + r, count, to + r * d->copy_ld);
    }
}

/* Prefetch a tile's results, and the matrix that it adds, while the tile is
 * computed: rows that are a multiple of a page apart evict each other's lines.
 * For tiles of few rows, such as those of AVX2, prefetching the results takes
 * longer than the stores would wait, unless the tile also reads the results. */
static void fetch_results(const struct byi_f32_tile *t, int rows)
{
    enum { MANY_ROWS = 7 };
    if (rows >= MANY_ROWS || t->add == t->y)
        byi_f32_prefetch(t->y, t->ldy, rows, BYI_F32_COLUMNS, true);
    if (t->add && t->add != t->y)
        byi_f32_prefetch(t->add, t->ldadd, rows, BYI_F32_COLUMNS, false);
}

/* A chunk: tiles [begin, end) of rows, elements [from, to) of their pieces, and
 * their pointers. */
struct direct_chunk {
    int64_t begin, end, from, to;
    const float **rows;
    float *copies;  /* of rows, or of their pieces at the border */
    float *weights; /* of a block, expanded */
};

/* The tile of a block of columns. Only members that change are set, one by one:
 * an assignment of the whole struct would wait until the results of the
 * previous tile are in the cache. */
struct direct_block {
    int64_t column, columns, panel; /* panel: elements of a panel */
    struct byi_f32_tile tile;
    int64_t bias_column; /* at which the bias below begins; -1: none */
    float bias[BYI_F32_COLUMNS];
};

/* Set the members that all blocks of a slice share. */
static void start_slice(const struct direct *d, const struct direct_chunk *c,
                        struct direct_block *b)
{
    const struct byi_f32_conv *conv = d->conv;
    const struct byi_f32_epilogue e =
        byi_f32_epilogue_at(d->run, 0, 0, 0, b->bias);
    const bool ends = c->to == d->length;
    b->panel = (conv->expand ? c->to - c->from : d->n_pieces * d->length) *
               BYI_F32_PANEL;
    b->bias_column = -1;
    b->tile = (struct byi_f32_tile){
        .n_pieces = d->n_pieces,
        .step = d->blocks == 1 ? conv->merged_channels : 0,
        .length = c->to - c->from,
        .next = b->panel,
        .ldadd = conv->outputs,
        .low = ends ? e.low : -INFINITY,
        .high = ends ? e.high : INFINITY,
        .ldy = conv->outputs,
        /* the number of threads decides the rows of a strip's tiles; results
         * must not depend on them */
        .splits = !conv->in_strips,
    };
}

/* Expand the weights of a chunk's slice for columns [first, first + n). */
static const float *expand_block(const struct direct *d,
                                 const struct direct_chunk *c, int64_t first,
                                 int64_t n)
{
    d->conv->expand(d->run->matrix, c->from, c->to - c->from, first, n,
                    c->weights);
    return c->weights;
}

/* Set the members that depend on the columns. */
static void start_block(const struct direct *d, const struct direct_chunk *c,
                        int64_t group, int64_t block, struct direct_block *b)
{
    const struct byi_f32_conv *conv = d->conv;
    const int64_t first = first_column(d, block);
    b->columns =
        byi_min(first_column(d, block + 1), conv->merged_outputs) - first;
    b->column = group * conv->merged_outputs + first;
    b->tile.first = group * conv->merged_channels + (d->copies ? 0 : c->from);
    if (conv->slim)
        b->tile.first += first / conv->slim * conv->merged_channels;
    b->tile.weights =
        conv->expand
            ? expand_block(d, c, first, b->columns)
            : d->run->weights + group * byi_f32_direct_floats(conv) +
                  first / BYI_F32_PANEL * b->panel + c->from * BYI_F32_PANEL;
    if (!d->run->bias || c->from > 0)
        return;
    b->tile.bias = d->run->bias + b->column;
    if (b->columns % BYI_F32_PANEL == 0)
        return;
    if (b->bias_column != b->column) {
        memset(b->bias, 0, sizeof b->bias);
        memcpy(b->bias, b->tile.bias, (size_t)b->columns * sizeof *b->bias);
    }
    b->bias_column = b->column;
    b->tile.bias = b->bias;
}

/* Number of blocks after `block`, before `end`, that one call of the kernel
 * computes for a chunk that is one tile: further whole blocks, also of the
 * groups after this one, if each has one block. With short rows, a call takes a
 * fifth of the time of the products. */
static int64_t blocks_after(const struct direct *d,
                            const struct direct_chunk *c, int64_t block,
                            int64_t end)
{
    const struct byi_f32_conv *conv = d->conv;
    if (c->end - c->begin > 1 || conv->expand ||
        (block == 0 && d->missing_columns))
        return 0;
    if (conv->slim ||
        (d->blocks == 1 && conv->merged_outputs % BYI_F32_PANEL == 0))
        return end - block - 1;
    return byi_max(byi_min(d->whole_blocks, end) - block - 1, 0);
}

/* The columns of all blocks of a call. */
static int64_t columns_of(const struct direct *d, const struct direct_block *b)
{
    return byi_min(b->columns * (1 + b->tile.n_more_blocks),
                   d->conv->outputs - b->column);
}

/* Compute a tile of n rows and all columns of its blocks. */
static void run_tile(const struct direct *d, struct direct_block *b, int n)
{
    const struct byi_f32_conv *conv = d->conv;
    if (!conv->slim) {
        byi_f32_tile_run(conv->kernels, &b->tile, n, b->columns);
        return;
    }
    b->tile.last = columns_of(d, b) % BYI_F32_PANEL;
    conv->kernels->slim[conv->slim == 4][n](&b->tile);
}

/* Multiply the rows of a chunk by the columns of some blocks, beginning with
 * `block` of a merged group and at most up to `end`, which may be in a later
 * group. If `whole`, the caller applies the rest of the epilogue once all
 * columns of the rows are computed. Returns the number of these blocks. */
static int64_t run_blocks(const struct direct *d, const struct direct_chunk *c,
                          int64_t group, int64_t block, int64_t end, bool whole,
                          struct direct_block *b)
{
    const struct byi_f32_conv *conv = d->conv;
    const int64_t tiles = c->end - c->begin, ld = conv->outputs;
    const float **rows = c->rows;
    struct byi_f32_tile *t = &b->tile;
    start_block(d, c, group, block, b);
    t->n_more_blocks = blocks_after(d, c, block, end);
    /* A slice after the first is added to y: shorter sums have smaller rounding
     * errors. A tile reads an element of y before it writes it. */
    const float *const add =
        c->from > 0  ? d->run->y + b->column
        : conv->adds ? d->run->operands[conv->epilogue[0].operand] + b->column
                     : NULL;
    for (int64_t i = c->begin; i < c->end;
         i++, rows += d->n_pieces * BYI_F32_ROWS) {
        const int64_t row = first_row(d, i);
        const int n = (int)(first_row(d, i + 1) - row);
        t->x = rows;
        t->y = d->run->y + b->column + row * ld;
        t->add = add ? add + row * ld : NULL;
        t->fetch = 0;
        if (tiles > 1 && block + 1 < d->blocks && !conv->expand)
            byi_f32_fetch(t, i - c->begin, tiles,
                          t->weights + byi_ceil_div(b->columns, BYI_F32_PANEL) *
                                           b->panel);
        if (tiles > 1 && d->n_pieces * t->length >= LONG_ROW && n >= 6)
            fetch_results(t, n);
        run_tile(d, b, n);
        if (!whole && c->to == d->length)
            byi_f32_epilogue_run(d->run, conv->next, row, n, b->column,
                                 columns_of(d, b));
    }
    return 1 + t->n_more_blocks;
}

/* Mark the pieces that are padding in all n rows, so that tiles skip them. With
 * large dilations, most pieces are padding. */
static void mark_padding(const struct direct *d, int64_t n, const float **rows)
{
    for (int64_t s = 0; s < d->n_pieces; s++, rows += BYI_F32_ROWS) {
        int64_t r = 0;
        while (r < n && rows[r] == d->run->zeros)
            r++;
        if (r == n)
            rows[0] = NULL;
    }
}

/* Find the rows of a chunk. */
static void find_chunk(const struct direct *d, const struct direct_chunk *c)
{
    for (int64_t i = c->begin; i < c->end; i++) {
        const int64_t row = first_row(d, i);
        const int64_t n = first_row(d, i + 1) - row;
        const float **to =
            c->rows + (i - c->begin) * d->n_pieces * BYI_F32_ROWS;
        float *copy = c->copies + (i - c->begin) * tile_floats(d);
        if (d->conv->gathers) {
            gather_rows(d, row, n, to, copy);
            continue;
        }
        for (int64_t r = 0; d->pointwise && r < n; r++)
            to[r] = d->run->x + (row + r) * d->conv->channels;
        if (!d->pointwise)
            find_rows(d, row, n, to,
                      c->copies + (i - c->begin) * BYI_F32_ROWS * d->border);
        if (d->copies)
            copy_rows(d, to, n, c->from, c->to, copy);
        else if (!d->pointwise)
            mark_padding(d, n, to);
    }
}

/* The first element of slice s of a piece. Weights are expanded from multiples
 * of BYI_F32_FETCH_STEP. */
static int64_t slice_begin(const struct direct *d, int64_t s)
{
    const int64_t at = d->length * s / d->slices;
    return d->conv->expand && s < d->slices
               ? at / BYI_F32_FETCH_STEP * BYI_F32_FETCH_STEP
               : at;
}

/* Compute tiles [begin, end) of rows by blocks [first, last) of columns; blocks
 * are numbered through all merged groups. The pointers of a chunk are found
 * once for all columns; the weights of a block stay in the cache while its
 * tiles are computed. */
static void run_share(const struct direct *d, int64_t begin, int64_t end,
                      int64_t first, int64_t last, void *scratch)
{
    struct direct_chunk c = {
        .rows = scratch,
        .copies = (float *)(void *)((char *)scratch +
                                    byi_f32_pointer_bytes(d->n_pieces))};
    if (d->conv->expand)
        c.weights = (float *)byi_align_bytes(
            (uintptr_t)(c.copies + d->chunk * tile_floats(d)));
    /* the rest of the epilogue runs faster on long rows than on a block of
     * columns, and the results of a short chunk are in the first-level cache */
    const int64_t n = d->conv->merged_groups * d->blocks;
    const bool whole = (d->chunk == 1 || n == 1) && first == 0 && last == n;
    const int64_t chunks = byi_ceil_div(end - begin, d->chunk);
    struct direct_block b;
    for (int64_t i = 0; i < chunks; i++) {
        c.begin = begin + (end - begin) * i / chunks;
        c.end = begin + (end - begin) * (i + 1) / chunks;
        for (int64_t s = 0; s < d->slices; s++) {
            c.from = slice_begin(d, s);
            c.to = slice_begin(d, s + 1);
            find_chunk(d, &c);
            if (i == 0 || d->slices > 1)
                start_slice(d, &c, &b);
            for (int64_t at = first; at < last;) {
                const int64_t group = at / d->blocks;
                at += run_blocks(d, &c, group, at % d->blocks,
                                 last - group * d->blocks, whole, &b);
            }
        }
        if (whole)
            byi_f32_epilogue_run(d->run, d->conv->next, first_row(d, c.begin),
                                 first_row(d, c.end) - first_row(d, c.begin), 0,
                                 d->conv->outputs);
    }
}

/* Whether to divide tiles, not blocks, among threads. Each thread then reads
 * all weights, otherwise it reads all rows, and writes parts of rows, which
 * other threads read in the next layer. */
static bool divides_rows(const struct direct *d, int64_t blocks)
{
    const struct byi_f32_conv *conv = d->conv;
    const int64_t weights = conv->merged_groups * byi_f32_direct_floats(conv);
    return d->tiles >= blocks ||
           (d->tiles >= 2 * d->run->threads &&
            weights <= d->rows * (conv->channels + conv->outputs));
}

/* The pairs of a tile and a block are numbered tile by tile if `by_rows`,
 * otherwise block by block; `inner` is the number of pairs of a tile or block.
 * Compute pairs [from, to). */
static void run_pairs(const struct direct *d, bool by_rows, int64_t inner,
                      int64_t from, int64_t to, void *scratch)
{
    for (int64_t n; from < to; from += n) {
        const int64_t outer = from / inner, at = from % inner;
        const int64_t whole = at ? 0 : (to - from) / inner;
        n = whole ? whole * inner : byi_min(inner - at, to - from);
        const int64_t end = whole ? outer + whole : outer + 1;
        const int64_t last = whole ? inner : at + n;
        if (by_rows)
            run_share(d, outer, end, at, last, scratch);
        else
            run_share(d, at, last, outer, end, scratch);
    }
}

/* Compute share i of the run; each thread has one. A share ends within a tile
 * or block only if threads have few of them. If weights are scaled, a thread
 * scales those that it reads: data that another core has written takes longer
 * to read than to compute. */
static void run_thread(const struct direct *d, int64_t i, bool scales)
{
    enum { FEW_PER_THREAD = 16 };
    const struct byi_f32_conv *conv = d->conv;
    const int64_t n = d->run->threads, blocks = conv->merged_groups * d->blocks;
    const uint64_t bytes = scales ? scaled_bytes(conv) : 0;
    char *scratch =
        (char *)d->run->scratch + (uint64_t)i * (bytes + d->per_thread);
    if (d->tiles == 0)
        return;
    const bool by_rows = divides_rows(d, blocks);
    const int64_t inner = by_rows ? blocks : d->tiles;
    const int64_t outer = by_rows ? d->tiles : blocks;
    const int64_t unit =
        outer < FEW_PER_THREAD * n && !conv->expand ? 1 : inner;
    const int64_t from = outer * inner / unit * i / n * unit;
    const int64_t to = outer * inner / unit * (i + 1) / n * unit;
    struct byi_f32_conv_run run = *d->run;
    struct direct share = *d;
    if (scales) {
        const int64_t first = by_rows ? 0 : from / inner;
        const int64_t last = by_rows ? blocks : byi_ceil_div(to, inner);
        run.weights = (const float *)(const void *)scratch;
        share.run = &run;
        byi_f32_scale_weights(
            d->run, first_column(d, first) / BYI_F32_PANEL,
            byi_min(first_column(d, last) / BYI_F32_PANEL,
                    byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL)),
            (float *)(void *)scratch);
    }
    run_pairs(&share, by_rows, inner, from, to, scratch + bytes);
}

void byi_f32_direct_run(const struct byi_f32_conv_run *caller_run)
{
    const bool scales = byi_f32_scales_weights(caller_run->conv);
    const struct byi_f32_conv scaled = byi_f32_scaled_conv(caller_run->conv);
    struct byi_f32_conv_run run = *caller_run;
    if (scales) {
        run.conv = &scaled;
        run.x = caller_run->sources->x;
        run.scratch = (char *)caller_run->scratch +
                      byi_align_bytes((uintptr_t)caller_run->scratch) -
                      (uintptr_t)caller_run->scratch;
    }
    struct direct d = describe(run.conv);
    d.run = &run;
#pragma omp parallel for num_threads(run.threads) if (run.threads > 1)         \
    schedule(static)
    for (int64_t i = 0; i < run.threads; i++)
        run_thread(&d, i, scales);
}
