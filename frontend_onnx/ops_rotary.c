/* SPDX-License-Identifier: Apache-2.0 */
/* ops_rotary.c: converts rotary embeddings (Su et al., "RoFormer: Enhanced
 * Transformer with Rotary Position Embedding", 2021). Each pair of a head's
 * elements is a point of the plane, rotated by an angle proportional to the
 * position.
 */
#include "frontend_onnx/attention.h"

byi_id byi_rotary_rows(struct byi_import *o, byi_id table, byi_id positions,
                       bool heads_first)
{
    return byi_import_template(
        o,
        "fn (%table, %positions) {"
        "  expand_dims(take(%table, %positions, axis=0), axis=[heads])"
        "}",
        ARGS(table, positions), ATTRS(AN_INT("heads", heads_first ? 1 : 2)));
}

/* Emit the positions of the s tokens, (1, s), if `positions` is one number, the
 * position of the first token. Positions (b, s) are returned as they are. */
static byi_id emit_positions(struct byi_import *o, byi_id positions, byi_id s)
{
    if (byi_import_rank(o, positions) >= 2)
        return positions;
    positions = byi_import_as_scalar(o, positions);
    positions = byi_import_call(
        o, BYI_OP_ADD,
        byi_import_arange(o, byi_import_scalar(o, BYOC_I64, 0), s), positions);
    return byi_import_add_axes(o, positions, 0, 1);
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
    "  reshape(concatenate(" ROTATED ", axis=4), [0, 0, 0, rotated])"
    "}";

static byi_id rotate_pairs(struct byi_import *o, byi_id x,
                           const byi_id tables[2], int64_t rotated,
                           bool interleaved)
{
    return byi_import_template(
        o, interleaved ? rotate_adjacent : rotate_halves,
        ARGS(x, tables[0], tables[1]),
        ATTRS(AN_INT("half", rotated / 2), AN_INT("rotated", rotated)));
}

byi_id byi_rotary_apply(struct byi_import *o, byi_id x, const byi_id tables[2],
                        bool interleaved)
{
    const int64_t head = byi_import_dim(o, x, 3);
    const int64_t rotated = 2 * byi_import_dim(o, tables[0], 3);
    const int64_t sizes[] = {rotated, head - rotated};

    if (head == rotated)
        return rotate_pairs(o, x, tables, rotated, interleaved);
    const byi_id parts =
        byi_import_emit(o, BYI_OP_SPLIT, ARGS(x),
                        ATTRS(SOME_INTS("sizes", 2, sizes), AN_INT("axis", 3)));
    const byi_id unrotated = byi_import_get(o, parts, 1);
    return byi_import_concat(o,
                             rotate_pairs(o, byi_import_get(o, parts, 0),
                                          tables, rotated, interleaved),
                             unrotated, 3);
}

/* Emit the rows of a table at the tokens' positions. Without positions, the
 * table already has one row per token: (b, s, rotated / 2). */
static byi_id emit_token_rows(struct byi_import *o, byi_id table,
                              byi_id positions, bool heads_first)
{
    return positions == BYI_NO_ID
               ? byi_import_add_axes(o, table, heads_first ? 1 : 2, 1)
               : byi_rotary_rows(o, table, positions, heads_first);
}

/* The sizes of a RotaryEmbedding; negative: symbolic. */
struct rotary_sizes {
    int64_t last;    /* last dim of x */
    int64_t head;    /* elements of a head */
    int64_t rotated; /* elements of a head that are rotated, the first ones */
};

/* Fail unless x has rank 3 or 4, its last dim is a whole number of heads, and a
 * head has at least the rotated elements. All these sizes must be known. */
static void check_rotary(struct byi_import *o, const struct rotary_sizes *sizes,
                         int64_t rotary_dim)
{
    const uint32_t rank = byi_import_rank(o, byi_import_in(o, 0));

    if (!byi_import_ok(o))
        return;
    if (rank != 3 && rank != 4)
        byi_import_fail(o, BYOC_ETYPE, "found x of rank %u, expected 3 or 4",
                        rank);
    else if (sizes->rotated < 0)
        byi_import_fail(o, BYOC_ETYPE,
                        "found cos_cache with a symbolic number of columns, "
                        "expected a known number; fix it with --dim or "
                        "--shape");
    else if (sizes->rotated == 0)
        byi_import_fail(o, BYOC_ETYPE,
                        "found cos_cache without columns, expected at least 1");
    else if (rotary_dim > 0 && rotary_dim != sizes->rotated)
        byi_import_fail(o, BYOC_ETYPE,
                        "rotary_embedding_dim is %lld, expected %lld, two for "
                        "each column of cos_cache",
                        (long long)rotary_dim, (long long)sizes->rotated);
    else if (sizes->last < 0)
        byi_import_fail(o, BYOC_ETYPE,
                        "found x with a symbolic last dim, expected a known "
                        "one; fix it with --dim or --shape");
    else if (sizes->last == 0)
        byi_import_fail(o, BYOC_ETYPE,
                        "found x whose last dim is 0, expected at least 1");
    else if (sizes->head < sizes->rotated)
        byi_import_fail(o, BYOC_ETYPE,
                        "found heads of %lld elements, expected at least %lld, "
                        "two for each column of cos_cache",
                        (long long)sizes->head, (long long)sizes->rotated);
    else if (sizes->last % sizes->head)
        byi_import_fail(o, BYOC_ETYPE,
                        "found x whose last dim is %lld, expected a multiple "
                        "of %lld, the size of a head",
                        (long long)sizes->last, (long long)sizes->head);
}

/* RotaryEmbedding: x (b, s, n h) or (b, n, s, h), positions (1) or (b, s),
 * tables of cosines and sines (positions, rotated / 2). Elements of a head
 * after the rotated ones are unchanged. In ai.onnx the positions are the last
 * input, and may be omitted. */
static void convert_rotary(struct byi_import *o)
{
    const bool standard = o->row->since == 23;
    const uint32_t table = standard ? 1 : 2;
    const byi_id position_input = byi_import_in(o, standard ? 3 : 1);
    const uint32_t table_axis = position_input == BYI_NO_ID ? 2 : 1;
    const bool heads_first = byi_import_rank(o, byi_import_in(o, 0)) == 4;
    const bool interleaved = byi_import_int(o, "interleaved", 0) != 0;
    const int64_t rotary_dim = byi_import_int(o, "rotary_embedding_dim", 0);
    const int64_t heads = byi_import_int(o, "num_heads", 0);
    const int64_t half = byi_import_dim(o, byi_import_in(o, table), table_axis);
    const int64_t rotated = half < 0 ? half : 2 * byi_min(half, INT64_MAX / 2);
    const int64_t last =
        byi_import_dim(o, byi_import_in(o, 0), heads_first ? 3 : 2);
    /* com.microsoft's num_heads applies only if rotary_embedding_dim is set */
    const int64_t head = heads_first ? last
                         : (rotary_dim > 0 || standard) && heads > 0
                             ? last / heads
                             : rotated;
    const struct rotary_sizes sizes = {last, head, rotated};
    byi_id x = byi_import_in(o, 0);

    if (!standard) {
        /* The importer refuses attributes that no converter reads. Read scale
         * and ignore its value, as ONNX Runtime does. */
        byi_import_float(o, "scale", 1.0);
        if (byi_import_int(o, "is_packed_batching", 0))
            byi_import_refuse(o, "found packed batching, expected "
                                 "is_packed_batching to be 0");
    }
    check_rotary(o, &sizes, rotary_dim);
    if (!byi_import_ok(o))
        return;
    if (!heads_first)
        x = byi_import_reshape_to(o, x, INTS(0, 0, last / head, head));
    const byi_id positions =
        position_input == BYI_NO_ID
            ? position_input
            : emit_positions(o, position_input,
                             byi_import_length(o, x, heads_first ? 2 : 1));
    const byi_id tables[] = {
        emit_token_rows(o, byi_import_in(o, table), positions, heads_first),
        emit_token_rows(o, byi_import_in(o, table + 1), positions,
                        heads_first)};
    x = byi_rotary_apply(o, x, tables, interleaved);
    /* with a constant target the last dim stays known */
    o->out[0] = heads_first ? x : byi_import_reshape_to(o, x, INTS(0, 0, last));
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_rotary, BYI_ONNX,
    {"RotaryEmbedding", 23, 3, 4, convert_rotary, BYI_OP_NONE})
BYI_ONNX_ROWS(microsoft_rotary, BYI_MICROSOFT,
    {"RotaryEmbedding", 1, 4, 4, convert_rotary, BYI_OP_NONE})
/* clang-format on */
