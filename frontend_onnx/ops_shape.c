/* SPDX-License-Identifier: Apache-2.0 */
/* ops_shape.c: converts operators that change the shape, or move elements in
 * blocks.
 *
 * Shape inputs become int64 operands. Inputs that are attributes in the IR
 * (axes, sizes of a split) select the operator's dyn form if they are not
 * constant.
 */
#include "frontend_onnx/import.h"

static byi_id cast_int64(struct byi_import *o, byi_id id)
{
    return byi_import_cast(o, id, BYOC_I64);
}

/* --- reshape and similar operators ---------------------------------------- */

static void convert_reshape_1(struct byi_import *o)
{
    uint32_t n = 0;
    const int64_t *shape = byi_import_ints(o, "shape", &n);

    o->out[0] = byi_import_reshape_to(o, byi_import_in(o, 0), n, shape);
}

static void convert_reshape(struct byi_import *o)
{
    const bool allowzero = byi_import_int(o, "allowzero", 0) != 0;

    const byi_id x = byi_import_in(o, 0);
    byi_id shape = cast_int64(o, byi_import_in(o, 1));

    if (!allowzero)
        shape = byi_import_reshape_target(o, x, shape);
    o->out[0] = byi_import_reshape(o, x, shape, allowzero);
}

/* Whether the node has an input with axes. Empty axes are like omitted ones. */
static bool has_axes_input(const struct byi_import *o)
{
    const byi_id axes = byi_import_in(o, 1);

    return o->opset >= 13 && axes != BYI_NO_ID &&
           !(byi_import_rank(o, axes) == 1 && byi_import_dim(o, axes, 0) == 0);
}

/* Returns the axes of Squeeze or Unsqueeze, from the attribute or the constant
 * input; *n: their number. NULL if the node names no axes. */
static const int64_t *read_axes(struct byi_import *o, uint32_t *n)
{
    if (o->opset < 13)
        return byi_import_ints(o, "axes", n);
    *n = 0;
    return has_axes_input(o) ? byi_import_const_ints(o, 1, "axes", n) : NULL;
}

/* Returns the axes counted from 0, in ascending order, so that equal calls have
 * equal attributes. Records an error if an axis is out of range or repeated. */
static const int64_t *sort_axes(struct byi_import *o, const int64_t *axes,
                                uint32_t n, uint32_t rank)
{
    bool flags[BYI_MAX_RANK] = {false};
    int64_t *sorted = byi_arena_calloc(o->scratch, n + 1, sizeof *sorted);
    uint32_t k = 0;

    if (n > BYI_MAX_RANK || rank > BYI_MAX_RANK) {
        byi_import_fail(o, BYOC_ELIMIT, "found %s %u, expected at most %d",
                        n > BYI_MAX_RANK ? "a list of axes of length" : "rank",
                        n > BYI_MAX_RANK ? n : rank, BYI_MAX_RANK);
        return sorted;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t axis = byi_import_axis(o, axes[i], rank);
        if (byi_import_ok(o) && flags[axis])
            byi_import_fail(o, BYOC_ETYPE,
                            "axis %u is repeated, expected it once", axis);
        if (!byi_import_ok(o))
            return sorted;
        flags[axis] = true;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (flags[i])
            sorted[k++] = i;
    return sorted;
}

/* If the axes are an input that is not constant: emits `op`, which has an
 * operand for the axes, and returns true. */
static bool emit_dynamic_axes(struct byi_import *o, enum byi_op_id op)
{
    if (!has_axes_input(o) || byi_import_is_const(o, 1))
        return false;
    o->out[0] =
        byi_import_call(o, op, byi_import_in(o, 0), cast_int64(o, o->in[1]));
    return true;
}

/* If x has symbolic dims: returns its axes of known size 1; *n: their number.
 * Symbolic dims are assumed not to be 1, which is checked at run time. NULL if
 * all dims are known: the type rule then finds the axes. */
static const int64_t *axes_of_size_1(struct byi_import *o, byi_id x,
                                     uint32_t *n)
{
    int64_t *axes = byi_arena_calloc(o->scratch, BYI_MAX_RANK, sizeof *axes);
    bool symbols = false;

    *n = 0;
    for (uint32_t i = 0; i < byi_import_rank(o, x); i++) {
        symbols |= BYI_IS_SYMBOL(byi_import_dim(o, x, i));
        if (byi_import_dim(o, x, i) == 1)
            axes[(*n)++] = i;
    }
    *n = symbols ? *n : 0;
    return symbols ? axes : NULL;
}

static void convert_squeeze(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    bool exact = false;
    uint32_t n = 0;

    if (emit_dynamic_axes(o, BYI_OP_DYN_SQUEEZE))
        return;
    const int64_t *axes = read_axes(o, &n);
    if (!axes) {
        axes = axes_of_size_1(o, x, &n);
        exact = axes;
    }
    axes = sort_axes(o, axes, n, byi_import_rank(o, x));
    o->out[0] = byi_import_emit(
        o, BYI_OP_SQUEEZE, ARGS(x),
        ATTRS(SOME_INTS("axis", n, axes), A_BOOL("exact", exact)));
}

static void convert_unsqueeze(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    uint32_t n = 0;

    if (emit_dynamic_axes(o, BYI_OP_DYN_EXPAND_DIMS))
        return;
    const int64_t *axes = read_axes(o, &n);
    axes = sort_axes(o, axes, n, byi_import_rank(o, x) + n);
    o->out[0] = byi_import_expand_dims(o, x, n, axes);
}

static void convert_flatten(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const int64_t rank = byi_import_rank(o, x),
                  axis = byi_import_int(o, "axis", 1);

    o->out[0] = byi_import_emit(
        o, BYI_OP_FLATTEN, ARGS(x),
        ATTRS(AN_INT("axis", axis < 0 && axis >= -rank ? axis + rank : axis)));
}

static void convert_transpose(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const uint32_t rank = byi_import_rank(o, x);
    int64_t reversed[BYI_MAX_RANK];
    uint32_t n = 0;
    const int64_t *perm = byi_import_ints(o, "perm", &n);

    if (!perm) {
        for (uint32_t i = 0; i < rank; i++)
            reversed[i] = (int64_t)(rank - 1 - i);
        perm = reversed;
        n = rank;
    }
    o->out[0] = byi_import_emit(o, BYI_OP_TRANSPOSE, ARGS(x),
                                ATTRS(SOME_INTS("axes", n, perm)));
}

static void convert_expand(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const byi_id shape = cast_int64(o, byi_import_in(o, 1));

    o->out[0] = byi_import_call(o, BYI_OP_BROADCAST_TO, x,
                                byi_import_expand_target(o, x, shape));
}

static void convert_tile(struct byi_import *o)
{
    o->out[0] = byi_import_call(o, BYI_OP_TILE, byi_import_in(o, 0),
                                cast_int64(o, byi_import_in(o, 1)));
}

/* Opset 1 repeats along one axis: Tile(x, tiles, axis), both scalars. */
static void convert_tile_1(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const uint32_t rank = byi_import_rank(o, x);
    const uint32_t axis =
        byi_import_axis(o, byi_import_const_int(o, 2, "axis"), rank);
    const byi_id tiles =
        byi_import_reshape_to(o, cast_int64(o, byi_import_in(o, 1)), INTS(1));
    byi_id parts[BYI_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        parts[i] = i == axis ? tiles : byi_import_vector(o, INTS(1));
    const byi_id repeats = byi_import_emit(o, BYI_OP_CONCATENATE, rank, parts,
                                           ATTRS(AN_INT("axis", 0)));
    o->out[0] = byi_import_call(o, BYI_OP_TILE, x, repeats);
}

/* --- concatenation, splitting, slicing, padding --------------------------- */

byi_id byi_import_concat(struct byi_import *o, byi_id a, byi_id b, int64_t axis)
{
    if (a == BYI_NO_ID)
        return b;
    return byi_import_emit(o, BYI_OP_CONCATENATE, ARGS(a, b),
                           ATTRS(AN_INT("axis", axis)));
}

byi_id byi_import_slice(struct byi_import *o, byi_id x, int64_t from,
                        int64_t to, int64_t axis)
{
    return byi_import_template(
        o, "fn (%x) { strided_slice(%x, [from], [to], [axis], [1]) }", ARGS(x),
        ATTRS(AN_INT("from", from), AN_INT("to", to), AN_INT("axis", axis)));
}

static void convert_concat(struct byi_import *o)
{
    const int64_t axis =
        byi_import_int(o, "axis", 1); /* required from opset 4 */
    const uint32_t axis_index =
        byi_import_axis(o, axis, byi_import_rank(o, byi_import_in(o, 0)));

    for (uint32_t i = 0; i < o->n_in; i++)
        if (o->in[i] == BYI_NO_ID)
            byi_import_fail(o, BYOC_EPARSE,
                            "input %u is omitted, expected a value", i);
    if (o->n_in == 1) {
        o->out[0] = byi_import_in(o, 0);
        return;
    }
    o->out[0] = byi_import_emit(o, BYI_OP_CONCATENATE, o->n_in, o->in,
                                ATTRS(AN_INT("axis", (int64_t)axis_index)));
}

/* Returns the sizes of n equal parts of axis `axis`, whose size is `dim`; if
 * `uneven`, the last parts may be smaller. Otherwise fails if dim is not a
 * multiple of n. */
static const int64_t *equal_sizes(struct byi_import *o, int64_t dim,
                                  uint32_t axis, uint32_t n, bool uneven)
{
    int64_t *sizes = byi_arena_calloc(o->scratch, n + 1, sizeof *sizes);
    const int64_t part = n ? dim / n + (dim % n != 0) : 0;
    int64_t remaining = dim;

    if (n == 0 || (dim % n != 0 && !uneven))
        byi_import_fail(o, BYOC_ETYPE,
                        "axis %u of size %lld does not split into %u equal "
                        "parts, expected a divisor of it",
                        axis, (long long)dim, n);
    for (uint32_t i = 0; i < n; i++) {
        sizes[i] = part < remaining ? part : remaining;
        remaining -= sizes[i];
    }
    return sizes;
}

/* Emit the sizes that equal_sizes computes, for an axis of symbolic size. If
 * the size is not divisible, sizes without `uneven` add up to less, which a run
 * refuses. */
static byi_id emit_equal_sizes(struct byi_import *o, byi_id x, uint32_t axis,
                               uint32_t n, bool uneven)
{
    const byi_id length = byi_import_emit(
        o, BYI_OP_SHAPE_OF, ARGS(x),
        ATTRS(AN_INT("start", (int64_t)axis), AN_INT("end", axis + 1LL)));

    return byi_import_template(
        o,
        uneven ? "fn (%length, %indices, %n) {"
                 "  %part = divide(add(%length, subtract(%n, 1)), %n);"
                 "  %rest = subtract(%length, multiply(%indices, %part));"
                 "  minimum(%part, maximum(%rest, 0))"
                 "}"
               : "fn (%length, %indices, %n) {"
                 "  broadcast_to(divide(%length, %n), shape_of(%indices))"
                 "}",
        ARGS(length, byi_import_series(o, n, 0, 1),
             byi_import_scalar(o, BYOC_I64, n)),
        NO_ATTRS);
}

static void emit_dynamic_split(struct byi_import *o, byi_id x, byi_id sizes,
                               uint32_t axis)
{
    byi_import_get_outputs(
        o,
        byi_import_emit(o, BYI_OP_DYN_SPLIT, ARGS(x, sizes),
                        ATTRS(AN_INT("axis", (int64_t)axis))),
        o->n_out);
}

static void convert_split(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), sizes_input = byi_import_in(o, 1);
    const uint32_t axis =
        byi_import_axis(o, byi_import_int(o, "axis", 0), byi_import_rank(o, x));
    const int64_t expected_parts = byi_import_int(o, "num_outputs", 0);
    uint32_t n = 0;
    const int64_t *sizes = byi_import_ints(o, "split", &n);

    if (sizes_input != BYI_NO_ID && !byi_import_is_const(o, 1)) {
        emit_dynamic_split(o, x, cast_int64(o, sizes_input), axis);
        return;
    }
    if (sizes_input != BYI_NO_ID)
        sizes = byi_import_const_ints(o, 1, "split", &n);
    if (!sizes) {
        const int64_t dim = byi_import_dim(o, x, axis);

        n = o->n_out;
        if (expected_parts != 0 && expected_parts != n)
            byi_import_fail(o, BYOC_EPARSE,
                            "num_outputs is %lld, expected %u, the number of "
                            "outputs",
                            (long long)expected_parts, n);
        if (BYI_IS_SYMBOL(dim) && n > 0) {
            emit_dynamic_split(
                o, x, emit_equal_sizes(o, x, axis, n, expected_parts != 0),
                axis);
            return;
        }
        sizes = equal_sizes(o, dim, axis, n, expected_parts != 0);
    }
    if (n < o->n_out)
        byi_import_fail(o, BYOC_ETYPE,
                        "found %u sizes, expected %u, one for each output", n,
                        o->n_out);
    const byi_id parts = byi_import_emit(
        o, BYI_OP_SPLIT, ARGS(x),
        ATTRS(SOME_INTS("sizes", n, sizes), AN_INT("axis", (int64_t)axis)));
    byi_import_get_outputs(o, parts, o->n_out);
}

/* Emit strided_slice of input 0. Without axes (BYI_NO_ID) it applies to the
 * first ones; without steps each step is 1. */
static void emit_slice(struct byi_import *o, byi_id begin, byi_id end,
                       byi_id axes, byi_id steps)
{
    const int64_t n = byi_import_dim(o, begin, 0);

    if ((axes == BYI_NO_ID || steps == BYI_NO_ID) && byi_import_ok(o)) {
        if (BYI_IS_SYMBOL(n)) {
            byi_import_refuse(o, "found a symbolic number of axes, expected a "
                                 "known one");
            return;
        }
        if (n > BYI_MAX_RANK) {
            byi_import_refuse(o, "found %lld axes, expected at most %d",
                              (long long)n, BYI_MAX_RANK);
            return;
        }
        if (axes == BYI_NO_ID)
            axes = byi_import_series(o, (uint32_t)n, 0, 1);
        if (steps == BYI_NO_ID)
            steps = byi_import_series(o, (uint32_t)n, 1, 0);
    }
    o->out[0] = byi_import_call(o, BYI_OP_STRIDED_SLICE, byi_import_in(o, 0),
                                begin, end, axes, steps);
}

static void convert_slice_1(struct byi_import *o)
{
    uint32_t n = 0, n_ends = 0, n_axes = 0;
    const int64_t *starts = byi_import_ints(o, "starts", &n);
    const int64_t *ends = byi_import_ints(o, "ends", &n_ends);
    const int64_t *axes = byi_import_ints(o, "axes", &n_axes);

    const byi_id axes_vector =
        axes ? byi_import_vector(o, n_axes, axes) : BYI_NO_ID;
    const byi_id end = byi_import_vector(o, n_ends, ends);
    emit_slice(o, byi_import_vector(o, n, starts), end, axes_vector, BYI_NO_ID);
}

static void convert_slice(struct byi_import *o)
{
    byi_id operands[5] = {BYI_NO_ID, BYI_NO_ID, BYI_NO_ID, BYI_NO_ID,
                          BYI_NO_ID};

    for (uint32_t i = 1; i < 5; i++)
        if (byi_import_in(o, i) != BYI_NO_ID)
            operands[i] = cast_int64(o, byi_import_in(o, i));
    emit_slice(o, operands[1], operands[2], operands[3], operands[4]);
}

/* Whether `id` is constant and all its elements are 0: a Pad by 0 is an
 * identity. */
static bool are_all_zero(const struct byi_import *o, byi_id id)
{
    struct byi_tensor t = {0};

    if (!byi_import_const_view(o, id, &t))
        return false;
    for (int64_t i = 0; i < byi_elements(t.rank, t.dims); i++)
        if (byi_tensor_int(&t, i) != 0)
            return false;
    return true;
}

static void emit_pad(struct byi_import *o, byi_id pads, byi_id value)
{
    const byi_id x = byi_import_in(o, 0);
    const char *mode = byi_import_string(o, "mode", "constant");

    if (are_all_zero(o, pads) &&
        byi_import_dim(o, pads, 0) == 2 * (int64_t)byi_import_rank(o, x)) {
        o->out[0] = x;
        return;
    }
    o->out[0] = byi_import_emit(o, BYI_OP_NN_PAD, ARGS(x, pads, value),
                                ATTRS(A_STRING("mode", mode)));
}

static void convert_pad_1(struct byi_import *o)
{
    const char *const name = o->opset < 2 ? "paddings" : "pads";
    const double value = byi_import_float(o, "value", 0);
    uint32_t n = 0;
    const int64_t *pads = byi_import_ints(o, name, &n);

    const byi_id fill_value =
        byi_import_scalar(o, byi_import_dtype(o, byi_import_in(o, 0)), value);
    emit_pad(o, byi_import_vector(o, n, pads), fill_value);
}

/* Emit the pads of all axes from the pads of the axes in input 3; the other
 * axes get 0. */
static byi_id scatter_pads(struct byi_import *o, uint32_t rank)
{
    const byi_id axes = byi_import_in(o, 3),
                 pads = cast_int64(o, byi_import_in(o, 1));
    const int64_t n = byi_import_dim(o, axes, 0);
    const byi_id zeros = byi_import_series(o, rank, 0, 0);

    if (byi_import_ok(o) && byi_import_rank(o, axes) != 1)
        byi_import_refuse(o, "found axes of rank %u, expected a vector",
                          byi_import_rank(o, axes));
    if (byi_import_ok(o) && BYI_IS_SYMBOL(n))
        byi_import_refuse(o, "found a symbolic number of axes, expected a "
                             "known one");
    const int64_t n_pads = byi_import_dim(o, pads, 0);
    if (byi_import_ok(o) && !BYI_IS_SYMBOL(n_pads) && n_pads != 2 * n)
        byi_import_fail(o, BYOC_ETYPE,
                        "found %lld pads for %lld axes, expected two each",
                        (long long)n_pads, (long long)n);
    const byi_id ends = byi_import_scatter(
        o, zeros, axes, byi_import_slice(o, pads, n, 2 * n, 0));
    return byi_import_concat(
        o,
        byi_import_scatter(o, zeros, axes, byi_import_slice(o, pads, 0, n, 0)),
        ends, 0);
}

static void convert_pad(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    byi_id value = byi_import_in(o, 2);

    if (value == BYI_NO_ID)
        value = byi_import_scalar(o, byi_import_dtype(o, x), 0);
    if (byi_import_in(o, 3) != BYI_NO_ID)
        emit_pad(o, scatter_pads(o, byi_import_rank(o, x)), value);
    else
        emit_pad(o, cast_int64(o, byi_import_in(o, 1)), value);
}

/* com.microsoft's Pad: the pads may be a matrix of one row. */
static void convert_pad_row(struct byi_import *o)
{
    if (byi_import_rank(o, byi_import_in(o, 1)) > 1)
        o->in[1] = byi_import_reshape_to(o, o->in[1], INTS(-1));
    convert_pad(o);
}

/* com.microsoft's ExpandDims: a new axis at the index in input 1, a scalar. */
static void convert_expand_dims(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    if (!byi_import_is_const(o, 1)) {
        const byi_id scalar = cast_int64(o, byi_import_in(o, 1));
        const byi_id axis = byi_import_reshape_to(o, scalar, INTS(1));
        o->out[0] = byi_import_call(o, BYI_OP_DYN_EXPAND_DIMS, x, axis);
        return;
    }
    const uint32_t axis = byi_import_axis(o, byi_import_const_int(o, 1, "axis"),
                                          byi_import_rank(o, x) + 1);
    o->out[0] = byi_import_add_axes(o, x, axis, 1);
}

/* CenterCropPad crops or pads the axes to the sizes of input `shape`, equally
 * on both sides. An odd element is cropped or padded at the end. */
static void convert_center_crop_pad(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), dims = byi_import_shape_of(o, x);
    const uint32_t rank = byi_import_rank(o, x);
    static const char text[] =
        "fn (%x, %dims, %target, %axes, %ones, %fill) {"
        "  %kept = minimum(%dims, %target);"
        "  %begin = divide(subtract(%dims, %kept), 2);"
        "  %padding = subtract(%target, %kept);"
        "  %before = divide(%padding, 2);"
        "  %y = strided_slice(%x, %begin, add(%begin, %kept), %axes, %ones);"
        "  %after = subtract(%padding, %before);"
        "  nn.pad(%y, concatenate(%before, %after, axis=0), %fill)"
        "}";
    uint32_t n = 0;
    const int64_t *axes = byi_import_ints(o, "axes", &n);
    byi_id target = cast_int64(o, byi_import_in(o, 1));

    if (axes)
        target =
            byi_import_scatter(o, dims, byi_import_vector(o, n, axes), target);
    const byi_id every_axis = byi_import_series(o, rank, 0, 1);
    const byi_id steps = byi_import_series(o, rank, 1, 0);
    const byi_id fill = byi_import_scalar(o, byi_import_dtype(o, x), 0);
    o->out[0] = byi_import_template(
        o, text, ARGS(x, dims, target, every_axis, steps, fill), NO_ATTRS);
}

static void convert_depth_to_space(struct byi_import *o)
{
    o->out[0] = byi_import_emit(
        o, BYI_OP_DEPTH_TO_SPACE, ARGS(byi_import_in(o, 0)),
        ATTRS(AN_INT("block_size", byi_import_int(o, "blocksize", 0)),
              A_STRING("mode", byi_import_string(o, "mode", "DCR"))));
}

static void convert_space_to_depth(struct byi_import *o)
{
    o->out[0] = byi_import_emit(
        o, BYI_OP_SPACE_TO_DEPTH, ARGS(byi_import_in(o, 0)),
        ATTRS(AN_INT("block_size", byi_import_int(o, "blocksize", 0))));
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_shape, BYI_ONNX,
    {"CenterCropPad", 18, 2, 2, convert_center_crop_pad, BYI_OP_NONE},
    {"Concat", 1, 1, BYI_MAX_ARGS, convert_concat, BYI_OP_NONE},
    {"DepthToSpace", 1, 1, 1, convert_depth_to_space, BYI_OP_NONE},
    {"Expand", 8, 2, 2, convert_expand, BYI_OP_NONE},
    {"Flatten", 1, 1, 1, convert_flatten, BYI_OP_NONE},
    {"Pad", 1, 1, 1, convert_pad_1, BYI_OP_NONE},
    {"Pad", 11, 2, 3, convert_pad, BYI_OP_NONE},
    {"Pad", 18, 2, 4, convert_pad, BYI_OP_NONE},
    {"Reshape", 1, 1, 1, convert_reshape_1, BYI_OP_NONE},
    {"Reshape", 5, 2, 2, convert_reshape, BYI_OP_NONE},
    {"Slice", 1, 1, 1, convert_slice_1, BYI_OP_NONE},
    {"Slice", 10, 3, 5, convert_slice, BYI_OP_NONE},
    {"SpaceToDepth", 1, 1, 1, convert_space_to_depth, BYI_OP_NONE},
    {"Split", 1, 1, 2, convert_split, BYI_OP_NONE},
    {"Split", 2, 1, 1, convert_split, BYI_OP_NONE},
    {"Split", 13, 1, 2, convert_split, BYI_OP_NONE},
    {"Squeeze", 1, 1, 1, convert_squeeze, BYI_OP_NONE},
    {"Squeeze", 13, 1, 2, convert_squeeze, BYI_OP_NONE},
    {"Tile", 1, 3, 3, convert_tile_1, BYI_OP_NONE},
    {"Tile", 6, 2, 2, convert_tile, BYI_OP_NONE},
    {"Transpose", 1, 1, 1, convert_transpose, BYI_OP_NONE},
    {"Unsqueeze", 1, 1, 1, convert_unsqueeze, BYI_OP_NONE},
    {"Unsqueeze", 13, 2, 2, convert_unsqueeze, BYI_OP_NONE})

BYI_ONNX_ROWS(microsoft_shape, BYI_MICROSOFT,
    {"ExpandDims", 1, 2, 2, convert_expand_dims, BYI_OP_NONE},
    {"Pad", 1, 2, 3, convert_pad_row, BYI_OP_NONE})
/* clang-format on */
