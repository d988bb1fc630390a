/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/tiles.c: convolutions and products of bfloat16 and float16 on AMX's
 * tiles, and of bfloat16 by AVX-512's BF16, by the blocks of i8.h: a number of
 * bfloat16 is two channels of bytes there. Products of two numbers are exact in
 * float32. Converting the weights to the type of x loses nothing, since the
 * model has them in that type. The processor treats subnormal numbers as 0.
 *
 * A number of float16 is the sum of two of bfloat16, which have its upper and
 * its lower bits. Both are normal. The products of the parts (three; all four
 * if `exact`) take half to a third of the time that the product in float32
 * takes.
 */
#include "kernels/conv.h"
#include "kernels/i8_shape.h"

#include <string.h>

/* Rows are split after they were gathered if they have fewer channels than
 * FEW_CHANNELS, and at most MAX_NUMBERS numbers in all taps. */
enum { FEW_CHANNELS = 16, MAX_NUMBERS = 2048 };

/* Channels of a part of split numbers: whole tiles. Rows of x that are read in
 * place should not map to the same sets of the first-level cache. */
static int64_t part_channels(const struct byi_f32_conv *conv)
{
    enum { TILE = 32, SETS = 512 };
    const int64_t n = byi_ceil_div(conv->channels, TILE) * TILE;
    const bool in_place = byi_f32_product_of(conv->size) == 1;
    return n % SETS == 0 && in_place ? n + TILE : n;
}

static bool splits(const struct byi_f32_conv *conv)
{
    return conv->type == BYI_F32_F16 || conv->x_type == BYI_F32_F16;
}

/* Whether rows are split after they were gathered: with few channels, the parts
 * of a position would be mostly padding. */
static bool splits_rows(const struct byi_f32_conv *conv)
{
    return splits(conv) && conv->channels < FEW_CHANNELS;
}

/* Numbers of a part of the packed weights of a tap, or of all taps. */
static int64_t part_numbers(const struct byi_f32_conv *conv)
{
    enum { TILE = 32 };
    const int64_t numbers = conv->channels * byi_f32_product_of(conv->size);
    return splits_rows(conv) ? byi_ceil_div(numbers, TILE) * TILE
                             : part_channels(conv);
}

/* Bytes of a position of x. */
static int64_t position_bytes(const struct byi_f32_conv *conv)
{
    return splits(conv) && !splits_rows(conv) ? 4 * part_channels(conv)
                                              : 2 * conv->channels;
}

/* Whether bfloat16 weights exceed the second-level cache and are read for few
 * positions: gathered rows take a fifth less time then. */
static bool waits_for_weights(const struct byi_f32_conv *conv)
{
    enum { FEW_POSITIONS = 64 };
    return !splits(conv) && byi_f32_product_of(conv->out) <= FEW_POSITIONS &&
           byi_f32_product_of(conv->size) * conv->channels * conv->outputs * 2 >
               conv->cache;
}

int64_t byi_f32_tiles_pitch(const struct byi_f32_conv *conv)
{
    enum { TAPS = 128, NUMBERS = 32 };
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t right = conv->out[2] - 1 +
                          (conv->size[2] - 1) * conv->dilation[2] -
                          conv->pad[2] - (conv->in[2] - 1);
    const int64_t pitch =
        conv->in[2] + byi_max(byi_max(conv->pad[2], right), 0);
    if (!byi_f32_has_lines(conv) || taps == 1 || taps > TAPS ||
        splits_rows(conv) || waits_for_weights(conv) || conv->stride[1] != 1 ||
        conv->stride[2] != 1 ||
        conv->channels * (splits(conv) ? NUMBERS : 1) % NUMBERS ||
        pitch < conv->out[2] || pitch * 4 > conv->out[2] * 5)
        return 0;
    return pitch;
}

/* Whether SiLU follows the leading part of the epilogue. */
static bool has_silu(const struct byi_f32_conv *conv)
{
    return conv->next < conv->n_epilogue &&
           conv->epilogue[conv->next].unary ==
               conv->kernels->unary[BYI_OP_NN_SILU];
}

bool byi_f32_tiles_write(const struct byi_f32_conv *conv)
{
    return conv->next + has_silu(conv) == conv->n_epilogue;
}

int64_t byi_f32_tiles_floats(const struct byi_f32_conv *conv)
{
    if (splits(conv))
        return splits_rows(conv) ? 0 : part_channels(conv);
    return byi_f32_tiles_pitch(conv) ? conv->channels / 2 : 0;
}

/* Lines of a copy with padding of the lines that `lines` lines of y read. */
static int64_t lines_of(const struct byi_f32_conv *conv, int64_t lines)
{
    return lines + (conv->size[1] - 1) * conv->dilation[1];
}

int64_t byi_f32_tiles_positions(const struct byi_f32_conv *conv, int64_t lines)
{
    /* a tile may read BYI_I8_BLOCK positions of few lines */
    return conv->pad[2] + lines_of(conv, lines) * byi_f32_tiles_pitch(conv) +
           BYI_I8_BLOCK;
}

static void copy_numbers(const struct byi_f32_conv *conv, const uint16_t *from,
                         int64_t positions, char *to)
{
    if (splits(conv))
        byi_i8_kernels()->split(from, positions, conv->channels,
                                part_channels(conv), (uint16_t *)(void *)to);
    else
        memcpy(to, from, (size_t)(positions * conv->channels * 2));
}

/* Copy x without padding. */
static void copy_positions(const struct byi_f32_conv *conv,
                           const uint16_t *from, char *to, int threads)
{
    enum { PIECE = 1 << 14 }; /* elements that a thread copies at a time */
    const int64_t n = conv->images * byi_f32_product_of(conv->in);
    const int64_t piece = byi_ceil_div(PIECE, conv->channels);
    const int64_t pieces = byi_ceil_div(n, piece), bytes = position_bytes(conv);
#pragma omp parallel for num_threads(threads) if (threads > 1 && pieces > 2)   \
    schedule(static)
    for (int64_t i = 0; i < pieces; i++)
        copy_numbers(conv, from + i * piece * conv->channels,
                     byi_min(piece, n - i * piece), to + i * piece * bytes);
}

void byi_f32_tiles_copy(const struct byi_f32_conv *conv, const uint16_t *from,
                        float *copy, int threads)
{
    const int64_t bytes = position_bytes(conv), columns = conv->in[2];
    const int64_t lines = lines_of(conv, conv->out[1]);
    char *to = (char *)(void *)copy;
    if (!conv->pitch) {
        copy_positions(conv, from, to, threads);
        return;
    }
    memset(to, 0, (size_t)(conv->pad[2] * bytes));
    to += conv->pad[2] * bytes;
#pragma omp parallel for num_threads(threads) if (threads > 1 && lines > 2)    \
    schedule(static)
    for (int64_t i = 0; i < lines; i++) {
        const int64_t line = i - conv->pad[1];
        const bool inside = line >= 0 && line < conv->in[1];
        const int64_t width = inside ? columns : 0;
        char *at = to + i * conv->pitch * bytes;
        copy_numbers(conv, from + line * width * conv->channels, width, at);
        memset(at + width * bytes, 0, (size_t)((conv->pitch - width) * bytes));
    }
}

static struct byi_i8_conv describe(const struct byi_f32_conv *conv)
{
    struct byi_i8_conv c = {
        .images = conv->images,
        .channels = position_bytes(conv),
        .outputs = conv->outputs,
        .groups = 1,
        .w_signed = true,
        .centred = true,
        .bfloat16 = true,
        .split = splits(conv),
        .splits_rows = splits_rows(conv),
        .exact = conv->exact,
        .pitch = conv->pitch,
        .result = conv->y_type == BYI_F32_F16    ? BYI_I8_FLOAT16S
                  : conv->y_type == BYI_F32_BF16 ? BYI_I8_BFLOAT16S
                                                 : BYI_I8_FLOATS,
        .kernels = byi_i8_kernels()};
    memcpy(c.in, conv->in, sizeof c.in);
    memcpy(c.out, conv->out, sizeof c.out);
    memcpy(c.size, conv->size, sizeof c.size);
    memcpy(c.stride, conv->stride, sizeof c.stride);
    memcpy(c.dilation, conv->dilation, sizeof c.dilation);
    memcpy(c.pad, conv->pad, sizeof c.pad);
    byi_i8_conv_plan(&c);
    return c;
}

/* Tiles are slower than the float32 kernels for few rows, whose products wait
 * for weights. They are also slower for rows that are split after they were
 * gathered, if each number has too few products. */
bool byi_f32_tiles_suit(const struct byi_f32_conv *conv)
{
    enum { NUMBERS = 24, OUTPUTS = 48 };
    const int64_t numbers = conv->channels * byi_f32_product_of(conv->size);
    const bool slow_split =
        conv->type == BYI_F32_F16 && conv->channels < FEW_CHANNELS &&
        (numbers < NUMBERS || numbers > MAX_NUMBERS || conv->outputs < OUTPUTS);
    return conv->type != BYI_F32_WIDE && conv->groups == 1 && !conv->gathers &&
           conv->channels >= 1 && !slow_split &&
           conv->images * byi_f32_product_of(conv->out) >= BYI_I8_BLOCK &&
           (splits(conv) ? byi_i8_kernels()->split != NULL
                         : byi_i8_kernels()->block != NULL);
}

uint64_t byi_f32_tiles_packed(const struct byi_f32_conv *conv)
{
    const struct byi_i8_conv c = describe(conv);
    return byi_i8_conv_packed(&c);
}

/* The upper half of a float is a number of bfloat16. */
static void put_upper(float x, void *to)
{
    memcpy(to, (const char *)&x + 2, 2);
}

/* The low part of a weight, as the kernels split x (kernels/i8_amx.inc). */
static float low_part(float x)
{
    uint32_t bits;
    float high;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t upper = bits & 0xffff0000;
    const uint32_t tiny = (bits & 0x80000000) | (uint32_t)BYI_I8_TINY << 16;
    memcpy(&high, &upper, sizeof high);
    float low = x - high;
    if (!(low < 0 || low > 0) && x != 0)
        memcpy(&low, &tiny, sizeof low);
    return low;
}

void byi_f32_tiles_pack(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, float *to)
{
    const struct byi_i8_conv c = describe(conv);
    const int64_t words = i8_words_of(&c, BYI_I8_BYTES);
    struct i8_header *header = (struct i8_header *)(void *)to;
    memset(to, 0, (size_t)byi_i8_conv_packed(&c));
    header->form = BYI_I8_BYTES;
    char *panels = (char *)(header + 1) + i8_align(i8_all_outputs(&c) * 4);
    const int64_t taps = i8_taps_of(&c);
    for (int64_t t = 0; t < taps; t++) {
        const float *tap = weights->at +
                           t / conv->size[2] / conv->size[1] * weights->tap[0] +
                           t / conv->size[2] % conv->size[1] * weights->tap[1] +
                           t % conv->size[2] * weights->tap[2];
        for (int64_t o = 0; o < conv->outputs; o++)
            for (int64_t i = 0; i < conv->channels; i++) {
                const int64_t k = t * c.channels / 2 + i;
                const float x = tap[o * weights->output + i * weights->channel];
                char *to_high =
                    panels +
                    ((o / BYI_I8_PANEL * words + k / 2) * BYI_I8_PANEL +
                     o % BYI_I8_PANEL) *
                        4 +
                    k % 2 * 2;
                put_upper(x, to_high);
                if (c.split)
                    put_upper(low_part(x), to_high + part_numbers(conv) / 2 *
                                                         BYI_I8_PANEL * 4);
            }
    }
}

uint64_t byi_f32_tiles_scratch(const struct byi_f32_conv *conv, int threads)
{
    const struct byi_i8_conv c = describe(conv);
    return byi_i8_conv_scratch(&c, threads) + BYI_ALIGN;
}

void byi_f32_tiles_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const struct byi_i8_conv c = describe(conv);
    const int64_t rows = conv->images * byi_f32_product_of(conv->out);
    const struct byi_f32_epilogue e =
        byi_f32_epilogue_at(run, 0, 0, BYI_F32_PANEL, NULL);
    const struct byi_i8_conv_run blocks = {
        .conv = &c,
        .x = run->x,
        .packed = run->weights,
        .bias = (const int32_t *)(const void *)run->bias, /* floats */
        .bias_step = 1,
        .low = e.low,
        .high = e.high,
        .summand = {.at = (const uint8_t *)e.add},
        .silu = has_silu(conv),
        .y = run->y,
        .scratch = (void *)(uintptr_t)byi_align_bytes((uintptr_t)run->scratch),
        .threads = run->threads};
    byi_i8_conv_run(&blocks);
    byi_f32_epilogue_run(run, conv->next + has_silu(conv), 0, rows, 0,
                         conv->outputs);
}
