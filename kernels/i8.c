/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8.c: plans and runs 8-bit convolutions and products: as indirect
 * convolutions (Dukhan, arXiv 1907.02129) if x can be read in place; otherwise
 * rows are gathered, some tiles at a time. */
#include "kernels/i8_job.h"

#include <math.h>
#include <string.h>

enum {
    SPLIT_ROWS = 16,    /* rows that are split at a time */
    SPLIT_BYTES = 4096, /* most bytes of such a row */
    GATHERED = 1 << 16, /* bytes of rows gathered at a time for tiles */
    /* bytes of a block's rows; at least 4 * BYI_I8_BLOCK rows, if x has them */
    BLOCK = 1 << 17,
    /* bytes of a block's rows that are read in place, half of a second-level
     * cache at most: all weights are read once for each block */
    IN_PLACE = 1 << 19
};

const struct byi_i8_kernels *byi_i8_kernels_of(enum byi_isa isa)
{
#if defined(__x86_64__)
    if (isa >= BYI_ISA_AMX)
        return &byi_i8_amx;
    if (isa >= BYI_ISA_BF16)
        return &byi_i8_bf16;
    if (isa >= BYI_ISA_VNNI)
        return &byi_i8_vnni;
    if (isa >= BYI_ISA_AVX512)
        return &byi_i8_avx512;
    if (isa >= BYI_ISA_AVX_VNNI)
        return &byi_i8_avx_vnni;
    if (isa >= BYI_ISA_AVX2)
        return &byi_i8_avx2;
#endif
    (void)isa;
    return &byi_i8_base;
}

const struct byi_i8_kernels *byi_i8_kernels(void)
{
    return byi_i8_kernels_of(byi_isa_widest());
}

void byi_i8_conv_plan(struct byi_i8_conv *conv)
{
    if (!conv->kernels)
        conv->kernels = byi_i8_kernels();
    conv->depthwise = conv->result != BYI_I8_ADDED && conv->groups > 1 &&
                      conv->groups == conv->channels &&
                      conv->groups == conv->outputs && conv->size[0] == 1 &&
                      i8_taps_of(conv) <= I8_PIECES;
    conv->blocks =
        conv->bfloat16 ||
        (conv->kernels->block_bytes && !conv->depthwise && conv->channels > 0 &&
         conv->images * i8_positions_of(conv) >= BYI_I8_BLOCK);
    conv->winograd = !conv->blocks && i8_suits_winograd(conv);
}

const char *byi_i8_conv_name(const struct byi_i8_conv *conv)
{
    return conv->blocks ? conv->kernels->block_names[0]
                        : conv->kernels->names[conv->depthwise];
}

/* --- a run ---------------------------------------------------------------- */

/* Bytes of a row that is filled with x's zero point. */
static int64_t zeros_bytes(const struct byi_i8_conv *conv)
{
    return i8_align(conv->size[2] * conv->channels + BYI_I8_COLUMNS);
}

/* Bytes of the scratch that all threads share: the addends and scales of the
 * epilogue, and the row of zero points. */
static int64_t shared_bytes(const struct byi_i8_conv *conv)
{
    return 2 * i8_align(i8_all_outputs(conv) * 4) + zeros_bytes(conv);
}

/* Bytes from one gathered row to the next. */
static int64_t row_bytes(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    /* not a multiple of 1024, so that rows map to different cache sets */
    const int64_t n = i8_words_of(conv, form) * 4 + 2 * BYI_I8_COLUMNS;
    return i8_align(n) % 1024 ? i8_align(n) : i8_align(n) + 64;
}

/* Number of rows of a block, in whole tiles. */
static int64_t block_rows(const struct byi_i8_conv *conv)
{
    const int64_t all = conv->images * i8_positions_of(conv);
    const int64_t most = BLOCK / row_bytes(conv, BYI_I8_BYTES);
    const int64_t n = byi_min(all, byi_max(most, 4 * BYI_I8_BLOCK));
    return byi_ceil_div(n, 2 * BYI_I8_BLOCK) * 2 * BYI_I8_BLOCK;
}

static int64_t tiles_at_once(const struct byi_i8_conv *conv,
                             enum byi_i8_form form)
{
    const int64_t n = GATHERED / (row_bytes(conv, form) * conv->kernels->rows);
    return n < 1 ? 1 : n;
}

/* Bytes of a thread's scratch for gathered rows or, if depthwise, words. */
static int64_t row_scratch(const struct byi_i8_conv *conv,
                           enum byi_i8_form form)
{
    if (conv->depthwise)
        return i8_align(byi_ceil_div(conv->size[1], i8_each(form)) *
                        i8_woven_positions(conv) * BYI_I8_PANEL * 4);
    return i8_align(tiles_at_once(conv, form) * conv->kernels->rows *
                    row_bytes(conv, form));
}

static int64_t block_bytes(const struct byi_i8_conv *conv)
{
    return i8_align(block_rows(conv) * row_bytes(conv, BYI_I8_BYTES));
}

uint64_t byi_i8_conv_scratch(const struct byi_i8_conv *conv, int threads)
{
    int64_t per_thread = byi_max(row_scratch(conv, BYI_I8_PAIRS),
                                 row_scratch(conv, BYI_I8_BYTES));
    if (conv->winograd)
        per_thread = byi_max(per_thread, i8_winograd_scratch(conv));
    if (conv->blocks)
        per_thread = byi_max(per_thread, block_bytes(conv));
    return (uint64_t)(shared_bytes(conv) + per_thread * threads);
}

/* Whether the kernels for strips support the convolution. */
static bool has_strips(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    return conv->depthwise && conv->kernels->strip[0] &&
           form == conv->kernels->strip_form && conv->result == BYI_I8_OCTETS &&
           conv->size[2] == 3 && conv->size[1] <= 4 && conv->dilation[2] == 1 &&
           conv->stride[2] <= 2;
}

/* Whether to use blocks, which multiply bytes; they read signed bytes without
 * flipping them. */
static bool runs_blocks(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    return conv->blocks && form == BYI_I8_BYTES;
}

/* Whether lifting sums is exact: sums of 0 or more keep their results, and
 * negative sums become the lowest byte. */
static bool can_lift(const struct byi_i8_conv_run *run, enum byi_i8_form form,
                     const int32_t *add, const float *scale)
{
    const struct byi_i8_conv *conv = run->conv;
    const int64_t weight = form == BYI_I8_BYTES ? 127 : 255;
    const int64_t most = i8_words_of(conv, form) * i8_each(form) * 255 * weight;
    const int64_t rest = (1 << 23) - 1 - most;
    const int32_t low = (int32_t)rintf(run->low) + run->zero;
    if (rest < 0 || !conv->kernels->lifts || conv->result != BYI_I8_OCTETS ||
        (form != BYI_I8_BYTES && form != BYI_I8_PAIRS) ||
        (conv->depthwise && !has_strips(conv, form)) || run->low < 0 ||
        run->zero != low || (low != 0 && low != -128) ||
        (int32_t)rintf(run->high) != 255)
        return false;
    const int32_t limit = (int32_t)rest;
    int32_t outside = 0; /* without branches, for vectors */
    for (int64_t i = 0; i < i8_all_outputs(conv); i++)
        outside |= (add[i] > limit) | (add[i] < -limit) | !(scale[i] >= 0) |
                   (scale[i] > 1);
    return !outside;
}

/* Set the addends and scales of n outputs from output `at` on. */
static void fill_columns(const struct byi_i8_conv_run *run, uint32_t zero,
                         const int32_t *totals, int64_t at, int64_t n,
                         int32_t *add, float *scale)
{
    const int32_t *bias = run->bias ? run->bias + at * run->bias_step : NULL;
    const float *by = run->scale ? run->scale + at * run->scale_step : NULL;
    const int32_t one_bias = bias && !run->bias_step ? *bias : 0;
    const float one_scale = by && !run->scale_step ? *by : 1;
    for (int64_t i = 0; i < n; i++)
        add[i] = (int32_t)((uint32_t)one_bias - zero * (uint32_t)totals[i]);
    for (int64_t i = 0; bias && run->bias_step && i < n; i++)
        add[i] = (int32_t)((uint32_t)add[i] + (uint32_t)bias[i]);
    for (int64_t i = 0; i < n; i++)
        scale[i] = one_scale;
    for (int64_t i = 0; by && run->scale_step && i < n; i++)
        scale[i] = by[i];
}

/* Set the constants of the epilogue for each column. */
static void fill_epilogue(const struct byi_i8_conv_run *run, char *scratch,
                          struct byi_i8_epilogue *e)
{
    const struct byi_i8_conv *conv = run->conv;
    const int32_t *totals =
        (const int32_t *)(const void *)((const struct i8_header *)run->packed +
                                        1);
    const int64_t padded = i8_padded_outputs(conv), all = i8_all_outputs(conv);
    const int64_t wide =
        conv->depthwise ? conv->channels : conv->outputs / conv->groups;
    const enum byi_i8_form form =
        (enum byi_i8_form)((const struct i8_header *)run->packed)->form;
    const uint32_t zero = !conv->x_signed ? run->x_zero
                          : runs_blocks(conv, form)
                              ? (uint32_t)(int8_t)run->x_zero
                              : run->x_zero ^ 0x80u;
    int32_t *add = (int32_t *)(void *)scratch;
    float *scale = (float *)(void *)(scratch + i8_align(all * 4));
    for (int64_t i = 0, at = 0; i < all; i += padded, at += wide) {
        fill_columns(run, zero, totals + i, at, wide, add + i, scale + i);
        for (int64_t k = i + wide; k < i + padded; k++) {
            add[k] = 0;
            scale[k] = 1;
        }
    }
    *e = (struct byi_i8_epilogue){.result = conv->result,
                                  .add = add,
                                  .scale = scale,
                                  .low = run->low,
                                  .high = run->high,
                                  .zero = run->zero,
                                  .other = run->other,
                                  .silu = run->silu,
                                  .lifted = can_lift(run, form, add, scale)};
    for (int64_t i = 0; e->lifted && i < all; i++)
        add[i] += BYI_I8_LIFT;
}

/* Number of rows to multiply; with a pitch, the padding between lines counts.
 */
static int64_t rows_of(const struct byi_i8_conv *conv)
{
    return conv->pitch ? (conv->out[1] - 1) * conv->pitch + conv->out[2]
                       : conv->images * i8_positions_of(conv);
}

/* Describe a run, and fill the scratch that its threads share. */
static struct i8_job open_job(const struct byi_i8_conv_run *run)
{
    const struct byi_i8_conv *conv = run->conv;
    const struct i8_header *header = run->packed;
    char *scratch = run->scratch;
    const int64_t all = i8_all_outputs(conv);
    const int64_t image =
        conv->in[0] * conv->in[1] * conv->in[2] * conv->channels;
    struct i8_job j = {
        .run = run,
        .conv = conv,
        .form = (enum byi_i8_form)header->form,
        .panels = (const uint32_t *)(const void *)((const char *)(header + 1) +
                                                   i8_align(all * 4)),
        .rows = rows_of(conv),
        .wide = conv->kernels->panels * BYI_I8_PANEL,
        .outputs = conv->outputs / conv->groups,
        .channels = conv->channels / conv->groups,
        .size = conv->result >= BYI_I8_OCTETS     ? 1
                : conv->result >= BYI_I8_FLOAT16S ? 2
                                                  : 4,
        .x_end = (const uint8_t *)run->x + conv->images * image,
        .image = image,
    };
    j.words = i8_words_of(conv, j.form);
    j.by_blocks = runs_blocks(conv, j.form);
    j.flip = conv->x_signed && !j.by_blocks ? 0x80 : 0;
    j.tiles = byi_ceil_div(j.rows, conv->kernels->rows);
    j.least = j.rows / byi_max(j.tiles, 1);
    j.larger = j.rows % byi_max(j.tiles, 1);
    j.column_blocks = byi_ceil_div(j.outputs, j.wide);
    j.n_pieces = 1;
    j.pointwise = i8_is_pointwise(conv);
    j.ld = row_bytes(conv, j.form);
    j.most = tiles_at_once(conv, j.form);
    j.in_place = j.form == BYI_I8_BYTES && !conv->x_signed &&
                 j.channels % 4 == 0 && j.channels >= 16 &&
                 i8_taps_of(conv) <= I8_PIECES;
    if (j.by_blocks)
        j.in_place =
            conv->pitch || (j.pointwise && !conv->splits_rows &&
                            j.channels % 4 == 0 && j.rows >= BYI_I8_BLOCK);
    if (j.in_place) {
        j.n_pieces = i8_taps_of(conv);
        j.most = I8_PIECES / j.n_pieces;
    }
    fill_epilogue(run, scratch, &j.e);
    j.strips = has_strips(conv, j.form);
    uint8_t *zeros = (uint8_t *)scratch + 2 * i8_align(all * 4);
    memset(zeros, run->x_zero, (size_t)zeros_bytes(conv));
    j.zeros = zeros;
    j.scratch = scratch + shared_bytes(conv);
    j.per_thread = header->form == I8_WINOGRAD ? i8_winograd_scratch(conv)
                   : j.by_blocks               ? block_bytes(conv)
                                               : row_scratch(conv, j.form);
    return j;
}

/* --- rows of x ------------------------------------------------------------ */

/* Find pointers to the pieces of rows [row, row + n) of group `group`. */
static void find_rows(const struct i8_job *j, int64_t group, int64_t row,
                      int64_t n, const uint8_t **to)
{
    const struct byi_i8_conv *conv = j->conv;
    if (j->pointwise) {
        const uint8_t *x = (const uint8_t *)j->run->x + row * conv->channels +
                           group * j->channels;
        for (int64_t r = 0; r < n; r++)
            to[r] = x + r * conv->channels;
        return;
    }
    struct i8_place at = i8_place_of(j, row);
    for (int64_t r = 0; r < n; r++, i8_next_place(j, &at)) {
        const uint8_t **piece = to + r;
        for (int64_t d = 0; d < conv->size[0]; d++)
            for (int64_t h = 0; h < conv->size[1]; h++) {
                const uint8_t *line = i8_line_at(conv, &at, d, h);
                int64_t x = at.first[2];
                for (int64_t w = 0; w < conv->size[2];
                     w++, x += conv->dilation[2], piece += BYI_I8_ROWS)
                    *piece =
                        line && x >= 0 && x < conv->in[2]
                            ? line + x * conv->channels + group * j->channels
                            : j->zeros;
            }
    }
}

/* Whether BYI_I8_COLUMNS bytes from `end` on may be read. */
static bool is_loose(const struct i8_job *j, const uint8_t *end)
{
    return j->x_end - end >= BYI_I8_COLUMNS;
}

/* Copy a piece of a row; returns the destination of the next piece. */
static char *copy_piece(const struct i8_job *j, const uint8_t *from, int64_t n,
                        char *to)
{
    const struct byi_i8_lines l = {.from = from,
                                   .rows = 1,
                                   .lines = 1,
                                   .n = n,
                                   .loose = from == j->zeros ||
                                            is_loose(j, from + n),
                                   .flip = j->flip,
                                   .to = to};
    j->conv->kernels->copy[j->form](&l);
    return to + n * 4 / i8_each(j->form);
}

/* Gather one line of a window whose taps are adjacent: padding, elements of x,
 * padding. */
static char *gather_line(const struct i8_job *j, const uint8_t *line,
                         int64_t left, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t c = conv->channels, taps = conv->size[2];
    const int64_t before = !line ? taps : left < 0 ? byi_min(-left, taps) : 0;
    const int64_t over = left + taps - conv->in[2];
    const int64_t after = over <= 0 ? 0 : byi_min(over, taps - before);
    if (before)
        to = copy_piece(j, j->zeros, before * c, to);
    if (before + after < taps)
        to = copy_piece(j, line + (left + before) * c,
                        (taps - before - after) * c, to);
    if (after)
        to = copy_piece(j, j->zeros, after * c, to);
    return to;
}

/* Gather up to n rows from `at` on whose windows are inside of the image and
 * in one line of outputs. Returns their number. */
static int64_t gather_inside(const struct i8_job *j, const struct i8_place *at,
                             int64_t n, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t line = conv->in[2] * conv->channels;
    if (conv->groups > 1 || conv->dilation[2] > 1 || conv->size[0] > 1 ||
        at->first[0] || at->first[1] < 0 || at->first[2] < 0 ||
        at->first[2] + conv->size[2] > conv->in[2] ||
        at->first[1] + (conv->size[1] - 1) * conv->dilation[1] >= conv->in[1])
        return 0;
    const int64_t more =
        (conv->in[2] - conv->size[2] - at->first[2]) / conv->stride[2];
    n = byi_min(n, byi_min(conv->out[2] - at->out[2], more + 1));
    struct byi_i8_lines l = {.from = i8_line_at(conv, at, 0, 0) +
                                     at->first[2] * conv->channels,
                             .rows = n,
                             .next = conv->stride[2] * conv->channels,
                             .lines = conv->size[1],
                             .step = line * conv->dilation[1],
                             .n = conv->size[2] * conv->channels,
                             .flip = j->flip,
                             .to = to,
                             .ld = j->ld};
    l.loose =
        is_loose(j, l.from + (n - 1) * l.next + (l.lines - 1) * l.step + l.n);
    conv->kernels->copy[j->form](&l);
    return n;
}

/* Gather one row. Elements beyond the last one may have any value, since their
 * weights are 0. */
static void gather_row(const struct i8_job *j, int64_t group,
                       const struct i8_place *at, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const bool whole = conv->groups == 1 && conv->dilation[2] == 1;
    for (int64_t d = 0; d < conv->size[0]; d++)
        for (int64_t h = 0; h < conv->size[1]; h++) {
            const uint8_t *line = i8_line_at(conv, at, d, h);
            int64_t x = at->first[2];
            if (whole) {
                to = gather_line(j, line, x, to);
                continue;
            }
            for (int64_t w = 0; w < conv->size[2]; w++, x += conv->dilation[2])
                to = copy_piece(j,
                                line && x >= 0 && x < conv->in[2]
                                    ? line + x * conv->channels +
                                          group * j->channels
                                    : j->zeros,
                                j->channels, to);
        }
}

/* Gather rows [row, row + n) of group `group`, if row i of x is row i of y. */
static void gather_pointwise(const struct i8_job *j, int64_t group, int64_t row,
                             int64_t n, char *to)
{
    struct byi_i8_lines l = {.from = (const uint8_t *)j->run->x +
                                     row * j->conv->channels +
                                     group * j->channels,
                             .rows = n,
                             .next = j->conv->channels,
                             .lines = 1,
                             .n = j->channels,
                             .flip = j->flip,
                             .to = to,
                             .ld = j->ld};
    l.loose = is_loose(j, l.from + (n - 1) * l.next + l.n);
    j->conv->kernels->copy[j->form](&l);
}

/* Gather rows [row, row + n) of group `group`. */
static void gather_rows(const struct i8_job *j, int64_t group, int64_t row,
                        int64_t n, char *to)
{
    if (j->pointwise) {
        gather_pointwise(j, group, row, n, to);
        return;
    }
    struct i8_place place = i8_place_of(j, row);
    for (int64_t r = 0, done; r < n; r += done, to += done * j->ld) {
        done = gather_inside(j, &place, n - r, to);
        if (!done) {
            gather_row(j, group, &place, to);
            done = 1;
        }
        for (int64_t i = 0; i < done; i++)
            i8_next_place(j, &place);
    }
}

/* --- tiles ---------------------------------------------------------------- */

/* The first row of a tile. All tiles have about the same number of rows. */
static int64_t first_row(const struct i8_job *j, int64_t tile)
{
    return j->least * tile + byi_min(tile, j->larger);
}

/* Find or gather the rows of tiles [begin, end) for group `group`, and set
 * to[tile][piece][row]. `at` is memory for gathered rows. */
static void get_rows(const struct i8_job *j, int64_t group, int64_t begin,
                     int64_t end, char *at, const uint8_t **to)
{
    const int64_t first = first_row(j, begin);
    if (!j->in_place)
        gather_rows(j, group, first, first_row(j, end) - first, at);
    for (int64_t i = begin, row = first, next; i < end; i++, row = next) {
        next = first_row(j, i + 1);
        if (j->in_place)
            find_rows(j, group, row, next - row, to);
        for (int64_t r = row; !j->in_place && r < next; r++)
            to[r - row] = (const uint8_t *)at + (r - first) * j->ld;
        to += j->n_pieces * BYI_I8_ROWS;
    }
}

/* Copy n bytes, at most 2 * 16: with two moves that overlap if n is large
 * enough. A call of memcpy() takes longer than a row of results. */
static void copy_short(char *to, const char *from, int64_t n)
{
    char first[16], last[16];
    if (n >= 16) {
        memcpy(first, from, 16);
        memcpy(last, from + n - 16, 16);
        memcpy(to, first, 16);
        memcpy(to + n - 16, last, 16);
    } else if (n >= 8) {
        memcpy(first, from, 8);
        memcpy(last, from + n - 8, 8);
        memcpy(to, first, 8);
        memcpy(to + n - 8, last, 8);
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* Copy rows of n bytes. */
static void copy_columns(char *to, int64_t ldto, const char *from, int64_t ld,
                         int64_t n, int rows)
{
    for (int r = 0; r < rows; r++, to += ldto, from += ld)
        if (n <= 32)
            copy_short(to, from, n);
        else
            memcpy(to, from, (size_t)n);
}

/* Run a tile whose last panel has more columns than y. */
static void run_partial(const struct i8_job *j, struct byi_i8_tile *t, int rows,
                        int64_t columns)
{
    char results[BYI_I8_ROWS * BYI_I8_COLUMNS * 4];
    uint8_t other[BYI_I8_ROWS * BYI_I8_COLUMNS] = {0};
    const int64_t panels = byi_ceil_div(columns, BYI_I8_PANEL);
    char *y = t->y;
    const int64_t ldy = t->ldy;
    t->y = results;
    t->ldy = panels * BYI_I8_PANEL * j->size;
    if (j->conv->result == BYI_I8_ADDED) {
        copy_columns((char *)other, t->ldy, (const char *)t->e.other.at, ldy,
                     columns, rows);
        t->e.other.at = other;
        t->e.other.ld = t->ldy;
    }
    j->conv->kernels->tile[j->form][panels - 1][rows](t);
    copy_columns(y, ldy, results, t->ldy, columns * j->size, rows);
}

/* Run `count` tiles of `n` rows, of `columns` columns. */
static void run_tiles(const struct i8_job *j, const struct byi_i8_tile *tile,
                      int64_t count, int n, int64_t columns)
{
    const int64_t panels = byi_ceil_div(columns, BYI_I8_PANEL);
    struct byi_i8_tile t = *tile;
    const bool partial = columns % BYI_I8_PANEL;
    t.tiles = partial ? 1 : count;
    if (!partial)
        j->conv->kernels->tile[j->form][panels - 1][n](&t);
    for (int64_t i = 0; partial && i < count; i++) {
        struct byi_i8_tile one = t;
        one.fetch += i < t.fetches ? i * t.next * 4 : 0;
        one.x += i * t.n_pieces * BYI_I8_ROWS;
        one.y += i * n * t.ldy;
        if (t.e.other.at)
            one.e.other.at += i * n * t.ldy;
        run_partial(j, &one, n, columns);
    }
}

/* Multiply tiles [begin, end) of rows by a column block of a group. */
static void run_column_block(const struct i8_job *j, const uint8_t *const *rows,
                             int64_t begin, int64_t end, int64_t group,
                             int64_t block)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t column = block * j->wide;
    const int64_t columns = byi_min(j->wide, j->outputs - column);
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
    t.e.other.ld = ldy;
    /* the first tiles prefetch the weights of the next block */
    t.fetch = (const char *)(t.weights + panels * t.next);
    /* first those that have one row more, then the others */
    for (int64_t i = begin, next; i < end; i = next) {
        const int64_t row = first_row(j, i);
        const int64_t at = row * ldy + (group * j->outputs + column) * j->size;
        next = i < j->larger ? byi_min(end, j->larger) : end;
        t.x = rows + (i - begin) * j->n_pieces * BYI_I8_ROWS;
        t.y = (char *)j->run->y + at;
        if (conv->result == BYI_I8_ADDED)
            t.e.other.at = j->e.other.at + at;
        run_tiles(j, &t, next - i, (int)(first_row(j, i + 1) - row), columns);
    }
}

/* Multiply tiles [begin, end) by column blocks [first, last), numbered
 * through all groups. The rows of as many tiles as fit are found or gathered
 * once for all columns of a group; the weights of a column block stay in the
 * cache while its tiles are computed. */
static void run_share(const struct i8_job *j, int64_t begin, int64_t end,
                      int64_t first, int64_t last, char *scratch)
{
    const uint8_t *rows[I8_PIECES * BYI_I8_ROWS];
    const int64_t most = byi_min(j->most, I8_PIECES);
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

/* --- blocks --------------------------------------------------------------- */

/* Set to[] to the distances of the taps of a row in bytes, where x includes its
 * padding. */
static void find_taps(const struct byi_i8_conv *conv, int64_t *to)
{
    for (int64_t h = 0; h < conv->size[1]; h++)
        for (int64_t w = 0; w < conv->size[2]; w++)
            *to++ =
                (h * conv->dilation[1] * conv->pitch + w * conv->dilation[2]) *
                conv->channels;
}

static enum byi_i8_values values_of(const struct byi_i8_conv *conv)
{
    if (conv->split)
        return conv->exact ? BYI_I8_SPLIT_EXACTLY : BYI_I8_SPLIT;
    return conv->bfloat16   ? BYI_I8_BFLOAT16
           : conv->x_signed ? BYI_I8_SIGNED
                            : BYI_I8_UNSIGNED;
}

/* Multiply rows [begin, end) by columns [first, last) of a group, in blocks.
 * `at` is memory for gathered rows. */
static void run_columns(const struct i8_job *j, int64_t begin, int64_t end,
                        int64_t group, int64_t first, int64_t last, char *at)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t padded = group * i8_padded_outputs(conv) + first;
    const int64_t ldy = conv->outputs * j->size;
    const int64_t offset = (conv->pitch ? 0 : begin) * ldy +
                           (group * j->outputs + first) * j->size;
    int64_t taps[I8_PIECES];
    struct byi_i8_block b = {.x = (const uint8_t *)at,
                             .ldx = j->ld,
                             .all = block_rows(conv),
                             .rows = end - begin,
                             .words = j->words,
                             .columns = last - first,
                             .weights = j->panels + padded * j->words,
                             .values = values_of(conv),
                             .tap_words = (conv->split && !conv->splits_rows) ||
                                                  conv->pitch
                                              ? conv->channels / 4
                                              : j->words,
                             .e = j->e,
                             .y = (char *)j->run->y + offset,
                             .ldy = ldy};
    if (j->in_place) {
        b.x = (const uint8_t *)j->run->x + group * j->channels;
        b.ldx = conv->channels;
        b.all = j->rows;
        b.from = begin;
    }
    if (conv->pitch) {
        find_taps(conv, taps);
        b.taps = taps;
        b.all = byi_max(j->rows, BYI_I8_BLOCK);
        b.pitch = conv->pitch;
        b.wide = conv->out[2];
    }
    b.e.add += padded;
    b.e.scale += padded;
    if (b.e.other.at) {
        b.e.other.at += offset;
        b.e.other.ld = ldy;
    }
    conv->kernels->block(&b);
}

/* Rows of a block that is read in place: whole tiles. */
static int64_t rows_in_place(const struct i8_job *j)
{
    const int64_t most = IN_PLACE / j->conv->channels / BYI_I8_BLOCK;
    return byi_max(most, 4) * BYI_I8_BLOCK;
}

/* Gather rows [row, row + n) of float16 numbers and split them. */
static void gather_split(const struct i8_job *j, int64_t row, int64_t n,
                         char *to)
{
    char rows[SPLIT_ROWS * SPLIT_BYTES + 2 * BYI_I8_COLUMNS];
    struct i8_job some = *j;
    some.ld = i8_bytes_of(j->conv);
    for (int64_t done = 0; done < n; done += SPLIT_ROWS) {
        const int64_t more = byi_min(SPLIT_ROWS, n - done);
        gather_rows(&some, 0, row + done, more, rows);
        for (int64_t r = 0; r < more; r++)
            j->conv->kernels->split(
                (const uint16_t *)(const void *)(rows + r * some.ld), 1,
                some.ld / 2, j->words,
                (uint16_t *)(void *)(to + (done + r) * j->ld));
    }
}

/* Multiply rows [begin, end) by column blocks [first, last), numbered
 * through all groups. */
static void run_blocks(const struct i8_job *j, int64_t begin, int64_t end,
                       int64_t first, int64_t last, char *scratch)
{
    const int64_t most = j->conv->pitch ? j->rows
                         : j->in_place  ? rows_in_place(j)
                                        : block_rows(j->conv);
    for (int64_t next; begin < end; begin = next) {
        next = byi_min(end, begin + most);
        for (int64_t b = first, stop; b < last; b = stop) {
            const int64_t group = b / j->column_blocks,
                          base = group * j->column_blocks;
            stop = byi_min(last, base + j->column_blocks);
            if (j->conv->splits_rows)
                gather_split(j, begin, next - begin, scratch);
            else if (!j->in_place)
                gather_rows(j, group, begin, next - begin, scratch);
            run_columns(j, begin, next, group, (b - base) * j->wide,
                        byi_min(j->outputs, (stop - base) * j->wide), scratch);
        }
    }
}

/* The first row of share i, if n threads divide the rows in whole tiles. */
static int64_t share_begin(const struct i8_job *j, int64_t i, int64_t n)
{
    const int64_t tiles = byi_ceil_div(j->rows, BYI_I8_BLOCK);
    return byi_min(j->rows, tiles * i / n * BYI_I8_BLOCK);
}

/* The number of threads for which the work pays: each should have about 2^18
 * multiplications, or 2^15 of a depthwise convolution. */
static int team_of(const struct byi_i8_conv *conv, int threads)
{
    const int64_t most = conv->images * i8_positions_of(conv) * conv->outputs *
                             (conv->channels / conv->groups) *
                             i8_taps_of(conv) >>
                         (conv->depthwise ? 15 : 18);
    return most < 1 ? 1 : most < threads ? (int)most : threads;
}

void byi_i8_conv_run(const struct byi_i8_conv_run *run)
{
    const struct i8_job job = open_job(run), *j = &job;
    const int n = team_of(run->conv, run->threads);
    const int64_t rows = j->rows / j->conv->out[2];
    const int64_t blocks = j->column_blocks * j->conv->groups;
    if (((const struct i8_header *)run->packed)->form == I8_WINOGRAD) {
        i8_winograd_run(run, j->panels, &j->e, j->scratch, j->per_thread, n);
        return;
    }
    const bool by_rows = j->by_blocks
                             ? j->rows >= 4 * BYI_I8_BLOCK * n || blocks < n
                             : j->tiles >= 2 * n || j->tiles >= blocks;
    /* with few rows, threads divide the channels: their shares have equal
     * sizes, and no element of x is read twice */
    const int64_t strips = byi_ceil_div(j->conv->channels, BYI_I8_STRIP);
    const bool by_strips = rows < 8 * n && strips >= 4 * n;
#pragma omp parallel for num_threads(n) if (n > 1) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        char *scratch = j->scratch + i * j->per_thread;
        if (j->conv->depthwise && by_strips)
            i8_depthwise_rows(j, 0, rows, strips * i / n, strips * (i + 1) / n,
                              scratch);
        else if (j->conv->depthwise)
            i8_depthwise_rows(j, rows * i / n, rows * (i + 1) / n, 0, strips,
                              scratch);
        else if (j->by_blocks && by_rows)
            run_blocks(j, share_begin(j, i, n), share_begin(j, i + 1, n), 0,
                       blocks, scratch);
        else if (j->by_blocks)
            run_blocks(j, 0, j->rows, blocks * i / n, blocks * (i + 1) / n,
                       scratch);
        else if (by_rows)
            run_share(j, j->tiles * i / n, j->tiles * (i + 1) / n, 0, blocks,
                      scratch);
        else
            run_share(j, 0, j->tiles, blocks * i / n, blocks * (i + 1) / n,
                      scratch);
    }
}
