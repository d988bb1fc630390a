/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8.c: plans 8-bit convolutions and products, and divides them among
 * threads. They run by Winograd's algorithm (i8_winograd.c), as depthwise
 * convolutions (i8_depthwise.c), in blocks of rows (i8_blocks.c), or in tiles
 * (i8_tiles.c). Tiles compute an indirect convolution (Dukhan, arXiv
 * 1907.02129) if x can be read in place; otherwise rows are gathered, some
 * tiles at a time. */
#include "kernels/i8_job.h"

#include <math.h>
#include <string.h>

enum {
    GATHER_BYTES = 1 << 16 /* bytes of rows gathered at a time for tiles */
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

static int64_t tiles_at_once(const struct byi_i8_conv *conv,
                             enum byi_i8_form form)
{
    const int64_t n =
        GATHER_BYTES / (i8_row_bytes(conv, form) * conv->kernels->rows);
    return n < 1 ? 1 : n;
}

/* Bytes of a thread's scratch for gathered rows or, if depthwise, words. */
static int64_t row_scratch(const struct byi_i8_conv *conv,
                           enum byi_i8_form form)
{
    if (conv->depthwise)
        return i8_align(byi_ceil_div(conv->size[1], i8_word_elements(form)) *
                        i8_interleaved_positions(conv) * BYI_I8_PANEL * 4);
    return i8_align(tiles_at_once(conv, form) * conv->kernels->rows *
                    i8_row_bytes(conv, form));
}

uint64_t byi_i8_conv_scratch(const struct byi_i8_conv *conv, int threads)
{
    int64_t per_thread = byi_max(row_scratch(conv, BYI_I8_PAIRS),
                                 row_scratch(conv, BYI_I8_BYTES));
    if (conv->winograd)
        per_thread = byi_max(per_thread, i8_winograd_scratch(conv));
    if (conv->blocks)
        per_thread = byi_max(per_thread, i8_block_bytes(conv));
    return (uint64_t)(shared_bytes(conv) + per_thread * threads);
}

/* Whether the kernels for strips support the convolution. */
static bool has_strips(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    return conv->depthwise && conv->kernels->strip[0] &&
           form == conv->kernels->strip_form &&
           (conv->result == BYI_I8_QUANTIZED ||
            (conv->result == BYI_I8_ACTIVATED &&
             conv->kernels->strip_floats)) &&
           conv->size[2] == 3 && conv->size[1] <= 4 && conv->dilation[2] == 1 &&
           conv->stride[2] <= 2;
}

/* Whether the run uses blocks, which need words in form BYTES: of bytes, of
 * bfloat16 numbers or of split float16 numbers. Blocks read signed bytes
 * without flipping them. */
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
    const int64_t most =
        i8_words_of(conv, form) * i8_word_elements(form) * 255 * weight;
    const int64_t rest = (1 << 23) - 1 - most;
    const int32_t low = (int32_t)rintf(run->low) + run->zero;
    if (rest < 0 || !conv->kernels->lifts || conv->result != BYI_I8_QUANTIZED ||
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
    const float *scales = run->scale ? run->scale + at * run->scale_step : NULL;
    const int32_t shared_bias = bias && !run->bias_step ? *bias : 0;
    const float shared_scale = scales && !run->scale_step ? *scales : 1;
    for (int64_t i = 0; i < n; i++)
        add[i] = (int32_t)((uint32_t)shared_bias - zero * (uint32_t)totals[i]);
    for (int64_t i = 0; bias && run->bias_step && i < n; i++)
        add[i] = (int32_t)((uint32_t)add[i] + (uint32_t)bias[i]);
    for (int64_t i = 0; i < n; i++)
        scale[i] = shared_scale;
    for (int64_t i = 0; scales && run->scale_step && i < n; i++)
        scale[i] = scales[i];
}

/* Set the constants of the epilogue for each column. */
static void fill_epilogue(const struct byi_i8_conv_run *run, char *scratch,
                          struct byi_i8_epilogue *e)
{
    const struct byi_i8_conv *conv = run->conv;
    const int32_t *totals =
        (const int32_t *)(const void *)((const struct i8_header *)run->packed +
                                        1);
    const int64_t padded = i8_padded_outputs(conv),
                  n_outputs = i8_all_outputs(conv);
    const int64_t group_outputs =
        conv->depthwise ? conv->channels : conv->outputs / conv->groups;
    const enum byi_i8_form form =
        (enum byi_i8_form)((const struct i8_header *)run->packed)->form;
    const uint32_t zero = !conv->x_signed ? run->x_zero
                          : runs_blocks(conv, form)
                              ? (uint32_t)(int8_t)run->x_zero
                              : run->x_zero ^ 0x80u;
    int32_t *add = (int32_t *)(void *)scratch;
    float *scale = (float *)(void *)(scratch + i8_align(n_outputs * 4));
    for (int64_t i = 0, at = 0; i < n_outputs;
         i += padded, at += group_outputs) {
        fill_columns(run, zero, totals + i, at, group_outputs, add + i,
                     scale + i);
        for (int64_t k = i + group_outputs; k < i + padded; k++) {
            add[k] = 0;
            scale[k] = 1;
        }
    }
    *e = (struct byi_i8_epilogue){.result = conv->result == BYI_I8_ACTIVATED
                                                ? BYI_I8_FLOATS
                                                : conv->result,
                                  .add = add,
                                  .scale = scale,
                                  .low = run->low,
                                  .high = run->high,
                                  .zero = run->zero,
                                  .summand = run->summand,
                                  .silu = run->silu,
                                  .lifted = can_lift(run, form, add, scale)};
    for (int64_t i = 0; e->lifted && i < n_outputs; i++)
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
    const int64_t n_outputs = i8_all_outputs(conv);
    const int64_t image =
        conv->in[0] * conv->in[1] * conv->in[2] * conv->channels;
    struct i8_job j = {
        .run = run,
        .conv = conv,
        .form = (enum byi_i8_form)header->form,
        .panels = (const uint32_t *)(const void *)((const char *)(header + 1) +
                                                   i8_align(n_outputs * 4)),
        .rows = rows_of(conv),
        .block_columns = conv->kernels->panels * BYI_I8_PANEL,
        .outputs = conv->outputs / conv->groups,
        .channels = conv->channels / conv->groups,
        .size = conv->result >= BYI_I8_QUANTIZED  ? 1
                : conv->result >= BYI_I8_FLOAT16S ? 2
                                                  : 4,
        .x_end = (const uint8_t *)run->x + conv->images * image,
        .image = image,
    };
    j.words = i8_words_of(conv, j.form);
    j.by_blocks = runs_blocks(conv, j.form);
    j.flip = conv->x_signed && !j.by_blocks ? 0x80 : 0;
    j.tiles = byi_ceil_div(j.rows, conv->kernels->rows);
    j.tile_rows = j.rows / byi_max(j.tiles, 1);
    j.larger_tiles = j.rows % byi_max(j.tiles, 1);
    j.column_blocks = byi_ceil_div(j.outputs, j.block_columns);
    j.n_pieces = 1;
    j.pointwise = i8_is_pointwise(conv);
    j.ld = i8_row_bytes(conv, j.form);
    j.chunk_tiles = tiles_at_once(conv, j.form);
    j.in_place = j.form == BYI_I8_BYTES && !conv->x_signed &&
                 j.channels % 4 == 0 && j.channels >= 16 &&
                 i8_taps_of(conv) <= I8_PIECES;
    if (j.by_blocks)
        j.in_place =
            conv->pitch || (j.pointwise && !conv->splits_rows &&
                            j.channels % 4 == 0 && j.rows >= BYI_I8_BLOCK);
    if (j.in_place) {
        j.n_pieces = i8_taps_of(conv);
        j.chunk_tiles = I8_PIECES / j.n_pieces;
    }
    fill_epilogue(run, scratch, &j.e);
    j.strips = has_strips(conv, j.form);
    uint8_t *zeros = (uint8_t *)scratch + 2 * i8_align(n_outputs * 4);
    memset(zeros, run->x_zero, (size_t)zeros_bytes(conv));
    j.zeros = zeros;
    j.scratch = scratch + shared_bytes(conv);
    j.per_thread = header->form == I8_WINOGRAD ? i8_winograd_scratch(conv)
                   : j.by_blocks               ? i8_block_bytes(conv)
                                               : row_scratch(conv, j.form);
    return j;
}

/* The first row of share i, if n threads divide the rows into shares of whole
 * blocks of BYI_I8_BLOCK rows. */
static int64_t share_begin(const struct i8_job *j, int64_t i, int64_t n)
{
    const int64_t row_blocks = byi_ceil_div(j->rows, BYI_I8_BLOCK);
    return byi_min(j->rows, row_blocks * i / n * BYI_I8_BLOCK);
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

/* Whether n threads divide the rows; otherwise they divide the blocks of
 * columns. With few tiles the shares of rows would be unequal: with AVX2, 7 x 7
 * positions make 9 tiles, of which one of two threads would get 5. */
static bool divides_rows(const struct i8_job *j, int64_t column_blocks, int n)
{
    if (j->by_blocks)
        return j->rows >= 4 * BYI_I8_BLOCK * n || column_blocks < n;
    const int64_t by_rows = byi_ceil_div(j->tiles, n) * column_blocks;
    const int64_t by_columns = byi_ceil_div(column_blocks, n) * j->tiles;
    return 20 * by_rows <= 21 * by_columns;
}

void byi_i8_conv_run(const struct byi_i8_conv_run *run)
{
    const struct i8_job job = open_job(run), *j = &job;
    const int n = team_of(run->conv, run->threads);
    const int64_t lines = j->rows / j->conv->out[2];
    const int64_t column_blocks = j->column_blocks * j->conv->groups;
    if (((const struct i8_header *)run->packed)->form == I8_WINOGRAD) {
        i8_winograd_run(run, j->panels, &j->e, j->scratch, j->per_thread, n);
        return;
    }
    const bool by_rows = divides_rows(j, column_blocks, n);
    /* with few lines, threads divide the channels: their shares have equal
     * sizes, and no element of x is read twice */
    const int64_t strips = byi_ceil_div(j->conv->channels, BYI_I8_STRIP);
    const bool by_strips = lines < 8 * n && strips >= 4 * n;
#pragma omp parallel for num_threads(n) if (n > 1) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        char *scratch = j->scratch + i * j->per_thread;
        if (j->conv->depthwise && by_strips)
            i8_depthwise_rows(j, 0, lines, strips * i / n, strips * (i + 1) / n,
                              scratch);
        else if (j->conv->depthwise)
            i8_depthwise_rows(j, lines * i / n, lines * (i + 1) / n, 0, strips,
                              scratch);
        else if (j->by_blocks && by_rows)
            i8_run_blocks(j, share_begin(j, i, n), share_begin(j, i + 1, n), 0,
                          column_blocks, scratch);
        else if (j->by_blocks)
            i8_run_blocks(j, 0, j->rows, column_blocks * i / n,
                          column_blocks * (i + 1) / n, scratch);
        else if (by_rows)
            i8_run_tiles(j, j->tiles * i / n, j->tiles * (i + 1) / n, 0,
                         column_blocks, scratch);
        else
            i8_run_tiles(j, 0, j->tiles, column_blocks * i / n,
                         column_blocks * (i + 1) / n, scratch);
    }
}
