/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/transposed.c: transposed convolution. Output positions of the same
 * phase, their position modulo the stride, are reached by the same taps. A
 * phase is therefore a product like that of direct.c: rows gathered through
 * pointers by the weights of its taps. A tile is computed beside y, since the
 * positions of a phase are not adjacent.
 *
 *     weights[phase][panel][tap of the phase][channel][16]
 */
#include "kernels/conv.h"

#include <math.h>
#include <string.h>

/* A phase on one axis: its taps are first, first + step ..., `taps` of them;
 * its outputs phase, phase + stride ..., `outputs` of them. Output number k
 * reads input from + k with the first tap, and `back` fewer with each next. */
struct axis_phase {
    int64_t first, step, taps, phase, outputs, from, back;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static struct axis_phase phase_on(const struct byi_f32_conv *conv, int axis,
                                  int64_t phase)
{
    const int64_t stride = conv->stride[axis], size = conv->size[axis];
    struct axis_phase p = {
        .step = stride / common_divisor(stride, conv->dilation[axis]),
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

/* A phase, and its place among the tiles and the weights of all. */
struct output_phase {
    struct axis_phase on[2];
    int64_t taps, rows; /* rows: outputs of all images */
    int64_t tiles;
    const float *weights;
};

static struct output_phase phase_of(const struct byi_f32_conv *conv, int64_t i)
{
    struct output_phase p = {.on = {phase_on(conv, 0, i / conv->stride[1]),
                                    phase_on(conv, 1, i % conv->stride[1])}};
    p.taps = p.on[0].taps * p.on[1].taps;
    p.rows = conv->images * p.on[0].outputs * p.on[1].outputs;
    p.tiles = byi_ceil_div(p.rows, conv->kernels->rows);
    return p;
}

static int64_t weights_of(const struct byi_f32_conv *conv,
                          const struct output_phase *p)
{
    return byi_ceil_div(conv->outputs, BYI_F32_PANEL) * p->taps *
           conv->channels * BYI_F32_PANEL;
}

/* One panel of a phase: output columns [o, o + n). */
static float *pack_panel(const struct byi_f32_conv *conv,
                         const struct output_phase *p, const float *from,
                         const int64_t strides[4], int64_t n, float *to)
{
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t i = p->on[0].first + t / p->on[1].taps * p->on[0].step;
        const int64_t j = p->on[1].first + t % p->on[1].taps * p->on[1].step;
        const float *tap = from + i * strides[2] + j * strides[3];
        for (int64_t c = 0; c < conv->channels; c++)
            for (int64_t k = 0; k < BYI_F32_PANEL; k++)
                *to++ = k < n ? tap[c * strides[1] + k * strides[0]] : 0;
    }
    return to;
}

void byi_f32_transposed_pack(const struct byi_f32_conv *conv, const float *from,
                             const int64_t strides[4], float *to)
{
    for (int64_t i = 0; i < conv->stride[0] * conv->stride[1]; i++) {
        const struct output_phase p = phase_of(conv, i);
        for (int64_t o = 0; o < conv->outputs; o += BYI_F32_PANEL)
            to = pack_panel(conv, &p, from + o * strides[0], strides,
                            byi_min(BYI_F32_PANEL, conv->outputs - o), to);
    }
}

/* Outputs of a phase: numbers k[] on the axes of an image. */
struct place {
    int64_t image, k[2];
};

static struct place place_of(const struct output_phase *p, int64_t row)
{
    const int64_t line = row / p->on[1].outputs;
    return (struct place){line / p->on[0].outputs,
                          {line % p->on[0].outputs, row % p->on[1].outputs}};
}

/* Its position in the result. */
static int64_t position_of(const struct byi_f32_conv *conv,
                           const struct output_phase *p, const struct place *at)
{
    int64_t position = at->image;
    for (int i = 0; i < 2; i++)
        position = position * conv->out[i] + p->on[i].phase +
                   at->k[i] * conv->stride[i];
    return position;
}

/* Pointers to the pieces of the row, in the order of the packed taps. */
static void find_pieces(const struct byi_f32_conv_run *run,
                        const struct output_phase *p, const struct place *at,
                        const float **to)
{
    const struct byi_f32_conv *conv = run->conv;
    const float *image =
        run->x + at->image * conv->in[0] * conv->in[1] * conv->channels;
    int64_t h = p->on[0].from + at->k[0];
    for (int64_t i = 0; i < p->on[0].taps; i++, h -= p->on[0].back) {
        int64_t w = p->on[1].from + at->k[1];
        for (int64_t j = 0; j < p->on[1].taps;
             j++, w -= p->on[1].back, to += BYI_F32_ROWS) {
            const bool inside =
                h >= 0 && h < conv->in[0] && w >= 0 && w < conv->in[1];
            *to = inside ? image + (h * conv->in[1] + w) * conv->channels
                         : byi_f32_zeros;
        }
    }
}

/* Write a row of sums to y, and apply the posts from `next` on. */
static void finish_row(const struct byi_f32_conv_run *run, uint32_t next,
                       const float *sums, int64_t row, int64_t column,
                       int64_t columns)
{
    const struct byi_f32_conv *conv = run->conv;
    const struct byi_f32_post *post = conv->posts;
    float *y = run->y + row * conv->outputs + column;
    if (conv->adds) { /* maybe of y itself */
        const float *add =
            run->operands[post->operand] + row * post->row + column;
        for (int64_t c = 0; c < columns; c++)
            y[c] = sums[c] + add[c];
    } else {
        memcpy(y, sums, (size_t)columns * sizeof *y);
    }
    if (next < conv->n_posts)
        byi_f32_posts_run(run, next, row, 1, column, columns);
}

/* Rows [begin, begin + n) of the phase. */
static void run_tile(const struct byi_f32_conv_run *run,
                     const struct output_phase *p, int64_t begin, int64_t n)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t panel = p->taps * conv->channels * BYI_F32_PANEL;
    const float *rows[BYI_F32_TAPS * BYI_F32_ROWS];
    float sums[BYI_F32_ROWS * BYI_F32_COLUMNS], room[BYI_F32_COLUMNS];
    int64_t places[BYI_F32_ROWS];
    for (int64_t r = 0; r < n; r++) {
        const struct place at = place_of(p, begin + r);
        places[r] = position_of(conv, p, &at);
        find_pieces(run, p, &at, rows + r);
    }
    const int64_t wide = conv->kernels->panels * BYI_F32_PANEL;
    for (int64_t column = 0; column < conv->outputs; column += wide) {
        const int64_t columns = byi_min(wide, conv->outputs - column);
        const int64_t panels = byi_ceil_div(columns, BYI_F32_PANEL);
        const struct byi_f32_epilogue e =
            byi_f32_epilogue_at(run, 0, column, columns, room);
        const struct byi_f32_tile t = {
            .x = rows,
            .segments = p->taps,
            .run = conv->channels,
            .weights = p->weights + column / BYI_F32_PANEL * panel,
            .next = panel,
            .bias = e.bias,
            .low = conv->adds ? -INFINITY : e.low,
            .high = conv->adds ? INFINITY : e.high,
            .y = sums,
            .ldy = panels * BYI_F32_PANEL,
        };
        const struct byi_f32_part all = {sums, 0, 1, n * t.ldy};
        conv->kernels->tile[panels - 1][n](&t);
        uint32_t next = conv->adds ? 1 : conv->next;
        for (; !conv->adds && next < conv->n_posts && conv->posts[next].unary;
             next++)
            conv->posts[next].unary(&all, conv->posts[next].p0,
                                    conv->posts[next].p1);
        for (int64_t r = 0; r < n; r++)
            finish_row(run, next, sums + r * t.ldy, places[r], column, columns);
    }
}

/* Tiles [begin, end) of all phases. */
static void run_tiles(const struct byi_f32_conv_run *run, int64_t begin,
                      int64_t end)
{
    const struct byi_f32_conv *conv = run->conv;
    const float *weights = run->weights;
    for (int64_t i = 0, first = 0; i < conv->stride[0] * conv->stride[1]; i++) {
        struct output_phase p = phase_of(conv, i);
        p.weights = weights;
        for (int64_t tile = begin > first ? begin - first : 0;
             tile < p.tiles && first + tile < end; tile++) {
            const int64_t row = p.rows * tile / p.tiles;
            run_tile(run, &p, row, p.rows * (tile + 1) / p.tiles - row);
        }
        first += p.tiles;
        weights += weights_of(conv, &p);
    }
}

void byi_f32_transposed_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t n = run->threads;
    int64_t tiles = 0;
    for (int64_t i = 0; i < conv->stride[0] * conv->stride[1]; i++)
        tiles += phase_of(conv, i).tiles;
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        run_tiles(run, tiles * i / n, tiles * (i + 1) / n);
}
