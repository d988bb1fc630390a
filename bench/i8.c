/* SPDX-License-Identifier: Apache-2.0 */
/* i8.c: times the 8-bit kernels of kernels/ on layers of common networks.
 * Prints whether the weights fit in 7 bits, for which some kernels are faster,
 * the time, Gop/s, and the share of the peak of integer operations, which is
 * measured before and after each layer.
 *
 *     [BYOC_MAX_ISA=NAME] build/i8 [THREADS]                (default: 1)
 *
 * If the CPU lacks the instruction set that BYOC_MAX_ISA names (see
 * core/base/isa.h), the widest one below it is timed. Exits with 2 for wrong
 * arguments, or an unknown instruction set.
 */
#include "core/base/clock.h"
#include "kernels/i8.h"

#include "core/base/isa.h"

#include <stdio.h>
#include <stdlib.h>

/* Measure the peak of one core in operations per second with the block kernel.
 * All rows of the block are the same row, and panels stay in the first-level
 * cache. */
static double measure_block_peak(const struct byi_i8_kernels *k)
{
    enum { WORDS = 256, ROUNDS = 10, ROWS = 16 * BYI_I8_BLOCK };
    static _Alignas(64) uint32_t weights[2 * WORDS * BYI_I8_PANEL];
    static _Alignas(64) uint8_t x[WORDS * 4], y[ROWS * BYI_I8_COLUMNS * 4];
    static int32_t add[BYI_I8_COLUMNS];
    static float scale[BYI_I8_COLUMNS];
    const struct byi_i8_block b = {
        .x = x,
        .x_rows = ROWS,
        .rows = ROWS,
        .words = WORDS,
        .columns = BYI_I8_COLUMNS,
        .weights = weights,
        .e = {.result = BYI_I8_SUMS, .add = add, .scale = scale},
        .y = (char *)y,
        .ldy = BYI_I8_COLUMNS * 4};
    double shortest = 1e9;
    for (int i = 0; i < 20; i++) {
        const double start = byi_now();
        for (int r = 0; r < ROUNDS; r++)
            k->block(&b);
        const double time = byi_now() - start;
        shortest = time < shortest ? time : shortest;
    }
    return 2.0 * ROWS * BYI_I8_COLUMNS * WORDS * 4 * ROUNDS / shortest;
}

/* Measure the peak of one core in operations per second. Uses the block kernel
 * if it multiplies bytes, otherwise full tiles whose operands stay in the L1
 * cache. */
static double measure_peak(void)
{
    enum { WORDS = 256, ROUNDS = 100 };
    static uint32_t weights[2 * WORDS * BYI_I8_PANEL];
    static uint8_t x[WORDS * 4 + 64], y[BYI_I8_ROWS * BYI_I8_COLUMNS * 4];
    static int32_t add[BYI_I8_COLUMNS];
    static float scale[BYI_I8_COLUMNS];
    const struct byi_i8_kernels *k = byi_i8_kernels();
    if (k->block_bytes)
        return measure_block_peak(k);
    const enum byi_i8_form form =
        k->bytes == BYI_I8_ALWAYS ? BYI_I8_BYTES : BYI_I8_PAIRS;
    const uint8_t *rows[BYI_I8_ROWS];
    for (int i = 0; i < BYI_I8_ROWS; i++)
        rows[i] = x;
    const struct byi_i8_tile t = {
        .x = rows,
        .tiles = 1,
        .n_pieces = 1,
        .words = WORDS,
        .weights = weights,
        .next = WORDS * BYI_I8_PANEL,
        .e = {.result = BYI_I8_SUMS, .add = add, .scale = scale},
        .y = (char *)y,
        .ldy = BYI_I8_COLUMNS * 4};
    double shortest = 1e9;
    for (int i = 0; i < 20; i++) {
        const double start = byi_now();
        for (int r = 0; r < ROUNDS; r++)
            k->tile[form][k->panels - 1][k->rows](&t);
        const double time = byi_now() - start;
        shortest = time < shortest ? time : shortest;
    }
    return 2.0 * (form == BYI_I8_BYTES ? 4 : 2) * BYI_I8_PANEL * k->panels *
           k->rows * WORDS * ROUNDS / shortest;
}

static const struct {
    /* map: height and width of the input; size: of the window */
    int64_t images, map, channels, outputs, groups, size, stride;
    int8_t max_weight; /* the largest absolute weight */
} layers[] = {
    {1, 224, 3, 64, 1, 7, 2, 127},     {1, 56, 64, 64, 1, 1, 1, 127},
    {1, 56, 64, 64, 1, 3, 1, 127},     {1, 56, 64, 256, 1, 1, 1, 127},
    {1, 56, 256, 64, 1, 1, 1, 127},    {1, 56, 128, 128, 1, 3, 2, 127},
    {1, 28, 128, 128, 1, 3, 1, 127},   {1, 28, 128, 512, 1, 1, 1, 127},
    {1, 28, 512, 128, 1, 1, 1, 127},   {1, 14, 256, 256, 1, 3, 1, 127},
    {1, 14, 1024, 256, 1, 1, 1, 127},  {1, 7, 512, 512, 1, 3, 1, 127},
    {1, 7, 512, 2048, 1, 1, 1, 127},   {1, 1, 2048, 1000, 1, 1, 1, 127},
    {128, 1, 768, 768, 1, 1, 1, 127},  {128, 1, 3072, 768, 1, 1, 1, 127},
    {1, 112, 16, 96, 1, 1, 1, 127},    {1, 56, 24, 144, 1, 1, 1, 127},
    {1, 14, 384, 64, 1, 1, 1, 127},    {1, 112, 32, 32, 32, 3, 1, 127},
    {1, 112, 96, 96, 96, 3, 2, 127},   {1, 56, 144, 144, 144, 3, 1, 127},
    {1, 14, 384, 384, 384, 3, 1, 127}, {1, 7, 960, 960, 960, 3, 1, 127},
    {1, 28, 240, 240, 240, 5, 1, 127}, {1, 28, 128, 128, 1, 3, 1, 63},
    {1, 14, 1024, 256, 1, 1, 1, 63},   {1, 14, 256, 256, 1, 3, 1, 63},
    {1, 7, 512, 512, 1, 3, 1, 31},
};

/* Allocate n bytes whose values as int8 are in -largest..largest. */
static void *alloc_test_bytes(int64_t n, int largest)
{
    uint8_t *at = aligned_alloc(64, (size_t)(n + 127) / 64 * 64);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = (uint8_t)((int)(i * 7919 % 2003 % (2 * largest + 1)) - largest);
    return at;
}

/* Time layer i, and print a line. */
static void measure(size_t i, int threads)
{
    const int64_t size = layers[i].size, pad = size / 2, map = layers[i].map;
    const int64_t out = (map + 2 * pad - size) / layers[i].stride + 1;
    struct byi_i8_conv conv = {
        .images = layers[i].images,
        .in = {1, map, map},
        .out = {1, out, out},
        .channels = layers[i].channels,
        .outputs = layers[i].outputs,
        .groups = layers[i].groups,
        .size = {1, size, size},
        .stride = {1, layers[i].stride, layers[i].stride},
        .dilation = {1, 1, 1},
        .pad = {0, pad, pad},
        .w_signed = true,
        .centred = true,
        .result = BYI_I8_QUANTIZED,
    };
    byi_i8_conv_plan(&conv);
    const int64_t inner = conv.channels / conv.groups, taps = size * size;
    const int64_t results = conv.images * out * out * conv.outputs;
    void *packed = alloc_test_bytes((int64_t)byi_i8_conv_packed(&conv), 1);
    const struct byi_i8_weights weights = {
        .at =
            alloc_test_bytes(conv.outputs * inner * taps, layers[i].max_weight),
        .strides = {inner * taps, taps, taps, size, 1}};
    static float scale = 1e-3f;
    const struct byi_i8_conv_run run = {
        .conv = &conv,
        .x = alloc_test_bytes(conv.images * map * map * conv.channels, 127),
        .packed = packed,
        .x_zero = 114,
        .scale = &scale,
        .high = 255,
        .y = alloc_test_bytes(results, 1),
        .scratch =
            alloc_test_bytes((int64_t)byi_i8_conv_scratch(&conv, threads), 1),
        .threads = threads};
    byi_i8_conv_pack(&conv, &weights, packed);
    double shortest = 1e9, peak = measure_peak();
    const double until = byi_now() + 0.15;
    for (int n = 0; n < 5 || byi_now() < until; n++) {
        const double start = byi_now();
        byi_i8_conv_run(&run);
        const double time = byi_now() - start;
        shortest = time < shortest ? time : shortest;
    }
    const double after = measure_peak();
    peak = (after > peak ? after : peak) * threads;
    const double rate = 2.0 * (double)(results * inner * taps) / shortest;
    printf("%-24s %4lld x %3lld^2 %5lld -> %4lld  %lld x %lld /%lld  7-bit: %s "
           "%9.3f ms %7.1f Gop/s %5.0f%%\n",
           byi_i8_conv_name(&conv), (long long)conv.images, (long long)map,
           (long long)conv.channels, (long long)conv.outputs, (long long)size,
           (long long)size, (long long)layers[i].stride,
           layers[i].max_weight < 64 ? "yes" : "no ", 1e3 * shortest,
           1e-9 * rate, 100 * rate / peak);
    free((void *)(uintptr_t)weights.at);
    free((void *)(uintptr_t)run.x);
    free(packed);
    free(run.y);
    free(run.scratch);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    struct byoc_error err;
    if (threads < 1)
        return fprintf(stderr, "usage: i8 [THREADS]; BYOC_MAX_ISA limits the "
                               "instruction set\n"),
               2;
    if (byi_isa_check(&err) != BYOC_OK)
        return fprintf(stderr, "i8: %s\n", err.text), 2;
    printf("peak %.1f Gop/s of one core\n", 1e-9 * measure_peak());
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        measure(i, threads);
    return 0;
}
