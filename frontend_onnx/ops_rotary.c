/* SPDX-License-Identifier: Apache-2.0 */
/* ops_rotary.c: converts rotary embeddings (Su et al., "RoFormer: Enhanced
 * Transformer with Rotary Position Embedding", 2021): each pair of a head's
 * elements is a point of the plane, rotated by an angle proportional to the
 * position.
 */
#include "frontend_onnx/attention.h"

byi_id byi_rotary_rows(struct byi_import *o, byi_id table, byi_id at,
                       bool heads_first)
{
    return byi_o_text(o,
                      "fn (%table, %at) {"
                      "  expand_dims(take(%table, %at, axis=0), axis=[heads])"
                      "}",
                      ARGS(table, at),
                      ATTRS(AN_INT("heads", heads_first ? 1 : 2)));
}

/* Emit the positions of the s tokens, (1, s), if `at` is one number, the
 * position of the first token; positions (b, s) are returned as they are. */
static byi_id emit_positions(struct byi_import *o, byi_id at, byi_id s)
{
    static const int64_t front[] = {0};

    if (byi_o_rank(o, at) >= 2)
        return at;
    at = byi_o_as_scalar(o, at);
    at = byi_o_call(o, BYI_OP_ADD,
                    byi_o_count(o, byi_o_scalar(o, BYOC_I64, 0), s), at);
    return byi_o_expand(o, at, 1, front);
}

/* Rotate each pair (a, b): (a cos - b sin, a sin + b cos). */
#define ROTATED                                                                \
    "subtract(multiply(%pair.0, %cos), multiply(%pair.1, %sin)),"              \
    "add(multiply(%pair.0, %sin), multiply(%pair.1, %cos))"

/* The pairs are the halves of the last axis ... */
static const char rotate_halves[] =
    "fn (%x, %cos, %sin) {"
    "  %pair = split(%x, sizes=[half, half], axis=3);"
    "  concatenate(" ROTATED ", axis=3)"
    "}";
/* ... or its even and odd elements. */
static const char rotate_adjacent[] =
    "fn (%x, %cosines, %sines) {"
    "  %pair = split(reshape(%x, [0, 0, 0, half, 2]), sizes=[1, 1], axis=4);"
    "  %cos = expand_dims(%cosines, axis=[4]);"
    "  %sin = expand_dims(%sines, axis=[4]);"
    "  reshape(concatenate(" ROTATED ", axis=4), [0, 0, 0, width])"
    "}";

static byi_id rotate_pairs(struct byi_import *o, byi_id x,
                           const byi_id tables[2], int64_t width,
                           bool interleaved)
{
    return byi_o_text(o, interleaved ? rotate_adjacent : rotate_halves,
                      ARGS(x, tables[0], tables[1]),
                      ATTRS(AN_INT("half", width / 2), AN_INT("width", width)));
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
    const byi_id kept = byi_o_get(o, parts, 1);
    return byi_o_concat(
        o, rotate_pairs(o, byi_o_get(o, parts, 0), tables, width, interleaved),
        kept, 3);
}

/* Emit the rows of a table at the tokens' positions. Without positions, the
 * table already has one row per token: (b, s, width / 2). */
static byi_id emit_token_rows(struct byi_import *o, byi_id table, byi_id at,
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
    const uint32_t table_axis = places == BYI_NO_ID ? 2 : 1;
    const bool heads_first = byi_o_rank(o, byi_o_in(o, 0)) == 4;
    const bool interleaved = byi_o_int(o, "interleaved", 0) != 0;
    const int64_t rotary_dim = byi_o_int(o, "rotary_embedding_dim", 0);
    const int64_t heads = byi_o_int(o, "num_heads", 0);
    const int64_t half = byi_o_dim(o, byi_o_in(o, table), table_axis);
    const int64_t width = half < 0 || half > INT64_MAX / 2 ? -1 : 2 * half;
    const int64_t hidden = byi_o_dim(o, byi_o_in(o, 0), heads_first ? 3 : 2);
    const int64_t head = heads_first ? hidden
                         : (rotary_dim > 0 || standard) && heads > 0
                             ? hidden / heads
                             : width;
    byi_id x = byi_o_in(o, 0);

    if (!standard) {
        byi_o_float(o, "scale", 1.0);
        if (byi_o_int(o, "is_packed_batching", 0))
            byi_o_refuse(o, "is_packed_batching is 1, expected 0");
    }
    if (byi_o_ok(o) &&
        (width < 2 || hidden < 1 || head < width || hidden % head ||
         (rotary_dim > 0 && rotary_dim != width) ||
         (!heads_first && byi_o_rank(o, x) != 3)))
        byi_o_fail(o, BYOC_ETYPE,
                   "found x of rank %u and width %lld with heads of %lld "
                   "elements, expected heads of at least twice the width of "
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
            : emit_positions(o, places,
                             byi_o_length(o, x, heads_first ? 2 : 1));
    const byi_id tables[] = {
        emit_token_rows(o, byi_o_in(o, table), at, heads_first),
        emit_token_rows(o, byi_o_in(o, table + 1), at, heads_first)};
    const byi_id shape = byi_o_shape_of(o, byi_o_in(o, 0));
    o->out[0] = byi_o_reshape(o, byi_rotary_apply(o, x, tables, interleaved),
                              shape, false);
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
