/* SPDX-License-Identifier: Apache-2.0 */
/* ops_signal.c: window functions, Fourier transforms and mel weights.
 *
 * HannWindow(n)  -> cast(0.5 - 0.5 cos(arange(0, n, 1) 2 pi / n))
 * STFT(x, step, window)
 *     -> dft(take(%x, %starts + %offsets, axis=1) %window, axis=2)
 *
 * Sizes may be known at run time only: they are computed by operators on
 * float64 or int64 scalars, which the importer folds if they are constant.
 */
#include "frontend_onnx/import.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* --- small arithmetic ----------------------------------------------------- */

static byi_id times(struct byi_import *o, byi_id a, double b)
{
    return byi_o_with(o, BYI_OP_MULTIPLY, a, b);
}

static byi_id plus(struct byi_import *o, byi_id a, double b)
{
    return byi_o_with(o, BYI_OP_ADD, a, b);
}

static byi_id unary(struct byi_import *o, enum byi_op_id op, byi_id a)
{
    return byi_o_emit(o, op, ARGS(a), NO_ATTRS);
}

/* 0, 1, ... below `limit`, of its type. */
static byi_id count_to(struct byi_import *o, byi_id limit)
{
    const enum byoc_dtype dtype = byi_o_dtype(o, limit);

    return byi_o_emit(
        o, BYI_OP_ARANGE,
        ARGS(byi_o_scalar(o, dtype, 0), limit, byi_o_scalar(o, dtype, 1)),
        NO_ATTRS);
}

/* Input i, one number, as a scalar of this type. */
static byi_id scalar_input(struct byi_import *o, uint32_t i,
                           enum byoc_dtype dtype)
{
    return byi_o_cast(o, byi_o_as_scalar(o, byi_o_in(o, i)), dtype);
}

/* A vector as a column. */
static byi_id column(struct byi_import *o, byi_id vector)
{
    return byi_o_expand(o, vector, 1, (const int64_t[]){1});
}

/* A scalar as a vector of one. */
static byi_id as_vector(struct byi_import *o, byi_id scalar)
{
    return byi_o_expand(o, scalar, 1, (const int64_t[]){0});
}

/* The type that attribute output_datatype names. */
static enum byoc_dtype output_type(struct byi_import *o)
{
    const enum byoc_dtype given = byi_o_dtype_attr(o, "output_datatype");

    return given == BYOC_NONE ? BYOC_F32 : given;
}

/* --- windows -------------------------------------------------------------- */

/* a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n), where n is the size, or the
 * size
 * - 1 unless periodic. */
static void window(struct byi_import *o, double a0, double a1, double a2)
{
    const enum byoc_dtype dtype = output_type(o);
    const bool periodic = byi_o_int(o, "periodic", 1) != 0;
    const byi_id size = scalar_input(o, 0, BYOC_F64);
    byi_id n = size;

    if (!periodic) /* at least 1, for a window of size 1 */
        n = byi_o_with(o, BYI_OP_MAXIMUM, plus(o, size, -1), 1);
    const byi_id angle =
        byi_o_binary(o, BYI_OP_DIVIDE, times(o, count_to(o, size), 2 * pi), n);
    byi_id y = plus(o, times(o, unary(o, BYI_OP_COS, angle), -a1), a0);
    if (a2 != 0)
        y = byi_o_binary(
            o, BYI_OP_ADD, y,
            times(o, unary(o, BYI_OP_COS, times(o, angle, 2)), a2));
    o->out[0] = byi_o_cast(o, y, dtype);
}

static void convert_hann(struct byi_import *o)
{
    window(o, 0.5, 0.5, 0);
}

static void convert_hamming(struct byi_import *o)
{
    window(o, 25.0 / 46, 21.0 / 46, 0);
}

static void convert_blackman(struct byi_import *o)
{
    window(o, 0.42, 0.5, 0.08);
}

/* --- mel weights ---------------------------------------------------------- */

static byi_id hertz_to_mel(struct byi_import *o, byi_id hertz)
{
    const byi_id ratio = plus(o, times(o, hertz, 1.0 / 700), 1);

    return times(o, unary(o, BYI_OP_LOG, ratio), 2595 / log(10));
}

/* The spectrum bins of the bands' edges: bands + 2, evenly spaced in mel. */
static byi_id band_edges(struct byi_import *o, byi_id bands)
{
    const byi_id length = scalar_input(o, 1, BYOC_F64);
    const byi_id rate = scalar_input(o, 2, BYOC_F64);
    const byi_id low = hertz_to_mel(o, scalar_input(o, 3, BYOC_F64));
    const byi_id high = hertz_to_mel(o, scalar_input(o, 4, BYOC_F64));
    const byi_id points = plus(o, bands, 2);
    const byi_id span = byi_o_binary(o, BYI_OP_SUBTRACT, high, low);
    const byi_id step = byi_o_binary(o, BYI_OP_DIVIDE, span, points);
    const byi_id mel = byi_o_binary(
        o, BYI_OP_ADD,
        byi_o_binary(o, BYI_OP_MULTIPLY, count_to(o, points), step), low);
    const byi_id power = unary(o, BYI_OP_EXP, times(o, mel, log(10) / 2595));
    const byi_id hertz = times(o, plus(o, power, -1), 700);
    const byi_id bin =
        byi_o_binary(o, BYI_OP_MULTIPLY, hertz, plus(o, length, 1));

    return unary(o, BYI_OP_FLOOR, byi_o_binary(o, BYI_OP_DIVIDE, bin, rate));
}

/* As many edges as bands, starting at index `from`. */
static byi_id edges_from(struct byi_import *o, byi_id edges, byi_id bands,
                         double from)
{
    const byi_id at =
        plus(o, count_to(o, byi_o_cast(o, bands, BYOC_I64)), from);

    return byi_o_emit(o, BYI_OP_TAKE, ARGS(edges, at),
                      ATTRS(AN_INT("axis", 0)));
}

static byi_id both(struct byi_import *o, byi_id a, byi_id b)
{
    return byi_o_binary(o, BYI_OP_LOGICAL_AND, a, b);
}

/* |x - a| / (high - low), with a width of at least one bin. */
static byi_id slope(struct byi_import *o, byi_id x, byi_id a, byi_id low,
                    byi_id high)
{
    const byi_id width = byi_o_binary(o, BYI_OP_SUBTRACT, high, low);

    return byi_o_binary(
        o, BYI_OP_DIVIDE,
        unary(o, BYI_OP_ABS, byi_o_binary(o, BYI_OP_SUBTRACT, x, a)),
        byi_o_with(o, BYI_OP_MAXIMUM, width, 1));
}

/* Triangular filters: each band rises from 0 at its low edge to 1 at its centre
 * and falls to 0 at its high edge. A rising side of width 0 is 1 at the centre.
 */
static void convert_mel(struct byi_import *o)
{
    const enum byoc_dtype dtype = output_type(o);
    const byi_id bands = scalar_input(o, 0, BYOC_F64);
    const byi_id length = scalar_input(o, 1, BYOC_I64);
    const byi_id edges = band_edges(o, bands);
    const byi_id low = edges_from(o, edges, bands, 0);
    const byi_id centre = edges_from(o, edges, bands, 1);
    const byi_id high = edges_from(o, edges, bands, 2);
    const byi_id half = byi_o_with(o, BYI_OP_DIVIDE, length, 2);
    const byi_id bin =
        column(o, byi_o_cast(o, count_to(o, plus(o, half, 1)), BYOC_F64));
    const byi_id zero = byi_o_scalar(o, BYOC_F64, 0);
    const byi_id one = byi_o_scalar(o, BYOC_F64, 1);
    const byi_id rises =
        both(o, byi_o_binary(o, BYI_OP_GREATER_EQUAL, bin, low),
             byi_o_binary(o, BYI_OP_LESS_EQUAL, bin, centre));
    const byi_id falls =
        both(o, byi_o_binary(o, BYI_OP_GREATER_EQUAL, bin, centre),
             byi_o_binary(o, BYI_OP_LESS, bin, high));
    const byi_id steep = byi_o_binary(o, BYI_OP_EQUAL, low, centre);
    const byi_id up =
        byi_o_emit(o, BYI_OP_WHERE,
                   ARGS(steep, one, slope(o, bin, low, low, centre)), NO_ATTRS);
    const byi_id left =
        byi_o_emit(o, BYI_OP_WHERE, ARGS(rises, up, zero), NO_ATTRS);
    const byi_id down = slope(o, bin, high, centre, high);

    o->out[0] = byi_o_cast(
        o, byi_o_emit(o, BYI_OP_WHERE, ARGS(falls, down, left), NO_ATTRS),
        dtype);
}

/* --- transforms ----------------------------------------------------------- */

static byi_id dft(struct byi_import *o, byi_id x, int64_t axis)
{
    byi_id args[] = {x, BYI_NO_ID};
    const bool given = byi_o_in(o, 1) != BYI_NO_ID;

    if (given)
        args[1] = scalar_input(o, 1, BYOC_I64);
    return byi_o_emit(
        o, BYI_OP_DFT, given ? 2 : 1, args,
        ATTRS(AN_INT("axis", axis),
              A_BOOL("inverse", byi_o_int(o, "inverse", 0) != 0),
              A_BOOL("onesided", byi_o_int(o, "onesided", 0) != 0)));
}

/* The product of the dims at the places where `places op axis` holds. */
static byi_id product_where(struct byi_import *o, enum byi_op_id op,
                            byi_id places, byi_id axis, byi_id dims)
{
    const byi_id some = byi_o_emit(o, BYI_OP_WHERE,
                                   ARGS(byi_o_binary(o, op, places, axis), dims,
                                        byi_o_scalar(o, BYOC_I64, 1)),
                                   NO_ATTRS);

    return byi_o_emit(o, BYI_OP_PROD, ARGS(some),
                      ATTRS(A_BOOL("keepdims", false)));
}

/* With an axis that only the run knows, as x (before, axis, after, parts):
 * dft(reshape(%x, [before, n, after, 0]), axis=1), and back. */
static byi_id dft_of_any(struct byi_import *o, byi_id x, byi_id axis)
{
    const uint32_t rank = byi_o_rank(o, x);
    int64_t places[BYI_MAX_RANK];

    if (byi_o_ok(o) && rank < 2)
        byi_o_fail(o, BYOC_ETYPE, "x has rank %u, expected at least 2", rank);
    if (!byi_o_ok(o))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < rank; i++)
        places[i] = i;
    const byi_id at = byi_o_vector(o, rank, places);
    const byi_id shape = byi_o_emit(o, BYI_OP_SHAPE_OF, ARGS(x),
                                    ATTRS(AN_INT("end", (int64_t)rank - 1)));
    const byi_id parts = byi_o_vector(o, 1, (const int64_t[]){1});
    const byi_id dims = byi_o_concat(o, shape, parts, 0);
    axis = byi_o_emit(
        o, BYI_OP_WHERE,
        ARGS(byi_o_with(o, BYI_OP_LESS, axis, 0), plus(o, axis, rank), axis),
        NO_ATTRS);
    const byi_id sizes[] = {
        product_where(o, BYI_OP_LESS, at, axis, dims),
        product_where(o, BYI_OP_EQUAL, at, axis, dims),
        product_where(o, BYI_OP_GREATER, at, axis, dims),
        byi_o_length(o, x, (int64_t)rank - 1),
    };
    byi_id target = BYI_NO_ID;
    for (uint32_t i = 0; i < BYI_COUNT(sizes); i++)
        target = byi_o_concat(o, target, as_vector(o, sizes[i]), 0);
    const byi_id y = dft(o, byi_o_reshape(o, x, target, false), 1);
    const byi_id two = byi_o_vector(o, 1, (const int64_t[]){2});
    const byi_id whole =
        byi_o_emit(o, BYI_OP_WHERE,
                   ARGS(byi_o_binary(o, BYI_OP_EQUAL, at, axis),
                        byi_o_length(o, y, 1), byi_o_concat(o, shape, two, 0)),
                   NO_ATTRS);
    return byi_o_reshape(o, y, whole, false);
}

static void convert_dft(struct byi_import *o)
{
    const int64_t usual = o->opset < 20 ? 1 : -2;

    if (byi_o_in(o, 2) == BYI_NO_ID)
        o->out[0] = dft(o, byi_o_in(o, 0), byi_o_int(o, "axis", usual));
    else if (byi_o_is_const(o, 2))
        o->out[0] = dft(o, byi_o_in(o, 0), byi_o_const_int(o, 2, "axis"));
    else
        o->out[0] = dft_of_any(o, byi_o_in(o, 0), scalar_input(o, 2, BYOC_I64));
}

/* The length of a frame: input 3, or the window's. */
static byi_id frame_length(struct byi_import *o)
{
    if (byi_o_in(o, 3) != BYI_NO_ID)
        return scalar_input(o, 3, BYOC_I64);
    if (byi_o_in(o, 2) == BYI_NO_ID)
        byi_o_fail(o, BYOC_EPARSE, "found neither a window nor a frame_length");
    return byi_o_emit(o, BYI_OP_SIZE_OF, ARGS(byi_o_in(o, 2)), NO_ATTRS);
}

/* The signal positions of each complete frame, one row per frame. */
static byi_id frame_positions(struct byi_import *o, byi_id x, byi_id step,
                              byi_id length)
{
    const byi_id size =
        byi_o_emit(o, BYI_OP_TAKE,
                   ARGS(byi_o_shape_of(o, x), byi_o_scalar(o, BYOC_I64, 1)),
                   ATTRS(AN_INT("axis", 0)));
    const byi_id room = byi_o_binary(o, BYI_OP_SUBTRACT, size, length);
    const byi_id frames =
        plus(o, byi_o_binary(o, BYI_OP_DIVIDE, room, step), 1);
    const byi_id starts =
        byi_o_binary(o, BYI_OP_MULTIPLY, count_to(o, frames), step);

    return byi_o_binary(o, BYI_OP_ADD, column(o, starts), count_to(o, length));
}

/* 16-bit floats are processed in float32: rounding the product of frame and
 * window would add noise to every frequency. */
static void convert_stft(struct byi_import *o)
{
    const enum byoc_dtype dtype = byi_o_dtype(o, byi_o_in(o, 0));
    const enum byoc_dtype wide = dtype == BYOC_F64 ? BYOC_F64 : BYOC_F32;
    const byi_id x = byi_o_cast(o, byi_o_in(o, 0), wide);
    const byi_id given = byi_o_in(o, 2);
    const bool onesided = byi_o_int(o, "onesided", 1) != 0;
    const byi_id step = scalar_input(o, 1, BYOC_I64);
    const byi_id length = frame_length(o);

    if (byi_o_ok(o) && byi_o_rank(o, x) != 3)
        byi_o_fail(o, BYOC_ETYPE,
                   "the signal has rank %u, expected 3 (batch, time, parts)",
                   byi_o_rank(o, x));
    byi_id frames =
        byi_o_emit(o, BYI_OP_TAKE, ARGS(x, frame_positions(o, x, step, length)),
                   ATTRS(AN_INT("axis", 1)));
    if (given != BYI_NO_ID)
        frames = byi_o_binary(o, BYI_OP_MULTIPLY, frames,
                              column(o, byi_o_cast(o, given, wide)));
    const byi_id y =
        byi_o_emit(o, BYI_OP_DFT, ARGS(frames),
                   ATTRS(AN_INT("axis", 2), A_BOOL("onesided", onesided)));
    o->out[0] = byi_o_cast(o, y, dtype);
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"BlackmanWindow", 17, 1, 1, convert_blackman, BYI_OP_NONE},
    {"DFT", 17, 1, 2, convert_dft, BYI_OP_NONE},
    {"DFT", 20, 1, 3, convert_dft, BYI_OP_NONE},
    {"HammingWindow", 17, 1, 1, convert_hamming, BYI_OP_NONE},
    {"HannWindow", 17, 1, 1, convert_hann, BYI_OP_NONE},
    {"MelWeightMatrix", 17, 5, 5, convert_mel, BYI_OP_NONE},
    {"STFT", 17, 2, 4, convert_stft, BYI_OP_NONE},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_signal = {BYI_ONNX, rows, BYI_COUNT(rows)};
