/* SPDX-License-Identifier: Apache-2.0 */
/* ops_signal.c: converts window functions, Fourier transforms and mel weights.
 *
 * HannWindow(n)  -> cast(0.5 - 0.5 cos(arange(0, n, 1) 2 pi / n))   (periodic)
 * STFT(x, step, window)
 *     -> dft(take(%x, %starts + %offsets, axis=1) * %window, axis=2)
 *
 * Some sizes are known only at run time. They are computed by operators on
 * float64 or int64 scalars, which the importer folds if they are constant.
 */
#include "frontend_onnx/import.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* --- scalars and columns -------------------------------------------------- */

/* Emit input i, a single number, as a scalar of type dtype. */
static byi_id read_scalar(struct byi_import *o, uint32_t i,
                          enum byoc_dtype dtype)
{
    return byi_import_cast(o, byi_import_as_scalar(o, byi_import_in(o, i)),
                           dtype);
}

/* Emit a vector of n elements as a column, (n, 1). */
static byi_id emit_column(struct byi_import *o, byi_id vector)
{
    return byi_import_add_axes(o, vector, 1, 1);
}

/* --- windows -------------------------------------------------------------- */

/* Emit a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n) for k = 0 .. size - 1,
 * where n is the size if attribute `periodic` is set, otherwise
 * max(size - 1, 1). */
static void emit_window(struct byi_import *o, double a0, double a1, double a2)
{
    static const char two_terms[] =
        "fn (%n, %k) {"
        "  %angle = divide(multiply(%k, two_pi), %n);"
        "  add(multiply(cos(%angle), a1), a0)"
        "}";
    static const char three_terms[] =
        "fn (%n, %k) {"
        "  %angle = divide(multiply(%k, two_pi), %n);"
        "  add(add(multiply(cos(%angle), a1), a0),"
        "      multiply(cos(multiply(%angle, 2)), a2))"
        "}";
    const enum byoc_dtype dtype =
        byi_import_dtype_attr(o, "output_datatype", BYOC_F32);
    const bool periodic = byi_import_int(o, "periodic", 1) != 0;
    const byi_id size = read_scalar(o, 0, BYOC_F64);
    const byi_id n =
        periodic ? size
                 : byi_import_template(o, "fn (%n) { maximum(add(%n, -1), 1) }",
                                       ARGS(size), NO_ATTRS);
    const byi_id y =
        byi_import_template(o, a2 == 0 ? two_terms : three_terms,
                            ARGS(n, byi_import_arange(o, BYI_NO_ID, size)),
                            ATTRS(A_FLOAT("two_pi", 2 * pi), A_FLOAT("a0", a0),
                                  A_FLOAT("a1", -a1), A_FLOAT("a2", a2)));

    o->out[0] = byi_import_cast(o, y, dtype);
}

static void convert_hann(struct byi_import *o)
{
    emit_window(o, 0.5, 0.5, 0);
}

static void convert_hamming(struct byi_import *o)
{
    emit_window(o, 25.0 / 46, 21.0 / 46, 0);
}

static void convert_blackman(struct byi_import *o)
{
    emit_window(o, 0.42, 0.5, 0.08);
}

/* --- mel weights ---------------------------------------------------------- */

/* mel = 2595 log10(1 + hertz / 700) */
#define MEL_FACTORS                                                            \
    A_FLOAT("by_700", 1.0 / 700), A_FLOAT("to_mel", 2595 / log(10)),           \
        A_FLOAT("to_hertz", log(10) / 2595)

/* Emit the spectrum bins of the bands' edges: bands + 2, evenly spaced in mel.
 */
static byi_id emit_band_edges(struct byi_import *o, byi_id bands)
{
    static const char text[] =
        "fn (%length, %rate, %from, %to, %points, %k) {"
        "  %low = multiply(log(add(multiply(%from, by_700), 1)), to_mel);"
        "  %high = multiply(log(add(multiply(%to, by_700), 1)), to_mel);"
        "  %step = divide(subtract(%high, %low), %points);"
        "  %mel = add(multiply(%k, %step), %low);"
        "  %hertz = multiply(add(exp(multiply(%mel, to_hertz)), -1), 700);"
        "  floor(divide(multiply(%hertz, add(%length, 1)), %rate))"
        "}";
    const byi_id points = byi_import_call_scalar(o, BYI_OP_ADD, bands, 2);
    byi_id in[5];

    for (uint32_t i = 1; i < 5; i++)
        in[i] = read_scalar(o, i, BYOC_F64);
    return byi_import_template(o, text,
                               ARGS(in[1], in[2], in[3], in[4], points,
                                    byi_import_arange(o, BYI_NO_ID, points)),
                               ATTRS(MEL_FACTORS));
}

/* Triangular filters: each band rises from 0 at its low edge to 1 at its centre
 * and falls to 0 at its high edge. Slopes are computed as if each side were at
 * least one bin wide. A rising side of width 0 is 1 at the centre. */
static void convert_mel(struct byi_import *o)
{
    static const char text[] =
        "fn (%edges, %k, %bins) {"
        "  %low = take(%edges, %k, axis=0);"
        "  %centre = take(%edges, add(%k, 1), axis=0);"
        "  %high = take(%edges, add(%k, 2), axis=0);"
        "  %x = expand_dims(cast(%bins, dtype=%edges), axis=[1]);"
        "  %rises = logical_and(greater_equal(%x, %low),"
        "                       less_equal(%x, %centre));"
        "  %falls = logical_and(greater_equal(%x, %centre), less(%x, %high));"
        "  %up = divide(abs(subtract(%x, %low)),"
        "               maximum(subtract(%centre, %low), 1));"
        "  %down = divide(abs(subtract(%x, %high)),"
        "                 maximum(subtract(%high, %centre), 1));"
        "  %left = where(equal(%low, %centre), 1, %up);"
        "  where(%falls, %down, where(%rises, %left, 0))"
        "}";
    const enum byoc_dtype dtype =
        byi_import_dtype_attr(o, "output_datatype", BYOC_F32);
    const byi_id bands = read_scalar(o, 0, BYOC_F64);
    const byi_id length = read_scalar(o, 1, BYOC_I64);
    const byi_id bins = byi_import_template(
        o, "fn (%n) { add(divide(%n, 2), 1) }", ARGS(length), NO_ATTRS);
    const byi_id y = byi_import_template(
        o, text,
        ARGS(emit_band_edges(o, bands),
             byi_import_arange(o, BYI_NO_ID,
                               byi_import_cast(o, bands, BYOC_I64)),
             byi_import_arange(o, BYI_NO_ID, bins)),
        NO_ATTRS);

    o->out[0] = byi_import_cast(o, y, dtype);
}

/* --- transforms ----------------------------------------------------------- */

static byi_id emit_dft(struct byi_import *o, byi_id x, int64_t axis)
{
    byi_id args[] = {x, BYI_NO_ID};
    const bool has_length = byi_import_in(o, 1) != BYI_NO_ID;

    if (has_length)
        args[1] = read_scalar(o, 1, BYOC_I64);
    return byi_import_same(o, BYI_OP_DFT, has_length ? 2 : 1, args,
                           ATTRS(AN_INT("axis", axis)));
}

/* Emit the product of the dims whose index satisfies `index op axis`; `indices`
 * is the vector 0 .. rank - 1. */
static byi_id emit_product_where(struct byi_import *o, enum byi_op_id op,
                                 byi_id indices, byi_id axis, byi_id dims)
{
    return byi_import_template(
        o, "fn (%is, %dims) { prod(where(%is, %dims, 1), keepdims=false) }",
        ARGS(byi_import_call(o, op, indices, axis), dims), NO_ATTRS);
}

/* Emit the DFT along an axis that is known only at run time. Reshape x to
 * (before, axis, after, parts), transform axis 1, and reshape the result back.
 * Parts are 1 for real numbers, 2 for real and imaginary parts. BYI_NO_ID on
 * error. */
static byi_id emit_dynamic_dft(struct byi_import *o, byi_id x, byi_id axis)
{
    const uint32_t rank = byi_import_rank(o, x);
    if (byi_import_ok(o) && rank < 2)
        byi_import_fail(o, BYOC_ETYPE,
                        "found an input of rank %u, expected at least 2", rank);
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    const byi_id at = byi_import_series(o, rank, 0, 1);
    const byi_id shape = byi_import_emit(
        o, BYI_OP_SHAPE_OF, ARGS(x), ATTRS(AN_INT("end", (int64_t)rank - 1)));
    /* 1 leaves the parts out of the products */
    const byi_id one = byi_import_vector(o, INTS(1));
    const byi_id dims = byi_import_concat(o, shape, one, 0);
    axis = byi_import_template(
        o, "fn (%axis) { where(less(%axis, 0), add(%axis, rank), %axis) }",
        ARGS(axis), ATTRS(AN_INT("rank", rank)));
    const byi_id sizes[] = {
        emit_product_where(o, BYI_OP_LESS, at, axis, dims),
        emit_product_where(o, BYI_OP_EQUAL, at, axis, dims),
        emit_product_where(o, BYI_OP_GREATER, at, axis, dims),
        byi_import_length(o, x, (int64_t)rank - 1),
    };
    byi_id target = BYI_NO_ID;
    for (uint32_t i = 0; i < BYI_COUNT(sizes); i++)
        target = byi_import_concat(o, target,
                                   byi_import_add_axes(o, sizes[i], 0, 1), 0);
    const byi_id y = emit_dft(o, byi_import_reshape(o, x, target, true), 1);
    const byi_id two = byi_import_vector(o, INTS(2));
    const byi_id y_shape = byi_import_call(
        o, BYI_OP_WHERE, byi_import_call(o, BYI_OP_EQUAL, at, axis),
        byi_import_length(o, y, 1), byi_import_concat(o, shape, two, 0));
    return byi_import_reshape(o, y, y_shape, true);
}

static void convert_dft(struct byi_import *o)
{
    const int64_t default_axis = o->opset < 20 ? 1 : -2;

    if (byi_import_in(o, 2) == BYI_NO_ID)
        o->out[0] = emit_dft(o, byi_import_in(o, 0),
                             byi_import_int(o, "axis", default_axis));
    else if (byi_import_is_const(o, 2))
        o->out[0] = emit_dft(o, byi_import_in(o, 0),
                             byi_import_const_int(o, 2, "axis"));
    else
        o->out[0] = emit_dynamic_dft(o, byi_import_in(o, 0),
                                     read_scalar(o, 2, BYOC_I64));
}

/* Emit the length of a frame: input 3 or, without it, the window's length. */
static byi_id emit_frame_length(struct byi_import *o)
{
    if (byi_import_in(o, 3) != BYI_NO_ID)
        return read_scalar(o, 3, BYOC_I64);
    if (byi_import_in(o, 2) == BYI_NO_ID)
        byi_import_fail(
            o, BYOC_EPARSE,
            "found neither a window nor a frame_length, expected one");
    return byi_import_call(o, BYI_OP_SIZE_OF, byi_import_in(o, 2));
}

/* Emit the signal positions of each complete frame, (frames, length). */
static byi_id emit_frame_positions(struct byi_import *o, byi_id x, byi_id step,
                                   byi_id length)
{
    const byi_id frames = byi_import_template(
        o,
        "fn (%x, %step, %length) {"
        "  %span = subtract(take(shape_of(%x), 1i64, axis=0), %length);"
        "  add(divide(%span, %step), 1)"
        "}",
        ARGS(x, step, length), NO_ATTRS);

    return byi_import_template(
        o,
        "fn (%frames, %step, %within) {"
        "  add(expand_dims(multiply(%frames, %step), axis=[1]), %within)"
        "}",
        ARGS(byi_import_arange(o, BYI_NO_ID, frames), step,
             byi_import_arange(o, BYI_NO_ID, length)),
        NO_ATTRS);
}

/* STFT of 16-bit floats is computed in float32: rounding the product of frame
 * and window would add noise to every frequency. PyTorch's exporter and ONNX
 * Runtime omit the last axis of a real signal. */
static void convert_stft(struct byi_import *o)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, byi_import_in(o, 0));
    const enum byoc_dtype compute_dtype =
        dtype == BYOC_F64 ? BYOC_F64 : BYOC_F32;
    const byi_id signal =
        byi_import_cast(o, byi_import_in(o, 0), compute_dtype);
    const byi_id window = byi_import_in(o, 2);
    const uint32_t rank = byi_import_rank(o, signal);
    const byi_id x = rank == 2 ? byi_import_add_axes(o, signal, 2, 1) : signal;
    const bool onesided = byi_import_int(o, "onesided", 1) != 0;
    const byi_id step = read_scalar(o, 1, BYOC_I64);
    const byi_id length = emit_frame_length(o);

    if (byi_import_ok(o) && rank != 2 && rank != 3)
        byi_import_fail(
            o, BYOC_ETYPE,
            "found a signal of rank %u, expected 2 (batch, time) or "
            "3 (batch, time, 1 for real or 2 for complex numbers)",
            rank);
    byi_id frames =
        byi_import_take(o, x, emit_frame_positions(o, x, step, length), 1);
    if (window != BYI_NO_ID)
        frames = byi_import_call(
            o, BYI_OP_MULTIPLY, frames,
            emit_column(o, byi_import_cast(o, window, compute_dtype)));
    const byi_id y =
        byi_import_emit(o, BYI_OP_DFT, ARGS(frames),
                        ATTRS(AN_INT("axis", 2), A_BOOL("onesided", onesided)));
    o->out[0] = byi_import_cast(o, y, dtype);
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_signal, BYI_ONNX,
    {"BlackmanWindow", 17, 1, 1, convert_blackman, BYI_OP_NONE},
    {"DFT", 17, 1, 2, convert_dft, BYI_OP_NONE},
    {"DFT", 20, 1, 3, convert_dft, BYI_OP_NONE},
    {"HammingWindow", 17, 1, 1, convert_hamming, BYI_OP_NONE},
    {"HannWindow", 17, 1, 1, convert_hann, BYI_OP_NONE},
    {"MelWeightMatrix", 17, 5, 5, convert_mel, BYI_OP_NONE},
    {"STFT", 17, 2, 4, convert_stft, BYI_OP_NONE})
/* clang-format on */
