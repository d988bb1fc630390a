/* SPDX-License-Identifier: Apache-2.0 */
/* i8_test.c: tests the 8-bit kernels of kernels/i8.h, under every instruction
 * set of the machine, against plain sums. Uses random shapes, types, zero
 * points and epilogues, any number of threads. Every byte of the results must
 * be equal, and no other byte of memory may change.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/i8.h"
#include "tests/share.h"

#include <cmocka.h>

#include "random.h"

/* n random bytes at the end of a block, so that sanitizers find reads past
 * them. */
static uint8_t *random_bytes(int64_t n)
{
    uint8_t *at = malloc((size_t)n);
    for (int64_t i = 0; i < n; i++)
        at[i] = (uint8_t)draw(256);
    return at;
}

static void *allocate(uint64_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(at, 0xa5, (bytes + 127) / 64 * 64);
    return at;
}

enum { GUARD = 64 };

/* A convolution with all its arguments. */
struct i8_case {
    struct byi_i8_conv conv;
    struct byi_i8_weights weights;
    struct byi_i8_conv_run run;
    uint8_t *y; /* followed by GUARD bytes */
    int64_t results;
};

static int64_t volume(const int64_t dims[BYI_I8_AXES])
{
    return dims[0] * dims[1] * dims[2];
}

static int64_t size_of(const struct i8_case *c)
{
    return c->conv.result >= BYI_I8_QUANTIZED ? 1 : 4;
}

/* --- the reference -------------------------------------------------------- */

static int32_t value(bool is_signed, uint8_t v)
{
    return is_signed ? (int8_t)v : v;
}

static int32_t sum_at(const struct i8_case *c, int64_t row, int64_t o)
{
    const struct byi_i8_conv *v = &c->conv;
    const int64_t inner = v->channels / v->groups;
    const int64_t group = o / (v->outputs / v->groups);
    const int64_t out[3] = {row / v->out[2] / v->out[1] % v->out[0],
                            row / v->out[2] % v->out[1], row % v->out[2]};
    const int64_t image = row / volume(v->out);
    const uint8_t *x = c->run.x;
    const uint8_t wz =
        c->weights.zeros ? c->weights.zeros[o * c->weights.zero_step] : 0;
    uint32_t sum =
        c->run.bias ? (uint32_t)c->run.bias[o * c->run.bias_step] : 0;
    for (int64_t t = 0; t < volume(v->size); t++) {
        const int64_t tap[3] = {t / v->size[2] / v->size[1],
                                t / v->size[2] % v->size[1], t % v->size[2]};
        int64_t at = image;
        bool inside = true;
        for (int i = 0; i < 3; i++) {
            const int64_t p =
                out[i] * v->stride[i] - v->pad[i] + tap[i] * v->dilation[i];
            inside = inside && p >= 0 && p < v->in[i];
            at = at * v->in[i] + p;
        }
        for (int64_t k = 0; inside && k < inner; k++) {
            const int64_t *strides = c->weights.strides;
            const uint8_t w =
                c->weights
                    .at[o * strides[0] + k * strides[1] + tap[0] * strides[2] +
                        tap[1] * strides[3] + tap[2] * strides[4]];
            const int32_t a =
                value(v->x_signed, x[at * v->channels + group * inner + k]) -
                value(v->x_signed, c->run.x_zero);
            const int32_t b = value(v->w_signed, w) - value(v->w_signed, wz);
            sum += (uint32_t)(a * b);
        }
    }
    return (int32_t)sum;
}

/* The functions of an activation: y = |y - p0|, and y = y < p0 ? y : p1 y. */
static float fold(float y, float p0, float p1)
{
    (void)p1;
    return fabsf(y - p0);
}

static float bend(float y, float p0, float p1)
{
    return y < p0 ? y : p1 * y;
}

static void fold_block(const struct byi_f32_block *b, float p0, float p1)
{
    for (int64_t i = 0; i < b->rows * b->n; i++) {
        float *y = b->y + i / b->n * b->ld + i % b->n;
        *y = fold(*y, p0, p1);
    }
}

static void bend_block(const struct byi_f32_block *b, float p0, float p1)
{
    for (int64_t i = 0; i < b->rows * b->n; i++) {
        float *y = b->y + i / b->n * b->ld + i % b->n;
        *y = bend(*y, p0, p1);
    }
}

static const struct byi_i8_activation activation = {
    .functions = {{fold_block, -1.5f, 0}, {bend_block, 2, 0.25f}},
    .n = 2,
    .scale = 0.0625f};

/* The bytes of result (row, column). */
static void result_at(const struct i8_case *c, int64_t row, int64_t column,
                      uint8_t to[4])
{
    const int32_t sum = sum_at(c, row, column);
    if (c->conv.result == BYI_I8_SUMS) {
        memcpy(to, &sum, sizeof sum);
        return;
    }
    float v = (float)sum * c->run.scale[column * c->run.scale_step];
    if (c->conv.result == BYI_I8_FLOATS) {
        memcpy(to, &v, sizeof v);
        return;
    }
    if (c->conv.result == BYI_I8_ACTIVATED)
        v = bend(fold(v, -1.5f, 0), 2, 0.25f) / activation.scale;
    v = v > c->run.low ? v : c->run.low;
    v = v < c->run.high ? v : c->run.high;
    to[0] = (uint8_t)((int32_t)rintf(v) + c->run.zero);
    if (c->conv.result != BYI_I8_ADDED)
        return;
    const struct byi_i8_summand *o = &c->run.summand;
    const int32_t b =
        (o->at[row * c->conv.outputs + column] ^ o->flip) - o->b_zero;
    const volatile float q = rintf(v) * o->q_scale,
                         addend = (float)b * o->b_scale;
    const volatile float combined = q + addend;
    v = combined / o->scale;
    v = v > o->low ? v : o->low;
    v = v < o->high ? v : o->high;
    to[0] = (uint8_t)((int32_t)rintf(v) + o->zero);
}

/* --- cases ---------------------------------------------------------------- */

static void choose_axis(struct byi_i8_conv *v, int i, int64_t max_size)
{
    v->in[i] = 1 + draw((uint32_t)max_size);
    v->size[i] = 1 + draw(max_size < 4 ? (uint32_t)max_size : 4);
    v->stride[i] = 1 + draw(3);
    v->dilation[i] = 1 + draw(2);
    v->pad[i] = draw((uint32_t)v->size[i] + 1);
    const int64_t reach = (v->size[i] - 1) * v->dilation[i] + 1;
    const int64_t last_start = v->in[i] + v->pad[i] + (int64_t)draw(3) - reach;
    v->out[i] = last_start < 0 ? 1 : last_start / v->stride[i] + 1;
}

static void choose_shape(struct byi_i8_conv *v)
{
    static const int64_t groups[] = {1, 1, 1, 2, 3};
    *v = (struct byi_i8_conv){.images = 1 + draw(2)};
    for (int i = 0; i < BYI_I8_AXES; i++)
        choose_axis(v, i, i == 0 && draw(6) ? 1 : 9);
    v->groups = groups[draw(5)];
    v->channels = v->groups * (1 + draw(draw(2) ? 40 : 8));
    v->outputs = v->groups * (1 + draw(70));
    if (draw(3) == 0) /* depthwise */
        v->groups = v->channels = v->outputs = 2 + draw(40);
    if (draw(4) == 0) /* a product */
        for (int i = 0; i < BYI_I8_AXES; i++) {
            v->in[i] = v->out[i] = v->size[i] = v->stride[i] = 1;
            v->pad[i] = 0;
            v->images = 1 + draw(40);
        }
    v->x_signed = draw(2);
    v->w_signed = draw(2);
    v->centred = v->w_signed && draw(2);
    static const enum byi_i8_result results[] = {BYI_I8_SUMS, BYI_I8_FLOATS,
                                                 BYI_I8_QUANTIZED, BYI_I8_ADDED,
                                                 BYI_I8_ACTIVATED};
    v->result = results[draw(BYI_COUNT(results))];
}

/* Weights of any size, or so small that products of bytes are exact. */
static void choose_weights(struct i8_case *c)
{
    const struct byi_i8_conv *v = &c->conv;
    const int64_t inner = v->channels / v->groups, taps = volume(v->size);
    const int64_t n = v->outputs * inner * taps;
    const bool channels_last = draw(2), small = draw(2), single = draw(2);
    uint8_t *at = random_bytes(n), *zeros = random_bytes(v->outputs);
    for (int64_t i = 0; small && i < n; i++)
        at[i] = (uint8_t)((v->w_signed ? 0 : 64) + (int)draw(128) - 64);
    for (int64_t i = 0; small && i < v->outputs; i++)
        zeros[i] = v->w_signed ? 0 : 64;
    c->weights = (struct byi_i8_weights){
        .at = at, .zeros = v->centred ? NULL : zeros, .zero_step = !single};
    if (v->centred)
        free(zeros);
    const int64_t tap_stride = channels_last ? inner : 1;
    const int64_t strides[] = {inner * taps, channels_last ? 1 : taps,
                               v->size[1] * v->size[2] * tap_stride,
                               v->size[2] * tap_stride, tap_stride};
    memcpy(c->weights.strides, strides, sizeof strides);
}

/* The second summand of an addition behind the convolution. */
static struct byi_i8_summand choose_summand(int64_t results)
{
    const int32_t zero = (int32_t)draw(256) - (draw(2) ? 128 : 0);
    const int32_t lowest = draw(2) ? -128 : 0;
    return (struct byi_i8_summand){
        .at = random_bytes(results),
        .flip = (uint8_t)(draw(2) ? 0x80 : 0),
        .b_zero = (int32_t)draw(256),
        .q_scale = (float)(1 + draw(100)) / 777,
        .b_scale = (float)(1 + draw(100)) / 999,
        .scale = (float)(1 + draw(100)) / 555,
        .low = (float)(lowest + (int)draw(20) - zero),
        .high = (float)(lowest + 255 - (int)draw(20) - zero),
        .zero = zero};
}

/* Results as after a ReLU: all bytes of the type from 0 on. Kernels scale sums
 * another way then, unless a bias or a scale is too large. */
static void make_rectified(struct byi_i8_conv_run *run, int32_t *bias,
                           float *scale)
{
    static const int32_t biases[] = {1 << 23, -(1 << 30), (1 << 30), 8380000};
    static const float scales[] = {0, -1, 1e-3f, 1e30f, 1};
    run->low = 0;
    run->high = 255 - (float)draw(3) / 4;
    run->zero = draw(2) ? -128 : 0;
    if (draw(3) == 0)
        bias[0] = biases[draw(4)];
    if (draw(3) == 0)
        scale[0] = scales[draw(5)];
}

static void open_case(struct i8_case *c)
{
    struct byi_i8_conv *v = &c->conv;
    const int64_t sums = v->channels / v->groups * volume(v->size);
    choose_weights(c);
    byi_i8_conv_plan(v);
    c->results = v->images * volume(v->out) * v->outputs;
    int32_t *bias = allocate((uint64_t)v->outputs * 4);
    float *scale = allocate((uint64_t)v->outputs * 4);
    for (int64_t i = 0; i < v->outputs; i++) {
        bias[i] = (int32_t)draw(20001) - 10000;
        scale[i] = (float)(1 + draw(1000)) / 1000 / (float)sums / 10;
    }
    void *packed = allocate(byi_i8_conv_packed(v));
    byi_i8_conv_pack(v, &c->weights, packed);
    const bool is_signed = draw(2);
    const int32_t zero = (int32_t)draw(256) - (is_signed ? 128 : 0);
    const int threads = 1 + (int)draw(3);
    c->run = (struct byi_i8_conv_run){
        .conv = v,
        .x = random_bytes(v->images * volume(v->in) * v->channels),
        .packed = packed,
        .x_zero = (uint8_t)draw(256),
        .bias = bias,
        .scale = scale,
        .bias_step = draw(2),
        .scale_step = draw(2),
        .zero = zero,
        .low = (float)((is_signed ? -128 : 0) + (int)draw(20) - zero),
        .high = (float)((is_signed ? 127 : 255) - (int)draw(20) - zero),
        .summand = choose_summand(c->results),
        .activation = &activation,
        .scratch = allocate(byi_i8_conv_scratch(v, threads)),
        .threads = threads};
    if (draw(2))
        make_rectified(&c->run, bias, scale);
    c->y = allocate((uint64_t)(c->results * size_of(c) + GUARD));
    c->run.y = c->y;
}

static void close_case(struct i8_case *c)
{
    free((void *)(uintptr_t)c->weights.at);
    free((void *)(uintptr_t)c->weights.zeros);
    free((void *)(uintptr_t)c->run.x);
    free((void *)(uintptr_t)c->run.packed);
    free((void *)(uintptr_t)c->run.bias);
    free((void *)(uintptr_t)c->run.scale);
    free((void *)(uintptr_t)c->run.summand.at);
    free(c->run.scratch);
    free(c->y);
}

static void check_case(const struct i8_case *c)
{
    const struct byi_i8_conv *v = &c->conv;
    const int64_t size = size_of(c);
    byi_i8_conv_run(&c->run);
    for (int64_t at = 0; at < c->results; at++) {
        uint8_t expected[4] = {0};
        result_at(c, at / v->outputs, at % v->outputs, expected);
        if (memcmp(c->y + at * size, expected, (size_t)size) != 0)
            fail_msg("%s: %lld images of %lld x %lld x %lld x %lld -> %lld in "
                     "%lld groups, window %lld x %lld x %lld: element %lld "
                     "differs",
                     byi_i8_conv_name(v), (long long)v->images,
                     (long long)v->in[0], (long long)v->in[1],
                     (long long)v->in[2], (long long)v->channels,
                     (long long)v->outputs, (long long)v->groups,
                     (long long)v->size[0], (long long)v->size[1],
                     (long long)v->size[2], (long long)at);
    }
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(c->y[c->results * size + i], 0xa5);
}

/* Run `body` under every instruction set that the machine has. */
static void with_each_isa(void (*body)(void))
{
    const struct byi_i8_kernels *previous = NULL;
    for (int i = 0; i < BYI_N_ISAS; i++) {
        setenv("BYOC_MAX_ISA", byi_isa_name((enum byi_isa)i), 1);
        if (byi_i8_kernels() != previous)
            body();
        previous = byi_i8_kernels();
    }
    unsetenv("BYOC_MAX_ISA");
}

static void run_random(void)
{
    seed = 18;
    for (int i = 0; i < test_share_of(400); i++) {
        struct i8_case c;
        choose_shape(&c.conv);
        open_case(&c);
        check_case(&c);
        close_case(&c);
    }
}

/* Shapes of Winograd's algorithm: whole and partial tiles, weights of any size.
 */
static void run_winograd(void)
{
    seed = 43;
    for (int i = 0; i < test_share_of(24); i++) {
        struct i8_case c;
        struct byi_i8_conv *v = &c.conv;
        choose_shape(v);
        v->images = 1 + draw(2);
        v->groups = 1;
        v->channels = 32 * (1 + draw(2));
        v->outputs = 32 * (1 + draw(2));
        v->w_signed = v->centred = true;
        for (int k = 0; k < BYI_I8_AXES; k++) {
            v->stride[k] = v->dilation[k] = 1;
            v->size[k] = k ? 3 : 1;
            v->pad[k] = k ? draw(3) : 0;
            v->in[k] = k ? 11 + draw(19) : 1;
            v->out[k] = k ? v->in[k] + v->pad[k] - 2 + draw(2) : 1;
        }
        open_case(&c);
        const int64_t min_size = v->kernels->bytes == BYI_I8_ALWAYS ? 20 : 12;
        assert_int_equal(v->winograd, !v->blocks && v->out[1] >= min_size &&
                                          v->out[2] >= min_size);
        if (draw(3) == 0) { /* the largest sums */
            memset((void *)(uintptr_t)c.weights.at, draw(2) ? 127 : -128,
                   (size_t)(v->channels * v->outputs * 9));
            memset((void *)(uintptr_t)c.run.x, draw(2) ? 255 : 0,
                   (size_t)(v->images * volume(v->in) * v->channels));
            byi_i8_conv_pack(v, &c.weights, (void *)(uintptr_t)c.run.packed);
        }
        check_case(&c);
        close_case(&c);
    }
}

/* Depthwise shapes of the kernels for strips: any number of channels, one or
 * two rows at a time, activated or not. */
static void run_strips(void)
{
    seed = 44;
    for (int i = 0; i < test_share_of(200); i++) {
        struct i8_case c;
        struct byi_i8_conv *v = &c.conv;
        choose_shape(v);
        v->groups = v->channels = v->outputs = 2 + draw(150);
        v->w_signed = draw(4) > 0;
        v->centred = v->w_signed && draw(4) > 0;
        v->result = draw(2) ? BYI_I8_QUANTIZED : BYI_I8_ACTIVATED;
        const int64_t stride = 1 + draw(2);
        const bool is_wide = draw(10) == 0; /* more columns than a buffer */
        if (is_wide)
            v->groups = v->channels = v->outputs = 2 + draw(20);
        for (int k = 0; k < BYI_I8_AXES; k++) {
            v->dilation[k] = 1;
            v->stride[k] = k ? stride : 1;
            v->size[k] = k ? 3 : 1;
            v->pad[k] = k ? draw(3) : 0;
            v->in[k] = k ? 3 + draw(9) : 1;
            if (k == 2 && is_wide)
                v->in[k] += 128 * (1 + draw(3));
            v->out[k] =
                (v->in[k] + 2 * v->pad[k] - v->size[k]) / v->stride[k] + 1;
        }
        v->size[1] = 1 + draw(4);
        v->out[1] = (v->in[1] + 4 - v->size[1]) / stride + 1;
        open_case(&c);
        check_case(&c);
        close_case(&c);
    }
}

/* Shapes of blocks: many rows and channels, in place and gathered. */
static void run_blocks(void)
{
    seed = 45;
    for (int i = 0; i < test_share_of(120); i++) {
        struct i8_case c;
        struct byi_i8_conv *v = &c.conv;
        choose_shape(v);
        v->groups = 1 + (draw(4) == 0);
        v->channels = v->groups * (draw(2) ? 4 * (1 + draw(60)) : 1 + draw(90));
        v->outputs = v->groups * (1 + draw(draw(2) ? 20 : 100));
        v->w_signed = v->centred = true;
        const bool pointwise = draw(2);
        for (int k = 0; k < BYI_I8_AXES; k++) {
            v->size[k] = k && !pointwise ? 1 + draw(3) : 1;
            v->stride[k] = k && !pointwise ? 1 + draw(2) : 1;
            v->dilation[k] = k && !pointwise ? 1 + (draw(4) == 0) : 1;
            v->pad[k] = k && !pointwise ? draw(2) : 0;
            v->in[k] = k ? 5 + draw(pointwise ? 10 : 14) : 1;
            const int64_t reach = (v->size[k] - 1) * v->dilation[k];
            v->out[k] =
                (v->in[k] + 2 * v->pad[k] - reach - 1) / v->stride[k] + 1;
        }
        open_case(&c);
        assert_int_equal(v->blocks,
                         v->kernels->block_bytes && !v->depthwise &&
                             v->images * volume(v->out) >= BYI_I8_BLOCK);
        check_case(&c);
        close_case(&c);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    with_each_isa(run_blocks);
}

static void test_strips(void **state)
{
    (void)state;
    with_each_isa(run_strips);
}

static void test_winograd(void **state)
{
    (void)state;
    with_each_isa(run_winograd);
}

static void test_random(void **state)
{
    (void)state;
    with_each_isa(run_random);
}

/* --- packing -------------------------------------------------------------- */

static struct byi_i8_conv product(int64_t k, int64_t n)
{
    return (struct byi_i8_conv){.images = 3,
                                .in = {1, 1, 1},
                                .out = {1, 1, 1},
                                .channels = k,
                                .outputs = n,
                                .groups = 1,
                                .size = {1, 1, 1},
                                .stride = {1, 1, 1},
                                .dilation = {1, 1, 1},
                                .w_signed = true,
                                .centred = true};
}

/* Sums of the largest x times the largest weights must be exact, although the
 * instructions for pairs of bytes saturate with such weights. */
static void run_extremes(void)
{
    static const int8_t extremes[] = {127, -128, 64, -64, 65, 1};
    for (size_t i = 0; i < sizeof extremes; i++) {
        struct i8_case c = {.conv = product(37, 33)};
        open_case(&c);
        memset((void *)(uintptr_t)c.weights.at, extremes[i], 37 * 33);
        memset((void *)(uintptr_t)c.run.x, 255, 3 * 37);
        byi_i8_conv_pack(&c.conv, &c.weights, (void *)(uintptr_t)c.run.packed);
        check_case(&c);
        close_case(&c);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    with_each_isa(run_extremes);
}

static void test_packs_alike(void **state)
{
    (void)state;
    struct byi_i8_conv a = product(8, 16), b = product(8, 16);
    byi_i8_conv_plan(&a);
    byi_i8_conv_plan(&b);
    b.images = 7;
    assert_true(byi_i8_conv_packs_alike(&a, &b));
    b.outputs = 17;
    assert_false(byi_i8_conv_packs_alike(&a, &b));
    b = a;
    b.w_signed = false;
    assert_false(byi_i8_conv_packs_alike(&a, &b));
    b = a;
    b.size[1] = 2;
    assert_false(byi_i8_conv_packs_alike(&a, &b));
}

/* --- two tensors ---------------------------------------------------------- */

/* Element i of the result of an operation on two tensors. */
static uint8_t element_of(const struct byi_i8_elementwise *p, int64_t i)
{
    const int32_t a = (p->a[i] ^ p->flips[0]) - p->zeros[0];
    const int32_t b = (p->b[i] ^ p->flips[1]) - p->zeros[1];
    const volatile float x = (float)a * p->scales[0],
                         z = (float)b * p->scales[1];
    const volatile float combined = p->multiplies ? x * z : x + z;
    float v = combined / p->scale;
    v = v > p->low ? v : p->low;
    v = v < p->high ? v : p->high;
    return (uint8_t)((int32_t)rintf(v) + p->zero);
}

static void run_elementwise(void)
{
    seed = 4;
    for (int i = 0; i < test_share_of(200); i++) {
        const int64_t n = 1 + draw(100);
        uint8_t *a = random_bytes(n), *b = random_bytes(n),
                *y = random_bytes(n);
        const int32_t zero = (int32_t)draw(256);
        const struct byi_i8_elementwise p = {
            .a = a,
            .b = b,
            .y = y,
            .n = n,
            .zeros = {(int32_t)draw(256), (int32_t)draw(256)},
            .flips = {draw(2) ? 0x80 : 0, draw(2) ? 0x80 : 0},
            .scales = {(float)(1 + draw(100)) / 777,
                       (float)(1 + draw(100)) / 999},
            .scale = (float)(1 + draw(100)) / 555,
            .low = (float)(0 - zero),
            .high = (float)(255 - zero) - (float)draw(9) / 4,
            .zero = zero,
            .multiplies = draw(2)};
        byi_i8_kernels()->elementwise(&p);
        for (int64_t k = 0; k < n; k++)
            assert_int_equal(y[k], element_of(&p, k));
        free(a);
        free(b);
        free(y);
    }
}

static void test_elementwise(void **state)
{
    (void)state;
    with_each_isa(run_elementwise);
}

/* Matrices of few rows, of whole blocks, and with a partial block. */
static void run_transposes(void)
{
    for (int64_t rows = 1; rows < 40; rows += rows < 5 ? 1 : 6)
        for (int64_t columns = 1; columns < 70; columns += 7) {
            uint8_t *x = random_bytes(rows * columns),
                    *y = random_bytes(rows * columns);
            byi_i8_kernels()->transpose(x, rows, columns, y);
            for (int64_t i = 0; i < rows * columns; i++)
                assert_int_equal(y[i % columns * rows + i / columns], x[i]);
            free(x);
            free(y);
        }
}

static void test_transpose(void **state)
{
    (void)state;
    with_each_isa(run_transposes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),      cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_winograd),    cmocka_unit_test(test_strips),
        cmocka_unit_test(test_extremes),    cmocka_unit_test(test_packs_alike),
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
