/* SPDX-License-Identifier: Apache-2.0 */
/* ops_index.c: converts operators that read elements by index, or compute
 * indices.
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>

/* Cast indices to int64 unless they are int32: the IR accepts both. */
static byi_id cast_index(struct byi_import *o, byi_id id)
{
    if (byi_import_dtype(o, id) == BYOC_I32)
        return id;
    return byi_import_cast(o, id, BYOC_I64);
}

byi_id byi_import_take(struct byi_import *o, byi_id x, byi_id indices,
                       int64_t axis)
{
    return byi_import_emit(o, BYI_OP_TAKE, ARGS(x, indices),
                           ATTRS(AN_INT("axis", axis)));
}

/* Without axis, x is flattened first. */
static void convert_compress(struct byi_import *o)
{
    o->out[0] =
        byi_import_same(o, BYI_OP_COMPRESS, 2, o->in,
                        ATTRS(A_BOOL("flat", !byi_import_has_attr(o, "axis"))));
}

static void convert_cumulative(struct byi_import *o)
{
    const bool product = strcmp(o->row->type, "CumProd") == 0;
    const byi_id x = byi_import_in(o, 0);

    if (!byi_import_is_const(o, 1)) {
        o->out[0] = byi_import_same(o, BYI_OP_DYN_CUMSUM,
                                    ARGS(x, cast_index(o, byi_import_in(o, 1))),
                                    ATTRS(A_BOOL("product", product)));
        return;
    }
    const uint32_t axis = byi_import_axis(o, byi_import_const_int(o, 1, "axis"),
                                          byi_import_rank(o, x));
    o->out[0] = byi_import_same(
        o, BYI_OP_CUMSUM, ARGS(x),
        ATTRS(AN_INT("axis", (int64_t)axis), A_BOOL("product", product)));
}

/* NonZero of strings finds those that are not empty. */
static void convert_nonzero(struct byi_import *o)
{
    const char *empty_text = "";
    const struct byi_tensor empty = {.data = &empty_text, .dtype = BYOC_STRING};
    byi_id x = byi_import_in(o, 0);

    if (byi_import_dtype(o, x) == BYOC_STRING)
        x = byi_import_call(o, BYI_OP_NOT_EQUAL, x,
                            byi_import_const(o, &empty, false));
    o->out[0] = byi_import_call(o, BYI_OP_NONZERO, x);
}

static void convert_trilu(struct byi_import *o)
{
    if (byi_import_in(o, 1) != BYI_NO_ID && !byi_import_is_const(o, 1)) {
        o->out[0] = byi_import_same(
            o, BYI_OP_DYN_TRILU,
            ARGS(byi_import_in(o, 0), cast_index(o, byi_import_in(o, 1))),
            NO_ATTRS);
        return;
    }
    const int64_t k =
        byi_import_in(o, 1) == BYI_NO_ID ? 0 : byi_import_const_int(o, 1, "k");

    o->out[0] = byi_import_same(o, BYI_OP_TRILU, ARGS(byi_import_in(o, 0)),
                                ATTRS(AN_INT("k", k)));
}

static void emit_topk(struct byi_import *o, byi_id k)
{
    byi_import_get_outputs(
        o,
        byi_import_same(o, BYI_OP_TOPK, ARGS(byi_import_in(o, 0), k), NO_ATTRS),
        2);
}

static void convert_topk_1(struct byi_import *o)
{
    const int64_t k = byi_import_int(o, "k", 0);

    emit_topk(o, byi_import_vector(o, 1, &k));
}

static void convert_topk(struct byi_import *o)
{
    emit_topk(o, byi_import_cast(o, byi_import_in(o, 1), BYOC_I64));
}

static void convert_one_hot(struct byi_import *o)
{
    for (uint32_t i = 0; i < 2; i++) /* indices, depth */
        o->in[i] = byi_import_cast(o, o->in[i], BYOC_I64);
    byi_import_convert_same(o);
}

static void convert_take(struct byi_import *o)
{
    o->in[1] = cast_index(o, o->in[1]);
    byi_import_convert_same(o);
}

/* Operand 1 has sizes or indices that may be int32. */
static void convert_with_int64(struct byi_import *o)
{
    o->in[1] = byi_import_cast(o, o->in[1], BYOC_I64);
    byi_import_convert_same(o);
}

/* Without the attribute axis, the elements of x are compared, not its slices.
 */
static void convert_unique(struct byi_import *o)
{
    const byi_id results =
        byi_import_same(o, BYI_OP_UNIQUE, ARGS(byi_import_in(o, 0)),
                        ATTRS(A_BOOL("flat", !byi_import_has_attr(o, "axis"))));

    byi_import_get_outputs(o, results, 4);
}

/* TensorScatter: write `update` (b, ..., s, ...) into the cache x (b, ..., t,
 * ...) along the axis. Each sequence of the batch has its own start index. If
 * the mode is circular, indices past the end wrap around to the front. */
static void convert_tensor_scatter(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), update = byi_import_in(o, 1);
    const byi_id starts = byi_import_in(o, 2);
    const uint32_t rank = byi_import_rank(o, x);
    const uint32_t axis =
        byi_import_axis(o, byi_import_int(o, "axis", -2), rank);
    const char *mode = byi_import_string(o, "mode", "linear");

    if (byi_import_ok(o) && axis == 0)
        byi_import_fail(o, BYOC_ETYPE,
                        "axis is 0, the batch axis, expected an axis after it");
    byi_id at = byi_import_add_axes(
        o, byi_import_arange(o, BYI_NO_ID, byi_import_length(o, update, axis)),
        1, rank - 1 - axis);
    if (starts != BYI_NO_ID)
        at = byi_import_call(
            o, BYI_OP_ADD, at,
            byi_import_add_axes(o, byi_import_cast(o, starts, BYOC_I64), 1,
                                rank - 1));
    if (strcmp(mode, "circular") == 0)
        at = byi_import_call(o, BYI_OP_MOD, at, byi_import_length(o, x, axis));
    else if (strcmp(mode, "linear") != 0)
        byi_import_refuse(o, "mode is '%s', expected linear or circular", mode);
    at = byi_import_call(o, BYI_OP_BROADCAST_TO, at,
                         byi_import_shape_of(o, update));
    o->out[0] = byi_import_emit(o, BYI_OP_SCATTER_ELEMENTS, ARGS(x, at, update),
                                ATTRS(AN_INT("axis", (int64_t)axis)));
}

/* --- com.microsoft -------------------------------------------------------- */

/* Unique(x): the elements in the order of their first occurrences, the index
 * there of each element of x, and how often each occurs. */
static void convert_unique_1(struct byi_import *o)
{
    const byi_id results =
        byi_import_emit(o, BYI_OP_UNIQUE, ARGS(byi_import_in(o, 0)),
                        ATTRS(AN_INT("axis", 0), A_BOOL("flat", true),
                              A_BOOL("sorted", false)));

    for (uint32_t i = 0; i < o->n_out; i++)
        if (byi_import_wants_output(o, i))
            o->out[i] = byi_import_get(o, results, i == 0 ? 0 : i + 1);
}

/* NGramRepeatBlock: ids (b, t), scores (b, vocabulary). A score becomes -inf if
 * its id would complete an n-gram that the row of ids already has. */
static void convert_block_repeats(struct byi_import *o)
{
    static const char windows[] = /* their number, 0 in a row that is shorter */
        "fn (%t) { expand_dims(maximum(subtract(%t, last), 0), axis=[0]) }";
    static const char
        same[] = /* id `at` of each window, and of the row's end */
        "fn (%ids, %windows) {"
        "  %end = add(%windows, at);"
        "  equal(strided_slice(%ids, [at], %end, [1], [1]),"
        "        strided_slice(%ids, %end, add(%end, 1), [1], [1]))"
        "}";
    static const char block[] =
        "fn (%scores, %ids, %repeats, %t, %low, %high) {"
        "  %next = strided_slice(%ids, [last], expand_dims(%t, axis=[0]), [1],"
        "                        [1]);"
        "  scatter_elements(%scores, %next, where(%repeats, %low, %high),"
        "                   axis=1, reduction=\"min\")"
        "}";
    const byi_id scores = byi_import_in(o, 1), ids = byi_import_in(o, 0);
    const int64_t last = byi_import_int(o, "ngram_size", 0) - 1;
    const enum byoc_dtype dtype = byi_import_dtype(o, scores);
    const byi_id t = byi_import_length(o, ids, 1);
    byi_id repeats = byi_import_scalar(o, BYOC_BOOL, 1);

    if (byi_import_ok(o) && (last < 0 || last >= BYI_MAX_ARGS))
        byi_import_fail(o, BYOC_EPARSE, "ngram_size is %lld, expected 1 to %d",
                        (long long)last + 1, BYI_MAX_ARGS);
    if (byi_import_ok(o) && byi_import_rank(o, ids) != 2)
        byi_import_fail(o, BYOC_ETYPE, "input_ids has rank %u, expected 2",
                        byi_import_rank(o, ids));
    const byi_id count =
        byi_import_template(o, windows, ARGS(t), ATTRS(AN_INT("last", last)));
    for (int64_t at = 0; at < last && byi_import_ok(o); at++)
        repeats = byi_import_call(o, BYI_OP_LOGICAL_AND,
                                  byi_import_template(o, same, ARGS(ids, count),
                                                      ATTRS(AN_INT("at", at))),
                                  repeats);
    if (last == 0) /* each id of the row is an n-gram */
        repeats = byi_import_call(o, BYI_OP_EQUAL, ids, ids);
    const byi_id low = byi_import_scalar(o, dtype, -INFINITY);
    const byi_id high = byi_import_scalar(o, dtype, INFINITY);
    o->out[0] =
        byi_import_template(o, block, ARGS(scores, ids, repeats, t, low, high),
                            ATTRS(AN_INT("last", last)));
}

/* UnfoldTensor: the windows of `size` elements along axis `dim`, every `step`
 * elements; the elements of a window become the last axis. */
static void convert_unfold(struct byi_import *o)
{
    static const char windows[] =
        "fn (%t) { add(divide(subtract(%t, size), step), 1) }";
    static const char elements[] =
        "fn (%windows, %in_window) {"
        "  add(expand_dims(multiply(%windows, step), axis=[1]), %in_window)"
        "}";
    const byi_id x = byi_import_in(o, 0);
    const uint32_t rank = byi_import_rank(o, x);
    const int64_t size = byi_import_int(o, "size", 0);
    const int64_t step = byi_import_int(o, "step", 1);
    const uint32_t axis =
        byi_import_axis(o, byi_import_int(o, "dim", -1), rank);

    if (byi_import_ok(o) && (size < 1 || step < 1))
        byi_import_fail(o, BYOC_EPARSE,
                        "size is %lld and step %lld, expected at least 1",
                        (long long)size, (long long)step);
    const byi_id n =
        byi_import_template(o, windows, ARGS(byi_import_length(o, x, axis)),
                            ATTRS(AN_INT("size", size), AN_INT("step", step)));
    const byi_id at = byi_import_template(
        o, elements,
        ARGS(byi_import_arange(o, BYI_NO_ID, n),
             byi_import_arange(o, BYI_NO_ID,
                               byi_import_scalar(o, BYOC_I64, (double)size))),
        ATTRS(AN_INT("step", step)));
    o->out[0] = byi_import_move_axis(o, byi_import_take(o, x, at, axis),
                                     axis + 1, rank);
}

#define SAME byi_import_convert_same
/* clang-format off */
BYI_ONNX_ROWS(onnx_index, BYI_ONNX,
    {"Compress", 9, 2, 2, convert_compress, BYI_OP_NONE},
    {"CumProd", 26, 2, 2, convert_cumulative, BYI_OP_NONE},
    {"CumSum", 11, 2, 2, convert_cumulative, BYI_OP_NONE},
    {"Gather", 1, 2, 2, convert_take, BYI_OP_TAKE},
    {"GatherElements", 11, 2, 2, SAME, BYI_OP_GATHER},
    {"GatherND", 11, 2, 2, SAME, BYI_OP_GATHER_ND},
    {"NonZero", 9, 1, 1, convert_nonzero, BYI_OP_NONE},
    {"OneHot", 9, 3, 3, convert_one_hot, BYI_OP_ONE_HOT},
    {"ReverseSequence", 10, 2, 2, convert_with_int64, BYI_OP_REVERSE_SEQUENCE},
    {"Scatter", 9, 3, 3, SAME, BYI_OP_SCATTER_ELEMENTS},
    {"ScatterElements", 11, 3, 3, SAME, BYI_OP_SCATTER_ELEMENTS},
    {"ScatterND", 11, 3, 3, SAME, BYI_OP_SCATTER_ND},
    {"TensorScatter", 24, 2, 3, convert_tensor_scatter, BYI_OP_NONE},
    {"TopK", 1, 1, 1, convert_topk_1, BYI_OP_NONE},
    {"TopK", 10, 2, 2, convert_topk, BYI_OP_NONE},
    {"Trilu", 14, 1, 2, convert_trilu, BYI_OP_NONE},
    {"Unique", 11, 1, 1, convert_unique, BYI_OP_NONE})

BYI_ONNX_ROWS(microsoft_index, BYI_MICROSOFT,
    {"GatherND", 1, 2, 2, convert_with_int64, BYI_OP_GATHER_ND},
    {"NGramRepeatBlock", 1, 2, 2, convert_block_repeats, BYI_OP_NONE},
    {"Trilu", 1, 1, 2, convert_trilu, BYI_OP_NONE},
    {"UnfoldTensor", 1, 1, 1, convert_unfold, BYI_OP_NONE},
    {"Unique", 1, 1, 1, convert_unique_1, BYI_OP_NONE})
/* clang-format on */
