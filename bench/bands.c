/* SPDX-License-Identifier: Apache-2.0 */
/* bands.c: times blocks of mobile networks in two ways, in turns: in
 * bands (kernels/bands.h), and one convolution after the other.
 *
 *     [BYOC_MAX_ISA=NAME] build/bands [THREADS]      (default: 1)
 *
 * If the CPU lacks the instruction set that BYOC_MAX_ISA names (see
 * core/base/isa.h), the widest one below it is used. Exits with 2 for wrong
 * arguments, or an unknown instruction set.
 */
#include "core/base/clock.h"
#include "kernels/bands.h"

#include "runtime/internal.h"
#include "runtime/workers.h"

#include <stdio.h>
#include <stdlib.h>

/* A layer of a block. outputs: number of output channels; DEPTHWISE: as many as
 * input channels. size: height and width of the window. */
enum { DEPTHWISE = -1 };
struct layer {
    int64_t outputs, size, stride;
};

/* A block on an image of map x map; a layer without outputs ends it. An image
 * of 3 channels is planar. */
static const struct {
    int64_t map, channels;
    struct layer layers[BYI_F32_MAX_BAND_CONVS + 1];
} blocks[] = {
    {112, 16, {{96, 1, 1}, {DEPTHWISE, 3, 2}, {24, 1, 1}}},
    {56, 24, {{144, 1, 1}, {DEPTHWISE, 3, 1}, {24, 1, 1}}},
    {56, 24, {{144, 1, 1}, {DEPTHWISE, 3, 2}, {32, 1, 1}}},
    {28, 32, {{192, 1, 1}, {DEPTHWISE, 3, 1}, {32, 1, 1}}},
    {112, 16, {{96, 1, 1}, {DEPTHWISE, 3, 2}}},
    {56, 24, {{144, 1, 1}, {DEPTHWISE, 3, 1}}},
    {56, 24, {{144, 1, 1}, {DEPTHWISE, 3, 2}}},
    {56, 24, {{144, 1, 1}, {DEPTHWISE, 5, 2}}},
    {224, 16, {{64, 1, 1}, {DEPTHWISE, 3, 2}, {24, 1, 1}}},
    {160, 16, {{96, 1, 1}, {DEPTHWISE, 3, 2}, {24, 1, 1}}},
    {80, 24, {{144, 1, 1}, {DEPTHWISE, 3, 1}, {24, 1, 1}}},
    {224, 3, {{32, 3, 2}, {DEPTHWISE, 3, 1}, {16, 1, 1}}},
    {224, 3, {{32, 3, 2}, {DEPTHWISE, 3, 1}}},
    {112, 32, {{DEPTHWISE, 3, 1}, {64, 1, 1}, {DEPTHWISE, 3, 2}}},
    {112, 24, {{DEPTHWISE, 3, 1}, {24, 1, 1}}},
};

/* Allocate n floats between -1 and 1; the caller frees them. */
static float *new_floats(int64_t n)
{
    float *at = aligned_alloc(64, (size_t)(n * 4 + 127) / 64 * 64);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = (float)(i * 7919 % 2003) / 1001 - 1;
    return at;
}

/* Set *conv to a layer on an image of map x map. */
static void describe(struct byi_f32_conv *conv, int64_t map, int64_t channels,
                     const struct layer *layer)
{
    const int64_t size = layer->size, stride = layer->stride;
    const int64_t out = (map + size / 2 * 2 - size) / stride + 1;
    const bool depthwise = layer->outputs == DEPTHWISE;
    *conv = (struct byi_f32_conv){
        .images = 1,
        .in = {1, map, map},
        .out = {1, out, out},
        .channels = channels,
        .outputs = depthwise ? channels : layer->outputs,
        .groups = depthwise ? channels : 1,
        .size = {1, size, size},
        .stride = {1, stride, stride},
        .dilation = {1, 1, 1},
        .pad = {0, size / 2, size / 2},
        .planar = channels == 3,
        .kernels = byi_f32_kernels(),
        .n_epilogue = 1,
        .epilogue = {{.unary = byi_f32_kernels()->unary[BYI_OP_CLIP],
                      .p0 = 0,
                      .p1 = 6}},
    };
    byi_f32_conv_plan(conv, true);
}

/* Pack new weights of new_floats(); the caller frees the result. */
static const float *pack_new_weights(const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t group_channels = conv->channels / conv->groups;
    float *weights = new_floats(conv->outputs * group_channels * taps);
    const struct byi_f32_weights from = {.at = weights,
                                         .group = group_channels * taps,
                                         .output = group_channels * taps,
                                         .channel = taps,
                                         .tap = {taps, conv->size[2], 1}};
    float *to = new_floats((int64_t)byi_f32_conv_packed(conv) / 4 + 16);
    byi_f32_conv_pack(conv, &from, to, 1);
    free(weights);
    return to;
}

/* Set convs[] to the convolutions of a block. Returns their number. */
static uint32_t describe_block(size_t at, struct byi_f32_conv *convs)
{
    const struct layer *layers = blocks[at].layers;
    int64_t map = blocks[at].map, channels = blocks[at].channels;
    uint32_t n = 0;
    printf("%3lld^2 %3lld", (long long)map, (long long)channels);
    for (; layers[n].outputs; n++) {
        describe(&convs[n], map, channels, &layers[n]);
        map = convs[n].out[1];
        channels = convs[n].outputs;
        printf(" -> %3lld (%lld x %lld /%lld%s)", (long long)channels,
               (long long)layers[n].size, (long long)layers[n].size,
               (long long)layers[n].stride,
               layers[n].outputs == DEPTHWISE ? ", depthwise" : "");
    }
    printf(": ");
    return n;
}

/* The time in seconds of a run in bands or, if `apart`, of separate runs. */
static double time_of(const struct byi_f32_bands *bands,
                      const struct byi_f32_conv_run *runs, bool apart)
{
    const double start = byi_now();
    if (apart)
        for (uint32_t i = 0; i < bands->n; i++)
            byi_f32_conv_run(&runs[i]);
    else
        byi_f32_bands_run(bands, runs, runs[0].scratch, runs[0].threads);
    return byi_now() - start;
}

/* Time block `at`, and print a line. */
static void measure(size_t at, int threads)
{
    struct byi_f32_conv convs[BYI_F32_MAX_BAND_CONVS];
    struct byi_f32_conv_run runs[BYI_F32_MAX_BAND_CONVS];
    struct byi_f32_bands bands = {.n = describe_block(at, convs)};
    uint64_t scratch_bytes = 0;
    for (uint32_t i = 0; i < bands.n; i++) {
        const uint64_t bytes = byi_f32_conv_scratch(&convs[i], threads);
        bands.convs[i] = &convs[i];
        scratch_bytes = bytes > scratch_bytes ? bytes : scratch_bytes;
    }
    if (!byi_f32_bands_plan(&bands)) {
        printf("not in bands\n");
        return;
    }
    const uint64_t bands_bytes = byi_f32_bands_scratch(&bands, threads);
    void *memory = new_floats(
        (int64_t)(scratch_bytes > bands_bytes ? scratch_bytes : bands_bytes) /
            4 +
        16);
    float *x = new_floats(byi_f32_product_of(convs[0].in) * convs[0].channels);
    for (uint32_t i = 0; i < bands.n; i++)
        runs[i] = (struct byi_f32_conv_run){
            .conv = &convs[i],
            .x = i ? runs[i - 1].y : x,
            .weights = pack_new_weights(&convs[i]),
            .y =
                new_floats(byi_f32_product_of(convs[i].out) * convs[i].outputs),
            .scratch = memory,
            .threads = threads};
    double shortest[2] = {1e9, 1e9};
    for (const double until = byi_now() + 0.6; byi_now() < until;)
        for (int apart = 0; apart < 2; apart++) {
            const double time = time_of(&bands, runs, apart);
            shortest[apart] = time < shortest[apart] ? time : shortest[apart];
        }
    printf("%2lld lines, %8.1f us in bands, %8.1f apart, ratio %.2f\n",
           (long long)bands.band_lines, 1e6 * shortest[0], 1e6 * shortest[1],
           shortest[0] / shortest[1]);
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
