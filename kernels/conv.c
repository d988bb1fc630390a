/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/conv.c: choose the algorithm of a convolution, pack its weights, run
 * it. The choice depends on shapes and the instruction set alone.
 */
#include "kernels/conv.h"

#include "core/base/isa.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

const struct byi_f32_kernels *byi_f32_kernels(void)
{
#if defined(__x86_64__)
    const enum byi_isa isa = byi_isa_widest();
    if (isa >= BYI_ISA_AVX512)
        return &byi_f32_avx512;
    if (isa >= BYI_ISA_AVX2)
        return &byi_f32_avx2;
#endif
    return &byi_f32_base;
}

/* Bytes of a core's second cache; asking takes microseconds on some machines.
 */
static int64_t second_cache;
static pthread_once_t second_cache_once = PTHREAD_ONCE_INIT;

static void ask_second_cache(void)
{
    second_cache = 512 << 10;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes >= 128 << 10)
        second_cache = bytes;
#endif
}

/* --- planning --------------------------------------------------------------
 */

/* The posts that the kernels apply themselves. */
static void split_epilogue(struct byi_f32_conv *conv)
{
    const struct byi_f32_post *post = conv->posts;
    byi_f32_unary_fn *const relu = conv->kernels->unary[BYI_OP_NN_RELU];
    byi_f32_unary_fn *const clip = conv->kernels->unary[BYI_OP_CLIP];
    conv->next = 0;
    conv->adds = conv->n_posts > 0 &&
                 post->binary == conv->kernels->binary[BYI_F32_ADD] &&
                 post->repeat == 1 && post->column == 1 &&
                 post->row == conv->outputs;
    conv->next += conv->adds;
    conv->clamps = false;
    if (conv->next == conv->n_posts)
        return;
    struct byi_f32_post *clamp = &conv->posts[conv->next];
    conv->clamps =
        clamp->unary && (clamp->unary == relu || clamp->unary == clip);
    if (clamp->unary == relu && conv->clamps) {
        clamp->unary = conv->kernels->unary[BYI_OP_CLIP];
        clamp->p0 = 0;
        clamp->p1 = INFINITY;
    }
    conv->next += conv->clamps;
}

static bool is_pointwise(const struct byi_f32_conv *conv)
{
    for (int i = 0; i < 2; i++)
        if (conv->size[i] != 1 || conv->pad[i] != 0 || conv->stride[i] != 1 ||
            conv->in[i] != conv->out[i])
            return false;
    return true;
}

/* Winograd's algorithm multiplies less (4/9, 1/4), but its transformed weights
 * are larger (16/9 for F(2 x 2), 4 times for F(4 x 4)) and are read once per
 * block of tiles: F(4 x 4) where they are small or tiles are many. The number
 * of images is left out, so that models of varying batch size pack weights
 * once. */
static enum byi_f32_algorithm choose_winograd(const struct byi_f32_conv *conv)
{
    const int64_t channels = conv->channels, outputs = conv->outputs;
    for (int i = 0; i < 2; i++)
        if (conv->size[i] != 3 || conv->stride[i] != 1 ||
            conv->dilation[i] != 1 || conv->out[i] < 5)
            return BYI_F32_NONE;
    if (channels < 16 || outputs < 16)
        return BYI_F32_NONE;
    const int64_t tiles =
        byi_ceil_div(conv->out[0], 4) * byi_ceil_div(conv->out[1], 4);
    return channels * outputs <= 192 * 192 || tiles >= 49 ? BYI_F32_WINOGRAD_4
                                                          : BYI_F32_WINOGRAD_2;
}

static bool is_product(const struct byi_f32_conv *conv)
{
    return is_pointwise(conv) && conv->in[0] * conv->in[1] == 1;
}

/* oneDNN's kernels for AVX-512 are near the peak too, except for a vector by a
 * matrix; those for AVX2 are for convolutions of one tap, and for products of
 * few columns. */
static bool is_direct(const struct byi_f32_conv *conv)
{
    const int64_t taps = conv->size[0] * conv->size[1];
    const bool avx2 = conv->kernels->rows == 6;
    if (is_product(conv))
        return conv->images == 1 ? conv->kernels->rows >= 6
                                 : avx2 && conv->channels >= 256;
    return avx2 && taps > 1 && taps <= BYI_F32_TAPS && conv->channels >= 16 &&
           conv->channels <= BYI_F32_PIECE;
}

/* oneDNN's depthwise kernels are fast for two axes and small windows that are
 * not dilated, or have at most nine taps. Elsewhere it falls back to slow
 * general kernels. */
static bool is_depthwise(const struct byi_f32_conv *conv)
{
    const int64_t taps = conv->size[0] * conv->size[1];
    const bool line = conv->in[0] == 1 && conv->size[0] == 1;
    const bool dilated = conv->dilation[0] > 1 || conv->dilation[1] > 1;
    return taps <= BYI_F32_TAPS && conv->channels >= BYI_F32_PANEL &&
           conv->channels <= BYI_F32_PIECE &&
           (line || conv->size[1] > 7 || (dilated && taps > 9));
}

/* oneDNN computes a transposed convolution as the gradient of a convolution,
 * which is far from the peak, except without overlap on SSE2. */
static bool is_transposed(const struct byi_f32_conv *conv)
{
    const bool steps = conv->stride[0] < conv->size[0] ||
                       conv->stride[1] < conv->size[1]; /* windows overlap */
    return conv->size[0] * conv->size[1] <= BYI_F32_TAPS &&
           conv->channels >= BYI_F32_PANEL && conv->channels <= BYI_F32_PIECE &&
           (steps || conv->kernels->rows >= 6);
}

void byi_f32_conv_plan(struct byi_f32_conv *conv, bool exact)
{
    pthread_once(&second_cache_once, ask_second_cache);
    conv->cache = second_cache;
    conv->kernels = byi_f32_kernels();
    split_epilogue(conv);
    if (conv->transposed) {
        conv->algorithm =
            is_transposed(conv) ? BYI_F32_TRANSPOSED : BYI_F32_NONE;
        return;
    }
    if (conv->depthwise) {
        conv->algorithm = is_depthwise(conv) ? BYI_F32_DEPTHWISE : BYI_F32_NONE;
        return;
    }
    conv->algorithm = exact ? BYI_F32_NONE : choose_winograd(conv);
    if (conv->algorithm == BYI_F32_NONE && is_direct(conv))
        conv->algorithm = BYI_F32_DIRECT;
}

const char *byi_f32_conv_name(const struct byi_f32_conv *conv)
{
    /* Parentheses tell clang-tidy that the strings are joined on purpose. */
#define NAMES(isa)                                                             \
    {                                                                          \
        [BYI_F32_DIRECT] = ("direct:" isa),                                    \
        [BYI_F32_WINOGRAD_2] = ("winograd_2x2:" isa),                          \
        [BYI_F32_WINOGRAD_4] = ("winograd_4x4:" isa),                          \
        [BYI_F32_DEPTHWISE] = ("depthwise:" isa),                              \
        [BYI_F32_TRANSPOSED] = ("transposed:" isa)                             \
    }
    static const char *const names[][BYI_F32_ALGORITHMS] = {
        NAMES("base"), NAMES("avx2"), NAMES("avx512")};
    const int level = conv->kernels->rows == 14  ? 2
                      : conv->kernels->rows == 6 ? 1
                                                 : 0;
    return names[level][conv->algorithm];
}

/* --- weights ---------------------------------------------------------------
 */

static uint64_t panels_of(const struct byi_f32_conv *conv)
{
    return (uint64_t)byi_ceil_div(conv->outputs, BYI_F32_PANEL);
}

uint64_t byi_f32_conv_packed(const struct byi_f32_conv *conv)
{
    const uint64_t taps = (uint64_t)(conv->size[0] * conv->size[1]);
    switch (conv->algorithm) {
    case BYI_F32_WINOGRAD_2:
    case BYI_F32_WINOGRAD_4:
        return byi_f32_winograd_packed(conv);
    case BYI_F32_DEPTHWISE: /* the kernel loads whole vectors */
        return (taps * (uint64_t)conv->channels + BYI_F32_PANEL) *
               sizeof(float);
    default:
        return panels_of(conv) * taps * (uint64_t)conv->channels *
               BYI_F32_PANEL * sizeof(float);
    }
}

static void pack_direct(const struct byi_f32_conv *conv, const float *from,
                        const int64_t strides[4], float *to)
{
    for (int64_t o = 0; o < conv->outputs; o += BYI_F32_PANEL) {
        const int64_t n = byi_min(BYI_F32_PANEL, conv->outputs - o);
        for (int64_t i = 0; i < conv->size[0]; i++)
            for (int64_t j = 0; j < conv->size[1]; j++)
                for (int64_t c = 0; c < conv->channels;
                     c++, to += BYI_F32_PANEL) {
                    const float *at = from + o * strides[0] + c * strides[1] +
                                      i * strides[2] + j * strides[3];
                    for (int64_t k = 0; k < BYI_F32_PANEL; k++)
                        to[k] = k < n ? at[k * strides[0]] : 0;
                }
    }
}

static void pack_depthwise(const struct byi_f32_conv *conv, const float *from,
                           const int64_t strides[4], float *to)
{
    for (int64_t i = 0; i < conv->size[0]; i++)
        for (int64_t j = 0; j < conv->size[1]; j++)
            for (int64_t c = 0; c < conv->channels; c++)
                *to++ = from[c * strides[0] + i * strides[2] + j * strides[3]];
    memset(to, 0, BYI_F32_PANEL * sizeof *to);
}

void byi_f32_conv_pack(const struct byi_f32_conv *conv, const float *from,
                       const int64_t strides[4], float *to)
{
    switch (conv->algorithm) {
    case BYI_F32_WINOGRAD_2:
    case BYI_F32_WINOGRAD_4:
        byi_f32_winograd_pack(conv, from, strides, to);
        break;
    case BYI_F32_DEPTHWISE:
        pack_depthwise(conv, from, strides, to);
        break;
    case BYI_F32_TRANSPOSED:
        byi_f32_transposed_pack(conv, from, strides, to);
        break;
    default:
        pack_direct(conv, from, strides, to);
    }
}

bool byi_f32_conv_packs_alike(const struct byi_f32_conv *a,
                              const struct byi_f32_conv *b)
{
    return a->algorithm == b->algorithm && a->channels == b->channels &&
           a->outputs == b->outputs &&
           memcmp(a->size, b->size, sizeof a->size) == 0 &&
           (!a->transposed ||
            (memcmp(a->pad, b->pad, sizeof a->pad) == 0 &&
             memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
             memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0));
}

/* --- running ---------------------------------------------------------------
 */

uint64_t byi_f32_conv_scratch(const struct byi_f32_conv *conv, int threads)
{
    switch (conv->algorithm) {
    case BYI_F32_DIRECT:
        return byi_f32_direct_scratch(conv, threads);
    case BYI_F32_WINOGRAD_2:
    case BYI_F32_WINOGRAD_4:
        return byi_f32_winograd_scratch(conv, threads);
    default:
        return 0;
    }
}

/* Threads that pay: each should have some 2^18 multiplications to do. */
static int team_of(const struct byi_f32_conv *conv, int threads)
{
    const int64_t *of = conv->transposed ? conv->in : conv->out;
    const int64_t positions = conv->images * of[0] * of[1];
    const int64_t products = positions * conv->outputs *
                             (conv->depthwise ? 1 : conv->channels) *
                             conv->size[0] * conv->size[1];
    const int64_t most = products >> 18;
    return most < 1 ? 1 : most < threads ? (int)most : threads;
}

void byi_f32_conv_run(const struct byi_f32_conv_run *given)
{
    struct byi_f32_conv_run team = *given;
    const struct byi_f32_conv_run *run = &team;
    team.threads = team_of(given->conv, given->threads);
    switch (run->conv->algorithm) {
    case BYI_F32_NONE:
    case BYI_F32_ALGORITHMS:
        break;
    case BYI_F32_DEPTHWISE:
        byi_f32_depthwise_run(run);
        break;
    case BYI_F32_TRANSPOSED:
        byi_f32_transposed_run(run);
        break;
    case BYI_F32_DIRECT:
        byi_f32_direct_run(run);
        break;
    case BYI_F32_WINOGRAD_2:
    case BYI_F32_WINOGRAD_4:
        byi_f32_winograd_run(run);
        break;
    }
}
