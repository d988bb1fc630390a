/* SPDX-License-Identifier: Apache-2.0 */
/* ops_rotary.c: rotary embeddings (Su et al., "RoFormer:
 * Enhanced Transformer with Rotary Position Embedding", 2021): each pair of a
 * head's elements is a point of the plane, rotated by an angle proportional to
 * the position.
 */
#include "frontend_onnx/attention.h"

byi_id byi_rotary_rows(struct byi_import *o, byi_id table, byi_id at,
                       bool heads_first)
{
    const int64_t heads[] = {heads_first ? 1 : 2};

    return byi_o_expand(
        o,
        byi_o_emit(o, BYI_OP_TAKE, ARGS(table, at), ATTRS(AN_INT("axis", 0))),
        1, heads);
}

/* The positions (b, s); a single number is the position of the first token. */
static byi_id positions(struct byi_import *o, byi_id at, byi_id s)
{
    static const int64_t front[] = {0};

    if (byi_o_rank(o, at) >= 2)
        return at;
    at = byi_o_binary(o, BYI_OP_ADD,
                      byi_o_count(o, byi_o_scalar(o, BYOC_I64, 0), s),
                      byi_o_as_scalar(o, at));
    return byi_o_expand(o, at, 1, front);
}

/* Split the last axis into halves, or, if interleaved, into even and odd
 * elements, (..., 1) each. */
static void split_pairs(struct byi_import *o, byi_id x, int64_t width,
                        bool interleaved, byi_id pair[2])
{
    const int64_t halves[] = {width / 2, width / 2}, ones[] = {1, 1};
    const int64_t shape[] = {0, 0, 0, width / 2, 2};

    if (interleaved)
        x = byi_o_reshape(o, x, byi_o_vector(o, 5, shape), false);
    const byi_id tuple =
        byi_o_emit(o, BYI_OP_SPLIT, ARGS(x),
                   ATTRS(SOME_INTS("sizes", 2, interleaved ? ones : halves),
                         AN_INT("axis", interleaved ? 4 : 3)));
    for (uint32_t i = 0; i < 2; i++)
        pair[i] = byi_o_get(o, tuple, i);
}

/* Rotate each pair (a, b) of x: (a cos - b sin, a sin + b cos). */
static byi_id rotate_pairs(struct byi_import *o, byi_id x,
                           const byi_id tables[2], int64_t width,
                           bool interleaved)
{
    static const int64_t last[] = {4};
    const int64_t shape[] = {0, 0, 0, width};
    byi_id pair[2], rotated[2], by[2] = {tables[0], tables[1]};

    split_pairs(o, x, width, interleaved, pair);
    for (uint32_t i = 0; i < 2 && interleaved; i++)
        by[i] = byi_o_expand(o, by[i], 1, last);
    for (uint32_t i = 0; i < 2; i++)
        rotated[i] =
            byi_o_binary(o, i ? BYI_OP_ADD : BYI_OP_SUBTRACT,
                         byi_o_binary(o, BYI_OP_MULTIPLY, pair[0], by[i]),
                         byi_o_binary(o, BYI_OP_MULTIPLY, pair[1], by[!i]));
    const byi_id y =
        byi_o_concat(o, rotated[0], rotated[1], interleaved ? 4 : 3);
    return interleaved ? byi_o_reshape(o, y, byi_o_vector(o, 4, shape), false)
                       : y;
}

byi_id byi_rotary_apply(struct byi_import *o, byi_id x, const byi_id tables[2],
                        bool interleaved)
{
    const int64_t head = byi_o_dim(o, x, 3);
    const int64_t width = 2 * byi_o_dim(o, tables[0], 3);
    const int64_t sizes[] = {width, head - width};

    if (head == width)
        return rotate_pairs(o, x, tables, width, interleaved);
    const byi_id parts =
        byi_o_emit(o, BYI_OP_SPLIT, ARGS(x),
                   ATTRS(SOME_INTS("sizes", 2, sizes), AN_INT("axis", 3)));
    return byi_o_concat(
        o, rotate_pairs(o, byi_o_get(o, parts, 0), tables, width, interleaved),
        byi_o_get(o, parts, 1), 3);
}

/* The rows of a table at the tokens' positions; without positions, the rows are
 * those of the tokens (b, s, width / 2). */
static byi_id token_rows(struct byi_import *o, byi_id table, byi_id at,
                         bool heads_first)
{
    const int64_t heads[] = {heads_first ? 1 : 2};

    return at == BYI_NO_ID ? byi_o_expand(o, table, 1, heads)
                           : byi_rotary_rows(o, table, at, heads_first);
}

/* RotaryEmbedding: x (b, s, n h) or (b, n, s, h), positions (1) or (b, s),
 * tables of cosines and sines (positions, width / 2). Elements of a head beyond
 * the width are unchanged. In ai.onnx the positions are the last input, and may
 * be omitted. */
static void convert_rotary(struct byi_import *o)
{
    const bool standard = o->row->since == 23;
    const uint32_t table = standard ? 1 : 2;
    const byi_id places = byi_o_in(o, standard ? 3 : 1);
    const uint32_t deep = places == BYI_NO_ID ? 2 : 1;
    const bool heads_first = byi_o_rank(o, byi_o_in(o, 0)) == 4;
    const bool interleaved = byi_o_int(o, "interleaved", 0) != 0;
    const int64_t part = byi_o_int(o, "rotary_embedding_dim", 0);
    const int64_t heads = byi_o_int(o, "num_heads", 0);
    const int64_t half = byi_o_dim(o, byi_o_in(o, table), deep);
    const int64_t width = half < 0 || half > INT64_MAX / 2 ? -1 : 2 * half;
    const int64_t hidden = byi_o_dim(o, byi_o_in(o, 0), heads_first ? 3 : 2);
    const int64_t head = heads_first                           ? hidden
                         : (part > 0 || standard) && heads > 0 ? hidden / heads
                                                               : width;
    byi_id x = byi_o_in(o, 0);

    if (!standard) {
        byi_o_float(o, "scale", 1.0);
        if (byi_o_int(o, "is_packed_batching", 0))
            byi_o_refuse(o, "packed batches");
    }
    if (byi_o_ok(o) && (width < 2 || hidden < 1 || head < width ||
                        hidden % head || (part > 0 && part != width) ||
                        (!heads_first && byi_o_rank(o, x) != 3)))
        byi_o_fail(o, BYOC_ETYPE,
                   "found x of rank %u and width %lld with heads of %lld "
                   "elements; expected heads of at least twice the width of "
                   "cos_cache, %lld",
                   byi_o_rank(o, x), (long long)hidden, (long long)head,
                   (long long)half);
    if (!byi_o_ok(o))
        return;
    if (!heads_first) {
        const int64_t shape[] = {0, 0, hidden / head, head};
        x = byi_o_reshape(o, x, byi_o_vector(o, 4, shape), false);
    }
    const byi_id at =
        places == BYI_NO_ID
            ? places
            : positions(o, places, byi_o_length(o, x, heads_first ? 2 : 1));
    const byi_id tables[] = {
        token_rows(o, byi_o_in(o, table), at, heads_first),
        token_rows(o, byi_o_in(o, table + 1), at, heads_first)};
    o->out[0] = byi_o_reshape(o, byi_rotary_apply(o, x, tables, interleaved),
                              byi_o_shape_of(o, byi_o_in(o, 0)), false);
}

/* clang-format off */
static const struct byi_onnx_op standard_rows[] = {
    {"RotaryEmbedding", 23, 3, 4, convert_rotary, BYI_OP_NONE},
};
static const struct byi_onnx_op rows[] = {
    {"RotaryEmbedding", 1, 4, 4, convert_rotary, BYI_OP_NONE},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_rotary = {BYI_ONNX, standard_rows,
                                               BYI_COUNT(standard_rows)};
const struct byi_onnx_table byi_microsoft_rotary = {BYI_MICROSOFT, rows,
                                                    BYI_COUNT(rows)};
