/* SPDX-License-Identifier: Apache-2.0 */
/* ops_blocks.c: converts operators on weights of 2, 4 and 8 bits with a scale
 * for each block. MatMulNBits and GatherBlockQuantized have blocks along one
 * axis, and zero points; MatMulBnb4 has a table of floats, and its blocks may
 * cross rows.
 */
#include "frontend_onnx/import.h"

/* Unpack codes of `bits` bits, 2, 4 or 8, from bytes of shape (rows, n), the
 * lower bits first. Returns shape (rows, n * 8 / bits). */
static byi_id unpack_codes(struct byi_import *o, byi_id codes, int64_t bits,
                           int64_t rows, int64_t n)
{
    static const char halves[] =
        "fn (%codes) {"
        "  %high = right_shift(%codes, bits);"
        "  %low = subtract(%codes, left_shift(%high, bits));"
        "  reshape(concatenate(expand_dims(%low, axis=[2]),"
        "                      expand_dims(%high, axis=[2]), axis=2),"
        "          [rows, n])"
        "}";

    for (int64_t half = 4; half >= bits; half /= 2, n *= 2)
        codes =
            byi_import_template(o, halves, ARGS(codes),
                                ATTRS(AN_INT("bits", half), AN_INT("n", 2 * n),
                                      AN_INT("rows", rows)));
    return codes;
}

/* Emit x in the shape (a, b, c), or (a, b) if c is 0. */
static byi_id reshape_to(struct byi_import *o, byi_id x, int64_t a, int64_t b,
                         int64_t c)
{
    const int64_t shape[] = {a, b, c};

    return byi_import_reshape_to(o, x, c ? 3 : 2, shape);
}

static int64_t count_blocks(const struct byi_block_weights *w)
{
    return (w->k + w->block_size - 1) / w->block_size;
}

/* Returns the zero point of each block, (n, blocks). If they are omitted, one
 * zero point, half of the range, serves all blocks. */
static byi_id read_block_zeros(struct byi_import *o,
                               const struct byi_block_weights *w)
{
    const int64_t blocks = count_blocks(w);
    const int64_t bytes = (blocks * w->bits + 7) / 8;

    if (w->zeros == BYI_NO_ID)
        return byi_import_scalar(o, BYOC_U8, (double)(1 << (w->bits - 1)));
    if (byi_import_dtype(o, w->zeros) != BYOC_U8)
        return reshape_to(o, w->zeros, w->n, blocks, 0);
    if (w->packs_rows) {
        const int64_t all = (w->n * w->bits + 7) / 8;
        const byi_id flat = reshape_to(o, w->zeros, 1, all, 0);
        return reshape_to(
            o,
            byi_import_slice(o, unpack_codes(o, flat, w->bits, 1, all), 0, w->n,
                             1),
            w->n, 1, 0);
    }
    const byi_id zeros = reshape_to(o, w->zeros, w->n, bytes, 0);
    return byi_import_slice(o, unpack_codes(o, zeros, w->bits, w->n, bytes), 0,
                            blocks, 1);
}

/* Expand one value per block to one per column (k of them), in float32. */
static byi_id expand_blocks(struct byi_import *o,
                            const struct byi_block_weights *w, byi_id blocks)
{
    const byi_id float_blocks = byi_import_cast(o, blocks, BYOC_F32);
    const int64_t n_blocks = count_blocks(w);

    if (w->block_of_column != BYI_NO_ID)
        return byi_import_take(o, float_blocks, w->block_of_column, 1);
    const byi_id columns = byi_import_call(
        o, BYI_OP_BROADCAST_TO, reshape_to(o, float_blocks, w->n, n_blocks, 1),
        byi_import_vector(o, INTS(w->n, n_blocks, w->block_size)));
    return byi_import_slice(
        o, reshape_to(o, columns, w->n, n_blocks * w->block_size, 0), 0, w->k,
        1);
}

/* Multiply by weights that are dequantised to float32, for cases that
 * qnn.dense_blocks does not support: blocks assigned by g_idx, zero points of
 * another type than uint8, other block sizes, 2 bits, float64. */
static byi_id emit_expanded_product(struct byi_import *o,
                                    const struct byi_block_weights *w, byi_id x)
{
    const int64_t bytes = count_blocks(w) * w->block_size * w->bits / 8;
    byi_id codes = reshape_to(o, w->codes, w->n, bytes, 0);

    codes = unpack_codes(o, codes, w->bits, w->n, bytes);
    codes =
        byi_import_cast(o, byi_import_slice(o, codes, 0, w->k, 1), BYOC_F32);
    byi_id zeros = read_block_zeros(o, w);
    zeros = byi_import_rank(o, zeros) == 0 ? byi_import_cast(o, zeros, BYOC_F32)
                                           : expand_blocks(o, w, zeros);
    const byi_id scales =
        expand_blocks(o, w, reshape_to(o, w->scales, w->n, count_blocks(w), 0));
    const byi_id weights = byi_import_call(
        o, BYI_OP_MULTIPLY, byi_import_call(o, BYI_OP_SUBTRACT, codes, zeros),
        scales);
    return byi_import_cast(
        o,
        byi_import_emit(o, BYI_OP_NN_MATMUL,
                        ARGS(byi_import_cast(o, x, BYOC_F32), weights),
                        ATTRS(A_BOOL("transpose_b", true))),
        byi_import_dtype(o, x));
}

byi_id byi_import_block_product(struct byi_import *o, byi_id x,
                                const struct byi_block_weights *w)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, x);

    if (!byi_import_ok(o))
        return BYI_NO_ID;
    if (w->block_of_column != BYI_NO_ID || w->block_size * w->bits % 32 != 0 ||
        (w->zeros != BYI_NO_ID && byi_import_dtype(o, w->zeros) != BYOC_U8) ||
        !byi_dtype_is_float(dtype) || dtype == BYOC_F64 || w->bits == 2)
        return emit_expanded_product(o, w, x);
    const int64_t blocks = count_blocks(w);
    const byi_id codes =
        reshape_to(o, w->codes, w->n, blocks, w->block_size * w->bits / 8);
    const byi_id scales =
        byi_import_cast(o, reshape_to(o, w->scales, w->n, blocks, 0), dtype);
    return byi_import_emit(
        o, BYI_OP_QNN_DENSE_BLOCKS,
        ARGS(x, codes, scales, read_block_zeros(o, w)),
        ATTRS(AN_INT("bits", w->bits), AN_INT("block_size", w->block_size)));
}

static void check_size(struct byi_import *o, const char *name, int64_t size)
{
    if (size < 1 || size > INT32_MAX)
        byi_import_fail(o, BYOC_EPARSE, "%s is %lld, expected 1 to %d", name,
                        (long long)size, INT32_MAX);
}

void byi_import_check_blocks(struct byi_import *o, int64_t bits,
                             int64_t block_size)
{
    if (bits != 2 && bits != 4 && bits != 8)
        byi_import_refuse(o, "found weights of %lld bits, expected 2, 4 or 8",
                          (long long)bits);
    check_size(o, "block_size", block_size);
    if (byi_import_ok(o) && block_size % (bits == 2 ? 4 : 2))
        byi_import_fail(o, BYOC_EPARSE,
                        "block_size is %lld, expected a multiple of %d",
                        (long long)block_size, bits == 2 ? 4 : 2);
}

/* MatMulNBits: x (..., K), weights (N, blocks, bytes), a scale and a zero point
 * for each block, g_idx, bias (N). */
static void convert_matmul_bits(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), bias = byi_import_in(o, 5);
    const struct byi_block_weights w = {.k = byi_import_int(o, "K", 0),
                                        .n = byi_import_int(o, "N", 0),
                                        .bits = byi_import_int(o, "bits", 4),
                                        .block_size =
                                            byi_import_int(o, "block_size", 0),
                                        .codes = byi_import_in(o, 1),
                                        .scales = byi_import_in(o, 2),
                                        .zeros = byi_import_in(o, 3),
                                        .block_of_column = byi_import_in(o, 4)};

    /* The importer refuses attributes that no converter reads. This one only
     * allows a runtime to round x. */
    byi_import_int(o, "accuracy_level", 0);
    check_size(o, "K", w.k);
    check_size(o, "N", w.n);
    byi_import_check_blocks(o, w.bits, w.block_size);
    const byi_id y = byi_import_block_product(o, x, &w);
    o->out[0] =
        bias == BYI_NO_ID
            ? y
            : byi_import_call(o, BYI_OP_ADD, y,
                              byi_import_cast(o, bias, byi_import_dtype(o, x)));
}

/* --- codes of floats ------------------------------------------------------ */

/* The floats of MatMulBnb4's codes. FP4 has a sign and three bits; NF4 has
 * quantiles of the normal distribution (Dettmers et al., QLoRA, 2023). */
static const float fp4[] = {0.0f,      0.0052083335f,  2.0f / 3,  1.0f,
                            1.0f / 3,  0.5f,           1.0f / 6,  0.25f,
                            0.0f,      -0.0052083335f, -2.0f / 3, -1.0f,
                            -1.0f / 3, -0.5f,          -1.0f / 6, -0.25f};
static const float nf4[] = {
    -1.0f,        -0.69619280f, -0.52507305f,  -0.39491749f,
    -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
    0.079580300f, 0.16093020f,  0.24611230f,   0.33791524f,
    0.44070983f,  0.56261700f,  0.72295684f,   1.0f};

/* Emit the weights of a MatMulBnb4, (n, k) of float32: two codes in each of the
 * bytes `flat`, the first in the upper bits; `absmax` has the largest absolute
 * value of each block. A block may go on in the next row, so the last one is
 * padded. No step makes a much larger result than its operands, so that all of
 * them are folded if the weights are constants. */
static byi_id emit_bnb_weights(struct byi_import *o, byi_id flat, byi_id table,
                               byi_id absmax, const int64_t dims[2],
                               int64_t block)
{
    static const char values[] =
        "fn (%codes, %table) {"
        "  %high = right_shift(%codes, 4);"
        "  %low = subtract(%codes, left_shift(%high, 4));"
        "  %pairs = concatenate(expand_dims(%high, axis=[1]),"
        "                       expand_dims(%low, axis=[1]), axis=1);"
        "  %all = take(%table, cast(%pairs, dtype=\"int32\"), axis=0);"
        "  strided_slice(reshape(%all, [-1]), [0], [total], [0], [1])"
        "}";
    static const char scaled[] =
        "fn (%values, %absmax) {"
        "  %blocks = reshape(%values, [-1, block]);"
        "  %y = multiply(%blocks, expand_dims(%absmax, axis=[1]));"
        "  %all = strided_slice(reshape(%y, [-1]), [0], [total], [0], [1]);"
        "  reshape(%all, [n, k])"
        "}";
    const int64_t n = dims[0], k = dims[1], total = n * k;
    const int64_t padding = (block - total % block) % block;
    byi_id y = byi_import_template(o, values, ARGS(flat, table),
                                   ATTRS(AN_INT("total", total)));

    if (padding)
        y = byi_import_call(o, BYI_OP_NN_PAD, y,
                            byi_import_vector(o, INTS(0, padding)),
                            byi_import_scalar(o, BYOC_F32, 0));
    return byi_import_template(
        o, scaled, ARGS(y, byi_import_cast(o, absmax, BYOC_F32)),
        ATTRS(AN_INT("block", block), AN_INT("total", total), AN_INT("n", n),
              AN_INT("k", k)));
}

/* MatMulBnb4: x (..., K), codes of the weights (N, K), the largest absolute
 * value of each block. */
static void convert_matmul_bnb(struct byi_import *o)
{
    const int64_t k = byi_import_int(o, "K", 0), n = byi_import_int(o, "N", 0);
    const int64_t block = byi_import_int(o, "block_size", 0);
    const int64_t type = byi_import_int(o, "quant_type", 0);
    const byi_id x = byi_import_in(o, 0);

    byi_import_int(o, "training_mode", 0); /* only for gradients */
    check_size(o, "K", k);
    check_size(o, "N", n);
    check_size(o, "block_size", block);
    if (type != 0 && type != 1)
        byi_import_refuse(o, "quant_type is %lld, expected 0 (FP4) or 1 (NF4)",
                          (long long)type);
    if (byi_import_int(o, "transB", 1) == 0)
        byi_import_refuse(o, "transB is 0, expected 1, weights (N, K)");
    if (!byi_import_ok(o))
        return;
    const byi_id flat = byi_import_reshape_to(o, byi_import_in(o, 1), INTS(-1));
    const byi_id table =
        byi_import_array(o, BYOC_F32, 16, type == 0 ? fp4 : nf4);
    const int64_t dims[] = {n, k};
    const byi_id weights =
        emit_bnb_weights(o, flat, table, byi_import_in(o, 2), dims, block);
    o->out[0] = byi_import_emit(
        o, BYI_OP_NN_MATMUL,
        ARGS(x, byi_import_cast(o, weights, byi_import_dtype(o, x))),
        ATTRS(A_BOOL("transpose_b", true)));
}

/* --- rows of blocks ------------------------------------------------------- */

/* Unpack the codes or zero points of a GatherBlockQuantized, so that each has
 * an element of its own. If they have 4 bits and are stored as uint8, a byte
 * has two of them, and the result has `last` elements along the last axis. */
static byi_id unpack_block_codes(struct byi_import *o, byi_id x, int64_t bits,
                                 int64_t last)
{
    int64_t dims[BYI_MAX_RANK], rows = 1;
    const uint32_t rank = byi_import_rank(o, x);

    if (bits == 8 || byi_import_dtype(o, x) != BYOC_U8)
        return x;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = byi_import_dim(o, x, i);
    for (uint32_t i = 0; i + 1 < rank; i++)
        rows *= dims[i];
    const int64_t bytes = dims[rank - 1];
    dims[rank - 1] = last;
    const byi_id shape = byi_import_vector(o, rank, dims);
    return byi_import_reshape(
        o, byi_import_slice(o, unpack_codes(o, x, 4, rows, bytes), 0, last, 1),
        shape, false);
}

/* The inputs and attributes of a GatherBlockQuantized. */
struct gathered_blocks {
    byi_id codes, indices, scales, zeros; /* zeros may be omitted */
    int64_t rank, bits, gather_axis, block_axis, block_size;
    bool is_uint8; /* of the codes; if they have 4 bits, a byte has two */
};

static void check_block_axis(struct byi_import *o, const char *name,
                             int64_t axis, int64_t rank)
{
    if (axis < 0 || axis >= rank)
        byi_import_fail(
            o, BYOC_EPARSE,
            "%s is %lld, expected an axis of data, which has rank %lld", name,
            (long long)(axis < 0 ? axis - rank : axis), /* as given */
            (long long)rank);
}

static void check_block_axes(struct byi_import *o,
                             const struct gathered_blocks *g)
{
    if (g->bits != 4 && g->bits != 8)
        byi_import_refuse(o, "found codes of %lld bits, expected 4 or 8",
                          (long long)g->bits);
    if (g->block_size < 1)
        byi_import_fail(o, BYOC_EPARSE,
                        "block_size is %lld, expected a positive number",
                        (long long)g->block_size);
    check_block_axis(o, "gather_axis", g->gather_axis, g->rank);
    check_block_axis(o, "quantize_axis", g->block_axis, g->rank);
    if (g->gather_axis == g->block_axis)
        byi_import_fail(o, BYOC_EPARSE,
                        "gather_axis and quantize_axis are both axis %lld, "
                        "expected two different axes",
                        (long long)g->gather_axis);
    if (g->is_uint8 && g->bits == 4 && g->block_axis != g->rank - 1)
        byi_import_fail(o, BYOC_EPARSE,
                        "quantize_axis is axis %lld, expected %lld, the last "
                        "axis, for 4-bit codes in uint8",
                        (long long)g->block_axis, (long long)(g->rank - 1));
}

/* Check the rank and dims of an input of a GatherBlockQuantized; `name` is its
 * name in messages. */
static void check_block_input(struct byi_import *o, byi_id x, int64_t rank,
                              const char *name)
{
    if (byi_import_ok(o) && byi_import_rank(o, x) != rank)
        byi_import_fail(o, BYOC_ETYPE,
                        "%s: found rank %u, expected %lld, as data has", name,
                        byi_import_rank(o, x), (long long)rank);
    for (uint32_t i = 0; byi_import_ok(o) && i < byi_import_rank(o, x); i++) {
        const int64_t dim = byi_import_dim(o, x, i);
        if (BYI_IS_SYMBOL(dim))
            byi_import_refuse(o,
                              "%s: found a symbolic dim, expected known dims; "
                              "fix it with --dim or --shape",
                              name);
        else if (dim > INT64_MAX / 2) /* two codes per byte would overflow */
            byi_import_fail(o, BYOC_ELIMIT,
                            "%s: found a dim of %lld, expected at most %lld",
                            name, (long long)dim, (long long)(INT64_MAX / 2));
    }
}

/* GatherBlockQuantized(codes, indices, scales, zero points): take the slices of
 * codes, scales and zero points at the indices, then dequantise them. */
static void convert_gather_blocks(struct byi_import *o)
{
    struct gathered_blocks g = {
        .codes = byi_import_in(o, 0),
        .indices = byi_import_in(o, 1),
        .scales = byi_import_in(o, 2),
        .zeros = byi_import_in(o, 3),
        .bits = byi_import_int(o, "bits", 4),
        .gather_axis = byi_import_int(o, "gather_axis", 0),
        .block_axis = byi_import_int(o, "quantize_axis", 1),
        .block_size = byi_import_int(o, "block_size", 128),
    };

    g.rank = byi_import_rank(o, g.codes);
    g.is_uint8 = byi_import_dtype(o, g.codes) == BYOC_U8;
    g.gather_axis += g.gather_axis < 0 ? g.rank : 0;
    g.block_axis += g.block_axis < 0 ? g.rank : 0;
    check_block_axes(o, &g);
    check_block_input(o, g.codes, g.rank, "data");
    check_block_input(o, g.scales, g.rank, "scales");
    if (g.zeros != BYI_NO_ID)
        check_block_input(o, g.zeros, g.rank, "zero_points");
    if (!byi_import_ok(o))
        return;
    const uint32_t last = (uint32_t)g.rank - 1;
    const int64_t codes_per_byte = g.is_uint8 && g.bits == 4 ? 2 : 1;
    const byi_id zeros =
        g.zeros != BYI_NO_ID
            ? unpack_block_codes(o, g.zeros, g.bits,
                                 byi_import_dim(o, g.scales, last))
            : byi_import_emit(
                  o, BYI_OP_FULL, ARGS(byi_import_shape_of(o, g.scales)),
                  ATTRS(A_FLOAT("value", g.is_uint8 ? 1 << (g.bits - 1) : 0),
                        A_DTYPE("dtype", byi_import_dtype(o, g.codes))));
    byi_id parts[] = {
        unpack_block_codes(o, g.codes, g.bits,
                           byi_import_dim(o, g.codes, last) * codes_per_byte),
        g.scales, zeros};
    for (int i = 0; i < 3; i++)
        parts[i] = byi_import_take(o, parts[i], g.indices, g.gather_axis);
    if (g.block_axis > g.gather_axis)
        g.block_axis += (int64_t)byi_import_rank(o, g.indices) - 1;
    o->out[0] = byi_import_emit(
        o, BYI_OP_DEQUANTIZE, 3, parts, 2,
        (const struct byi_attr[]){AN_INT("axis", g.block_axis),
                                  AN_INT("block_size", g.block_size)});
}

/* clang-format off */
BYI_ONNX_ROWS(microsoft_blocks, BYI_MICROSOFT,
    {"GatherBlockQuantized", 1, 3, 4, convert_gather_blocks, BYI_OP_NONE},
    {"MatMulBnb4", 1, 3, 3, convert_matmul_bnb, BYI_OP_NONE},
    {"MatMulNBits", 1, 3, 6, convert_matmul_bits, BYI_OP_NONE})
/* clang-format on */
