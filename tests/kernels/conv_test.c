/* SPDX-License-Identifier: Apache-2.0 */
/* conv_test.c: tests every algorithm of kernels/conv.h, under every instruction
 * set of the machine, against sums in float64. Uses random shapes and
 * epilogues, any number of threads, and the layers that networks are made of.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "isas.h"
#include "kernels/conv.h"
#include "kernels/i8.h"
#include "tests/reference.h"
#include "tests/share.h"

#include <cmocka.h>

/* Separate seeds, so that shapes do not depend on the size of the data. */
static uint64_t seed, data_seed;

REFERENCE uint32_t draw_from(uint64_t *from, uint32_t n)
{
    *from = *from * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*from >> 33) % n;
}

static uint32_t draw(uint32_t n)
{
    return draw_from(&seed, n);
}

REFERENCE float *random_floats(int64_t n)
{
    float *at = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)draw_from(&data_seed, 20001) / 10000 - 1;
    return at;
}

/* --- float16 and bfloat16 ------------------------------------------------- */

static uint16_t to_bits(enum byi_f32_type type, float x)
{
    return type == BYI_F32_F16 ? byi_f32_to_f16(x) : byi_f32_to_bf16(x);
}

static float from_bits(enum byi_f32_type type, uint16_t x)
{
    return type == BYI_F32_F16 ? byi_f16_to_f32(x) : byi_bf16_to_f32(x);
}

/* Round n floats to the type, which remain floats. */
static void round_all(enum byi_f32_type type, float *at, int64_t n)
{
    for (int64_t i = 0; type && at && i < n; i++)
        at[i] = from_bits(type, to_bits(type, at[i]));
}

/* Convert n floats to elements of the type, in memory of exactly n elements, so
 * that a sanitizer sees reads beyond them. */
static uint16_t *all_bits(enum byi_f32_type type, const float *at, int64_t n)
{
    uint16_t *bits = malloc((size_t)n * sizeof *bits);
    for (int64_t i = 0; i < n; i++)
        bits[i] = to_bits(type, at[i]);
    return bits;
}

/* A convolution with all its arguments. */
struct conv_case {
    struct byi_f32_conv conv;
    struct byi_f32_weights from;
    float *x, *weights, *bias, *operands[BYI_F32_EPILOGUE_OPS], *y, *packed,
        *scratch;
    bool sums; /* the epilogue begins with adding to y */
    int threads;
    /* if conv.gathers or conv.scales, the kernel computes its input from these
     * sources; x then has the expected input */
    struct byi_f32_source sources[3];
    uint32_t n_sources;
    float *scale, *shift;
};

static int64_t positions_of(const struct byi_f32_conv *conv)
{
    return conv->images * byi_f32_product_of(conv->out);
}

static void open_case(struct conv_case *c)
{
    struct byi_f32_conv *conv = &c->conv;
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t inputs =
        conv->images * byi_f32_product_of(conv->in) * conv->channels;
    const int64_t results = positions_of(conv) * conv->outputs;
    const int64_t group_channels = conv->channels / conv->groups;
    c->from = (struct byi_f32_weights){
        .group = conv->outputs / conv->groups * group_channels * taps,
        .output = group_channels * taps,
        .channel = taps,
        .tap = {conv->size[1] * conv->size[2], conv->size[2], 1}};
    if (conv->joins_planes)
        c->from.tap[0] = c->from.tap[1];
    if (conv->weight_strides[0]) {
        c->from.output = conv->weight_strides[0];
        c->from.channel = conv->weight_strides[1];
    }
    c->x = random_floats(inputs);
    c->weights = random_floats(conv->outputs * group_channels * taps);
    c->bias = conv->bias ? random_floats(conv->outputs) : NULL;
    for (uint32_t i = 0; i < conv->n_epilogue; i++)
        c->operands[i] = random_floats(results);
    c->y = random_floats(results);
    c->packed = random_floats((int64_t)byi_f32_conv_packed(conv) / 4);
    c->scratch =
        random_floats((int64_t)byi_f32_conv_scratch(conv, c->threads) / 4 + 1);
    round_all(conv->type, c->x, inputs);
    round_all(conv->type, c->bias, conv->outputs);
    round_all(conv->type, c->y, results);
    for (uint32_t i = 0; i < conv->n_epilogue; i++)
        round_all(conv->type, c->operands[i], results);
    round_all(conv->algorithm == BYI_F32_TILES ? conv->type : conv->weight_type,
              c->weights, conv->outputs * group_channels * taps);
    c->from.at = c->weights;
    byi_f32_conv_pack(conv, &c->from, c->packed, c->threads);
}

static void close_case(struct conv_case *c)
{
    for (uint32_t i = 0; i < c->conv.n_epilogue; i++)
        free(c->operands[i]);
    free(c->x);
    free(c->weights);
    free(c->bias);
    free(c->y);
    free(c->packed);
    free(c->scratch);
}

/* A 3 x 3 convolution of stride 1 that keeps the size of its images. */
static struct byi_f32_conv three_by_three(int64_t images, int64_t map,
                                          int64_t channels, int64_t outputs)
{
    return (struct byi_f32_conv){.images = images,
                                 .in = {1, map, map},
                                 .out = {1, map, map},
                                 .channels = channels,
                                 .outputs = outputs,
                                 .groups = 1,
                                 .size = {1, 3, 3},
                                 .stride = {1, 1, 1},
                                 .dilation = {1, 1, 1},
                                 .pad = {0, 1, 1}};
}

/* Windows of the forms of Winograd's algorithm, and of direct convolution. */
static const struct window {
    enum byi_f32_algorithm algorithm;
    int64_t size[2];
} windows[] = {
    {BYI_F32_DIRECT, {3, 3}},         {BYI_F32_WINOGRAD_2, {3, 3}},
    {BYI_F32_WINOGRAD_4, {3, 3}},     {BYI_F32_WINOGRAD_4_5, {5, 5}},
    {BYI_F32_WINOGRAD_6, {3, 3}},     {BYI_F32_WINOGRAD_ROW_3, {1, 3}},
    {BYI_F32_WINOGRAD_ROW_3, {3, 1}}, {BYI_F32_WINOGRAD_ROW_5, {1, 5}},
    {BYI_F32_WINOGRAD_ROW_5, {5, 1}}, {BYI_F32_WINOGRAD_ROW_7, {1, 7}},
    {BYI_F32_WINOGRAD_ROW_7, {7, 1}},
};

/* Give the convolution this window, and outputs of the inputs' size. */
static void set_window(struct byi_f32_conv *conv, const struct window *window)
{
    for (int i = 0; i < 2; i++) {
        conv->size[1 + i] = window->size[i];
        conv->pad[1 + i] = window->size[i] / 2;
    }
}

/* Set the window of c->conv, plan it and open the case, with the window's
 * algorithm instead of the planned one. */
static void open_with(struct conv_case *c, const struct window *window)
{
    set_window(&c->conv, window);
    byi_f32_conv_plan(&c->conv, false);
    c->conv.algorithm = window->algorithm;
    open_case(c);
}

/* Run the case on narrow copies of all arguments. */
static void run_narrow(struct conv_case *c, struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = &c->conv;
    const enum byi_f32_type type = conv->type;
    const int64_t results = positions_of(conv) * conv->outputs;
    uint16_t *x =
        all_bits(type, conv->scales ? c->sources[0].x : c->x,
                 conv->images * byi_f32_product_of(conv->in) * conv->channels);
    uint16_t *scale =
        conv->scales ? all_bits(type, c->scale, conv->images * conv->channels)
                     : NULL;
    uint16_t *y = all_bits(type, c->y, results),
             *operands[BYI_F32_EPILOGUE_OPS];
    uint16_t *bias = c->bias ? all_bits(type, c->bias, conv->outputs) : NULL;
    uint16_t *weights = NULL;
    if (byi_f32_conv_reads_in_place(conv)) {
        weights = all_bits(type, c->weights, conv->channels * conv->outputs);
        run->weights = (const float *)(const void *)weights;
    }
    run->x = (const float *)(const void *)x;
    run->scale = (const float *)(const void *)scale;
    run->y = (float *)(void *)y;
    run->bias = (const float *)(const void *)bias;
    for (uint32_t i = 0; i < conv->n_epilogue; i++) {
        operands[i] = all_bits(type, c->operands[i], results);
        run->operands[i] =
            (const float *)(const void *)(c->sums && i == 0 ? y : operands[i]);
    }
    byi_f32_conv_run(run);
    for (int64_t i = 0; i < results; i++)
        c->y[i] = from_bits(type, y[i]);
    for (uint32_t i = 0; i < conv->n_epilogue; i++)
        free(operands[i]);
    free(x);
    free(scale);
    free(y);
    free(bias);
    free(weights);
}

static void run_case(struct conv_case *c, int threads)
{
    struct byi_f32_conv_run run = {
        .conv = &c->conv,
        .x = c->x,
        .weights =
            byi_f32_conv_reads_in_place(&c->conv) ? c->weights : c->packed,
        .bias = c->bias,
        .y = c->y,
        .scratch = c->scratch,
        .threads = threads};
    if (c->conv.gathers) {
        run.x = NULL;
        run.sources = c->sources;
        run.n_sources = c->n_sources;
        run.scale = c->scale;
        run.shift = c->shift;
    }
    for (uint32_t i = 0; i < c->conv.n_epilogue; i++)
        run.operands[i] = c->sums && i == 0 ? c->y : c->operands[i];
    if (c->conv.type)
        run_narrow(c, &run);
    else
        byi_f32_conv_run(&run);
}

/* The input position that a tap reads for output position `row`, numbered
 * through all images; -1: the tap is outside of the image.
 */
REFERENCE int64_t input_of(const struct byi_f32_conv *conv, int64_t row,
                           const int64_t tap[])
{
    int64_t out[BYI_F32_AXES], at = row;
    for (int i = BYI_F32_AXES - 1; i >= 0; at /= conv->out[i--])
        out[i] = at % conv->out[i];
    for (int i = 0; i < BYI_F32_AXES; i++) {
        int64_t in = out[i] * conv->stride[i] - conv->pad[i] +
                     tap[i] * conv->dilation[i];
        if (conv->transposed) {
            in = out[i] + conv->pad[i] - tap[i] * conv->dilation[i];
            if (in % conv->stride[i])
                return -1;
            in /= conv->stride[i];
        }
        if (in < 0 || in >= conv->in[i])
            return -1;
        at = at * conv->in[i] + in;
    }
    return at;
}

/* input_of() for all taps, found once for a position and not for each output;
 * the caller frees the array. */
REFERENCE int64_t *inputs_of(const struct byi_f32_conv *conv, int64_t row)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    int64_t *at = malloc((size_t)taps * sizeof *at);
    for (int64_t t = 0; t < taps; t++) {
        const int64_t tap[] = {t / conv->size[2] / conv->size[1],
                               t / conv->size[2] % conv->size[1],
                               t % conv->size[2]};
        at[t] = input_of(conv, row, tap);
    }
    return at;
}

/* The index of a channel of x at an input, which is numbered through all
 * images.
 */
REFERENCE int64_t element_of(const struct byi_f32_conv *conv, int64_t input,
                             int64_t channel)
{
    const int64_t image = byi_f32_product_of(conv->in);
    if (!conv->planar)
        return input * conv->channels + channel;
    return (input / image * conv->channels + channel) * image + input % image;
}

/* The sum of products and bias for output `column` at the position whose inputs
 * are `inputs`. Sets *size to the sum of their absolute values. */
REFERENCE double sum_at(const struct conv_case *c, const int64_t *inputs,
                        int64_t column, double *size)
{
    const struct byi_f32_conv *conv = &c->conv;
    const int64_t group_outputs = conv->outputs / conv->groups;
    const int64_t n = conv->channels / conv->groups;
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t step = c->from.channel;
    const int64_t x_step = conv->planar ? byi_f32_product_of(conv->in) : 1;
    double sum = c->bias ? c->bias[column] : 0, absolute = fabs(sum);
    for (int64_t t = 0; t < taps; t++) {
        if (inputs[t] < 0)
            continue;
        const float *w = c->weights + column * c->from.output + t;
        const float *x =
            c->x + element_of(conv, inputs[t], column / group_outputs * n);
        for (int64_t k = 0; k < n; k++) {
            const double product = (double)x[k * x_step] * w[k * step];
            sum += product;
            absolute += fabs(product);
        }
    }
    *size = absolute;
    return sum;
}

/* The functions of epilogue operations, of the result y and the operand b. */
static double relu_of(double y, double b)
{
    (void)b;
    return y < 0 ? 0 : y;
}
static double tanh_of(double y, double b)
{
    (void)b;
    return tanh(y);
}
static double silu_of(double y, double b)
{
    (void)b;
    return y / (1 + exp(-y));
}
static double add_of(double y, double b)
{
    return y + b;
}
static double mul_of(double y, double b)
{
    return y * b;
}

enum { ADD = 2 }; /* index of the addition */
static const struct {
    enum byi_op_id unary;
    enum byi_f32_binary binary;
    double (*compute)(double y, double b);
} functions[] = {{BYI_OP_NN_RELU, 0, relu_of},
                 {BYI_OP_TANH, 0, tanh_of},
                 {0, BYI_F32_ADD, add_of},
                 {0, BYI_F32_MUL, mul_of},
                 {BYI_OP_NN_SILU, 0, silu_of}};

/* Append functions[function] to the epilogue. `shape` is that of the operand of
 * a binary one, 0: as the result; 1: a number for each output; 2: a number for
 * each image and output; 3: a number for each position. */
static void add_epilogue_op(struct byi_f32_conv *conv, int function, int shape)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    const int64_t positions = byi_f32_product_of(conv->out);
    struct byi_f32_epilogue_op *op = &conv->epilogue[conv->n_epilogue];
    *op = (struct byi_f32_epilogue_op){.operand = conv->n_epilogue++,
                                       .repeat = 1};
    if (functions[function].unary) {
        op->unary = kernels->unary[functions[function].unary];
        return;
    }
    op->binary = kernels->binary[functions[function].binary];
    op->column = shape != 3;
    op->row = shape == 0 || shape == 2 ? conv->outputs : shape == 3;
    op->repeat = shape == 2 ? positions : 1;
}

/* Compare all elements. `bound` is the bound of an error, relative to the sum
 * of the absolute values of the products. For Winograd's algorithm it is
 * relative to the largest such sum, since inputs outside of the window cause
 * errors, too. */
static void check_case(struct conv_case *c, const int *kinds, double bound)
{
    const struct byi_f32_conv *conv = &c->conv;
    const int64_t results = positions_of(conv) * conv->outputs;
    float *previous = malloc((size_t)results * sizeof *previous);
    memcpy(previous, c->y, (size_t)results * sizeof *previous);
    run_case(c, c->threads);
    int64_t *inputs = NULL;
    for (int64_t at = 0; at < results; at++) {
        const int64_t row = at / conv->outputs, column = at % conv->outputs;
        if (column == 0) {
            free(inputs);
            inputs = inputs_of(conv, row);
        }
        double size, y = sum_at(c, inputs, column, &size);
        if (byi_f32_is_winograd(conv))
            size = (double)(byi_f32_product_of(conv->size) * conv->channels);
        double tolerance = bound * (size + 1);
        for (uint32_t i = 0; i < conv->n_epilogue; i++) {
            const struct byi_f32_epilogue_op *op = &conv->epilogue[i];
            const float *from = c->sums && i == 0 ? previous : c->operands[i];
            const double b =
                (double)from[row / op->repeat * op->row + column * op->column];
            y = functions[kinds[i]].compute(y, b);
            tolerance += 1e-6 * (fabs(b) + 1);
        }
        if (conv->type) /* half of the distance of two numbers */
            tolerance +=
                fabs(y) * (conv->type == BYI_F32_F16 ? 0x1p-11 : 0x1p-8) +
                0x1p-25;
        if (!(fabs(y - (double)c->y[at]) <= tolerance))
            fail_msg("%s, %lld x %lld x %lld x %lld x %lld -> %lld, groups "
                     "%lld, window %lld x %lld x %lld, threads %d: element "
                     "%lld is %g, expected %g",
                     byi_f32_conv_name(conv), (long long)conv->images,
                     (long long)conv->in[0], (long long)conv->in[1],
                     (long long)conv->in[2], (long long)conv->channels,
                     (long long)conv->outputs, (long long)conv->groups,
                     (long long)conv->size[0], (long long)conv->size[1],
                     (long long)conv->size[2], c->threads, (long long)at,
                     (double)c->y[at], y);
    }
    free(inputs);
    free(previous);
}

/* Run `body` under every instruction set that the machine has. Those beyond
 * AVX-512 only change how numbers of 16 bits are multiplied: tests of float32
 * use with_each_f32_kernels(). */
static void with_each_isa(void (*body)(void))
{
    static const char *const isas[] = {"sse2", "avx2", "avx512", "avx512_bf16",
                                       "avx512_amx"};
    const struct byi_f32_kernels *previous = NULL;
    const struct byi_i8_kernels *blocks = NULL; /* kernels that have blocks */
    for (size_t i = 0; i < BYI_COUNT(isas); i++) {
        setenv("BYOC_MAX_ISA", isas[i], 1);
        const struct byi_i8_kernels *k = byi_i8_kernels();
        const struct byi_i8_kernels *current = k->block ? k : NULL;
        if (byi_f32_kernels() != previous || current != blocks)
            body();
        previous = byi_f32_kernels();
        blocks = current;
    }
    unsetenv("BYOC_MAX_ISA");
}

/* --- random shapes -------------------------------------------------------- */

static void choose_shape(struct byi_f32_conv *conv)
{
    const bool product = draw(4) == 0, deep = draw(4) == 0;
    *conv = (struct byi_f32_conv){.images = 1 + draw(product ? 40 : 3),
                                  .channels = 1 + draw(70),
                                  .outputs = 1 + draw(70),
                                  .groups = 1,
                                  .bias = draw(2)};
    if (draw(8) == 0)
        conv->channels = 512 * (1 + draw(2)) + draw(2) * draw(40);
    conv->transposed = !product && draw(4) == 0;
    if (draw(4) == 0)
        conv->outputs = conv->groups = conv->channels;
    else if (draw(4) == 0) {
        conv->groups = 1 + draw(9);
        conv->channels = conv->groups * (1 + draw(20));
        conv->outputs = conv->groups * (1 + draw(20));
    } else if (draw(4) == 0) { /* groups of half a panel, one, and so on */
        conv->groups = 2 + draw(9);
        conv->outputs = conv->groups * (4 << draw(4));
        conv->channels = draw(2) ? conv->outputs : conv->groups * (1 + draw(9));
    }
    for (int i = 0; i < BYI_F32_AXES; i++) {
        const bool is_one = product || (i == 0 && !deep);
        conv->in[i] = is_one ? 1 : 1 + draw(deep ? 8 : 20);
        conv->size[i] = is_one ? 1 : 1 + draw(4);
        conv->stride[i] = is_one ? 1 : 1 + draw(3);
        conv->dilation[i] = is_one ? 1 : 1 + draw(2);
        conv->pad[i] = is_one || draw(3) == 0 ? 0 : draw(4);
    }
    if (draw(4) == 0 && !product && !deep && !conv->transposed) {
        conv->groups = 1; /* planes */
        conv->channels = 1 + draw(5);
        conv->in[2] = 10 + draw(90);
        conv->stride[2] = 1 + draw(4);
        conv->dilation[2] = 1;
    }
    const bool joins = deep && draw(2); /* along axis 0 only */
    if (draw(40) == 0 && !product) /* more taps than one group of pointers */
        conv->size[2] = BYI_F32_PIECES + 9;
    else if (!product && draw(2)) {
        const struct window *window = &windows[draw(BYI_COUNT(windows))];
        set_window(conv, window);
        for (int i = 1; i < BYI_F32_AXES; i++) {
            conv->stride[i] = 1;
            conv->pad[i] = draw((uint32_t)conv->size[i]);
            conv->in[i] = 1 + draw(11);
        }
    }
    if (draw(8) == 0 && !product && !deep && !conv->transposed) {
        conv->groups = conv->stride[2] = 1; /* few outputs */
        conv->channels = BYI_F32_PANEL + draw(40);
        conv->outputs = 1 + draw(8);
        conv->size[2] = 2 + draw(9);
        conv->pad[2] = draw((uint32_t)conv->size[2]);
    }
    for (int i = 1; joins && i < BYI_F32_AXES; i++) {
        conv->size[i] = conv->stride[i] = 1;
        conv->pad[i] = 0;
    }
    for (int i = 0; i < BYI_F32_AXES; i++) {
        const int64_t reach = (conv->size[i] - 1) * conv->dilation[i] + 1;
        const bool unpadded = i == 0 ? !deep : joins;
        const int64_t end = unpadded ? 0 : draw(3); /* end padding */
        if (conv->transposed) {
            while ((conv->in[i] - 1) * conv->stride[i] + reach <=
                   conv->pad[i] + end)
                conv->in[i]++;
            conv->out[i] = (conv->in[i] - 1) * conv->stride[i] + reach -
                           conv->pad[i] - end;
            continue;
        }
        while (conv->in[i] + conv->pad[i] + end < reach)
            conv->in[i]++;
        conv->out[i] =
            (conv->in[i] + conv->pad[i] + end - reach) / conv->stride[i] + 1;
    }
}

/* Whether the shape takes too long to test: the few shapes with many channels
 * and positions would take longer than all others together. The limit is higher
 * for shapes with many taps, since there are few of them. */
static bool is_large(const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    return positions_of(conv) * conv->outputs * conv->channels / conv->groups *
               taps >
           (taps > BYI_F32_PIECES ? 2000000000 : 50000000);
}

/* Whether the algorithm can compute the convolution. */
static bool fits(const struct byi_f32_conv *conv,
                 enum byi_f32_algorithm algorithm)
{
    if (algorithm == BYI_F32_SPREAD)
        return byi_f32_spread_suits(conv);
    if (conv->transposed || algorithm == BYI_F32_TRANSPOSED)
        return conv->transposed && algorithm == BYI_F32_TRANSPOSED;
    if (algorithm == BYI_F32_VECTOR) /* tested by vectors() */
        return false;
    if (conv->planar || algorithm == BYI_F32_PLANAR)
        return conv->planar && !conv->adds && algorithm == BYI_F32_PLANAR;
    if (algorithm == BYI_F32_TILES)
        return byi_f32_tiles_suit(conv);
    if (algorithm == BYI_F32_DEPTHWISE)
        return byi_f32_is_depthwise(conv);
    if (algorithm == BYI_F32_DIRECT)
        return true;
    if (algorithm == BYI_F32_SHIFTED)
        return byi_f32_shifted_suits(conv);
    if (conv->slim || conv->size[0] != 1 || conv->stride[0] != 1 ||
        conv->pad[0] != 0 || conv->in[0] != conv->out[0])
        return false;
    for (int i = 1; i < BYI_F32_AXES; i++)
        if (conv->stride[i] != 1)
            return false;
    for (size_t i = 0; i < BYI_COUNT(windows); i++)
        if (windows[i].algorithm == algorithm &&
            windows[i].size[0] == conv->size[1] &&
            windows[i].size[1] == conv->size[2])
            return true;
    return false;
}

/* The largest error, relative to the sum of the absolute values of the
 * products. Split numbers leave out the products of low parts. */
static double bound_of(const struct byi_f32_conv *conv)
{
    if (conv->algorithm == BYI_F32_TILES && conv->type == BYI_F32_F16 &&
        !conv->exact)
        return 0x1p-14;
    return conv->algorithm >= BYI_F32_WINOGRAD_4 &&
                   conv->algorithm <= BYI_F32_WINOGRAD_4_5
               ? 4e-6
               : 1e-6;
}

static void random_shapes(void)
{
    uint32_t n_cases[BYI_F32_ALGORITHMS] = {0}, many_taps = 0, joined = 0;
    for (int i = 0; i < 4000; i++) {
        struct conv_case c = {.threads = 1 + (int)draw(3)};
        int kinds[3];
        choose_shape(&c.conv);
        const uint32_t n = draw(4);
        for (uint32_t p = 0; p < n; p++) {
            kinds[p] = (int)draw(BYI_COUNT(functions));
            c.sums |= p == 0 && kinds[0] == ADD && draw(2);
            add_epilogue_op(&c.conv, kinds[p],
                            c.sums && p == 0 ? 0 : (int)draw(4));
        }
        c.conv.type = (enum byi_f32_type)draw(BYI_F32_TYPES);
        c.conv.planar = byi_f32_planar_suits(&c.conv);
        byi_f32_conv_plan(&c.conv, draw(2));
        if (draw(2)) /* small strips and blocks */
            c.conv.cache = 1 << (8 + draw(8));
        if (is_large(&c.conv) || (c.conv.planar && c.conv.adds))
            continue;
        do
            c.conv.algorithm = (enum byi_f32_algorithm)draw(BYI_F32_ALGORITHMS);
        while (!fits(&c.conv, c.conv.algorithm));
        /* run a share of each algorithm's first 40 cases, but all of the first
         * 10 with many taps */
        const bool has_many_taps =
            byi_f32_product_of(c.conv.size) > BYI_F32_PIECES;
        const uint32_t nth =
            has_many_taps ? many_taps++ : n_cases[c.conv.algorithm]++;
        if (nth >= (has_many_taps ? 10 : 40) ||
            (!has_many_taps && nth % (uint32_t)test_share() != 0))
            continue;
        joined += c.conv.joins_planes;
        open_case(&c);
        check_case(&c, kinds, bound_of(&c.conv));
        close_case(&c);
    }
    for (int i = BYI_F32_DIRECT; i < BYI_F32_ALGORITHMS; i++)
        if (i != BYI_F32_VECTOR && n_cases[i] <= 20 &&
            (i != BYI_F32_TILES || byi_i8_kernels()->block))
            fail_msg("algorithm %d ran %u times, expected more than 20", i,
                     n_cases[i]);
    assert_true(many_taps > 0);
    assert_true(joined > 0);
}

static void test_random(void **state)
{
    (void)state;
    seed = 8;
    with_each_isa(random_shapes);
}

static struct byi_f32_conv vector_by_matrix(int64_t channels, int64_t outputs,
                                            bool transposed)
{
    return (struct byi_f32_conv){.images = 1,
                                 .in = {1, 1, 1},
                                 .out = {1, 1, 1},
                                 .channels = channels,
                                 .outputs = outputs,
                                 .groups = 1,
                                 .size = {1, 1, 1},
                                 .stride = {1, 1, 1},
                                 .dilation = {1, 1, 1},
                                 .weight_strides = {transposed ? 1 : channels,
                                                    transposed ? outputs : 1}};
}

static void vectors(void)
{
    for (int i = 0; i < test_share_of(200); i++) {
        struct conv_case c = {.threads = 1 + (int)draw(3)};
        int kinds[3];
        c.conv = vector_by_matrix(1 + draw(700), 1 + draw(2500), draw(2));
        c.conv.bias = draw(2);
        const uint32_t n = draw(4);
        for (uint32_t p = 0; p < n; p++) {
            kinds[p] = (int)draw(BYI_COUNT(functions));
            add_epilogue_op(&c.conv, kinds[p], (int)draw(4));
        }
        c.conv.type = c.conv.weight_type =
            (enum byi_f32_type)draw(BYI_F32_TYPES);
        byi_f32_conv_plan(&c.conv, true);
        c.conv.algorithm = BYI_F32_VECTOR;
        open_case(&c);
        check_case(&c, kinds, 1e-6);
        close_case(&c);
    }
}

/* A float32 matrix is packed, since panels are read faster, unless packing it
 * takes too long. A narrow one is read in place: packing would double its size.
 */
static void matrices_read_in_place(void)
{
    struct byi_f32_conv classifier = vector_by_matrix(1280, 1000, false);
    byi_f32_conv_plan(&classifier, true);
    assert_false(byi_f32_conv_reads_in_place(&classifier));
    classifier.type = classifier.weight_type = BYI_F32_F16;
    byi_f32_conv_plan(&classifier, true);
    assert_true(byi_f32_conv_reads_in_place(&classifier));
}

/* Large matrices are not packed, in either layout. */
static void test_vectors(void **state)
{
    (void)state;
    seed = 2;
    with_each_isa(vectors);
    with_each_isa(matrices_read_in_place);
    for (int transposed = 0; transposed < 2; transposed++) {
        struct byi_f32_conv large = vector_by_matrix(25088, 4096, transposed);
        struct byi_f32_conv small = vector_by_matrix(64, 10, transposed);
        byi_f32_conv_plan(&large, true);
        byi_f32_conv_plan(&small, true);
        assert_true(byi_f32_conv_reads_in_place(&large));
        assert_false(byi_f32_conv_reads_in_place(&small));
        large.weight_strides[0] = large.weight_strides[1] = 0;
        byi_f32_conv_plan(&large, true);
        assert_false(byi_f32_conv_reads_in_place(&large));
    }
}

/* Rows that do not stay in the second-level cache are cut into slices. Some
 * cases add to y. */
static void long_rows(void)
{
    for (int i = 0; i < 12; i++) {
        struct conv_case c = {.threads = 1 + (int)draw(3), .sums = i % 4 == 0};
        int kinds[3];
        const int64_t channels =
            draw(2) ? 512 * (1 + draw(6)) : 512 + draw(2000);
        c.conv = vector_by_matrix(channels, 33 + draw(60), draw(2));
        c.conv.images = 15 + draw(40);
        c.conv.bias = draw(2);
        const uint32_t n = c.sums ? 1 + draw(3) : draw(4);
        for (uint32_t p = 0; p < n; p++) {
            const bool adds = c.sums && p == 0;
            kinds[p] = adds ? ADD : (int)draw(BYI_COUNT(functions));
            add_epilogue_op(&c.conv, kinds[p], adds ? 0 : (int)draw(4));
        }
        byi_f32_conv_plan(&c.conv, true);
        c.conv.algorithm = BYI_F32_DIRECT;
        c.conv.cache = 1 << (14 + draw(6));
        open_case(&c);
        check_case(&c, kinds, 2e-6);
        close_case(&c);
    }
}

/* The taps of a line are one long row; at the border, the kernel reads a copy
 * of it. */
static void long_windows(void)
{
    for (int i = 0; i < 8; i++) {
        struct conv_case c = {.threads = 1 + (int)draw(3)};
        const int64_t size = 65 + draw(150), map = 100 + draw(200);
        c.conv = three_by_three(1, map, 4 + draw(12), 33 + draw(60));
        c.conv.in[1] = c.conv.out[1] = c.conv.size[1] = 1;
        c.conv.pad[1] = 0;
        c.conv.size[2] = size;
        c.conv.pad[2] = size / 2;
        c.conv.out[2] = map + size / 2 * 2 - size + 1;
        byi_f32_conv_plan(&c.conv, true);
        c.conv.cache = 1 << (14 + draw(6));
        open_case(&c);
        check_case(&c, NULL, 2e-6);
        close_case(&c);
    }
}

static void test_long_rows(void **state)
{
    (void)state;
    seed = 3;
    with_each_f32_kernels(long_rows);
    with_each_f32_kernels(long_windows);
}

/* --- scratch -------------------------------------------------------------- */

/* The scratch of two rows is enough for any number of rows. */
static void scratch_of_rows(bool exact)
{
    static const int64_t channels[] = {1, 300, 512, 1000, 1024, 3072, 4096};
    static const int64_t outputs[] = {1, 63, 64, 256, 3072};
    static const int64_t rows[] = {3, 14, 100, 5000};
    for (size_t k = 0; k < BYI_COUNT(channels); k++)
        for (size_t n = 0; n < BYI_COUNT(outputs); n++) {
            struct byi_f32_conv two_rows =
                vector_by_matrix(channels[k], outputs[n], false);
            two_rows.images = 2;
            byi_f32_conv_plan(&two_rows, exact);
            for (size_t m = 0; m < BYI_COUNT(rows); m++) {
                struct byi_f32_conv more_rows = two_rows;
                more_rows.images = rows[m];
                byi_f32_conv_plan(&more_rows, exact);
                for (int t = 1; t <= 4; t++)
                    assert_true(byi_f32_conv_scratch(&more_rows, t) <=
                                byi_f32_conv_scratch(&two_rows, t));
            }
        }
}

static void scratch_of_products(void)
{
    scratch_of_rows(false);
    scratch_of_rows(true);
}

static void test_scratch(void **state)
{
    (void)state;
    with_each_isa(scratch_of_products);
}

/* --- layers of networks --------------------------------------------------- */

/* Check the largest error, relative to the largest result, of 2000 random
 * outputs. */
static void layers(void)
{
    static const struct {
        int64_t map, channels, outputs;
    } shapes[] = {/* the fastest first, for builds that try a share of them */
                  {28, 32, 96},   {35, 96, 96},   {56, 128, 32},
                  {8, 384, 384},  {56, 64, 64},   {7, 512, 512},
                  {28, 128, 128}, {17, 192, 224}, {14, 256, 256},
                  {28, 256, 256}, {112, 64, 64},  {14, 512, 512}};
    for (int i = 0; i < test_share_of((int)BYI_COUNT(shapes)); i++)
        for (size_t w = 1; w < BYI_COUNT(windows); w++) {
            struct conv_case c = {.threads = 1};
            c.conv = three_by_three(1, shapes[i].map, shapes[i].channels,
                                    shapes[i].outputs);
            open_with(&c, &windows[w]);
            run_case(&c, 1);
            double max_error = 0, max_result = 0;
            for (int n = 0; n < 2000; n++) {
                const int64_t at =
                    draw((uint32_t)(positions_of(&c.conv) * c.conv.outputs));
                int64_t *inputs = inputs_of(&c.conv, at / c.conv.outputs);
                double size;
                const double y = sum_at(&c, inputs, at % c.conv.outputs, &size);
                free(inputs);
                max_error = fmax(max_error, fabs(y - (double)c.y[at]));
                max_result = fmax(max_result, fabs(y));
            }
            print_message("%-24s %4lld^2 %4lld -> %4lld: %.1e\n",
                          byi_f32_conv_name(&c.conv), (long long)shapes[i].map,
                          (long long)shapes[i].channels,
                          (long long)shapes[i].outputs, max_error / max_result);
            assert_true(max_error <= 1e-4 * max_result);
            close_case(&c);
        }
}

static void test_layers(void **state)
{
    (void)state;
    with_each_f32_kernels(layers);
}

/* --- gathered rows -------------------------------------------------------- */

/* Make a case whose kernel gathers its input from three sources, or from one if
 * it only scales. Bits of `steps` select scaling (1), shifting (2) and a ReLU
 * (4) of the input.
 */
static void open_gather(struct conv_case *c, int64_t outputs, int steps)
{
    const bool scales = steps == 1;
    const int64_t channels[] = {scales ? 96 : 24, 5, 67};
    c->conv = three_by_three(scales ? 1 : 2, 9, 96, outputs);
    c->conv.scales = scales;
    c->n_sources = scales ? 1 : 3;
    c->conv.size[1] = c->conv.size[2] = 1;
    c->conv.pad[1] = c->conv.pad[2] = 0;
    c->conv.gathers = true;
    c->conv.rectifies = steps & 4;
    c->conv.scale_image = outputs % 2 ? 96 : 0;
    add_epilogue_op(&c->conv, 0, 0);
    byi_f32_conv_plan(&c->conv, false);
    assert_true(byi_f32_conv_pays(&c->conv));
    open_case(c);
    c->scale = steps & 1 ? random_floats(2 * 96) : NULL;
    c->shift = steps & 2 ? random_floats(96) : NULL;
    for (uint32_t i = 0, first = 0; i < c->n_sources;
         first += (uint32_t)channels[i++]) {
        float *x = random_floats(positions_of(&c->conv) * channels[i]);
        c->sources[i] = (struct byi_f32_source){x, channels[i]};
        for (int64_t r = 0; r < positions_of(&c->conv); r++)
            for (int64_t k = 0; k < channels[i]; k++) {
                const int64_t at = first + k;
                float v = x[r * channels[i] + k];
                if (c->scale)
                    v *= c->scale[r / 81 * c->conv.scale_image + at];
                if (c->shift)
                    v += c->shift[at];
                c->x[r * 96 + at] = c->conv.rectifies && v < 0 ? 0 : v;
            }
    }
}

static void gather_cases(void)
{
    static const int64_t outputs[] = {16, 40, 49, 72, 148, 445};
    for (int steps = 0; steps < 8; steps++)
        for (size_t n = 0; n < BYI_COUNT(outputs); n++) {
            struct conv_case c = {.threads = 1 + steps % 3};
            open_gather(&c, outputs[n], steps);
            check_case(&c, (const int[]){0}, 1e-6);
            for (uint32_t i = 0; i < c.n_sources; i++)
                free((void *)(uintptr_t)c.sources[i].x);
            free(c.scale);
            free(c.shift);
            close_case(&c);
        }
}

/* Narrow data of one source, which the kernel scales, by a scale for each
 * channel or, if `by_image`, for each image and channel. */
static void scale_narrow(enum byi_f32_type type, int64_t images,
                         int64_t channels, bool by_image)
{
    struct conv_case c = {.threads = 1 + (int)draw(3)};
    c.conv = three_by_three(images, 7, channels, 40);
    c.conv.size[1] = c.conv.size[2] = 1;
    c.conv.pad[1] = c.conv.pad[2] = 0;
    if (draw(2)) /* strips of images */
        c.conv.in[1] = c.conv.out[1] = 1;
    c.conv.type = type;
    c.conv.scales = true;
    c.conv.scale_image = by_image ? channels : 0;
    add_epilogue_op(&c.conv, 0, 0);
    byi_f32_conv_plan(&c.conv, false);
    c.conv.cache = 1 << (10 + draw(8)); /* several strips */
    assert_true(byi_f32_conv_pays(&c.conv));
    open_case(&c);
    const int64_t n = positions_of(&c.conv) * channels;
    float *x = random_floats(n);
    round_all(type, x, n);
    c.sources[0].x = x;
    c.scale = random_floats(images * channels);
    round_all(type, c.scale, images * channels);
    for (int64_t i = 0; i < n; i++)
        c.x[i] = x[i] *
                 c.scale[i / (n / images) * c.conv.scale_image + i % channels];
    round_all(type, c.x, n);
    check_case(&c, (const int[]){0}, bound_of(&c.conv));
    free(x);
    free(c.scale);
    close_case(&c);
}

static void scales_narrow(void)
{
    static const int64_t channels[] = {1, 5, 16, 33, 96};
    for (int type = BYI_F32_F16; type < BYI_F32_TYPES; type++)
        for (size_t i = 0; i < BYI_COUNT(channels); i++)
            for (int64_t images = 1; images < 7; images += 2)
                for (int by_image = 0; by_image < 2; by_image++)
                    scale_narrow((enum byi_f32_type)type, images, channels[i],
                                 by_image);
}

static void test_scales_narrow(void **state)
{
    (void)state;
    seed = 4;
    with_each_isa(scales_narrow);
}

static void test_gather(void **state)
{
    (void)state;
    with_each_f32_kernels(gather_cases);
}

/* --- threads, NaN --------------------------------------------------------- */

/* Check that the open case has the same results with 1 to 4 threads, and close
 * it. */
static void compare_threads(struct conv_case *c)
{
    const size_t bytes =
        (size_t)(positions_of(&c->conv) * c->conv.outputs) * sizeof(float);
    float *first = malloc(bytes);
    for (int n = 1; n <= 4; n++) {
        run_case(c, n);
        if (n == 1)
            memcpy(first, c->y, bytes);
        assert_memory_equal(first, c->y, bytes);
    }
    free(first);
    close_case(c);
}

/* The results do not depend on the number of threads. */
static void threads(void)
{
    for (int i = 0; i < 8; i++) {
        struct conv_case c = {.threads = 4};
        c.conv = three_by_three(3, 29 - i, 1040, 1040);
        c.conv.groups = 1040;
        c.conv.stride[2] = 1 + i % 2;
        c.conv.size[2] = i & 2 ? 5 : 3;
        c.conv.in[1] = c.conv.out[1] = 1 + i;
        c.conv.out[2] =
            (c.conv.in[2] + 2 - c.conv.size[2]) / c.conv.stride[2] + 1;
        byi_f32_conv_plan(&c.conv, false);
        assert_int_equal(c.conv.algorithm, BYI_F32_DEPTHWISE);
        open_case(&c);
        compare_threads(&c);
    }
    struct conv_case planes = {.threads = 4};
    planes.conv = three_by_three(2, 57, 3, 40);
    planes.conv.planar = true;
    byi_f32_conv_plan(&planes.conv, false);
    open_case(&planes);
    compare_threads(&planes);
    for (int i = 0; i < 4; i++) { /* divided by rows, or by columns */
        struct conv_case c = {.threads = 4};
        c.conv = vector_by_matrix(300 + i, i % 2 ? 261 : 700, false);
        c.conv.images = i % 2 ? 431 : 131;
        byi_f32_conv_plan(&c.conv, true);
        open_case(&c);
        compare_threads(&c);
    }
    for (size_t i = 0; i < BYI_COUNT(windows); i++) {
        struct conv_case c = {.threads = 4};
        c.conv = three_by_three(2, 29, 40, 72);
        c.conv.in[2] = c.conv.out[2] = 31;
        open_with(&c, &windows[i]);
        compare_threads(&c);
    }
}

/* The same for blocks of narrow numbers: strips of one row or several. */
static void threads_of_blocks(void)
{
    for (int rows = 2; rows < 10; rows++) {
        struct conv_case c = {.threads = 4};
        c.conv = vector_by_matrix(480, 500, false);
        c.conv.images = rows;
        c.conv.type = BYI_F32_BF16;
        byi_f32_conv_plan(&c.conv, true);
        open_case(&c);
        compare_threads(&c);
    }
}

static void test_threads(void **state)
{
    (void)state;
    with_each_isa(threads_of_blocks);
    with_each_f32_kernels(threads);
}

/* A NaN in the image reaches every result whose window contains it, also
 * through ReLU. */
static void keeps_nan(void)
{
    for (size_t i = 0; i < BYI_COUNT(windows); i++) {
        struct conv_case c = {.threads = 1};
        c.conv = three_by_three(1, 19, 32, 35);
        add_epilogue_op(&c.conv, 0, 0);
        open_with(&c, &windows[i]);
        c.x[(9 * 19 + 9) * 32] = NAN;
        run_case(&c, 1);
        const int64_t reach_h = windows[i].size[0] / 2;
        const int64_t reach_w = windows[i].size[1] / 2;
        for (int64_t h = 9 - reach_h; h <= 9 + reach_h; h++)
            for (int64_t w = 9 - reach_w; w <= 9 + reach_w; w++)
                for (int o = 0; o < 35; o++)
                    assert_true(isnan(c.y[(h * 19 + w) * 35 + o]));
        assert_true(c.y[0] == c.y[0]);
        close_case(&c);
    }
}

REFERENCE float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Infinite numbers of x and of the weights reach the results with the sign that
 * they have in a plain sum, and zero times infinity is NaN. */
static void keeps_infinity(void)
{
    enum { ROWS = 132, CHANNELS = 260, OUTPUTS = 259 };
    for (int k = 0; k < 2 * BYI_F32_TYPES; k++) {
        const int type = k / 2;
        const bool exact = k % 2;
        struct conv_case c = {.threads = 1};
        c.conv = (struct byi_f32_conv){.images = ROWS,
                                       .channels = CHANNELS,
                                       .outputs = OUTPUTS,
                                       .groups = 1,
                                       .in = {1, 1, 1},
                                       .out = {1, 1, 1},
                                       .size = {1, 1, 1},
                                       .stride = {1, 1, 1},
                                       .dilation = {1, 1, 1},
                                       .type = (enum byi_f32_type)type};
        byi_f32_conv_plan(&c.conv, exact);
        open_case(&c);
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < CHANNELS; i++) /* exact as bfloat16, too */
                c.x[r * CHANNELS + i] = r == i ? 0 : i % 2 ? 0.5f : -1.375f;
        for (int o = 0; o < OUTPUTS; o++)
            for (int i = 0; i < CHANNELS; i++)
                c.weights[o * CHANNELS + i] = (o + i) % 3 ? 0.25f : -2;
        c.x[3 * CHANNELS + 21] = INFINITY;
        c.x[4 * CHANNELS + 22] = -INFINITY;
        c.weights[5 * CHANNELS + 8] = INFINITY;
        c.weights[6 * CHANNELS + 9] = -INFINITY;
        c.weights[7 * CHANNELS + 21] = 0;
        byi_f32_conv_pack(&c.conv, &c.from, c.packed, 1);
        run_case(&c, 1);
        for (int r = 0; r < ROWS; r++)
            for (int o = 0; o < OUTPUTS; o++) {
                const float expected =
                    dot(c.x + r * CHANNELS, c.weights + o * CHANNELS, CHANNELS);
                const float found = c.y[r * OUTPUTS + o];
                assert_int_equal(isnan(found), isnan(expected));
                if (isinf(found) || isinf(expected))
                    assert_true(found == expected);
            }
        close_case(&c);
    }
}

/* A convolution of a map of 28 x 28 by a square window. */
static struct byi_f32_conv layer_of(int64_t channels, int64_t groups,
                                    int64_t window)
{
    return (struct byi_f32_conv){.images = 1,
                                 .channels = channels,
                                 .outputs = channels,
                                 .groups = groups,
                                 .in = {1, 28, 28},
                                 .out = {1, 28, 28},
                                 .size = {1, window, window},
                                 .stride = {1, 1, 1},
                                 .dilation = {1, 1, 1},
                                 .pad = {0, window / 2, window / 2}};
}

/* The name of the kernel for 64 channels. */
static const char *name_of_layer(enum byi_f32_type type, int64_t window)
{
    struct byi_f32_conv conv = layer_of(64, 1, window);
    conv.type = type;
    byi_f32_conv_plan(&conv, false);
    return byi_f32_conv_name(&conv);
}

/* Layers of bfloat16 numbers run on AVX-512's BF16, except those for which
 * Winograd's algorithm on float32 is faster. */
static void test_bf16_layers(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (!byi_isa_runs(BYI_ISA_BF16))
        skip();
    setenv("BYOC_MAX_ISA", "avx512_bf16", 1);
    assert_string_equal(name_of_layer(BYI_F32_BF16, 1), "blocks:avx512_bf16");
    assert_string_equal(name_of_layer(BYI_F32_BF16, 7), "blocks:avx512_bf16");
    assert_string_equal(name_of_layer(BYI_F32_BF16, 3), "winograd_4x4:avx512");
    assert_string_equal(name_of_layer(BYI_F32_BF16, 5),
                        "winograd_4x4_5x5:avx512");
    assert_string_equal(name_of_layer(BYI_F32_F16, 1), "direct:avx512");
    unsetenv("BYOC_MAX_ISA");
#endif
}

/* Whether a layer on a map of 28 x 28 with an epilogue `op` is one of those
 * that oneDNN runs slower. */
static bool layer_pays(int64_t channels, int64_t groups, int64_t window,
                       enum byi_op_id op)
{
    struct byi_f32_conv conv = layer_of(channels, groups, window);
    conv.n_epilogue = 1;
    conv.epilogue[0].unary = byi_f32_kernels()->unary[op];
    conv.epilogue[0].p1 = 6;
    byi_f32_conv_plan(&conv, false);
    return byi_f32_conv_pays(&conv);
}

/* With AVX2, Winograd's algorithm is slower along one axis for few channels. */
static void test_avx2_lines(void **state)
{
    static const struct {
        int64_t channels, outputs, taps;
        bool direct;
    } cases[] = {
        {16, 64, 5, true}, {32, 32, 5, false}, {32, 64, 7, true},
        {64, 16, 7, true}, {64, 16, 3, false}, {48, 48, 7, false},
        {24, 64, 3, true},
    };
    (void)state;
    setenv("BYOC_MAX_ISA", "avx2", 1);
    for (size_t i = 0; byi_f32_kernels()->rows == 6 && i < BYI_COUNT(cases);
         i++) {
        struct byi_f32_conv conv = layer_of(cases[i].channels, 1, 1);
        conv.outputs = cases[i].outputs;
        conv.size[2] = cases[i].taps;
        conv.pad[2] = cases[i].taps / 2;
        byi_f32_conv_plan(&conv, false);
        assert_int_equal(conv.algorithm == BYI_F32_DIRECT, cases[i].direct);
    }
    unsetenv("BYOC_MAX_ISA");
}

/* With AVX2, oneDNN is faster for pointwise convolutions of few channels or of
 * half a panel, unless the epilogue has one of the functions that it computes
 * slowly; and for groups of 10 outputs or more, unless these fill panels. */
static void test_avx2_layers(void **state)
{
    static const enum byi_op_id slow_ops[] = {BYI_OP_NN_SILU, BYI_OP_SIGMOID,
                                              BYI_OP_TANH, BYI_OP_NN_GELU};
    (void)state;
    setenv("BYOC_MAX_ISA", "avx2", 1);
    if (byi_f32_kernels()->rows == 6) {
        assert_true(layer_pays(64, 1, 1, BYI_OP_CLIP));
        assert_false(layer_pays(40, 1, 1, BYI_OP_CLIP));
        assert_false(layer_pays(16, 1, 1, BYI_OP_CLIP));
        assert_true(layer_pays(64, 64, 3, BYI_OP_CLIP));
        assert_false(layer_pays(60, 3, 3, BYI_OP_CLIP));
        for (int64_t group_channels = 2; group_channels < 8; group_channels++)
            assert_true(layer_pays(30 * group_channels, 30, 3, BYI_OP_CLIP));
        for (size_t i = 0; i < BYI_COUNT(slow_ops); i++) {
            assert_true(layer_pays(40, 1, 1, slow_ops[i]));
            assert_true(layer_pays(64, 64, 3, slow_ops[i]));
        }
    }
    unsetenv("BYOC_MAX_ISA");
}

/* Copies of x for the blocked kernels have several positions between the lines
 * of an image. Tiles may begin at these positions too. */
static void wide_windows(void)
{
    for (int64_t in = 20; in < 22; in++) {
        struct conv_case c = {.threads = 1};
        c.conv = (struct byi_f32_conv){.images = 1,
                                       .channels = 32,
                                       .outputs = 16,
                                       .groups = 1,
                                       .in = {1, 33, in},
                                       .out = {1, 30, in - 3},
                                       .size = {1, 4, 4},
                                       .stride = {1, 1, 1},
                                       .dilation = {1, 1, 1},
                                       .type = BYI_F32_BF16};
        byi_f32_conv_plan(&c.conv, false);
        open_case(&c);
        check_case(&c, NULL, bound_of(&c.conv));
        close_case(&c);
    }
}

static void test_wide_windows(void **state)
{
    (void)state;
    with_each_isa(wide_windows);
}

/* Depthwise windows of more taps than other algorithms have pointers for. */
static void long_depthwise_windows(void)
{
    struct conv_case c = {.threads = 2};
    c.conv = (struct byi_f32_conv){.images = 2,
                                   .channels = 48,
                                   .outputs = 48,
                                   .groups = 48,
                                   .in = {1, 1, 200},
                                   .out = {1, 1, 200},
                                   .size = {1, 1, 200},
                                   .stride = {1, 1, 1},
                                   .pad = {0, 0, 199},
                                   .dilation = {1, 1, 1}};
    byi_f32_conv_plan(&c.conv, false);
    assert_true(byi_f32_conv_pays(&c.conv));
    open_case(&c);
    check_case(&c, NULL, bound_of(&c.conv));
    close_case(&c);
}

static void test_long_depthwise(void **state)
{
    (void)state;
    with_each_f32_kernels(long_depthwise_windows);
}

static void test_infinity(void **state)
{
    (void)state;
    with_each_isa(keeps_infinity);
}

/* A vector's product is split where reading the weights takes longer than to
 * start a thread. */
static void test_team(void **state)
{
    (void)state;
    const struct byi_f32_conv large = {.images = 1,
                                       .in = {1, 1, 1},
                                       .out = {1, 1, 1},
                                       .channels = 256,
                                       .outputs = 768,
                                       .groups = 1,
                                       .size = {1, 1, 1}};
    struct byi_f32_conv small = large, square = large;
    small.outputs = 128;
    square.outputs = 256;
    assert_int_equal(byi_f32_conv_team(&large, 2), 2);
    assert_int_equal(byi_f32_conv_team(&square, 2), 2);
    assert_int_equal(byi_f32_conv_team(&small, 2), 1);
}

/* Planes pay if tiles are full, can store a part of a panel, or multiply half
 * of one in half the time, and no blocks multiply narrow numbers. */
static void planes_pay(void)
{
    struct byi_f32_conv conv = three_by_three(1, 64, 3, 3);
    assert_true(byi_f32_planar_suits(&conv));
    assert_false(byi_f32_planar_pays(&conv));
    conv.outputs = 8;
    assert_int_equal(byi_f32_planar_pays(&conv),
                     byi_f32_kernels()->partial == 1 && byi_isa_halves_512());
    conv.outputs = 16;
    assert_true(byi_f32_planar_pays(&conv));
    conv.type = BYI_F32_BF16;
    assert_true(byi_f32_planar_suits(&conv));
    assert_int_equal(byi_f32_planar_pays(&conv), !byi_i8_kernels()->block);
    conv.type = BYI_F32_WIDE;
    conv.outputs = 24;
    assert_int_equal(byi_f32_planar_pays(&conv),
                     byi_f32_kernels()->partial > 0);
    conv.channels = 5;
    assert_false(byi_f32_planar_suits(&conv));
}

static void test_planes(void **state)
{
    (void)state;
    with_each_isa(planes_pay);
}

/* Winograd's algorithm also pays for few outputs, except with few channels on
 * AVX-512, whose vectors would be mostly empty. With still fewer outputs, the
 * algorithm that shifts the sums of the taps pays. */
static void few_outputs(void)
{
    const enum byi_f32_algorithm narrow_algorithm =
        byi_f32_kernels()->rows > 6 ? BYI_F32_DIRECT : BYI_F32_WINOGRAD_4;
    const struct {
        int64_t channels, outputs, size;
        enum byi_f32_algorithm algorithm;
    } rows[] = {
        {32, 15, 3, BYI_F32_WINOGRAD_4}, {32, 8, 3, BYI_F32_WINOGRAD_4},
        {16, 8, 3, narrow_algorithm},    {32, 5, 3, BYI_F32_SHIFTED},
        {16, 1, 3, BYI_F32_SHIFTED},     {15, 1, 7, BYI_F32_DIRECT},
        {16, 3, 9, BYI_F32_SHIFTED},     {16, 8, 9, BYI_F32_DIRECT},
    };
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        struct byi_f32_conv conv =
            three_by_three(1, 28, rows[i].channels, rows[i].outputs);
        for (int axis = 1; axis < BYI_F32_AXES; axis++) {
            conv.size[axis] = rows[i].size;
            conv.pad[axis] = rows[i].size / 2;
        }
        byi_f32_conv_plan(&conv, false);
        assert_int_equal(conv.algorithm, rows[i].algorithm);
    }
}

static void test_few_outputs(void **state)
{
    (void)state;
    with_each_f32_kernels(few_outputs);
}

static void test_nan(void **state)
{
    (void)state;
    with_each_f32_kernels(keeps_nan);
}

/* An infinity in a channel reaches the results of its group only, if the
 * convolution is exact. */
static void keeps_groups_apart(void)
{
    struct conv_case c = {.threads = 1};
    c.conv = three_by_three(1, 7, 32, 16);
    c.conv.groups = 8;
    byi_f32_conv_plan(&c.conv, true);
    open_case(&c);
    c.x[24 * 32 + 5] = INFINITY; /* of group 1, in the middle */
    run_case(&c, 1);
    for (int64_t i = 0; i < positions_of(&c.conv) * 16; i++)
        assert_true(isfinite(c.y[i]) || i % 16 / 2 == 1);
    assert_true(!isfinite(c.y[24 * 16 + 2]));
    close_case(&c);
}

static void test_groups(void **state)
{
    (void)state;
    with_each_f32_kernels(keeps_groups_apart);
}

/* Which kernel a transposed convolution of stride 2 along two axes, or along
 * the last one, has, and whether it is faster than oneDNN's. */
static void transposed_layers(void)
{
    static const struct {
        int64_t channels, outputs, groups, size;
        bool line;
        enum byi_f32_algorithm algorithm;
        bool pays;
    } layers[] = {
        {12, 24, 4, 3, false, BYI_F32_TRANSPOSED, true},
        {8, 64, 1, 2, false, BYI_F32_TRANSPOSED, true},
        {64, 64, 64, 4, false, BYI_F32_TRANSPOSED, true},
        {64, 64, 64, 4, true, BYI_F32_TRANSPOSED, true},
        {16, 16, 4, 8, true, BYI_F32_TRANSPOSED, false},
        {64, 3, 1, 4, false, BYI_F32_SPREAD, true},
        {8, 8, 2, 2, true, BYI_F32_SPREAD, true},
        {1, 1, 1, 8, true, BYI_F32_SPREAD, false},
    };
    for (size_t i = 0; i < BYI_COUNT(layers); i++) {
        const int64_t lines = layers[i].line ? 1 : 20;
        struct byi_f32_conv conv = {
            .images = 1,
            .in = {1, lines, 20},
            .out = {1, layers[i].line ? 1 : 38 + layers[i].size,
                    38 + layers[i].size},
            .channels = layers[i].channels,
            .outputs = layers[i].outputs,
            .groups = layers[i].groups,
            .transposed = true,
            .size = {1, layers[i].line ? 1 : layers[i].size, layers[i].size},
            .stride = {1, layers[i].line ? 1 : 2, 2},
            .dilation = {1, 1, 1}};
        byi_f32_conv_plan(&conv, false);
        assert_int_equal(conv.algorithm, layers[i].algorithm);
        assert_int_equal(byi_f32_conv_pays(&conv), layers[i].pays);
    }
}

static void test_transposed(void **state)
{
    (void)state;
    with_each_f32_kernels(transposed_layers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_wide_windows),
        cmocka_unit_test(test_long_depthwise),
        cmocka_unit_test(test_infinity),
        cmocka_unit_test(test_bf16_layers),
        cmocka_unit_test(test_avx2_layers),
        cmocka_unit_test(test_avx2_lines),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_scales_narrow),
        cmocka_unit_test(test_team),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_few_outputs),
        cmocka_unit_test(test_transposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
