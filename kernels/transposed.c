/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/transposed.c: transposed convolution. Output positions with the same
 * phase, which is the position modulo the stride, are computed from the same
 * taps. So a phase is a product as in direct.c: rows that are read through
 * pointers, times the weights of the phase's taps. A tile is computed in
 * scratch memory, since the positions of a phase are not adjacent in y.
 *
 *     weights[merged group][phase][panel][tap of the phase][channel][16]
 */
#include "kernels/conv.h"

#include <math.h>
#include <string.h>

/* A phase along one axis. It has `taps` taps, first, first + step, ..., and
 * `outputs` outputs, phase, phase + stride, ... Output number k reads input
 * from + k with the first tap, and with each further tap an input `back`
 * positions before. */
struct axis_phase {
    int64_t first, step, taps, phase, outputs, from, back;
};

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    return b ? greatest_common_divisor(b, a % b) : a;
}

static struct axis_phase phase_on(const struct byi_f32_conv *conv, int axis,
                                  int64_t phase)
{
    const int64_t stride = conv->stride[axis], size = conv->size[axis];
    struct axis_phase p = {
        .step = stride / greatest_common_divisor(stride, conv->dilation[axis]),
        .phase = phase,
        .outputs = phase < conv->out[axis]
                       ? byi_ceil_div(conv->out[axis] - phase, stride)
                       : 0};
    const int64_t most = byi_min(p.step, size);
    while (p.first < most &&
           (phase + conv->pad[axis] - p.first * conv->dilation[axis]) %
                   stride !=
               0)
        p.first++;
    p.taps = p.first < most ? byi_ceil_div(size - p.first, p.step) : 0;
    p.from =
        (phase + conv->pad[axis] - p.first * conv->dilation[axis]) / stride;
    p.back = p.step * conv->dilation[axis] / stride;
    return p;
}

enum { OUTPUTS, TAPS }; /* indices of output_phase.limits */

/* A phase: its axes, its sizes and its weights. */
struct output_phase {
    struct axis_phase axes[BYI_F32_AXES];
    int64_t limits[2][BYI_F32_AXES]; /* numbers of outputs and of taps along the
                                      * axes */
    int64_t taps, rows;              /* `rows`: outputs of all images */
    int64_t tiles;
    const float *weights;
};

static struct output_phase phase_of(const struct byi_f32_conv *conv, int64_t i)
{
    struct output_phase p = {.taps = 1, .rows = conv->images};
    for (int axis = BYI_F32_AXES - 1; axis >= 0; i /= conv->stride[axis--]) {
        p.axes[axis] = phase_on(conv, axis, i % conv->stride[axis]);
        p.limits[OUTPUTS][axis] = p.axes[axis].outputs;
        p.limits[TAPS][axis] = p.axes[axis].taps;
        p.taps *= p.axes[axis].taps;
        p.rows *= p.axes[axis].outputs;
    }
    p.tiles = byi_ceil_div(p.rows, conv->kernels->rows);
    return p;
}

/* Floats of a phase's weights for a merged group. */
static int64_t weights_of(const struct byi_f32_conv *conv,
                          const struct output_phase *p)
{
    return byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL) * p->taps *
           conv->merged_channels * BYI_F32_PANEL;
}

/* Find the numbers, along the axes, of tap t of a phase. */
static void find_tap(const struct output_phase *p, int64_t t,
                     int64_t at[BYI_F32_AXES])
{
    for (int axis = BYI_F32_AXES - 1; axis >= 0; t /= p->axes[axis--].taps)
        at[axis] = t % p->axes[axis].taps;
}

/* Pack the weights of group g for a phase into the weights of its merged
 * group. */
static void pack_group(const struct byi_f32_conv *conv,
                       const struct output_phase *p,
                       const struct byi_f32_weights *weights, int64_t g,
                       float *to)
{
    const int64_t merged = conv->groups / conv->merged_groups;
    const int64_t columns = conv->merged_outputs / merged;
    const int64_t channels = conv->merged_channels / merged;
    for (int64_t t = 0; t < p->taps; t++) {
        const float *from = weights->at + g * weights->group;
        int64_t at[BYI_F32_AXES];
        find_tap(p, t, at);
        for (int i = 0; i < BYI_F32_AXES; i++)
            from +=
                (p->axes[i].first + at[i] * p->axes[i].step) * weights->tap[i];
        byi_f32_pack_tap(
            conv, weights, from,
            p->taps * conv->merged_channels * BYI_F32_PANEL,
            g % merged * columns,
            to + (t * conv->merged_channels + g % merged * channels) *
                     BYI_F32_PANEL);
    }
}

void byi_f32_transposed_pack(const struct byi_f32_conv *conv,
                             const struct byi_f32_weights *weights, float *to)
{
    memset(to, 0,
           (size_t)(conv->merged_groups * byi_f32_direct_floats(conv)) *
               sizeof *to);
    for (int64_t g = 0; g < conv->groups; g++) {
        float *at = to + g / (conv->groups / conv->merged_groups) *
                             byi_f32_direct_floats(conv);
        for (int64_t i = 0; i < byi_f32_product_of(conv->stride); i++) {
            const struct output_phase p = phase_of(conv, i);
            pack_group(conv, &p, weights, g, at);
            at += weights_of(conv, &p);
        }
    }
}

/* An output of a phase: number k[] along each axis of an image. */
struct place {
    int64_t image, k[BYI_F32_AXES];
};

static struct place place_of(const struct output_phase *p, int64_t row)
{
    struct place at;
    for (int axis = BYI_F32_AXES - 1; axis >= 0; row /= p->axes[axis--].outputs)
        at.k[axis] = row % p->axes[axis].outputs;
    at.image = row;
    return at;
}

/* Advance the numbers along all axes, each below its limit, the last axis
 * fastest. Returns true if they wrapped around to 0. */
static bool count_up(int64_t at[BYI_F32_AXES], const int64_t *limit)
{
    for (int axis = BYI_F32_AXES - 1; axis >= 0; at[axis--] = 0)
        if (++at[axis] < limit[axis])
            return false;
    return true;
}

/* The position in the result of an output of the phase. */
static int64_t position_of(const struct byi_f32_conv *conv,
                           const struct output_phase *p, const struct place *at)
{
    int64_t position = at->image;
    for (int i = 0; i < BYI_F32_AXES; i++)
        position = position * conv->out[i] + p->axes[i].phase +
                   at->k[i] * conv->stride[i];
    return position;
}

/* Rows of a tile whose outputs are adjacent in a line of their phase: rows
 * [row, row + n), from output `at` on. */
struct line_part {
    struct place at;
    int64_t row, n;
};

/* Find pointers to the pieces of the rows, in the order of the packed taps. */
static void find_pieces(const struct byi_f32_conv_run *run,
                        const struct output_phase *p,
                        const struct line_part *part, const float **rows)
{
    enum { LAST = BYI_F32_AXES - 1 };
    const struct byi_f32_conv *conv = run->conv;
    int64_t tap[BYI_F32_AXES] = {0};
    for (int64_t t = 0; t < p->taps; t++, rows += BYI_F32_ROWS) {
        int64_t from[BYI_F32_AXES], line = part->at.image;
        bool inside = true;
        for (int i = 0; i < BYI_F32_AXES; i++)
            from[i] =
                p->axes[i].from + part->at.k[i] - tap[i] * p->axes[i].back;
        for (int i = 0; i < LAST; i++) {
            inside &= from[i] >= 0 && from[i] < conv->in[i];
            line = line * conv->in[i] + from[i];
        }
        for (int64_t r = 0; r < part->n; r++) {
            const int64_t at = from[LAST] + r;
            rows[part->row + r] =
                inside && at >= 0 && at < conv->in[LAST]
                    ? run->x + (line * conv->in[LAST] + at) * conv->channels
                    : run->zeros;
        }
        count_up(tap, p->limits[TAPS]);
    }
}

/* Find the pieces of n rows of a phase, from row `begin` on, and the positions
 * of their results. */
static void find_rows(const struct byi_f32_conv_run *run,
                      const struct output_phase *p, int64_t begin, int64_t n,
                      const float **rows, int64_t *places)
{
    enum { LAST = BYI_F32_AXES - 1 };
    struct line_part part = {.at = place_of(p, begin)};
    for (; part.row < n; part.row += part.n) {
        const int64_t rest = p->axes[LAST].outputs - part.at.k[LAST];
        const int64_t first = position_of(run->conv, p, &part.at);
        part.n = byi_min(rest, n - part.row);
        find_pieces(run, p, &part, rows);
        for (int64_t r = 0; r < part.n; r++)
            places[part.row + r] = first + r * run->conv->stride[LAST];
        part.at.k[LAST] += part.n - 1;
        part.at.image += count_up(part.at.k, p->limits[OUTPUTS]);
    }
}

/* Write a row of sums, plus the matrix that is added, to y, and apply the
 * epilogue's operations from `next` on. */
static void finish_row(const struct byi_f32_conv_run *run, uint32_t next,
                       const float *sums, int64_t row, int64_t column,
                       int64_t columns)
{
    const struct byi_f32_conv *conv = run->conv;
    const struct byi_f32_epilogue_op *op = conv->epilogue;
    float *y = run->y + row * conv->outputs + column;
    if (conv->adds) { /* `add` may be y */
        const float *add = run->operands[op->operand] + row * op->row + column;
        for (int64_t c = 0; c < columns; c++)
            y[c] = sums[c] + add[c];
    } else {
        memcpy(y, sums, (size_t)columns * sizeof *y);
    }
    if (next < conv->n_epilogue)
        byi_f32_epilogue_run(run, next, row, 1, column, columns);
}

/* Compute rows [begin, begin + n) of the phase and the columns of a merged
 * group. */
static void run_tile(const struct byi_f32_conv_run *run,
                     const struct output_phase *p, int64_t group, int64_t begin,
                     int64_t n, const float **rows)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t panel = p->taps * conv->merged_channels * BYI_F32_PANEL;
    float sums[BYI_F32_ROWS * BYI_F32_COLUMNS], buffer[BYI_F32_COLUMNS];
    int64_t places[BYI_F32_ROWS];
    find_rows(run, p, begin, n, rows, places);
    const int64_t block_columns = conv->kernels->panels * BYI_F32_PANEL;
    for (int64_t first = 0; first < conv->merged_outputs;
         first += block_columns) {
        const int64_t columns =
            byi_min(block_columns, conv->merged_outputs - first);
        const int64_t column = group * conv->merged_outputs + first;
        const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
        const struct byi_f32_epilogue e =
            byi_f32_epilogue_at(run, 0, column, columns, buffer);
        const struct byi_f32_tile t = {
            .x = rows,
            .n_pieces = p->taps,
            .length = conv->merged_channels,
            .first = group * conv->merged_channels,
            .weights = p->weights + group * byi_f32_direct_floats(conv) +
                       first / BYI_F32_PANEL * panel,
            .next = panel,
            .bias = e.bias,
            .low = conv->adds ? -INFINITY : e.low,
            .high = conv->adds ? INFINITY : e.high,
            .y = sums,
            .ldy = panels * BYI_F32_PANEL,
        };
        const struct byi_f32_block block = {sums, 0, 1, n * t.ldy};
        conv->kernels->tile[panels - 1][n](&t);
        uint32_t next = conv->adds ? 1 : conv->next;
        for (; !conv->adds && next < conv->n_epilogue &&
               conv->epilogue[next].unary;
             next++)
            conv->epilogue[next].unary(&block, conv->epilogue[next].p0,
                                       conv->epilogue[next].p1);
        for (int64_t r = 0; r < n; r++)
            finish_row(run, next, sums + r * t.ldy, places[r], column, columns);
    }
}

/* Compute tiles [begin, end), numbered through all phases. */
static void run_tiles(const struct byi_f32_conv_run *run, int64_t begin,
                      int64_t end, const float **rows)
{
    const struct byi_f32_conv *conv = run->conv;
    const float *weights = run->weights;
    const int64_t phases = byi_f32_product_of(conv->stride);
    for (int64_t i = 0, first = 0; i < phases; i++) {
        struct output_phase p = phase_of(conv, i);
        p.weights = weights;
        for (int64_t tile = begin > first ? begin - first : 0;
             tile < p.tiles && first + tile < end; tile++) {
            const int64_t row = p.rows * tile / p.tiles;
            for (int64_t group = 0; group < conv->merged_groups; group++)
                run_tile(run, &p, group, row,
                         p.rows * (tile + 1) / p.tiles - row, rows);
        }
        first += p.tiles;
        weights += weights_of(conv, &p);
    }
}

void byi_f32_transposed_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t n = run->threads;
    const uint64_t per_thread =
        byi_f32_pointer_bytes(byi_f32_product_of(conv->size));
    int64_t tiles = 0;
    for (int64_t i = 0; i < byi_f32_product_of(conv->stride); i++)
        tiles += phase_of(conv, i).tiles;
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        run_tiles(run, tiles * i / n, tiles * (i + 1) / n,
                  (void *)((char *)run->scratch + (uint64_t)i * per_thread));
}
