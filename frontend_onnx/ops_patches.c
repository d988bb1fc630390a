/* SPDX-License-Identifier: Apache-2.0 */
/* ops_patches.c: converts operators on patches of an image, the elements under
 * each position of a sliding window, to several IR operators:
 *
 * Col2Im      -> scatter_elements, which adds the elements of the patches, or
 *                transpose if patches do not overlap
 * DeformConv  -> image.grid_sample at the moved taps, then nn.matmul
 */
#include "frontend_onnx/import.h"

/* Read attribute `name`, n numbers in min .. 2^30. Absent or invalid numbers
 * become `default_value`, so that the caller can compute with all of them. */
static void read_list(struct byi_import *o, const char *name, uint32_t n,
                      int64_t min, int64_t default_value, int64_t *list)
{
    byi_import_int_list(o, name, n, default_value, list);
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] >= min && list[i] <= 1 << 30)
            continue;
        byi_import_fail(o, BYOC_ETYPE, "%s[%u] is %lld, expected %lld to 2^30",
                        name, i, (long long)list[i], (long long)min);
        list[i] = default_value;
    }
}

/* --- small arithmetic ----------------------------------------------------- */

static byi_id emit_sum(struct byi_import *o, byi_id a, byi_id b)
{
    return byi_import_call(o, BYI_OP_ADD, a, b);
}

static byi_id emit_product(struct byi_import *o, byi_id a, byi_id b)
{
    return byi_import_call(o, BYI_OP_MULTIPLY, a, b);
}

static byi_id take_element(struct byi_import *o, byi_id vector, uint32_t i)
{
    return byi_import_take(o, vector, byi_import_scalar(o, BYOC_I64, i), 0);
}

/* Expand x to `rank` axes. Bit i of `bits`: axis i is an axis of x; the other
 * axes are new and have size 1. */
static byi_id expand_to_axes(struct byi_import *o, byi_id x, uint32_t rank,
                             uint32_t bits)
{
    int64_t axes[BYI_MAX_RANK];
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank; i++)
        if (!(bits >> i & 1))
            axes[n++] = i;
    return byi_import_expand_dims(o, x, n, axes);
}

/* Emit a shape: the n numbers of `first`, then dims start .. 3 of x. */
static byi_id emit_shape(struct byi_import *o, uint32_t n, const int64_t *first,
                         byi_id x, int64_t start)
{
    const byi_id dims =
        byi_import_emit(o, BYI_OP_SHAPE_OF, ARGS(x),
                        ATTRS(AN_INT("start", start), AN_INT("end", 4)));

    return byi_import_concat(o, byi_import_vector(o, n, first), dims, 0);
}

/* --- Col2Im --------------------------------------------------------------- */

enum { MAX_SPATIAL_AXES = 3 };

/* The positions of the elements of patches in an image with n axes. */
struct patches {
    uint32_t n;
    byi_id image, block; /* int64 vectors: the lengths */
    int64_t strides[MAX_SPATIAL_AXES], dilations[MAX_SPATIAL_AXES],
        pads[2 * MAX_SPATIAL_AXES];
    byi_id flat;   /* (block, patches): position in the flat image */
    byi_id inside; /* (block, patches): whether it is not in the padding */
};

/* Add an axis of the image to p->flat and p->inside. Axes are added in order.
 */
static void add_axis(struct byi_import *o, struct patches *p, uint32_t axis)
{
    static const char text[] =
        "fn (%length, %taps) {"
        "  %reach = multiply(subtract(%taps, 1), dilation);"
        "  add(divide(add(subtract(%length, %reach), span), stride), 1)"
        "}";
    const byi_id length = take_element(o, p->image, axis);
    const byi_id taps = take_element(o, p->block, axis);
    const struct byi_attr attrs[] = {
        AN_INT("stride", p->strides[axis]),
        AN_INT("dilation", p->dilations[axis]), AN_INT("begin", -p->pads[axis]),
        AN_INT("span", p->pads[axis] + p->pads[axis + p->n] - 1)};
    const byi_id n_patches =
        byi_import_template(o, text, ARGS(length, taps), BYI_N(attrs), attrs);
    const byi_id starts = byi_import_template(
        o, "fn (%k) { add(multiply(%k, stride), begin) }",
        ARGS(byi_import_arange(o, BYI_NO_ID, n_patches)), BYI_N(attrs), attrs);
    const byi_id offsets = byi_import_template(
        o, "fn (%k) { multiply(%k, dilation) }",
        ARGS(byi_import_arange(o, BYI_NO_ID, taps)), BYI_N(attrs), attrs);
    const byi_id base =
        expand_to_axes(o, starts, 2 * p->n, 1u << (axis + p->n));
    const byi_id at =
        emit_sum(o, expand_to_axes(o, offsets, 2 * p->n, 1u << axis), base);
    const byi_id inside = byi_import_template(
        o,
        "fn (%at, %length) {"
        "  logical_and(greater_equal(%at, 0), less(%at, %length))"
        "}",
        ARGS(at, length), NO_ATTRS);

    p->flat = axis ? emit_sum(o, emit_product(o, p->flat, length), at) : at;
    p->inside = axis ? byi_import_call(o, BYI_OP_LOGICAL_AND, p->inside, inside)
                     : inside;
}

/* Whether constant blocks tile the image, so that no elements are added up.
 * Writes the number of tiles along each axis. */
static bool are_tiles(struct byi_import *o, const struct patches *p,
                      const int64_t **block, const int64_t **image,
                      int64_t *tiles)
{
    uint32_t n_image = 0, n_block = 0;

    if (!byi_import_is_const(o, 1) || !byi_import_is_const(o, 2))
        return false;
    *image = byi_import_const_ints(o, 1, "image_shape", &n_image);
    *block = byi_import_const_ints(o, 2, "block_shape", &n_block);
    if (!*image || !*block || n_image != p->n || n_block != p->n)
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        const int64_t length = (*image)[i], size = (*block)[i];
        if (size < 1 || length < size || length % size ||
            p->strides[i] != size || (p->dilations[i] != 1 && size > 1) ||
            p->pads[i] || p->pads[i + p->n])
            return false;
        tiles[i] = length / size;
    }
    return true;
}

/* Emit x (n, channels block, tiles) as (n, channels, image), by a transposition
 * of (n, channels, block.., tiles..) to (n, channels, tile, block, ..). */
static byi_id place_tiles(struct byi_import *o, const struct patches *p,
                          byi_id x, const int64_t *block, const int64_t *image,
                          const int64_t *tiles)
{
    int64_t split_shape[2 + 2 * MAX_SPATIAL_AXES] = {0, -1},
                                image_shape[2 + MAX_SPATIAL_AXES] = {0, -1};
    int64_t axes[2 + 2 * MAX_SPATIAL_AXES] = {0, 1};

    for (uint32_t i = 0; i < p->n; i++) {
        split_shape[2 + i] = block[i];
        split_shape[2 + p->n + i] = tiles[i];
        image_shape[2 + i] = image[i];
        axes[2 + 2 * i] = 2 + p->n + i;
        axes[3 + 2 * i] = 2 + i;
    }
    const byi_id parts = byi_import_call(
        o, BYI_OP_RESHAPE, x, byi_import_vector(o, 2 + 2 * p->n, split_shape));
    const byi_id transposed =
        byi_import_emit(o, BYI_OP_TRANSPOSE, ARGS(parts),
                        ATTRS(SOME_INTS("axes", 2 + 2 * p->n, axes)));
    return byi_import_call(o, BYI_OP_RESHAPE, transposed,
                           byi_import_vector(o, 2 + p->n, image_shape));
}

/* Col2Im: x is (n, channels block, patches), the elements of each channel's
 * patches. The result is (n, channels, image), where elements of the same
 * position are added. Elements in the padding go to one position after the
 * image, which is cut off. */
static void convert_col2im(struct byi_import *o)
{
    static const char text[] =
        "fn (%x, %zero, %inside, %flat, %image) {"
        "  %size = prod(%image, keepdims=false);"
        "  %at = where(%inside, %flat, %size);"
        "  %count = expand_dims(size_of(%at), axis=[0]);"
        "  %values = reshape(%x, concatenate([0, -1], %count, axis=0));"
        "  %planes = shape_of(%values, end=2);"
        "  %end = expand_dims(%size, axis=[0]);"
        "  %empty = broadcast_to(%zero, concatenate(%planes, add(%end, 1),"
        "                                           axis=0));"
        "  %indices = broadcast_to(reshape(%at, %count), shape_of(%values));"
        "  %sum = scatter_elements(%empty, %indices, %values, axis=2,"
        "                          reduction=\"add\");"
        "  reshape(strided_slice(%sum, [0], %end, [2], [1]),"
        "          concatenate(%planes, %image, axis=0))"
        "}";
    struct patches p = {
        .image = byi_import_cast(o, byi_import_in(o, 1), BYOC_I64),
        .block = byi_import_cast(o, byi_import_in(o, 2), BYOC_I64)};
    const bool is_bool = byi_import_dtype(o, byi_import_in(o, 0)) == BYOC_BOOL;
    const byi_id x = is_bool ? byi_import_cast(o, byi_import_in(o, 0), BYOC_I64)
                             : byi_import_in(o, 0);
    const int64_t n = byi_import_known_dim(o, p.image, 0, "image_shape");
    const int64_t *block, *image;
    int64_t tiles[MAX_SPATIAL_AXES];

    if (byi_import_ok(o) && byi_import_rank(o, x) != 3)
        byi_import_refuse(o, "found an input of rank %u, expected 3",
                          byi_import_rank(o, x));
    if (byi_import_ok(o) && (n < 1 || n > MAX_SPATIAL_AXES))
        byi_import_refuse(o, "found an image of %lld axes, expected 1 to %d",
                          (long long)n, MAX_SPATIAL_AXES);
    if (!byi_import_ok(o))
        return;
    p.n = (uint32_t)n;
    read_list(o, "strides", p.n, 1, 1, p.strides);
    read_list(o, "dilations", p.n, 1, 1, p.dilations);
    read_list(o, "pads", 2 * p.n, 0, 0, p.pads);
    if (are_tiles(o, &p, &block, &image, tiles)) {
        o->out[0] =
            place_tiles(o, &p, byi_import_in(o, 0), block, image, tiles);
        return;
    }
    for (uint32_t axis = 0; axis < p.n; axis++)
        add_axis(o, &p, axis);
    const byi_id y = byi_import_template(
        o, text,
        ARGS(x, byi_import_scalar(o, byi_import_dtype(o, x), 0), p.inside,
             p.flat, p.image),
        NO_ATTRS);
    o->out[0] = is_bool ? byi_import_cast(o, y, BYOC_BOOL) : y;
}

/* --- DeformConv ----------------------------------------------------------- */

/* x (n, channels, h, w), weights (outputs, channels / groups, kernel), offsets
 * (n, offset_groups taps 2, height, width). */
struct deformed_conv {
    byi_id x, weights, offsets, mask;
    int64_t kernel[2], strides[2], dilations[2], pads[4];
    int64_t groups, offset_groups, taps;
    int64_t inputs, outputs; /* channels: of x in a group; of the result */
};

/* Emit the positions of the moved taps, (n offset_groups, taps, height, width,
 * 1), on an axis of x (0: height, 1: width). Their unit is that of
 * image.grid_sample, -1 to 1 over the axis. They are float64, since float32
 * would round them too much. */
static byi_id emit_positions(struct byi_import *o,
                             const struct deformed_conv *d, byi_id offsets,
                             uint32_t axis)
{
    const int64_t step = axis ? 1 : d->kernel[1];
    int64_t *tap_offsets =
        byi_arena_calloc(o->scratch, (size_t)d->taps + 1, sizeof *tap_offsets);

    for (int64_t i = 0; i < d->taps; i++)
        tap_offsets[i] =
            i / step % d->kernel[axis] * d->dilations[axis] - d->pads[axis];
    const byi_id starts = byi_import_call_scalar(
        o, BYI_OP_MULTIPLY,
        byi_import_arange(o, BYI_NO_ID,
                          byi_import_length(o, d->offsets, axis + 2)),
        (double)d->strides[axis]);
    const byi_id base = expand_to_axes(o, starts, 3, 2u << axis);
    const byi_id regular = emit_sum(
        o,
        expand_to_axes(o, byi_import_vector(o, (uint32_t)d->taps, tap_offsets),
                       3, 1),
        base);
    const byi_id moves =
        byi_import_take(o, offsets, byi_import_scalar(o, BYOC_I64, axis), 2);
    return byi_import_template(
        o,
        "fn (%moves, %regular, %length) {"
        "  %at = add(%moves, cast(%regular, dtype=%moves));"
        "  %part = divide(add(multiply(%at, 2), 1), cast(%length,"
        "                                               dtype=%moves));"
        "  expand_dims(subtract(%part, 1), axis=[4])"
        "}",
        ARGS(moves, regular, byi_import_length(o, d->x, axis + 2)), NO_ATTRS);
}

/* Emit x at the moved taps, (n offset_groups, channels / offset_groups,
 * taps height, width). */
static byi_id sample_taps(struct byi_import *o, const struct deformed_conv *d)
{
    const int64_t channels = d->groups * d->inputs;
    const byi_id shape = emit_shape(o, INTS(-1, d->taps, 2), d->offsets, 2);
    const byi_id offsets = byi_import_reshape(
        o, byi_import_cast(o, d->offsets, BYOC_F64), shape, false);
    const byi_id down = emit_positions(o, d, offsets, 0);
    const byi_id grid =
        byi_import_concat(o, emit_positions(o, d, offsets, 1), down, 4);
    const byi_id leading_dims = emit_shape(o, INTS(0, -1), d->offsets, 3);
    const byi_id two = byi_import_vector(o, INTS(2));
    const byi_id y = byi_import_call(
        o, BYI_OP_GRID_SAMPLE,
        byi_import_reshape(
            o, d->x,
            emit_shape(o, INTS(-1, channels / d->offset_groups), d->x, 2),
            false),
        byi_import_reshape(o, grid, byi_import_concat(o, leading_dims, two, 0),
                           false));

    if (d->mask == BYI_NO_ID)
        return y;
    const byi_id mask = byi_import_reshape(
        o,
        byi_import_reshape(o, d->mask,
                           emit_shape(o, INTS(-1, d->taps), d->mask, 2), false),
        leading_dims, false);
    return emit_product(o, y, byi_import_add_axes(o, mask, 1, 1));
}

static void read_deformed(struct byi_import *o, struct deformed_conv *d)
{
    const byi_id operands[] = {d->x, d->weights, d->offsets};

    for (uint32_t i = 0; i < BYI_COUNT(operands); i++)
        if (byi_import_rank(o, operands[i]) != 4)
            byi_import_refuse(o, "input %u has rank %u, expected 4", i,
                              byi_import_rank(o, operands[i]));
    if (!byi_import_ok(o))
        return;
    read_list(o, "kernel_shape", 2, 0, 0, d->kernel);
    read_list(o, "strides", 2, 1, 1, d->strides);
    read_list(o, "dilations", 2, 1, 1, d->dilations);
    read_list(o, "pads", 4, 0, 0, d->pads);
    d->outputs = byi_import_dim(o, d->weights, 0);
    d->inputs = byi_import_dim(o, d->weights, 1);
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t dim = byi_import_dim(o, d->weights, i + 2);
        if (d->kernel[i] && d->kernel[i] != dim && !BYI_IS_SYMBOL(dim))
            byi_import_fail(o, BYOC_ETYPE,
                            "kernel_shape[%u] is %lld, expected %lld as in the "
                            "weights",
                            i, (long long)d->kernel[i], (long long)dim);
        d->kernel[i] = dim;
    }
    const bool countable =
        !__builtin_mul_overflow(d->kernel[0], d->kernel[1], &d->taps);
    d->groups = byi_import_int(o, "group", 1);
    d->offset_groups = byi_import_int(o, "offset_group", 1);
    if (BYI_IS_SYMBOL(d->outputs) || BYI_IS_SYMBOL(d->inputs) ||
        BYI_IS_SYMBOL(d->kernel[0]) || BYI_IS_SYMBOL(d->kernel[1]))
        byi_import_refuse(o, "found weights with a symbolic dim, expected "
                             "known dims");
    else if (!d->outputs || !d->inputs || !d->kernel[0] || !d->kernel[1])
        byi_import_refuse(o, "found weights with a dim of 0, expected dims of "
                             "at least 1");
    else if (!countable || d->taps > 1 << 20)
        byi_import_refuse(
            o, "found a kernel of %lld by %lld, expected at most 2^20 elements",
            (long long)d->kernel[0], (long long)d->kernel[1]);
    else if (d->groups < 1 || d->outputs % d->groups ||
             d->inputs > (1 << 30) / d->groups)
        byi_import_fail(o, BYOC_ETYPE,
                        "group is %lld, expected a divisor of the %lld output "
                        "channels",
                        (long long)d->groups, (long long)d->outputs);
    else if (d->offset_groups < 1 || d->inputs * d->groups % d->offset_groups)
        byi_import_fail(o, BYOC_ETYPE,
                        "offset_group is %lld, expected a divisor of the %lld "
                        "input channels",
                        (long long)d->offset_groups,
                        (long long)(d->inputs * d->groups));
}

/* DeformConv is a convolution whose taps are moved by offsets, and multiplied
 * by a mask (Zhu et al., "Deformable ConvNets v2", 2018). */
static void convert_deform_conv(struct byi_import *o)
{
    struct deformed_conv d = {.x = byi_import_in(o, 0),
                              .weights = byi_import_in(o, 1),
                              .offsets = byi_import_in(o, 2),
                              .mask = byi_import_in(o, 4)};
    const byi_id bias = byi_import_in(o, 3);

    read_deformed(o, &d);
    if (!byi_import_ok(o))
        return;
    const byi_id width = byi_import_length(o, d.offsets, 3);
    const byi_id n_positions = byi_import_add_axes(
        o, emit_product(o, byi_import_length(o, d.offsets, 2), width), 0, 1);
    const byi_id shape = byi_import_concat(
        o, byi_import_vector(o, INTS(-1, d.groups, d.inputs * d.taps)),
        n_positions, 0);
    const byi_id samples =
        byi_import_reshape(o, sample_taps(o, &d), shape, false);
    const byi_id products = byi_import_call(
        o, BYI_OP_NN_MATMUL,
        byi_import_reshape_to(
            o, d.weights,
            INTS(d.groups, d.outputs / d.groups, d.inputs * d.taps)),
        samples);
    byi_id y = byi_import_reshape(
        o, products, emit_shape(o, INTS(-1, d.outputs), d.offsets, 2), false);
    if (bias != BYI_NO_ID)
        y = emit_sum(o, y, byi_import_add_axes(o, bias, 1, 2));
    o->out[0] = y;
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_patches, BYI_ONNX,
    {"Col2Im", 18, 3, 3, convert_col2im, BYI_OP_NONE},
    {"DeformConv", 19, 3, 5, convert_deform_conv, BYI_OP_NONE})
/* clang-format on */
