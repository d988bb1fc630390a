/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8.c: plan and run 8-bit convolutions and products: indirect
 * convolutions (Dukhan, arXiv 1907.02129) where x can be read in place, rows
 * gathered per block of tiles otherwise, and depthwise convolutions on rows
 * whose words hold the taps of a column.
 */
#include "kernels/i8_shape.h"

#include <math.h>
#include <string.h>

enum {
    TAPS = 128,        /* pieces of a row that is read in place, at most */
    GATHERED = 1 << 16 /* bytes of rows that are gathered at once        */
};

const struct byi_i8_kernels *byi_i8_kernels_of(enum byi_isa isa)
{
#if defined(__x86_64__)
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
                      i8_taps_of(conv) <= TAPS;
    conv->winograd = i8_suits_winograd(conv);
}

const char *byi_i8_conv_name(const struct byi_i8_conv *conv)
{
    return conv->kernels->names[conv->depthwise];
}

/* --- a run ---------------------------------------------------------------- */

/* A run, in parts that threads share. */
struct i8_job {
    const struct byi_i8_conv_run *run;
    const struct byi_i8_conv *conv;
    enum byi_i8_form form;
    const uint32_t *panels; /* packed words                              */
    int64_t words;          /* of a panel's column                       */
    int64_t rows, tiles;    /* rows: positions of all images             */
    int64_t wide, blocks;   /* wide: columns of a block; blocks: per group */
    int64_t n;              /* outputs of a group                        */
    int64_t channels;       /* of a group                                */
    int64_t segments;       /* pieces of a row                           */
    bool pointwise;         /* row i of x is row i of y */
    bool in_place;          /* rows are read from x                      */
    bool strips;            /* the kernels for strips run it             */
    int64_t ld;             /* bytes of a gathered row                   */
    int64_t most;           /* tiles gathered, or found, at once         */
    struct byi_i8_epilogue e;
    int64_t size;         /* bytes of a result              */
    uint8_t flip;         /* of x's bytes                   */
    const uint8_t *zeros; /* a row of x's zero point        */
    const uint8_t *end;   /* of x                           */
    int64_t image;        /* bytes of an image of x         */
    char *lanes;          /* scratch of the threads         */
    int64_t lane;         /* bytes of a thread's            */
};

/* Bytes of a row of x's zero point. */
static int64_t zeros_bytes(const struct byi_i8_conv *conv)
{
    return i8_align(conv->size[2] * conv->channels + BYI_I8_COLUMNS);
}

static int64_t shared_bytes(const struct byi_i8_conv *conv)
{
    return 2 * i8_align(i8_all_outputs(conv) * 4) + zeros_bytes(conv);
}

static int64_t row_bytes(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    /* not a multiple of a page, so that rows fall into different sets */
    const int64_t n = i8_words_of(conv, form) * 4 + 2 * BYI_I8_COLUMNS;
    return i8_align(n) % 1024 ? i8_align(n) : i8_align(n) + 64;
}

static int64_t tiles_at_once(const struct byi_i8_conv *conv,
                             enum byi_i8_form form)
{
    const int64_t n = GATHERED / (row_bytes(conv, form) * conv->kernels->rows);
    return n < 1 ? 1 : n;
}

/* Words of a row of a depthwise convolution. */
static int64_t woven_positions(const struct byi_i8_conv *conv)
{
    return (conv->out[2] - 1) * conv->stride[2] +
           (conv->size[2] - 1) * conv->dilation[2] + 1;
}

static int64_t lane_bytes(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    if (conv->depthwise)
        return i8_align(byi_ceil_div(conv->size[1], i8_each(form)) *
                        woven_positions(conv) * BYI_I8_PANEL * 4);
    return i8_align(tiles_at_once(conv, form) * conv->kernels->rows *
                    row_bytes(conv, form));
}

uint64_t byi_i8_conv_scratch(const struct byi_i8_conv *conv, int threads)
{
    int64_t lane =
        byi_max(lane_bytes(conv, BYI_I8_PAIRS), lane_bytes(conv, BYI_I8_BYTES));
    if (conv->winograd)
        lane = byi_max(lane, i8_winograd_lane(conv));
    return (uint64_t)(shared_bytes(conv) + lane * threads);
}

/* Do the kernels for strips run it? */
static bool has_strips(const struct byi_i8_conv *conv, enum byi_i8_form form)
{
    return conv->depthwise && conv->kernels->strip[0] && form == BYI_I8_BYTES &&
           conv->result == BYI_I8_OCTETS && conv->size[2] == 3 &&
           conv->size[1] <= 4 && conv->dilation[2] == 1 && conv->stride[2] <= 2;
}

/* Are the results of all sums from 0 on exact, and those below the lowest byte,
 * if sums are lifted? */
static bool can_lift(const struct byi_i8_conv_run *run, enum byi_i8_form form,
                     const int32_t *add, const float *scale)
{
    const struct byi_i8_conv *conv = run->conv;
    const int64_t weight = form == BYI_I8_BYTES ? 127 : 255;
    const int64_t most = i8_words_of(conv, form) * i8_each(form) * 255 * weight;
    const int64_t room = (1 << 23) - 1 - most;
    const int32_t low = (int32_t)rintf(run->low) + run->zero;
    if (!conv->kernels->lifts || conv->result != BYI_I8_OCTETS ||
        (form != BYI_I8_BYTES && form != BYI_I8_PAIRS) ||
        (conv->depthwise && !has_strips(conv, form)) || run->low < 0 ||
        run->zero != low || (low != 0 && low != -128) ||
        (int32_t)rintf(run->high) != 255)
        return false;
    for (int64_t i = 0; i < i8_all_outputs(conv); i++)
        if (add[i] > room || add[i] < -room || !(scale[i] >= 0) || scale[i] > 1)
            return false;
    return true;
}

/* The constants of the epilogue, per column. */
static void fill_epilogue(const struct byi_i8_conv_run *run, char *scratch,
                          struct byi_i8_epilogue *e)
{
    const struct byi_i8_conv *conv = run->conv;
    const int32_t *totals =
        (const int32_t *)(const void *)((const struct i8_head *)run->packed +
                                        1);
    const int64_t padded = i8_padded_outputs(conv), all = i8_all_outputs(conv);
    const int64_t wide =
        conv->depthwise ? conv->channels : conv->outputs / conv->groups;
    const uint32_t zero = run->x_zero ^ (conv->x_signed ? 0x80u : 0);
    const enum byi_i8_form form =
        (enum byi_i8_form)((const struct i8_head *)run->packed)->form;
    int32_t *add = (int32_t *)(void *)scratch;
    float *scale = (float *)(void *)(scratch + i8_align(all * 4));
    for (int64_t i = 0; i < all; i++) {
        const int64_t at = i / padded * wide + i % padded;
        const bool exists = i % padded < wide;
        const uint32_t bias =
            run->bias && exists ? (uint32_t)run->bias[at * run->bias_step] : 0;
        add[i] = (int32_t)(bias - zero * (uint32_t)totals[i]);
        scale[i] = run->scale && exists ? run->scale[at * run->scale_step] : 1;
    }
    *e = (struct byi_i8_epilogue){.result = conv->result,
                                  .add = add,
                                  .scale = scale,
                                  .low = run->low,
                                  .high = run->high,
                                  .zero = run->zero,
                                  .other = run->other,
                                  .lifted = can_lift(run, form, add, scale)};
    for (int64_t i = 0; e->lifted && i < all; i++)
        add[i] += BYI_I8_LIFT;
}

static struct i8_job open_job(const struct byi_i8_conv_run *run)
{
    const struct byi_i8_conv *conv = run->conv;
    const struct i8_head *head = run->packed;
    char *scratch = run->scratch;
    const int64_t all = i8_all_outputs(conv);
    const int64_t image =
        conv->in[0] * conv->in[1] * conv->in[2] * conv->channels;
    struct i8_job j = {
        .run = run,
        .conv = conv,
        .form = (enum byi_i8_form)head->form,
        .panels = (const uint32_t *)(const void *)((const char *)(head + 1) +
                                                   i8_align(all * 4)),
        .rows = conv->images * i8_positions_of(conv),
        .wide = conv->kernels->panels * BYI_I8_PANEL,
        .n = conv->outputs / conv->groups,
        .channels = conv->channels / conv->groups,
        .size = conv->result >= BYI_I8_OCTETS ? 1 : 4,
        .flip = conv->x_signed ? 0x80 : 0,
        .end = (const uint8_t *)run->x + conv->images * image,
        .image = image,
    };
    j.words = i8_words_of(conv, j.form);
    j.tiles = byi_ceil_div(j.rows, conv->kernels->rows);
    j.blocks = byi_ceil_div(j.n, j.wide);
    j.segments = 1;
    j.pointwise = i8_is_pointwise(conv);
    j.ld = row_bytes(conv, j.form);
    j.most = tiles_at_once(conv, j.form);
    j.in_place = j.form == BYI_I8_BYTES && !conv->x_signed &&
                 j.channels % 4 == 0 && j.channels >= 16 &&
                 i8_taps_of(conv) <= TAPS;
    if (j.in_place) {
        j.segments = i8_taps_of(conv);
        j.most = TAPS / j.segments;
    }
    fill_epilogue(run, scratch, &j.e);
    j.strips = has_strips(conv, j.form);
    uint8_t *zeros = (uint8_t *)scratch + 2 * i8_align(all * 4);
    memset(zeros, run->x_zero, (size_t)zeros_bytes(conv));
    j.zeros = zeros;
    j.lanes = scratch + shared_bytes(conv);
    j.lane = head->form == I8_WINOGRAD ? i8_winograd_lane(conv)
                                       : lane_bytes(conv, j.form);
    return j;
}

/* --- rows of x ------------------------------------------------------------ */

/* The first tap of a row's window, per axis, and its image. */
struct i8_place {
    const uint8_t *image;
    int64_t out[BYI_I8_AXES], first[BYI_I8_AXES];
};

static struct i8_place place_of(const struct i8_job *j, int64_t row)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t positions = i8_positions_of(conv);
    struct i8_place at = {.image = (const uint8_t *)j->run->x +
                                   row / positions * j->image};
    int64_t rest = row % positions;
    for (int i = BYI_I8_AXES; i-- > 0; rest /= conv->out[i]) {
        at.out[i] = rest % conv->out[i];
        at.first[i] = at.out[i] * conv->stride[i] - conv->pad[i];
    }
    return at;
}

static void next_place(const struct i8_job *j, struct i8_place *at)
{
    const struct byi_i8_conv *conv = j->conv;
    for (int i = BYI_I8_AXES; i-- > 0;) {
        at->first[i] += conv->stride[i];
        if (++at->out[i] < conv->out[i])
            return;
        at->out[i] = 0;
        at->first[i] = -conv->pad[i];
    }
    at->image += j->image;
}

/* The start of a line of the window, or NULL if it is outside of the image. */
static const uint8_t *line_at(const struct byi_i8_conv *conv,
                              const struct i8_place *at, int64_t d, int64_t h)
{
    const int64_t z = at->first[0] + d * conv->dilation[0];
    const int64_t y = at->first[1] + h * conv->dilation[1];
    if (z < 0 || z >= conv->in[0] || y < 0 || y >= conv->in[1])
        return NULL;
    return at->image + (z * conv->in[1] + y) * conv->in[2] * conv->channels;
}

/* Pointers to the pieces of rows [row, row + n) of group `group`. */
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
    struct i8_place at = place_of(j, row);
    for (int64_t r = 0; r < n; r++, next_place(j, &at)) {
        const uint8_t **piece = to + r;
        for (int64_t d = 0; d < conv->size[0]; d++)
            for (int64_t h = 0; h < conv->size[1]; h++) {
                const uint8_t *line = line_at(conv, &at, d, h);
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

/* May as many bytes behind the line's end be read? */
static bool is_loose(const struct i8_job *j, const uint8_t *end)
{
    return j->end - end >= BYI_I8_COLUMNS;
}

/* Copy a piece of a row; returns where the next one goes. */
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

/* Gather a line of a window of adjacent taps: padding, inside, padding. */
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
    struct byi_i8_lines l = {.from = line_at(conv, at, 0, 0) +
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

/* Elements beyond the last one may be anything: their weights are 0. */
static void gather_row(const struct i8_job *j, int64_t group,
                       const struct i8_place *at, char *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const bool whole = conv->groups == 1 && conv->dilation[2] == 1;
    for (int64_t d = 0; d < conv->size[0]; d++)
        for (int64_t h = 0; h < conv->size[1]; h++) {
            const uint8_t *line = line_at(conv, at, d, h);
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

/* Find or gather rows [row, row + n) of group `group`: to[segment][row]. `at`:
 * memory of gathered rows. */
static void get_rows(const struct i8_job *j, int64_t group, int64_t row,
                     int64_t n, char *at, const uint8_t **to)
{
    if (j->in_place) {
        find_rows(j, group, row, n, to);
        return;
    }
    struct i8_place place = place_of(j, row);
    for (int64_t r = 0, done; r < n; r += done) {
        char *first = at + r * j->ld;
        done = gather_inside(j, &place, n - r, first);
        if (!done) {
            gather_row(j, group, &place, first);
            done = 1;
        }
        for (int64_t i = 0; i < done; i++, next_place(j, &place))
            to[r + i] = (const uint8_t *)first + i * j->ld;
    }
}

/* --- tiles ---------------------------------------------------------------- */

/* The first row of a tile: all tiles have about the same number of rows. */
static int64_t first_row(const struct i8_job *j, int64_t tile)
{
    return j->rows / j->tiles * tile + byi_min(tile, j->rows % j->tiles);
}

/* A tile whose last panel has columns that y does not. */
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
        for (int r = 0; r < rows; r++)
            memcpy(other + r * t->ldy, t->e.other.at + r * ldy,
                   (size_t)columns);
        t->e.other.at = other;
        t->e.other.ld = t->ldy;
    }
    j->conv->kernels->tile[j->form][panels - 1][rows](t);
    for (int r = 0; r < rows; r++)
        memcpy(y + r * ldy, results + r * t->ldy, (size_t)(columns * j->size));
}

/* Tiles [begin, end) of rows by a block of columns of a group. */
static void run_block(const struct i8_job *j, const uint8_t *const *rows,
                      int64_t begin, int64_t end, int64_t group, int64_t block)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t column = block * j->wide;
    const int64_t columns = byi_min(j->wide, j->n - column);
    const int64_t panels = byi_ceil_div(columns, BYI_I8_PANEL);
    const int64_t padded = group * i8_padded_outputs(conv) + column;
    const int64_t ldy = conv->outputs * j->size;
    struct byi_i8_tile t = {.segments = j->segments,
                            .words = j->words / j->segments,
                            .weights = j->panels + padded * j->words,
                            .next = j->words * BYI_I8_PANEL,
                            .e = j->e};
    t.e.add += padded;
    t.e.scale += padded;
    /* the first tiles fetch the weights of the next block */
    const char *fetch = (const char *)(t.weights + panels * t.next);
    for (int64_t i = begin; i < end; i++, rows += j->segments * BYI_I8_ROWS) {
        const int64_t row = first_row(j, i);
        t.fetch = fetch + (i - begin < panels ? i - begin : 0) * t.next * 4;
        const int n = (int)(first_row(j, i + 1) - row);
        t.x = rows;
        const int64_t at = row * ldy + (group * j->n + column) * j->size;
        t.y = (char *)j->run->y + at;
        t.ldy = ldy;
        if (conv->result == BYI_I8_ADDED) {
            t.e.other.at = j->e.other.at + at;
            t.e.other.ld = ldy;
        }
        if (columns % BYI_I8_PANEL)
            run_partial(j, &t, n, columns);
        else
            conv->kernels->tile[j->form][panels - 1][n](&t);
    }
}

/* Tiles [begin, end) by blocks [first, last) of columns of all groups. The rows
 * of as many tiles as fit are found or gathered once for all columns of a
 * group; the weights of a block stay in the cache while its tiles are computed.
 */
static void run_part(const struct i8_job *j, int64_t begin, int64_t end,
                     int64_t first, int64_t last, char *lane)
{
    const uint8_t *rows[TAPS * BYI_I8_ROWS];
    const int64_t most = byi_min(j->most, TAPS);
    for (int64_t next; begin < end; begin = next) {
        next = byi_min(end, begin + most);
        for (int64_t b = first, stop; b < last; b = stop) {
            const int64_t group = b / j->blocks;
            stop = byi_min(last, (group + 1) * j->blocks);
            for (int64_t i = begin; i < next; i++) {
                const int64_t row = first_row(j, i);
                const int64_t n = first_row(j, i + 1) - row;
                get_rows(j, group, row, n,
                         lane + (row - first_row(j, begin)) * j->ld,
                         rows + (i - begin) * j->segments * BYI_I8_ROWS);
            }
            for (; b < stop; b++)
                run_block(j, rows, begin, next, group, b % j->blocks);
        }
    }
}

/* --- depthwise ------------------------------------------------------------ */

/* Weave the input rows of output row `row` for channels [c, c + columns). */
static void weave_row(const struct i8_job *j, const struct i8_place *at,
                      int64_t c, int columns, uint32_t *to)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t left = at->first[2], n = woven_positions(conv);
    const int64_t before = left < 0 ? byi_min(-left, n) : 0;
    const int64_t over = left + n - conv->in[2];
    const int64_t after = over <= 0 ? 0 : byi_min(over, n - before);
    for (int64_t h = 0; h < conv->size[1];
         h += i8_each(j->form), to += n * BYI_I8_PANEL) {
        struct byi_i8_weave padding = {.columns = BYI_I8_PANEL,
                                       .flip = j->flip};
        struct byi_i8_weave inside = {.columns = columns, .flip = j->flip};
        for (int64_t i = 0; i < i8_each(j->form); i++) {
            const uint8_t *line =
                h + i < conv->size[1] ? line_at(conv, at, 0, h + i) : NULL;
            padding.rows[i] = j->zeros;
            inside.rows[i] =
                line ? line + (left + before) * conv->channels + c : j->zeros;
            inside.steps[i] = line ? conv->channels : 0;
        }
        padding.to = to;
        padding.n = before;
        conv->kernels->weave[j->form](&padding);
        inside.to = to + before * BYI_I8_PANEL;
        inside.n = n - before - after;
        conv->kernels->weave[j->form](&inside);
        padding.to = to + (n - after) * BYI_I8_PANEL;
        padding.n = after;
        conv->kernels->weave[j->form](&padding);
    }
}

/* The constants of `columns` channels from c on, for strips of 16 `lanes`. The
 * words of the second row are a row below, one byte up. */
static void fill_strip(const struct i8_job *j, int64_t c, int columns,
                       int lanes, struct byi_i8_strip_weights *w)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < columns; i++) {
        const int to = (i % 16 / 4 * lanes + i / 16) * 4 + i % 4;
        const uint32_t *from =
            j->panels + (c + i) / BYI_I8_PANEL * j->words * BYI_I8_PANEL +
            (c + i) % BYI_I8_PANEL;
        for (int t = 0; t < 3; t++) {
            w->weights[0][t][to] = from[t * BYI_I8_PANEL];
            w->weights[1][t][to] = from[t * BYI_I8_PANEL] << 8;
        }
        w->add[to] = j->e.add[c + i];
        w->scale[to] = j->e.scale[c + i];
    }
}

/* Output row `row` of all images, or two, channels [c, c + columns). */
static void run_strip(const struct i8_job *j, int64_t row, int rows, int64_t c,
                      int columns, const struct byi_i8_strip_weights *w)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t width = conv->out[2];
    const struct i8_place at = place_of(j, row * width);
    const int64_t first = byi_max(at.first[2], 0);
    struct byi_i8_strip s = {.zeros = j->zeros,
                             .before = byi_max(-at.first[2], 0),
                             .inside = conv->in[2] - first,
                             .n = width,
                             .stride = conv->stride[2],
                             .w = w,
                             .lifted = j->e.lifted,
                             .low = (int32_t)rintf(j->e.low) + j->e.zero,
                             .high = (int32_t)rintf(j->e.high) + j->e.zero,
                             .zero = j->e.zero,
                             .flip = j->flip,
                             .y = (uint8_t *)j->run->y +
                                  row * width * conv->outputs + c,
                             .ldy = conv->outputs,
                             .next = rows == 2 ? width * conv->outputs : 0,
                             .columns = columns};
    for (int64_t i = 0; i < 4; i++) {
        const uint8_t *line =
            i < conv->size[1] + rows - 1 ? line_at(conv, &at, 0, i) : NULL;
        s.rows[i] = line ? line + first * conv->channels + c : j->zeros;
        s.steps[i] = line ? conv->channels : 0;
    }
    conv->kernels->strip[columns > BYI_I8_STRIP / 2](&s);
}

/* Output rows [begin, end) of all images, channels [c, c + columns): two rows
 * of an image at a time where their windows are 4 rows high together. */
static void run_strips(const struct i8_job *j, int64_t begin, int64_t end,
                       int64_t c, int columns)
{
    const struct byi_i8_conv *conv = j->conv;
    const bool pairs = conv->size[1] <= 3 && conv->stride[1] == 1 &&
                       conv->stride[2] == 1 && conv->dilation[1] == 1;
    struct byi_i8_strip_weights w;
    fill_strip(j, c, columns, columns > BYI_I8_STRIP / 2 ? 4 : 2, &w);
    for (int64_t row = begin, rows; row < end; row += rows) {
        const bool last =
            row + 1 == end || row % conv->out[1] + 1 == conv->out[1];
        rows = pairs && !last ? 2 : 1;
        run_strip(j, row, (int)rows, c, columns, &w);
    }
}

/* Output rows [begin, end) of all images. */
static void run_rows(const struct i8_job *j, int64_t begin, int64_t end,
                     char *lane)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t width = conv->out[2], ldy = conv->outputs * j->size;
    uint32_t *woven = (uint32_t *)(void *)lane;
    int64_t offsets[TAPS];
    for (int64_t c = 0; j->strips && c < conv->channels; c += BYI_I8_STRIP)
        run_strips(j, begin, end, c,
                   (int)byi_min(BYI_I8_STRIP, conv->channels - c));
    for (int64_t t = 0; t < j->words; t++)
        offsets[t] = (t / conv->size[2] * woven_positions(conv) +
                      t % conv->size[2] * conv->dilation[2]) *
                     BYI_I8_PANEL;
    for (int64_t row = begin; row < end && !j->strips; row++) {
        const struct i8_place at = place_of(j, row * width);
        for (int64_t c = 0; c < conv->channels; c += BYI_I8_PANEL) {
            struct byi_i8_taps t = {
                .x = woven,
                .step = conv->stride[2] * BYI_I8_PANEL,
                .offsets = offsets,
                .weights = j->panels + c * j->words,
                .taps = j->words,
                .n = width,
                .e = j->e,
                .y = (char *)j->run->y + row * width * ldy + c * j->size,
                .ldy = ldy,
                .columns = (int)byi_min(BYI_I8_PANEL, conv->channels - c)};
            t.e.add += c;
            t.e.scale += c;
            weave_row(j, &at, c, t.columns, woven);
            conv->kernels->taps[j->form](&t);
        }
    }
}

/* Threads that pay: each should have some 2^18 multiplications to do. */
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
    const int64_t blocks = j->blocks * j->conv->groups;
    if (((const struct i8_head *)run->packed)->form == I8_WINOGRAD) {
        i8_winograd_run(run, j->panels, &j->e, j->lanes, j->lane, n);
        return;
    }
    const bool by_rows = j->tiles >= 2 * n || j->tiles >= blocks;
#pragma omp parallel for num_threads(n) if (n > 1) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        char *lane = j->lanes + i * j->lane;
        if (j->conv->depthwise)
            run_rows(j, rows * i / n, rows * (i + 1) / n, lane);
        else if (by_rows)
            run_part(j, j->tiles * i / n, j->tiles * (i + 1) / n, 0, blocks,
                     lane);
        else
            run_part(j, 0, j->tiles, blocks * i / n, blocks * (i + 1) / n,
                     lane);
    }
}
