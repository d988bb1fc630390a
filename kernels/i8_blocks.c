/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_blocks.c: multiplies blocks of rows of an 8-bit convolution by
 * panels of weights. */
#include "kernels/i8_job.h"

enum {
    SPLIT_ROWS = 16,    /* rows that are split at a time */
    SPLIT_BYTES = 4096, /* most bytes of such a row */
    /* bytes of a block's rows; at least 4 * BYI_I8_BLOCK rows, if x has them */
    BLOCK_BYTES = 1 << 17,
    /* bytes of a block's rows that are read in place, half of a second-level
     * cache at most: all weights are read once for each block */
    IN_PLACE_BYTES = 1 << 19
};

/* Number of rows of a block, in whole tiles. */
static int64_t block_rows(const struct byi_i8_conv *conv)
{
    const int64_t rows = conv->images * i8_positions_of(conv);
    const int64_t most = BLOCK_BYTES / i8_row_bytes(conv, BYI_I8_BYTES);
    const int64_t n = byi_min(rows, byi_max(most, 4 * BYI_I8_BLOCK));
    return byi_ceil_div(n, 2 * BYI_I8_BLOCK) * 2 * BYI_I8_BLOCK;
}

int64_t i8_block_bytes(const struct byi_i8_conv *conv)
{
    return i8_align(block_rows(conv) * i8_row_bytes(conv, BYI_I8_BYTES));
}

/* Set to[] to the distance, in bytes, of each tap of a row from the first tap,
 * where x includes its padding. */
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

/* Multiply the rows of the block by its columns, some of both at a time, whose
 * results stay in the cache until they are activated. */
static void run_activated(const struct i8_job *j, const struct byi_i8_block *b)
{
    enum { ROWS = I8_ACTIVATED / BYI_I8_COLUMNS };
    _Alignas(64) float results[I8_ACTIVATED];
    for (int64_t c = 0; c < b->columns; c += BYI_I8_COLUMNS)
        for (int64_t r = 0; r < b->rows; r += ROWS) {
            struct byi_i8_block part = *b;
            part.from += r;
            part.rows = byi_min(ROWS, b->rows - r);
            part.columns = byi_min(BYI_I8_COLUMNS, b->columns - c);
            part.weights += c * b->words;
            part.e.add += c;
            part.e.scale += c;
            part.y = (char *)results;
            part.ldy = part.columns * (int64_t)sizeof *results;
            j->conv->kernels->block(&part);
            i8_activate(j->run, results, part.columns, part.rows, part.columns,
                        b->y + r * b->ldy + c, b->ldy);
        }
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
                             .x_rows = block_rows(conv),
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
        b.x_rows = j->rows;
        b.from = begin;
    }
    if (conv->pitch) {
        find_taps(conv, taps);
        b.taps = taps;
        b.x_rows = byi_max(j->rows, BYI_I8_BLOCK);
        b.pitch = conv->pitch;
        b.width = conv->out[2];
    }
    b.e.add += padded;
    b.e.scale += padded;
    if (b.e.summand.at) {
        b.e.summand.at += offset;
        b.e.summand.ld = ldy;
    }
    if (conv->result == BYI_I8_ACTIVATED)
        run_activated(j, &b);
    else
        conv->kernels->block(&b);
}

/* Rows of a block that is read in place: whole tiles. */
static int64_t rows_in_place(const struct i8_job *j)
{
    const int64_t most = IN_PLACE_BYTES / j->conv->channels / BYI_I8_BLOCK;
    return byi_max(most, 4) * BYI_I8_BLOCK;
}

/* Gather rows [row, row + n) of float16 numbers and split them. */
static void gather_split(const struct i8_job *j, int64_t row, int64_t n,
                         char *to)
{
    char rows[SPLIT_ROWS * SPLIT_BYTES + 2 * BYI_I8_COLUMNS];
    struct i8_job gathered = *j;
    gathered.ld = i8_bytes_of(j->conv);
    for (int64_t first = 0; first < n; first += SPLIT_ROWS) {
        const int64_t count = byi_min(SPLIT_ROWS, n - first);
        i8_gather_rows(&gathered, 0, row + first, count, rows);
        for (int64_t r = 0; r < count; r++)
            j->conv->kernels->split(
                (const uint16_t *)(const void *)(rows + r * gathered.ld), 1,
                gathered.ld / 2, j->words,
                (uint16_t *)(void *)(to + (first + r) * j->ld));
    }
}

/* Multiply rows [begin, end) by column blocks [first, last), numbered
 * through all groups. */
void i8_run_blocks(const struct i8_job *j, int64_t begin, int64_t end,
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
                i8_gather_rows(j, group, begin, next - begin, scratch);
            run_columns(j, begin, next, group, (b - base) * j->block_columns,
                        byi_min(j->outputs, (stop - base) * j->block_columns),
                        scratch);
        }
    }
}
