/* SPDX-License-Identifier: Apache-2.0 */
/* f32.c: times the float32 kernels of kernels/ on layers of common networks.
 * Prints the time, GFLOP/s (operations of direct convolution), and the share of
 * the peak of fused multiply-adds. The peak is measured before and after each
 * layer. "Cold" is the share if the weights come from memory, as in a network.
 *
 *     [BYOC_MAX_ISA=NAME] build/f32 [THREADS [float16|bfloat16]]
 *
 * If a type is given, inputs and results have it, and each layer also runs on
 * float32 data, for comparison. If the CPU lacks the instruction set that
 * BYOC_MAX_ISA names (see core/base/isa.h), the widest one below it is timed.
 * Exits with 2 for wrong arguments, or an unknown instruction set.
 */
#include "core/base/clock.h"
#include "kernels/conv.h"

#include "core/base/isa.h"
#include "runtime/internal.h"
#include "runtime/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLD_BYTES = 64 << 20 }; /* bytes of weights that exceed the caches */

/* --- layers --------------------------------------------------------------- */

static const struct {
    /* map: height and width of the input; size: of the window, or its height
     * if `width` is not 0; outputs is 0 for a depthwise convolution */
    int64_t images, map, channels, outputs, size, stride, width, groups;
} layers[] = {
    {1, 224, 64, 64, 3, 1, 0, 1},    {1, 112, 64, 64, 3, 1, 0, 1},
    {1, 56, 64, 64, 3, 1, 0, 1},     {1, 56, 256, 256, 3, 1, 0, 1},
    {1, 35, 96, 96, 3, 1, 0, 1},     {1, 28, 128, 128, 3, 1, 0, 1},
    {1, 28, 512, 512, 3, 1, 0, 1},   {1, 14, 256, 256, 3, 1, 0, 1},
    {1, 14, 512, 512, 3, 1, 0, 1},   {1, 7, 512, 512, 3, 1, 0, 1},
    {1, 14, 128, 32, 3, 1, 0, 1},    {1, 56, 128, 128, 3, 2, 0, 1},
    {1, 56, 64, 64, 5, 1, 0, 1},     {1, 56, 64, 256, 1, 1, 0, 1},
    {1, 28, 512, 128, 1, 1, 0, 1},   {1, 14, 1024, 256, 1, 1, 0, 1},
    {1, 7, 2048, 512, 1, 1, 0, 1},   {128, 1, 768, 768, 1, 1, 0, 1},
    {128, 1, 768, 3072, 1, 1, 0, 1}, {128, 1, 3072, 768, 1, 1, 0, 1},
    {197, 1, 768, 2304, 1, 1, 0, 1}, {197, 1, 3072, 768, 1, 1, 0, 1},
    {1, 1, 512, 1000, 1, 1, 0, 1},   {1, 112, 32, 0, 3, 1, 0, 1},
    {1, 28, 240, 0, 5, 1, 0, 1},     {1, 14, 480, 0, 9, 1, 0, 1},
    {1, 224, 3, 64, 7, 2, 0, 1},     {1, 112, 16, 96, 1, 1, 0, 1},
    {1, 56, 144, 0, 3, 1, 0, 1},     {1, 14, 384, 0, 3, 1, 0, 1},
    {1, 224, 3, 16, 3, 2, 0, 1},     {1, 224, 3, 24, 3, 2, 0, 1},
    {1, 224, 3, 32, 3, 2, 0, 1},     {1, 112, 32, 16, 1, 1, 0, 1},
    {1, 56, 144, 24, 1, 1, 0, 1},    {1, 28, 58, 58, 1, 1, 0, 1},
    {1, 14, 116, 116, 1, 1, 0, 1},   {1, 56, 16, 72, 1, 1, 0, 1},
    {1, 224, 32, 9, 3, 1, 0, 1},     {1, 56, 64, 4, 3, 1, 0, 1},
    {1, 35, 48, 64, 5, 1, 0, 1},     {1, 28, 16, 32, 5, 1, 0, 1},
    {1, 14, 32, 128, 5, 1, 0, 1},    {1, 7, 48, 128, 5, 1, 0, 1},
    {1, 17, 128, 128, 1, 1, 7, 1},   {1, 17, 192, 192, 7, 1, 1, 1},
    {1, 8, 384, 384, 1, 1, 3, 1},    {1, 8, 384, 384, 3, 1, 1, 1},
    {1, 28, 32, 32, 1, 1, 3, 1},     {1, 28, 32, 32, 1, 1, 5, 1},
    {1, 28, 32, 32, 1, 1, 7, 1},     {1, 28, 16, 16, 1, 1, 3, 1},
    {1, 28, 16, 64, 1, 1, 5, 1},     {1, 28, 64, 16, 1, 1, 7, 1},
    {1, 56, 64, 64, 7, 1, 1, 1},     {1, 56, 128, 128, 3, 1, 1, 1},
    {1, 224, 32, 3, 9, 1, 0, 1},     {1, 224, 64, 3, 7, 1, 0, 1},
    {1, 112, 64, 3, 3, 1, 0, 1},     {1, 112, 64, 1, 5, 1, 0, 1},
    {1, 56, 128, 128, 3, 1, 0, 32},  {1, 28, 256, 256, 3, 1, 0, 32},
    {1, 14, 512, 512, 3, 1, 0, 32},  {1, 7, 1024, 1024, 3, 1, 0, 32},
    {1, 28, 104, 104, 3, 1, 0, 13},  {1, 14, 208, 208, 3, 1, 0, 26},
    {1, 28, 240, 240, 1, 1, 0, 3},   {1, 14, 288, 288, 3, 1, 0, 12},
};

static enum byi_f32_type type; /* of inputs and results */

/* Allocate n floats between -1 and 1; the caller frees them. */
static float *new_floats(int64_t n)
{
    float *at = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = (float)(i * 7919 % 2003) / 1001 - 1;
    return at;
}

/* Round n floats at `at` to the type, in place. */
static float *narrow_in_place(float *at, int64_t n)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    for (int64_t i = 0; type && i < n; i += 64)
        kernels->narrow[type - 1](at + i, (uint16_t *)(void *)at + i,
                                  n - i < 64 ? n - i : 64);
    return at;
}

/* The shortest time of several runs in seconds. Each run uses the next of
 * `sets` copies of the packed weights, which are `set_size` elements apart. */
static double shortest_time(struct byi_f32_conv_run *run, int64_t set_size,
                            int64_t sets)
{
    const float *first = run->weights;
    double shortest = 1e9;
    const double until = byi_now() + 0.15;
    for (int64_t n = 0; n < 5 || byi_now() < until; n++) {
        run->weights = first + n % sets * set_size;
        const double start = byi_now();
        byi_f32_conv_run(run);
        const double time = byi_now() - start;
        shortest = time < shortest ? time : shortest;
    }
    run->weights = first;
    return shortest;
}

/* Time layer i and print a line: without Winograd's algorithm if `exact`,
 * otherwise with it. Prints nothing if Winograd's algorithm does not apply. */
static void measure(size_t i, bool exact, int threads)
{
    const int64_t size = layers[i].size, map = layers[i].map;
    const int64_t width = layers[i].width ? layers[i].width : size;
    const int64_t out = (map + size / 2 * 2 - size) / layers[i].stride + 1;
    struct byi_f32_conv conv = {
        .images = layers[i].images,
        .in = {1, map, map},
        .out = {1, out, out},
        .channels = layers[i].channels,
        .outputs = layers[i].outputs ? layers[i].outputs : layers[i].channels,
        .groups = layers[i].outputs ? layers[i].groups : layers[i].channels,
        .size = {1, size, width},
        .stride = {1, layers[i].stride, layers[i].stride},
        .dilation = {1, 1, 1},
        .pad = {0, size / 2, width / 2},
    };
    conv.type = type;
    conv.planar = byi_f32_planar_suits(&conv);
    byi_f32_conv_plan(&conv, exact);
    if (!exact &&
        (conv.algorithm == BYI_F32_DIRECT || conv.algorithm == BYI_F32_PLANAR ||
         conv.algorithm == BYI_F32_DEPTHWISE ||
         conv.algorithm == BYI_F32_SHIFTED))
        return;
    const int64_t taps = byi_f32_product_of(conv.size);
    const int64_t group_channels = conv.channels / conv.groups;
    const int64_t inputs =
        conv.images * byi_f32_product_of(conv.in) * conv.channels;
    const int64_t results = conv.images * out * out * conv.outputs;
    float *weights = new_floats(conv.outputs * group_channels * taps);
    const struct byi_f32_weights from = {.at = weights,
                                         .group = conv.outputs / conv.groups *
                                                  group_channels * taps,
                                         .output = group_channels * taps,
                                         .channel = taps,
                                         .tap = {taps, conv.size[2], 1}};
    const int64_t set = (int64_t)(byi_f32_conv_packed(&conv) + 63) / 64 * 16;
    const int64_t sets = COLD_BYTES / (4 * set) + 2; /* of weights */
    float *packed = new_floats(set * sets);
    struct byi_f32_conv wide = conv;
    wide.type = BYI_F32_WIDE;
    const int64_t scratch = (int64_t)(byi_f32_conv_scratch(&conv, threads) +
                                      byi_f32_conv_scratch(&wide, threads));
    struct byi_f32_conv_run run = {
        .conv = &conv,
        .x = narrow_in_place(new_floats(inputs), inputs),
        .weights = packed,
        .y = new_floats(results),
        .scratch = new_floats(scratch / 4 + 16),
        .threads = threads};
    for (int64_t n = 0; n < sets; n++)
        byi_f32_conv_pack(&conv, &from, packed + n * set, 1);
    double peak = byoc_internal_peak_flops((uint32_t)threads);
    const double shortest = shortest_time(&run, 0, 1);
    run.conv = &wide;
    const double f32_time = type ? shortest_time(&run, 0, 1) : 0;
    run.conv = &conv;
    const double cold = shortest_time(&run, set, sets);
    const double after = byoc_internal_peak_flops((uint32_t)threads);
    peak = after > peak ? after : peak;
    const double work = 2.0 * (double)(results * group_channels * taps);
    printf("%-20s %4lld x %3lld^2 %5lld -> %4lld  %lld x %lld /%lld %9.3f ms "
           "%7.1f GFLOP/s %5.0f%%, cold %5.0f%%",
           byi_f32_conv_name(&conv), (long long)conv.images,
           (long long)conv.in[1], (long long)conv.channels,
           (long long)conv.outputs, (long long)conv.size[1],
           (long long)conv.size[2], (long long)conv.stride[1], 1e3 * shortest,
           1e-9 * work / shortest, 100 * work / shortest / peak,
           100 * work / cold / peak);
    if (conv.groups > 1)
        printf(", %lld groups", (long long)conv.groups);
    if (type)
        printf(", float32 %9.3f ms, ratio %.2f", 1e3 * f32_time,
               shortest / f32_time);
    printf("\n");
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
    type = argc < 3                           ? BYI_F32_WIDE
           : strcmp(argv[2], "float16") == 0  ? BYI_F32_F16
           : strcmp(argv[2], "bfloat16") == 0 ? BYI_F32_BF16
                                              : BYI_F32_TYPES;
    if (threads < 1 || type == BYI_F32_TYPES)
        return fprintf(stderr, "usage: f32 [THREADS [float16|bfloat16]]; "
                               "BYOC_MAX_ISA limits the instruction set\n"),
               2;
    if (byi_isa_check(&err) != BYOC_OK)
        return fprintf(stderr, "f32: %s\n", err.text), 2;
    struct byi_turn turn;
    const struct byi_parallelism parallelism = {
        .threads = byi_workers_reserve((uint32_t)threads),
        .spin_ns = BYI_SPIN_NS};
    byi_workers_enter(&turn, &parallelism);
    printf("peak %.1f GFLOP/s of one core\n",
           1e-9 * byoc_internal_peak_flops(1));
    for (size_t i = 0; i < BYI_COUNT(layers); i++) {
        measure(i, true, threads);
        measure(i, false, threads);
    }
    byi_workers_leave(&turn);
    return 0;
}
