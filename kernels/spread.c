/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/spread.c: transposed convolution with few outputs, such as the last
 * layer of a decoder. With transposed.c, most columns of a panel would be zero.
 * So all taps are columns of one product, whose rows are the positions of x.
 * The sums of a row are then added to the outputs that the position reaches:
 *
 *     y[position * stride + k * dilation - pad][o] += sums[position][k][o]
 *
 * For 4 x 4 taps of one output, 16 of 16 columns are used instead of 1 of 16.
 *
 *     weights[merged group][panel][channel][16], by columns [tap][o]
 */
#include "kernels/conv.h"
#include "kernels/inline.h"

#include <math.h>
#include <string.h>

enum {
    LAST = BYI_F32_AXES - 1,
    MAX_COLUMNS = 1024, /* most columns of the product */
    MAX_ROWS = 48 /* most rows whose sums are added at once, in cached memory */
};

/* The part of an image that a thread computes: outputs [begin, end) along
 * `axis`, the first axis with more than one position. They depend on positions
 * [from, to) of x, counted through all its axes. The part has `positions`
 * positions of y, the first of which has number `first`, counted through all
 * images. */
struct spread_part {
    int axis;
    int64_t image, begin, end, from, to, first, positions;
};

/* Rows of the product that are adjacent in a line of x: rows [row, row + n),
 * from position `at` on. */
struct spread_line {
    int64_t at[BYI_F32_AXES], row, n;
};

static int64_t columns_of(const struct byi_f32_conv *conv)
{
    return byi_f32_product_of(conv->size) * conv->merged_outputs;
}

static int64_t row_of_sums(const struct byi_f32_conv *conv)
{
    return byi_ceil_div(columns_of(conv), BYI_F32_PANEL) * BYI_F32_PANEL;
}

bool byi_f32_spread_suits(const struct byi_f32_conv *conv)
{
    const int64_t panels = byi_ceil_div(columns_of(conv), BYI_F32_PANEL);
    const int64_t tap_panels =
        byi_f32_product_of(conv->size) *
        byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL);
    return conv->transposed && columns_of(conv) <= MAX_COLUMNS &&
           2 * panels <= tap_panels;
}

int64_t byi_f32_spread_floats(const struct byi_f32_conv *conv)
{
    return row_of_sums(conv) * conv->merged_channels;
}

void byi_f32_spread_pack(const struct byi_f32_conv *conv,
                         const struct byi_f32_weights *weights, float *to)
{
    const int64_t merged = conv->groups / conv->merged_groups;
    const int64_t floats = byi_f32_spread_floats(conv);
    const int64_t panel = conv->merged_channels * BYI_F32_PANEL;
    memset(to, 0, (size_t)(conv->merged_groups * floats) * sizeof *to);
    for (int64_t g = 0; g < conv->groups; g++) {
        const int64_t column = g % merged * (conv->merged_outputs / merged);
        float *group =
            to + g / merged * floats +
            g % merged * (conv->merged_channels / merged) * BYI_F32_PANEL;
        for (int64_t t = 0; t < byi_f32_product_of(conv->size); t++)
            byi_f32_pack_tap(conv, weights,
                             byi_f32_tap_at(conv, weights,
                                            weights->at + g * weights->group,
                                            t),
                             panel, t * conv->merged_outputs + column, group);
    }
}

uint64_t byi_f32_spread_scratch(const struct byi_f32_conv *conv, int threads)
{
    return (uint64_t)threads *
           (byi_f32_pointer_bytes(1) +
            (uint64_t)(MAX_ROWS * row_of_sums(conv)) * sizeof(float));
}

/* Add the sums of a tap to n outputs; sums and outputs are `step` and `stride`
 * floats apart. */
BYI_ALWAYS_INLINE void add_outputs(const float *sums, int64_t step, float *y,
                                   int64_t stride, int64_t n, int64_t outputs)
{
    for (int64_t r = 0; r < n; r++, sums += step, y += stride)
        for (int64_t o = 0; o < outputs; o++)
            y[o] += sums[o];
}

static void add_tap(const float *sums, int64_t step, float *y, int64_t stride,
                    int64_t n, int64_t outputs)
{
    switch (outputs) {
    case 1:
        add_outputs(sums, step, y, stride, n, 1);
        break;
    case 2:
        add_outputs(sums, step, y, stride, n, 2);
        break;
    case 3:
        add_outputs(sums, step, y, stride, n, 3);
        break;
    case 4:
        add_outputs(sums, step, y, stride, n, 4);
        break;
    default:
        add_outputs(sums, step, y, stride, n, outputs);
    }
}

/* Add the sums of a line for one tap, k[] along the axes, to the outputs in the
 * part. `sums` are those of the first row, from the tap's first column on. */
static void spread_tap(const struct byi_f32_conv_run *run,
                       const struct spread_part *part,
                       const struct spread_line *line,
                       const int64_t k[BYI_F32_AXES], int64_t group,
                       const float *sums)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t stride = conv->stride[LAST], step = row_of_sums(conv);
    int64_t place = part->image, low = 0, high = 0, at = 0;
    for (int i = 0; i < BYI_F32_AXES; i++) {
        low = i == part->axis ? part->begin : 0;
        high = i == part->axis ? part->end : conv->out[i];
        at = line->at[i] * conv->stride[i] + k[i] * conv->dilation[i] -
             conv->pad[i];
        if (i < LAST && (at < low || at >= high))
            return;
        place = place * conv->out[i] + at;
    }
    /* rows [r, end) of the line reach the part */
    const int64_t r = at < low ? byi_ceil_div(low - at, stride) : 0;
    const int64_t end =
        at < high ? byi_min(line->n, byi_ceil_div(high - at, stride)) : 0;
    add_tap(sums + r * step, step,
            run->y + (place + r * stride) * conv->outputs +
                group * conv->merged_outputs,
            stride * conv->outputs, end - r, conv->merged_outputs);
}

/* Add the sums of n rows, from position `row` of an image on. */
static void spread_rows(const struct byi_f32_conv_run *run,
                        const struct spread_part *part, int64_t row, int64_t n,
                        int64_t group, const float *sums)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t taps = byi_f32_product_of(conv->size);
    struct spread_line line = {.row = 0};
    for (; line.row < n; line.row += line.n) {
        int64_t index = row + line.row;
        for (int i = LAST; i >= 0; index /= conv->in[i--])
            line.at[i] = index % conv->in[i];
        line.n = byi_min(conv->in[LAST] - line.at[LAST], n - line.row);
        for (int64_t t = 0; t < taps; t++) {
            const int64_t k[BYI_F32_AXES] = {t / conv->size[2] / conv->size[1],
                                             t / conv->size[2] % conv->size[1],
                                             t % conv->size[2]};
            spread_tap(run, part, &line, k, group,
                       sums + line.row * row_of_sums(conv) +
                           t * conv->merged_outputs);
        }
    }
}

/* Compute a tile of n rows of the product for a merged group. */
static void run_tile(const struct byi_f32_conv_run *run, int64_t group,
                     int64_t n, const float *const *rows, float *sums)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t panel = conv->merged_channels * BYI_F32_PANEL;
    const int64_t panels = row_of_sums(conv) / BYI_F32_PANEL;
    for (int64_t p = 0, count; p < panels; p += count) {
        count = byi_min(conv->kernels->panels, panels - p);
        const struct byi_f32_tile t = {
            .x = rows,
            .n_pieces = 1,
            .length = conv->merged_channels,
            .first = group * conv->merged_channels,
            .weights =
                run->weights + group * byi_f32_spread_floats(conv) + p * panel,
            .next = panel,
            .low = -INFINITY,
            .high = INFINITY,
            .y = sums + p * BYI_F32_PANEL,
            .ldy = row_of_sums(conv)};
        conv->kernels->tile[count - 1][n](&t);
    }
}

/* Set the outputs of a part to the matrix that is added, or to zero, plus the
 * bias. */
static void start_part(const struct byi_f32_conv_run *run,
                       const struct spread_part *part)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t n = part->positions * conv->outputs;
    float *y = run->y + part->first * conv->outputs;
    if (conv->adds) {
        const float *add = run->operands[conv->epilogue[0].operand] +
                           part->first * conv->outputs;
        memmove(y, add, (size_t)n * sizeof *y); /* `add` may be y */
    } else {
        memset(y, 0, (size_t)n * sizeof *y);
    }
    for (int64_t i = 0; run->bias && i < part->positions;
         i++, y += conv->outputs)
        for (int64_t o = 0; o < conv->outputs; o++)
            y[o] += run->bias[o];
}

/* Compute n rows of the product, which begin at x. */
static void multiply(const struct byi_f32_conv_run *run, int64_t group,
                     const float *x, int64_t n, const float **rows, float *sums)
{
    const struct byi_f32_conv *conv = run->conv;
    for (int64_t first = 0, count; first < n; first += count) {
        count = byi_min(conv->kernels->rows, n - first);
        for (int64_t r = 0; r < count; r++)
            rows[r] = x + (first + r) * conv->channels;
        run_tile(run, group, count, rows, sums + first * row_of_sums(conv));
    }
}

static void run_part(const struct byi_f32_conv_run *run,
                     const struct spread_part *part, void *scratch)
{
    const struct byi_f32_conv *conv = run->conv;
    const float **rows = scratch;
    float *sums = (void *)((char *)scratch + byi_f32_pointer_bytes(1));
    const float *x =
        run->x + part->image * byi_f32_product_of(conv->in) * conv->channels;
    start_part(run, part);
    for (int64_t row = part->from, n; row < part->to; row += n) {
        n = byi_min(MAX_ROWS, part->to - row);
        for (int64_t group = 0; group < conv->merged_groups; group++) {
            multiply(run, group, x + row * conv->channels, n, rows, sums);
            spread_rows(run, part, row, n, group, sums);
        }
    }
    byi_f32_epilogue_run(run, conv->adds, part->first, part->positions, 0,
                         conv->outputs);
}

/* Part i of `cuts` of an image. */
static struct spread_part part_of(const struct byi_f32_conv *conv,
                                  int64_t image, int64_t i, int64_t cuts)
{
    struct spread_part p = {.image = image};
    int64_t inner = 1,
            outer = 1; /* positions of the axes after it, of x and of y */
    while (p.axis < LAST && conv->in[p.axis] == 1 && conv->out[p.axis] == 1)
        p.axis++;
    for (int a = p.axis + 1; a < BYI_F32_AXES; a++) {
        inner *= conv->in[a];
        outer *= conv->out[a];
    }
    const int64_t out = conv->out[p.axis], stride = conv->stride[p.axis];
    const int64_t reach = (conv->size[p.axis] - 1) * conv->dilation[p.axis];
    p.begin = out * i / cuts;
    p.end = out * (i + 1) / cuts;
    const int64_t from = p.begin + conv->pad[p.axis] - reach;
    const int64_t last = p.end - 1 + conv->pad[p.axis];
    p.from = from > 0 ? byi_ceil_div(from, stride) * inner : 0;
    p.to = byi_min(last / stride + 1, conv->in[p.axis]) * inner;
    p.first = (image * out + p.begin) * outer;
    p.positions = (p.end - p.begin) * outer;
    return p;
}

void byi_f32_spread_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t cuts = conv->images % run->threads ? run->threads : 1;
    const int64_t n = run->threads, parts = conv->images * cuts;
    const uint64_t per_thread = byi_f32_spread_scratch(conv, 1);
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = parts * i / n; k < parts * (i + 1) / n; k++) {
            const struct spread_part p =
                part_of(conv, k / cuts, k % cuts, cuts);
            if (p.positions > 0)
                run_part(run, &p,
                         (char *)run->scratch + (uint64_t)i * per_thread);
        }
}
