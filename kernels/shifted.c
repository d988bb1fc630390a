/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/shifted.c: convolution with few outputs, such as the three colours of
 * an image. With direct.c, most columns of a panel would be zero. So each tap
 * of a line of the window has outputs of its own: a direct convolution, whose
 * window is one column, computes sums for all positions of a line of x. An
 * output adds up these sums, shifted by the tap:
 *
 *     y[w][o] = sum over taps k of sums[w + k * dilation - pad][k][o]
 *
 * For nine taps of three outputs, 27 of 32 columns are used instead of 3 of 16.
 *
 *     weights[panel][tap of a column][channel][16], by columns [k][o]
 */
#include "kernels/conv.h"

#include <string.h>

enum {
    MAX_OUTPUTS = 8, /* most outputs */
    MIN_STRIPS = 8   /* an image has at least this many strips, for threads */
};

typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));
enum { LANES = 4 };

bool byi_f32_shifted_suits(const struct byi_f32_conv *conv)
{
    const int64_t panels =
        byi_ceil_div(conv->size[2] * conv->outputs, BYI_F32_PANEL);
    return byi_f32_has_lines(conv) && conv->groups == 1 && !conv->gathers &&
           conv->stride[2] == 1 && conv->outputs <= MAX_OUTPUTS &&
           conv->channels >= BYI_F32_PANEL && 2 * panels <= conv->size[2];
}

/* The convolution that computes the sums. */
static struct byi_f32_conv columns_of(const struct byi_f32_conv *conv)
{
    struct byi_f32_conv columns = *conv;
    columns.algorithm = BYI_F32_DIRECT;
    columns.outputs = columns.merged_outputs = conv->outputs * conv->size[2];
    columns.out[2] = conv->in[2];
    columns.size[2] = columns.dilation[2] = 1;
    columns.pad[2] = 0;
    columns.bias = columns.adds = columns.clamps = false;
    columns.n_epilogue = columns.next = 0;
    return columns;
}

int64_t byi_f32_shifted_floats(const struct byi_f32_conv *conv)
{
    const struct byi_f32_conv columns = columns_of(conv);
    return byi_f32_direct_floats(&columns);
}

void byi_f32_shifted_pack(const struct byi_f32_conv *conv,
                          const struct byi_f32_weights *weights, float *to)
{
    const int64_t lines = conv->size[1];
    memset(to, 0, (size_t)byi_f32_shifted_floats(conv) * sizeof *to);
    for (int64_t j = 0; j < lines; j++)
        for (int64_t k = 0; k < conv->size[2]; k++)
            byi_f32_pack_tap(
                conv, weights,
                weights->at + j * weights->tap[1] + k * weights->tap[2],
                lines * conv->channels * BYI_F32_PANEL, k * conv->outputs,
                to + j * conv->channels * BYI_F32_PANEL);
}

/* A run in strips of lines. */
struct shifted {
    const struct byi_f32_conv_run *run;
    const struct byi_f32_conv *conv;
    struct byi_f32_conv columns;
    int64_t strip_lines, strips; /* lines of a strip; strips of an image */
    int64_t line;                /* floats of the sums of a line */
    uint64_t sums, direct; /* bytes of a thread's sums, and of the scratch of
                            * the convolution that computes them */
};

/* Cut strip i of an image to *strip. Returns its first line of x. */
static int64_t cut_strip(const struct shifted *s, int64_t i,
                         struct byi_f32_conv *strip)
{
    return byi_f32_cut_lines(
        &s->columns, i * s->strip_lines,
        byi_min(s->strip_lines, s->conv->out[1] - i * s->strip_lines), strip);
}

/* Divide a convolution into strips whose sums fit an eighth of the second-level
 * cache. */
static struct shifted divide(const struct byi_f32_conv *conv)
{
    struct shifted s = {.conv = conv, .columns = columns_of(conv)};
    s.line = conv->in[2] * s.columns.outputs;
    s.strip_lines = conv->cache / 8 / (s.line * (int64_t)sizeof(float));
    s.strip_lines =
        byi_min(s.strip_lines, byi_ceil_div(conv->out[1], MIN_STRIPS));
    s.strip_lines = byi_max(s.strip_lines, 1);
    s.strips = byi_ceil_div(conv->out[1], s.strip_lines);
    s.sums = byi_align_bytes((uint64_t)(s.strip_lines * s.line + LANES) *
                             sizeof(float));
    for (int64_t i = 0; i < s.strips; i++) {
        struct byi_f32_conv strip;
        cut_strip(&s, i, &strip);
        const uint64_t bytes = byi_f32_direct_scratch(&strip, 1);
        s.direct = bytes > s.direct ? bytes : s.direct;
    }
    s.direct = byi_align_bytes(s.direct);
    return s;
}

uint64_t byi_f32_shifted_scratch(const struct byi_f32_conv *conv, int threads)
{
    const struct shifted s = divide(conv);
    return (s.sums + s.direct) * (uint64_t)threads;
}

/* The sum of `taps` vectors of four sums, `step` floats apart. */
static vec4 sum_taps(const float *sums, int64_t taps, int64_t step, vec4 sum)
{
    for (int64_t k = 0; k < taps; k++)
        sum += *(const vec4 *)(const void *)(sums + k * step);
    return sum;
}

/* Compute the line of y that begins at position `row` from its sums. */
static void add_shifted(const struct shifted *s, const float *sums,
                        const float *bias, int64_t row)
{
    const struct byi_f32_conv *conv = s->conv;
    const int64_t n = conv->outputs, dilation = conv->dilation[2];
    const int64_t step = dilation * s->columns.outputs + n;
    const float *add =
        conv->adds ? s->run->operands[conv->epilogue->operand] : NULL;
    for (int64_t w = 0; w < conv->out[2]; w++) {
        const int64_t at = w - conv->pad[2]; /* of tap 0 */
        const int64_t first = at < 0 ? byi_ceil_div(-at, dilation) : 0;
        const int64_t end =
            byi_min(conv->size[2],
                    byi_ceil_div(byi_max(conv->in[2] - at, 0), dilation));
        for (int64_t o = 0; o < n; o += LANES) {
            const size_t bytes = (size_t)byi_min(n - o, LANES) * sizeof(float);
            const int64_t to = (row + w) * n + o;
            vec4 sum = {0};
            if (add) /* may be y */
                memcpy(&sum, add + to, bytes);
            sum += *(const vec4 *)(const void *)(bias + o);
            sum = sum_taps(sums + (at * s->columns.outputs + first * step + o),
                           end - first, step, sum);
            memcpy(s->run->y + to, &sum, bytes);
        }
    }
}

/* Compute strip i, numbered through all images. */
static void run_strip(const struct shifted *s, int64_t i, char *scratch)
{
    const struct byi_f32_conv *conv = s->conv;
    const int64_t image = i / s->strips, first = i % s->strips * s->strip_lines;
    float *sums = (float *)(void *)scratch, bias[MAX_OUTPUTS] = {0};
    struct byi_f32_conv strip;
    const int64_t from = cut_strip(s, i % s->strips, &strip);
    const int64_t row = (image * conv->out[1] + first) * conv->out[2];
    const struct byi_f32_conv_run run = {.conv = &strip,
                                         .x = s->run->x +
                                              (image * conv->in[1] + from) *
                                                  conv->in[2] * conv->channels,
                                         .weights = s->run->weights,
                                         .y = sums,
                                         .scratch = scratch + s->sums,
                                         .threads = 1,
                                         .zeros = s->run->zeros};
    byi_f32_direct_run(&run);
    if (s->run->bias)
        memcpy(bias, s->run->bias, (size_t)conv->outputs * sizeof *bias);
    for (int64_t h = 0; h < strip.out[1]; h++)
        add_shifted(s, sums + h * s->line, bias, row + h * conv->out[2]);
    byi_f32_epilogue_run(s->run, conv->adds, row, strip.out[1] * conv->out[2],
                         0, conv->outputs);
}

void byi_f32_shifted_run(const struct byi_f32_conv_run *run)
{
    struct shifted s = divide(run->conv);
    s.run = run;
    const int64_t n = run->threads, strips = run->conv->images * s.strips;
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t t = 0; t < n; t++)
        for (int64_t i = strips * t / n; i < strips * (t + 1) / n; i++)
            run_strip(&s, i,
                      (char *)run->scratch + (uint64_t)t * (s.sums + s.direct));
}
