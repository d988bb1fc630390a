/* SPDX-License-Identifier: Apache-2.0 */
/* bands.c: times blocks of mobile networks in two ways, in turns: in
 * bands (kernels/bands.h), and one convolution after the other.
 *
 *     [BYOC_MAX_ISA=avx2] build/bands [THREADS]      (default: 1)
 *
 * Exit code 2 after wrong arguments, or if the CPU lacks the instruction set.
 */
#include "kernels/bands.h"

#include "runtime/internal.h"
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

/* A block on an image of map x map: channels -> 1x1 -> expanded -> depthwise
 * (window size x size) -> 1x1 -> outputs. If outputs is 0, the block ends with
 * the depthwise convolution. */
static const struct {
    int64_t map, channels, expanded, outputs, size, stride;
} blocks[] = {
    {112, 16, 96, 24, 3, 2}, {56, 24, 144, 24, 3, 1}, {56, 24, 144, 32, 3, 2},
    {28, 32, 192, 32, 3, 1}, {112, 16, 96, 0, 3, 2},  {56, 24, 144, 0, 3, 1},
    {56, 24, 144, 0, 5, 2},  {224, 16, 64, 24, 3, 2}, {160, 16, 96, 24, 3, 2},
    {80, 24, 144, 24, 3, 1},
};

/* Allocate n floats between -1 and 1; the caller frees them. */
static float *numbers(int64_t n)
{
    float *at = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = (float)(i * 7919 % 2003) / 1001 - 1;
    return at;
}

static void describe(struct byi_f32_conv *conv, int64_t map, int64_t channels,
                     int64_t outputs, int64_t groups, int64_t size,
                     int64_t stride)
{
    const int64_t out = (map + size / 2 * 2 - size) / stride + 1;
    *conv = (struct byi_f32_conv){
        .images = 1,
        .in = {1, map, map},
        .out = {1, out, out},
        .channels = channels,
        .outputs = outputs,
        .groups = groups,
        .size = {1, size, size},
        .stride = {1, stride, stride},
        .dilation = {1, 1, 1},
        .pad = {0, size / 2, size / 2},
        .kernels = byi_f32_kernels(),
        .n_epilogue = 1,
        .epilogue = {{.unary = byi_f32_kernels()->unary[BYI_OP_CLIP],
                      .p0 = 0,
                      .p1 = 6}},
    };
    byi_f32_conv_plan(conv, true);
}

/* Pack the weights numbers() makes; the caller frees the result. */
static const float *packed(const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t each = conv->channels / conv->groups;
    float *weights = numbers(conv->outputs * each * taps);
    const struct byi_f32_weights from = {.at = weights,
                                         .group = each * taps,
                                         .output = each * taps,
                                         .channel = taps,
                                         .tap = {taps, conv->size[2], 1}};
    float *to = numbers((int64_t)byi_f32_conv_packed(conv) / 4 + 16);
    byi_f32_conv_pack(conv, &from, to, 1);
    free(weights);
    return to;
}

/* Set convs[] to the convolutions of a block. Returns their number. */
static uint32_t describe_block(size_t at, struct byi_f32_conv *convs)
{
    const int64_t map = blocks[at].map, wide = blocks[at].expanded;
    struct byi_f32_conv *middle = &convs[1];
    describe(&convs[0], map, blocks[at].channels, wide, 1, 1, 1);
    describe(middle, map, wide, wide, wide, blocks[at].size, blocks[at].stride);
    if (blocks[at].outputs == 0)
        return 2;
    describe(&convs[2], middle->out[1], wide, blocks[at].outputs, 1, 1, 1);
    return 3;
}

/* The time in seconds of a run in bands or, if `apart`, of separate runs. */
static double time_of(const struct byi_f32_bands *bands,
                      const struct byi_f32_conv_run *runs, bool apart)
{
    const double began = now();
    if (apart)
        for (uint32_t i = 0; i < bands->n; i++)
            byi_f32_conv_run(&runs[i]);
    else
        byi_f32_bands_run(bands, runs, runs[0].scratch, runs[0].threads);
    return now() - began;
}

/* Time block `at`, and print a line. */
static void measure(size_t at, int threads)
{
    struct byi_f32_conv convs[BYI_F32_MAX_BAND_CONVS];
    struct byi_f32_conv_run runs[BYI_F32_MAX_BAND_CONVS];
    struct byi_f32_bands bands = {.n = describe_block(at, convs)};
    uint64_t scratch = 0;
    for (uint32_t i = 0; i < bands.n; i++) {
        const uint64_t bytes = byi_f32_conv_scratch(&convs[i], threads);
        bands.convs[i] = &convs[i];
        scratch = bytes > scratch ? bytes : scratch;
    }
    printf("%3lld^2 %3lld -> %3lld -> %3lld, %lld x %lld /%lld: ",
           (long long)blocks[at].map, (long long)blocks[at].channels,
           (long long)blocks[at].expanded, (long long)blocks[at].outputs,
           (long long)blocks[at].size, (long long)blocks[at].size,
           (long long)blocks[at].stride);
    if (!byi_f32_bands_plan(&bands)) {
        printf("not in bands\n");
        return;
    }
    const uint64_t more = byi_f32_bands_scratch(&bands, threads);
    void *memory = numbers((int64_t)(scratch > more ? scratch : more) / 4 + 16);
    float *x = numbers(byi_f32_product_of(convs[0].in) * convs[0].channels);
    for (uint32_t i = 0; i < bands.n; i++)
        runs[i] = (struct byi_f32_conv_run){
            .conv = &convs[i],
            .x = i ? runs[i - 1].y : x,
            .weights = packed(&convs[i]),
            .y = numbers(byi_f32_product_of(convs[i].out) * convs[i].outputs),
            .scratch = memory,
            .threads = threads};
    double least[2] = {1e9, 1e9};
    for (const double until = now() + 0.6; now() < until;)
        for (int apart = 0; apart < 2; apart++) {
            const double time = time_of(&bands, runs, apart);
            least[apart] = time < least[apart] ? time : least[apart];
        }
    printf("%2lld lines, %8.1f us in bands, %8.1f apart, ratio %.2f\n",
           (long long)bands.band_lines, 1e6 * least[0], 1e6 * least[1],
           least[0] / least[1]);
    for (uint32_t i = 0; i < bands.n; i++) {
        free((void *)(uintptr_t)runs[i].weights);
        free(runs[i].y);
    }
    free(x);
    free(memory);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    struct byoc_error err;
    if (threads < 1)
        return fprintf(stderr,
                       "bands: found THREADS '%s', expected a number of 1 or "
                       "more; BYOC_MAX_ISA limits the instruction set\n",
                       argv[1]),
               2;
    if (byi_isa_check(&err) != BYOC_OK)
        return fprintf(stderr, "bands: %s\n", err.text), 2;
    struct byi_turn turn;
    const struct byi_parallelism parallelism = {
        .threads = byi_workers_reserve((uint32_t)threads),
        .spin_ns = BYI_SPIN_NS};
    byi_workers_enter(&turn, &parallelism);
    for (size_t i = 0; i < BYI_COUNT(blocks); i++)
        measure(i, threads);
    byi_workers_leave(&turn);
    return 0;
}
