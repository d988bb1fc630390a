/* SPDX-License-Identifier: Apache-2.0 */
/* f32.c: the float32 kernels of kernels/ on layers of common networks: time,
 * GFLOP/s in terms of direct convolution, and the share of the peak of fused
 * multiply-adds, which is measured before and after each layer. "Cold" is the
 * share when the weights come from memory, as in a network.
 *
 *     [BYOC_MAX_ISA=sse2|avx2] build/f32 [THREADS]
 */
#include "kernels/conv.h"

#include "core/base/isa.h"
#include "runtime/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the peak ---------------------------------------------------------------
 */

enum { CHAINS = 12, ROUNDS = 20000 };
enum { COLD = 64 << 20 }; /* bytes of weights that fit no cache */

/* CHAINS independent sums of products, all in registers. */
#define PEAK(name, lanes, options)                                             \
    typedef float name##_vec __attribute__((vector_size(4 * (lanes))));        \
    __attribute__((noinline, optimize("O3"))) options static float name(       \
        float x)                                                               \
    {                                                                          \
        name##_vec sum[CHAINS], a = x - (name##_vec){0};                       \
        for (int i = 0; i < CHAINS; i++)                                       \
            sum[i] = a + (float)i;                                             \
        for (int r = 0; r < ROUNDS; r++) {                                     \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum[i] = \
                sum[i] * a + a;                                                \
        }                                                                      \
        for (int i = 1; i < CHAINS; i++)                                       \
            sum[0] += sum[i];                                                  \
        return sum[0][0];                                                      \
    }
PEAK(peak_base, 4, )
#if defined(__x86_64__)
PEAK(peak_avx2, 8, __attribute__((target("avx2,fma"))))
PEAK(peak_avx512, 16, __attribute__((target("avx512f,fma"))))
#endif

/* FLOP/s of one core */
static double measure_peak(void)
{
    static volatile float sink, one = 0.5f;
    double least = 1e9, lanes = 4;
    for (int i = 0; i < 20; i++) {
        const double began = now();
#if defined(__x86_64__)
        const enum byi_isa isa = byi_isa_widest();
        lanes = isa >= BYI_ISA_AVX512 ? 16 : isa >= BYI_ISA_AVX2 ? 8 : 4;
        sink = lanes == 16  ? peak_avx512(one)
               : lanes == 8 ? peak_avx2(one)
                            : peak_base(one);
#else
        sink = peak_base(one);
#endif
        const double time = now() - began;
        least = time < least ? time : least;
    }
    (void)sink;
    return 2.0 * lanes * CHAINS * ROUNDS / least;
}

/* --- layers -----------------------------------------------------------------
 */

static const struct {
    int64_t images, map, channels, outputs, size, stride; /* outputs 0:
                                                             depthwise */
} layers[] = {
    {1, 224, 64, 64, 3, 1},    {1, 112, 64, 64, 3, 1},
    {1, 56, 64, 64, 3, 1},     {1, 56, 256, 256, 3, 1},
    {1, 35, 96, 96, 3, 1},     {1, 28, 128, 128, 3, 1},
    {1, 28, 512, 512, 3, 1},   {1, 14, 256, 256, 3, 1},
    {1, 14, 512, 512, 3, 1},   {1, 7, 512, 512, 3, 1},
    {1, 14, 128, 32, 3, 1},    {1, 56, 128, 128, 3, 2},
    {1, 56, 64, 64, 5, 1},     {1, 56, 64, 256, 1, 1},
    {1, 28, 512, 128, 1, 1},   {1, 14, 1024, 256, 1, 1},
    {1, 7, 2048, 512, 1, 1},   {128, 1, 768, 768, 1, 1},
    {128, 1, 768, 3072, 1, 1}, {128, 1, 3072, 768, 1, 1},
    {197, 1, 768, 2304, 1, 1}, {197, 1, 3072, 768, 1, 1},
    {1, 1, 512, 1000, 1, 1},   {1, 112, 32, 0, 3, 1},
    {1, 28, 240, 0, 5, 1},     {1, 14, 480, 0, 9, 1},
};

static float *numbers(int64_t n)
{
    float *at = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = (float)(i * 7919 % 2003) / 1001 - 1;
    return at;
}

/* The least time of a run, each with the next of `sets` packed weights, which
 * lie `each` elements apart. */
static double least_time(struct byi_f32_conv_run *run, int64_t each,
                         int64_t sets)
{
    const float *first = run->weights;
    double least = 1e9;
    const double until = now() + 0.15;
    for (int64_t n = 0; n < 5 || now() < until; n++) {
        run->weights = first + n % sets * each;
        const double began = now();
        byi_f32_conv_run(run);
        const double time = now() - began;
        least = time < least ? time : least;
    }
    run->weights = first;
    return least;
}

/* Run the layer; `algorithm` BYI_F32_NONE: as planned. */
static void measure(size_t i, enum byi_f32_algorithm algorithm, int threads)
{
    const int64_t out =
        (layers[i].map + layers[i].size / 2 * 2 - layers[i].size) /
            layers[i].stride +
        1;
    struct byi_f32_conv conv = {
        .images = layers[i].images,
        .in = {layers[i].map, layers[i].map},
        .out = {out, out},
        .channels = layers[i].channels,
        .outputs = layers[i].outputs ? layers[i].outputs : layers[i].channels,
        .depthwise = layers[i].outputs == 0,
        .size = {layers[i].size, layers[i].size},
        .stride = {layers[i].stride, layers[i].stride},
        .dilation = {1, 1},
        .pad = {layers[i].size / 2, layers[i].size / 2},
    };
    byi_f32_conv_plan(&conv, false);
    if (conv.depthwise)
        conv.algorithm = BYI_F32_DEPTHWISE;
    else if (algorithm)
        conv.algorithm = algorithm;
    if (!algorithm && (conv.depthwise || conv.algorithm <= BYI_F32_DIRECT))
        return;
    const int64_t taps = conv.size[0] * conv.size[1];
    const int64_t each = conv.depthwise ? 1 : conv.channels;
    const int64_t strides[4] = {each * taps, taps, conv.size[1], 1};
    const int64_t results = conv.images * out * out * conv.outputs;
    float *weights = numbers(conv.outputs * each * taps);
    const int64_t set = (int64_t)(byi_f32_conv_packed(&conv) + 63) / 64 * 16;
    const int64_t sets = COLD / (4 * set) + 2; /* of weights */
    float *packed = numbers(set * sets);
    struct byi_f32_conv_run run = {
        .conv = &conv,
        .x = numbers(conv.images * conv.in[0] * conv.in[1] * conv.channels),
        .weights = packed,
        .y = numbers(results),
        .scratch = numbers((int64_t)byi_f32_conv_scratch(&conv, threads) / 4),
        .threads = threads};
    for (int64_t n = 0; n < sets; n++)
        byi_f32_conv_pack(&conv, weights, strides, packed + n * set);
    double peak = measure_peak();
    const double least = least_time(&run, 0, 1);
    const double cold = least_time(&run, set, sets);
    const double after = measure_peak();
    peak = (after > peak ? after : peak) * threads;
    const double work = 2.0 * (double)(results * each * taps);
    printf("%-20s %4lld x %3lld^2 %5lld -> %4lld  %lld x %lld /%lld %9.3f ms "
           "%7.1f GFLOP/s %5.0f%%, cold %5.0f%%\n",
           byi_f32_conv_name(&conv), (long long)conv.images,
           (long long)conv.in[0], (long long)conv.channels,
           (long long)conv.outputs, (long long)conv.size[0],
           (long long)conv.size[1], (long long)conv.stride[0], 1e3 * least,
           1e-9 * work / least, 100 * work / least / peak,
           100 * work / cold / peak);
    free((void *)(uintptr_t)run.x);
    free(weights);
    free(packed);
    free(run.y);
    free(run.scratch);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    struct byoc_error err;
    if (threads < 1 || byi_isa_check(&err) != BYOC_OK)
        return fprintf(stderr, "usage: f32 [THREADS]; BYOC_MAX_ISA limits the "
                               "instruction set\n"),
               2;
    struct byi_turn turn;
    const struct byi_ways ways = {.threads =
                                      byi_workers_reserve((uint32_t)threads),
                                  .spin_ns = BYI_SPIN_NS};
    byi_workers_enter(&turn, &ways);
    printf("peak %.1f GFLOP/s of one core\n", 1e-9 * measure_peak());
    for (size_t i = 0; i < BYI_COUNT(layers); i++) {
        measure(i, BYI_F32_DIRECT, threads);
        measure(i, BYI_F32_NONE, threads);
    }
    byi_workers_leave(&turn);
    return 0;
}
