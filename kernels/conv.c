/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/conv.c: chooses the algorithm of a convolution, packs its weights and
 * runs it. The choice depends on the shapes, the element types and the machine.
 */
#include "kernels/conv.h"
#include "kernels/i8.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

const struct byi_f32_kernels *byi_f32_kernels_of(enum byi_isa isa)
{
#if defined(__x86_64__)
    if (isa >= BYI_ISA_AVX512)
        return &byi_f32_avx512;
    if (isa >= BYI_ISA_AVX2)
        return &byi_f32_avx2;
#endif
    (void)isa;
    return &byi_f32_base;
}

const struct byi_f32_kernels *byi_f32_kernels(void)
{
    return byi_f32_kernels_of(byi_isa_widest());
}

/* Bytes of a core's second-level cache. Read once, since sysconf takes
 * microseconds on some machines. */
static int64_t second_cache;
static pthread_once_t second_cache_once = PTHREAD_ONCE_INIT;

static void read_second_cache(void)
{
    second_cache = 512 << 10;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes >= 128 << 10)
        second_cache = bytes;
#endif
}

int64_t byi_f32_second_cache(void)
{
    pthread_once(&second_cache_once, read_second_cache);
    return second_cache;
}

/* --- planning ------------------------------------------------------------- */

/* Find the leading operations that the kernels apply to the sums: an addition
 * and a clamp; ReLU becomes a clip. conv->next is the first operation after
 * them. */
static void split_epilogue(struct byi_f32_conv *conv)
{
    const struct byi_f32_epilogue_op *op = conv->epilogue;
    byi_f32_unary_fn *const relu = conv->kernels->unary[BYI_OP_NN_RELU];
    byi_f32_unary_fn *const clip = conv->kernels->unary[BYI_OP_CLIP];
    conv->next = 0;
    conv->adds = conv->n_epilogue > 0 &&
                 op->binary == conv->kernels->binary[BYI_F32_ADD] &&
                 op->repeat == 1 && op->column == 1 && op->row == conv->outputs;
    conv->next += conv->adds;
    conv->clamps = false;
    if (conv->next == conv->n_epilogue)
        return;
    struct byi_f32_epilogue_op *clamp = &conv->epilogue[conv->next];
    conv->clamps =
        clamp->unary && (clamp->unary == relu || clamp->unary == clip);
    if (clamp->unary == relu && conv->clamps) {
        clamp->unary = conv->kernels->unary[BYI_OP_CLIP];
        clamp->p0 = 0;
        clamp->p1 = INFINITY;
    }
    conv->next += conv->clamps;
}

/* The outputs of a slim group; 0 if groups are not slim. */
static int64_t slim_outputs(const struct byi_f32_conv *conv)
{
    const int64_t columns = conv->outputs / conv->groups;
    const int64_t channels = conv->channels / conv->groups;
    const bool slim =
        columns == 8 ? channels % 4 == 0 : columns == 4 && channels == 4;
    return slim && conv->groups > 1 && conv->outputs % 8 == 0 &&
                   !conv->transposed && !conv->planar && !conv->gathers
               ? columns
               : 0;
}

/* Compute small groups together, since a panel holds the columns of several
 * groups, and the loop over the few channels of one group is short. Unless
 * groups are slim, channels of the other groups are multiplied by zero, which
 * gives NaN if one is infinite or NaN; so `exact` leaves the groups apart. */
static void merge_groups(struct byi_f32_conv *conv, bool exact)
{
    const int64_t columns = conv->outputs / conv->groups;
    conv->slim = slim_outputs(conv);
    if (conv->slim) {
        conv->merged_groups = 1;
        conv->merged_channels = conv->channels / conv->groups;
        conv->merged_outputs = conv->outputs;
        return;
    }
    int64_t merged = 1;
    for (int64_t n = 2;
         !exact && n <= conv->groups && n * columns <= BYI_F32_PANEL; n++)
        if (conv->groups % n == 0)
            merged = n;
    conv->merged_groups = conv->groups / merged;
    conv->merged_channels = conv->channels / conv->merged_groups;
    conv->merged_outputs = conv->outputs / conv->merged_groups;
}

/* Whether this CPU runs the kernels' 512-bit instructions in two halves. */
static bool has_halves(const struct byi_f32_conv *conv)
{
    return conv->kernels->rows > 6 && byi_isa_halves_512();
}

/* Whether F(4 x 4) pays for this number of tiles of an image and of pairs of a
 * channel and an output. Its weights are large and come from memory, so that
 * many of them need many tiles; fewer if multiplications are slow. */
static bool suits_winograd_4(const struct byi_f32_conv *conv, int64_t tiles,
                             int64_t pairs)
{
    static const struct {
        int64_t tiles, pairs; /* at least, at most */
        bool halves;          /* only with 512-bit instructions in halves */
    } cases[] = {
        {1, 192 * 192, false},
        {16, 256 * 256, true},
        {25, 256 * 512, false},
        {49, INT64_MAX, false},
    };
    if (conv->kernels->rows < 6) /* SSE2 */
        return true;
    for (size_t i = 0; i < BYI_COUNT(cases); i++)
        if (tiles >= cases[i].tiles && pairs <= cases[i].pairs &&
            (!cases[i].halves || has_halves(conv)))
            return true;
    return false;
}

/* Tiles of m x m outputs of an image. */
static int64_t tiles_of(const struct byi_f32_conv *conv, int64_t m)
{
    return byi_f32_winograd_tiles(conv, 1, m) *
           byi_f32_winograd_tiles(conv, 2, m);
}

/* Whether F(6 x 6) pays instead of F(4 x 4). It computes 36 outputs with 64
 * products instead of 16 with 36, a gain that incomplete tiles must not use up.
 * The weights are 1.8 times as large, and the rounding errors about twice. */
static bool suits_winograd_6(const struct byi_f32_conv *conv, int64_t tiles,
                             int64_t pairs)
{
    const int64_t large = tiles_of(conv, 6);
    return large >= 36 && pairs <= 128 * 192 &&
           large * 64 * 20 <= tiles * 36 * 17;
}

/* The form of Winograd's algorithm for a window of `taps` x `taps`, or of
 * `taps` along one axis; BYI_F32_DIRECT if there is none. */
static enum byi_f32_algorithm choose_form(const struct byi_f32_conv *conv,
                                          int64_t taps, bool one_axis)
{
    const int64_t pairs = conv->merged_channels * conv->merged_outputs;
    const int64_t tiles = tiles_of(conv, 4);
    switch (taps) {
    case 3:
        return one_axis                               ? BYI_F32_WINOGRAD_ROW_3
               : suits_winograd_6(conv, tiles, pairs) ? BYI_F32_WINOGRAD_6
               : suits_winograd_4(conv, tiles, pairs) ? BYI_F32_WINOGRAD_4
                                                      : BYI_F32_WINOGRAD_2;
    case 5:
        return one_axis ? BYI_F32_WINOGRAD_ROW_5 : BYI_F32_WINOGRAD_4_5;
    case 7:
        return one_axis ? BYI_F32_WINOGRAD_ROW_7 : BYI_F32_DIRECT;
    default:
        return BYI_F32_DIRECT;
    }
}

/* Whether Winograd's algorithm pays for windows along one axis. With AVX2, the
 * transforms take as long as the products that they save, or longer, for fewer
 * than 32 channels and, with seven taps, fewer than 48 channels or 32 outputs.
 */
static bool suits_winograd_line(const struct byi_f32_conv *conv, int64_t taps)
{
    if (conv->merged_channels * conv->merged_outputs < 32 * 32)
        return false;
    if (conv->kernels->rows != 6)
        return true;
    return conv->merged_channels >= (taps == 7 ? 48 : 32) &&
           (taps < 7 || conv->merged_outputs >= 32);
}

/* Winograd's algorithm needs fewer multiplications (4/9 for F(2 x 2, 3 x 3),
 * 1/4 for F(4 x 4, 3 x 3)), but has larger weights (16/9, 4 times), which are
 * read once for each block of tiles. The choice ignores the number of images,
 * so that models with varying batch size pack weights once.
 */
static enum byi_f32_algorithm choose_winograd(const struct byi_f32_conv *conv)
{
    const int64_t *size = conv->size;
    const int64_t taps = size[1] > size[2] ? size[1] : size[2];
    const bool one_axis = size[1] == 1 || size[2] == 1;
    if (conv->slim || size[0] != 1 || conv->stride[0] != 1 ||
        conv->pad[0] != 0 || conv->in[0] != conv->out[0] ||
        (!one_axis && size[1] != size[2]))
        return BYI_F32_DIRECT;
    for (int i = 1; i < BYI_F32_AXES; i++)
        if (conv->stride[i] != 1 ||
            (size[i] > 1 && conv->out[i] < 5 * conv->dilation[i]))
            return BYI_F32_DIRECT;
    /* with fewer outputs than a vector of AVX-512 has floats, and with few
     * pairs along one axis, the transforms take as long as the products */
    const bool narrow =
        conv->kernels->rows > 6 && conv->merged_outputs < BYI_F32_PANEL;
    /* groups need more channels, since each channel is transformed for the few
     * outputs of its group */
    const int64_t least = narrow ? 32 : conv->groups > 1 ? 24 : 16;
    if (conv->merged_channels < least ||
        (one_axis && !suits_winograd_line(conv, taps)))
        return BYI_F32_DIRECT;
    return choose_form(conv, taps, one_axis);
}

static bool is_product(const struct byi_f32_conv *conv)
{
    return byi_f32_product_of(conv->size) == 1 &&
           byi_f32_product_of(conv->in) == 1 &&
           byi_f32_product_of(conv->out) == 1 && conv->groups == 1;
}

/* Bytes of the largest float32 matrix that is packed to be multiplied by one
 * vector. The panels of a packed matrix are read a fifth to a half faster than
 * the matrix, since they are one or two streams on huge pages. Packing a
 * larger matrix takes too long, and needs memory for both. */
enum { PACKED_FOR_VECTOR = 32 << 20 };

/* Whether to read the matrix without packing it. Narrow weights that fit the
 * second-level cache are packed, which converts them to float32; larger ones
 * would then be read at half the speed. The kernel cannot add to y. */
static bool suits_vector(const struct byi_f32_conv *conv)
{
    const int64_t most = conv->weight_type ? conv->cache : PACKED_FOR_VECTOR;
    return is_product(conv) && !conv->gathers && conv->images == 1 &&
           !conv->adds &&
           (conv->weight_strides[0] == 1 || conv->weight_strides[1] == 1) &&
           conv->channels * conv->outputs * (int64_t)sizeof(float) > most;
}

/* Whether to use blocks of narrow numbers, which belong to the widest
 * instruction set. Without AMX's tiles, their multiply-adds have twice the rate
 * of float32, and F(4 x 4) needs a quarter of them, or fewer. */
static bool suits_tiles(const struct byi_f32_conv *conv, bool exact)
{
    const bool has_amx = byi_i8_kernels()->block_bytes;
    if (conv->kernels != byi_f32_kernels() || !byi_f32_tiles_suit(conv))
        return false;
    const enum byi_f32_algorithm winograd = choose_winograd(conv);
    return has_amx || exact || winograd < BYI_F32_WINOGRAD_4 ||
           winograd > BYI_F32_WINOGRAD_4_5;
}

bool byi_f32_conv_reads_in_place(const struct byi_f32_conv *conv)
{
    return conv->algorithm == BYI_F32_VECTOR;
}

/* If the window slides along axis 0 only, and reads every position of the other
 * axes once, describe it as a window along axis 1: the positions of a plane
 * become one line. Kernels for lines are faster, among them Winograd's. */
static void join_planes(struct byi_f32_conv *conv)
{
    bool joins = conv->size[0] > 1 && !conv->transposed && !conv->planar;
    for (int i = 1; i < BYI_F32_AXES; i++)
        joins = joins && conv->size[i] == 1 && conv->stride[i] == 1 &&
                conv->pad[i] == 0 && conv->in[i] == conv->out[i];
    if (!joins)
        return;
    conv->joins_planes = true;
    conv->in[2] = conv->out[2] = conv->in[1] * conv->in[2];
    int64_t *const members[] = {conv->in,     conv->out,      conv->size,
                                conv->stride, conv->dilation, conv->pad};
    for (size_t i = 0; i < BYI_COUNT(members); i++)
        members[i][1] = members[i][0];
    conv->in[0] = conv->out[0] = conv->size[0] = 1;
    conv->stride[0] = conv->dilation[0] = 1;
    conv->pad[0] = 0;
}

void byi_f32_conv_plan(struct byi_f32_conv *conv, bool exact)
{
    join_planes(conv);
    conv->cache = byi_f32_second_cache();
    conv->exact = exact;
    if (!conv->kernels)
        conv->kernels = byi_f32_kernels();
    split_epilogue(conv);
    merge_groups(conv, exact);
    conv->algorithm = byi_f32_spread_suits(conv)    ? BYI_F32_SPREAD
                      : conv->transposed            ? BYI_F32_TRANSPOSED
                      : conv->planar                ? BYI_F32_PLANAR
                      : byi_f32_is_depthwise(conv)  ? BYI_F32_DEPTHWISE
                      : suits_vector(conv)          ? BYI_F32_VECTOR
                      : suits_tiles(conv, exact)    ? BYI_F32_TILES
                      : byi_f32_shifted_suits(conv) ? BYI_F32_SHIFTED
                      : exact                       ? BYI_F32_DIRECT
                                                    : choose_winograd(conv);
}

/* --- compared with oneDNN ------------------------------------------------- */

/* Whether the epilogue computes the logistic function, SiLU, GELU or tanh, for
 * which oneDNN takes two to three times as long with AVX2 and AVX-512. */
static bool has_fast_function(const struct byi_f32_conv *conv)
{
    byi_f32_unary_fn *const *unary = conv->kernels->unary;
    if (conv->kernels->rows < 6)
        return false;
    for (uint32_t i = conv->next; i < conv->n_epilogue; i++) {
        const struct byi_f32_epilogue_op *op = &conv->epilogue[i];
        if (op->unary && (op->unary == unary[BYI_OP_NN_SILU] ||
                          op->unary == unary[BYI_OP_SIGMOID] ||
                          op->unary == unary[BYI_OP_TANH] ||
                          op->unary == unary[BYI_OP_NN_GELU]))
            return true;
    }
    return false;
}

/* For pointwise convolutions. With AVX2, oneDNN's kernels are faster only with
 * few channels or if the outputs do not fill panels, and even then not if the
 * epilogue has a function of has_fast_function(). With AVX-512 they wait for
 * weights if these are read for few positions, store parts of vectors slowly,
 * and take longer to create; otherwise they are as fast. */
static bool pointwise_pays(const struct byi_f32_conv *conv)
{
    return conv->kernels->rows > 6 || has_fast_function(conv) ||
           (conv->channels >= 32 && conv->outputs % BYI_F32_PANEL == 0);
}

/* For products: oneDNN's kernels are as fast if there are few channels, except
 * for a vector by a matrix. They are faster on CPUs that execute AVX-512 in two
 * halves. */
static bool product_pays(const struct byi_f32_conv *conv)
{
    return conv->images == 1 ||
           ((conv->channels >= 256 || has_fast_function(conv)) &&
            !has_halves(conv));
}

/* For groups that are not depthwise: oneDNN is as fast with AVX-512, except for
 * groups of 4 on CPUs that execute it in two halves. With AVX2 it is slower for
 * groups that fill whole panels, also if several are merged to fill one, and
 * takes three to ten times as long for groups of fewer outputs than a vector.
 */
static bool groups_pay(const struct byi_f32_conv *conv)
{
    return conv->kernels->rows > 6
               ? conv->slim == 4 && has_halves(conv)
               : conv->slim || conv->merged_outputs % BYI_F32_PANEL == 0 ||
                     conv->outputs / conv->groups < conv->kernels->width;
}

/* Whether the window slides along one axis. */
static bool is_line(const struct byi_f32_conv *conv)
{
    return conv->in[1] == 1 && conv->size[1] == 1;
}

/* For products and the remaining convolutions: oneDNN's kernels are as fast if
 * there are few channels. Along one axis, those for AVX-512 take 10 to 40 ms
 * to create, so that being as fast is not enough. */
static bool direct_pays(const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    if (conv->kernels->rows < 6)
        return false;
    if (is_product(conv))
        return product_pays(conv);
    if (conv->groups > 1)
        return groups_pay(conv);
    if (conv->channels < 16)
        return false;
    if (taps == 1)
        return pointwise_pays(conv);
    return conv->kernels->rows == 6 || is_line(conv) || conv->channels >= 64;
}

/* For depthwise convolutions. Without AVX-512, oneDNN is faster for small
 * windows that slide along two axes and are not dilated or have at most nine
 * taps, with two exceptions: with AVX2, windows of 3 or 5 columns and stride 1,
 * and an epilogue with a function of has_fast_function(). For other windows
 * oneDNN uses slow general kernels. */
static bool depthwise_pays(const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    const bool dilated = conv->dilation[1] > 1 || conv->dilation[2] > 1;
    const bool is_common = (conv->size[2] == 3 || conv->size[2] == 5) &&
                           conv->stride[1] == 1 && conv->stride[2] == 1;
    return conv->channels >= BYI_F32_PANEL &&
           (conv->kernels->rows > 6 || has_fast_function(conv) ||
            is_line(conv) || conv->size[2] > 7 || (dilated && taps > 9) ||
            (conv->kernels->rows == 6 && is_common && !dilated));
}

/* For transposed convolutions: oneDNN computes the gradient of a convolution,
 * far from the peak. For images it takes up to 30 times as long with groups or
 * few channels. Along one axis it is faster with groups that are not depthwise,
 * and with few channels. Otherwise it is as fast only with SSE2, and only if
 * windows do not overlap. */
static bool transposed_pays(const struct byi_f32_conv *conv)
{
    if (!is_line(conv) && (conv->groups > 1 || conv->channels < BYI_F32_PANEL))
        return true;
    if (conv->groups > 1 && !byi_f32_is_depthwise(conv))
        return false;
    const bool overlap =
        conv->stride[1] < conv->size[1] || conv->stride[2] < conv->size[2];
    return conv->channels >= BYI_F32_PANEL &&
           (overlap || conv->kernels->rows >= 6);
}

/* For BYI_F32_SPREAD: oneDNN is faster only along one axis, and only for one
 * channel or with SSE2. */
static bool spread_pays(const struct byi_f32_conv *conv)
{
    return !is_line(conv) || conv->groups > 1 ||
           (conv->channels > 1 && conv->kernels->rows >= 6);
}

/* Whether a tile multiplies half a panel in half the time. */
static bool halves_planes(void)
{
    return byi_f32_kernels()->partial == 1 && byi_isa_halves_512();
}

/* A tile computes whole panels, except for half a panel if halves_planes()
 * returns true. oneDNN is up to twice as fast with other numbers of outputs
 * below a panel. The same holds if the last panel must be copied, because the
 * kernels cannot store a part of it. If byi_f32_tiles_suit() returns true,
 * blocks of narrow numbers on AMX's tiles are faster than planar data. */
bool byi_f32_planar_pays(const struct byi_f32_conv *conv)
{
    return (conv->outputs >= BYI_F32_PANEL ||
            (conv->outputs == BYI_F32_PANEL / 2 && halves_planes())) &&
           !byi_f32_tiles_suit(conv) &&
           (conv->outputs % BYI_F32_PANEL == 0 ||
            (byi_f32_kernels()->partial &&
             conv->outputs % byi_f32_kernels()->partial == 0));
}

bool byi_f32_conv_runs(const struct byi_f32_conv *conv)
{
    return !(conv->planar && conv->adds);
}

bool byi_f32_conv_pays(const struct byi_f32_conv *conv)
{
    /* depthwise kernels need no pointer for each tap; oneDNN computes long
     * windows along one axis group by group, but is faster along two */
    if ((byi_f32_product_of(conv->size) > BYI_F32_PIECES &&
         !(conv->algorithm == BYI_F32_DEPTHWISE && is_line(conv))) ||
        (conv->channels > BYI_F32_ZEROS && !is_product(conv)) ||
        !byi_f32_conv_runs(conv))
        return false;
    if (conv->type) /* oneDNN would run on float32 copies of all data */
        return true;
    if (conv->gathers)
        return conv->algorithm == BYI_F32_DIRECT && conv->merged_groups == 1;
    switch (conv->algorithm) {
    case BYI_F32_DIRECT:
        return direct_pays(conv);
    case BYI_F32_DEPTHWISE:
        return depthwise_pays(conv);
    case BYI_F32_TRANSPOSED:
        return transposed_pays(conv);
    case BYI_F32_SPREAD:
        return spread_pays(conv);
    default:
        return true;
    }
}

const char *byi_f32_conv_name(const struct byi_f32_conv *conv)
{
    return conv->algorithm == BYI_F32_TILES
               ? byi_i8_kernels()->block_names[1]
               : conv->kernels->names[conv->algorithm];
}

/* --- weights -------------------------------------------------------------- */

static void pack_direct(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, float *to)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t merged = conv->groups / conv->merged_groups;
    const int64_t panel = taps * conv->merged_channels * BYI_F32_PANEL;
    const int64_t floats = byi_f32_direct_floats(conv);
    const int64_t channels = conv->channels / conv->groups;
    /* if groups are merged, or the last panel is not full, some weights
     * are zero */
    if (merged > 1 || conv->merged_outputs % BYI_F32_PANEL != 0)
        memset(to, 0, (size_t)(conv->merged_groups * floats) * sizeof *to);
    for (int64_t g = 0; g < conv->groups; g++)
        for (int64_t t = 0; t < taps; t++) {
            const float *from = byi_f32_tap_at(
                conv, weights, weights->at + g * weights->group, t);
            byi_f32_pack_tap(
                conv, weights, from, panel,
                g % merged * (conv->merged_outputs / merged),
                to + g / merged * floats +
                    (t * conv->merged_channels + g % merged * channels) *
                        BYI_F32_PANEL);
        }
}

/* Pack slim groups. Row k of a tap has weights of the channels c to c + 3,
 * where c is k rounded down to a multiple of 4: for output o of a group, the
 * weight of channel c + (o + k) % 4. */
static void pack_slim(const struct byi_f32_conv *conv,
                      const struct byi_f32_weights *weights, float *to)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    const int64_t n = conv->merged_channels;
    memset(to, 0, (size_t)byi_f32_direct_floats(conv) * sizeof *to);
    for (int64_t column = 0; column < conv->outputs; column++) {
        const int64_t o = column % conv->slim;
        const float *from = weights->at + column / conv->slim * weights->group +
                            o * weights->output;
        float *panel = to + column / BYI_F32_PANEL * taps * n * BYI_F32_PANEL +
                       column % BYI_F32_PANEL;
        for (int64_t t = 0; t < taps; t++) {
            const float *tap = byi_f32_tap_at(conv, weights, from, t);
            for (int64_t k = 0; k < n; k++)
                panel[(t * n + k) * BYI_F32_PANEL] =
                    tap[(k / 4 * 4 + (o + k) % 4) * weights->channel];
        }
    }
}

static void pack_depthwise(const struct byi_f32_conv *conv,
                           const struct byi_f32_weights *weights, float *to)
{
    for (int64_t i = 0; i < conv->size[0]; i++)
        for (int64_t j = 0; j < conv->size[1]; j++)
            for (int64_t k = 0; k < conv->size[2]; k++)
                for (int64_t c = 0; c < conv->channels; c++)
                    *to++ =
                        weights->at[c * weights->group + i * weights->tap[0] +
                                    j * weights->tap[1] + k * weights->tap[2]];
    memset(to, 0, BYI_F32_PANEL * sizeof *to);
}

static void pack_panels(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, float *to)
{
    if (conv->slim)
        pack_slim(conv, weights, to);
    else
        pack_direct(conv, weights, to);
}

/* --- the algorithms ------------------------------------------------------- */

/* Scratch memory for the pointers of each thread to the pieces of a row. */
static uint64_t pointers_scratch(const struct byi_f32_conv *conv, int threads)
{
    return (uint64_t)threads *
           byi_f32_pointer_bytes(byi_f32_product_of(conv->size));
}

/* The functions of an algorithm. byi_f32_conv_pack() packs the weights of
 * BYI_F32_TILES, which are not float32. */
struct conv_algorithm {
    int64_t (*floats)(const struct byi_f32_conv *); /* of the packed weights of
                                                     * a merged group */
    void (*pack)(const struct byi_f32_conv *, const struct byi_f32_weights *,
                 float *to);
    uint64_t (*scratch)(const struct byi_f32_conv *, int threads);
    void (*run)(const struct byi_f32_conv_run *);
};
static const struct conv_algorithm algorithms[] = {
    [BYI_F32_DIRECT] = {byi_f32_direct_floats, pack_panels,
                        byi_f32_direct_scratch, byi_f32_direct_run},
    [BYI_F32_DEPTHWISE] = {byi_f32_direct_floats, pack_depthwise,
                           pointers_scratch, byi_f32_depthwise_run},
    [BYI_F32_PLANAR] = {byi_f32_direct_floats, byi_f32_planar_pack,
                        byi_f32_planar_scratch, byi_f32_planar_run},
    [BYI_F32_TRANSPOSED] = {byi_f32_direct_floats, byi_f32_transposed_pack,
                            pointers_scratch, byi_f32_transposed_run},
    [BYI_F32_SPREAD] = {byi_f32_spread_floats, byi_f32_spread_pack,
                        byi_f32_spread_scratch, byi_f32_spread_run},
    [BYI_F32_SHIFTED] = {byi_f32_shifted_floats, byi_f32_shifted_pack,
                         byi_f32_shifted_scratch, byi_f32_shifted_run},
    [BYI_F32_VECTOR] = {byi_f32_direct_floats, pack_panels, pointers_scratch,
                        byi_f32_vector_run},
    [BYI_F32_TILES] = {NULL, NULL, byi_f32_tiles_scratch, byi_f32_tiles_run},
};

/* The algorithm of the convolution; all forms of Winograd's are one. */
static const struct conv_algorithm *algorithm_of(
    const struct byi_f32_conv *conv)
{
    static const struct conv_algorithm winograd = {
        byi_f32_winograd_floats, byi_f32_winograd_pack,
        byi_f32_winograd_scratch, byi_f32_winograd_run};
    return byi_f32_is_winograd(conv) ? &winograd : &algorithms[conv->algorithm];
}

/* --- packing -------------------------------------------------------------- */

uint64_t byi_f32_conv_packed(const struct byi_f32_conv *conv)
{
    const int64_t taps = byi_f32_product_of(conv->size);
    if (conv->algorithm == BYI_F32_TILES)
        return byi_f32_tiles_packed(conv);
    if (conv->algorithm == BYI_F32_DEPTHWISE) /* reads whole vectors */
        return (uint64_t)(taps * conv->channels + BYI_F32_PANEL) *
               sizeof(float);
    return (uint64_t)(conv->merged_groups * algorithm_of(conv)->floats(conv)) *
           sizeof(float);
}

/* Pack merged groups [first, end). */
static void pack_groups(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, int64_t first,
                        int64_t end, float *to)
{
    const int64_t merged = conv->groups / conv->merged_groups;
    struct byi_f32_conv part = *conv;
    struct byi_f32_weights from = *weights;
    part.merged_groups = end - first;
    part.groups = merged * part.merged_groups;
    part.channels = conv->merged_channels * part.merged_groups;
    part.outputs = conv->merged_outputs * part.merged_groups;
    from.at += first * merged * weights->group;
    const struct conv_algorithm *algorithm = algorithm_of(conv);
    algorithm->pack(&part, &from, to + first * algorithm->floats(conv));
}

/* Pack the weights of any algorithm except BYI_F32_TILES. */
static void pack_float32(const struct byi_f32_conv *conv,
                         const struct byi_f32_weights *weights, float *to,
                         int threads)
{
    const bool by_groups =
        conv->algorithm != BYI_F32_DEPTHWISE && !conv->transposed;
    if (conv->merged_groups > 1 && by_groups) {
        const int64_t team = byi_min(threads, conv->merged_groups);
#pragma omp parallel for num_threads((int)team) if (team > 1) schedule(static)
        for (int64_t i = 0; i < team; i++)
            pack_groups(conv, weights, conv->merged_groups * i / team,
                        conv->merged_groups * (i + 1) / team, to);
        return;
    }
    const int64_t panels = byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL);
    const struct conv_algorithm *algorithm = algorithm_of(conv);
    const int64_t floats = algorithm->floats(conv) / byi_max(panels, 1);
    const bool by_panels = conv->groups == 1 && !conv->transposed &&
                           conv->algorithm != BYI_F32_SHIFTED;
    const int64_t n = by_panels ? byi_min(threads, panels) : 1;
#pragma omp parallel for num_threads((int)n) if (n > 1) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = panels * i / n * BYI_F32_PANEL;
        struct byi_f32_conv part = *conv;
        struct byi_f32_weights from = *weights;
        if (n > 1)
            part.outputs = part.merged_outputs =
                byi_min(panels * (i + 1) / n * BYI_F32_PANEL, conv->outputs) -
                first;
        from.at += first * from.output;
        algorithm->pack(&part, &from, to + first / BYI_F32_PANEL * floats);
    }
}

void byi_f32_conv_pack(const struct byi_f32_conv *conv,
                       const struct byi_f32_weights *weights, float *to,
                       int threads)
{
    struct byi_f32_weights from = *weights;
    if (conv->joins_planes)
        from.tap[1] = from.tap[0];
    if (conv->algorithm == BYI_F32_TILES)
        byi_f32_tiles_pack(conv, &from, to);
    else
        pack_float32(conv, &from, to, threads);
}

bool byi_f32_conv_packs_alike(const struct byi_f32_conv *a,
                              const struct byi_f32_conv *b)
{
    return a->algorithm == b->algorithm && a->channels == b->channels &&
           a->outputs == b->outputs && a->groups == b->groups &&
           memcmp(a->size, b->size, sizeof a->size) == 0 &&
           (!a->transposed ||
            (memcmp(a->pad, b->pad, sizeof a->pad) == 0 &&
             memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
             memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0));
}

/* --- running -------------------------------------------------------------- */

static const float shared_zeros[BYI_F32_ZEROS];

/* Bytes of a piece of padding; 0 if the shared one is long enough. */
static uint64_t zeros_bytes(const struct byi_f32_conv *conv)
{
    const int64_t most = conv->size[2] * conv->channels;
    return most > BYI_F32_ZEROS ? (uint64_t)(most + 1) / 2 * 2 * sizeof(float)
                                : 0;
}

uint64_t byi_f32_conv_scratch(const struct byi_f32_conv *conv, int threads)
{
    if (conv->type)
        return byi_f32_strips_scratch(conv, threads);
    return zeros_bytes(conv) + algorithm_of(conv)->scratch(conv, threads);
}

/* Each thread should have about 2^18 multiplications. Reading a weight takes as
 * long as four multiplications from the second-level cache, and as long as
 * fourteen from the third-level cache, where the weights of all layers usually
 * are when a run begins. This dominates the product of a vector by a matrix.
 * For depthwise convolutions, 2^14 suffice: they mostly read and write data,
 * which is faster if a thread finds most of its data in the cache of its own
 * core. */
int byi_f32_conv_team(const struct byi_f32_conv *conv, int threads)
{
    const int64_t *sizes = conv->transposed ? conv->in : conv->out;
    const int64_t positions = conv->images * byi_f32_product_of(sizes);
    const int64_t weights = conv->outputs * (conv->channels / conv->groups) *
                            byi_f32_product_of(conv->size);
    const int per_thread = conv->algorithm == BYI_F32_DEPTHWISE ? 14 : 18;
    const int64_t most = (positions + 12) * weights >> per_thread;
    return most < 1 ? 1 : most < threads ? (int)most : threads;
}

void byi_f32_conv_run(const struct byi_f32_conv_run *caller_run)
{
    if (caller_run->conv->type) {
        byi_f32_strips_run(caller_run);
        return;
    }
    struct byi_f32_conv_run run = *caller_run;
    const uint64_t zeros = zeros_bytes(run.conv);
    run.threads = byi_f32_conv_team(run.conv, run.threads);
    run.zeros = zeros ? memset(run.scratch, 0, zeros) : shared_zeros;
    run.scratch = (char *)run.scratch + zeros;
    algorithm_of(run.conv)->run(&run);
}
